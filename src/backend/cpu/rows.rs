//! Expansion and backup over all rows, and keeping a row's tree from ply to ply.

use super::cpu_backend::CpuBackend;
use super::descend::{Descent, Descents};
use super::nodes::{GROUP, NodeData, next_group};
use super::row_data::{Caches, RowData};
use crate::backend::plan::BackendPlan;
use crate::isa::per_isa;
use crate::search::backup::{VirtualLoss, backup};
use crate::search::expand::expand;
use crate::search::reuse::keep_subtree;
use crate::simd::{Portable, Simd};
use crate::tree::{NO_NODE, NodeKind, ROOT, RowMut};

/// How many leaves ahead of the current one are prefetched: the network's forward has evicted them from the caches.
const AHEAD: usize = 8;

impl RowData {
    /// Prefetches the data that the expansion of row `b`'s leaves reads and writes.
    #[inline(always)]
    fn prefetch_leaves(&self, b: usize, row: &RowMut<'_>) {
        for leaf in self.leaves_of(b).iter().filter(|leaf| leaf.slot >= 0) {
            row.prefetch_new(leaf.node);
            row.prefetch_actions(leaf.node);
            self.nodes.states.prefetch(self.nodes.index(b, leaf.node));
            if let Some(cache) = &self.nodes.cache {
                cache.prefetch(leaf.hash);
            }
        }
    }

    /// Number of players of the game at node `node` of row `b`.
    #[inline(always)]
    pub(super) fn num_seated(&self, b: usize, node: i32) -> usize {
        match self.nodes.sizes.num_players {
            1 => 1,
            seats => self.game.num_seated(&self.nodes.states, self.nodes.index(b, node), seats),
        }
    }

    /// Expands row `b`'s leaves by the network's outputs.
    #[inline(always)]
    fn expand_row<S: Simd>(&mut self, b: usize, row: &mut RowMut<'_>, logits: &[f32], values: &[f32]) {
        let (a, p) = (self.nodes.sizes.num_actions, self.nodes.sizes.num_players);
        let first = b * self.plan.params.leaves as usize;
        for leaf in &self.leaves[first..first + self.num_leaves[b] as usize] {
            if leaf.slot < 0 {
                continue;
            }
            let m = leaf.slot as usize;
            let values = &values[m * p..(m + 1) * p];
            let seated = self.num_seated(b, leaf.node);
            expand::<S>(row, leaf.node, seated, &logits[m * a..(m + 1) * a], values);
            if let NodeData { cache: Some(cache), states, cache_keys, nodes, .. } = &mut self.nodes {
                let num_edges = usize::from(row.nodes[leaf.node as usize].num_edges);
                let priors = &row.edges(leaf.node).prior[..num_edges];
                let key = &mut cache_keys[b % GROUP];
                self.game.write_key(states, b * *nodes + leaf.node as usize, key);
                cache.insert(leaf.hash, key, values, priors);
            }
        }
    }

    /// Prefetches the paths from the leaves of a group of rows to their roots, level by level: a node must have arrived before its parent is
    /// known, so the paths of all rows go up together.
    #[inline(always)]
    fn prefetch_paths(&self, first: usize, group: &[RowMut<'_>]) {
        for l in 0..self.plan.params.leaves as usize {
            let mut paths = Descents::new();
            for in_group in 0..group.len() {
                if let Some(leaf) = self.leaves_of(first + in_group).get(l) {
                    paths.push(Descent { in_group, node: leaf.node });
                }
            }
            while !paths.is_empty() {
                // The paths that continue move to the front.
                let mut left = 0;
                for i in 0..paths.len() {
                    let Descent { in_group, node } = paths[i];
                    let parent = group[in_group].prefetch_parent(node);
                    if parent != NO_NODE {
                        paths[left] = Descent { in_group, node: parent };
                        left += 1;
                    }
                }
                paths.truncate(left);
            }
        }
    }

    /// Backs up the values of row `b`'s leaves.
    #[inline(always)]
    fn backup_row(&mut self, b: usize, row: &mut RowMut<'_>) {
        let virtual_loss = if self.plan.params.leaves > 1 { VirtualLoss::Applied } else { VirtualLoss::None };
        let first = b * self.plan.params.leaves as usize;
        let leaves = &self.leaves[first..first + self.num_leaves[b] as usize];
        for leaf in leaves {
            let node = &mut row.nodes[leaf.node as usize];
            if node.kind() == NodeKind::Unevaluated {
                node.set_kind(NodeKind::Decision); // its evaluation came from the cache
            }
        }
        for leaf in leaves {
            // The evaluation of a new root is not a simulation: its selection applied no virtual loss.
            let is_new_root = row.nodes[leaf.node as usize].visits == 0;
            let virtual_loss = if is_new_root { VirtualLoss::None } else { virtual_loss };
            backup(row, leaf.node, virtual_loss, self.roots.value_sum_mut(b));
            if row.nodes[ROOT as usize].is_proven() {
                self.roots.end_ply(b);
            }
        }
    }
}

impl CpuBackend {
    #[inline(always)]
    fn expand_rows<S: Simd>(&mut self, logits: &[f32], values: &[f32]) {
        let Self { tree, rows, .. } = self;
        let ahead = (AHEAD / rows.plan.params.leaves as usize).max(1);
        for b in 0..rows.plan.rows + ahead {
            if b < rows.plan.rows && rows.caches == Caches::Cold {
                rows.prefetch_leaves(b, &tree.row_mut(b));
            }
            if let Some(b) = b.checked_sub(ahead) {
                rows.expand_row::<S>(b, &mut tree.row_mut(b), logits, values);
            }
        }
    }

    #[inline(always)]
    fn backup_rows(&mut self) {
        let Self { tree, rows, .. } = self;
        if rows.caches == Caches::Cold {
            let mut trees = tree.rows_mut();
            for first in (0..rows.plan.rows).step_by(GROUP) {
                let group = next_group(&mut trees, GROUP);
                rows.prefetch_paths(first, &group);
            }
        }
        for (b, mut row) in tree.rows_mut().enumerate() {
            rows.backup_row(b, &mut row);
        }
    }

    /// Makes the child of `action` the root of row `b`. Returns false if there is no such child, if it was never evaluated, or if the node
    /// that proves its value was trimmed; the caller must then start a new tree.
    pub(super) fn keep(&mut self, b: usize, action: u16) -> bool {
        let mut row = self.tree.row_mut(b);
        let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
        let Some(edge) = row.actions(ROOT)[..num_edges].iter().position(|&a| a == action) else {
            return false;
        };
        let child = row.edges(ROOT).child[edge];
        if child == NO_NODE || row.nodes[child as usize].kind() == NodeKind::Unevaluated {
            return false;
        }
        let ply = BackendPlan::nodes_for(self.rows.plan.params.simulations, &self.rows.nodes.sizes) - 1;
        let limit = self.rows.plan.nodes.saturating_sub(ply);
        if !keep_subtree(&mut row, edge, limit, &mut self.reuse) {
            return false;
        }
        self.move_states(b);
        self.tree.row_mut(b).restore_root_bound()
    }

    /// Moves the states after their nodes, which the last compaction moved.
    pub(super) fn move_states(&mut self, b: usize) {
        let first = self.rows.nodes.index(b, ROOT);
        self.rows.game.move_states(&mut self.rows.nodes.states, first, self.reuse.targets());
    }

    per_isa!(pub(super) fn expand_fast / expand_avx512 / expand_avx2 = expand_rows::<crate::simd::RowSimd | Portable>(&mut self, logits: &[f32], values: &[f32]));
    per_isa!(pub(super) fn backup_fast / backup_avx512 / backup_avx2 = backup_rows(&mut self));
}
