//! Positions in, search results out: a backend, a network and the passes between them.
//!
//! [`Searcher`] is one shard of rows with its own evaluator, worked on by one thread; [`Searchers`] is one of them for each
//! thread. Knows no training.

use crate::backend::device_selfplay::{Copied, Decided};
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, PassStats, PlyPlan, RowBudget, new_backend};
use crate::batch::AnyGame;
use crate::config::{DeviceName, Devices};
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::net::Network;
use crate::net::double_buffer::{Answers, ObsBuffer};
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::search::{
    Laps, PassBuffers, PassClock, SearchParams, begin_pass, end_pass, simulate, simulate_many,
    simulate_within,
};
use rayon::prelude::*;
use std::time::Instant;

/// Passes without a look whether any row has simulations left, where a look costs as much as a pass.
const UNWATCHED_PASSES: u32 = 16;

/// A position to search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The state; a player must be to move.
    pub state: Vec<u8>,
    /// Keys of the positions before it, where the game keeps them.
    pub history: Vec<u64>,
    /// What random numbers are keyed by.
    pub key: RowKey,
}

/// Some rows, the network that evaluates their leaves, and the work space.
pub struct Searcher {
    /// States and trees.
    pub backend: Box<dyn Backend>,
    /// The evaluator.
    pub network: Box<dyn Network>,
    /// Where the time went.
    pub clock: PassClock,
    /// Where the rows are.
    devices: Devices,
    /// True where the backend has the network beside its rows.
    is_beside: bool,
    /// What the pass that was begun selected.
    selected: PassStats,
    buffers: PassBuffers,
}

impl Searcher {
    /// A searcher of `plan.rows` rows.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the network is not made for this game, and as [`new_backend`].
    pub fn new(game: &dyn AnyGame, network: Box<dyn Network>, plan: BackendPlan) -> Result<Self> {
        Self::with_backend(game, network, new_backend(game, plan)?, plan)
    }

    /// A searcher with a backend that was made for `plan`; where that can, it takes the network beside its rows.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the network is not made for this game, and as [`Backend::take_network`].
    pub fn with_backend(
        game: &dyn AnyGame,
        network: Box<dyn Network>,
        backend: Box<dyn Backend>,
        plan: BackendPlan,
    ) -> Result<Self> {
        let sizes = game.sizes();
        let shape = network.shape();
        let found = (shape.obs_len, shape.num_actions, shape.num_players);
        let expected = (sizes.obs.len(), sizes.num_actions, sizes.num_players);
        if found != expected {
            return Err(Error::Mismatch {
                what: format!("network for {} (observation, actions, players)", game.name()),
                found: format!("{found:?}"),
                expected: format!("{expected:?}"),
            });
        }
        let mut searcher = Self {
            backend,
            network,
            devices: plan.params.devices,
            is_beside: false,
            clock: PassClock::default(),
            selected: PassStats::default(),
            buffers: PassBuffers::new(&sizes, plan.rows * plan.params.leaves),
        };
        searcher.give_network()?;
        Ok(searcher)
    }

    /// Takes another network of the same shape.
    ///
    /// # Errors
    /// What the device says.
    pub fn set_network(&mut self, network: &dyn Network) -> Result<()> {
        self.network = network.fork();
        self.give_network()
    }

    fn give_network(&mut self) -> Result<()> {
        self.is_beside = self.backend.take_network(self.network.parts_for(&self.devices))?;
        Ok(())
    }

    /// Passes until every row is done.
    ///
    /// # Errors
    /// What the network and the device say.
    pub fn finish(&mut self) -> Result<()> {
        let passes = if self.is_beside { UNWATCHED_PASSES } else { 1 };
        let Self { backend, network, buffers, clock, .. } = self;
        while simulate_many(backend.as_mut(), network.as_mut(), buffers, clock, passes)? > 0 {}
        Ok(())
    }

    /// One pass over all rows; returns the number of leaves, 0 where all are done.
    ///
    /// # Errors
    /// What the network says.
    pub fn pass(&mut self) -> Result<usize> {
        simulate(self.backend.as_mut(), self.network.as_mut(), &mut self.buffers, &mut self.clock)
    }

    /// [`Searcher::pass`] as far as `reach` says, with an evaluator that several searchers share, one after the other; how many rows
    /// it went through.
    ///
    /// # Errors
    /// What the network says.
    pub fn pass_with(&mut self, network: &mut dyn Network, reach: RowBudget) -> Result<usize> {
        let Self { backend, buffers, clock, .. } = self;
        Ok(simulate_within(backend.as_mut(), network, buffers, clock, reach)?.visited)
    }

    /// The beginning of a pass: M, the leaves that the network is to be asked about.
    pub fn begin_pass(&mut self) -> usize {
        self.selected = begin_pass(self.backend.as_mut(), &mut self.clock);
        self.asked()
    }

    /// The most leaves that a pass can ask the network about.
    pub fn most_leaves(&self) -> usize {
        self.buffers.most
    }

    /// M of the pass that was begun.
    pub fn asked(&self) -> usize {
        self.selected.evaluations
    }

    /// Writes the observations of the pass that was begun into `buffer`. `[M, F]`
    pub fn observe(&mut self, buffer: ObsBuffer<'_>) {
        let start = Instant::now();
        let numbers = self.selected.evaluations * self.backend.sizes().obs.len();
        buffer.fill_by(&mut self.buffers.obs[..numbers], |obs| self.backend.observe(obs));
        self.clock.select += start.elapsed().as_secs_f64();
    }

    /// The end of the pass that was begun, with the network's answers.
    ///
    /// # Errors
    /// What the backend says.
    pub fn end_pass(&mut self, answers: Answers<'_>) -> Result<()> {
        let Answers { logits, values } = answers;
        let mut laps = Laps::begin();
        end_pass(self.backend.as_mut(), &self.selected, (logits, values), &mut self.clock, &mut laps)
    }

    /// `passes` passes in the slots that the backend has taken over, with an evaluator that several searchers share; what was
    /// decided in them, in any order.
    ///
    /// # Errors
    /// What the network and the device say.
    pub fn play_with(
        &mut self,
        network: &mut dyn Network,
        passes: u32,
        most_passes: u32,
    ) -> Result<Vec<Decided>> {
        let (mut decided, mut left) = (Vec::new(), passes);
        let before = self.backend.copied();
        while left > 0 {
            let now = left.min(most_passes);
            simulate_many(self.backend.as_mut(), network, &mut self.buffers, &mut self.clock, now)?;
            self.backend.drain_decisions(&mut decided)?;
            left -= now;
        }
        let Copied { inside, total } = self.backend.copied();
        self.clock.copied.inside += inside - before.inside;
        self.clock.copied.total += total - before.total;
        Ok(decided)
    }

    /// Searches `positions`, as many at a time as there are rows, each in a new tree.
    ///
    /// # Errors
    /// What the network says.
    pub fn search(
        &mut self,
        positions: &[Position],
        simulations: u32,
        exploration: Exploration,
    ) -> Result<Vec<RootSummary>> {
        let mut out = Vec::with_capacity(positions.len());
        for chunk in positions.chunks(self.backend.rows()) {
            for (b, position) in chunk.iter().enumerate() {
                self.backend.set_root(b, &position.state, &position.history);
                self.backend.begin(b, PlyPlan { simulations, exploration, key: position.key });
            }
            self.finish()?;
            for b in 0..chunk.len() {
                let mut summary = RootSummary::default();
                self.backend.summarise(b, &mut summary);
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
    /// Searchers of `rows` rows in all, for searches of at most `params.simulations` simulations without reuse. A GPU works on
    /// all rows at once, in one searcher.
    ///
    /// # Errors
    /// As [`Searcher::new`].
    pub fn new(
        game: &dyn AnyGame,
        network: &dyn Network,
        params: SearchParams,
        rows: usize,
        threads: usize,
    ) -> Result<Self> {
        let nodes = BackendPlan::nodes_for(params.simulations, &game.sizes());
        let threads = match params.devices.first() {
            DeviceName::Cpu => threads.clamp(1, rows.max(1)),
            DeviceName::Cuda(_) => 1,
        };
        let plan = BackendPlan { rows: rows.div_ceil(threads), nodes, params, reuse: Reuse::Drop };
        let shards =
            (0..threads).map(|_| Searcher::new(game, network.fork(), plan)).collect::<Result<Vec<_>>>()?;
        Ok(Self { shards })
    }

    /// Searches `positions`; the results are in their order and depend on neither threads nor rows.
    ///
    /// # Errors
    /// What the network says.
    pub fn search(
        &mut self,
        positions: &[Position],
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

    /// The sum of the shards' clocks.
    pub fn clock(&self) -> PassClock {
        let mut sum = PassClock::default();
        self.shards.iter().for_each(|s| sum.add(&s.clock));
        sum
    }

    /// The shards.
    pub fn shards(&mut self) -> &mut [Searcher] {
        &mut self.shards
    }
}

/// The network's own answer for each state: `states [M, bytes]` -> (priors over the legal list, values by player `[P]`).
/// A player must be to move in every state.
///
/// # Errors
/// What the network says.
pub fn bare_policies(
    game: &dyn AnyGame,
    network: &mut dyn Network,
    positions: &[Position],
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
    let answers = positions.iter().zip(rows).map(|(position, (logits, values))| {
        let history = crate::game::History { played: &position.history, path: &[] };
        let legal = game.legal(&position.state, history);
        let mut priors: Vec<f32> = legal.iter().map(|&a| logits[usize::from(a)]).collect();
        crate::math::softmax(&mut priors);
        let observer = match game.turn(&position.state) {
            Turn::Player(p) => p,
            Turn::Chance | Turn::Over => 0,
        };
        let mut absolute = vec![0.0; sizes.num_players];
        crate::search::expand::seat_values(values, observer, &mut absolute);
        (priors, absolute)
    });
    Ok(answers.collect())
}
