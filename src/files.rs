//! Atomic file writes, bounded reads, sizes and checksums of files. Depends only on the error type.

mod replace;
mod text;

pub use replace::{is_held, remove_folder, rename, sync_folder};
pub use text::NotUtf8;

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Prefix of the names of temporary files.
pub const TEMPORARY: &str = ".vecaz-";

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

/// Checks that [`write_atomic`] can write to `path`, and leaves it unchanged. Call it before long work whose result is written there. A
/// pipe is not opened, since opening waits for a reader.
///
/// # Errors
/// [`Error::Io`] with `path`, as of [`write_atomic`].
pub fn check_writable(path: &Path) -> Result<()> {
    let (target, is_regular) = write_target(path);
    let opened = match (is_regular, target.is_dir()) {
        (true, _) => temporary_in(folder_of(&target)).map(drop),
        (false, true) => File::options().write(true).open(&target).map(drop),
        (false, false) => Ok(()),
    };
    opened.map_err(|e| Error::io("writing", path, e))
}

/// The file that `path` leads to, and whether it is a regular file or does not exist.
fn write_target(path: &Path) -> (PathBuf, bool) {
    let target = canonical_path(path).unwrap_or_else(|_| path.to_path_buf());
    let is_regular = target.metadata().map_or(true, |meta| meta.is_file());
    (target, is_regular)
}

/// The absolute path of a file or folder that exists, with links followed. On Windows without the prefix `\\?\`, where it can be spared.
///
/// # Errors
/// Those of the system.
pub fn canonical_path(path: &Path) -> std::io::Result<PathBuf> {
    dunce::canonicalize(path)
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A temporary file, which is removed when it is dropped.
fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile<File>> {
    let mut cause = None; // the error without the name of the temporary file, which the library adds
    let create = |path: &Path| File::create_new(path).inspect_err(|e| cause = e.raw_os_error());
    let temporary = tempfile::Builder::new().prefix(TEMPORARY).make_in(folder, create);
    temporary.map_err(|e| cause.map_or(e, std::io::Error::from_raw_os_error))
}

fn try_write_atomic(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let (target, is_regular) = write_target(path);
    if !is_regular {
        return File::options().write(true).open(&target)?.write_all(bytes);
    }
    let folder = folder_of(&target);
    let mut file = temporary_in(folder)?;
    // Written through the plain file: the errors of the library contain the temporary path.
    file.as_file_mut().write_all(bytes)?;
    file.as_file().sync_all()?;
    let mut temporary = file.into_temp_path();
    rename(&temporary, &target)?;
    temporary.disable_cleanup(true);
    sync_folder(folder) // the new name itself
}

/// The text of a file or a pipe, which may be of any size; at most `max_bytes` are accepted. A byte-order mark is removed.
///
/// # Errors
/// Those of the system; `FileTooLarge` with the bound; `InvalidData` with [`NotUtf8`] for text in another encoding.
pub fn read_text(path: &Path, max_bytes: u64) -> std::io::Result<String> {
    text_of(File::open(path)?, max_bytes)
}

/// [`read_text`] of an open stream.
///
/// # Errors
/// Those of [`read_text`].
pub fn text_of(stream: impl Read, max_bytes: u64) -> std::io::Result<String> {
    text::decode(bytes_of(stream, max_bytes)?)
}

/// Opens a regular file. A pipe or a device, which may never end, is not opened.
///
/// # Errors
/// Those of the system; `InvalidInput` for a path that is not a regular file.
pub fn open_regular(path: &Path) -> std::io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}

/// The bytes of a regular file of any size: for the files of a run.
///
/// # Errors
/// Those of [`open_regular`]; `OutOfMemory` if the bytes do not fit.
pub fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(file.metadata()?.len() as usize)?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a regular file of at most `max_bytes`.
///
/// # Errors
/// Those of [`read_text`] and [`open_regular`].
pub fn read_regular(path: &Path, max_bytes: u64) -> std::io::Result<Vec<u8>> {
    bytes_of(open_regular(path)?, max_bytes)
}

fn bytes_of(stream: impl Read, max_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= max_bytes {
        return Ok(bytes);
    }
    let what = format!("longer than the {max_bytes} bytes that such a file may have");
    Err(std::io::Error::new(ErrorKind::FileTooLarge, what))
}

/// Creates the folder `path` inside an existing one, unless it exists. Unlike [`fs::create_dir_all`], it does not create the
/// parents: a run whose folder was moved away must not create it again.
///
/// # Errors
/// [`Error::Io`].
pub fn create_subfolder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists || !path.is_dir() => {
            Err(Error::io("creating", path, e))
        }
        _ => Ok(()),
    }
}

/// Makes `to` a hard link to the regular file `path`, which must not change afterwards; copies it where the file system has no hard links.
///
/// # Errors
/// [`Error::Io`].
pub fn link_or_copy(path: &Path, to: &Path) -> Result<()> {
    let copy = |_| {
        fs::copy(path, to)?;
        File::options().write(true).open(to)?.sync_all()
    };
    fs::hard_link(path, to).or_else(copy).map_err(|e| Error::io("copying", path, e))
}

/// Size and CRC-32C (Castagnoli) of a file or of its beginning. Not the CRC-32 of zip: a file that ends with its own CRC-32, as
/// `progress.bin` does, has the same CRC-32 whatever its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Bytes.
    pub size: u64,
    /// CRC-32C of these bytes.
    pub crc32c: u32,
}

impl FileDigest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self { size: bytes.len() as u64, crc32c: crc32c::crc32c(bytes) }
    }

    /// The digest of the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of_file(path: &Path) -> Result<Self> {
        Self::of_beginning(path, u64::MAX)
    }

    /// The digest of the first `size` bytes of the file at `path`, or of the whole file if it is shorter.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of_beginning(path: &Path, size: u64) -> Result<Self> {
        let failed = |e| Error::io("reading", path, e);
        let mut file = open_regular(path).map_err(failed)?.take(size);
        let mut digest = Self::default();
        let mut part = vec![0; 1 << 20];
        loop {
            match file.read(&mut part).map_err(failed)? {
                0 => return Ok(digest),
                count => digest.append(&part[..count]),
            }
        }
    }

    /// Extends the digest by `bytes` that follow, without the bytes before them.
    pub fn append(&mut self, bytes: &[u8]) {
        *self =
            Self { size: self.size + bytes.len() as u64, crc32c: crc32c::crc32c_append(self.crc32c, bytes) };
    }
}

/// What reading `path` gave, or `None` if it does not exist.
///
/// # Errors
/// [`Error::Io`] for all other failures.
pub fn if_exists<T>(path: &Path, read: std::io::Result<T>) -> Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("reading", path, e)),
    }
}

/// Removes the temporary files of killed writers from `folder`, which may not exist. No write may be in progress.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_temporaries(folder: &Path) -> Result<()> {
    let Some(entries) = if_exists(folder, fs::read_dir(folder))? else { return Ok(()) };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(TEMPORARY) && path.is_file() {
            fs::remove_file(&path).map_err(|e| Error::io("removing", &path, e))?;
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
    fn an_unwritable_path_is_refused_before_the_write() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [folder.path().join("none").join("a.json"), folder.path().to_path_buf()] {
            let [before, after] = [check_writable(&path), write_atomic(&path, b"x")];
            assert_eq!(before.expect_err("known").to_string(), after.expect_err("refused").to_string());
        }
        let path = folder.path().join("a.json");
        check_writable(&path).expect("a new file");
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
        write_atomic(&path, b"old").expect("written");
        check_writable(&path).expect("an old file");
        assert_eq!(std::fs::read(&path).expect("read"), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 1);
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

    #[test]
    fn a_digest_of_parts_is_that_of_the_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let bytes: Vec<u8> = (0..5000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &bytes).expect("written");
        for cut in [0, 1, 77, bytes.len()] {
            let mut digest = FileDigest::of(&bytes[..cut]);
            assert_eq!(FileDigest::of_beginning(&path, cut as u64).expect("read"), digest);
            digest.append(&bytes[cut..]);
            assert_eq!(digest, FileDigest::of_file(&path).expect("read"));
        }
        // The check value of CRC-32C.
        assert_eq!(FileDigest::of(b"123456789"), FileDigest { size: 9, crc32c: 0xe306_9283 });
    }

    #[test]
    fn a_folder_is_created_in_an_existing_one_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        assert!(create_subfolder(&path.join("b")).is_err());
        create_subfolder(&path).expect("created");
        create_subfolder(&path).expect("is there");
        std::fs::write(path.join("file"), b"").expect("written");
        assert!(create_subfolder(&path.join("file")).is_err());
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

    #[test]
    fn reads_are_bounded_and_devices_are_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "four").expect("written");
        assert_eq!(read_text(&path, 4).expect("short enough"), "four");
        assert_eq!(read_regular(&path, 4).expect("short enough"), b"four");
        let refused = |e: std::io::Error| e.to_string();
        let too_long = "longer than the 3 bytes that such a file may have";
        assert_eq!(read_text(&path, 3).map_err(refused), Err(too_long.into()));
        assert_eq!(read_regular(&path, 3).map_err(refused), Err(too_long.into()));
        if cfg!(unix) {
            assert_eq!(read_text(Path::new("/dev/zero"), 3).map_err(refused), Err(too_long.into()));
            assert_eq!(
                read_regular(Path::new("/dev/zero"), 3).map_err(refused),
                Err("not a regular file".into())
            );
        }
    }
}
