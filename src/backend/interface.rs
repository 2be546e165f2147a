//! What a backend does, as traits: rows with their trees, the stages of a pass, and a device that makes passes by itself.

use super::decisions::DecisionBlock;
use super::device_selfplay::Copied;
use super::pass_parts::PassParts;
use super::row_budget::RowBudget;
use super::snapshot::{RootCache, TreeSnapshot};
use crate::error::Result;
use crate::game::Sizes;
use crate::net::NetworkDesc;
use crate::play::{PlayPlan, SlotStart};
use crate::search::PassStats;
use crate::search::eval_cache::EvalCache;
use crate::search::root::{Exploration, RootSummary, RowKey};
use std::sync::Arc;

/// The search of one ply in one row.
#[derive(Clone, Copy, Debug)]
pub struct PlyPlan {
    /// Simulations, including those that inherited visits replace.
    pub simulations: u32,
    /// Whether the root explores.
    pub exploration: Exploration,
    /// The key of its random numbers.
    pub key: RowKey,
}

/// The heads of the network that a backend reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadsRead {
    /// Policy and values.
    All,
    /// Values alone: the network need not compute the policy.
    Values,
}

/// States and trees of B rows, with everything that is done to one row.
///
/// A row's life: [`TreeRows::set_root`] or [`TreeRows::set_root_tree`], then for every ply [`TreeRows::begin`], passes until
/// [`TreeRows::is_done`], [`TreeRows::summarise`], [`TreeRows::advance`].
///
/// # Errors
/// Those of the device, where the rows are on one; the CPU has none. A call returns the errors of its own work. On a device this is not the
/// work of the same call: commands to rows are launched together by the next call that needs their results, and CUDA reports a kernel's
/// failure after its launch.
pub trait TreeRows {
    /// The sizes of the game.
    fn sizes(&self) -> &Sizes;

    /// B.
    fn rows(&self) -> usize;

    /// Gives row `b` a new tree at `state`, where a player must be to move. `history`: keys of the positions before it.
    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) -> Result<()>;

    /// Gives row `b` a copy of `snapshot`.
    fn set_root_tree(&mut self, b: usize, snapshot: &TreeSnapshot) -> Result<()>;

    /// A copy of row `b` with its `limit` most visited nodes.
    fn snapshot(&mut self, b: usize, limit: usize) -> Result<TreeSnapshot>;

    /// Begins a ply in row `b`.
    fn begin(&mut self, b: usize, plan: PlyPlan) -> Result<()>;

    /// True where row `b` has no simulations left in this ply.
    fn is_done(&mut self, b: usize) -> Result<bool>;

    /// True where some row has no simulations left in its ply.
    fn any_done(&mut self) -> Result<bool>;

    /// Writes the result of row `b`'s search to `out`.
    fn summarise(&mut self, b: usize, out: &mut RootSummary) -> Result<()>;

    /// Moves row `b`'s root along `actions`, which were played and dealt, to `state`, where a player must be to move; `history`: keys of
    /// the positions before it. Keeps the tree below `state` where the plan says so and the tree reaches it. The caller has stepped the
    /// game, so that a backend on the host need not; a device steps its own state, since a step costs less there than a copy to it.
    fn advance(&mut self, b: usize, actions: &[u16], state: &[u8], history: &[u64]) -> Result<()>;

    /// The state at row `b`'s root.
    fn root_state(&mut self, b: usize) -> Result<&[u8]>;

    /// Keys of the positions before row `b`'s root.
    fn root_history(&mut self, b: usize) -> Result<&[u64]>;

    /// Nodes in use in row `b`.
    fn num_nodes(&mut self, b: usize) -> Result<usize>;

    /// For each of the root's actions `first` in row `b`, that action and those of most visits below it, at most `max_len` in all.
    fn variations(&mut self, b: usize, first: &[u16], max_len: usize) -> Result<Vec<Vec<u16>>>;
}

/// The stages of one pass over all rows, in this order, with the network's forward between [`PassStages::observe`] and
/// [`PassStages::expand`].
///
/// # Errors
/// As [`TreeRows`].
pub trait PassStages {
    /// Shares a table of evaluations, which the caller clears whenever the network changes. A backend without use for it ignores it;
    /// results are the same.
    fn set_eval_cache(&mut self, _cache: Arc<EvalCache>) -> Result<()> {
        Ok(())
    }

    /// Selects up to L leaves in every row of `budget` that has simulations left, and adds the new nodes. A backend that works on all rows
    /// at once ignores the budget.
    fn select(&mut self, budget: RowBudget) -> Result<PassStats>;

    /// Writes the observations of the leaves that need the network, in the order of the selection. `[M, F]`
    fn observe(&mut self, obs: &mut [f32]) -> Result<()>;

    /// The heads that [`PassStages::expand`] reads.
    fn heads_read(&self) -> HeadsRead {
        HeadsRead::All
    }

    /// Expands the leaves by the network's outputs, `logits [M, A]` and `values [M, P]`.
    fn expand(&mut self, logits: &[f32], values: &[f32]) -> Result<()>;

    /// Backs up all leaves of the pass.
    fn backup(&mut self) -> Result<()>;
}

/// A device that makes whole passes by itself, and plays whole games where self-play is attached to it.
///
/// # Errors
/// Those of the device and of the network.
pub trait DevicePasses {
    /// Keeps a resident network, or replaces the weights of the one that is there. None removes the one that was given so.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] where the network does not fit into the memory that the rows leave.
    fn take_network(&mut self, network: Option<&NetworkDesc>) -> Result<()>;

    /// Makes up to `passes` whole passes in every row for a network that gives every leaf the same `logits [A]` and `values [P]`.
    fn simulate_constant_net(&mut self, logits: &[f32], values: &[f32], passes: u32) -> Result<PassStats>;

    /// Makes up to `passes` whole passes in every row with the resident network. None, with nothing done, where there is none.
    fn simulate_resident(&mut self, passes: u32) -> Result<Option<PassStats>>;

    /// Makes `passes` passes with the resident network, waiting for each stage, then some more to time each kernel. Consumes the games:
    /// decisions are left out. None, with nothing done, where there is no network.
    fn profile_passes(&mut self, passes: u32) -> Result<Option<PassParts>>;

    /// Attaches the game slots of self-play, whose rows have their roots and have begun their plies: from now on the device itself ends
    /// every whole pass as [`crate::selfplay`] does. Polls that were not collected are discarded. `starts`: the trees that new games are
    /// cloned from, by their roots. Returns the maximum number of passes of one poll.
    fn attach_selfplay(
        &mut self,
        plan: &PlayPlan,
        slots: &[SlotStart<'_>],
        starts: &RootCache,
    ) -> Result<u32>;

    /// Ends a staged pass in the attached game slots; does nothing where none are.
    fn act(&mut self) -> Result<()>;

    /// Launches `passes` whole passes in the attached game slots and does not wait for them: with the resident network or,
    /// where there is none, with `output`, logits `[A]` and values `[P]`, for every leaf. False, with nothing done, where there is
    /// neither.
    fn launch_passes(&mut self, output: Option<(&[f32], &[f32])>, passes: u32) -> Result<bool>;

    /// Ends a poll: starts to copy its counts and decisions to the host, without waiting.
    /// The passes of the next poll can be launched at once; at most two polls are under way.
    fn end_poll(&mut self) -> Result<()>;

    /// Waits for the oldest poll that has ended and was not collected. Returns what its launched passes did.
    fn collect_poll(&mut self) -> Result<PassStats>;

    /// Seconds from the first launch of the poll that was collected last to the end of its last; the mean of several devices. 0 where
    /// the caller drove each pass.
    fn poll_seconds(&mut self) -> Result<f64>;

    /// The decisions of the poll that was collected last, one block for each device.
    fn decisions(&mut self) -> Result<Vec<DecisionBlock<'_>>>;

    /// Bytes copied between host and device so far.
    fn copied(&mut self) -> Result<Copied>;
}

/// States and trees of B rows, and the passes over them.
pub trait Backend: TreeRows + PassStages + Send {
    /// The device of the rows, which makes passes by itself; None on the CPU.
    fn device(&mut self) -> Option<&mut dyn DevicePasses> {
        None
    }
}
