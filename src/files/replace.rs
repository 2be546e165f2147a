//! Renames, removals and syncs of folders on every system.
//!
//! On Unix a file can be renamed and removed while it is open. On Windows that fails while another program has it open without sharing
//! it, as virus scanners and indexers do for moments, and a folder cannot be renamed while any file in it is open: such an operation is
//! tried again for a while.

use std::fs;
use std::io::Result;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time for which an operation on a file that another program has open is tried again.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Renames a file or a folder. A file at `to` is replaced, also while others read it; they keep the old content.
///
/// # Errors
/// Those of the system.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    while_held(is_held, PATIENCE, || fs::rename(from, to))
}

/// Removes a folder with all its content.
///
/// # Errors
/// Those of the system.
pub fn remove_folder(folder: &Path) -> Result<()> {
    while_held(is_held, PATIENCE, || fs::remove_dir_all(folder))
}

/// Writes the names in `folder` to the disk: after a power failure those of its files are there that were renamed before.
///
/// # Errors
/// Those of the system.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> Result<()> {
    fs::File::open(folder)?.sync_all()
}

/// Does nothing. Windows cannot sync a folder: NTFS writes names through its journal, in the order of the renames but at a time of its own.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn sync_folder(_: &Path) -> Result<()> {
    Ok(())
}

/// True for an error that says that another program has the file or folder open. Never on Unix.
pub fn is_held(error: &std::io::Error) -> bool {
    /// ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION, ERROR_DIR_NOT_EMPTY (files that are removed but still open).
    const HELD: [i32; 4] = [5, 32, 33, 145];
    cfg!(windows) && error.raw_os_error().is_some_and(|code| HELD.contains(&code))
}

/// The result of `operation`, which is tried again while its error `is_held`, at most for `patience`.
fn while_held<T>(
    is_held: impl Fn(&std::io::Error) -> bool,
    patience: Duration,
    operation: impl Fn() -> Result<T>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match operation() {
            Err(error) if is_held(&error) && start.elapsed() < patience => sleep(PAUSE),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::{Error, ErrorKind};

    /// Tries of an operation that fails with `kind` three times, where permission denied counts as held, and its result.
    fn tries(kind: ErrorKind, patience: Duration) -> (u32, Result<u32>) {
        let tried = Cell::new(0);
        let operation = || {
            tried.set(tried.get() + 1);
            if tried.get() < 4 { Err(Error::from(kind)) } else { Ok(tried.get()) }
        };
        let result = while_held(|e| e.kind() == ErrorKind::PermissionDenied, patience, operation);
        (tried.get(), result)
    }

    #[test]
    fn what_another_program_holds_is_tried_again_for_a_while() {
        assert!(matches!(tries(ErrorKind::PermissionDenied, Duration::from_secs(60)), (4, Ok(4))));
        assert!(matches!(tries(ErrorKind::PermissionDenied, Duration::ZERO), (1, Err(_))));
        assert!(matches!(tries(ErrorKind::NotFound, Duration::from_secs(60)), (1, Err(_))));
    }

    #[test]
    fn errors_of_holding_are_those_of_windows() {
        assert_eq!(is_held(&Error::from_raw_os_error(5)), cfg!(windows));
        assert_eq!(is_held(&Error::from_raw_os_error(32)), cfg!(windows));
        assert!(!is_held(&Error::from_raw_os_error(2)));
    }

    #[test]
    fn a_file_is_replaced_while_it_is_read() {
        use std::io::Read;
        let folder = tempfile::tempdir().expect("a folder");
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        fs::write(&old, "old").expect("written");
        fs::write(&new, "new").expect("written");
        let mut reader = fs::File::open(&old).expect("opened");
        rename(&new, &old).expect("replaced");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!((text.as_str(), fs::read_to_string(&old).expect("read").as_str()), ("old", "new"));
        sync_folder(folder.path()).expect("synced");
    }
}
