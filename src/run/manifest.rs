//! `manifest.jsonl`: the files of a run with their sizes and checksums, as of its last finished epoch.
//!
//! An epoch is finished once the manifest is written, atomically and after all other files but a new `best.safetensors`. Before that, the folder may differ from the
//! manifest by work that a resumed run repeats:
//!
//! - `games/`, `opponents/` and `checkpoints/` have new files, which the manifest does not list;
//! - `metrics.jsonl` and `findings.jsonl` have grown: the manifest lists their beginning;
//! - `config.toml`, `best.safetensors` or `final.safetensors` has been replaced: [`Manifest::replace`] first adds the new content to the old one in the list.
//!
//! So a listed file has a listed content whenever the process is killed, unless another program has changed the file.
//!
//! The first line is `{"format":1,"epoch":E,"fixed":{KEY:VALUE}}` with the keys that a resumed run cannot change, the last the CRC-32C of all
//! before it, every other `{"path","size","crc32c"}` with `"pending":true` for a content that is about to replace another one.

mod cut_epoch; // the record and the network of an epoch that the time limit cut

use super::files::{
    BEST, CONFIG, FINAL, GAMES, MANIFEST, OPPONENTS, games_name, listed_name, numbered_files, opponent_name,
};
use super::{checkpoint, findings, folder};
use crate::error::{Error, Result};
use crate::files::{FileDigest, canonical_path, if_exists, read_whole, write_atomic};
use crate::report::metrics::{self, MetricsLog};
use findings::FindingsLog;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;

/// The files of a run by their path in its folder, with `/` between folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    dir: PathBuf,
    epoch: u64,
    /// The keys that a resumed run cannot change, with their values as TOML. Runs of earlier versions have none.
    fixed: BTreeMap<String, String>,
    files: BTreeMap<String, FileDigest>,
    /// Contents that may have replaced the listed ones.
    pending: BTreeMap<String, FileDigest>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    epoch: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fixed: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct FileEntry {
    path: String,
    size: u64,
    /// Eight hexadecimal digits.
    crc32c: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pending: bool,
}

#[derive(Serialize, Deserialize)]
struct Tail {
    crc32c: String,
}

/// What a check of a file covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDepth {
    /// Existence and size.
    Size,
    /// All bytes.
    Content,
}

impl Manifest {
    /// The manifest of a run in `dir` that has no files yet.
    pub fn new(dir: &Path) -> Self {
        let (fixed, files, pending) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { dir: dir.to_path_buf(), epoch: 0, fixed, files, pending }
    }

    /// Reads the manifest in `dir`; None if there is none.
    ///
    /// # Errors
    /// [`Error::Format`] if it is damaged, [`Error::Mismatch`] if it is of another version, [`Error::Io`].
    pub fn load(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(MANIFEST);
        let Some(bytes) = if_exists(&path, read_whole(&path))? else { return Ok(None) };
        let damaged = || {
            let what = format!("truncated or damaged; restore it, or {}", accept(dir));
            Error::format(&path, what)
        };
        let body = checked_body(&bytes).ok_or_else(damaged)?;
        let mut lines = body.lines();
        let head = lines.next().and_then(|line| serde_json::from_str::<Head>(line).ok());
        let Head { format, epoch, fixed } = head.ok_or_else(damaged)?;
        if format != FORMAT {
            return Err(Error::mismatch(format_args!("format of {}", path.display()), format, FORMAT));
        }
        let mut manifest = Self { epoch, fixed, ..Self::new(dir) };
        for line in lines {
            let FileEntry { path, size, crc32c, pending } =
                serde_json::from_str(line).map_err(|_| damaged())?;
            let crc32c = u32::from_str_radix(&crc32c, 16).map_err(|_| damaged())?;
            let files = if pending { &mut manifest.pending } else { &mut manifest.files };
            files.insert(path, FileDigest { size, crc32c });
        }
        Ok(Some(manifest))
    }

    /// Reads the manifest of the run in `dir`.
    ///
    /// # Errors
    /// [`Error::Format`] if `dir` has no run, no manifest or no checkpoint yet; those of [`Manifest::load`].
    pub fn of_run(dir: &Path) -> Result<Self> {
        folder::expect_run(dir)?;
        if let Some(manifest) = Self::load(dir)? {
            return Ok(manifest);
        }
        if folder::is_unstarted(dir)? {
            return Err(Error::format(dir, "the run has no checkpoint yet"));
        }
        let what = format!(
            "has no {MANIFEST} (it was deleted, or the run is of an earlier version); restore it, or {}",
            accept(dir)
        );
        Err(Error::format(dir, what))
    }

    /// The result of `read` with the manifest of the run in `dir`. If `read` fails and the manifest has been rewritten meanwhile, since
    /// the run is in progress, it is repeated with the new one.
    ///
    /// # Errors
    /// Those of `read` and [`Manifest::of_run`].
    pub fn with_current<T>(dir: &Path, mut read: impl FnMut(&Self) -> Result<T>) -> Result<T> {
        let mut manifest = Self::of_run(dir)?;
        loop {
            let failed = match read(&manifest) {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            let current = Self::of_run(dir)?;
            if current == manifest {
                return Err(failed);
            }
            manifest = current;
        }
    }

    /// The run whose manifest lists the file at `path`, and the file's path in its folder; None for other files.
    ///
    /// # Errors
    /// Those of [`Manifest::load`].
    pub fn listing(path: &Path) -> Result<Option<(PathBuf, String)>> {
        let Ok(full) = canonical_path(path) else { return Ok(None) };
        for dir in full.ancestors().skip(1).filter(|dir| folder::is_run(dir)) {
            let name = full.strip_prefix(dir).ok().and_then(listed_name);
            let (Some(name), Some(manifest)) = (name, Self::load(dir)?) else { continue };
            return Ok(manifest.files.contains_key(&name).then(|| (dir.to_path_buf(), name)));
        }
        Ok(None)
    }

    /// The manifest of the files that are in `dir` now, up to the epoch of the latest checkpoint; of a run that has a manifest, but neither
    /// checkpoint nor records of epochs yet, `config.toml` alone. An incomplete last line of `findings.jsonl` is removed; the folder must be locked.
    ///
    /// # Errors
    /// [`Error::Format`] if a run that has begun has no checkpoint, or for damaged lines; [`Error::Io`].
    pub fn of_folder(dir: &Path) -> Result<Self> {
        let checkpoints = checkpoint::list(dir)?;
        let Some(&(epoch, _)) = checkpoints.last() else {
            if dir.join(metrics::FILE_NAME).exists() || !dir.join(MANIFEST).exists() {
                return Err(Error::format(dir, "has no checkpoint"));
            }
            let mut manifest = Self::new(dir);
            manifest.set(CONFIG, FileDigest::of_file(&dir.join(CONFIG))?);
            return Ok(manifest);
        };
        let mut manifest = Self { epoch, ..Self::new(dir) };
        let mut names = vec![CONFIG.to_string()];
        names.extend(Some(BEST.to_string()).filter(|name| dir.join(name).is_file()));
        names.extend(Some(FINAL.to_string()).filter(|name| dir.join(name).is_file()));
        for (epoch, _) in &checkpoints {
            names.extend(checkpoint::file_names(dir, *epoch)?);
        }
        names.extend(numbered_files(dir, GAMES, epoch)?.into_iter().map(games_name));
        names.extend(numbered_files(dir, OPPONENTS, epoch)?.into_iter().map(opponent_name));
        for name in names {
            let digest = FileDigest::of_file(&dir.join(&name))?;
            manifest.set(name, digest);
        }
        if dir.join(metrics::FILE_NAME).is_file() {
            // The record of a cut epoch belongs to its network.
            let last = if dir.join(FINAL).is_file() { epoch + 1 } else { epoch };
            let size = MetricsLog::size_until(dir, last)?;
            let digest = FileDigest::of_beginning(&dir.join(metrics::FILE_NAME), size)?;
            manifest.set(metrics::FILE_NAME, digest);
        }
        if dir.join(findings::FILE_NAME).is_file() {
            manifest.set(findings::FILE_NAME, FindingsLog::open(dir)?.digest());
        }
        Ok(manifest)
    }

    /// The paths of all files, in order.
    pub fn names(&self) -> Vec<String> {
        self.files.keys().chain(self.pending.keys()).collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    /// True if the file `name` is listed.
    pub fn lists(&self, name: &str) -> bool {
        self.files.contains_key(name) || self.pending.contains_key(name)
    }

    /// The paths of the stored games, in order.
    pub fn games(&self) -> Vec<String> {
        let prefix = format!("{GAMES}/");
        self.files.keys().filter(|name| name.starts_with(&prefix)).cloned().collect()
    }

    /// A number of the checkpoint of `epoch`, which those of other runs have not; None if it is not listed.
    pub(super) fn checkpoint_number(&self, epoch: u64) -> Option<u64> {
        let crc = |file| Some(u64::from(self.files.get(&checkpoint::file_name(epoch, file))?.crc32c));
        Some(crc(checkpoint::PROGRESS)? << 32 | crc(checkpoint::WEIGHTS)?)
    }

    /// The checkpoints, oldest first, as (epoch, folder).
    pub fn checkpoints(&self) -> Vec<(u64, PathBuf)> {
        let epochs: BTreeSet<u64> = self.files.keys().filter_map(|name| checkpoint::epoch_of(name)).collect();
        epochs.into_iter().map(|epoch| (epoch, checkpoint::folder(&self.dir, epoch))).collect()
    }

    /// The path of the best network, otherwise of the latest one.
    ///
    /// # Errors
    /// [`Error::Format`] if the run has no checkpoint.
    pub fn network(&self) -> Result<String> {
        if self.files.contains_key(FINAL) && self.is_cut_best()? {
            return Ok(FINAL.to_string());
        }
        match (self.files.contains_key(BEST), self.checkpoints().last()) {
            (true, _) => Ok(BEST.to_string()),
            (false, Some((epoch, _))) => Ok(checkpoint::weights_name(*epoch)),
            (false, None) => Err(Error::format(&self.dir, "the run has no checkpoint yet")),
        }
    }

    /// Compares the file `name` with its entry. A file that is not listed passes.
    ///
    /// # Errors
    /// [`Error::Format`] with the difference and the possible remedies; [`Error::Io`].
    pub fn check(&self, name: &str, depth: CheckDepth) -> Result<()> {
        let Some((size, expected)) = self.candidates(name)? else { return Ok(()) };
        if depth == CheckDepth::Size {
            return Ok(());
        }
        let path = self.dir.join(name);
        let mut found = FileDigest::default();
        for digest in &expected {
            found = FileDigest::of_beginning(&path, if grows(name) { digest.size } else { size })?;
            if found == *digest {
                return Ok(());
            }
        }
        Err(self.differs(name, found, expected[0]))
    }

    /// Reads the file `name`, which is listed and does not grow.
    ///
    /// # Errors
    /// Those of [`Manifest::check`].
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let Some((_, expected)) = self.candidates(name)? else {
            return Err(self.refusal(name, format!("is not in {MANIFEST}")));
        };
        let path = self.dir.join(name);
        let bytes = read_whole(&path).map_err(|e| Error::io("reading", &path, e))?;
        let found = FileDigest::of(&bytes);
        match expected.contains(&found) {
            true => Ok(bytes),
            false => Err(self.differs(name, found, expected[0])),
        }
    }

    /// The size of the file `name` and its listed contents of this size; None if no content is listed.
    fn candidates(&self, name: &str) -> Result<Option<(u64, Vec<FileDigest>)>> {
        let listed: Vec<FileDigest> =
            [&self.files, &self.pending].iter().filter_map(|files| files.get(name).copied()).collect();
        let Some(&first) = listed.first() else { return Ok(None) };
        let path = self.dir.join(name);
        let Some(meta) = if_exists(&path, fs::metadata(&path))? else {
            return match self.files.contains_key(name) {
                true => Err(self.refusal(name, "is missing".into())),
                false => Ok(None),
            };
        };
        if !meta.is_file() {
            return Err(self.refusal(name, "is not a file".into()));
        }
        let fits = |digest: &FileDigest| match grows(name) {
            true => digest.size <= meta.len(),
            false => digest.size == meta.len(),
        };
        let fitting: Vec<FileDigest> = listed.into_iter().filter(fits).collect();
        if fitting.is_empty() {
            let at_least = if grows(name) { "at least " } else { "" };
            let what = format!("has {} bytes, {MANIFEST} expects {at_least}{}", meta.len(), first.size);
            return Err(self.refusal(name, what));
        }
        Ok(Some((meta.len(), fitting)))
    }

    fn differs(&self, name: &str, found: FileDigest, expected: FileDigest) -> Error {
        let what = format!(
            "its checksum differs (CRC-32C {:08x}, {MANIFEST} expects {:08x})",
            found.crc32c, expected.crc32c
        );
        self.refusal(name, what)
    }

    /// An error about the file `name`, with the possible remedies.
    fn refusal(&self, name: &str, what: String) -> Error {
        let checkpoints = self.checkpoints();
        let of_checkpoint =
            checkpoints.iter().rposition(|(_, folder)| self.dir.join(name).starts_with(folder));
        let remedy = match of_checkpoint {
            // `verify --accept` reads it, too.
            None if is_data(name) && self.dir.join(name).exists() => {
                format!("delete it and {}", accept(&self.dir))
            }
            None => accept(&self.dir),
            Some(0) if checkpoints.len() == 1 => {
                return Error::format(self.dir.join(name), format!("{what}; restore it"));
            }
            Some(i) => {
                // Checkpoints share the parts of the replay buffer that they have in common.
                let file = self.dir.join(name);
                let base = name.rsplit('/').next().unwrap_or(name);
                let digest = self.files.get(name);
                let shares = |(epoch, _): &&(u64, PathBuf)| {
                    digest.is_some() && self.files.get(&checkpoint::file_name(*epoch, base)) == digest
                };
                let sharing = checkpoints[..i].iter().rev().take_while(shares).count();
                let (first, is_latest) = (i - sharing, checkpoints.len() - 1 == i);
                let from = match first.checked_sub(1).filter(|_| is_latest) {
                    Some(before) => format!("to continue from epoch {}, ", checkpoints[before].0),
                    None if is_latest => return Error::format(file, format!("{what}; restore it")),
                    None => String::new(),
                };
                let folders: Vec<String> =
                    checkpoints[first..=i].iter().map(|(_, folder)| folder.display().to_string()).collect();
                let (folders, dir) = (folders.join(" and "), self.dir.display());
                format!("{from}move {folders} away and run: vecaz verify {dir} --accept")
            }
        };
        Error::format(self.dir.join(name), format!("{what}; restore it, or {remedy}"))
    }

    /// The keys that a resumed run cannot change, with their values.
    pub fn fixed(&self) -> &BTreeMap<String, String> {
        &self.fixed
    }

    /// Keeps the keys that a resumed run cannot change, with their values.
    pub fn fix(&mut self, values: BTreeMap<String, String>) {
        self.fixed = values;
    }

    /// Lists the content of a file.
    pub fn set(&mut self, name: impl Into<String>, digest: FileDigest) {
        self.files.insert(name.into(), digest);
    }

    /// Replaces the file `name` by `bytes`. The manifest on disk lists the old and the new content before the file is written; the
    /// next [`Manifest::write`] lists only the new one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let digest = FileDigest::of(bytes);
        if self.files.get(name) == Some(&digest) {
            return Ok(());
        }
        self.pending.insert(name.to_string(), digest);
        self.write_lines()?;
        write_atomic(self.dir.join(name), bytes)?;
        self.pending.remove(name);
        self.set(name, digest);
        Ok(())
    }

    /// Lists for each file with a pending content its present content. A resumed run calls this first: the previous process may have been
    /// killed before or after it replaced the file. The pending content of a log may be the beginning of the old one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn resolve_pending(&mut self) -> Result<()> {
        for (name, digest) in std::mem::take(&mut self.pending) {
            let old = self.files.get(&name).map_or(Ok(false), |old| self.has(&name, old))?;
            if !old && self.has(&name, &digest)? {
                self.set(name, digest);
            }
        }
        Ok(())
    }

    /// Whether the file, or the beginning of a log, has this digest.
    fn has(&self, name: &str, digest: &FileDigest) -> Result<bool> {
        let path = self.dir.join(name);
        let size = if grows(name) { digest.size } else { u64::MAX };
        Ok(path.is_file() && FileDigest::of_beginning(&path, size)? == *digest)
    }

    /// Removes the entries of all but the latest `keep` checkpoints.
    pub fn keep_checkpoints(&mut self, keep: usize) {
        let checkpoints = self.checkpoints();
        let removed = &checkpoints[..checkpoints.len().saturating_sub(keep)];
        let Some((last_removed, _)) = removed.last() else { return };
        self.files.retain(|name, _| checkpoint::epoch_of(name).is_none_or(|epoch| epoch > *last_removed));
    }

    /// Writes the manifest as of the end of `epoch`. All listed files must be on disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&mut self, epoch: u64) -> Result<()> {
        self.epoch = epoch;
        self.pending.clear();
        self.write_lines()
    }

    fn write_lines(&self) -> Result<()> {
        let path = self.dir.join(MANIFEST);
        let unwritable = |e: serde_json::Error| Error::format(&path, e.to_string());
        let head = Head { format: FORMAT, epoch: self.epoch, fixed: self.fixed.clone() };
        let mut text = serde_json::to_string(&head).map_err(unwritable)? + "\n";
        for (files, pending) in [(&self.files, false), (&self.pending, true)] {
            for (path, digest) in files {
                let crc32c = format!("{:08x}", digest.crc32c);
                let entry = FileEntry { path: path.clone(), size: digest.size, crc32c, pending };
                text += &(serde_json::to_string(&entry).map_err(unwritable)? + "\n");
            }
        }
        let crc32c = format!("{:08x}", FileDigest::of(text.as_bytes()).crc32c);
        text += &(serde_json::to_string(&Tail { crc32c }).map_err(unwritable)? + "\n");
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let other = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
            return Err(Error::io("writing", &path, other));
        }
        write_atomic(&path, text.as_bytes())
    }
}

/// True for logs; the manifest lists their beginning.
fn grows(name: &str) -> bool {
    [metrics::FILE_NAME, findings::FILE_NAME].contains(&name)
}

/// True for stored games and for networks outside of checkpoints, without which the run can go on.
fn is_data(name: &str) -> bool {
    [BEST, FINAL].contains(&name)
        || name.split('/').next().is_some_and(|first| [GAMES, OPPONENTS].contains(&first))
}

fn accept(dir: &Path) -> String {
    format!("accept the folder as it is: vecaz verify {} --accept", dir.display())
}

/// The lines before the last one; None if they do not have its checksum.
fn checked_body(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let end = text.rfind('\n')? + 1;
    let (body, tail) = text.split_at(end);
    let tail: Tail = serde_json::from_str(tail).ok()?;
    (tail.crc32c == format!("{:08x}", FileDigest::of(body.as_bytes()).crc32c)).then_some(body)
}

#[cfg(test)]
mod tests;
