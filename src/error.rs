//! The one error type. Variants carry facts; `Display` is the one sentence a user reads.
//!
//! In: what went wrong. Out: a sentence and, from the binary, a non-zero exit. Knows no other module.

use std::path::{Path, PathBuf};

/// The result of every fallible operation in vecaz.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, one variant a kind of cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configuration value that cannot be used.
    #[error("config key {key}: got {got}, expected {expected}")]
    Config {
        /// Dotted key, as in the TOML file and `--set`.
        key: String,
        /// What was found there.
        got: String,
        /// What would be right: a range, a list of names.
        expected: String,
    },
    /// A configuration key that does not exist, or text that is no configuration.
    #[error("config {origin}: {what}")]
    ConfigText {
        /// The file or flag it came from.
        origin: String,
        /// What the parser said, on one line.
        what: String,
    },
    /// A game that is not in the registry.
    #[error("unknown game {name}; the games are {known}")]
    UnknownGame {
        /// The name asked for.
        name: String,
        /// The registered names, comma separated.
        known: String,
    },
    /// An action that may not be played here.
    #[error("ply {ply}: action {action} is not legal here; legal: {legal}")]
    IllegalAction {
        /// Plies played before it.
        ply: usize,
        /// The action as typed.
        action: String,
        /// The legal actions, as numbers and names.
        legal: String,
    },
    /// The operating system refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done, e.g. "reading".
        doing: &'static str,
        /// The file or folder concerned.
        path: PathBuf,
        /// The system's own word.
        source: std::io::Error,
    },
    /// A file that is not what it should be: foreign, cut short, damaged, of another version.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A device that is not there, is too old, has no room or failed.
    #[error("device {device}: {what}")]
    Device {
        /// The device, as named on the command line.
        device: String,
        /// What went wrong: the kernel, the game, the launch shape; the sizes.
        what: String,
    },
    /// Two things that do not belong together: a run of another game, weights of another shape.
    #[error("{what}: found {found}, expected {expected}")]
    Mismatch {
        /// What does not fit.
        what: String,
        /// What was found.
        found: String,
        /// What would fit.
        expected: String,
    },
    /// A plan that needs more memory than there is.
    #[error(
        "the plan needs {need_mib} MiB ({detail}), more than the {have_mib} MiB allowed; \
         the largest selfplay.games that fits is {largest_games}"
    )]
    Memory {
        /// MiB the plan would take.
        need_mib: u64,
        /// MiB that may be taken.
        have_mib: u64,
        /// How the need is made up.
        detail: String,
        /// The largest number of games that would fit, with all else equal.
        largest_games: u64,
    },
    /// Something asked for that this game, device or build does not do.
    #[error("{what}: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it cannot be.
        why: String,
    },
    /// Another program that was to play and does not.
    #[error("opponent {command}: {what}")]
    Opponent {
        /// How it was started.
        command: String,
        /// What it did instead of answering.
        what: String,
    },
    /// A number that is no number where the search or training needs one.
    #[error("{what} is not finite ({value})")]
    NotFinite {
        /// Which quantity.
        what: String,
        /// Its value.
        value: f32,
    },
    /// The tensor library refused.
    #[error("tensor library: {0}")]
    Candle(#[from] candle_core::Error),
    /// The check of a run found differences.
    #[error("verify: {differences} of {checked} checks differ; the first: {first}")]
    Verify {
        /// How many checks differ.
        differences: usize,
        /// How many were made.
        checked: usize,
        /// The first difference, in words.
        first: String,
    },
}

impl Error {
    /// An [`Error::Io`] about `path`.
    pub fn io(doing: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { doing, path: path.as_ref().to_path_buf(), source }
    }

    /// An [`Error::Config`] about `key`.
    pub fn config(key: impl Into<String>, got: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Self::Config { key: key.into(), got: got.to_string(), expected: expected.into() }
    }

    /// An [`Error::Format`] about `path`.
    pub fn format(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::Format { path: path.as_ref().to_path_buf(), what: what.into() }
    }

    /// The same, where what was counted as games is rows, of which a game has `rows_per_game`.
    pub(crate) fn in_games(self, rows_per_game: usize) -> Self {
        match self {
            Self::Memory { need_mib, have_mib, detail, largest_games } => Self::Memory {
                need_mib,
                have_mib,
                detail,
                largest_games: largest_games / rows_per_game.max(1) as u64,
            },
            other => other,
        }
    }

    /// An [`Error::Unsupported`].
    pub fn unsupported(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), why: why.into() }
    }
}
