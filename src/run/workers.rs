//! The interface of a run to other processes that play its games: they send finished games and receive new weights. Independent of the
//! transport.

use super::strength::{EvalResult, MatchSetup};
use crate::backend::AnyGame;
use crate::config::Config;
use crate::error::Result;
use crate::play::{FinishedGame, GameSlot};
use crate::report::metrics::EpochRecord;
use crate::report::workers::WorkerCounts;
use crate::weights::NetFile;
use std::sync::Arc;
use std::time::Duration;

/// The workers of a run.
pub trait Workers: Send {
    /// Takes the next games that workers have finished; an empty list if they were refused. None if nothing has arrived within `wait`.
    ///
    /// # Errors
    /// Permanent failures of the connection to the workers.
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<FinishedGame>>>;

    /// A record of the games taken so far, as bytes for the checkpoint: a run resumed from it takes the games that follow, each once.
    fn received(&self) -> Vec<u8>;

    /// Publishes the weights of `epoch` and its `record`. The checkpoint of the epoch must be durable: workers delete the games taken so
    /// far.
    ///
    /// # Errors
    /// Those of [`NetFile::to_bytes`].
    fn publish(&mut self, epoch: u64, network: &NetFile, record: Option<&EpochRecord>) -> Result<()>;

    /// Offers the workers an evaluation of the `network` of `epoch`, whose weights are not published yet.
    ///
    /// # Errors
    /// Those of [`NetFile::to_bytes`].
    fn share_evaluation(
        &mut self,
        epoch: u64,
        network: &NetFile,
        offer: EvaluationOffer,
    ) -> Result<Box<dyn SharedEvaluation + '_>>;

    /// The games in progress for the checkpoint, if workers play in the slots of the run. `[N]`
    fn slots(&self) -> Option<Vec<GameSlot>>;

    /// Counts since the last call.
    fn take_counts(&mut self) -> WorkerCounts;

    /// In words that no worker is there, if the run waits for the games of workers alone; None otherwise.
    fn missing(&mut self) -> Option<String>;

    /// The run has reached its limit: its workers are told that it is over when this object is dropped.
    fn finish(&mut self);
}

/// The size of an evaluation in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluationOffer {
    /// The number of parts.
    pub parts: usize,
    /// Maximum size of the results of a part, in bytes.
    pub max_bytes: usize,
    /// The match; None for solved positions.
    pub setup: Option<MatchSetup>,
}

/// Checks the results of a part that a worker has measured; the error describes the defect.
pub type CheckPart<'a> = &'a dyn Fn(usize, &EvalResult) -> std::result::Result<(), String>;

/// An evaluation in parts, which this process and workers claim. If the workers cannot be reached, there are no claims and no results.
pub trait SharedEvaluation {
    /// Claims the next unclaimed part for this process; None if all are claimed.
    fn claim(&mut self) -> Option<usize>;

    /// True if no worker can have claimed a part: the server is not reached.
    fn is_alone(&self) -> bool;

    /// Results that workers have sent since the last call and that pass `check`, as (part, results).
    fn results(&mut self, check: CheckPart<'_>) -> Vec<(usize, EvalResult)>;
}

/// The run that a connection to workers is made for.
pub struct WorkersSetup<'a> {
    /// Its configuration.
    pub config: &'a Config,
    /// Its game.
    pub game: &'a Arc<dyn AnyGame>,
    /// [`Workers::received`] of its checkpoint; empty in a new run.
    pub received: &'a [u8],
    /// The games in progress of its checkpoint; empty in a new run. `[N]`
    pub slots: &'a [GameSlot],
    /// A number of its checkpoint; None in a new run.
    pub checkpoint: Option<u64>,
}
