//! Entering what a backend decided by itself in the lanes of the host, which it waits for.

use super::Lane;
use crate::backend::lanes::Decided;
use std::panic::resume_unwind;
use std::thread;

/// The fewest decisions that are worth a thread.
const WORTH_A_THREAD: usize = 512;

/// How many threads enter `decisions` decisions.
pub(super) fn threads_for(decisions: usize) -> usize {
    (decisions / WORTH_A_THREAD).clamp(1, rayon::current_num_threads())
}

/// What `enter` makes of all decisions, which come in any order: by lane, then pass.
///
/// Each of `threads` threads has some of the lanes. They are threads of their own: one of the pool's, while it waited for the
/// others, could take up work that waits for it.
pub(super) fn enter_all<T: Send>(
    lanes: &mut [Lane],
    mut decided: Vec<Decided>,
    threads: usize,
    enter: impl Fn(&mut Lane, &Decided) -> Option<T> + Sync,
) -> Vec<T> {
    decided.sort_unstable_by_key(|decided| (decided.lane, decided.pass));
    let of_part = |first: usize, lanes: &mut [Lane], decided: &[Decided]| -> Vec<T> {
        decided.iter().filter_map(|decided| enter(&mut lanes[decided.lane - first], decided)).collect()
    };
    if threads == 1 {
        return of_part(0, lanes, &decided);
    }
    let each = lanes.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let of_part = &of_part;
        let (mut first, mut rest) = (0, decided.as_slice());
        let mut parts = Vec::with_capacity(threads);
        for lanes in lanes.chunks_mut(each) {
            let (start, end) = (first, first + lanes.len());
            let (own, others) = rest.split_at(rest.partition_point(|decided| decided.lane < end));
            parts.push(scope.spawn(move || of_part(start, lanes, own)));
            (first, rest) = (end, others);
        }
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::lane::new_lane;
    use super::*;
    use crate::search::root::RootSummary;

    /// In an order of no meaning. Some lanes have no decision, some one, some several.
    fn decisions() -> Vec<Decided> {
        let of_lane = |lane: usize| (0..lane % 4).map(move |n| (lane, n as u32 * 3 + lane as u32 % 2));
        let decided = |(lane, pass)| Decided { lane, pass, place: lane + 1, summary: RootSummary::default() };
        let mut all: Vec<Decided> = (0..23).flat_map(of_lane).map(decided).collect();
        all.sort_by_key(|decided| (decided.lane * 7 + decided.pass as usize * 5) % 11);
        all
    }

    #[test]
    fn any_number_of_threads_enters_all_in_order() {
        let decided = decisions();
        let entered = |threads: usize| {
            let mut lanes: Vec<Lane> = (0..23).map(new_lane).collect();
            let told = enter_all(&mut lanes, decided.clone(), threads, |lane, decided| {
                assert_eq!(lane.lane, decided.lane as u64);
                lane.actions.push(decided.pass as u16);
                (decided.pass % 2 == 0).then_some((lane.lane, decided.pass))
            });
            (told, lanes)
        };
        let (told, lanes) = entered(1);
        assert!(told.len() > 9 && told.is_sorted());
        assert_eq!(lanes.iter().map(|lane| lane.actions.len()).sum::<usize>(), decided.len());
        for threads in [2, 3, 7, 23, 40] {
            assert_eq!(entered(threads), (told.clone(), lanes.clone()), "{threads} threads");
        }
    }

    #[test]
    fn few_decisions_are_entered_by_one_thread() {
        assert_eq!([0, 1, WORTH_A_THREAD, 2 * WORTH_A_THREAD - 1].map(threads_for), [1; 4]);
        assert!(threads_for(1 << 20) <= rayon::current_num_threads());
    }
}
