//! Which chunks a learner has taken: what makes that every chunk counts once. Part of its checkpoint.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The most incarnations that a run knows: workers that start anew every minute for two months. Chunks of further ones are refused.
const MOST_INCARNATIONS: usize = 100_000;

/// The place of an entry in a stream: milliseconds, and its number within one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamId(pub u64, pub u64);

impl StreamId {
    /// The id that `text` writes, such as `1700000000000-0`.
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

/// What a chunk's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It is the next one of its incarnation.
    Next,
    /// It was taken before.
    Repeated,
    /// An earlier one is missing.
    Gap,
    /// There are too many incarnations.
    TooMany,
}

/// The chunks that were taken. Of each incarnation these are all up to its mark, since no number is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// The run's identity, drawn at random when it began: tells two runs of one name apart.
    pub run: u64,
    /// The generation of the stream to which `position` belongs. A new one begins when the server has lost data.
    pub generation: u64,
    /// The last entry that was read.
    pub position: StreamId,
    /// The number of the last chunk, by incarnation.
    pub marks: BTreeMap<u64, u64>,
}

impl Received {
    /// What [`Received::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes).map_err(|e| {
            Error::unsupported("the checkpoint", format!("what it says of workers cannot be read: {e}"))
        })
    }

    /// The bytes for a checkpoint.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default() // writing to memory does not fail
    }

    /// What the number of a chunk says, before it is taken.
    pub fn order(&self, incarnation: u64, sequence: u64) -> Order {
        match self.marks.get(&incarnation).copied() {
            None if self.marks.len() >= MOST_INCARNATIONS => Order::TooMany,
            mark => match mark.unwrap_or(0) {
                mark if sequence <= mark => Order::Repeated,
                mark if sequence == mark + 1 => Order::Next,
                _ => Order::Gap,
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
        assert_eq!([1, 0, 2, u64::MAX].map(|n| received.order(7, n)), {
            use Order::{Gap, Next, Repeated};
            [Next, Repeated, Gap, Gap]
        });
        received.take(7, 1);
        received.take(8, 1);
        received.take(7, 2);
        let orders = [1, 2, 3, 4].map(|n| received.order(7, n));
        assert_eq!(orders, [Order::Repeated, Order::Repeated, Order::Next, Order::Gap]);
        assert_eq!([received.order(8, 2), received.order(9, 1)], [Order::Next; 2]);
        assert_eq!(Received::from_bytes(&received.to_bytes()).expect("the same"), received);
    }

    #[test]
    fn incarnations_beyond_the_bound_are_refused() {
        let mut received = Received::default();
        (0..MOST_INCARNATIONS as u64).for_each(|incarnation| received.take(incarnation, 3));
        assert_eq!(received.order(u64::MAX, 1), Order::TooMany);
        assert_eq!(received.order(5, 4), Order::Next);
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
