//! Threads: pools of this process by their number of threads. vecaz never works in rayon's global pool, which a forked process would
//! inherit without its threads.

use crate::errors::wrong;
use crate::resource::forks;
use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Bytes of a thread's stack: that of a main thread, on which the program runs.
pub const STACK: usize = 8 << 20;
/// Maximum number of threads.
const MAX_THREADS: usize = 1024;

/// Pools by forks before this process and number of threads.
type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

/// All pools. They are kept until the process ends.
static POOLS: LazyLock<Mutex<Pools>> = LazyLock::new(Mutex::default);

/// The number of threads meant by `threads`: 0 for all cores.
///
/// # Errors
/// `ValueError` for too many.
pub fn num_threads(threads: usize) -> PyResult<usize> {
    match threads {
        0 => Ok(vecaz::machine::default_threads()),
        1..=MAX_THREADS => Ok(threads),
        _ => Err(wrong("threads", threads, format!("0 for all cores, or 1 to {MAX_THREADS}"))),
    }
}

/// The pool of `threads` threads, 0 for all cores.
///
/// # Errors
/// Those of [`num_threads`]; `RuntimeError` if the system refuses the threads.
pub fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let threads = num_threads(threads)?;
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (forks(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(pool.clone());
    }
    let builder =
        ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).thread_name(|i| format!("vecaz-{i}"));
    let pool = builder.build().map_err(|e| PyRuntimeError::new_err(format!("{threads} threads: {e}")))?;
    let pool = Arc::new(pool);
    pools.insert(key, pool.clone());
    Ok(pool)
}
