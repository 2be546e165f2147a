//! Which thread takes which shard through its next pass. A thread keeps to its own shards, whose trees its caches know, and
//! takes another's when its own are through: no thread waits for a slower one for longer than a pass.

use super::Shard;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A shard and the passes it has left.
pub(super) struct Turn<'a> {
    pub shard: &'a mut Shard,
    pub left: u32,
    /// The thread it belongs to.
    home: usize,
}

/// The shards that no thread is at work on.
pub(super) struct Turns<'a>(Mutex<Vec<Turn<'a>>>);

impl<'a> Turns<'a> {
    /// `passes` passes for each shard, on `threads` threads.
    pub(super) fn new(shards: &'a mut [Shard], threads: usize, passes: u32) -> Self {
        let turns = shards.iter_mut().enumerate();
        let turns = turns.map(|(i, shard)| Turn { shard, left: passes, home: i % threads });
        Self(Mutex::new(turns.collect()))
    }

    /// The shard that `thread` should take through a pass: of its own, then of all, the one with the most passes left. None
    /// where all the others are through.
    pub(super) fn take(&self, thread: usize) -> Option<Turn<'a>> {
        let mut waiting = self.waiting();
        let due = (0..waiting.len()).filter(|&i| waiting[i].left > 0);
        let next = due.max_by_key(|&i| (waiting[i].home == thread, waiting[i].left))?;
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
