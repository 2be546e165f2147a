//! Detects a run that has stalled: the learner waits for games, and all of its workers wait for the learner. The server then lacks an entry
//! that a worker has sent, for example since a client has trimmed the stream, or the learner has refused a damaged one. A worker sends a
//! chunk once to a server that loses nothing.

use std::time::{Duration, Instant};

/// Time for which both sides wait until workers are requested to send again.
pub(super) const STALL: Duration = Duration::from_secs(30);
/// Upper bound on the doublings of this time while the requests change nothing.
const MAX_DOUBLINGS: u32 = 6;

/// Measures for how long both sides have waited.
pub(super) struct StallTimer {
    /// Time from which on the run has stalled, before it is doubled.
    limit: Duration,
    /// Requests since the run last accepted a chunk, up to [`MAX_DOUBLINGS`].
    requests: u32,
    /// The number of chunks that the run has accepted.
    accepted: u64,
    /// Time since which both sides wait; None while one of them works.
    since: Option<Instant>,
}

impl StallTimer {
    /// A timer of a run that has stalled after `limit`.
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, requests: 0, accepted: 0, since: None }
    }

    /// Records that one side works.
    pub(super) fn interrupt(&mut self) {
        self.since = None;
    }

    /// Records that both sides wait at `now`, while the run has accepted `accepted` chunks in total. Returns for how long they have waited
    /// if the run has stalled.
    pub(super) fn record_wait(&mut self, accepted: u64, now: Instant) -> Option<Duration> {
        if accepted != self.accepted {
            (self.accepted, self.requests, self.since) = (accepted, 0, None);
        }
        let waited = now.saturating_duration_since(*self.since.get_or_insert(now));
        (waited >= self.limit * (1_u32 << self.requests)).then_some(waited)
    }

    /// Records that workers are requested to send again. The next request comes after twice the time.
    pub(super) fn record_request(&mut self) {
        self.since = None;
        self.requests = (self.requests + 1).min(MAX_DOUBLINGS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stalls_once_both_sides_have_waited_and_again_after_twice_the_time() {
        let (mut timer, start) = (StallTimer::new(STALL), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!([0, 29].map(|seconds| timer.record_wait(0, at(seconds))), [None; 2]);
        timer.interrupt();
        assert_eq!([29, 58].map(|seconds| timer.record_wait(0, at(seconds))), [None; 2], "a worker played");
        assert_eq!(timer.record_wait(0, at(59)), Some(STALL));
        timer.record_request();
        assert_eq!([59, 118].map(|seconds| timer.record_wait(0, at(seconds))), [None; 2]);
        assert_eq!(timer.record_wait(0, at(119)), Some(2 * STALL));
        timer.record_request();
        // A chunk has arrived in time, and the run stalls after another one is lost.
        assert_eq!([120, 149].map(|seconds| timer.record_wait(1, at(seconds))), [None; 2]);
        assert_eq!(timer.record_wait(1, at(150)), Some(STALL));
    }

    #[test]
    fn the_time_is_doubled_six_times() {
        let (mut timer, start) = (StallTimer::new(STALL), Instant::now());
        (0..99).for_each(|_| timer.record_request());
        timer.record_wait(0, start);
        assert_eq!(timer.record_wait(0, start + 63 * STALL), None);
        assert_eq!(timer.record_wait(0, start + 64 * STALL), Some(64 * STALL));
    }
}
