//! Targets of results: stdout, or an atomically written file.

use crate::error::Result;
use crate::files::write_atomic;
use crate::report::progress::print;
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// The value of `--json`: `-` is stdout, anything else a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonTarget {
    /// `-`
    Stdout,
    /// A path.
    File(PathBuf),
}

impl FromStr for JsonTarget {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) })
    }
}

impl JsonTarget {
    /// Writes `text` to the target.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; a file is then unchanged.
    pub fn write(&self, text: &str) -> Result<()> {
        match self {
            Self::Stdout => print(text),
            Self::File(path) => write_atomic(path, text.as_bytes()),
        }
    }
}
