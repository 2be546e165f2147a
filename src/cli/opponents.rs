//! Other programs as opponents of `vecaz eval --against`.

use super::address_space::variables_to_withhold;
use crate::batch::ErasedRules;
use crate::batch::rollouts::Player;
use crate::error::{Error, Result};
use crate::eval::arena::Contestant;
use crate::eval::program::Program;
use crate::protocol::gtp::GtpOpponent;
use crate::protocol::strength::Strength;
use crate::protocol::uci::UciOpponent;
use clap::{Args, value_parser};
use std::time::Duration;

/// The time limit of a reply, in seconds, where none is given.
const REPLY_TIMEOUT: f64 = 60.0;

/// How an external program plays.
#[derive(Clone, Debug, Args)]
pub struct OpponentArgs {
    /// Time limit of an external program's reply, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["positions", "ladder"])]
    pub reply_timeout: Option<f64>,
    /// Seconds per move of a program of `uci:` or `gtp:` (whole seconds with gtp:) [default: 0.1 with uci:, the program's own
    /// with gtp:]
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["positions", "ladder"])]
    pub opponent_seconds: Option<f64>,
    /// Nodes per move of a program of `uci:`
    #[arg(long, value_name = "N", conflicts_with_all = ["positions", "ladder"], value_parser = value_parser!(u64).range(1..))]
    pub opponent_nodes: Option<u64>,
    /// Set an option of a program of `uci:`, e.g. 'Skill Level=3'; may be repeated
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["positions", "ladder"])]
    pub opponent_option: Vec<String>,
}

/// True if `opponent` names a program.
pub fn is_program(opponent: &str) -> bool {
    ["exec:", "gtp:", "uci:"].iter().any(|kind| opponent.starts_with(kind))
}

impl OpponentArgs {
    /// Refuses a time limit unless `opponent` is a program, and time, nodes and options unless it can be told about them.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn check_opponent(&self, opponent: &str) -> Result<()> {
        if self.reply_timeout.is_some() && !is_program(opponent) {
            let expected = "exec:COMMAND, gtp:COMMAND or uci:COMMAND with --reply-timeout";
            return Err(Error::config("--against", opponent, expected));
        }
        let is_listener = ["gtp:", "uci:"].iter().any(|kind| opponent.starts_with(kind));
        let has_settings = self.opponent_seconds.is_some()
            || self.opponent_nodes.is_some()
            || !self.opponent_option.is_empty();
        if is_listener || !has_settings {
            return Ok(());
        }
        let expected =
            "gtp:COMMAND or uci:COMMAND with --opponent-seconds, --opponent-nodes and --opponent-option";
        Err(Error::config("--against", opponent, expected))
    }

    /// The time limit of a reply.
    fn timeout(&self) -> Result<Duration> {
        seconds("--reply-timeout", self.reply_timeout.unwrap_or(REPLY_TIMEOUT))
    }
}

/// The program of `exec:`, a process for each thread.
///
/// # Errors
/// Those of [`Contestant::external`]; [`Error::Config`] for an invalid time.
pub fn external(args: &OpponentArgs, command: &str, threads: usize) -> Result<Contestant> {
    let timeout = args.timeout()?;
    Contestant::external(command, timeout, threads, &variables_to_withhold())
}

/// The program of `gtp:` or `uci:`, a process for each thread.
///
/// # Errors
/// [`Error::Config`] for an invalid time or an option without a value; those of the programs.
pub fn by_protocol(
    args: &OpponentArgs,
    game: &dyn ErasedRules,
    opponent: &str,
    threads: usize,
) -> Result<Contestant> {
    let timeout = args.timeout()?;
    let option = |text: &String| match text.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
        None => Err(Error::config("--opponent-option", text, "NAME=VALUE")),
    };
    let strength = Strength {
        time: args.opponent_seconds.map(|time| seconds("--opponent-seconds", time)).transpose()?,
        nodes: args.opponent_nodes,
        options: args.opponent_option.iter().map(option).collect::<Result<_>>()?,
    };
    let withheld = variables_to_withhold();
    Contestant::plain(threads, || -> Result<Box<dyn Player>> {
        Ok(match opponent.split_once(':') {
            Some(("gtp", _)) if strength.nodes.is_some() || !strength.options.is_empty() => {
                let expected = "uci:COMMAND with --opponent-nodes and --opponent-option";
                return Err(Error::config("--against", opponent, expected));
            }
            Some(("gtp", command)) => {
                let program = Program::start(command, timeout, &withheld)?;
                Box::new(GtpOpponent::new(program, game, &strength)?)
            }
            _ => {
                let command = opponent.trim_start_matches("uci:");
                let program = Program::start(command, timeout, &withheld)?;
                Box::new(UciOpponent::new(program, game, &strength)?)
            }
        })
    })
}

/// A time of more than 0 and at most a day.
pub fn seconds(key: &str, seconds: f64) -> Result<Duration> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|_| seconds > 0.0 && seconds <= 86_400.0);
    time.ok_or_else(|| Error::config(key, seconds, "more than 0, at most 86400"))
}
