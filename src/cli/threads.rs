//! The threads of a command.

use crate::error::{Error, Result};
use crate::machine::{default_threads, num_cores};
use crate::words::count;

/// Creates rayon's pool with this number of threads, 0 for that of the machine, and returns the number.
///
/// # Errors
/// [`Error::Unsupported`] if the system refuses the threads.
pub fn start_threads(threads: usize) -> Result<usize> {
    let cores = num_cores();
    let threads = if threads == 0 { default_threads() } else { threads };
    if threads > 2 * cores {
        tracing::warn!(
            "{threads} threads on {}: they wait for each other at every pass, and more threads than cores are slower",
            count(cores, "core")
        );
    }
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        // An error without a source means that the pool exists already; it is then used.
        Err(error) if std::error::Error::source(&error).is_some() => {
            let why = format!("{error}; set fewer with --threads, or raise `ulimit -u` or `ulimit -v`");
            Err(Error::unsupported(count(threads, "thread"), why))
        }
        _ => Ok(threads),
    }
}
