//! Which thread takes which shard through its next pass: the one that has waited longest. All shards stay level, however fast
//! each thread is, so that no thread waits at the end for longer than a pass. Threads of one speed meet the same shards again and
//! again, whose trees their caches know.

use super::shard::Shard;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A shard and the passes it has left.
pub(super) struct Turn<'a> {
    pub shard: &'a mut Shard,
    pub left: u32,
}

/// The shards that no thread is at work on and that are not through, in the order in which they were given back.
pub(super) struct ShardQueue<'a>(Mutex<VecDeque<Turn<'a>>>);

impl<'a> ShardQueue<'a> {
    /// `passes` passes for each shard.
    pub(super) fn new(shards: &'a mut [Shard], passes: u32) -> Self {
        Self(Mutex::new(shards.iter_mut().map(|shard| Turn { shard, left: passes }).collect()))
    }

    /// The shard to take through a pass. None where all that are not through are being taken.
    pub(super) fn take(&self) -> Option<Turn<'a>> {
        self.waiting().pop_front()
    }

    /// Puts a shard back that has made so many passes.
    pub(super) fn give_back(&self, turn: Turn<'a>, passes: u32) {
        if turn.left > passes {
            self.waiting().push_back(Turn { left: turn.left - passes, ..turn });
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Turn<'a>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
