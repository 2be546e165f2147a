//! Files that are whole or absent.
//!
//! In: a path and bytes. Out: a file that holds all of them, or the file that was there before. Knows no format.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Writes `bytes` to `path` such that whoever reads it, even after a crash at any moment, finds the old file or all of the
/// new one: a temporary file in the same folder, flushed to the disk, takes the name.
///
/// # Errors
/// [`Error::Io`]; the file at `path` is then as it was, and nothing is left beside it.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |source: std::io::Error| Error::io("writing", path, source);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".part-").tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    make_readable(file.as_file()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    sync_folder(folder).map_err(failed)
}

/// A temporary file is for its owner alone; a result is for whoever may read the folder.
#[cfg(unix)]
fn make_readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_file: &File) -> std::io::Result<()> {
    Ok(())
}

/// Makes the new name last.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_file_replaces_the_old_one_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.bin");
        write_atomic(&path, b"old").expect("written");
        write_atomic(&path, b"new and longer").expect("written");
        assert_eq!(std::fs::read(&path).expect("read"), b"new and longer");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    }

    #[test]
    fn a_failed_write_names_the_path_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("folder");
        let missing = folder.path().join("missing").join("a.bin");
        let error = write_atomic(&missing, b"x").expect_err("no such folder").to_string();
        assert!(error.contains("a.bin") && !error.contains('\n'), "{error}");
        let taken = folder.path().join("taken");
        std::fs::create_dir_all(taken.join("inside")).expect("folder");
        assert!(write_atomic(&taken, b"x").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    }
}
