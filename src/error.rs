//! The error type of the crate. Variants carry facts; `Display` is one sentence for the user. Depends on no other module but that of words.

use crate::words::count;
use std::path::{Path, PathBuf};

/// The result of every fallible operation in vecaz.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why work was stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The signal with this number.
    Signal(i32),
    /// The end of a time limit.
    TimeLimit,
    /// A failure of parallel work, whose error is reported instead.
    Failure,
    /// The caller, from another thread.
    Caller,
}

/// An error, one variant per kind of cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configuration value that is not valid.
    #[error("{}{key}{}: got {got}, expected {expected}", key_prefix(key), in_brackets(origin))]
    Config {
        /// Dotted key, as in the TOML file and `--set`, or a flag with its dashes.
        key: String,
        /// Where it was set, if known: a file and its line, or `--set`.
        origin: Option<String>,
        /// The value found.
        got: String,
        /// The valid values: a range, a list of names.
        expected: String,
    },
    /// A configuration key that does not exist, or a value that the parser of its key refuses.
    #[error("config key {key}{}: {what}", in_brackets(origin))]
    ConfigKey {
        /// Dotted key.
        key: String,
        /// Where it was set, if known: a file and its line, or `--set`.
        origin: Option<String>,
        /// The reason and the remedy.
        what: String,
    },
    /// Text that is not a valid configuration.
    #[error("config {origin}: {what}")]
    ConfigText {
        /// The file or flag that contains it.
        origin: String,
        /// The parser's message, on one line.
        what: String,
    },
    /// A game that is not in the registry.
    #[error("unknown game {name}{}; the games are {known}", in_brackets(origin))]
    UnknownGame {
        /// The name given.
        name: String,
        /// Where it was set, if known: a file and its line, or `--set`.
        origin: Option<String>,
        /// The registered names, comma separated.
        known: String,
    },
    /// An action that is not legal in its position.
    #[error("ply {ply}: action {action} is not legal here; legal: {legal}")]
    IllegalAction {
        /// Plies played before it.
        ply: usize,
        /// The action as typed.
        action: String,
        /// The legal actions, as numbers and names.
        legal: String,
    },
    /// A failed operation of the operating system.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// The operation, e.g. "reading".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of another format or version, or one that is truncated or damaged.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: String,
    },
    /// A device that is missing, too old, out of memory, or failed.
    #[error("device {device}: {what}")]
    Device {
        /// The device, as named on the command line.
        device: String,
        /// The failure, with kernel, game, launch shape or sizes.
        what: String,
    },
    /// Two inputs that do not match: a run of another game, weights of another shape.
    #[error("{what}: found {found}, expected {expected}")]
    Mismatch {
        /// The property that differs.
        what: String,
        /// The value found.
        found: String,
        /// The value required.
        expected: String,
    },
    /// A plan that exceeds the memory allowed.
    #[error(
        "the plan needs {need_mib} MiB ({detail}), more than the {have_mib} MiB allowed ({limit}); {}",
        fitting_games(*largest_games)
    )]
    Memory {
        /// MiB that the plan needs.
        need_mib: u64,
        /// MiB allowed.
        have_mib: u64,
        /// The limit, such as "run.memory_mib".
        limit: String,
        /// The parts of the plan and their sizes.
        detail: String,
        /// The largest number of games that fits, all else equal.
        largest_games: u64,
    },
    /// An option that this game, device or build does not support.
    #[error("{what}: {why}")]
    Unsupported {
        /// The option.
        what: String,
        /// The reason.
        why: String,
    },
    /// A failure of an external opponent program.
    #[error("opponent {command}: {what}")]
    Opponent {
        /// The command that started it.
        command: String,
        /// The failure.
        what: String,
    },
    /// A NaN or infinity in search or training.
    #[error("{what} is not finite ({value})")]
    NotFinite {
        /// The quantity.
        what: String,
        /// Its value.
        value: f32,
    },
    /// A run whose network has become infinite or NaN.
    #[error(
        "{what} is not finite ({value}) in epoch {epoch}: the training has diverged; lower train.lr (now {lr}) or train.clip_norm \
         (now {clip_norm}, 0 is off), or raise train.warmup_updates, and continue from the end of epoch {} with `vecaz run --resume` \
         and --set",
        epoch - 1
    )]
    Diverged {
        /// The quantity.
        what: String,
        /// Its value.
        value: f32,
        /// The epoch.
        epoch: u64,
        /// The learning rate.
        lr: f64,
        /// The limit of the gradient's norm.
        clip_norm: f64,
    },
    /// A failure of the server that connects machines: not reachable, a refusal, or unexpected content.
    #[error("{server}: {what}")]
    Server {
        /// The server and the run, as typed, without a password.
        server: String,
        /// The finding and the expected state.
        what: String,
    },
    /// An error of the tensor library.
    #[error("tensor library: {0}")]
    #[cfg(feature = "candle")]
    Candle(#[from] candle_core::Error),
    /// Work that was stopped before its end.
    #[error("stopped before the end")]
    Stopped(StopCause),
    /// A run whose time limit was reached in its first epoch.
    #[error(
        "the limit of {} was reached in epoch {epoch}{}, and an unfinished epoch is discarded; \
         give more minutes, or make epochs shorter with selfplay.samples_per_epoch",
        count(minutes, "minute"),
        reached.as_ref().map(|at| format!(" ({at})")).unwrap_or_default()
    )]
    TimeLimit {
        /// The limit, which counts the whole run.
        minutes: f64,
        /// The discarded epoch.
        epoch: u64,
        /// The progress in it: work, units done, units in total.
        reached: Option<String>,
    },
    /// Differences found by `vecaz verify`.
    #[error("verify: {differences} of {} differ; the first: {first}", count(checked, "check"))]
    Verify {
        /// Number of checks that differ.
        differences: usize,
        /// Number of checks made.
        checked: usize,
        /// The first difference.
        first: String,
    },
}

impl Error {
    /// An [`Error::Io`] about `path`.
    pub fn io(doing: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { doing, path: path.as_ref().to_path_buf(), source }
    }

    /// An [`Error::Mismatch`] of `what`.
    pub fn mismatch(
        what: impl std::fmt::Display,
        found: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) -> Self {
        Self::Mismatch { what: what.to_string(), found: found.to_string(), expected: expected.to_string() }
    }

    /// An [`Error::Config`] about `key`.
    pub fn config(key: impl Into<String>, got: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Self::Config { key: key.into(), origin: None, got: got.to_string(), expected: expected.into() }
    }

    /// An [`Error::ConfigKey`] about a key that does not exist. `hint` is the nearest key, or how to list all keys.
    pub fn unknown_key(key: impl Into<String>, hint: impl std::fmt::Display) -> Self {
        Self::ConfigKey { key: key.into(), origin: None, what: format!("no such key; {hint}") }
    }

    /// The same error with the place where its configuration key was set: the result of `find` for the key.
    pub fn located(mut self, find: impl Fn(&str) -> Option<String>) -> Self {
        match &mut self {
            Self::Config { key, origin, .. } | Self::ConfigKey { key, origin, .. } => *origin = find(key),
            Self::UnknownGame { origin, .. } => *origin = find("game.name"),
            _ => {}
        }
        self
    }

    /// An [`Error::Format`] about `path`.
    pub fn format(path: impl AsRef<Path>, what: impl Into<String>) -> Self {
        Self::Format { path: path.as_ref().to_path_buf(), what: what.into() }
    }

    /// Converts the largest number of rows that fits to games of `rows_per_game` rows each. Other errors are unchanged.
    pub(crate) fn in_games(self, rows_per_game: usize) -> Self {
        match self {
            Self::Memory { need_mib, have_mib, limit, detail, largest_games } => Self::Memory {
                need_mib,
                have_mib,
                limit,
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

    /// An [`Error::Unsupported`] about `what`, which needs a cargo feature that this build does not have.
    pub fn without_feature(what: impl Into<String>, feature: &str) -> Self {
        Self::unsupported(what, Self::feature_is_off(feature))
    }

    /// An [`Error::Config`] about a flag with the value `got`, which needs a cargo feature that this build does not have.
    pub fn flag_without_feature(flag: &'static str, got: &str, feature: &str) -> Self {
        Self::config(flag, got, format!("no such flag: {}", Self::feature_is_off(feature)))
    }

    /// Says that this build does not have a cargo feature, and how to get one that has it.
    pub(crate) fn feature_is_off(feature: &str) -> String {
        format!(
            "this program was built without the feature {feature} (--no-default-features); `cargo build --release` builds one \
             with it"
        )
    }
}

/// The beginning of an error about `key`: a configuration key, a flag, or an argument in words.
fn key_prefix(key: &str) -> &'static str {
    if key.starts_with("--") || key.contains(' ') { "" } else { "config key " }
}

fn in_brackets(origin: &Option<String>) -> String {
    origin.as_ref().map(|origin| format!(" ({origin})")).unwrap_or_default()
}

fn fitting_games(largest: u64) -> String {
    match largest {
        0 => "not even selfplay.games = 1 fits".into(),
        games => format!("the largest selfplay.games that fits is {games}"),
    }
}
