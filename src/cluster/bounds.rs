//! Bytes that learner and workers keep of what goes between them. Part of their memory plans.

use super::chunk::ChunkLimits;
use super::window::{epoch_bytes, most_bytes};
use crate::batch::AnyGame;
use crate::config::{ClusterOrder, Config, SelfPlayConfig};
use crate::error::Result;

/// In strict order: the most bytes of polls that a process keeps, besides the next one of each part.
pub(super) const KEPT_BYTES: u64 = 64 << 20;
/// The most bytes of a record of a poll without its lists, in memory and on the wire.
pub(super) const RECORD: usize = 136;

/// The most records of a poll of a part with so many slots: one for each game that a pass ends, and that in progress.
pub fn most_records(slots: usize, passes: u32) -> usize {
    slots.saturating_mul(passes as usize + 1)
}

/// The most bytes of a poll of so many slots, in memory and before compression.
pub(super) fn poll_bytes(game: &dyn AnyGame, slots: usize, passes: u32) -> usize {
    let sizes = game.sizes();
    // A ply may be followed by as many chance outcomes as a game has plies.
    let ply = RECORD + 3 * sizes.max_plies + 4 * sizes.max_legal + 5 + 4 * sizes.num_players;
    most_records(slots, passes).saturating_mul(ply)
}

/// The most bytes of polls that learner or worker keep in strict order: [`KEPT_BYTES`], and a poll of all slots.
pub(super) fn kept_polls(config: &Config, game: &dyn AnyGame) -> u64 {
    let SelfPlayConfig { games, passes_per_poll, .. } = config.selfplay;
    KEPT_BYTES.saturating_add(poll_bytes(game, games, passes_per_poll) as u64)
}

/// The largest window of a worker in free order.
pub(super) fn most_window(config: &Config, game: &dyn AnyGame) -> u64 {
    most_bytes(epoch_bytes(config, game), &config.cluster)
}

/// The most bytes of chunks that a worker keeps until the learner has them in a checkpoint, or has taken them, and of the chunk that it
/// writes.
///
/// # Errors
/// Those of [`ChunkLimits::of`].
pub(super) fn kept_by_worker(config: &Config, game: &dyn AnyGame) -> Result<u64> {
    match config.cluster.order {
        ClusterOrder::Free => Ok(most_window(config, game) + 2 * ChunkLimits::of(game)?.bytes() as u64),
        ClusterOrder::Strict => Ok(kept_polls(config, game)),
    }
}
