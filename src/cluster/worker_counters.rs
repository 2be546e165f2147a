//! Counts and means over the chunks that a learner takes in an epoch.

use crate::report::workers::{WorkerCounts, WorkerShare};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Upper bound on the workers that are listed by name.
const MAX_LISTED: usize = 256;

/// A chunk that was taken.
pub(super) struct AcceptedChunk<'a> {
    /// The worker's name.
    pub sender: &'a str,
    /// The worker's process.
    pub incarnation: u64,
    /// Games that the chunk ends.
    pub games: u64,
    /// Bytes of the chunk.
    pub bytes: usize,
    /// Versions between its weights and the newest.
    pub staleness: u64,
    /// Time from its arrival at the server until now.
    pub waited: Duration,
}

/// Counts since the last [`WorkerCounters::end`].
pub(super) struct WorkerCounters {
    /// Counts that are plain sums.
    pub counts: WorkerCounts,
    since: Instant,
    seconds: f64,
    byte_seconds: f64,
    /// Sum of the staleness of all chunks.
    staleness: u64,
    /// Share of each worker by incarnation; its `lag` is a sum until [`WorkerCounters::end`].
    each: BTreeMap<u64, WorkerShare>,
}

impl WorkerCounters {
    pub(super) fn new() -> Self {
        Self {
            counts: WorkerCounts::default(),
            since: Instant::now(),
            seconds: 0.0,
            byte_seconds: 0.0,
            staleness: 0,
            each: BTreeMap::new(),
        }
    }

    /// Counts a chunk that is taken.
    pub(super) fn take(&mut self, taken: &AcceptedChunk<'_>) {
        let waited = taken.waited.as_secs_f64();
        self.counts.chunks += 1;
        self.seconds += waited;
        self.byte_seconds += waited * taken.bytes as f64;
        self.staleness += taken.staleness;
        let share = self.each.entry(taken.incarnation).or_default();
        if share.name.is_empty() {
            share.name = taken.sender.to_string();
        }
        share.chunks += 1;
        share.games += taken.games;
        share.lag += taken.staleness as f64;
    }

    /// The counts of the epoch that ends now. Counting begins again at 0.
    pub(super) fn end(&mut self) -> WorkerCounts {
        let Self { counts, since, seconds, byte_seconds, staleness, each } =
            std::mem::replace(self, Self::new());
        let epoch = since.elapsed().as_secs_f64();
        let (active, chunks) = (each.len() as u64, counts.chunks.max(1) as f64);
        let mut each: Vec<WorkerShare> = each.into_values().collect();
        for share in &mut each {
            share.games_per_second = share.games as f64 / epoch;
            share.lag /= share.chunks as f64;
        }
        each.sort_by(|a, b| b.games.cmp(&a.games).then_with(|| a.name.cmp(&b.name)));
        each.truncate(MAX_LISTED);
        WorkerCounts {
            active,
            queue_seconds: seconds / chunks,
            queue_bytes: byte_seconds / epoch,
            lag: staleness as f64 / chunks,
            each,
            ..counts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_means_over_its_chunks_and_the_shares_of_workers() {
        let mut counters = WorkerCounters::new();
        counters.since -= Duration::from_secs(10);
        for (sender, incarnation, games, staleness, waited) in
            [("b", 5, 3, 0, 1), ("a", 9, 4, 1, 2), ("b", 5, 2, 2, 3)]
        {
            let waited = Duration::from_secs(waited);
            counters.take(&AcceptedChunk { sender, incarnation, games, bytes: 100, staleness, waited });
        }
        let counts = counters.end();
        assert_eq!((counts.active, counts.chunks, counts.queue_seconds, counts.lag), (2, 3, 2.0, 1.0));
        // 600 byte-seconds in 10 seconds.
        assert!((59.0..=60.0).contains(&counts.queue_bytes), "{counts:?}");
        let each: Vec<(&str, u64, u64, f64)> = counts
            .each
            .iter()
            .map(|share| (share.name.as_str(), share.chunks, share.games, share.lag))
            .collect();
        assert_eq!(each, [("b", 2, 5, 1.0), ("a", 1, 4, 1.0)]);
        assert!((0.45..=0.5).contains(&counts.each[0].games_per_second), "{counts:?}");
        assert_eq!(counters.end(), WorkerCounts::default(), "an epoch without chunks");
    }
}
