//! `vecaz verify`: does a run still give what it gave?

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

Replays the stored games by the rules and runs the self-check vectors through the network. The exit
code is not 0 where anything differs.";

/// The arguments of `vecaz verify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The folder of a run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Write what was checked and what differs as JSON, `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTarget>,
}

/// What was compared, and what differs.
#[derive(Default)]
struct Findings {
    checked: usize,
    differences: Vec<String>,
}

impl Findings {
    fn note(&mut self, difference: Option<String>) {
        self.checked += 1;
        self.differences.extend(difference);
    }
}

/// Checks the run's games, networks and latest checkpoint.
///
/// # Errors
/// [`Error::Verify`] where anything differs; [`Error::Io`] or [`Error::Format`] for what cannot be read.
pub fn execute(args: VerifyArgs) -> Result<()> {
    let config = viewed_config(&args.run)?;
    let game = any_game(config.game_name(), &config.game_options())?;
    let mut findings = Findings::default();
    let games = verify_games(&args.run, &game, &mut findings)?;
    let networks = verify_networks(&args.run, &mut findings)?;
    if let Some((_, folder)) = checkpoint::list(&args.run)?.pop() {
        let loaded = checkpoint::load(&folder, game.as_ref(), config.replay.capacity);
        findings.note(loaded.err().map(|e| e.to_string()));
    }
    let Findings { checked, differences } = findings;
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

fn verify_games(dir: &Path, game: &Arc<dyn AnyGame>, findings: &mut Findings) -> Result<usize> {
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
            let place = || format!("{} line {}", path.display(), i + 1);
            let stored: FinishedGame = serde_json::from_str(line)
                .map_err(|e| Error::format(&path, format!("line {}: {e}", i + 1)))?;
            findings.note(replay_difference(game, &stored).map(|what| format!("{}: {what}", place())));
            count += 1;
        }
    }
    Ok(count)
}

/// How a stored game differs from the same actions played by the rules.
fn replay_difference(game: &Arc<dyn AnyGame>, stored: &FinishedGame) -> Option<String> {
    let mut play = Playthrough::new(game.clone());
    for &action in &stored.actions {
        if let Err(e) = play.step(action) {
            return Some(e.to_string());
        }
    }
    if play.turn() != Turn::Over {
        return Some("the game is not over where the stored one ends".into());
    }
    let returns = game.returns(play.state());
    (returns != stored.returns)
        .then(|| format!("returns {:?} stored, {returns:?} by the rules", stored.returns))
}

/// Runs every network file's self-check vectors.
fn verify_networks(dir: &Path, findings: &mut Findings) -> Result<usize> {
    let mut files: Vec<PathBuf> =
        checkpoint::list(dir)?.into_iter().map(|(_, folder)| folder.join(checkpoint::WEIGHTS)).collect();
    files.extend(Some(dir.join(crate::run::BEST)).filter(|path| path.is_file()));
    for path in &files {
        let difference = NetFile::load(path).and_then(|file| {
            let source = Source::from_file(file)?;
            let mut exact = source.exact_network()?;
            source.file.verify(&mut exact)
        });
        findings.note(difference.err().map(|e| format!("{}: {e}", path.display())));
    }
    Ok(files.len())
}
