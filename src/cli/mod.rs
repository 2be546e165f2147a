//! The command line: one small file per subcommand, each with its arguments and an `execute`.
//!
//! In: what was typed. Out: results on stdout, diagnostics and errors on stderr, an exit code: 0 done, 1 failed, 2 not
//! understood. Errors are one line. This module may know every other one; no other one knows it.

pub mod bench_scaling;
pub mod eval;
pub mod export_weights;
pub mod inspect;
pub mod play;
pub mod run;
pub mod verify;

mod layers;
mod source;
mod output;

pub use layers::{Base, ConfigArgs, built_in_config};
pub use output::JsonTarget;

use crate::error::{Error, Result};
use crate::report::progress::Verbosity;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
#[cfg(unix)]
use std::sync::Arc;

/// A fully vectorised AlphaZero engine: N games and N search trees played at once.
#[derive(Debug, Parser)]
#[command(name = "vecaz", version, about, max_term_width = 110, disable_help_subcommand = true)]
#[command(after_help = "`vecaz COMMAND --help` shows a command's options and examples. \
                        VECAZ_LOG sets what is logged to stderr, e.g. VECAZ_LOG=vecaz=debug.")]
pub struct Cli {
    /// How much is said.
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
    /// What is done.
    #[command(subcommand)]
    pub command: Command,
}

/// `--quiet` and `--verbose`.
#[derive(Clone, Copy, Debug, Args)]
pub struct VerbosityArgs {
    /// Say nothing but errors and the figures asked for
    #[arg(long, short, global = true, display_order = 900, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Log what is being done to stderr
    #[arg(long, short, global = true, display_order = 901)]
    pub verbose: bool,
}

impl From<VerbosityArgs> for Verbosity {
    fn from(args: VerbosityArgs) -> Self {
        match (args.quiet, args.verbose) {
            (true, _) => Self::Quiet,
            (_, true) => Self::Verbose,
            _ => Self::Normal,
        }
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Learn a game from zero: self-play, training, evaluation, checkpoints
    Run(run::RunArgs),
    /// Measure self-play against the number of games, leaves and threads
    BenchScaling(bench_scaling::BenchScalingArgs),
    /// Write a run's network as safetensors that other tools load
    ExportWeights(export_weights::ExportWeightsArgs),
    /// Measure strength on solved positions or in a match
    Eval(eval::EvalArgs),
    /// Play against a network in the terminal
    Play(play::PlayArgs),
    /// Replay a run's stored games and self-check vectors
    Verify(verify::VerifyArgs),
    /// Replay actions and show every position: drawn for people, or as JSON lines
    Inspect(inspect::InspectArgs),
}

/// Parses `arguments` (the program's name first), does what they say, and reports a failure in one line on stderr.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    let done =
        start_log(cli.verbosity.into()).and_then(|()| hear_of_size_limits()).and_then(|()| execute(cli));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", one_line(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Makes a file that may not grow any further an error of the write, as a full disk is; else the system ends the program.
///
/// # Errors
/// [`Error::Unsupported`] where the system takes no handler.
#[cfg(unix)]
fn hear_of_size_limits() -> Result<()> {
    let set = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    set.map(drop).map_err(|e| Error::unsupported("a handler for limits of files", e.to_string()))
}

#[cfg(not(unix))]
fn hear_of_size_limits() -> Result<()> {
    Ok(())
}

fn execute(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Run(args) => run::execute(args, cli.verbosity.into()),
        Command::BenchScaling(args) => bench_scaling::execute(args),
        Command::ExportWeights(args) => export_weights::execute(args),
        Command::Eval(args) => eval::execute(args),
        Command::Play(args) => play::execute(args),
        Command::Verify(args) => verify::execute(args),
        Command::Inspect(args) => inspect::execute(args),
    }
}

/// Help and version go to stdout as they are; anything else becomes one line on stderr and exit code 2.
fn not_understood(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print(); // a reader who closes the pipe early has seen enough
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let text = error.render().to_string();
    let facts = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    eprintln!("{}", one_line(&facts.collect::<Vec<_>>().join(" ")));
    ExitCode::from(2)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sends diagnostics to stderr: what `VECAZ_LOG` asks for, else what `verbosity` says.
fn start_log(verbosity: Verbosity) -> Result<()> {
    use tracing_subscriber::EnvFilter;
    let filter = match std::env::var("VECAZ_LOG") {
        Ok(text) => EnvFilter::try_new(&text)
            .map_err(|e| Error::ConfigText { origin: format!("VECAZ_LOG={text}"), what: e.to_string() })?,
        Err(_) => EnvFilter::new(match verbosity {
            Verbosity::Quiet => "error",
            Verbosity::Normal => "warn",
            Verbosity::Verbose => "warn,vecaz=debug",
        }),
    };
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Already set where a caller of the library has its own subscriber.
    let _ = subscriber.without_time().with_target(false).try_init();
    Ok(())
}
