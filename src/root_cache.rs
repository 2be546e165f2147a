//! The root cache: one deep tree for each start of the game, built once per set of weights and cloned into every new game.
//!
//! The trees are built without noise and with many leaves per pass. Each game adds its own noise, and counts the inherited
//! visits apart from its own (`search.inherit_cap`). If a tree has more nodes than a game can hold, the most visited nodes are
//! cloned.

use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, Placement, PlyPlan, RootCache, make};
use crate::batch::AnyGame;
use crate::config::{Config, DeviceName};
use crate::error::{Error, Result};
use crate::game::{History, Sizes, Turn};
use crate::net::Network;
use crate::search::SearchParams;
use crate::search::root::{Exploration, RowKey};
use crate::searcher::Searcher;
use crate::stop::Stop;
use rayon::prelude::*;

/// L while a cache is built.
const LEAVES: u32 = 32;
/// The most starts of a game that are cached, each with its own tree.
const MAX_STARTS: usize = 64;

/// The size and search parameters of a root cache.
#[derive(Clone, Copy, Debug)]
pub struct CachePlan {
    /// Simulations per tree.
    pub simulations: u32,
    /// The most nodes that are cloned into a game.
    pub keep: usize,
    /// Parameters of the search.
    pub params: SearchParams,
    /// Where it is built.
    pub placement: Placement,
    /// The run's seed, for sampled chance outcomes.
    pub seed: u64,
}

impl CachePlan {
    /// The cache of a run whose backend has this `plan`. It is built on the first device.
    pub fn for_run(config: &Config, plan: BackendPlan, sizes: &Sizes) -> Self {
        let ply = BackendPlan::nodes_for(plan.params.simulations, sizes) - 1;
        Self {
            simulations: config.search.root_cache,
            keep: plan.nodes.saturating_sub(ply).max(1),
            params: plan.params,
            placement: Placement::of_run(config).on_first_device(),
            seed: config.run.seed,
        }
    }
}

/// The states in which the first player decision of a game can occur, sorted.
///
/// # Errors
/// [`Error::ConfigText`] if there are more than `MAX_STARTS`, or if the game has hidden information.
pub fn starts(game: &dyn AnyGame) -> Result<Vec<Vec<u8>>> {
    let origin = || format!("key search.root_cache for {}", game.name());
    let refuse = |why: &str| Err(Error::ConfigText { origin: origin(), what: why.into() });
    let too_many = || refuse("it has more than 64 starts, the most that a root cache is built for; use 0");
    if game.sizes().hidden_information {
        return refuse("every game deals new hands, so no two games share a root; use 0");
    }
    let (mut open, mut found) = (vec![game.init()], Vec::new());
    while let Some(state) = open.pop() {
        if game.turn(&state) != Turn::Chance {
            found.push(state);
        } else {
            for outcome in game.legal(&state, History::default()) {
                let mut next = state.clone();
                game.step(&mut next, outcome, History::default());
                open.push(next);
            }
        }
        if open.len() + found.len() > MAX_STARTS * 4 {
            return too_many();
        }
    }
    found.sort();
    found.dedup();
    if found.len() > MAX_STARTS {
        return too_many();
    }
    Ok(found)
}

/// Builds the tree of every start, each in its own row: in backgammon, one for each opening roll of either player. The trees
/// are independent: on the CPU they are built in parallel, on a GPU in one batch. Building ends once `stop` is requested.
///
/// # Errors
/// Those of [`starts`], of the network and of the device; [`Error::Stopped`].
pub fn build(game: &dyn AnyGame, network: &dyn Network, plan: CachePlan, stop: &Stop) -> Result<RootCache> {
    let starts = starts(game)?;
    let make = |arrays| make(game, arrays, plan.placement, 1);
    match plan.placement.devices.first() {
        DeviceName::Cuda(_) => build_rows(game, network.fork(), plan, &starts, 0, &make, stop),
        DeviceName::Cpu => {
            let work: Vec<_> =
                starts.into_iter().enumerate().map(|(i, state)| (i, state, network.fork())).collect();
            let trees: Vec<Result<RootCache>> = work
                .into_par_iter()
                .map(|(i, state, network)| build_rows(game, network, plan, &[state], i as u64, &make, stop))
                .collect();
            trees.into_iter().try_fold(RootCache::new(), |mut all, tree| {
                all.extend(tree?);
                Ok(all)
            })
        }
    }
}

/// Builds the trees of `starts` in the rows of a backend that `make` returns. `first` is the index of the first start among
/// all.
///
/// # Errors
/// Those of `make`, the network and the device; [`Error::Stopped`] once `stop` is requested.
pub fn build_rows(
    game: &dyn AnyGame,
    network: Box<dyn Network>,
    plan: CachePlan,
    starts: &[Vec<u8>],
    first: u64,
    make: &dyn Fn(BackendPlan) -> Result<Box<dyn Backend>>,
    stop: &Stop,
) -> Result<RootCache> {
    let params = SearchParams { simulations: plan.simulations, leaves: LEAVES, ..plan.params };
    let nodes = BackendPlan::nodes_for(plan.simulations, &game.sizes());
    let arrays = BackendPlan { rows: starts.len(), nodes, params, reuse: Reuse::Drop };
    let mut searcher = Searcher::with_backend(game, network, make(arrays)?, arrays, plan.placement.devices)?;
    searcher.stop_by(stop);
    for (b, state) in starts.iter().enumerate() {
        searcher.backend.set_root(b, state, &[])?;
        let key = RowKey { seed: plan.seed, slot: u64::MAX, game: first + b as u64, ..RowKey::default() };
        let ply = PlyPlan { simulations: plan.simulations, exploration: Exploration::Plain, key };
        searcher.backend.begin(b, ply)?;
    }
    searcher.finish()?;
    let trees = starts.iter().enumerate().map(|(b, state)| {
        let snapshot = searcher.backend.snapshot(b, plan.keep)?;
        Ok((state.clone(), snapshot))
    });
    trees.collect()
}
