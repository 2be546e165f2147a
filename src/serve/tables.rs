//! The tables of a server, and the streams of their changes.

use super::refusal::{Refusal, Served};
use super::table::{Paused, Table};
use crate::words::count;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// Maximum number of tables at once.
pub const MAX_TABLES: usize = 64;

/// A table with its identifier.
pub struct Seated {
    /// The identifier.
    pub id: String,
    table: Mutex<Table>,
    /// The table's version; closed when the table is removed.
    changes: Mutex<Option<watch::Sender<u64>>>,
    used: Mutex<Instant>,
    ended: OnceLock<&'static str>,
    /// Held by the one search of the seats' engines: pondering has given its tree back before the move is searched.
    search: Mutex<()>,
}

impl Seated {
    /// Waits until no other search of the seats' engines uses its trees.
    pub fn lock_search(&self) -> MutexGuard<'_, ()> {
        lock(&self.search)
    }

    /// The table, for this thread alone, until the guard is dropped.
    pub fn lock(&self) -> MutexGuard<'_, Table> {
        *lock(&self.used) = Instant::now();
        lock(&self.table)
    }

    /// The same for a list of tables, which is no use of this one.
    pub fn peek(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Calls `change` and tells those who watch the table.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn change<T>(&self, change: impl FnOnce(&mut Table) -> Served<T>) -> Served<T> {
        let mut table = self.lock();
        let changed = change(&mut table);
        let version = table.version();
        drop(table);
        if let Some(changes) = lock(&self.changes).as_ref() {
            changes.send_replace(version);
        }
        changed
    }

    /// The changes of this table: its version after every change. They end when the table is removed.
    ///
    /// # Errors
    /// 404 if it is removed already.
    pub fn watch(&self) -> Served<watch::Receiver<u64>> {
        let changes = lock(&self.changes);
        changes.as_ref().map(watch::Sender::subscribe).ok_or_else(|| unknown(&self.id))
    }

    /// True if somebody watches or an engine thinks.
    fn is_busy(&self) -> bool {
        lock(&self.changes).as_ref().is_some_and(|changes| changes.receiver_count() > 0)
            || lock(&self.table).thinking().is_some()
    }

    /// Why the changes have ended.
    pub fn end(&self) -> &'static str {
        self.ended.get().copied().unwrap_or("the table was removed")
    }

    /// Ends the search in progress and the changes, because of `why`.
    fn close(&self, why: &'static str) {
        self.ended.get_or_init(|| why);
        let mut table = lock(&self.table);
        table.pause(Paused::Yes);
        drop(table);
        lock(&self.changes).take();
    }
}

/// The tables of a server.
#[derive(Default)]
pub struct Tables {
    all: Mutex<Vec<Arc<Seated>>>,
}

impl Tables {
    /// Adds a table. Of too many, the one goes that nobody watches and that was used longest ago; it is returned too.
    ///
    /// # Errors
    /// 503 if all tables are in use.
    pub fn add(&self, id: String, table: Table) -> Served<(Arc<Seated>, Option<Arc<Seated>>)> {
        let mut all = lock(&self.all);
        let mut left = None;
        if all.len() >= MAX_TABLES {
            let idle = all.iter().filter(|seated| !seated.is_busy()).min_by_key(|seated| *lock(&seated.used));
            let Some(idle) = idle.cloned() else {
                return Err(Refusal::busy(format!("all of {} are in use", count(MAX_TABLES, "table"))));
            };
            idle.close("the table was idle, and there were too many");
            all.retain(|seated| seated.id != idle.id);
            left = Some(idle);
        }
        let changes = Mutex::new(Some(watch::Sender::new(table.version())));
        let used = Mutex::new(Instant::now());
        let seated = Arc::new(Seated {
            id,
            table: Mutex::new(table),
            changes,
            used,
            ended: OnceLock::new(),
            search: Mutex::default(),
        });
        all.push(seated.clone());
        Ok((seated, left))
    }

    /// The table with this identifier.
    ///
    /// # Errors
    /// 404.
    pub fn get(&self, id: &str) -> Served<Arc<Seated>> {
        lock(&self.all).iter().find(|seated| seated.id == id).cloned().ok_or_else(|| unknown(id))
    }

    /// All tables, the oldest first.
    pub fn all(&self) -> Vec<Arc<Seated>> {
        lock(&self.all).clone()
    }

    /// Removes a table and ends its search.
    ///
    /// # Errors
    /// 404.
    pub fn remove(&self, id: &str) -> Served<()> {
        let seated = self.get(id)?;
        lock(&self.all).retain(|other| other.id != id);
        seated.close("the table was removed");
        Ok(())
    }

    /// Removes all tables.
    pub fn close(&self) {
        lock(&self.all).drain(..).for_each(|seated| seated.close("the server has ended"));
    }
}

fn unknown(id: &str) -> Refusal {
    Refusal::unknown(format!("there is no table {id:?}"))
}

/// A lock that a panic elsewhere does not take away.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
