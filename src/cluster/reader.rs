//! The learner's thread for the server: publishes weights and marks, reads chunks and replays their games.
//!
//! The thread survives failures of the connection and the loss of the server's data: it publishes everything again, and workers send
//! again all chunks that no mark covers. So they do after a stall (`stalls.rs`). Entries reach the run in the order of the stream.

mod publishing;

use super::bounds::ChunkBounds;
use super::chunk::{Chunk, ChunkReader};
use super::entry_queue::{ChunkOutcome, EntrySender, RefusedGames, StreamEntry};
use super::presence::Presence;
use super::published::{Keys, OVER, PublishedRun, entries_of};
use super::received::{MAX_INCARNATIONS, Received, SequenceCheck, StreamId};
use super::run_shared::{Publication, RunShared};
use super::server::{Connection, Failure, RETRY_INTERVAL, Server, list_of, number_of};
use super::stalls::StallTimer;
use super::strict::poll::open;
use super::strict::refusals::Refusals;
use super::warnings::{Kind, Warnings};
use super::window::Window;
use super::{Incarnation, random};
use crate::backend::AnyGame;
use crate::config::ClusterOrder;
use crate::error::{Error, Result};
use crate::play::PlayPlan;
use redis::{Value, cmd, pipe};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Upper bound on the entries of one read.
const READ_ENTRIES: usize = 8;
/// Milliseconds that a read waits for an entry.
const READ_WAIT: u64 = 100;
/// The same in strict order, where workers wait for the number of polls that are taken.
const STRICT_READ_WAIT: u64 = 5;
/// Time between two attempts to add to a full queue.
const QUEUE_WAIT: Duration = Duration::from_millis(2);
/// Time limit for a reply to the last publication of a run that stops before its limit: a resumed run publishes it again.
const LAST_PUBLISH_TIMEOUT: Duration = Duration::from_millis(500);
/// How far an entry's id may exceed the server's clock. The server assigns ids from its clock; a client that supplies its own id may
/// exceed it.
const MAX_CLOCK_LEAD: Duration = Duration::from_secs(3600);
/// Time between two changes of the window, and between two requests of one kind.
const DUE_INTERVAL: Duration = Duration::from_secs(1);

/// State of the thread.
pub(super) struct Reader {
    pub server: Server,
    pub keys: Keys,
    pub game: Arc<dyn AnyGame>,
    pub plan: PlayPlan,
    pub bounds: ChunkBounds,
    pub digest: [u8; 32],
    /// The configuration, as TOML.
    pub config: String,
    pub chunks: ChunkReader,
    pub shared: Arc<RunShared>,
    pub entries: EntrySender,
    /// The chunks that were read; the run may not have taken the last of them yet.
    pub read: Received,
    pub known: ReaderState,
    pub window: Window,
    pub stalls: StallTimer,
    pub warnings: Warnings,
}

/// The thread's record of what the server has, and of the times of its own actions.
#[derive(Default)]
pub(super) struct ReaderState {
    /// The version on the server; None where there is none.
    published: Option<u64>,
    /// True from the beginning of a generation until the server has it.
    is_begun: bool,
    /// The number of taken polls on the server.
    polls: u64,
    /// In strict order: processes of which a poll was refused.
    refusals: Refusals,
    /// The window on the server.
    window: u64,
    /// Time of the last change of the window.
    window_at: Option<Instant>,
    /// Time when the server was too busy for a publication.
    busy_at: Option<Instant>,
    /// Time of the last check that the server still has the publication.
    checked_at: Option<Instant>,
    /// A read has found the stream empty since the last change of the window.
    was_empty: bool,
    /// The workers that are there.
    presence: Presence,
    /// Time of the last removal of statuses.
    cleared_at: Option<Instant>,
    /// Time of the last request to send again, by incarnation.
    requested_at: BTreeMap<u64, Instant>,
}

impl Reader {
    /// Runs until the run is over or a [`Failure::Final`], which it reports to the run.
    pub(super) fn run(mut self) {
        let mut link = None;
        while !self.shared.is_ended() {
            let Some(publication) = self.shared.newest() else {
                sleep(QUEUE_WAIT);
                continue;
            };
            match self.step(&mut link, &publication) {
                Ok(()) if self.known.busy_at.is_none() => self.warnings.recovered(),
                Ok(()) => {}
                Err(failure @ (Failure::Transient(_) | Failure::Busy(_))) => {
                    if let Failure::Transient(_) = failure {
                        link = None;
                    }
                    self.warnings.warn(Kind::Connection, &format!("{}; retrying", failure.text()));
                    sleep(RETRY_INTERVAL);
                }
                Err(failure) => {
                    let mut error = Err(self.server.error(&failure));
                    while !self.shared.is_ended() {
                        match self.entries.try_send(error) {
                            Some(back) => error = back,
                            None => return,
                        }
                        sleep(QUEUE_WAIT);
                    }
                }
            }
        }
        self.publish_last(link);
    }

    /// Publishes the last state of the run, and that it is over if it has reached its limit. A run that stops before its limit waits no
    /// longer than [`LAST_PUBLISH_TIMEOUT`] for the server.
    fn publish_last(&mut self, link: Option<Connection>) {
        let Some(publication) = self.shared.newest() else { return };
        let told = match self.shared.is_over.load(Ordering::Relaxed) {
            true => self.publish_end(link, &publication),
            false => return self.publish_stop(link, &publication),
        };
        if let Err(failure) = told {
            tracing::warn!(
                "{}: {}; workers do not know that the run is over, expected another vecaz run --resume, which tells them",
                self.server.address(),
                failure.text()
            );
        }
    }

    /// Publishes the state of a run that has reached its limit, and the limit.
    fn publish_end(&mut self, link: Option<Connection>, publication: &Publication) -> Result<(), Failure> {
        let mut link = match link {
            Some(link) => link,
            None => {
                self.known.published = None;
                self.server.connect()?
            }
        };
        if self.needs_generation(&mut link)? {
            self.begin_generation();
        }
        if self.known.published != Some(publication.version) {
            self.publish(&mut link, publication)?;
        }
        link.command(cmd("HSET").arg(&self.keys.state).arg(OVER.0).arg(OVER.1)).map(drop)
    }

    /// Publishes the state of a run that stops, if the server replies in time: a resumed run publishes it again.
    fn publish_stop(&mut self, link: Option<Connection>, publication: &Publication) {
        let Some(mut link) = link else { return };
        if link.set_timeout(LAST_PUBLISH_TIMEOUT).is_ok() && self.known.published != Some(publication.version)
        {
            let _ = self.publish_known(&mut link, publication);
        }
    }

    /// One step: connect if there is no connection, publish what is new or lost, read chunks. Where the server is too full for a
    /// publication, reading continues: the next checkpoint frees the memory of the chunks that it covers.
    fn step(&mut self, open: &mut Option<Connection>, publication: &Publication) -> Result<(), Failure> {
        let link = match open {
            Some(link) => link,
            None => {
                // Stored only after the check of the position, which fails while the server loads its data.
                let mut link = self.server.connect()?;
                self.check_position(&mut link)?;
                self.known.published = None;
                open.insert(link)
            }
        };
        if self.needs_generation(link)? {
            self.begin_generation();
        }
        if self.known.busy_at.is_none_or(|at| at.elapsed() >= RETRY_INTERVAL) {
            self.known.busy_at = None;
            match self.publish_all(link, publication) {
                Err(Failure::Busy(what)) => {
                    self.known.busy_at = Some(Instant::now());
                    self.warnings.warn(Kind::Connection, &format!("{what}; retrying"));
                }
                published => published?,
            }
        }
        let present = self.known.presence.look(link, &self.keys, &self.server)?;
        self.shared.present.store(present as u64, Ordering::Relaxed);
        let presence = &self.known.presence;
        self.window.forget_departed(|process| presence.has(Incarnation(process).field().as_bytes()));
        self.read_chunks(link)
    }

    /// Whether the server has lost its data, or an earlier learner has begun another generation after its last checkpoint. Not while the
    /// server, which may be full, lacks a generation that this learner has begun.
    fn needs_generation(&self, link: &mut Connection) -> Result<bool, Failure> {
        match PublishedRun::read(link, &self.keys)? {
            Some(found) if found.run != self.read.run => Err(Failure::Final(of_another_run(&self.keys))),
            Some(found) => Ok(found.generation != self.read.generation && !self.known.is_begun),
            None => Ok(!self.known.is_begun),
        }
    }

    /// Begins a generation where the stream ends before the position that was read: the server has lost the stream's end.
    fn check_position(&mut self, link: &mut Connection) -> Result<(), Failure> {
        let last =
            link.command(cmd("XREVRANGE").arg(&self.keys.games).arg("+").arg("-").arg("COUNT").arg(1))?;
        let last = entries_of(last).pop().map(|(id, _)| id);
        if last.is_some_and(|last| last < self.read.position) {
            self.begin_generation();
        }
        Ok(())
    }

    /// Begins a generation of the stream, which is read from its first entry. Workers send again all chunks that no mark covers;
    /// repeated chunks are recognised by their numbers.
    fn begin_generation(&mut self) {
        self.read.generation = random();
        self.read.position = StreamId::default();
        self.known.published = None;
        self.known.is_begun = true;
    }

    /// For how long the run and all workers have waited for each other, if the run has stalled. A publication that the server does not have
    /// yet may be what the workers wait for.
    fn stalled_for(&mut self) -> Option<Duration> {
        let is_published = self.known.busy_at.is_none() && !self.known.is_begun;
        if !is_published || !self.shared.is_waiting() || !self.known.presence.all_wait() {
            self.stalls.interrupt();
            return None;
        }
        self.stalls.record_wait(self.shared.accepted.load(Ordering::Relaxed), Instant::now())
    }

    /// Reads the next entries and delivers them to the run.
    fn read_chunks(&mut self, link: &mut Connection) -> Result<(), Failure> {
        let mut read = cmd("XREAD");
        let wait = match self.bounds.order {
            ClusterOrder::Free => READ_WAIT,
            ClusterOrder::Strict => STRICT_READ_WAIT,
        };
        read.arg("COUNT").arg(READ_ENTRIES).arg("BLOCK").arg(wait);
        read.arg("STREAMS").arg(&self.keys.games).arg(self.read.position.to_string());
        let mut all = pipe();
        all.add_command(read).cmd("TIME");
        let mut replies = link.pipeline(&all)?.into_iter();
        // The replies: [[key, entries]], or nil without entries; the server's clock, from which entries have their ids.
        let streams = replies.next().and_then(list_of).unwrap_or_default();
        let (now, clock) = (Instant::now(), replies.next().and_then(milliseconds));
        self.known.was_empty |= streams.is_empty();
        if let Some(waited) = self.stalled_for().filter(|_| streams.is_empty()) {
            self.warnings.warn(Kind::Stream, &format!(
                "the run has waited for games for {} s and all workers for the run, so an entry is lost or was refused; workers send \
                 again",
                waited.as_secs()
            ));
            self.stalls.record_request();
            self.begin_generation();
            return Ok(());
        }
        let entries = streams.into_iter().filter_map(list_of).filter_map(|mut stream| stream.pop());
        for (id, chunk) in entries.flat_map(entries_of) {
            if self.shared.is_ended() {
                return Ok(());
            }
            if clock.is_some_and(|clock| id.0 > clock.saturating_add(MAX_CLOCK_LEAD.as_millis() as u64)) {
                // After the greatest id the server would accept no further entry.
                self.warnings.warn(Kind::Stream, &format!(
                    "the id of entry {id} is more than an hour ahead of the server's clock, so a client has supplied it; the \
                     stream is removed, and workers send again"
                ));
                link.command(cmd("DEL").arg(&self.keys.games))?;
                self.begin_generation();
                return Ok(());
            }
            self.read.position = id;
            let outcome = self.outcome(link, &chunk)?;
            let age = Duration::from_millis(clock.unwrap_or(id.0).saturating_sub(id.0));
            let since = now.checked_sub(age).unwrap_or(now);
            let generation = self.read.generation;
            self.deliver(link, StreamEntry { generation, id, bytes: chunk.len(), since, outcome });
        }
        Ok(())
    }

    /// Checks a chunk; replays its games if it is the next one of its worker.
    fn outcome(&mut self, link: &mut Connection, bytes: &[u8]) -> Result<ChunkOutcome, Failure> {
        let chunk = match Chunk::parse(bytes, &self.digest, &self.bounds.limits) {
            Ok(chunk) => chunk,
            Err(refusal) => {
                self.warnings
                    .warn(Kind::Refused, &format!("a chunk of {} bytes is refused: {refusal}", bytes.len()));
                return Ok(ChunkOutcome::Refused);
            }
        };
        let header = chunk.header;
        if self.bounds.order == ClusterOrder::Strict {
            return Ok(match open(&mut self.chunks, &chunk, self.bounds.records) {
                Ok(poll) => ChunkOutcome::Poll(poll),
                Err(what) => {
                    self.warnings
                        .warn(Kind::Refused, &format!("a poll of {} is refused: {what}", header.name()));
                    ChunkOutcome::Refused
                }
            });
        }
        let (incarnation, sequence, version) = (header.incarnation, header.sequence, header.version);
        match self.read.check_sequence(incarnation, sequence) {
            SequenceCheck::Repeated => return Ok(ChunkOutcome::Repeated),
            SequenceCheck::Gap => {
                self.request_resend(link, incarnation)?;
                return Ok(ChunkOutcome::Gap);
            }
            SequenceCheck::TooMany => {
                self.warnings.warn(Kind::Refused, &format!(
                    "a chunk of {} is refused: the run has had {MAX_INCARNATIONS} processes of workers, expected no new ones",
                    header.name()
                ));
                return Ok(ChunkOutcome::Refused);
            }
            SequenceCheck::Next => {}
        }
        let newest = self.shared.version.load(Ordering::Relaxed);
        // A version above the newest means that the run was reset to an earlier checkpoint.
        let fits = version <= newest && newest - version <= self.bounds.max_lag;
        let mut games = Err(RefusedGames::Stale);
        // An incarnation stays in the checkpoint for ever, so it enters only with a valid game.
        let is_first = sequence == 1;
        if fits || is_first {
            match self.chunks.games(&chunk, self.game.as_ref(), &self.plan) {
                Ok(played) if fits => games = Ok(played),
                Ok(_) => {}
                Err(refusal) => {
                    self.warnings.warn(
                        Kind::Refused,
                        &format!("chunk {sequence} of {} is refused: {refusal}", header.name()),
                    );
                    if is_first {
                        return Ok(ChunkOutcome::Refused);
                    }
                    games = Err(RefusedGames::Games);
                }
            }
        }
        self.read.take(incarnation, sequence);
        self.window.record_chunk(incarnation);
        Ok(ChunkOutcome::Next { sender: header.name(), incarnation, sequence, version, games })
    }

    /// Requests the chunks of a worker that have no mark, at most once a second.
    fn request_resend(&mut self, link: &mut Connection, incarnation: u64) -> Result<(), Failure> {
        self.known.requested_at.retain(|_, at| at.elapsed() < DUE_INTERVAL);
        if self.known.requested_at.contains_key(&incarnation) {
            return Ok(());
        }
        self.known.requested_at.insert(incarnation, Instant::now());
        let field = Incarnation(incarnation).field();
        // Random: a counter would begin again after each publication, and a worker may read it only before and after.
        link.command(cmd("HSET").arg(&self.keys.resend).arg(field).arg(random())).map(drop)
    }

    /// Queues an entry for the run. While the queue is full, publishes new weights. Drops the entry once the run is over.
    fn deliver(&mut self, link: &mut Connection, entry: StreamEntry) {
        let (mut entry, mut is_broken) = (Ok(entry), false);
        while !self.shared.is_ended() {
            match self.entries.try_send(entry) {
                Some(back) => entry = back,
                None => return,
            }
            if let Some(publication) = self.shared.newest()
                && self.known.published != Some(publication.version)
                && !is_broken
            {
                // The next command on this connection fails again and is handled there.
                is_broken = self.publish_known(link, &publication).is_err();
            }
            sleep(QUEUE_WAIT);
        }
    }
}

/// The milliseconds of a reply to TIME, which has seconds and microseconds.
fn milliseconds(reply: Value) -> Option<u64> {
    let mut numbers = list_of(reply)?.into_iter().map(number_of);
    let (seconds, micros) = (numbers.next()??, numbers.next()??);
    seconds.checked_mul(1000)?.checked_add(micros / 1000)
}

/// The message where the keys of this name belong to another run.
pub(super) fn of_another_run(keys: &Keys) -> String {
    format!(
        "the name is used by another run, expected another name; `vecaz run --resume RUN --cluster URL` goes on with that run (or delete its keys, whose prefix is {})",
        keys.state.trim_end_matches("state")
    )
}

/// The error of a run whose reader thread has ended.
pub(super) fn thread_has_ended(server: &Server) -> Error {
    server.error(&Failure::Final(
        "the thread that reads chunks has ended, expected it to run as long as the run".into(),
    ))
}
