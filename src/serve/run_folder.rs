//! A run's folder as the page shows it: metrics and stored games. Read only; the run may be in progress.

use super::options::json_options;
use super::refusal::{Refusal, Served};
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::error::{Error, Result};
use crate::files::{canonical_path, if_exists, read_text};
use crate::play::FinishedGame;
use crate::registry::Registry;
use crate::report::metrics;
use crate::run::checkpoint;
use crate::run::folder::is_unstarted;
use crate::run::manifest::Manifest;
use crate::run::{MANIFEST, games_name};
use crate::source::viewed_config;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum number of bytes of `metrics.jsonl`.
const METRICS_BYTES: u64 = 1 << 27;
/// Maximum number of stored games that are listed of an epoch.
const LISTED_GAMES: usize = 200;

/// A run that is served.
pub struct ServedRun {
    /// Its identifier.
    pub id: String,
    /// The name of its folder.
    pub name: String,
    dir: PathBuf,
    game: Arc<dyn AnyGame>,
}

/// What of a run changes with every epoch: its manifest on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestStamp {
    modified: SystemTime,
    bytes: u64,
}

impl ManifestStamp {
    /// That of the manifest in `path`; None where there is none.
    pub fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self { modified: found.modified().ok()?, bytes: found.len() })
    }
}

/// A stored game in a list.
#[derive(Clone, Debug, Serialize)]
pub struct StoredGame {
    /// The slot it was played in.
    pub slot: u64,
    /// Its number in the slot.
    pub game: u64,
    /// Its plies.
    pub plies: usize,
    /// The result. `[P]`
    pub returns: Vec<f32>,
}

impl ServedRun {
    /// The run in `dir`.
    ///
    /// # Errors
    /// Those of [`viewed_config`] and of the game's options.
    pub fn open(id: String, dir: &Path, registry: &Registry) -> Result<Self> {
        let game = registry.game_of(&viewed_config(dir)?)?;
        let full = canonical_path(dir).map_err(|e| Error::io("opening", dir, e))?;
        let name = full.file_name().map_or_else(|| id.clone(), |name| name.to_string_lossy().into_owned());
        Ok(Self { id, name, dir: dir.to_path_buf(), game })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What changes with every epoch; None where the run has no manifest.
    pub fn state(&self) -> Option<ManifestStamp> {
        ManifestStamp::of(&self.dir.join(MANIFEST))
    }

    /// True if the run has a network yet.
    pub fn has_network(&self) -> bool {
        is_unstarted(&self.dir).is_ok_and(|unstarted| !unstarted)
            && Manifest::of_run(&self.dir).and_then(|manifest| manifest.network()).is_ok()
    }

    /// The checkpoints, oldest first, as (epoch, folder).
    pub fn checkpoints(&self) -> Vec<(u64, PathBuf)> {
        let found = Manifest::of_run(&self.dir).map(|manifest| manifest.checkpoints()).unwrap_or_default();
        found.into_iter().filter(|(_, folder)| folder.join(checkpoint::WEIGHTS).is_file()).collect()
    }

    /// The run in lists.
    pub fn summary(&self) -> Value {
        let epochs = self.metrics(0).map_or(0, |rows| rows.len());
        json!({
            "id": self.id,
            "name": self.name,
            "game": self.game.name(),
            "options": json_options(&self.game.options()),
            "epochs": epochs,
        })
    }

    /// The rows of `metrics.jsonl` of the epochs after `after`.
    ///
    /// # Errors
    /// 400 if the file cannot be read.
    pub fn metrics(&self, after: u64) -> Served<Vec<Value>> {
        let path = self.dir.join(metrics::FILE_NAME);
        let text = if_exists(&path, read_text(&path, METRICS_BYTES))?.unwrap_or_default();
        // The last line may be half written.
        let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(rows.filter(|row| row["epoch"].as_u64().is_some_and(|epoch| epoch > after)).collect())
    }

    /// The epochs that have stored games, the newest first.
    ///
    /// # Errors
    /// 400 if the manifest cannot be read.
    pub fn epochs_with_games(&self) -> Served<Vec<u64>> {
        let manifest = Manifest::of_run(&self.dir)?;
        let number = |name: &String| {
            let (_, digits) = name.trim_end_matches(".jsonl").rsplit_once('-')?;
            digits.parse::<u64>().ok().filter(|&epoch| *name == games_name(epoch))
        };
        let mut epochs: Vec<u64> = manifest.games().iter().filter_map(number).collect();
        epochs.sort_unstable_by(|a, b| b.cmp(a));
        Ok(epochs)
    }

    /// The first stored games of an epoch.
    ///
    /// # Errors
    /// Those of [`ServedRun::stored`].
    pub fn stored_games(&self, epoch: u64) -> Served<Vec<StoredGame>> {
        let mut games = Vec::new();
        self.visit_stored(epoch, &mut |FinishedGame { slot, game, actions, returns, .. }| {
            games.push(StoredGame { slot, game, plies: actions.len(), returns });
            games.len() < LISTED_GAMES
        })?;
        Ok(games)
    }

    /// The stored game of an epoch that was played in `slot` and has this number there, else the first one of the slot; at its end.
    ///
    /// # Errors
    /// 404 if there is none; 400 if the file cannot be read or has a game that breaks the rules.
    pub fn stored(&self, epoch: u64, slot: u64, number: Option<u64>) -> Served<Playthrough> {
        let mut found = None;
        self.visit_stored(epoch, &mut |game| {
            if game.slot == slot && number.is_none_or(|number| number == game.game) {
                found = Some(game.actions);
            }
            found.is_none()
        })?;
        let none =
            || Refusal::unknown(format!("run {} has no game of slot {slot} in epoch {epoch}", self.id));
        let mut play = Playthrough::new(self.game.clone());
        found.ok_or_else(none)?.into_iter().try_for_each(|action| play.step(action))?;
        Ok(play)
    }

    /// Gives the stored games of an epoch to `visit` while it returns true.
    fn visit_stored(&self, epoch: u64, visit: &mut dyn FnMut(FinishedGame) -> bool) -> Served<()> {
        let name = games_name(epoch);
        let bytes = Manifest::with_current(&self.dir, |manifest| {
            let is_listed = manifest.games().contains(&name);
            is_listed.then(|| manifest.read(&name)).transpose()
        })?;
        let Some(bytes) = bytes else {
            return Err(Refusal::unknown(format!("run {} has no stored games of epoch {epoch}", self.id)));
        };
        for (index, line) in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
            let game: FinishedGame = serde_json::from_slice(line).map_err(|e| {
                Error::format(self.dir.join(&name), format!("line {}: not a stored game: {e}", index + 1))
            })?;
            if !visit(game) {
                break;
            }
        }
        Ok(())
    }
}
