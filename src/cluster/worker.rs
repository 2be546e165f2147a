//! A worker's view of a run: the published state, configuration and game. `worker_play.rs` plays the games.

use super::bounds::max_worker_buffer_bytes;
use super::digest::{digest, on_this_machine};
use super::published::{Keys, OVER, PublishedRun, is_over, read_config};
use super::sender::SentCounts;
use super::server::{Failure, RETRY_INTERVAL, Server};
use crate::backend::AnyGame;
use crate::config::{ClusterOrder, Config, Layers};
use crate::error::Result;
use crate::net::NetSpec;
use crate::registry::Registry;
use crate::run::memory::MemoryPlan;
use crate::run::network::check_machine;
use crate::selfplay::check_nodes;
use crate::stop::Stop;
use crate::words::count;
use redis::cmd;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two polls for a requested stop.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

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
    /// True once the run has reached its limit.
    is_over: bool,
}

impl FoundRun {
    /// The run at `server`; None where the server has no run of this name.
    pub(super) fn read(server: &Server) -> std::result::Result<Option<Self>, Failure> {
        let (mut link, keys) = (server.connect()?, Keys::new(server.address().run()));
        let state = PublishedRun::read(&mut link, &keys)?;
        let text = read_config(&mut link, &keys)?;
        let is_over = is_over(link.command(cmd("HGET").arg(&keys.state).arg(OVER.0))?);
        Ok(state.zip(text).map(|(state, text)| Self { state, text, is_over }))
    }
}

/// The run's configuration with the assignments of this machine, whose devices have the run's number format if they can.
fn layers_of(text: &str, set: &[(String, String)]) -> Result<Layers> {
    let layers = Layers::default().text(text, "the run's configuration")?;
    let device_in = |name: &str| set.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let network = device_in("net.device").or(device_in("run.device")).unwrap_or("cpu");
    let mut layers = if network == "cpu" { layers.on_cpu() } else { layers.on_gpu() };
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
    /// Why the worker has ended.
    pub end: WorkEnd,
}

/// Why a worker has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkEnd {
    /// It was stopped.
    #[default]
    Stopped,
    /// The run has reached its limit.
    RunOver,
}

/// What a worker that waited for a run has found.
pub enum Waited {
    /// A run that goes on.
    Run(Box<Worker>),
    /// The run began, or went on, and reached its limit between two polls.
    RunOver,
}

impl Worker {
    /// Finds the run at `server`, of a game of `registry`, and checks that this machine can play it. The CPU replaces the devices of the
    /// run's configuration; `set` are assignments that override the rest.
    ///
    /// Waits until the server is there and a learner has begun the run or goes on with it, for at most `wait`, or without a limit. `note`
    /// gets what it waits for, when it begins to wait and whenever that changes.
    ///
    /// # Errors
    /// [`crate::Error::Server`] after the time; [`crate::Error::Stopped`] once `stop` is requested. What no waiting mends is an error at
    /// once: refused credentials, another protocol, what this machine cannot play.
    pub fn wait_for(
        server: Server,
        registry: &Registry,
        set: &[(&str, Option<String>)],
        wait: Option<Duration>,
        stop: &Stop,
        note: &mut dyn FnMut(&str),
    ) -> Result<Waited> {
        let (from, mut noted) = (Instant::now(), String::new());
        // The run's last epoch where it is over, None where there is no run; not known until the server has replied.
        let mut last_epoch: Option<Option<u64>> = None;
        loop {
            let missing = match FoundRun::read(&server) {
                Ok(Some(run)) if !run.is_over => {
                    return Ok(Waited::Run(Box::new(Self::of(run, server, registry, set)?)));
                }
                Ok(Some(run)) => {
                    let epoch = Some(run.state.version);
                    if last_epoch.is_some_and(|before| before != epoch) {
                        return Ok(Waited::RunOver);
                    }
                    last_epoch = Some(epoch);
                    Failure::Final(format!(
                        "the run has reached its limit after epoch {}, expected `vecaz run --resume` with a higher one",
                        run.state.version
                    ))
                }
                Ok(None) => {
                    last_epoch = Some(None);
                    Failure::Final(format!(
                        "no run of this name, expected one that `vecaz run --cluster {}` has begun",
                        server.address()
                    ))
                }
                Err(failure @ Failure::Final(_)) => return Err(server.error(&failure)),
                Err(failure) => failure,
            };
            if wait.is_some_and(|wait| from.elapsed() >= wait) {
                return Err(server.error(&missing));
            }
            if noted != missing.text() {
                noted = missing.text().to_string();
                note(&noted);
            }
            let retry = Instant::now() + RETRY_INTERVAL;
            while Instant::now() < retry {
                stop.check()?;
                sleep(STOP_INTERVAL);
            }
        }
    }

    /// The worker of a run that was already read.
    ///
    /// # Errors
    /// [`crate::Error::Server`] for a run of another game or vecaz; those of the game, the device, the instruction set and the memory.
    pub(super) fn of(
        run: FoundRun,
        server: Server,
        registry: &Registry,
        set: &[(&str, Option<String>)],
    ) -> Result<Self> {
        let (FoundRun { state, text, .. }, keys) = (run, Keys::new(server.address().run()));
        let set: Vec<_> =
            set.iter().filter_map(|(key, value)| Some((key.to_string(), value.clone()?))).collect();
        let layers = layers_of(&text, &set)?;
        let config = on_this_machine(layers.clone().resolve()?);
        let game = registry.game_of(&config)?;
        if digest(&config, game.as_ref()) != state.digest {
            let strict = match config.cluster.order {
                ClusterOrder::Free => "",
                ClusterOrder::Strict => {
                    " and, as cluster.order is strict, its number format, games at once and, for bf16, AMX, bfmmla or neither"
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
            "{}: {} at once, {}, {}, {}, for {server}",
            self.game.name(),
            count(config.selfplay.games, "game"),
            count(config.search.simulations, "simulation"),
            count(threads, "thread"),
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
