//! The trees of one position: one, one for each thread, or one for each deal.

use super::limit::Clock;
use super::settings::{Settings, Sharing};
use super::shard::{Made, PassPlan, Shard};
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{AnyGame, PlyPlan, make};
use crate::config::{Algorithm, DeviceName};
use crate::error::{Error, Result};
use crate::net::{Network, SplitBatch};
use crate::play::act::sum_determinisations;
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::searcher::{SearchRequest, Searcher};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;
/// Nodes of a tree at first.
const FIRST_NODES: usize = 4096;
/// How much larger a full tree becomes.
const GROWTH: usize = 4;
/// Bytes a second that are copied into larger trees, at least.
const COPIED_PER_SECOND: f64 = 5e8;
/// Leaves of a pass for each thread, if the engine chooses.
const LEAVES_PER_THREAD: u32 = 32;
/// Passes of a shard before the threads meet: the shorter passes of one thread make up for its longer ones.
const PASSES_TOGETHER: usize = 8;

/// The trees of one position.
pub(super) struct Trees {
    game: Arc<dyn AnyGame>,
    settings: Settings,
    /// Each for one thread, or one for all. `[shards]`
    shards: Vec<Shard>,
    /// The arrays of a shard.
    plan: BackendPlan,
    /// Trees of all shards.
    count: usize,
    /// The most nodes that the memory limit allows a tree.
    max_nodes: usize,
    /// The keys of the trees' random numbers. `[count]`
    keys: Vec<RowKey>,
    /// Sums of values that arrays which grew do not hold. `[count][P]`
    carried: Vec<Vec<f32>>,
}

impl Trees {
    /// The trees of `settings`, without roots.
    ///
    /// # Errors
    /// [`Error::Config`] for a memory limit that holds no tree; those of [`Searcher::new`].
    pub fn new(game: &Arc<dyn AnyGame>, network: &dyn Network, settings: Settings) -> Result<Self> {
        let sizes = game.sizes();
        let threads = settings.num_threads();
        let count = match (sizes.hidden_information, settings.sharing) {
            (true, _) => settings.determinisations.max(1),
            (false, Sharing::OneTree) => 1,
            (false, Sharing::TreePerThread) => threads,
        };
        let shards = match settings.placement.devices.first() {
            DeviceName::Cpu => threads.min(count),
            DeviceName::Cuda(_) => 1,
        };
        let leaves = match settings.leaves {
            0 => LEAVES_PER_THREAD * (threads / shards) as u32,
            leaves => leaves,
        };
        let reuse = if sizes.hidden_information { Reuse::Drop } else { Reuse::Keep };
        let mut params = settings.params;
        (params.leaves, params.min_simulations) = (leaves, 0);
        let mut plan = BackendPlan { rows: count.div_ceil(shards), nodes: FIRST_NODES, params, reuse };
        let shards = count.div_ceil(plan.rows);
        let node = plan.row_bytes(&sizes, game.state_size()).div_ceil(FIRST_NODES);
        let least = BackendPlan::nodes_for(8 * leaves, &sizes);
        // While trees grow, the old ones exist beside the new ones.
        let max_nodes = (settings.memory_mib * MIB / (node * count)) * GROWTH / (GROWTH + 1);
        if max_nodes < least {
            let expected = format!("at least {}", (2 * least * node * count).div_ceil(MIB));
            return Err(Error::config("memory_mib", settings.memory_mib, expected));
        }
        let max_nodes = max_nodes.min(1 << 28);
        plan = sized(plan, FIRST_NODES.clamp(least, max_nodes), game.as_ref());
        let shard = |index: usize| {
            let network: Box<dyn Network> = match threads / shards {
                0 | 1 => network.fork(),
                parts => Box::new(SplitBatch::new(network, parts)),
            };
            let searcher = Searcher::new(game.as_ref(), network, plan, settings.placement)?;
            Ok(Shard { searcher, rows: plan.rows.min(count - index * plan.rows), visits: 0 })
        };
        Ok(Self {
            game: game.clone(),
            settings,
            shards: (0..shards).map(shard).collect::<Result<_>>()?,
            plan,
            count,
            max_nodes,
            keys: vec![RowKey::default(); count],
            carried: vec![vec![0.0; sizes.num_players]; count],
        })
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
    fn at(&mut self, tree: usize) -> (&mut Searcher, usize) {
        (&mut self.shards[tree / self.plan.rows].searcher, tree % self.plan.rows)
    }

    /// Plants new trees: one for each position, or all for the only one.
    ///
    /// # Errors
    /// Those of the device.
    pub fn set_roots(&mut self, positions: &[SearchRequest]) -> Result<()> {
        for tree in 0..self.count {
            let position = &positions[tree % positions.len()];
            let (shard, row) = self.at(tree);
            shard.backend.set_root(row, &position.state, &position.history)?;
        }
        self.set_keys(positions);
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

    /// Moves the roots along `actions` to `position` and keeps the trees below it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn advance(&mut self, actions: &[u16], position: &SearchRequest) -> Result<()> {
        for tree in 0..self.count {
            let (shard, row) = self.at(tree);
            shard.backend.advance(row, actions, &position.state, &position.history)?;
        }
        self.set_keys(std::slice::from_ref(position));
        Ok(())
    }

    fn set_keys(&mut self, positions: &[SearchRequest]) {
        for tree in 0..self.count {
            let key = positions[tree % positions.len()].key;
            self.keys[tree] = RowKey { determinisation: tree as u64, ..key };
        }
        self.carried.iter_mut().for_each(|sums| sums.fill(0.0));
    }

    /// Begins `simulations` more simulations in every tree.
    ///
    /// # Errors
    /// Those of the device.
    pub fn begin(&mut self, simulations: u32) -> Result<()> {
        for tree in 0..self.count {
            let key = self.keys[tree];
            let is_noisy = !self.game.sizes().hidden_information && tree > 0;
            let exploration = if is_noisy { Exploration::Noisy } else { Exploration::Plain };
            let (shard, row) = self.at(tree);
            shard.backend.begin(row, PlyPlan { simulations, exploration, key })?;
        }
        Ok(())
    }

    /// Passes of all trees, up to the limits of `clock`: one, or [`PASSES_TOGETHER`] where several threads make them. The first is made in any
    /// case.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn pass(&mut self, clock: &Clock<'_>) -> Result<Made> {
        let plan = PassPlan {
            clock,
            passes: if self.shards.len() > 1 { PASSES_TOGETHER } else { 1 },
            leaves: self.settings.leaves,
            room: self.plan.nodes,
            pass_nodes: self.pass_nodes(),
        };
        if let [shard] = self.shards.as_mut_slice() {
            return shard.pass(plan);
        }
        let made: Vec<Result<Made>> =
            self.shards.par_iter_mut().with_max_len(1).map(|shard| shard.pass(plan)).collect();
        made.into_iter().try_fold(Made::default(), |all, made| Ok(all.and(made?)))
    }

    /// Nodes of all trees.
    ///
    /// # Errors
    /// Those of the device.
    pub fn nodes(&mut self) -> Result<usize> {
        (0..self.count).try_fold(0, |sum, tree| {
            let (shard, row) = self.at(tree);
            Ok(sum + shard.backend.num_nodes(row)?)
        })
    }

    /// Nodes that one pass can add to a tree.
    fn pass_nodes(&self) -> usize {
        BackendPlan::nodes_for(self.plan.params.leaves, self.shards[0].searcher.backend.sizes())
    }

    /// Nodes that the largest tree needs for another pass.
    ///
    /// # Errors
    /// Those of the device.
    pub fn needed_nodes(&mut self) -> Result<usize> {
        let largest = self
            .shards
            .iter_mut()
            .try_fold(0, |largest, shard| Ok::<_, Error>(largest.max(shard.largest()?)))?;
        Ok(largest + self.pass_nodes())
    }

    /// The size to which trees grow that need room for `nodes` nodes; None where the memory limit does not allow it. Also returns an
    /// estimate of the time that this takes.
    pub fn growth(&self, nodes: usize) -> Option<(usize, Duration)> {
        if nodes > self.max_nodes {
            return None;
        }
        let target = nodes.max(GROWTH * self.plan.nodes).min(self.max_nodes);
        let plan = sized(self.plan, target, self.game.as_ref());
        let row = plan.row_bytes(&self.game.sizes(), self.game.state_size());
        Some((target, Duration::from_secs_f64((row * self.count) as f64 / COPIED_PER_SECOND)))
    }

    /// Gives every tree room for `nodes` nodes. [`Self::begin`] must follow.
    ///
    /// # Errors
    /// Those of the device.
    pub fn grow(&mut self, nodes: usize) -> Result<()> {
        let before = self.values()?;
        let plan = sized(self.plan, nodes, self.game.as_ref());
        for shard in &mut self.shards {
            let Shard { searcher, rows, .. } = shard;
            let snapshots = (0..*rows).map(|row| searcher.backend.snapshot(row, self.plan.nodes));
            let snapshots = snapshots.collect::<Result<Vec<_>>>()?;
            let mut backend = make(self.game.as_ref(), plan, self.settings.placement, 1)?;
            for (row, snapshot) in snapshots.iter().enumerate() {
                backend.set_root_tree(row, snapshot)?;
            }
            searcher.set_backend(backend)?;
        }
        self.plan = plan;
        self.begin(0)?;
        // The new arrays know the value sum of the player to move alone, where there are more than two.
        let after = self.values()?;
        for (sums, (before, after)) in self.carried.iter_mut().zip(before.iter().zip(&after)) {
            sums.iter_mut().zip(before.iter().zip(after)).for_each(|(sum, (old, new))| *sum += old - new);
        }
        Ok(())
    }

    /// The sum of the values backed up to each root, without what is carried. `[count][P]`
    fn values(&mut self) -> Result<Vec<Vec<f32>>> {
        let mut out = Vec::new();
        let mut summary = RootSummary::default();
        for tree in 0..self.count {
            let (shard, row) = self.at(tree);
            shard.backend.summarise(row, &mut summary)?;
            let visits = if summary.proven { 0.0 } else { node_visits(&summary) };
            out.push(summary.value.iter().map(|value| value * visits).collect());
        }
        Ok(out)
    }

    /// Reads the visits of all roots.
    ///
    /// # Errors
    /// Those of the device.
    pub fn read_visits(&mut self) -> Result<()> {
        let parts = self.parts()?;
        for (shard, parts) in self.shards.iter_mut().zip(parts.chunks(self.plan.rows)) {
            shard.visits = parts.iter().flat_map(|part| &part.visits).map(|&visits| visits as u64).sum();
        }
        Ok(())
    }

    /// Mean visits of a tree.
    pub fn visits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.visits).sum::<u64>() / self.count as u64
    }

    /// The result of every tree. `[count]`
    fn parts(&mut self) -> Result<Vec<RootSummary>> {
        let mut parts = vec![RootSummary::default(); self.count];
        for (tree, part) in parts.iter_mut().enumerate() {
            let (shard, row) = self.at(tree);
            shard.backend.summarise(row, part)?;
            if !part.proven {
                let (sums, visits) = (&self.carried[tree], node_visits(part));
                part.value.iter_mut().zip(sums).for_each(|(value, sum)| *value += sum / visits);
            }
        }
        Ok(parts)
    }

    /// The result of all trees together: of a proof, if one has it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn summarise(&mut self) -> Result<RootSummary> {
        let parts = self.parts()?;
        let mut sum = RootSummary::default();
        match parts.iter().find(|part| part.proven) {
            Some(proof) => sum.clone_from(proof),
            _ if parts.len() == 1 => sum.clone_from(&parts[0]),
            _ => sum_determinisations(&parts, &mut sum),
        }
        if self.plan.params.algorithm == Algorithm::Gumbel && !sum.proven {
            sum.best = best_of_well_visited(&sum);
        }
        Ok(sum)
    }

    /// True if a tree has a proven root. Deals of hidden cards prove nothing: [`crate::search::SearchParams`] has no bounds there.
    ///
    /// # Errors
    /// Those of the device.
    pub fn is_proven(&mut self) -> Result<bool> {
        Ok(self.parts()?.iter().any(|part| part.proven))
    }

    /// For each of the root's actions `first`, the expected continuation in the first tree.
    ///
    /// # Errors
    /// Those of the device.
    pub fn variations(&mut self, first: &[u16], max_len: usize) -> Result<Vec<Vec<u16>>> {
        self.shards[0].searcher.backend.variations(0, first, max_len)
    }
}

/// `plan` with T = `nodes`, a quarter of which is free after a move: kept trees are trimmed to the rest.
fn sized(plan: BackendPlan, nodes: usize, game: &dyn AnyGame) -> BackendPlan {
    let mut plan = BackendPlan { nodes, ..plan };
    plan.params.simulations = (nodes / 4 / (1 + game.sizes().max_chance_run)) as u32;
    plan
}

/// The visits of a root, its own evaluation included.
fn node_visits(summary: &RootSummary) -> f32 {
    1.0 + summary.visits.iter().sum::<i32>() as f32
}

/// The best action of sequential halving that may have been stopped: of the actions with at least half of the most visits, that of the
/// highest improved policy.
fn best_of_well_visited(summary: &RootSummary) -> usize {
    let most = summary.visits.iter().copied().max().unwrap_or(0);
    let policy = summary.policy.iter().zip(&summary.visits);
    let policy: Vec<f32> = policy.map(|(&p, &visits)| if 2 * visits >= most { p } else { -1.0 }).collect();
    crate::search::root::argmax(&policy)
}
