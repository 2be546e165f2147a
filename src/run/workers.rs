//! Other processes that play games of a run, as the run sees them: where finished games come from besides its own self-play, and who
//! receives new weights. It does not know how they are reached.

use super::strength::EvalResult;
use crate::batch::AnyGame;
use crate::config::Config;
use crate::error::Result;
use crate::report::metrics::EpochRecord;
use crate::report::workers::WorkerCounts;
use crate::selfplay::{FinishedGame, GameSlot};
use crate::weights::NetFile;
use std::sync::Arc;
use std::time::Duration;

/// The workers of a run.
pub trait Workers: Send {
    /// Takes the next games that workers have finished; none of them where they are refused. None where nothing has come within `wait`.
    ///
    /// # Errors
    /// Where the workers cannot be reached any more, for a reason that does not pass by itself.
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<FinishedGame>>>;

    /// Which games were taken, as bytes for the checkpoint: a run that is resumed from it takes those that follow, each once.
    fn received(&self) -> Vec<u8>;

    /// Publishes the weights of `epoch`, once its checkpoint is durable, and the `record` of that epoch. The games taken until then are
    /// not needed again.
    ///
    /// # Errors
    /// Those of [`NetFile::to_bytes`].
    fn publish(&mut self, epoch: u64, network: &NetFile, record: Option<&EpochRecord>) -> Result<()>;

    /// Offers an evaluation of the `network` of `epoch`, whose weights are not published yet, to the workers.
    ///
    /// # Errors
    /// Those of [`NetFile::to_bytes`].
    fn share_evaluation(
        &mut self,
        epoch: u64,
        network: &NetFile,
        offer: EvaluationOffer,
    ) -> Result<Box<dyn SharedEvaluation + '_>>;

    /// The games in progress for the checkpoint, where workers play those of the run. `[N]`
    fn slots(&self) -> Option<Vec<GameSlot>>;

    /// What was received since the last call.
    fn take_counts(&mut self) -> WorkerCounts;
}

/// The size of an evaluation in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluationOffer {
    /// The number of parts.
    pub parts: usize,
    /// The most bytes of what is measured of a part.
    pub max_bytes: usize,
}

/// Says what is wrong with what a worker has measured of a part.
pub type CheckPart<'a> = &'a dyn Fn(usize, &EvalResult) -> std::result::Result<(), String>;

/// An evaluation in parts, which workers measure as far as they come to it. Where they cannot be reached, there are no claims and no results.
pub trait SharedEvaluation {
    /// Claims the next free part for this process; None where there is none.
    fn claim(&mut self) -> Option<usize>;

    /// What workers have measured since the last call and `check` finds no fault with: part and content.
    fn results(&mut self, check: CheckPart<'_>) -> Vec<(usize, EvalResult)>;
}

/// A run for which workers are wanted.
pub struct WorkersSetup<'a> {
    /// Its configuration.
    pub config: &'a Config,
    /// Its game.
    pub game: &'a Arc<dyn AnyGame>,
    /// [`Workers::received`] of its checkpoint; empty in a new run.
    pub received: &'a [u8],
    /// The games in progress of its checkpoint; empty in a new run. `[N]`
    pub slots: &'a [GameSlot],
}
