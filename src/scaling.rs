//! Throughput of self-play and its breakdown by stage: one row of `vecaz bench-scaling`.

pub mod tuning;

use crate::backend::AnyGame;
use crate::backend::RootCache;
use crate::backend::pass_parts::PassParts;
use crate::backend::plan::BackendPlan;
use crate::config::{Config, FirstGame};
use crate::device::kernel_times::{COPY_IN, COPY_OUT, KernelTime};
use crate::error::Result;
use crate::game::{History, Turn};
use crate::net::{IoShape, NetSpec, Network, UniformNet};
use crate::pass::PassMetrics;
use crate::play::FinishedGame;
use crate::report::scaling_rows::{ScalingRow, Share};
use crate::root_cache::{self, CachePlan};
use crate::run::epoch_size::sized;
use crate::run::memory::{MemoryPlan, peak_bytes};
use crate::run::network::make_network;
use crate::selfplay::{SelfPlay, backend_plan, check_nodes, num_threads};
use crate::stop::Stop;
use crate::weights::NetFile;
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Instant;

/// The network of a measurement.
#[derive(Clone, Copy)]
pub enum BenchNetwork<'a> {
    /// Uniform priors, values 0: the search alone.
    Uniform,
    /// The configuration's network with initial weights.
    Configured,
    /// A trained network.
    Trained(&'a NetFile),
}

/// Maximum number of passes whose stages are timed separately, on a backend that runs a pass as one unit (a CUDA graph).
const PROFILED_PASSES: u32 = 32;

/// Seconds of self-play before the measurement, to fill trees and caches.
const WARM_UP_SECONDS: f64 = 0.5;

/// Refuses a configuration whose trees do not fit into memory, or hold fewer nodes than a ply needs.
///
/// # Errors
/// [`crate::Error::Memory`], or those of the game's, the network's and the search's settings.
pub fn check_memory(config: &Config, game: &dyn AnyGame) -> Result<()> {
    check_nodes(config, &game.sizes())?;
    NetSpec::new(&config.net, &game.sizes()).model().map(drop)?;
    // A measurement has no replay buffer, no training and no evaluation.
    MemoryPlan { replay: 0, training: 0, evaluation: 0, ..MemoryPlan::new(config, game)? }.check(config)
}

/// Measures self-play with `config` for at least `seconds`.
///
/// # Errors
/// Those of the game's, the network's and the root cache's settings.
pub fn measure(
    config: &Config,
    game: &Arc<dyn AnyGame>,
    network: BenchNetwork<'_>,
    threads: usize,
    seconds: f64,
) -> Result<ScalingRow> {
    let config = &measurement_config(config, game.as_ref())?;
    let (network, net, path) = network.make(config, game.as_ref())?;
    let rows = config.selfplay.games;
    let plan = backend_plan(config, &game.sizes(), rows);
    let (max_threads, threads) = (threads, num_threads(config, threads));
    let (mut selfplay, root_cache) = start_selfplay(config, game, network.as_ref(), threads)?;
    let mut lengths = Lengths::default();
    let wall = lengths.play_warm(&mut selfplay, game.as_ref(), seconds)?;
    let metrics = selfplay.take_metrics();
    let offloaded = selfplay.timed_poll()?;
    let leaves = plan.params.leaves as usize;
    let d = game.sizes().determinisations(config.search.determinisations) as usize;
    let rows_per_pass = rows * d * leaves;
    let parts = match selfplay.profile_last_passes(PROFILED_PASSES)? {
        Some(parts) => Breakdown::of_passes(parts, rows_per_pass),
        None => {
            let forward = forward_rate(network.as_ref(), rows_per_pass.div_ceil(threads), threads)?;
            let seconds = [metrics.select, metrics.forward, metrics.expand, metrics.backup];
            Breakdown::of_threads(forward, seconds.map(|s| s / wall / threads as f64), offloaded)
        }
    };
    Ok(ScalingRow {
        game: game.name().to_string(),
        games: rows,
        sims: config.search.simulations,
        leaves: leaves as u32,
        nodes: plan.nodes as u32,
        threads,
        max_threads,
        device: config.run.device.to_string(),
        net,
        path,
        root_cache,
        plies_per_game: lengths.mean(),
        games_per_second: lengths.mean().map(|plies| metrics.plies as f64 / wall / plies),
        speedup: 1.0,
        peak_memory_mib: peak_bytes().map(|bytes| bytes as f64 / f64::from(1 << 20)),
        seed: config.run.seed,
        ..rates(&metrics, wall, rows, parts)
    })
}

/// Simulations per second of self-play with `config`, measured for at least `seconds`.
///
/// # Errors
/// As [`measure`].
pub fn simulation_rate(
    config: &Config,
    game: &Arc<dyn AnyGame>,
    network: BenchNetwork<'_>,
    threads: usize,
    seconds: f64,
) -> Result<f64> {
    let config = &measurement_config(config, game.as_ref())?;
    let (network, ..) = network.make(config, game.as_ref())?;
    let (mut selfplay, _) = start_selfplay(config, game, network.as_ref(), num_threads(config, threads))?;
    let wall = Lengths::default().play_warm(&mut selfplay, game.as_ref(), seconds)?;
    Ok(selfplay.take_metrics().simulations as f64 / wall)
}

/// The configuration of a measurement: games within random ones would be another mix of positions at first.
fn measurement_config(config: &Config, game: &dyn AnyGame) -> Result<Config> {
    let mut config = sized(config, &game.sizes())?;
    config.selfplay.first_game = FirstGame::Start;
    Ok(config)
}

/// Self-play that has begun its first plies, and the maximum number of simulations of a tree of the root cache, 0 without one.
fn start_selfplay(
    config: &Config,
    game: &Arc<dyn AnyGame>,
    network: &dyn Network,
    threads: usize,
) -> Result<(SelfPlay, u32)> {
    let plan = backend_plan(config, &game.sizes(), config.selfplay.games);
    let mut selfplay = SelfPlay::new(game, config, network, Vec::new(), threads)?;
    let root_cache = begin_with_root_cache(&mut selfplay, config, game.as_ref(), network, plan)?;
    Ok((selfplay, root_cache))
}

impl BenchNetwork<'_> {
    /// The network, its name in the row, and the name of its executor.
    fn make(self, config: &Config, game: &dyn AnyGame) -> Result<(Box<dyn Network>, String, String)> {
        match self {
            Self::Uniform => {
                let network = UniformNet(IoShape::of(&game.sizes()));
                Ok((Box::new(network), "uniform".into(), "none".into()))
            }
            Self::Configured => {
                let spec = NetSpec::new(&config.net, &game.sizes());
                let weights = spec.model()?.initial_weights(config.run.seed);
                let (net, path) = make_network(config, game, &spec, &weights)?;
                Ok((net, format!("{}x{}", config.net.blocks, config.net.channels), path))
            }
            Self::Trained(file) => {
                let spec = file.spec_for(game)?;
                let (net, path) = make_network(config, game, &spec, &file.weights)?;
                Ok((net, format!("{}x{}@{}", spec.blocks, spec.channels, file.header.updates), path))
            }
        }
    }
}

/// Begins the plies of `selfplay` with the root cache of the network, as a run does. Returns the maximum number of simulations of
/// its trees, 0 if there are none.
fn begin_with_root_cache(
    selfplay: &mut SelfPlay,
    config: &Config,
    game: &dyn AnyGame,
    network: &dyn Network,
    plan: BackendPlan,
) -> Result<u32> {
    selfplay.replace_network(network)?;
    let games = root_cache::expected_games(config, &game.sizes(), 0, 0);
    let (cache, simulations) = match CachePlan::for_run(config, plan, &game.sizes(), games) {
        None => (RootCache::default(), 0),
        Some(plan) => {
            let cache = root_cache::build(game, network, plan, selfplay.evaluations(), &Stop::default())?;
            let simulations = if cache.trees().is_empty() { 0 } else { plan.simulations };
            (cache, simulations)
        }
    };
    selfplay.begin_plies(cache)?;
    Ok(simulations)
}

/// The part of a row that follows from the `metrics` of `wall` seconds of self-play in `rows` games and the breakdown of a pass.
fn rates(metrics: &PassMetrics, wall: f64, rows: usize, parts: Breakdown) -> ScalingRow {
    let (simulations, shares) = (metrics.simulations as f64, parts.shares);
    ScalingRow {
        simulations_per_second: simulations / wall,
        moves_per_second: metrics.plies as f64 / wall,
        positions_per_batch: metrics.evaluations as f64 / metrics.passes.max(1) as f64,
        positions_per_second: metrics.evaluations as f64 / wall,
        share: Share {
            select: shares[0],
            forward: shares[1],
            expand: shares[2],
            backup: shares[3],
            other: 1.0 - shares.iter().sum::<f64>(),
        },
        forward_positions_per_second: parts.forward,
        forward_fraction: metrics.evaluations as f64 / wall / parts.forward,
        mean_depth: metrics.depth_sum as f64 / simulations.max(1.0),
        max_depth: metrics.depth_max as u32,
        idle_rows: (metrics.idle_rows * rows as u64) as f64 / metrics.visited_rows.max(1) as f64,
        copied_in_passes: metrics.copied.inside,
        copied_per_move: metrics.copied.total as f64 / metrics.plies.max(1) as f64,
        device_busy: (metrics.device > 0.0).then(|| metrics.device / wall).or(parts.busy),
        transfers: parts.transfers,
        kernels: parts.kernels,
        ..ScalingRow::default()
    }
}

/// The breakdown of a pass's time.
struct Breakdown {
    /// Positions per second of the forward alone.
    forward: f64,
    /// Time fractions of selection, forward, expansion and backup.
    shares: [f64; 4],
    /// Times of the GPU's kernels; empty on the CPU.
    kernels: Vec<KernelTime>,
    /// Fraction of the time in which a kernel of the network runs, with trees on the CPU and the network on a GPU.
    busy: Option<f64>,
    /// Fraction of the time in which a pass waits for a copy.
    transfers: Option<f64>,
}

impl Breakdown {
    /// The breakdown on a backend that runs a pass as one unit. Its stages were timed separately, with a synchronisation after
    /// each. A pass has `slots` leaves.
    fn of_passes(PassParts { seconds, kernels }: PassParts, slots: usize) -> Self {
        Self {
            forward: slots as f64 / seconds[1],
            shares: seconds.map(|s| s / seconds.iter().sum::<f64>()),
            busy: None,
            transfers: None,
            kernels,
        }
    }

    /// The breakdown of CPU threads that spend `shares` of their time in the stages. `offloaded` has the kernels and copies of
    /// a network on a GPU, and the seconds over which they were timed.
    fn of_threads(forward: f64, shares: [f64; 4], offloaded: Option<(Vec<KernelTime>, f64)>) -> Self {
        let Some((kernels, seconds)) = offloaded else {
            return Self { forward, shares, kernels: Vec::new(), busy: None, transfers: None };
        };
        let is_copy = |time: &&KernelTime| [COPY_IN, COPY_OUT].contains(&time.kernel.as_str());
        let copies: f64 = kernels.iter().filter(is_copy).map(|time| time.seconds).sum();
        let all: f64 = kernels.iter().map(|time| time.seconds).sum();
        Self {
            forward,
            shares,
            busy: Some((all - copies) / seconds),
            transfers: Some(copies / seconds),
            kernels,
        }
    }
}

/// Lengths of finished games, in plies decided by a search: without chance outcomes and random opening plies.
#[derive(Default)]
struct Lengths {
    games: u64,
    plies: u64,
}

impl Lengths {
    /// Plays for at least `seconds`, and adds the games that finish. Returns the time taken, in seconds.
    fn play(&mut self, selfplay: &mut SelfPlay, game: &dyn AnyGame, seconds: f64) -> Result<f64> {
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < seconds {
            self.add(game, &selfplay.poll()?);
        }
        Ok(start.elapsed().as_secs_f64())
    }

    /// Plays until trees and caches are filled, then for at least `seconds`, whose metrics alone stay. Returns the time of the latter.
    fn play_warm(&mut self, selfplay: &mut SelfPlay, game: &dyn AnyGame, seconds: f64) -> Result<f64> {
        self.play(selfplay, game, WARM_UP_SECONDS)?;
        selfplay.take_metrics();
        self.play(selfplay, game, seconds)
    }

    fn add(&mut self, game: &dyn AnyGame, finished: &[FinishedGame]) {
        let has_chance = game.sizes().num_chance > 0;
        for played in finished {
            self.games += 1;
            self.plies += match has_chance {
                true => decisions(game, played),
                false => played.actions.len() as u64 - u64::from(played.opening),
            };
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.games > 0).then(|| self.plies as f64 / self.games as f64)
    }
}

/// Plies after the opening in which a player moved.
fn decisions(game: &dyn AnyGame, played: &FinishedGame) -> u64 {
    let (mut state, mut count) = (game.init(), 0);
    for (ply, &action) in played.actions.iter().enumerate() {
        count += u64::from(ply >= played.opening as usize && game.turn(&state) != Turn::Chance);
        game.step(&mut state, action, History::default());
    }
    count
}

/// Positions per second of the network's forward alone, with batches of `m` on every thread.
fn forward_rate(network: &dyn Network, m: usize, threads: usize) -> Result<f64> {
    let IoShape { obs_len, num_actions, num_players } = network.shape();
    const SECONDS: f64 = 0.5;
    let mut forks: Vec<Box<dyn Network>> = (0..threads).map(|_| network.fork()).collect();
    let rates: Vec<Result<f64>> = forks
        .par_iter_mut()
        .map(|net| {
            let obs: Vec<f32> = (0..m * obs_len).map(|i| f32::from(u8::from(i % 5 == 0))).collect();
            let (mut logits, mut values) = (vec![0.0; m * num_actions], vec![0.0; m * num_players]);
            net.forward(&obs, &mut logits, &mut values)?;
            let (start, mut done) = (Instant::now(), 0);
            while start.elapsed().as_secs_f64() < SECONDS {
                net.forward(&obs, &mut logits, &mut values)?;
                done += m;
            }
            Ok(done as f64 / start.elapsed().as_secs_f64())
        })
        .collect();
    rates.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_time_is_not_kernel_time() {
        let time = |kernel: &str, seconds| KernelTime { kernel: kernel.into(), launches: 1, seconds };
        let kernels =
            vec![time("bias_relu", 3.0), time(COPY_IN, 0.5), time(COPY_OUT, 0.25), time("dense", 1.0)];
        let parts = Breakdown::of_threads(7.0, [0.25; 4], Some((kernels.clone(), 5.0)));
        assert_eq!((parts.busy, parts.transfers), (Some(0.8), Some(0.15)));
        assert_eq!((parts.forward, parts.shares, parts.kernels), (7.0, [0.25; 4], kernels));
        let alone = Breakdown::of_threads(7.0, [0.25; 4], None);
        assert_eq!((alone.busy, alone.transfers), (None, None));
    }

    #[test]
    fn a_device_is_busy_while_it_has_passes_to_make() {
        let busy = |device, parts: Breakdown| {
            rates(&PassMetrics { device, ..PassMetrics::default() }, 2.0, 1, parts).device_busy
        };
        assert_eq!(busy(1.5, Breakdown::of_threads(7.0, [0.25; 4], None)), Some(0.75));
        assert_eq!(busy(0.0, Breakdown::of_threads(7.0, [0.25; 4], None)), None);
        let timed = vec![KernelTime { kernel: "dense".into(), launches: 1, seconds: 4.0 }];
        assert_eq!(busy(0.0, Breakdown::of_threads(7.0, [0.25; 4], Some((timed, 5.0)))), Some(0.8));
    }

    #[test]
    fn shares_and_rates_follow_from_profiled_passes() {
        let kernels = KernelTime::of([("layer", 0.15), ("select_rows", 0.05)]);
        let parts = PassParts { seconds: [0.001, 0.006, 0.002, 0.001], kernels: kernels.clone() };
        let Breakdown { forward, shares, kernels: listed, busy, transfers } =
            Breakdown::of_passes(parts, 300);
        assert_eq!((listed, busy, transfers), (kernels, None, None));
        assert!((forward - 50_000.0).abs() < 1e-6, "{forward}");
        shares
            .iter()
            .zip([0.1, 0.6, 0.2, 0.1])
            .for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{shares:?}"));
    }
}
