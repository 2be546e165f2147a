//! The root cache: trees of the positions in which many games begin, built once per set of weights and cloned into every new game.
//!
//! A start gets a tree if several games are expected to begin there, as deep as their number justifies: building all trees takes at most
//! a quarter of the simulations that those games' first plies have. Trees are built without noise and with many leaves per pass. Each
//! game adds its own noise, and counts the inherited visits apart from its own (`search.inherit_cap`). If a tree has more nodes than a
//! game can hold, the most visited nodes are cloned.

mod starts;

use crate::backend::device_selfplay::PlayPlan;
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, Placement, PlyPlan, RootCache, TreeSnapshot, make};
use crate::batch::AnyGame;
use crate::config::{Algorithm, Config, DeviceName, SearchEngine};
use crate::error::Result;
use crate::game::Sizes;
use crate::net::Network;
use crate::search::SearchParams;
use crate::search::eval_cache::EvalCache;
use crate::search::root::{Exploration, RowKey};
use crate::searcher::Searcher;
use crate::stop::Stop;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

pub use starts::{Openings, Start, starts};

/// The fewest games for which a tree is built.
const MIN_GAMES: f64 = 2.0;
/// Simulations of a tree, relative to those of the first plies of all games that begin with it.
const SHARE_OF_FIRST_PLIES: f64 = 0.25;
/// The most trees.
const MAX_TREES: usize = 1024;
/// The most trees of which each has the most simulations.
const MAX_DEEPEST_TREES: usize = 64;
/// The most simulations of a tree for Gumbel search, relative to those of a ply.
const GUMBEL_SHARE: f32 = 0.25;
/// The most leaves that a tree selects in a pass.
const MAX_LEAVES: u32 = 32;
/// A tree has at least so many simulations for each leaf of a pass: with fewer, virtual loss would decide where they go.
const SIMULATIONS_PER_LEAF: u32 = 16;

/// The size and search parameters of a root cache.
#[derive(Clone, Copy, Debug)]
pub struct CachePlan {
    /// The most simulations of a tree.
    pub simulations: u32,
    /// How games are opened.
    pub openings: Openings,
    /// Games that are expected to begin with these trees.
    pub games: f64,
    /// Mean simulations of a ply.
    pub ply_simulations: f64,
    /// The most nodes that are cloned into a game.
    pub keep: usize,
    /// The most nodes of all trees, as they are built and as they are kept.
    pub max_nodes: usize,
    /// Parameters of the search.
    pub params: SearchParams,
    /// Where the trees are built.
    pub placement: Placement,
    /// The run's seed, for sampled chance outcomes.
    pub seed: u64,
}

/// A tree that is to be built.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTree {
    /// Its root.
    pub start: Start,
    /// Its simulations.
    pub simulations: u32,
    /// Leaves that it selects in a pass.
    pub leaves: u32,
}

/// Why a configuration has no root cache; None where it has one.
pub fn disabled_reason(config: &Config, sizes: &Sizes) -> Option<&'static str> {
    match config.search.root_cache {
        0 => Some("search.root_cache = 0"),
        _ if sizes.hidden_information => Some("every game deals new hands, so no two games share a root"),
        _ if config.search.engine == SearchEngine::Reference => {
            Some("search.engine = \"reference\" clones no trees")
        }
        _ => None,
    }
}

/// Games that are expected to begin in the next epoch, after `epochs` epochs in which `finished` games ended: as many as in the mean of
/// those. In the first epoch as many as there are slots, or as give its samples if all are as long as a game can be.
pub fn expected_games(config: &Config, sizes: &Sizes, finished: u64, epochs: u64) -> f64 {
    if epochs > 0 {
        return finished as f64 / epochs as f64;
    }
    let longest = config.selfplay.samples_per_epoch as f64 / sizes.max_plies.max(1) as f64;
    longest.max(config.selfplay.games as f64)
}

impl CachePlan {
    /// The cache of a run in whose next epoch so many `games` are expected to begin; None where there is an [`disabled_reason`]. It is built
    /// on the first device. `plan`: the trees of its games.
    pub fn for_run(config: &Config, plan: BackendPlan, sizes: &Sizes, games: f64) -> Option<Self> {
        if disabled_reason(config, sizes).is_some() {
            return None;
        }
        let (search, selfplay) = (&config.search, &config.selfplay);
        let fast = f64::from(selfplay.playout_cap_prob);
        let ply_simulations =
            (1.0 - fast) * f64::from(search.simulations) + fast * f64::from(selfplay.fast_simulations);
        let simulations = max_simulations(config, &plan.params);
        let ply_nodes = BackendPlan::nodes_for(plan.params.simulations, sizes) - 1;
        Some(Self {
            simulations,
            openings: Openings::new(&PlayPlan::new(config, sizes)),
            games,
            ply_simulations,
            keep: plan.nodes.saturating_sub(ply_nodes).max(1),
            max_nodes: max_nodes(config, plan, sizes),
            params: plan.params,
            placement: Placement::of_run(config).on_first_device(),
            seed: config.run.seed,
        })
    }

    /// The trees to build, the deepest first.
    pub fn trees(&self, game: &dyn AnyGame) -> Vec<PlannedTree> {
        let sizes = game.sizes();
        let mut nodes = 0;
        let planned = starts(game, self.openings, MIN_GAMES / self.games).into_iter().map(|start| {
            let first_plies = self.games * start.share * self.ply_simulations;
            let simulations = ((SHARE_OF_FIRST_PLIES * first_plies) as u32).clamp(1, self.simulations);
            let leaves = (simulations / SIMULATIONS_PER_LEAF).clamp(1, MAX_LEAVES);
            PlannedTree { start, simulations, leaves }
        });
        let fits = |tree: &PlannedTree| {
            nodes += BackendPlan::nodes_for(tree.simulations, &sizes);
            nodes <= self.max_nodes
        };
        planned.take(MAX_TREES).take_while(fits).collect()
    }

    /// The arrays in which the trees of `batch` are built, a row each.
    fn arrays(&self, batch: &[PlannedTree], sizes: &Sizes) -> BackendPlan {
        let PlannedTree { simulations, leaves, .. } = batch[0];
        let params = SearchParams { simulations, leaves, ..self.params };
        let nodes = BackendPlan::nodes_for(simulations, sizes);
        BackendPlan { rows: batch.len(), nodes, params, reuse: Reuse::Drop }
    }

    /// Parts of `trees` that are built in arrays of their own: trees of equal L, about as many in each as there are for one of
    /// `threads`, with at most the nodes that each thread has.
    fn batches(&self, trees: &[PlannedTree], sizes: &Sizes, threads: usize) -> Vec<Range<usize>> {
        let max_rows = trees.len().div_ceil(threads);
        let mut batches = Vec::new();
        let mut first = 0;
        while first < trees.len() {
            let PlannedTree { simulations, leaves, .. } = trees[first];
            let that_fit = self.max_nodes / threads / BackendPlan::nodes_for(simulations, sizes);
            let rows = that_fit.clamp(1, max_rows);
            let alike = trees[first..].iter().take(rows).take_while(|tree| tree.leaves == leaves);
            let end = first + alike.count();
            batches.push(first..end);
            first = end;
        }
        batches
    }
}

/// The most simulations of a tree. A search by Gumbel has new simulations for its whole budget whatever it inherits, and the largest
/// number of visits scales its Q-values: with many more, games that begin alike stay alike for longer
/// (`benches/results/2026-11-23-root-cache.md`).
fn max_simulations(config: &Config, params: &SearchParams) -> u32 {
    let most = match params.algorithm {
        Algorithm::Puct => return config.search.root_cache,
        Algorithm::Gumbel => max_inherited(params).min((GUMBEL_SHARE * params.simulations as f32) as u32),
    };
    config.search.root_cache.min(most).max(1)
}

/// The most visits that a ply inherits and counts.
fn max_inherited(params: &SearchParams) -> u32 {
    (params.inherit_cap * params.simulations as f32) as u32
}

/// The most nodes of all trees of a root cache: a quarter of those of all games, but those of one of the deepest trees at least and of
/// [`MAX_DEEPEST_TREES`] at most.
fn max_nodes(config: &Config, plan: BackendPlan, sizes: &Sizes) -> usize {
    let games = config.selfplay.games.saturating_mul(plan.nodes);
    let deepest = BackendPlan::nodes_for(max_simulations(config, &plan.params), sizes);
    (games / 4).clamp(deepest, MAX_DEEPEST_TREES * deepest)
}

/// The most bytes of a root cache: its trees and the arrays in which they are built.
pub fn max_bytes(config: &Config, plan: BackendPlan, game: &dyn AnyGame) -> u64 {
    let sizes = game.sizes();
    if disabled_reason(config, &sizes).is_some() {
        return 0;
    }
    let nodes = max_nodes(config, plan, &sizes);
    let tree = BackendPlan { rows: 1, nodes, ..plan };
    2 * tree.row_bytes(config.search.engine, &sizes, game.state_size()) as u64
}

/// Builds the trees of `plan`, as many at a time as memory allows: on the CPU by several threads, on a GPU in one batch after the other.
/// A tree depends on neither. `evaluations`: a table of evaluations by this network, which gets those of the trees. Building ends once
/// `stop` is requested.
///
/// # Errors
/// Those of the network and of the device; [`crate::Error::Stopped`].
pub fn build(
    game: &dyn AnyGame,
    network: &dyn Network,
    plan: CachePlan,
    evaluations: Option<&Arc<EvalCache>>,
    stop: &Stop,
) -> Result<RootCache> {
    let make = |arrays| {
        let mut backend = make(game, arrays, plan.placement, 1)?;
        evaluations.into_iter().try_for_each(|cache| backend.set_eval_cache(cache.clone()))?;
        Ok(backend)
    };
    let (trees, sizes) = (plan.trees(game), game.sizes());
    let threads = match plan.placement.devices.first() {
        DeviceName::Cuda(_) => 1,
        DeviceName::Cpu => rayon::current_num_threads(),
    };
    let batches = plan.batches(&trees, &sizes, threads);
    let work: Vec<_> = batches.into_iter().map(|batch| (&trees[batch], network.fork())).collect();
    let build = |(batch, network)| build_batch(game, network, &plan, batch, &make, stop);
    let parts: Vec<Result<BuiltBatch>> = match threads {
        1 => work.into_iter().map(build).collect(),
        _ => work.into_par_iter().map(build).collect(),
    };
    let (mut snapshots, mut simulations) = (Vec::with_capacity(trees.len()), 0);
    for part in parts {
        let part = part?;
        snapshots.extend(part.snapshots);
        simulations += part.simulations;
    }
    Ok(RootCache::new(snapshots, simulations, max_inherited(&plan.params)))
}

/// Trees that were built together.
pub struct BuiltBatch {
    /// The trees, in the order of the plan.
    pub snapshots: Vec<TreeSnapshot>,
    /// Simulations that were made.
    pub simulations: u64,
}

/// Builds the trees of `batch`, which have equal L, in the rows of a backend that `make` returns.
///
/// # Errors
/// Those of `make`, the network and the device; [`crate::Error::Stopped`] once `stop` is requested.
pub fn build_batch(
    game: &dyn AnyGame,
    network: Box<dyn Network>,
    plan: &CachePlan,
    batch: &[PlannedTree],
    make: &(dyn Fn(BackendPlan) -> Result<Box<dyn Backend>> + Sync),
    stop: &Stop,
) -> Result<BuiltBatch> {
    let arrays = plan.arrays(batch, &game.sizes());
    let mut searcher = Searcher::with_backend(game, network, make(arrays)?, arrays, plan.placement.devices)?;
    searcher.stop_by(stop);
    for (b, PlannedTree { start, simulations, .. }) in batch.iter().enumerate() {
        searcher.backend.set_root(b, &start.state, &start.history)?;
        let key = RowKey { seed: plan.seed, slot: u64::MAX, ..RowKey::default() };
        let ply = PlyPlan { simulations: *simulations, exploration: Exploration::Plain, key };
        searcher.backend.begin(b, ply)?;
    }
    searcher.finish()?;
    let snapshots = (0..batch.len()).map(|b| searcher.backend.snapshot(b, plan.keep));
    Ok(BuiltBatch { snapshots: snapshots.collect::<Result<_>>()?, simulations: searcher.clock.simulations })
}
