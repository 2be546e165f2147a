//! Another program that speaks GTP, as a player: `gtp:COMMAND` of `vecaz eval --against`.

use super::game::Board;
use crate::batch::rollouts::{Decision, Player};
use crate::batch::{ErasedRules, Playthrough};
use crate::error::{Error, Result};
use crate::eval::program::{Program, shown};
use crate::game::Turn;
use crate::protocol::strength::Strength;
use crate::rng::Key;
use crate::stop::Stop;
use std::fmt::Write;
use std::time::Instant;

/// A program that plays by GTP.
pub struct GtpOpponent {
    program: Program,
    board: Board,
    /// The moves on the program's board; None before the first game.
    moves: Option<Vec<u16>>,
}

impl GtpOpponent {
    /// `program` as a player of `game`, with the time of `strength` a move.
    ///
    /// # Errors
    /// Those of `Board::of`, and of a program that refuses the board.
    pub fn new(program: Program, game: &dyn ErasedRules, strength: &Strength) -> Result<Self> {
        let board = Board::of(game)?;
        let mut opponent = Self { program, board, moves: None };
        let mut commands = vec![format!("boardsize {}", board.size)];
        if let Some(komi) = game.options().get("komi").and_then(toml::Value::as_float) {
            commands.push(format!("komi {komi}"));
        }
        if let Some(time) = strength.time {
            let seconds = time.as_secs();
            if seconds == 0 || time.subsec_nanos() > 0 {
                let expected = "a whole number of seconds for gtp:, whose clocks have no others";
                return Err(Error::config("--opponent-seconds", time.as_secs_f64(), expected));
            }
            // A period for each single move.
            commands.push(format!("time_settings 0 {seconds} 1"));
        }
        opponent.run(&commands)?;
        Ok(opponent)
    }

    /// Sends commands and returns the text of the last answer.
    ///
    /// # Errors
    /// [`crate::Error::Opponent`] for an answer that is none, and for a refusal.
    fn run(&mut self, commands: &[String]) -> Result<String> {
        self.program.send(commands.iter().fold(String::new(), |text, command| text + command + "\n"));
        let mut last = String::new();
        for command in commands {
            last = self.answer(command)?;
        }
        Ok(last)
    }

    /// The text of the answer to `command`, up to an empty line.
    fn answer(&mut self, command: &str) -> Result<String> {
        let start = Instant::now();
        let mut line = self.program.line(start)?;
        // Some programs end an answer with more than one empty line.
        while line.is_empty() {
            line = self.program.line(start)?;
        }
        let mut text = match line.split_at_checked(1) {
            Some(("=", text)) => text.trim().to_string(),
            Some(("?", why)) => {
                return Err(self.program.error(format!(
                    "refused \"{}\": {}",
                    shown(command),
                    shown(why.trim())
                )));
            }
            _ => {
                let what = format!("replied \"{}\" to \"{}\", expected = or ?", shown(&line), shown(command));
                return Err(self.program.error(what));
            }
        };
        loop {
            let line = self.program.line(start)?;
            if line.is_empty() {
                return Ok(text);
            }
            let _ = write!(text, "\n{line}");
        }
    }

    /// The commands that bring the program's board from its moves to those of `position`.
    fn steps_to(&self, position: &Playthrough) -> Vec<String> {
        let actions = position.actions();
        let known = self.moves.as_ref().filter(|moves| actions.starts_with(moves)).map(Vec::len);
        let mut commands = Vec::new();
        if known.is_none() {
            commands.push("clear_board".to_string());
        }
        for (ply, &action) in actions.iter().enumerate().skip(known.unwrap_or(0)) {
            let before = position.after(ply);
            let vertex = self.board.vertex(&before, action);
            commands.push(format!("play {} {vertex}", colour(&before)));
        }
        commands
    }

    fn ask(&mut self, position: &Playthrough) -> Result<Decision> {
        let mut commands = self.steps_to(position);
        commands.push(format!("genmove {}", colour(position)));
        self.moves = None;
        let vertex = self.run(&commands)?;
        if vertex.eq_ignore_ascii_case("resign") {
            return Ok(Decision::Resign);
        }
        let Some(action) = self.board.find(position, &vertex) else {
            let ply = position.actions().len();
            let what = format!(
                "played \"{}\", which is not legal at ply {ply} of {}",
                shown(&vertex),
                position.game().name()
            );
            return Err(self.program.error(what));
        };
        self.moves = Some([position.actions(), &[action]].concat());
        Ok(Decision::Play(action))
    }
}

/// The colour of the player to move.
fn colour(position: &Playthrough) -> &'static str {
    if position.turn() == Turn::Player(1) { "white" } else { "black" }
}

impl Player for GtpOpponent {
    /// # Errors
    /// Those of [`Player::decide`], and [`crate::Error::Opponent`] for a resignation.
    fn choose(&mut self, position: &Playthrough, key: Key) -> Result<u16> {
        match self.decide(position, key)? {
            Decision::Play(action) => Ok(action),
            Decision::Resign => Err(self.program.error("resigned, expected a move".into())),
        }
    }

    /// # Errors
    /// [`crate::Error::Opponent`] if the program exits, refuses a command, plays an illegal move or exceeds the timeout; it is then killed.
    fn decide(&mut self, position: &Playthrough, _key: Key) -> Result<Decision> {
        self.ask(position).inspect_err(|_| self.program.kill())
    }

    fn stop_by(&mut self, stop: &Stop) {
        self.program.stop_by(stop);
    }
}
