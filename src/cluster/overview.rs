//! Overview of a run with workers, read from its server for display: the last epoch, the queue, the workers.

use super::published::{Keys, PublishedRun};
use super::server::{Connection, Failure, Server, bytes_of, list_of, number_of};
use super::status::WorkerStatus;
use crate::error::Result;
use crate::report::metrics::EpochRecord;
use crate::report::workers::WorkerCounts;
use redis::{Value, cmd, pipe};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// Time after which a worker whose status does not change counts as stopped.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// A run at one moment.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The server and the run's name.
    pub address: String,
    /// The version of the weights: finished epochs.
    pub version: u64,
    /// The last epoch; None before its end.
    pub record: Option<EpochRecord>,
    /// Chunks on the server that are not in a checkpoint.
    pub queued_chunks: u64,
    /// The active workers, sorted by name.
    pub workers: Vec<WorkerStatus>,
}

/// Reads overviews of a run, one after the other.
pub struct OverviewReader {
    server: Server,
    keys: Keys,
    /// None after a failure.
    link: Option<Connection>,
    /// The number of each process's last status, and when it was first read.
    seen: BTreeMap<Vec<u8>, (u64, Instant)>,
}

impl OverviewReader {
    /// Connects to the server.
    ///
    /// # Errors
    /// [`crate::Error::Server`].
    pub fn new(server: Server) -> Result<Self> {
        let link = server.connect().map_err(|failure| server.error(&failure))?;
        Ok(Self { keys: Keys::new(server.address().run()), server, link: Some(link), seen: BTreeMap::new() })
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
        let mut replies = link.pipeline(&all)?.into_iter();
        let mut next = || replies.next().unwrap_or(Value::Nil);
        let record = bytes_of(next()).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let queued_chunks = number_of(next()).unwrap_or(0);
        let statuses = read_statuses(link, &self.keys)?;
        let now = Instant::now();
        self.seen.retain(|process, _| statuses.contains_key(process));
        let mut workers = Vec::new();
        for (process, status) in statuses {
            let (number, at) = self.seen.entry(process).or_insert((status.number, now));
            if *number != status.number {
                (*number, *at) = (status.number, now);
            }
            if at.elapsed() < STATUS_TIMEOUT {
                workers.push(status);
            }
        }
        workers.sort_by(|a, b| a.name.cmp(&b.name));
        let address = self.server.address().to_string();
        Ok(Overview { address, version: run.version, record, queued_chunks, workers })
    }
}

/// The statuses of all processes that have published one.
pub(super) fn read_statuses(
    link: &mut Connection,
    keys: &Keys,
) -> Result<BTreeMap<Vec<u8>, WorkerStatus>, Failure> {
    let reply = match link.command(cmd("HGETALL").arg(&keys.workers))? {
        Value::Map(pairs) => pairs.into_iter().flat_map(|(field, value)| [field, value]).collect(),
        other => list_of(other).unwrap_or_default(),
    };
    let mut fields = reply.into_iter().map(bytes_of);
    let mut statuses = BTreeMap::new();
    while let (Some(field), Some(value)) = (fields.next(), fields.next()) {
        if let Some((process, status)) = field.zip(value.and_then(|bytes| WorkerStatus::read(&bytes))) {
            statuses.insert(process, status);
        }
    }
    Ok(statuses)
}

/// Writes the chunks that the learner took and refused in the last epoch.
fn write_counts(f: &mut fmt::Formatter<'_>, counts: &WorkerCounts) -> fmt::Result {
    writeln!(
        f,
        "of workers {} games in {} chunks, {:.1} MB in, {:.1} MB out; queue {:.2} s and {:.2} MB, weights {:.1} versions old; {} stale, {} repeated, {} gaps, {} refused",
        counts.games,
        counts.chunks,
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
        writeln!(f, "{}: weights {}, {} chunks queued", self.address, self.version, self.queued_chunks)?;
        if let Some(record) = &self.record {
            writeln!(
                f,
                "epoch {} after {:.1} minutes: {} games, {} samples, {} updates",
                record.epoch,
                record.seconds / 60.0,
                record.games,
                record.samples,
                record.updates
            )?;
            if let Some(counts) = &record.workers {
                write_counts(f, counts)?;
            }
        }
        writeln!(
            f,
            "{} workers: {:.1} games/s, {:.0} samples/s\n",
            self.workers.len(),
            rate(|worker| worker.games_per_second),
            rate(|worker| worker.samples_per_second)
        )?;
        writeln!(
            f,
            "{:<32} {:>8} {:>10} {:>9} {:>9}  limited by",
            "worker", "weights", "games", "games/s", "samples/s"
        )?;
        for worker in &self.workers {
            let WorkerStatus { name, version, games, games_per_second, samples_per_second, shares, .. } =
                worker;
            let bottleneck = shares.largest();
            writeln!(
                f,
                "{name:<32} {version:>8} {games:>10} {games_per_second:>9.1} {samples_per_second:>9.0}  {bottleneck} ({:.0} %)",
                100.0 * shares.share(bottleneck)
            )?;
        }
        Ok(())
    }
}
