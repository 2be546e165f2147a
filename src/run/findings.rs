//! `findings.jsonl`: the findings of a run, one line of JSON each, without duplicates, in the order of discovery. A finding is a result
//! of a finished game that is of interest outside of training: [`crate::game::Game::finding`], a Ramsey colouring of the clique game.
//!
//! A line is written as soon as its game is over, and is never removed. A resumed run repeats an interrupted epoch and gets the same
//! lines, so the file has those of an uninterrupted run; in the same order, unless a time limit has cut an epoch.

use crate::error::{Error, Result};
use crate::files::{FileDigest, if_exists, read_whole};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file's name in the folder of a run. It is created with the first finding.
pub const FILE_NAME: &str = "findings.jsonl";

/// The log of a run's findings. It keeps a fingerprint of 16 bytes per line in memory.
#[derive(Debug)]
pub struct FindingsLog {
    path: PathBuf,
    known: HashSet<u128>,
    digest: FileDigest,
    /// Opened with the first new finding.
    file: Option<File>,
}

impl FindingsLog {
    /// Opens the log in the run's folder `dir`. An incomplete last line is removed.
    ///
    /// # Errors
    /// [`Error::Format`] for a damaged line that is not the last, [`Error::Io`].
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE_NAME);
        let bytes = if_exists(&path, read_whole(&path))?.unwrap_or_default();
        let mut known = HashSet::new();
        let mut whole = 0;
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let end = whole + line.len();
            let is_record = line.ends_with(b"\n") && serde_json::from_slice::<Value>(line).is_ok();
            if !is_record && end < bytes.len() {
                return Err(Error::format(&path, format!("line {} is damaged", index + 1)));
            }
            if is_record {
                known.insert(fingerprint(&line[..line.len() - 1]));
                whole = end;
            }
        }
        if whole < bytes.len() {
            let cut = File::options().write(true).open(&path).and_then(|file| file.set_len(whole as u64));
            cut.map_err(|e| Error::io("cutting", &path, e))?;
        }
        Ok(Self { path, known, digest: FileDigest::of(&bytes[..whole]), file: None })
    }

    /// Size and checksum of the file.
    pub fn digest(&self) -> FileDigest {
        self.digest
    }

    /// Number of distinct findings so far.
    pub fn count(&self) -> u64 {
        self.known.len() as u64
    }

    /// Writes `finding` unless the file has an equal line. Each line is one write; one that a kill has cut is removed by [`Self::open`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(&mut self, finding: &Value) -> Result<()> {
        let mut line = finding.to_string();
        if !self.known.insert(fingerprint(line.as_bytes())) {
            return Ok(());
        }
        line.push('\n');
        let written = self.opened().and_then(|file| file.write_all(line.as_bytes()));
        written.map_err(|e| Error::io("writing", &self.path, e))?;
        self.digest.append(line.as_bytes());
        Ok(())
    }

    /// Syncs the file. Call it before a checkpoint is written.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_data);
        synced.map_err(|e| Error::io("syncing", &self.path, e))
    }

    fn opened(&mut self) -> std::io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::options().create(true).append(true).open(&self.path)?,
        };
        Ok(self.file.insert(file))
    }
}

/// A 128-bit hash of a line. The probability of a collision among a billion lines is below 1e-20.
fn fingerprint(line: &[u8]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, line).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(log: &FindingsLog) -> String {
        std::fs::read_to_string(&log.path).expect("read")
    }

    #[test]
    fn equal_findings_are_written_once_also_by_the_next_process() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut log = FindingsLog::open(dir.path()).expect("opened");
        assert!(!log.path.exists(), "no file before the first finding");
        for n in [3, 5, 3, 4, 5] {
            log.add(&json!({ "n": n })).expect("written");
        }
        log.sync().expect("synced");
        let mut again = FindingsLog::open(dir.path()).expect("opened");
        assert_eq!((log.count(), again.count()), (3, 3));
        again.add(&json!({"n": 4})).expect("known");
        again.add(&json!({"n": 6})).expect("written");
        assert_eq!(text(&again), "{\"n\":3}\n{\"n\":5}\n{\"n\":4}\n{\"n\":6}\n");
        assert_eq!(again.digest(), FileDigest::of_file(&again.path).expect("read"));
    }

    #[test]
    fn an_unfinished_last_line_is_cut_off_wherever_it_ends() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(FILE_NAME);
        for rest in ["{", "{\"n\":12", "{\"n\":12}", "\0\0\0\0", "\0\0\n"] {
            std::fs::write(&path, format!("{{\"n\":1}}\n{rest}")).expect("written");
            let mut log = FindingsLog::open(dir.path()).expect("opened");
            assert_eq!((log.count(), text(&log).as_str()), (1, "{\"n\":1}\n"), "{rest}");
            log.add(&json!({"n": 12})).expect("written");
            assert_eq!(text(&log), "{\"n\":1}\n{\"n\":12}\n", "{rest}");
        }
        std::fs::write(&path, "{\"n\":1}\n{\"n\":\n{\"n\":3}\n").expect("written");
        let message = FindingsLog::open(dir.path()).expect_err("damaged").to_string();
        assert!(message.ends_with("findings.jsonl: line 2 is damaged"), "{message}");
    }
}
