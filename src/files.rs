//! Files that are whole or absent. Knows no other module but the error type.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Writes `bytes` to `path` such that a reader, or the next start after a crash, finds the old content or the new and
/// nothing between: a temporary file in the same folder, synced, then renamed over it. Symbolic links are followed;
/// what is no regular file (a pipe, a device) is written to directly.
///
/// # Errors
/// [`Error::Io`] about `path`; the old content then stands.
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
    let mut cause = None; // the library's error names the temporary file, which says nothing to a user
    let create = |path: &Path| File::create_new(path).inspect_err(|e| cause = e.raw_os_error());
    let temporary = tempfile::Builder::new().prefix(".vecaz-").make_in(folder, create);
    let mut file = temporary.map_err(|e| cause.map_or(e, std::io::Error::from_raw_os_error))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|e| e.error)?;
    #[cfg(unix)]
    File::open(folder)?.sync_all()?; // the new name itself
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
