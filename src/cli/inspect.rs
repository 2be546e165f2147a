//! `vecaz inspect`: replays actions and shows every position. Uses the rules only, no network and no search.

use super::{Base, ConfigArgs, JsonTarget};
use crate::batch::{Playthrough, any_game};
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::report::progress::print;
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use std::io::Read;

const EXAMPLES: &str = "\
Examples:
  vecaz inspect --game connect_four --actions 3,3,2
  vecaz inspect --game tic_tac_toe --actions b2,a1 --json -
  vecaz inspect --set game.rows=8 --set game.columns=5 --actions @game.txt --json game.jsonl

JSON lines, one per position, the initial one included:
  {\"ply\", \"kind\":\"player|chance|over\", \"to_play\", \"legal\":[..], \"chance\":[[action,p],..],
   \"returns\":[..]|null, \"action_names\":[..], \"scores\":[..]|null}
`to_play` is null unless a player moves, `chance` is empty unless chance decides; `returns` (one
per player, in [-1, 1]) and `scores` (raw) are null until the game is over.";

/// The arguments of `vecaz inspect`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// The game and its settings.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Actions and chance outcomes as numbers or names, separated by commas, or by spaces where there is no comma;
    /// `-` reads them from stdin, `@FILE` from a file
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub actions: String,
    /// Print JSON lines instead of boards, to a file or to stdout
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<JsonTarget>,
}

/// One position as `vecaz inspect --json` writes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlyRecord {
    /// Actions and outcomes before this position.
    pub ply: usize,
    /// "player", "chance" or "over".
    pub kind: &'static str,
    /// The player to move.
    pub to_play: Option<u8>,
    /// Legal actions, or possible outcomes, ascending; empty once the game is over.
    pub legal: Vec<u16>,
    /// Outcomes with their probabilities; empty unless chance decides.
    pub chance: Vec<(u16, f32)>,
    /// The result for every player in [-1, 1], once the game is over. `[P]`
    pub returns: Option<Vec<f32>>,
    /// The names of `legal`, in its order.
    pub action_names: Vec<String>,
    /// The raw scores, once the game is over. `[P]`
    pub scores: Option<Vec<f32>>,
}

impl PlyRecord {
    /// The current position of `play`.
    pub fn new(play: &Playthrough) -> Self {
        let (game, state) = (play.game(), play.state());
        let legal = play.legal();
        let turn = play.turn();
        let over = turn == Turn::Over;
        let chance = match turn {
            Turn::Chance => legal.iter().copied().zip(game.chance_probs(state, &legal)).collect(),
            Turn::Player(_) | Turn::Over => Vec::new(),
        };
        Self {
            ply: play.actions().len(),
            kind: match turn {
                Turn::Player(_) => "player",
                Turn::Chance => "chance",
                Turn::Over => "over",
            },
            to_play: match turn {
                Turn::Player(player) => Some(player),
                Turn::Chance | Turn::Over => None,
            },
            chance,
            returns: over.then(|| game.returns(state)),
            action_names: legal.iter().map(|&action| game.action_name(state, action)).collect(),
            scores: over.then(|| game.scores(state)),
            legal,
        }
    }

    /// The record as one line of JSON with its line break.
    fn json_line(&self) -> Result<String> {
        serde_json::to_string(self)
            .map(|line| line + "\n")
            .map_err(|e| Error::unsupported("writing a position as JSON", e.to_string()))
    }

    /// The text below the board.
    fn describe(&self) -> String {
        let mut text = match (self.kind, self.to_play) {
            (_, Some(player)) => format!("player {player} to move; legal:"),
            ("chance", _) => "chance decides; outcomes:".to_string(),
            _ => format!("the game is over; returns {}", list(self.returns.as_deref())),
        };
        if self.scores != self.returns {
            let _ = write!(text, ", scores {}", list(self.scores.as_deref()));
        }
        for (i, (action, name)) in self.legal.iter().zip(&self.action_names).enumerate() {
            let _ = write!(text, " {}", label(*action, name));
            if let Some((_, probability)) = self.chance.get(i) {
                let _ = write!(text, " p={probability:.4}");
            }
        }
        text
    }
}

/// An action's number, with its name unless the name is the number.
fn label(action: u16, name: &str) -> String {
    if name == action.to_string() { name.to_string() } else { format!("{action}={name}") }
}

fn list(values: Option<&[f32]>) -> String {
    let values: Vec<String> = values.unwrap_or_default().iter().map(f32::to_string).collect();
    format!("[{}]", values.join(", "))
}

/// Replays the actions and writes every position. An illegal action is refused before anything is written.
///
/// # Errors
/// [`Error::IllegalAction`] with ply and legal list, those of the configuration and the game's settings, [`Error::Io`].
pub fn execute(args: InspectArgs) -> Result<()> {
    let config = args.config.resolve(Base::BuiltIn, &[])?;
    let actions = read_actions(&args.actions)?;
    let mut play = Playthrough::new(any_game(config.game_name(), &config.game_options())?);
    let mut text = String::new();
    for ply in 0..=actions.len() {
        let record = PlyRecord::new(&play);
        if args.json.is_some() {
            text += &record.json_line()?;
        } else {
            let board = play.game().display(play.state());
            let _ = writeln!(text, "ply {ply}\n{}\n{}", board.trim_end(), record.describe());
        }
        if let Some(action) = actions.get(ply) {
            play.step_text(action)?;
            if args.json.is_none() {
                let played = play.actions()[ply];
                let name = record.legal.iter().position(|&a| a == played).map(|i| &record.action_names[i]);
                let _ = writeln!(text, "-> {}\n", label(played, name.map_or("", String::as_str)));
            }
        }
    }
    args.json.map_or_else(|| print(&text), |target| target.write(&text))
}

/// The actions of `--actions`: the list itself, `-` for stdin, or `@FILE`.
fn read_actions(given: &str) -> Result<Vec<String>> {
    let text = if given == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|e| Error::io("reading", "stdin", e))?;
        text
    } else if let Some(path) = given.strip_prefix('@') {
        std::fs::read_to_string(path).map_err(|e| Error::io("reading", path, e))?
    } else {
        given.to_string()
    };
    Ok(split_actions(&text))
}

/// Splits at commas and line ends, or at blanks if there is no comma. With commas, a name may contain blanks.
fn split_actions(text: &str) -> Vec<String> {
    let is_separator: fn(char) -> bool =
        if text.contains(',') { |c| c == ',' || c == '\n' } else { char::is_whitespace };
    text.split(is_separator).map(str::trim).filter(|part| !part.is_empty()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_split_at_commas_or_blanks() {
        for (text, expected) in [
            ("", vec![]),
            ("3,3,2", vec!["3", "3", "2"]),
            ("3 b2\n4 ", vec!["3", "b2", "4"]),
            ("13/7, no move,\n5,", vec!["13/7", "no move", "5"]),
        ] {
            assert_eq!(split_actions(text), expected, "{text:?}");
        }
    }
}
