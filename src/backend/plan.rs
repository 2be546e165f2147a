//! The arrays of a backend: how many, and how large.

use super::leaf_dedup::Leaf;
use crate::game::Sizes;
use crate::search::SearchParams;
use crate::search::root::Roots;
use crate::tree::TreeShape;

/// Whether the played subtree is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The next ply starts with it.
    Keep,
    /// Every ply starts with a new tree.
    Drop,
}

/// The arrays of a backend.
#[derive(Clone, Copy, Debug)]
pub struct BackendPlan {
    /// B.
    pub rows: usize,
    /// T.
    pub nodes: usize,
    /// The search's parameters.
    pub params: SearchParams,
    /// Whether the played subtree is kept.
    pub reuse: Reuse,
}

impl BackendPlan {
    /// The least T that one ply of `simulations` needs.
    pub fn nodes_for(simulations: u32, sizes: &Sizes) -> usize {
        1 + simulations as usize * (1 + sizes.max_chance_run)
    }

    /// Bytes of one row on the CPU, its states included.
    pub fn row_bytes(&self, sizes: &Sizes, state_size: usize) -> usize {
        let shape = self.shape(sizes);
        shape.row_bytes()
            + Roots::row_bytes(shape)
            + self.nodes * state_size
            + self.params.leaves as usize * size_of::<Leaf>()
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
