//! The whole program: the commands, and what they have in common.

use super::errors::{report_error, usage_error};
use super::log::start_log;
use super::signals::{self, OnSignal};
use super::{
    address_space, bench_scaling, color, completions, config, engine, eval, export_weights, games,
    import_weights, inspect, new, plan, play, report, run, serve, threads, top, tune, verify, work,
};
use crate::error::{Error, Result};
use crate::registry::Registry;
use crate::report::layout::{join_paragraphs, sentence_width};
use crate::report::progress::Verbosity;
use crate::report::terminal::take_escape_codes;
use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
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
    /// Log diagnostics to stderr, such as how long the parts of an epoch take
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
    /// Check a run's stored games, networks and checkpoints
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
        Err(error) => return usage_error(&error, &Cli::command(), &registry),
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
        // An imported file may name its game.
        let has_default = command.get_name() != "import-weights";
        command.mut_args(|arg| match (arg.get_id().as_str(), arg.get_help()) {
            ("game", Some(help)) if has_default && arg.get_long().is_some() => {
                let help = format!("{help} [default: {}]", registry.default_name());
                arg.help(help)
            }
            _ => arg,
        })
    })
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
        Command::Run(_) | Command::Eval(_) | Command::Report(_) | Command::Serve(_) => OnSignal::Stop,
        Command::Work(_) | Command::Tune(_) | Command::Plan(_) => OnSignal::Finish,
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
