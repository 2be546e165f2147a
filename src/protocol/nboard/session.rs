//! The commands of NBoard.

use super::ggf::{Ggf, name_of_move, read};
use crate::engine::{Analysis, EndCause, Move};
use crate::error::{Error, Result};
use crate::protocol::dialogue::{Dialogue, Goal, LineOutcome, Protocol, Reading};
use crate::protocol::position::Position;
use std::time::Duration;

/// The depth of a client beyond which simulations do not grow.
const MAX_DEPTH: u32 = 20;
/// Time between two reports.
const INTERVAL: Duration = Duration::from_millis(250);
/// Simulations of each position of `analyze`, as a share of those of a move.
const SHARE_OF_ANALYSIS: u64 = 4;
/// The answer to commands about a position where there is none.
const NO_POSITION: &str = "status the last set game was refused: there is no position";
/// Discs of a value of 1: those of the whole board.
const DISCS: f32 = 64.0;

/// What a search is for.
enum Purpose {
    /// `go`.
    Go,
    /// `hint N`.
    Hint(usize),
    /// `analyze`: the positions that are still to come, the latest first.
    Analyse(Vec<Position>),
}

/// The search in progress.
struct Task {
    purpose: Purpose,
    position: Position,
}

/// The engine's side of NBoard.
#[derive(Default)]
pub struct NBoard {
    /// Simulations by `set depth`.
    simulations: Option<u64>,
    task: Option<Task>,
    /// True after a game that was refused, until one is accepted.
    is_refused: bool,
    /// The player for whom it moved last: while the other one thinks, it may ponder.
    own: Option<u8>,
}

impl NBoard {
    /// The protocol for the game of `dialogue`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a game other than Othello on 8x8.
    pub fn new(dialogue: &Dialogue) -> Result<Self> {
        let game = dialogue.position.game();
        let size = game.options().get("size").and_then(toml::Value::as_integer);
        match (game.name(), size) {
            ("othello", Some(8)) => Ok(Self::default()),
            (name, _) => {
                Err(Error::unsupported(format!("NBoard's protocol for {name}"), "it is for Othello on 8x8"))
            }
        }
    }

    /// `set depth D` gives 2^D simulations a move, `set game GGF` a position.
    fn set(&mut self, dialogue: &mut Dialogue, what: &str, value: &str) -> Result<()> {
        match what {
            "depth" => {
                let Ok(depth) = value.trim().parse::<u32>() else {
                    return dialogue.say(&format!("status set depth {value}: expected a number"));
                };
                self.simulations = Some(1 << depth.min(MAX_DEPTH));
                dialogue.say(&format!("set myname vecaz{depth}"))
            }
            "game" => match game(dialogue, value) {
                Ok(position) => {
                    (dialogue.position, self.own, self.is_refused) = (position, None, false);
                    Ok(())
                }
                Err(what) => {
                    (self.own, self.is_refused) = (None, true);
                    dialogue.say(&format!("status set game: {what}"))
                }
            },
            // `set contempt` and what comes later mean nothing to this engine.
            _ => Ok(()),
        }
    }

    fn play(&self, dialogue: &mut Dialogue, text: &str) -> Result<()> {
        if self.is_refused {
            return dialogue.say(NO_POSITION);
        }
        let name = name_of_move(text);
        let play = dialogue.position.play();
        match play.legal().into_iter().find(|&action| dialogue.position.name(action) == name) {
            Some(action) => dialogue.position.step(action),
            None => dialogue.say(&format!("status move {text} is not legal")),
        }
    }

    fn goal(&self, dialogue: &Dialogue) -> Goal {
        let own = dialogue.own_goal();
        let simulations = match (self.simulations, dialogue.pace.max_simulations) {
            (Some(depth), Some(max)) => Some(depth.min(max)),
            (depth, max) => depth.or(max).or(own.simulations),
        };
        Goal { simulations, interval: Some(INTERVAL), ..own }
    }

    /// Searches on the other player's time, if that is wanted.
    fn ponder(&self, dialogue: &mut Dialogue) {
        if self.own.is_some() && dialogue.position.player() != self.own {
            dialogue.ponder();
        }
    }

    fn begin(&mut self, dialogue: &mut Dialogue, purpose: Purpose) -> Result<()> {
        if self.is_refused {
            return dialogue.say(NO_POSITION);
        }
        if dialogue.position.is_over() {
            return dialogue.say("status the game is over");
        }
        dialogue.say("status vecaz is thinking")?;
        dialogue.search(self.goal(dialogue));
        self.task = Some(Task { purpose, position: dialogue.position.clone() });
        Ok(())
    }

    /// Analyses the positions of the game from its end to its start.
    fn analyse(&mut self, dialogue: &mut Dialogue) -> Result<()> {
        if self.is_refused {
            return dialogue.say(NO_POSITION);
        }
        let plies = dialogue.position.actions().len();
        let positions = (0..=plies).map(|back| dialogue.position.back(plies - back));
        let positions: Vec<Position> = positions.filter(|position| !position.is_over()).collect();
        dialogue.say("status vecaz is analysing the game")?;
        self.analyse_next(dialogue, positions)
    }

    fn analyse_next(&mut self, dialogue: &mut Dialogue, mut positions: Vec<Position>) -> Result<()> {
        let Some(position) = positions.pop() else { return dialogue.say("status") };
        let goal = self.goal(dialogue);
        let simulations = goal.simulations.map(|simulations| (simulations / SHARE_OF_ANALYSIS).max(1));
        dialogue.search_from_now(position.clone(), Goal { simulations, interval: None, ..goal }, Vec::new());
        self.task = Some(Task { purpose: Purpose::Analyse(positions), position });
        Ok(())
    }
}

/// The position at the end of a game in GGF, which begins at its own board.
fn game(dialogue: &Dialogue, text: &str) -> std::result::Result<Position, String> {
    let Ggf { placed, moves } = read(text)?;
    let rules = dialogue.position.game();
    let mut position = match &placed {
        Some(placed) => Position::set_up(rules, placed).map_err(|e| e.to_string())?,
        None => Position::new(rules),
    };
    for (number, name) in moves.iter().enumerate() {
        let legal = position.play().legal();
        let pass = || "pass".to_string();
        // Some programs leave out a pass that the rules force.
        if legal.iter().all(|&action| position.name(action) == pass()) && *name != pass() && !legal.is_empty()
        {
            position.step(legal[0]).map_err(|e| e.to_string())?;
        }
        let found = position.play().legal().into_iter().find(|&action| position.name(action) == *name);
        let action = found.ok_or_else(|| format!("move {} ({name}) is not legal", number + 1))?;
        position.step(action).map_err(|e| e.to_string())?;
    }
    Ok(position)
}

/// The name of a move as NBoard writes it.
fn shown(name: &str) -> String {
    if name == "pass" { "PA".into() } else { name.to_uppercase() }
}

/// A value as a number of discs: 64 times the value. It orders positions as discs would, but is no forecast of them.
fn discs(value: f32) -> f32 {
    DISCS * value
}

/// The line of `search` for a move.
fn line(found: &Analysis, candidate: &Move) -> String {
    let value = candidate.value.unwrap_or(found.own_value());
    let pv: String = candidate.line_names.iter().map(|name| shown(name)).collect();
    format!("search {pv} {:.2} 0 {} {} visits", discs(value), candidate.line.len(), candidate.visits)
}

impl Protocol for NBoard {
    fn line(&mut self, dialogue: &mut Dialogue, line: &str) -> Result<LineOutcome> {
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        let (command, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        match command.to_lowercase().as_str() {
            "nboard" => dialogue.say("set myname vecaz")?,
            "set" => {
                let (what, value) = rest.split_once(' ').unwrap_or((rest, ""));
                self.set(dialogue, what, value)?;
            }
            "move" => {
                self.play(dialogue, rest)?;
                self.ponder(dialogue);
            }
            "hint" => {
                let count = rest.parse().unwrap_or(1usize).max(1);
                self.begin(dialogue, Purpose::Hint(count))?;
            }
            "go" => self.begin(dialogue, Purpose::Go)?,
            // A client pings after every move, and waits for the other player then.
            "ping" => {
                dialogue.say(&format!("pong {rest}"))?;
                self.ponder(dialogue);
            }
            // There is no book to which a game could be added.
            "learn" => dialogue.say("learned")?,
            "analyze" => self.analyse(dialogue)?,
            "quit" => return Ok(LineOutcome::Quit),
            // A line that is not understood is passed over, as the protocol asks.
            _ => {}
        }
        Ok(LineOutcome::Continue)
    }

    /// A client pings, or changes the position, when it does not want the result any more.
    fn reading(&self, _line: &str) -> Reading {
        Reading::Interrupt
    }

    fn progress(&mut self, dialogue: &mut Dialogue, found: &Analysis) -> Result<()> {
        let count = match &self.task {
            Some(Task { purpose: Purpose::Hint(count), .. }) => *count,
            Some(Task { purpose: Purpose::Go, .. }) => 1,
            _ => return Ok(()),
        };
        found.moves.iter().take(count).try_for_each(|candidate| dialogue.say(&line(found, candidate)))?;
        dialogue.say(&format!("nodestats {} {:.2}", found.visits, found.seconds))
    }

    fn found(&mut self, dialogue: &mut Dialogue, found: Result<Box<Analysis>>) -> Result<()> {
        let Some(Task { purpose, position }) = self.task.take() else { return Ok(()) };
        let found = match found {
            Ok(found) => found,
            Err(error) => return dialogue.say(&format!("status {error}")),
        };
        let is_stopped = found.end == EndCause::Stopped;
        match purpose {
            Purpose::Analyse(positions) => {
                if is_stopped {
                    return dialogue.say("status");
                }
                let black = found.value[0];
                dialogue.say(&format!("analysis {} {:.2}", position.actions().len(), discs(black)))?;
                return self.analyse_next(dialogue, positions);
            }
            Purpose::Hint(count) => {
                let mut best = found.moves.iter().take(count);
                best.try_for_each(|candidate| dialogue.say(&line(&found, candidate)))?;
                dialogue.say(&format!("nodestats {} {:.2}", found.visits, found.seconds))?;
            }
            Purpose::Go => {
                let best = found.best();
                self.own = Some(found.player);
                dialogue.say(&format!("nodestats {} {:.2}", found.visits, found.seconds))?;
                let value = discs(found.own_value());
                dialogue.say(&format!("=== {}/{value:.2}/{:.2}", shown(&best.name), found.seconds))?;
            }
        }
        dialogue.say("status vecaz is waiting")
    }
}

#[cfg(test)]
mod tests {
    use super::discs;

    #[test]
    fn values_are_discs_for_the_player_to_move() {
        assert_eq!([1.0, 0.5, -1.0].map(discs), [64.0, 32.0, -64.0]);
    }
}
