//! Where results go: stdout, or a file that is whole or absent.

use crate::error::Result;
use crate::files::write_atomic;
use crate::report::progress::print;
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// The value of `--json`: `-` is stdout, all else a file.
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
    /// Writes the whole of `text` there.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; a file then has its old content.
    pub fn write(&self, text: &str) -> Result<()> {
        match self {
            Self::Stdout => print(text),
            Self::File(path) => write_atomic(path, text.as_bytes()),
        }
    }
}
