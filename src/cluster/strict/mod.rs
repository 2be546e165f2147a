//! The strict order: any number of workers, whenever they come and go, gives the games of a run on one machine, in its order.
//!
//! The game slots are divided into parts. At the start of an epoch the learner publishes the slots of every part; a worker that has a
//! part's lease plays it poll by poll and sends the plies of each poll. A slot's plies depend on its state at the start, the weights and
//! the number of passes alone, so whoever plays a part sends the same, and one that takes over from a worker that has died begins at the
//! start. The learner takes a poll when it has all parts of it, and ends the epoch after the poll that fills it, as a run on one machine
//! does.

mod kept;
pub mod lockstep;
pub mod poll;
pub(super) mod refusals;
pub mod starts;
pub(super) mod worker;

use crate::config::{Config, DeviceName};
use crate::net::cpu::choose_isa;
use std::ops::Range;

/// The fewest slots of a part, where there are as many.
const PART_SLOTS: usize = 32;
/// Polls that a part may be ahead of the last one that the learner has taken. Those beyond an epoch's last are played in vain.
const POLLS_AHEAD: u64 = 16;

/// The slots of each part.
pub fn parts(slots: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    let parts = (slots / PART_SLOTS).max(1);
    (0..parts).map(move |part| slots * part / parts..slots * (part + 1) / parts)
}

/// What makes numbers equal from one machine to the other: the kind of device, the number format, the instruction set.
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
    fn parts_cover_all_slots_once() {
        for slots in [1, 31, 32, 63, 64, 100, 1000] {
            let all: Vec<Range<usize>> = parts(slots).collect();
            assert_eq!((all[0].start, all.last().map(|part| part.end)), (0, Some(slots)));
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(all.iter().all(|part| part.len() >= slots.min(PART_SLOTS)), "{all:?}");
        }
        assert_eq!(parts(100).map(|part| part.len()).collect::<Vec<_>>(), [33, 33, 34]);
    }
}
