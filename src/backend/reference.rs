//! The backend of `search.engine = "reference"`: one [`ReferenceSearch`] for each row, one row after the other.
//!
//! Every ply is searched in a new tree: the played subtree is not kept, and a snapshot has the root alone.

use super::plan::BackendPlan;
use super::{Backend, PlyPlan, RowBudget, Snapshot};
use crate::game::{Game, Sizes};
use crate::search::PassStats;
use crate::search::reference::ReferenceSearch;
use crate::search::root::RootSummary;
use crate::tree::{Tree, TreeShape};

/// B rows of one game.
pub struct ReferenceBackend<G: Game> {
    sizes: Sizes,
    /// `[B]`
    rows: Vec<ReferenceSearch<G>>,
}

impl<G: Game> ReferenceBackend<G> {
    /// A backend of inactive rows.
    pub fn new(game: G, plan: BackendPlan) -> Self {
        let row = || ReferenceSearch::new(game.clone(), plan.params, plan.nodes);
        Self { sizes: game.sizes(), rows: (0..plan.rows).map(|_| row()).collect() }
    }
}

impl<G: Game> Backend for ReferenceBackend<G> {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) {
        self.rows[b].set_root(bytemuck::pod_read_unaligned(state), history);
    }

    fn set_root_tree(&mut self, b: usize, snapshot: &Snapshot) {
        self.set_root(b, &snapshot.states[..size_of::<G::State>()], &snapshot.history);
    }

    fn snapshot(&mut self, b: usize, _limit: usize) -> Snapshot {
        let shape =
            TreeShape { rows: 1, nodes: 1, edges: self.sizes.tree_edges(), players: self.sizes.num_players };
        let mut tree = Tree::new(shape);
        tree.row_mut(0).set_root();
        let row = &self.rows[b];
        let states = bytemuck::bytes_of(row.root_state()).to_vec();
        Snapshot { tree, states, history: row.root_history().to_vec() }
    }

    fn begin(&mut self, b: usize, plan: PlyPlan) {
        self.rows[b].begin(plan.simulations, plan.exploration, plan.key);
    }

    fn is_done(&self, b: usize) -> bool {
        self.rows[b].is_done()
    }

    fn deactivate(&mut self, b: usize) {
        self.rows[b].deactivate();
    }

    fn select(&mut self, _budget: RowBudget) -> PassStats {
        let mut out = PassStats { visited: self.rows.len(), ..PassStats::default() };
        self.rows.iter_mut().for_each(|row| row.select(&mut out));
        out
    }

    fn observe(&mut self, obs: &mut [f32]) {
        let mut rest = obs;
        for row in &self.rows {
            let (own, others) = rest.split_at_mut(row.num_evaluations() * self.sizes.obs.len());
            row.observe(own);
            rest = others;
        }
    }

    fn expand(&mut self, logits: &[f32], values: &[f32]) {
        let (mut logits, mut values) = (logits, values);
        for row in &mut self.rows {
            let m = row.num_evaluations();
            let (own_logits, other_logits) = logits.split_at(m * self.sizes.num_actions);
            let (own_values, other_values) = values.split_at(m * self.sizes.num_players);
            row.expand(own_logits, own_values);
            (logits, values) = (other_logits, other_values);
        }
    }

    fn backup(&mut self) {
        self.rows.iter_mut().for_each(ReferenceSearch::backup);
    }

    fn summarise(&mut self, b: usize, out: &mut RootSummary) {
        self.rows[b].summarise(out);
    }

    fn advance(&mut self, b: usize, _actions: &[u16], state: &[u8], history: &[u64]) {
        self.set_root(b, state, history);
    }

    fn root_state(&self, b: usize) -> &[u8] {
        bytemuck::bytes_of(self.rows[b].root_state())
    }

    fn root_history(&self, b: usize) -> &[u64] {
        self.rows[b].root_history()
    }

    fn num_nodes(&self, b: usize) -> usize {
        self.rows[b].num_nodes()
    }

    fn principal_variation(&mut self, b: usize, most: usize) -> Vec<u16> {
        self.rows[b].principal_variation(most)
    }
}
