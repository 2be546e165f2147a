//! `vecaz run`: self-play, training, evaluation, checkpoints.

use super::learner::learner_factory;
use super::resumed::check_same_run;
use super::threads::start_threads;
use super::{Base, ConfigArgs};
use crate::config::{Algorithm, Config, Layers, TrainingMode};
use crate::error::{Error, Result};
use crate::model::NetSpec;
use crate::registry::Registry;
use crate::report::exporter::Exporter;
use crate::report::progress::{Progress, Verbosity};
use crate::root_cache;
use crate::run::epoch_size::{first_update, first_update_terms, samples_between, samples_of, sized};
use crate::run::factory::{ComponentFactory, DefaultFactory};
use crate::run::network::select_executor;
use crate::run::{Run, limits};
use crate::source::{network_file, saved_layers};
use crate::stop::Stop;
use crate::words::count;
use clap::{Args, value_parser};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  vecaz run                    Connect Four, in about 10 minutes on 2 cores
  vecaz run --config quick     the same in a minute
  vecaz run --game tic_tac_toe --minutes 2 --out runs/ttt
  vecaz run --games 256 --sims 128 --set net.channels=64
  vecaz run --resume runs/ttt --minutes 10
  vecaz run --start runs/connect_four-1 --sims 200
  vecaz run --game hex --cluster redis://10.0.0.1/hex-9

A resumed run ends with the same bytes as an uninterrupted one. Ctrl-C stops a run within a second and keeps the finished
epochs, and so does the end of --minutes; --resume continues from there.";

/// The arguments of `vecaz run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// The game and its settings.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Games played at once (selfplay.games)
    #[arg(long, value_name = "N")]
    pub games: Option<u64>,
    /// New simulations per ply (search.simulations)
    #[arg(long, value_name = "S")]
    pub sims: Option<u64>,
    /// Stop after this number of epochs in total (run.epochs)
    #[arg(long, value_name = "E", value_parser = value_parser!(u64).range(1..))]
    pub epochs: Option<u64>,
    /// Stop after this number of minutes in total (run.minutes)
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    pub minutes: Option<f64>,
    /// The folder of the run, new or empty [default: runs/GAME-N with the lowest free N]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Resume the run in this folder from its last checkpoint, with its configuration
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Start from the network in this run's folder (its best one), checkpoint or weights file instead of random weights (run.start)
    #[arg(long, value_name = "NETWORK", conflicts_with = "resume")]
    pub start: Option<PathBuf>,
    /// Threads, 0 for all cores (run.threads)
    #[arg(long, value_name = "T")]
    pub threads: Option<u64>,
    /// Device of games, trees and network: cpu, cuda, cuda:N, or several GPUs as cuda:0,cuda:1 (run.device)
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Also take games from workers on other machines, which connect to the same URL: redis://HOST:PORT/RUN, rediss:// for TLS,
    /// USER@HOST for a user of the server
    #[arg(long, value_name = "URL")]
    pub cluster: Option<String>,
    /// With --cluster: 1 to play games in this process too, 0 to have all games played by workers
    #[arg(long, value_name = "0|1", requires = "cluster", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u64).range(..=1))]
    pub play: u64,
    /// With --cluster: a file whose first line is the server's password [default: the environment's VECAZ_REDIS_PASSWORD]
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub password_file: Option<PathBuf>,
    /// Serve metrics for Prometheus: a port of this machine alone, or an address with a port such as 0.0.0.0:9464
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<String>,
    /// The seed of all random numbers (run.seed)
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    #[arg(value_parser = value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
}

impl RunArgs {
    /// The layers of `base` with the flags applied.
    ///
    /// # Errors
    /// Those of [`ConfigArgs::layers`]; [`Error::Config`] for minutes that are not positive.
    pub fn layers(&self, registry: &Registry, base: Base) -> Result<Layers> {
        if let Some(minutes) = self.minutes
            && !(minutes > 0.0 && minutes <= 1e7)
        {
            return Err(Error::config("--minutes", minutes, "more than 0, at most 10000000"));
        }
        let flags = [
            ("selfplay.games", self.games.map(|x| x.to_string())),
            ("search.simulations", self.sims.map(|x| x.to_string())),
            ("run.epochs", self.epochs.map(|x| x.to_string())),
            // `{:?}` writes whole numbers as floats, which is the key's type.
            ("run.minutes", self.minutes.map(|x| format!("{x:?}"))),
            ("run.start", self.start.as_deref().map(weights_path).transpose()?),
            ("run.threads", self.threads.map(|x| x.to_string())),
            ("run.device", self.device.clone()),
            ("run.seed", self.seed.map(|x| x.to_string())),
        ];
        self.config.layers(registry, base, &flags)
    }

    /// The layers of the run: over the saved ones if it is resumed, otherwise over the built-in ones.
    ///
    /// # Errors
    /// Those of [`RunArgs::layers`] and [`saved_layers`].
    pub fn run_layers(&self, registry: &Registry) -> Result<Layers> {
        let base = match &self.resume {
            Some(dir) => Base::Saved(saved_layers(dir)?),
            None => Base::BuiltIn,
        };
        self.layers(registry, base)
    }

    /// The factory of the run's components: for this machine alone, or with workers on others.
    fn factory(&self, registry: &Registry) -> Result<Box<dyn ComponentFactory>> {
        match &self.cluster {
            Some(url) => {
                let (file, resume) = (self.password_file.as_deref(), self.resume.as_deref());
                learner_factory(registry, url, self.play, file, resume)
            }
            None => Ok(Box::new(DefaultFactory(registry.clone()))),
        }
    }
}

/// Starts or resumes a run; ends at its limit or when `stop` is requested.
///
/// # Errors
/// Those of [`start`] and [`Run::run_epochs`].
pub fn execute(args: RunArgs, registry: &Registry, verbosity: Verbosity, stop: &Stop) -> Result<()> {
    let mut progress = Progress::new(verbosity);
    let exporter = args.metrics.as_deref().map(Exporter::serve).transpose()?;
    let mut run = start(&args, registry, &progress, &start_threads)?;
    if let Some(exporter) = exporter {
        run.export_metrics(exporter);
    }
    run.run_epochs(&mut progress, stop)
}

/// Starts or resumes the run of `args`, and describes it. `start_threads` makes the threads of `run.threads` ready, 0 for all cores, and
/// returns their number.
///
/// # Errors
/// Those of [`RunArgs::layers`], [`saved_layers`], a configuration of another run, the factory, `start_threads`, [`Run::start`] and [`Run::resume`].
pub fn start(
    args: &RunArgs,
    registry: &Registry,
    progress: &Progress,
    start_threads: &dyn Fn(usize) -> Result<usize>,
) -> Result<Run> {
    let saved = args.resume.as_deref().map(saved_layers).transpose()?;
    let layers = args.layers(registry, saved.clone().map_or(Base::BuiltIn, Base::Saved))?;
    let config = layers.clone().resolve()?;
    if let Some(saved) = saved {
        check_same_run(registry, &saved.unchecked()?, &config).map_err(|e| layers.locate(e))?;
    }
    let factory = args.factory(registry)?;
    let (dir, _numbered) = match args.resume.as_ref().or(args.out.as_ref()) {
        Some(dir) => (dir.clone(), None),
        None => {
            let numbered = NumberedFolder::claim(config.game_name())?;
            (numbered.0.clone(), Some(numbered))
        }
    };
    let begin = |config: Config| {
        let threads = start_threads(config.run.threads)?;
        let sized = sized(&config, &factory.registry().game_of(&config)?.sizes())?;
        let notes = describe(&sized, &dir, threads, factory.as_ref())?;
        let run = match args.resume {
            Some(_) => Run::resume_on(factory, config, &dir, threads),
            None => Run::start_on(factory, config, &dir, threads),
        }?;
        // What is refused has no description.
        let of_run = describe_epochs(&sized, Played::of(&run)).into_iter().chain(run.strength_meaning());
        notes.into_iter().chain(of_run).try_for_each(|note| progress.note(&note))?;
        Ok(run)
    };
    begin(config).map_err(|e| layers.locate(e))
}

/// The absolute path of the weights file in `path`, as the value of `run.start`.
fn weights_path(path: &Path) -> Result<String> {
    let file = network_file(path)?.path;
    let file = std::path::absolute(&file).map_err(|e| Error::io("finding", &file, e))?;
    let text = file.to_str().map(String::from);
    text.ok_or_else(|| Error::config("--start", file.display(), "a path in UTF-8"))
}

/// A folder `runs/GAME-N`, created for one run. It is removed on drop if it is empty.
struct NumberedFolder(PathBuf);

impl NumberedFolder {
    /// Creates the folder with the lowest free N, so that no other process gets the same.
    fn claim(game: &str) -> Result<Self> {
        let runs = Path::new("runs");
        let mut number = 1_u64;
        loop {
            let path = runs.join(format!("{game}-{number}"));
            fs::create_dir_all(runs).map_err(|e| Error::io("creating", runs, e))?;
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                // Another process has removed the empty folder `runs` in between.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io("creating", &path, e)),
            }
        }
    }
}

impl Drop for NumberedFolder {
    fn drop(&mut self) {
        // Both fail for a folder that is not empty.
        let _ = fs::remove_dir(&self.0).and_then(|()| fs::remove_dir("runs"));
    }
}

/// The sentences that describe a run of `config`.
fn describe(
    config: &Config,
    dir: &Path,
    threads: usize,
    factory: &dyn ComponentFactory,
) -> Result<Vec<String>> {
    let game = factory.registry().game_of(config)?;
    let memory = factory.memory(config, game.as_ref())?;
    let (net, search) = (&config.net, &config.search);
    let mut notes = vec![format!(
        "{}: {} at once, {} ({:?}), network {:?} {}x{}, {}, seed {}, {}, folder {}",
        game.name(),
        count(config.selfplay.games, "game"),
        match search.algorithm {
            Algorithm::Puct | Algorithm::Gumbel => count(search.simulations, "simulation"),
            Algorithm::Afterstate => "decisions on whole turns".into(),
        },
        search.algorithm,
        net.arch,
        net.blocks,
        net.channels,
        count(threads, "thread"),
        config.run.seed,
        describe_end(config),
        dir.display()
    )];
    let (_, executor) =
        select_executor(config, &NetSpec::with_targets(net, &game.sizes(), &game.targets())?.model()?)?;
    notes.push(format!("network executed by {executor}; trained in {}", config.train.precision));
    if !config.run.start.is_empty() {
        notes.push(format!("starts from the network {}", config.run.start));
    }
    notes.push(match root_cache::disabled_reason(config, &game.sizes()) {
        None => {
            "root cache: new games are clones of a tree if several begin in the same position".to_string()
        }
        Some(reason) => format!("no root cache: {reason}"),
    });
    notes.push(format!("memory: {}", memory.describe()));
    Ok(notes)
}

/// What a run has when it is described.
#[derive(Clone, Copy, Default)]
struct Played {
    epochs: u64,
    samples: u64,
    updates: u64,
}

impl Played {
    fn of(run: &Run) -> Self {
        Self { epochs: run.epoch(), samples: run.samples(), updates: run.updates() }
    }
}

/// The sentences about the epochs after those that were `played`, of a [`sized`] configuration.
fn describe_epochs(config: &Config, played: Played) -> Vec<String> {
    let finished = played.epochs;
    let samples_of = |epoch| samples_of(&config.selfplay, epoch);
    let epochs = config.run.epochs;
    let (next, full) = (samples_of(finished + 1), samples_of(u64::MAX));
    let which = if finished == 0 { "first" } else { "next" };
    let mut notes = vec![match next == full {
        true => format!("an epoch has {full} samples"),
        false => format!("the {which} epoch has {next} samples, each later one twice as many, up to {full}"),
    }];
    notes.extend(describe_first_update(config, played));
    let (longest, capacity) =
        (samples_of(if epochs == 0 { u64::MAX } else { epochs }), config.replay.capacity);
    if longest > capacity as u64 {
        notes.push(format!(
            "of an epoch's samples the last {capacity} are trained on, which replay.capacity holds; no update sees the others"
        ));
    }
    notes
}

/// The sentence about a run that may end before its first update.
fn describe_first_update(config: &Config, played: Played) -> Option<String> {
    let epochs = config.run.epochs;
    let Some(needed) = first_update(config) else {
        let which = if played.updates == 0 { "no update is ever made" } else { "no further update is made" };
        return Some(format!("{which}, since train.replay_ratio is 0"));
    };
    // The last epoch whose samples an update can see.
    let last = match config.train.mode {
        TrainingMode::InTurns => epochs,
        TrainingMode::Overlapped => epochs.saturating_sub(1),
    };
    let seen = played.samples.saturating_add(samples_between(&config.selfplay, played.epochs, last));
    (epochs > 0 && played.updates == 0 && seen < needed).then(|| {
        format!(
            "{} may end before the first update, which needs {needed} samples{}",
            count(epochs, "epoch"),
            first_update_terms(config)
        )
    })
}

/// When the run will end.
fn describe_end(config: &Config) -> String {
    let minutes = limits::minutes(config).map(|minutes| format!("at most {}", count(minutes, "minute")));
    let epochs = match config.run.epochs {
        0 => None,
        epochs => Some(count(epochs, "epoch")),
    };
    epochs.into_iter().chain(minutes).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Devices;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RunArgs,
    }

    fn parse(line: &str) -> RunArgs {
        Line::try_parse_from(line.split_whitespace()).expect("valid").args
    }

    #[test]
    fn flags_reach_their_keys() {
        let line = "run --game tic_tac_toe --games 5 --sims 6 --epochs 7 --minutes 8 --threads 3 --device cpu --seed 9";
        let config = parse(line)
            .layers(&Registry::built_in(), Base::BuiltIn)
            .and_then(Layers::resolve)
            .expect("valid");
        assert_eq!(config.game_name(), "tic_tac_toe");
        assert_eq!((config.selfplay.games, config.search.simulations), (5, 6));
        assert_eq!((config.run.epochs, config.run.minutes, config.run.threads), (7, 8.0, 3));
        assert_eq!((config.run.device, config.run.seed), (Devices::default(), 9));
    }

    #[test]
    fn values_out_of_range_name_their_key() {
        for (line, part) in [
            ("run --games 0", "selfplay.games: got 0"),
            ("run --sims 0", "search.simulations: got 0"),
            ("run --minutes nan", "--minutes: got NaN, expected more than 0"),
            ("run --minutes 0", "--minutes: got 0, expected more than 0"),
            ("run --minutes -1.5", "--minutes: got -1.5, expected more than 0"),
            ("run --minutes inf", "--minutes: got inf, expected more than 0"),
            ("run --set run.minutes=-1.0", "run.minutes (--set): got -1, expected a number from 0 to"),
            (
                "run --device gpu",
                "config key run.device: gpu is not a device, expected cpu, cuda, cuda:N, or metal",
            ),
            ("run --set net.device=tpu", "config key net.device (--set): tpu is not a device"),
            ("run --games 5 --set selfplay.games=0", "selfplay.games (--set): got 0"),
            ("run --game chequers_of_old --config none.toml", "none.toml"),
        ] {
            let message = parse(line)
                .layers(&Registry::built_in(), Base::BuiltIn)
                .and_then(Layers::resolve)
                .expect_err(line)
                .to_string();
            assert!(message.contains(part), "{line}: {message}");
        }
    }

    #[test]
    fn the_length_of_the_next_epoch_is_said() {
        let mut config = Config::default();
        (config.selfplay.samples_per_epoch, config.selfplay.first_epoch) = (2000, 250);
        for (finished, expected) in [
            (0, "the first epoch has 250 samples, each later one twice as many, up to 2000"),
            (2, "the next epoch has 1000 samples, each later one twice as many, up to 2000"),
            (3, "an epoch has 2000 samples"),
        ] {
            let played = Played { epochs: finished, ..Played::default() };
            assert_eq!(describe_epochs(&config, played)[0], expected);
        }
    }

    #[test]
    fn epochs_that_may_end_before_the_first_update_are_noted() {
        let mut config = Config::default();
        (config.selfplay.samples_per_epoch, config.train.batch, config.run.epochs) = (600, 512, 1);
        let mut notes = |replay_ratio: f64| {
            config.train.replay_ratio = replay_ratio;
            describe_epochs(&config, Played::default()).split_off(1)
        };
        assert_eq!(notes(1.0), [""; 0]);
        assert_eq!(
            notes(0.5),
            [
                "1 epoch may end before the first update, which needs 1024 samples (train.min_samples, train.replay_ratio)"
            ]
        );
        assert_eq!(notes(0.0), ["no update is ever made, since train.replay_ratio is 0"]);
    }

    #[test]
    fn overlapped_training_does_not_see_the_last_epoch() {
        let mut config = Config::default();
        (config.selfplay.samples_per_epoch, config.train.batch, config.train.replay_ratio) = (600, 512, 1.0);
        config.train.mode = TrainingMode::Overlapped;
        let mut notes = |epochs| {
            config.run.epochs = epochs;
            describe_epochs(&config, Played::default()).split_off(1)
        };
        let expected = "1 epoch may end before the first update, which needs 512 samples of earlier epochs (train.min_samples, \
                        train.replay_ratio, train.mode)";
        assert_eq!(notes(1), [expected]);
        assert_eq!(notes(2), [""; 0]);
    }

    #[test]
    fn what_a_resumed_run_has_counts_towards_its_first_update() {
        let mut config = Config::default();
        (config.selfplay.samples_per_epoch, config.train.min_samples, config.run.epochs) = (600, 5000, 4);
        let notes =
            |samples, updates| describe_epochs(&config, Played { epochs: 3, samples, updates }).split_off(1);
        assert!(notes(4399, 0)[0].starts_with("4 epochs may end before the first update, which needs 5000"));
        assert_eq!(notes(4400, 0), [""; 0]);
        assert_eq!(notes(2000, 7), [""; 0]);
    }

    #[test]
    fn samples_that_no_update_can_see_are_noted() {
        let mut config = Config::default();
        (config.selfplay.samples_per_epoch, config.replay.capacity) = (2001, 2000);
        let notes = |config: &Config| describe_epochs(config, Played::default()).split_off(1);
        assert!(notes(&config)[0].starts_with("of an epoch's samples the last 2000 are trained on"));
        config.selfplay.samples_per_epoch = 2000;
        assert_eq!(notes(&config), [""; 0]);
    }

    #[test]
    fn invalid_flags_are_refused() {
        for line in [
            "run --games many",
            "run --out a --resume b",
            "run --epochs 0",
            "run --seed 18446744073709551615",
        ] {
            assert!(Line::try_parse_from(line.split_whitespace()).is_err(), "{line}");
        }
    }
}
