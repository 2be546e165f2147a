//! The limits of a run, epochs and minutes, and the time left until its end.

use super::epoch_size::samples_of;
use super::training_run::Run;
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
    pub(super) fn time_limit(&self) -> Option<f64> {
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

    /// True if the limit is reached, or leaves no time for a part of another epoch and the last one is measured.
    pub(super) fn is_done(&self) -> bool {
        let epochs = self.config.run.epochs;
        if epochs > 0 && self.counters.epoch >= epochs {
            return true;
        }
        let Some(last) = self.metrics.records().last() else { return false };
        let is_over = self.time_limit().is_some_and(|limit| self.seconds() >= limit);
        let is_measured = last.strength.is_some() || self.config.eval.every == 0;
        is_over || (is_measured && self.is_late())
    }

    /// The next epoch, and the estimated end of the run: its time limit, or the end of its last epoch if epochs take as long as those so
    /// far, whichever is earlier.
    pub(super) fn eta(&self) -> RunEta {
        let (epochs, done) = (self.config.run.epochs, self.counters.epoch);
        let left = match (epochs, self.metrics.records().last()) {
            (1.., Some(_)) => self.last_epoch_seconds().map(|seconds| {
                let size = |epoch| samples_of(&self.config.selfplay, epoch) as f64;
                seconds * size(u64::MAX) / size(done) * epochs.saturating_sub(done) as f64
            }),
            _ => None,
        };
        let after = |seconds| Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?);
        let end = [self.deadline(), left.and_then(after)].into_iter().flatten().min();
        RunEta { epoch: done + 1, epochs, end }
    }
}
