//! Targets of results: stdout, or an atomically written file.

use crate::error::{Error, Result};
use crate::files::write_atomic;
use crate::report::progress::print;
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

/// Refuses to write `target` if it is a file of a run or one of `inputs`. Called before any work.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn refuse_overwrite(target: &Path, inputs: &[&Path]) -> Result<()> {
    let same = |input: &&&Path| match (target.canonicalize(), input.canonicalize()) {
        (Ok(target), Ok(input)) => target == input && target.is_file(),
        _ => false,
    };
    match inputs.iter().find(same) {
        Some(_) => Err(Error::unsupported(
            format!("writing {}", target.display()),
            "the command reads this file; choose another path",
        )),
        None => refuse_run_files(target),
    }
}

/// `text` in lines of at most 78 characters, the first indented by `first` and the others by `rest`.
pub fn wrapped(text: &str, first: usize, rest: usize) -> String {
    const WIDTH: usize = 78;
    let mut out = String::new();
    let mut line = " ".repeat(first);
    let mut words = 0;
    for word in text.split_whitespace() {
        if words > 0 && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += &line;
            out += "\n";
            line = " ".repeat(rest);
            words = 0;
        }
        if words > 0 {
            line += " ";
        }
        line += word;
        words += 1;
    }
    out + &line + "\n"
}

impl JsonTarget {
    /// `refuse_overwrite` for a file; stdout is no file.
    ///
    /// # Errors
    /// Those of `refuse_overwrite`.
    pub fn refuse_overwrite(&self, inputs: &[&Path]) -> Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(path) => refuse_overwrite(path, inputs),
        }
    }

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
