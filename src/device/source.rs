//! The kernel sources, which are embedded in the program. For work on a machine that cannot build the program, [`SourceFolder`] replaces
//! them by those of a folder.

use super::interface::{GpuCode, Program};
use crate::error::{Error, Result};
use crate::files::{open_regular, text_of};
use std::fs;
use std::path::PathBuf;

/// The variable that names a folder of kernel sources to compile instead of the embedded ones.
pub const FOLDER_VARIABLE: &str = "VECAZ_KERNELS";

/// Every embedded file of `kernels/`: the name by which sources include it, and its text. Sorted by name.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// A program that includes the files `includes` with these constants; errors call it `name`.
pub fn compose(name: &str, includes: &[&str], defines: Vec<(String, String)>) -> Program {
    Program {
        game: name.into(),
        source: includes.iter().map(|name| format!("#include \"{name}\"\n")).collect(),
        headers: FILES.iter().map(|&(name, text)| (name.into(), text.into())).collect(),
        defines,
        code: GpuCode::Portable,
    }
}

/// The text of the embedded file `name`.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// A folder laid out as `kernels/`, whose files replace the embedded ones when a program is compiled for a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFolder(PathBuf);

impl SourceFolder {
    /// The sources in `folder`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// The folder that [`FOLDER_VARIABLE`] names; None if the variable is unset or empty.
    pub fn of_environment() -> Option<Self> {
        std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()).map(Self::at)
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }

    /// `program` with every header that is one of [`FILES`] read from this folder; other headers stay.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder is not there, or naming the first file that cannot be read: an embedded source never stands
    /// in for a missing one.
    pub fn replace_headers(&self, program: &Program) -> Result<Program> {
        fs::read_dir(&self.0).map_err(|e| Error::io(READING, &self.0, e))?;
        let headers = program.headers.iter().map(|(name, content)| {
            let content = match text(name) {
                Some(_) => {
                    let path = self.0.join(name);
                    open_regular(&path)
                        .and_then(|file| text_of(file, MAX_BYTES))
                        .map_err(|e| Error::io(READING, path, e))?
                }
                None => content.clone(),
            };
            Ok((name.clone(), content))
        });
        Ok(Program { headers: headers.collect::<Result<_>>()?, ..program.clone() })
    }
}

/// Maximum number of bytes of a source file.
const MAX_BYTES: u64 = 1 << 20;

/// The operation that errors of a [`SourceFolder`] name.
const READING: &str = "VECAZ_KERNELS: reading the kernel sources";

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with every embedded file.
    fn copied_sources() -> (tempfile::TempDir, SourceFolder) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in FILES {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("inside the folder")).expect("created");
            fs::write(path, text).expect("written");
        }
        let sources = SourceFolder::at(folder.path());
        (folder, sources)
    }

    #[test]
    fn a_folder_replaces_the_embedded_sources() {
        let (folder, sources) = copied_sources();
        let mut embedded = compose("hex", &["common.cuh", "games/hex.cuh", "search.cu"], Vec::new());
        embedded.headers.push(("of_a_test.cuh".into(), "int x;".into()));
        assert_eq!(sources.replace_headers(&embedded).expect("read"), embedded);
        fs::write(folder.path().join("games/hex.cuh"), "// another\n").expect("written");
        let replaced = sources.replace_headers(&embedded).expect("read");
        let changed: Vec<_> =
            replaced.headers.iter().filter(|header| !embedded.headers.contains(header)).collect();
        assert_eq!(changed, [&("games/hex.cuh".to_string(), "// another\n".to_string())]);
        assert_eq!(Program { headers: embedded.headers.clone(), ..replaced }, embedded);
    }

    #[test]
    fn a_missing_folder_or_file_is_named() {
        let (folder, sources) = copied_sources();
        let embedded = compose("hex", &["common.cuh", "games/hex.cuh", "search.cu"], Vec::new());
        let refusal =
            |sources: &SourceFolder| sources.replace_headers(&embedded).expect_err("missing").to_string();
        let gone = folder.path().join("search/root.cuh");
        fs::remove_file(&gone).expect("removed");
        let expected = |path: &std::path::Path| {
            let missing = std::io::Error::from_raw_os_error(2);
            format!("VECAZ_KERNELS: reading the kernel sources {}: {missing}", path.display())
        };
        assert_eq!(refusal(&sources), expected(&gone));
        let nowhere = folder.path().join("nowhere");
        assert_eq!(refusal(&SourceFolder::at(&nowhere)), expected(&nowhere));
    }
}
