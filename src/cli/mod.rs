//! The command line: one file per subcommand, with its arguments and an `execute`.
//!
//! Results go to stdout, diagnostics and errors to stderr. Exit codes: 0 success, 1 failure, 2 invalid usage, 128 plus the number
//! of the signal that ended the program. That signal is SIGPIPE if the reader of stdout has closed it. An error is one line. This
//! module may use all others; no other module uses it.

pub mod bench_scaling;
pub mod completions;
pub mod config;
pub mod engine;
pub mod eval;
pub mod export_weights;
pub mod games;
pub mod import_weights;
pub mod inspect;
pub mod new;
pub mod plan;
pub mod play;
pub mod report;
pub mod run;
#[cfg(feature = "http")]
pub mod serve;
#[cfg(not(feature = "http"))]
#[path = "no_http.rs"]
pub mod serve;
pub mod verify;
#[cfg(feature = "cluster")]
pub mod top;
#[cfg(feature = "cluster")]
pub mod work;
pub mod tune;

mod address_space;
mod color;
mod layers;
mod near_path;
#[cfg(feature = "cluster")]
mod learner;
#[cfg(not(feature = "cluster"))]
mod no_cluster;
mod resumed;
mod opponents;
mod output;
mod records;
mod signals;
mod threads;

#[cfg(not(feature = "cluster"))]
use no_cluster::learner;
#[cfg(not(feature = "cluster"))]
pub use no_cluster::{top, work};

pub use layers::{Base, ConfigArgs};
pub use output::JsonTarget;

use crate::config::nearest;
use crate::error::{Error, Result, StopCause};
use crate::files::NotUtf8;
use crate::registry::Registry;
use crate::report::layout::{join_paragraphs, sentence_width};
use crate::report::progress::Verbosity;
use crate::report::terminal::{Charset, take_escape_codes};
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use near_path::near_path;
use signals::OnSignal;
use std::ffi::OsString;
use std::io::ErrorKind::{BrokenPipe, NotFound};
use std::io::Write;
use std::process::ExitCode;
#[cfg(unix)]
use std::sync::Arc;

/// A fully vectorised AlphaZero engine: N games and N search trees played at once.
#[derive(Debug, Parser)]
#[command(name = "vecaz", version, about, term_width = sentence_width(), disable_help_subcommand = true)]
#[command(after_help = "`vecaz COMMAND --help` shows a command's options and examples. \
                        VECAZ_LOG sets the log filter of stderr, e.g. VECAZ_LOG=vecaz=debug.")]
pub struct Cli {
    /// The amount of output.
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
    /// Colours of help, bars and diagnostics [default: auto, which follows NO_COLOR, CLICOLOR_FORCE, CLICOLOR and the
    /// terminal]
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        display_order = 902,
        default_value_t,
        hide_default_value = true
    )]
    pub color: ColorChoice,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// `--quiet` and `--verbose`.
#[derive(Clone, Copy, Debug, Args)]
pub struct VerbosityArgs {
    /// Print errors and results only
    #[arg(long, short, global = true, display_order = 900, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Log diagnostics to stderr: what is read, made and written, with times
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
    /// Play games of a run whose learner is another process
    Work(work::WorkArgs),
    /// Watch a run with workers
    Top(top::TopArgs),
    /// Measure self-play throughput over the number of games, leaves and threads
    BenchScaling(bench_scaling::BenchScalingArgs),
    /// Forecast memory, games a day, hours and cost of a run
    Plan(plan::PlanArgs),
    /// Find the fastest settings of self-play on this machine
    Tune(tune::TuneArgs),
    /// Write a run's network as safetensors or ONNX for other tools
    ExportWeights(export_weights::ExportWeightsArgs),
    /// Make a network file of weights that another program trained
    ImportWeights(import_weights::ImportWeightsArgs),
    /// Measure strength on solved positions or in a match
    Eval(eval::EvalArgs),
    /// Write a page about a run, or about several together: curves, strengths, games, settings
    Report(report::ReportArgs),
    /// Play against a network in the terminal
    Play(play::PlayArgs),
    /// Play, analyse and review games in the browser, and watch runs
    Serve(serve::ServeArgs),
    /// Serve a network to board programs, by the protocols of their games
    Engine(engine::EngineArgs),
    /// Check a run's stored games, networks and latest checkpoint
    Verify(verify::VerifyArgs),
    /// Replay actions and show every position, as boards or JSON lines
    Inspect(inspect::InspectArgs),
    /// Write a Cargo project with a game of your own, which trains and plays at once
    New(new::NewArgs),
    /// List the games, with their settings and built-in configurations
    Games(games::GamesArgs),
    /// List the configuration keys, with their meaning, valid values and defaults
    Config(config::ConfigKeysArgs),
    /// Print completions for a shell, or man pages
    Completions(completions::CompletionsArgs),
}

/// The program with the built-in games.
pub fn program() -> ExitCode {
    program_with(Ok(Registry::built_in()))
}

/// The whole program for the games of `registry`, or its error: [`main`] with the arguments of the process, within its limits of the
/// address space.
pub fn program_with(registry: Result<Registry>) -> ExitCode {
    match address_space::start_within_limits().and(registry) {
        Ok(registry) => main(registry, std::env::args_os()),
        Err(error) => report_error(&error),
    }
}

/// Parses `arguments` (the program's name first), runs the subcommand, and reports an error in one line on stderr.
pub fn main(registry: Registry, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = command(&registry).color(color::typed_choice(&arguments)).try_get_matches_from(arguments);
    let cli = match parsed.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => cli,
        Err(error) => return usage_error(&error, &registry),
    };
    take_escape_codes();
    color::set_bar_colors(cli.color);
    let done = start_log(cli.verbosity.into(), cli.color)
        .and_then(|verbosity| handle_size_limits().and_then(|()| execute(cli, &registry, verbosity)));
    done.map_or_else(|error| report_error(&error), |()| ExitCode::SUCCESS)
}

/// The commands. Their examples are joined to paragraphs, which clap breaks to the width of the terminal.
fn command(registry: &Registry) -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        let examples = command.get_after_help().map(|text| join_paragraphs(&text.to_string()));
        let command = command.after_help(examples.unwrap_or_default());
        command.mut_args(|arg| match (arg.get_id().as_str(), arg.get_help()) {
            ("game", Some(help)) if arg.get_long().is_some() => {
                let help = format!("{help} [default: {}]", registry.default_name());
                arg.help(help)
            }
            _ => arg,
        })
    })
}

/// Writes the error as one line to stderr, except for a signal or a closed stdout, whose cause the user knows. Returns the exit code.
fn report_error(error: &Error) -> ExitCode {
    /// The number of SIGPIPE, which ends programs that do not handle it.
    const SIGPIPE: u8 = 13;
    match error {
        Error::Io { source, .. } if source.kind() == BrokenPipe => {
            return ExitCode::from(128 + SIGPIPE);
        }
        Error::Stopped(StopCause::Signal(signal)) => return ExitCode::from(128 + *signal as u8),
        _ => {}
    }
    let near = match error {
        Error::Io { doing: "reading", path, source } if source.kind() == NotFound => near_path(path),
        _ => None,
    };
    let near = near.map(|path| format!("; the nearest is {}", path.display())).unwrap_or_default();
    write_line(&format!("error: {}", one_line(&(error.to_string() + &near))));
    match error {
        Error::Config { .. }
        | Error::ConfigText { .. }
        | Error::ConfigKey { .. }
        | Error::UnknownGame { .. } => ExitCode::from(2),
        Error::Io { source, .. } if NotUtf8::is_cause_of(source) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    }
}

/// Writes a line to stderr, in the characters of the locale. A failed write, to a closed or full stderr, is ignored.
fn write_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", Charset::of_locale().show(text));
}

/// Handles SIGXFSZ, so that a write beyond the file size limit fails with an error instead of killing the program.
///
/// # Errors
/// [`Error::Unsupported`] if the handler cannot be installed.
#[cfg(unix)]
fn handle_size_limits() -> Result<()> {
    let set = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    set.map(drop).map_err(|e| Error::unsupported("installing a handler of SIGXFSZ", e.to_string()))
}

#[cfg(not(unix))]
fn handle_size_limits() -> Result<()> {
    Ok(())
}

fn execute(cli: Cli, registry: &Registry, verbosity: Verbosity) -> Result<()> {
    tracing::info!("vecaz {} of commit {}", env!("CARGO_PKG_VERSION"), env!("VECAZ_COMMIT"));
    let stop = signals::listen(match cli.command {
        Command::Run(_) | Command::Eval(_) | Command::Report(_) | Command::Serve(_) | Command::Plan(_) => {
            OnSignal::Stop
        }
        Command::Work(_) | Command::Tune(_) => OnSignal::Finish,
        _ => OnSignal::Exit,
    })?;
    match cli.command {
        Command::Run(args) => run::execute(args, registry, verbosity, &stop),
        Command::Work(args) => work::execute(args, registry, verbosity, &stop),
        Command::Top(args) => top::execute(args),
        Command::BenchScaling(args) => bench_scaling::execute(args, registry),
        Command::Plan(args) => plan::execute(args, registry, &stop),
        Command::Tune(args) => tune::execute(args, registry, &stop),
        Command::ExportWeights(args) => threads::start_threads(0).and_then(|_| export_weights::execute(args)),
        Command::ImportWeights(args) => {
            threads::start_threads(0).and_then(|_| import_weights::execute(args, registry))
        }
        Command::Eval(args) => eval::execute(args, registry, verbosity, &stop),
        Command::Report(args) => report::execute(args, registry, verbosity, &stop),
        Command::Play(args) => play::execute(args, registry),
        Command::Serve(args) => serve::execute(args, registry, &stop),
        Command::Engine(args) => engine::execute(args, registry),
        Command::Verify(args) => threads::start_threads(0).and_then(|_| verify::execute(args, registry)),
        Command::Inspect(args) => inspect::execute(args, registry),
        Command::New(args) => new::execute(&args, registry),
        Command::Games(args) => games::execute(&args, registry),
        Command::Config(args) => config::execute(&args, registry),
        Command::Completions(args) => completions::execute(&args, command(registry), registry),
    }
}

/// Prints help and version to stdout. Any other parse error is one line on stderr, with exit code 2.
fn usage_error(error: &clap::Error, registry: &Registry) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let printed = error.print().map_err(|e| Error::io("writing", "stdout", e));
        return printed.map_or_else(|error| report_error(&error), |()| ExitCode::SUCCESS);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    write_line(&describe_usage(error, registry));
    ExitCode::from(2)
}

/// A parse error in one sentence: the typed text and the expected one.
fn describe_usage(error: &clap::Error, registry: &Registry) -> String {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    if error.kind() == ErrorKind::ValueValidation {
        let (argument, got) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue));
        let what = std::error::Error::source(error).map(|e| e.to_string()).unwrap_or_default();
        return one_line(&format!("error: {argument}: got {got}, {}", expected_value(&what)));
    }
    let text = error.render().to_string();
    let facts = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // clap's other tip, to put `--` before a value, is wrong if no argument takes such a value.
    let (tips, facts): (Vec<&str>, Vec<&str>) =
        facts.map(str::trim).filter(|line| !line.is_empty()).partition(|line| line.starts_with("tip: "));
    let mut sentence = one_line(&facts.join(" "));
    if error.kind() == ErrorKind::InvalidSubcommand {
        let command = Cli::command();
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        sentence += &format!("; the commands are {}", names.join(", "));
    }
    let typed = context(match error.kind() {
        ErrorKind::InvalidValue => ContextKind::InvalidValue,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => ContextKind::InvalidArg,
    });
    // clap suggests names with some letters in common, as foo and solo have.
    let similar = tips.iter().filter_map(|tip| Some(tip.split_once(" exists: ")?.1.trim_matches('\'')));
    for name in similar.filter(|name| nearest(&typed, [*name]).is_some()) {
        sentence += &format!("; the nearest is {name}");
    }
    if error.kind() == ErrorKind::UnknownArgument {
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
        sentence += &option_of_name(&context(ContextKind::InvalidArg), usage, registry).unwrap_or_default();
    }
    sentence
}

/// "; --game hex names a game" if `typed` is a game or a configuration and the command of `usage` has the option for it.
fn option_of_name(typed: &str, usage: &str, registry: &Registry) -> Option<String> {
    let program = Cli::command();
    let command = program.find_subcommand(usage.split(' ').nth(1)?)?;
    let has = |option| command.get_opts().any(|arg| arg.get_long() == Some(option));
    if has("game") && registry.names().contains(&typed) {
        return Some(format!("; --game {typed} names a game"));
    }
    let is_config = has("config") && registry.configs().iter().any(|config| config.name == typed);
    is_config.then(|| format!("; --config {typed} names a configuration"))
}

/// The expected values of an argument, from the parser's message about a value that it refused.
fn expected_value(what: &str) -> String {
    if let Some((_, range)) = what.split_once(" is not in ") {
        let (first, last) = range.split_once("..").unwrap_or((range, ""));
        // The end of `a..b` is excluded, that of `a..=b` is not.
        let is_included = last.starts_with('=');
        let last = last.trim_start_matches('=').parse::<u64>().unwrap_or(u64::MAX);
        return match if is_included { last } else { last - 1 } {
            last if last < i64::MAX as u64 => format!("expected a whole number from {first} to {last}"),
            _ => format!("expected a whole number, {first} or more"),
        };
    }
    let is_whole = what.contains("digit") || what.contains("integer") || what.contains("number too");
    match (is_whole, what.contains("float")) {
        (true, _) => "expected a whole number, 0 or more".into(),
        (_, true) => "expected a number".into(),
        _ => what.to_string(),
    }
}

/// `text` on one line. Characters that control the terminal or the writing direction are escaped.
fn one_line(text: &str) -> String {
    let escaped = |c: char| match c {
        c if c.is_control() => c.escape_unicode().to_string(),
        '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    let words = text.split_whitespace().map(|word| word.chars().map(escaped).collect::<String>());
    words.collect::<Vec<_>>().join(" ")
}

/// Writes diagnostics to stderr, filtered by `VECAZ_LOG`, or by `verbosity` without that variable. Returns the verbosity, which
/// `VECAZ_LOG` raises from normal to verbose.
fn start_log(verbosity: Verbosity, color: ColorChoice) -> Result<Verbosity> {
    use tracing_subscriber::EnvFilter;
    let (filter, verbosity) = match (std::env::var("VECAZ_LOG"), verbosity) {
        (Ok(text), _) => {
            let filter = EnvFilter::try_new(&text).map_err(|e| Error::ConfigText {
                origin: format!("VECAZ_LOG={text}"),
                what: e.to_string(),
            })?;
            (filter, if verbosity == Verbosity::Quiet { verbosity } else { Verbosity::Verbose })
        }
        (Err(_), Verbosity::Quiet) => (EnvFilter::new("error"), verbosity),
        (Err(_), Verbosity::Normal) => (EnvFilter::new("warn"), verbosity),
        (Err(_), Verbosity::Verbose) => (EnvFilter::new("warn,vecaz=debug"), verbosity),
    };
    // Errors of writing to stderr are not logged: the library would write them to stderr, and panic if that fails too.
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(color::has_colors(color, &std::io::stderr()))
        .log_internal_errors(false);
    // Fails if a caller of the library has installed a subscriber, which then stays.
    let _ = subscriber.without_time().with_target(false).try_init();
    Ok(verbosity)
}
