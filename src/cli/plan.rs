//! `vecaz plan`: memory, games and samples a day, hours and cost of a run, from a short one on this machine.

use super::threads::start_threads;
use super::{Base, ConfigArgs};
use crate::config::{Config, EvalConfig};
use crate::error::{Error, Result};
use crate::files::read_whole;
use crate::registry::Registry;
use crate::report::layout::{sentence_width, wrap};
use crate::report::metrics::{EpochRecord, read_records};
use crate::report::plan::{RunSpeed, duration, rounded};
use crate::report::progress::{Progress, Verbosity, print};
use crate::report::scaling_rows::ScalingRow;
use crate::run::epoch_size::{first_update, samples_of, sized};
use crate::run::factory::DefaultFactory;
use crate::run::memory::MemoryPlan;
use crate::run::{Run, games_name};
use crate::source::saved_layers;
use crate::stop::Stop;
use crate::words::count;
use clap::Args;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  vecaz plan --config hex13
  vecaz plan --game go --total-games 5000000 --price 0.50
  vecaz plan --run runs/connect_four-1
  vecaz plan --game chess --seconds 120 --rates other-machine.json

Makes a run of this configuration for some seconds in a temporary folder (or takes the last epochs of --run) and says what
it needs and what a day of it gives: memory, samples, games, stored bytes, and the hours and the cost to a number of games.
The network of so short a run is nearly random; games of a trained one may be longer or shorter, which --run accounts for.
The short run measures no strength: measurements count with the maximum time that eval.share allows.
--rates takes rows of `vecaz bench-scaling --json` of other machines: self-play alone, since they have no training.";

/// The arguments of `vecaz plan`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// The game and its settings.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Take the rates of this run, which was made on this machine
    #[arg(long, value_name = "RUN", conflicts_with_all = ["game", "config", "set", "seconds"])]
    pub run: Option<PathBuf>,
    /// Seconds of the measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub seconds: f64,
    /// The number of games to forecast
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub total_games: u64,
    /// The price of an hour of this machine, in any currency
    #[arg(long, value_name = "PRICE")]
    pub price: Option<f64>,
    /// Rows of `vecaz bench-scaling --json`, of this or of other machines
    #[arg(long, value_name = "FILE")]
    pub rates: Option<PathBuf>,
}

/// What a run was measured to do.
struct Measured {
    rates: RunSpeed,
    /// Bytes of an epoch's stored games.
    epoch_bytes: Option<f64>,
    how: String,
    /// What the rates do not count, as lines.
    left_out: String,
}

/// Measures and prints the forecast.
///
/// # Errors
/// Those of the configuration and of the run, and [`Error::Io`] and [`Error::Format`] for files that are no runs or rows.
pub fn execute(args: PlanArgs, registry: &Registry, stop: &Stop) -> Result<()> {
    if !(args.seconds >= 1.0 && args.seconds <= 86_400.0) {
        return Err(Error::config("--seconds", args.seconds, "from 1 to 86400"));
    }
    if let Some(price) = args.price.filter(|price| !(price.is_finite() && *price >= 0.0)) {
        return Err(Error::config("--price", price, "0 or more"));
    }
    let others = args.rates.as_deref().map(read_rows).transpose()?;
    let (config, measured) = match &args.run {
        Some(dir) => {
            let records = read_records(dir)?;
            let config = saved_layers(dir)?.resolve()?;
            start_threads(config.run.threads)?;
            let rates = RunSpeed::of(&records).ok_or_else(|| Error::format(dir, "it has no epochs yet"))?;
            let how = format!("the last {:.0} s of {}", rates.seconds, dir.display());
            let epoch_bytes = epoch_bytes(dir, &records);
            (config, Measured { rates, epoch_bytes, how, left_out: String::new() })
        }
        None => {
            let config = args.config.resolve(registry, Base::BuiltIn, &[])?;
            let measured = measure(&config, args.seconds, registry, stop)?;
            (config, measured)
        }
    };
    let game = registry.game_of(&config)?;
    let config = sized(&config, &game.sizes())?;
    let memory = MemoryPlan::new(&config, game.as_ref())?;
    let mut text = format!("{}: {}\n", game.name(), measured.how);
    let _ = writeln!(text, "memory: {} MiB: {}", memory.total().div_ceil(1 << 20), memory.describe());
    text += &forecast(&measured, samples_of(&config.selfplay, u64::MAX), &args);
    for row in others.iter().flatten() {
        text += &other_machine(row, &args);
    }
    print(&wrap(&text, sentence_width()))
}

/// A run of the configuration `planned` for `seconds` in a temporary folder.
fn measure(planned: &Config, seconds: f64, registry: &Registry, stop: &Stop) -> Result<Measured> {
    let mut config = planned.clone();
    (config.run.epochs, config.run.minutes) = (0, seconds / 60.0);
    // The first and the last measurement of strength are made whatever they cost, which would dominate so short a run.
    config.eval.every = 0;
    let threads = start_threads(config.run.threads)?;
    let folder = tempfile::tempdir().map_err(|e| Error::io("creating", "a temporary folder", e))?;
    let dir = folder.path().join("run");
    let factory = Box::new(DefaultFactory(registry.clone()));
    let mut run = Run::start_on(factory, config, &dir, threads)?;
    run.run_epochs(&mut Progress::new(Verbosity::Quiet), stop)?;
    let records = read_records(&dir)?;
    let rates = RunSpeed::of(&records).ok_or_else(|| {
        Error::unsupported("a forecast", format!("no epoch ended in {seconds} s; set more --seconds"))
    })?;
    let how =
        format!("a run of {seconds:.0} s on {}, with a nearly random network", count(threads, "thread"));
    let left_out = left_out(planned, &records);
    let rates = with_measurements(&rates, &planned.eval);
    Ok(Measured { rates, epoch_bytes: epoch_bytes(&dir, &records), how, left_out })
}

/// The `rates` of a run without measurements of strength, as they are with those of `eval`.
fn with_measurements(rates: &RunSpeed, eval: &EvalConfig) -> RunSpeed {
    let share = if eval.every == 0 { 0.0 } else { eval.share };
    // A measurement takes at most `share` of the time since the one before.
    let longer = 1.0 + share;
    let [play, train, _] = rates.shares;
    RunSpeed {
        games: rates.games.map(|games| games / longer),
        samples: rates.samples / longer,
        shares: [play, train, share].map(|part| part / longer),
        ..rates.clone()
    }
}

/// What the rates of a short run of `config` with these `records` do not count, as lines.
fn left_out(config: &Config, records: &[EpochRecord]) -> String {
    let mut text = String::new();
    if config.eval.every > 0 && config.eval.share == 0.0 {
        text += "evaluation is not counted, since eval.share = 0 does not limit its time\n";
    }
    let end = records.last().map_or(0.0, |record| record.seconds);
    // The epochs of which `RunSpeed::of` takes the rates.
    let mut counted = records.iter().filter(|record| record.seconds > end / 2.0);
    let Some(needed) = first_update(config) else { return text };
    if counted.any(|record| record.losses.is_some()) {
        return text;
    }
    let samples: u64 = records.iter().map(|record| record.samples).sum();
    let why = match samples < needed {
        true => format!(
            "{} played, and the first update needs {needed} (train.min_samples, train.replay_ratio)",
            count(samples, "sample")
        ),
        false => "no update was made in the later half of the time".into(),
    };
    let _ = writeln!(text, "training is not counted: {why}; set more --seconds");
    text
}

/// Mean bytes of the stored games of the later half of the run's epochs that were played in full: an epoch stores some of its games. None
/// without such an epoch.
fn epoch_bytes(dir: &Path, records: &[EpochRecord]) -> Option<f64> {
    let full: Vec<&EpochRecord> = records.iter().filter(|record| !record.cut).collect();
    let files = full[full.len() / 2..].iter().map(|record| dir.join(games_name(record.epoch)));
    let sizes: Vec<f64> = files.filter_map(|file| Some(file.metadata().ok()?.len() as f64)).collect();
    (!sizes.is_empty()).then(|| sizes.iter().sum::<f64>() / sizes.len() as f64)
}

/// The rows of a file of `vecaz bench-scaling --json`.
fn read_rows(path: &Path) -> Result<Vec<ScalingRow>> {
    let bytes = read_whole(path).map_err(|e| Error::io("reading", path, e))?;
    let rows: Vec<ScalingRow> = serde_json::from_slice(&bytes).map_err(|e| {
        Error::format(path, format!("expected the rows of `vecaz bench-scaling --json`: {e}"))
    })?;
    match rows.is_empty() {
        true => Err(Error::format(path, "it has no rows")),
        false => Ok(rows),
    }
}

/// The forecast of this machine for epochs of so many samples.
fn forecast(measured: &Measured, epoch_samples: u64, args: &PlanArgs) -> String {
    let rates = &measured.rates;
    let [play, train, eval] = rates.shares.map(|share| 100.0 * share);
    // The records of a run have the time of its measurements; for a short run there is only the limit.
    let bound = if args.run.is_none() && eval > 0.0 { "up to " } else { "" };
    let mut text =
        format!("time: {play:.0} % self-play, {train:.0} % training, {bound}{eval:.0} % evaluation\n");
    text += &measured.left_out;
    let _ = writeln!(text, "self-play: {} simulations/s", rounded(rates.simulations));
    let Some((games, length)) = rates.games_a_day().zip(rates.game_length) else {
        let _ = writeln!(text, "a day: {} samples", rounded(rates.samples_a_day()));
        return text + "no game has ended, so there is no forecast of games; set more --seconds\n";
    };
    let _ = writeln!(
        text,
        "a day: {} samples, {} games of {length:.1} plies{}",
        rounded(rates.samples_a_day()),
        rounded(games),
        measured.epoch_bytes.map_or(String::new(), |bytes| {
            let epochs = rates.samples_a_day() / epoch_samples as f64;
            format!(", {:.2} GiB of stored games", bytes * epochs / f64::from(1 << 30))
        })
    );
    text + &to_total(rates.hours(args.total_games as f64), args)
}

/// The line on the time to all games and its price.
fn to_total(hours: Option<f64>, args: &PlanArgs) -> String {
    let Some(hours) = hours else { return String::new() };
    let price = args.price.map_or(String::new(), |price| format!(", which cost {:.2}", price * hours));
    format!("{}: {}{price}\n", count(args.total_games, "game"), duration(hours))
}

/// What a row of another machine says: self-play alone.
fn other_machine(row: &ScalingRow, args: &PlanArgs) -> String {
    let what = format!(
        "{} on {}, network {}, N = {}, S = {}, {}: {} simulations/s",
        row.game,
        row.device,
        row.net,
        row.games,
        row.sims,
        count(row.threads, "thread"),
        rounded(row.simulations_per_second)
    );
    match row.games_per_second {
        Some(rate) if rate > 0.0 => {
            let hours = args.total_games as f64 / rate / 3600.0;
            format!("{what}; self-play alone of {}", to_total(Some(hours), args))
        }
        _ => format!("{what}; no game ended in its measurement\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::metrics::EpochLosses;

    #[test]
    fn measurements_take_a_run_their_share_of_the_time() {
        let without = RunSpeed {
            seconds: 8.0,
            games: Some(2.5),
            samples: 125.0,
            simulations: 1000.0,
            game_length: Some(60.0),
            shares: [0.5, 0.25, 0.001],
        };
        let with =
            |every, share| with_measurements(&without, &EvalConfig { every, share, ..EvalConfig::default() });
        let with_share = with(2, 0.25);
        assert_eq!(
            (with_share.games, with_share.samples, with_share.shares),
            (Some(2.0), 100.0, [0.4, 0.2, 0.2])
        );
        assert_eq!((with_share.simulations, with_share.game_length), (1000.0, Some(60.0)));
        assert_eq!(with(1, 1.0).games, Some(1.25), "half of the time at most");
        for (every, share) in [(0, 0.25), (1, 0.0)] {
            assert_eq!(with(every, share), RunSpeed { shares: [0.5, 0.25, 0.0], ..without.clone() });
        }
    }

    /// The first epochs are short, and an epoch that was cut has stored nothing.
    #[test]
    fn stored_games_are_those_of_whole_late_epochs() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("games")).expect("a folder");
        let record = |epoch, cut| EpochRecord { epoch, cut, ..EpochRecord::default() };
        let records = [record(1, false), record(2, false), record(3, false), record(4, true)];
        assert_eq!(epoch_bytes(folder.path(), &records[3..]), None);
        for (epoch, bytes) in [(1, 1), (2, 100), (3, 300)] {
            let file = folder.path().join(games_name(epoch));
            std::fs::write(file, vec![0; bytes]).expect("written");
        }
        assert_eq!(epoch_bytes(folder.path(), &records), Some(200.0));
    }

    #[test]
    fn what_a_short_run_does_not_show_is_said() {
        let mut config = Config::default();
        let epoch =
            |seconds, samples, losses| EpochRecord { seconds, samples, losses, ..EpochRecord::default() };
        let trained = |seconds| epoch(seconds, 1000, Some(EpochLosses::default()));
        assert_eq!(left_out(&config, &[trained(3.0), trained(9.0)]), "");
        (config.train.min_samples, config.eval.share) = (500, 0.0);
        assert_eq!(
            left_out(&config, &[epoch(1.0, 20, None), epoch(2.0, 1, None)]),
            "evaluation is not counted, since eval.share = 0 does not limit its time\n\
             training is not counted: 21 samples played, and the first update needs 500 (train.min_samples, \
             train.replay_ratio); set more --seconds\n"
        );
        config.eval.every = 0;
        assert_eq!(
            left_out(&config, &[trained(3.0), epoch(9.0, 10, None)]),
            "training is not counted: no update was made in the later half of the time; set more --seconds\n"
        );
        config.train.replay_ratio = 0.0;
        assert_eq!(left_out(&config, &[epoch(9.0, 10, None)]), "");
    }
}
