//! What an object of Python owns: used by one thread at a time, until it is closed, in the process that made it.

use crate::errors::wrong;
use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// A value that one thread uses at a time, until it is closed. A forked process has none of the threads behind it, so there every use is
/// refused, and it is not dropped.
pub struct Resource<T> {
    /// Its name in messages.
    name: &'static str,
    process: u32,
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
        Self { name, process: std::process::id(), value: Mutex::new(Some(value)) }
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
        let here = std::process::id();
        if here != self.process {
            return Err(PyRuntimeError::new_err(format!(
                "{} of process {} is used in process {here}: after a fork, make another one there",
                self.name, self.process
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
        if std::process::id() != self.process {
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
