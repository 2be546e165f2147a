//! How a run ends: what it prints last, and which error it returns.

use super::{Run, limits};
use crate::error::{Error, Result, StopCause};
use crate::report::progress::Progress;

impl Run {
    /// The last notes of a run that was ended in the middle of an epoch.
    pub(super) fn end_early(&self, cause: StopCause, first: u64, progress: &mut Progress) -> Result<()> {
        let (epoch, reached) = (self.counters.epoch, progress.reached());
        progress.finish();
        match (cause, limits::minutes(&self.config)) {
            (StopCause::TimeLimit, Some(minutes)) if epoch == first => {
                Err(Error::TimeLimit { minutes, epoch: epoch + 1, reached })
            }
            (StopCause::TimeLimit, _) => {
                progress.note(&format!("the time is over in epoch {}, which is given up", epoch + 1))?;
                self.close(progress)
            }
            (StopCause::Signal(_) | StopCause::Failure, _) => {
                let dir = self.dir().display();
                let rest = self.factory.resume_arguments();
                let note =
                    format!("stopped after epoch {epoch}; continue with:\n  vecaz run --resume {dir}{rest}");
                // Ctrl-C also ends the program that reads a pipe: the note may reach nobody, and the cause is the signal.
                let _ = progress.note(&note);
                Err(Error::Stopped(cause))
            }
        }
    }

    /// The last notes of a run that has reached its limit.
    pub(super) fn close(&self, progress: &Progress) -> Result<()> {
        let least = self.config.train.min_samples as u64;
        // Not those of an epoch that was given up.
        let samples: u64 = self.metrics.records().iter().map(|record| record.samples).sum();
        if samples < least {
            progress.note(&format!(
                "nothing was learned: {samples} samples were played, and the first update needs train.min_samples = {least}"
            ))?;
        }
        progress.note(&format!("results are in {}; see report.html there", self.dir().display()))
    }
}
