//! The window: upper bound on the bytes that a worker has on the server without a mark.
//!
//! A small window starves the learner. A large one makes games stale: workers that are faster than the learner fill it, and every
//! chunk waits until many newer weights exist. So the window adapts to both.

use crate::backend::AnyGame;
use crate::config::{ClusterConfig, Config};
use crate::play::GameRecord;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time for which an incarnation without a chunk in the epoch counts as active after its last chunk.
const ACTIVE: Duration = Duration::from_secs(30);
/// Lower bound on the window, in bytes. A worker may always have one chunk that no mark covers.
const MIN_BYTES: u64 = 4096;
/// Staleness in versions from which on a chunk has waited too long in the queue. Games played while the learner trains are stale by
/// one version anyway. The bound is lower where `cluster.max_lag` refuses such chunks.
const STALE_VERSIONS: u64 = 2;

/// Maximum number of bytes of an epoch's games, as records.
pub(super) fn epoch_bytes(config: &Config, game: &dyn AnyGame) -> u64 {
    let ply = GameRecord::max_bytes(game) / game.sizes().max_plies.max(1);
    (config.selfplay.samples_per_epoch as u64).saturating_mul(ply as u64)
}

/// The largest window of a single worker, where the games of an epoch have at most `epoch_bytes` bytes: two epochs at least, since a run
/// waits for the games of a whole epoch while no mark covers those of the epoch before.
pub(super) fn max_window_bytes(epoch_bytes: u64, config: &ClusterConfig) -> u64 {
    let &ClusterConfig { max_lag, max_queued_bytes, .. } = config;
    let epochs = max_lag.saturating_add(1);
    epoch_bytes.saturating_mul(epochs).min(max_queued_bytes).max(MIN_BYTES)
}

/// The window of all workers together, of which each has an equal share.
pub(super) struct Window {
    /// Upper bound on `bytes`.
    max: u64,
    /// The staleness from which on the window shrinks, in versions.
    stale_versions: u64,
    /// The present window of all workers together.
    bytes: u64,
    /// Time of the last chunk by incarnation.
    seen: BTreeMap<u64, Instant>,
    /// Time when the present epoch began.
    epoch_began: Instant,
    /// True after the first chunk.
    has_begun: bool,
}

impl Window {
    /// A window of half an epoch, whose games have at most `epoch_bytes` bytes.
    pub(super) fn new(epoch_bytes: u64, config: &ClusterConfig) -> Self {
        let max = max_window_bytes(epoch_bytes, config);
        Self {
            max,
            stale_versions: STALE_VERSIONS.min(config.max_lag / 2 + 1),
            bytes: (epoch_bytes / 2).min(max),
            seen: BTreeMap::new(),
            epoch_began: Instant::now(),
            has_begun: false,
        }
    }

    /// Records the arrival of a chunk of the incarnation.
    pub(super) fn record_chunk(&mut self, incarnation: u64) {
        self.has_begun = true;
        self.seen.insert(incarnation, Instant::now());
    }

    /// Ends the epoch. Workers that have sent nothing in it are not active any more. A worker whose share is full sends nothing until
    /// now, so a chunk at any time in the epoch counts.
    pub(super) fn end_epoch(&mut self) {
        let began = self.epoch_began;
        self.seen.retain(|_, at| *at >= began || at.elapsed() < ACTIVE);
        self.epoch_began = Instant::now();
    }

    /// Ends the shares of workers that have left: an epoch ends only with enough games, and may lack theirs. `is_there` says of a process
    /// whether it is there. What the departed have queued is still on the server, so after many departures within one epoch there may be
    /// more than `cluster.max_queued_bytes`.
    pub(super) fn forget_departed(&mut self, is_there: impl Fn(u64) -> bool) {
        self.seen.retain(|&process, at| at.elapsed() < ACTIVE || is_there(process));
    }

    /// The present window of one worker: an equal share for each active worker.
    pub(super) fn bytes(&self) -> u64 {
        (self.bytes / self.active()).max(MIN_BYTES)
    }

    /// The number of active workers, at least 1.
    fn active(&self) -> u64 {
        self.seen.len().max(1) as u64
    }

    /// Doubles the window if the learner has waited at an empty queue since the last call, at any `staleness`: it may need more games
    /// than all windows hold. Otherwise takes a quarter off if a chunk was stale by [`STALE_VERSIONS`] or more.
    pub(super) fn adapt(&mut self, learner: Waiting, staleness: u64) {
        self.bytes = match learner {
            // Before the first chunk the learner waits for workers, not for a larger window.
            Waiting::AtEmptyQueue if self.has_begun => self.bytes.saturating_mul(2).min(self.max),
            Waiting::No if staleness >= self.stale_versions => {
                (self.bytes / 4 * 3).max(MIN_BYTES * self.active())
            }
            _ => self.bytes,
        };
    }
}

/// Whether the learner has waited for games at an empty queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    No,
    AtEmptyQueue,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    fn config(max_lag: u64) -> ClusterConfig {
        ClusterConfig { max_lag, max_queued_bytes: 1 << 20, ..ClusterConfig::default() }
    }

    #[test]
    fn stale_chunks_shrink_the_window_and_waiting_grows_it() {
        let mut window = Window::new(1 << 17, &config(2));
        assert_eq!(window.bytes(), 1 << 16, "half an epoch");
        window.adapt(Waiting::AtEmptyQueue, 0);
        assert_eq!(window.bytes(), 1 << 16, "without workers");
        window.record_chunk(1);
        window.record_chunk(2);
        assert_eq!(window.bytes(), 1 << 15, "two workers");
        window.adapt(Waiting::No, 1);
        assert_eq!(window.bytes(), 1 << 15, "games played during training are stale by one version");
        window.adapt(Waiting::No, 2);
        assert_eq!(window.bytes(), 3 << 13);
        (0..99).for_each(|_| window.adapt(Waiting::No, 7));
        assert_eq!(window.bytes(), MIN_BYTES);
        window.adapt(Waiting::AtEmptyQueue, 7);
        assert_eq!(window.bytes(), 2 * MIN_BYTES, "the learner has waited");
        (0..99).for_each(|_| window.adapt(Waiting::AtEmptyQueue, 0));
        assert_eq!(window.bytes(), 3 << 16, "three epochs for both");
    }

    #[test]
    fn the_largest_window_follows_max_lag_between_two_epochs_and_max_queued_bytes() {
        let epoch = 1 << 17;
        for (max_lag, max) in [(1, 2 * epoch), (5, 6 * epoch), (9, 1 << 20), (u64::MAX, 1 << 20)] {
            let mut window = Window::new(epoch, &config(max_lag));
            window.record_chunk(1);
            (0..99).for_each(|_| window.adapt(Waiting::AtEmptyQueue, 0));
            assert_eq!(window.bytes(), max, "max_lag = {max_lag}");
        }
        // With max_lag = 1 a chunk that is stale by one version is the last that is taken.
        let mut strict = Window::new(1 << 19, &config(1));
        strict.adapt(Waiting::No, 1);
        assert_eq!(strict.bytes(), 3 << 16);
    }

    #[test]
    fn a_worker_is_active_until_the_end_of_an_epoch_without_its_chunks() {
        let mut window = Window::new(1 << 16, &config(2));
        let long_ago = Instant::now().checked_sub(2 * ACTIVE).expect("the clock began before");
        window.epoch_began = long_ago;
        window.seen = BTreeMap::from([(1, long_ago), (2, long_ago + ACTIVE / 2)]);
        window.end_epoch();
        assert_eq!(window.bytes(), 1 << 14, "both have sent chunks in the epoch");
        window.record_chunk(2);
        window.end_epoch();
        assert_eq!(window.bytes(), 1 << 15);
    }

    #[test]
    fn the_shares_of_departed_workers_end_within_the_epoch() {
        let mut window = Window::new(1 << 17, &config(2));
        let long_ago = Instant::now().checked_sub(2 * ACTIVE).expect("the clock began before");
        window.seen = (0..10).map(|process| (process, long_ago)).collect();
        window.record_chunk(9);
        window.forget_departed(|_| true);
        assert_eq!(window.bytes(), (1 << 16) / 10, "all are there");
        window.forget_departed(|process| process == 3);
        assert_eq!(window.bytes(), 1 << 15, "one is there, one has sent a chunk just now");
        window.forget_departed(|_| false);
        assert_eq!(window.bytes(), 1 << 16, "the other may still come");
    }

    #[test]
    fn an_epoch_has_the_bytes_of_its_samples() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let mut config = Config::default();
        config.selfplay.samples_per_epoch = 1000;
        assert_eq!(epoch_bytes(&config, game.as_ref()), 1000 * 59);
    }
}
