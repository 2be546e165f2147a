//! The record and the network of an epoch that the time limit cut, among the files of a run.

use super::{CheckDepth, Manifest};
use crate::error::{Error, Result};
use crate::files::read_whole;
use crate::report::metrics::{self, MetricsLog};
use crate::run::files::FINAL;
use std::fs;
use std::io::ErrorKind;

impl Manifest {
    /// [`metrics::is_cut_best`] of the run's log.
    pub(super) fn is_cut_best(&self) -> Result<bool> {
        // The log is written after the network.
        let bytes = match self.lists(metrics::FILE_NAME) {
            true => {
                self.check(metrics::FILE_NAME, CheckDepth::Content)?;
                let path = self.dir.join(metrics::FILE_NAME);
                read_whole(&path).map_err(|e| Error::io("reading", &path, e))?
            }
            false => Vec::new(),
        };
        let records = bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Ok(metrics::is_cut_best(&records.collect::<Vec<_>>()))
    }

    /// Drops the record of a cut epoch, which another one replaces. Its network stays. At every moment the manifest on disk lists the
    /// files that are there.
    ///
    /// # Errors
    /// [`Error::Io`], and those of [`MetricsLog::size_until`].
    pub fn drop_cut_record(&mut self) -> Result<()> {
        if !self.files.contains_key(FINAL) {
            return Ok(());
        }
        let path = self.dir.join(metrics::FILE_NAME);
        // The network is written before the record, which in the first epoch is that of a new log.
        if path.exists() {
            let size = MetricsLog::size_until(&self.dir, self.epoch)? as usize;
            let log = read_whole(&path).map_err(|e| Error::io("reading", &path, e))?;
            self.replace(metrics::FILE_NAME, &log[..size])?;
            if size == 0 {
                self.files.remove(metrics::FILE_NAME);
            }
        }
        Ok(())
    }

    /// Writes the manifest as of the end of `epoch`, which was played in full: without the network of a cut one, which is then removed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_full(&mut self, epoch: u64) -> Result<()> {
        self.files.remove(FINAL);
        self.write(epoch)?;
        self.remove_unlisted_final()
    }

    /// Removes the network of a cut epoch that the manifest does not list, if it exists.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_unlisted_final(&self) -> Result<()> {
        if self.lists(FINAL) {
            return Ok(());
        }
        let path = self.dir.join(FINAL);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("removing", &path, e)),
            _ => Ok(()),
        }
    }
}
