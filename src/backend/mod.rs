//! Where the arrays live. A [`Backend`] holds the states and trees of some rows and does to all of them what
//! [`crate::search::simulate`] asks for. The game's type ends here: above, states are bytes.

pub mod plan;
pub mod device_selfplay;
pub mod times; // where it goes on a device
pub mod cpu;
pub mod split; // rows on several devices
pub mod kernels;
mod leaf_dedup;
pub mod reference;

use crate::batch::AnyGame;
use crate::config::{DeviceName, SearchEngine};
use crate::error::Result;
use crate::game::{self, Game, GameVisitor, Sizes};
use crate::isa::Isa;
use crate::net::NetParts;
use crate::search::eval_cache::EvalCache;
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::tree::Tree;
use device_selfplay::{Copied, Decided, PassDriver, PlayPlan, SlotStart};
use std::sync::Arc;
use times::PassParts;

/// A backend for `game` on the devices that the plan's parameters name.
///
/// # Errors
/// As [`cpu_backend`], [`kernels::cuda_backend`] and, for several devices, [`split::SplitBackend::new`].
pub fn new_backend(game: &dyn AnyGame, plan: plan::BackendPlan) -> Result<Box<dyn Backend>> {
    games_backend(game, plan, 1)
}

/// The same for games of `rows_per_game` rows, which stay on one device.
///
/// # Errors
/// As [`new_backend`].
pub fn games_backend(
    game: &dyn AnyGame,
    plan: plan::BackendPlan,
    rows_per_game: usize,
) -> Result<Box<dyn Backend>> {
    let one = |device: DeviceName, plan| match device {
        DeviceName::Cpu => cpu_backend(game, plan),
        DeviceName::Cuda(number) => kernels::cuda_backend(game, plan, number),
    };
    match plan.params.devices.all() {
        [device] => one(*device, plan),
        devices => Ok(Box::new(split::SplitBackend::new(plan, devices, rows_per_game, &one)?)),
    }
}

/// A CPU backend for `game`, of the engine that the plan's parameters name.
///
/// # Errors
/// As [`game::dispatch`].
pub fn cpu_backend(game: &dyn AnyGame, plan: plan::BackendPlan) -> Result<Box<dyn Backend>> {
    cpu_backend_on(game, plan, Isa::detect())
}

/// The same with the batched engine's row loops compiled for `isa`, where the machine has it.
///
/// # Errors
/// As [`game::dispatch`].
pub fn cpu_backend_on(game: &dyn AnyGame, plan: plan::BackendPlan, isa: Isa) -> Result<Box<dyn Backend>> {
    struct Make(plan::BackendPlan, Isa);
    impl GameVisitor for Make {
        type Out = Box<dyn Backend>;
        fn visit<G: Game>(self, game: G) -> Self::Out {
            match self.0.params.engine {
                SearchEngine::Batched => Box::new(cpu::CpuBackend::new(game, self.0).with_isa(self.1)),
                SearchEngine::Reference => Box::new(reference::ReferenceBackend::new(game, self.0)),
            }
        }
    }
    game::dispatch(game.name(), &game.options(), Make(plan, isa))
}

/// Where a selection begins and how far it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBudget {
    /// The row that it begins with; after the last row it goes on with the first.
    pub first: usize,
    /// The most rows that it goes through.
    pub rows: usize,
    /// It ends where the network is to be asked about so many leaves.
    pub evaluations: usize,
}

impl RowBudget {
    /// Through all rows once.
    pub const ALL: Self = Self { first: 0, rows: usize::MAX, evaluations: usize::MAX };
}

/// What one selection gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassStats {
    /// Rows that it went through, with or without anything to select.
    pub visited: usize,
    /// Rows that selected anything.
    pub rows: usize,
    /// Leaves, of any kind, in this pass.
    pub leaves: usize,
    /// M: leaves that need the network.
    pub evaluations: usize,
    /// Leaves that would need it but were found in the evaluation cache or among the pass's earlier leaves.
    pub cached: usize,
    /// Leaves that are simulations (the evaluation of a new root is none).
    pub simulations: usize,
    /// Sum of the leaves' depths.
    pub depth_sum: u64,
    /// Depth of the deepest leaf.
    pub depth_max: u64,
}

/// One tree with its states, apart from any backend: what a root cache is cloned from.
pub struct Snapshot {
    /// One row.
    pub tree: Tree,
    /// `[nodes in use, state bytes]`
    pub states: Vec<u8>,
    /// Keys of the positions before the root.
    pub history: Vec<u64>,
}

/// The trees that new games are cloned from, by the bytes of their root.
pub type RootCache = Vec<(Vec<u8>, Snapshot)>;

/// What a row is asked to do for one ply.
#[derive(Clone, Copy, Debug)]
pub struct PlyPlan {
    /// New simulations, before inherited ones are taken off.
    pub simulations: u32,
    /// Whether the root explores.
    pub exploration: Exploration,
    /// What random numbers are keyed by.
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

    /// Plays `action` (or deals that outcome) at row `b`'s root and keeps what is below it, if it may and can. Where no
    /// player is to move afterwards the row must be advanced further or planted anew.
    fn advance(&mut self, b: usize, action: u16);

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

    /// Takes over the game slots of self-play, whose rows are planted and begun: every whole pass then ends with what
    /// [`crate::selfplay`] does where a search is over, by the backend itself. `starts`: the trees that new games are cloned
    /// from, by their roots. [`PassDriver::Caller`], with nothing done, where the backend must be led.
    ///
    /// # Errors
    /// What the device says.
    fn attach_selfplay(
        &mut self,
        _plan: &PlayPlan,
        _lanes: &[SlotStart<'_>],
        _starts: &RootCache,
    ) -> Result<PassDriver> {
        Ok(PassDriver::Caller)
    }

    /// Ends a pass that was led through its parts, in the game slots that were taken over.
    ///
    /// # Errors
    /// What the device says.
    fn act(&mut self) -> Result<()> {
        Ok(())
    }

    /// Adds what was decided in the game slots taken over since the last call to `out`, in any order.
    ///
    /// # Errors
    /// What the device says.
    fn drain_decisions(&mut self, _out: &mut Vec<Decided>) -> Result<()> {
        Ok(())
    }

    /// What was copied between host and device so far.
    fn copied(&self) -> Copied {
        Copied::default()
    }

    /// The line of most visited actions from row `b`'s root, at most `most` long.
    fn principal_variation(&mut self, b: usize, most: usize) -> Vec<u16>;
}
