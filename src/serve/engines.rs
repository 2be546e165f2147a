//! The engines of the tables. One that is not in use keeps its trees, so that the next search on its table continues them.

use super::catalogue::Catalogue;
use super::refusal::{Refusal, Served};
use crate::backend::AnyGame;
use crate::engine::Engine;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Idle engines that are kept.
const KEPT: usize = 8;
/// Searches at once that somebody waits for.
const MAX_SEARCHES: usize = 24;
/// Searches on the time of people at once.
const MAX_PONDERING: usize = 4;

/// What an engine is for. Engines of one table do not share trees: a person's analysis does not help an opponent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The table.
    pub table: String,
    /// Who uses it.
    pub role: Role,
    /// The identifier of its network.
    pub network: String,
}

/// The user of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The engine of a seat.
    Seat(u8),
    /// Analyses and hints.
    Analysis,
}

/// The engines of all tables.
#[derive(Default)]
pub struct Engines {
    idle: Mutex<Vec<(Task, Engine)>>,
    searches: AtomicUsize,
    pondering: AtomicUsize,
}

/// An engine in use, which goes back to the idle ones when it is dropped.
pub struct BorrowedEngine {
    engines: Arc<Engines>,
    /// The task and the engine; None once it was given back.
    held: Option<(Task, Engine)>,
}

/// The place of a search among those that run at once.
pub struct SearchPlace(Arc<Engines>);

impl Drop for SearchPlace {
    fn drop(&mut self) {
        self.0.searches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place of a search on the time of a person.
pub struct PonderPlace(Arc<Engines>);

impl Drop for PonderPlace {
    fn drop(&mut self) {
        self.0.pondering.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engines {
    /// A place for one more search on the time of a person; None if enough run.
    pub fn ponder_place(self: &Arc<Self>) -> Option<PonderPlace> {
        let taken = self.pondering.fetch_add(1, Ordering::Relaxed);
        let place = PonderPlace(self.clone());
        (taken < MAX_PONDERING).then_some(place)
    }

    /// A place for one more search.
    ///
    /// # Errors
    /// 503 if too many run.
    pub fn place(self: &Arc<Self>) -> Served<SearchPlace> {
        let taken = self.searches.fetch_add(1, Ordering::Relaxed);
        let place = SearchPlace(self.clone());
        match taken < MAX_SEARCHES {
            true => Ok(place),
            false => {
                Err(Refusal::busy(format!("{MAX_SEARCHES} searches run already; end one of them first")))
            }
        }
    }

    /// The engine of `task` in `game`, which is made if there is none.
    ///
    /// # Errors
    /// Those of [`Catalogue::parts`] and [`Engine::new`].
    pub fn take(
        self: &Arc<Self>,
        task: Task,
        game: &Arc<dyn AnyGame>,
        catalogue: &Catalogue,
    ) -> Served<BorrowedEngine> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let found = idle.iter().position(|(other, _)| *other == task).map(|at| idle.remove(at));
        drop(idle);
        let held = match found {
            Some(held) => held,
            None => {
                let parts = catalogue.parts(&task.network, game.as_ref())?;
                (task, Engine::new(game.clone(), parts.network.as_ref(), parts.settings)?)
            }
        };
        Ok(BorrowedEngine { engines: self.clone(), held: Some(held) })
    }

    /// Drops the idle engines of a table.
    pub fn forget(&self, table: &str) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(task, _)| task.table != table);
    }
}

impl BorrowedEngine {
    /// Calls `search` with the engine.
    ///
    /// # Errors
    /// Those of `search`.
    pub fn with<T>(&mut self, search: impl FnOnce(&mut Engine) -> crate::Result<T>) -> Served<T> {
        match &mut self.held {
            Some((_, engine)) => Ok(search(engine)?),
            None => Err(Refusal::conflict("the engine was given back")),
        }
    }
}

impl Drop for BorrowedEngine {
    fn drop(&mut self) {
        // After a panic the trees are in an unknown state.
        let Some(held) = self.held.take().filter(|_| !std::thread::panicking()) else { return };
        let mut idle = self.engines.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= KEPT {
            idle.remove(0);
        }
        idle.push(held);
    }
}
