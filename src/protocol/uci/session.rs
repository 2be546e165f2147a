//! The commands of UCI.

use super::fen::normalised;
use super::go::{Answer, Go};
use super::info::{ShowWdl, best_move, lines};
use crate::backend::AnyGame;
use crate::engine::Analysis;
use crate::error::{Error, Result};
use crate::game::chess::{MAX_PLIES, START_FEN};
use crate::protocol::dialogue::{Dialogue, LineOutcome, Protocol, Reading};
use crate::protocol::position::Position;
use std::sync::Arc;
use std::time::Duration;

/// The commands.
const COMMANDS: &str = "uci debug isready setoption register ucinewgame position go stop ponderhit quit";
/// The answer to `go` where there is no move.
const NO_MOVE: &str = "bestmove (none)";
/// Minimum MiB of trees.
const MIN_HASH: usize = 64;
/// Maximum MiB of trees.
const MAX_HASH: usize = 1 << 20;
/// Maximum number of legal moves of a position.
const MAX_LINES: usize = 218;

/// The search of a `go`.
struct Task {
    go: Go,
    position: Position,
    /// The legal moves of `searchmoves`; empty for all.
    moves: Vec<u16>,
}

/// The engine's side of UCI.
pub struct Uci {
    /// The plies after which games are drawn by the rules of the network.
    own_plies: usize,
    /// The number of best moves that are reported.
    num_lines: usize,
    show_wdl: ShowWdl,
    /// True after a position that was refused.
    is_refused: bool,
    task: Option<Task>,
    /// The line that answers `go`, once its search has ended by itself but may not answer yet.
    held: Option<String>,
}

impl Uci {
    /// UCI for the game of `dialogue`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a game other than chess.
    pub fn new(dialogue: &mut Dialogue) -> Result<Self> {
        let name = dialogue.position.game().name();
        if name != "chess" {
            return Err(Error::unsupported(format!("UCI for {name}"), "it is for chess"));
        }
        let own_plies = dialogue.position.game().sizes().max_plies;
        dialogue.position = Position::new(&dialogue.game_with("fen", START_FEN)?);
        let (num_lines, show_wdl, is_refused) = (1, ShowWdl::No, false);
        Ok(Self { own_plies, num_lines, show_wdl, is_refused, task: None, held: None })
    }

    /// The rules of a game from `fen` with `plies` moves so far. The position of the dialogue is replaced on the way, since
    /// [`Dialogue::game_with`] changes one setting of its rules.
    fn rules(&self, dialogue: &mut Dialogue, fen: &str, plies: usize) -> Result<Arc<dyn AnyGame>> {
        let limit = limit(self.own_plies, plies) as i64;
        dialogue.position = Position::new(&dialogue.game_with("max_plies", limit)?);
        dialogue.game_with("fen", fen)
    }

    fn introduce(&self, dialogue: &mut Dialogue) -> Result<()> {
        let hash = dialogue.settings.memory_mib.clamp(MIN_HASH, MAX_HASH);
        let threads = dialogue.settings.threads.max(1);
        let overhead = dialogue.pace.overhead.as_millis();
        dialogue.say(&format!("id name vecaz {}", env!("CARGO_PKG_VERSION")))?;
        dialogue.say("id author the authors of vecaz")?;
        for option in [
            format!("Hash type spin default {hash} min {MIN_HASH} max {MAX_HASH}"),
            format!("Threads type spin default {threads} min 1 max 4096"),
            format!("MultiPV type spin default 1 min 1 max {MAX_LINES}"),
            "Ponder type check default false".to_string(),
            "UCI_ShowWDL type check default false".to_string(),
            format!("Move Overhead type spin default {overhead} min 0 max 60000"),
        ] {
            dialogue.say(&format!("option name {option}"))?;
        }
        dialogue.say("uciok")
    }

    /// `name NAME value VALUE`; names have blanks.
    fn set_option(&mut self, dialogue: &mut Dialogue, words: &[&str]) -> Result<()> {
        let at = words.iter().position(|&word| word == "value").unwrap_or(words.len());
        let name =
            words[..at].iter().skip_while(|&&word| word == "name").copied().collect::<Vec<_>>().join(" ");
        let value = words.get(at + 1).copied().unwrap_or_default();
        let number =
            |min: usize, max: usize| value.parse().ok().filter(|number| (min..=max).contains(number));
        let is_set = match name.to_lowercase().as_str() {
            "hash" => number(MIN_HASH, MAX_HASH).map(|mib| {
                dialogue.settings.memory_mib = mib;
                dialogue.configure();
            }),
            "threads" => number(1, 4096).map(|threads| {
                dialogue.settings.threads = threads;
                dialogue.configure();
            }),
            "multipv" => number(1, MAX_LINES).map(|lines| self.num_lines = lines),
            "move overhead" => {
                number(0, 60_000).map(|ms| dialogue.pace.overhead = Duration::from_millis(ms as u64))
            }
            // The client decides when the engine ponders.
            "ponder" => value.parse::<bool>().ok().map(drop),
            "uci_showwdl" => value
                .parse()
                .ok()
                .map(|show: bool| self.show_wdl = if show { ShowWdl::Yes } else { ShowWdl::No }),
            _ => None,
        };
        match is_set {
            Some(()) => Ok(()),
            None => dialogue.say(&format!("info string no such option or value: {}", words.join(" "))),
        }
    }

    /// `startpos` or `fen FEN`, and `moves`.
    fn set_position(&mut self, dialogue: &mut Dialogue, words: &[&str]) -> Result<()> {
        let at = words.iter().position(|&word| word == "moves").unwrap_or(words.len());
        let (start, moves) = (&words[..at], words.get(at + 1..).unwrap_or_default());
        let (fen, notes) = match start {
            ["startpos"] => (START_FEN.to_string(), Vec::new()),
            ["fen", fields @ ..] => normalised(fields),
            _ => return self.refuse(dialogue, "expected position startpos or position fen FEN"),
        };
        notes.iter().try_for_each(|note| dialogue.say(&format!("info string {note}")))?;
        match self.position(dialogue, &fen, moves) {
            Ok(position) => {
                (dialogue.position, self.is_refused) = (position, false);
                Ok(())
            }
            Err(what) => self.refuse(dialogue, &what),
        }
    }

    /// The position after `moves` from `fen`.
    fn position(
        &self,
        dialogue: &mut Dialogue,
        fen: &str,
        moves: &[&str],
    ) -> std::result::Result<Position, String> {
        let game = self.rules(dialogue, fen, moves.len()).map_err(|e| e.to_string())?;
        let mut position = Position::new(&game);
        for name in moves {
            let illegal = || format!("move {name} is not legal after {}", position.actions().len());
            position = dialogue.resumed(&position).ok_or_else(illegal)?;
            let action = find(&position, name).ok_or_else(|| format!("move {name} is not legal here"))?;
            position.step(action).map_err(|e| e.to_string())?;
        }
        Ok(position)
    }

    fn refuse(&mut self, dialogue: &mut Dialogue, what: &str) -> Result<()> {
        self.is_refused = true;
        dialogue.say(&format!("info string {what}"))
    }

    fn go(&mut self, dialogue: &mut Dialogue, words: &[&str]) -> Result<()> {
        let go = Go::read(words);
        let position = match dialogue.resumed(&dialogue.position) {
            Some(position) if !self.is_refused => position,
            _ if go.answer == Answer::AtEnd => return dialogue.say(NO_MOVE),
            _ => {
                self.held = Some(NO_MOVE.into());
                return Ok(());
            }
        };
        let moves: Vec<u16> = go.moves.iter().filter_map(|name| find(&position, name)).collect();
        let goal = go.goal(dialogue, position.player().unwrap_or_default());
        dialogue.search_among(position.clone(), goal, moves.clone());
        self.task = Some(Task { go, position, moves });
        Ok(())
    }

    /// The opponent has made the expected move: from now on the clock runs.
    fn ponderhit(&mut self, dialogue: &mut Dialogue) -> Result<()> {
        if let Some(line) = self.held.take() {
            return dialogue.say(&line);
        }
        if let Some(task) = &mut self.task
            && task.go.answer == Answer::AfterPonderhit
        {
            task.go = std::mem::take(&mut task.go).after_ponderhit();
            let goal = task.go.goal(dialogue, task.position.player().unwrap_or_default());
            dialogue.search_among(task.position.clone(), goal, task.moves.clone());
        }
        Ok(())
    }

    fn send_found(&self, dialogue: &mut Dialogue, task: &Task, found: &Analysis) -> Result<()> {
        let lines = lines(&task.position, found, self.num_lines, self.show_wdl);
        lines.iter().try_for_each(|line| dialogue.say(line))
    }
}

/// The limit of a game of `plies` so far: `own`, doubled until less than half of it is played. No client knows of a limit, so none may be
/// near. The network observes the share of the limit that is played: this way it meets shares from the first half of its own games, where
/// plenty of plies are left. By the highest limit all shares would be near 0, which it knows of openings only.
fn limit(own: usize, plies: usize) -> usize {
    let mut limit = own;
    while limit <= 2 * plies && limit < MAX_PLIES {
        limit *= 2;
    }
    limit.min(MAX_PLIES)
}

/// The legal move with this name.
fn find(position: &Position, name: &str) -> Option<u16> {
    position.play().legal().into_iter().find(|&action| position.name(action).eq_ignore_ascii_case(name))
}

/// True for a command of the protocol.
fn is_command(word: &str) -> bool {
    COMMANDS.split_whitespace().any(|command| command == word)
}

impl Protocol for Uci {
    fn line(&mut self, dialogue: &mut Dialogue, line: &str) -> Result<LineOutcome> {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Words before the first command are passed over, as the protocol asks.
        let Some(at) = words.iter().position(|word| is_command(word)) else {
            return Ok(LineOutcome::Continue);
        };
        let (command, rest) = (words[at], &words[at + 1..]);
        if !matches!(command, "isready" | "ponderhit" | "debug" | "register" | "uci")
            && let Some(line) = self.held.take()
        {
            dialogue.say(&line)?;
        }
        match command {
            "uci" => self.introduce(dialogue)?,
            "isready" => dialogue.say("readyok")?,
            "setoption" => self.set_option(dialogue, rest)?,
            "ucinewgame" => {
                let game = self.rules(dialogue, START_FEN, 0)?;
                dialogue.begin_game(Position::new(&game));
                self.is_refused = false;
            }
            "position" => self.set_position(dialogue, rest)?,
            "go" => self.go(dialogue, rest)?,
            "stop" => {
                // A search that has ended by itself in this moment answers as well.
                self.task.iter_mut().for_each(|task| task.go.answer = Answer::AtEnd);
                dialogue.stop();
            }
            "ponderhit" => self.ponderhit(dialogue)?,
            "quit" => return Ok(LineOutcome::Quit),
            _ => {}
        }
        Ok(LineOutcome::Continue)
    }

    fn reading(&self, line: &str) -> Reading {
        match line.split_whitespace().find(|word| is_command(word)) {
            Some("setoption" | "ucinewgame" | "position" | "go" | "quit") => Reading::Interrupt,
            _ => Reading::Now,
        }
    }

    fn progress(&mut self, dialogue: &mut Dialogue, found: &Analysis) -> Result<()> {
        let Some(task) = &self.task else { return Ok(()) };
        self.send_found(dialogue, task, found)?;
        if task.go.answer == Answer::AtEnd && task.go.is_deep_enough(found.best().line.len()) {
            dialogue.stop();
        }
        Ok(())
    }

    /// As `stop`: neither that nor `ponderhit` will come.
    fn end_of_input(&mut self, dialogue: &mut Dialogue) -> Result<()> {
        self.task.iter_mut().for_each(|task| task.go.answer = Answer::AtEnd);
        self.held.take().map_or(Ok(()), |line| dialogue.say(&line))
    }

    fn found(&mut self, dialogue: &mut Dialogue, found: Result<Box<Analysis>>) -> Result<()> {
        let Some(task) = self.task.take() else { return Ok(()) };
        let line = match &found {
            Ok(found) => {
                self.send_found(dialogue, &task, found)?;
                best_move(found)
            }
            Err(error) => {
                dialogue.say(&format!("info string {error}"))?;
                NO_MOVE.to_string()
            }
        };
        if task.go.answer == Answer::AtEnd {
            return dialogue.say(&line);
        }
        self.held = Some(line);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_never_near() {
        for (plies, expected) in
            [(0, 256), (127, 256), (128, 512), (255, 512), (256, 1024), (2047, 4096), (6000, MAX_PLIES)]
        {
            assert_eq!(limit(256, plies), expected, "{plies}");
        }
        assert_eq!([0, 1, 2].map(|plies| limit(1, plies)), [1, 4, 8]);
        assert_eq!(limit(MAX_PLIES, MAX_PLIES), MAX_PLIES);
    }
}
