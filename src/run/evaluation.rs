//! The evaluation after an epoch: by this process alone, or with workers that measure parts of it.

use super::strength::{EvalResult, ItemProgress, StrengthMeter};
use super::workers::{EvaluationOffer, SharedEvaluation};
use crate::error::Result;
use crate::net::Network;
use crate::report::metrics::Strength;
use crate::report::progress::Progress;
use crate::stop::Stop;
use std::ops::Range;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Maximum number of parts of an evaluation, unless their results would exceed [`MAX_PART_BYTES`]; each has at least [`MIN_ITEMS`], except the
/// last.
const MAX_PARTS: usize = 32;
/// Minimum number of items of a part: fewer items make small batches of the network.
const MIN_ITEMS: usize = 8;
/// Maximum number of bytes of the results of a part of several items, which a worker sends at once.
pub const MAX_PART_BYTES: usize = 64 << 20;
/// Time limit for results of workers while this process has measured no part itself.
const FIRST_TIMEOUT: Duration = Duration::from_millis(500);
/// Polling interval for results.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The items of each part of the evaluation of `meter`.
pub fn parts(meter: &StrengthMeter) -> Vec<Range<usize>> {
    parts_of(meter.items(), meter.max_bytes(1))
}

/// The parts of `items` items, of which each has a result of at most `item_bytes` bytes.
fn parts_of(items: usize, item_bytes: usize) -> Vec<Range<usize>> {
    let max_items = (MAX_PART_BYTES / item_bytes).max(1);
    let size = items.div_ceil(MAX_PARTS).max(MIN_ITEMS).min(max_items);
    (0..items).step_by(size).map(|first| first..items.min(first + size)).collect()
}

/// The evaluation of `meter` in parts.
pub fn offer(meter: &StrengthMeter) -> EvaluationOffer {
    let parts = parts(meter);
    let max_items = parts.first().map_or(0, ExactSizeIterator::len);
    EvaluationOffer { parts: parts.len(), max_bytes: meter.max_bytes(max_items), setup: meter.match_setup() }
}

/// Measures all items in this process. Shows its progress.
///
/// # Errors
/// Those of [`StrengthMeter::measure`].
pub fn alone(
    meter: &StrengthMeter,
    network: &dyn Network,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Strength> {
    progress.start("evaluation", meter.items() as u64, meter.unit());
    let report = &mut |ItemProgress { done, fraction, detail }| match detail.is_empty() {
        true => progress.set(done),
        false => progress.set_with(done, fraction, detail),
    };
    let measured = meter.measure(network, 0..meter.items(), stop, report)?;
    meter.strength(vec![measured])
}

/// Measures unclaimed parts one after the other. Then it waits for the results of claimed parts, for as long as its last part took, and
/// measures those that are still missing. The result is that of [`alone`].
///
/// # Errors
/// Those of [`StrengthMeter::measure`].
pub fn with_workers(
    meter: &StrengthMeter,
    network: &dyn Network,
    shared: &mut dyn SharedEvaluation,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Strength> {
    let parts = parts(meter);
    let mut measured: Vec<Option<EvalResult>> = vec![None; parts.len()];
    let (mut timeout, mut waited_since) = (FIRST_TIMEOUT, None::<Instant>);
    progress.start("evaluation", meter.items() as u64, meter.unit());
    loop {
        for (part, found) in shared.results(&|part, found| meter.check(parts[part].clone(), found)) {
            measured[part].get_or_insert(found);
            waited_since = None;
        }
        let done = parts.iter().zip(&measured).filter(|(_, found)| found.is_some());
        progress.set(done.map(|(part, _)| part.len() as u64).sum());
        let Some(first_missing) = measured.iter().position(Option::is_none) else { break };
        let claimed = shared.claim().filter(|part| measured[*part].is_none());
        let part = match claimed {
            Some(part) => part,
            None if !shared.is_alone()
                && waited_since.get_or_insert_with(Instant::now).elapsed() < timeout =>
            {
                stop.check()?;
                sleep(POLL_INTERVAL);
                continue;
            }
            // The worker that claimed the part is slower than this process, or has exited.
            None => first_missing,
        };
        let from = Instant::now();
        measured[part] = Some(meter.measure(network, parts[part].clone(), stop, &mut |_| ())?);
        (timeout, waited_since) = (from.elapsed(), None);
    }
    meter.strength(measured.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_items_once() {
        for items in [1, 7, 8, 9, 255, 256, 257, 1000, 1_000_000] {
            let parts = parts_of(items, 24);
            assert!(parts.len() <= MAX_PARTS, "{items}");
            assert_eq!(
                parts.iter().flat_map(Clone::clone).collect::<Vec<_>>(),
                (0..items).collect::<Vec<_>>()
            );
            assert!(parts.iter().rev().skip(1).all(|part| part.len() >= MIN_ITEMS), "{items}");
        }
    }

    /// Games of 1,000 plies: the results of a 32nd of a million of them may have 94 MB.
    #[test]
    fn the_results_of_a_part_may_be_sent_at_once() {
        for (items, item_bytes) in [(1_000_000, 3024), (64, MAX_PART_BYTES / 5), (3, usize::MAX)] {
            let parts = parts_of(items, item_bytes);
            let is_sent = |part: &Range<usize>| part.len() == 1 || part.len() * item_bytes <= MAX_PART_BYTES;
            assert!(parts.iter().all(is_sent), "{items} of {item_bytes} bytes");
            assert_eq!(parts.into_iter().flatten().count(), items);
        }
    }
}
