//! Where the parts of a run are made: on the devices that the configuration names, or, in tests, elsewhere.

use super::learner::{Learner, learner};
use super::network::{check_machine, place};
use crate::backend::kernels::check_devices;
use crate::backend::plan::BackendPlan;
use crate::backend::{self, Backend, Placement};
use crate::batch::AnyGame;
use crate::config::Config;
use crate::error::Result;
use crate::net::{NetSpec, Network, Weights};
use std::sync::Arc;

/// Makes the parts of a run: each, unless told otherwise, on the devices that the configuration names.
pub trait ComponentFactory: Send {
    /// Refuses what this machine lacks, before anything is done for it.
    ///
    /// # Errors
    /// As [`check_machine`], also for the devices of training.
    fn check(&self, config: &Config) -> Result<()> {
        check_machine(config)?;
        check_devices(&config.training_devices())
    }

    /// The network of self-play and evaluation.
    ///
    /// # Errors
    /// As [`place`].
    fn network(
        &self,
        config: &Config,
        game: &dyn AnyGame,
        spec: &NetSpec,
        weights: &Weights,
    ) -> Result<Box<dyn Network>> {
        place(config, game, spec, weights).map(|(network, _)| network)
    }

    /// What trains it, at its first weights or going on from `state`.
    ///
    /// # Errors
    /// As [`learner`].
    fn learner(
        &self,
        config: &Config,
        game: &Arc<dyn AnyGame>,
        spec: &NetSpec,
        state: Option<&Weights>,
    ) -> Result<Box<dyn Learner>> {
        learner(config, game, spec, state)
    }

    /// The games and trees of self-play, `rows_per_game` rows each.
    ///
    /// # Errors
    /// As [`backend::make`].
    fn backend(
        &self,
        config: &Config,
        game: &dyn AnyGame,
        plan: BackendPlan,
        rows_per_game: usize,
    ) -> Result<Box<dyn Backend>> {
        backend::make(game, plan, Placement::of_run(config), rows_per_game)
    }
}

/// The devices that the configuration names.
pub struct DefaultFactory;

impl ComponentFactory for DefaultFactory {}
