//! The engines of the tables. One that is not in use keeps its trees, so that the next search on its table continues them. It goes with its
//! table, when its seat changes, or when its run has a newer network.

use super::catalogue::Catalogue;
use super::refusal::{Refusal, Served};
use super::run_folder::ManifestStamp;
use super::seat::Seat;
use super::tables::Tables;
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
pub struct Engines {
    tables: Arc<Tables>,
    /// Locked before the tables, never while one of them is locked.
    idle: Mutex<Vec<HeldEngine>>,
    searches: Arc<AtomicUsize>,
    pondering: Arc<AtomicUsize>,
}

/// An engine with what it is for.
struct HeldEngine {
    task: Task,
    /// The state of the run when the engine took its network; None for networks that do not change.
    state: Option<ManifestStamp>,
    engine: Engine,
}

/// An engine in use, which goes back to the idle ones when it is dropped.
pub struct BorrowedEngine {
    engines: Arc<Engines>,
    /// None once it was given back.
    held: Option<HeldEngine>,
}

/// The slot of a search among those that run at once, free again when it is dropped.
pub struct SearchSlot(Arc<AtomicUsize>);

impl SearchSlot {
    /// One more of the `used` slots; None if `limit` are used.
    fn take(used: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let taken = used.fetch_add(1, Ordering::Relaxed);
        let slot = Self(used.clone());
        (taken < limit).then_some(slot)
    }
}

impl Drop for SearchSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engines {
    /// The engines of `tables`, none at first.
    pub fn new(tables: Arc<Tables>) -> Self {
        Self { tables, idle: Mutex::default(), searches: Arc::default(), pondering: Arc::default() }
    }

    /// A slot for one more search on the time of a person; None if enough run.
    pub fn ponder_slot(&self) -> Option<SearchSlot> {
        SearchSlot::take(&self.pondering, MAX_PONDERING)
    }

    /// A slot for one more search.
    ///
    /// # Errors
    /// 503 if too many run.
    pub fn search_slot(&self) -> Served<SearchSlot> {
        SearchSlot::take(&self.searches, MAX_SEARCHES).ok_or_else(|| {
            Refusal::busy(format!("{MAX_SEARCHES} searches run already; end one of them first"))
        })
    }

    /// The engine of `task` in `game`, which is made if there is none with the network as it is now.
    ///
    /// # Errors
    /// Those of [`Catalogue::parts`] and [`Engine::new`].
    pub fn take(
        self: &Arc<Self>,
        task: Task,
        game: &Arc<dyn AnyGame>,
        catalogue: &Catalogue,
    ) -> Served<BorrowedEngine> {
        let state = catalogue.state_of(&task.network);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let found = idle.iter().position(|held| held.task == task).map(|at| idle.remove(at));
        drop(idle);
        let held = match found.filter(|held| held.state == state) {
            Some(held) => held,
            None => {
                let parts = catalogue.parts(&task.network, game.as_ref())?;
                let engine = Engine::new(parts.game, parts.network.as_ref(), parts.settings)?;
                HeldEngine { task, state, engine }
            }
        };
        Ok(BorrowedEngine { engines: self.clone(), held: Some(held) })
    }

    /// Drops the idle engines of a table that it does not need any more: all of a table that was removed. To be called after the removal of a
    /// table and after a change of its seats.
    pub fn forget(&self, table: &str) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |held: &mut HeldEngine| held.task.table == table && !self.is_needed(&held.task);
        let gone: Vec<HeldEngine> = idle.extract_if(.., is_gone).collect();
        // Trees take time to free.
        drop(idle);
        drop(gone);
    }

    /// True if the table is there, and the seat still has this network.
    fn is_needed(&self, task: &Task) -> bool {
        let Ok(seated) = self.tables.get(&task.table) else { return false };
        match task.role {
            Role::Analysis => true,
            Role::Seat(player) => {
                let table = seated.peek();
                let engine = table.seats().get(usize::from(player)).and_then(Seat::engine);
                engine.is_some_and(|engine| engine.network == task.network)
            }
        }
    }
}

impl BorrowedEngine {
    /// Calls `search` with the engine.
    ///
    /// # Errors
    /// Those of `search`.
    pub fn with<T>(&mut self, search: impl FnOnce(&mut Engine) -> crate::Result<T>) -> Served<T> {
        match &mut self.held {
            Some(held) => Ok(search(&mut held.engine)?),
            None => Err(Refusal::conflict("the engine was given back")),
        }
    }
}

impl Drop for BorrowedEngine {
    fn drop(&mut self) {
        // After a panic the trees are in an unknown state.
        let Some(held) = self.held.take().filter(|_| !std::thread::panicking()) else { return };
        let mut idle = self.engines.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: who removes the table or changes its seats forgets its idle engines after that.
        let gone = if self.engines.is_needed(&held.task) {
            let oldest = (idle.len() >= KEPT).then(|| idle.remove(0));
            idle.push(held);
            oldest
        } else {
            Some(held)
        };
        drop(idle);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Playthrough;
    use crate::config::Config;
    use crate::engine::Settings;
    use crate::net::{IoShape, UniformNet};
    use crate::protocol::dialogue::Ponder;
    use crate::registry::{Registry, any_game};
    use crate::serve::catalogue::UNIFORM;
    use crate::serve::seat::{EngineSeat, Strength};
    use crate::serve::table::Table;
    use std::path::{Path, PathBuf};

    fn tic_tac_toe() -> Arc<dyn AnyGame> {
        any_game("tic_tac_toe", &toml::Table::new()).expect("registered")
    }

    /// An engine without a network.
    fn engine() -> Engine {
        let game = tic_tac_toe();
        let sizes = game.sizes();
        let settings = Settings { threads: 1, memory_mib: 64, ..Settings::new(&Config::default(), &sizes) };
        Engine::new(game, &UniformNet(IoShape::of(&sizes)), settings).expect("an engine")
    }

    /// An idle engine is not used again if the state of its run was another when it took its network.
    #[test]
    fn engines_go_when_their_run_goes_on() {
        let files = [PathBuf::from("assets/connect_four.safetensors")];
        let (catalogue, _) = Catalogue::open(&files, &Registry::built_in(), 1).expect("a network");
        let engines = Arc::new(Engines::new(Arc::new(Tables::default())));
        let task = Task { table: "a".into(), role: Role::Analysis, network: UNIFORM.into() };
        let old = ManifestStamp::of(Path::new("Cargo.toml"));
        assert!(old.is_some());
        for state in [None, old] {
            let kept = HeldEngine { task: task.clone(), state, engine: engine() };
            engines.idle.lock().expect("no panic").push(kept);
            let taken = engines.take(task.clone(), &tic_tac_toe(), &catalogue).expect("an engine");
            assert_eq!(taken.held.as_ref().map(|held| held.state), Some(None), "that of the network now");
            assert!(engines.idle.lock().expect("no panic").is_empty());
        }
    }

    /// An engine that comes back after its table was removed, or its seat given to another network, is not kept.
    #[test]
    fn engines_go_with_their_tables_and_seats() {
        let game = tic_tac_toe();
        let seat = |network: &str| {
            Seat::Engine(EngineSeat {
                network: network.into(),
                label: network.into(),
                strength: Strength::default(),
                ponder: Ponder::Never,
            })
        };
        let tables = Arc::new(Tables::default());
        let engines = Arc::new(Engines::new(tables.clone()));
        for id in ["a", "b"] {
            let play = Playthrough::new(game.clone());
            let table = Table::new(game.clone(), play, vec![seat("old"), seat("old")], 1);
            assert!(tables.add(id.into(), table).is_ok());
        }
        let borrow = |table: &str, role, network: &str| {
            let task = Task { table: table.into(), role, network: network.into() };
            let held = HeldEngine { task, state: None, engine: engine() };
            BorrowedEngine { engines: engines.clone(), held: Some(held) }
        };
        let idle = || {
            let idle = engines.idle.lock().expect("no panic");
            idle.iter().map(|held| (held.task.table.clone(), held.task.role)).collect::<Vec<_>>()
        };
        let of = |table: &str, role| (table.to_string(), role);
        let late = borrow("a", Role::Seat(0), "old");
        drop(borrow("a", Role::Analysis, "any"));
        drop(borrow("b", Role::Seat(0), "old"));
        drop(borrow("b", Role::Seat(1), "old"));
        assert_eq!(
            idle(),
            [of("a", Role::Analysis), of("b", Role::Seat(0)), of("b", Role::Seat(1))],
            "engines of tables are kept"
        );
        assert!(tables.remove("a").is_ok());
        engines.forget("a");
        drop(late);
        assert_eq!(idle(), [of("b", Role::Seat(0)), of("b", Role::Seat(1))], "the table a was removed");
        let late = borrow("b", Role::Seat(0), "old");
        let changed = tables
            .get("b")
            .is_ok_and(|table| table.change(|table| table.set_seats(vec![seat("new"), seat("old")])).is_ok());
        assert!(changed);
        engines.forget("b");
        drop(late);
        assert_eq!(idle(), [of("b", Role::Seat(1))], "the first seat has another network");
    }
}
