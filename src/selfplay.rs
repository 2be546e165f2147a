//! The stream of passes over N games: search, act, refill, emit samples. Knows no training.
//!
//! The N game slots are split into shards, a few for each thread. Within a shard all rows make the same number of passes, one after
//! the other; the network evaluates a batch as soon as enough rows have selected leaves for it. A slot whose search is done plays
//! its action, and starts a new game when its old one is over, whatever the other slots do. The games of a slot depend on its
//! own number alone, so games depend neither on the shards, nor on the batches, nor on which thread makes which pass.

mod decisions;
mod polls;
mod double_buffer;
mod shard;
mod shard_queue;

use crate::backend;
use crate::backend::AnyGame;
use crate::backend::device_selfplay::PassDriver;
use crate::backend::pass_parts::PassParts;
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::{Backend, Placement, RootCache};
use crate::config::{Algorithm, Config};
use crate::device::kernel_times::KernelTime;
use crate::error::{Error, Result};
use crate::game::{Sizes, Turn};
use crate::net::{DoubleBufferedNetwork, Network};
use crate::pass::PassMetrics;
use crate::play::{FinishedGame, GameSlot, PlayPlan, new_slots};
use crate::search::SearchParams;
use crate::search::eval_cache::{EntryShape, EvalCache};
use crate::searcher::Searcher;
use crate::stop::Stop;
pub use polls::PollEnd;
use rayon::prelude::*;
use shard::Shard;
use shard_queue::ShardQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How batches reach the network.
enum Batching {
    /// Chosen at the first poll with these weights.
    Undecided,
    /// Each thread evaluates the leaves of the shard that it works on.
    Shards,
    /// The network evaluates the batch of one group of shards while all threads work on the other group.
    DoubleBuffered(Box<dyn DoubleBufferedNetwork>),
}

/// N games in progress.
pub struct SelfPlay {
    shards: Vec<Shard>,
    /// One for each thread.
    networks: Vec<Box<dyn Network>>,
    batching: Batching,
    cache: Arc<RootCache>,
    evaluations: Option<Arc<EvalCache>>,
    /// Passes of a poll.
    passes_per_poll: u32,
}

impl SelfPlay {
    /// N game slots: those of a checkpoint, or new ones where `slots` is empty.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the checkpoint has another number of slots or the network is for another game;
    /// [`Error::Unsupported`] for a game that every deal ends; those of [`check_nodes`].
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

    /// [`SelfPlay::new`] with backends made by `make`.
    ///
    /// # Errors
    /// As [`SelfPlay::new`] and `make`.
    pub fn with_backends(
        game: &Arc<dyn AnyGame>,
        config: &Config,
        network: &dyn Network,
        slots: Vec<GameSlot>,
        threads: usize,
        make: &dyn Fn(BackendPlan) -> Result<Box<dyn Backend>>,
    ) -> Result<Self> {
        let sizes = game.sizes();
        check_nodes(config, &sizes)?;
        let n = config.selfplay.games;
        if !slots.is_empty() {
            check_number(slots.len(), n)?;
        }
        let plan = PlayPlan::new(config, &sizes);
        let mut slots = if slots.is_empty() { new_slots(0, n, game.as_ref(), &plan) } else { slots };
        check_decisions(game.as_ref(), &slots)?;
        let num_threads = num_threads(config, threads);
        let num_shards = num_shards(config, num_threads, network.batch_multiple());
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
        // Without observations an evaluation costs less than a look-up.
        let evaluations = if network.needs_observations() { eval_cache(config, game.as_ref()) } else { None };
        if let Some(cache) = &evaluations {
            shards.iter_mut().try_for_each(|s| s.searcher.backend.set_eval_cache(cache.clone()))?;
        }
        let passes_per_poll = config.selfplay.passes_per_poll;
        let networks = (0..num_threads).map(|_| network.fork()).collect();
        Ok(Self {
            shards,
            networks,
            batching: Batching::Undecided,
            cache: Arc::default(),
            evaluations,
            passes_per_poll,
        })
    }

    /// From now on a poll ends early with [`Error::Stopped`] once `stop` is requested. The games cannot be continued after that.
    pub fn stop_by(&mut self, stop: &Stop) {
        self.shards.iter_mut().for_each(|shard| shard.searcher.stop_by(stop));
    }

    /// Takes new weights: all trees are discarded, games in progress continue, new games start from `cache`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn set_network(&mut self, network: &dyn Network, cache: RootCache) -> Result<()> {
        self.replace_network(network)?;
        self.begin_plies(cache)
    }

    /// The first step of [`SelfPlay::set_network`]: takes the weights and clears the table of evaluations, which can be filled before
    /// [`SelfPlay::begin_plies`].
    ///
    /// # Errors
    /// Those of the device.
    pub fn replace_network(&mut self, network: &dyn Network) -> Result<()> {
        if let Some(evaluations) = &self.evaluations {
            evaluations.clear();
        }
        self.replace_network_keep_cache(network)
    }

    /// [`SelfPlay::replace_network`] that keeps the table of evaluations, which must be by this network.
    ///
    /// # Errors
    /// Those of the device.
    pub fn replace_network_keep_cache(&mut self, network: &dyn Network) -> Result<()> {
        self.batching = Batching::Undecided;
        self.networks.iter_mut().for_each(|old| *old = network.fork());
        self.shards.iter_mut().try_for_each(|shard| shard.searcher.set_network(network))
    }

    /// The table of evaluations that all games share, if there is one.
    pub fn evaluations(&self) -> Option<&Arc<EvalCache>> {
        self.evaluations.as_ref()
    }

    /// Replaces the table of evaluations that all games share by `evaluations`, which is by the same network.
    ///
    /// # Errors
    /// Those of the device.
    pub fn share_evaluations(&mut self, evaluations: &Arc<EvalCache>) -> Result<()> {
        let mut backends = self.shards.iter_mut().map(|shard| &mut shard.searcher.backend);
        backends.try_for_each(|backend| backend.set_eval_cache(evaluations.clone()))?;
        self.evaluations = Some(evaluations.clone());
        Ok(())
    }

    /// Replaces the games in progress by others, which [`SelfPlay::begin_plies`] begins.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another number of them.
    pub fn replace_slots(&mut self, slots: Vec<GameSlot>) -> Result<()> {
        check_number(slots.len(), self.shards.iter().map(|shard| shard.slots.len()).sum())?;
        let mut slots = slots.into_iter();
        for shard in &mut self.shards {
            shard.slots = slots.by_ref().take(shard.slots.len()).collect();
        }
        Ok(())
    }

    /// The second step of [`SelfPlay::set_network`]: every game in progress begins its ply with a new tree, new games start from
    /// `cache`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn begin_plies(&mut self, cache: impl Into<Arc<RootCache>>) -> Result<()> {
        self.cache = cache.into();
        let cache = &self.cache;
        self.shards.par_iter_mut().try_for_each(|shard| {
            (0..shard.slots.len()).try_for_each(|i| shard.begin_ply(i, cache))?;
            shard.attach_device(cache)
        })
    }

    /// One poll: `selfplay.passes_per_poll` passes in every slot. Returns the games that finished, by pass and slot.
    ///
    /// A device that drives self-play has then been given the passes of the next poll, which it makes while the caller continues.
    ///
    /// # Errors
    /// Those of the network and of the device; a failure of passes that run ahead is reported here or by the next poll.
    pub fn poll(&mut self) -> Result<Vec<FinishedGame>> {
        self.poll_until(None).map(|(games, _)| games)
    }

    /// [`SelfPlay::poll`] of which no pass begins after `end`; passes that a device makes by itself are all made.
    ///
    /// # Errors
    /// Those of [`SelfPlay::poll`].
    pub fn poll_until(&mut self, end: Option<Instant>) -> Result<(Vec<FinishedGame>, PollEnd)> {
        let (games, poll_end) = self.timed_passes(end)?;
        Ok((games.into_iter().map(|(_, game)| game).collect(), poll_end))
    }

    /// [`SelfPlay::poll`] with the number of the pass, counted from the poll's first one, that finished each game.
    ///
    /// # Errors
    /// Those of [`SelfPlay::poll`].
    pub fn poll_by_pass(&mut self) -> Result<Vec<(u64, FinishedGame)>> {
        self.timed_passes(None).map(|(games, _)| games)
    }

    fn timed_passes(&mut self, end: Option<Instant>) -> Result<(Vec<(u64, FinishedGame)>, PollEnd)> {
        let before = self.shards.first().map_or(0, |shard| shard.pass);
        if matches!(self.batching, Batching::Undecided) {
            self.batching = self.choose_batching()?;
        }
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        let poll_end = match &mut self.batching {
            Batching::DoubleBuffered(network) => {
                let (shards, passes) = (&mut self.shards, self.passes_per_poll);
                double_buffer::poll(shards, network.as_mut(), &self.cache, passes, &is_over)?
            }
            Batching::Shards | Batching::Undecided => self.poll_by_shards(&is_over)?,
        };
        let finished = self.shards.iter_mut().flat_map(|s| s.finished.drain(..));
        // After a poll that time ended the shards have made different numbers of passes.
        let mut finished: Vec<(u64, FinishedGame)> =
            finished.map(|(pass, game)| (pass.saturating_sub(before), game)).collect();
        finished.sort_by_key(|(pass, game)| (*pass, game.slot));
        Ok((finished, poll_end))
    }

    /// Double buffering where the network has it and the caller drives the passes.
    fn choose_batching(&self) -> Result<Batching> {
        if self.shards.len() < 2
            || self.shards.iter().any(|shard| !matches!(shard.driver, PassDriver::Caller))
        {
            return Ok(Batching::Shards);
        }
        let leaves = |shards: &[Shard]| -> usize { shards.iter().map(|s| s.searcher.max_leaves()).sum() };
        let (first, second) = self.shards.split_at(self.shards.len() / 2);
        let network = self.networks[0].double_buffered(leaves(first).max(leaves(second)))?;
        Ok(network.map_or(Batching::Shards, Batching::DoubleBuffered))
    }

    /// One poll in which each thread evaluates the leaves of the shard that it works on.
    fn poll_by_shards(&mut self, is_over: &(dyn Fn() -> bool + Sync)) -> Result<PollEnd> {
        let cache = &self.cache;
        let queue = ShardQueue::new(&mut self.shards, self.passes_per_poll);
        let left = AtomicBool::new(false);
        self.networks.par_iter_mut().try_for_each(|network| -> Result<()> {
            while let Some(work) = queue.take() {
                if is_over() {
                    left.store(true, Ordering::Relaxed);
                    break;
                }
                let made = work.shard.advance(work.left, network.as_mut(), cache)?;
                queue.give_back(work, made);
            }
            Ok(())
        })?;
        Ok(if left.into_inner() { PollEnd::Time } else { PollEnd::Passes })
    }

    /// Times the parts of up to `passes` further passes, with [`crate::backend::DevicePasses::profile_passes`]. None where no device drives
    /// self-play with a resident network. Consumes the games: the host does not play the decisions of these passes.
    ///
    /// # Errors
    /// Those of the network and of the device.
    pub fn profile_last_passes(mut self, passes: u32) -> Result<Option<PassParts>> {
        let [shard] = self.shards.as_mut_slice() else { return Ok(None) };
        let PassDriver::Backend { max_passes } = shard.driver else { return Ok(None) };
        let Some(device) = shard.searcher.backend.device() else { return Ok(None) };
        device.profile_passes(passes.min(max_passes))
    }

    /// Makes one more poll and returns the times of its kernels and copies, and its seconds; None if the network is not double buffered.
    ///
    /// # Errors
    /// As [`SelfPlay::poll`].
    pub fn timed_poll(&mut self) -> Result<Option<(Vec<KernelTime>, f64)>> {
        let Batching::DoubleBuffered(network) = &mut self.batching else { return Ok(None) };
        network.begin_timing();
        let start = Instant::now();
        let passes = self.passes_per_poll;
        double_buffer::poll(&mut self.shards, network.as_mut(), &self.cache, passes, &|| false)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Some((network.end_timing()?, seconds)))
    }

    /// The games in progress, in slot order.
    pub fn slots(&self) -> impl Iterator<Item = &GameSlot> {
        self.shards.iter().flat_map(|s| &s.slots)
    }

    /// The sum of the shards' metrics, which are reset.
    pub fn take_metrics(&mut self) -> PassMetrics {
        let mut sum = PassMetrics::default();
        for shard in &mut self.shards {
            sum.add(&std::mem::take(&mut shard.searcher.metrics));
        }
        sum
    }
}

/// Refuses another number of games in progress than there are slots.
fn check_number(found: usize, expected: usize) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::mismatch("games in progress in the checkpoint", found, expected)),
    }
}

/// The number of worker threads; 1 where GPUs work on all rows at once.
pub fn num_threads(config: &Config, threads: usize) -> usize {
    if config.run.device.is_cpu() { threads.clamp(1, config.selfplay.games) } else { 1 }
}

/// Maximum number of shards per thread.
pub const MAX_SHARDS_PER_THREAD: usize = 4;

/// The number of shards: more than there are threads where each still has enough slots, so that threads end a poll at nearly the
/// same time. `batch_multiple`: see [`Network::batch_multiple`].
fn num_shards(config: &Config, threads: usize, batch_multiple: Option<usize>) -> usize {
    /// Minimum number of slots of a shard, so that network batches stay large.
    const MIN_SLOTS: usize = 32;
    let games = config.selfplay.games;
    // A third of the leaves may need no evaluation.
    let several = match batch_multiple {
        Some(batch) if batch >= MIN_SLOTS => (2 * games + batch) / (3 * batch),
        _ => games / MIN_SLOTS,
    };
    let several = several.clamp(threads, MAX_SHARDS_PER_THREAD * threads);
    let is_double_buffered = config.run.device.is_cpu() && !config.network_devices().is_cpu();
    match threads {
        // All threads work on one of the two groups of shards at a time.
        _ if is_double_buffered => several.max(2 * threads).min(games),
        1 => 1,
        _ => several,
    }
}

/// The shape of the evaluation cache's entries.
pub fn entry_shape(game: &dyn AnyGame) -> EntryShape {
    let sizes = game.sizes();
    EntryShape { state_size: game.state_size(), players: sizes.num_players, max_legal: sizes.max_legal }
}

/// Entries of the evaluation cache: none for afterstates, few of which are met again.
pub fn cache_entries(config: &Config) -> usize {
    match config.search.algorithm {
        Algorithm::Puct | Algorithm::Gumbel => config.search.cache_entries,
        Algorithm::Afterstate => 0,
    }
}

/// The evaluation cache of `config`.
pub fn eval_cache(config: &Config, game: &dyn AnyGame) -> Option<Arc<EvalCache>> {
    let entries = cache_entries(config);
    (entries > 0).then(|| Arc::new(EvalCache::new(entries, entry_shape(game))))
}

/// The arrays of one shard of `rows` rows.
pub fn backend_plan(config: &Config, sizes: &Sizes, rows: usize) -> BackendPlan {
    let params = SearchParams::new(&config.search, sizes);
    let reuse = if config.search.reuse && !sizes.hidden_information { Reuse::Keep } else { Reuse::Drop };
    let nodes = match (config.search.nodes, reuse) {
        (0, Reuse::Keep) => 2 * ply_nodes(config, sizes),
        (0, Reuse::Drop) => ply_nodes(config, sizes),
        (nodes, _) => nodes as usize,
    };
    BackendPlan { rows, nodes, params, reuse }
}

/// Minimum T that a ply of self-play needs.
fn ply_nodes(config: &Config, sizes: &Sizes) -> usize {
    BackendPlan::nodes_for(config.search.simulations, sizes)
}

/// Refuses decisions on whole turns in games with hidden information, in games that are a single turn, and with a lookahead of several turns in
/// games whose legal moves depend on earlier positions.
///
/// # Errors
/// [`Error::Config`].
pub fn check_algorithm(config: &Config, sizes: &Sizes) -> Result<()> {
    if sizes.uses_history && config.eval.turns > 1 {
        return Err(Error::config(
            "eval.turns",
            config.eval.turns,
            "1 in a game with rules about repeated positions",
        ));
    }
    let keys = [("search.algorithm", config.search.algorithm), ("eval.algorithm", config.eval_algorithm())];
    let found = keys.into_iter().find(|(_, algorithm)| *algorithm == Algorithm::Afterstate);
    let what = match (sizes.hidden_information, sizes.num_players, sizes.max_chance_run) {
        (true, ..) => "with hidden information",
        // Its only turn is the whole game.
        (false, 1, 0) => "for one player without chance between decisions",
        _ => return Ok(()),
    };
    match found {
        Some((key, found)) => Err(Error::config(key, found, format!("puct or gumbel in a game {what}"))),
        None => Ok(()),
    }
}

/// Refuses slots in which no player is to move.
fn check_decisions(game: &dyn AnyGame, slots: &[GameSlot]) -> Result<()> {
    match slots.iter().all(|slot| matches!(game.turn(&slot.state), Turn::Player(_))) {
        true => Ok(()),
        false => {
            let why = "one game after the other ends in its deal, before a player decides";
            Err(Error::unsupported(format!("self-play of {}", game.name()), why))
        }
    }
}

/// Refuses trees that a single ply would overflow.
///
/// # Errors
/// [`Error::Config`] with the least `search.nodes`.
pub fn check_nodes(config: &Config, sizes: &Sizes) -> Result<()> {
    let simulations = config.search.simulations;
    let (nodes, least) = (config.search.nodes, ply_nodes(config, sizes));
    let no_tree = config.search.algorithm == Algorithm::Afterstate;
    if no_tree || nodes == 0 || nodes as usize >= least {
        return Ok(());
    }
    let expected = format!(
        "at least {least}, the nodes that a ply of {simulations} simulations adds, or 0 for what is needed"
    );
    Err(Error::config("search.nodes", nodes, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_split_into_shards() {
        let shards = |games: usize, threads: usize, batch_multiple: Option<usize>| {
            let mut config = Config::default();
            config.selfplay.games = games;
            num_shards(&config, threads, batch_multiple)
        };
        assert_eq!([1, 2, 3, 16].map(|threads| shards(128, threads, None)), [1, 4, 4, 16]);
        assert_eq!([1, 2, 3, 16].map(|threads| shards(128, threads, Some(32))), [1, 3, 3, 16]);
        assert_eq!([192, 256, 1024].map(|games| shards(games, 2, Some(32))), [4, 5, 8]);
        assert_eq!(shards(1024, 2, Some(4)), 8);
    }
}
