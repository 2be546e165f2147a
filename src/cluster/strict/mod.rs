//! The strict order: any number of workers, starting and stopping at any time, gives the games of a run on one machine, in its order.
//!
//! The game slots are divided into partitions. At the start of an epoch the learner publishes the slots of every partition. A worker
//! that has a partition's lease plays it poll by poll and sends the plies of each poll. A slot's plies depend only on its state at the
//! start, the weights and the number of passes, so every worker sends the same polls of a partition. After a worker has stopped, another
//! one plays its partitions from the start of the epoch. The learner takes a poll when all partitions have sent it, and ends the epoch
//! after the poll that fills it, as a run on one machine does.

pub mod epoch_slots;
pub mod poll;
pub mod poll_merger;
pub(super) mod refusals;
mod resend_buffer;
pub(super) mod worker;

use crate::config::{Config, DeviceName};
use crate::net::cpu::choose_isa;
use std::ops::Range;

/// Lower bound on the slots of a partition; a run with fewer slots has one partition.
const MIN_PARTITION_SLOTS: usize = 32;
/// Polls that a partition may be ahead of the last one that the learner has taken. Polls after an epoch's last one are discarded.
const POLLS_AHEAD: u64 = 16;

/// The slots of each partition.
pub fn partitions(slots: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    let partitions = (slots / MIN_PARTITION_SLOTS).max(1);
    (0..partitions).map(move |partition| slots * partition / partitions..slots * (partition + 1) / partitions)
}

/// The properties of a machine on which the bits of a network's outputs depend: kind of device, number format, instruction set.
pub(super) fn platform(config: &Config) -> String {
    let net = &config.net;
    match config.network_devices().first() {
        DeviceName::Cpu => {
            let isa = choose_isa(net.isa, net.precision).map_or("none".into(), |isa| isa.to_string());
            format!("{} on the CPU by {} with {isa}", net.precision, net.executor)
        }
        DeviceName::Cuda(_) => {
            format!("{} on a GPU by {} with {}", net.precision, net.executor, net.tensor_cores)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_cover_all_slots_once() {
        for slots in [1, 31, 32, 63, 64, 100, 1000] {
            let all: Vec<Range<usize>> = partitions(slots).collect();
            assert_eq!((all[0].start, all.last().map(|partition| partition.end)), (0, Some(slots)));
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(all.iter().all(|partition| partition.len() >= slots.min(MIN_PARTITION_SLOTS)), "{all:?}");
        }
        assert_eq!(partitions(100).map(|partition| partition.len()).collect::<Vec<_>>(), [33, 33, 34]);
    }
}
