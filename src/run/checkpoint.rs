//! Checkpoints: the whole state on which the next epoch depends, in a folder that is written atomically.
//!
//! `checkpoints/epoch-000012/` holds `weights.safetensors` (the network that plays), `trainer.safetensors` (weights and the optimiser's
//! moments), the replay buffer in one or more files `replay-FIRST-END.safetensors` ([`Segment`]), and `progress.bin` (counters, games in
//! progress and checksums of the other files). A file of the replay buffer that the checkpoint before has too is the same file under
//! two names. The folder is written under another name, synced, and renamed; it is valid once the run's manifest lists it.

use crate::backend::AnyGame;
use crate::error::{Error, Result};
use crate::files::{
    FileDigest, create_subfolder, if_exists, is_held, link_or_copy, read_whole, remove_folder, rename,
    sync_folder, write_atomic,
};
use crate::net::Weights;
use crate::play::GameSlot;
use crate::replay::{Replay, Segment, TargetList};
use crate::weights::{NetFile, parse_arrays, save_arrays};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Finished epochs.
    pub epoch: u64,
    /// Working seconds.
    pub seconds: f64,
    /// The epoch of the best network, and the best rank so far (lower is better).
    pub best: Option<(u64, f64)>,
}

/// The content of [`PROGRESS`].
#[derive(Serialize, Deserialize)]
struct SavedProgress {
    format: u32,
    game: String,
    counters: Counters,
    slots: Vec<GameSlot>,
    /// The other files.
    files: Vec<(String, FileDigest)>,
    received: Vec<u8>,
}

const FORMAT: u32 = 4;
/// Upper bound on the working seconds of a run: a thousand years.
const MAX_SECONDS: f64 = 3.2e10;
/// The folder of checkpoints in a run's folder.
pub const FOLDER: &str = "checkpoints";
pub(super) const PROGRESS: &str = "progress.bin";
const TRAINER: &str = "trainer.safetensors";

/// The network.
pub const WEIGHTS: &str = "weights.safetensors";

/// The files of the replay buffer in a checkpoint's folder, which the next checkpoint takes over where it can.
#[derive(Clone, Debug, Default)]
pub struct StoredReplay {
    folder: PathBuf,
    files: Vec<(Segment, FileDigest)>,
}

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
    /// The weights that play.
    pub weights: Weights,
    /// The replay buffer.
    pub replay: Replay,
    /// Its files.
    pub stored: StoredReplay,
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
    /// Its files in the checkpoint before.
    pub stored: &'a StoredReplay,
    /// The network that plays.
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
pub(super) fn file_name(epoch: u64, file: &str) -> String {
    format!("{FOLDER}/{}/{file}", name(epoch))
}

/// The paths of the files of the checkpoint of `epoch` in the folder `dir` of its run.
///
/// # Errors
/// [`Error::Io`].
pub fn file_names(dir: &Path, epoch: u64) -> Result<Vec<String>> {
    let mut names = vec![PROGRESS.to_string(), TRAINER.to_string(), WEIGHTS.to_string()];
    let found = entries(&folder(dir, epoch))?;
    let names_found = found.iter().filter_map(|path| path.file_name()?.to_str());
    names.extend(names_found.filter(|name| Segment::of_file_name(name).is_some()).map(String::from));
    Ok(names.iter().map(|name| file_name(epoch, name)).collect())
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

/// Writes a checkpoint of the run in `dir`. Returns its files with their digests, for the manifest, and those of the replay buffer, for the
/// next checkpoint.
///
/// # Errors
/// [`Error::Io`]; the earlier checkpoints are then unchanged.
pub fn save(
    dir: &Path,
    game: &dyn AnyGame,
    parts: CheckpointState<'_>,
) -> Result<(Vec<(String, FileDigest)>, StoredReplay)> {
    let all = dir.join(FOLDER);
    let epoch = parts.counters.epoch;
    let (writing, done) = (all.join(format!(".writing-{}", name(epoch))), folder(dir, epoch));
    create_subfolder(&all)?;
    remove(&writing)?;
    create_subfolder(&writing)?;
    parts.network.save(&writing.join(WEIGHTS))?;
    save_arrays(&writing.join(TRAINER), parts.trainer, "trainer")?;
    let replay = save_replay(&writing, parts.replay, parts.stored)?;
    let digest = |file: &str| Ok((file.to_string(), FileDigest::of_file(&writing.join(file))?));
    let mut files = [WEIGHTS, TRAINER].into_iter().map(digest).collect::<Result<Vec<_>>>()?;
    files.extend(replay.iter().map(|(segment, digest)| (segment.file_name(), *digest)));
    let progress = SavedProgress {
        format: FORMAT,
        game: game.name().to_string(),
        counters: parts.counters.clone(),
        slots: parts.slots,
        files: files.clone(),
        received: parts.received.to_vec(),
    };
    write_progress(&writing.join(PROGRESS), &progress)?;
    files.push(digest(PROGRESS)?);
    sync_folder(&writing).map_err(|e| Error::io("syncing", &writing, e))?;
    remove(&done)?;
    rename(&writing, &done).map_err(|e| Error::io("renaming to", &done, e))?;
    sync_folder(&all).map_err(|e| Error::io("syncing", &all, e))?;
    let listed = files.into_iter().map(|(file, digest)| (file_name(epoch, &file), digest)).collect();
    Ok((listed, StoredReplay { folder: done, files: replay }))
}

/// The trainer's state, of any size.
fn load_trainer(path: &Path) -> Result<Weights> {
    let bytes = read_whole(path).map_err(|e| Error::io("reading", path, e))?;
    Ok(parse_arrays(path, &bytes)?.0)
}

/// Writes the files of the replay buffer to `folder`, and links those that the checkpoint before has. All are written if somebody has
/// removed one of these.
fn save_replay(folder: &Path, replay: &Replay, stored: &StoredReplay) -> Result<Vec<(Segment, FileDigest)>> {
    let is_there = |(segment, digest): &(Segment, FileDigest)| {
        let found = fs::metadata(stored.folder.join(segment.file_name()));
        found.is_ok_and(|found| found.is_file() && found.len() == digest.size)
    };
    let known = if stored.files.iter().all(is_there) { &stored.files[..] } else { &[] };
    let before: Vec<Segment> = known.iter().map(|(segment, _)| *segment).collect();
    let segments = replay.segments(&before).into_iter();
    let files = segments.map(|segment| {
        let path = folder.join(segment.file_name());
        if let Some((_, digest)) = known.iter().find(|(known, _)| *known == segment) {
            link_or_copy(&stored.folder.join(segment.file_name()), &path)?;
            return Ok((segment, *digest));
        }
        replay.save(segment, &path)?;
        Ok((segment, FileDigest::of_file(&path)?))
    });
    files.collect()
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
    let entries = if_exists(folder, fs::read_dir(folder))?;
    Ok(entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect())
}

/// Removes a folder if it exists.
fn remove(folder: &Path) -> Result<()> {
    match remove_folder(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("removing", folder, e)),
        _ => Ok(()),
    }
}

fn write_progress(path: &Path, progress: &SavedProgress) -> Result<()> {
    let mut bytes = postcard::to_stdvec(progress).map_err(|e| Error::format(path, e.to_string()))?;
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    write_atomic(path, &bytes)
}

/// Reads a file of [`write_progress`].
fn read_progress(path: &Path, game: &dyn AnyGame) -> Result<SavedProgress> {
    let bytes = read_whole(path).map_err(|e| Error::io("reading", path, e))?;
    let whole =
        bytes.split_last_chunk::<4>().filter(|(body, sum)| crc32fast::hash(body).to_le_bytes() == **sum);
    let Some((body, _)) = whole else {
        return Err(Error::format(path, "truncated or damaged (checksum differs)"));
    };
    let malformed = |e: postcard::Error| Error::format(path, e.to_string());
    // The format number comes first in every format.
    let (format, _) = postcard::take_from_bytes::<u32>(body).map_err(malformed)?;
    if format != FORMAT {
        return Err(Error::mismatch(format_args!("format of {}", path.display()), format, FORMAT));
    }
    let progress: SavedProgress = postcard::from_bytes(body).map_err(malformed)?;
    if progress.game != game.name() {
        return Err(Error::mismatch(format_args!("game of {}", path.display()), progress.game, game.name()));
    }
    let size = game.state_size();
    if let Some(slot) = progress.slots.iter().find(|slot| slot.state.len() != size) {
        let what = format!("bytes of a position of {} in {}", game.name(), path.display());
        return Err(Error::mismatch(what, slot.state.len(), format_args!("{size}, as in this version")));
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
    let names = progress.files.iter().map(|(name, _)| name.as_str());
    let others: Vec<&str> = names.filter(|name| Segment::of_file_name(name).is_none()).collect();
    if others != [WEIGHTS, TRAINER] {
        let what = format!("lists {others:?} besides the replay buffer, expected {:?}", [WEIGHTS, TRAINER]);
        return Err(Error::format(path, what));
    }
    Ok(progress)
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
    let progress = read_progress(&folder.join(PROGRESS), game)?;
    if progress.counters.epoch != epoch {
        return Err(Error::mismatch(
            format_args!("epoch of {}", folder.join(PROGRESS).display()),
            progress.counters.epoch,
            epoch,
        ));
    }
    let of_replay = |(name, digest): &(String, FileDigest)| Some((Segment::of_file_name(name)?, *digest));
    let stored = StoredReplay {
        folder: folder.to_path_buf(),
        files: progress.files.iter().filter_map(of_replay).collect(),
    };
    let paths = stored.files.iter().map(|(segment, _)| (*segment, folder.join(segment.file_name())));
    let loaded = Checkpoint {
        counters: progress.counters,
        slots: progress.slots,
        received: progress.received,
        trainer: load_trainer(&folder.join(TRAINER))?,
        weights: NetFile::load(&folder.join(WEIGHTS))?.weights,
        replay: Replay::load(game, replay.0, replay.1, &paths.collect::<Vec<_>>())?,
        stored,
    };
    for (name, expected) in progress.files {
        let path = folder.join(name);
        if FileDigest::of_file(&path)? != expected {
            return Err(Error::format(path, "truncated or damaged (checksum differs)"));
        }
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::Sample;
    use crate::registry::any_game;
    use tempfile::TempDir;

    fn progress(format: u32, epoch: u64) -> SavedProgress {
        let counters = Counters { epoch, ..Counters::default() };
        let files = [WEIGHTS, TRAINER].map(|name| (name.to_string(), FileDigest::default())).to_vec();
        SavedProgress {
            format,
            game: "hex".into(),
            counters,
            slots: Vec::new(),
            files,
            received: vec![3, 1, 4],
        }
    }

    /// The result of [`read_progress`] for a file with this content.
    fn read_back(progress: &SavedProgress) -> Result<SavedProgress> {
        let game = any_game("hex", &toml::Table::new())?;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(PROGRESS);
        write_progress(&path, progress).expect("written");
        read_progress(&path, game.as_ref())
    }

    #[test]
    fn only_what_another_program_has_open_is_left_for_later() {
        let error = |code| Error::io("removing", "epoch-000001", io::Error::from_raw_os_error(code));
        assert_eq!(left_for_later(error(32)).is_ok(), cfg!(windows), "a sharing violation");
        assert!(left_for_later(error(2)).is_err());
    }

    /// Their CRC-32 would be equal, since each ends with its own.
    #[test]
    fn files_of_progress_of_one_size_have_different_digests() {
        let folder = tempfile::tempdir().expect("a folder");
        let digests = [7, 8].map(|epoch| {
            let path = folder.path().join(PROGRESS);
            write_progress(&path, &progress(FORMAT, epoch)).expect("written");
            FileDigest::of_file(&path).expect("read")
        });
        assert_eq!(digests[0].size, digests[1].size);
        assert_ne!(digests[0], digests[1]);
    }

    #[test]
    fn progress_of_other_formats_is_refused() {
        for format in [0, FORMAT - 1, FORMAT + 1] {
            let error = read_back(&progress(format, 7)).map(drop).expect_err("refused").to_string();
            assert!(error.contains(&format!("found {format}, expected {FORMAT}")), "{error}");
        }
    }

    #[test]
    fn progress_lists_the_files_of_a_checkpoint_and_no_others() {
        let listing = |names: &[&str]| {
            let files = names.iter().map(|name| (name.to_string(), FileDigest::default())).collect();
            read_back(&SavedProgress { files, ..progress(FORMAT, 7) }).map(drop)
        };
        let segment = Segment { first: 3, end: 5 }.file_name();
        listing(&[WEIGHTS, TRAINER, &segment]).expect("read");
        for other in ["../config.toml", "replay-3-5.safetensors", "replay.safetensors", "", WEIGHTS] {
            let error = listing(&[WEIGHTS, TRAINER, &segment, other]).expect_err("refused").to_string();
            assert!(error.contains(&format!("{other:?}] besides the replay buffer")), "{error}");
        }
        for missing in [&[WEIGHTS][..], &[TRAINER], &[]] {
            let error = listing(missing).expect_err("refused").to_string();
            assert!(error.contains("besides the replay buffer, expected"), "{error}");
        }
    }

    /// Adds so many samples, then saves the buffer's files to a new folder.
    fn add_and_save(replay: &mut Replay, added: usize, stored: &StoredReplay) -> (TempDir, StoredReplay) {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let (actions, policy, values) = (vec![4], vec![1.0], vec![0.0; 2]);
        let sample = Sample { state: game.init(), player: 0, actions, policy, values };
        (0..added).for_each(|_| replay.push(&sample, &[]));
        let folder = tempfile::tempdir().expect("a folder");
        let files = save_replay(folder.path(), replay, stored).expect("saved");
        let stored = StoredReplay { folder: folder.path().to_path_buf(), files };
        (folder, stored)
    }

    #[test]
    fn files_of_the_checkpoint_before_are_taken_over_and_written_again_if_one_is_gone() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let mut replay = Replay::new(game.as_ref(), 100);
        let segments = |stored: &StoredReplay| -> Vec<(u64, u64)> {
            stored.files.iter().map(|(segment, _)| (segment.first, segment.end)).collect()
        };
        let (folder, first) = add_and_save(&mut replay, 20, &StoredReplay::default());
        let name = first.files[0].0.file_name();
        // Bytes that a file written again would not have.
        let marked = vec![7; first.files[0].1.size as usize];
        fs::write(folder.path().join(&name), &marked).expect("marked");
        let (folder, second) = add_and_save(&mut replay, 10, &first);
        assert_eq!(segments(&second), [(0, 20), (20, 30)]);
        assert!(fs::read(folder.path().join(&name)).expect("there") == marked, "written again");
        fs::remove_file(folder.path().join(&name)).expect("removed");
        let (folder, third) = add_and_save(&mut replay, 5, &second);
        assert_eq!(segments(&third), [(0, 35)]);
        let path = folder.path().join(third.files[0].0.file_name());
        let loaded = Replay::load(game.as_ref(), 100, TargetList::default(), &[(third.files[0].0, path)]);
        assert!(loaded.expect("loaded").arrays().actions == replay.arrays().actions);
    }

    #[test]
    fn progress_keeps_what_workers_sent() {
        let read = read_back(&progress(FORMAT, 7)).expect("read");
        assert_eq!((read.counters.epoch, &read.received[..]), (7, &[3, 1, 4][..]));
    }
}
