//! Scoped threads: an error if a thread cannot be started, and its panic when it is joined. Depends only on the error type.

use crate::error::{Error, Result};
use std::panic::resume_unwind;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Starts a thread that runs `work`; errors name its `purpose`.
///
/// # Errors
/// [`Error::Unsupported`] if the system refuses the thread; `work` is then dropped.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    purpose: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    start_as(Builder::new(), scope, purpose, work)
}

fn start_as<'scope, T: Send + 'scope>(
    builder: Builder,
    scope: &'scope Scope<'scope, '_>,
    purpose: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let started = builder.spawn_scoped(scope, work);
    started.map_err(|e| Error::unsupported(format!("a thread for {purpose}"), e.to_string()))
}

/// Waits for `thread` and returns its result.
///
/// # Panics
/// With the panic of the thread.
pub fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    #[test]
    fn a_thread_that_cannot_start_is_one_sentence() {
        let error = scope(|scope| {
            let no_memory_has_it = Builder::new().stack_size(1 << 60);
            start_as(no_memory_has_it, scope, "a test", || 5).map(join).expect_err("1 EiB of stack")
        });
        let text = error.to_string();
        assert!(text.starts_with("a thread for a test: ") && !text.contains('\n'), "{text}");
        assert_eq!(scope(|scope| start(scope, "a test", || 5).map(join)).expect("a thread"), 5);
    }
}
