//! The protocol of Gomocup's managers and of Piskvork, for Gomoku.

use super::clock::TimeLeft;
use super::dialogue::{Dialogue, Goal, LineOutcome, Protocol, Reading};
use super::position::Position;
use crate::engine::Analysis;
use crate::error::{Error, Result};
use crate::words::count;
use std::time::Duration;

/// Minimum memory for trees that `INFO max_memory` sets, in MiB.
const MIN_MIB: usize = 32;
/// The share of `max_memory` that trees have, as one in so many.
const SHARE_OF_MEMORY: usize = 2;

/// The limits that a manager has set.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    /// The longest time of a move; zero for as fast as possible.
    turn: Option<Duration>,
    /// The time of a match; None without a limit.
    whole: Option<Duration>,
    /// What is left of it.
    left: Option<Duration>,
}

/// A stone of `BOARD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Own,
    Opponent,
}

/// The lines read since `BOARD`.
#[derive(Clone, Debug, Default)]
struct BoardLines {
    stones: Vec<(u16, Owner)>,
    /// The number of those that were refused.
    refused: usize,
}

/// The engine's side of the protocol.
pub struct Gomocup {
    size: u32,
    /// The memory for trees without a limit of the manager, in MiB.
    max_mib: usize,
    limits: Limits,
    /// True after `START`.
    has_board: bool,
    /// None outside of `BOARD` .. `DONE`.
    board: Option<BoardLines>,
}

impl Gomocup {
    /// The protocol for the game of `dialogue`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a game other than Gomoku without an opening rule.
    pub fn new(dialogue: &Dialogue) -> Result<Self> {
        let game = dialogue.position.game();
        let options = game.options();
        if game.name() != "gomoku" {
            return Err(Error::unsupported(
                format!("Gomocup's protocol for {}", game.name()),
                "it is for Gomoku",
            ));
        }
        if options.get("opening").and_then(toml::Value::as_str) != Some("none") {
            let why = "colours are not chosen in it; set game.opening = \"none\"";
            return Err(Error::unsupported("Gomocup's protocol with the opening swap2", why));
        }
        let size = options.get("size").and_then(toml::Value::as_integer).unwrap_or_default() as u32;
        let max_mib = dialogue.settings.memory_mib;
        Ok(Self { size, max_mib, limits: Limits::default(), has_board: false, board: None })
    }

    /// The cell of `x,y`: column and row from 0.
    fn cell(&self, text: &str) -> Option<u16> {
        let (x, y) = text.split_once(',')?;
        let number = |text: &str| text.trim().parse().ok().filter(|&number: &u32| number < self.size);
        Some((number(y)? * self.size + number(x)?) as u16)
    }

    fn start(&mut self, dialogue: &mut Dialogue, size: &str) -> Result<()> {
        if size.parse() != Ok(self.size) {
            let line =
                format!("ERROR unsupported size {size}, the network's board has the size {}", self.size);
            return dialogue.say(&line);
        }
        self.has_board = true;
        self.begin_game(dialogue)
    }

    /// An empty board and a full clock: managers without `time_left` count on it.
    fn begin_game(&mut self, dialogue: &mut Dialogue) -> Result<()> {
        self.limits.left = None;
        dialogue.begin_game(dialogue.position.back(usize::MAX));
        dialogue.say("OK")
    }

    /// Thinks about the move of the engine.
    fn think(&self, dialogue: &mut Dialogue) -> Result<()> {
        if dialogue.position.is_over() {
            return dialogue.say("ERROR the game is over");
        }
        let Limits { turn, whole, left } = self.limits;
        let player = dialogue.position.player().unwrap_or_default();
        let by_clock = left.or(whole).map(|left| dialogue.goal_by(player, TimeLeft::of(left)));
        let by_turn = turn.map(|turn| dialogue.goal_within(turn));
        let goal = match (by_clock, by_turn) {
            (Some(clock), Some(turn)) => Goal { time: clock.time.min(turn.time), ..clock },
            (Some(goal), None) | (None, Some(goal)) => goal,
            (None, None) => dialogue.own_goal(),
        };
        dialogue.search(goal);
        Ok(())
    }

    fn turn(&self, dialogue: &mut Dialogue, point: &str) -> Result<()> {
        let legal = dialogue.position.play().legal();
        let Some(cell) = self.cell(point).filter(|cell| legal.contains(cell)) else {
            return dialogue.say(&format!("ERROR {point} is not a free cell"));
        };
        dialogue.position.step(cell)?;
        self.think(dialogue)
    }

    fn take_back(&self, dialogue: &mut Dialogue, point: &str) -> Result<()> {
        let last = dialogue.position.actions().last().copied();
        if last.is_none() || self.cell(point) != last {
            return dialogue.say(&format!("ERROR {point} is not the last move"));
        }
        dialogue.position = dialogue.position.back(1);
        dialogue.say("OK")
    }

    /// A line between `BOARD` and `DONE`: `x,y,owner`.
    fn read_stone(&mut self, dialogue: &mut Dialogue, line: &str) -> Result<()> {
        let stone = || {
            let (point, owner) = line.rsplit_once(',')?;
            let owner = match owner.trim() {
                "1" => Owner::Own,
                "2" => Owner::Opponent,
                _ => return None,
            };
            Some((self.cell(point)?, owner))
        };
        let stone = stone();
        let lines = self.board.get_or_insert_default();
        match stone {
            Some(stone) => {
                lines.stones.push(stone);
                Ok(())
            }
            None => {
                lines.refused += 1;
                dialogue.say(&format!("ERROR {line} is not x,y,1 or x,y,2"))
            }
        }
    }

    /// The stones in an order in which the rules allow them: those of either side in theirs, and the engine is to move. A board of which a line
    /// was refused is not set: a stone would be missing.
    fn set_board(&self, dialogue: &mut Dialogue, BoardLines { stones, refused }: &BoardLines) -> Result<()> {
        if *refused > 0 {
            let line = format!("ERROR the board is not set: {} of it had no stone", count(refused, "line"));
            return dialogue.say(&line);
        }
        let of = |owner| stones.iter().filter(move |stone| stone.1 == owner).map(|stone| stone.0);
        let [own, other] = [Owner::Own, Owner::Opponent].map(|owner| of(owner).collect::<Vec<u16>>());
        let (first, second) = match other.len().checked_sub(own.len()) {
            Some(0) => (own, other),
            Some(1) => (other, own),
            _ => {
                let line = format!(
                    "ERROR {} own stones and {} of the opponent, expected equally many or one more of the opponent",
                    own.len(),
                    other.len()
                );
                return dialogue.say(&line);
            }
        };
        let mut position = dialogue.position.back(usize::MAX);
        for number in 0..stones.len() {
            let cell = if number % 2 == 0 { first[number / 2] } else { second[number / 2] };
            if position.step(cell).is_err() {
                return dialogue.say("ERROR a cell has two stones, or the game was over before the last one");
            }
        }
        dialogue.position = position;
        self.think(dialogue)
    }

    /// Takes over a fact of the manager. Those that mean nothing to this engine are passed over, as the protocol asks.
    fn info(&mut self, dialogue: &mut Dialogue, words: &[&str]) -> Result<()> {
        let [key, value, ..] = words else { return Ok(()) };
        let number = value.parse::<i64>().ok();
        let time = number.map(|ms| Duration::from_millis(ms.max(0) as u64));
        match (key.to_lowercase().as_str(), number) {
            ("timeout_turn", Some(_)) => self.limits.turn = time,
            ("timeout_match", Some(ms)) => self.limits.whole = time.filter(|_| ms > 0),
            // A manager without a limit sends the largest number.
            ("time_left", Some(ms)) => self.limits.left = time.filter(|_| ms < i32::MAX.into()),
            ("max_memory", Some(bytes)) if bytes >= 0 => {
                dialogue.settings.memory_mib = self.memory_mib(bytes as usize);
                dialogue.configure();
            }
            ("rule", Some(rule)) => return self.set_rule(dialogue, rule),
            _ => {}
        }
        Ok(())
    }

    /// The memory for trees, in MiB, where a manager allows so many bytes in all, or any number by 0.
    fn memory_mib(&self, bytes: usize) -> usize {
        match bytes {
            0 => self.max_mib,
            bytes => ((bytes >> 20) / SHARE_OF_MEMORY).clamp(MIN_MIB, self.max_mib.max(MIN_MIB)),
        }
    }

    /// Bit 0 is the rule of exactly five, bit 1 a continuous game, in which the rules of a game are the same.
    fn set_rule(&self, dialogue: &mut Dialogue, rule: i64) -> Result<()> {
        let name = match rule & !2 {
            0 => "freestyle",
            1 => "exact",
            _ => {
                return dialogue.say(&format!(
                    "MESSAGE rule {rule} is not known, expected 0 (freestyle) or 1 (exactly five), 2 more in a continuous game"
                ));
            }
        };
        let game = dialogue.game_with("rule", name)?;
        match Position::after(&game, dialogue.position.actions()) {
            Ok(position) => {
                dialogue.position = position;
                Ok(())
            }
            Err(_) => dialogue.say("MESSAGE the game on the board was over by this rule, which is not set"),
        }
    }

    fn command(&mut self, dialogue: &mut Dialogue, command: &str, words: &[&str]) -> Result<LineOutcome> {
        let first = words.first().copied().unwrap_or_default();
        let needs_board = ["RESTART", "BEGIN", "TURN", "BOARD", "TAKEBACK"].contains(&command);
        match command {
            _ if needs_board && !self.has_board => dialogue.say("ERROR START must come first")?,
            "START" => self.start(dialogue, first)?,
            "RECTSTART" => dialogue.say("ERROR rectangular boards are not supported")?,
            "RESTART" => self.begin_game(dialogue)?,
            "BEGIN" if dialogue.position.actions().is_empty() => self.think(dialogue)?,
            "BEGIN" => dialogue.say("ERROR BEGIN needs an empty board")?,
            "TURN" => self.turn(dialogue, first)?,
            "BOARD" => self.board = Some(BoardLines::default()),
            "DONE" => dialogue.say("ERROR DONE without BOARD")?,
            "TAKEBACK" => self.take_back(dialogue, first)?,
            "INFO" => self.info(dialogue, words)?,
            "ABOUT" => dialogue.say(&format!(
                "name=\"vecaz\", version=\"{}\", author=\"the authors of vecaz\", country=\"\"",
                env!("CARGO_PKG_VERSION")
            ))?,
            "END" => return Ok(LineOutcome::Quit),
            _ => dialogue.say(&format!("UNKNOWN command {command}"))?,
        }
        Ok(LineOutcome::Continue)
    }
}

impl Protocol for Gomocup {
    fn line(&mut self, dialogue: &mut Dialogue, line: &str) -> Result<LineOutcome> {
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((&command, rest)) = words.split_first() else { return Ok(LineOutcome::Continue) };
        let command = command.to_uppercase();
        if self.board.is_some() && !["END", "START", "RESTART"].contains(&command.as_str()) {
            if command != "DONE" {
                return self.read_stone(dialogue, &line).map(|()| LineOutcome::Continue);
            }
            let lines = self.board.take().unwrap_or_default();
            return self.set_board(dialogue, &lines).map(|()| LineOutcome::Continue);
        }
        self.board = None;
        self.command(dialogue, &command, rest)
    }

    /// A manager waits for the move, unless it ends the game or the engine.
    fn reading(&self, line: &str) -> Reading {
        match line.split_whitespace().next().map(str::to_uppercase).as_deref() {
            Some("END" | "RESTART" | "START") => Reading::Interrupt,
            _ => Reading::Wait,
        }
    }

    fn found(&mut self, dialogue: &mut Dialogue, found: Result<Box<Analysis>>) -> Result<()> {
        let found = match found {
            Ok(found) => found,
            Err(error) => return dialogue.say(&format!("ERROR {error}")),
        };
        let left = self.limits.left.or(self.limits.whole);
        self.limits.left = left.map(|left| left.saturating_sub(dialogue.elapsed()));
        let best = found.best().action;
        dialogue.position.step(best)?;
        let (x, y) = (u32::from(best) % self.size, u32::from(best) / self.size);
        dialogue.say(&format!("{x},{y}"))?;
        dialogue.ponder();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_limit_of_memory_may_be_higher() {
        let gomocup =
            Gomocup { size: 15, max_mib: 256, limits: Limits::default(), has_board: false, board: None };
        let mib = [80_usize, 1, 300, 4096, 0].map(|mib| gomocup.memory_mib(mib << 20));
        assert_eq!(mib, [40, MIN_MIB, 150, 256, 256]);
    }
}
