//! The root cache: one deep tree for each start of the game, built once per set of weights and cloned into every new game.
//!
//! The tree is built without noise and with many leaves a pass; noise stays with each game, and the visits that a game
//! inherits are counted apart from its own (`search.inherit_cap`). Where T is smaller than the tree, the most visited
//! nodes are cloned.

use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, PlyPlan, RootCache, new_backend};
use crate::batch::AnyGame;
use crate::config::DeviceName;
use crate::error::{Error, Result};
use crate::game::{History, Sizes, Turn};
use crate::net::Network;
use crate::search::SearchParams;
use crate::search::root::{Exploration, RowKey};
use crate::searcher::Searcher;
use rayon::prelude::*;

/// Leaves a pass while a cache is built.
const LEAVES: usize = 32;
/// The most starts that are cached, each with a tree of its own.
const MOST_STARTS: usize = 64;

/// What to build.
#[derive(Clone, Copy, Debug)]
pub struct CachePlan {
    /// Simulations of each tree.
    pub simulations: u32,
    /// Nodes a game can take over.
    pub keep: usize,
    /// How to search.
    pub params: SearchParams,
    /// The run's seed, for sampled chance.
    pub seed: u64,
}

impl CachePlan {
    /// The cache of a run whose rows are made by `plan`; of several devices, the first builds it.
    pub fn for_run(simulations: u32, plan: BackendPlan, sizes: &Sizes, seed: u64) -> Self {
        let ply = BackendPlan::nodes_for(plan.params.simulations, sizes) - 1;
        let params = SearchParams { devices: plan.params.devices.first().into(), ..plan.params };
        Self { simulations, keep: plan.nodes.saturating_sub(ply).max(1), params, seed }
    }
}

/// The states in which the first player decision of a game can be met.
///
/// # Errors
/// [`Error::Unsupported`] where there are too many, or where what a player sees is dealt anew each game.
pub fn starts(game: &dyn AnyGame) -> Result<Vec<Vec<u8>>> {
    let refuse = |why: &str| Err(Error::unsupported(format!("search.root_cache for {}", game.name()), why));
    if game.sizes().hidden_information {
        return refuse("every game deals new hands, so no two games share a root");
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
        if open.len() + found.len() > MOST_STARTS * 4 {
            return refuse("it has more starts than a cache is worth");
        }
    }
    found.sort();
    found.dedup();
    if found.len() > MOST_STARTS {
        return refuse("it has more starts than a cache is worth");
    }
    Ok(found)
}

/// Builds the tree of every start, each in a row of its own: in backgammon one for each opening roll of either player. None
/// depends on another: on the CPU they are built side by side, on a device all together.
///
/// # Errors
/// As [`starts`], or what the network or the device says.
pub fn build(game: &dyn AnyGame, network: &dyn Network, plan: CachePlan) -> Result<RootCache> {
    let starts = starts(game)?;
    let make = |plan| new_backend(game, plan);
    match plan.params.devices.first() {
        DeviceName::Cuda(_) => build_rows(game, network.fork(), plan, &starts, 0, &make),
        DeviceName::Cpu => {
            let work: Vec<_> =
                starts.into_iter().enumerate().map(|(i, state)| (i, state, network.fork())).collect();
            let trees: Vec<Result<RootCache>> = work
                .into_par_iter()
                .map(|(i, state, network)| build_rows(game, network, plan, &[state], i as u64, &make))
                .collect();
            trees.into_iter().try_fold(RootCache::new(), |mut all, tree| {
                all.extend(tree?);
                Ok(all)
            })
        }
    }
}

/// Builds the trees of `starts`, whose first is number `first` of all, in the rows of a backend that `make` makes.
///
/// # Errors
/// What `make`, the network or the device says.
pub fn build_rows(
    game: &dyn AnyGame,
    network: Box<dyn Network>,
    plan: CachePlan,
    starts: &[Vec<u8>],
    first: u64,
    make: &dyn Fn(BackendPlan) -> Result<Box<dyn Backend>>,
) -> Result<RootCache> {
    let params = SearchParams { simulations: plan.simulations, leaves: LEAVES, ..plan.params };
    let nodes = BackendPlan::nodes_for(plan.simulations, &game.sizes());
    let arrays = BackendPlan { rows: starts.len(), nodes, params, reuse: Reuse::Drop };
    let mut searcher = Searcher::with_backend(game, network, make(arrays)?, arrays)?;
    for (b, state) in starts.iter().enumerate() {
        searcher.backend.set_root(b, state, &[]);
        let key = RowKey { seed: plan.seed, slot: u64::MAX, game: first + b as u64, ..RowKey::default() };
        let ply = PlyPlan { simulations: plan.simulations, exploration: Exploration::Plain, key };
        searcher.backend.begin(b, ply);
    }
    searcher.finish()?;
    let trees =
        starts.iter().enumerate().map(|(b, state)| (state.clone(), searcher.backend.snapshot(b, plan.keep)));
    let trees = trees.collect();
    searcher.backend.check()?;
    Ok(trees)
}
