//! The stream of passes over N games: search, act, refill, emit samples. Knows no training.
//!
//! N slots are split over shards, a few for each thread. Within a shard all rows make the same number of passes, one after the
//! other: where some leaves need no answer of the network, it is asked when it has enough, not when the last row has passed. A slot
//! whose search is done plays its action, and starts a new game when its old one is over, without waiting for any other slot.
//! Everything a slot does depends on its own number alone, so games do not depend on how slots are split, when the network is
//! asked, nor on which thread takes which shard through a pass.

mod decisions;
mod double_buffer;
mod slot;
mod shard;
mod shard_queue;

use crate::backend;
use crate::backend::device_selfplay::{PassDriver, PlayPlan};
use crate::backend::pass_parts::PassParts;
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, Placement, RootCache};
use crate::batch::AnyGame;
use crate::config::{Config, DeviceName, SearchEngine};
use crate::error::{Error, Result};
use crate::game::Sizes;
use crate::kernel_times::KernelTime;
use crate::net::{DoubleBufferedNetwork, Network};
use crate::pass::PassClock;
use crate::search::SearchParams;
use crate::search::eval_cache::{EntryShape, EvalCache};
use crate::searcher::Searcher;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use shard::Shard;
use shard_queue::ShardQueue;
use slot::new_slot;
use std::sync::Arc;
use std::time::Instant;

pub use slot::{GameSlot, Proof};

/// One position to learn from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The state's bytes.
    pub state: Vec<u8>,
    /// The player who moved.
    pub player: u8,
    /// The policy target: legal actions.
    pub actions: Vec<u16>,
    /// The policy target: probabilities of `actions`, summing to 1.
    pub policy: Vec<f32>,
    /// The value target for every player. `[P]`
    pub values: Vec<f32>,
}

/// One finished game.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FinishedGame {
    /// The slot it was played in.
    #[serde(alias = "lane")]
    pub slot: u64,
    /// Its number in the slot.
    pub game: u64,
    /// Everything played and dealt, opening included.
    pub actions: Vec<u16>,
    /// Plies at the front that were drawn at random.
    pub opening: u32,
    /// The result. `[P]`
    pub returns: Vec<f32>,
    /// Its samples.
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// What is worth saving of it by itself; see [`crate::game::Game::finding`].
    #[serde(skip)]
    pub finding: Option<serde_json::Value>,
}

/// How the network is asked.
enum Asks {
    /// Nobody has asked it yet.
    NotYet,
    /// By each thread for the shard it is at.
    EachShard,
    /// For one half of the shards while all threads are at the other.
    DoubleBuffered(Box<dyn DoubleBufferedNetwork>),
}

/// N games in progress.
pub struct SelfPlay {
    shards: Vec<Shard>,
    /// One for each thread.
    networks: Vec<Box<dyn Network>>,
    asks: Asks,
    cache: Arc<RootCache>,
    evaluations: Option<Arc<EvalCache>>,
    stride: u32,
}

impl SelfPlay {
    /// N slots: those of a checkpoint, or new ones where `slots` is empty.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the checkpoint has another number of slots or the network is for another game.
    pub fn new(
        game: &Arc<dyn AnyGame>,
        config: &Config,
        network: &dyn Network,
        slots: Vec<GameSlot>,
        threads: usize,
    ) -> Result<Self> {
        let d = PlayPlan::new(config, &game.sizes()).determinisations;
        let make = |plan| backend::make(game.as_ref(), plan, Placement::of_run(config), d);
        Self::with_backends(game, config, network, slots, threads, &make)
    }

    /// The same with backends that `make` makes.
    ///
    /// # Errors
    /// As [`SelfPlay::new`], and what `make` says.
    pub fn with_backends(
        game: &Arc<dyn AnyGame>,
        config: &Config,
        network: &dyn Network,
        slots: Vec<GameSlot>,
        threads: usize,
        make: &dyn Fn(BackendPlan) -> Result<Box<dyn Backend>>,
    ) -> Result<Self> {
        let sizes = game.sizes();
        let n = config.selfplay.games;
        if !slots.is_empty() && slots.len() != n {
            return Err(Error::Mismatch {
                what: "games in progress in the checkpoint".into(),
                found: slots.len().to_string(),
                expected: n.to_string(),
            });
        }
        let plan = PlayPlan::new(config, &sizes);
        let is_new = slots.is_empty();
        let mut slots = if is_new { (0..n as u64).map(new_slot).collect() } else { slots };
        let num_threads = num_threads(config, threads);
        let num_shards = num_shards(config, num_threads, network.whole_batch());
        let mut shards = Vec::with_capacity(num_shards);
        for i in 0..num_shards {
            let share = n * (i + 1) / num_shards - n * i / num_shards;
            let part: Vec<GameSlot> = slots.drain(..share).collect();
            let rows = part.len() * plan.determinisations;
            let arrays = backend_plan(config, &sizes, rows);
            let backend = make(arrays).map_err(|e| e.in_games(plan.determinisations))?;
            let searcher =
                Searcher::with_backend(game.as_ref(), network.fork(), backend, arrays, config.run.device)?;
            shards.push(Shard::new(game.clone(), plan, searcher, part));
        }
        // An answer that costs nothing is not worth looking up.
        let evaluations = if network.needs_observations() { eval_cache(config, game.as_ref()) } else { None };
        if let Some(cache) = &evaluations {
            shards.iter_mut().for_each(|s| s.searcher.backend.set_eval_cache(cache.clone()));
        }
        let stride = config.selfplay.passes_per_poll;
        let networks = (0..num_threads).map(|_| network.fork()).collect();
        let mut selfplay =
            Self { shards, networks, asks: Asks::NotYet, cache: Arc::default(), evaluations, stride };
        if is_new {
            selfplay.shards.par_iter_mut().for_each(Shard::start_all);
        }
        Ok(selfplay)
    }

    /// Takes new weights: all trees are discarded, games in progress go on, new games start from `cache`.
    ///
    /// # Errors
    /// What the device says.
    pub fn set_network(&mut self, network: &dyn Network, cache: RootCache) -> Result<()> {
        self.cache = Arc::new(cache);
        if let Some(evaluations) = &self.evaluations {
            evaluations.clear();
        }
        self.asks = Asks::NotYet;
        self.networks.iter_mut().for_each(|old| *old = network.fork());
        self.shards.iter_mut().try_for_each(|shard| shard.searcher.set_network(network))?;
        let cache = &self.cache;
        self.shards.par_iter_mut().try_for_each(|shard| {
            (0..shard.slots.len()).for_each(|i| shard.begin_ply(i, cache));
            shard.attach_device(cache)
        })
    }

    /// One stride of passes in every slot. Returns the games that finished, in an order that does not depend on the number
    /// of threads.
    ///
    /// # Errors
    /// What the network says.
    pub fn stride(&mut self) -> Result<Vec<FinishedGame>> {
        if matches!(self.asks, Asks::NotYet) {
            self.asks = self.how_to_ask()?;
        }
        match &mut self.asks {
            Asks::DoubleBuffered(network) => {
                double_buffer::stride(&mut self.shards, network.as_mut(), &self.cache, self.stride)?;
            }
            Asks::EachShard | Asks::NotYet => self.stride_by_shards()?,
        }
        let mut finished: Vec<(u64, FinishedGame)> =
            self.shards.iter_mut().flat_map(|s| s.finished.drain(..)).collect();
        finished.sort_by_key(|(pass, game)| (*pass, game.slot));
        Ok(finished.into_iter().map(|(_, game)| game).collect())
    }

    /// In halves where the network can be asked so and backends are led.
    fn how_to_ask(&self) -> Result<Asks> {
        if self.shards.len() < 2 || self.shards.iter().any(|shard| !matches!(shard.lead, PassDriver::Caller))
        {
            return Ok(Asks::EachShard);
        }
        let leaves = |shards: &[Shard]| -> usize { shards.iter().map(|s| s.searcher.most_leaves()).sum() };
        let (first, second) = self.shards.split_at(self.shards.len() / 2);
        let network = self.networks[0].double_buffered(leaves(first).max(leaves(second)))?;
        Ok(network.map_or(Asks::EachShard, Asks::DoubleBuffered))
    }

    /// One stride of passes, in which each thread asks its network for the shard that it is at.
    fn stride_by_shards(&mut self) -> Result<()> {
        let cache = &self.cache;
        let queue = ShardQueue::new(&mut self.shards, self.stride);
        self.networks.par_iter_mut().try_for_each(|network| -> Result<()> {
            while let Some(turn) = queue.take() {
                let made = turn.shard.advance(turn.left, network.as_mut(), cache)?;
                queue.give_back(turn, made);
            }
            Ok(())
        })
    }

    /// Where the time of passes goes that a backend leads by itself with the network beside its rows, as
    /// [`Backend::profile_passes`] has it, in up to `passes` passes, which are among the last of these games. None where it does not
    /// lead so.
    ///
    /// # Errors
    /// What the network and the device say.
    pub fn profile_last_passes(mut self, passes: u32) -> Result<Option<PassParts>> {
        let [shard] = self.shards.as_mut_slice() else { return Ok(None) };
        let PassDriver::Backend { most_passes } = shard.lead else { return Ok(None) };
        shard.searcher.backend.profile_passes(passes.min(most_passes))
    }

    /// What kernels and copies took in one more stride, and the stride's seconds, where the network is asked in halves; None elsewhere.
    ///
    /// # Errors
    /// As [`SelfPlay::stride`].
    pub fn timed_stride(&mut self) -> Result<Option<(Vec<KernelTime>, f64)>> {
        let Asks::DoubleBuffered(network) = &mut self.asks else { return Ok(None) };
        network.begin_timing();
        let start = Instant::now();
        double_buffer::stride(&mut self.shards, network.as_mut(), &self.cache, self.stride)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Some((network.end_timing()?, seconds)))
    }

    /// The games in progress, in slot order.
    pub fn slots(&self) -> impl Iterator<Item = &GameSlot> {
        self.shards.iter().flat_map(|s| &s.slots)
    }

    /// Takes the clocks' readings and sets them to zero.
    pub fn take_clock(&mut self) -> PassClock {
        let mut sum = PassClock::default();
        for shard in &mut self.shards {
            sum.add(&std::mem::take(&mut shard.searcher.clock));
        }
        sum
    }
}

/// How many threads take part; GPUs work on all rows at once.
pub fn num_threads(config: &Config, threads: usize) -> usize {
    match config.run.device.first() {
        DeviceName::Cpu => threads.clamp(1, config.selfplay.games),
        DeviceName::Cuda(_) => 1,
    }
}

/// Into how many shards the slots are split: more than there are threads where they leave enough slots for each, so that a thread
/// that is done early can help another. `whole_batch`: see [`Network::whole_batch`].
fn num_shards(config: &Config, threads: usize, whole_batch: Option<usize>) -> usize {
    /// The fewest slots of a shard: network batches should not become small.
    const LANES: usize = 32;
    const MOST: usize = 4;
    let games = config.selfplay.games;
    // A third of the leaves may need no answer of the network.
    let several = match whole_batch {
        Some(batch) if batch >= LANES => (2 * games + batch) / (3 * batch),
        _ => games / LANES,
    };
    let several = several.clamp(threads, MOST * threads);
    let is_asked_in_halves = config.run.device.is_cpu() && !config.network_devices().is_cpu();
    match threads {
        // Each half is work for all threads.
        _ if is_asked_in_halves => several.max(2 * threads).min(games),
        1 => 1,
        _ => several,
    }
}

/// The shape of the evaluation cache's entries.
pub fn entry_shape(game: &dyn AnyGame) -> EntryShape {
    let sizes = game.sizes();
    EntryShape { state_size: game.state_size(), players: sizes.num_players, max_legal: sizes.max_legal }
}

/// The evaluation cache that `config` asks for.
pub fn eval_cache(config: &Config, game: &dyn AnyGame) -> Option<Arc<EvalCache>> {
    let entries = config.search.cache_entries;
    (entries > 0).then(|| Arc::new(EvalCache::new(entries, entry_shape(game))))
}

/// The arrays of one shard of `rows` rows.
pub fn backend_plan(config: &Config, sizes: &Sizes, rows: usize) -> BackendPlan {
    let params = SearchParams::new(&config.search, sizes);
    let keeps = !sizes.hidden_information && config.search.engine == SearchEngine::Batched;
    let reuse = if config.search.reuse && keeps { Reuse::Keep } else { Reuse::Drop };
    let ply = BackendPlan::nodes_for(params.simulations.max(config.selfplay.fast_simulations), sizes);
    let nodes = match (config.search.nodes, reuse) {
        (0, Reuse::Keep) => 2 * ply,
        (0, Reuse::Drop) => ply,
        (nodes, _) => (nodes as usize).max(ply),
    };
    BackendPlan { rows, nodes, params, reuse }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_shared_out() {
        let shards = |games: usize, threads: usize, whole_batch: Option<usize>| {
            let mut config = Config::default();
            config.selfplay.games = games;
            num_shards(&config, threads, whole_batch)
        };
        assert_eq!([1, 2, 3, 16].map(|threads| shards(128, threads, None)), [1, 4, 4, 16]);
        assert_eq!([1, 2, 3, 16].map(|threads| shards(128, threads, Some(32))), [1, 3, 3, 16]);
        assert_eq!([192, 256, 1024].map(|games| shards(games, 2, Some(32))), [4, 5, 8]);
        assert_eq!(shards(1024, 2, Some(4)), 8);
    }
}
