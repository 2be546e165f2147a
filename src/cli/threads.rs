//! The threads of a command.

use crate::error::{Error, Result};
use crate::words::count;

/// Creates rayon's pool with this number of threads, 0 for all cores, and returns the number.
///
/// # Errors
/// [`Error::Unsupported`] if the system refuses the threads.
pub fn start_threads(threads: usize) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if threads == 0 { cores } else { threads };
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
