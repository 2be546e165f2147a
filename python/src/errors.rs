//! Errors of vecaz as exceptions, and exceptions of Python on their way through vecaz.

use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use std::sync::{Arc, Mutex, PoisonError};
use vecaz::Error;

/// The exception of an error: `ValueError` for wrong input, `OSError` and its subclasses for files, `MemoryError`, otherwise `RuntimeError`.
pub fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Io { source, .. } => std::io::Error::new(source.kind(), text).into(),
        Error::Memory { .. } => PyMemoryError::new_err(text),
        Error::Config { .. }
        | Error::ConfigKey { .. }
        | Error::ConfigText { .. }
        | Error::UnknownGame { .. }
        | Error::IllegalAction { .. }
        | Error::Format { .. }
        | Error::Mismatch { .. }
        | Error::NotFinite { .. }
        | Error::Unsupported { .. } => PyValueError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// A `ValueError` that says what was found and what would be right.
pub fn wrong(what: &str, found: impl std::fmt::Display, expected: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{what}: found {found}, expected {expected}"))
}

/// The exception of a function of Python that a thread of vecaz called, kept until the caller's thread raises it.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps `raised`, in place of an earlier one.
    pub fn set(&self, raised: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
    }

    /// The exception, which is kept no longer.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
