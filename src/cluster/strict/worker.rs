//! A worker of a run in strict order: holds the leases of some parts, plays their polls and sends them.
//!
//! It talks with the server between two polls, and keeps what it has sent until the epoch is over, or until the learner has taken it where
//! that is much: whatever is lost, it is sent again.

use super::super::bounds::KEPT_BYTES;
use super::super::chunk::{ChunkLimits, Sealer};
use super::super::published::{CHUNK_FIELD, Keys, State, read_starts, read_weights, taken_polls};
use super::super::sender::SentCounts;
use super::super::server::{Connection, Failure, RETRY, Server, bytes_of, number_of};
use super::super::status::{Limit, StatusMeter, WorkerStatus};
use super::super::worker::{WorkDone, Worker};
use super::kept::KeptPolls;
use super::poll::{Recorder, limits, seal};
use super::starts::Starts;
use super::{POLLS_AHEAD, parts};
use crate::backend::RootCache;
use crate::config::{Config, SearchConfig, SelfPlayConfig};
use crate::error::{Error, Result};
use crate::net::Network;
use crate::run::local_selfplay::NewWeights;
use crate::run::network::make_network;
use crate::search::eval_cache::EvalCache;
use crate::selfplay::{GameSlot, SelfPlay, eval_cache};
use crate::stop::Stop;
use crate::weights::NetFile;
use redis::{Value, cmd, pipe};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest time between two exchanges with the server, but for a poll that takes longer.
const EXCHANGE: Duration = Duration::from_millis(20);
/// The same where there is nothing to play.
const IDLE: Duration = Duration::from_millis(5);
/// How long a lease lasts, besides four times the longest poll.
const LEASE: Duration = Duration::from_secs(5);
/// Bytes of chunks that are sent at once.
const SENT_AT_ONCE: usize = 1 << 20;

/// A part whose lease this worker holds.
struct PartPlay {
    part: usize,
    selfplay: SelfPlay,
    recorder: Recorder,
    /// Its polls.
    kept: KeptPolls,
}

/// The weights of an epoch, and what follows from them.
struct Epoch {
    network: Box<dyn Network>,
    cache: Arc<RootCache>,
}

/// What an exchange has brought.
enum Exchanged {
    Nothing,
    /// Weights of another version.
    Weights {
        state: State,
        file: Vec<u8>,
        finished: u64,
    },
    /// The slots of a part whose lease was taken.
    Part {
        part: usize,
        bytes: Vec<u8>,
    },
}

/// A worker at play.
pub(in super::super) struct StrictPlay<'a> {
    worker: &'a Worker,
    sealer: Sealer,
    limits: ChunkLimits,
    most_weights: u64,
    incarnation: String,
    threads: usize,
    stop: &'a Stop,
    parts: Vec<Range<usize>>,
    /// The state at the last exchange.
    state: State,
    /// Polls that the learner has taken.
    taken: u64,
    epoch: Option<Epoch>,
    evaluations: Option<Arc<EvalCache>>,
    held: Vec<PartPlay>,
    /// Games of parts that are not held any more, whose arrays are used again.
    spare: Vec<SelfPlay>,
    exchanged_at: Option<Instant>,
    longest_poll: Duration,
    sent: SentCounts,
    /// The newest status, until it is sent.
    status: Option<Vec<u8>>,
}

impl<'a> StrictPlay<'a> {
    /// A worker that has sent nothing yet. `incarnation` is the process's field in hashes.
    ///
    /// # Errors
    /// Those of [`limits`].
    pub(in super::super) fn new(
        worker: &'a Worker,
        sealer: Sealer,
        most_weights: u64,
        incarnation: String,
        threads: usize,
        stop: &'a Stop,
    ) -> Result<Self> {
        let (config, game) = (worker.config(), worker.game.as_ref());
        let parts: Vec<Range<usize>> = parts(config.selfplay.games).collect();
        let most_slots = parts.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        Ok(Self {
            sealer,
            limits: limits(game, most_slots, config.selfplay.passes_per_poll)?,
            most_weights,
            incarnation,
            threads,
            stop,
            parts,
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
            worker,
        })
    }

    /// Plays until the stop is requested, then gives the leases back.
    ///
    /// # Errors
    /// Those of self-play; [`Error::Server`] for a reason that does not pass.
    pub(in super::super) fn run(
        mut self,
        meter: &mut StatusMeter,
        report: &mut dyn FnMut(&WorkerStatus),
    ) -> Result<WorkDone> {
        let mut link = None;
        while self.stop.cause().is_none() {
            let from = Instant::now();
            let played = match self.exchange(&mut link).and_then(|exchanged| self.apply_exchange(exchanged)) {
                Ok(()) => {
                    meter.waited(Limit::Link, from.elapsed());
                    self.play_poll(meter)
                }
                Err(error) => Err(error),
            };
            match played {
                Ok(true) => {}
                Ok(false) => {
                    meter.waited(Limit::Learner, IDLE);
                    sleep(IDLE);
                }
                Err(Error::Stopped(_)) => break,
                Err(error) => return Err(error),
            }
            if let Some(status) = meter.due(self.state.version) {
                report(&status);
                self.status = Some(serde_json::to_vec(&status).unwrap_or_default());
            }
        }
        if let Some(link) = &mut link {
            // Best effort: leases end by themselves, and what was not sent is played by another worker.
            let _ = self.give_back(link);
        }
        let (games, samples) = meter.totals();
        Ok(WorkDone { games, samples, sent: self.sent, unsent: 0 })
    }

    fn server(&self) -> &Server {
        &self.worker.server
    }

    fn keys(&self) -> &Keys {
        &self.worker.keys
    }

    /// Exchanges with the server if it is time to, and again after failures that pass.
    fn exchange(&mut self, open: &mut Option<Connection>) -> Result<Exchanged> {
        let interval = if self.next_part().is_some() { EXCHANGE } else { IDLE };
        if self.exchanged_at.is_some_and(|at| at.elapsed() < interval) {
            return Ok(Exchanged::Nothing);
        }
        let exchanged = match self.exchange_on(open) {
            Ok(exchanged) => exchanged,
            Err(failure @ (Failure::Passing(_) | Failure::Busy(_))) => {
                if let Failure::Passing(_) = failure {
                    *open = None;
                }
                let what = failure.text();
                tracing::warn!("{}: {what}; it is tried again", self.server().address());
                sleep(RETRY);
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
        if self.epoch.is_none() || state.version != self.state.version {
            let starts = read_starts(link, self.keys(), state.version, super::starts::FINISHED, 20)?;
            let finished = starts.and_then(|text| String::from_utf8(text).ok()?.parse().ok());
            let file = read_weights(link, self.keys(), (state.version, state.sha256), self.most_weights)?;
            // None where a newer version has come meanwhile.
            return Ok(match finished.zip(file) {
                Some((finished, file)) => Exchanged::Weights { state, file, finished },
                None => Exchanged::Nothing,
            });
        }
        self.state = state;
        if let Some(status) = self.status.take() {
            link.command(cmd("HSET").arg(&self.worker.keys.workers).arg(&self.incarnation).arg(status))?;
        }
        self.drop_taken();
        self.send(link)?;
        self.renew(link)?;
        match self.next_part() {
            None => self.take_lease(link),
            Some(_) => Ok(Exchanged::Nothing),
        }
    }

    /// The run's state, and how far its learner is; None where the server has lost it.
    fn read_state(&mut self, link: &mut Connection) -> Result<Option<State>, Failure> {
        let Some(state) = State::read(link, self.keys())? else { return Ok(None) };
        if state.run != self.state.run || state.digest != self.state.digest {
            return Err(Failure::Final(
                "the run has another identity or configuration than when this worker began, expected a new start of the worker"
                    .into(),
            ));
        }
        if state.generation != self.state.generation {
            self.send_again();
        }
        let mut all = pipe();
        all.cmd("GET").arg(&self.keys().polls);
        all.cmd("HGET").arg(&self.keys().refused).arg(&self.incarnation);
        let mut replies = link.pipeline(&all)?.into_iter();
        let polls = replies.next().and_then(bytes_of).unwrap_or_default();
        if replies.next().and_then(bytes_of).is_some() {
            return Err(Failure::Final(
                "the learner has refused a game of this worker, expected the same vecaz on sound hardware"
                    .into(),
            ));
        }
        // A server that has lost the number gets it again.
        let known = if state.version == self.state.version { self.taken } else { 0 };
        self.taken = taken_polls(&polls, state.version).unwrap_or(known);
        Ok(Some(state))
    }

    /// Every chunk is to be sent again.
    fn send_again(&mut self) {
        for part in &mut self.held {
            self.sent.resent += part.kept.send_again();
        }
    }

    fn send(&mut self, link: &mut Connection) -> Result<(), Failure> {
        let games = &self.worker.keys.games;
        for PartPlay { kept, .. } in &mut self.held {
            loop {
                let (mut all, mut bytes, mut count) = (pipe(), 0, 0);
                for chunk in kept.unsent() {
                    if bytes >= SENT_AT_ONCE {
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
                kept.mark_sent(count);
            }
        }
        Ok(())
    }

    /// Bytes of the chunks that are kept.
    fn kept_bytes(&self) -> u64 {
        self.held.iter().map(|held| held.kept.bytes()).sum()
    }

    /// Drops polls that the learner has taken where there are many, and gives up the parts of which it wants those again: it was killed,
    /// and has begun the epoch anew. Their leases end, and then they are played from their start.
    fn drop_taken(&mut self) {
        let taken = self.taken;
        if self.kept_bytes() >= KEPT_BYTES / 2 {
            self.held.iter_mut().for_each(|held| held.kept.drop_taken(taken));
        }
        let lacks = self.held.iter().filter(|held| held.kept.lacks(taken));
        let lost: Vec<usize> = lacks.map(|held| held.part).collect();
        lost.into_iter().for_each(|part| self.give_up(part));
    }

    /// Milliseconds that a lease lasts.
    fn lease(&self) -> u64 {
        (LEASE + 4 * self.longest_poll).as_millis() as u64
    }

    fn lease_key(&self, part: usize) -> String {
        self.keys().lease(self.state.version, part)
    }

    /// Renews the leases, takes again those that have ended, and gives up the parts that another worker has.
    fn renew(&mut self, link: &mut Connection) -> Result<(), Failure> {
        if self.held.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.held.iter().map(|held| self.lease_key(held.part)).collect();
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
                lost.push(held.part);
            }
        }
        link.pipeline(&all)?;
        for part in lost {
            self.give_up(part);
        }
        Ok(())
    }

    /// Plays a part no further.
    fn give_up(&mut self, part: usize) {
        if let Some(i) = self.held.iter().position(|held| held.part == part) {
            self.spare.push(self.held.swap_remove(i).selfplay);
        }
    }

    /// Takes the lease of a part that nobody has.
    fn take_lease(&mut self, link: &mut Connection) -> Result<Exchanged, Failure> {
        let mut all = pipe();
        for part in 0..self.parts.len() {
            all.cmd("GET").arg(self.lease_key(part));
        }
        let holders = link.pipeline(&all)?;
        let is_free = |(part, holder)| matches!(holder, Value::Nil).then_some(part);
        for part in holders.into_iter().enumerate().filter_map(is_free) {
            let mut take = cmd("SET");
            take.arg(self.lease_key(part)).arg(&self.incarnation).arg("NX").arg("PX").arg(self.lease());
            if matches!(link.command(&take)?, Value::Nil) {
                continue;
            }
            let most = Starts::most_bytes(self.worker.game.as_ref(), self.parts[part].len());
            let bytes = read_starts(link, self.keys(), self.state.version, &part.to_string(), most)?;
            return Ok(bytes.map_or(Exchanged::Nothing, |bytes| Exchanged::Part { part, bytes }));
        }
        Ok(Exchanged::Nothing)
    }

    /// Gives the leases back, after sending what is finished.
    fn give_back(&mut self, link: &mut Connection) -> Result<(), Failure> {
        self.send(link)?;
        for held in &self.held {
            let key = self.lease_key(held.part);
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
            Exchanged::Part { part, bytes } => {
                let (game, range) = (self.worker.game.as_ref(), self.parts[part].clone());
                let slots = Starts::read(&bytes, range, game).map_err(|what| {
                    self.server().error(&Failure::Final(format!("the slots of part {part}: {what}")))
                })?;
                self.begin_part(part, slots)
            }
        }
    }

    /// Takes new weights; all parts are given up.
    fn begin_epoch(&mut self, state: State, file: &[u8], finished: u64) -> Result<()> {
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

    /// Begins a part at the start of the epoch.
    fn begin_part(&mut self, part: usize, slots: Vec<GameSlot>) -> Result<()> {
        let Some(Epoch { network, cache }) = &self.epoch else { return Ok(()) };
        let recorder = Recorder::new(&slots);
        let reused = self.spare.iter().position(|spare| spare.slots().count() == slots.len());
        let mut selfplay = match reused.map(|i| self.spare.swap_remove(i)) {
            Some(mut selfplay) => {
                selfplay.replace_network_keep_cache(network.as_ref())?;
                selfplay.replace_slots(slots)?;
                selfplay
            }
            None => self.new_selfplay(network.as_ref(), slots)?,
        };
        selfplay.stop_by(self.stop);
        selfplay.begin_plies(cache.clone())?;
        self.held.push(PartPlay { part, selfplay, recorder, kept: KeptPolls::default() });
        Ok(())
    }

    /// Self-play in the slots of a part, which shares this worker's evaluations with the others.
    fn new_selfplay(&self, network: &dyn Network, slots: Vec<GameSlot>) -> Result<SelfPlay> {
        let Worker { config, game, .. } = self.worker;
        let selfplay = SelfPlayConfig { games: slots.len(), ..config.selfplay.clone() };
        let search = SearchConfig { cache_entries: 0, ..config.search.clone() };
        let config = Config { selfplay, search, ..config.clone() };
        let mut selfplay = SelfPlay::new(game, &config, network, slots, self.threads)?;
        if let Some(evaluations) = &self.evaluations {
            selfplay.share_evaluations(evaluations)?;
        }
        Ok(selfplay)
    }

    /// The part that is the furthest behind, among those that are not too far ahead of the learner. Where many bytes are kept, only polls that
    /// the learner takes next are played.
    fn next_part(&self) -> Option<usize> {
        let ahead = if self.kept_bytes() < KEPT_BYTES { POLLS_AHEAD } else { 1 };
        let most = self.taken.saturating_add(ahead);
        let open = (0..self.held.len()).filter(|&i| self.held[i].kept.played() < most);
        open.min_by_key(|&i| (self.held[i].kept.played(), self.held[i].part))
    }

    /// Plays a poll of one part; false if there is none to play.
    fn play_poll(&mut self, meter: &mut StatusMeter) -> Result<bool> {
        let Some(i) = self.next_part() else { return Ok(false) };
        let start = Instant::now();
        let PartPlay { part, selfplay, recorder, kept } = &mut self.held[i];
        let finished = selfplay.poll_by_pass()?;
        meter.played(&selfplay.take_clock());
        meter.count(finished.len(), finished.iter().map(|(_, game)| game.samples.len()).sum());
        let plies = recorder.record(&finished, selfplay.slots());
        let number = (self.state.version, kept.played() + 1);
        kept.push(seal(&mut self.sealer, &self.limits, number, *part, plies)?);
        self.longest_poll = self.longest_poll.max(start.elapsed());
        Ok(true)
    }
}
