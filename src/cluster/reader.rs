//! The learner's thread at the server: publishes weights and marks, reads chunks and replays their games.
//!
//! It outlives failures of the connection and the loss of the server's data: then everything is published again, and workers send what
//! no mark covers. What it reads goes to the run in the order of the stream.

use super::chunk::{Chunk, ChunkLimits, ChunkReader};
use super::published::{Keys, State, entries_of};
use super::received::{Order, Received, StreamId};
use super::server::{Connection, Failure, RETRY, Server, list_of, number_of};
use super::shared::{Publication, Shared};
use super::strict::poll::open;
use super::strict::refusals::Refusals;
use super::strict::starts::{FINISHED, Starts};
use super::waiting::{ChunkOutcome, EntrySender, RefusedGames, StreamEntry};
use super::window::{Waiting, Window};
use super::{Incarnation, PROTOCOL, random};
use crate::backend::device_selfplay::PlayPlan;
use crate::batch::AnyGame;
use crate::config::ClusterOrder;
use crate::error::{Error, Result};
use redis::{Value, cmd, pipe};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Entries of one read.
const READ_ENTRIES: usize = 8;
/// How long a read waits for an entry, in milliseconds.
const READ_WAIT: u64 = 100;
/// The same in strict order, where workers wait for the number of polls that are taken.
const STRICT_READ_WAIT: u64 = 5;
/// Time between two looks at a full queue.
const QUEUE_WAIT: Duration = Duration::from_millis(2);
/// Time after which statuses of workers are removed.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// How long the last publication may take once the run is over.
const LAST_PATIENCE: Duration = Duration::from_millis(500);
/// How far an entry's id may be ahead of the server's clock: entries get theirs from it, but for those of somebody who gives an id.
const MOST_AHEAD: Duration = Duration::from_secs(3600);
/// Time between two changes of the window, and between two warnings or requests of one kind.
const WARN_INTERVAL: Duration = Duration::from_secs(1);

/// The bounds of a run's chunks.
#[derive(Clone, Copy)]
pub(super) struct ChunkBounds {
    /// Sizes of a chunk.
    pub limits: ChunkLimits,
    /// In strict order: the most records of a poll.
    pub records: usize,
    /// See [`crate::config::ClusterConfig::max_lag`].
    pub max_lag: u64,
    /// See [`crate::config::ClusterConfig::order`].
    pub order: ClusterOrder,
}

/// The thread.
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
    pub shared: Arc<Shared>,
    pub entries: EntrySender,
    /// What was read, which is ahead of what the run has taken.
    pub read: Received,
    pub known: LinkState,
    pub window: Window,
}

/// What the thread remembers of workers and of its own messages.
#[derive(Default)]
pub(super) struct LinkState {
    /// The version that is published; None where nothing is.
    published: Option<u64>,
    /// The polls of it that are published as taken.
    polls: u64,
    /// In strict order: processes of which a poll was refused.
    refusals: Refusals,
    /// The window that is published.
    window: u64,
    window_at: Option<Instant>,
    /// When the server was too busy for a publication.
    busy_at: Option<Instant>,
    /// When the server was seen last to have what is published.
    checked_at: Option<Instant>,
    /// A read has found the stream empty since then.
    was_empty: bool,
    warned_at: Option<Instant>,
    /// When statuses of workers were removed last.
    cleared_at: Option<Instant>,
    /// When chunks of an incarnation were requested again last.
    requested_at: BTreeMap<u64, Instant>,
}

impl Reader {
    /// Works until the run is over, or until a failure that does not pass, which the run gets.
    pub(super) fn run(mut self) {
        let mut link = None;
        while !self.shared.is_ended() {
            let Some(publication) = self.shared.newest() else {
                sleep(QUEUE_WAIT);
                continue;
            };
            match self.step(&mut link, &publication) {
                Ok(()) => {}
                Err(failure @ (Failure::Passing(_) | Failure::Busy(_))) => {
                    if let Failure::Passing(_) = failure {
                        link = None;
                    }
                    self.warn(&format!("{}; it is tried again", failure.text()));
                    sleep(RETRY);
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
        if let Some(mut link) = link {
            self.publish_last(&mut link);
        }
    }

    /// Publishes what the run has ended with, if the server answers soon: a resumed run publishes it otherwise.
    fn publish_last(&mut self, link: &mut Connection) {
        let Some(publication) = self.shared.newest() else { return };
        if self.known.published != Some(publication.version) && link.set_patience(LAST_PATIENCE).is_ok() {
            let _ = self.publish_known(link, &publication);
        }
    }

    /// One step: connect if there is no connection, publish what is new or lost, read chunks. A server that is too full for a publication is
    /// read on, since the next checkpoint frees what it covers.
    fn step(&mut self, open: &mut Option<Connection>, publication: &Publication) -> Result<(), Failure> {
        let link = match open {
            Some(link) => link,
            None => {
                // Not kept before the position is checked, which a server that is loading its data refuses.
                let mut link = self.server.connect()?;
                self.check_position(&mut link)?;
                self.known.published = None;
                open.insert(link)
            }
        };
        if self.has_lost_state(link)? {
            self.begin_generation();
        }
        if self.known.busy_at.is_none_or(|at| at.elapsed() >= RETRY) {
            self.known.busy_at = None;
            match self.publish_all(link, publication) {
                Err(Failure::Busy(what)) => {
                    self.known.busy_at = Some(Instant::now());
                    self.warn(&format!("{what}; it is tried again"));
                }
                published => published?,
            }
        }
        self.read_chunks(link)
    }

    /// Whether the server has lost its data, or a learner that is gone has begun another generation after its last checkpoint.
    fn has_lost_state(&self, link: &mut Connection) -> Result<bool, Failure> {
        match State::read(link, &self.keys)? {
            Some(state) if state.run != self.read.run => Err(Failure::Final(of_another_run(&self.keys))),
            Some(state) => Ok(state.generation != self.read.generation),
            None => Ok(true),
        }
    }

    /// Publishes what the server does not have: the publication, the window or the polls.
    fn publish_all(&mut self, link: &mut Connection, publication: &Publication) -> Result<(), Failure> {
        if is_due(&mut self.known.checked_at) {
            let mut lengths = pipe();
            lengths.cmd("STRLEN").arg(self.keys.weights(publication.version));
            if publication.starts.is_some() {
                lengths.cmd("HSTRLEN").arg(self.keys.slots(publication.version)).arg(FINISHED);
            }
            if link.pipeline(&lengths)?.into_iter().any(|length| number_of(length) == Some(0)) {
                self.known.published = None;
            }
        }
        if self.known.published != Some(publication.version) {
            self.publish(link, publication)?;
        }
        match self.bounds.order {
            ClusterOrder::Free => self.set_window(link),
            ClusterOrder::Strict => self.set_polls(link, publication),
        }
    }

    /// Publishes a newer publication where the server has its data; where it has lost them, the next step begins a generation.
    fn publish_known(&mut self, link: &mut Connection, publication: &Publication) -> Result<(), Failure> {
        match self.has_lost_state(link)? {
            true => Ok(()),
            false => self.publish(link, publication),
        }
    }

    /// Publishes how many polls are taken, and of whom one was refused: another worker plays the part, or has played it, so what was
    /// sent in this epoch is read again; so it is where there was no room for some polls.
    fn set_polls(&mut self, link: &mut Connection, publication: &Publication) -> Result<(), Failure> {
        let version = publication.version;
        // Once for each refusal, whatever becomes of the commands below: what was taken here stays known until it is published.
        let is_refused = self.known.refusals.add(self.shared.take_refused(), version);
        if self.shared.take_read_again(version) || is_refused {
            let Received { generation, position, .. } = publication.received;
            self.read.position =
                if generation == self.read.generation { position } else { StreamId::default() };
        }
        let polls = self.shared.polls.load(Ordering::Relaxed);
        if polls != self.known.polls {
            link.command(cmd("SET").arg(&self.keys.polls).arg(format!("{version} {polls}")))?;
            self.known.polls = polls;
        }
        self.known.refusals.publish(link, &self.keys)
    }

    /// A stream that ends before the place that was read has lost its end.
    fn check_position(&mut self, link: &mut Connection) -> Result<(), Failure> {
        let last =
            link.command(cmd("XREVRANGE").arg(&self.keys.games).arg("+").arg("-").arg("COUNT").arg(1))?;
        let last = entries_of(last).pop().map(|(id, _)| id);
        if last.is_some_and(|last| last < self.read.position) {
            self.begin_generation();
        }
        Ok(())
    }

    /// Begins a generation of the stream, which is read from its first entry. Workers send what no mark covers; chunks that come again
    /// are recognised by their numbers.
    fn begin_generation(&mut self) {
        self.read.generation = random();
        self.read.position = StreamId::default();
        self.known.published = None;
    }

    /// Removes what is not needed any more, so that a full server has room, then publishes weights, then the state that names them together
    /// with the marks.
    fn publish(&mut self, link: &mut Connection, publication: &Publication) -> Result<(), Failure> {
        let Publication { version, weights, sha256, received, record, starts } = publication;
        if received.generation == self.read.generation {
            let first = received.position.next().to_string();
            link.command(cmd("XTRIM").arg(&self.keys.games).arg("MINID").arg(first))?;
        }
        let old = self.keys.of_old_versions(*version);
        if !old.is_empty() {
            link.command(cmd("DEL").arg(old))?;
        }
        link.command(cmd("SET").arg(self.keys.weights(*version)).arg(&weights[..]))?;
        let mut bytes_out = weights.len();
        if let Some(Starts { finished, parts }) = starts {
            bytes_out += parts.iter().map(Vec::len).sum::<usize>();
            let mut slots = cmd("HSET");
            slots.arg(self.keys.slots(*version)).arg(FINISHED).arg(*finished);
            for (part, bytes) in parts.iter().enumerate() {
                slots.arg(part).arg(&bytes[..]);
            }
            link.command(&slots)?;
        }
        let window = self.window.bytes();
        let state = State {
            protocol: PROTOCOL,
            run: self.read.run,
            generation: self.read.generation,
            digest: self.digest,
            version: *version,
            sha256: *sha256,
            window,
        };
        let mut all = pipe();
        all.atomic();
        all.cmd("HSET").arg(&self.keys.state).arg("config").arg(&self.config);
        for (name, value) in state.fields() {
            all.cmd("HSET").arg(&self.keys.state).arg(name).arg(value);
        }
        if let Some(record) = record {
            all.cmd("HSET").arg(&self.keys.state).arg("record").arg(&record[..]);
        }
        all.cmd("DEL").arg(&self.keys.marks).arg(&self.keys.resend);
        if self.known.cleared_at.is_none_or(|at| at.elapsed() >= FORGOTTEN) {
            // Workers that are there publish theirs again within two seconds.
            all.cmd("DEL").arg(&self.keys.workers);
            self.known.cleared_at = Some(Instant::now());
        }
        for (incarnation, mark) in &received.marks {
            all.cmd("HSET").arg(&self.keys.marks).arg(Incarnation(*incarnation).field()).arg(*mark);
        }
        link.pipeline(&all)?;
        self.window.end_epoch();
        self.known.refusals.begin(*version);
        // The number of polls that are taken is published again.
        (self.known.window, self.known.published, self.known.polls) = (window, Some(*version), u64::MAX);
        self.shared.bytes_out.fetch_add(bytes_out as u64, Ordering::Relaxed);
        self.shared.is_published.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Publishes another window where the number of active workers has changed, or where the learner takes faster or slower.
    fn set_window(&mut self, link: &mut Connection) -> Result<(), Failure> {
        if !is_due(&mut self.known.window_at) {
            return Ok(());
        }
        let has_waited = self.shared.has_waited.swap(false, Ordering::Relaxed);
        let was_empty = std::mem::take(&mut self.known.was_empty);
        let waiting = if has_waited && was_empty { Waiting::AtEmptyQueue } else { Waiting::No };
        self.window.adapt(waiting, self.shared.lag.swap(0, Ordering::Relaxed));
        let window = self.window.bytes();
        if window != self.known.window {
            link.command(cmd("HSET").arg(&self.keys.state).arg("window").arg(window))?;
            self.known.window = window;
        }
        Ok(())
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
        // [[key, entries]], or nil where nothing came; the server's clock, by which entries have their numbers.
        let streams = replies.next().and_then(list_of).unwrap_or_default();
        let (now, clock) = (Instant::now(), replies.next().and_then(milliseconds));
        self.known.was_empty |= streams.is_empty();
        let entries = streams.into_iter().filter_map(list_of).filter_map(|mut stream| stream.pop());
        for (id, chunk) in entries.flat_map(entries_of) {
            if self.shared.is_ended() {
                return Ok(());
            }
            if clock.is_some_and(|clock| id.0 > clock.saturating_add(MOST_AHEAD.as_millis() as u64)) {
                // After the last possible id the server would take no other.
                self.warn("an entry has an id of its own; the stream is removed, and workers send again");
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

    /// Checks a chunk, and replays its games where it is the next one of its worker.
    fn outcome(&mut self, link: &mut Connection, bytes: &[u8]) -> Result<ChunkOutcome, Failure> {
        let chunk = match Chunk::parse(bytes, &self.digest, &self.bounds.limits) {
            Ok(chunk) => chunk,
            Err(refusal) => {
                self.warn(&format!("a chunk of {} bytes is refused: {refusal}", bytes.len()));
                return Ok(ChunkOutcome::Refused);
            }
        };
        let header = chunk.header;
        if self.bounds.order == ClusterOrder::Strict {
            return Ok(match open(&mut self.chunks, &chunk, self.bounds.records) {
                Ok(poll) => ChunkOutcome::Poll(poll),
                Err(what) => {
                    self.warn(&format!("a poll of {} is refused: {what}", header.name()));
                    ChunkOutcome::Refused
                }
            });
        }
        let (incarnation, sequence, version) = (header.incarnation, header.sequence, header.version);
        match self.read.order(incarnation, sequence) {
            Order::Repeated => return Ok(ChunkOutcome::Repeated),
            Order::Gap => {
                self.request_resend(link, incarnation)?;
                return Ok(ChunkOutcome::Gap);
            }
            Order::TooMany => {
                self.warn(&format!("a chunk of {} is refused: too many workers have begun", header.name()));
                return Ok(ChunkOutcome::Refused);
            }
            Order::Next => {}
        }
        let newest = self.shared.version.load(Ordering::Relaxed);
        // Newer than the newest are weights of a run that was set back.
        let fits = version <= newest && newest - version <= self.bounds.max_lag;
        let mut games = Err(RefusedGames::Stale);
        // An incarnation is remembered for good, and so only once it has sent a game.
        let is_first = sequence == 1;
        if fits || is_first {
            match self.chunks.games(&chunk, self.game.as_ref(), &self.plan) {
                Ok(played) if fits => games = Ok(played),
                Ok(_) => {}
                Err(refusal) => {
                    self.warn(&format!("chunk {sequence} of {} is refused: {refusal}", header.name()));
                    if is_first {
                        return Ok(ChunkOutcome::Refused);
                    }
                    games = Err(RefusedGames::Games);
                }
            }
        }
        self.read.take(incarnation, sequence);
        self.window.see(incarnation);
        Ok(ChunkOutcome::Next { sender: header.name(), incarnation, sequence, version, games })
    }

    /// Requests, at most once a second, the chunks of a worker that have no mark.
    fn request_resend(&mut self, link: &mut Connection, incarnation: u64) -> Result<(), Failure> {
        self.known.requested_at.retain(|_, at| at.elapsed() < WARN_INTERVAL);
        if self.known.requested_at.contains_key(&incarnation) {
            return Ok(());
        }
        self.known.requested_at.insert(incarnation, Instant::now());
        let field = Incarnation(incarnation).field();
        // Not a counter, which would begin again after each publication: the worker may not have seen it in between.
        link.command(cmd("HSET").arg(&self.keys.resend).arg(field).arg(random())).map(drop)
    }

    /// Queues an entry for the run. While there is no room, new weights are published. The entry is dropped where the run is over.
    fn deliver(&mut self, link: &mut Connection, entry: StreamEntry) {
        let (mut waiting, mut is_broken) = (Ok(entry), false);
        while !self.shared.is_ended() {
            match self.entries.try_send(waiting) {
                Some(back) => waiting = back,
                None => return,
            }
            if let Some(publication) = self.shared.newest()
                && self.known.published != Some(publication.version)
                && !is_broken
            {
                // The next command on this connection meets the failure again.
                is_broken = self.publish_known(link, &publication).is_err();
            }
            sleep(QUEUE_WAIT);
        }
    }

    /// A warning, at most one a second.
    fn warn(&mut self, what: &str) {
        if is_due(&mut self.known.warned_at) {
            tracing::warn!("{}: {what}", self.server.address());
        }
    }
}

/// The reply to TIME, seconds and microseconds, in milliseconds.
fn milliseconds(reply: Value) -> Option<u64> {
    let mut parts = list_of(reply)?.into_iter().map(number_of);
    let (seconds, micros) = (parts.next()??, parts.next()??);
    seconds.checked_mul(1000)?.checked_add(micros / 1000)
}

/// True at most once a second.
pub(super) fn is_due(last: &mut Option<Instant>) -> bool {
    let due = last.is_none_or(|at| at.elapsed() >= WARN_INTERVAL);
    if due {
        *last = Some(Instant::now());
    }
    due
}

/// The error where the keys of this name belong to another run.
pub(super) fn of_another_run(keys: &Keys) -> String {
    format!(
        "the name is used by another run, expected another name (or delete that run's keys, which begin with {})",
        keys.state.trim_end_matches("state")
    )
}

/// The error of a run whose thread at the server is gone.
pub(super) fn thread_is_gone(server: &Server) -> Error {
    server.error(&Failure::Final("the thread that reads chunks has ended".into()))
}
