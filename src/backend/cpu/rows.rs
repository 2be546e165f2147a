//! What follows a pass's forward in all rows, and what keeps a row's tree from ply to ply.

use super::descend::write_key;
use super::{CpuBackend, edge_holds};
use crate::backend::plan::BackendPlan;
use crate::game::Game;
use crate::isa::per_isa;
use crate::lanes::{Portable, Simd};
use crate::search::backup::{Flight, backup};
use crate::search::expand::expand;
use crate::search::reuse::keep_subtree;
use crate::tree::{Kind, NO_NODE, ROOT};

impl<G: Game> CpuBackend<G> {
    #[inline(always)]
    fn expand_rows<S: Simd>(&mut self, logits: &[f32], values: &[f32]) {
        let Self { tree, rows, .. } = self;
        let (a, p) = (rows.sizes.num_actions, rows.sizes.num_players);
        for b in 0..rows.plan.rows {
            let first = b * rows.plan.params.leaves;
            let mut row = tree.row_mut(b);
            for place in first..first + rows.num_leaves[b] as usize {
                let leaf = rows.leaves[place];
                if leaf.slot < 0 {
                    continue;
                }
                let m = leaf.slot as usize;
                let values = &values[m * p..(m + 1) * p];
                expand::<S>(&mut row, leaf.node, &logits[m * a..(m + 1) * a], values);
                if let Some(cache) = &rows.cache {
                    let num_edges = usize::from(row.nodes[leaf.node as usize].num_edges);
                    let priors = &row.edges(leaf.node).prior[..num_edges];
                    let state = &rows.states[b * rows.plan.nodes + leaf.node as usize];
                    write_key(&rows.game, state, &mut rows.cache_key);
                    cache.put(leaf.hash, &rows.cache_key, values, priors);
                }
            }
        }
    }

    #[inline(always)]
    fn backup_rows(&mut self) {
        let Self { tree, rows, .. } = self;
        let flight = if rows.plan.params.leaves > 1 { Flight::Counted } else { Flight::Alone };
        for b in 0..rows.plan.rows {
            let first = b * rows.plan.params.leaves;
            let mut row = tree.row_mut(b);
            let leaves = &rows.leaves[first..first + rows.num_leaves[b] as usize];
            for leaf in leaves {
                let node = &mut row.nodes[leaf.node as usize];
                if node.kind() == Kind::New {
                    node.set_kind(Kind::Decision); // the evaluation cache had it
                }
            }
            for leaf in leaves {
                // A new root's own evaluation is no simulation: nothing was counted when it was selected.
                let is_new_root = row.nodes[leaf.node as usize].visits == 0;
                let flight = if is_new_root { Flight::Alone } else { flight };
                backup(&mut row, leaf.node, flight, rows.roots.value_sum_mut(b));
                if row.nodes[ROOT as usize].is_proven() {
                    rows.roots.finish(b);
                }
            }
        }
    }

    /// Makes the child behind `action` the root of row `b`. False, with nothing kept, where there is none worth keeping.
    pub(super) fn keep(&mut self, b: usize, action: u16) -> bool {
        let mut row = self.tree.row_mut(b);
        let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
        let Some(edge) = row.actions(ROOT)[..num_edges].iter().position(|&a| a == action) else {
            return false;
        };
        let child = row.edges(ROOT).child[edge];
        if child == NO_NODE || row.nodes[child as usize].kind() == Kind::New {
            return false;
        }
        let ply = BackendPlan::nodes_for(self.rows.plan.params.simulations, &self.rows.sizes) - 1;
        let limit = self.rows.plan.nodes.saturating_sub(ply);
        if !keep_subtree(&mut row, edge, limit, &mut self.reuse) {
            return false;
        }
        self.move_states(b);
        self.proof_stands(b)
    }

    /// Moves the states to where the last compaction put their nodes.
    pub(super) fn move_states(&mut self, b: usize) {
        let nodes = self.rows.plan.nodes;
        let states = &mut self.rows.states[b * nodes..(b + 1) * nodes];
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
        !root.is_proven()
            || root.kind() != Kind::Decision
            || root.lower <= -1.0
            || (0..num_edges).any(|edge| edge_holds(&row, ROOT, edge))
    }

    per_isa!(pub(super) fn expand_fast / expand_avx512 / expand_avx2 = expand_rows::<crate::lanes::Avx2 | Portable>(&mut self, logits: &[f32], values: &[f32]));
    per_isa!(pub(super) fn backup_fast / backup_avx512 / backup_avx2 = backup_rows(&mut self));
}
