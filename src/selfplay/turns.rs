//! Which thread takes which shard through its next pass. A thread keeps to its own shards, whose trees its caches may know, while
//! they are level with the others', and takes another's that has fallen behind: where one thread is slower than the other, all
//! shards are through at the same time still, and nobody waits for longer than a pass or two.

use super::Shard;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A shard and the passes it has left.
pub(super) struct Turn<'a> {
    pub shard: &'a mut Shard,
    pub left: u32,
    /// The thread it belongs to.
    home: usize,
}

/// Passes by which another thread's shard must be behind to be taken before one's own.
const HOME_LEAD: u32 = 2;

/// The shards that no thread is at work on.
pub(super) struct Turns<'a>(Mutex<Vec<Turn<'a>>>);

impl<'a> Turns<'a> {
    /// `passes` passes for each shard, on `threads` threads.
    pub(super) fn new(shards: &'a mut [Shard], threads: usize, passes: u32) -> Self {
        let turns = shards.iter_mut().enumerate();
        let turns = turns.map(|(i, shard)| Turn { shard, left: passes, home: i % threads });
        Self(Mutex::new(turns.collect()))
    }

    /// The shard that `thread` should take through a pass: the one with the most passes left, its own a little before the others'.
    /// None where all of them are through.
    pub(super) fn take(&self, thread: usize) -> Option<Turn<'a>> {
        let mut waiting = self.waiting();
        let due = (0..waiting.len()).filter(|&i| waiting[i].left > 0);
        let lead = |turn: &Turn<'_>| if turn.home == thread { HOME_LEAD } else { 0 };
        let next = due.max_by_key(|&i| waiting[i].left + lead(&waiting[i]))?;
        Some(waiting.swap_remove(next))
    }

    /// Puts a shard back that has made so many passes.
    pub(super) fn give_back(&self, turn: Turn<'a>, passes: u32) {
        self.waiting().push(Turn { left: turn.left - passes, ..turn });
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Turn<'a>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
