//! The root cache: trees of the positions in which many games begin, built once per set of weights and cloned into every new game.
//!
//! A starting position gets a tree if several games are expected to begin there. The simulations of the tree grow with that number: all
//! trees together get at most a quarter of the simulations of those games' first plies. Trees are built without noise and with many leaves
//! per pass. Each game adds its own noise, and counts inherited visits separately from new ones (`search.inherit_cap`). If a tree has more
//! nodes than a game can hold, the most visited nodes are cloned.

mod starts;

use crate::backend::AnyGame;
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, Placement, PlyPlan, RootCache, TreeSnapshot, make};
use crate::config::{Algorithm, Config};
use crate::error::Result;
use crate::game::Sizes;
use crate::net::Network;
use crate::play::PlayPlan;
use crate::search::SearchParams;
use crate::search::eval_cache::EvalCache;
use crate::search::root::{Exploration, RowKey};
use crate::searcher::Searcher;
use crate::stop::Stop;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

pub use starts::{Openings, Start, starts};

/// Minimum number of expected games for which a tree is built.
const MIN_GAMES: f64 = 2.0;
/// Simulations of a tree, relative to those of the first plies of all games that begin with it.
const SHARE_OF_FIRST_PLIES: f64 = 0.25;
/// Maximum number of trees.
const MAX_TREES: usize = 1024;
/// Maximum number of trees that each have the maximum number of simulations.
const MAX_DEEPEST_TREES: usize = 64;
/// Maximum number of simulations of a tree for Gumbel search, relative to those of a ply.
const GUMBEL_SHARE: f32 = 0.25;
/// Maximum number of leaves that a tree selects in a pass.
const MAX_LEAVES: u32 = 32;
/// Minimum number of simulations of a tree for each leaf of a pass: with fewer, virtual loss would determine the selection.
const SIMULATIONS_PER_LEAF: u32 = 16;

/// The size and search parameters of a root cache.
#[derive(Clone, Copy, Debug)]
pub struct CachePlan {
    /// Maximum number of simulations of a tree.
    pub simulations: u32,
    /// The random openings of games.
    pub openings: Openings,
    /// Games that are expected to begin with these trees.
    pub games: f64,
    /// Maximum number of nodes that are cloned into a game.
    pub keep: usize,
    /// Maximum number of nodes of all trees, while they are built and when they are stored.
    pub max_nodes: usize,
    /// Parameters of the search, with the simulations of a ply.
    pub params: SearchParams,
    /// Devices that build the trees.
    pub placement: Placement,
    /// The run's seed, for sampled chance outcomes.
    pub seed: u64,
}

/// A tree to build.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTree {
    /// Its root.
    pub start: Start,
    /// Its simulations.
    pub simulations: u32,
    /// Leaves that it selects in a pass.
    pub leaves: u32,
}

/// The reason why a configuration has no root cache; None if it has one.
pub fn disabled_reason(config: &Config, sizes: &Sizes) -> Option<&'static str> {
    match config.search.root_cache {
        0 => Some("search.root_cache = 0"),
        _ if config.search.algorithm == Algorithm::Afterstate => {
            Some("the algorithm afterstate has no trees")
        }
        _ if sizes.hidden_information => Some("every game deals new hands, so games do not share a root"),
        _ => None,
    }
}

/// Expected number of games that begin in the next epoch, after `epochs` epochs with `finished` games in total: the mean per epoch. In the
/// first epoch it is the number of slots, or the number of games of maximum length that give the samples, whichever is larger.
pub fn expected_games(config: &Config, sizes: &Sizes, finished: u64, epochs: u64) -> f64 {
    if epochs > 0 {
        return finished as f64 / epochs as f64;
    }
    let longest = config.selfplay.samples_per_epoch as f64 / sizes.max_plies.max(1) as f64;
    longest.max(config.selfplay.games as f64)
}

impl CachePlan {
    /// The cache of a run in whose next epoch `games` games are expected to begin; None if there is a [`disabled_reason`]. It is built on
    /// the first device. `plan`: the trees of the games.
    pub fn for_run(config: &Config, plan: BackendPlan, sizes: &Sizes, games: f64) -> Option<Self> {
        if disabled_reason(config, sizes).is_some() {
            return None;
        }
        let simulations = max_simulations(config, &plan.params);
        let ply_nodes = BackendPlan::nodes_for(plan.params.simulations, sizes) - 1;
        Some(Self {
            simulations,
            openings: Openings::new(&PlayPlan::new(config, sizes)),
            games,
            keep: plan.nodes.saturating_sub(ply_nodes).max(1),
            max_nodes: max_nodes(config, plan, sizes),
            params: plan.params,
            placement: Placement::of_run(config).on_first_device(),
            seed: config.run.seed,
        })
    }

    /// The trees to build, those with the most simulations first.
    pub fn trees(&self, game: &dyn AnyGame) -> Vec<PlannedTree> {
        let sizes = game.sizes();
        let mut nodes = 0;
        let planned = starts(game, self.openings, MIN_GAMES / self.games).into_iter().map(|start| {
            let first_plies = self.games * start.share * f64::from(self.params.simulations);
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

    /// The arrays in which the trees of `batch` are built, one row per tree.
    fn arrays(&self, batch: &[PlannedTree], sizes: &Sizes) -> BackendPlan {
        let PlannedTree { simulations, leaves, .. } = batch[0];
        let params = SearchParams { simulations, leaves, ..self.params };
        let nodes = BackendPlan::nodes_for(simulations, sizes);
        BackendPlan { rows: batch.len(), nodes, params, reuse: Reuse::Drop }
    }

    /// The parts of `trees` that are built together, each in its own arrays. The trees of a part have equal L. A part has at most the share
    /// of one of `threads` of the trees and of the nodes.
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

/// Maximum number of simulations of a tree. A Gumbel search spends its whole budget on new simulations, whatever it inherits, and scales its
/// Q-values by the largest number of visits: with deeper trees, games with equal beginnings stay equal for longer
/// (`benches/results/2026-11-23-root-cache.md`).
fn max_simulations(config: &Config, params: &SearchParams) -> u32 {
    let max = match params.algorithm {
        Algorithm::Puct | Algorithm::Afterstate => return config.search.root_cache,
        Algorithm::Gumbel => max_inherited(params).min((GUMBEL_SHARE * params.simulations as f32) as u32),
    };
    config.search.root_cache.min(max).max(1)
}

/// Maximum number of inherited visits that a ply counts.
fn max_inherited(params: &SearchParams) -> u32 {
    (params.inherit_cap * params.simulations as f32) as u32
}

/// Maximum number of nodes of all trees of a root cache: a quarter of the nodes of all games, limited to the range from one to
/// [`MAX_DEEPEST_TREES`] trees of maximum size.
fn max_nodes(config: &Config, plan: BackendPlan, sizes: &Sizes) -> usize {
    let games = config.selfplay.games.saturating_mul(plan.nodes);
    let deepest = BackendPlan::nodes_for(max_simulations(config, &plan.params), sizes);
    (games / 4).clamp(deepest, MAX_DEEPEST_TREES * deepest)
}

/// Maximum size of a root cache in bytes: its trees and the arrays in which they are built.
pub fn max_bytes(config: &Config, plan: BackendPlan, game: &dyn AnyGame) -> u64 {
    let sizes = game.sizes();
    if disabled_reason(config, &sizes).is_some() {
        return 0;
    }
    let nodes = max_nodes(config, plan, &sizes);
    let tree = BackendPlan { rows: 1, nodes, ..plan };
    2 * tree.row_bytes(&sizes, game.state_size()) as u64
}

/// Builds the trees of `plan` in batches that fit into memory: on the CPU by several threads, on a GPU one batch after the other. Neither
/// changes a tree. `evaluations`: a cache of this network's evaluations, into which those of the trees are inserted. Building ends once
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
    let threads = if plan.placement.devices.is_cpu() { rayon::current_num_threads() } else { 1 };
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

/// The result of [`build_batch`].
pub struct BuiltBatch {
    /// The trees, in the order of the plan.
    pub snapshots: Vec<TreeSnapshot>,
    /// Number of simulations made.
    pub simulations: u64,
}

/// Builds the trees of `batch`, which have equal L, in the rows of a backend made by `make`.
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
    Ok(BuiltBatch { snapshots: snapshots.collect::<Result<_>>()?, simulations: searcher.metrics.simulations })
}
