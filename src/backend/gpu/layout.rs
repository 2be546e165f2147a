//! The layout of the bytes on the device: the structs of `kernels/search/layout.cuh`, which is generated from them, and the sizes of
//! all arrays.

use crate::backend::decisions::{SummaryFormat, SummaryView};
use crate::backend::plan::{BackendPlan, Reuse};
use crate::device_struct::{device_constants, device_struct};
use crate::error::Result;
use crate::game::Sizes;
use crate::search::SearchParams;
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::tree::{Node, TreeShape};
use bytemuck::{NoUninit, Pod, Zeroable};

device_struct! {
    /// The scalars of one row.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
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

    /// The sums over all rows since they were last counted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct Totals {
        /// Passes, summed over rows, in which a row selected anything.
        pub passes: u64,
        /// Leaves of any kind.
        pub leaves: u64,
        /// Leaves that needed the network.
        pub num_evals: u64,
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

    /// Gives a row a new root.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct SetRootCommand {
        /// The row.
        pub row: u32,
        /// Keys of its history.
        pub num_history: u32,
        /// Where its keys begin among those of all commands.
        pub first_key: u64,
    }

    /// Plays an action in a row.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct AdvanceCommand {
        /// The row.
        pub row: u32,
        /// The action that is played, or the outcome that is dealt.
        pub action: u32,
    }

    /// Begins a row's ply.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct BeginCommand {
        /// The row.
        pub row: u32,
        /// New simulations, before inherited ones are subtracted.
        pub simulations: u32,
        /// 1 where the root explores.
        pub noisy: u32,
        /// Where the schedule of this many simulations begins.
        pub schedule: u32,
        /// Keys the ply's random numbers.
        pub key: RowKey,
    }
}

impl BeginCommand {
    /// The command for row `row`.
    pub fn new(row: u32, simulations: u32, exploration: Exploration, schedule: u32, key: RowKey) -> Self {
        let noisy = u32::from(exploration == Exploration::Noisy);
        Self { row, simulations, noisy, schedule, key }
    }
}

device_constants! {
    fn device_constants;
    /// The absent evaluation slot: the leaf needs no evaluation.
    const NO_SLOT: i32 = -1;
}

device_struct! {
    /// A leaf of a pass.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct Leaf {
        /// Its node.
        pub node: i32,
        /// Index of its evaluation in the network's output, or `NO_SLOT`.
        pub slot: i32,
    }

    /// Work of a row since it was last added to [`Totals`].
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct RowCounts {
        /// Passes in which it selected anything.
        pub passes: u32,
        /// Leaves of any kind.
        pub leaves: u32,
        /// Leaves that needed the network.
        pub num_evals: u32,
        /// Leaves that are simulations.
        pub simulations: u32,
        /// Sum of the leaves' depths.
        pub depth_sum: u64,
        /// Depth of the deepest leaf.
        pub depth_max: u32,
        padding: u32,
    }

    /// A tree that rows are cloned from: where its parts begin among the bytes of one buffer.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct TreeParts {
        /// `[count]`
        pub nodes: u64,
        /// `[count, 4, Ep]`
        pub edges: u64,
        /// `[count, Ep]`
        pub actions: u64,
        /// `[count, P]`
        pub values: u64,
        /// `[count]`
        pub states: u64,
        /// `[num_history]`
        pub history: u64,
        /// Nodes.
        pub count: u32,
        /// Keys of the positions before the root.
        pub num_history: u32,
    }
}

impl TreeParts {
    /// The same parts of a tree whose bytes begin `first` bytes on.
    #[must_use]
    pub fn offset_by(self, first: u64) -> Self {
        let Self { nodes, edges, actions, values, states, history, .. } = self;
        Self {
            nodes: first + nodes,
            edges: first + edges,
            actions: first + actions,
            values: first + values,
            states: first + states,
            history: first + history,
            ..self
        }
    }
}

device_struct! {
    /// The parameter block: the arrays of all rows, their sizes and the search's parameters. Every kernel of a search takes it by value
    /// as its first argument. Addresses are those on the device.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct ParameterBlock {
        /// `[B, T]`
        pub nodes: u64 as "Node*",
        /// Prior, visits, value sum and child. `[B, T, 4, Ep]`
        pub edges: u64 as "Word*",
        /// `[B, T, Ep]`
        pub actions: u64 as "u16*",
        /// `[B, T, P]`
        pub values: u64 as "f32*",
        /// Nodes in use. `[B]`
        pub counts: u64 as "u32*",
        /// `[B, T]`
        pub states: u64 as "State*",
        /// `[B]`
        pub roots: u64 as "RootRow*",
        /// `[B]`
        pub keys: u64 as "RowKey*",
        /// `[B, Ep]`
        pub noise: u64 as "f32*",
        /// `[B, Ep]`
        pub base_visits: u64 as "i32*",
        /// `[B, P]`
        pub root_sums: u64 as "f32*",
        /// Keys of the positions before the root, then room for those of a path. `[B, history_len]`
        pub histories: u64 as "u64*",
        /// `[B, L]`
        pub leaves: u64 as "Leaf*",
        /// New indices of nodes in a compaction. `[B, T]`
        pub targets: u64 as "i32*",
        /// `[B]`
        pub done: u64 as "RowCounts*",
        /// Schedules of sequential halving, `[considered actions + 1, simulations]` each.
        pub tables: u64 as "const u32*",
        /// B.
        pub num_rows: u32,
        /// T.
        pub num_nodes: u32,
        /// Maximum number of history keys of a row.
        pub history_len: u32,
        /// Maximum number of nodes of a kept subtree; 0 if none is kept.
        pub keep_limit: u32,
        /// The search's parameters.
        pub params: SearchParams,
        /// Up to a multiple of 8 bytes, as CUDA pads a struct that has addresses.
        pub(super) padding: [u8; PARAMS_PADDING] as "",
    }
}

/// Padding after the parameters of a [`ParameterBlock`], in bytes.
pub(super) const PARAMS_PADDING: usize =
    size_of::<SearchParams>().next_multiple_of(8) - size_of::<SearchParams>();

/// Something of each array of all rows, by the names and shapes of [`ParameterBlock`]: its bytes a row, or its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "ParameterBlock has them")]
pub struct RowArrays<T> {
    pub nodes: T,
    pub edges: T,
    pub actions: T,
    pub values: T,
    pub counts: T,
    pub states: T,
    pub roots: T,
    pub keys: T,
    pub noise: T,
    pub base_visits: T,
    pub root_sums: T,
    pub histories: T,
    pub leaves: T,
    pub targets: T,
    pub done: T,
}

impl<T> RowArrays<T> {
    /// The result of `make` for each.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn try_map<U>(&self, mut make: impl FnMut(&T) -> Result<U>) -> Result<RowArrays<U>> {
        Ok(RowArrays {
            nodes: make(&self.nodes)?,
            edges: make(&self.edges)?,
            actions: make(&self.actions)?,
            values: make(&self.values)?,
            counts: make(&self.counts)?,
            states: make(&self.states)?,
            roots: make(&self.roots)?,
            keys: make(&self.keys)?,
            noise: make(&self.noise)?,
            base_visits: make(&self.base_visits)?,
            root_sums: make(&self.root_sums)?,
            histories: make(&self.histories)?,
            leaves: make(&self.leaves)?,
            targets: make(&self.targets)?,
            done: make(&self.done)?,
        })
    }
}

/// Bytes of one row in each array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBytes {
    /// Bytes of a row in each of the arrays that every kernel takes; schedules are not among them, since rows share them.
    pub arrays: RowArrays<usize>,
    /// Bytes of a row's part in the network's input and output.
    pub network: [usize; 3],
    /// Bytes of a row's summary.
    pub summary: usize,
}

/// The sizes of one plan's arrays.
#[derive(Clone, Copy, Debug)]
pub struct SearchLayout {
    /// B, T, E, P.
    pub shape: TreeShape,
    /// L.
    pub leaves: usize,
    /// Bytes of a state.
    pub state_size: usize,
    /// Maximum number of history keys of a row.
    pub history_len: usize,
    /// F.
    pub obs_len: usize,
    /// A.
    pub num_actions: usize,
}

impl SearchLayout {
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
            arrays: RowArrays {
                nodes: t * size_of::<Node>(),
                edges: t * 16 * ep,
                actions: t * 2 * ep,
                values: t * 4 * p,
                counts: 4,
                states: t * self.state_size,
                roots: size_of::<RootRow>(),
                keys: size_of::<RowKey>(),
                noise: 4 * ep,
                base_visits: 4 * ep,
                root_sums: 4 * p,
                histories: 8 * self.history_len,
                leaves: l * size_of::<Leaf>(),
                targets: 4 * t,
                done: size_of::<RowCounts>(),
            },
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

    /// Maximum number of bytes of commands that one launch takes for `rows` rows: new trees in all of them.
    pub fn max_staged_bytes(&self, rows: usize) -> usize {
        (rows * (size_of::<SetRootCommand>() + self.state_size + 8 * self.history_len)).next_power_of_two()
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

impl RowArrays<usize> {
    fn total(&self) -> usize {
        let Self { nodes, edges, actions, values, counts, states, .. } = self;
        let Self { roots, keys, noise, base_visits, root_sums, histories, leaves, targets, done, .. } = self;
        let of_trees = nodes + edges + actions + values + counts + states;
        of_trees + roots + keys + noise + base_visits + root_sums + histories + leaves + targets + done
    }
}

impl RowBytes {
    /// All of them.
    pub fn total(&self) -> usize {
        self.arrays.total() + self.network.iter().sum::<usize>() + self.summary
    }
}

/// Maximum number of nodes of a kept subtree, 0 where none is kept: the nodes that a ply of `plan` adds must fit next to it.
pub fn keep_limit(plan: &BackendPlan, sizes: &Sizes) -> u32 {
    let ply = BackendPlan::nodes_for(plan.params.simulations, sizes) - 1;
    match plan.reuse {
        Reuse::Keep => plan.nodes.saturating_sub(ply) as u32,
        Reuse::Drop => 0,
    }
}
