//! Buffer of the chunks of a partition's polls, which a worker sends again where they may be lost.

use std::collections::VecDeque;

/// The buffered polls of one partition in one epoch.
#[derive(Debug, Default)]
pub(super) struct UnackedPolls {
    /// The chunks of the polls after the first `dropped`.
    chunks: VecDeque<Vec<u8>>,
    /// Polls whose chunks are dropped, since the learner has taken them.
    dropped: u64,
    /// How many of `chunks` were sent since the last possible loss.
    sent: usize,
    /// Bytes of `chunks`.
    bytes: u64,
}

impl UnackedPolls {
    /// Polls that were played: dropped and buffered ones.
    pub(super) fn played(&self) -> u64 {
        self.dropped + self.chunks.len() as u64
    }

    /// Bytes of the chunks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends the chunk of the next poll.
    pub(super) fn push(&mut self, chunk: Vec<u8>) {
        self.bytes += chunk.len() as u64;
        self.chunks.push_back(chunk);
    }

    /// The chunks that are to be sent, in order, up to that of poll number `last`.
    pub(super) fn unsent(&self, last: u64) -> impl Iterator<Item = &[u8]> {
        let left = last.saturating_sub(self.dropped + self.sent as u64);
        self.chunks.range(self.sent..).take(left as usize).map(Vec::as_slice)
    }

    /// Marks the first `count` unsent chunks as sent.
    pub(super) fn mark_sent(&mut self, count: usize) {
        self.sent += count;
    }

    /// Marks all chunks as unsent. Returns how many of them were sent before.
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

    /// Whether a learner that has taken only the first `taken` polls needs a dropped one: such a learner has begun the epoch again.
    pub(super) fn lacks(&self, taken: u64) -> bool {
        taken < self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_kept_until_they_are_taken_and_dropped() {
        let mut polls = UnackedPolls::default();
        (1..=5).for_each(|poll| polls.push(vec![poll; 10]));
        let unsent = |polls: &UnackedPolls| polls.unsent(u64::MAX).map(|chunk| chunk[0]).collect::<Vec<u8>>();
        polls.mark_sent(3);
        assert_eq!((unsent(&polls), polls.bytes()), (vec![4, 5], 50));
        polls.drop_taken(2);
        assert_eq!((unsent(&polls), polls.bytes(), polls.played()), (vec![4, 5], 30, 5));
        assert!(!polls.lacks(2) && polls.lacks(1), "the second is dropped");
        assert_eq!((polls.send_again(), unsent(&polls)), (1, vec![3, 4, 5]));
        assert_eq!(
            polls.unsent(4).map(|chunk| chunk[0]).collect::<Vec<u8>>(),
            [3, 4],
            "up to the fourth poll"
        );
        assert_eq!(polls.unsent(1).count(), 0);
        // The learner has a poll that was sent before the chunks were to be sent again.
        polls.drop_taken(4);
        assert_eq!((unsent(&polls), polls.bytes(), polls.played()), (vec![5], 10, 5));
        polls.drop_taken(u64::MAX);
        polls.push(vec![6; 10]);
        assert_eq!((unsent(&polls), polls.played(), polls.lacks(5)), (vec![6], 6, false));
    }
}
