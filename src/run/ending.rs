//! The end of a run: its last notes and the error that it returns.

use super::epoch_size::{first_update, first_update_terms};
use super::files::FINAL;
use super::limits;
use super::training_run::Run;
use crate::config::TrainingMode;
use crate::error::{Error, Result, StopCause};
use crate::report::progress::Progress;
use crate::words::count;

impl Run {
    /// Prints the last notes of a run that was stopped during an epoch, and returns its error, if any.
    pub(super) fn end_early(&mut self, cause: StopCause, first: u64, progress: &mut Progress) -> Result<()> {
        let (epoch, reached) = (self.counters.epoch, self.reached(progress));
        progress.finish();
        match (cause, limits::minutes(&self.config)) {
            (StopCause::TimeLimit, Some(minutes)) if epoch == first => {
                self.finish_workers();
                Err(Error::TimeLimit { minutes, epoch: epoch + 1, reached })
            }
            (StopCause::TimeLimit, _) => {
                progress
                    .note(&format!("time limit reached in epoch {}, of which nothing is kept", epoch + 1))?;
                self.close(progress)
            }
            (StopCause::Signal(_) | StopCause::Failure | StopCause::Caller, _) => {
                let dir = self.dir().display();
                let rest = self.factory.resume_arguments();
                let note =
                    format!("stopped after epoch {epoch}; continue with:\n  vecaz run --resume {dir}{rest}");
                // Ctrl-C also ends the program that reads a pipe. A failed write is ignored, and the signal is reported.
                let _ = progress.note(&note);
                Err(Error::Stopped(cause))
            }
        }
    }

    /// The progress in the epoch, with what it waits for.
    fn reached(&mut self, progress: &Progress) -> Option<String> {
        let missing = self.workers.as_mut().and_then(|workers| workers.missing());
        let reached = progress.reached()?;
        Some(missing.map_or(reached.clone(), |missing| format!("{reached}; {missing}")))
    }

    /// `error` of the present epoch; of a number that is not finite, with the epoch and the keys that bound the updates.
    pub(super) fn cause_of(&self, error: Error) -> Error {
        let (epoch, train) = (self.counters.epoch + 1, &self.config.train);
        match error {
            Error::NotFinite { what, value } => {
                Error::Diverged { what, value, epoch, lr: train.lr, clip_norm: train.clip_norm }
            }
            other => other,
        }
    }

    /// Tells the workers that the run is over.
    pub(super) fn finish_workers(&mut self) {
        if let Some(workers) = &mut self.workers {
            workers.finish();
        }
    }

    /// Prints the last notes of a run that has reached its limit.
    pub(super) fn close(&mut self, progress: &Progress) -> Result<()> {
        let missing = self.workers.as_mut().and_then(|workers| workers.missing());
        self.finish_workers();
        if let Some(cut) = self.metrics.records().last().filter(|record| record.cut) {
            progress.note(&format!(
                "the time limit ended epoch {}: {FINAL} is its network; --resume plays the epoch in full",
                cut.epoch
            ))?;
        }
        let samples: u64 = self.metrics.records().iter().map(|record| record.samples).sum();
        if let Some(missing) = missing.filter(|_| samples == 0) {
            return Err(Error::unsupported("a run without games", missing));
        }
        if let Some(why) = self.missing_updates(samples) {
            progress.note(&format!("nothing was learned: {} played, and {why}", count(samples, "sample")))?;
        }
        let (dir, rest) = (self.dir().display(), self.factory.resume_arguments());
        progress
            .note(&format!("results are in {dir}; open report.html there in a browser, or go on with:"))?;
        if cfg!(feature = "http") {
            progress.note(&format!("  vecaz serve {dir}"))?;
        }
        let more = if self.has_all_epochs() { "--epochs E" } else { "--minutes M" };
        progress.note(&format!("  vecaz play {dir}\n  vecaz eval {dir} --against rollouts:800\n  vecaz run --resume {dir}{rest} {more}"))
    }

    /// Why the run, which has played these samples, has no updates; None if it has some.
    fn missing_updates(&self, samples: u64) -> Option<String> {
        let last = self.metrics.records().last();
        if last.is_some_and(|record| record.updates > 0) {
            return None;
        }
        let Some(needed) = first_update(&self.config) else {
            return Some("train.replay_ratio is 0".to_string());
        };
        let of_last = last.map_or(0, |record| record.samples);
        let seen = match self.config.train.mode {
            TrainingMode::InTurns => samples,
            TrainingMode::Overlapped => samples.saturating_sub(of_last),
        };
        let terms = first_update_terms(&self.config);
        (seen < needed).then(|| format!("the first update needs {needed}{terms}"))
    }

    /// True if the run has the epochs of its limit, which a higher limit of time does not change.
    pub(super) fn has_all_epochs(&self) -> bool {
        let limit = self.config.run.epochs;
        limit > 0 && self.counters.epoch >= limit
    }
}
