//! The epoch that the time limit cuts: what was played is trained on, measured and kept, but does not become a checkpoint.
//!
//! The clock decides where the epoch ends, so it may not decide about anything on which a resumed run depends. Such a run plays the
//! epoch in full from the last checkpoint. Its record takes the place of the cut one, and with its checkpoint the network of the cut one
//! goes, so that it ends with the bytes of an uninterrupted run.

use super::epoch::EpochDeadline;
use super::epoch_size::{first_update, samples_of};
use super::files::FINAL;
use super::training_run::Run;
use crate::config::TrainingMode;
use crate::error::Result;
use crate::report::metrics::EpochRecord;
use crate::run::pace::MeasurementTime;
use crate::stop::Stop;
use std::time::{Duration, Instant};

/// Seconds after the time limit in which the last measurement and the files must be finished.
const GRACE: Duration = Duration::from_secs(30);
/// Part of the time left that self-play gets while the time of an update is not known.
const SELFPLAY_SHARE: f64 = 0.6;
/// Estimated seconds of the last measurement before the first one, and of the files; at most [`MAX_SHARE`] of the time limit.
const CLOSING: f64 = 1.0;
/// Largest share of the time limit that is kept free for the last measurement and the files.
const MAX_SHARE: f64 = 0.2;

impl Run {
    /// The moment after which the run does no work of any kind: the time limit and some seconds for its last measurement.
    pub(super) fn last_moment(&self) -> Option<Instant> {
        self.deadline()?.checked_add(GRACE)
    }

    /// Whether another epoch follows `epoch`, which ends now.
    pub(super) fn moment_after(&self, epoch: u64) -> MeasurementTime {
        let is_last = self.config.run.epochs > 0 && epoch >= self.config.run.epochs;
        if is_last || self.is_late() { MeasurementTime::Last } else { MeasurementTime::Within }
    }

    /// True if no time is left for a part of another epoch.
    pub(super) fn is_late(&self) -> bool {
        self.time_limit().is_some_and(|limit| self.seconds() + 2.0 * self.closing_seconds(limit) >= limit)
    }

    /// The time limit of the next epoch.
    pub(super) fn epoch_deadline(&self) -> Result<EpochDeadline> {
        let Some(limit) = self.time_limit() else { return Ok(EpochDeadline::default()) };
        let closing = Duration::try_from_secs_f64(self.closing_seconds(limit)).unwrap_or_default();
        let training = self.deadline().map(|end| end.checked_sub(closing).unwrap_or(end));
        let update_seconds = self.update_seconds();
        let now = Instant::now();
        let selfplay = training.map(|end| match update_seconds {
            Some(_) => end,
            None if !self.updates_follow() => end,
            None => now + end.saturating_duration_since(now).mul_f64(SELFPLAY_SHARE),
        });
        Ok(EpochDeadline { selfplay, training, update_seconds: update_seconds.unwrap_or(0.0) })
    }

    /// True if updates may be due after the self-play of the next epoch.
    fn updates_follow(&self) -> bool {
        let in_epoch = match self.config.train.mode {
            TrainingMode::InTurns => samples_of(&self.config.selfplay, self.counters.epoch + 1),
            TrainingMode::Overlapped => 0,
        };
        first_update(&self.config)
            .is_some_and(|needed| self.replay.added().saturating_add(in_epoch) >= needed)
    }

    /// Estimated seconds of an update, from the last epoch that had some.
    fn update_seconds(&self) -> Option<f64> {
        let records = self.metrics.records();
        let before = |at: usize| at.checked_sub(1).map_or(0, |at| records[at].updates);
        let with_updates = (0..records.len()).rev().find(|&at| records[at].updates > before(at))?;
        let record = &records[with_updates];
        Some(record.train_seconds / (record.updates - before(with_updates)) as f64)
    }

    /// Estimated seconds of the last measurement and of the files, for a time limit of `limit` seconds.
    fn closing_seconds(&self, limit: f64) -> f64 {
        let measured = self.metrics.records().iter().rev().find(|record| record.strength.is_some());
        let seconds = measured.map_or(0.0, |record| record.eval_seconds).max(CLOSING);
        if self.config.eval.every == 0 { 0.0 } else { seconds.min(MAX_SHARE * limit) }
    }

    /// Writes what is kept of a cut epoch: its record and its network.
    pub(super) fn close_cut(&mut self, record: EpochRecord, stop: &Stop) -> Result<()> {
        self.folder.check()?;
        let writing = stop.write_guard();
        self.findings.sync()?;
        self.manifest.drop_cut_record()?;
        let network = self.network.file.to_bytes(&self.dir().join(FINAL))?;
        self.manifest.replace(FINAL, &network)?;
        self.events.append(&record)?;
        self.metrics.append(record)?;
        self.list_logs();
        self.manifest.write(self.counters.epoch)?;
        drop(writing);
        self.write_report()
    }
}
