//! The root cache: one deep tree for each start of the game, built once per set of weights and cloned into every new game.
//!
//! The tree is built without noise and with many leaves a pass; noise stays with each game, and the visits that a game
//! inherits are counted apart from its own (`search.inherit_cap`). Where T is smaller than the tree, the most visited
//! nodes are cloned.

use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{PlyPlan, Snapshot};
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
    /// The cache of a run whose rows are made by `plan`.
    pub fn for_run(simulations: u32, plan: BackendPlan, sizes: &Sizes, seed: u64) -> Self {
        let ply = BackendPlan::nodes_for(plan.params.simulations, sizes) - 1;
        Self { simulations, keep: plan.nodes.saturating_sub(ply).max(1), params: plan.params, seed }
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

/// Builds the tree of every start, each on a row of its own: in backgammon one for each opening roll of either player.
/// Trees of several starts are built side by side; none depends on another. On the CPU.
///
/// # Errors
/// As [`starts`], or what the network says.
pub fn build(game: &dyn AnyGame, network: &dyn Network, plan: CachePlan) -> Result<Vec<(Vec<u8>, Snapshot)>> {
    let work: Vec<_> =
        starts(game)?.into_iter().enumerate().map(|(i, state)| (i as u64, state, network.fork())).collect();
    work.into_par_iter()
        .map(|(i, state, network)| {
            let tree = build_one(game, network, plan, &state, i)?;
            Ok((state, tree))
        })
        .collect()
}

/// The tree of the start `state`, the `number`-th.
fn build_one(
    game: &dyn AnyGame,
    network: Box<dyn Network>,
    plan: CachePlan,
    state: &[u8],
    number: u64,
) -> Result<Snapshot> {
    let params = SearchParams {
        device: DeviceName::Cpu,
        simulations: plan.simulations,
        leaves: LEAVES,
        ..plan.params
    };
    let nodes = BackendPlan::nodes_for(plan.simulations, &game.sizes());
    let backend = BackendPlan { rows: 1, nodes, params, reuse: Reuse::Drop };
    let mut searcher = Searcher::new(game, network, backend)?;
    searcher.backend.plant(0, state, &[]);
    let key = RowKey { seed: plan.seed, lane: u64::MAX, game: number, ..RowKey::default() };
    searcher
        .backend
        .begin(0, PlyPlan { simulations: plan.simulations, exploration: Exploration::Plain, key });
    while searcher.pass()? > 0 {}
    Ok(searcher.backend.snapshot(0, plan.keep))
}
