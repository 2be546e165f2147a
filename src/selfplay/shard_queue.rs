//! The queue of shards from which threads take their work, first in, first out. All shards stay within a pass of one another
//! whatever the threads' speeds, so that no thread is idle for longer than a pass at the end of a poll. Threads of equal speed take the
//! same shards again and again, whose trees are still in their caches.

use super::shard::Shard;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A shard and the passes it has left in this poll.
pub(super) struct ShardWork<'a> {
    pub shard: &'a mut Shard,
    pub left: u32,
}

/// The shards with passes left that no thread works on, in the order in which they were given back.
pub(super) struct ShardQueue<'a>(Mutex<VecDeque<ShardWork<'a>>>);

impl<'a> ShardQueue<'a> {
    /// `passes` passes for each shard.
    pub(super) fn new(shards: &'a mut [Shard], passes: u32) -> Self {
        Self(Mutex::new(shards.iter_mut().map(|shard| ShardWork { shard, left: passes }).collect()))
    }

    /// The next shard to work on. None where other threads have all that are left.
    pub(super) fn take(&self) -> Option<ShardWork<'a>> {
        self.queue().pop_front()
    }

    /// Puts a shard back that has made `passes` passes.
    pub(super) fn give_back(&self, work: ShardWork<'a>, passes: u32) {
        if work.left > passes {
            self.queue().push_back(ShardWork { left: work.left - passes, ..work });
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<ShardWork<'a>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
