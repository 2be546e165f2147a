//! Long work that Ctrl-C ends.

use crate::detach::{detached, is_ending};
use crate::threads::STACK;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use vecaz::stop::Stop;

/// Time between two looks at the signals.
const INTERVAL: Duration = Duration::from_millis(20);

/// [`interruptible`] work in `pool`. From one of its own threads, as in a call of `on_epoch`, it is done there: another thread would wait for
/// that one.
///
/// # Errors
/// Those of [`interruptible`].
pub fn interruptible_in<T: Send>(
    pool: &ThreadPool,
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    match pool.current_thread_index() {
        Some(_) => Ok(detached(py, work)),
        None => interruptible(py, stop, || pool.install(work)),
    }
}

/// Does `work` in another thread, without the interpreter's lock. Signals are handled meanwhile: if a handler raises, as that of Ctrl-C does,
/// `stop` is requested, and its exception is raised once the work has ended. `stop` is also requested when the interpreter ends.
///
/// # Errors
/// The exception of a signal's handler; `RuntimeError` if the system refuses the thread.
pub fn interruptible<T: Send>(py: Python<'_>, stop: &Stop, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    detached(py, || {
        thread::scope(|scope| {
            let (running, ended) = channel::<()>();
            let work = move || {
                // Dropped at the end of the work, also by a panic.
                let _running = running;
                work()
            };
            let builder = thread::Builder::new().name("vecaz".into()).stack_size(STACK);
            let worker = builder.spawn_scoped(scope, work);
            let worker = worker.map_err(|e| PyRuntimeError::new_err(format!("a thread: {e}")))?;
            let mut raised = None;
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if is_ending() {
                    stop.cancel();
                } else if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals()).err();
                    raised.iter().for_each(|_| stop.cancel());
                }
            }
            let out = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            raised.map_or(Ok(out), Err)
        })
    })
}
