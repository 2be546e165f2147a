//! The stream of passes over N games: search, act, refill, emit samples. Knows no training.
//!
//! N lanes are split over shards, a few for each thread. Within a shard all rows go through every pass together; a lane whose
//! search is done plays its action, and starts a new game when its old one is over, between two passes, without waiting for
//! any other lane. Everything a lane does depends on its own number alone, so games do not depend on how lanes are split, nor
//! on which thread takes which shard through a pass.

mod entering;
mod halves;
mod lane;
mod turns;

use crate::act::{Choice, choose, sum_determinisations};
use crate::backend::lanes::{Decided, LaneStart, Lead, PlayPlan};
use crate::backend::plan::{BackendPlan, Reuse};
use crate::backend::times::{KernelTime, PassParts};
use crate::backend::{Backend, PlyPlan, RootCache, games_backend};
use crate::batch::AnyGame;
use crate::config::{Config, DeviceName, SearchEngine};
use crate::error::{Error, Result};
use crate::game::{Sizes, Turn};
use crate::net::{Halves, Network};
use crate::rng::Purpose;
use crate::search::eval_cache::{EntryShape, EvalCache};
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::search::{PassClock, SearchParams};
use crate::searcher::Searcher;
use entering::{enter_all, threads_for};
use lane::new_lane;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;
use turns::Turns;

pub use lane::{Lane, Proof};

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
    /// The lane it was played in.
    pub lane: u64,
    /// Its number in the lane.
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

/// Some lanes with their rows.
struct Shard {
    game: Arc<dyn AnyGame>,
    plan: PlayPlan,
    searcher: Searcher,
    lanes: Vec<Lane>,
    lead: Lead,
    /// The pass after which the backend took the lanes over.
    taken_over: u64,
    /// Finished games with the number of the pass that finished them.
    finished: Vec<(u64, FinishedGame)>,
    pass: u64,
    parts: Vec<RootSummary>,
    summary: RootSummary,
}

/// How the network is asked.
enum Asks {
    /// Nobody has asked it yet.
    NotYet,
    /// By each thread for the shard it is at.
    EachShard,
    /// For one half of the shards while all threads are at the other.
    Halves(Box<dyn Halves>),
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
    /// N lanes: those of a checkpoint, or new ones where `lanes` is empty.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the checkpoint has another number of lanes or the network is for another game.
    pub fn new(
        game: &Arc<dyn AnyGame>,
        config: &Config,
        network: &dyn Network,
        lanes: Vec<Lane>,
        threads: usize,
    ) -> Result<Self> {
        let d = PlayPlan::new(config, &game.sizes()).determinisations;
        Self::with_backends(game, config, network, lanes, threads, &|plan| {
            games_backend(game.as_ref(), plan, d)
        })
    }

    /// The same with backends that `make` makes.
    ///
    /// # Errors
    /// As [`SelfPlay::new`], and what `make` says.
    pub fn with_backends(
        game: &Arc<dyn AnyGame>,
        config: &Config,
        network: &dyn Network,
        lanes: Vec<Lane>,
        threads: usize,
        make: &dyn Fn(BackendPlan) -> Result<Box<dyn Backend>>,
    ) -> Result<Self> {
        let sizes = game.sizes();
        let n = config.selfplay.games;
        if !lanes.is_empty() && lanes.len() != n {
            return Err(Error::Mismatch {
                what: "games in progress in the checkpoint".into(),
                found: lanes.len().to_string(),
                expected: n.to_string(),
            });
        }
        let plan = PlayPlan::new(config, &sizes);
        let is_new = lanes.is_empty();
        let mut lanes = if is_new { (0..n as u64).map(new_lane).collect() } else { lanes };
        let num_threads = num_threads(config, threads);
        let num_shards = num_threads * shards_per_thread(config, num_threads);
        let mut shards = Vec::with_capacity(num_shards);
        for i in 0..num_shards {
            let share = n * (i + 1) / num_shards - n * i / num_shards;
            let part: Vec<Lane> = lanes.drain(..share).collect();
            let rows = part.len() * plan.determinisations;
            let arrays = backend_plan(config, &sizes, rows);
            let backend = make(arrays).map_err(|e| e.in_games(plan.determinisations))?;
            shards.push(Shard {
                game: game.clone(),
                plan,
                searcher: Searcher::with_backend(game.as_ref(), network.fork(), backend, arrays)?,
                lanes: part,
                lead: Lead::Caller,
                taken_over: 0,
                finished: Vec::new(),
                pass: 0,
                parts: vec![RootSummary::default(); plan.determinisations],
                summary: RootSummary::default(),
            });
        }
        // An answer that costs nothing is not worth looking up.
        let evaluations = if network.needs_observations() { eval_cache(config, game.as_ref()) } else { None };
        if let Some(cache) = &evaluations {
            shards.iter_mut().for_each(|s| s.searcher.backend.set_eval_cache(cache.clone()));
        }
        let stride = config.selfplay.stride;
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
            (0..shard.lanes.len()).for_each(|i| shard.begin_ply(i, cache));
            shard.hand_over(cache)
        })
    }

    /// One stride of passes in every lane. Returns the games that finished, in an order that does not depend on the number
    /// of threads.
    ///
    /// # Errors
    /// What the network says.
    pub fn stride(&mut self) -> Result<Vec<FinishedGame>> {
        if matches!(self.asks, Asks::NotYet) {
            self.asks = self.how_to_ask()?;
        }
        match &mut self.asks {
            Asks::Halves(network) => {
                halves::stride(&mut self.shards, network.as_mut(), &self.cache, self.stride)?;
            }
            Asks::EachShard | Asks::NotYet => self.stride_by_shards()?,
        }
        let mut finished: Vec<(u64, FinishedGame)> =
            self.shards.iter_mut().flat_map(|s| s.finished.drain(..)).collect();
        finished.sort_by_key(|(pass, game)| (*pass, game.lane));
        Ok(finished.into_iter().map(|(_, game)| game).collect())
    }

    /// In halves where the network can be asked so and backends are led.
    fn how_to_ask(&self) -> Result<Asks> {
        if self.shards.len() < 2 || self.shards.iter().any(|shard| !matches!(shard.lead, Lead::Caller)) {
            return Ok(Asks::EachShard);
        }
        let leaves = |shards: &[Shard]| -> usize { shards.iter().map(|s| s.searcher.most_leaves()).sum() };
        let (first, second) = self.shards.split_at(self.shards.len() / 2);
        let network = self.networks[0].halves(leaves(first).max(leaves(second)))?;
        Ok(network.map_or(Asks::EachShard, Asks::Halves))
    }

    /// One stride of passes, in which each thread asks its network for the shard that it is at.
    fn stride_by_shards(&mut self) -> Result<()> {
        let cache = &self.cache;
        let turns = Turns::new(&mut self.shards, self.stride);
        self.networks.par_iter_mut().try_for_each(|network| -> Result<()> {
            while let Some(turn) = turns.take() {
                let made = turn.shard.advance(turn.left, network.as_mut(), cache)?;
                turns.give_back(turn, made);
            }
            Ok(())
        })
    }

    /// Where the time of passes goes that a backend leads by itself with the network beside its rows, as
    /// [`Backend::passes_in_parts`] has it, in up to `passes` passes, which are among the last of these games. None where it does not
    /// lead so.
    ///
    /// # Errors
    /// What the network and the device say.
    pub fn last_passes_in_parts(mut self, passes: u32) -> Result<Option<PassParts>> {
        let [shard] = self.shards.as_mut_slice() else { return Ok(None) };
        let Lead::Backend { most_passes } = shard.lead else { return Ok(None) };
        shard.searcher.backend.passes_in_parts(passes.min(most_passes))
    }

    /// What kernels and copies took in one more stride, and the stride's seconds, where the network is asked in halves; None elsewhere.
    ///
    /// # Errors
    /// As [`SelfPlay::stride`].
    pub fn timed_stride(&mut self) -> Result<Option<(Vec<KernelTime>, f64)>> {
        let Asks::Halves(network) = &mut self.asks else { return Ok(None) };
        network.begin_timing();
        let start = Instant::now();
        halves::stride(&mut self.shards, network.as_mut(), &self.cache, self.stride)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Some((network.end_timing()?, seconds)))
    }

    /// The games in progress, in lane order.
    pub fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.shards.iter().flat_map(|s| &s.lanes)
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

/// Into how many shards a thread's lanes are split, so that a thread that is done early can help another.
fn shards_per_thread(config: &Config, threads: usize) -> usize {
    /// The fewest lanes of a shard: network batches should not become small.
    const LANES: usize = 32;
    const MOST: usize = 4;
    let several = (config.selfplay.games / threads / LANES).clamp(1, MOST);
    let is_asked_in_halves = config.run.device.is_cpu() && !config.network_devices().is_cpu();
    match threads {
        // Each half is work for all threads.
        _ if is_asked_in_halves => several.max(2).min(config.selfplay.games / threads),
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
    let params = SearchParams { devices: config.run.device, ..SearchParams::new(&config.search, sizes) };
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

impl Shard {
    fn start_all(&mut self) {
        for lane in &mut self.lanes {
            lane.open(self.game.as_ref(), &self.plan);
        }
    }

    /// Gives the lanes to the backend, if it takes them.
    fn hand_over(&mut self, cache: &RootCache) -> Result<()> {
        let starts: Vec<LaneStart<'_>> = self.lanes.iter().map(Lane::start).collect();
        self.lead = self.searcher.backend.take_lanes(&self.plan, &starts, cache)?;
        self.taken_over = self.pass;
        Ok(())
    }

    /// One pass or more of the `left` ones, and whatever the lanes whose search they finish do next; how many passes it was.
    fn advance(&mut self, left: u32, network: &mut dyn Network, cache: &RootCache) -> Result<u32> {
        match self.lead {
            Lead::Caller => self.step(network, cache).map(|()| 1),
            Lead::Backend { most_passes } => self.follow(network, left, most_passes).map(|()| left),
        }
    }

    /// A stride that the backend leads: what it decided is entered in the lanes.
    fn follow(&mut self, network: &mut dyn Network, passes: u32, most_passes: u32) -> Result<()> {
        let decided = self.searcher.play_with(network, passes, most_passes)?;
        self.searcher.clock.plies += decided.len() as u64;
        let (plan, game, taken_over) = (&self.plan, self.game.as_ref(), self.taken_over);
        let enter = |lane: &mut Lane, decided: &Decided| {
            let finished = lane.enter(game, plan, &decided.summary, decided.place)?;
            Some((taken_over + u64::from(decided.pass), finished))
        };
        let threads = threads_for(decided.len());
        self.finished.extend(enter_all(&mut self.lanes, decided, threads, enter));
        self.pass += u64::from(passes);
        Ok(())
    }

    /// One pass, and whatever the lanes whose search it finished do next.
    fn step(&mut self, network: &mut dyn Network, cache: &RootCache) -> Result<()> {
        self.searcher.pass_with(network)?;
        self.after_pass(cache);
        Ok(())
    }

    /// What the lanes whose search a pass finished do next.
    fn after_pass(&mut self, cache: &RootCache) {
        self.pass += 1;
        if !self.searcher.backend.any_done() {
            return;
        }
        let d = self.plan.determinisations;
        for i in 0..self.lanes.len() {
            if (i * d..(i + 1) * d).all(|b| self.searcher.backend.is_done(b)) {
                self.finish_ply(i, cache);
            }
        }
    }

    fn finish_ply(&mut self, i: usize, cache: &RootCache) {
        self.summarise(i);
        let (lane, before) = (&self.lanes[i], self.lanes[i].actions.len());
        let choice = if before < lane.opening.saturating_add(self.plan.temperature_plies) as usize {
            Choice::Drawn
        } else {
            Choice::Best
        };
        let mut rng = lane.key(&self.plan, 0).key(Purpose::Act).stream();
        let place = choose(&self.summary, choice, &mut rng);
        self.searcher.clock.plies += 1;
        let finished = self.lanes[i].enter(self.game.as_ref(), &self.plan, &self.summary, place);
        let is_new = finished.is_some();
        self.finished.extend(finished.map(|finished| (self.pass, finished)));
        if is_new || self.game.sizes().hidden_information {
            self.begin_ply(i, cache);
            return;
        }
        for ply in before..self.lanes[i].actions.len() {
            self.searcher.backend.advance(i, self.lanes[i].actions[ply]);
        }
        self.begin_rows(i);
    }

    fn summarise(&mut self, i: usize) {
        let d = self.plan.determinisations;
        if d == 1 {
            self.searcher.backend.summarise(i, &mut self.summary);
            return;
        }
        for (j, part) in self.parts.iter_mut().enumerate() {
            self.searcher.backend.summarise(i * d + j, part);
        }
        sum_determinisations(&self.parts, &mut self.summary);
    }

    /// Plants the lane's position anew and begins its ply.
    fn begin_ply(&mut self, i: usize, cache: &RootCache) {
        let (lane, backend, d) = (&self.lanes[i], &mut self.searcher.backend, self.plan.determinisations);
        if self.game.sizes().hidden_information {
            let player = match self.game.turn(&lane.state) {
                Turn::Player(p) => p,
                Turn::Chance | Turn::Over => 0,
            };
            for j in 0..d {
                let mut rng = lane.key(&self.plan, j as u64).key(Purpose::Determinise).stream();
                let state = self.game.determinise(&lane.state, player, &mut rng);
                backend.plant(i * d + j, &state, &lane.history);
            }
        } else if let Some((_, snapshot)) = cache.iter().find(|(root, _)| *root == lane.state) {
            backend.plant_snapshot(i, snapshot);
        } else {
            backend.plant(i, &lane.state, &lane.history);
        }
        self.begin_rows(i);
    }

    fn begin_rows(&mut self, i: usize) {
        let (lane, d) = (&self.lanes[i], self.plan.determinisations);
        let key = lane.key(&self.plan, 0);
        let fast = is_fast(&self.plan, key);
        for j in 0..d {
            let plan = PlyPlan {
                simulations: if fast { self.plan.fast_simulations } else { self.plan.simulations },
                exploration: if fast { Exploration::Plain } else { Exploration::Noisy },
                key: lane.key(&self.plan, j as u64),
            };
            self.searcher.backend.begin(i * d + j, plan);
        }
    }
}

/// Whether a ply gets the small budget and makes no sample.
fn is_fast(plan: &PlayPlan, key: RowKey) -> bool {
    plan.fast_fraction > 0.0 && key.key(Purpose::Budget).stream().uniform() < plan.fast_fraction
}
