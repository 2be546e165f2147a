//! The backend for CPU memory: one shard of rows, worked on by one thread. Several shards make several threads; rows do not
//! know in which shard they are, so results do not depend on how many there are.

use super::isa::{Isa, per_isa};
use super::twins::{Asked, Twins};
use super::{Backend, PlyPlan, Selected, Snapshot};
use crate::config::SearchEngine;
use crate::game::{Game, History, Sizes, Turn};
use crate::rng::Purpose;
use crate::search::backup::{Flight, MAX_PLAYERS, backup, take_off};
use crate::search::eval_cache::{EvalCache, hash};
use crate::search::expand::{expand, seat_values};
use crate::search::reuse::{ReuseScratch, keep_most_visited, keep_subtree};
use crate::search::root::{RootSummary, Roots, RowKey};
use crate::search::select::{Descent, Level, RootView, descend};
use crate::search::{SearchParams, Solver, reference};
use crate::tree::{Kind, NO_NODE, ROOT, RowMut, Tree, TreeShape};
use std::sync::Arc;

/// What happens to the played subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It is the next ply's tree.
    Keep,
    /// Every ply starts from nothing.
    Drop,
}

/// Which arrays to make.
#[derive(Clone, Copy, Debug)]
pub struct BackendPlan {
    /// B.
    pub rows: usize,
    /// T.
    pub nodes: usize,
    /// How to search.
    pub params: SearchParams,
    /// What to do with the played subtree.
    pub reuse: Reuse,
}

impl BackendPlan {
    /// The least T that one ply of `simulations` needs.
    pub fn nodes_for(simulations: u32, sizes: &Sizes) -> usize {
        1 + simulations as usize * (1 + sizes.max_chance_run)
    }

    /// Bytes of one row, states included.
    pub fn row_bytes(&self, sizes: &Sizes, state_size: usize) -> usize {
        if self.params.engine == SearchEngine::Reference {
            return self.nodes * reference::node_bytes(sizes, state_size);
        }
        let shape = self.shape(sizes);
        shape.row_bytes()
            + Roots::row_bytes(shape)
            + self.nodes * state_size
            + self.params.leaves * size_of::<Leaf>()
            + if sizes.uses_history { 8 * sizes.max_plies } else { 0 }
    }

    fn shape(&self, sizes: &Sizes) -> TreeShape {
        TreeShape {
            rows: self.rows,
            nodes: self.nodes,
            edges: sizes.tree_edges(),
            players: sizes.num_players,
        }
    }
}

/// One leaf of a pass.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    node: i32,
    /// Place among the M that the network sees, or -1.
    slot: i32,
    /// Hash of the key under which the evaluation is to be cached.
    hash: u64,
}

/// B rows of one game.
pub struct CpuBackend<G: Game> {
    game: G,
    sizes: Sizes,
    plan: BackendPlan,
    isa: Isa,
    tree: Tree,
    /// `[B, T]`
    states: Vec<G::State>,
    roots: Roots,
    /// Keys of the positions before the root. `[B][plies]`
    histories: Vec<Vec<u64>>,
    /// `[B]`
    keys: Vec<RowKey>,
    /// `[B, L]`
    leaves: Vec<Leaf>,
    /// `[B]`
    num_leaves: Vec<u32>,
    /// Rows that can select no more in this pass. `[B]`
    stopped: Vec<bool>,
    /// `[Ep]`
    scratch: Vec<f32>,
    /// Keys of the path to a node.
    path: Vec<u64>,
    reuse: ReuseScratch,
    cache: Option<Arc<EvalCache>>,
    /// Leaves of the pass that wait for the network, by key.
    twins: Twins,
    /// The key of the state at hand. `[state bytes / 8]`
    cache_key: Vec<u64>,
}

impl<G: Game> CpuBackend<G> {
    /// Empty rows.
    pub fn new(game: G, plan: BackendPlan) -> Self {
        let sizes = game.sizes();
        let shape = plan.shape(&sizes);
        Self {
            states: vec![game.init(); plan.rows * plan.nodes],
            tree: Tree::new(shape),
            roots: Roots::new(shape),
            histories: vec![Vec::new(); plan.rows],
            keys: vec![RowKey::default(); plan.rows],
            leaves: vec![Leaf { node: NO_NODE, slot: -1, hash: 0 }; plan.rows * plan.params.leaves],
            num_leaves: vec![0; plan.rows],
            stopped: vec![false; plan.rows],
            scratch: vec![0.0; shape.padded()],
            path: Vec::new(),
            reuse: ReuseScratch::new(plan.nodes),
            cache: None,
            twins: Twins::new(plan.rows * plan.params.leaves),
            cache_key: vec![0; size_of::<G::State>().div_ceil(8)],
            isa: Isa::detect(),
            game,
            sizes,
            plan,
        }
    }

    /// The same with the row loops compiled for `isa`, which the machine must have.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        if isa == Isa::Portable || self.isa == Isa::Avx512 {
            self.isa = isa;
        }
        self
    }

    #[inline(always)]
    fn state(&self, b: usize, node: i32) -> &G::State {
        &self.states[b * self.plan.nodes + node as usize]
    }

    /// Writes what follows from the state at `node`: who moves, which edges, the result. Returns whether the network must
    /// be asked.
    #[inline(always)]
    fn settle(&mut self, b: usize, node: i32) -> NeedsNetwork {
        let state = self.states[b * self.plan.nodes + node as usize];
        let mut row = self.tree.row_mut(b);
        match self.game.turn(&state) {
            turn @ (Turn::Over | Turn::Chance) if turn == Turn::Over || self.game.is_horizon(&state) => {
                let mut returns = [0.0; MAX_PLAYERS];
                let returns = &mut returns[..self.sizes.num_players];
                self.game.returns(&state, returns);
                row.value_mut(node).copy_from_slice(returns);
                let scalars = &mut row.nodes[node as usize];
                scalars.set_kind(if turn == Turn::Over { Kind::Terminal } else { Kind::Horizon });
                if self.plan.params.solver == Solver::On {
                    scalars.set_proven();
                }
                NeedsNetwork::No
            }
            Turn::Chance if self.sizes.max_chance_run == 0 => {
                row.open_edges(node, 0);
                row.nodes[node as usize].set_kind(Kind::Chance);
                NeedsNetwork::No
            }
            turn => {
                if self.sizes.uses_history {
                    path_keys(&self.game, &row, &self.states[b * self.plan.nodes..], node, &mut self.path);
                }
                let history = History { played: &self.histories[b], path: &self.path };
                let num_edges = self.game.legal(&state, history, row.actions_mut(node));
                row.open_edges(node, num_edges);
                if let Turn::Player(player) = turn {
                    row.nodes[node as usize].player = player;
                    return NeedsNetwork::Yes { hash: 0 };
                }
                let probs = &mut self.scratch[..num_edges];
                self.game.chance_probs(&state, &row.actions(node)[..num_edges], probs);
                row.edges_mut(node).prior[..num_edges].copy_from_slice(probs);
                row.nodes[node as usize].set_kind(Kind::Chance);
                NeedsNetwork::No
            }
        }
    }

    /// Writes what the evaluation cache knows of a new decision node.
    #[inline(always)]
    fn look_up(&mut self, b: usize, node: i32) -> NeedsNetwork {
        let Some(cache) = &self.cache else { return NeedsNetwork::Yes { hash: 0 } };
        let state = self.states[b * self.plan.nodes + node as usize];
        write_key(&self.game, &state, &mut self.cache_key);
        let hash = hash(&self.cache_key);
        let mut row = self.tree.row_mut(b);
        let scalars = row.nodes[node as usize];
        let (player, num_edges) = (scalars.player, usize::from(scalars.num_edges));
        let mut values = [0.0; MAX_PLAYERS];
        let values = &mut values[..self.sizes.num_players];
        let priors = &mut row.edges_mut(node).prior[..num_edges];
        if !cache.get(hash, &self.cache_key, values, priors) {
            return NeedsNetwork::Yes { hash };
        }
        seat_values(values, player, row.value_mut(node));
        row.nodes[node as usize].set_kind(Kind::Decision);
        NeedsNetwork::Cached
    }

    /// Makes the child of `parent` through `edge`.
    #[inline(always)]
    fn grow(&mut self, b: usize, parent: i32, edge: usize) -> (i32, NeedsNetwork) {
        let mut row = self.tree.row_mut(b);
        let action = row.actions(parent)[edge];
        let child = row.add(parent, edge);
        let base = b * self.plan.nodes;
        let mut state = self.states[base + parent as usize];
        if self.sizes.uses_history {
            path_keys(&self.game, &row, &self.states[base..], parent, &mut self.path);
        }
        let history = History { played: &self.histories[b], path: &self.path };
        self.game.step(&mut state, action, history);
        self.states[base + child as usize] = state;
        let needs = match self.settle(b, child) {
            NeedsNetwork::Yes { .. } => self.look_up(b, child),
            known => known,
        };
        let mut row = self.tree.row_mut(b);
        if self.sizes.max_chance_run > 0 && row.nodes[child as usize].kind() == Kind::Chance {
            // Counts where no node fits below it.
            row.inherit_value(child, parent);
        }
        (child, needs)
    }

    /// One level of row `b`'s descent from `at`; a leaf is made where one is due. Chance nodes are passed on the way.
    #[inline(always)]
    fn select_level(&mut self, b: usize, at: i32) -> Progress {
        let key = self.keys[b];
        let simulation = u64::from(self.roots.run(b));
        let row = self.tree.row_mut(b);
        let view = if at == ROOT {
            let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
            self.roots.view(b, num_edges, &self.plan.params)
        } else {
            RootView::ELSEWHERE
        };
        let draw =
            |node: i32| key.key(Purpose::SearchChance).with(simulation).with(node as u64).stream().uniform();
        match descend(&row, &view, &self.plan.params, at, &mut self.scratch, draw) {
            Level::Down(child) => {
                row.prefetch(child);
                Progress::Down(child)
            }
            Level::Stop(Descent::Collision { .. }) => Progress::Collision,
            Level::Stop(Descent::End { node }) => Progress::Leaf(node, NeedsNetwork::No),
            Level::Stop(Descent::Leaf { node, edge }) => {
                let (child, needs) = self.grow(b, node, edge);
                match self.tree.row_mut(b).nodes[child as usize].kind() {
                    Kind::Chance => Progress::Down(child),
                    _ => Progress::Leaf(child, needs),
                }
            }
        }
    }

    /// Up to L leaves in every row that has simulations left. Rows go down in groups, level by level: while one row's next
    /// node comes from memory, the others' levels are worked on.
    #[inline(always)]
    fn select_rows(&mut self) -> Selected {
        let mut out = Selected::default();
        self.twins.clear();
        self.num_leaves.fill(0);
        for first in (0..self.plan.rows).step_by(GROUP) {
            let rows = first..(first + GROUP).min(self.plan.rows);
            for _ in 0..self.plan.params.leaves {
                let mut active = [(0usize, ROOT); GROUP];
                let mut count = 0;
                for b in rows.clone() {
                    if self.roots.left(b) > 0 && !self.stopped[b] {
                        active[count] = (b, ROOT);
                        count += 1;
                    }
                }
                self.descend_group(&mut active[..count], &mut out);
            }
            self.stopped[rows].fill(false);
        }
        out
    }

    /// One leaf for each of some rows.
    #[inline(always)]
    fn descend_group(&mut self, active: &mut [(usize, i32)], out: &mut Selected) {
        let mut count = active.len();
        while count > 0 {
            let mut kept = 0;
            for i in 0..count {
                let (b, at) = active[i];
                match self.step_down(b, at, out) {
                    Some(next) => {
                        active[kept] = (b, next);
                        kept += 1;
                    }
                    None => continue,
                }
            }
            count = kept;
        }
    }

    /// One level of one row; None where its descent has ended.
    #[inline(always)]
    fn step_down(&mut self, b: usize, at: i32, out: &mut Selected) -> Option<i32> {
        if at == ROOT && self.tree.row_mut(b).nodes[ROOT as usize].kind() == Kind::New {
            if self.num_leaves[b] == 0 {
                let needs = self.look_up(b, ROOT);
                self.push_leaf(b, ROOT, needs, out);
            }
            self.stopped[b] = true;
            return None;
        }
        match self.select_level(b, at) {
            Progress::Down(next) => Some(next),
            Progress::Collision => {
                self.stopped[b] = true;
                None
            }
            Progress::Leaf(node, needs) => {
                self.roots.count(b);
                if self.plan.params.leaves > 1 {
                    take_off(&mut self.tree.row_mut(b), node);
                }
                self.push_leaf(b, node, needs, out);
                out.simulations += 1;
                let row = self.tree.row_mut(b);
                let depth = u64::from(row.nodes[node as usize].depth - row.nodes[ROOT as usize].depth);
                out.depth_sum += depth;
                out.depth_max = out.depth_max.max(depth);
                None
            }
        }
    }

    #[inline(always)]
    fn push_leaf(&mut self, b: usize, node: i32, needs: NeedsNetwork, out: &mut Selected) {
        let place = b * self.plan.params.leaves + self.num_leaves[b] as usize;
        let (slot, hash) = match needs {
            NeedsNetwork::Yes { hash } => (self.slot_for(b, node, hash, place, out), hash),
            NeedsNetwork::Cached => {
                out.cached += 1;
                (-1, 0)
            }
            NeedsNetwork::No => (-1, 0),
        };
        self.leaves[place] = Leaf { node, slot, hash };
        out.rows += usize::from(self.num_leaves[b] == 0);
        self.num_leaves[b] += 1;
        out.leaves += 1;
    }

    /// The place among the M for a leaf: that of an earlier leaf of the pass with the same key, or a new one.
    #[inline(always)]
    fn slot_for(&mut self, b: usize, node: i32, hash: u64, place: usize, out: &mut Selected) -> i32 {
        if self.cache.is_some()
            && let Asked::Before(twin) = self.twins.ask(hash, place)
        {
            let other = self.leaves[twin];
            let other_row = twin / self.plan.params.leaves;
            let key = |b: usize, n: i32| self.game.canonical(&self.states[b * self.plan.nodes + n as usize]);
            if key(other_row, other.node) == key(b, node) {
                out.cached += 1;
                return other.slot;
            }
        }
        out.evaluations += 1;
        out.evaluations as i32 - 1
    }

    #[inline(always)]
    fn expand_rows(&mut self, logits: &[f32], values: &[f32]) {
        let (a, p) = (self.sizes.num_actions, self.sizes.num_players);
        for b in 0..self.plan.rows {
            let first = b * self.plan.params.leaves;
            for place in first..first + self.num_leaves[b] as usize {
                let leaf = self.leaves[place];
                if leaf.slot < 0 {
                    continue;
                }
                let m = leaf.slot as usize;
                let values = &values[m * p..(m + 1) * p];
                let mut row = self.tree.row_mut(b);
                expand(&mut row, leaf.node, &logits[m * a..(m + 1) * a], values);
                if let Some(cache) = &self.cache {
                    let num_edges = usize::from(row.nodes[leaf.node as usize].num_edges);
                    let priors = &row.edges(leaf.node).prior[..num_edges];
                    let state = &self.states[b * self.plan.nodes + leaf.node as usize];
                    write_key(&self.game, state, &mut self.cache_key);
                    cache.put(leaf.hash, &self.cache_key, values, priors);
                }
            }
        }
    }

    #[inline(always)]
    fn backup_rows(&mut self) {
        let flight = if self.plan.params.leaves > 1 { Flight::Counted } else { Flight::Alone };
        for b in 0..self.plan.rows {
            let first = b * self.plan.params.leaves;
            for leaf in &self.leaves[first..first + self.num_leaves[b] as usize] {
                let mut row = self.tree.row_mut(b);
                // A new root's own evaluation is no simulation: nothing was counted when it was selected.
                let is_new_root = row.nodes[leaf.node as usize].visits == 0;
                let flight = if is_new_root { Flight::Alone } else { flight };
                backup(&mut row, leaf.node, flight, self.roots.value_sum_mut(b));
                if row.nodes[ROOT as usize].is_proven() {
                    self.roots.finish(b);
                }
            }
        }
    }

    /// Makes the child behind `action` the root of row `b`. False, with nothing kept, where there is none worth keeping.
    fn keep(&mut self, b: usize, action: u16) -> bool {
        let mut row = self.tree.row_mut(b);
        let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
        let Some(edge) = row.actions(ROOT)[..num_edges].iter().position(|&a| a == action) else {
            return false;
        };
        let child = row.edges(ROOT).child[edge];
        if child == NO_NODE || row.nodes[child as usize].kind() == Kind::New {
            return false;
        }
        let ply = BackendPlan::nodes_for(self.plan.params.simulations, &self.sizes) - 1;
        let limit = self.plan.nodes.saturating_sub(ply);
        if !keep_subtree(&mut row, edge, limit, &mut self.reuse) {
            return false;
        }
        self.move_states(b);
        self.proof_stands(b)
    }

    /// Moves the states to where the last compaction put their nodes.
    fn move_states(&mut self, b: usize) {
        let states = &mut self.states[b * self.plan.nodes..(b + 1) * self.plan.nodes];
        for (from, &to) in self.reuse.targets().iter().enumerate() {
            if to != NO_NODE {
                states[to as usize] = states[from];
            }
        }
    }

    /// False where the root is proven better than lost but trimming took the child that shows how.
    fn proof_stands(&mut self, b: usize) -> bool {
        let row = self.tree.row_mut(b);
        let root = &row.nodes[ROOT as usize];
        let num_edges = usize::from(root.num_edges);
        let lost = row.value(ROOT)[usize::from(root.player)] <= -1.0;
        !root.is_proven()
            || root.kind() != Kind::Decision
            || lost
            || (0..num_edges).any(|edge| edge_is_won(&row, ROOT, edge))
    }

    per_isa!(fn select_fast / select_avx512 / select_avx2 = select_rows(&mut self) -> Selected);
    per_isa!(fn expand_fast / expand_avx512 / expand_avx2 = expand_rows(&mut self, logits: &[f32], values: &[f32]));
    per_isa!(fn backup_fast / backup_avx512 / backup_avx2 = backup_rows(&mut self));
}

/// True where the child behind `edge` is proven to be worth what `node` is, and that is no loss.
fn edge_is_won(row: &RowMut<'_>, node: i32, edge: usize) -> bool {
    let player = usize::from(row.nodes[node as usize].player);
    let child = row.edges(node).child[edge];
    row.nodes[node as usize].is_proven()
        && child != NO_NODE
        && row.nodes[child as usize].is_proven()
        && row.value(child)[player] == row.value(node)[player]
        && row.value(node)[player] > -1.0
}

/// Rows that go down together: as many cache misses in flight.
const GROUP: usize = 16;

/// What one level of a descent came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// On to this node.
    Down(i32),
    /// Here is the leaf.
    Leaf(i32, NeedsNetwork),
    /// The leaf is another simulation's.
    Collision,
}

/// Whether a leaf's value must come from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeedsNetwork {
    /// Yes; `hash` is that of its key in the evaluation cache.
    Yes { hash: u64 },
    /// No, the cache had it.
    Cached,
    /// No, its value is known.
    No,
}

/// The key of a state in the evaluation cache.
#[inline(always)]
fn write_key<G: Game>(game: &G, state: &G::State, out: &mut [u64]) {
    let canonical = game.canonical(state);
    let bytes = bytemuck::bytes_of(&canonical);
    bytemuck::cast_slice_mut::<u64, u8>(out)[..bytes.len()].copy_from_slice(bytes);
}

/// The history keys of the nodes above `node`, from the root down.
fn path_keys<G: Game>(game: &G, row: &RowMut<'_>, states: &[G::State], node: i32, out: &mut Vec<u64>) {
    out.clear();
    let mut n = row.nodes[node as usize].parent;
    while n != NO_NODE {
        out.push(game.history_key(&states[n as usize]));
        n = row.nodes[n as usize].parent;
    }
    out.reverse();
}

impl<G: Game> Backend for CpuBackend<G> {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn rows(&self) -> usize {
        self.plan.rows
    }

    fn set_eval_cache(&mut self, cache: Arc<EvalCache>) {
        self.cache = Some(cache);
    }

    fn plant(&mut self, b: usize, state: &[u8], history: &[u64]) {
        self.states[b * self.plan.nodes] = bytemuck::pod_read_unaligned(state);
        self.histories[b].clear();
        self.histories[b].extend_from_slice(history);
        self.tree.row_mut(b).plant();
        self.settle(b, ROOT);
        self.park(b);
    }

    fn plant_snapshot(&mut self, b: usize, snapshot: &Snapshot) {
        self.tree.copy_row(b, &snapshot.tree, 0);
        let states = &mut self.states[b * self.plan.nodes..];
        for (to, from) in states.iter_mut().zip(snapshot.states.chunks_exact(size_of::<G::State>())) {
            *to = bytemuck::pod_read_unaligned(from);
        }
        self.histories[b].clone_from(&snapshot.history);
        self.park(b);
    }

    fn snapshot(&mut self, b: usize, limit: usize) -> Snapshot {
        keep_most_visited(&mut self.tree.row_mut(b), limit, &mut self.reuse);
        self.move_states(b);
        let nodes = self.tree.count(b);
        let mut tree = Tree::new(TreeShape { rows: 1, nodes, ..self.tree.shape() });
        tree.copy_row(0, &self.tree, b);
        let states = &self.states[b * self.plan.nodes..][..nodes];
        Snapshot { tree, states: bytemuck::cast_slice(states).to_vec(), history: self.histories[b].clone() }
    }

    fn begin(&mut self, b: usize, plan: PlyPlan) {
        self.keys[b] = plan.key;
        let mut row = self.tree.row_mut(b);
        self.roots.begin(b, &mut row, &self.plan.params, plan.simulations, plan.exploration, plan.key);
    }

    fn is_done(&self, b: usize) -> bool {
        self.roots.left(b) == 0
    }

    fn park(&mut self, b: usize) {
        self.num_leaves[b] = 0;
        self.roots.finish(b);
    }

    fn select(&mut self) -> Selected {
        self.select_fast()
    }

    fn observe(&mut self, obs: &mut [f32]) {
        let f = self.sizes.obs.len();
        for b in 0..self.plan.rows {
            for l in 0..self.num_leaves[b] as usize {
                let leaf = self.leaves[b * self.plan.params.leaves + l];
                if leaf.slot >= 0 {
                    let player = self.tree.row_mut(b).nodes[leaf.node as usize].player;
                    let out = &mut obs[leaf.slot as usize * f..(leaf.slot as usize + 1) * f];
                    self.game.observe(self.state(b, leaf.node), player, out);
                }
            }
        }
    }

    fn expand(&mut self, logits: &[f32], values: &[f32]) {
        self.expand_fast(logits, values);
    }

    fn backup(&mut self) {
        self.backup_fast();
    }

    fn summarise(&mut self, b: usize, out: &mut RootSummary) {
        self.roots.summarise(b, &self.tree.row_mut(b), &self.plan.params, out);
    }

    fn advance(&mut self, b: usize, action: u16) {
        let base = b * self.plan.nodes;
        let mut state = self.states[base];
        let history = History { played: &self.histories[b], path: &[] };
        self.game.step(&mut state, action, history);
        if self.sizes.uses_history {
            let key = self.game.history_key(&self.states[base]);
            self.histories[b].push(key);
        }
        if self.plan.reuse == Reuse::Keep && self.keep(b, action) {
            self.park(b);
            return;
        }
        self.states[base] = state;
        self.tree.row_mut(b).plant();
        self.settle(b, ROOT);
        self.park(b);
    }

    fn root_state(&self, b: usize) -> &[u8] {
        bytemuck::bytes_of(self.state(b, ROOT))
    }

    fn root_history(&self, b: usize) -> &[u64] {
        &self.histories[b]
    }

    fn num_nodes(&self, b: usize) -> usize {
        self.tree.count(b)
    }

    fn principal_variation(&mut self, b: usize, most: usize) -> Vec<u16> {
        let row = self.tree.row_mut(b);
        let (mut node, mut line) = (ROOT, Vec::new());
        while line.len() < most && node != NO_NODE {
            let edges = row.edges(node);
            let num_edges = usize::from(row.nodes[node as usize].num_edges);
            let wins = |e: usize| i32::from(edge_is_won(&row, node, e));
            let best = (0..num_edges).max_by_key(|&e| (wins(e), edges.visits[e], std::cmp::Reverse(e)));
            match best {
                Some(e) if edges.visits[e] > 0 => {
                    line.push(row.actions(node)[e]);
                    node = edges.child[e];
                }
                _ => break,
            }
        }
        line
    }
}
