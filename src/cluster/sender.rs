//! A worker's thread for the server: sends chunks, keeps them until a mark covers them, fetches weights.
//!
//! All chunks without a mark are sent again whenever they may be lost: after a new connection, in a new generation of the stream, and
//! on the learner's request. The learner takes each once.

use super::Incarnation;
use super::published::{CHUNK_FIELD, Keys, PublishedRun, WorkerView, read_weights};
use super::server::{Connection, Failure, RETRY_INTERVAL, Server};
use super::status::{INTERVAL, WorkerStatus};
use super::warnings::{Kind, Warnings};
use crate::error::Error;
use redis::cmd;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two reads of the run's state.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time limit for one wait for a chunk.
const WAIT: Duration = Duration::from_millis(50);
/// Time for which marks may be lower than before: after the server has lost its last second, the learner publishes them again.
const MARK_REGRESSION_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the last status of a worker that ends, once all chunks are sent.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// A version of the weights.
#[derive(Debug)]
pub(super) struct WeightsVersion {
    /// The version's number.
    pub version: u64,
    /// The weights file.
    pub file: Vec<u8>,
}

/// A chunk that no mark covers yet.
struct Unmarked {
    sequence: u64,
    bytes: Arc<Vec<u8>>,
}

/// Limits that a worker enforces on values read from the server, in bytes.
#[derive(Clone, Copy)]
pub(super) struct SenderBounds {
    /// Upper bound on a weights file.
    pub weights: u64,
    /// Upper bound on the window, since chunks without a mark stay in memory.
    pub window: u64,
}

/// Data that the worker and its thread share.
#[derive(Default)]
struct SendQueue {
    unmarked: VecDeque<Unmarked>,
    /// How many of `unmarked` were sent since the last possible loss.
    sent: usize,
    /// Bytes of `unmarked`.
    bytes: u64,
    window: u64,
    weights: Option<WeightsVersion>,
    failure: Option<Failure>,
    /// The worker's newest status, until it is sent.
    status: Option<WorkerStatus>,
    /// The latest time at which the thread ends; it ends earlier once all is sent. None while the worker plays.
    until: Option<Instant>,
    /// Whether the server had the run's state at the last read.
    ready: bool,
    /// Whether the run had reached its limit then.
    is_over: bool,
    counts: SentCounts,
}

/// Counts of the chunks that a worker has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounts {
    /// Chunks, each once.
    pub chunks: u64,
    /// Chunks that were sent again.
    pub resent: u64,
    /// Bytes, including those sent again.
    pub bytes: u64,
}

/// The worker's handle of the thread.
pub(super) struct Sender {
    shared: Arc<(Mutex<SendQueue>, Condvar)>,
    server: Server,
}

impl Sender {
    /// Starts the thread. `state` is that of the run whose games are played.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the system cannot start a thread.
    pub(super) fn start(
        server: &Server,
        keys: Keys,
        state: PublishedRun,
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
            regressed_at: None,
            polled_at: None,
            last_status: None,
            warnings: Warnings::new(server.address()),
        };
        let thread = std::thread::Builder::new().name("sender".into()).spawn(move || sender_thread.run());
        thread.map_err(|e| Error::unsupported("a thread for sending", e.to_string()))?;
        Ok(Self { shared, server: server.clone() })
    }

    fn queue(&self) -> MutexGuard<'_, SendQueue> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a chunk, which stays in memory until a mark covers it.
    pub(super) fn send(&self, sequence: u64, bytes: Vec<u8>) {
        let mut queue = self.queue();
        queue.bytes += bytes.len() as u64;
        queue.counts.chunks += 1;
        queue.unmarked.push_back(Unmarked { sequence, bytes: Arc::new(bytes) });
        self.shared.1.notify_all();
    }

    /// Weights newer than those of the last call; None where there are none.
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

    /// Sets the status that the thread publishes after its next read of the run's state. The thread numbers it, since it also publishes
    /// the last one again.
    pub(super) fn set_status(&self, status: WorkerStatus) {
        self.queue().status = Some(status);
    }

    /// True once the run has reached its limit.
    pub(super) fn is_run_over(&self) -> bool {
        self.queue().is_over
    }

    /// True while there are unsent chunks.
    pub(super) fn has_unsent(&self) -> bool {
        let queue = self.queue();
        queue.sent < queue.unmarked.len()
    }

    /// True while the chunks without a mark fill the window: the learner is slower than its workers, or unreachable.
    pub(super) fn is_full(&self) -> bool {
        let queue = self.queue();
        !queue.unmarked.is_empty() && queue.bytes >= queue.window
    }

    /// Counts of the chunks sent so far.
    pub(super) fn counts(&self) -> SentCounts {
        self.queue().counts
    }

    /// Waits for at most `timeout` until every chunk and the last status are sent, and ends the thread. Returns the number of unsent chunks.
    pub(super) fn leave(self, timeout: Duration) -> usize {
        let from = Instant::now();
        let until = from + timeout;
        self.queue().until = Some(until);
        loop {
            self.shared.1.notify_all();
            let queue = self.queue();
            let unsent = queue.unmarked.len() - queue.sent;
            let has_status = queue.status.is_some() && from.elapsed() < STATUS_TIMEOUT;
            if (unsent == 0 && !has_status) || queue.failure.is_some() || Instant::now() >= until {
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

/// State of the thread.
struct SenderThread {
    server: Server,
    keys: Keys,
    incarnation: Incarnation,
    /// The state at the last read.
    state: PublishedRun,
    bounds: SenderBounds,
    shared: Arc<(Mutex<SendQueue>, Condvar)>,
    /// Version and checksum of the weights that were fetched last. Both, since a run that was resumed from an earlier checkpoint may
    /// make other weights of the same version.
    fetched: Option<(u64, [u8; 32])>,
    /// The number of the last request to send again.
    resend: u64,
    /// Time since which marks are lower than those after which chunks were dropped.
    regressed_at: Option<Instant>,
    /// Time of the last read of the run's state.
    polled_at: Option<Instant>,
    /// The status that was published last, and when.
    last_status: Option<(WorkerStatus, Instant)>,
    warnings: Warnings,
}

impl SenderThread {
    fn queue(&self) -> MutexGuard<'_, SendQueue> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(mut self) {
        let mut link = None;
        loop {
            match self.step(&mut link) {
                Ok(()) => self.warnings.recovered(),
                Err(failure @ (Failure::Transient(_) | Failure::Busy(_))) => {
                    if let Failure::Transient(_) = failure {
                        link = None;
                    }
                    self.warnings.warn(Kind::Connection, &format!("{}; retrying", failure.text()));
                    sleep(RETRY_INTERVAL);
                }
                Err(failure) => {
                    self.queue().failure = Some(failure);
                    return;
                }
            }
            let queue = self.queue();
            let is_done = queue.sent == queue.unmarked.len() && queue.status.is_none();
            if queue.until.is_some_and(|until| is_done || Instant::now() >= until) {
                return;
            }
            if is_done || !queue.ready {
                // The next chunk ends the wait. A poisoned lock means that the worker has ended.
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
        let is_last = {
            let queue = self.queue();
            queue.until.is_some() && queue.status.is_some()
        };
        if is_last || self.polled_at.is_none_or(|at| at.elapsed() >= POLL_INTERVAL) {
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

    /// Marks every chunk as unsent.
    fn send_again(&self) {
        let mut queue = self.queue();
        queue.counts.resent += queue.sent as u64;
        queue.sent = 0;
    }

    /// Reads the run's state: marks, requests, the window, new weights.
    fn poll_state(&mut self, link: &mut Connection) -> Result<(), Failure> {
        let view = WorkerView::read(link, &self.keys, self.incarnation)?;
        let Some(WorkerView { state, mark, resend, is_over }) = view else {
            // The server has lost its data; the learner publishes it again.
            self.queue().ready = false;
            return Ok(());
        };
        let changed = |what: &str| {
            Err(Failure::Final(format!(
                "the run's {what} changed since this worker started, expected a restart of the worker"
            )))
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
        let has_regressed = self.regressed_at.is_some_and(|at| at.elapsed() > MARK_REGRESSION_TIMEOUT);
        match self.take_mark(mark) {
            true => self.regressed_at = None,
            false if is_requested && has_regressed => {
                return Err(Failure::Final(format!(
                    "the run was reset to an earlier checkpoint, before chunk {} of this worker, which has dropped it, expected a \
                     restart of the worker",
                    mark.saturating_add(1)
                )));
            }
            false => drop(self.regressed_at.get_or_insert_with(Instant::now)),
        }
        {
            let mut queue = self.queue();
            (queue.window, queue.ready) = (state.window.min(self.bounds.window), true);
            queue.is_over = is_over;
        }
        if let Some(status) = self.due_status() {
            let text = serde_json::to_vec(&status).unwrap_or_default();
            link.command(cmd("HSET").arg(&self.keys.workers).arg(self.incarnation.field()).arg(text))?;
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

    /// The status to publish now: a new one; or, if a poll takes longer than [`INTERVAL`], the last one again, with the next number.
    fn due_status(&mut self) -> Option<WorkerStatus> {
        let new = self.queue().status.take();
        let last = self.last_status.as_ref();
        let again = last.filter(|(_, at)| at.elapsed() >= INTERVAL).map(|(status, _)| status.clone());
        let number = last.map_or(0, |(status, _)| status.number) + 1;
        let status = WorkerStatus { number, ..new.or(again)? };
        self.last_status = Some((status.clone(), Instant::now()));
        Some(status)
    }

    /// Drops the chunks that the mark covers. False where the mark is lower than one before.
    fn take_mark(&self, mark: u64) -> bool {
        let mut queue = self.queue();
        while queue.unmarked.front().is_some_and(|first| first.sequence <= mark) {
            let Some(first) = queue.unmarked.pop_front() else { break };
            queue.bytes -= first.bytes.len() as u64;
            queue.sent = queue.sent.saturating_sub(1);
        }
        queue.unmarked.front().is_none_or(|first| first.sequence == mark.saturating_add(1))
    }
}
