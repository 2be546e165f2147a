//! What self-play with determinised search learns in games of hidden information whose optimum is known: the exact exploitability of the
//! policy head and of the search, over the time of training.
//!
//!     cargo bench --bench poker                                        # Kuhn and Leduc poker, a minute each
//!     cargo bench --bench poker -- leduc_poker --seconds 600 --set search.algorithm=puct
//!
//! Exploitability is in chips a game: what a best response wins on average over both seats, 0 for an equilibrium. The networks are those that
//! the run keeps while it trains; they are measured after it. The search is that of self-play without noise. `drawn` is an action drawn from
//! its policy, `best` the best action. The limit of the former without a network, for many simulations and deals, is 0.0938 in Kuhn poker and
//! 0.6769 in Leduc poker (`known cards` in `tests/oracles/poker.py`).

#[path = "../tests/poker/deck.rs"]
mod deck;
#[path = "../tests/poker/kuhn.rs"]
mod kuhn;
#[path = "../tests/poker/leduc.rs"]
mod leduc;
#[path = "../tests/poker/networks.rs"]
mod networks;
#[allow(dead_code, reason = "the tests compare all figures of a strategy")]
#[path = "../tests/poker/tree.rs"]
mod tree;

use clap::Parser;
use kuhn::Kuhn;
use leduc::Leduc;
use networks::{SearchStrategies, head_strategy, registry, search_strategies, train};
use std::path::Path;
use std::sync::Arc;
use tree::{GameTree, Strategy};
use vecaz::Result;
use vecaz::backend::AnyGame;
use vecaz::config::{Config, Layers};
use vecaz::game::Game;
use vecaz::net::{IoShape, Network, UniformNet};
use vecaz::registry::erase;
use vecaz::report::metrics::{EpochRecord, read_records};
use vecaz::source::{RunNetworks, Source};

/// The settings of training; `--set` overrides them.
const TRAINING: &str = "
[net]
arch = 'mlp'
blocks = 2
channels = 64
[search]
simulations = 32
determinisations = 8
[selfplay]
games = 128
samples_per_epoch = 4000
[train]
batch = 128
replay_ratio = 4.0
[run]
keep_networks = 1
[eval]
every = 0
";

/// Searches of each information state, of which the mean is taken.
const REPEATS: u64 = 16;
/// Networks that are measured: after 1/32 of the time, 1/16, and so on.
const MEASUREMENTS: i32 = 6;

#[derive(Parser)]
struct Args {
    /// Games, of `kuhn_poker` and `leduc_poker`; both if none is named.
    games: Vec<String>,
    /// Seconds of training of each game.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Seed of training.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// CPU threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Settings of training, as for `vecaz run`.
    #[arg(long)]
    set: Vec<String>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A game with its tree and the settings of training.
struct Measured {
    tree: GameTree,
    game: Arc<dyn AnyGame>,
    config: Config,
    threads: usize,
}

impl Measured {
    fn new<G: Game>(game: G, args: &Args) -> Result<Self> {
        let mut layers = Layers::default().text(TRAINING, "benches/poker.rs")?;
        let of_args = [
            format!("game.name={}", G::NAME),
            format!("run.minutes={}", args.seconds / 60.0),
            format!("run.seed={}", args.seed),
        ];
        for assignment in of_args.iter().chain(&args.set) {
            layers = layers.set(assignment)?;
        }
        let (tree, config) = (GameTree::new(&game), layers.resolve()?);
        Ok(Self { tree, game: erase(game), config, threads: args.threads })
    }

    fn exploitability(&self, strategy: &Strategy) -> f64 {
        self.tree.figures(strategy).exploitability()
    }

    /// Prints a line of exploitabilities: of the policy head, if there is one, and of the search with `network`.
    fn print(&self, title: &str, head: Option<&Strategy>, network: &dyn Network) -> Result<()> {
        let SearchStrategies { drawn, best } =
            search_strategies(&self.tree, &self.game, network, &self.config, REPEATS)?;
        let head = head.map_or("-".into(), |head| format!("{:.4}", self.exploitability(head)));
        let [drawn, best] = [&drawn, &best].map(|strategy| self.exploitability(strategy));
        println!("{title:<44} {head:>11} {drawn:>13.4} {best:>12.4}");
        Ok(())
    }

    /// Trains, and prints the figures over time.
    fn measure(&self) -> Result<()> {
        let search = &self.config.search;
        println!(
            "\n{}: {} with {} simulations in each of {} deals, {} threads, seed {}, commit {}",
            self.game.name(),
            search.algorithm,
            search.simulations,
            search.determinisations,
            self.threads,
            self.config.run.seed,
            env!("VECAZ_COMMIT")
        );
        println!("{:<44} {:>11} {:>13} {:>12}", "", "policy head", "search, drawn", "search, best");
        let uniform = self.tree.strategy(|info| vec![1.0 / info.legal.len() as f64; info.legal.len()]);
        let without = UniformNet(IoShape::of(&self.game.sizes()));
        self.print("without a network: uniform play", Some(&uniform), &without)?;
        let folder = tempfile::tempdir().expect("a folder for the run");
        let dir = folder.path().join("run");
        train(self.config.clone(), &dir, self.threads)?;
        let networks = RunNetworks::of(&dir)?;
        for record in self.measured_epochs(&networks, &dir)? {
            let source = Source::from_file(networks.open(record.epoch)?, &registry()?)?;
            let mut network = source.network()?;
            let head = head_strategy(&self.tree, &self.game, network.as_mut())?;
            let EpochRecord { epoch, seconds, updates, .. } = record;
            let title = format!("{seconds:.1} s, epoch {epoch}, {updates} updates");
            self.print(&title, Some(&head), network.as_ref())?;
        }
        Ok(())
    }

    /// The epochs to measure: the last kept one before each of the times.
    fn measured_epochs(&self, networks: &RunNetworks, dir: &Path) -> Result<Vec<EpochRecord>> {
        let epochs = networks.epochs();
        let records = read_records(dir)?.into_iter().filter(|record| epochs.contains(&record.epoch));
        let records: Vec<EpochRecord> = records.collect();
        let end = records.last().map_or(0.0, |record| record.seconds);
        let times = (0..MEASUREMENTS).rev().map(|halvings| end / 2f64.powi(halvings));
        let last_before = |time| records.iter().rfind(|record| record.seconds <= time).cloned();
        let mut found: Vec<EpochRecord> = times.filter_map(last_before).collect();
        found.dedup_by_key(|record| record.epoch);
        Ok(found)
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let is_named = |name: &str| args.games.is_empty() || args.games.iter().any(|game| game == name);
    let games = [
        is_named(Kuhn::NAME).then(|| Measured::new(Kuhn {}, &args)),
        is_named(Leduc::NAME).then(|| Measured::new(Leduc {}, &args)),
    ];
    for game in games.into_iter().flatten() {
        game?.measure()?;
    }
    Ok(())
}
