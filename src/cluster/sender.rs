//! A worker's thread at the server: sends chunks, keeps them until a mark covers them, fetches weights.
//!
//! A chunk is sent again, with all that follow it, whenever it may be lost: on a new connection, in a new generation of the stream, and on the
//! learner's request. The learner takes each once.

use super::Incarnation;
use super::published::{CHUNK_FIELD, Keys, State, WorkerView, read_weights};
use super::server::{Connection, Failure, RETRY, Server};
use crate::error::Error;
use redis::cmd;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two reads of the run's state.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long the thread waits for a chunk between two reads.
const WAIT: Duration = Duration::from_millis(50);
/// How long marks may be lower than before: a server that has lost the last second gets them again from the learner.
const GAP: Duration = Duration::from_secs(5);
/// Time between two warnings.
const WARN_INTERVAL: Duration = Duration::from_secs(5);

/// A version of the weights.
#[derive(Debug)]
pub(super) struct WeightsVersion {
    /// The version.
    pub version: u64,
    /// The network's file.
    pub file: Vec<u8>,
}

/// A chunk that no mark covers yet.
struct Unmarked {
    sequence: u64,
    bytes: Arc<Vec<u8>>,
}

/// What a worker believes of the run's numbers, in bytes.
#[derive(Clone, Copy)]
pub(super) struct SenderBounds {
    /// The most of a file of weights.
    pub weights: u64,
    /// The most of a window: chunks without a mark are kept in memory.
    pub window: u64,
}

/// What the worker and its thread share.
#[derive(Default)]
struct SendQueue {
    unmarked: VecDeque<Unmarked>,
    /// How many of `unmarked` were sent since they may have been lost.
    sent: usize,
    bytes: u64,
    window: u64,
    weights: Option<WeightsVersion>,
    failure: Option<Failure>,
    /// The worker's newest status, until it is sent.
    status: Option<Vec<u8>>,
    /// When the thread ends, at the latest; earlier once all is sent. None while the worker plays.
    until: Option<Instant>,
    /// Whether the run's state was there at the last read.
    ready: bool,
    counts: SentCounts,
}

/// What a worker has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounts {
    /// Chunks, each once.
    pub chunks: u64,
    /// Chunks that were sent again.
    pub resent: u64,
    /// Bytes, with those sent again.
    pub bytes: u64,
}

/// The worker's end of the thread.
pub(super) struct Sender {
    shared: Arc<(Mutex<SendQueue>, Condvar)>,
    server: Server,
}

impl Sender {
    /// Starts the thread. `state` is that of the run whose games are played.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the system gives no thread.
    pub(super) fn start(
        server: &Server,
        keys: Keys,
        state: State,
        incarnation: Incarnation,
        bounds: SenderBounds,
    ) -> crate::error::Result<Self> {
        let shared = Arc::new((
            Mutex::new(SendQueue { window: state.window.min(bounds.window), ..SendQueue::default() }),
            Condvar::new(),
        ));
        let sender_thread = SenderThread {
            server: server.clone(),
            incarnation,
            keys,
            state,
            bounds,
            shared: shared.clone(),
            fetched: None,
            resend: 0,
            gap_since: None,
            polled_at: None,
            warned_at: None,
        };
        let thread = std::thread::Builder::new().name("sender".into()).spawn(move || sender_thread.run());
        thread.map_err(|e| Error::unsupported("a thread for sending", e.to_string()))?;
        Ok(Self { shared, server: server.clone() })
    }

    fn queue(&self) -> MutexGuard<'_, SendQueue> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a chunk. It is kept until a mark covers it.
    pub(super) fn send(&self, sequence: u64, bytes: Vec<u8>) {
        let mut queue = self.queue();
        queue.bytes += bytes.len() as u64;
        queue.counts.chunks += 1;
        queue.unmarked.push_back(Unmarked { sequence, bytes: Arc::new(bytes) });
        self.shared.1.notify_all();
    }

    /// Weights newer than those taken before.
    ///
    /// # Errors
    /// The failure that has ended the thread.
    pub(super) fn take_weights(&self) -> crate::error::Result<Option<WeightsVersion>> {
        let mut queue = self.queue();
        match &queue.failure {
            Some(failure) => Err(self.server.error(failure)),
            None => Ok(queue.weights.take()),
        }
    }

    /// Publishes the worker's status at the next read of the run's state.
    pub(super) fn set_status(&self, status: Vec<u8>) {
        self.queue().status = Some(status);
    }

    /// True while chunks wait to be sent.
    pub(super) fn is_behind(&self) -> bool {
        let queue = self.queue();
        queue.sent < queue.unmarked.len()
    }

    /// True while the chunks without a mark fill their share of the queue: the learner does not keep up, or is away.
    pub(super) fn is_full(&self) -> bool {
        let queue = self.queue();
        !queue.unmarked.is_empty() && queue.bytes >= queue.window
    }

    /// What was sent.
    pub(super) fn counts(&self) -> SentCounts {
        self.queue().counts
    }

    /// Waits, at most for `patience`, until every chunk has been sent, and ends the thread. Returns the number of those that were not.
    pub(super) fn leave(self, patience: Duration) -> usize {
        let until = Instant::now() + patience;
        self.queue().until = Some(until);
        loop {
            self.shared.1.notify_all();
            let queue = self.queue();
            let unsent = queue.unmarked.len() - queue.sent;
            if unsent == 0 || queue.failure.is_some() || Instant::now() >= until {
                return unsent;
            }
            drop(queue);
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut queue = self.queue();
        queue.until.get_or_insert_with(Instant::now);
    }
}

/// The thread.
struct SenderThread {
    server: Server,
    keys: Keys,
    incarnation: Incarnation,
    /// The state at the last read.
    state: State,
    bounds: SenderBounds,
    shared: Arc<(Mutex<SendQueue>, Condvar)>,
    /// The version and the checksum of the weights that were fetched last: a run that goes on from an earlier checkpoint may make other weights of
    /// the same version.
    fetched: Option<(u64, [u8; 32])>,
    /// The last request to send again.
    resend: u64,
    /// Since when marks are lower than those that chunks were dropped for.
    gap_since: Option<Instant>,
    polled_at: Option<Instant>,
    warned_at: Option<Instant>,
}

impl SenderThread {
    fn queue(&self) -> MutexGuard<'_, SendQueue> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(mut self) {
        let mut link = None;
        loop {
            match self.step(&mut link) {
                Ok(()) => {}
                Err(failure @ (Failure::Passing(_) | Failure::Busy(_))) => {
                    if let Failure::Passing(_) = failure {
                        link = None;
                    }
                    self.warn(&format!("{}; it is tried again", failure.text()));
                    sleep(RETRY);
                }
                Err(failure) => {
                    self.queue().failure = Some(failure);
                    return;
                }
            }
            let queue = self.queue();
            let is_done = queue.sent == queue.unmarked.len();
            if queue.until.is_some_and(|until| is_done || Instant::now() >= until) {
                return;
            }
            if is_done || !queue.ready {
                // Woken by the next chunk; a poisoned lock is one whose worker has ended.
                drop(self.shared.1.wait_timeout(queue, WAIT));
            }
        }
    }

    /// One step: connect if there is no connection, read the run's state at intervals, send a chunk.
    fn step(&mut self, open: &mut Option<Connection>) -> Result<(), Failure> {
        let link = match open {
            Some(link) => link,
            None => {
                self.polled_at = None;
                self.send_again();
                open.insert(self.server.connect()?)
            }
        };
        if self.polled_at.is_none_or(|at| at.elapsed() >= POLL_INTERVAL) {
            self.poll_state(link)?;
            self.polled_at = Some(Instant::now());
        }
        let next = {
            let queue = self.queue();
            let next = queue.unmarked.get(queue.sent).filter(|_| queue.ready);
            next.map(|chunk| (chunk.sequence, chunk.bytes.clone()))
        };
        let Some((sequence, bytes)) = next else { return Ok(()) };
        link.command(cmd("XADD").arg(&self.keys.games).arg("*").arg(CHUNK_FIELD).arg(&bytes[..]))?;
        let mut queue = self.queue();
        queue.counts.bytes += bytes.len() as u64;
        if queue.unmarked.get(queue.sent).is_some_and(|chunk| chunk.sequence == sequence) {
            queue.sent += 1;
        }
        Ok(())
    }

    /// Every chunk without a mark is to be sent again.
    fn send_again(&self) {
        let mut queue = self.queue();
        queue.counts.resent += queue.sent as u64;
        queue.sent = 0;
    }

    /// Reads the run's state: marks, requests, the window, new weights.
    fn poll_state(&mut self, link: &mut Connection) -> Result<(), Failure> {
        let Some(WorkerView { state, mark, resend }) = WorkerView::read(link, &self.keys, self.incarnation)?
        else {
            // The server has lost its data. The learner gives it out again when it is there.
            self.queue().ready = false;
            return Ok(());
        };
        let changed = |what: &str| {
            let text = format!(
                "the run has another {what} than when this worker began, expected a new start of the worker"
            );
            Err(Failure::Final(text))
        };
        if state.run != self.state.run {
            return changed("identity");
        }
        if state.digest != self.state.digest {
            return changed("configuration");
        }
        let is_requested = resend != self.resend && resend != 0;
        if state.generation != self.state.generation || is_requested {
            self.send_again();
        }
        self.resend = resend;
        match self.take_mark(mark) {
            true => self.gap_since = None,
            false if is_requested && self.gap_since.is_some_and(|at| at.elapsed() > GAP) => {
                return Err(Failure::Final(format!(
                    "the run was set back to before chunk {} of this worker, which has dropped it, expected a new start of the worker",
                    mark.saturating_add(1)
                )));
            }
            false => drop(self.gap_since.get_or_insert_with(Instant::now)),
        }
        {
            let mut queue = self.queue();
            (queue.window, queue.ready) = (state.window.min(self.bounds.window), true);
        }
        let status = self.queue().status.take();
        if let Some(status) = status {
            link.command(cmd("HSET").arg(&self.keys.workers).arg(self.incarnation.field()).arg(status))?;
        }
        let newest = (state.version, state.sha256);
        if self.fetched != Some(newest)
            && let Some(file) = read_weights(link, &self.keys, newest, self.bounds.weights)?
        {
            self.fetched = Some(newest);
            self.queue().weights = Some(WeightsVersion { version: state.version, file });
        }
        self.state = state;
        Ok(())
    }

    /// Drops the chunks that are in a checkpoint. False where the mark is lower than one before.
    fn take_mark(&self, mark: u64) -> bool {
        let mut queue = self.queue();
        while queue.unmarked.front().is_some_and(|first| first.sequence <= mark) {
            let Some(first) = queue.unmarked.pop_front() else { break };
            queue.bytes -= first.bytes.len() as u64;
            queue.sent = queue.sent.saturating_sub(1);
        }
        queue.unmarked.front().is_none_or(|first| first.sequence == mark.saturating_add(1))
    }

    /// A warning, at most one in five seconds.
    fn warn(&mut self, what: &str) {
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            self.warned_at = Some(Instant::now());
            tracing::warn!("{}: {what}", self.server.address());
        }
    }
}
