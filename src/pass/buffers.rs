//! The network's input and output of one pass.

use crate::game::Sizes;

/// Arrays for the observations and the network's outputs of one pass, allocated once.
#[derive(Clone, Debug, Default)]
pub struct PassBuffers {
    /// Maximum number of leaves they hold.
    max_leaves: usize,
    /// `[M, F]`
    pub(super) obs: Vec<f32>,
    /// `[M, A]`
    pub(super) logits: Vec<f32>,
    /// `[M, P]`
    pub(super) values: Vec<f32>,
}

impl PassBuffers {
    /// Arrays for at most `max_leaves` leaves.
    pub fn new(sizes: &Sizes, max_leaves: usize) -> Self {
        Self {
            max_leaves,
            obs: vec![0.0; max_leaves * sizes.obs.len()],
            logits: vec![0.0; max_leaves * sizes.num_actions],
            values: vec![0.0; max_leaves * sizes.num_players],
        }
    }

    /// Bytes of the arrays for `max_leaves` leaves.
    pub fn bytes(sizes: &Sizes, max_leaves: usize) -> usize {
        4 * max_leaves * (sizes.obs.len() + sizes.num_actions + sizes.num_players)
    }

    /// Maximum number of leaves of a pass.
    pub fn max_leaves(&self) -> usize {
        self.max_leaves
    }

    /// The first `len` elements of the observations, as scratch for observations in another format.
    pub fn obs_mut(&mut self, len: usize) -> &mut [f32] {
        &mut self.obs[..len]
    }
}
