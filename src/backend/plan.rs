//! Which arrays a backend makes, and how large they are.

use crate::config::SearchEngine;
use crate::game::Sizes;
use crate::search::root::Roots;
use crate::search::{SearchParams, reference};
use crate::tree::TreeShape;

/// Bytes that a backend keeps for each leaf of a pass.
const LEAF_BYTES: usize = 16;

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
            + self.params.leaves * LEAF_BYTES
            + if sizes.uses_history { 8 * sizes.max_plies } else { 0 }
    }

    pub(super) fn shape(&self, sizes: &Sizes) -> TreeShape {
        TreeShape {
            rows: self.rows,
            nodes: self.nodes,
            edges: sizes.tree_edges(),
            players: sizes.num_players,
        }
    }
}
