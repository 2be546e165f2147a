//! How many bytes of a worker's chunks may be on the server without a mark: as few as keep the learner busy, so that what it takes was
//! played with new weights. Workers that are faster than the learner would otherwise fill the queue, and all that is taken from it
//! would be old.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A worker without a chunk in this time has no share of the bytes that may be queued.
const ACTIVE: Duration = Duration::from_secs(30);
/// The smallest window: a chunk at a time, since a worker with none on the server sends one of any size.
const LEAST: u64 = 4 << 10;
/// Versions by which the weights of a taken chunk may be old before the window shrinks: those which play while the learner trains are
/// old by one.
const OLD: u64 = 2;

/// The window of every worker.
pub(super) struct Window {
    /// Bytes of all workers together; see [`crate::config::ClusterConfig::max_queued_bytes`].
    most: u64,
    /// The lag from which on the window shrinks.
    old: u64,
    bytes: u64,
    /// When a chunk of the incarnation came last.
    seen: BTreeMap<u64, Instant>,
}

impl Window {
    /// The largest one, for bounds as those in the configuration.
    pub(super) fn new(most: u64, max_lag: u64) -> Self {
        Self { most, old: OLD.min(max_lag / 2 + 1), bytes: most, seen: BTreeMap::new() }
    }

    /// A chunk of the incarnation came.
    pub(super) fn see(&mut self, incarnation: u64) {
        self.seen.insert(incarnation, Instant::now());
    }

    /// The window now.
    pub(super) fn bytes(&mut self) -> u64 {
        self.bytes.min(self.largest())
    }

    /// An equal share of all bytes for each worker that is active.
    fn largest(&mut self) -> u64 {
        self.seen.retain(|_, at| at.elapsed() < ACTIVE);
        self.most / self.seen.len().max(1) as u64
    }

    /// Grows where the learner has waited at an empty queue since the last call, whatever its chunks were: it may need more than all windows
    /// hold. Otherwise shrinks where a chunk that it took was old by `lag` versions, since the queue made it so.
    pub(super) fn adapt(&mut self, has_waited: bool, lag: u64) {
        let largest = self.largest();
        let bytes = self.bytes.min(largest);
        self.bytes = match (has_waited, lag >= self.old) {
            (true, _) => bytes.saturating_mul(2),
            (false, true) => (bytes / 4 * 3).max(LEAST),
            (false, false) => bytes,
        }
        .min(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_chunks_shrink_the_window_and_waiting_grows_it_to_a_share() {
        let mut window = Window::new(1 << 20, 2);
        assert_eq!(window.bytes(), 1 << 20);
        window.see(1);
        window.see(2);
        assert_eq!(window.bytes(), 1 << 19, "two workers");
        window.adapt(false, 1);
        assert_eq!(window.bytes(), 1 << 19, "what plays during training is old by one");
        window.adapt(false, 2);
        assert_eq!(window.bytes(), 3 << 17);
        (0..99).for_each(|_| window.adapt(false, 7));
        assert_eq!(window.bytes(), LEAST);
        window.adapt(true, 7);
        assert_eq!(window.bytes(), 2 * LEAST, "an empty queue does not make chunks old");
        (0..99).for_each(|_| window.adapt(true, 0));
        assert_eq!(window.bytes(), 1 << 19);
        // No lag is allowed: chunks that are old by one would be refused.
        let mut strict = Window::new(1 << 20, 0);
        strict.adapt(false, 1);
        assert_eq!(strict.bytes(), 3 << 18);
    }
}
