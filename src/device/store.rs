//! Compiled programs kept on disk, so that a program is compiled once.
//!
//! A file holds the whole key that it was stored under, what was compiled and a checksum of both; a file that is damaged or
//! belongs to another key counts as none. Files are whole or absent. Nothing is ever removed.

use crate::error::{Error, Result};
use crate::files::{read_whole, write_atomic};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Instant;

/// How every file begins.
const MAGIC: &[u8; 16] = b"vecaz program 1\n";

/// A folder of compiled programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store(PathBuf);

impl Store {
    /// The store in `folder`, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// The user's own: `programs` in the folder `$VECAZ_CACHE`, else in `vecaz` in `$XDG_CACHE_HOME` or `~/.cache`. None
    /// where no home is known.
    pub fn of_user() -> Option<Self> {
        user_cache().map(|folder| Self(folder.join("programs")))
    }

    /// The value stored under `key`; otherwise the result of `make`, which is then stored. `name` begins the file's name. A store that
    /// cannot be written is not an error: the next start compiles again.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make(
        &self,
        name: &str,
        key: &[u8],
        make: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let path = self.path(name, key);
        if let Some(program) = read_whole(&path).ok().and_then(|file| unwrap(&file, key)) {
            return Ok(program);
        }
        let start = Instant::now();
        let program = make()?;
        tracing::info!("compiled {name} in {:.1} s", start.elapsed().as_secs_f64());
        let stored = fs::create_dir_all(&self.0)
            .map_err(|e| Error::io("creating", &self.0, e))
            .and_then(|()| write_atomic(&path, &wrap(key, &program)));
        if let Err(error) = stored {
            tracing::warn!("the compiled program is not kept: {error}");
        }
        Ok(program)
    }

    fn path(&self, name: &str, key: &[u8]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.0.join(format!("{name}-{:016x}.bin", hasher.finish()))
    }
}

/// The folder of everything that can be made again: `$VECAZ_CACHE`, else `vecaz` in `$XDG_CACHE_HOME` or `~/.cache`.
pub fn user_cache() -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from);
    folder("VECAZ_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("vecaz")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/vecaz")))
}

fn wrap(key: &[u8], program: &[u8]) -> Vec<u8> {
    let body = [&(key.len() as u64).to_le_bytes(), key, program].concat();
    [MAGIC.as_slice(), &crc32c::crc32c(&body).to_le_bytes(), &body].concat()
}

/// The program in `file`, where the file is whole and its key is `key`.
fn unwrap(file: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let (checksum, body) = file.strip_prefix(MAGIC)?.split_first_chunk::<4>()?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let (length, rest) = body.split_first_chunk::<8>()?;
    let (found, program) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    (found == key).then(|| program.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden() -> Result<Vec<u8>> {
        Err(Error::unsupported("making", "it should be in the store"))
    }

    fn only_file(store: &Store) -> PathBuf {
        let mut files =
            fs::read_dir(&store.0).expect("a folder").map(|entry| entry.expect("an entry").path());
        let file = files.next().expect("a file");
        assert_eq!(files.next(), None);
        file
    }

    #[test]
    fn a_program_is_made_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::at(folder.path().join("new/programs"));
        assert_eq!(store.get_or_make("hex", b"key", || Ok(vec![1, 2, 3])).expect("made"), [1, 2, 3]);
        assert_eq!(store.get_or_make("hex", b"key", forbidden).expect("stored"), [1, 2, 3]);
        assert_eq!(store.get_or_make("hex", b"other", || Ok(vec![4])).expect("made"), [4]);
        assert_eq!(store.get_or_make("hex", b"key", forbidden).expect("stored"), [1, 2, 3]);
    }

    #[test]
    fn a_damaged_file_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::at(folder.path());
        let whole = || Ok(b"machine code".to_vec());
        store.get_or_make("go", b"the key", whole).expect("made");
        let path = only_file(&store);
        let good = fs::read(&path).expect("read");
        let flipped = |at: usize| good.iter().enumerate().map(|(i, b)| b ^ u8::from(i == at)).collect();
        let mut damages: Vec<Vec<u8>> = (0..good.len()).map(flipped).collect();
        damages.extend((0..good.len()).map(|length| good[..length].to_vec()));
        damages.push([good.as_slice(), b"x"].concat());
        for damage in damages {
            fs::write(&path, &damage).expect("written");
            let mut made = false;
            let program = store.get_or_make("go", b"the key", || {
                made = true;
                whole()
            });
            assert_eq!(program.expect("made"), b"machine code");
            assert!(made, "{damage:?}");
            assert_eq!(fs::read(&path).expect("read"), good);
        }
    }

    #[test]
    fn a_file_of_another_key_counts_as_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::at(folder.path());
        store.get_or_make("go", b"key", || Ok(vec![1])).expect("made");
        fs::rename(only_file(&store), store.path("go", b"yek")).expect("moved");
        assert_eq!(store.get_or_make("go", b"yek", || Ok(vec![2])).expect("made"), [2]);
    }

    #[test]
    fn a_store_that_cannot_be_written_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        assert_eq!(Store::at(file).get_or_make("go", b"key", || Ok(vec![7])).expect("made"), [7]);
    }
}
