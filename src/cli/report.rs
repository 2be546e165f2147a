//! `vecaz report`: the page about a run, or about several runs together.

mod runs; // what the page shows of a run
mod standings; // matches between runs

use super::output::check_target;
use super::threads::start_threads;
use crate::error::{Error, Result};
use crate::files::{check_writable, write_atomic};
use crate::registry::Registry;
use crate::report::REPORT;
use crate::report::comparison::{Comparison, MAX_RUNS};
use crate::report::html::Report;
use crate::report::layout::{sentence_width, wrap};
use crate::report::progress::{Progress, Verbosity, print};
use crate::run::strength::random_outcome_error;
use crate::stop::Stop;
use crate::words::count;
use clap::{Args, value_parser};
use runs::RunData;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  vecaz report runs/hex-1
  vecaz report runs/hex-1 runs/hex-2 --out comparison.html
  vecaz report runs/a runs/b runs/c --games 200

The page of a run has its facts and curves, its ladder (vecaz eval RUN --ladder), games of self-play on a board, all epochs and the
settings. The page of several runs of one game has their curves together, their ladders, the games, and the settings that differ; with
--games also the strengths of their best networks, by a match between each two. A page is one file, which needs no network access.";

/// The page of several runs.
const COMPARISON: &str = "comparison.html";

/// The arguments of `vecaz report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// The folders of runs of one game, at most 8
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Write the page to this file [default: report.html in the folder of a single run, comparison.html for several]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Games of self-play on a board, of each run's last epoch
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(..=100))]
    pub samples: u64,
    /// Play a match of N games between the best networks of every two runs
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub games: Option<u64>,
    /// Simulations per ply of these matches [default: the first run's eval.simulations]
    #[arg(long, value_name = "S", requires = "games", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub sims: Option<u32>,
    /// Random plies at the start of each pair of games, so that the pairs differ
    #[arg(long, value_name = "K", default_value_t = 4, requires = "games", value_parser = value_parser!(u32).range(..=1000))]
    pub opening_plies: u32,
    /// The seed of openings and chance
    #[arg(long, value_name = "X", default_value_t = 1, requires = "games")]
    pub seed: u64,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
}

/// Writes the page.
///
/// # Errors
/// Those of reading the runs; [`Error::Mismatch`] for runs of different games; [`Error::Unsupported`] for too many, [`Error::Config`] for
/// matches of one;
/// [`Error::Stopped`] once `stop` is requested.
pub fn execute(args: ReportArgs, registry: &Registry, verbosity: Verbosity, stop: &Stop) -> Result<()> {
    if args.runs.len() > MAX_RUNS {
        let what = format!("a report of {}", count(args.runs.len(), "run"));
        return Err(Error::unsupported(what, format!("at most {MAX_RUNS} are shown together")));
    }
    if args.games.is_some() && args.runs.len() == 1 {
        return Err(Error::config("--games", "one run", "two runs or more, to play matches between them"));
    }
    let out = target(&args)?;
    let runs = args.runs.iter().map(|dir| RunData::read(dir, registry, args.samples as usize));
    let runs = runs.collect::<Result<Vec<RunData>>>()?;
    let none = || Error::unsupported("a report", "name the folder of a run");
    let (first, others) = runs.split_first().ok_or_else(none)?;
    if let Some(other) = others.iter().find(|run| run.game.name() != first.game.name()) {
        return Err(Error::mismatch(
            format_args!("game of {}", other.dir.display()),
            other.game.name(),
            format_args!("{}, that of {}", first.game.name(), first.dir.display()),
        ));
    }
    let random_outcome_error = random_outcome_error(&first.shown.config, &first.game)?;
    let page = if others.is_empty() {
        let shown = &first.shown;
        let (config, records, games) = (&shown.config, shown.records.as_slice(), shown.games.as_slice());
        let (ladder, tallies) = (shown.ladder.as_ref(), shown.tallies.as_ref());
        Report { config, records, random_outcome_error, ladder, games, tallies }.page()?
    } else {
        let threads = start_threads(args.threads as usize)?;
        let played = args.games.map(|games| {
            standings::play(&args, &runs, (games, threads), registry, stop, &mut Progress::new(verbosity))
        });
        let played = played.transpose()?;
        let shown = runs::with_different_names(runs);
        Comparison { runs: &shown, random_outcome_error, matches: played.as_ref() }.page()?
    };
    write_atomic(&out, page.as_bytes())?;
    print(&wrap(&format!("the report is in {}\n", out.display()), sentence_width()))
}

/// The file of the page.
fn target(args: &ReportArgs) -> Result<PathBuf> {
    let inputs: Vec<&Path> = args.runs.iter().map(PathBuf::as_path).collect();
    match (&args.out, inputs.as_slice()) {
        (Some(out), _) => check_target(out, &inputs).map(|()| out.clone()),
        (None, [run]) => {
            crate::run::folder::expect_run(run)?;
            let out = run.join(REPORT);
            check_writable(&out).map(|()| out)
        }
        (None, _) => check_target(Path::new(COMPARISON), &inputs).map(|()| COMPARISON.into()),
    }
}
