//! Selection over all rows: descents, new nodes, and which of them the network must be asked about.

use super::super::Selected;
use super::super::twins::Asked;
use super::{CpuBackend, Leaf, RowData};
use crate::game::{Game, History, Turn};
use crate::isa::{per_isa, prefetch};
use crate::lanes::{Portable, Simd};
use crate::rng::Purpose;
use crate::search::Solver;
use crate::search::backup::{MAX_PLAYERS, take_off};
use crate::search::eval_cache::hash;
use crate::search::expand::seat_values;
use crate::search::select::{Choice, Descent, Level, RootView, choose_edge, descend};
use crate::tree::{Kind, NO_NODE, ROOT, RowMut};

impl<G: Game> RowData<G> {
    /// Writes what follows from the state at `node`: who moves, which edges, the result. Returns whether the network must
    /// be asked.
    #[inline(always)]
    pub(super) fn settle(&mut self, b: usize, row: &mut RowMut<'_>, node: i32) -> NeedsNetwork {
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

    /// Writes what the evaluation cache knows of a new decision node. The node stays [`Kind::New`] until it is backed up, as one
    /// that the network is asked about does: whether another leaf of the pass may go through it must not depend on the cache.
    #[inline(always)]
    fn look_up(&mut self, b: usize, row: &mut RowMut<'_>, node: i32) -> NeedsNetwork {
        let Some(cache) = &self.cache else { return NeedsNetwork::Yes { hash: 0 } };
        let state = &self.states[b * self.plan.nodes + node as usize];
        write_key(&self.game, state, &mut self.cache_key);
        let hash = hash(&self.cache_key);
        let scalars = row.nodes[node as usize];
        let (player, num_edges) = (scalars.player, usize::from(scalars.num_edges));
        let mut values = [0.0; MAX_PLAYERS];
        let values = &mut values[..self.sizes.num_players];
        let priors = &mut row.edges_mut(node).prior[..num_edges];
        if !cache.get(hash, &self.cache_key, values, priors) {
            return NeedsNetwork::Yes { hash };
        }
        seat_values(values, player, row.value_mut(node));
        NeedsNetwork::Cached
    }

    /// Makes the child of `parent` through `edge`.
    #[inline(always)]
    fn grow(&mut self, b: usize, row: &mut RowMut<'_>, parent: i32, edge: usize) -> (i32, NeedsNetwork) {
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
        let needs = match self.settle(b, row, child) {
            NeedsNetwork::Yes { .. } => self.look_up(b, row, child),
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
        let view = if at == ROOT {
            let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
            self.roots.view(b, num_edges, &self.plan.params)
        } else {
            RootView::ELSEWHERE
        };
        let draw = |node: i32| {
            let key = self.keys[b].key(Purpose::SearchChance).with(u64::from(self.roots.run(b)));
            key.with(node as u64).stream().uniform()
        };
        choose_edge::<S>(row, &view, &self.plan.params, &self.rates, at, &mut self.scratch, draw)
    }

    /// Takes row `b`'s descent from `at` as chosen.
    #[inline(always)]
    fn follow(&self, b: usize, row: &RowMut<'_>, at: i32, choice: Choice) -> Progress {
        match descend(row, at, choice) {
            Level::Down(child) => {
                row.prefetch(child);
                Progress::Next(Step::Down(child))
            }
            Level::Stop(Descent::Leaf { node, edge }) => {
                row.prefetch_child(node);
                let base = b * self.plan.nodes;
                prefetch(&self.states, base + node as usize);
                prefetch(&self.states, base + *row.count as usize);
                Progress::Next(Step::Grow { node, edge })
            }
            Level::Stop(Descent::Collision { node: ROOT }) => Progress::NewRoot,
            Level::Stop(Descent::Collision { .. }) => Progress::Collision,
            Level::Stop(Descent::End { node }) => Progress::Leaf(node, NeedsNetwork::No),
        }
    }

    /// One leaf for each row of a group that has simulations left; its rows are `first` and on. At each level the edges of all
    /// are chosen before any is taken: what comes of an edge cannot be foreseen, and the choice of the others' edges need not
    /// wait for it.
    #[inline(always)]
    fn descend_group<S: Simd>(
        &mut self,
        first: usize,
        group: &mut [Option<RowMut<'_>>; GROUP],
        out: &mut Selected,
    ) {
        let mut active = [(0usize, Step::Down(ROOT)); GROUP];
        let mut choices = [Choice::Edge(0); GROUP];
        let mut count = 0;
        for b in first..(first + GROUP).min(self.plan.rows) {
            if self.roots.left(b) > 0 && !self.stopped[b] {
                active[count] = (b, Step::Down(ROOT));
                count += 1;
            }
        }
        while count > 0 {
            for (choice, &(b, step)) in choices.iter_mut().zip(&active[..count]) {
                if let (Some(row), Step::Down(at)) = (&group[b - first], step) {
                    *choice = self.choose::<S>(b, row, at);
                }
            }
            let mut kept = 0;
            for i in 0..count {
                let (b, step) = active[i];
                let Some(row) = &mut group[b - first] else { continue };
                if let Some(next) = self.take(b, row, step, choices[i], out) {
                    active[kept] = (b, next);
                    kept += 1;
                }
            }
            count = kept;
        }
    }

    /// One step of one row; None where its descent has ended. Chance nodes are passed on the way.
    #[inline(always)]
    fn take(
        &mut self,
        b: usize,
        row: &mut RowMut<'_>,
        step: Step,
        choice: Choice,
        out: &mut Selected,
    ) -> Option<Step> {
        let progress = match step {
            Step::Down(at) => self.follow(b, row, at, choice),
            Step::Grow { node, edge } => {
                let (child, needs) = self.grow(b, row, node, edge);
                match row.nodes[child as usize].kind() {
                    Kind::Chance => Progress::Next(Step::Down(child)),
                    _ => Progress::Leaf(child, needs),
                }
            }
        };
        match progress {
            Progress::Next(step) => return Some(step),
            Progress::NewRoot => {
                if self.num_leaves[b] == 0 {
                    let needs = self.look_up(b, row, ROOT);
                    self.push_leaf(b, ROOT, needs, out);
                }
                self.stopped[b] = true;
            }
            Progress::Collision => self.stopped[b] = true,
            Progress::Leaf(node, needs) => {
                self.roots.count(b);
                if self.plan.params.leaves > 1 {
                    take_off(row, node);
                }
                self.push_leaf(b, node, needs, out);
                out.simulations += 1;
                let depth = u64::from(row.nodes[node as usize].depth - row.nodes[ROOT as usize].depth);
                out.depth_sum += depth;
                out.depth_max = out.depth_max.max(depth);
            }
        }
        None
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
}

impl<G: Game> CpuBackend<G> {
    /// Up to L leaves in every row that has simulations left. Rows go down in groups, level by level: while one row's next
    /// node comes from memory, the others' levels are worked on.
    #[inline(always)]
    fn select_rows<S: Simd>(&mut self) -> Selected {
        let Self { tree, rows, .. } = self;
        let mut out = Selected::default();
        rows.twins.clear();
        rows.num_leaves.fill(0);
        let mut trees = tree.rows_mut();
        for first in (0..rows.plan.rows).step_by(GROUP) {
            let mut group = [const { None }; GROUP];
            group.iter_mut().for_each(|row| *row = trees.next());
            for _ in 0..rows.plan.params.leaves {
                rows.descend_group::<S>(first, &mut group, &mut out);
            }
        }
        rows.stopped.fill(false);
        out
    }

    per_isa!(pub(super) fn select_fast / select_avx512 / select_avx2 = select_rows::<crate::lanes::Avx2 | Portable>(&mut self) -> Selected);
}

/// Rows that go down together: as many cache misses in flight.
const GROUP: usize = 16;

/// What a descent does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Choose an edge of this node.
    Down(i32),
    /// Make the child behind this edge.
    Grow { node: i32, edge: usize },
}

/// What one step of a descent came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// This is next.
    Next(Step),
    /// Here is the leaf.
    Leaf(i32, NeedsNetwork),
    /// The leaf is another simulation's.
    Collision,
    /// The root has no evaluation yet.
    NewRoot,
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
