//! What the run and its thread at the server share.

use super::received::Received;
use super::strict::refusals::RefusedProcess;
use super::strict::starts::Starts;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the run publishes.
pub(super) struct Publication {
    /// The version of the weights: the epoch.
    pub version: u64,
    /// Their file.
    pub weights: Vec<u8>,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// The chunks that are in the checkpoint.
    pub received: Received,
    /// The record of the last epoch as JSON, for people.
    pub record: Option<Vec<u8>>,
    /// In strict order: what the epoch begins with.
    pub starts: Option<Starts>,
}

/// What the run and the thread share.
#[derive(Default)]
pub(super) struct Shared {
    /// The newest publication.
    pub publication: Mutex<Option<Arc<Publication>>>,
    /// Its version.
    pub version: AtomicU64,
    /// It is published.
    pub is_published: AtomicBool,
    /// In strict order: polls of this version that the run has taken.
    pub polls: AtomicU64,
    /// In strict order: processes of which a poll was refused, until the thread takes them.
    pub refused: Mutex<Vec<RefusedProcess>>,
    /// In strict order: the epoch whose polls are to be read again, until the thread has begun to.
    pub read_again: Mutex<Option<u64>>,
    /// The run has waited for chunks.
    pub has_waited: AtomicBool,
    /// The most versions by which the weights of a chunk were old that it has taken or refused since the last change of the window.
    pub lag: AtomicU64,
    /// Bytes that were published since the run has counted them.
    pub bytes_out: AtomicU64,
    /// The run is over.
    pub ended: AtomicBool,
}

impl Shared {
    /// What is to be published.
    pub(super) fn newest(&self) -> Option<Arc<Publication>> {
        self.publication.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Processes of which a poll was refused since the last call.
    pub(super) fn take_refused(&self) -> Vec<RefusedProcess> {
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether polls of the epoch of `version`, or a later one, are to be read again. True once for a request.
    pub(super) fn take_read_again(&self, version: u64) -> bool {
        let wanted = self.read_again.lock().unwrap_or_else(PoisonError::into_inner).take();
        wanted.is_some_and(|wanted| wanted >= version)
    }

    /// The run is over.
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}
