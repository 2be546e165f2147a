//! A run whose games also come from workers: [`LearnerFactory`] makes the components of such a run.

use super::bounds::{ChunkBounds, max_poll_buffer_bytes, max_worker_buffer_bytes};
use super::chunk::{ChunkLimits, ChunkReader};
use super::entry_queue::{self, ChunkOutcome, EntryReceiver, RefusedGames, StreamEntry};
use super::evaluation::offered::OfferedEvaluation;
use super::evaluation::{self, Offer};
use super::local_worker::LocalWorker;
use super::published::{Keys, PublishedRun, sha256};
use super::reader::{Reader, ReaderState, of_another_run, thread_has_ended};
use super::received::Received;
use super::run_shared::{Publication, RunShared};
use super::server::{Failure, Server};
use super::stalls::{STALL, StallTimer};
use super::strict::epoch_slots::EpochSlots;
use super::strict::partitions;
use super::strict::poll::{self, PartitionPoll};
use super::strict::poll_merger::{Offered, PollMerger, Refused};
use super::strict::refusals::RefusedProcess;
use super::warnings::{Kind, Warnings};
use super::window::{Window, epoch_bytes};
use super::worker_counters::{AcceptedChunk, WorkerCounters};
use super::{digest, random};
use crate::backend::AnyGame;
use crate::config::{ClusterOrder, Config};
use crate::error::{Error, Result};
use crate::play::PlayPlan;
use crate::play::{FinishedGame, GameSlot, new_slots};
use crate::registry::Registry;
use crate::report::metrics::EpochRecord;
use crate::report::workers::WorkerCounts;
use crate::run::factory::ComponentFactory;
use crate::run::memory::MemoryPlan;
use crate::run::network::check_machine;
use crate::run::workers::{EvaluationOffer, SharedEvaluation, Workers, WorkersSetup};
use crate::weights::NetFile;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Refused processes in one partition of an epoch that end the run. One or two may be damaged or hostile; if three in turn disagree
/// with the polls taken so far, those polls are probably wrong.
const MAX_REFUSED_PROCESSES: usize = 3;

/// Time without workers after which a learner that does not play says so: a worker publishes its first status at once.
const MISSING_AFTER: Duration = Duration::from_secs(5);

/// Whether the learner plays games in addition to its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnerPlay {
    /// The learner plays and trains.
    Plays,
    /// The learner only trains.
    Idle,
}

/// Whether the server may already have a run of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The run is new: the server must not have the name.
    New,
    /// The run continues: the server may have the name.
    Resumed,
}

/// Makes the components of a run with workers.
pub struct LearnerFactory {
    /// The games of the program.
    pub registry: Registry,
    /// The server that workers use.
    pub server: Server,
    /// Whether the learner plays games.
    pub play: LearnerPlay,
    /// Whether the run is new.
    pub begin: Begin,
    /// The file with the server's password, if it comes from one.
    pub password_file: Option<PathBuf>,
}

impl ComponentFactory for LearnerFactory {
    fn registry(&self) -> Registry {
        self.registry.clone()
    }

    fn check(&self, config: &Config) -> Result<()> {
        check_machine(config)?;
        config.check_workers()?;
        let game = self.registry.game_of(config)?;
        match config.cluster.order {
            ClusterOrder::Free => ChunkLimits::of(game.as_ref())?,
            ClusterOrder::Strict => poll_limits(config, game.as_ref())?,
        };
        check_queue(config, game.as_ref())?;
        let keys = Keys::new(self.server.address().run());
        let found = self.server.connect().and_then(|mut link| PublishedRun::read(&mut link, &keys));
        match found.map_err(|failure| self.server.error(&failure))? {
            Some(_) if self.begin == Begin::New => {
                Err(self.server.error(&Failure::Final(of_another_run(&keys))))
            }
            _ => Ok(()),
        }
    }

    fn memory(&self, config: &Config, game: &dyn AnyGame) -> Result<MemoryPlan> {
        let plan = MemoryPlan::new(config, game)?;
        let mut workers = entry_queue::MAX_BYTES;
        if config.cluster.order == ClusterOrder::Strict {
            workers = workers.saturating_add(max_poll_buffer_bytes(config, game));
            if self.play == LearnerPlay::Plays {
                workers = workers.saturating_add(max_worker_buffer_bytes(config, game)?);
            }
        }
        let plan = MemoryPlan { workers, ..plan };
        Ok(match self.play {
            LearnerPlay::Plays => plan,
            LearnerPlay::Idle => plan.without_play(),
        })
    }

    fn plays_itself(&self, config: &Config) -> bool {
        // In strict order a local worker plays.
        self.play == LearnerPlay::Plays && config.cluster.order == ClusterOrder::Free
    }

    fn resume_arguments(&self) -> String {
        let play = match self.play {
            LearnerPlay::Plays => "",
            LearnerPlay::Idle => " --play 0",
        };
        let file = self.password_file.iter().map(|file| format!(" --password-file {}", file.display()));
        format!(" --cluster {}{play}{}", self.server.address(), file.collect::<String>())
    }

    fn workers(&self, setup: WorkersSetup<'_>) -> Result<Option<Box<dyn Workers>>> {
        self.workers_with(setup, STALL).map(Some)
    }
}

impl LearnerFactory {
    /// [`ComponentFactory::workers`] of a run in which all workers are requested to send again after run and workers have waited for each
    /// other for `stall`.
    ///
    /// # Errors
    /// Those of [`ComponentFactory::workers`].
    pub fn workers_with(&self, setup: WorkersSetup<'_>, stall: Duration) -> Result<Box<dyn Workers>> {
        let source = WorkerSource::start(&self.server, &self.registry, setup, self.play, stall)?;
        Ok(Box::new(source))
    }
}

/// Slots of the largest partition.
fn max_partition_slots(config: &Config) -> usize {
    partitions(config.selfplay.games).map(|partition| partition.len()).max().unwrap_or(0)
}

/// The bounds of a partition's poll.
fn poll_limits(config: &Config, game: &dyn AnyGame) -> Result<ChunkLimits> {
    poll::limits(game, max_partition_slots(config), config.selfplay.passes_per_poll)
}

/// The bounds of the chunks that the reader accepts.
fn chunk_bounds(config: &Config, game: &dyn AnyGame) -> Result<ChunkBounds> {
    let order = config.cluster.order;
    Ok(ChunkBounds {
        limits: match order {
            ClusterOrder::Free => ChunkLimits::of(game)?,
            ClusterOrder::Strict => poll_limits(config, game)?,
        },
        records: poll::max_records(max_partition_slots(config), config.selfplay.passes_per_poll),
        order,
        max_lag: config.cluster.max_lag,
    })
}

/// Refuses a queue that cannot hold the games of two epochs: the workers would wait for a checkpoint and the checkpoint for games. In
/// strict order an estimate, without headers and repeated polls.
fn check_queue(config: &Config, game: &dyn AnyGame) -> Result<()> {
    let min = epoch_bytes(config, game).saturating_mul(2);
    let queued = config.cluster.max_queued_bytes;
    if queued >= min {
        return Ok(());
    }
    let expected =
        format!("at least {min}, twice what selfplay.samples_per_epoch samples of this game may need");
    Err(Error::config("cluster.max_queued_bytes", queued, expected))
}

/// Source of the games of workers, which the run reaches through the server.
struct WorkerSource {
    server: Server,
    game: Arc<dyn AnyGame>,
    digest: [u8; 32],
    shared: Arc<RunShared>,
    /// None once the run is over.
    entries: Option<EntryReceiver>,
    reader: Option<JoinHandle<()>>,
    /// The chunks that the run has taken.
    received: Received,
    /// None in free order.
    merger: Option<PollMerger>,
    /// None in free order and where the learner does not play.
    local: Option<LocalWorker>,
    max_lag: u64,
    counters: WorkerCounters,
    warnings: Warnings,
    play: LearnerPlay,
    /// The last time when a worker was there, or the start.
    seen_at: Instant,
}

impl WorkerSource {
    fn start(
        server: &Server,
        registry: &Registry,
        setup: WorkersSetup<'_>,
        play: LearnerPlay,
        stall: Duration,
    ) -> Result<Self> {
        let WorkersSetup { config, game, received, slots, checkpoint } = setup;
        let plan = PlayPlan::new(config, &game.sizes());
        let digest = digest(config, game.as_ref());
        let received = match received {
            // Checkpoints with workers store the number; a run that is resumed before the first of them finds it again.
            [] => {
                let run = checkpoint.unwrap_or_else(random);
                Received { run, generation: random(), ..Received::default() }
            }
            bytes => Received::from_bytes(bytes)?,
        };
        let shared = Arc::new(RunShared::default());
        let (sender, entries) = entry_queue::channel();
        let reader = Reader {
            server: server.clone(),
            keys: Keys::new(server.address().run()),
            game: game.clone(),
            plan,
            bounds: chunk_bounds(config, game.as_ref())?,
            digest,
            config: config.file_text()?,
            chunks: ChunkReader::new()?,
            shared: shared.clone(),
            entries: sender,
            read: received.clone(),
            known: ReaderState::default(),
            window: Window::new(epoch_bytes(config, game.as_ref()), &config.cluster),
            stalls: StallTimer::new(stall),
            warnings: Warnings::new(server.address()),
        };
        let reader = thread::Builder::new().name("chunks".into()).spawn(move || reader.run());
        let reader = reader.map_err(|e| Error::unsupported("a thread for chunks", e.to_string()))?;
        let (mut merger, mut local) = (None, None);
        if config.cluster.order == ClusterOrder::Strict {
            let slots = match slots {
                [] => new_slots(0, config.selfplay.games, game.as_ref(), &plan),
                slots => slots.to_vec(),
            };
            merger = Some(PollMerger::new(game.clone(), plan, slots, config.selfplay.passes_per_poll));
            if play == LearnerPlay::Plays {
                local = Some(LocalWorker::start(server, registry, config, &shared)?);
            }
        }
        Ok(Self {
            server: server.clone(),
            game: game.clone(),
            digest,
            merger,
            local,
            shared,
            entries: Some(entries),
            reader: Some(reader),
            received,
            max_lag: config.cluster.max_lag,
            counters: WorkerCounters::new(),
            warnings: Warnings::new(server.address()),
            play,
            seen_at: Instant::now(),
        })
    }

    /// The games of the next poll; None until all partitions have sent it.
    ///
    /// # Errors
    /// [`Error::Server`] where several processes in turn disagree with the polls of a partition that were taken.
    fn take_poll(&mut self) -> Result<Option<Vec<FinishedGame>>> {
        let Some(merger) = &mut self.merger else { return Ok(None) };
        loop {
            match merger.take() {
                None => return Ok(None),
                Some(Ok(games)) => {
                    self.shared.polls.store(merger.taken(), Ordering::Relaxed);
                    if merger.take_reread_request() {
                        let version = &self.shared.reread_version;
                        *version.lock().unwrap_or_else(PoisonError::into_inner) = Some(merger.version());
                    }
                    count(&mut self.counters.counts, &games);
                    return Ok(Some(games));
                }
                Some(Err(Refused { sender, incarnation, partition, what, processes })) => {
                    self.counters.counts.refused += 1;
                    self.warnings.warn(Kind::Refused, &format!("a poll of {sender} is refused: {what}"));
                    if processes >= MAX_REFUSED_PROCESSES {
                        return Err(self.server.error(&Failure::Final(format!(
                            "the polls of {processes} workers in turn do not continue those taken of partition {partition}, which are \
                             probably wrong, expected vecaz run --resume, which begins the epoch again"
                        ))));
                    }
                    let process = RefusedProcess { incarnation, partition, version: merger.version() };
                    self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner).push(process);
                }
            }
        }
    }

    /// Passes a partition's poll to the merger and counts the outcome.
    fn offer(&mut self, poll: PartitionPoll, bytes: usize, waited: Duration) {
        let Some(merger) = &mut self.merger else { return };
        let (sender, incarnation, counts) =
            (poll.sender.clone(), poll.incarnation, &mut self.counters.counts);
        let games = poll.plies.iter().filter(|plies| plies.ended_by.is_some()).count() as u64;
        match merger.offer(poll) {
            Offered::Buffered => {
                self.shared.accepted.fetch_add(1, Ordering::Relaxed);
                let chunk =
                    AcceptedChunk { sender: &sender, incarnation, games, bytes, staleness: 0, waited };
                self.counters.take(&chunk);
            }
            Offered::BufferFull => {}
            Offered::Repeated => counts.repeated += 1,
            Offered::OtherVersion => counts.stale += 1,
            Offered::Impossible => {
                counts.refused += 1;
                self.warnings.warn(
                    Kind::Refused,
                    &format!(
                        "a poll of {sender} is refused: its partition or size is out of range, or its worker was refused before"
                    ),
                );
            }
        }
    }

    /// Counts an entry, marks it as taken, and returns its games.
    fn take(&mut self, entry: StreamEntry) -> Vec<FinishedGame> {
        let StreamEntry { generation, id, bytes, since, outcome } = entry;
        (self.received.generation, self.received.position) = (generation, id);
        let waited = since.elapsed();
        let counts = &mut self.counters.counts;
        counts.bytes += bytes as u64;
        let (sender, incarnation, version, games) = match outcome {
            ChunkOutcome::Next { sender, incarnation, sequence, version, games } => {
                self.received.take(incarnation, sequence);
                self.shared.accepted.fetch_add(1, Ordering::Relaxed);
                (sender, incarnation, version, games)
            }
            ChunkOutcome::Poll(poll) => {
                self.offer(poll, bytes, waited);
                return Vec::new();
            }
            ChunkOutcome::Repeated => {
                counts.repeated += 1;
                return Vec::new();
            }
            ChunkOutcome::Gap => {
                counts.gaps += 1;
                return Vec::new();
            }
            ChunkOutcome::Refused => {
                counts.refused += 1;
                return Vec::new();
            }
        };
        // Newer weights may have been published since the entry was read.
        let staleness = self.shared.version.load(Ordering::Relaxed).saturating_sub(version);
        self.shared.staleness.fetch_max(staleness, Ordering::Relaxed);
        match games {
            Ok(games) if staleness <= self.max_lag => {
                count(counts, &games);
                let (sender, number) = (&sender, games.len() as u64);
                let chunk = AcceptedChunk { sender, incarnation, games: number, bytes, staleness, waited };
                self.counters.take(&chunk);
                games
            }
            Ok(_) | Err(RefusedGames::Stale) => {
                counts.stale += 1;
                Vec::new()
            }
            Err(RefusedGames::Games) => {
                counts.refused += 1;
                Vec::new()
            }
        }
    }
}

/// Adds games that are taken, with their samples.
fn count(counts: &mut WorkerCounts, games: &[FinishedGame]) {
    counts.games += games.len() as u64;
    counts.samples += games.iter().map(|game| game.samples.len() as u64).sum::<u64>();
}

impl Workers for WorkerSource {
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<FinishedGame>>> {
        self.local.as_ref().map_or(Ok(()), LocalWorker::check)?;
        if let Some(games) = self.take_poll()? {
            return Ok(Some(games));
        }
        let Some(entries) = &self.entries else { return Ok(None) };
        match entries.receive(wait) {
            Ok(entry) => Ok(Some(self.take(entry?))),
            Err(RecvTimeoutError::Disconnected) => Err(thread_has_ended(&self.server)),
            Err(RecvTimeoutError::Timeout) => {
                self.shared.record_wait();
                Ok(None)
            }
        }
    }

    fn received(&self) -> Vec<u8> {
        self.received.to_bytes()
    }

    fn publish(&mut self, epoch: u64, network: &NetFile, record: Option<&EpochRecord>) -> Result<()> {
        let weights = network.to_bytes(Path::new("weights for workers"))?;
        let publication = Publication {
            version: epoch,
            sha256: sha256(&weights),
            weights,
            received: self.received.clone(),
            record: record.and_then(|record| serde_json::to_vec(record).ok()),
            epoch_slots: self.merger.as_ref().map(|merger| EpochSlots::of(merger.slots())),
        };
        if let Some(merger) = &mut self.merger {
            merger.begin(epoch);
            self.shared.polls.store(0, Ordering::Relaxed);
        }
        let mut newest = self.shared.publication.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = Some(Arc::new(publication));
        self.shared.version.store(epoch, Ordering::Relaxed);
        Ok(())
    }

    fn share_evaluation(
        &mut self,
        epoch: u64,
        network: &NetFile,
        offer: EvaluationOffer,
    ) -> Result<Box<dyn SharedEvaluation + '_>> {
        let weights = network.to_bytes(Path::new("weights for workers"))?;
        let limits = evaluation::limits(self.game.as_ref(), offer.max_bytes)?;
        let (digest, counts) = (self.digest, &mut self.counters.counts);
        let evaluation = Offer {
            id: random(),
            version: epoch,
            sha256: sha256(&weights),
            tasks: offer.parts,
            setup: offer.setup,
        };
        Ok(Box::new(OfferedEvaluation::new(&self.server, evaluation, &weights, (digest, limits), counts)?))
    }

    fn slots(&self) -> Option<Vec<GameSlot>> {
        self.merger.as_ref().map(|merger| merger.slots().to_vec())
    }

    fn take_counts(&mut self) -> WorkerCounts {
        let bytes_out = self.shared.bytes_out.swap(0, Ordering::Relaxed);
        let counts = self.counters.end();
        // A short epoch may have no chunk of a worker that is there.
        let active = counts.active.max(self.shared.present.load(Ordering::Relaxed));
        WorkerCounts { bytes_out, active, ..counts }
    }

    fn missing(&mut self) -> Option<String> {
        if self.play == LearnerPlay::Plays || self.shared.present.load(Ordering::Relaxed) > 0 {
            self.seen_at = Instant::now();
        }
        (self.seen_at.elapsed() >= MISSING_AFTER)
            .then(|| format!("no worker is there, start some with `vecaz work {}`", self.server.address()))
    }

    fn finish(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for WorkerSource {
    fn drop(&mut self) {
        self.local = None;
        self.shared.ended.store(true, Ordering::Relaxed);
        self.entries = None;
        if let Some(reader) = self.reader.take() {
            // The thread has reported its panic.
            let _ = reader.join();
        }
    }
}
