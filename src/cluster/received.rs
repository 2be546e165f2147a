//! Tracks which chunks were taken, so that each is counted exactly once. Part of the learner's checkpoint.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Upper bound on the incarnations of a run: enough for a worker that restarts every minute for two months. Chunks of further
/// incarnations are refused.
pub(super) const MAX_INCARNATIONS: usize = 100_000;

/// The id of an entry in a stream: a time in milliseconds, and a number within that millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamId(pub u64, pub u64);

impl StreamId {
    /// The id with this text, such as `1700000000000-0`.
    pub fn parse(text: &str) -> Option<Self> {
        let (time, number) = text.split_once('-')?;
        Some(Self(time.parse().ok()?, number.parse().ok()?))
    }

    /// The first id after this one.
    pub fn next(self) -> Self {
        match self.1.checked_add(1) {
            Some(number) => Self(self.0, number),
            None => Self(self.0.saturating_add(1), 0),
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// Result of comparing a chunk's number with the mark of its incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceCheck {
    /// The chunk is the next one of its incarnation.
    Next,
    /// The chunk was taken before.
    Repeated,
    /// An earlier chunk is missing.
    Gap,
    /// The incarnation is new, and the run has `MAX_INCARNATIONS`.
    TooMany,
}

/// The chunks that were taken: of each incarnation all up to its mark, since they are taken in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// The run's identity, drawn at random, or its checkpoint's number where it began without workers: distinguishes two runs of one name.
    pub run: u64,
    /// The generation of the stream to which `position` belongs. A new one begins when the server has lost data.
    pub generation: u64,
    /// The last entry that was read.
    pub position: StreamId,
    /// The mark of each incarnation: the number of its last chunk that was taken.
    pub marks: BTreeMap<u64, u64>,
}

impl Received {
    /// Reads the bytes of [`Received::to_bytes`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes).map_err(|e| {
            Error::unsupported("the checkpoint", format!("cannot decode its record of workers' chunks: {e}"))
        })
    }

    /// The bytes for a checkpoint.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default() // writing to memory does not fail
    }

    /// Compares the number of a chunk with the mark of its incarnation, before the chunk is taken.
    pub fn check_sequence(&self, incarnation: u64, sequence: u64) -> SequenceCheck {
        match self.marks.get(&incarnation).copied() {
            None if self.marks.len() >= MAX_INCARNATIONS => SequenceCheck::TooMany,
            mark => match mark.unwrap_or(0) {
                mark if sequence <= mark => SequenceCheck::Repeated,
                mark if sequence == mark + 1 => SequenceCheck::Next,
                _ => SequenceCheck::Gap,
            },
        }
    }

    /// Takes the chunk, which is the next one of its incarnation.
    pub fn take(&mut self, incarnation: u64, sequence: u64) {
        self.marks.insert(incarnation, sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_taken_in_order_and_once() {
        let mut received = Received::default();
        assert_eq!([1, 0, 2, u64::MAX].map(|n| received.check_sequence(7, n)), {
            use SequenceCheck::{Gap, Next, Repeated};
            [Next, Repeated, Gap, Gap]
        });
        received.take(7, 1);
        received.take(8, 1);
        received.take(7, 2);
        let orders = [1, 2, 3, 4].map(|n| received.check_sequence(7, n));
        assert_eq!(
            orders,
            [SequenceCheck::Repeated, SequenceCheck::Repeated, SequenceCheck::Next, SequenceCheck::Gap]
        );
        assert_eq!([received.check_sequence(8, 2), received.check_sequence(9, 1)], [SequenceCheck::Next; 2]);
        assert_eq!(Received::from_bytes(&received.to_bytes()).expect("the same"), received);
    }

    #[test]
    fn incarnations_beyond_the_bound_are_refused() {
        let mut received = Received::default();
        (0..MAX_INCARNATIONS as u64).for_each(|incarnation| received.take(incarnation, 3));
        assert_eq!(received.check_sequence(u64::MAX, 1), SequenceCheck::TooMany);
        assert_eq!(received.check_sequence(5, 4), SequenceCheck::Next);
    }

    #[test]
    fn stream_ids_are_ordered_as_the_server_orders_them() {
        let ids = ["9-0", "10-0", "10-9", "10-10"].map(|text| StreamId::parse(text).expect(text));
        assert!(ids.is_sorted());
        assert_eq!(ids[3].to_string(), "10-10");
        assert_eq!((ids[3].next(), StreamId(3, u64::MAX).next()), (StreamId(10, 11), StreamId(4, 0)));
        assert_eq!(["", "5", "a-1", "1-", "1-2-3"].map(StreamId::parse), [None; 5]);
    }
}
