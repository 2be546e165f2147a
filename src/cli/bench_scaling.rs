//! `vecaz bench-scaling`: throughput of self-play over the number of games, leaves per pass and threads.

use super::threads::start_threads;
use super::{Base, ConfigArgs, JsonTarget};
use crate::config::{Config, Devices, Layers, MAX_GAMES};
use crate::error::{Error, Result};
use crate::registry::Registry;
use crate::report::layout::{Column, Table, sentence_width, width, wrap};
use crate::report::progress::print;
use crate::report::scaling_rows::{ScalingRow, scaling_json};
use crate::run::check_trained;
use crate::scaling::{BenchNetwork, check_memory, measure};
use crate::source::Source;
use clap::{Args, value_parser};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  vecaz bench-scaling --net uniform --games 1,16,128,512 --sims 800
  vecaz bench-scaling --net 2x32,6x64 --threads 1,2 --json rows.json
  vecaz bench-scaling --root-cache 0,5000 --json -
  vecaz bench-scaling --run runs/connect_four --set net.precision=int8
  vecaz bench-scaling --device cuda --net 6x128 --games 1,128,4096

Per row: simulations/s, moves/s, scaling (simulations/s relative to the smallest N), fractions of time in select, forward,
expand, backup and the rest, positions/s of the forward alone, `fwd eff` (evaluated positions/s relative to the forward
alone), depths, idle slots and peak memory. The table has as many of these columns as fit into the terminal (80 characters
in a pipe); --json has all. On a GPU a row also has the bytes copied between GPU and host, within passes and in
total per move, and `busy`: the fraction of time in which the GPU had passes to make. With trees and network on a GPU,
fractions and forward come from some passes with a synchronisation after each stage, and the kernels of others are timed
individually; the JSON lists them. With only the network on a GPU, its kernels and the copies to and from the GPU are timed.";

/// The arguments of `vecaz bench-scaling`. Every combination of the lists gives one row.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchScalingArgs {
    /// The game and its settings.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// N: games at once
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16,128,512")]
    #[arg(value_parser = value_parser!(u64).range(1..=MAX_GAMES as u64))]
    pub games: Vec<u64>,
    /// S: simulations per ply [default: search.simulations of the configuration]
    #[arg(long, value_name = "S")]
    pub sims: Option<u64>,
    /// Networks: `uniform` for the search alone, or BLOCKSxCHANNELS with random weights
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "uniform,2x32")]
    pub net: Vec<NetChoice>,
    /// Measure the network of this run's folder or weights file, with the run's configuration
    #[arg(long, value_name = "RUN", conflicts_with_all = ["net", "game"])]
    pub run: Option<PathBuf>,
    /// L: leaves a game selects per pass
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1")]
    #[arg(value_parser = value_parser!(u64).range(1..=4096))]
    pub leaves: Vec<u64>,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0")]
    #[arg(value_parser = value_parser!(u64).range(..=4096))]
    pub threads: Vec<u64>,
    /// Simulations of the root cache, 0 for none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0")]
    #[arg(value_parser = value_parser!(u64).range(..=10_000_000))]
    pub root_cache: Vec<u64>,
    /// Minimum seconds of measurement per row
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub seconds: f64,
    /// Device of games, trees and network: cpu, cuda, cuda:N, or several GPUs as cuda:0,cuda:1 [default: that of the configuration, with
    /// --run cpu]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// The seed of all random numbers
    #[arg(long, value_name = "X", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Write the rows as a JSON array, `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTarget>,
}

/// A network of the list `--net`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetChoice {
    /// No network: uniform priors, values 0.
    Uniform,
    /// A residual tower with random weights.
    Resnet {
        /// Residual blocks.
        blocks: usize,
        /// Channels.
        channels: usize,
    },
}

/// The network of a row: from the list `--net`, or from a run.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Listed(NetChoice),
    Run(&'a Source),
}

impl Subject<'_> {
    fn network(&self) -> BenchNetwork<'_> {
        match self {
            Self::Listed(NetChoice::Uniform) => BenchNetwork::Uniform,
            Self::Listed(NetChoice::Resnet { .. }) => BenchNetwork::Configured,
            Self::Run(source) => BenchNetwork::Trained(&source.file),
        }
    }
}

impl FromStr for NetChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || format!("{text} is not a network, expected uniform or BLOCKSxCHANNELS such as 2x32");
        if text == "uniform" {
            return Ok(Self::Uniform);
        }
        let (blocks, channels) = text.split_once('x').ok_or_else(wrong)?;
        let number = |part: &str| part.parse::<usize>().ok().filter(|&x| x > 0).ok_or_else(wrong);
        Ok(Self::Resnet { blocks: number(blocks)?, channels: number(channels)? })
    }
}

impl fmt::Display for NetChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Resnet { blocks, channels } => write!(f, "{blocks}x{channels}"),
        }
    }
}

/// Measures every combination of the lists.
///
/// # Errors
/// Those of [`measure`]; [`Error::Io`] if a result cannot be written.
pub fn execute(args: BenchScalingArgs, registry: &Registry) -> Result<()> {
    let max_threads = args.threads.iter().copied().max().unwrap_or(0);
    let cores = start_threads(if args.threads.contains(&0) { 0 } else { max_threads as usize })?;
    let inputs: Vec<&Path> =
        [&args.run, &args.config.config].into_iter().flatten().map(PathBuf::as_path).collect();
    if let Some(target) = &args.json {
        target.check(&inputs)?;
    }
    let quiet = args.json == Some(JsonTarget::Stdout);
    let source = args.run.as_deref().map(|run| Source::open(Some(run), registry, &[])).transpose()?;
    let subjects: Vec<Subject<'_>> = match &source {
        Some(source) => vec![Subject::Run(source)],
        None => args.net.iter().map(|&net| Subject::Listed(net)).collect(),
    };
    check(&args, registry, &subjects)?;
    let mut rows: Vec<ScalingRow> = Vec::new();
    // Each row is compared with the smallest.
    let mut sizes = args.games.clone();
    sizes.sort_unstable();
    let mut printer = if quiet { None } else { Some(Printer::start(width())?) };
    for &subject in &subjects {
        for &threads in &args.threads {
            for &leaves in &args.leaves {
                for &root_cache in &args.root_cache {
                    let threads = if threads == 0 { cores } else { threads as usize };
                    let first = rows.len();
                    for &games in &sizes {
                        let config = configure(&args, registry, subject, leaves, root_cache, games)?;
                        let mut row = measure(
                            &config,
                            &registry.game_of(&config)?,
                            subject.network(),
                            threads,
                            args.seconds,
                        )?;
                        row.commit = env!("VECAZ_COMMIT").to_string();
                        let base = rows.get(first).unwrap_or(&row).simulations_per_second;
                        row.speedup = row.simulations_per_second / base;
                        if let Some(printer) = &mut printer {
                            printer.row(&row)?;
                        }
                        rows.push(row);
                        // Written after every row, so that a later failure does not lose rows.
                        if let Some(target @ JsonTarget::File(_)) = &args.json {
                            target.write(&scaling_json(&rows)?)?;
                        }
                    }
                }
            }
        }
    }
    if let Some(target @ JsonTarget::Stdout) = &args.json {
        target.write(&scaling_json(&rows)?)?;
    }
    Ok(())
}

/// Checks all combinations before the first measurement.
fn check(args: &BenchScalingArgs, registry: &Registry, subjects: &[Subject<'_>]) -> Result<()> {
    for &subject in subjects {
        for &leaves in &args.leaves {
            for &root_cache in &args.root_cache {
                for &games in &args.games {
                    let config = configure(args, registry, subject, leaves, root_cache, games)?;
                    let game = registry.game_of(&config)?;
                    check_trained(game.as_ref())?;
                    check_memory(&config, game.as_ref())?;
                }
            }
        }
    }
    Ok(())
}

fn configure(
    args: &BenchScalingArgs,
    registry: &Registry,
    subject: Subject<'_>,
    leaves: u64,
    root_cache: u64,
    games: u64,
) -> Result<Config> {
    let mut flags = vec![
        ("selfplay.games", Some(games.to_string())),
        ("search.simulations", args.sims.map(|s| s.to_string())),
        ("search.leaves", Some(leaves.to_string())),
        ("search.root_cache", Some(root_cache.to_string())),
        ("run.device", args.device.clone()),
        ("run.seed", Some(args.seed.to_string())),
    ];
    if let Subject::Listed(NetChoice::Resnet { blocks, channels }) = subject {
        flags.push(("net.blocks", Some(blocks.to_string())));
        flags.push(("net.channels", Some(channels.to_string())));
    }
    if !(args.seconds > 0.0 && args.seconds <= 86_400.0) {
        return Err(Error::config("--seconds", args.seconds, "more than 0, at most 86400"));
    }
    let base = match subject {
        Subject::Listed(_) => Base::BuiltIn,
        Subject::Run(source) => Base::Saved(Layers::default().config(&source.config)?),
    };
    let mut config = args.config.resolve(registry, base, &flags)?;
    if let Subject::Listed(NetChoice::Uniform) = subject {
        // There is no network that could use another device, in a number format that only this device may have.
        config.net.device = Some(Devices::default());
    }
    Ok(config)
}

/// The columns of the table, which shows as many as fit.
const COLUMNS: [Column; 19] = [
    Column::new("net", 12, 0),
    Column::new("N", 7, 0),
    Column::new("S", 5, 0),
    Column::new("L", 4, 0),
    Column::new("thr", 4, 0),
    Column::new("sims/s", 10, 0),
    Column::new("moves/s", 8, 0),
    Column::new("scaling", 7, 0),
    Column::new("select", 6, 4),
    Column::new("forward", 7, 1),
    Column::new("expand", 6, 4),
    Column::new("backup", 6, 4),
    Column::new("other", 5, 4),
    Column::new("forward/s", 10, 3),
    Column::new("fwd eff", 7, 3),
    Column::new("depth", 6, 2),
    Column::new("max depth", 9, 5),
    Column::new("idle", 6, 5),
    Column::new("MiB", 8, 5),
];

fn cells(row: &ScalingRow) -> [String; COLUMNS.len()] {
    let share = &row.share;
    [
        row.net.clone(),
        row.games.to_string(),
        row.sims.to_string(),
        row.leaves.to_string(),
        row.threads.to_string(),
        format!("{:.0}", row.simulations_per_second),
        format!("{:.1}", row.moves_per_second),
        format!("{:.2}", row.speedup),
        format!("{:.3}", share.select),
        format!("{:.3}", share.forward),
        format!("{:.3}", share.expand),
        format!("{:.3}", share.backup),
        format!("{:.3}", share.other),
        format!("{:.0}", row.forward_positions_per_second),
        format!("{:.3}", row.forward_fraction),
        format!("{:.2}", row.mean_depth),
        row.max_depth.to_string(),
        format!("{:.2}", row.idle_rows),
        row.peak_memory_mib.map_or_else(|| "-".into(), |mib| format!("{mib:.1}")),
    ]
}

/// Prints a line per row, and a line about the forward before the first row of each network.
struct Printer {
    table: Table,
    /// The last line about a forward.
    kind: String,
}

impl Printer {
    /// Prints the header.
    fn start(width: usize) -> Result<Self> {
        let table = Table::fitting(&COLUMNS, width);
        print(&format!("{}\n", table.header(&COLUMNS)))?;
        Ok(Self { table, kind: String::new() })
    }

    fn row(&mut self, row: &ScalingRow) -> Result<()> {
        print(&self.lines(row))
    }

    fn lines(&mut self, row: &ScalingRow) -> String {
        let cache = match row.root_cache {
            0 => String::new(),
            simulations => format!(", root cache of at most {simulations} simulations a tree"),
        };
        let kind = match row.net.as_str() {
            "uniform" => format!("uniform: no network{cache}\n"),
            net => format!("{net}: forward by {}{cache}\n", row.path),
        };
        let mut text = match kind == self.kind {
            true => String::new(),
            false => wrap(&kind, sentence_width()),
        };
        self.kind = kind;
        text += &format!("{}\n", self.table.line(&cells(row)));
        text + &copied(row)
    }
}

/// A line about the copies between host and device; empty on the CPU.
fn copied(row: &ScalingRow) -> String {
    let percent = |share: Option<f64>, of: &str| {
        share.map(|share| format!("{:.0} % {of}, ", 100.0 * share)).unwrap_or_default()
    };
    if row.device == "cpu" && row.transfers.is_none() {
        return String::new();
    }
    let (busy, transfers) = (percent(row.device_busy, "busy"), percent(row.transfers, "in copies"));
    let (inside, a_move) = (row.copied_in_passes, row.copied_per_move);
    format!("  {busy}{transfers}{inside} B copied in passes, {a_move:.0} B per move\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchScalingArgs,
    }

    #[test]
    fn lists_are_read() {
        let line =
            "b --games 1,16 --net uniform,6x64 --leaves 1,4,8 --threads 1,2 --root-cache 0,5000 --json -";
        let args = Line::try_parse_from(line.split(' ')).expect("valid").args;
        assert_eq!(args.games, [1, 16]);
        assert_eq!(args.net, [NetChoice::Uniform, NetChoice::Resnet { blocks: 6, channels: 64 }]);
        assert_eq!((args.leaves, args.threads), (vec![1, 4, 8], vec![1, 2]));
        assert_eq!((args.root_cache, args.json), (vec![0, 5000], Some(JsonTarget::Stdout)));
    }

    #[test]
    fn invalid_lists_are_refused() {
        for line in ["b --games 0", "b --games 1,x", "b --net 2y3", "b --net 0x32", "b --leaves 0"] {
            assert!(Line::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn number_formats_of_a_gpu_are_no_obstacle_to_a_search_without_a_network() {
        let line = "b --device cuda --set net.precision=f16 --set train.precision=f16";
        let args = Line::try_parse_from(line.split(' ')).expect("valid").args;
        for (net, is_cpu) in args.net.iter().zip([true, false]) {
            let config = configure(&args, &Registry::built_in(), Subject::Listed(*net), 1, 0, 16);
            let config = config.expect("valid");
            let devices = [config.network_devices(), config.run.device];
            assert_eq!(devices.map(|devices| devices.is_cpu()), [is_cpu, false], "{net}");
        }
    }

    #[test]
    fn rows_fit_into_80_columns_and_a_wide_terminal_has_all_columns() {
        let row = ScalingRow {
            net: "20x256@1".into(),
            games: 1_048_576,
            sims: 800,
            leaves: 16,
            threads: 128,
            simulations_per_second: 281_582_000.4,
            moves_per_second: 351_977.5,
            speedup: 1234.5,
            forward_positions_per_second: 28_752_642.0,
            path: "amx-int8".into(),
            device: "cpu".into(),
            ..ScalingRow::default()
        };
        for (width, columns) in [(80, 9), (88, 10), (109, 12), (168, 16), (169, 19)] {
            let mut printer = Printer { table: Table::fitting(&COLUMNS, width), kind: String::new() };
            let text = printer.lines(&row);
            let [kind, line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
            assert_eq!(kind, "20x256@1: forward by amx-int8");
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert_eq!(line.split_whitespace().count(), columns, "{width}: {line}");
            assert_eq!(printer.lines(&row).lines().count(), 1, "the line about the forward is printed once");
            let gpu = ScalingRow { device: "cuda".into(), device_busy: Some(0.93), ..row.clone() };
            assert!(printer.lines(&gpu).ends_with("\n  93 % busy, 0 B copied in passes, 0 B per move\n"));
        }
    }

    #[test]
    fn network_names_round_trip() {
        for text in ["uniform", "2x32"] {
            assert_eq!(text.parse::<NetChoice>().map(|net| net.to_string()), Ok(text.to_string()));
        }
    }
}
