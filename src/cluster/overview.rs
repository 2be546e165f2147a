//! Overview of a run with workers, read from its server for display: the last epoch, the queue, the workers.

use super::presence::{Presence, read_statuses};
use super::published::{Keys, OVER, PublishedRun};
use super::server::{Connection, Failure, Server, bytes_of, number_of};
use super::status::WorkerStatus;
use crate::error::Result;
use crate::report::metrics::EpochRecord;
use crate::report::workers::WorkerCounts;
use crate::words::count;
use redis::{Value, pipe};
use serde_json::json;
use std::fmt;
use std::time::{Duration, Instant};

/// A run at one moment.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The server and the run's name.
    pub address: String,
    /// The version of the weights: finished epochs.
    pub version: u64,
    /// Whether the run has reached its limit; it has no workers then.
    pub is_over: bool,
    /// The last epoch; None before its end.
    pub record: Option<EpochRecord>,
    /// Chunks on the server that are not in a checkpoint.
    pub queued_chunks: u64,
    /// The active workers, sorted by name.
    pub workers: Vec<WorkerStatus>,
    /// Seconds since each worker's status came, as this reader has seen it. `[workers]`
    pub ages: Vec<f64>,
}

impl Overview {
    /// Without the workers that have sent nothing for `time`. Workers that still prepare stay, since a first reading cannot tell how old their
    /// statuses are.
    #[must_use]
    pub fn without_silent(mut self, time: Duration) -> Self {
        let seen = std::mem::take(&mut self.workers).into_iter().zip(std::mem::take(&mut self.ages));
        let live = seen.filter(|(status, age)| status.number <= 1 || *age < time.as_secs_f64());
        (self.workers, self.ages) = live.unzip();
        self
    }

    /// The run as JSON, for pages.
    pub fn json(&self) -> serde_json::Value {
        let worker = |(worker, age): (&WorkerStatus, &f64)| {
            let limit = worker.shares.largest();
            json!({
                "name": worker.name, "weights": worker.version, "games": worker.games,
                "games_per_second": worker.games_per_second, "samples_per_second": worker.samples_per_second,
                "limited_by": limit.to_string(), "share": worker.shares.share(limit), "seconds_ago": age,
            })
        };
        json!({
            "address": self.address,
            "weights": self.version,
            "over": self.is_over,
            "queued_chunks": self.queued_chunks,
            "workers": self.workers.iter().zip(&self.ages).map(worker).collect::<Vec<_>>(),
        })
    }
}

/// Reads overviews of a run, one after the other.
pub struct OverviewReader {
    server: Server,
    keys: Keys,
    /// None after a failure.
    link: Option<Connection>,
    presence: Presence,
}

impl OverviewReader {
    /// Connects to the server.
    ///
    /// # Errors
    /// [`crate::Error::Server`].
    pub fn new(server: Server) -> Result<Self> {
        let link = server.connect().map_err(|failure| server.error(&failure))?;
        Ok(Self {
            keys: Keys::new(server.address().run()),
            server,
            link: Some(link),
            presence: Presence::default(),
        })
    }

    /// Reads the run now. After an error it opens a new connection.
    ///
    /// # Errors
    /// [`crate::Error::Server`], also where the server has no such run.
    pub fn read(&mut self) -> Result<Overview> {
        let link = self.link.take().map_or_else(|| self.server.connect(), Ok);
        let read = link.and_then(|mut link| {
            let overview = self.read_on(&mut link)?;
            self.link = Some(link);
            Ok(overview)
        });
        read.map_err(|failure| self.server.error(&failure))
    }

    fn read_on(&mut self, link: &mut Connection) -> Result<Overview, Failure> {
        let Some(run) = PublishedRun::read(link, &self.keys)? else {
            return Err(Failure::Final(
                "no run of this name, expected one that `vecaz run --cluster` has begun".into(),
            ));
        };
        let mut all = pipe();
        all.cmd("HGET").arg(&self.keys.state).arg("record");
        all.cmd("XLEN").arg(&self.keys.games);
        all.cmd("HGET").arg(&self.keys.state).arg(OVER.0);
        let mut replies = link.pipeline(&all)?.into_iter();
        let mut next = || replies.next().unwrap_or(Value::Nil);
        let record = bytes_of(next()).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let queued_chunks = number_of(next()).unwrap_or(0);
        let is_over = bytes_of(next()).is_some_and(|value| value == OVER.1.as_bytes());
        let statuses = read_statuses(link, &self.keys)?;
        let now = Instant::now();
        self.presence.update(&statuses, now);
        let active = statuses.into_iter().filter(|(process, _)| !is_over && self.presence.has(process));
        let with_age = |(process, status): (Vec<u8>, WorkerStatus)| {
            (status, self.presence.age(&process, now).as_secs_f64())
        };
        let mut workers: Vec<(WorkerStatus, f64)> = active.map(with_age).collect();
        workers.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let (workers, ages) = workers.into_iter().unzip();
        let address = self.server.address().to_string();
        Ok(Overview { address, version: run.version, is_over, record, queued_chunks, workers, ages })
    }
}

/// Writes the chunks that the learner took and refused in the last epoch.
fn write_counts(f: &mut fmt::Formatter<'_>, counts: &WorkerCounts) -> fmt::Result {
    writeln!(
        f,
        "of workers {} in {}, {:.1} MB in, {:.1} MB out; queue {:.2} s and {:.2} MB, weights {:.1} versions old; {} stale, {} repeated, {} gaps, {} refused",
        count(counts.games, "game"),
        count(counts.chunks, "chunk"),
        counts.bytes as f64 / 1e6,
        counts.bytes_out as f64 / 1e6,
        counts.queue_seconds,
        counts.queue_bytes / 1e6,
        counts.lag,
        counts.stale,
        counts.repeated,
        counts.gaps,
        counts.refused
    )
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate =
            |rate: fn(&WorkerStatus) -> f64| self.workers.iter().map(rate).fold(0.0, |sum, rate| sum + rate);
        writeln!(
            f,
            "{}: weights {}, {} queued{}",
            self.address,
            self.version,
            count(self.queued_chunks, "chunk"),
            if self.is_over { "; the run has reached its limit" } else { "" }
        )?;
        if let Some(record) = &self.record {
            writeln!(
                f,
                "epoch {} after {:.1} minutes: {}, {}, {}",
                record.epoch,
                record.seconds / 60.0,
                count(record.games, "game"),
                count(record.samples, "sample"),
                count(record.updates, "update")
            )?;
            if let Some(counts) = &record.workers {
                write_counts(f, counts)?;
            }
        }
        writeln!(
            f,
            "{}: {:.1} games/s, {:.0} samples/s\n",
            count(self.workers.len(), "worker"),
            rate(|worker| worker.games_per_second),
            rate(|worker| worker.samples_per_second)
        )?;
        // A line of a short name has at most 80 characters.
        let names = self.workers.iter().map(|worker| worker.name.chars().count()).max().unwrap_or(0).max(10);
        writeln!(
            f,
            "{:<names$} {:>8} {:>10} {:>9} {:>9}  limited by",
            "worker", "weights", "games", "games/s", "samples/s"
        )?;
        for worker in &self.workers {
            let WorkerStatus { name, version, games, games_per_second, samples_per_second, shares, .. } =
                worker;
            let bottleneck = shares.largest();
            writeln!(
                f,
                "{name:<names$} {version:>8} {games:>10} {games_per_second:>9.1} {samples_per_second:>9.0}  {bottleneck} ({:.0} %)",
                100.0 * shares.share(bottleneck)
            )?;
        }
        Ok(())
    }
}
