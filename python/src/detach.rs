//! Work without the interpreter's lock, and its end with the interpreter. A daemon thread that waits for the lock of an interpreter that has
//! ended aborts the process, so the interpreter ends when no call is without the lock.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The calls of this process that are without the lock.
struct Calls {
    open: usize,
    /// The thread that ends the interpreter.
    ending_thread: Option<ThreadId>,
}

/// Locked with the interpreter's lock, so that no fork happens meanwhile; without it in [`at_exit`] alone.
static CALLS: Mutex<Calls> = Mutex::new(Calls { open: 0, ending_thread: None });
static CLOSED: Condvar = Condvar::new();
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// A call that is without the lock.
struct OpenCall;

impl OpenCall {
    fn begin() -> Self {
        calls().open += 1;
        Self
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        calls().open -= 1;
        CLOSED.notify_all();
    }
}

fn calls() -> MutexGuard<'static, Calls> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` without the interpreter's lock. A call by a daemon thread after the interpreter has begun to end never returns, as any other
/// work of such a thread.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    if is_late() {
        py.detach(|| {
            loop {
                thread::sleep(Duration::MAX);
            }
        })
    }
    let _open = OpenCall::begin();
    py.detach(work)
}

/// True in a thread of Python other than the one that ends the interpreter. Threads of vecaz, which have names, call from inside an open call.
fn is_late() -> bool {
    let this = thread::current();
    this.name().is_none() && calls().ending_thread.is_some_and(|ending| ending != this.id())
}

/// True once the interpreter has begun to end.
pub fn is_ending() -> bool {
    IS_ENDING.load(Ordering::Relaxed)
}

/// Called by Python when the interpreter begins to end, after all threads but daemons: waits for the open calls, of which long ones stop.
#[pyfunction]
pub fn at_exit(py: Python<'_>) {
    calls().ending_thread = Some(thread::current().id());
    IS_ENDING.store(true, Ordering::Relaxed);
    py.detach(|| drop(CLOSED.wait_while(calls(), |calls| calls.open > 0)));
}

/// Forgets the calls of other threads, which the child of a fork does not have.
pub fn forget() {
    *calls() = Calls { open: 0, ending_thread: None };
    IS_ENDING.store(false, Ordering::Relaxed);
}
