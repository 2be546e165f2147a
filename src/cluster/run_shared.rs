//! Data that the run and its reader thread share: the newest publication, flags and counts.

use super::received::Received;
use super::strict::epoch_slots::EpochSlots;
use super::strict::refusals::RefusedProcess;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after its last read of the empty queue for which the run counts as waiting; it reads several times a second.
const MAX_LOOK_AGE: Duration = Duration::from_secs(1);

/// Data of one version that the run publishes.
pub(super) struct Publication {
    /// The version of the weights: the epoch.
    pub version: u64,
    /// The weights file.
    pub weights: Vec<u8>,
    /// SHA-256 of the weights file.
    pub sha256: [u8; 32],
    /// The chunks that are in the checkpoint.
    pub received: Received,
    /// The record of the last epoch as JSON, for display.
    pub record: Option<Vec<u8>>,
    /// In strict order: the game slots at the start of the epoch.
    pub epoch_slots: Option<EpochSlots>,
}

/// Shared by the run and its reader thread.
#[derive(Default)]
pub(super) struct RunShared {
    /// The newest publication.
    pub publication: Mutex<Option<Arc<Publication>>>,
    /// Version of the newest publication.
    pub version: AtomicU64,
    /// True once the server has had a publication.
    pub is_published: AtomicBool,
    /// In strict order: polls of this version that the run has taken.
    pub polls: AtomicU64,
    /// In strict order: processes of which a poll was refused, until the thread takes them.
    pub refused: Mutex<Vec<RefusedProcess>>,
    /// In strict order: the version whose polls are to be read again, until the thread begins to read them.
    pub reread_version: Mutex<Option<u64>>,
    /// True if the run has waited for chunks since the last change of the window.
    pub has_waited: AtomicBool,
    /// The last time when the run has waited for chunks.
    pub waited_at: Mutex<Option<Instant>>,
    /// The number of chunks that were the next of their worker, and of polls that were buffered.
    pub accepted: AtomicU64,
    /// The greatest staleness of a chunk since the last change of the window, in versions; refused chunks count too.
    pub staleness: AtomicU64,
    /// Bytes published since the run last took its counts.
    pub bytes_out: AtomicU64,
    /// Workers that are there.
    pub present: AtomicU64,
    /// True once the run has reached its limit.
    pub is_over: AtomicBool,
    /// True once the run, or this process's part of it, has ended.
    pub ended: AtomicBool,
}

impl RunShared {
    /// The newest publication; None before the first.
    pub(super) fn newest(&self) -> Option<Arc<Publication>> {
        self.publication.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Processes of which a poll was refused since the last call.
    pub(super) fn take_refused(&self) -> Vec<RefusedProcess> {
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the request to read polls again; true if it is for `version` or a later one.
    pub(super) fn take_reread_request(&self, version: u64) -> bool {
        let requested = self.reread_version.lock().unwrap_or_else(PoisonError::into_inner).take();
        requested.is_some_and(|requested| requested >= version)
    }

    /// Records that the run has waited for chunks in vain.
    pub(super) fn record_wait(&self) {
        self.has_waited.store(true, Ordering::Relaxed);
        *self.waited_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// True while the run waits for chunks.
    pub(super) fn is_waiting(&self) -> bool {
        let waited_at = *self.waited_at.lock().unwrap_or_else(PoisonError::into_inner);
        waited_at.is_some_and(|at| at.elapsed() < MAX_LOOK_AGE)
    }

    /// True once this process's part of the run has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}
