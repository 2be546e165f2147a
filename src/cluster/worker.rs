//! A worker's view of a run: the published state, configuration and game. `worker_play.rs` plays the games.

use super::bounds::max_worker_buffer_bytes;
use super::digest;
use super::published::{Keys, PublishedRun, read_config};
use super::sender::SentCounts;
use super::server::{Failure, Server};
use crate::backend::AnyGame;
use crate::config::{ClusterOrder, Config, Layers};
use crate::error::Result;
use crate::net::NetSpec;
use crate::registry::Registry;
use crate::run::memory::MemoryPlan;
use crate::run::network::check_machine;
use crate::selfplay::check_nodes;
use std::sync::Arc;

/// A run that a worker has found on the server, checked for this machine.
#[derive(Clone)]
pub struct Worker {
    pub(super) server: Server,
    pub(super) keys: Keys,
    pub(super) state: PublishedRun,
    pub(super) config: Config,
    pub(super) game: Arc<dyn AnyGame>,
    pub(super) spec: NetSpec,
    /// Assignments that override the run's configuration.
    set: Vec<(String, String)>,
}

/// A run as published for workers, not checked yet.
pub(super) struct FoundRun {
    state: PublishedRun,
    /// The configuration, as TOML.
    text: String,
}

impl FoundRun {
    /// The run at `server`; None where the server has no run of this name.
    pub(super) fn read(server: &Server) -> std::result::Result<Option<Self>, Failure> {
        let (mut link, keys) = (server.connect()?, Keys::new(server.address().run()));
        let state = PublishedRun::read(&mut link, &keys)?;
        let text = read_config(&mut link, &keys)?;
        Ok(state.zip(text).map(|(state, text)| Self { state, text }))
    }
}

/// The run's configuration with the assignments of this machine.
fn layers_of(text: &str, set: &Vec<(String, String)>) -> Result<Layers> {
    let mut layers = Layers::default().text(text, "the run's configuration")?.on_cpu();
    for (key, value) in set {
        layers = layers.assign(key, value)?;
    }
    Ok(layers)
}

/// Counts of a worker's games and chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Games finished.
    pub games: u64,
    /// Samples of these games.
    pub samples: u64,
    /// The chunks that were sent.
    pub sent: SentCounts,
    /// Chunks that could not be sent before the end.
    pub unsent: usize,
}

impl Worker {
    /// Finds the run at `server`, of a game of `registry`, and checks that this machine can play it. The CPU replaces the devices of the run's configuration;
    /// `set` are assignments that override the rest.
    ///
    /// # Errors
    /// [`crate::Error::Server`] where there is no such run or it has another protocol; those of the game, the device, the instruction
    /// set and the memory.
    pub fn find(server: Server, registry: &Registry, set: &[(&str, Option<String>)]) -> Result<Self> {
        let found = FoundRun::read(&server).map_err(|failure| server.error(&failure))?;
        let Some(run) = found else {
            return Err(server.error(&Failure::Final(format!(
                "no run of this name, expected one that `vecaz run --cluster {}` has begun",
                server.address()
            ))));
        };
        Self::of(run, server, registry, set)
    }

    /// [`Worker::find`] for a run that was already read.
    ///
    /// # Errors
    /// Those of [`Worker::find`].
    pub(super) fn of(
        run: FoundRun,
        server: Server,
        registry: &Registry,
        set: &[(&str, Option<String>)],
    ) -> Result<Self> {
        let (FoundRun { state, text }, keys) = (run, Keys::new(server.address().run()));
        let set = set.iter().filter_map(|(key, value)| Some((key.to_string(), value.clone()?))).collect();
        let layers = layers_of(&text, &set)?;
        let config = layers.clone().resolve()?;
        let game = registry.game_of(&config)?;
        if digest(&config, game.as_ref()) != state.digest {
            let strict = match config.cluster.order {
                ClusterOrder::Free => "",
                ClusterOrder::Strict => {
                    " and, as cluster.order is strict, its instruction set, number format and games at once"
                }
            };
            return Err(server.error(&Failure::Final(format!(
                "the digest of the run's game and configuration differs here, expected the same vecaz as the learner's{strict}"
            ))));
        }
        check_machine(&config).map_err(|e| layers.locate(e))?;
        check_nodes(&config, &game.sizes())?;
        let workers = max_worker_buffer_bytes(&config, game.as_ref())?;
        MemoryPlan { workers, ..MemoryPlan::of_worker(&config, game.as_ref())? }.check(&config)?;
        let spec = NetSpec::with_targets(&config.net, &game.sizes(), &game.targets())?;
        Ok(Self { server, keys, state, config, game, spec, set })
    }

    /// The run's configuration on this machine.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// [`Worker::config`] with the section `[eval]` of `text`, the run's present configuration.
    ///
    /// # Errors
    /// Those of reading a configuration.
    pub(super) fn evaluation_config(&self, text: &str) -> Result<Config> {
        let eval = layers_of(text, &self.set)?.resolve()?.eval;
        Ok(Config { eval, ..self.config.clone() })
    }

    /// The game and the settings of play, on one line.
    pub fn describe(&self, threads: usize) -> String {
        let (config, server) = (&self.config, self.server.address());
        format!(
            "{}: {} games at once, {} simulations, {threads} threads, {}, for {server}",
            self.game.name(),
            config.selfplay.games,
            config.search.simulations,
            config.run.device
        )
    }

    /// Upper bound on the bytes of a weights file: parameters, self-check, and a header with the names of all actions.
    pub(super) fn max_weights(&self) -> Result<u64> {
        let model = self.spec.model()?;
        let sizes = self.game.sizes();
        let floats = model.num_parameters()
            + model.num_statistics()
            + 8 * (sizes.obs.len() + sizes.num_actions + sizes.num_players);
        Ok((4 * floats + 256 * sizes.num_actions + (4 << 20)) as u64)
    }
}
