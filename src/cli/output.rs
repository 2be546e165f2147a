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

/// Checks that no two options name the same file, by whatever paths, or both stdout.
///
/// # Errors
/// [`Error::Config`] for the later one.
pub fn check_distinct(targets: &[(&str, Option<&Path>)]) -> Result<()> {
    let given = targets.iter().filter_map(|&(option, path)| Some((option, path?)));
    let files: Vec<(&str, &Path, PathBuf)> =
        given.map(|(option, path)| (option, path, resolved(path))).collect();
    for (number, &(option, path, ref file)) in files.iter().enumerate() {
        if let Some((earlier, ..)) = files[..number].iter().find(|(_, _, other)| other == file) {
            return Err(Error::config(
                option,
                path.display(),
                format!("another file than that of {earlier}"),
            ));
        }
    }
    Ok(())
}

/// The file that `path` leads to, which may not exist yet.
fn resolved(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let in_folder = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_path_buf())
}

impl JsonTarget {
    /// The value as it was given.
    pub fn path(&self) -> &Path {
        match self {
            Self::Stdout => Path::new("-"),
            Self::File(path) => path,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_options_of_one_file_are_refused_however_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.json");
        let again = folder.path().join(".").join("a.json");
        let other = folder.path().join("b.json");
        let check = |path: &Path| check_distinct(&[("--json", Some(&file)), ("--record", Some(path))]);
        for exists in [false, true] {
            if exists {
                std::fs::write(&file, "").expect("written");
            }
            assert!(check(&other).is_ok());
            let error = check(&again).expect_err("refused").to_string();
            assert!(error.ends_with("a.json, expected another file than that of --json"), "{error}");
        }
        assert!(check_distinct(&[("--json", None), ("--record", None)]).is_ok());
        let stdout = Some(JsonTarget::Stdout.path());
        assert!(check_distinct(&[("--json", stdout), ("--record", stdout)]).is_err());
    }

    /// A link leads to the file that would be lost.
    #[cfg(unix)]
    #[test]
    fn a_link_to_the_file_of_another_option_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("a.json"), folder.path().join("link"));
        std::fs::write(&file, "").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        assert!(check_distinct(&[("--json", Some(&file)), ("--record", Some(&link))]).is_err());
    }
}
