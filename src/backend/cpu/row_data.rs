//! The rows' data other than their trees.

use super::nodes::{Filled, GameNodes, NewAt, NewNode, NewNodes, NodeData, SelectedLeaves};
use crate::backend::leaf_dedup::{Leaf, LeafDedup};
use crate::backend::plan::BackendPlan;
use crate::game::Game;
use crate::isa::Isa;
use crate::search::root::{Roots, RowKey};
use crate::search::select::PuctTable;
use crate::tree::{NO_NODE, ROOT, RowMut, TreeShape};

/// Where the rows of a pass are in the memory hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caches {
    /// In L1 or L2: nothing large ran since the selection.
    Warm,
    /// In L3 or DRAM: the network's forward evicted them.
    Cold,
}

/// The rows' data other than their trees.
pub(super) struct RowData {
    pub(super) game: Box<dyn GameNodes>,
    pub(super) nodes: NodeData,
    pub(super) plan: BackendPlan,
    pub(super) puct_table: PuctTable,
    pub(super) roots: Roots,
    /// `[B]`
    pub(super) keys: Vec<RowKey>,
    /// `[B, L]`
    pub(super) leaves: Vec<Leaf>,
    /// `[B]`
    pub(super) num_leaves: Vec<u32>,
    /// Rows that met a collision and select no more in this pass. `[B]`
    pub(super) stopped: Vec<bool>,
    /// The state of the processor's caches between selection and expansion.
    pub(super) caches: Caches,
    /// `[Ep]`
    pub(super) scratch: Vec<f32>,
    /// Leaves of the pass that need the network, by key.
    pub(super) leaf_dedup: LeafDedup,
}

impl RowData {
    pub(super) fn new<G: Game>(game: G, plan: BackendPlan, shape: TreeShape) -> Self {
        Self {
            nodes: NodeData::new(&game, &plan, shape),
            game: Box::new(game),
            puct_table: PuctTable::new(&plan.params, plan.nodes),
            roots: Roots::new(shape),
            keys: vec![RowKey::default(); plan.rows],
            leaves: vec![Leaf { node: NO_NODE, slot: -1, hash: 0 }; plan.rows * plan.params.leaves as usize],
            num_leaves: vec![0; plan.rows],
            stopped: vec![false; plan.rows],
            caches: Caches::Warm,
            scratch: vec![0.0; shape.padded()],
            leaf_dedup: LeafDedup::new(plan.rows * plan.params.leaves as usize),
            plan,
        }
    }

    /// The leaves of row `b` in this pass.
    #[inline(always)]
    pub(super) fn leaves_of(&self, b: usize) -> &[Leaf] {
        self.selected_leaves().of(b)
    }

    /// The leaves of all rows in this pass.
    #[inline(always)]
    pub(super) fn selected_leaves(&self) -> SelectedLeaves<'_> {
        let per_row = self.plan.params.leaves as usize;
        SelectedLeaves { leaves: &self.leaves, num: &self.num_leaves, per_row }
    }

    /// Ends row `b`'s ply.
    pub(super) fn deactivate(&mut self, b: usize) {
        self.num_leaves[b] = 0;
        self.roots.end_ply(b);
    }

    /// Starts a new tree in row `b`: a root filled from its state.
    pub(super) fn init_root(&mut self, isa: Isa, b: usize, mut row: RowMut<'_>) {
        row.set_root();
        let root = NewNode { in_group: 0, at: NewAt::Here(ROOT) };
        let new = NewNodes { first: b, group: &mut [row], nodes: &[root], filled: &mut Filled::new() };
        self.game.fill_nodes(isa, &mut self.nodes, new);
        self.deactivate(b);
    }

    /// Writes the keys of the positions before row `b`'s root.
    pub(super) fn set_history(&mut self, b: usize, history: &[u64]) {
        self.nodes.histories[b].clear();
        self.nodes.histories[b].extend_from_slice(history);
    }
}
