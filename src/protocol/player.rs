//! The engine on a thread of its own: it takes one search after another, reports, and can be stopped at any time.

use super::position::Position;
use crate::batch::ErasedRules;
use crate::engine::{Analysis, Engine, Limit, Settings};
use crate::error::{Error, Result};
use crate::net::Network;
use crate::stop::Stop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// What happens outside of the thread of the dialogue.
pub enum Event {
    /// A line of input, and the moment in which it came.
    Line(String, Instant),
    /// The end of input.
    End,
    /// The result so far of the search with this number. The next one is sent after this one was read.
    Progress(u64, Box<Analysis>, Unread),
    /// The result of the search with this number.
    Found(u64, Result<Box<Analysis>>),
}

/// Set while it exists: a report waits to be read.
pub struct Unread(Arc<AtomicBool>);

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A search to make.
pub struct Search {
    /// The position, where a player is to move.
    pub position: Position,
    /// The moves that are searched; empty for all.
    pub moves: Vec<u16>,
    /// Visits in each tree, those of earlier searches included; None for no limit.
    pub simulations: Option<u64>,
    /// The moment in which it ends; None for no limit.
    pub until: Option<Instant>,
    /// Time between two reports.
    pub interval: Duration,
}

/// An order to the thread.
enum Order {
    Search(Box<Search>, u64, Stop),
    Configure(Box<Settings>),
}

/// The search in progress.
struct Running {
    stop: Stop,
    is_bounded: bool,
}

/// The side of the dialogue.
pub struct Player {
    /// None while the player ends.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    number: u64,
    running: Option<Running>,
}

/// The side of the thread.
struct Worker {
    /// None after a change of settings.
    engine: Option<Engine>,
    network: Box<dyn Network>,
    settings: Settings,
    events: Sender<Event>,
    /// True while a report waits to be read.
    unread: Arc<AtomicBool>,
}

impl Player {
    /// Starts the thread with an engine at `position`; results go to `events`.
    ///
    /// # Errors
    /// Those of [`Engine::new`]; [`Error::Unsupported`] if the system refuses the thread.
    pub fn start(
        position: &Position,
        network: Box<dyn Network>,
        settings: Settings,
        events: Sender<Event>,
    ) -> Result<Self> {
        let engine = Some(Engine::new(position.game().clone(), network.as_ref(), settings)?);
        let worker = Worker { engine, network, settings, events, unread: Arc::default() };
        let (orders, taken) = channel();
        let thread = Builder::new().name("player".into()).spawn(move || worker.work(&taken));
        let thread = thread.map_err(|e| Error::unsupported("a thread for the engine", e.to_string()))?;
        Ok(Self { orders: Some(orders), thread: Some(thread), number: 0, running: None })
    }

    /// Starts a search. One in progress is stopped, and its result is not current any more.
    pub fn search(&mut self, search: Search) {
        self.stop();
        self.number += 1;
        let stop = Stop::default();
        let is_bounded = search.simulations.is_some() || search.until.is_some();
        self.order(Order::Search(Box::new(search), self.number, stop.clone()));
        self.running = Some(Running { stop, is_bounded });
    }

    /// Stops the search in progress, whose result follows.
    pub fn stop(&mut self) {
        if let Some(running) = &self.running {
            running.stop.cancel();
        }
    }

    /// Stops the search in progress, whose result is not current any more.
    pub fn abandon(&mut self) {
        self.stop();
        self.number += 1;
        self.running = None;
    }

    /// True while the result of a search is still to come.
    pub fn is_searching(&self) -> bool {
        self.running.is_some()
    }

    /// True if the search in progress ends without a stop.
    pub fn is_bounded(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_bounded)
    }

    /// True if `number` is that of the search in progress.
    pub fn is_current(&self, number: u64) -> bool {
        self.running.is_some() && self.number == number
    }

    /// Takes note of the result of the search in progress.
    pub fn ended(&mut self) {
        self.running = None;
    }

    /// The settings of all further searches, for which a new engine is made.
    pub fn configure(&mut self, settings: Settings) {
        self.order(Order::Configure(Box::new(settings)));
    }

    /// Sends an order. It fails only if the thread has ended.
    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.stop();
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn work(mut self, orders: &Receiver<Order>) {
        for order in orders {
            match order {
                Order::Configure(settings) => (self.settings, self.engine) = (*settings, None),
                Order::Search(search, number, stop) => {
                    let search = AssertUnwindSafe(|| self.search(&search, number, &stop).map(Box::new));
                    let found = catch_unwind(search).unwrap_or_else(|_| {
                        // Its trees may be of any kind.
                        self.engine = None;
                        Err(Error::unsupported("the search", "it ended with the message above"))
                    });
                    if self.events.send(Event::Found(number, found)).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn search(&mut self, search: &Search, number: u64, stop: &Stop) -> Result<Analysis> {
        let (events, unread) = (self.events.clone(), self.unread.clone());
        let engine = self.engine_at(&search.position)?;
        engine.restrict(&search.moves)?;
        // A new engine takes its time from the search.
        let time = search.until.map(|until| until.saturating_duration_since(Instant::now()));
        let limit = Limit { simulations: search.simulations, time, stop: stop.clone() };
        engine.analyse_with(&limit, search.interval, &mut |found| {
            if !unread.swap(true, Ordering::AcqRel) {
                // Fails only if the dialogue is over.
                let _ = events.send(Event::Progress(number, Box::new(found.clone()), Unread(unread.clone())));
            }
        })
    }

    /// The engine at `position`: a new one after a change of the settings or of the rules.
    fn engine_at(&mut self, position: &Position) -> Result<&mut Engine> {
        let rules = |game: &dyn ErasedRules| (game.name(), game.options());
        let is_of_game = |engine: &Engine| rules(engine.game().as_ref()) == rules(position.game().as_ref());
        let engine = match self.engine.take().filter(is_of_game) {
            Some(engine) => engine,
            None => Engine::new(position.game().clone(), self.network.as_ref(), self.settings)?,
        };
        let engine = self.engine.insert(engine);
        engine.set_position(position.play())?;
        Ok(engine)
    }
}
