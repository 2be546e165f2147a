//! The metrics of epochs, and `metrics.jsonl`: one line of JSON per epoch.

pub(super) use super::epoch_record::head_names;
#[cfg(test)]
pub(super) use super::epoch_record::sample_records;
pub use super::epoch_record::{EpochLosses, EpochRecord, RootCacheUse, is_cut_best};
pub use super::strength::{MeanScore, PointsLead, Strength};
use crate::error::{Error, Result};
use crate::files::{FileDigest, if_exists, read_whole, write_atomic};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file's name in the folder of a run.
pub const FILE_NAME: &str = "metrics.jsonl";

/// The metrics of a run, in memory and in `metrics.jsonl`.
#[derive(Debug)]
pub struct MetricsLog {
    path: PathBuf,
    records: Vec<EpochRecord>,
    digest: FileDigest,
    /// What the file keeps, where it has more.
    kept: Option<Vec<u8>>,
}

impl MetricsLog {
    /// Opens the log in `dir` to continue after epoch `last_epoch` (0 for a new run). Records of later epochs, which will be
    /// repeated, and an incomplete last line stay in the file until [`MetricsLog::remove_later`] or the next record.
    ///
    /// # Errors
    /// [`Error::Format`] for a damaged line that is not the last, [`Error::Io`].
    pub fn open(dir: &Path, last_epoch: u64) -> Result<Self> {
        let path = dir.join(FILE_NAME);
        let bytes = if_exists(&path, read_whole(&path))?.unwrap_or_default();
        let mut lines = parse(&bytes, &path)?;
        lines.retain(|(_, record)| record.epoch <= last_epoch);
        let kept = lines.iter().map(|(line, _)| *line).collect::<Vec<_>>().concat();
        let digest = FileDigest::of(&kept);
        let records = lines.into_iter().map(|(_, record)| record).collect();
        let kept = (kept != bytes).then_some(kept);
        Ok(Self { path, records, digest, kept })
    }

    /// Removes from the file what [`MetricsLog::open`] has not kept.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_later(&mut self) -> Result<()> {
        match self.kept.take() {
            Some(kept) => write_atomic(&self.path, &kept),
            None => Ok(()),
        }
    }

    /// Number of bytes at the beginning of the log in `dir` that hold the records up to epoch `last_epoch`.
    ///
    /// # Errors
    /// [`Error::Format`] for a damaged line that is not the last, or if a later record stands before an earlier one;
    /// [`Error::Io`], also if there is no log.
    pub fn size_until(dir: &Path, last_epoch: u64) -> Result<u64> {
        let path = dir.join(FILE_NAME);
        let bytes = read_whole(&path).map_err(|e| Error::io("reading", &path, e))?;
        let lines = parse(&bytes, &path)?;
        if !lines.is_sorted_by_key(|(_, record)| record.epoch) {
            return Err(Error::format(&path, "its epochs are not in ascending order"));
        }
        let until = lines.iter().take_while(|(_, record)| record.epoch <= last_epoch);
        Ok(until.map(|(line, _)| line.len() as u64).sum())
    }

    /// Size and checksum of the file.
    pub fn digest(&self) -> FileDigest {
        self.digest
    }

    /// All records, oldest first.
    pub fn records(&self) -> &[EpochRecord] {
        &self.records
    }

    /// Appends a record and syncs the file. Call it before the epoch's manifest is written: a crash between the two leaves
    /// one record too many, which [`MetricsLog::remove_later`] removes.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the metric's name, [`Error::Io`].
    pub fn append(&mut self, record: EpochRecord) -> Result<()> {
        let line = record.json_line()?;
        self.remove_later()?;
        let write = || {
            let mut file = File::options().create(true).append(true).open(&self.path)?;
            file.write_all(line.as_bytes())?;
            file.sync_data()
        };
        write().map_err(|e| Error::io("writing", &self.path, e))?;
        self.digest.append(line.as_bytes());
        self.records.push(record);
        Ok(())
    }
}

/// The records of the run in `dir`, which may be in progress.
///
/// # Errors
/// [`Error::Io`] if there is no log, [`Error::Format`] for a damaged line that is not the last.
pub fn read_records(dir: &Path) -> Result<Vec<EpochRecord>> {
    let path = dir.join(FILE_NAME);
    let bytes = read_whole(&path).map_err(|e| Error::io("reading", &path, e))?;
    Ok(parse(&bytes, &path)?.into_iter().map(|(_, record)| record).collect())
}

/// The lines of `bytes` with their records. An incomplete or invalid last line is omitted.
fn parse<'a>(bytes: &'a [u8], path: &Path) -> Result<Vec<(&'a [u8], EpochRecord)>> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let lines: Vec<&[u8]> = bytes[..whole].split_inclusive(|&byte| byte == b'\n').collect();
    let mut records = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_slice(line) {
            Ok(record) => records.push((*line, record)),
            Err(_) if index + 1 == lines.len() => {
                tracing::warn!("{}: the last line is damaged and is dropped", path.display());
            }
            Err(e) => return Err(Error::format(path, format!("line {} is damaged: {e}", index + 1))),
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(dir: &Path, epochs: u64) -> Vec<EpochRecord> {
        let mut log = MetricsLog::open(dir, 0).expect("opened");
        for record in sample_records(epochs) {
            log.append(record).expect("written");
        }
        log.records().to_vec()
    }

    #[test]
    fn a_resumed_log_ends_at_the_checkpoint() {
        let dir = tempfile::tempdir().expect("a folder");
        let written = logged(dir.path(), 5);
        let mut log = MetricsLog::open(dir.path(), 3).expect("opened");
        assert_eq!(log.records(), &written[..3]);
        log.append(written[3].clone()).expect("written");
        assert_eq!(log.digest(), FileDigest::of_file(&log.path).expect("read"));
        assert_eq!(MetricsLog::size_until(dir.path(), 4).expect("read"), log.digest().size);
        let three = MetricsLog::size_until(dir.path(), 3).expect("read");
        assert!((1..log.digest().size).contains(&three), "{three}");
        assert_eq!(MetricsLog::open(dir.path(), 9).expect("opened").records(), &written[..4]);
    }

    #[test]
    fn an_unfinished_last_line_is_dropped_wherever_it_was_cut() {
        let dir = tempfile::tempdir().expect("a folder");
        let written = logged(dir.path(), 3);
        let path = dir.path().join(FILE_NAME);
        let bytes = std::fs::read(&path).expect("read");
        let last = bytes[..bytes.len() - 1].iter().rposition(|&b| b == b'\n').expect("lines") + 1;
        for end in [last + 1, last + 40, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..end]).expect("cut");
            let mut log = MetricsLog::open(dir.path(), 3).expect("opened");
            assert_eq!(log.records(), &written[..2], "cut at {end}");
            assert_eq!(std::fs::read(&path).expect("read"), &bytes[..end], "as it was");
            log.remove_later().expect("written");
            assert_eq!(std::fs::read(&path).expect("read"), &bytes[..last]);
        }
        std::fs::write(&path, [&bytes[..last], b"\xff\x00garbage\n"].concat()).expect("damaged");
        assert_eq!(MetricsLog::open(dir.path(), 3).expect("opened").records(), &written[..2]);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        logged(dir.path(), 3);
        let path = dir.path().join(FILE_NAME);
        let text = std::fs::read_to_string(&path).expect("read").replacen("{\"epoch\":2", "{\"epoch\":x", 1);
        std::fs::write(&path, text).expect("damaged");
        let message = MetricsLog::open(dir.path(), 3).expect_err("damaged").to_string();
        assert!(message.contains("line 2 is damaged"), "{message}");
    }

    #[test]
    fn metrics_that_are_not_finite_are_refused_by_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut log = MetricsLog::open(dir.path(), 0).expect("opened");
        let mut record = sample_records(2).remove(1);
        record.losses = record.losses.map(|losses| EpochLosses { value: f64::NAN, ..losses });
        let message = log.append(record).expect_err("refused").to_string();
        assert!(message.contains("metric.losses.value"), "{message}");
        assert!(log.records().is_empty());
    }
}
