//! The end of a run: its last notes and the error that it returns.

use super::{FINAL, Run, limits};
use crate::error::{Error, Result, StopCause};
use crate::report::progress::Progress;

impl Run {
    /// Prints the last notes of a run that was stopped during an epoch, and returns its error, if any.
    pub(super) fn end_early(&self, cause: StopCause, first: u64, progress: &mut Progress) -> Result<()> {
        let (epoch, reached) = (self.counters.epoch, progress.reached());
        progress.finish();
        match (cause, limits::minutes(&self.config)) {
            (StopCause::TimeLimit, Some(minutes)) if epoch == first => {
                Err(Error::TimeLimit { minutes, epoch: epoch + 1, reached })
            }
            (StopCause::TimeLimit, _) => {
                progress.note(&format!("time limit reached in epoch {} before its self-play", epoch + 1))?;
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

    /// Prints the last notes of a run that has reached its limit.
    pub(super) fn close(&self, progress: &Progress) -> Result<()> {
        if let Some(cut) = self.metrics.records().last().filter(|record| record.cut) {
            progress.note(&format!(
                "the time limit ended epoch {}: {FINAL} is its network; --resume plays the epoch in full",
                cut.epoch
            ))?;
        }
        let first_update = self.config.first_update_samples();
        let samples: u64 = self.metrics.records().iter().map(|record| record.samples).sum();
        if samples < first_update {
            progress.note(&format!(
                "nothing was learned: {samples} samples were played, and the first update needs {first_update} (train.min_samples)"
            ))?;
        }
        progress.note(&format!("results are in {}; see report.html there", self.dir().display()))
    }
}
