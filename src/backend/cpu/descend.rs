//! Selection over all rows: descents, new nodes, and which of them the network must be asked about.

use super::{Caches, CpuBackend, Leaf, RowData};
use crate::backend::RowBudget;
use crate::backend::leaf_dedup::FirstOrDuplicate;
use crate::game::{Game, History, Turn};
use crate::isa::{per_isa, prefetch};
use crate::rng::Purpose;
use crate::search::backup::{MAX_PLAYERS, apply_virtual_loss};
use crate::search::eval_cache::hash;
use crate::search::expand::seat_values;
use crate::search::select::{Choice, choose_edge};
use crate::search::{PassStats, Solver};
use crate::simd::{Portable, Simd};
use crate::tree::{Kind, NO_NODE, ROOT, RowMut};

impl<G: Game> RowData<G> {
    /// Writes what follows from the state at `node`: who moves, which edges, the result. Returns whether the network must
    /// be asked.
    #[inline(always)]
    pub(super) fn init_node(&mut self, b: usize, row: &mut RowMut<'_>, node: i32) -> NeedsNetwork {
        let state = *self.state(b, node);
        match self.game.turn(&state) {
            turn @ (Turn::Over | Turn::Chance) if turn == Turn::Over || self.game.is_horizon(&state) => {
                let mut returns = [0.0; MAX_PLAYERS];
                let returns = &mut returns[..self.sizes.num_players];
                self.game.returns(&state, returns);
                row.value_mut(node).copy_from_slice(returns);
                let scalars = &mut row.nodes[node as usize];
                scalars.set_kind(if turn == Turn::Over { Kind::Terminal } else { Kind::Horizon });
                if self.plan.params.solver == Solver::On {
                    scalars.set_bounds(returns[0], returns[0]);
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
                    path_keys(&self.game, row, &self.states[b * self.plan.nodes..], node, &mut self.path);
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

    /// Writes `node`'s key in the evaluation cache, which stays row `b`'s until its next one. Gives the hash, whose entry is fetched
    /// meanwhile; 0 where there is no cache.
    #[inline(always)]
    fn hash_of(&mut self, b: usize, node: i32) -> u64 {
        let Some(cache) = &self.cache else { return 0 };
        let key = &mut self.cache_keys[b % GROUP];
        write_key(&self.game, &self.states[b * self.plan.nodes + node as usize], key);
        let hash = hash(key);
        cache.prefetch(hash);
        hash
    }

    /// Writes what the evaluation cache knows of a new decision node, of whose key [`Self::hash_of`] made `hash`. The node stays
    /// [`Kind::Unevaluated`] until it is backed up, as one that the network is asked about does: whether another leaf of the pass may go
    /// through it must not depend on the cache.
    #[inline(always)]
    fn look_up(&mut self, b: usize, row: &mut RowMut<'_>, node: i32, hash: u64) -> NeedsNetwork {
        let Some(cache) = &self.cache else { return NeedsNetwork::Yes { hash } };
        let scalars = row.nodes[node as usize];
        let (player, num_edges) = (scalars.player, usize::from(scalars.num_edges));
        let mut values = [0.0; MAX_PLAYERS];
        let values = &mut values[..self.sizes.num_players];
        let priors = &mut row.edges_mut(node).prior[..num_edges];
        if !cache.get(hash, &self.cache_keys[b % GROUP], values, priors) {
            return NeedsNetwork::Yes { hash };
        }
        seat_values(values, player, row.value_mut(node));
        NeedsNetwork::Cached
    }

    /// Makes the child of `parent` through `edge`.
    #[inline(always)]
    fn add_child(&mut self, b: usize, row: &mut RowMut<'_>, parent: i32, edge: usize) -> (i32, NeedsNetwork) {
        let action = row.actions(parent)[edge];
        let child = row.add(parent, edge);
        let base = b * self.plan.nodes;
        let mut state = self.states[base + parent as usize];
        if self.sizes.uses_history {
            path_keys(&self.game, row, &self.states[base..], parent, &mut self.path);
        }
        let history = History { played: &self.histories[b], path: &self.path };
        self.game.step(&mut state, action, history);
        self.states[base + child as usize] = state;
        let needs = match self.init_node(b, row, child) {
            NeedsNetwork::Yes { .. } => NeedsNetwork::Yes { hash: self.hash_of(b, child) },
            known => known,
        };
        if self.sizes.max_chance_run > 0 && row.nodes[child as usize].kind() == Kind::Chance {
            // Counts where no node fits below it.
            row.inherit_value(child, parent);
        }
        (child, needs)
    }

    /// The edge that row `b`'s descent takes at `at`.
    #[inline(always)]
    fn choose<S: Simd>(&mut self, b: usize, row: &RowMut<'_>, at: i32) -> Choice {
        let Self { plan, roots, puct_table, scratch, keys, .. } = self;
        let draw = || {
            let key = keys[b].key(Purpose::SearchChance).with(u64::from(roots.run(b)));
            key.with(at as u64).stream().uniform()
        };
        if at != ROOT {
            return choose_edge::<S>(row, None, &plan.params, puct_table, at, scratch, draw);
        }
        let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
        let view = roots.view(b, num_edges, &plan.params);
        choose_edge::<S>(row, Some(&view), &plan.params, puct_table, ROOT, scratch, draw)
    }

    /// Takes row `b`'s descent from `node` as chosen.
    #[inline(always)]
    fn follow(
        &mut self,
        b: usize,
        row: &mut RowMut<'_>,
        node: i32,
        choice: Choice,
        out: &mut PassStats,
    ) -> Next {
        match choice {
            Choice::Edge(edge) => match row.child(node, edge) {
                NO_NODE if row.is_full() => self.end(b, row, node, NeedsNetwork::No, out),
                NO_NODE => {
                    row.prefetch_child(node);
                    prefetch(&self.states, b * self.plan.nodes + node as usize);
                    prefetch(&self.states, b * self.plan.nodes + *row.count as usize);
                    return Next::Expand(edge);
                }
                child => {
                    row.prefetch(child, usize::from(row.nodes[node as usize].num_edges));
                    return Next::Down(child);
                }
            },
            Choice::End => self.end(b, row, node, NeedsNetwork::No, out),
            Choice::Collision => {
                if node == ROOT && self.num_leaves[b] == 0 {
                    let hash = self.hash_of(b, ROOT);
                    let needs = self.look_up(b, row, ROOT, hash);
                    self.push_leaf(b, ROOT, needs, out);
                }
                self.stopped[b] = true;
            }
        }
        Next::Nothing
    }

    /// One leaf for each row of a group that has simulations left; its rows are `first` and on. All go down, then all add_child, then
    /// all look up what they grew: while one row's memory is fetched, the others' is worked on. Below a new chance node it goes on.
    #[inline(always)]
    fn descend_group<S: Simd>(&mut self, first: usize, group: &mut Group<'_>, out: &mut PassStats) {
        let mut descents = Few::<Descent>::default();
        for (place, row) in group.iter().flatten().enumerate() {
            let b = first + place;
            if self.roots.left(b) > 0 && !self.stopped[b] {
                row.prefetch(ROOT, ROOT_EDGES);
                self.roots.prefetch(b);
                descents.push(Descent { place, node: ROOT });
            }
        }
        while descents.count > 0 {
            let expansions = self.walk_down::<S>(first, group, &mut descents, out);
            let pending_evals = self.grow_all(first, group, &expansions, &mut descents, out);
            for &PendingEval { place, node, hash } in pending_evals.all() {
                if let Some(row) = &mut group[place] {
                    let needs = self.look_up(first + place, row, node, hash);
                    self.end(first + place, row, node, needs, out);
                }
            }
        }
    }

    /// Takes all descents to where they end or a node is to be made. At each level the edges of all are chosen before any is taken:
    /// what comes of an edge cannot be foreseen, and the choice of the others' edges need not wait for it.
    #[inline(always)]
    fn walk_down<S: Simd>(
        &mut self,
        first: usize,
        group: &mut Group<'_>,
        descents: &mut Few<Descent>,
        out: &mut PassStats,
    ) -> Few<PendingExpansion> {
        let mut expansions = Few::default();
        let mut choices = [Choice::End; GROUP];
        while descents.count > 0 {
            for (choice, &Descent { place, node }) in choices.iter_mut().zip(descents.all()) {
                if let Some(row) = &group[place] {
                    *choice = self.choose::<S>(first + place, row, node);
                }
            }
            for (&choice, i) in choices.iter().zip(0..std::mem::take(&mut descents.count)) {
                let Descent { place, node } = descents.items[i];
                let Some(row) = &mut group[place] else { continue };
                match self.follow(first + place, row, node, choice, out) {
                    Next::Down(child) => descents.push(Descent { place, node: child }),
                    Next::Expand(edge) => expansions.push(PendingExpansion { place, node, edge }),
                    Next::Nothing => {}
                }
            }
        }
        expansions
    }

    /// Makes all nodes that are to be made. Returns those that the evaluation cache is to be asked about; descents go on below chance
    /// nodes.
    #[inline(always)]
    fn grow_all(
        &mut self,
        first: usize,
        group: &mut Group<'_>,
        expansions: &Few<PendingExpansion>,
        descents: &mut Few<Descent>,
        out: &mut PassStats,
    ) -> Few<PendingEval> {
        let mut pending_evals = Few::default();
        for &PendingExpansion { place, node, edge } in expansions.all() {
            let Some(row) = &mut group[place] else { continue };
            match self.add_child(first + place, row, node, edge) {
                (node, NeedsNetwork::Yes { hash }) => pending_evals.push(PendingEval { place, node, hash }),
                (node, _) if row.nodes[node as usize].kind() == Kind::Chance => {
                    descents.push(Descent { place, node });
                }
                (node, known) => self.end(first + place, row, node, known, out),
            }
        }
        pending_evals
    }

    /// Row `b`'s descent ends at `node`: a simulation's leaf.
    #[inline(always)]
    fn end(&mut self, b: usize, row: &mut RowMut<'_>, node: i32, needs: NeedsNetwork, out: &mut PassStats) {
        self.roots.count(b);
        if self.plan.params.leaves > 1 {
            apply_virtual_loss(row, node);
        }
        self.push_leaf(b, node, needs, out);
        out.simulations += 1;
        let depth = u64::from(row.nodes[node as usize].depth - row.nodes[ROOT as usize].depth);
        out.depth_sum += depth;
        out.depth_max = out.depth_max.max(depth);
    }

    #[inline(always)]
    fn push_leaf(&mut self, b: usize, node: i32, needs: NeedsNetwork, out: &mut PassStats) {
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
    fn slot_for(&mut self, b: usize, node: i32, hash: u64, place: usize, out: &mut PassStats) -> i32 {
        if self.cache.is_some()
            && let FirstOrDuplicate::Duplicate(twin) = self.leaf_dedup.ask(hash, place)
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
}

impl<G: Game> CpuBackend<G> {
    /// Up to L leaves in every row within `reach` that has simulations left.
    #[inline(always)]
    fn select_rows<S: Simd>(&mut self, reach: RowBudget) -> PassStats {
        let Self { tree, rows, .. } = self;
        let mut out = PassStats::default();
        rows.leaf_dedup.clear();
        rows.caches = Caches::Warm;
        rows.num_leaves.fill(0);
        let (all, leaves) = (rows.plan.rows, rows.plan.params.leaves);
        let most = reach.rows.min(all);
        let mut first = reach.first;
        while out.visited < most {
            // Whatever the leaves turn out to be, they are not too many.
            let wanted = reach.evaluations.saturating_sub(out.evaluations) / leaves;
            let wanted = if out.visited == 0 { wanted.max(1) } else { wanted };
            let count = GROUP.min(wanted).min(most - out.visited).min(all - first);
            if count == 0 {
                break;
            }
            let mut group: Group<'_> = [const { None }; GROUP];
            group.iter_mut().zip(tree.rows_from(first).take(count)).for_each(|(to, row)| *to = Some(row));
            for _ in 0..leaves {
                rows.descend_group::<S>(first, &mut group, &mut out);
            }
            out.visited += count;
            first = if first + count < all { first + count } else { 0 };
        }
        rows.stopped.fill(false);
        out
    }

    per_isa!(pub(super) fn select_fast / select_avx512 / select_avx2 = select_rows::<crate::simd::Avx2 | Portable>(&mut self, reach: RowBudget) -> PassStats);
}

/// Rows that go down together: as many cache misses in virtual_loss.
pub(super) const GROUP: usize = 16;

/// Edges that are fetched of a root before it is known how many it has.
const ROOT_EDGES: usize = 64;

/// The rows of a group.
pub(super) type Group<'a> = [Option<RowMut<'a>>; GROUP];

/// What comes after a node that a descent has passed.
enum Next {
    /// This child.
    Down(i32),
    /// A child is to be made behind this edge.
    Expand(usize),
    /// Nothing: the descent has ended.
    Nothing,
}

/// A row on its way, and where it is.
#[derive(Clone, Copy, Default)]
pub(super) struct Descent {
    pub place: usize,
    pub node: i32,
}

/// A row whose next node is to be made.
#[derive(Clone, Copy, Default)]
struct PendingExpansion {
    place: usize,
    node: i32,
    edge: usize,
}

/// A row with a new node that the evaluation cache may know.
#[derive(Clone, Copy, Default)]
struct PendingEval {
    place: usize,
    node: i32,
    hash: u64,
}

/// Some rows of a group.
#[derive(Default)]
pub(super) struct Few<T> {
    pub items: [T; GROUP],
    pub count: usize,
}

impl<T> Few<T> {
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        self.items[self.count] = item;
        self.count += 1;
    }

    #[inline(always)]
    fn all(&self) -> &[T] {
        &self.items[..self.count]
    }
}

/// Whether a leaf's value must come from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeedsNetwork {
    /// Yes; `hash` is that of its key in the evaluation cache.
    Yes { hash: u64 },
    /// No, the cache had it.
    Cached,
    /// No, its value is known.
    No,
}

/// The key of a state in the evaluation cache.
#[inline(always)]
pub(super) fn write_key<G: Game>(game: &G, state: &G::State, out: &mut [u64]) {
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
