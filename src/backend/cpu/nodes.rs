//! The operations on nodes that need the game: new nodes by the rules, observations, keys of the evaluation cache. The game's type is
//! erased at one call per group of rows; the loops over nodes are inside that call.

use super::states::States;
use crate::backend::leaf_dedup::Leaf;
use crate::backend::plan::BackendPlan;
use crate::game::{Game, History, MAX_PLAYERS, Sizes, Turn};
use crate::isa::Isa;
use crate::search::MctsSolver;
use crate::search::eval_cache::{EvalCache, hash};
use crate::tree::{NO_NODE, NodeKind, RowMut, Tree, TreeShape};
use arrayvec::ArrayVec;
use std::sync::Arc;

/// Rows that descend together, whose cache misses overlap.
pub(super) const GROUP: usize = 16;

/// The rows of a group.
pub(super) type RowGroup<'a> = ArrayVec<RowMut<'a>, GROUP>;

/// The next `count` of `rows`, at most [`GROUP`], as a group.
#[inline(always)]
pub(super) fn next_group<'a>(rows: &mut impl Iterator<Item = RowMut<'a>>, count: usize) -> RowGroup<'a> {
    let mut group = RowGroup::new();
    for row in rows.take(count) {
        group.push(row);
    }
    group
}

/// The rows' states, and the data for new nodes.
pub(super) struct NodeData {
    pub sizes: Sizes,
    pub solver: MctsSolver,
    /// T.
    pub nodes: usize,
    /// `[B, T]`
    pub states: States,
    /// Keys of the positions before the root. `[B][plies]`
    pub histories: Vec<Vec<u64>>,
    pub cache: Option<Arc<EvalCache>>,
    /// The evaluation cache key of the current leaf of every row of a group. `[GROUP, state bytes / 8]`
    pub cache_keys: [Vec<u64>; GROUP],
    /// History keys of the path to a node. `[depth]`
    path: Vec<u64>,
    /// Probabilities of outcomes. `[Ep]`
    probs: Vec<f32>,
}

/// A node to fill, in row `in_group` of a group.
#[derive(Clone, Copy)]
pub(super) struct NewNode {
    pub in_group: usize,
    pub at: NewAt,
}

/// Where a new node is.
#[derive(Clone, Copy)]
pub(super) enum NewAt {
    /// At this index, with its state.
    Here(i32),
    /// The child of this edge of its parent.
    Below { parent: i32, edge: usize },
}

/// A node that was filled, in row `in_group` of the group.
#[derive(Clone, Copy)]
pub(super) struct FilledNode {
    pub in_group: usize,
    pub node: i32,
    pub needs: NeedsNetwork,
}

/// Whether a leaf's value must come from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeedsNetwork {
    /// Yes. `hash` is the hash of its evaluation cache key, 0 without a cache.
    Yes { hash: u64 },
    /// No: the evaluation cache had it.
    Cached,
    /// No: the state or the tree gives it.
    No,
}

/// Nodes filled at one call, at most one in each row of a group.
pub(super) type Filled = ArrayVec<FilledNode, GROUP>;

/// Nodes of a group to fill.
pub(super) struct NewNodes<'a, 'row> {
    /// Index of the group's first row.
    pub first: usize,
    pub group: &'a mut [RowMut<'row>],
    /// At most one in each row.
    pub nodes: &'a [NewNode],
    /// Where those that were filled are added.
    pub filled: &'a mut Filled,
}

/// The leaves of all rows in a pass.
#[derive(Clone, Copy)]
pub(super) struct SelectedLeaves<'a> {
    /// `[B, L]`
    pub leaves: &'a [Leaf],
    /// How many each row has. `[B]`
    pub num: &'a [u32],
    /// L.
    pub per_row: usize,
}

impl<'a> SelectedLeaves<'a> {
    /// Those of row `b`.
    #[inline(always)]
    pub fn of(self, b: usize) -> &'a [Leaf] {
        &self.leaves[b * self.per_row..][..self.num[b] as usize]
    }
}

/// A game whose type has been erased, for the nodes of many rows.
///
/// The loops over nodes are functions of this trait, not of the rows, because the compiler puts a trait's function into the codegen
/// unit of `Self`: each game's copies are compiled together with its own module.
pub(super) trait GameNodes: Send + Sync {
    /// Fills new nodes: the player to move, the edges, the result. Those that the network must evaluate get their key of the evaluation
    /// cache, whose entry is prefetched.
    fn fill_nodes(&self, isa: Isa, data: &mut NodeData, new: NewNodes<'_, '_>);

    /// # Safety
    /// The machine must have AVX2, FMA and BMI.
    #[cfg(target_arch = "x86_64")]
    unsafe fn fill_nodes_avx2(&self, data: &mut NodeData, new: NewNodes<'_, '_>);

    /// Writes the observations of the leaves that need the network, in the order of the selection. `[M, F]`
    fn observe_leaves(
        &self,
        isa: Isa,
        data: &NodeData,
        leaves: SelectedLeaves<'_>,
        tree: &mut Tree,
        obs: &mut [f32],
    );

    /// # Safety
    /// The machine must have AVX2, FMA and BMI.
    #[cfg(target_arch = "x86_64")]
    unsafe fn observe_leaves_avx2(
        &self,
        data: &NodeData,
        leaves: SelectedLeaves<'_>,
        tree: &mut Tree,
        obs: &mut [f32],
    );

    /// See [`Game::num_seated`], for state number `index`.
    fn num_seated(&self, states: &States, index: usize, seats: usize) -> usize;

    /// Writes the evaluation cache key of state number `index`.
    fn write_key(&self, states: &States, index: usize, key: &mut [u64]);

    /// True where two states have one evaluation cache key.
    fn have_same_key(&self, states: &States, indices: [usize; 2]) -> bool;

    /// Moves the states of a row whose first is number `first` after their nodes: each to its target, none where it is [`NO_NODE`].
    fn move_states(&self, states: &mut States, first: usize, targets: &[i32]);
}

impl<G: Game> GameNodes for G {
    fn fill_nodes(&self, isa: Isa, data: &mut NodeData, new: NewNodes<'_, '_>) {
        match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: these include AVX2, FMA and BMI, and `Isa::detect` found them.
            Isa::Amx | Isa::Avx512 | Isa::Avx2 => unsafe { self.fill_nodes_avx2(data, new) },
            _ => data.fill_nodes(self, new),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
    unsafe fn fill_nodes_avx2(&self, data: &mut NodeData, new: NewNodes<'_, '_>) {
        data.fill_nodes(self, new);
    }

    fn observe_leaves(
        &self,
        isa: Isa,
        data: &NodeData,
        leaves: SelectedLeaves<'_>,
        tree: &mut Tree,
        obs: &mut [f32],
    ) {
        match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as in `fill_nodes`.
            Isa::Amx | Isa::Avx512 | Isa::Avx2 => unsafe {
                self.observe_leaves_avx2(data, leaves, tree, obs)
            },
            _ => data.observe_leaves(self, leaves, tree, obs),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
    unsafe fn observe_leaves_avx2(
        &self,
        data: &NodeData,
        leaves: SelectedLeaves<'_>,
        tree: &mut Tree,
        obs: &mut [f32],
    ) {
        data.observe_leaves(self, leaves, tree, obs);
    }

    fn num_seated(&self, states: &States, index: usize, seats: usize) -> usize {
        Game::num_seated(self, states.get(index), seats)
    }

    fn write_key(&self, states: &States, index: usize, key: &mut [u64]) {
        write_key(self, states.get(index), key);
    }

    fn have_same_key(&self, states: &States, indices: [usize; 2]) -> bool {
        let [one, other] = indices.map(|index| self.canonical(states.get(index)));
        one == other
    }

    fn move_states(&self, states: &mut States, first: usize, targets: &[i32]) {
        let row = &mut states.typed_mut::<G::State>()[first..][..targets.len()];
        for (from, &to) in targets.iter().enumerate().filter(|&(_, &to)| to != NO_NODE) {
            row[to as usize] = row[from];
        }
    }
}

impl NodeData {
    /// The data of inactive rows.
    pub fn new<G: Game>(game: &G, plan: &BackendPlan, shape: TreeShape) -> Self {
        Self {
            sizes: game.sizes(),
            solver: plan.params.solver,
            nodes: plan.nodes,
            states: States::new(&game.init(), plan.rows * plan.nodes),
            histories: vec![Vec::new(); plan.rows],
            cache: None,
            cache_keys: std::array::from_fn(|_| vec![0; size_of::<G::State>().div_ceil(8)]),
            path: Vec::new(),
            probs: vec![0.0; shape.padded()],
        }
    }

    /// The index of the state of `node` in row `b`.
    #[inline(always)]
    pub fn index(&self, b: usize, node: i32) -> usize {
        b * self.nodes + node as usize
    }

    /// As [`GameNodes::fill_nodes`].
    #[inline(always)]
    fn fill_nodes<G: Game>(&mut self, game: &G, new: NewNodes<'_, '_>) {
        let NewNodes { first, group, nodes, filled } = new;
        for &NewNode { in_group, at } in nodes {
            let row = &mut group[in_group];
            let b = first + in_group;
            let (node, state) = match at {
                NewAt::Here(node) => (node, *self.states.get::<G::State>(self.index(b, node))),
                NewAt::Below { parent, edge } => self.add_child(game, b, row, parent, edge),
            };
            let needs = match self.fill(game, b, row, node, &state) {
                NeedsNetwork::Yes { .. } => NeedsNetwork::Yes { hash: self.hash_of(game, b, &state) },
                no => no,
            };
            if let NewAt::Below { parent, .. } = at
                && self.sizes.max_chance_run > 0
                && row.nodes[node as usize].kind() == NodeKind::Chance
            {
                // The value of a descent that ends here because the tree is full.
                row.inherit_value(node, parent);
            }
            filled.push(FilledNode { in_group, node, needs });
        }
    }

    /// Adds the child of `edge` of `parent`, with its state, and returns both.
    #[inline(always)]
    fn add_child<G: Game>(
        &mut self,
        game: &G,
        b: usize,
        row: &mut RowMut<'_>,
        parent: i32,
        edge: usize,
    ) -> (i32, G::State) {
        let action = row.actions(parent)[edge];
        let child = row.add(parent, edge);
        let [from, to] = [self.index(b, parent), self.index(b, child)];
        let mut state = *self.states.get::<G::State>(from);
        self.set_path(game, b, row, parent);
        let history = History { played: &self.histories[b], path: &self.path };
        game.step(&mut state, action, history);
        self.states.set(to, &state);
        (child, state)
    }

    /// Fills a new `node` from its `state`: the player to move, the edges, the result. Returns whether its value must come from the network.
    #[inline(always)]
    fn fill<G: Game>(
        &mut self,
        game: &G,
        b: usize,
        row: &mut RowMut<'_>,
        node: i32,
        state: &G::State,
    ) -> NeedsNetwork {
        match game.turn(state) {
            turn @ (Turn::Over | Turn::Chance) if turn == Turn::Over || game.is_horizon(state) => {
                let mut returns = [0.0; MAX_PLAYERS];
                let returns = &mut returns[..self.sizes.num_players];
                game.stage_returns(state, returns);
                row.value_mut(node).copy_from_slice(returns);
                let scalars = &mut row.nodes[node as usize];
                scalars.set_kind(if turn == Turn::Over { NodeKind::Terminal } else { NodeKind::Horizon });
                if self.solver == MctsSolver::On {
                    scalars.set_bounds(returns[0], returns[0]);
                }
                NeedsNetwork::No
            }
            Turn::Chance if self.sizes.max_chance_run == 0 => {
                row.init_edges(node, 0);
                row.nodes[node as usize].set_kind(NodeKind::Chance);
                NeedsNetwork::No
            }
            turn => {
                self.set_path(game, b, row, node);
                let history = History { played: &self.histories[b], path: &self.path };
                let num_edges = game.legal(state, history, row.actions_mut(node));
                row.init_edges(node, num_edges);
                if let Turn::Player(player) = turn {
                    row.nodes[node as usize].player = player;
                    return NeedsNetwork::Yes { hash: 0 };
                }
                let probs = &mut self.probs[..num_edges];
                game.chance_probs(state, &row.actions(node)[..num_edges], probs);
                row.edges_mut(node).prior[..num_edges].copy_from_slice(probs);
                row.nodes[node as usize].set_kind(NodeKind::Chance);
                NeedsNetwork::No
            }
        }
    }

    /// Writes the evaluation cache key of `state` to row `b`'s key buffer and prefetches the entry. Returns the key's hash, 0 where there is
    /// no cache.
    #[inline(always)]
    fn hash_of<G: Game>(&mut self, game: &G, b: usize, state: &G::State) -> u64 {
        let Some(cache) = &self.cache else { return 0 };
        let key = &mut self.cache_keys[b % GROUP];
        write_key(game, state, key);
        let hash = hash(key);
        cache.prefetch(hash);
        hash
    }

    /// Collects the history keys of the nodes above `node`, from the root down, where the game has such keys.
    #[inline(always)]
    fn set_path<G: Game>(&mut self, game: &G, b: usize, row: &RowMut<'_>, node: i32) {
        if !self.sizes.uses_history {
            return;
        }
        let states = &self.states.typed::<G::State>()[b * self.nodes..];
        self.path.clear();
        let mut n = row.nodes[node as usize].parent;
        while n != NO_NODE {
            self.path.push(game.history_key(&states[n as usize]));
            n = row.nodes[n as usize].parent;
        }
        self.path.reverse();
    }

    /// As [`GameNodes::observe_leaves`].
    #[inline(always)]
    fn observe_leaves<G: Game>(
        &self,
        game: &G,
        leaves: SelectedLeaves<'_>,
        tree: &mut Tree,
        obs: &mut [f32],
    ) {
        let (f, states) = (self.sizes.obs.len(), self.states.typed::<G::State>());
        for (b, row) in tree.rows_mut().enumerate() {
            for leaf in leaves.of(b).iter().filter(|leaf| leaf.slot >= 0) {
                let player = row.nodes[leaf.node as usize].player;
                let out = &mut obs[leaf.slot as usize * f..][..f];
                game.observe(&states[self.index(b, leaf.node)], player, out);
            }
        }
    }
}

/// Writes the evaluation cache key of a state.
#[inline(always)]
fn write_key<G: Game>(game: &G, state: &G::State, out: &mut [u64]) {
    let canonical = game.canonical(state);
    let bytes = bytemuck::bytes_of(&canonical);
    bytemuck::cast_slice_mut::<u64, u8>(out)[..bytes.len()].copy_from_slice(bytes);
}
