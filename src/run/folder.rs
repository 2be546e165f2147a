//! The folder of a run: the names of its files, and the lock that allows one process to write them.

use super::files::{BEST, CONFIG, FINAL, GAMES, MANIFEST, OPPONENTS};
use super::{checkpoint, findings};
use crate::error::{Error, Result};
use crate::eval::ladder;
use crate::files::{TEMPORARY, canonical_path};
use crate::report::{REPORT, metrics, tensorboard};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file whose lock a process holds while it writes the folder.
const LOCK: &str = ".lock";
/// Polling interval for changes of the folder of a run in progress.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// A run's folder, locked: only one process writes it.
#[derive(Debug)]
pub struct RunFolder {
    dir: PathBuf,
    /// The folder itself. While it is open, no other folder gets its identity.
    opened: Identity,
    _lock: File,
}

impl RunFolder {
    /// Creates the folder of a new run, or takes an empty one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the folder is not empty, is inside another run, or is in use; [`Error::Io`].
    pub fn create(dir: &Path) -> Result<Self> {
        refuse_run_files(dir)?;
        refuse_content(dir)?;
        fs::create_dir_all(dir).map_err(|e| Error::io("creating", dir, e))?;
        let folder = Self::lock(dir)?;
        // Another process may have run in the folder in between.
        refuse_content(dir)?;
        Ok(folder)
    }

    /// Opens the folder of a run.
    ///
    /// # Errors
    /// [`Error::Format`] if there is no run, [`Error::Unsupported`] if the folder is in use, [`Error::Io`].
    pub fn open(dir: &Path) -> Result<Self> {
        expect_run(dir)?;
        Self::lock(dir)
    }

    fn lock(dir: &Path) -> Result<Self> {
        let path = dir.join(LOCK);
        // Opening a pipe would wait for its reader.
        if fs::metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::format(&path, "not a regular file; remove it"));
        }
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|e| Error::io("opening", &path, e))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                dir: dir.to_path_buf(),
                opened: Identity::of(dir).map_err(|e| Error::io("opening", dir, e))?,
                _lock: lock,
            }),
            Err(fs::TryLockError::WouldBlock) => Err(Error::unsupported(
                format!("a run in {}", dir.display()),
                "another vecaz process is using the folder; stop it, or choose another folder",
            )),
            Err(fs::TryLockError::Error(e)) => Err(Error::io("locking", &path, e)),
        }
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Refuses a folder that is no longer at its path, or whose files are gone. Further writes would create a second folder with a
    /// part of the run.
    ///
    /// # Errors
    /// [`Error::Format`] with the folder.
    pub fn check(&self) -> Result<()> {
        match self.opened.is_at(&self.dir) && self.dir.join(MANIFEST).exists() {
            true => Ok(()),
            false => Err(Error::format(
                &self.dir,
                "the folder was moved, deleted or emptied during the run, which ends; \
                 if it was moved, continue the run there with --resume",
            )),
        }
    }

    /// The error of [`RunFolder::check`] if there is one, which then is the cause of `error`.
    pub fn cause_of(&self, error: Error) -> Error {
        self.check().err().unwrap_or(error)
    }

    /// Checks of this folder at intervals.
    pub fn periodic_check(&self) -> FolderCheck<'_> {
        FolderCheck { folder: self, due: Instant::now() }
    }
}

/// An open folder.
#[cfg(unix)]
#[derive(Debug)]
struct Identity(File);

#[cfg(unix)]
impl Identity {
    fn of(dir: &Path) -> std::io::Result<Self> {
        File::open(dir).map(Self)
    }

    /// True if the folder is still at `dir`.
    fn is_at(&self, dir: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let (now, then) = (fs::metadata(dir).map(id), self.0.metadata().map(id));
        matches!((now, then), (Ok(now), Ok(then)) if now == then)
    }
}

/// An open folder.
#[cfg(windows)]
#[derive(Debug)]
struct Identity(same_file::Handle);

#[cfg(windows)]
impl Identity {
    fn of(dir: &Path) -> std::io::Result<Self> {
        same_file::Handle::from_path(dir).map(Self)
    }

    /// True if the folder is still at `dir`.
    fn is_at(&self, dir: &Path) -> bool {
        same_file::Handle::from_path(dir).is_ok_and(|now| now == self.0)
    }
}

/// [`RunFolder::check`] at intervals, for loops whose passes are shorter than an access to the disk.
#[derive(Debug)]
pub struct FolderCheck<'a> {
    folder: &'a RunFolder,
    due: Instant,
}

impl FolderCheck<'_> {
    /// Checks the folder if the last check is older than the interval.
    ///
    /// # Errors
    /// Those of [`RunFolder::check`].
    pub fn check(&mut self) -> Result<()> {
        let now = Instant::now();
        if now < self.due {
            return Ok(());
        }
        self.due = now + WATCH_INTERVAL;
        self.folder.check()
    }
}

/// Refuses a folder without a configuration.
///
/// # Errors
/// [`Error::Format`]; [`Error::Io`] if there is nothing.
pub fn expect_run(dir: &Path) -> Result<()> {
    fs::metadata(dir).map_err(|e| Error::io("reading", dir, e))?;
    match dir.join(CONFIG).is_file() {
        true => Ok(()),
        false => Err(Error::format(dir, format!("not a run (it has no {CONFIG})"))),
    }
}

/// True if the run in `dir` was interrupted before its first manifest, when only its configuration was written.
///
/// # Errors
/// [`Error::Io`].
pub fn is_unstarted(dir: &Path) -> Result<bool> {
    Ok(names(dir)?.iter().all(|name| name == CONFIG))
}

/// Refuses a target that is a file of a run, or is in one of its folders of games and checkpoints.
///
/// # Errors
/// [`Error::Unsupported`] with the run's folder.
pub fn refuse_run_files(target: &Path) -> Result<()> {
    let Some(full) = full_path(target) else { return Ok(()) };
    for dir in full.ancestors().skip(1) {
        let first = full.strip_prefix(dir).ok().and_then(|rest| rest.components().next());
        if first.is_some_and(|first| is_own(first.as_os_str())) && is_run(dir) {
            let what = format!("writing {}", target.display());
            let why = format!("it belongs to the run in {}; choose another path", dir.display());
            return Err(Error::unsupported(what, why));
        }
    }
    Ok(())
}

/// The absolute path of `target` with links followed; its last part may not exist. None if its folder does not exist.
fn full_path(target: &Path) -> Option<PathBuf> {
    if let Ok(full) = canonical_path(target) {
        return Some(full);
    }
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    Some(canonical_path(parent.unwrap_or(Path::new("."))).ok()?.join(target.file_name()?))
}

/// True if a run writes the file or folder of this name in its folder.
fn is_own(name: &OsStr) -> bool {
    let own = [
        CONFIG,
        MANIFEST,
        BEST,
        FINAL,
        GAMES,
        OPPONENTS,
        REPORT,
        LOCK,
        checkpoint::FOLDER,
        metrics::FILE_NAME,
        findings::FILE_NAME,
        ladder::FILE_NAME,
    ];
    let name = name.to_string_lossy();
    own.contains(&&*name) || name.starts_with(tensorboard::PREFIX) || name.starts_with(TEMPORARY)
}

/// True if `dir` has a configuration and another file of a run.
pub fn is_run(dir: &Path) -> bool {
    let has = |name: &str| dir.join(name).exists();
    has(CONFIG) && (has(MANIFEST) || has(metrics::FILE_NAME) || has(checkpoint::FOLDER))
}

/// True if `dir` has a run, or as yet nothing but the configuration of one.
pub fn is_run_or_unstarted(dir: &Path) -> bool {
    is_run(dir) || dir.join(CONFIG).is_file() && is_unstarted(dir).is_ok_and(|is_unstarted| is_unstarted)
}

/// Refuses a folder for a new run that is not empty. The lock and temporary files of a start that was killed do not count.
fn refuse_content(dir: &Path) -> Result<()> {
    let Some(first) = names(dir)?.into_iter().next() else { return Ok(()) };
    let why = match is_run(dir) || is_unstarted(dir)? {
        true => {
            "the folder already contains a run; continue it with --resume, or choose another folder".into()
        }
        false => format!(
            "the folder is not empty (it contains {first}) and is not a run; choose a new or an empty folder"
        ),
    };
    Err(Error::unsupported(format!("a new run in {}", dir.display()), why))
}

/// The names in `dir` in order, without the lock and temporary files; none if it is not a folder.
fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("reading", dir, e)),
    };
    let name =
        |entry: std::io::Result<fs::DirEntry>| Some(entry.ok()?.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        entries.filter_map(name).filter(|name| name != LOCK && !name.starts_with(TEMPORARY)).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("run");
        fs::create_dir_all(dir.join(GAMES)).expect("made");
        fs::create_dir_all(dir.join(OPPONENTS)).expect("made");
        for name in [CONFIG, MANIFEST, BEST] {
            fs::write(dir.join(name), name).expect("written");
        }
        (folder, dir)
    }

    #[test]
    fn files_of_a_run_are_refused_as_targets() {
        let (folder, dir) = run();
        for name in [
            CONFIG,
            MANIFEST,
            BEST,
            ".lock",
            "report.html",
            "ladder.json",
            "metrics.jsonl",
            "findings.jsonl",
            "events.out.tfevents.1.2.vecaz",
            "games/epoch-000001.jsonl",
            "games/mine.json",
            "opponents/epoch-000003.safetensors",
            "checkpoints",
            "./config.toml",
            "games/../config.toml",
        ] {
            let error = refuse_run_files(&dir.join(name)).expect_err(name).to_string();
            assert!(error.contains("belongs to the run in "), "{name}: {error}");
        }
        for path in [dir.join("weights.safetensors"), dir.join("rows.json"), folder.path().join(CONFIG)] {
            refuse_run_files(&path).expect("not a file of the run");
        }
        fs::remove_file(dir.join(MANIFEST)).expect("removed");
        refuse_run_files(&dir.join(CONFIG)).expect("a folder with a config.toml is not a run");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_file_of_a_run_is_refused_as_a_target() {
        let (folder, dir) = run();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(dir.join(BEST), &link).expect("linked");
        assert!(refuse_run_files(&link).is_err());
    }

    #[test]
    fn a_new_run_takes_a_new_or_an_empty_folder_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("new");
        drop(RunFolder::create(&dir).expect("new"));
        drop(RunFolder::create(&dir).expect("only a lock is in it"));
        fs::write(dir.join("notes.txt"), b"mine").expect("written");
        let error = RunFolder::create(&dir).expect_err("refused").to_string();
        assert!(error.contains("not empty (it contains notes.txt)"), "{error}");
        let other = folder.path().join("other");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("report.html"), b"mine").expect("written");
        RunFolder::create(&other).map(drop).expect_err("refused");
        let left: Vec<String> = names(&other).expect("listed");
        assert!(left == ["report.html"] && !other.join(LOCK).exists(), "{left:?}");
    }

    #[test]
    fn the_identity_of_a_folder_is_not_that_of_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, other, none] = ["one", "other", "none"].map(|name| folder.path().join(name));
        fs::create_dir(&one).expect("made");
        fs::create_dir(&other).expect("made");
        let opened = Identity::of(&one).expect("opened");
        assert_eq!([&one, &other, &none].map(|dir| opened.is_at(dir)), [true, false, false]);
    }

    /// Windows does not move a folder in which a file is open.
    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_moved_replaced_or_emptied_is_noticed() {
        let (folder, dir) = run();
        let held = RunFolder::open(&dir).expect("opened");
        held.check().expect("in its place");
        let away = folder.path().join("away");
        fs::rename(&dir, &away).expect("moved");
        held.check().expect_err("gone");
        fs::create_dir(&dir).expect("made");
        fs::write(dir.join(MANIFEST), b"").expect("written");
        held.check().expect_err("another folder");
        fs::remove_dir_all(&dir).expect("removed");
        fs::rename(&away, &dir).expect("moved back");
        held.check().expect("in its place again");
        fs::remove_file(dir.join(MANIFEST)).expect("removed");
        held.check().expect_err("emptied");
    }
}
