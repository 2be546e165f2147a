//! `vecaz inspect`: replays actions and shows every position. Uses the rules only, no network and no search.

use super::{Base, ConfigArgs, JsonTarget};
use crate::batch::{Playthrough, play_list};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::files::{read_text, text_of};
use crate::game::view::Viewer;
use crate::game::{Turn, without_minus_zero};
use crate::play::FinishedGame;
use crate::registry::Registry;
use crate::report::layout::{sentence_width, wrap};
use crate::report::progress::print;
use crate::rng::{Key, Purpose};
use crate::source::viewed_config;
use crate::view;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  vecaz inspect --game connect_four --actions 3,3,2
  vecaz inspect --game tic_tac_toe --actions b2,a1 --json -
  vecaz inspect --set game.rows=8 --actions @game.txt --json game.jsonl
  vecaz inspect --game hex --random 20 --seed 7
  vecaz inspect --stored runs/hex-1/games/epoch-000003.jsonl --slot 5

JSON lines, one per position, the initial one included:
  {\"ply\", \"kind\":\"player|chance|over\", \"to_play\", \"legal\":[..],
   \"chance\":[[action,p],..], \"returns\":[..]|null, \"action_names\":[..],
   \"scores\":[..]|null, \"board\":\"..\"}
`to_play` is null if no player moves, `chance` is empty unless chance decides; `returns` (one per player, in [-1, 1])
and `scores` (raw) are null until the game is over. Some games also have \"fen\" (chess), \"position_id\"
(backgammon, GNU's), and \"sgf\", the point of the move that led here (Go, Gomoku).";

/// Maximum size of a list of actions, in bytes.
const MAX_BYTES: u64 = 1 << 24;

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
    /// A file of a run's stored games, games/epoch-*.jsonl: replay one of them, with the game and the settings of the run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["actions", "game", "config", "set"])]
    pub stored: Option<PathBuf>,
    /// With --stored: the game that was played in this slot [default: the first of the file]
    #[arg(long, value_name = "S", requires = "stored")]
    pub slot: Option<u64>,
    /// Then play at most this number of random plies
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub random: u64,
    /// The seed of the random plies
    #[arg(long, value_name = "X", default_value_t = 1)]
    pub seed: u64,
    /// Also list the legal actions, or the outcomes with their probabilities, below every board
    #[arg(long)]
    pub legal: bool,
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
    /// The position drawn for people.
    pub board: String,
    /// The point in SGF of the action that led here, in games with such records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sgf: Option<String>,
    /// The position in a notation that other programs read, by the notation's name.
    #[serde(flatten)]
    pub notation: BTreeMap<&'static str, String>,
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
            returns: over.then(|| without_minus_zero(game.returns(state))),
            action_names: legal.iter().map(|&action| game.action_name(state, action)).collect(),
            scores: over.then(|| without_minus_zero(game.scores(state))),
            board: view::text(&play.view(Viewer::All)),
            sgf: play.actions().last().and_then(|&action| game.sgf_point(action)),
            notation: game.notation(state).into_iter().collect(),
            legal,
        }
    }

    /// The record as one line of JSON with its line break.
    fn json_line(&self) -> Result<String> {
        serde_json::to_string(self)
            .map(|line| line + "\n")
            .map_err(|e| Error::unsupported("writing a position as JSON", e.to_string()))
    }

    /// The text below the board: who decides, or the result.
    fn decider(&self) -> String {
        let mut text = match (self.kind, self.to_play) {
            (_, Some(player)) => format!("player {player} to move"),
            ("chance", _) => "chance decides".to_string(),
            _ => format!("the game is over; returns {}", list(self.returns.as_deref())),
        };
        if self.scores != self.returns {
            let _ = write!(text, ", scores {}", list(self.scores.as_deref()));
        }
        text
    }

    /// [`PlyRecord::decider`] with the legal actions, or the outcomes with their probabilities.
    fn decider_with_legal(&self) -> String {
        let mut text = self.decider();
        text += match self.kind {
            "player" => "; legal:",
            "chance" => "; outcomes:",
            _ => "",
        };
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

/// Replays the actions and writes every position. If an action is illegal, the positions before it are printed before the error; a file
/// is written only if all actions are legal.
///
/// # Errors
/// [`Error::IllegalAction`] with ply and legal list, those of the configuration and the game's settings, [`Error::Io`].
pub fn execute(args: InspectArgs, registry: &Registry) -> Result<()> {
    if let Some(target) = &args.json {
        let inputs = [
            args.config.config.as_deref(),
            args.actions.strip_prefix('@').map(Path::new),
            args.stored.as_deref(),
        ];
        target.check(&inputs.into_iter().flatten().collect::<Vec<_>>())?;
    }
    let (config, list) = match &args.stored {
        Some(path) => stored_game(path, args.slot)?,
        None => (args.config.resolve(registry, Base::BuiltIn, &[])?, read_actions(&args.actions)?),
    };
    let mut play = Playthrough::new(registry.game_of(&config)?);
    let mut text = String::new();
    let mut show = |record: PlyRecord, played: Option<String>| -> Result<()> {
        if args.json.is_some() {
            text += &record.json_line()?;
            return Ok(());
        }
        if let Some(played) = played {
            let _ = writeln!(text, "-> {played}\n");
        }
        let below = if args.legal { record.decider_with_legal() } else { record.decider() };
        let below = wrap(&below, sentence_width());
        let _ = writeln!(text, "ply {}\n{}\n{below}", record.ply, record.board.trim_end());
        Ok(())
    };
    let replayed = replay(&mut play, &list, &mut show)
        .and_then(|()| play_randomly(&mut play, args.random, args.seed, &mut show));
    match args.json {
        Some(JsonTarget::File(_)) if replayed.is_err() => {}
        Some(target) => target.write(&text)?,
        None => print(&text)?,
    }
    replayed
}

/// Takes a position, and the action that led to it.
type Show<'a> = &'a mut dyn FnMut(PlyRecord, Option<String>) -> Result<()>;

/// The configuration of the run that has the file of stored games at `path`, and the actions of the game that was played in `slot`, else
/// of the first one.
fn stored_game(path: &Path, slot: Option<u64>) -> Result<(Config, String)> {
    let full = std::path::absolute(path).map_err(|e| Error::io("reading", path, e))?;
    let run = full.parent().and_then(Path::parent).unwrap_or(&full);
    let text = read_text(path, MAX_BYTES).map_err(|e| Error::io("reading", path, e))?;
    let config = viewed_config(run)?;
    let mut slots = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let game: FinishedGame = serde_json::from_str(line)
            .map_err(|e| Error::format(path, format!("line {}: not a stored game: {e}", index + 1)))?;
        if slot.is_none_or(|slot| slot == game.slot) {
            let actions: Vec<String> = game.actions.iter().map(u16::to_string).collect();
            return Ok((config, actions.join(",")));
        }
        slots.push(game.slot);
    }
    match slot {
        Some(slot) => {
            slots.sort_unstable();
            slots.dedup();
            let slots: Vec<String> = slots.iter().map(u64::to_string).collect();
            let expected = format!("one of {}, the slots in {}", slots.join(", "), path.display());
            Err(Error::config("--slot", slot, expected))
        }
        None => Err(Error::format(path, "has no games, expected at least one line")),
    }
}

/// Plays at most `plies` random plies, chance by its probabilities, and gives every position to `show`.
fn play_randomly(play: &mut Playthrough, plies: u64, seed: u64, show: Show<'_>) -> Result<()> {
    for ply in 0..plies {
        let legal = play.legal();
        if legal.is_empty() {
            break;
        }
        let mut rng = Key::new(seed, Purpose::Evaluation).with(ply).stream();
        let action = match play.turn() {
            Turn::Chance => legal[rng.weighted(&play.game().chance_probs(play.state(), &legal))],
            Turn::Player(_) | Turn::Over => legal[rng.below(legal.len())],
        };
        let played = label(action, &play.game().action_name(play.state(), action));
        play.step(action)?;
        show(PlyRecord::new(play), Some(played))?;
    }
    Ok(())
}

/// Plays `list` and gives every position, with the action that led to it, to `show`.
fn replay(play: &mut Playthrough, list: &str, show: Show<'_>) -> Result<()> {
    show(PlyRecord::new(play), None)?;
    play_list(play, list, &mut |play, action, name| show(PlyRecord::new(play), Some(label(action, &name))))
}

/// The list of `--actions`: itself, `-` for stdin, or `@FILE`.
fn read_actions(given: &str) -> Result<String> {
    if given == "-" {
        text_of(std::io::stdin().lock(), MAX_BYTES).map_err(|e| Error::io("reading", "stdin", e))
    } else if let Some(path) = given.strip_prefix('@') {
        read_text(Path::new(path), MAX_BYTES).map_err(|e| Error::io("reading", path, e))
    } else {
        Ok(given.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    /// The names of the actions that a list plays, and the error at its end.
    fn replayed(game: &str, list: &str) -> (Vec<String>, Option<String>) {
        let mut play = Playthrough::new(any_game(game, &toml::Table::new()).expect("a game"));
        let mut played = Vec::new();
        let result = replay(&mut play, list, &mut |_, action| {
            played.extend(action);
            Ok(())
        });
        (played, result.err().map(|error| error.to_string()))
    }

    #[test]
    fn any_list_takes_numbers_and_names_with_blanks() {
        let all = |game, list| {
            let (played, error) = replayed(game, list);
            assert_eq!(error, None, "{list:?}");
            played.join(" ")
        };
        for list in ["0,19", "player 0, 6-5", "player 0 6-5", "player 0\n6-5", "0 19\n", " player  0 ,\n19,"]
        {
            assert_eq!(all("backgammon", list), "0=player 0 19=6-5", "{list:?}");
        }
        assert_eq!(all("connect_four", ""), "");
        assert_eq!(all("connect_four", "3 3\n2 , 1"), "3 3 2 1");
        assert_eq!(all("chess", "e2e4 e5 Nf3"), all("chess", "e4,e7e5,g1f3"));
    }

    #[test]
    fn legal_actions_before_an_illegal_one_are_shown() {
        let (played, error) = replayed("tic_tac_toe", "b2 a1 b2 c3");
        assert_eq!(played, ["4=b2", "0=a1"]);
        assert!(error.expect("taken").contains("b2"));
        let (played, error) = replayed("tic_tac_toe", "b2, no move");
        assert_eq!(played, ["4=b2"]);
        assert!(error.expect("no action").contains("no move"));
    }

    /// [`EXAMPLES`] lists the fields of a record, and the games in which the optional ones are present.
    #[test]
    fn the_help_has_every_field_and_the_games_that_have_it() {
        for name in Registry::built_in().names() {
            let mut play = Playthrough::new(any_game(name, &toml::Table::new()).expect("registered"));
            play.step(play.legal()[0]).expect("legal");
            let record = PlyRecord::new(&play);
            let fields = serde_json::to_value(&record).expect("JSON");
            for field in fields.as_object().expect("an object").keys() {
                let quoted = format!("\"{field}\"");
                let (_, rest) = EXAMPLES.split_once(&quoted).unwrap_or_else(|| panic!("{name}: {field}"));
                if field == "sgf" || record.notation.contains_key(field.as_str()) {
                    let games = rest.split(')').next().unwrap_or_default().to_lowercase();
                    assert!(games.contains(name), "{name} has {field}: {games}");
                }
            }
        }
    }

    #[test]
    fn positions_have_the_notations_of_their_game() {
        let after = |game, list: &str| {
            let mut play = Playthrough::new(any_game(game, &toml::Table::new()).expect("a game"));
            replay(&mut play, list, &mut |_, _| Ok(())).expect("legal");
            PlyRecord::new(&play)
        };
        let chess = after("chess", "e4");
        assert_eq!(chess.notation["fen"], "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
        assert_eq!(after("backgammon", "").notation["position_id"], "4HPwATDgc/ABMA");
        assert_eq!(after("go", "D4").sgf.as_deref(), Some("df"));
        assert_eq!(after("go", "pass").sgf.as_deref(), Some(""));
        assert_eq!(after("gomoku", "c1").sgf.as_deref(), Some("ca"));
        let line = after("connect_four", "3").json_line().expect("JSON");
        assert!(line.contains("\"board\":") && !line.contains("sgf") && !line.contains("fen"), "{line}");
    }
}
