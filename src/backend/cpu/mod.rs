//! The batched backend in CPU memory: one shard of rows, for one thread. Several threads have a shard each; no row depends on its shard, so
//! results do not depend on their number.

mod descend;
mod nodes;
mod rows;
mod states;

use super::leaf_dedup::{Leaf, LeafDedup};
use super::plan::{BackendPlan, Reuse};
use super::{Backend, PassStages, PlyPlan, RowBudget, TreeRows, TreeSnapshot};
use crate::error::{Error, Result};
use crate::game::{Game, Sizes};
use crate::isa::Isa;
use crate::search::PassStats;
use crate::search::eval_cache::EvalCache;
use crate::search::reuse::{ReuseScratch, keep_most_visited};
use crate::search::root::{RootSummary, Roots, RowKey};
use crate::search::select::PuctTable;
use crate::tree::{NO_NODE, ROOT, RowMut, Tree, TreeShape};
use nodes::{Filled, GameNodes, NewAt, NewNode, NewNodes, NodeData};
use std::sync::Arc;

/// Where the rows of a pass are in the memory hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caches {
    /// In L1 or L2: nothing large ran since the selection.
    Warm,
    /// In L3 or DRAM: the network's forward evicted them.
    Cold,
}

/// B rows of one game.
pub struct CpuBackend {
    tree: Tree,
    rows: RowData,
    isa: Isa,
    reuse: ReuseScratch,
}

/// The rows' data other than their trees.
struct RowData {
    game: Box<dyn GameNodes>,
    nodes: NodeData,
    plan: BackendPlan,
    puct_table: PuctTable,
    roots: Roots,
    /// `[B]`
    keys: Vec<RowKey>,
    /// `[B, L]`
    leaves: Vec<Leaf>,
    /// `[B]`
    num_leaves: Vec<u32>,
    /// Rows that met a collision and select no more in this pass. `[B]`
    stopped: Vec<bool>,
    /// The state of the processor's caches between selection and expansion.
    caches: Caches,
    /// `[Ep]`
    scratch: Vec<f32>,
    /// Leaves of the pass that need the network, by key.
    leaf_dedup: LeafDedup,
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

impl RowData {
    fn new<G: Game>(game: G, plan: BackendPlan, shape: TreeShape) -> Self {
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
    fn leaves_of(&self, b: usize) -> &[Leaf] {
        &self.leaves[b * self.plan.params.leaves as usize..][..self.num_leaves[b] as usize]
    }

    /// Ends row `b`'s ply.
    fn deactivate(&mut self, b: usize) {
        self.num_leaves[b] = 0;
        self.roots.end_ply(b);
    }

    /// Starts a new tree in row `b`: a root filled from its state.
    fn init_root(&mut self, isa: Isa, b: usize, mut row: RowMut<'_>) {
        row.set_root();
        let root = NewNode { place: 0, at: NewAt::Here(ROOT) };
        let new = NewNodes { first: b, group: &mut [row], nodes: &[root], filled: &mut Filled::new() };
        self.game.fill_nodes(isa, &mut self.nodes, new);
        self.deactivate(b);
    }

    /// Writes the keys of the positions before row `b`'s root.
    fn set_history(&mut self, b: usize, history: &[u64]) {
        self.nodes.histories[b].clear();
        self.nodes.histories[b].extend_from_slice(history);
    }
}

/// True where `node` is proven not to be lost and `edge` is proven to reach its value.
fn edge_holds(row: &RowMut<'_>, node: i32, edge: usize) -> bool {
    let scalars = &row.nodes[node as usize];
    scalars.is_proven() && scalars.lower > -1.0 && row.edge_bounds(node, edge).0 >= scalars.lower
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
        self.rows.game.observe_leaves(self.isa, &self.rows, &mut self.tree, obs);
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

/// For each of the root's actions `first`, that action and those of most visits below it, at most `max_len` in all.
pub(super) fn variations(row: &RowMut<'_>, first: &[u16], max_len: usize) -> Vec<Vec<u16>> {
    let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
    let below = |&action: &u16| {
        let edge = row.actions(ROOT)[..num_edges].iter().position(|&a| a == action);
        let mut line = vec![action];
        line_below(row, edge.map_or(NO_NODE, |edge| row.child(ROOT, edge)), max_len, &mut line);
        line
    };
    first.iter().map(below).collect()
}

/// Adds the actions of most visits from `node` downwards to `line`, up to `max_len` actions. At a proven node, only those that reach its
/// value count.
fn line_below(row: &RowMut<'_>, mut node: i32, max_len: usize, line: &mut Vec<u16>) {
    while line.len() < max_len && node != NO_NODE {
        let edges = row.edges(node);
        let num_edges = usize::from(row.nodes[node as usize].num_edges);
        let holds = |e: usize| edge_holds(row, node, e);
        let best = (0..num_edges).max_by_key(|&e| (holds(e), edges.visits[e], std::cmp::Reverse(e)));
        match best {
            Some(e) if edges.visits[e] > 0 => {
                line.push(row.actions(node)[e]);
                node = edges.child[e];
            }
            _ => break,
        }
    }
}
