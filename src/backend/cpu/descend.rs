//! Selection over all rows: descents, new nodes, and which leaves need the network.
//!
//! The rows of a group descend together, so that the cache misses of one row overlap with the work on the others.

use super::cpu_backend::CpuBackend;
use super::nodes::{Filled, FilledNode, GROUP, NeedsNetwork, NewAt, NewNode, NewNodes, NodeData, next_group};
use super::row_data::{Caches, RowData};
use crate::backend::RowBudget;
use crate::backend::leaf_dedup::{FirstOrDuplicate, Leaf};
use crate::game::MAX_PLAYERS;
use crate::isa::{Isa, per_isa};
use crate::rng::Purpose;
use crate::search::PassStats;
use crate::search::backup::apply_virtual_loss;
use crate::search::eval_cache::hash;
use crate::search::expand::seat_values;
use crate::search::select::{DescentStep, chance_number, choose_edge};
use crate::simd::{Portable, Simd};
use crate::tree::{NO_NODE, NodeKind, ROOT, RowMut};
use arrayvec::ArrayVec;

impl RowData {
    /// Writes the root's key of the evaluation cache to row `b`'s key buffer. Returns the key's hash, 0 where there is no cache.
    fn hash_of_root(&mut self, b: usize) -> u64 {
        let index = self.nodes.index(b, ROOT);
        let NodeData { cache: Some(_), states, cache_keys, .. } = &mut self.nodes else { return 0 };
        let key = &mut cache_keys[b % GROUP];
        self.game.write_key(states, index, key);
        hash(key)
    }

    /// Writes the evaluation cache's values and priors to a new decision node whose key has the hash `hash` of [`Self::hash_of`]. The
    /// node stays [`NodeKind::Unevaluated`] until backup, like a node that needs the network: whether another leaf of the pass may descend
    /// through it must not depend on the cache.
    #[inline(always)]
    fn look_up(&mut self, b: usize, row: &mut RowMut<'_>, node: i32, hash: u64) -> NeedsNetwork {
        let Some(cache) = &self.nodes.cache else { return NeedsNetwork::Yes { hash } };
        let scalars = row.nodes[node as usize];
        let (player, num_edges) = (scalars.player, usize::from(scalars.num_edges));
        let mut values = [0.0; MAX_PLAYERS];
        let values = &mut values[..self.nodes.sizes.num_players];
        let priors = &mut row.edges_mut(node).prior[..num_edges];
        if !cache.get(hash, &self.nodes.cache_keys[b % GROUP], values, priors) {
            return NeedsNetwork::Yes { hash };
        }
        seat_values(values, player, self.num_seated(b, node), row.value_mut(node));
        NeedsNetwork::Cached
    }

    /// Chooses the edge that row `b`'s descent takes at node `at`.
    #[inline(always)]
    fn choose<S: Simd>(&mut self, b: usize, row: &RowMut<'_>, at: i32) -> DescentStep {
        let Self { plan, roots, puct_table, scratch, keys, .. } = self;
        let draw = |visits| chance_number(keys[b].key(Purpose::SearchChance), at, visits);
        if at != ROOT {
            return choose_edge::<S>(row, None, &plan.params, puct_table, at, scratch, draw);
        }
        let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
        let view = roots.view(b, num_edges, &plan.params);
        choose_edge::<S>(row, Some(&view), &plan.params, puct_table, ROOT, scratch, draw)
    }

    /// Takes row `b`'s descent one step from `node` by `choice`.
    #[inline(always)]
    fn take_step(
        &mut self,
        b: usize,
        row: &mut RowMut<'_>,
        node: i32,
        choice: DescentStep,
        out: &mut PassStats,
    ) -> Next {
        match choice {
            DescentStep::Edge(edge) => match row.child(node, edge) {
                NO_NODE if row.is_full() => self.end(b, row, node, NeedsNetwork::No, out),
                NO_NODE => {
                    row.prefetch_child(node);
                    self.nodes.states.prefetch(self.nodes.index(b, node));
                    self.nodes.states.prefetch(b * self.plan.nodes + *row.count as usize);
                    return Next::Expand(edge);
                }
                child => {
                    row.prefetch(child, usize::from(row.nodes[node as usize].num_edges));
                    return Next::Down(child);
                }
            },
            DescentStep::End => self.end(b, row, node, NeedsNetwork::No, out),
            DescentStep::Collision => {
                if node == ROOT && self.num_leaves[b] == 0 {
                    let hash = self.hash_of_root(b);
                    let needs = self.look_up(b, row, ROOT, hash);
                    self.push_leaf(b, ROOT, needs, out);
                }
                self.stopped[b] = true;
            }
        }
        Next::Nothing
    }

    /// Selects one leaf in each row of a group that has simulations left; the group's first row is row `first`. All rows descend, then all
    /// add their new nodes, then all look these up in the evaluation cache, so that the memory of one row is fetched while the others are
    /// worked on. A descent continues below a new chance node.
    #[inline(always)]
    fn descend_group<S: Simd>(
        &mut self,
        isa: Isa,
        first: usize,
        group: &mut [RowMut<'_>],
        out: &mut PassStats,
    ) {
        let mut descents = Descents::new();
        for (in_group, row) in group.iter().enumerate() {
            let b = first + in_group;
            if self.roots.simulations_left(b) > 0 && !self.stopped[b] {
                row.prefetch(ROOT, ROOT_EDGES);
                self.roots.prefetch(b);
                descents.push(Descent { in_group, node: ROOT });
            }
        }
        while !descents.is_empty() {
            let mut expansions = Expansions::new();
            self.descend_all::<S>(first, group, &mut descents, &mut expansions, out);
            self.add_children(isa, first, group, &expansions, &mut descents, out);
        }
    }

    /// Takes all descents to their leaves or to edges without a child, which become `expansions`. At each level the edges of all descents
    /// are chosen before any is taken: the branch after a choice is unpredictable, and this order keeps the choices of the other rows
    /// independent of it.
    #[inline(always)]
    fn descend_all<S: Simd>(
        &mut self,
        first: usize,
        group: &mut [RowMut<'_>],
        descents: &mut Descents,
        expansions: &mut Expansions,
        out: &mut PassStats,
    ) {
        let mut choices = [DescentStep::End; GROUP];
        while !descents.is_empty() {
            for (choice, &Descent { in_group, node }) in choices.iter_mut().zip(descents.iter()) {
                *choice = self.choose::<S>(first + in_group, &group[in_group], node);
            }
            // The descents that continue move to the front, whose entries have been read before.
            let mut left = 0;
            for (&choice, i) in choices.iter().zip(0..descents.len()) {
                let Descent { in_group, node } = descents[i];
                let row = &mut group[in_group];
                match self.take_step(first + in_group, row, node, choice, out) {
                    Next::Down(child) => {
                        descents[left] = Descent { in_group, node: child };
                        left += 1;
                    }
                    Next::Expand(edge) => {
                        expansions.push(NewNode { in_group, at: NewAt::Below { parent: node, edge } });
                    }
                    Next::Nothing => {}
                }
            }
            descents.truncate(left);
        }
    }

    /// Adds the nodes of `expansions`, then looks them up in the evaluation cache; descents continue below chance nodes.
    #[inline(always)]
    fn add_children(
        &mut self,
        isa: Isa,
        first: usize,
        group: &mut [RowMut<'_>],
        expansions: &[NewNode],
        descents: &mut Descents,
        out: &mut PassStats,
    ) {
        let mut filled = Filled::new();
        let new = NewNodes { first, group, nodes: expansions, filled: &mut filled };
        self.game.fill_nodes(isa, &mut self.nodes, new);
        for &FilledNode { in_group, node, needs } in &filled {
            let (b, row) = (first + in_group, &mut group[in_group]);
            let needs = match needs {
                NeedsNetwork::Yes { hash } => self.look_up(b, row, node, hash),
                _ if row.nodes[node as usize].kind() == NodeKind::Chance => {
                    descents.push(Descent { in_group, node });
                    continue;
                }
                needs => needs,
            };
            self.end(b, row, node, needs, out);
        }
    }

    /// Ends row `b`'s descent at `node`, the leaf of a simulation.
    #[inline(always)]
    fn end(&mut self, b: usize, row: &mut RowMut<'_>, node: i32, needs: NeedsNetwork, out: &mut PassStats) {
        self.roots.start_simulation(b);
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
        let index = b * self.plan.params.leaves as usize + self.num_leaves[b] as usize;
        let (slot, hash) = match needs {
            NeedsNetwork::Yes { hash } => (self.slot_for(b, node, hash, index, out), hash),
            NeedsNetwork::Cached => {
                out.cached += 1;
                (-1, 0)
            }
            NeedsNetwork::No => (-1, 0),
        };
        self.leaves[index] = Leaf { node, slot, hash };
        out.rows += usize::from(self.num_leaves[b] == 0);
        self.num_leaves[b] += 1;
        out.leaves += 1;
    }

    /// The index among the M for a leaf: that of an earlier leaf of the pass with the same key, or a new one.
    #[inline(always)]
    fn slot_for(&mut self, b: usize, node: i32, hash: u64, index: usize, out: &mut PassStats) -> i32 {
        if self.nodes.cache.is_some()
            && let FirstOrDuplicate::Duplicate(earlier) = self.leaf_dedup.insert(hash, index)
        {
            let other = self.leaves[earlier];
            let other =
                (self.nodes.index(earlier / self.plan.params.leaves as usize, other.node), other.slot);
            if self.game.have_same_key(&self.nodes.states, [other.0, self.nodes.index(b, node)]) {
                out.cached += 1;
                return other.1;
            }
        }
        out.evaluations += 1;
        out.evaluations as i32 - 1
    }
}

impl CpuBackend {
    /// Selects up to L leaves in every row of `budget` that has simulations left.
    #[inline(always)]
    fn select_rows<S: Simd>(&mut self, budget: RowBudget) -> PassStats {
        let Self { tree, rows, isa, .. } = self;
        let mut out = PassStats::default();
        rows.leaf_dedup.clear();
        rows.caches = Caches::Warm;
        rows.num_leaves.fill(0);
        let (all, leaves) = (rows.plan.rows, budget.leaves.min(rows.plan.params.leaves as usize));
        let row_limit = budget.rows.min(all);
        let mut first = budget.first;
        while out.visited < row_limit {
            // The number of rows that keeps to the budget even if every leaf needs the network.
            let wanted = budget.evaluations.saturating_sub(out.evaluations) / leaves;
            let wanted = if out.visited == 0 { wanted.max(1) } else { wanted };
            let count = GROUP.min(wanted).min(row_limit - out.visited).min(all - first);
            if count == 0 {
                break;
            }
            let mut group = next_group(&mut tree.rows_from(first), count);
            for _ in 0..leaves {
                rows.descend_group::<S>(*isa, first, &mut group, &mut out);
            }
            out.visited += count;
            first = if first + count < all { first + count } else { 0 };
        }
        rows.stopped.fill(false);
        out
    }

    per_isa!(pub(super) fn select_fast / select_avx512 / select_avx2 = select_rows::<crate::simd::RowSimd | Portable>(&mut self, budget: RowBudget) -> PassStats);
}

/// Edges of a root that are prefetched before its number of edges is read.
const ROOT_EDGES: usize = 64;

/// The state of a descent after one step.
enum Next {
    /// It continues at this child.
    Down(i32),
    /// It continues at the child of this edge, which is not in the tree yet.
    Expand(usize),
    /// It has ended.
    Nothing,
}

/// A descent in progress: its row's index in the group, and the node that it has reached.
#[derive(Clone, Copy)]
pub(super) struct Descent {
    pub in_group: usize,
    pub node: i32,
}

/// At most one descent for each row of a group.
pub(super) type Descents = ArrayVec<Descent, GROUP>;

/// At most one node to add in each row of a group.
type Expansions = ArrayVec<NewNode, GROUP>;
