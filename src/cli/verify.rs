//! `vecaz verify`: checks a run's stored games against the rules, its networks against their self-check vectors, and its latest
//! checkpoint.

use super::JsonTarget;
use super::source::{Source, viewed_config};
use crate::batch::{AnyGame, Playthrough, any_game};
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::report::progress::print;
use crate::run::{GAMES, checkpoint};
use crate::selfplay::FinishedGame;
use crate::weights::NetFile;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  vecaz verify runs/connect_four
  vecaz verify runs/connect_four --json -

Replays the stored games by the rules, runs the self-check vectors through the networks and loads the
latest checkpoint. The exit code is 1 if anything differs.";

/// The arguments of `vecaz verify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The folder of a run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Write the counts of checks and the differences as JSON, `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTarget>,
}

/// The number of checks and the differences found.
#[derive(Default)]
struct Checks {
    checked: usize,
    differences: Vec<String>,
}

impl Checks {
    fn note(&mut self, difference: Option<String>) {
        self.checked += 1;
        self.differences.extend(difference);
    }
}

/// Checks the run's games, networks and latest checkpoint.
///
/// # Errors
/// [`Error::Verify`] if anything differs; [`Error::Io`] or [`Error::Format`] for files that cannot be read.
pub fn execute(args: VerifyArgs) -> Result<()> {
    let config = viewed_config(&args.run)?;
    let game = any_game(config.game_name(), &config.game_options())?;
    let mut checks = Checks::default();
    let games = verify_games(&args.run, &game, &mut checks)?;
    let networks = verify_networks(&args.run, &mut checks)?;
    if let Some((_, folder)) = checkpoint::list(&args.run)?.pop() {
        let loaded = checkpoint::load(&folder, game.as_ref(), config.replay.capacity);
        checks.note(loaded.err().map(|e| e.to_string()));
    }
    let Checks { checked, differences } = checks;
    if let Some(target) = &args.json {
        let row = json!({
            "games": games, "networks": networks, "checked": checked, "differences": differences,
        });
        target.write(&format!("{row}\n"))?;
    }
    match differences.first() {
        Some(first) => Err(Error::Verify { differences: differences.len(), checked, first: first.clone() }),
        None if args.json == Some(JsonTarget::Stdout) => Ok(()),
        None => print(&format!("{games} games and {networks} networks checked, nothing differs\n")),
    }
}

fn verify_games(dir: &Path, game: &Arc<dyn AnyGame>, checks: &mut Checks) -> Result<usize> {
    let folder = dir.join(GAMES);
    if !folder.is_dir() {
        return Ok(0);
    }
    let entries = std::fs::read_dir(&folder).map_err(|e| Error::io("reading", &folder, e))?;
    let is_games = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(is_games).collect();
    files.sort();
    let mut count = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io("reading", &path, e))?;
        for (i, line) in text.lines().enumerate() {
            let line_name = || format!("{} line {}", path.display(), i + 1);
            let stored: FinishedGame = serde_json::from_str(line)
                .map_err(|e| Error::format(&path, format!("line {}: {e}", i + 1)))?;
            checks.note(replay_difference(game, &stored).map(|what| format!("{}: {what}", line_name())));
            count += 1;
        }
    }
    Ok(count)
}

/// The difference between a stored game and a replay of its actions, if any.
fn replay_difference(game: &Arc<dyn AnyGame>, stored: &FinishedGame) -> Option<String> {
    let mut play = Playthrough::new(game.clone());
    for &action in &stored.actions {
        if let Err(e) = play.step(action) {
            return Some(e.to_string());
        }
    }
    if play.turn() != Turn::Over {
        return Some("the game is not over after the stored actions".into());
    }
    let returns = game.returns(play.state());
    (returns != stored.returns)
        .then(|| format!("returns {:?} stored, {returns:?} by the rules", stored.returns))
}

/// Runs every network file's self-check vectors.
fn verify_networks(dir: &Path, checks: &mut Checks) -> Result<usize> {
    let mut files: Vec<PathBuf> =
        checkpoint::list(dir)?.into_iter().map(|(_, folder)| folder.join(checkpoint::WEIGHTS)).collect();
    files.extend(Some(dir.join(crate::run::BEST)).filter(|path| path.is_file()));
    for path in &files {
        let difference = NetFile::load(path).and_then(|file| {
            let source = Source::from_file(file)?;
            let mut exact = source.exact_network()?;
            source.file.verify(exact.as_mut())
        });
        checks.note(difference.err().map(|e| format!("{}: {e}", path.display())));
    }
    Ok(files.len())
}
