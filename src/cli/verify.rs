//! `vecaz verify`: compares a run's files with its manifest, its stored games with the rules, its networks with their self-check
//! vectors, and reads its checkpoints.

use super::JsonTarget;
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::config::Layers;
use crate::error::{Error, Result};
use crate::files::read_whole;
use crate::game::Turn;
use crate::model::NetSpec;
use crate::play::FinishedGame;
use crate::registry::Registry;
use crate::replay::TargetList;
use crate::report::progress::print;
use crate::run::fixed_keys::{check_fixed, fixed_keys, fixed_values};
use crate::run::folder::RunFolder;
use crate::run::manifest::{CheckDepth, Manifest};
use crate::run::{BEST, CONFIG, FINAL, OPPONENTS, checkpoint};
use crate::source::{NetworkFile, Source, unchecked_config, viewed_config};
use crate::weights::NetFile;
use crate::words::count;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  vecaz verify runs/connect_four
  vecaz verify runs/connect_four --json -
  vecaz verify runs/connect_four --accept     after config.toml was edited

Compares all files with the run's manifest.jsonl, replays the stored games by the rules, runs the self-check vectors
through the networks and reads the checkpoints. The exit code is 1 if anything differs. With --accept (config.toml was
edited, or old games were deleted) the existing files are checked in the same way, except against the manifest, and a new
manifest of them is written.";

/// The arguments of `vecaz verify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The folder of a run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Accept the existing files: write a new manifest if nothing else differs
    #[arg(long)]
    pub accept: bool,
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

/// Checks the run's files, games, networks and checkpoints.
///
/// # Errors
/// [`Error::Verify`] if anything differs; [`Error::Config`] for an edited key that is fixed; [`Error::Io`] or [`Error::Format`] if the
/// configuration or the manifest cannot be read.
pub fn execute(args: VerifyArgs, registry: &Registry) -> Result<()> {
    if let Some(target) = &args.json {
        target.check(&[])?;
    }
    let mut checks = Checks::default();
    // Locked until the new manifest is written.
    let folder = args.accept.then(|| RunFolder::open(&args.run)).transpose()?;
    let (config, mut manifest) = match &folder {
        Some(_) => (unchecked_config(&args.run)?, accepted_manifest(&args.run, registry)?),
        None => (viewed_config(&args.run)?, Manifest::of_run(&args.run)?),
    };
    if folder.is_none() {
        verify_files(&args.run, &manifest, &mut checks);
    }
    let files = manifest.names().len();
    let game = registry.game_of(&config)?;
    let games = verify_games(&args.run, &manifest, &game, &mut checks);
    let networks = verify_networks(&args.run, registry, &manifest, &mut checks);
    let spec = NetSpec::with_targets(&config.net, &game.sizes(), &game.targets())?;
    let targets = TargetList::new(game.as_ref(), &spec.model()?)?;
    for (epoch, path) in manifest.checkpoints() {
        let replay = (config.replay.capacity, targets.clone());
        let loaded = checkpoint::load(&path, epoch, game.as_ref(), replay);
        checks.note(difference_in(&path, loaded));
    }
    let Checks { checked, differences } = checks;
    if let Some(target) = &args.json {
        let row = json!({
            "files": files, "games": games, "networks": networks, "checked": checked, "differences": differences,
        });
        target.write(&format!("{row}\n"))?;
    }
    if let Some(first) = differences.first() {
        return Err(Error::Verify { differences: differences.len(), checked, first: first.clone() });
    }
    if folder.is_some() {
        let epoch = manifest.checkpoints().last().map_or(0, |(epoch, _)| *epoch);
        manifest.write(epoch)?;
    }
    match args.json == Some(JsonTarget::Stdout) {
        true => Ok(()),
        false => print(&format!(
            "{}{}, {} and {} checked, nothing differs\n",
            count(files, "file"),
            if folder.is_some() { " accepted" } else { "" },
            count(games, "game"),
            count(networks, "network")
        )),
    }
}

/// The manifest of the files that are in the locked folder `dir` now.
///
/// # Errors
/// Those of [`Manifest::of_folder`], and of [`check_fixed`] for a configuration in which a key was edited that a resumed run cannot change.
fn accepted_manifest(dir: &Path, registry: &Registry) -> Result<Manifest> {
    let mut manifest = Manifest::of_folder(dir)?;
    let layers = Layers::default().file(&dir.join(CONFIG))?;
    let config = layers.clone().unchecked()?;
    let keys = fixed_keys(registry.game_of(&config)?.as_ref(), &config);
    // A run without a checkpoint starts anew, and a damaged manifest has lost the values.
    let has_begun = !manifest.checkpoints().is_empty();
    if let Some(before) = Manifest::load(dir).ok().flatten().filter(|_| has_begun) {
        check_fixed(&keys, before.fixed()).map_err(|e| layers.locate(e))?;
    }
    manifest.fix(fixed_values(keys));
    Ok(manifest)
}

/// Compares every file with the manifest. A run in progress may replace both.
fn verify_files(dir: &Path, manifest: &Manifest, checks: &mut Checks) {
    for name in manifest.names() {
        let compared = Manifest::with_current(dir, |manifest| manifest.check(&name, CheckDepth::Content));
        checks.note(compared.err().map(|e| e.to_string()));
    }
}

/// The error of reading a file in `folder`, if the folder exists. Otherwise the run in progress has removed an old checkpoint, or
/// [`verify_files`] has reported its files.
fn difference_in<T>(folder: &Path, read: Result<T>) -> Option<String> {
    read.err().filter(|_| folder.is_dir()).map(|e| e.to_string())
}

/// Replays the stored games that exist; returns their number.
fn verify_games(dir: &Path, manifest: &Manifest, game: &Arc<dyn AnyGame>, checks: &mut Checks) -> usize {
    let mut count = 0;
    for path in manifest.games().iter().map(|name| dir.join(name)).filter(|path| path.is_file()) {
        let text = match read_whole(&path)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
        {
            Ok(text) => text,
            Err(e) => {
                checks.note(Some(Error::io("reading", &path, e).to_string()));
                continue;
            }
        };
        for (i, line) in text.lines().enumerate() {
            let difference = match serde_json::from_str::<FinishedGame>(line) {
                Ok(stored) => replay_difference(game, &stored),
                Err(e) => Some(e.to_string()),
            };
            checks.note(difference.map(|what| format!("{} line {}: {what}", path.display(), i + 1)));
            count += 1;
        }
    }
    count
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

/// Runs the self-check vectors of every network file that exists; returns the number of files.
fn verify_networks(dir: &Path, registry: &Registry, manifest: &Manifest, checks: &mut Checks) -> usize {
    let checkpoints = manifest.checkpoints().into_iter().map(|(epoch, _)| checkpoint::weights_name(epoch));
    let opponents = manifest.names().into_iter().filter(|name| name.starts_with(OPPONENTS));
    let names: Vec<String> = checkpoints.chain(opponents).chain([BEST, FINAL].map(str::to_string)).collect();
    let paths = names.iter().map(|name| dir.join(name)).filter(|path| path.is_file());
    let mut count = 0;
    for path in paths {
        let difference = NetFile::load(&path).and_then(|file| {
            let source = Source::from_file(NetworkFile::new(&path, file, None), registry)?;
            let mut exact = source.f32_network()?;
            source.file.verify(exact.as_mut())
        });
        let difference = difference_in(path.parent().unwrap_or(dir), difference);
        checks.note(difference.map(|e| with_path(&path, e)));
        count += 1;
    }
    count
}

/// `error` with the path of its file, which most errors have already.
fn with_path(path: &Path, error: String) -> String {
    let path = path.display().to_string();
    if error.contains(&path) { error } else { format!("{path}: {error}") }
}
