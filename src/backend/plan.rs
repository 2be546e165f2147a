//! The arrays of a backend: how many, and how large.

use super::leaf_dedup::Leaf;
use crate::config::Algorithm;
use crate::game::{MAX_TURN_POSITIONS, Sizes, WholeTurns};
use crate::search::SearchParams;
use crate::search::root::Roots;
use crate::tree::TreeShape;

/// Afterstates after which a pass takes no further row: larger batches are no faster, and leave the processor's caches.
pub(super) const AFTERSTATES: usize = 1024;

/// Positions of turns after which a pass takes no further row.
pub(super) const TURN_POSITIONS: usize = 2 * AFTERSTATES;

/// Maximum number of turns of a decision of which the replies are evaluated.
pub(super) const CANDIDATES: usize = 8;

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
    /// Minimum T that one ply of `simulations` needs.
    pub fn nodes_for(simulations: u32, sizes: &Sizes) -> usize {
        1 + simulations as usize * (1 + sizes.max_chance_run)
    }

    /// Bytes of one row on the CPU, its states included.
    pub fn row_bytes(&self, sizes: &Sizes, state_size: usize) -> usize {
        let shape = self.shape(sizes);
        let history = if sizes.uses_history { 8 * sizes.max_plies } else { 0 };
        if self.params.algorithm == Algorithm::Afterstate {
            let replies = match self.params.turns {
                1 => 0,
                _ => CANDIDATES
                    .saturating_mul(sizes.num_chance.max(1).saturating_pow(sizes.max_chance_run as u32)),
            };
            let reply = state_size + size_of::<(usize, f32)>();
            return state_size
                + sizes.max_legal * (size_of::<u16>() + size_of::<f32>())
                + history
                + replies.saturating_mul(reply);
        }
        shape.row_bytes()
            + Roots::row_bytes(shape)
            + self.nodes * state_size
            + self.params.leaves as usize * size_of::<Leaf>()
            + history
    }

    /// Bytes of the arrays of a pass besides those of the network: none of them grows with the rows.
    pub fn turn_bytes(&self, state_size: usize) -> usize {
        match self.params.algorithm {
            Algorithm::Afterstate => {
                let per_position = size_of::<u32>() + size_of::<f32>();
                WholeTurns::<u8>::bytes(TURN_POSITIONS, state_size)
                    + (TURN_POSITIONS + MAX_TURN_POSITIONS) * per_position
            }
            Algorithm::Puct | Algorithm::Gumbel => 0,
        }
    }

    /// Maximum number of leaves that need the network in one pass.
    pub fn max_evaluations(&self) -> usize {
        match self.params.algorithm {
            Algorithm::Afterstate => AFTERSTATES + MAX_TURN_POSITIONS,
            Algorithm::Puct | Algorithm::Gumbel => self.rows * self.params.leaves as usize,
        }
    }

    pub(super) fn shape(&self, sizes: &Sizes) -> TreeShape {
        TreeShape {
            rows: self.rows,
            nodes: self.nodes,
            edges: sizes.tree_edges(),
            players: sizes.num_players,
            zero_sum_pair: sizes.is_zero_sum_pair(),
        }
    }
}
