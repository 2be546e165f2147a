//! The evaluation after an epoch: by this process alone, or with workers, who measure parts of it.

use super::strength::{ItemProgress, EvalResult, StrengthMeter};
use super::workers::{EvaluationOffer, SharedEvaluation};
use crate::error::Result;
use crate::net::Network;
use crate::report::metrics::Strength;
use crate::report::progress::Progress;
use crate::stop::Stop;
use std::ops::Range;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The most parts of an evaluation, as far as they have [`MIN_ITEMS`].
const MAX_PARTS: usize = 32;
/// Items of a part: fewer leave a batch of the network too empty.
const MIN_ITEMS: usize = 8;
/// How long results of workers are waited for where this process has measured no part itself.
const FIRST_PATIENCE: Duration = Duration::from_millis(500);
/// Polling interval for results.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The items of each part of an evaluation of so many items.
pub fn parts(items: usize) -> Vec<Range<usize>> {
    let size = items.div_ceil(MAX_PARTS).max(MIN_ITEMS);
    (0..items).step_by(size).map(|first| first..items.min(first + size)).collect()
}

/// The evaluation of `meter` in parts.
pub fn offer(meter: &StrengthMeter) -> EvaluationOffer {
    let parts = parts(meter.items());
    let max_items = parts.first().map_or(0, ExactSizeIterator::len);
    EvaluationOffer { parts: parts.len(), max_bytes: meter.max_bytes(max_items) }
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

/// Measures parts that no worker has claimed, one after the other; then waits as long as one part takes and measures the claimed parts whose results
/// are still missing. The result is that of [`alone`].
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
    let parts = parts(meter.items());
    let mut measured: Vec<Option<EvalResult>> = vec![None; parts.len()];
    let (mut patience, mut waited_since) = (FIRST_PATIENCE, None::<Instant>);
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
            None if waited_since.get_or_insert_with(Instant::now).elapsed() < patience => {
                stop.check()?;
                sleep(POLL_INTERVAL);
                continue;
            }
            // A worker has it for as long as this process takes for one, or is gone.
            None => first_missing,
        };
        let from = Instant::now();
        measured[part] = Some(meter.measure(network, parts[part].clone(), stop, &mut |_| ())?);
        (patience, waited_since) = (from.elapsed(), None);
    }
    meter.strength(measured.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_items_once() {
        for items in [1, 7, 8, 9, 255, 256, 257, 1000, 1_000_000] {
            let parts = parts(items);
            assert!(parts.len() <= MAX_PARTS, "{items}");
            assert_eq!(
                parts.iter().flat_map(Clone::clone).collect::<Vec<_>>(),
                (0..items).collect::<Vec<_>>()
            );
            assert!(parts.iter().rev().skip(1).all(|part| part.len() >= MIN_ITEMS), "{items}");
        }
    }
}
