//! A worker: plays a run's games with its newest weights, and sends them. It holds no state of the run.

use super::chunk::{ChunkLimits, ChunkWriter, Sender as Sending};
use super::published::{Keys, State, read_config};
use super::sender::{Sender, SentCounts, Weights};
use super::server::{Failure, Server};
use super::{Incarnation, digest, random};
use crate::backend::device_selfplay::PlayPlan;
use crate::batch::{AnyGame, any_game};
use crate::config::{Config, Layers};
use crate::error::{Error, Result};
use crate::net::{NetSpec, Network};
use crate::run::memory::MemoryPlan;
use crate::run::network::{check_machine, place};
use crate::run::own_play::{NewWeights, take_weights};
use crate::selfplay::{SelfPlay, check_nodes, new_slots};
use crate::stop::Stop;
use crate::weights::NetFile;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The oldest game of a chunk that is sent before it is full.
const OLDEST_GAME: Duration = Duration::from_secs(2);
/// How long a worker that was stopped tries to send what it has.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at requests to stop where there is nothing to do.
const IDLE: Duration = Duration::from_millis(20);

/// A run as a worker found it.
pub struct Worker {
    server: Server,
    keys: Keys,
    state: State,
    config: Config,
    game: Arc<dyn AnyGame>,
    spec: NetSpec,
    limits: ChunkLimits,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Games finished.
    pub games: u64,
    /// Samples of these games.
    pub samples: u64,
    /// What was sent.
    pub sent: SentCounts,
    /// Chunks that could not be sent before the end.
    pub unsent: usize,
}

impl Worker {
    /// Finds the run at `server` and checks that this machine can play it. `set` are assignments over the run's configuration, whose
    /// devices are replaced by the CPU.
    ///
    /// # Errors
    /// [`Error::Server`] where there is no such run or it is of another protocol; those of the game, the device, the instruction set and
    /// the memory.
    pub fn find(server: Server, set: &[(&str, Option<String>)]) -> Result<Self> {
        let keys = Keys::new(server.address().run());
        let fails = |failure: Failure| server.error(&failure);
        let mut link = server.connect().map_err(fails)?;
        let found = State::read(&mut link, &keys).map_err(fails)?;
        let text = read_config(&mut link, &keys).map_err(fails)?;
        let Some((state, text)) = found.zip(text) else {
            return Err(fails(Failure::Final(format!(
                "no run of this name, expected one that `vecaz run --cluster {}` has begun",
                server.address()
            ))));
        };
        let mut layers = Layers::default().text(&text, "the run's configuration")?.on_cpu();
        for (key, value) in set {
            if let Some(value) = value {
                layers = layers.assign(key, value)?;
            }
        }
        let config = layers.clone().resolve()?;
        let game = any_game(config.game_name(), &config.game_options())?;
        if digest(&config, game.as_ref()) != state.digest {
            return Err(fails(Failure::Final(
                "the run's game or configuration means something else here, expected the same vecaz as the learner's".into(),
            )));
        }
        check_machine(&config).map_err(|e| layers.locate(e))?;
        check_nodes(&config, &game.sizes())?;
        MemoryPlan::of_worker(&config, game.as_ref())?.check(&config)?;
        let spec = NetSpec::new(&config.net, &game.sizes());
        let limits = ChunkLimits::of(game.as_ref())?;
        Ok(Self { server, keys, state, config, game, spec, limits })
    }

    /// The run's configuration on this machine.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The game and how it is played, on one line.
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

    /// Plays until `stop` is requested, then ends the passes of the poll and sends what it has.
    ///
    /// # Errors
    /// Those of self-play; [`Error::Server`] where the server or the run refuses this worker for a reason that does not pass.
    pub fn play(self, name: &str, threads: usize, stop: &Stop) -> Result<WorkDone> {
        let incarnation = Incarnation(random());
        let most_weights = self.most_weights()?;
        let sender =
            Sender::start(&self.server, self.keys.clone(), self.state.clone(), incarnation, most_weights)?;
        let sending = Sending { name: name.to_string(), incarnation, digest: self.state.digest };
        let mut games = Games {
            writer: ChunkWriter::new(sending, self.limits)?,
            sender: &sender,
            version: 0,
            oldest: None,
            done: WorkDone::default(),
        };
        let (mut selfplay, mut epochs) = (None, 0);
        while stop.cause().is_none() {
            if let Some(weights) = sender.take_weights()? {
                games.flush()?;
                games.version = weights.version;
                self.take_weights(&weights, epochs, &mut selfplay, incarnation, threads, stop)?;
                epochs += 1;
            }
            match &mut selfplay {
                Some(selfplay) if !sender.is_full() => {
                    let finished = selfplay.poll()?;
                    games.take(&finished)?;
                }
                _ => sleep(IDLE),
            }
            games.flush_old()?;
        }
        games.flush()?;
        let done = games.done;
        let sent = sender.counts();
        let unsent = sender.leave(PATIENCE);
        Ok(WorkDone { sent, unsent, ..done })
    }

    /// The most bytes of a weights file: parameters, self-check, and a header with the names of all actions.
    fn most_weights(&self) -> Result<u64> {
        let model = self.spec.model()?;
        let sizes = self.game.sizes();
        let floats = model.num_parameters()
            + model.num_statistics()
            + 8 * (sizes.obs.len() + sizes.num_actions + sizes.num_players);
        Ok((4 * floats + 256 * sizes.num_actions + (4 << 20)) as u64)
    }

    /// Goes on with new weights; the first begin the games.
    fn take_weights(
        &self,
        weights: &Weights,
        epochs: u64,
        selfplay: &mut Option<SelfPlay>,
        incarnation: Incarnation,
        threads: usize,
        stop: &Stop,
    ) -> Result<()> {
        let name = PathBuf::from(format!("weights of version {}", weights.version));
        let file = NetFile::from_bytes(&name, &weights.file)?;
        let (config, game) = (&self.config, self.game.as_ref());
        let (network, executor) = place(config, game, &self.spec, &file.weights)?;
        tracing::debug!("weights of version {}, executed by {executor}", weights.version);
        let playing = match selfplay {
            Some(selfplay) => selfplay,
            None => selfplay.insert(self.begin(network.as_ref(), incarnation, threads)?),
        };
        let new = NewWeights { config, game, network: network.as_ref(), epochs };
        match take_weights(playing, new, &mut || (), stop) {
            Ok(_) | Err(Error::Stopped(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The first games of this process.
    fn begin(&self, network: &dyn Network, incarnation: Incarnation, threads: usize) -> Result<SelfPlay> {
        let (config, game) = (&self.config, self.game.as_ref());
        let plan = PlayPlan::new(config, &game.sizes());
        let slots = new_slots(incarnation.first_slot(), config.selfplay.games, game, &plan);
        SelfPlay::new(&self.game, config, network, slots, threads)
    }
}

/// The finished games on their way into chunks.
struct Games<'a> {
    writer: ChunkWriter,
    sender: &'a Sender,
    /// The version of the weights that play now.
    version: u64,
    /// When the first game of the present chunk came.
    oldest: Option<Instant>,
    done: WorkDone,
}

impl Games<'_> {
    fn take(&mut self, finished: &[crate::selfplay::FinishedGame]) -> Result<()> {
        for game in finished {
            self.writer.push(game)?;
            self.oldest.get_or_insert_with(Instant::now);
            self.done.games += 1;
            self.done.samples += game.samples.len() as u64;
            if self.writer.is_full() {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush_old(&mut self) -> Result<()> {
        match self.oldest.is_some_and(|at| at.elapsed() >= OLDEST_GAME) {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        if !self.writer.is_empty() {
            let (sequence, bytes) = self.writer.finish(self.version)?;
            self.sender.send(sequence, bytes);
        }
        self.oldest = None;
        Ok(())
    }
}
