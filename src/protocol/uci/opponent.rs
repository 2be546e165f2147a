//! Another program that speaks UCI, as a player: `uci:COMMAND` of `vecaz eval --against`.

use crate::batch::rollouts::Player;
use crate::batch::{ErasedRules, Playthrough};
use crate::error::{Error, Result};
use crate::eval::program::{Program, shown};
use crate::game::chess::START_FEN;
use crate::protocol::strength::Strength;
use crate::rng::Key;
use crate::stop::Stop;
use std::time::Instant;

/// Milliseconds of a move, if nothing else is set.
const MOVE_TIME: u128 = 100;

/// A program that plays by UCI.
pub struct UciOpponent {
    program: Program,
    /// The command that starts a search.
    go: String,
}

impl UciOpponent {
    /// `program` as a player of `game`, with the limits and options of `strength`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a game other than chess; [`Error::Opponent`] for a program that does not speak UCI or does not have an
    /// option.
    pub fn new(program: Program, game: &dyn ErasedRules, strength: &Strength) -> Result<Self> {
        if game.name() != "chess" {
            return Err(Error::unsupported(format!("UCI for {}", game.name()), "it is for chess"));
        }
        let go = match (strength.time, strength.nodes) {
            (None, None) => format!("go movetime {MOVE_TIME}"),
            (time, nodes) => {
                let time =
                    time.map(|time| format!(" movetime {}", time.as_millis().max(1))).unwrap_or_default();
                format!("go{time}{}", nodes.map(|nodes| format!(" nodes {nodes}")).unwrap_or_default())
            }
        };
        let mut opponent = Self { program, go };
        opponent.program.send("uci\n".into());
        let known = opponent.lines_to("uciok")?;
        for (name, value) in &strength.options {
            let is_option = |line: &String| {
                let rest = line.strip_prefix("option name ").and_then(|rest| rest.split(" type ").next());
                rest.is_some_and(|known| known.eq_ignore_ascii_case(name))
            };
            if !known.iter().any(is_option) {
                return Err(opponent.program.error(format!("has no option {}", shown(name))));
            }
            opponent.program.send(format!("setoption name {name} value {value}\n"));
        }
        opponent.program.send("isready\n".into());
        opponent.lines_to("readyok")?;
        Ok(opponent)
    }

    /// The lines up to the one that begins with the word `last`, which is included.
    fn lines_to(&mut self, last: &str) -> Result<Vec<String>> {
        let start = Instant::now();
        let mut lines = Vec::new();
        loop {
            let line = self.program.line(start)?;
            let is_last = line.split_whitespace().next() == Some(last);
            lines.push(line);
            if is_last {
                return Ok(lines);
            }
        }
    }

    fn ask(&mut self, position: &Playthrough) -> Result<u16> {
        let moves = position.names().join(" ");
        let moves = if moves.is_empty() { moves } else { format!(" moves {moves}") };
        let start = start_of(position);
        self.program.send(format!("position {start}{moves}\n{}\n", self.go));
        let lines = self.lines_to("bestmove")?;
        let name = lines.last().and_then(|line| line.split_whitespace().nth(1)).unwrap_or_default();
        let game = position.game();
        let found = position
            .legal()
            .into_iter()
            .find(|&action| game.action_name(position.state(), action).eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let ply = position.actions().len();
            self.program
                .error(format!("played \"{}\", which is not legal at ply {ply} of chess", shown(name)))
        })
    }
}

/// The words of the start of a game, which an opening or a person may have set.
fn start_of(position: &Playthrough) -> String {
    match position.game().notation(position.start()) {
        Some((_, fen)) if fen != START_FEN => format!("fen {fen}"),
        _ => "startpos".into(),
    }
}

impl Player for UciOpponent {
    /// # Errors
    /// [`Error::Opponent`] if the program exits, plays an illegal move or exceeds the timeout; it is then killed.
    fn choose(&mut self, position: &Playthrough, _key: Key) -> Result<u16> {
        self.ask(position).inspect_err(|_| self.program.kill())
    }

    fn stop_by(&mut self, stop: &Stop) {
        self.program.stop_by(stop);
    }
}
