//! Atomic file writes. Depends only on the error type.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Prefix of the names of temporary files.
const TEMPORARY: &str = ".vecaz-";

/// Writes `bytes` to `path` atomically: a reader, or a restart after a crash, finds either the old or the new content. The bytes
/// go to a temporary file in the same folder, which is synced and renamed to `path`. Symbolic links are followed. A pipe or
/// a device is written directly.
///
/// # Errors
/// [`Error::Io`] with `path`; the old content is unchanged.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    try_write_atomic(path, bytes).map_err(|e| Error::io("writing", path, e))
}

fn try_write_atomic(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if target.metadata().is_ok_and(|meta| !meta.is_file()) {
        return File::options().write(true).open(&target)?.write_all(bytes);
    }
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut cause = None; // the library's error has the name of the temporary file, which is meaningless to a user
    let create = |path: &Path| File::create_new(path).inspect_err(|e| cause = e.raw_os_error());
    let temporary = tempfile::Builder::new().prefix(TEMPORARY).make_in(folder, create);
    let mut file = temporary.map_err(|e| cause.map_or(e, std::io::Error::from_raw_os_error))?;
    // Written through the plain file, since the library's own errors have the temporary path.
    file.as_file_mut().write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|e| e.error)?;
    #[cfg(unix)]
    File::open(folder)?.sync_all()?; // the new name itself
    Ok(())
}

/// Removes the temporary files of killed writers from `folder`, which may not exist. No write may be in progress.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_temporaries(folder: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io("reading", folder, e)),
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(TEMPORARY) && path.is_file() {
            std::fs::remove_file(&path).map_err(|e| Error::io("removing", &path, e))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_content_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json");
        write_atomic(&path, b"long old content").expect("written");
        write_atomic(&path, b"new").expect("replaced");
        assert_eq!(std::fs::read(&path).expect("read"), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 1);
    }

    #[test]
    fn a_failed_write_names_the_path() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [folder.path().join("none").join("a.json"), folder.path().to_path_buf()] {
            let message = write_atomic(&path, b"x").expect_err("refused").to_string();
            assert!(message.starts_with(&format!("writing {}: ", path.display())), "{message}");
            assert!(!message.contains(".vecaz-"), "{message}");
        }
    }

    #[test]
    fn only_temporaries_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [".vecaz-a1B2c3", "kept.json", ".kept"] {
            std::fs::write(folder.path().join(name), b"x").expect("written");
        }
        remove_temporaries(folder.path()).expect("removed");
        remove_temporaries(&folder.path().join("none")).expect("nothing to remove");
        let left = std::fs::read_dir(folder.path())
            .expect("listed")
            .filter_map(|e| e.ok()?.file_name().into_string().ok());
        let mut left: Vec<String> = left.collect();
        left.sort();
        assert_eq!(left, [".kept", "kept.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        std::fs::write(&path, b"old").expect("written");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        write_atomic(&link, b"new").expect("replaced");
        assert_eq!(std::fs::read(&path).expect("read"), b"new");
        assert!(link.is_symlink());
    }
}
