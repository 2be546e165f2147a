//! Entering what a backend decided by itself in the slots of the host, which it waits for.

use super::GameSlot;
use crate::backend::device_selfplay::Decided;
use std::panic::resume_unwind;
use std::thread;

/// The fewest decisions that are worth a thread.
const WORTH_A_THREAD: usize = 512;

/// How many threads enter `decisions` decisions.
pub(super) fn threads_for(decisions: usize) -> usize {
    (decisions / WORTH_A_THREAD).clamp(1, rayon::current_num_threads())
}

/// What `enter` makes of all decisions, which come in any order: by slot, then pass.
///
/// Each of `threads` threads has some of the slots. They are threads of their own: one of the pool's, while it waited for the
/// others, could take up work that waits for it.
pub(super) fn apply_decisions<T: Send>(
    slots: &mut [GameSlot],
    mut decided: Vec<Decided>,
    threads: usize,
    enter: impl Fn(&mut GameSlot, &Decided) -> Option<T> + Sync,
) -> Vec<T> {
    decided.sort_unstable_by_key(|decided| (decided.slot, decided.pass));
    let of_part = |first: usize, slots: &mut [GameSlot], decided: &[Decided]| -> Vec<T> {
        decided.iter().filter_map(|decided| enter(&mut slots[decided.slot - first], decided)).collect()
    };
    if threads == 1 {
        return of_part(0, slots, &decided);
    }
    let each = slots.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let of_part = &of_part;
        let (mut first, mut rest) = (0, decided.as_slice());
        let mut parts = Vec::with_capacity(threads);
        for slots in slots.chunks_mut(each) {
            let (start, end) = (first, first + slots.len());
            let (own, others) = rest.split_at(rest.partition_point(|decided| decided.slot < end));
            parts.push(scope.spawn(move || of_part(start, slots, own)));
            (first, rest) = (end, others);
        }
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::slot::new_slot;
    use super::*;
    use crate::search::root::RootSummary;

    /// In an order of no meaning. Some slots have no decision, some one, some several.
    fn decisions() -> Vec<Decided> {
        let of_lane = |slot: usize| (0..slot % 4).map(move |n| (slot, n as u32 * 3 + slot as u32 % 2));
        let decided = |(slot, pass)| Decided { slot, pass, place: slot + 1, summary: RootSummary::default() };
        let mut all: Vec<Decided> = (0..23).flat_map(of_lane).map(decided).collect();
        all.sort_by_key(|decided| (decided.slot * 7 + decided.pass as usize * 5) % 11);
        all
    }

    #[test]
    fn any_number_of_threads_enters_all_in_order() {
        let decided = decisions();
        let entered = |threads: usize| {
            let mut slots: Vec<GameSlot> = (0..23).map(new_slot).collect();
            let told = apply_decisions(&mut slots, decided.clone(), threads, |slot, decided| {
                assert_eq!(slot.slot, decided.slot as u64);
                slot.actions.push(decided.pass as u16);
                (decided.pass % 2 == 0).then_some((slot.slot, decided.pass))
            });
            (told, slots)
        };
        let (told, slots) = entered(1);
        assert!(told.len() > 9 && told.is_sorted());
        assert_eq!(slots.iter().map(|slot| slot.actions.len()).sum::<usize>(), decided.len());
        for threads in [2, 3, 7, 23, 40] {
            assert_eq!(entered(threads), (told.clone(), slots.clone()), "{threads} threads");
        }
    }

    #[test]
    fn few_decisions_are_entered_by_one_thread() {
        assert_eq!([0, 1, WORTH_A_THREAD, 2 * WORTH_A_THREAD - 1].map(threads_for), [1; 4]);
        assert!(threads_for(1 << 20) <= rayon::current_num_threads());
    }
}
