//! The chunks of a part's polls that a worker keeps: it sends them again where they may be lost.

use std::collections::VecDeque;

/// Those of one part in one epoch.
#[derive(Debug, Default)]
pub(super) struct KeptPolls {
    /// Of the polls after the first `dropped`.
    chunks: VecDeque<Vec<u8>>,
    /// Polls whose chunks are gone, since the learner has taken them.
    dropped: u64,
    /// How many of `chunks` were sent since they may have been lost.
    sent: usize,
    /// Of `chunks`.
    bytes: u64,
}

impl KeptPolls {
    /// Polls that were played.
    pub(super) fn played(&self) -> u64 {
        self.dropped + self.chunks.len() as u64
    }

    /// Bytes of the chunks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps the chunk of the next poll.
    pub(super) fn push(&mut self, chunk: Vec<u8>) {
        self.bytes += chunk.len() as u64;
        self.chunks.push_back(chunk);
    }

    /// The chunks that are to be sent, in their order.
    pub(super) fn unsent(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.range(self.sent..).map(Vec::as_slice)
    }

    /// So many of the unsent ones were sent.
    pub(super) fn mark_sent(&mut self, count: usize) {
        self.sent += count;
    }

    /// All are to be sent again. Returns the number of those that were sent before.
    pub(super) fn send_again(&mut self) -> u64 {
        std::mem::take(&mut self.sent) as u64
    }

    /// Drops the chunks of the first `taken` polls.
    pub(super) fn drop_taken(&mut self, taken: u64) {
        while self.dropped < taken
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.dropped += 1;
            self.bytes -= chunk.len() as u64;
            self.sent = self.sent.saturating_sub(1);
        }
    }

    /// Whether a learner that has taken no more than the first `taken` polls needs one that is gone: it has begun the epoch again.
    pub(super) fn lacks(&self, taken: u64) -> bool {
        taken < self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_kept_until_they_are_taken_and_dropped() {
        let mut kept = KeptPolls::default();
        (1..=5).for_each(|poll| kept.push(vec![poll; 10]));
        let unsent = |kept: &KeptPolls| kept.unsent().map(|chunk| chunk[0]).collect::<Vec<u8>>();
        kept.mark_sent(3);
        assert_eq!((unsent(&kept), kept.bytes()), (vec![4, 5], 50));
        kept.drop_taken(2);
        assert_eq!((unsent(&kept), kept.bytes(), kept.played()), (vec![4, 5], 30, 5));
        assert!(!kept.lacks(2) && kept.lacks(1), "the second is gone");
        assert_eq!((kept.send_again(), unsent(&kept)), (1, vec![3, 4, 5]));
        // The learner has a poll that was sent before the chunks were to be sent again.
        kept.drop_taken(4);
        assert_eq!((unsent(&kept), kept.bytes(), kept.played()), (vec![5], 10, 5));
        kept.drop_taken(u64::MAX);
        kept.push(vec![6; 10]);
        assert_eq!((unsent(&kept), kept.played(), kept.lacks(5)), (vec![6], 6, false));
    }
}
