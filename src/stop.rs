//! Cancellation of long work, by a signal or at a time limit. Depends only on the error type.
//!
//! The caller creates a [`Stop`] and passes clones to all long work. The work calls [`Stop::check`] at least every few milliseconds and
//! returns its error. Results of cancelled work are incomplete and must not be used.

use crate::error::{Error, Result, StopCause};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Stands for the number of a signal in a stop that the caller requested.
const CANCELLED: i32 = -1;

/// A cancellation request shared by its clones. The default has no time limit.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// The number of the signal that requested the stop; 0 before.
    signal: Arc<AtomicI32>,
    deadline: Option<Instant>,
    /// Locked during writes that must complete before the process ends.
    writing: Arc<Mutex<()>>,
}

impl Stop {
    /// The same request, with a time limit at `deadline`, or at its own where that is earlier.
    pub fn at(&self, deadline: Option<Instant>) -> Self {
        Self { deadline: self.deadline.into_iter().chain(deadline).min(), ..self.clone() }
    }

    /// Requests the stop because of `signal`; false if a signal has requested it before.
    pub fn request(&self, signal: i32) -> bool {
        self.signal.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Requests the stop from another part of the program.
    pub fn cancel(&self) {
        self.request(CANCELLED);
    }

    /// The reason to stop; None while work may continue. A signal takes precedence over a time limit.
    pub fn cause(&self) -> Option<StopCause> {
        match self.signal.load(Ordering::Relaxed) {
            0 => self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| StopCause::TimeLimit),
            CANCELLED => Some(StopCause::Caller),
            signal => Some(StopCause::Signal(signal)),
        }
    }

    /// Returns an error once the stop is requested.
    ///
    /// # Errors
    /// [`Error::Stopped`] with the cause.
    pub fn check(&self) -> Result<()> {
        self.cause().map_or(Ok(()), |cause| Err(Error::Stopped(cause)))
    }

    /// Marks a write that a signal must not interrupt, until the guard is dropped.
    pub fn write_guard(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while a guard of [`Stop::write_guard`] lives.
    pub fn is_writing(&self) -> bool {
        self.writing.try_lock().is_err_and(|e| matches!(e, std::sync::TryLockError::WouldBlock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn clones_share_the_first_signal() {
        let stop = Stop::default();
        let shared = stop.at(None);
        assert_eq!((stop.cause(), stop.check().is_ok()), (None, true));
        assert!(shared.request(15));
        assert!(!stop.request(2), "a second signal");
        assert_eq!(stop.cause(), Some(StopCause::Signal(15)));
        assert!(matches!(stop.check(), Err(Error::Stopped(StopCause::Signal(15)))));
    }

    #[test]
    fn a_deadline_holds_for_its_own_copy_and_a_signal_comes_first() {
        let (stop, now) = (Stop::default(), Instant::now());
        let (over, later) = (stop.at(Some(now)), stop.at(Some(now + Duration::from_secs(3600))));
        assert_eq!([&stop, &over, &later].map(Stop::cause), [None, Some(StopCause::TimeLimit), None]);
        for limited in [over.at(None), over.at(later.deadline), later.at(over.deadline)] {
            assert_eq!(limited.cause(), Some(StopCause::TimeLimit), "the earlier deadline holds");
        }
        stop.request(2);
        assert_eq!(over.cause(), Some(StopCause::Signal(2)));
    }

    #[test]
    fn writes_are_known_to_all_clones() {
        let stop = Stop::default();
        let shared = stop.clone();
        let guard = stop.write_guard();
        assert!(shared.is_writing());
        drop(guard);
        assert!(!shared.is_writing());
    }
}
