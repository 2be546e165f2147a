//! What an object of Python owns: used by one thread at a time, until it is closed, in the process that made it.

use crate::detach::forget;
use crate::errors::wrong;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Forks between the process that loaded the module and this one. Counted, since asking the system for the process costs as much as a call.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Forks so far.
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Called by Python in the child of every fork.
#[pyfunction]
pub fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    forget();
}

/// A value that one thread uses at a time, until it is closed. A forked process has none of the threads behind it, so there every use is
/// refused, and it is not dropped.
pub struct Resource<T> {
    /// Its name in messages.
    name: &'static str,
    /// [`forks`] when it was made.
    forks: u32,
    value: Mutex<Option<T>>,
}

/// The value while one thread uses it.
pub struct Held<'a, T> {
    guard: MutexGuard<'a, Option<T>>,
    name: &'static str,
}

impl<T> Resource<T> {
    /// An open resource.
    pub fn new(name: &'static str, value: T) -> Self {
        Self { name, forks: forks(), value: Mutex::new(Some(value)) }
    }

    /// The value, for this thread alone.
    ///
    /// # Errors
    /// `ValueError` after [`Resource::close`]; `RuntimeError` in another process, and while another thread uses the value: waiting for
    /// it could wait for this thread, whose lock of the interpreter it may need.
    pub fn hold(&self) -> PyResult<Held<'_, T>> {
        let guard = self.lock()?;
        match guard.is_some() {
            true => Ok(Held { guard, name: self.name }),
            false => Err(wrong(self.name, "one that is closed", "an open one")),
        }
    }

    /// Drops the value; every later use is an error. Closing again does nothing.
    ///
    /// # Errors
    /// As [`Resource::hold`].
    pub fn close(&self) -> PyResult<Option<T>> {
        Ok(self.lock()?.take())
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Option<T>>> {
        if forks() != self.forks {
            let name = self.name;
            return Err(PyRuntimeError::new_err(format!(
                "{name}: found one of another process, expected one of this process: after a fork, make another one there"
            )));
        }
        self.value.try_lock().map_err(|refused| {
            PyRuntimeError::new_err(match refused {
                TryLockError::WouldBlock => {
                    format!("{}: in use by another thread or by a call above", self.name)
                }
                TryLockError::Poisoned(_) => {
                    format!("{}: an earlier call failed inside vecaz; make another one", self.name)
                }
            })
        })
    }
}

impl<T> Drop for Resource<T> {
    fn drop(&mut self) {
        if forks() != self.forks {
            std::mem::forget(self.value.get_mut().ok().and_then(Option::take));
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().unwrap_or_else(|| unreachable!("{} was open when it was taken", self.name))
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        let name = self.name;
        self.guard.as_mut().unwrap_or_else(|| unreachable!("{name} was open when it was taken"))
    }
}
