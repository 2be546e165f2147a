//! A worker of a run in strict order: holds the leases of some partitions, plays their polls and sends them.
//!
//! The worker exchanges data with the server between two polls. It keeps the chunks that it has sent until the end of the epoch, and
//! sends them again after a possible loss. If they take many bytes, it drops those that the learner has taken.

use super::super::bounds::MAX_BUFFER_BYTES;
use super::super::chunk::{ChunkLimits, Sealer};
use super::super::published::{
    CHUNK_FIELD, Keys, OVER, PublishedRun, is_over, read_epoch_slots, read_weights, taken_polls,
};
use super::super::sender::SentCounts;
use super::super::server::{Connection, Failure, RETRY_INTERVAL, Server, bytes_of, number_of};
use super::super::status::{Bottleneck, StatusMeter, WorkerStatus};
use super::super::warnings::{Kind, Warnings};
use super::super::worker::{WorkDone, WorkEnd, Worker};
use super::epoch_slots::{EpochSlots, FINISHED};
use super::partition::new_selfplay;
use super::poll::{Recorder, limits, seal};
use super::resend_buffer::UnackedPolls;
use super::{POLLS_AHEAD, partitions};
use crate::backend::RootCache;
use crate::error::{Error, Result};
use crate::net::Network;
use crate::play::GameSlot;
use crate::run::local_selfplay::NewWeights;
use crate::run::network::make_network;
use crate::search::eval_cache::EvalCache;
use crate::selfplay::{SelfPlay, eval_cache};
use crate::stop::Stop;
use crate::weights::NetFile;
use redis::{Value, cmd, pipe};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two exchanges with the server; longer where a single poll takes longer.
const EXCHANGE_INTERVAL: Duration = Duration::from_millis(20);
/// The same where the worker has nothing to play.
const IDLE: Duration = Duration::from_millis(5);
/// Duration of a lease, to which four times the longest poll is added.
const LEASE: Duration = Duration::from_secs(5);
/// Bytes of chunks from which on a pipeline is sent.
const PIPELINE_BYTES: usize = 1 << 20;

/// A partition whose lease this worker holds.
struct PartitionPlay {
    partition: usize,
    selfplay: SelfPlay,
    recorder: Recorder,
    polls: UnackedPolls,
}

/// The network of an epoch and its root cache.
struct Epoch {
    network: Box<dyn Network>,
    cache: Arc<RootCache>,
}

/// The result of an exchange.
enum Exchanged {
    Nothing,
    /// Weights of another version, and the number of games `finished` before its epoch.
    Weights {
        state: PublishedRun,
        file: Vec<u8>,
        finished: u64,
    },
    /// The slots of a partition whose lease was taken.
    Partition {
        partition: usize,
        bytes: Vec<u8>,
    },
}

/// State of a worker that plays.
pub(in super::super) struct StrictPlay<'a> {
    worker: &'a Worker,
    sealer: Sealer,
    limits: ChunkLimits,
    max_weights: u64,
    incarnation: String,
    threads: usize,
    stop: &'a Stop,
    partitions: Vec<Range<usize>>,
    /// The state at the last exchange.
    state: PublishedRun,
    /// The number of polls that the learner has taken.
    taken: u64,
    epoch: Option<Epoch>,
    evaluations: Option<Arc<EvalCache>>,
    held: Vec<PartitionPlay>,
    /// Self-play of partitions that are not held any more, for reuse of the arrays.
    spare: Vec<SelfPlay>,
    exchanged_at: Option<Instant>,
    longest_poll: Duration,
    sent: SentCounts,
    /// The newest status, until it is sent.
    status: Option<Vec<u8>>,
    /// True once the run has reached its limit.
    is_over: bool,
    warnings: Warnings,
}

impl<'a> StrictPlay<'a> {
    /// A worker that has sent nothing yet. `incarnation` is the process's field in hashes.
    ///
    /// # Errors
    /// Those of [`limits`].
    pub(in super::super) fn new(
        worker: &'a Worker,
        sealer: Sealer,
        max_weights: u64,
        incarnation: String,
        threads: usize,
        stop: &'a Stop,
    ) -> Result<Self> {
        let (config, game) = (worker.config(), worker.game.as_ref());
        let partitions: Vec<Range<usize>> = partitions(config.selfplay.games).collect();
        let max_slots = partitions.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        Ok(Self {
            sealer,
            limits: limits(game, max_slots, config.selfplay.passes_per_poll)?,
            max_weights,
            incarnation,
            threads,
            stop,
            partitions,
            state: worker.state.clone(),
            taken: 0,
            epoch: None,
            evaluations: None,
            held: Vec::new(),
            spare: Vec::new(),
            exchanged_at: None,
            longest_poll: Duration::ZERO,
            sent: SentCounts::default(),
            status: None,
            is_over: false,
            warnings: Warnings::new(worker.server.address()),
            worker,
        })
    }

    /// Plays until the stop is requested or the run has reached its limit, then releases the leases.
    ///
    /// # Errors
    /// Those of self-play; [`Error::Server`] for a permanent failure.
    pub(in super::super) fn run(
        mut self,
        meter: &mut StatusMeter,
        report: &mut dyn FnMut(&WorkerStatus),
    ) -> Result<WorkDone> {
        let mut link = None;
        while self.stop.cause().is_none() && !self.is_over {
            if let Some(status) = meter.due(self.state.version) {
                report(&status);
                self.status = Some(serde_json::to_vec(&status).unwrap_or_default());
            }
            let from = Instant::now();
            let exchanged = self.exchange(&mut link);
            meter.waited(Bottleneck::Connection, from.elapsed());
            match exchanged.and_then(|found| self.apply_exchange(found)).and_then(|()| self.play_poll(meter))
            {
                Ok(true) => {}
                Ok(false) => {
                    meter.waited(Bottleneck::Learner, IDLE);
                    sleep(IDLE);
                }
                Err(Error::Stopped(_)) => break,
                Err(error) => return Err(error),
            }
        }
        if let Some(link) = &mut link {
            // Best effort: leases expire, another worker plays the polls that were not sent, and the status is for display.
            let _ = self.release_leases(link);
            let last = serde_json::to_vec(&meter.last(self.state.version)).unwrap_or_default();
            let _ = link.command(cmd("HSET").arg(&self.worker.keys.workers).arg(&self.incarnation).arg(last));
        }
        let (games, samples) = meter.totals();
        let end = if self.is_over { WorkEnd::RunOver } else { WorkEnd::Stopped };
        Ok(WorkDone { games, samples, sent: self.sent, unsent: 0, end })
    }

    fn server(&self) -> &Server {
        &self.worker.server
    }

    fn keys(&self) -> &Keys {
        &self.worker.keys
    }

    /// Exchanges data with the server at intervals. After a transient failure the next call tries again.
    fn exchange(&mut self, open: &mut Option<Connection>) -> Result<Exchanged> {
        let interval = if self.next_partition().is_some() { EXCHANGE_INTERVAL } else { IDLE };
        if self.exchanged_at.is_some_and(|at| at.elapsed() < interval) {
            return Ok(Exchanged::Nothing);
        }
        let exchanged = match self.exchange_on(open) {
            Ok(exchanged) => {
                self.warnings.recovered();
                exchanged
            }
            Err(failure @ (Failure::Transient(_) | Failure::Busy(_))) => {
                if let Failure::Transient(_) = failure {
                    *open = None;
                }
                self.warnings.warn(Kind::Connection, &format!("{}; retrying", failure.text()));
                sleep(RETRY_INTERVAL);
                Exchanged::Nothing
            }
            Err(failure) => return Err(self.server().error(&failure)),
        };
        self.exchanged_at = Some(Instant::now());
        Ok(exchanged)
    }

    fn exchange_on(&mut self, open: &mut Option<Connection>) -> Result<Exchanged, Failure> {
        let link = match open {
            Some(link) => link,
            None => {
                self.send_again();
                open.insert(self.server().connect()?)
            }
        };
        let Some(state) = self.read_state(link)? else { return Ok(Exchanged::Nothing) };
        if let Some(status) = self.status.take() {
            link.command(cmd("HSET").arg(&self.worker.keys.workers).arg(&self.incarnation).arg(status))?;
        }
        // A run resumed from an earlier checkpoint may make other weights of the same version.
        let (newest, known) = [&state, &self.state].map(|state| (state.version, state.sha256)).into();
        if self.epoch.is_none() || newest != known {
            let finished = read_epoch_slots(link, self.keys(), state.version, FINISHED, 20)?;
            let finished = finished.and_then(|text| String::from_utf8(text).ok()?.parse().ok());
            let file = read_weights(link, self.keys(), newest, self.max_weights)?;
            let weights = |(finished, file)| Exchanged::Weights { state, file, finished };
            // None where a newer version was published in between.
            return Ok(finished.zip(file).map_or(Exchanged::Nothing, weights));
        }
        self.state = state;
        self.drop_taken();
        self.send(link)?;
        self.renew(link)?;
        match self.next_partition() {
            None => self.take_lease(link),
            Some(_) => Ok(Exchanged::Nothing),
        }
    }

    /// Reads the run's state and the number of polls that are taken; None where the server has lost the state.
    fn read_state(&mut self, link: &mut Connection) -> Result<Option<PublishedRun>, Failure> {
        let Some(state) = PublishedRun::read(link, self.keys())? else { return Ok(None) };
        if state.run != self.state.run || state.digest != self.state.digest {
            let what = "the run's identity or configuration changed since this worker started, expected a restart of the worker";
            return Err(Failure::Final(what.into()));
        }
        if state.generation != self.state.generation {
            self.send_again();
        }
        let mut all = pipe();
        all.cmd("GET").arg(&self.keys().polls);
        all.cmd("HGET").arg(&self.keys().refused).arg(&self.incarnation);
        all.cmd("HGET").arg(&self.keys().state).arg(OVER.0);
        let mut replies = link.pipeline(&all)?.into_iter();
        let polls = replies.next().and_then(bytes_of).unwrap_or_default();
        if replies.next().and_then(bytes_of).is_some() {
            let what =
                "the learner has refused a game of this worker, expected the same vecaz on sound hardware";
            return Err(Failure::Final(what.into()));
        }
        self.is_over = replies.next().is_some_and(is_over);
        // After the server has lost the number, the learner publishes it again.
        let last = if state.version == self.state.version { self.taken } else { 0 };
        self.taken = taken_polls(&polls, state.version).unwrap_or(last);
        Ok(Some(state))
    }

    /// Marks every chunk as unsent.
    fn send_again(&mut self) {
        for held in &mut self.held {
            self.sent.resent += held.polls.send_again();
        }
    }

    fn send(&mut self, link: &mut Connection) -> Result<(), Failure> {
        let games = &self.worker.keys.games;
        // The learner has no room for later ones.
        let last = self.taken + POLLS_AHEAD;
        for PartitionPlay { polls, .. } in &mut self.held {
            loop {
                let (mut all, mut bytes, mut count) = (pipe(), 0, 0);
                for chunk in polls.unsent(last) {
                    if bytes >= PIPELINE_BYTES {
                        break;
                    }
                    all.cmd("XADD").arg(games).arg("*").arg(CHUNK_FIELD).arg(chunk).ignore();
                    bytes += chunk.len();
                    count += 1;
                }
                if count == 0 {
                    break;
                }
                link.pipeline(&all)?;
                self.sent.chunks += count as u64;
                self.sent.bytes += bytes as u64;
                polls.mark_sent(count);
            }
        }
        Ok(())
    }

    /// Bytes of the chunks in the resend buffers.
    fn buffered_bytes(&self) -> u64 {
        self.held.iter().map(|held| held.polls.bytes()).sum()
    }

    /// Drops polls that the learner has taken if the buffers are half full. Gives up the partitions of which the learner needs dropped
    /// polls, since it was killed and has begun the epoch again; after their leases have expired, they are played from their start.
    fn drop_taken(&mut self) {
        let taken = self.taken;
        if self.buffered_bytes() >= MAX_BUFFER_BYTES / 2 {
            self.held.iter_mut().for_each(|held| held.polls.drop_taken(taken));
        }
        let lacks = self.held.iter().filter(|held| held.polls.lacks(taken));
        let lost: Vec<usize> = lacks.map(|held| held.partition).collect();
        lost.into_iter().for_each(|partition| self.give_up(partition));
    }

    /// Duration of a lease in milliseconds.
    fn lease(&self) -> u64 {
        (LEASE + 4 * self.longest_poll).as_millis() as u64
    }

    fn lease_key(&self, partition: usize) -> String {
        self.keys().lease(self.state.version, partition)
    }

    /// Renews the leases, takes expired ones again, and gives up the partitions whose leases another worker holds.
    fn renew(&mut self, link: &mut Connection) -> Result<(), Failure> {
        if self.held.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.held.iter().map(|held| self.lease_key(held.partition)).collect();
        let mut all = pipe();
        for key in &keys {
            all.cmd("SET").arg(key).arg(&self.incarnation).arg("NX").arg("PX").arg(self.lease()).ignore();
            all.cmd("GET").arg(key);
        }
        let holders = link.pipeline(&all)?;
        let mut all = pipe();
        let mut lost = Vec::new();
        for ((held, key), holder) in self.held.iter().zip(&keys).zip(holders) {
            if bytes_of(holder).as_deref() == Some(self.incarnation.as_bytes()) {
                all.cmd("PEXPIRE").arg(key).arg(self.lease());
            } else {
                lost.push(held.partition);
            }
        }
        link.pipeline(&all)?;
        for partition in lost {
            self.give_up(partition);
        }
        Ok(())
    }

    /// Stops playing a partition.
    fn give_up(&mut self, partition: usize) {
        if let Some(i) = self.held.iter().position(|held| held.partition == partition) {
            self.spare.push(self.held.swap_remove(i).selfplay);
        }
    }

    /// Takes a free lease, and reads the slots of its partition.
    fn take_lease(&mut self, link: &mut Connection) -> Result<Exchanged, Failure> {
        let mut all = pipe();
        for partition in 0..self.partitions.len() {
            all.cmd("GET").arg(self.lease_key(partition));
        }
        let holders = link.pipeline(&all)?;
        let is_free = |(partition, holder)| matches!(holder, Value::Nil).then_some(partition);
        for partition in holders.into_iter().enumerate().filter_map(is_free) {
            let mut take = cmd("SET");
            take.arg(self.lease_key(partition)).arg(&self.incarnation).arg("NX").arg("PX").arg(self.lease());
            if matches!(link.command(&take)?, Value::Nil) {
                continue;
            }
            let max = EpochSlots::max_bytes(self.worker.game.as_ref(), self.partitions[partition].len());
            let bytes = read_epoch_slots(link, self.keys(), self.state.version, &partition.to_string(), max)?;
            return Ok(bytes.map_or(Exchanged::Nothing, |bytes| Exchanged::Partition { partition, bytes }));
        }
        Ok(Exchanged::Nothing)
    }

    /// Sends the finished polls, then releases the leases.
    fn release_leases(&mut self, link: &mut Connection) -> Result<(), Failure> {
        self.send(link)?;
        for held in &self.held {
            let key = self.lease_key(held.partition);
            let holder = bytes_of(link.command(cmd("GET").arg(&key))?);
            if holder.as_deref() == Some(self.incarnation.as_bytes()) {
                number_of(link.command(cmd("DEL").arg(&key))?);
            }
        }
        Ok(())
    }

    fn apply_exchange(&mut self, exchanged: Exchanged) -> Result<()> {
        match exchanged {
            Exchanged::Nothing => Ok(()),
            Exchanged::Weights { state, file, finished } => self.begin_epoch(state, &file, finished),
            Exchanged::Partition { partition, bytes } => {
                let (game, range) = (self.worker.game.as_ref(), self.partitions[partition].clone());
                let slots = EpochSlots::read(&bytes, range, game).map_err(|what| {
                    self.server()
                        .error(&Failure::Final(format!("the slots of partition {partition}: {what}")))
                })?;
                self.begin_partition(partition, slots)
            }
        }
    }

    /// Begins an epoch with new weights. Gives up all partitions.
    fn begin_epoch(&mut self, state: PublishedRun, file: &[u8], finished: u64) -> Result<()> {
        let Worker { config, game, spec, .. } = self.worker;
        let name = PathBuf::from(format!("weights of version {}", state.version));
        let file = NetFile::from_bytes(&name, file)?;
        let (network, executor) = make_network(config, game.as_ref(), spec, &file.weights)?;
        tracing::debug!("weights of version {}, executed by {executor}", state.version);
        self.spare.extend(self.held.drain(..).map(|held| held.selfplay));
        if self.evaluations.is_none() && network.needs_observations() {
            self.evaluations = eval_cache(config, game.as_ref());
        }
        if let Some(evaluations) = &self.evaluations {
            evaluations.clear();
        }
        let new = NewWeights {
            config,
            game: game.as_ref(),
            network: network.as_ref(),
            epochs: state.version,
            finished,
        };
        let (cache, _) = new.root_cache(self.evaluations.as_ref(), &mut || (), self.stop)?;
        self.epoch = Some(Epoch { network, cache: Arc::new(cache) });
        self.state = state;
        self.exchanged_at = None;
        Ok(())
    }

    /// Begins a partition at the start of the epoch.
    fn begin_partition(&mut self, partition: usize, slots: Vec<GameSlot>) -> Result<()> {
        let Some(Epoch { network, cache }) = &self.epoch else { return Ok(()) };
        let recorder = Recorder::new(&slots);
        let reused = self.spare.iter().position(|spare| spare.slots().count() == slots.len());
        let mut selfplay = match reused.map(|i| self.spare.swap_remove(i)) {
            Some(mut selfplay) => {
                selfplay.replace_network_keep_cache(network.as_ref())?;
                selfplay.replace_slots(slots)?;
                selfplay
            }
            None => {
                new_selfplay(self.worker, network.as_ref(), slots, self.threads, self.evaluations.as_ref())?
            }
        };
        selfplay.stop_by(self.stop);
        selfplay.begin_plies(cache.clone())?;
        self.held.push(PartitionPlay { partition, selfplay, recorder, polls: UnackedPolls::default() });
        Ok(())
    }

    /// Index in `held` of the partition with the fewest polls, if it is not too far ahead of the learner. With full buffers only the
    /// polls that the learner takes next are played.
    fn next_partition(&self) -> Option<usize> {
        let ahead = if self.buffered_bytes() < MAX_BUFFER_BYTES { POLLS_AHEAD } else { 1 };
        let max = self.taken.saturating_add(ahead);
        let open = (0..self.held.len()).filter(|&i| self.held[i].polls.played() < max);
        open.min_by_key(|&i| (self.held[i].polls.played(), self.held[i].partition))
    }

    /// Plays a poll of [`StrictPlay::next_partition`]; false where there is none.
    fn play_poll(&mut self, meter: &mut StatusMeter) -> Result<bool> {
        let Some(i) = self.next_partition() else { return Ok(false) };
        let start = Instant::now();
        let PartitionPlay { partition, selfplay, recorder, polls } = &mut self.held[i];
        let finished = selfplay.poll_by_pass()?;
        meter.played(&selfplay.take_metrics());
        meter.count(finished.len(), finished.iter().map(|(_, game)| game.samples.len()).sum());
        let plies = recorder.record(&finished, selfplay.slots());
        let number = (self.state.version, polls.played() + 1);
        polls.push(seal(&mut self.sealer, &self.limits, number, *partition, plies)?);
        self.longest_poll = self.longest_poll.max(start.elapsed());
        Ok(true)
    }
}
