//! A worker's play: the free order here, the strict order in [`super::strict`].

use super::bounds::max_window;
use super::chunk::{ChunkLimits, ChunkWriter, Origin, Sealer};
use super::evaluation::evaluator::Evaluator;
use super::sender::{Sender, SenderBounds, WeightsVersion};
use super::status::{Bottleneck, StatusMeter, StatusTimes, WorkerStatus};
use super::strict::worker::StrictPlay;
use super::worker::{WorkDone, WorkEnd, Worker};
use super::{Incarnation, random};
use crate::config::ClusterOrder;
use crate::error::{Error, Result};
use crate::net::Network;
use crate::play::PlayPlan;
use crate::play::{FinishedGame, new_slots};
use crate::run::local_selfplay::{NewWeights, finished_in, take_weights};
use crate::run::network::make_network;
use crate::selfplay::SelfPlay;
use crate::stop::Stop;
use crate::weights::NetFile;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Age of a chunk's first game at which the chunk is sent before it is full.
const MAX_CHUNK_AGE: Duration = Duration::from_secs(2);
/// Time limit for sending the last chunks of a worker that was stopped.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two polls for a requested stop while the worker is idle.
const IDLE: Duration = Duration::from_millis(20);

impl Worker {
    /// Starts the thread that measures tasks of evaluations during [`Worker::play`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is no thread or no memory for it; those of the network's sizes.
    pub fn start_evaluator(&self, name: &str, threads: usize, stop: &Stop) -> Result<Evaluator> {
        let incarnation = Incarnation(random());
        let origin = Origin { name: name.to_string(), incarnation, digest: self.state.digest };
        Evaluator::start(self, origin, self.max_weights()?, threads, stop)
    }

    /// Plays until `stop` is requested or the run has reached its limit, and reports the worker's status every two seconds. Then ends the
    /// passes of the poll and sends the games that are left.
    ///
    /// # Errors
    /// Those of self-play; [`Error::Server`] where the server or the run refuses this worker permanently.
    pub fn play(
        self,
        name: &str,
        threads: usize,
        stop: &Stop,
        report: &mut dyn FnMut(&WorkerStatus),
    ) -> Result<WorkDone> {
        let incarnation = Incarnation(random());
        let origin = Origin { name: name.to_string(), incarnation, digest: self.state.digest };
        match self.config.cluster.order {
            ClusterOrder::Free => self.play_free(origin, threads, stop, report),
            ClusterOrder::Strict => {
                let mut meter = StatusMeter::new(name, StatusTimes::BetweenPolls);
                let field = incarnation.field();
                let (sealer, max_weights) = (Sealer::new(origin)?, self.max_weights()?);
                let play = StrictPlay::new(&self, sealer, max_weights, field, threads, stop)?;
                play.run(&mut meter, report)
            }
        }
    }

    /// [`Worker::play`] in free order, with chunks of `origin`.
    fn play_free(
        &self,
        origin: Origin,
        threads: usize,
        stop: &Stop,
        report: &mut dyn FnMut(&WorkerStatus),
    ) -> Result<WorkDone> {
        let incarnation = origin.incarnation;
        let limits = ChunkLimits::of(self.game.as_ref())?;
        let window = max_window(&self.config, self.game.as_ref());
        let bounds = SenderBounds { weights: self.max_weights()?, window };
        let sender = Sender::start(&self.server, self.keys.clone(), self.state.clone(), incarnation, bounds)?;
        let mut games = Games {
            meter: StatusMeter::new(&origin.name, StatusTimes::Any),
            writer: ChunkWriter::new(origin, limits)?,
            sender: &sender,
            version: 0,
            oldest: None,
        };
        let (mut selfplay, mut epochs) = (None, 0);
        while stop.cause().is_none() && !sender.is_run_over() {
            if let Some(status) = games.meter.due(games.version) {
                report(&status);
                sender.set_status(status);
            }
            if let Some(weights) = sender.take_weights()? {
                games.flush()?;
                games.version = weights.version;
                self.take_weights(&weights, epochs, &mut selfplay, incarnation, threads, stop)?;
                epochs += 1;
                if stop.cause().is_some() {
                    break; // the plies with these weights may not have begun
                }
            }
            match &mut selfplay {
                Some(selfplay) if !sender.is_full() => {
                    let finished = selfplay.poll()?;
                    games.meter.played(&selfplay.take_metrics());
                    games.take(&finished)?;
                }
                _ => {
                    let on = if sender.has_unsent() { Bottleneck::Connection } else { Bottleneck::Learner };
                    games.meter.waited(on, IDLE);
                    sleep(IDLE);
                }
            }
            games.flush_old()?;
        }
        games.flush()?;
        let (finished, samples) = games.meter.totals();
        let sent = sender.counts();
        sender.set_status(games.meter.last(games.version));
        let end = if sender.is_run_over() { WorkEnd::RunOver } else { WorkEnd::Stopped };
        let unsent = sender.leave(SEND_TIMEOUT);
        Ok(WorkDone { games: finished, samples, sent, unsent, end })
    }

    /// Continues with new weights; the first ones begin the games.
    fn take_weights(
        &self,
        weights: &WeightsVersion,
        epochs: u64,
        selfplay: &mut Option<SelfPlay>,
        incarnation: Incarnation,
        threads: usize,
        stop: &Stop,
    ) -> Result<()> {
        let name = PathBuf::from(format!("weights of version {}", weights.version));
        let file = NetFile::from_bytes(&name, &weights.file)?;
        let (config, game) = (&self.config, self.game.as_ref());
        let (network, executor) = make_network(config, game, &self.spec, &file.weights)?;
        tracing::debug!("weights of version {}, executed by {executor}", weights.version);
        let playing = match selfplay {
            Some(selfplay) => selfplay,
            None => selfplay.insert(self.begin(network.as_ref(), incarnation, threads)?),
        };
        let finished = finished_in(playing.slots());
        let new = NewWeights { config, game, network: network.as_ref(), epochs, finished };
        match take_weights(playing, &new, &mut || (), stop) {
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

/// Collects finished games into chunks.
struct Games<'a> {
    writer: ChunkWriter,
    sender: &'a Sender,
    /// The version of the present weights.
    version: u64,
    /// Time when the first game of the present chunk ended.
    oldest: Option<Instant>,
    meter: StatusMeter,
}

impl Games<'_> {
    fn take(&mut self, finished: &[FinishedGame]) -> Result<()> {
        for game in finished {
            self.writer.push(game)?;
            self.oldest.get_or_insert_with(Instant::now);
            self.meter.count(1, game.samples.len());
            if self.writer.is_full() {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush_old(&mut self) -> Result<()> {
        match self.oldest.is_some_and(|at| at.elapsed() >= MAX_CHUNK_AGE) {
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
