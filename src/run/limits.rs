//! The limits of a run, epochs and minutes, and the time left until its end.

use super::Run;
use crate::config::Config;
use crate::report::progress::RunEta;
use std::time::{Duration, Instant};

/// Length of a run without a limit.
const DEFAULT_MINUTES: f64 = 10.0;

/// Minutes that the whole run of a configuration may take.
pub fn minutes(config: &Config) -> Option<f64> {
    match (config.run.epochs, config.run.minutes) {
        (0, 0.0) => Some(DEFAULT_MINUTES),
        (_, 0.0) => None,
        (_, minutes) => Some(minutes),
    }
}

impl Run {
    /// Working seconds so far, without the pauses before a resume.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds_before + self.resumed_at.elapsed().as_secs_f64()
    }

    /// Seconds that the whole run may take.
    fn time_limit(&self) -> Option<f64> {
        minutes(&self.config).map(|minutes| 60.0 * minutes)
    }

    /// The end of the time limit.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let left = Duration::try_from_secs_f64((self.time_limit()? - self.seconds()).max(0.0));
        Instant::now().checked_add(left.ok()?)
    }

    /// Seconds of the last epoch, of this process or of the one before.
    pub(super) fn last_epoch_seconds(&self) -> Option<f64> {
        let [before @ .., last] = self.metrics.records() else { return None };
        Some(last.seconds - before.last().map_or(0.0, |record| record.seconds))
    }

    /// True if the limit is reached, or leaves no time for another epoch as long as the last one.
    pub(super) fn is_done(&self) -> bool {
        let epochs = self.config.run.epochs;
        let ends_late = |limit| self.last_epoch_seconds().is_some_and(|next| self.seconds() + next > limit);
        (epochs > 0 && self.counters.epoch >= epochs) || self.time_limit().is_some_and(ends_late)
    }

    /// The next epoch, and the estimated end of the run: its time limit, or the end of its last epoch if epochs take as long as those so
    /// far, whichever is earlier.
    pub(super) fn eta(&self) -> RunEta {
        let (epochs, done) = (self.config.run.epochs, self.counters.epoch);
        let left = match (epochs, self.metrics.records().last()) {
            (1.., Some(last)) => Some(last.seconds / done as f64 * epochs.saturating_sub(done) as f64),
            _ => None,
        };
        let after = |seconds| Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?);
        let end = [self.deadline(), left.and_then(after)].into_iter().flatten().min();
        RunEta { epoch: done + 1, epochs, end }
    }
}
