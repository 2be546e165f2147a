//! The layout of the bytes on the device: twins of the structs in `kernels/tree.cuh` and `kernels/search/`, and the sizes of all
//! arrays.

use crate::backend::decisions::{SummaryFormat, SummaryView};
use crate::backend::plan::{BackendPlan, Reuse};
use crate::config::{Algorithm, ChanceRule, Fpu};
use crate::game::Sizes;
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::search::{SearchParams, Solver};
use crate::tree::{Node, TreeShape};
use bytemuck::{Pod, Zeroable};

/// Twin of `RootRow`: the scalars of one row.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RootRow {
    /// Share of the Dirichlet noise in the priors.
    pub dirichlet_epsilon: f32,
    /// New simulations of the ply still to run.
    pub left: u32,
    /// New simulations of the ply in all.
    pub budget: u32,
    /// Where the row's schedule begins.
    pub schedule: u32,
    /// Simulations of that schedule.
    pub schedule_len: u32,
    /// Leaves of this pass.
    pub num_leaves: u32,
    /// Leaves of this pass that need the network.
    pub num_evals: u32,
    /// Keys of positions before the root.
    pub num_history: u32,
}

/// Twin of `Totals`: the sums over all rows since they were last counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Totals {
    /// Passes, summed over rows, in which a row selected anything.
    pub passes: u64,
    /// Leaves of any kind.
    pub leaves: u64,
    /// Leaves that needed the network.
    pub asked: u64,
    /// Leaves that are simulations.
    pub simulations: u64,
    /// Sum of the leaves' depths.
    pub depth_sum: u64,
    /// Depth of the deepest leaf.
    pub depth_max: u64,
    /// Rows with simulations left.
    pub unfinished: u64,
    padding: u64,
}

/// Twin of `PlantCommand`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct PlantCommand {
    /// The row.
    pub row: u32,
    /// Keys of its history.
    pub num_history: u32,
    /// Where its keys begin among those of all commands.
    pub first_key: u64,
}

/// Twin of `AdvanceCommand`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct AdvanceCommand {
    /// The row.
    pub row: u32,
    /// The action that is played, or the outcome that is dealt.
    pub action: u32,
}

/// Twin of `BeginCommand`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct BeginCommand {
    /// The row.
    pub row: u32,
    /// New simulations, before inherited ones are subtracted.
    pub simulations: u32,
    /// 1 where the root explores.
    pub noisy: u32,
    /// Where the schedule of this many simulations begins.
    pub schedule: u32,
    /// Twin of `RowKey`: seed, game slot, game, determinisation, ply.
    pub key: [u64; 5],
}

impl BeginCommand {
    /// The command for row `row`.
    pub fn new(row: u32, simulations: u32, exploration: Exploration, schedule: u32, key: RowKey) -> Self {
        let noisy = u32::from(exploration == Exploration::Noisy);
        let key = [key.seed, key.slot, key.game, key.determinisation, key.ply];
        Self { row, simulations, noisy, schedule, key }
    }
}

/// Bytes of `Leaf`, `RowCounts` and `RowKey`.
const LEAF_BYTES: usize = 8;
const COUNTS_BYTES: usize = 32;
const KEY_BYTES: usize = 40;

/// Bytes of one row in each array, in the order of the kernels' arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBytes {
    /// Bytes of a row in each of the arrays that every kernel takes; schedules are not among them, since rows share them.
    pub arrays: [usize; 15],
    /// Bytes of a row's part in the network's input and output.
    pub network: [usize; 3],
    /// Bytes of a row's summary.
    pub summary: usize,
}

/// The sizes of one plan's arrays.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// B, T, E, P.
    pub shape: TreeShape,
    /// L.
    pub leaves: usize,
    /// Bytes of a state.
    pub state_size: usize,
    /// The most history keys of a row.
    pub history_len: usize,
    /// F.
    pub obs_len: usize,
    /// A.
    pub num_actions: usize,
}

impl Layout {
    /// The layout of a plan.
    pub fn new(plan: &BackendPlan, sizes: &Sizes, state_size: usize) -> Self {
        Self {
            shape: plan.shape(sizes),
            leaves: plan.params.leaves as usize,
            state_size,
            history_len: if sizes.uses_history { sizes.max_plies + 1 } else { 1 },
            obs_len: sizes.obs.len(),
            num_actions: sizes.num_actions,
        }
    }

    /// The bytes of one row.
    pub fn row_bytes(&self) -> RowBytes {
        let TreeShape { nodes: t, players: p, .. } = self.shape;
        let (ep, l) = (self.shape.padded(), self.leaves);
        RowBytes {
            arrays: [
                t * size_of::<Node>(),
                t * 16 * ep,
                t * 2 * ep,
                t * 4 * p,
                4,
                t * self.state_size,
                size_of::<RootRow>(),
                KEY_BYTES,
                4 * ep,
                4 * ep,
                4 * p,
                8 * self.history_len,
                LEAF_BYTES * l,
                4 * t,
                COUNTS_BYTES,
            ],
            network: [4 * l * self.obs_len, 4 * l * self.num_actions, 4 * l * p],
            summary: self.summary_bytes(),
        }
    }

    /// The sizes of a row's `Summary`.
    pub fn summary_format(&self) -> SummaryFormat {
        SummaryFormat { players: self.shape.players, padded_edges: self.shape.padded() }
    }

    /// Bytes of one row's `Summary`.
    pub fn summary_bytes(&self) -> usize {
        self.summary_format().bytes()
    }

    /// The most bytes of commands that one launch takes for `rows` rows: new trees in all of them.
    pub fn most_staged_bytes(&self, rows: usize) -> usize {
        (rows * (size_of::<PlantCommand>() + self.state_size + 8 * self.history_len)).next_power_of_two()
    }

    /// Copies one row's summary out of its bytes, whose address is a multiple of 4.
    pub fn read_summary(&self, bytes: &[u8], out: &mut RootSummary) {
        let summary = SummaryView::new(bytes, self.summary_format());
        summary.actions().clone_into(&mut out.actions);
        summary.visits().clone_into(&mut out.visits);
        summary.new_visits().clone_into(&mut out.new_visits);
        summary.prior().clone_into(&mut out.prior);
        summary.q().clone_into(&mut out.q);
        summary.policy().clone_into(&mut out.policy);
        summary.value().clone_into(&mut out.value);
        (out.best, out.player, out.proven) = (summary.best(), summary.player(), summary.proven());
    }
}

impl RowBytes {
    /// All of them.
    pub fn total(&self) -> usize {
        self.arrays.iter().chain(&self.network).sum::<usize>() + self.summary
    }
}

/// The search's parameters as kernels take them after the arrays: integers, then floats.
pub fn search_numbers(plan: &BackendPlan, layout: &Layout, sizes: &Sizes) -> ([u32; 11], [f32; 8]) {
    let SearchParams { c_init, c_base, fpu_reduction, dirichlet_epsilon, dirichlet_alpha, .. } = plan.params;
    let SearchParams { c_visit, c_scale, inherit_cap, rule, chance, fpu, solver, .. } = plan.params;
    let ply = BackendPlan::nodes_for(plan.params.simulations, sizes) - 1;
    let keep_limit = match plan.reuse {
        Reuse::Keep => plan.nodes.saturating_sub(ply),
        Reuse::Drop => 0,
    };
    let integers = [
        plan.rows as u32,
        plan.nodes as u32,
        layout.leaves as u32,
        layout.history_len as u32,
        keep_limit as u32,
        match rule {
            Algorithm::Puct => 0,
            Algorithm::Gumbel => 1,
        },
        match chance {
            ChanceRule::Sample => 0,
            ChanceRule::Stratified => 1,
        },
        match fpu {
            Fpu::Zero => 0,
            Fpu::Parent => 1,
            Fpu::Reduced => 2,
            Fpu::Loss => 3,
        },
        match solver {
            Solver::Off => 0,
            Solver::On => 1,
        },
        plan.params.max_num_considered_actions,
        plan.params.min_simulations,
    ];
    let floats =
        [c_init, c_base, fpu_reduction, dirichlet_epsilon, dirichlet_alpha, c_visit, c_scale, inherit_cap];
    (integers, floats)
}
