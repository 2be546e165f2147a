//! Applies the decisions of a device to the host's game slots, on all threads.

use crate::backend::decisions::{Decision, DecisionBlock};
use crate::error::Result;
use crate::play::GameSlot;
use crate::threads;
use std::ops::Range;

/// Minimum number of decisions for which starting one more thread saves time.
const MIN_DECISIONS_PER_THREAD: usize = 512;

/// How many threads apply `decisions` decisions.
pub(super) fn threads_for(decisions: usize) -> usize {
    (decisions / MIN_DECISIONS_PER_THREAD).clamp(1, rayon::current_num_threads())
}

/// Calls `apply` with every decision and its slot, and collects its results; those of one slot in the order of their passes.
///
/// Each of `threads` threads reads all decisions and applies those of its own range of slots, so that nothing is sorted or copied.
/// The threads are not the pool's: a blocked thread of the pool could start a pass of another shard.
///
/// # Errors
/// [`Error::Unsupported`](crate::Error::Unsupported) if a thread cannot be started; some of the slots are then without their decisions.
pub(super) fn apply_decisions<T: Send>(
    slots: &mut [GameSlot],
    decisions: &[DecisionBlock<'_>],
    threads: usize,
    apply: impl Fn(&mut GameSlot, &Decision<'_>) -> Option<T> + Sync,
) -> Result<Vec<T>> {
    let of_range = |slots: &mut [GameSlot], range: Range<usize>| -> Vec<T> {
        let own = decisions.iter().flat_map(|block| block.iter()).filter(|one| range.contains(&one.slot));
        own.filter_map(|decision| apply(&mut slots[decision.slot - range.start], &decision)).collect()
    };
    let all = slots.len();
    if threads == 1 {
        return Ok(of_range(slots, 0..all));
    }
    let each = all.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let of_range = &of_range;
        let mut parts = Vec::with_capacity(threads);
        for (i, slots) in slots.chunks_mut(each).enumerate() {
            let range = i * each..i * each + slots.len();
            parts.push(threads::start(scope, "a device's decisions", move || of_range(slots, range))?);
        }
        Ok(parts.into_iter().flat_map(threads::join).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::decisions::SummaryFormat;
    use crate::play::slot::new_slot;

    const FORMAT: SummaryFormat = SummaryFormat { players: 2, padded_edges: 8 };

    /// Decisions of 23 slots, pass after pass, on two devices. Some slots have none, some one, some several.
    fn decisions() -> [Vec<u32>; 2] {
        let mut devices = [Vec::new(), Vec::new()];
        for pass in 0..9 {
            for slot in (0..23).filter(|slot| (slot + pass) % 7 == 0 && slot % 5 != 3) {
                let (device, slot) = if slot < 11 { (0, slot) } else { (1, slot - 11) };
                let mut words = vec![0; FORMAT.decision_bytes() / 4];
                (words[0], words[1], words[2]) = (slot, pass, slot + 1);
                devices[device].extend(words);
            }
        }
        devices
    }

    #[test]
    fn any_number_of_threads_applies_all_in_order() {
        let devices = decisions();
        let [first, second] = [0, 1]
            .map(|i| DecisionBlock::new(bytemuck::cast_slice(&devices[i]), FORMAT).with_slot_offset(11 * i));
        let applied = |threads: usize| {
            let mut slots: Vec<GameSlot> = (0..23).map(new_slot).collect();
            let mut found = apply_decisions(&mut slots, &[first, second], threads, |slot, decision| {
                assert_eq!(slot.slot, decision.slot as u64);
                slot.actions.push(decision.pass as u16);
                (decision.pass % 2 == 0).then_some((slot.slot, decision.pass))
            })
            .expect("threads");
            found.sort_unstable();
            (found, slots)
        };
        let (found, slots) = applied(1);
        assert!(found.len() > 9 && slots.iter().any(|slot| slot.actions.len() > 1));
        assert!(slots.iter().all(|slot| slot.actions.is_sorted()));
        assert_eq!(slots.iter().map(|slot| slot.actions.len()).sum::<usize>(), first.len() + second.len());
        for threads in [2, 3, 7, 23, 40] {
            assert_eq!(applied(threads), (found.clone(), slots.clone()), "{threads} threads");
        }
    }

    #[test]
    fn few_decisions_are_applied_by_one_thread() {
        assert_eq!(
            [0, 1, MIN_DECISIONS_PER_THREAD, 2 * MIN_DECISIONS_PER_THREAD - 1].map(threads_for),
            [1; 4]
        );
        assert!(threads_for(1 << 20) <= rayon::current_num_threads());
    }
}
