//! Targets of results: stdout, or an atomically written file.

use crate::error::{Error, Result};
use crate::files::{check_writable, write_atomic};
use crate::report::progress::print_data;
use crate::run::folder::refuse_run_files;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
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

/// Checks that a result can be written to `target`: that it is neither a file of a run nor one of `inputs`, and that a file can be
/// created there. Call it before any work.
///
/// # Errors
/// [`Error::Unsupported`] and [`Error::Io`].
pub fn check_target(target: &Path, inputs: &[&Path]) -> Result<()> {
    let same = |input: &&&Path| match (target.canonicalize(), input.canonicalize()) {
        (Ok(target), Ok(input)) => target == input && target.is_file(),
        _ => false,
    };
    refuse_run_files(target)?;
    match inputs.iter().find(same) {
        Some(_) => Err(Error::unsupported(
            format!("writing {}", target.display()),
            "the output path is also an input; choose another path",
        )),
        None => check_writable(target),
    }
}

impl JsonTarget {
    /// `check_target` for a file; stdout passes.
    ///
    /// # Errors
    /// Those of `check_target`.
    pub fn check(&self, inputs: &[&Path]) -> Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(path) => check_target(path, inputs),
        }
    }

    /// Writes `text` to the target.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; a file is then unchanged.
    pub fn write(&self, text: &str) -> Result<()> {
        match self {
            Self::Stdout => print_data(text),
            Self::File(path) => write_atomic(path, text.as_bytes()),
        }
    }
}
