//! Other processes that play games of a run, as the run sees them: where finished games come from besides its own self-play, and who
//! receives new weights. It does not know how they are reached.

use crate::batch::AnyGame;
use crate::config::Config;
use crate::error::Result;
use crate::report::metrics::{EpochRecord, WorkerCounts};
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

    /// The games in progress for the checkpoint, where workers play those of the run. `[N]`
    fn slots(&self) -> Option<Vec<GameSlot>>;

    /// What was received since the last call.
    fn take_counts(&mut self) -> WorkerCounts;
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
