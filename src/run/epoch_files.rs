//! The files that an epoch writes beside its checkpoint: the report, the logs and some of its games.

use super::files::{GAMES, games_name};
use super::findings;
use super::training_run::Run;
use crate::error::{Error, Result};
use crate::eval::ladder::Ladder;
use crate::files::{FileDigest, create_subfolder, write_atomic};
use crate::play::FinishedGame;
use crate::report::REPORT;
use crate::report::html::Report;
use crate::report::metrics;

impl Run {
    /// Writes the report of all epochs.
    pub(super) fn write_report(&self) -> Result<()> {
        // Another command writes the ladder; a damaged one does not end the run.
        let ladder = Ladder::read(self.dir()).unwrap_or_else(|error| {
            tracing::warn!("the report has no ladder: {error}");
            None
        });
        let report = Report {
            config: &self.config,
            records: self.metrics.records(),
            random_outcome_error: self.strength_meter.random_outcome_error(),
            ladder: ladder.as_ref(),
            games: &[],
            tallies: None,
        };
        report.write(&self.dir().join(REPORT))
    }

    /// Lists the present content of the logs in the manifest.
    pub(super) fn list_logs(&mut self) {
        let logs =
            [(metrics::FILE_NAME, self.metrics.digest()), (findings::FILE_NAME, self.findings.digest())];
        for (name, digest) in logs.into_iter().filter(|(_, digest)| digest.size > 0) {
            self.manifest.set(name, digest);
        }
    }

    /// Stores some games of the epoch that ends, for people.
    pub(super) fn store_games(&mut self, games: &[FinishedGame]) -> Result<()> {
        let name = games_name(self.counters.epoch);
        let path = self.dir().join(&name);
        create_subfolder(&self.dir().join(GAMES))?;
        let mut text = String::new();
        for game in games {
            text += &serde_json::to_string(game).map_err(|e| Error::format(&path, e.to_string()))?;
            text += "\n";
        }
        write_atomic(path, text.as_bytes())?;
        self.manifest.set(name, FileDigest::of(text.as_bytes()));
        Ok(())
    }
}
