//! The trees of one position: one whose leaves all threads evaluate, or one for each deal of hidden cards, divided over threads.

use super::limit::Clock;
use super::settings::Settings;
use super::shard::{PassCounts, PassPlan, Shard, sized};
use crate::backend::AnyGame;
use crate::backend::plan::{BackendPlan, Reuse};
use crate::config::Algorithm;
use crate::error::{Error, Result};
use crate::net::{Network, SplitBatch};
use crate::play::act::sum_determinisations;
use crate::search::root::{RootSummary, RowKey};
use crate::searcher::{SearchRequest, Searcher};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Instant;

const MIB: usize = 1 << 20;
/// Nodes of a tree at first.
const FIRST_NODES: usize = 4096;
/// Leaves of a pass for each thread, if the engine chooses.
const LEAVES_PER_THREAD: u32 = 32;
/// The same on a GPU, whose passes have this number from the first one on: a pass of the root cache has as many for 256 visits.
const LEAVES_ON_DEVICE: u32 = 16;

/// The trees of one position.
pub(super) struct Trees {
    game: Arc<dyn AnyGame>,
    settings: Settings,
    /// Each for one thread, or one for all. `[shards]`
    shards: Vec<Shard>,
    /// Trees of a shard; the last one may have fewer.
    rows_per_shard: usize,
    /// Trees of all shards.
    count: usize,
    /// Nodes that the memory limit allows a tree, with those of the old arrays and of their copy while it grows.
    max_nodes: usize,
}

impl Trees {
    /// The trees of `settings`, without roots.
    ///
    /// # Errors
    /// [`Error::Config`] for a memory limit that holds no tree; those of [`Searcher::new`].
    pub fn new(game: &Arc<dyn AnyGame>, network: &dyn Network, settings: Settings) -> Result<Self> {
        let sizes = game.sizes();
        let threads = settings.num_threads();
        let count = settings.deals(&sizes);
        let shards = if settings.placement.devices.is_cpu() { threads.min(count) } else { 1 };
        let reuse = if sizes.hidden_information { Reuse::Drop } else { Reuse::Keep };
        let mut params = settings.params;
        params.min_simulations = 0;
        // A tree counts whole, however often its arrays grow.
        params.inherit_cap = params.inherit_cap.max(1.0);
        params.leaves = match (settings.leaves, settings.placement.devices.is_cpu()) {
            (0, true) => LEAVES_PER_THREAD * (threads / shards) as u32,
            (0, false) => LEAVES_ON_DEVICE,
            (leaves, _) => leaves,
        };
        let mut plan = BackendPlan { rows: count.div_ceil(shards), nodes: FIRST_NODES, params, reuse };
        let shards = count.div_ceil(plan.rows);
        let node = plan.row_bytes(&sizes, game.state_size()).div_ceil(FIRST_NODES);
        let max_nodes = settings.memory_mib * MIB / (node * count);
        let least_for = |leaves| BackendPlan::nodes_for(8 * leaves, &sizes);
        while settings.leaves == 0 && plan.params.leaves > 1 && max_nodes < least_for(plan.params.leaves) {
            plan.params.leaves /= 2;
        }
        let least = least_for(plan.params.leaves);
        if max_nodes < least {
            let expected = format!("at least {}", (least * node * count).div_ceil(MIB));
            return Err(Error::config("memory_mib", settings.memory_mib, expected));
        }
        plan = sized(plan, FIRST_NODES.min(max_nodes / 6).max(least), game.as_ref());
        let shard = |index: usize| {
            let network: Box<dyn Network> = match threads / shards {
                parts @ 2.. if network.gains_by_threads() => Box::new(SplitBatch::new(network, parts)),
                _ => network.fork(),
            };
            let searcher = Searcher::new(game.as_ref(), network, plan, settings.placement)?;
            let rows = plan.rows.min(count - index * plan.rows);
            Ok(Shard::new(game, searcher, settings.placement, plan, rows))
        };
        let (shards, rows_per_shard) = ((0..shards).map(shard).collect::<Result<_>>()?, plan.rows);
        Ok(Self { game: game.clone(), settings, shards, rows_per_shard, count, max_nodes })
    }

    /// The rules.
    pub fn game(&self) -> &Arc<dyn AnyGame> {
        &self.game
    }

    /// The number of trees.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The shard of tree `tree`, and its row there.
    fn at(&mut self, tree: usize) -> (&mut Shard, usize) {
        (&mut self.shards[tree / self.rows_per_shard], tree % self.rows_per_shard)
    }

    /// Begins new trees, one for each position.
    ///
    /// # Errors
    /// Those of the device.
    pub fn set_roots(&mut self, positions: &[SearchRequest]) -> Result<()> {
        for (tree, position) in positions.iter().enumerate() {
            let (shard, row) = self.at(tree);
            shard.set_root(row, position)?;
        }
        self.set_keys(positions)
    }

    /// Restricts the roots, which [`Self::set_roots`] has just set, to some of their actions.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an algorithm without trees, and those of the device.
    pub fn restrict_roots(&mut self, actions: &[u16]) -> Result<()> {
        if self.settings.params.algorithm == Algorithm::Afterstate {
            return Err(Error::unsupported(
                "a search of some moves alone with the algorithm afterstate",
                "it evaluates all positions after a turn",
            ));
        }
        for tree in 0..self.count {
            let (shard, row) = self.at(tree);
            shard.restrict_root(row, actions)?;
        }
        Ok(())
    }

    /// The probability of a draw by the network's own estimate, the mean over `positions`; None where the network has none.
    ///
    /// # Errors
    /// Those of the network.
    pub fn draw(&mut self, positions: &[SearchRequest]) -> Result<Option<f32>> {
        let mut obs = vec![0.0; self.game.sizes().obs.len()];
        let mut sum = 0.0;
        for position in positions {
            self.game.observe_batch(&position.state, &mut obs);
            let Some([_, draw, _]) = self.shards[0].searcher.network.outcome(&obs)? else { return Ok(None) };
            sum += draw;
        }
        Ok(Some(sum / positions.len() as f32))
    }

    /// Moves the root of the only tree along `actions` to `position` and keeps the tree below it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn advance(&mut self, actions: &[u16], position: &SearchRequest) -> Result<()> {
        self.shards[0].advance(0, actions, position)?;
        self.set_keys(std::slice::from_ref(position))
    }

    /// Gives the trees the keys of their new roots, and reads what these have been visited.
    fn set_keys(&mut self, positions: &[SearchRequest]) -> Result<()> {
        for (tree, position) in positions.iter().enumerate() {
            let key = RowKey { determinisation: tree as u64, ..position.key };
            let (shard, row) = self.at(tree);
            shard.set_key(row, key);
        }
        self.shards.iter_mut().try_for_each(Shard::read_visits)
    }

    /// Passes of all trees, up to the limits of `clock` or the time `until`.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn search(&mut self, clock: &Clock<'_>, until: Option<Instant>) -> Result<PassCounts> {
        let plan = PassPlan { clock, until, leaves: self.settings.leaves, max_nodes: self.max_nodes };
        if let [shard] = self.shards.as_mut_slice() {
            return shard.search(plan);
        }
        let made: Vec<Result<PassCounts>> =
            self.shards.par_iter_mut().with_max_len(1).map(|shard| shard.search(plan)).collect();
        made.into_iter().try_fold(PassCounts::default(), |all, made| Ok(all.and(made?)))
    }

    /// Nodes of all trees.
    ///
    /// # Errors
    /// Those of the device.
    pub fn nodes(&mut self) -> Result<usize> {
        self.shards.iter_mut().try_fold(0, |sum, shard| Ok(sum + shard.nodes()?))
    }

    /// The result of all trees together.
    ///
    /// # Errors
    /// Those of the device.
    pub fn summarise(&mut self) -> Result<RootSummary> {
        let parts: Vec<RootSummary> =
            self.shards.iter_mut().map(Shard::parts).collect::<Result<Vec<_>>>()?.concat();
        let mut sum = RootSummary::default();
        match parts.as_slice() {
            [one] => sum.clone_from(one),
            deals => sum_determinisations(deals, &mut sum),
        }
        if self.settings.params.algorithm == Algorithm::Gumbel && !sum.proven {
            sum.best = best_of_well_visited(&sum);
        }
        Ok(sum)
    }

    /// For each of the root's actions `first`, the expected continuation in the first tree.
    ///
    /// # Errors
    /// Those of the device.
    pub fn variations(&mut self, first: &[u16], max_len: usize) -> Result<Vec<Vec<u16>>> {
        self.shards[0].searcher.backend.variations(0, first, max_len)
    }
}

/// The best action of sequential halving that may have been stopped. Of the actions that are not refuted and have at least half of their
/// maximum number of visits, it has the highest improved policy, or the highest mean value where the policies are too small for f32.
fn best_of_well_visited(summary: &RootSummary) -> usize {
    let RootSummary { visits, policy, q, best, .. } = summary;
    // A refuted action has no policy and the value of a loss.
    let left = || (0..visits.len()).filter(|&i| policy[i] > 0.0 || q[i] > -1.0);
    let max_visits = left().map(|i| visits[i]).max().unwrap_or(0);
    left()
        .filter(|&i| 2 * visits[i] >= max_visits)
        .max_by(|&a, &b| policy[a].total_cmp(&policy[b]).then(q[a].total_cmp(&q[b])).then(b.cmp(&a)))
        .unwrap_or(*best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_action_is_well_visited_and_not_refuted() {
        let best = |visits: &[i32], policy: &[f32], q: &[f32]| {
            let mut summary = RootSummary::default();
            (summary.visits, summary.policy, summary.q) = (visits.into(), policy.into(), q.into());
            best_of_well_visited(&summary)
        };
        assert_eq!(best(&[100, 60, 40], &[0.2, 0.3, 0.5], &[0.1, 0.2, 0.3]), 1, "few visits");
        assert_eq!(best(&[900, 60, 40], &[0.0, 0.4, 0.6], &[-1.0, 0.2, 0.3]), 2, "a refuted action");
        assert_eq!(best(&[900, 800, 10], &[0.0, 0.0, 1.0], &[0.1, 0.2, 0.3]), 1, "small policies");
    }
}
