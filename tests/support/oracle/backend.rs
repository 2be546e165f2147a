//! The plain search as a backend: one `ReferenceSearch` for each row, one row after the other.
//!
//! Every ply is searched in a new tree: the played subtree is not kept, and a snapshot has the root alone.

use super::ReferenceSearch;
use vecaz::Result;
use vecaz::backend::plan::BackendPlan;
use vecaz::backend::{Backend, PassStages, PlyPlan, RowBudget, TreeRows, TreeSnapshot};
use vecaz::game::{Game, Sizes};
use vecaz::search::PassStats;
use vecaz::search::root::RootSummary;
use vecaz::tree::{Tree, TreeShape};

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

impl<G: Game> TreeRows for ReferenceBackend<G> {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) -> Result<()> {
        self.rows[b].set_root(bytemuck::pod_read_unaligned(state), history);
        Ok(())
    }

    fn set_root_tree(&mut self, b: usize, snapshot: &TreeSnapshot) -> Result<()> {
        self.set_root(b, &snapshot.states[..size_of::<G::State>()], &snapshot.history)
    }

    fn snapshot(&mut self, b: usize, _limit: usize) -> Result<TreeSnapshot> {
        let shape = TreeShape {
            rows: 1,
            nodes: 1,
            edges: self.sizes.tree_edges(),
            players: self.sizes.num_players,
            zero_sum_pair: self.sizes.is_zero_sum_pair(),
        };
        let mut tree = Tree::new(shape);
        tree.row_mut(0).set_root();
        let row = &self.rows[b];
        let states = bytemuck::bytes_of(row.root_state()).to_vec();
        Ok(TreeSnapshot { tree, states, history: row.root_history().to_vec() })
    }

    fn begin(&mut self, b: usize, plan: PlyPlan) -> Result<()> {
        self.rows[b].begin(plan.simulations, plan.exploration, plan.key);
        Ok(())
    }

    fn is_done(&mut self, b: usize) -> Result<bool> {
        Ok(self.rows[b].is_done())
    }

    fn any_done(&mut self) -> Result<bool> {
        Ok(self.rows.iter().any(ReferenceSearch::is_done))
    }

    fn summarise(&mut self, b: usize, out: &mut RootSummary) -> Result<()> {
        self.rows[b].summarise(out);
        Ok(())
    }

    fn advance(&mut self, b: usize, _actions: &[u16], state: &[u8], history: &[u64]) -> Result<()> {
        self.set_root(b, state, history)
    }

    fn root_state(&mut self, b: usize) -> Result<&[u8]> {
        Ok(bytemuck::bytes_of(self.rows[b].root_state()))
    }

    fn root_history(&mut self, b: usize) -> Result<&[u64]> {
        Ok(self.rows[b].root_history())
    }

    fn num_nodes(&mut self, b: usize) -> Result<usize> {
        Ok(self.rows[b].num_nodes())
    }

    fn variations(&mut self, b: usize, first: &[u16], max_len: usize) -> Result<Vec<Vec<u16>>> {
        Ok(first.iter().map(|&action| self.rows[b].variation(action, max_len)).collect())
    }
}

impl<G: Game> PassStages for ReferenceBackend<G> {
    fn select(&mut self, _budget: RowBudget) -> Result<PassStats> {
        let mut out = PassStats { visited: self.rows.len(), ..PassStats::default() };
        self.rows.iter_mut().for_each(|row| row.select(&mut out));
        Ok(out)
    }

    fn observe(&mut self, obs: &mut [f32]) -> Result<()> {
        let mut rest = obs;
        for row in &self.rows {
            let (own, others) = rest.split_at_mut(row.num_evaluations() * self.sizes.obs.len());
            row.observe(own);
            rest = others;
        }
        Ok(())
    }

    fn expand(&mut self, logits: &[f32], values: &[f32]) -> Result<()> {
        let (mut logits, mut values) = (logits, values);
        for row in &mut self.rows {
            let m = row.num_evaluations();
            let (own_logits, other_logits) = logits.split_at(m * self.sizes.num_actions);
            let (own_values, other_values) = values.split_at(m * self.sizes.num_players);
            row.expand(own_logits, own_values);
            (logits, values) = (other_logits, other_values);
        }
        Ok(())
    }

    fn backup(&mut self) -> Result<()> {
        self.rows.iter_mut().for_each(ReferenceSearch::backup);
        Ok(())
    }
}

impl<G: Game> Backend for ReferenceBackend<G> {}
