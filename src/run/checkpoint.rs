//! Checkpoints: the whole state on which the next epoch depends, in a folder that is written atomically.
//!
//! `checkpoints/epoch-000012/` holds `weights.safetensors` (for other tools), `trainer.safetensors` (weights and the optimiser's
//! moments), `replay.safetensors` and `progress.bin` (counters, games in progress and checksums of all four files). The folder
//! is written under another name, synced, and renamed; it is valid once the run's manifest lists it.

use crate::backend::AnyGame;
use crate::error::{Error, Result};
use crate::files::{
    FileDigest, create_subfolder, is_held, open_regular, read_whole, remove_folder, rename, sync_folder,
    write_atomic,
};
use crate::net::Weights;
use crate::play::GameSlot;
use crate::replay::{Replay, TargetList};
use crate::weights::{NetFile, load_arrays, save_arrays};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Finished epochs.
    pub epoch: u64,
    /// Working seconds.
    pub seconds: f64,
    /// The best epoch so far and its rank (lower is better).
    pub best: Option<(u64, f64)>,
}

#[derive(Serialize, Deserialize)]
struct SavedProgress {
    format: u32,
    game: String,
    counters: Counters,
    slots: Vec<GameSlot>,
}

/// CRC-32 of each of [`OTHERS`], stored after [`SavedProgress`] in its file.
type Checksums = [u32; OTHERS.len()];

const FORMAT: u32 = 2;
/// The format of a run with workers: the record of received games is stored after [`Checksums`].
const WITH_WORKERS: u32 = 3;
/// Upper bound on the working seconds of a run: a thousand years.
const MAX_SECONDS: f64 = 3.2e10;
/// The previous format, without [`Checksums`].
const WITHOUT_CHECKSUMS: u32 = 1;
/// The folder of checkpoints in a run's folder.
pub const FOLDER: &str = "checkpoints";
const PROGRESS: &str = "progress.bin";
const TRAINER: &str = "trainer.safetensors";
const REPLAY: &str = "replay.safetensors";

/// The network.
pub const WEIGHTS: &str = "weights.safetensors";

/// The files other than [`PROGRESS`].
const OTHERS: [&str; 3] = [WEIGHTS, TRAINER, REPLAY];
/// All files.
const FILES: [&str; 4] = [WEIGHTS, TRAINER, REPLAY, PROGRESS];

/// A loaded checkpoint.
pub struct Checkpoint {
    /// The counters.
    pub counters: Counters,
    /// Games in progress. `[N]`
    pub slots: Vec<GameSlot>,
    /// The record of received games, [`super::workers::Workers::received`]; empty without workers.
    pub received: Vec<u8>,
    /// Weights and optimiser state.
    pub trainer: Weights,
    /// The replay buffer.
    pub replay: Replay,
}

/// The state that a checkpoint stores.
pub struct CheckpointState<'a> {
    /// The counters.
    pub counters: &'a Counters,
    /// Games in progress. `[N]`
    pub slots: Vec<GameSlot>,
    /// The record of received games; empty without workers.
    pub received: &'a [u8],
    /// Weights and optimiser state.
    pub trainer: &'a Weights,
    /// The replay buffer.
    pub replay: &'a Replay,
    /// The network, for other tools.
    pub network: &'a NetFile,
}

fn name(epoch: u64) -> String {
    format!("epoch-{epoch:06}")
}

/// The folder of the checkpoint of `epoch` of the run in `dir`.
pub fn folder(dir: &Path, epoch: u64) -> PathBuf {
    dir.join(FOLDER).join(name(epoch))
}

/// The path of a checkpoint's file in the run's folder.
fn file_name(epoch: u64, file: &str) -> String {
    format!("{FOLDER}/{}/{file}", name(epoch))
}

/// The paths of a checkpoint's files in the run's folder.
pub fn file_names(epoch: u64) -> impl Iterator<Item = String> {
    FILES.into_iter().map(move |file| file_name(epoch, file))
}

/// The path of a checkpoint's network in the run's folder.
pub fn weights_name(epoch: u64) -> String {
    file_name(epoch, WEIGHTS)
}

/// The epoch of the checkpoint that has the file at `path` in the run's folder; None for other files.
pub fn epoch_of(path: &str) -> Option<u64> {
    let (name, _) = path.strip_prefix(FOLDER)?.strip_prefix("/epoch-")?.split_once('/')?;
    name.parse().ok()
}

/// The folders of checkpoints of the run in `dir`, oldest first, as (epoch, folder).
///
/// # Errors
/// [`Error::Io`].
pub fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let epoch = |path: &Path| path.file_name()?.to_str()?.strip_prefix("epoch-")?.parse().ok();
    let mut found: Vec<(u64, PathBuf)> =
        entries(&dir.join(FOLDER))?.into_iter().filter_map(|path| Some((epoch(&path)?, path))).collect();
    found.sort();
    Ok(found)
}

/// Writes a checkpoint of the run in `dir`. Returns its files with their digests, for the manifest.
///
/// # Errors
/// [`Error::Io`]; the earlier checkpoints are then unchanged.
pub fn save(dir: &Path, game: &dyn AnyGame, parts: CheckpointState<'_>) -> Result<Vec<(String, FileDigest)>> {
    let all = dir.join(FOLDER);
    let epoch = parts.counters.epoch;
    let (writing, done) = (all.join(format!(".writing-{}", name(epoch))), folder(dir, epoch));
    create_subfolder(&all)?;
    remove(&writing)?;
    create_subfolder(&writing)?;
    parts.network.save(&writing.join(WEIGHTS))?;
    save_arrays(&writing.join(TRAINER), parts.trainer, "trainer")?;
    parts.replay.save(&writing.join(REPLAY))?;
    let progress = SavedProgress {
        format: if parts.received.is_empty() { FORMAT } else { WITH_WORKERS },
        game: game.name().to_string(),
        counters: parts.counters.clone(),
        slots: parts.slots,
    };
    write_progress(&writing.join(PROGRESS), &progress, &checksums(&writing)?, parts.received)?;
    let digest = |file| FileDigest::of_file(&writing.join(file));
    let digests: Vec<FileDigest> = FILES.into_iter().map(digest).collect::<Result<_>>()?;
    remove(&done)?;
    rename(&writing, &done).map_err(|e| Error::io("renaming to", &done, e))?;
    sync_folder(&all).map_err(|e| Error::io("syncing", &all, e))?;
    Ok(file_names(epoch).zip(digests).collect())
}

/// Removes all checkpoints of the run in `dir` except `kept`, and the incomplete folders of a killed process.
///
/// # Errors
/// [`Error::Io`].
pub fn prune(dir: &Path, kept: &[(u64, PathBuf)]) -> Result<()> {
    for (epoch, path) in list(dir)? {
        if !kept.iter().any(|(listed, _)| *listed == epoch) {
            // Renamed first, so that no checkpoint is visible with only some of its files.
            let removing = dir.join(FOLDER).join(format!(".removing-{}", name(epoch)));
            remove(&removing)
                .and_then(|()| rename(&path, &removing).map_err(|e| Error::io("removing", &path, e)))
                .or_else(left_for_later)?;
        }
    }
    for path in entries(&dir.join(FOLDER))? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(".writing-") || name.starts_with(".removing-") {
            remove(&path).or_else(left_for_later)?;
        }
    }
    Ok(())
}

/// Accepts the error that another program has a folder open that is no longer needed: the next pruning removes it. Never on Unix.
fn left_for_later(error: Error) -> Result<()> {
    match &error {
        Error::Io { path, source, .. } if is_held(source) => {
            tracing::warn!("{} is open in another program ({source}); it is removed later", path.display());
            Ok(())
        }
        _ => Err(error),
    }
}

/// The paths in `folder`; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::io("reading", folder, e)),
    }
}

/// Removes a folder if it exists.
fn remove(folder: &Path) -> Result<()> {
    match remove_folder(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("removing", folder, e)),
        _ => Ok(()),
    }
}

/// The checksums of [`OTHERS`] in `folder`.
fn checksums(folder: &Path) -> Result<Checksums> {
    let mut sums = Checksums::default();
    for (sum, name) in sums.iter_mut().zip(OTHERS) {
        *sum = checksum(&folder.join(name))?;
    }
    Ok(sums)
}

/// A file's CRC-32.
fn checksum(path: &Path) -> Result<u32> {
    let failed = |e| Error::io("reading", path, e);
    let mut file = open_regular(path).map_err(failed)?;
    let mut sum = crc32fast::Hasher::new();
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part).map_err(failed)? {
            0 => return Ok(sum.finalize()),
            count => sum.update(&part[..count]),
        }
    }
}

fn write_progress(
    path: &Path,
    progress: &SavedProgress,
    checksums: &Checksums,
    received: &[u8],
) -> Result<()> {
    let mut bytes =
        postcard::to_stdvec(&(progress, checksums)).map_err(|e| Error::format(path, e.to_string()))?;
    bytes.extend_from_slice(received);
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    write_atomic(path, &bytes)
}

/// The content of a file of [`write_progress`]; without checksums in the oldest format.
type ReadProgress = (SavedProgress, Option<Checksums>, Vec<u8>);

/// Reads a file of [`write_progress`].
fn read_progress(path: &Path, game: &dyn AnyGame) -> Result<ReadProgress> {
    let bytes = read_whole(path).map_err(|e| Error::io("reading", path, e))?;
    let whole =
        bytes.split_last_chunk::<4>().filter(|(body, sum)| crc32fast::hash(body).to_le_bytes() == **sum);
    let Some((body, _)) = whole else {
        return Err(Error::format(path, "truncated or damaged (checksum differs)"));
    };
    let malformed = |e: postcard::Error| Error::format(path, e.to_string());
    // The format number comes first in every format.
    let (format, _) = postcard::take_from_bytes::<u32>(body).map_err(malformed)?;
    if !(WITHOUT_CHECKSUMS..=WITH_WORKERS).contains(&format) {
        return Err(Error::Mismatch {
            what: format!("format of {}", path.display()),
            found: format.to_string(),
            expected: format!("{WITHOUT_CHECKSUMS} to {WITH_WORKERS}"),
        });
    }
    let (progress, rest) = postcard::take_from_bytes::<SavedProgress>(body).map_err(malformed)?;
    let (checksums, received) = match format {
        WITHOUT_CHECKSUMS => (None, Vec::new()),
        _ => {
            let (checksums, rest) = postcard::take_from_bytes(rest).map_err(malformed)?;
            (Some(checksums), if format == WITH_WORKERS { rest.to_vec() } else { Vec::new() })
        }
    };
    if progress.game != game.name() || progress.slots.iter().any(|l| l.state.len() != game.state_size()) {
        return Err(Error::Mismatch {
            what: format!("game of {}", path.display()),
            found: progress.game,
            expected: game.name().to_string(),
        });
    }
    let Counters { epoch, seconds, best } = progress.counters;
    if !(0.0..MAX_SECONDS).contains(&seconds)
        || best.is_some_and(|(best, rank)| best > epoch || !rank.is_finite())
    {
        return Err(Error::format(path, format!("impossible counters: {:?}", progress.counters)));
    }
    for (number, slot) in progress.slots.iter().enumerate() {
        slot.check(game, number as u64).map_err(|what| Error::format(path, what))?;
    }
    Ok((progress, checksums, received))
}

/// Reads the checkpoint of `epoch` in `folder`, with a replay buffer of this capacity and these targets.
///
/// # Errors
/// [`Error::Io`], [`Error::Format`] or [`Error::Mismatch`] naming the file. The checkpoint of another epoch is a mismatch: the run
/// would overwrite the games of the epochs after it.
pub fn load(
    folder: &Path,
    epoch: u64,
    game: &dyn AnyGame,
    replay: (usize, TargetList),
) -> Result<Checkpoint> {
    let (progress, checksums, received) = read_progress(&folder.join(PROGRESS), game)?;
    if progress.counters.epoch != epoch {
        return Err(Error::Mismatch {
            what: format!("epoch of {}", folder.join(PROGRESS).display()),
            found: progress.counters.epoch.to_string(),
            expected: epoch.to_string(),
        });
    }
    let loaded = Checkpoint {
        counters: progress.counters,
        slots: progress.slots,
        received,
        trainer: load_arrays(&folder.join(TRAINER))?.0,
        replay: Replay::load(game, replay.0, replay.1, &folder.join(REPLAY))?,
    };
    for (name, expected) in OTHERS.into_iter().zip(checksums.into_iter().flatten()) {
        let path = folder.join(name);
        if checksum(&path)? != expected {
            return Err(Error::format(path, "truncated or damaged (checksum differs)"));
        }
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    /// The result of [`read_progress`] for a file with this format number and no checksums.
    fn read_as(format: u32) -> Result<ReadProgress> {
        let game = any_game("tic_tac_toe", &toml::Table::new())?;
        let counters = Counters { epoch: 7, ..Counters::default() };
        let progress = SavedProgress { format, game: "tic_tac_toe".into(), counters, slots: Vec::new() };
        let mut bytes = postcard::to_stdvec(&progress).expect("in memory");
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(PROGRESS);
        fs::write(&path, bytes).expect("written");
        read_progress(&path, game.as_ref())
    }

    #[test]
    fn only_what_another_program_has_open_is_left_for_later() {
        let error = |code| Error::io("removing", "epoch-000001", io::Error::from_raw_os_error(code));
        assert_eq!(left_for_later(error(32)).is_ok(), cfg!(windows), "a sharing violation");
        assert!(left_for_later(error(2)).is_err());
    }

    #[test]
    fn progress_from_before_checksums_is_read() {
        let (progress, checksums, _) = read_as(WITHOUT_CHECKSUMS).expect("read");
        assert_eq!((progress.counters.epoch, checksums), (7, None));
    }

    /// Their CRC-32 would be equal, since each ends with its own.
    #[test]
    fn files_of_progress_of_one_size_have_different_digests() {
        let folder = tempfile::tempdir().expect("a folder");
        let digests = [7, 8].map(|epoch| {
            let path = folder.path().join(PROGRESS);
            let counters = Counters { epoch, ..Counters::default() };
            let progress = SavedProgress { format: FORMAT, game: "hex".into(), counters, slots: Vec::new() };
            write_progress(&path, &progress, &Checksums::default(), &[]).expect("written");
            FileDigest::of_file(&path).expect("read")
        });
        assert_eq!(digests[0].size, digests[1].size);
        assert_ne!(digests[0], digests[1]);
    }

    #[test]
    fn progress_of_other_formats_is_refused() {
        for format in [0, WITH_WORKERS + 1] {
            let error = read_as(format).map(drop).expect_err("refused").to_string();
            assert!(error.contains(&format!("found {format}, expected 1 to 3")), "{error}");
        }
        assert!(matches!(read_as(FORMAT), Err(Error::Format { .. })), "the checksums are missing");
    }

    #[test]
    fn progress_keeps_what_workers_sent() {
        let game = any_game("hex", &toml::Table::new()).expect("registered");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(PROGRESS);
        for (format, sent) in [(FORMAT, &[][..]), (WITH_WORKERS, &[3, 1, 4])] {
            let counters = Counters { epoch: 7, ..Counters::default() };
            let progress = SavedProgress { format, game: "hex".into(), counters, slots: Vec::new() };
            write_progress(&path, &progress, &Checksums::default(), sent).expect("written");
            let (read, checksums, received) = read_progress(&path, game.as_ref()).expect("read");
            assert_eq!((read.counters.epoch, checksums, &received[..]), (7, Some([0; 3]), sent));
        }
    }
}
