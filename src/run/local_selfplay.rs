//! Self-play of a run in its own process.

use super::factory::ComponentFactory;
use crate::backend::AnyGame;
use crate::backend::RootCache;
use crate::config::Config;
use crate::error::Result;
use crate::net::Network;
use crate::pass::PassMetrics;
use crate::play::PlayPlan;
use crate::play::{FinishedGame, GameSlot};
use crate::report::metrics::RootCacheUse;
use crate::root_cache::{self, CachePlan};
use crate::search::eval_cache::EvalCache;
use crate::selfplay::{PollEnd, SelfPlay, backend_plan};
use crate::stop::Stop;
use std::sync::Arc;
use std::time::Instant;

/// Self-play of a run in its own process.
pub enum LocalSelfPlay {
    /// Games in progress.
    Playing(SelfPlay),
    /// No self-play: workers play all games. The slots of an earlier checkpoint are kept for a resumed run that plays again.
    Idle(Vec<GameSlot>),
}

impl LocalSelfPlay {
    /// Self-play in the slots of a checkpoint, or in new ones where there are none.
    ///
    /// # Errors
    /// Those of [`SelfPlay::with_backends`].
    pub fn playing(
        factory: &dyn ComponentFactory,
        config: &Config,
        game: &Arc<dyn AnyGame>,
        network: &dyn Network,
        slots: Vec<GameSlot>,
        threads: usize,
    ) -> Result<Self> {
        let d = PlayPlan::new(config, &game.sizes()).determinisations;
        let make = |plan| factory.backend(config, game.as_ref(), plan, d);
        SelfPlay::with_backends(game, config, network, slots, threads, &make).map(Self::Playing)
    }

    /// See [`SelfPlay::stop_by`].
    pub fn stop_by(&mut self, stop: &Stop) {
        if let Self::Playing(selfplay) = self {
            selfplay.stop_by(stop);
        }
    }

    /// See [`SelfPlay::poll_until`]; no games if workers play all of them.
    ///
    /// # Errors
    /// Those of [`SelfPlay::poll_until`].
    pub fn poll_until(&mut self, end: Option<Instant>) -> Result<(Vec<FinishedGame>, PollEnd)> {
        match self {
            Self::Playing(selfplay) => selfplay.poll_until(end),
            Self::Idle(_) => Ok((Vec::new(), PollEnd::Passes)),
        }
    }

    /// See [`SelfPlay::take_metrics`].
    pub fn take_metrics(&mut self) -> PassMetrics {
        match self {
            Self::Playing(selfplay) => selfplay.take_metrics(),
            Self::Idle(_) => PassMetrics::default(),
        }
    }

    /// The games in progress, for a checkpoint. `[N]`
    pub fn slots(&self) -> Vec<GameSlot> {
        match self {
            Self::Playing(selfplay) => selfplay.slots().cloned().collect(),
            Self::Idle(slots) => slots.clone(),
        }
    }
}

/// New weights for self-play.
pub struct NewWeights<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The game.
    pub game: &'a dyn AnyGame,
    /// The network with the weights.
    pub network: &'a dyn Network,
    /// Number of earlier sets of weights that games were played with.
    pub epochs: u64,
    /// Games finished with the earlier sets.
    pub finished: u64,
}

impl NewWeights<'_> {
    /// The root cache of the weights, and its cost. Its evaluations are also inserted into `evaluations`. `begin` is called before trees
    /// are built.
    ///
    /// # Errors
    /// Those of [`root_cache::build`].
    pub fn root_cache(
        &self,
        evaluations: Option<&Arc<EvalCache>>,
        begin: &mut dyn FnMut(),
        stop: &Stop,
    ) -> Result<(RootCache, RootCacheUse)> {
        let Self { config, game, network, epochs, finished } = *self;
        let (from, sizes) = (Instant::now(), game.sizes());
        let games = root_cache::expected_games(config, &sizes, finished, epochs);
        let cache = match CachePlan::for_run(config, backend_plan(config, &sizes, 1), &sizes, games) {
            None => RootCache::default(),
            Some(plan) => {
                begin();
                root_cache::build(game, network, plan, evaluations, stop)?
            }
        };
        let cost = RootCacheUse {
            trees: cache.trees().len() as u64,
            simulations: cache.simulations(),
            seconds: from.elapsed().as_secs_f64(),
            ..RootCacheUse::default()
        };
        Ok((cache, cost))
    }
}

/// Number of games finished in these slots.
pub fn finished_in<'a>(slots: impl Iterator<Item = &'a GameSlot>) -> u64 {
    slots.map(|slot| slot.game).sum()
}

/// Replaces the weights of self-play and builds their root cache. `begin` is called before trees are built. Returns the cost of the
/// cache.
///
/// # Errors
/// Those of [`root_cache::build`] and of the device.
pub fn take_weights(
    selfplay: &mut SelfPlay,
    weights: &NewWeights<'_>,
    begin: &mut dyn FnMut(),
    stop: &Stop,
) -> Result<RootCacheUse> {
    selfplay.replace_network(weights.network)?;
    let (cache, cost) = weights.root_cache(selfplay.evaluations(), begin, stop)?;
    selfplay.begin_plies(cache)?;
    Ok(cost)
}
