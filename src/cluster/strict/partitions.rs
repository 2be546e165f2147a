//! The partitions of a run's game slots.

use std::ops::Range;

/// Lower bound on the slots of a partition; a run with fewer slots has one partition.
const MIN_PARTITION_SLOTS: usize = 32;
/// Polls that a partition may be ahead of the last one that the learner has taken. Polls after an epoch's last one are discarded.
pub(super) const POLLS_AHEAD: u64 = 16;

/// The slots of each partition.
pub fn partitions(slots: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    let partitions = (slots / MIN_PARTITION_SLOTS).max(1);
    (0..partitions).map(move |partition| slots * partition / partitions..slots * (partition + 1) / partitions)
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
