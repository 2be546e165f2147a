//! `vecaz tune`: the fastest settings of self-play on this machine.

use super::output::check_target;
use super::threads::start_threads;
use super::{Base, ConfigArgs};
use crate::backend::AnyGame;
use crate::config::{Config, Layers, MAX_GAMES};
use crate::error::{Error, Result};
use crate::files::write_atomic;
use crate::machine::{default_threads, num_cores};
use crate::registry::Registry;
use crate::report::layout::{Column, Table, sentence_width, width, wrap};
use crate::report::progress::print;
use crate::run::check_trained;
use crate::run::epoch_size::sized;
use crate::run::memory::MemoryPlan;
use crate::scaling::tuning::{Axis, Measurement, Meter, Tuning};
use crate::scaling::{BenchNetwork, check_memory, simulation_rate};
use crate::source::Source;
use crate::stop::Stop;
use crate::words::count;
use clap::{Args, value_parser};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  vecaz tune --game hex
  vecaz tune --config my.toml --minutes 1 --out fast.toml
  vecaz tune --run runs/connect_four-1 --leaves 1,2,4
  vecaz tune --game chess --games 64,128,256 --exhaustive

Tries threads, games at once, passes between two polls and entries of the evaluation cache on this machine, from the
configuration's own values, and measures the best ones again. The configuration with the fastest is written to --out, for
`vecaz run --config FILE`. More games at once play with older weights, so an epoch has at least four samples for each of
them. More than one leaf a pass changes the search (virtual loss), so it is tried only with --leaves. Run it while the
machine does nothing else. Rates of a trained network differ by its hits in the evaluation cache: --run measures one.
Games, leaves and polls change which games a run plays; threads and the cache change no result. Ctrl-C ends the search
after the measurement that is running, and --out gets the fastest so far.";

/// Samples of an epoch for each game at once, at least.
const SAMPLES_PER_GAME: usize = 4;
/// The values tried of N.
const GAMES: [u64; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// The values tried of `selfplay.passes_per_poll`.
const PASSES: [u64; 3] = [16, 64, 256];
/// The values tried of `search.cache_entries`.
const CACHE: [u64; 4] = [0, 1 << 16, 1 << 19, 1 << 22];
/// Seconds of a measurement.
const SECONDS: f64 = 1.0;
/// Seconds between two polls, at most: a run ends, and an epoch too, only then.
const POLL_SECONDS: f64 = 4.0;

/// The arguments of `vecaz tune`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneArgs {
    /// The game and its settings.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Measure the network of this run's folder or weights file, with the run's configuration on the CPU (--set run.device=cuda: on a GPU)
    #[arg(long, value_name = "RUN", conflicts_with = "game")]
    pub run: Option<PathBuf>,
    /// Time limit in minutes
    #[arg(long, value_name = "M", default_value_t = 3.0)]
    pub minutes: f64,
    /// Threads to try [default: 1, 2, 4, ..., all cores and those of the configuration]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value_parser!(u64).range(1..=4096))]
    pub threads: Vec<u64>,
    /// N: games at once to try [default: powers of two from 16 on and that of the configuration]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = value_parser!(u64).range(1..=MAX_GAMES as u64))]
    pub games: Vec<u64>,
    /// L: leaves a game selects per pass to try [default: that of the configuration]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value_parser!(u64).range(1..=4096))]
    pub leaves: Vec<u64>,
    /// Measure every combination, without a time limit; hours on a machine with many cores
    #[arg(long, conflicts_with = "minutes")]
    pub exhaustive: bool,
    /// The configuration with the fastest settings [default: tuned-GAME.toml]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Finds the fastest settings, prints what was measured, and writes the configuration. Once `stop` is requested, it takes those so far.
///
/// # Errors
/// Those of the configuration, of the first measurement, and [`Error::Io`] if the file cannot be written; [`Error::Stopped`] once all is
/// written.
pub fn execute(args: TuneArgs, registry: &Registry, stop: &Stop) -> Result<()> {
    if !(args.minutes > 0.0 && args.minutes <= 1e6) {
        return Err(Error::config("--minutes", args.minutes, "more than 0, at most 1000000"));
    }
    let source = args.run.as_deref().map(|run| Source::open(Some(run), registry, &[])).transpose()?;
    let base = match &source {
        None => Base::BuiltIn,
        Some(source) => Base::Saved(Layers::default().config(&source.config)?),
    };
    let config = args.config.resolve(registry, base, &[])?;
    let game = registry.game_of(&config)?;
    check_trained(game.as_ref())?;
    let out = args.out.clone().unwrap_or_else(|| format!("tuned-{}.toml", game.name()).into());
    let inputs: Vec<&Path> =
        [&args.run, &args.config.config].into_iter().flatten().map(PathBuf::as_path).collect();
    check_target(&out, &inputs)?;
    let axes = axes(&args, &config, game.as_ref())?;
    start_threads(axes[0].values.last().map_or(0, |&threads| threads as usize))?;
    check_memory(&config, game.as_ref())?;
    let network =
        source.as_ref().map_or(BenchNetwork::Configured, |source| BenchNetwork::Trained(&source.file));
    let deadline = (!args.exhaustive).then(|| Instant::now() + Duration::from_secs_f64(60.0 * args.minutes));
    let mut meter = SelfPlayMeter {
        config: &config,
        game: &game,
        network,
        table: Table::fitting(&COLUMNS, width()),
        first: None,
        fastest: 0.0,
        started: Instant::now(),
        measured: 0,
        deadline,
        stop,
    };
    print(&format!("{}\n", meter.table.header(&COLUMNS)))?;
    let start = start(&axes, &config);
    let tuning = Tuning::new(&axes, start.clone(), &mut meter);
    let tried = if args.exhaustive { tuning.exhaust()? } else { tuning.climb()? };
    let best = &tried[0];
    if best.rate() == 0.0 {
        let sized = sized(&with_values(&config, &Tuning::values(&axes, &start)), &game.sizes())?;
        MemoryPlan::new(&sized, game.as_ref())?.check(&sized)?;
        return Err(Error::unsupported("tuning", "no combination could be measured in the time"));
    }
    let is_own = Tuning::values(&axes, &start) == own_values(&config);
    let own = tried.iter().find(|tried| is_own && tried.at == start).map_or(0.0, Measurement::rate);
    let values = Tuning::values(&axes, &best.at);
    let mut found = with_values(&config, &values);
    if found.run.threads == default_threads() {
        found.run.threads = 0;
    }
    write_atomic(&out, file_text(&found, best.rate(), num_cores())?.as_bytes())?;
    print(&wrap(&summary(&axes, &tried, own, &out), sentence_width()))?;
    stop.check()
}

/// The values to try of each setting, in the order of `with_values`.
fn axes(args: &TuneArgs, config: &Config, game: &dyn AnyGame) -> Result<Vec<Axis>> {
    let samples = sized(config, &game.sizes())?.selfplay.samples_per_epoch;
    let max_games = (samples / SAMPLES_PER_GAME).max(config.selfplay.games) as u64;
    let all = [default_threads(), num_cores()].map(|threads| threads as u64);
    let threads = (0..).map(|power| 1 << power).take_while(|&threads| threads < all[1]);
    let games = GAMES.into_iter().filter(|&games| games <= max_games);
    // What was typed, or `others` and the configuration's own.
    let axis = |key, own: u64, typed: &[u64], others: Vec<u64>| {
        let mut values = if typed.is_empty() { others } else { typed.to_vec() };
        values.extend(typed.is_empty().then_some(own));
        values.sort_unstable();
        values.dedup();
        Axis { key, values }
    };
    let [own_threads, own_games, own_leaves, own_passes, own_cache] = own_values(config);
    Ok(vec![
        axis("run.threads", own_threads, &args.threads, threads.chain(all).collect()),
        axis("selfplay.games", own_games, &args.games, games.collect()),
        axis("search.leaves", own_leaves, &args.leaves, Vec::new()),
        axis("selfplay.passes_per_poll", own_passes, &[], PASSES.to_vec()),
        axis("search.cache_entries", own_cache, &[], CACHE.to_vec()),
    ])
}

/// The configuration's own values, in the order of `with_values`.
fn own_values(config: &Config) -> [u64; 5] {
    let threads = if config.run.threads == 0 { default_threads() } else { config.run.threads };
    [
        threads as u64,
        config.selfplay.games as u64,
        u64::from(config.search.leaves),
        u64::from(config.selfplay.passes_per_poll),
        config.search.cache_entries as u64,
    ]
}

/// The indices of the configuration's own values in `axes`, or of the next larger ones where others were typed.
fn start(axes: &[Axis], config: &Config) -> Vec<usize> {
    let index =
        |axis: &Axis, own| axis.values.partition_point(|&value| value < own).min(axis.values.len() - 1);
    axes.iter().zip(own_values(config)).map(|(axis, own)| index(axis, own)).collect()
}

/// The configuration with `values`.
fn with_values(config: &Config, values: &[u64]) -> Config {
    let mut config = config.clone();
    config.run.threads = values[0] as usize;
    config.selfplay.games = values[1] as usize;
    config.search.leaves = values[2] as u32;
    config.selfplay.passes_per_poll = values[3] as u32;
    config.search.cache_entries = values[4] as usize;
    config
}

/// Measures combinations on this machine and prints them.
struct SelfPlayMeter<'a> {
    config: &'a Config,
    game: &'a Arc<dyn AnyGame>,
    network: BenchNetwork<'a>,
    table: Table,
    /// The first rate, to which others are compared.
    first: Option<f64>,
    /// The highest rate so far, in simulations/s.
    fastest: f64,
    /// The begin of the measurements, and their number so far.
    started: Instant,
    measured: u32,
    deadline: Option<Instant>,
    stop: &'a Stop,
}

const COLUMNS: [Column; 7] = [
    Column::new("threads", 7, 0),
    Column::new("N", 6, 0),
    Column::new("L", 4, 0),
    Column::new("passes", 6, 0),
    Column::new("cache", 8, 0),
    Column::new("sims/s", 10, 0),
    Column::new("ratio", 6, 0),
];

impl SelfPlayMeter<'_> {
    /// The rate of `values` in simulations/s, or why they are left out.
    fn rate(&mut self, values: &[u64]) -> Result<std::result::Result<f64, &'static str>> {
        let config = with_values(self.config, values);
        // The plan of a whole run, with replay buffer and training: the file is for one.
        let sized = sized(&config, &self.game.sizes())?;
        match MemoryPlan::new(&sized, self.game.as_ref())?.check(&config) {
            Err(Error::Memory { .. }) => return Ok(Err("memory")),
            checked => checked?,
        }
        let d = self.game.sizes().determinisations(config.search.determinisations);
        let simulations = values[1..4].iter().product::<u64>() as f64 * f64::from(d);
        if self.fastest > 0.0 && simulations > POLL_SECONDS * self.fastest {
            return Ok(Err("long polls"));
        }
        let threads = values[0] as usize;
        let rate = simulation_rate(&config, self.game, self.network, threads, SECONDS)?;
        (self.fastest, self.measured) = (self.fastest.max(rate), self.measured + 1);
        Ok(Ok(rate))
    }
}

impl Meter for SelfPlayMeter<'_> {
    fn measure(&mut self, values: &[u64]) -> Result<Option<f64>> {
        let rate = self.rate(values)?;
        let mut cells: Vec<String> = values.iter().map(u64::to_string).collect();
        cells.extend(match rate {
            Ok(rate) => {
                let first = *self.first.get_or_insert(rate);
                [format!("{rate:.0}"), format!("{:.2}", rate / first)]
            }
            Err(why) => [why.to_string(), "-".to_string()],
        });
        print(&format!("{}\n", self.table.line(&cells)))?;
        Ok(rate.ok())
    }

    fn is_over(&self, more: usize) -> bool {
        let each = self.started.elapsed() / self.measured.max(1);
        let end = Instant::now().checked_add(each.saturating_mul(more as u32));
        self.stop.cause().is_some()
            || self.deadline.is_some_and(|deadline| end.is_none_or(|end| end > deadline))
    }
}

/// What was found, in sentences.
fn summary(axes: &[Axis], tried: &[Measurement], own: f64, out: &Path) -> String {
    let best = &tried[0];
    let values = Tuning::values(axes, &best.at);
    let keys: Vec<String> =
        axes.iter().zip(&values).map(|(axis, value)| format!("{} = {value}", axis.key)).collect();
    let gain = if own > 0.0 {
        format!(", {:.2} times the configuration's own", best.rate() / own)
    } else {
        String::new()
    };
    format!(
        "fastest of {}: {} with {:.0} simulations/s{gain}\nwritten: {}\n  vecaz run --config {}\n",
        count(tried.len(), "combination"),
        keys.join(", "),
        best.rate(),
        out.display(),
        out.display()
    )
}

/// The configuration as a file that says where it comes from.
fn file_text(config: &Config, rate: f64, cores: usize) -> Result<String> {
    Ok(format!(
        "# Tuned by `vecaz tune` on a machine with {}: {rate:.0} simulations/s.\n{}",
        count(cores, "core"),
        config.file_text()?
    ))
}
