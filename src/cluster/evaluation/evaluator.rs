//! A worker's side of evaluations: a thread that measures tasks during self-play, on the same threads of the pool.

use super::offer::{Claim, Offer};
use super::result_chunk::{limits, seal};
use crate::cluster::chunk::{Origin, Sealer};
use crate::cluster::published::{read_config, read_weights};
use crate::cluster::server::{Connection, Failure, RETRY_INTERVAL};
use crate::cluster::worker::Worker;
use crate::error::{Error, Result};
use crate::net::Network;
use crate::run::evaluation::parts;
use crate::run::network::make_network;
use crate::run::strength::StrengthMeter;
use crate::stop::Stop;
use crate::weights::NetFile;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

/// Time between two polls for an evaluation, or for a task of it.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Handle of the thread. After a drop the thread ends with its task; after a requested stop it ends at once.
pub struct Evaluator {
    ended: Arc<AtomicBool>,
}

impl Evaluator {
    /// Starts the thread for `worker`, with `sender` as the origin of its results.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is no thread or no memory for it.
    pub(in super::super) fn start(
        worker: &Worker,
        sender: Origin,
        max_weights: u64,
        threads: usize,
        stop: &Stop,
    ) -> Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let evaluations = Evaluations {
            worker: worker.clone(),
            consumer: sender.incarnation.field(),
            sealer: Sealer::new(sender)?,
            max_weights,
            threads,
            stop: stop.clone(),
            ended: ended.clone(),
            current: None,
            refused: None,
        };
        let started = thread::Builder::new().name("evaluation".into()).spawn(move || evaluations.run());
        started.map_err(|e| Error::unsupported("a thread for evaluations", e.to_string()))?;
        Ok(Self { ended })
    }
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// The network and the meter of one evaluation.
struct Current {
    id: u64,
    meter: StrengthMeter,
    network: Box<dyn Network>,
}

/// State of the thread.
struct Evaluations {
    worker: Worker,
    consumer: String,
    sealer: Sealer,
    max_weights: u64,
    threads: usize,
    stop: Stop,
    ended: Arc<AtomicBool>,
    current: Option<Current>,
    /// Number of an evaluation that this machine cannot measure.
    refused: Option<u64>,
}

impl Evaluations {
    fn run(mut self) {
        let mut link = None;
        while self.stop.cause().is_none() && !self.ended.load(Ordering::Relaxed) {
            match self.step(&mut link) {
                Ok(true) => {}
                Ok(false) => sleep(POLL_INTERVAL),
                // The sender of games warns of these.
                Err(Failure::Busy(_)) => sleep(RETRY_INTERVAL),
                Err(Failure::Transient(_)) => {
                    link = None;
                    sleep(RETRY_INTERVAL);
                }
                Err(Failure::Final(what)) => {
                    return tracing::warn!(
                        "{}: {what}; this worker measures no tasks of evaluations any more",
                        self.worker.server.address()
                    );
                }
            }
        }
    }

    /// Measures a task; false where there is none.
    fn step(&mut self, open: &mut Option<Connection>) -> std::result::Result<bool, Failure> {
        let link = match open {
            Some(link) => link,
            None => open.insert(self.worker.server.connect()?),
        };
        let Some(offer) = Offer::read(link, &self.worker.keys)? else {
            self.current = None;
            return Ok(false);
        };
        if self.refused == Some(offer.id) {
            return Ok(false);
        }
        let keys = &self.worker.keys;
        let claim = match offer.claim(link, keys, &self.consumer)? {
            Some(claim) => Some(claim),
            None => offer.reclaim(link, keys, &self.consumer)?,
        };
        let Some(claim) = claim else { return Ok(false) };
        if !self.is_ready(link, &offer)? {
            return Ok(false);
        }
        match self.measure(&offer, claim) {
            Ok(chunk) => offer.send(link, &self.worker.keys, &claim, &chunk).map(|()| true),
            Err(Error::Stopped(_)) => Ok(false),
            Err(error) => Ok(self.refuse(&offer, &error)),
        }
    }

    /// Fetches the network and the configuration of the evaluation; false where it is over, or this machine cannot measure it.
    fn is_ready(&mut self, link: &mut Connection, offer: &Offer) -> std::result::Result<bool, Failure> {
        if self.current.as_ref().is_some_and(|current| current.id == offer.id) {
            return Ok(true);
        }
        self.current = None;
        let keys = &self.worker.keys;
        let weights = read_weights(link, keys, (offer.version, offer.sha256), self.max_weights);
        let weights = match weights {
            Ok(weights) => weights,
            // Weights of the same version, published after the evaluation, may have replaced them.
            Err(Failure::Final(_)) => None,
            Err(failure) => return Err(failure),
        };
        let Some((text, weights)) = read_config(link, keys)?.zip(weights) else { return Ok(false) };
        match self.prepare(offer, &text, &weights) {
            Ok(current) => {
                self.current = Some(current);
                Ok(true)
            }
            Err(error) => Ok(self.refuse(offer, &error)),
        }
    }

    fn refuse(&mut self, offer: &Offer, error: &Error) -> bool {
        self.refused = Some(offer.id);
        let server = self.worker.server.address();
        tracing::warn!(
            "{server}: this worker does not measure the network of epoch {}: {error}",
            offer.version
        );
        false
    }

    fn prepare(&self, offer: &Offer, text: &str, weights: &[u8]) -> Result<Current> {
        let Worker { game, spec, .. } = &self.worker;
        let config = self.worker.evaluation_config(text)?;
        let mut meter = StrengthMeter::new(&config, game, self.threads)?;
        if let Some(setup) = offer.setup {
            meter.set_match(setup, None);
        }
        let tasks = parts(&meter).len();
        if tasks != offer.tasks {
            let what = format!("{} tasks, expected {tasks}", offer.tasks);
            return Err(Error::unsupported("this evaluation", what));
        }
        let name = PathBuf::from(format!("weights of version {}", offer.version));
        let file = NetFile::from_bytes(&name, weights)?;
        let (network, _) = make_network(&config, game.as_ref(), spec, &file.weights)?;
        Ok(Current { id: offer.id, meter, network })
    }

    /// Measures the claimed task; returns the chunk of its result.
    fn measure(&mut self, offer: &Offer, claim: Claim) -> Result<Vec<u8>> {
        let Some(Current { meter, network, .. }) = &self.current else {
            return Err(Error::unsupported("this evaluation", "no network, expected that of `is_ready`"));
        };
        let numbers = parts(meter).swap_remove(claim.task); // below the number of tasks
        let bounds = limits(self.worker.game.as_ref(), meter.max_bytes(numbers.len()))?;
        let measured = meter.measure(network.as_ref(), numbers, &self.stop, &mut |_| ())?;
        let chunk = seal(&mut self.sealer, offer, claim.task, &measured)?;
        if chunk.len() > bounds.bytes() {
            let what =
                format!("a task with a result of {} bytes, expected at most {}", chunk.len(), bounds.bytes());
            return Err(Error::unsupported("this evaluation", what));
        }
        Ok(chunk)
    }
}
