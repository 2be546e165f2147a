//! Bounds in bytes of the buffers of learner and workers for the chunks of each other. Part of their memory plans.

use super::chunk::ChunkLimits;
use super::window::{epoch_bytes, max_window_bytes};
use crate::backend::AnyGame;
use crate::config::{ClusterOrder, Config, SelfPlayConfig};
use crate::error::Result;

/// In strict order: upper bound on the bytes of polls that a process keeps, without the next one of each partition.
pub(super) const MAX_BUFFER_BYTES: u64 = 64 << 20;
/// Upper bound on the bytes of a record of a poll without its lists, in memory and on the wire.
pub(super) const RECORD: usize = 136;

/// Bounds that the reader enforces on chunks.
#[derive(Clone, Copy)]
pub(super) struct ChunkBounds {
    /// Sizes of a chunk.
    pub limits: ChunkLimits,
    /// In strict order: upper bound on the records of a poll.
    pub records: usize,
    /// See [`crate::config::ClusterConfig::max_lag`].
    pub max_lag: u64,
    /// See [`crate::config::ClusterConfig::order`].
    pub order: ClusterOrder,
}

/// Maximum number of records of a poll of a partition with so many slots: one for each game that a pass ends, and the game in progress.
pub fn max_records(slots: usize, passes: u32) -> usize {
    slots.saturating_mul(passes as usize + 1)
}

/// Maximum number of bytes of a poll of so many slots, in memory and before compression.
pub(super) fn poll_bytes(game: &dyn AnyGame, slots: usize, passes: u32) -> usize {
    let sizes = game.sizes();
    // As many chance outcomes may follow a ply as a game has plies.
    let ply = RECORD + 3 * sizes.max_plies + 4 * sizes.max_legal + 5 + 4 * sizes.num_players;
    max_records(slots, passes).saturating_mul(ply)
}

/// Maximum number of bytes of polls that learner or worker keep in strict order: [`MAX_BUFFER_BYTES`] and one poll of all slots.
pub(super) fn max_poll_buffer_bytes(config: &Config, game: &dyn AnyGame) -> u64 {
    let SelfPlayConfig { games, passes_per_poll, .. } = config.selfplay;
    MAX_BUFFER_BYTES.saturating_add(poll_bytes(game, games, passes_per_poll) as u64)
}

/// The largest window of a worker in free order, in bytes.
pub(super) fn max_window(config: &Config, game: &dyn AnyGame) -> u64 {
    max_window_bytes(epoch_bytes(config, game), &config.cluster)
}

/// Maximum number of bytes of chunks in a worker's memory: those without a mark (in strict order: that the learner has not taken), and the
/// chunk in progress.
///
/// # Errors
/// Those of [`ChunkLimits::of`].
pub(super) fn max_worker_buffer_bytes(config: &Config, game: &dyn AnyGame) -> Result<u64> {
    match config.cluster.order {
        ClusterOrder::Free => Ok(max_window(config, game) + 2 * ChunkLimits::of(game)?.bytes() as u64),
        ClusterOrder::Strict => Ok(max_poll_buffer_bytes(config, game)),
    }
}
