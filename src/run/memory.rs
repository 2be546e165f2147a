//! The memory plan of a run, which is checked before any allocation.

use super::free_memory::{FreeMemory, MIB};

pub use super::free_memory::peak_bytes;
use crate::backend::AnyGame;
use crate::backend::Placement;
use crate::backend::plan::{BackendPlan, Reuse};
use crate::config::{Algorithm, Config, TrainingMode};
use crate::engine::Settings;
use crate::error::{Error, Result};
use crate::eval::arena::ROWS;
use crate::eval::opponent::LADDER;
use crate::net::NetSpec;
use crate::net::cpu_train::{CpuTrainNet, MAX_PARTITIONS};
use crate::pass::PassBuffers;
use crate::play::Sample;
use crate::replay::{Replay, TargetList};
use crate::root_cache;
use crate::search::SearchParams;
use crate::selfplay::{MAX_SHARDS_PER_THREAD, backend_plan, cache_entries, entry_shape, num_threads};
use crate::words::count;

/// MiB of code, tables and small arrays.
const PROGRAM_MIB: u64 = 40;
/// MiB of a thread's stack, network and buffers.
const THREAD_MIB: u64 = 6;

/// Numbers for each parameter at the peak of training on a CPU, as measured: 8 in the trainer (the state before and after an update,
/// the gradient, the mask of weight decay), 3 in the layers (the weights of both directions, their gradient), and those in which the
/// end of an epoch passes state and weights to the checkpoint and to new networks.
const NUMBERS_PER_PARAMETER: usize = 24;

/// Samples of a game in progress in the mean, at most: half of those of a game of 512 decisions.
const SAMPLES_PER_SLOT: usize = 256;
/// Copies of the games in progress: those that play, those handed to a checkpoint, and its bytes.
const SLOT_COPIES: usize = 3;
/// Bytes of a sample in a list of its own: the sample, and what the allocator adds to its four arrays.
const SAMPLE_OVERHEAD: usize = size_of::<Sample>() + 4 * 16;

/// The large arrays of a run, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Trees, states and root arrays of all rows; 0 on a GPU, whose memory the backend checks.
    pub trees: u64,
    /// The network's input and output of a pass.
    pub passes: u64,
    /// The samples of games in progress, with the copies that a checkpoint makes.
    pub games: u64,
    /// The samples of the games that end during a poll, which are kept until it ends.
    pub polls: u64,
    /// The full replay buffer, the copy of at most all of it while a checkpoint is written or read, and samples held until the end of an epoch.
    pub replay: u64,
    /// Weights, moments and gradients with all their copies, and activations of a training batch; 0 on a GPU.
    pub training: u64,
    /// The root cache, and the arrays in which its trees are built.
    pub cache: u64,
    /// The searches of an evaluation, whose trees exist at the same time as those of self-play; without trees on a GPU.
    pub evaluation: u64,
    /// The evaluation cache.
    pub evaluations: u64,
    /// Queued chunks of workers; in a worker the chunks that it keeps until the learner has stored them.
    pub workers: u64,
    /// Code, networks, and the buffers and stacks of threads.
    pub program: u64,
    /// Bytes per game.
    pub per_game: u64,
}

impl MemoryPlan {
    /// The plan of a configuration.
    ///
    /// # Errors
    /// Those of [`crate::model::Model::new`].
    pub fn new(config: &Config, game: &dyn AnyGame) -> Result<Self> {
        let sizes = game.sizes();
        let d = sizes.determinisations(config.search.determinisations) as usize;
        let rows = config.selfplay.games * d; // at most 2^32, by the configuration's ranges
        let plan = backend_plan(config, &sizes, rows);
        let row = if config.run.device.is_cpu() { plan.row_bytes(&sizes, game.state_size()) } else { 0 };
        let model = NetSpec::with_targets(&config.net, &sizes, &game.targets())?.model()?;
        let targets = TargetList::new(game, &model)?;
        let parameters = model.num_parameters() + model.num_statistics();
        // The partitions of a batch each sum the gradient of one layer at a time.
        let largest = model.params.iter().map(|param| param.range.len()).max().unwrap_or_default();
        let weights = NUMBERS_PER_PARAMETER * parameters + MAX_PARTITIONS * largest;
        // The activations of a forward and their gradients; the fused passes pad the rows of narrow layers.
        let fused = CpuTrainNet::floats_per_board(&model).unwrap_or_default();
        let activations = config.train.batch * fused.max(2 * model.activations());
        let on_host = u64::from(config.network_devices().is_cpu());
        let of_game: usize = targets.of_game.iter().map(|target| target.len).sum();
        let numbers = sizes.obs.len() + 2 * sizes.num_actions + sizes.num_players + of_game;
        let batch = 4 * config.train.batch * numbers;
        let state_size = game.state_size();
        let sample = Replay::sample_bytes(&sizes, state_size) + targets.sample_bytes(state_size);
        let sample_held = sample + SAMPLE_OVERHEAD;
        // Half of the actions are legal in the mean, at most.
        let in_slot = sample_held - sizes.max_legal * Replay::ACTION_BYTES / 2;
        let slot = SLOT_COPIES * sizes.max_plies.div_ceil(2).min(SAMPLES_PER_SLOT) * in_slot;
        let poll = poll_samples(config, plan) * in_slot;
        let held = match config.train.mode {
            TrainingMode::InTurns => 0,
            TrainingMode::Overlapped => config.selfplay.samples_per_epoch,
        };
        Ok(Self {
            trees: product(rows, row),
            passes: pass_bytes(game, plan, shards(config)),
            games: product(config.selfplay.games, slot),
            polls: product(config.selfplay.games, poll),
            replay: 2 * product(config.replay.capacity, sample) + product(held, sample_held),
            training: on_host * (4 * (weights + activations) + 2 * batch) as u64,
            cache: root_cache::max_bytes(config, plan, game),
            evaluation: evaluation_bytes(config, game),
            workers: 0,
            program: program_bytes(),
            evaluations: product(cache_entries(config), entry_shape(game).bytes()),
            per_game: (slot + poll) as u64
                + product(d, row)
                + pass_bytes(game, BackendPlan { rows: d, ..plan }, 0),
        })
    }

    /// The plan of a worker of the run, which neither stores samples nor trains.
    ///
    /// # Errors
    /// Those of [`MemoryPlan::new`].
    pub fn of_worker(config: &Config, game: &dyn AnyGame) -> Result<Self> {
        Ok(Self { replay: 0, training: 0, ..Self::new(config, game)? })
    }

    /// The plan of a run whose games are all played by workers.
    pub fn without_play(self) -> Self {
        Self { trees: 0, passes: 0, games: 0, polls: 0, cache: 0, evaluations: 0, ..self }
    }

    /// The parts: name, bytes, and the keys that set their size. The part of workers is listed only if it is not 0.
    fn parts(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
        let keys = "cluster.max_queued_bytes, selfplay.games and selfplay.passes_per_poll";
        let workers = (self.workers > 0).then_some(("chunks of workers", self.workers, keys));
        let parts = [
            ("trees", self.trees, "selfplay.games, search.simulations and search.nodes"),
            ("passes", self.passes, "selfplay.games and search.leaves"),
            ("games in progress", self.games, "selfplay.games"),
            ("games of a poll", self.polls, "selfplay.games and selfplay.passes_per_poll"),
            ("replay", self.replay, "replay.capacity"),
            ("training", self.training, "train.batch and the sizes in [net]"),
            ("root cache", self.cache, "search.root_cache"),
            ("evaluation", self.evaluation, "eval.simulations"),
            ("evaluation cache", self.evaluations, "search.cache_entries"),
            ("program", self.program, "run.threads"),
        ];
        parts.into_iter().chain(workers)
    }

    /// Bytes in total.
    pub fn total(&self) -> u64 {
        self.parts().fold(0, |sum: u64, (_, bytes, _)| sum.saturating_add(bytes))
    }

    /// Bytes that do not depend on the number of games.
    fn fixed(&self) -> u64 {
        Self { trees: 0, passes: 0, games: 0, polls: 0, ..self.clone() }.total()
    }

    /// The parts of the plan and their sizes, as text.
    pub fn describe(&self) -> String {
        let parts = self.parts().map(|(name, bytes, _)| format!("{name} {} MiB", bytes.div_ceil(MIB)));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// The largest part and the keys that set its size, as text.
    fn largest(&self) -> String {
        let largest = self.parts().max_by_key(|(_, bytes, _)| *bytes);
        largest
            .map(|(name, _, keys)| format!("the largest part is {name}, set by {keys}"))
            .unwrap_or_default()
    }

    /// Refuses a plan that exceeds `run.memory_mib`, or without that key 0.9 of `FreeMemory`.
    ///
    /// # Errors
    /// [`Error::Memory`] with the numbers.
    pub fn check(&self, config: &Config) -> Result<()> {
        let (have, limit) = match (config.run.memory_mib, FreeMemory::of_process()) {
            (0, None) => return Ok(()),
            (0, Some(free)) => (free.share(), free.describe()),
            (mib, _) => (mib.saturating_mul(MIB), "run.memory_mib".to_string()),
        };
        tracing::debug!("memory: {} MiB are planned, at most {limit}", self.total().div_ceil(MIB));
        if self.total() <= have {
            return Ok(());
        }
        Err(Error::Memory {
            need_mib: self.total().div_ceil(MIB),
            have_mib: have / MIB,
            limit,
            detail: format!("{}; {}", self.describe(), self.largest()),
            largest_games: have.saturating_sub(self.fixed()) / self.per_game.max(1),
        })
    }
}

/// Maximum number of shards of self-play.
fn shards(config: &Config) -> usize {
    (MAX_SHARDS_PER_THREAD * num_threads(config, rayon::current_num_threads())).min(config.selfplay.games)
}

/// Samples of a slot in a poll, at most in the mean of all slots: a ply makes at least half of its new simulations in the mean, since a proven
/// position ends it early, and at least one pass.
fn poll_samples(config: &Config, plan: BackendPlan) -> usize {
    let SearchParams { algorithm, simulations, min_simulations, leaves, .. } = plan.params;
    let new_simulations = match (algorithm, plan.reuse) {
        (Algorithm::Afterstate, _) => 1,
        // Inherited visits count as simulations: the others need not be made.
        (Algorithm::Puct, Reuse::Keep) => min_simulations.min(simulations),
        (Algorithm::Puct | Algorithm::Gumbel, _) => simulations,
    };
    let passes = u64::from(config.selfplay.passes_per_poll);
    let plies = (2 * passes * u64::from(leaves)).div_ceil(u64::from(new_simulations.max(1)));
    plies.min(passes) as usize
}

/// Bytes of the arrays of a pass: those for each row of `plan`, and for each of `shards`.
fn pass_bytes(game: &dyn AnyGame, plan: BackendPlan, shards: usize) -> u64 {
    let buffers = |leaves: usize| PassBuffers::bytes(&game.sizes(), leaves);
    match plan.params.algorithm {
        Algorithm::Puct | Algorithm::Gumbel => product(plan.rows, buffers(plan.params.leaves as usize)),
        Algorithm::Afterstate => {
            product(shards, buffers(plan.max_evaluations()) + plan.turn_bytes(game.state_size()))
        }
    }
}

fn product(a: usize, b: usize) -> u64 {
    (a as u64).saturating_mul(b as u64)
}

/// Refuses a search of `positions` at once by `settings`, each in a new tree, that needs more than 0.9 of `FreeMemory`. Trees on a GPU are
/// not counted, since the backend checks the GPU's memory.
///
/// # Errors
/// [`Error::Unsupported`] with the numbers.
pub fn check_search(game: &dyn AnyGame, settings: Settings, positions: usize) -> Result<()> {
    let rows = positions * settings.determinisations;
    let params = settings.batch_params();
    let need = search_bytes(game, params, settings.placement, rows).saturating_add(program_bytes());
    match FreeMemory::of_process() {
        Some(free) if need > free.share() => Err(Error::unsupported(
            format!(
                "a search of {} in {} at once",
                count(params.simulations, "simulation"),
                count(rows, "tree")
            ),
            format!(
                "it needs {} MiB, more than {}; set fewer simulations",
                need.div_ceil(MIB),
                free.describe()
            ),
        )),
        _ => Ok(()),
    }
}

/// MiB of trees that an engine may have: half of `FreeMemory` without the program, at most `limit`.
pub fn engine_mib(limit: usize) -> usize {
    let half = |free: FreeMemory| free.share().saturating_sub(program_bytes()) / (2 * MIB);
    FreeMemory::of_process().map_or(limit, |free| limit.min(half(free) as usize))
}

/// Estimate for code, stacks and small arrays, in bytes: above the value measured with a small network.
fn program_bytes() -> u64 {
    let threads = rayon::current_num_threads() as u64;
    (PROGRAM_MIB + threads * THREAD_MIB) * MIB
}

/// Bytes of a search of `rows` positions at once, each in a new tree.
fn search_bytes(game: &dyn AnyGame, params: SearchParams, placement: Placement, rows: usize) -> u64 {
    let sizes = game.sizes();
    let nodes = BackendPlan::nodes_for(params.simulations, &sizes);
    let plan = BackendPlan { rows, nodes, params, reuse: Reuse::Drop };
    let tree = if placement.devices.is_cpu() { plan.row_bytes(&sizes, game.state_size()) } else { 0 };
    product(rows, tree) + pass_bytes(game, plan, rayon::current_num_threads())
}

/// Networks that search at the same time in an evaluation: the opponent may be an earlier one of the run.
pub fn searches(config: &Config, game: &dyn AnyGame) -> usize {
    if config.eval.opponent == LADDER && game.solved_positions().is_none() { 2 } else { 1 }
}

/// Bytes of the searches of an evaluation after an epoch.
fn evaluation_bytes(config: &Config, game: &dyn AnyGame) -> u64 {
    if config.eval.every == 0 {
        return 0;
    }
    let settings = Settings::new(config, &game.sizes());
    let rows = searches(config, game) * ROWS * settings.determinisations;
    search_bytes(game, settings.batch_params(), settings.placement, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Arch;
    use crate::registry::any_game;

    /// A run of this network has had a peak of 3007 MiB.
    #[test]
    fn training_of_large_layers_is_planned_with_all_copies() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let mut config = Config::default();
        (config.net.arch, config.net.channels, config.net.blocks) = (Arch::Mlp, 2048, 4);
        let training = MemoryPlan::new(&config, game.as_ref()).expect("a network").training / MIB;
        assert!((3007..4500).contains(&training), "{training} MiB");
    }

    /// Eight channels take sixteen columns: of the stem, the block's layers, the convolutions of both heads, the input of the heads, and three
    /// arrays of gradients as wide as both heads.
    #[test]
    fn the_padding_of_narrow_networks_is_planned() {
        let game = any_game("go", &"size = 19".parse().expect("TOML")).expect("registered");
        let mut config = Config::default();
        (config.net.channels, config.net.blocks, config.train.batch) = (8, 1, 4096);
        let training = MemoryPlan::new(&config, game.as_ref()).expect("a network").training;
        let columns = 3 * 16 + 32 + 32 + 3 * 32;
        assert!(training >= 4 * 4096 * 361 * columns, "{} MiB", training / MIB);
    }

    /// A run of 2,000 games of Go 19x19 has grown from 129 to 738 MiB before the first game was over.
    #[test]
    fn samples_of_games_in_progress_are_planned() {
        let options = "size = 19".parse().expect("TOML");
        let game = any_game("go", &options).expect("registered");
        let mut config = Config::default();
        let mut games = |games| {
            config.selfplay.games = games;
            MemoryPlan::new(&config, game.as_ref()).expect("a network").games / MIB
        };
        assert!(games(2000) > 738, "{} MiB", games(2000));
        assert_eq!(games(4000) / 2, games(2000));
    }

    /// A poll of a million passes with 64 simulations a ply ends 15,625 plies of each game, and more where positions are proven.
    #[test]
    fn games_that_end_during_a_poll_are_planned() {
        let game = any_game("connect_four", &toml::Table::new()).expect("registered");
        let mut config = Config::default();
        (config.selfplay.games, config.search.simulations) = (100, 64);
        let mut plan = |passes| {
            config.selfplay.passes_per_poll = passes;
            MemoryPlan::new(&config, game.as_ref()).expect("a network")
        };
        let [short, long] = [64, 1_000_000].map(&mut plan);
        let sample = Replay::sample_bytes(&game.sizes(), game.state_size()) as u64;
        assert!(long.polls >= 100 * 15_625 * sample, "{} MiB", long.polls / MIB);
        assert!(short.polls < long.polls / 10_000, "{} bytes", short.polls);
        assert_eq!(long.total() - short.total(), long.polls - short.polls);
        assert_eq!(long.without_play().polls, 0);
    }

    #[test]
    fn overlapped_training_plans_the_held_samples() {
        let game = any_game("connect_four", &toml::Table::new()).expect("registered");
        let mut config = Config::default();
        config.selfplay.samples_per_epoch = 20_000;
        let plan = |config: &Config| MemoryPlan::new(config, game.as_ref()).expect("a network");
        let in_turns = plan(&config);
        config.train.mode = TrainingMode::Overlapped;
        let sample = Replay::sample_bytes(&game.sizes(), game.state_size()) + SAMPLE_OVERHEAD;
        let waiting = config.selfplay.samples_per_epoch * sample;
        assert_eq!(plan(&config), MemoryPlan { replay: in_turns.replay + waiting as u64, ..in_turns });
    }
}
