//! Construction of a run's components: on the configured devices, or on others in tests.

use super::learner::{Learner, learner};
use super::memory::MemoryPlan;
use super::network::{check_machine, make_network};
use super::workers::{Workers, WorkersSetup};
use crate::backend::AnyGame;
use crate::backend::plan::BackendPlan;
use crate::backend::{self, Backend, Placement};
use crate::config::Config;
use crate::error::Result;
use crate::net::{NetSpec, Network, Weights};
use crate::registry::Registry;
use std::sync::Arc;

/// Makes the components of a run. The default methods use the configured devices.
pub trait ComponentFactory: Send {
    /// The games of the program; by default the built-in ones.
    fn registry(&self) -> Registry {
        Registry::built_in()
    }

    /// Refuses devices and instruction sets that this machine lacks.
    ///
    /// # Errors
    /// Those of [`check_machine`].
    fn check(&self, config: &Config) -> Result<()> {
        check_machine(config)
    }

    /// The memory plan of the run's process.
    ///
    /// # Errors
    /// Those of [`MemoryPlan::new`].
    fn memory(&self, config: &Config, game: &dyn AnyGame) -> Result<MemoryPlan> {
        MemoryPlan::new(config, game)
    }

    /// The network of self-play and evaluation.
    ///
    /// # Errors
    /// Those of [`make_network`].
    fn network(
        &self,
        config: &Config,
        game: &dyn AnyGame,
        spec: &NetSpec,
        weights: &Weights,
    ) -> Result<Box<dyn Network>> {
        make_network(config, game, spec, weights).map(|(network, _)| network)
    }

    /// The learner, with initial weights or from `state`.
    ///
    /// # Errors
    /// Those of [`learner`].
    fn learner(
        &self,
        config: &Config,
        game: &Arc<dyn AnyGame>,
        spec: &NetSpec,
        state: Option<&Weights>,
    ) -> Result<Box<dyn Learner>> {
        learner(config, game, spec, state)
    }

    /// The backend of self-play, with `rows_per_game` rows per game.
    ///
    /// # Errors
    /// Those of [`backend::make()`].
    fn backend(
        &self,
        config: &Config,
        game: &dyn AnyGame,
        plan: BackendPlan,
        rows_per_game: usize,
    ) -> Result<Box<dyn Backend>> {
        backend::make(game, plan, Placement::of_run(config), rows_per_game)
    }

    /// Whether the run plays games in this process, in addition to its workers.
    fn plays_itself(&self, _config: &Config) -> bool {
        true
    }

    /// Further arguments of `vecaz run --resume RUN` for a run with the same components.
    fn resume_arguments(&self) -> String {
        String::new()
    }

    /// The workers of the run, if it has any.
    ///
    /// # Errors
    /// [`crate::Error::Server`] if the workers cannot be reached.
    fn workers(&self, _setup: WorkersSetup<'_>) -> Result<Option<Box<dyn Workers>>> {
        Ok(None)
    }
}

/// Makes all components on the configured devices, for one of these games.
#[derive(Default)]
pub struct DefaultFactory(pub Registry);

impl ComponentFactory for DefaultFactory {
    fn registry(&self) -> Registry {
        self.0.clone()
    }
}
