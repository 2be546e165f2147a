//! The backend: its trees, and what a search and self-play ask of their rows.

use super::row_data::{Caches, RowData};
use super::variations::variations;
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, PassStages, PlyPlan, RowBudget, TreeRows, TreeSnapshot};
use crate::error::{Error, Result};
use crate::game::{Game, Sizes};
use crate::isa::Isa;
use crate::search::PassStats;
use crate::search::eval_cache::EvalCache;
use crate::search::reuse::{ReuseScratch, keep_most_visited};
use crate::search::root::RootSummary;
use crate::tree::{ROOT, Tree, TreeShape};
use std::sync::Arc;

/// B rows of one game.
pub struct CpuBackend {
    pub(super) tree: Tree,
    pub(super) rows: RowData,
    pub(super) isa: Isa,
    pub(super) reuse: ReuseScratch,
}

impl CpuBackend {
    /// A backend of inactive rows of `game`.
    pub fn new<G: Game>(game: G, plan: BackendPlan) -> Self {
        let shape = plan.shape(&game.sizes());
        Self {
            tree: Tree::new(shape),
            rows: RowData::new(game, plan, shape),
            isa: Isa::detect(),
            reuse: ReuseScratch::new(plan.nodes),
        }
    }

    /// The same with row loops compiled for `isa`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where this machine lacks the instructions.
    pub fn with_isa(self, isa: Isa) -> Result<Self> {
        match isa.is_available() {
            true => Ok(Self { isa, ..self }),
            false => Err(Error::unsupported(
                format!("trees on the CPU with {isa}"),
                "this machine has no such instructions",
            )),
        }
    }
}

impl TreeRows for CpuBackend {
    fn sizes(&self) -> &Sizes {
        &self.rows.nodes.sizes
    }

    fn rows(&self) -> usize {
        self.rows.plan.rows
    }

    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) -> Result<()> {
        let root = self.rows.nodes.index(b, ROOT);
        self.rows.nodes.states.write(root, &state[..self.rows.nodes.states.size()]);
        self.rows.set_history(b, history);
        self.rows.init_root(self.isa, b, self.tree.row_mut(b));
        Ok(())
    }

    fn set_root_tree(&mut self, b: usize, snapshot: &TreeSnapshot) -> Result<()> {
        self.tree.copy_row(b, &snapshot.tree, 0);
        let root = self.rows.nodes.index(b, ROOT);
        self.rows.nodes.states.write(root, &snapshot.states);
        self.rows.set_history(b, &snapshot.history);
        self.rows.deactivate(b);
        Ok(())
    }

    fn snapshot(&mut self, b: usize, limit: usize) -> Result<TreeSnapshot> {
        keep_most_visited(&mut self.tree.row_mut(b), limit, &mut self.reuse);
        self.move_states(b);
        let nodes = self.tree.count(b);
        let mut tree = Tree::new(TreeShape { rows: 1, nodes, ..self.tree.shape() });
        tree.copy_row(0, &self.tree, b);
        tree.row_mut(0).clear_unused_edges();
        let data = &self.rows.nodes;
        Ok(TreeSnapshot {
            tree,
            states: data.states.bytes(data.index(b, ROOT), nodes).to_vec(),
            history: data.histories[b].clone(),
        })
    }

    fn begin(&mut self, b: usize, plan: PlyPlan) -> Result<()> {
        self.rows.keys[b] = plan.key;
        let PlyPlan { simulations, exploration, key } = plan;
        let (mut row, params) = (self.tree.row_mut(b), &self.rows.plan.params);
        self.rows.roots.begin(b, &mut row, params, simulations, exploration, key);
        Ok(())
    }

    fn is_done(&mut self, b: usize) -> Result<bool> {
        Ok(self.rows.roots.simulations_left(b) == 0)
    }

    fn any_done(&mut self) -> Result<bool> {
        Ok(self.rows.roots.any_done())
    }

    fn summarise(&mut self, b: usize, out: &mut RootSummary) -> Result<()> {
        self.rows.roots.summarise(b, &self.tree.row_mut(b), &self.rows.plan.params, out);
        Ok(())
    }

    fn advance(&mut self, b: usize, actions: &[u16], state: &[u8], history: &[u64]) -> Result<()> {
        if self.rows.plan.reuse == Reuse::Drop || !actions.iter().all(|&action| self.keep(b, action)) {
            return self.set_root(b, state, history);
        }
        self.rows.set_history(b, history);
        self.rows.deactivate(b);
        Ok(())
    }

    fn root_state(&mut self, b: usize) -> Result<&[u8]> {
        Ok(self.rows.nodes.states.bytes(self.rows.nodes.index(b, ROOT), 1))
    }

    fn root_history(&mut self, b: usize) -> Result<&[u64]> {
        Ok(&self.rows.nodes.histories[b])
    }

    fn num_nodes(&mut self, b: usize) -> Result<usize> {
        Ok(self.tree.count(b))
    }

    fn variations(&mut self, b: usize, first: &[u16], max_len: usize) -> Result<Vec<Vec<u16>>> {
        Ok(variations(&self.tree.row_mut(b), first, max_len))
    }
}

impl PassStages for CpuBackend {
    fn set_eval_cache(&mut self, cache: Arc<EvalCache>) -> Result<()> {
        self.rows.nodes.cache = Some(cache);
        Ok(())
    }

    fn select(&mut self, budget: RowBudget) -> Result<PassStats> {
        Ok(self.select_fast(budget))
    }

    fn observe(&mut self, obs: &mut [f32]) -> Result<()> {
        self.rows.caches = Caches::Cold;
        let Self { tree, rows, isa, .. } = self;
        rows.game.observe_leaves(*isa, &rows.nodes, rows.selected_leaves(), tree, obs);
        Ok(())
    }

    fn expand(&mut self, logits: &[f32], values: &[f32]) -> Result<()> {
        self.expand_fast(logits, values);
        Ok(())
    }

    fn backup(&mut self) -> Result<()> {
        self.backup_fast();
        Ok(())
    }
}

impl Backend for CpuBackend {}
