//! A dialogue between a client's program and the engine: lines in, lines out, searches beside them.

use super::clock::TimeLeft;
use super::delays::Delays;
use super::player::{Event, Player, Search};
use super::position::Position;
use crate::backend::AnyGame;
use crate::engine::{Analysis, Settings};
use crate::error::{Error, Result};
use crate::game::chess::without_clock;
use crate::net::Network;
use crate::registry::Registry;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The longest line of input, in bytes; the rest of a longer one is dropped.
const MAX_LINE: u64 = 1 << 20;
/// Lines that are read ahead.
const LINES_AHEAD: usize = 1024;

/// How much is searched where the protocol does not say it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Simulations of a move, if no clock runs.
    pub simulations: Option<u64>,
    /// The longest time of a move.
    pub time: Option<Duration>,
    /// Maximum number of simulations of a move even if a clock runs.
    pub max_simulations: Option<u64>,
    /// The longest delay between the end of a search and the moment in which the client's clock stops.
    pub overhead: Duration,
    /// Whether the opponent's time is used too, where the protocol does not say it.
    pub ponder: Ponder,
}

/// Use of the opponent's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ponder {
    /// The engine waits.
    Never,
    /// After its move the engine searches the position of the opponent.
    Always,
}

/// What a search is to find.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goal {
    /// Visits; None for no limit.
    pub simulations: Option<u64>,
    /// Time from the arrival of the present line; None for no limit.
    pub time: Option<Duration>,
    /// Time between two reports; None for none.
    pub interval: Option<Duration>,
    /// The player whose clock runs, and what it shows, if one does.
    pub clock: Option<(u8, TimeLeft)>,
}

/// Whether a dialogue continues after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOutcome {
    /// It does.
    Continue,
    /// The client has ended it.
    Quit,
}

/// When a line that comes during a search is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// At once.
    Now,
    /// Once the result is there.
    Wait,
    /// Once the result is there, and the search is stopped.
    Interrupt,
}

/// The engine's side of a protocol.
pub trait Protocol {
    /// Answers a line, without its end.
    ///
    /// # Errors
    /// [`Error::Io`] if the answer cannot be written.
    fn line(&mut self, dialogue: &mut Dialogue, line: &str) -> Result<LineOutcome>;

    /// When `line` is read, which has come during a search.
    fn reading(&self, line: &str) -> Reading;

    /// Reports the result so far.
    ///
    /// # Errors
    /// Those of [`Protocol::line`].
    fn progress(&mut self, _dialogue: &mut Dialogue, _found: &Analysis) -> Result<()> {
        Ok(())
    }

    /// Answers what waits for a line of the client, or sees to it that [`Protocol::found`] does: no line will come, and a search in progress that
    /// has no limit is stopped after this. It may be called again before the dialogue ends.
    ///
    /// # Errors
    /// Those of [`Protocol::line`].
    fn end_of_input(&mut self, _dialogue: &mut Dialogue) -> Result<()> {
        Ok(())
    }

    /// Answers with the result of the search.
    ///
    /// # Errors
    /// Those of [`Protocol::line`].
    fn found(&mut self, dialogue: &mut Dialogue, found: Result<Box<Analysis>>) -> Result<()>;
}

/// What a protocol speaks with: the position, the engine, and the client's input of lines.
pub struct Dialogue {
    /// The position of the game.
    pub position: Position,
    /// How much is searched.
    pub pace: Pace,
    /// The settings of the engine; [`Dialogue::configure`] after a change.
    pub settings: Settings,
    registry: Registry,
    player: Player,
    is_pondering: bool,
    /// The arrival of the present line.
    arrived: Instant,
    /// The end of the search in progress by its time limit.
    until: Option<Instant>,
    delays: Delays,
    /// The search in progress, if a clock runs.
    timed: Option<TimedSearch>,
    out: Box<dyn Write + Send>,
}

/// A search while a clock runs.
#[derive(Clone, Copy, Debug)]
struct TimedSearch {
    /// The arrival of the line that asked for it.
    start: Instant,
    /// The player whose clock runs.
    player: u8,
    /// What the clock showed.
    clock: TimeLeft,
}

/// What the engine of a dialogue is made of.
pub struct Parts {
    /// The rules at first.
    pub game: Arc<dyn AnyGame>,
    /// The games by name, from which rules with other settings are made.
    pub registry: Registry,
    /// The network.
    pub network: Box<dyn Network>,
    /// How the engine searches.
    pub settings: Settings,
    /// How much it searches.
    pub pace: Pace,
}

/// Speaks the protocol that `make` gives for the dialogue with a client, from `input` to `output`, until the client quits or its input ends.
///
/// # Errors
/// Those of [`Player::start`] and of `make`; [`Error::Io`] if an answer cannot be written, of kind `BrokenPipe` if the client has
/// closed its end.
pub fn converse(
    parts: Parts,
    input: impl Read + Send + 'static,
    output: Box<dyn Write + Send>,
    make: impl FnOnce(&mut Dialogue) -> Result<Box<dyn Protocol>>,
) -> Result<()> {
    let (send, events) = channel();
    let position = Position::new(&parts.game);
    let player = Player::start(&position, parts.network, parts.settings, send.clone())?;
    let mut dialogue = Dialogue {
        position,
        pace: parts.pace,
        settings: parts.settings,
        registry: parts.registry,
        player,
        is_pondering: false,
        arrived: Instant::now(),
        until: None,
        delays: Delays::default(),
        timed: None,
        out: output,
    };
    let mut protocol = make(&mut dialogue)?;
    // The reader waits for its next line when the dialogue is over, and ends with the process.
    let (permits, read) = sync_channel(LINES_AHEAD);
    let reader = move || read_lines(input, &permits, |event| send.send(event).is_ok());
    Builder::new()
        .name("reader".into())
        .spawn(reader)
        .map_err(|e| Error::unsupported("a thread for the input", e.to_string()))?;
    Session { protocol: protocol.as_mut(), dialogue: &mut dialogue, waiting: VecDeque::new(), read }
        .run(&events)
}

/// Sends the lines of `input` and its end; a permit is given for each, so that no more than [`LINES_AHEAD`] are kept.
fn read_lines(input: impl Read, permits: &SyncSender<()>, send: impl Fn(Event) -> bool) {
    let mut reader = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        // An error of reading is the end: there is nobody left to answer.
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) || permits.send(()).is_err() {
            send(Event::End);
            return;
        }
        if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") && reader.skip_until(b'\n').is_err() {
            send(Event::End);
            return;
        }
        let text = String::from_utf8_lossy(&line);
        if !send(Event::Line(text.trim_end_matches(['\r', '\n']).to_string(), Instant::now())) {
            return;
        }
    }
}

/// A dialogue in progress.
struct Session<'a> {
    protocol: &'a mut dyn Protocol,
    dialogue: &'a mut Dialogue,
    /// Lines that are not read yet, with the moment in which they came; None for those that had to wait for the result of a search.
    waiting: VecDeque<(String, Option<Instant>)>,
    /// The permits of lines that were read.
    read: Receiver<()>,
}

impl Session<'_> {
    fn run(&mut self, events: &Receiver<Event>) -> Result<()> {
        let mut has_ended = false;
        loop {
            if self.read_waiting()? == LineOutcome::Quit {
                return Ok(());
            }
            if has_ended && !self.dialogue.player.is_bounded() {
                self.protocol.end_of_input(self.dialogue)?;
                self.dialogue.stop();
                if !self.dialogue.is_searching() {
                    return Ok(());
                }
            }
            let ended = || Error::unsupported("the engine's thread", "it has ended; its message is above");
            match events.recv().map_err(|_| ended())? {
                Event::End => has_ended = true,
                Event::Line(line, arrived) => {
                    let arrived = self.waiting.is_empty().then_some(arrived);
                    self.waiting.push_back((line, arrived));
                }
                Event::Progress(number, found, _unread) => {
                    if self.dialogue.player.is_current(number) && !self.dialogue.is_pondering {
                        self.protocol.progress(self.dialogue, &found)?;
                    }
                }
                Event::Found(number, found) => self.take_result(number, found)?,
            }
        }
    }

    /// Reads the lines that need not wait for the search in progress, which is stopped if the next one asks for that.
    fn read_waiting(&mut self) -> Result<LineOutcome> {
        while let Some((line, arrived)) = self.waiting.front_mut() {
            let reading = match self.dialogue.is_searching() {
                true => self.protocol.reading(line),
                false => Reading::Now,
            };
            match reading {
                Reading::Now => {}
                Reading::Wait | Reading::Interrupt => {
                    if reading == Reading::Interrupt {
                        self.dialogue.stop();
                    }
                    *arrived = None;
                    break;
                }
            }
            // The time of a line that had to wait begins with the end of the search before it.
            let (line, arrived) = (std::mem::take(line), arrived.unwrap_or_else(Instant::now));
            self.waiting.pop_front();
            if self.read_line(&line, arrived)? == LineOutcome::Quit {
                return Ok(LineOutcome::Quit);
            }
        }
        Ok(LineOutcome::Continue)
    }

    fn read_line(&mut self, line: &str, arrived: Instant) -> Result<LineOutcome> {
        // A permit was given before the line was sent.
        let _ = self.read.try_recv();
        if self.dialogue.is_pondering {
            self.dialogue.player.abandon();
            self.dialogue.is_pondering = false;
        }
        self.dialogue.arrived = arrived;
        self.protocol.line(self.dialogue, line)
    }

    fn take_result(&mut self, number: u64, found: Result<Box<Analysis>>) -> Result<()> {
        let dialogue = &mut self.dialogue;
        if !dialogue.player.is_current(number) {
            return Ok(());
        }
        dialogue.player.ended();
        if dialogue.is_pondering {
            dialogue.is_pondering = false;
            return Ok(());
        }
        if let Some(until) = dialogue.until.take() {
            dialogue.delays.note(until.elapsed());
        }
        let timed = dialogue.timed.take();
        self.protocol.found(self.dialogue, found)?;
        if let Some(TimedSearch { start, player, clock }) = timed {
            self.dialogue.delays.moved(player, clock, start.elapsed());
        }
        Ok(())
    }
}

impl Dialogue {
    /// Writes a line.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn say(&mut self, line: &str) -> Result<()> {
        let written = self.out.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|e| Error::io("writing", "stdout", e))
    }

    /// Begins a game at `position`.
    pub fn begin_game(&mut self, position: Position) {
        self.position = position;
        self.delays.forget_clocks();
    }

    /// Searches the position; the result goes to [`Protocol::found`].
    pub fn search(&mut self, goal: Goal) {
        let position = self.position.clone();
        self.search_at(position, goal);
    }

    /// Searches `position`, where a player must be to move.
    pub fn search_at(&mut self, position: Position, goal: Goal) {
        self.search_among(position, goal, Vec::new());
    }

    /// [`Self::search_at`] of the legal `moves` alone; of all if there are none.
    pub fn search_among(&mut self, position: Position, goal: Goal, moves: Vec<u16>) {
        self.until = goal.time.and_then(|time| self.arrived.checked_add(time));
        let interval = goal.interval.unwrap_or(Duration::MAX);
        self.timed = goal.clock.map(|(player, clock)| TimedSearch { start: self.arrived, player, clock });
        self.is_pondering = false;
        let (simulations, until) = (goal.simulations, self.until);
        self.player.search(Search { position, moves, simulations, until, interval });
    }

    /// Searches the position on the opponent's time, if that is wanted, until the next line.
    pub fn ponder(&mut self) {
        if self.pace.ponder == Ponder::Always && self.position.player().is_some() {
            self.search(Goal::default());
            self.is_pondering = true;
        }
    }

    /// [`Self::search_among`] with a time that begins now.
    pub fn search_from_now(&mut self, position: Position, goal: Goal, moves: Vec<u16>) {
        self.arrived = Instant::now();
        self.search_among(position, goal, moves);
    }

    /// Stops the search in progress, whose result follows.
    pub fn stop(&mut self) {
        self.player.stop();
    }

    /// True if a result is to come for which the client waits.
    pub fn is_searching(&self) -> bool {
        self.player.is_searching() && !self.is_pondering
    }

    /// Time since the arrival of the present line.
    pub fn elapsed(&self) -> Duration {
        self.arrived.elapsed()
    }

    /// The goal of a move without a clock.
    pub fn own_goal(&self) -> Goal {
        let Pace { simulations, time, max_simulations, .. } = self.pace;
        // Without any limit given, the run's own number of simulations.
        let simulations = max_simulations.or(if time.is_some() { None } else { simulations });
        Goal { simulations, time, ..Goal::default() }
    }

    /// The goal of a move by the clock of `player`: no more than its budget, and no more than the pace allows.
    pub fn goal_by(&mut self, player: u8, clock: TimeLeft) -> Goal {
        self.delays.see_clock(player, clock);
        let budget = clock.budget(self.overhead());
        let time = self.pace.time.map_or(budget, |time| time.min(budget));
        let (simulations, clock) = (self.pace.max_simulations, Some((player, clock)));
        Goal { simulations, time: Some(time), clock, ..Goal::default() }
    }

    /// The goal of a move of at most `time`.
    pub fn goal_within(&self, time: Duration) -> Goal {
        let time = time.saturating_sub(self.overhead());
        let time = self.pace.time.map_or(time, |own| own.min(time));
        Goal { simulations: self.pace.max_simulations, time: Some(time), ..Goal::default() }
    }

    /// The overhead of a move: that of the pace, or what was measured, if that is more.
    fn overhead(&self) -> Duration {
        self.delays.overhead(self.pace.overhead)
    }

    /// The present rules with the setting `key` at `value`.
    ///
    /// # Errors
    /// Those of [`Registry::game`]: the setting does not exist or the value is not valid.
    pub fn game_with(&self, key: &str, value: impl Into<toml::Value>) -> Result<Arc<dyn AnyGame>> {
        let game = self.position.game();
        let mut options = game.options();
        options.insert(key.into(), value.into());
        self.registry.game(game.name(), &options)
    }

    /// The position in which play goes on: `position`, or in chess after a draw that a client need not claim the same board with its clock at 0
    /// and without its earlier positions. None where the game is over in any case.
    pub fn resumed(&self, position: &Position) -> Option<Position> {
        if !position.is_over() {
            return Some(position.clone());
        }
        let game = position.game();
        let (key, fen) = game.notation(position.play().state()).filter(|_| game.name() == "chess")?;
        // Refused where the game is over by mate, stalemate or want of material.
        self.game_with(key, without_clock(&fen)).ok().map(|game| Position::new(&game))
    }

    /// Replaces the settings of the engine by [`Self::settings`].
    pub fn configure(&mut self) {
        self.player.configure(self.settings);
    }
}
