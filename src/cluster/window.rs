//! The bytes that a worker may have on the server without a mark, so that games wait long enough to feed the run, and short enough to be
//! played with new weights. Workers that are faster than the learner would otherwise fill the queue, and all that is taken from it
//! would be old.

use crate::batch::AnyGame;
use crate::config::{ClusterConfig, Config};
use crate::selfplay::GameRecord;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long an incarnation counts as active after its last chunk, but for one that has sent a chunk since the epoch before.
const ACTIVE: Duration = Duration::from_secs(30);
/// A worker has at least one chunk that no mark covers, whatever the window is.
const LEAST: u64 = 4096;
/// Versions by which chunks are old if the queue makes them so: what is played while the learner trains is old by one when it is taken. Less where
/// chunks of that age are refused.
const OLD: u64 = 2;
/// The fewest epochs whose games the largest window holds: a run waits for a whole epoch's games while no mark covers those before.
const LEAST_EPOCHS: u64 = 2;

/// The most bytes of an epoch's games, as records.
pub(super) fn epoch_bytes(config: &Config, game: &dyn AnyGame) -> u64 {
    let ply = GameRecord::most_bytes(game) / game.sizes().max_plies.max(1);
    (config.selfplay.samples_per_epoch as u64).saturating_mul(ply as u64)
}

/// The largest window of a worker that is alone, where the games of an epoch have so many bytes at most.
pub(super) fn most_bytes(epoch_bytes: u64, config: &ClusterConfig) -> u64 {
    let &ClusterConfig { max_lag, max_queued_bytes, .. } = config;
    let epochs = max_lag.saturating_add(1).max(LEAST_EPOCHS);
    epoch_bytes.saturating_mul(epochs).min(max_queued_bytes).max(LEAST)
}

/// The window of every worker.
pub(super) struct Window {
    /// The most bytes of all workers together: what more would wait is too old when it is taken.
    max: u64,
    /// The lag from which on the window shrinks.
    old: u64,
    /// Bytes of all workers together, now.
    bytes: u64,
    /// When a chunk of the incarnation came last.
    seen: BTreeMap<u64, Instant>,
    /// When the present epoch began.
    epoch_began: Instant,
    /// A chunk has come.
    has_begun: bool,
}

impl Window {
    /// Begins with half an epoch, whose games have at most `epoch_bytes`.
    pub(super) fn new(epoch_bytes: u64, config: &ClusterConfig) -> Self {
        let max = most_bytes(epoch_bytes, config);
        Self {
            max,
            old: OLD.min(config.max_lag / 2 + 1),
            bytes: (epoch_bytes / 2).min(max),
            seen: BTreeMap::new(),
            epoch_began: Instant::now(),
            has_begun: false,
        }
    }

    /// A chunk of the incarnation came.
    pub(super) fn see(&mut self, incarnation: u64) {
        self.has_begun = true;
        self.seen.insert(incarnation, Instant::now());
    }

    /// The epoch is over. Workers that have sent nothing in it are not active any more; those whose share is full send nothing until now.
    pub(super) fn end_epoch(&mut self) {
        let began = self.epoch_began;
        self.seen.retain(|_, at| *at >= began || at.elapsed() < ACTIVE);
        self.epoch_began = Instant::now();
    }

    /// The window now: an equal share for each worker that is active.
    pub(super) fn bytes(&self) -> u64 {
        (self.bytes / self.active()).max(LEAST)
    }

    /// The number of active workers, at least 1.
    fn active(&self) -> u64 {
        self.seen.len().max(1) as u64
    }

    /// Grows where the learner has waited at an empty queue since the last call, whatever its chunks were: it may need more than all windows
    /// hold. Otherwise shrinks where a chunk that it took was old by `lag` versions, since the queue made it so.
    pub(super) fn adapt(&mut self, learner: Waiting, lag: u64) {
        self.bytes = match learner {
            // Before the first worker has come, no window is too small.
            Waiting::AtEmptyQueue if self.has_begun => self.bytes.saturating_mul(2).min(self.max),
            Waiting::No if lag >= self.old => (self.bytes / 4 * 3).max(LEAST * self.active()),
            _ => self.bytes,
        };
    }
}

/// Whether the learner has waited for games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    No,
    AtEmptyQueue,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(max_lag: u64) -> ClusterConfig {
        ClusterConfig { max_lag, max_queued_bytes: 1 << 20, ..ClusterConfig::default() }
    }

    #[test]
    fn old_chunks_shrink_the_window_and_waiting_grows_it_to_a_share() {
        let mut window = Window::new(1 << 17, &config(2));
        assert_eq!(window.bytes(), 1 << 16, "half an epoch");
        window.adapt(Waiting::AtEmptyQueue, 0);
        assert_eq!(window.bytes(), 1 << 16, "without workers");
        window.see(1);
        window.see(2);
        assert_eq!(window.bytes(), 1 << 15, "two workers");
        window.adapt(Waiting::No, 1);
        assert_eq!(window.bytes(), 1 << 15, "what plays during training is old by one");
        window.adapt(Waiting::No, 2);
        assert_eq!(window.bytes(), 3 << 13);
        (0..99).for_each(|_| window.adapt(Waiting::No, 7));
        assert_eq!(window.bytes(), LEAST);
        window.adapt(Waiting::AtEmptyQueue, 7);
        assert_eq!(window.bytes(), 2 * LEAST, "the learner has waited");
        (0..99).for_each(|_| window.adapt(Waiting::AtEmptyQueue, 0));
        assert_eq!(window.bytes(), 3 << 16, "three epochs for both");
    }

    #[test]
    fn the_largest_window_holds_what_is_not_too_old_two_epochs_at_least_and_no_more_than_configured() {
        let epoch = 1 << 17;
        for (max_lag, most) in
            [(0, 2 * epoch), (1, 2 * epoch), (5, 6 * epoch), (9, 1 << 20), (u64::MAX, 1 << 20)]
        {
            let mut window = Window::new(epoch, &config(max_lag));
            window.see(1);
            (0..99).for_each(|_| window.adapt(Waiting::AtEmptyQueue, 0));
            assert_eq!(window.bytes(), most, "max_lag = {max_lag}");
        }
        // No lag is allowed: chunks that are old by one would be refused.
        let mut strict = Window::new(1 << 19, &config(0));
        strict.adapt(Waiting::No, 1);
        assert_eq!(strict.bytes(), 3 << 16);
    }

    #[test]
    fn a_worker_is_active_until_an_epoch_without_a_chunk_of_it_is_over() {
        let mut window = Window::new(1 << 16, &config(2));
        let long_ago = Instant::now().checked_sub(2 * ACTIVE).expect("the clock began before");
        window.epoch_began = long_ago;
        window.seen = BTreeMap::from([(1, long_ago), (2, long_ago + ACTIVE / 2)]);
        window.end_epoch();
        assert_eq!(window.bytes(), 1 << 14, "both have sent in it, and then waited");
        window.see(2);
        window.end_epoch();
        assert_eq!(window.bytes(), 1 << 15);
    }
}
