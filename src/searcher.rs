//! Searches of positions: a backend, a network and the passes of both.
//!
//! [`Searcher`] is one shard of rows with an evaluator, for one thread; [`Searchers`] has one of them for each thread. It knows nothing of
//! training.

use crate::backend::AnyGame;
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, Placement, PlyPlan, RowBudget, make};
use crate::config::Devices;
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::net::Network;
use crate::net::double_buffer::{NetOutputs, ObsBuffer};
use crate::pass::{
    PassBuffers, PassMetrics, StageTimer, begin_pass, end_pass, simulate_many, simulate_within,
};
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::search::{PassStats, SearchParams};
use crate::stop::Stop;
use rayon::prelude::*;
use std::time::Instant;

/// Passes that a backend makes by itself before the host reads whether any row has simulations left: the read costs as much as a
/// pass.
const PASSES_PER_CHECK: u32 = 16;

/// A position to search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchRequest {
    /// The state; a player must be to move.
    pub state: Vec<u8>,
    /// Keys of the positions before it, where the game keeps them.
    pub history: Vec<u64>,
    /// The key of its random numbers.
    pub key: RowKey,
}

/// Some rows, the network that evaluates their leaves, and the buffers of a pass.
pub struct Searcher {
    /// States and trees.
    pub backend: Box<dyn Backend>,
    /// The evaluator.
    pub network: Box<dyn Network>,
    /// Seconds and counts of its passes.
    pub metrics: PassMetrics,
    /// Where the rows are.
    devices: Devices,
    /// True where the backend has the resident network.
    is_network_resident: bool,
    /// The selection of the pass that [`Searcher::begin_pass`] began.
    selected: PassStats,
    pub(crate) buffers: PassBuffers,
    pub(crate) stop: Stop,
}

impl Searcher {
    /// A searcher of `plan.rows` rows, each a game of its own.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the network is not made for this game, and as [`make()`].
    pub fn new(
        game: &dyn AnyGame,
        network: Box<dyn Network>,
        plan: BackendPlan,
        placement: Placement,
    ) -> Result<Self> {
        Self::with_backend(game, network, make(game, plan, placement, 1)?, plan, placement.devices)
    }

    /// A searcher on a backend that was made of `plan` on `devices`. A backend that can keeps the resident network.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the network is not made for this game, and as [`crate::backend::DevicePasses::take_network`].
    pub fn with_backend(
        game: &dyn AnyGame,
        network: Box<dyn Network>,
        backend: Box<dyn Backend>,
        plan: BackendPlan,
        devices: Devices,
    ) -> Result<Self> {
        let sizes = game.sizes();
        let shape = network.shape();
        let found = (shape.obs_len, shape.num_actions, shape.num_players);
        let expected = (sizes.obs.len(), sizes.num_actions, sizes.num_players);
        if found != expected {
            return Err(Error::mismatch(
                format_args!("network for {} (observation, actions, players)", game.name()),
                format_args!("{found:?}"),
                format_args!("{expected:?}"),
            ));
        }
        let mut searcher = Self {
            backend,
            network,
            devices,
            is_network_resident: false,
            metrics: PassMetrics::default(),
            selected: PassStats::default(),
            buffers: PassBuffers::new(&sizes, plan.max_evaluations()),
            stop: Stop::default(),
        };
        searcher.offer_network()?;
        Ok(searcher)
    }

    /// From now on every pass fails with [`Error::Stopped`] once `stop` is requested.
    pub fn stop_by(&mut self, stop: &Stop) {
        self.stop = stop.clone();
    }

    /// Replaces the network by another of the same shape.
    ///
    /// # Errors
    /// Those of the device.
    pub fn set_network(&mut self, network: &dyn Network) -> Result<()> {
        self.network = network.fork();
        self.offer_network()
    }

    /// Offers the network to the backend, which keeps it resident on the device of its rows where it can.
    fn offer_network(&mut self) -> Result<()> {
        let desc = self.network.network_desc_for(&self.devices);
        self.is_network_resident = match self.backend.device() {
            Some(device) => {
                device.take_network(desc)?;
                desc.is_some()
            }
            None => false,
        };
        Ok(())
    }

    /// Makes passes until every row is done.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn finish(&mut self) -> Result<()> {
        let passes = if self.is_network_resident { PASSES_PER_CHECK } else { 1 };
        let Self { backend, network, buffers, metrics, stop, .. } = self;
        while simulate_many(backend.as_mut(), network.as_mut(), buffers, metrics, passes)? > 0 {
            stop.check()?;
        }
        Ok(())
    }

    /// Makes one pass over the rows of `budget` and returns its counts. Does not look at the stop.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn pass(&mut self, budget: RowBudget) -> Result<PassStats> {
        let Self { backend, network, buffers, metrics, .. } = self;
        simulate_within(backend.as_mut(), network.as_mut(), buffers, metrics, budget)
    }

    /// Replaces the backend by another of the same game, rows and leaves.
    ///
    /// # Errors
    /// Those of [`crate::backend::DevicePasses::take_network`]; the searcher then keeps its backend.
    pub fn set_backend(&mut self, backend: Box<dyn Backend>) -> Result<()> {
        let before = std::mem::replace(&mut self.backend, backend);
        self.offer_network().inspect_err(|_| self.backend = before)
    }

    /// Makes one pass over the rows of `budget` with an evaluator that several searchers share, one after the other. Returns how many
    /// rows it visited.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn pass_with(&mut self, network: &mut dyn Network, budget: RowBudget) -> Result<usize> {
        self.stop.check()?;
        let Self { backend, buffers, metrics, .. } = self;
        Ok(simulate_within(backend.as_mut(), network, buffers, metrics, budget)?.visited)
    }

    /// Begins a staged pass: selects in all rows. Returns M, the leaves that need the network.
    ///
    /// # Errors
    /// Those of the device.
    pub fn begin_pass(&mut self) -> Result<usize> {
        self.stop.check()?;
        self.selected = begin_pass(self.backend.as_mut(), &mut self.metrics)?;
        Ok(self.num_evaluations())
    }

    /// Maximum number of leaves of a pass.
    pub fn max_leaves(&self) -> usize {
        self.buffers.max_leaves()
    }

    /// M of the pass that was begun.
    pub fn num_evaluations(&self) -> usize {
        self.selected.evaluations
    }

    /// Writes the observations of the pass that was begun into `buffer`. `[M, F]`
    ///
    /// # Errors
    /// Those of the device.
    pub fn observe(&mut self, buffer: ObsBuffer<'_>) -> Result<()> {
        let start = Instant::now();
        let len = self.selected.evaluations * self.backend.sizes().obs.len();
        let Self { backend, buffers, .. } = self;
        let mut written = Ok(());
        buffer.fill_by(buffers.obs_mut(len), |obs| written = backend.observe(obs));
        self.metrics.select += start.elapsed().as_secs_f64();
        written
    }

    /// Ends the pass that was begun, with the network's outputs.
    ///
    /// # Errors
    /// Those of the device.
    pub fn end_pass(&mut self, outputs: NetOutputs<'_>) -> Result<()> {
        let NetOutputs { logits, values } = outputs;
        let mut timer = StageTimer::start();
        end_pass(self.backend.as_mut(), &self.selected, (logits, values), &mut self.metrics, &mut timer)
    }

    /// Searches `positions`, as many at a time as there are rows, each in a new tree.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn search(
        &mut self,
        positions: &[SearchRequest],
        simulations: u32,
        exploration: Exploration,
    ) -> Result<Vec<RootSummary>> {
        let mut out = Vec::with_capacity(positions.len());
        for chunk in positions.chunks(self.backend.rows()) {
            for (b, position) in chunk.iter().enumerate() {
                self.backend.set_root(b, &position.state, &position.history)?;
                self.backend.begin(b, PlyPlan { simulations, exploration, key: position.key })?;
            }
            self.finish()?;
            for b in 0..chunk.len() {
                let mut summary = RootSummary::default();
                self.backend.summarise(b, &mut summary)?;
                out.push(summary);
            }
        }
        Ok(out)
    }
}

/// One [`Searcher`] for each thread.
pub struct Searchers {
    shards: Vec<Searcher>,
}

impl Searchers {
    /// Searchers of `rows` rows in all, for searches of at most `params.simulations` simulations, each in a new tree. On a GPU one
    /// searcher has all rows.
    ///
    /// # Errors
    /// As [`Searcher::new`].
    pub fn new(
        game: &dyn AnyGame,
        network: &dyn Network,
        params: SearchParams,
        placement: Placement,
        rows: usize,
        threads: usize,
    ) -> Result<Self> {
        let nodes = BackendPlan::nodes_for(params.simulations, &game.sizes());
        let threads = if placement.devices.is_cpu() { threads.clamp(1, rows.max(1)) } else { 1 };
        let plan = BackendPlan { rows: rows.div_ceil(threads), nodes, params, reuse: Reuse::Drop };
        let shards = (0..threads).map(|_| Searcher::new(game, network.fork(), plan, placement));
        let shards = shards.collect::<Result<Vec<_>>>()?;
        Ok(Self { shards })
    }

    /// [`Searcher::stop_by`] for every shard.
    pub fn stop_by(&mut self, stop: &Stop) {
        self.shards.iter_mut().for_each(|shard| shard.stop_by(stop));
    }

    /// Searches `positions`; the results are in their order and depend on neither threads nor rows.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn search(
        &mut self,
        positions: &[SearchRequest],
        simulations: u32,
        exploration: Exploration,
    ) -> Result<Vec<RootSummary>> {
        let share = positions.len().div_ceil(self.shards.len()).max(1);
        let parts: Vec<Result<Vec<RootSummary>>> = self
            .shards
            .par_iter_mut()
            .zip(positions.par_chunks(share))
            .map(|(shard, part)| shard.search(part, simulations, exploration))
            .collect();
        let mut out = Vec::with_capacity(positions.len());
        for part in parts {
            out.extend(part?);
        }
        Ok(out)
    }

    /// The shards.
    pub fn shards(&mut self) -> &mut [Searcher] {
        &mut self.shards
    }
}

/// Evaluates each state with the network alone: `states [M, bytes]` -> (priors over the legal list, values by player `[P]`).
/// A player must be to move in every state.
///
/// # Errors
/// Those of the network.
pub fn raw_policies(
    game: &dyn AnyGame,
    network: &mut dyn Network,
    positions: &[SearchRequest],
) -> Result<Vec<(Vec<f32>, Vec<f32>)>> {
    let sizes = game.sizes();
    let m = positions.len();
    let states: Vec<u8> = positions.iter().flat_map(|p| p.state.iter().copied()).collect();
    let mut obs = vec![0.0; m * sizes.obs.len()];
    game.observe_batch(&states, &mut obs);
    let mut logits = vec![0.0; m * sizes.num_actions];
    let mut values = vec![0.0; m * sizes.num_players];
    network.forward(&obs, &mut logits, &mut values)?;
    let rows = logits.chunks_exact(sizes.num_actions).zip(values.chunks_exact(sizes.num_players));
    let outputs = positions.iter().zip(rows).map(|(position, (logits, values))| {
        let history = crate::game::History { played: &position.history, path: &[] };
        let legal = game.legal(&position.state, history);
        let mut priors: Vec<f32> = legal.iter().map(|&a| logits[usize::from(a)]).collect();
        crate::math::softmax(&mut priors);
        let observer = match game.turn(&position.state) {
            Turn::Player(p) => p,
            Turn::Chance | Turn::Over => 0,
        };
        let mut absolute = vec![0.0; sizes.num_players];
        crate::search::expand::seat_values(values, observer, game.num_seated(&position.state), &mut absolute);
        (priors, absolute)
    });
    Ok(outputs.collect())
}
