//! Checkpoints: everything that the next epoch depends on, in a folder that appears whole or not at all.
//!
//! `checkpoints/epoch-000012/` holds `weights.safetensors` (what other tools load), `trainer.safetensors` (weights and the
//! optimiser's moments), `replay.safetensors` and `progress.bin` (counters and games in progress, with a checksum). It is
//! written under another name, synced, and renamed.

use crate::batch::AnyGame;
use crate::error::{Error, Result};
use crate::files::write_atomic;
use crate::net::Weights;
use crate::replay::Replay;
use crate::selfplay::Lane;
use crate::weights::{NetFile, load_arrays, save_arrays};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Epochs done.
    pub epoch: u64,
    /// Seconds worked.
    pub seconds: f64,
    /// The best epoch so far and its rank (lower is better).
    pub best: Option<(u64, f64)>,
}

#[derive(Serialize, Deserialize)]
struct Progress {
    format: u32,
    game: String,
    counters: Counters,
    lanes: Vec<Lane>,
}

const FORMAT: u32 = 1;
const FOLDER: &str = "checkpoints";

/// The file of weights in a checkpoint's folder.
pub const WEIGHTS: &str = "weights.safetensors";

/// What a checkpoint holds.
pub struct Checkpoint {
    /// The counters.
    pub counters: Counters,
    /// Games in progress. `[N]`
    pub lanes: Vec<Lane>,
    /// Weights and optimiser.
    pub trainer: Weights,
    /// The samples.
    pub replay: Replay,
}

/// What is written into a checkpoint.
pub struct Parts<'a> {
    /// The counters.
    pub counters: &'a Counters,
    /// Games in progress. `[N]`
    pub lanes: Vec<Lane>,
    /// Weights and optimiser.
    pub trainer: &'a Weights,
    /// The samples.
    pub replay: &'a Replay,
    /// What other tools load.
    pub network: &'a NetFile,
}

fn name(epoch: u64) -> String {
    format!("epoch-{epoch:06}")
}

/// The checkpoints of the run in `dir`, oldest first, as (epoch, folder).
///
/// # Errors
/// [`Error::Io`].
pub fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let folder = dir.join(FOLDER);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&folder).map_err(|e| Error::io("reading", &folder, e))?;
    let mut found: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let epoch = entry.file_name().to_str()?.strip_prefix("epoch-")?.parse().ok()?;
            Some((epoch, entry.path()))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// Writes a checkpoint of the run in `dir` and drops all but the latest `keep`.
///
/// # Errors
/// [`Error::Io`]; the earlier checkpoints then stand.
pub fn save(dir: &Path, game: &dyn AnyGame, parts: Parts<'_>, keep: usize) -> Result<PathBuf> {
    let folder = dir.join(FOLDER);
    let epoch = parts.counters.epoch;
    let (writing, done) = (folder.join(format!(".writing-{}", name(epoch))), folder.join(name(epoch)));
    sweep(&folder)?;
    fs::create_dir_all(&writing).map_err(|e| Error::io("creating", &writing, e))?;
    parts.network.save(&writing.join(WEIGHTS))?;
    save_arrays(&writing.join("trainer.safetensors"), parts.trainer, "trainer")?;
    parts.replay.save(&writing.join("replay.safetensors"))?;
    let progress = Progress {
        format: FORMAT,
        game: game.name().to_string(),
        counters: parts.counters.clone(),
        lanes: parts.lanes,
    };
    write_progress(&writing.join("progress.bin"), &progress)?;
    remove(&done)?;
    fs::rename(&writing, &done).map_err(|e| Error::io("renaming to", &done, e))?;
    let synced = fs::File::open(&folder).and_then(|f| f.sync_all());
    synced.map_err(|e| Error::io("syncing", &folder, e))?;
    let all = list(dir)?;
    for (epoch, old) in &all[..all.len().saturating_sub(keep)] {
        // Renamed first, so that no checkpoint is ever seen with half its files.
        let removing = folder.join(format!(".removing-{}", name(*epoch)));
        fs::rename(old, &removing).map_err(|e| Error::io("removing", old, e))?;
        remove(&removing)?;
    }
    Ok(done)
}

/// Removes what a process that was killed has left half written or half removed.
fn sweep(folder: &Path) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io("reading", folder, e)),
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(".writing-") || name.starts_with(".removing-") {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes a folder if it is there.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("removing", folder, e)),
        _ => Ok(()),
    }
}

fn write_progress(path: &Path, progress: &Progress) -> Result<()> {
    let mut bytes = postcard::to_stdvec(progress).map_err(|e| Error::format(path, e.to_string()))?;
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    write_atomic(path, &bytes)
}

fn read_progress(path: &Path, game: &dyn AnyGame) -> Result<Progress> {
    let bytes = fs::read(path).map_err(|e| Error::io("reading", path, e))?;
    let whole =
        bytes.split_last_chunk::<4>().filter(|(body, sum)| crc32fast::hash(body).to_le_bytes() == **sum);
    let Some((body, _)) = whole else {
        return Err(Error::format(path, "cut short or damaged (checksum differs)"));
    };
    let progress: Progress = postcard::from_bytes(body).map_err(|e| Error::format(path, e.to_string()))?;
    if progress.format != FORMAT {
        return Err(Error::Mismatch {
            what: format!("format of {}", path.display()),
            found: progress.format.to_string(),
            expected: FORMAT.to_string(),
        });
    }
    if progress.game != game.name() || progress.lanes.iter().any(|l| l.state.len() != game.state_size()) {
        return Err(Error::Mismatch {
            what: format!("game of {}", path.display()),
            found: progress.game,
            expected: game.name().to_string(),
        });
    }
    Ok(progress)
}

/// Reads the checkpoint in `folder`.
///
/// # Errors
/// [`Error::Io`], [`Error::Format`] or [`Error::Mismatch`] naming the file.
pub fn load(folder: &Path, game: &dyn AnyGame, capacity: usize) -> Result<Checkpoint> {
    let progress = read_progress(&folder.join("progress.bin"), game)?;
    Ok(Checkpoint {
        counters: progress.counters,
        lanes: progress.lanes,
        trainer: load_arrays(&folder.join("trainer.safetensors"))?.0,
        replay: Replay::load(game, capacity, &folder.join("replay.safetensors"))?,
    })
}
