//! Where states and trees live. A [`Backend`] holds those of B rows and does the stages of a pass on all of them; [`crate::pass`] calls
//! it. The game's type ends here: above, states are bytes.

pub mod plan;
pub mod row_budget;
pub mod snapshot;
pub mod device_selfplay;
pub mod decisions;
pub mod pass_parts;
mod leaf_dedup;
pub mod cpu;
pub mod reference;
pub mod kernels;
pub mod split;
pub mod make;

use crate::error::Result;
use crate::game::Sizes;
use crate::net::NetParts;
use crate::search::PassStats;
use crate::search::eval_cache::EvalCache;
use crate::search::root::{Exploration, RootSummary, RowKey};
use decisions::DecisionBlock;
use device_selfplay::{Copied, PassDriver, PlayPlan, SlotStart};
use pass_parts::PassParts;
use std::sync::Arc;

pub use make::{Placement, cpu_backend, cpu_backend_on, make, reference_backend};
pub use row_budget::RowBudget;
pub use snapshot::{RootCache, Snapshot};

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

/// States and trees of B rows.
///
/// A row's life: [`Backend::set_root`] or [`Backend::set_root_tree`], then for every ply [`Backend::begin`], passes until
/// [`Backend::is_done`], [`Backend::summarise`], [`Backend::advance`].
pub trait Backend: Send {
    /// The sizes of the game.
    fn sizes(&self) -> &Sizes;

    /// B.
    fn rows(&self) -> usize;

    /// Shares a table of evaluations, to be cleared whenever the network changes. A backend that asks the network every
    /// time leaves it alone; what it finds is the same.
    fn set_eval_cache(&mut self, _cache: Arc<EvalCache>) {}

    /// Gives row `b` a new tree at `state`, where a player must be to move. `history`: keys of the positions before it.
    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]);

    /// Gives row `b` a copy of `snapshot`.
    fn set_root_tree(&mut self, b: usize, snapshot: &Snapshot);

    /// A copy of row `b`, its `limit` most visited nodes.
    fn snapshot(&mut self, b: usize, limit: usize) -> Snapshot;

    /// Begins a ply in row `b`.
    fn begin(&mut self, b: usize, plan: PlyPlan);

    /// True where row `b` has nothing left to do this ply.
    fn is_done(&self, b: usize) -> bool;

    /// True where any row has nothing left to do this ply.
    fn any_done(&self) -> bool {
        (0..self.rows()).any(|b| self.is_done(b))
    }

    /// Stops row `b`: no passes touch it until the next [`Backend::begin`].
    fn deactivate(&mut self, b: usize);

    /// Selects up to L leaves in every row that has simulations left, and makes the new nodes. A backend that takes row after row
    /// does so within `reach`, through none twice; one that takes all rows at once does so every time.
    fn select(&mut self, reach: RowBudget) -> PassStats;

    /// Writes what the network is to see: `[M, F]`, the leaves in the order in which the selection went through their rows.
    fn observe(&mut self, obs: &mut [f32]);

    /// Takes the network's answers: `logits [M, A]`, `values [M, P]`.
    fn expand(&mut self, logits: &[f32], values: &[f32]);

    /// Backs all leaves of the pass up.
    fn backup(&mut self);

    /// What the search of row `b` found.
    fn summarise(&mut self, b: usize, out: &mut RootSummary);

    /// Moves row `b`'s root along `actions`, which were played and dealt, to `state`, where a player must be to move; `history`: keys of
    /// the positions before it. Keeps the tree below `state` where the plan says so and the tree reaches it. The caller has stepped the
    /// game, so that a backend on the host does not; a device steps its own state, since a step costs less there than a copy to it.
    fn advance(&mut self, b: usize, actions: &[u16], state: &[u8], history: &[u64]);

    /// The state at row `b`'s root.
    fn root_state(&self, b: usize) -> &[u8];

    /// Keys of the positions before row `b`'s root.
    fn root_history(&self, b: usize) -> &[u64];

    /// Nodes in use in row `b`.
    fn num_nodes(&self, b: usize) -> usize;

    /// What went wrong since the last call, where the backend can fail. After a failure, what it gives means nothing.
    ///
    /// # Errors
    /// What the device says.
    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    /// Takes the network to be asked from now on, or other weights for the one it has, to keep it beside its rows. False, with
    /// nothing taken, where whoever leads the passes must ask it; None takes nothing and gives up what was there.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] where it does not fit beside the rows, and what the device says.
    fn take_network(&mut self, _network: Option<&NetParts>) -> Result<bool> {
        Ok(false)
    }

    /// Makes up to `passes` whole passes in every row, for a network that gives every leaf the same answer, `logits [A]` and
    /// `values [P]`; what they did in all. None, with nothing done, where the backend must be led through each pass.
    ///
    /// # Errors
    /// What the device says.
    fn simulate_constant_net(
        &mut self,
        _logits: &[f32],
        _values: &[f32],
        _passes: u32,
    ) -> Result<Option<PassStats>> {
        Ok(None)
    }

    /// The same with a network that the backend has beside its rows. None, with nothing done, where it has none.
    ///
    /// # Errors
    /// What the network and the device say.
    fn simulate_resident(&mut self, _passes: u32) -> Result<Option<PassStats>> {
        Ok(None)
    }

    /// `passes` passes with the network beside the rows whose parts are waited for and whose kernels are timed, to see where the time
    /// of passes goes. None, with nothing done, where there is no such network.
    ///
    /// # Errors
    /// What the network and the device say.
    fn profile_passes(&mut self, _passes: u32) -> Result<Option<PassParts>> {
        Ok(None)
    }

    /// Attaches the game slots of self-play, whose rows have their roots and have begun their plies: from now on the backend
    /// itself ends every whole pass as [`crate::selfplay`] does. Polls that were not collected are discarded. `starts`: the trees
    /// that new games are cloned from, by their roots. [`PassDriver::Caller`], with nothing done, where the caller ends each pass.
    ///
    /// # Errors
    /// What the device says.
    fn attach_selfplay(
        &mut self,
        _plan: &PlayPlan,
        _slots: &[SlotStart<'_>],
        _starts: &RootCache,
    ) -> Result<PassDriver> {
        Ok(PassDriver::Caller)
    }

    /// Ends a pass that the caller drove stage by stage, in the attached game slots.
    ///
    /// # Errors
    /// What the device says.
    fn act(&mut self) -> Result<()> {
        Ok(())
    }

    /// Launches `passes` whole passes in the attached game slots and does not wait for them: with the network beside the rows or,
    /// where there is none, with `output`, logits `[A]` and values `[P]`, for every leaf. False, with nothing done, where there is
    /// neither.
    ///
    /// # Errors
    /// What the network and the device say.
    fn launch_passes(&mut self, _output: Option<(&[f32], &[f32])>, _passes: u32) -> Result<bool> {
        Ok(false)
    }

    /// Ends a poll: what the attached game slots did and decided since the last one goes to the host, for which this does not wait.
    /// The passes of the next poll can be launched at once; at most two polls are under way.
    ///
    /// # Errors
    /// What the device says.
    fn end_poll(&mut self) -> Result<()> {
        Ok(())
    }

    /// Waits for the oldest poll that has ended and was not collected: what its launched passes did.
    ///
    /// # Errors
    /// What the network and the device say.
    fn collect_poll(&mut self) -> Result<PassStats> {
        Ok(PassStats::default())
    }

    /// What the poll that was collected last decided, one block a device.
    ///
    /// # Errors
    /// What the device says.
    fn decisions(&mut self) -> Result<Vec<DecisionBlock<'_>>> {
        Ok(Vec::new())
    }

    /// What was copied between host and device so far.
    fn copied(&self) -> Copied {
        Copied::default()
    }

    /// The line of most visited actions from row `b`'s root, at most `most` long.
    fn principal_variation(&mut self, b: usize, most: usize) -> Vec<u16>;
}
