//! A run whose games also come from workers: [`LearnerFactory`] makes the components of such a run, among them its workers.

use super::bounds::{kept_by_worker, kept_polls};
use super::chunk::{ChunkLimits, ChunkReader};
use super::evaluation::shared::OfferedEvaluation;
use super::evaluation::{self, Offer};
use super::own_worker::OwnWorker;
use super::published::{Keys, State, sha256};
use super::reader::{ChunkBounds, LinkState, Reader, is_due, of_another_run, thread_is_gone};
use super::received::Received;
use super::server::{Failure, Server};
use super::shared::{Publication, Shared};
use super::strict::lockstep::{Lockstep, Offered, Refused};
use super::strict::parts;
use super::strict::poll::{self, PartPoll};
use super::strict::refusals::RefusedProcess;
use super::strict::starts::Starts;
use super::tally::{Taken, Tally};
use super::waiting::{self, ChunkOutcome, EntryReceiver, RefusedGames, StreamEntry};
use super::window::{Window, epoch_bytes};
use super::{digest, random};
use crate::backend::device_selfplay::PlayPlan;
use crate::batch::{AnyGame, any_game};
use crate::config::{ClusterOrder, Config};
use crate::error::{Error, Result};
use crate::report::metrics::EpochRecord;
use crate::report::workers::WorkerCounts;
use crate::run::factory::ComponentFactory;
use crate::run::memory::MemoryPlan;
use crate::run::network::check_machine;
use crate::run::workers::{EvaluationOffer, SharedEvaluation, Workers, WorkersSetup};
use crate::selfplay::{FinishedGame, GameSlot, new_slots};
use crate::weights::NetFile;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Processes that are refused in one part of an epoch until the run ends: one may be damaged or hostile, several in turn are not.
const MOST_REFUSED: usize = 3;

/// Whether the learner plays games besides its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnerPlay {
    /// It plays.
    Plays,
    /// It only trains.
    Idle,
}

/// Whether a run of this name may be at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The run is new.
    New,
    /// The run goes on.
    Resumed,
}

/// Makes the components of a run with workers.
pub struct LearnerFactory {
    /// Where workers find the run.
    pub server: Server,
    /// Whether it plays itself.
    pub play: LearnerPlay,
    /// Whether it is new.
    pub begin: Begin,
    /// The file with the server's password, if it comes from one.
    pub password_file: Option<PathBuf>,
}

impl ComponentFactory for LearnerFactory {
    fn check(&self, config: &Config) -> Result<()> {
        check_machine(config)?;
        let game = any_game(config.game_name(), &config.game_options())?;
        match config.cluster.order {
            ClusterOrder::Free => {
                ChunkLimits::of(game.as_ref())?;
                check_queue(config, game.as_ref())?;
            }
            ClusterOrder::Strict => drop(poll_limits(config, game.as_ref())?),
        }
        let keys = Keys::new(self.server.address().run());
        let found = self.server.connect().and_then(|mut link| State::read(&mut link, &keys));
        match found.map_err(|failure| self.server.error(&failure))? {
            Some(_) if self.begin == Begin::New => {
                Err(self.server.error(&Failure::Final(of_another_run(&keys))))
            }
            _ => Ok(()),
        }
    }

    fn memory(&self, config: &Config, game: &dyn AnyGame) -> Result<MemoryPlan> {
        let plan = MemoryPlan::new(config, game)?;
        let mut workers = waiting::MOST_BYTES;
        if config.cluster.order == ClusterOrder::Strict {
            workers = workers.saturating_add(kept_polls(config, game));
            if self.play == LearnerPlay::Plays {
                workers = workers.saturating_add(kept_by_worker(config, game)?);
            }
        }
        let plan = MemoryPlan { workers, ..plan };
        Ok(match self.play {
            LearnerPlay::Plays => plan,
            LearnerPlay::Idle => plan.without_play(),
        })
    }

    fn plays_itself(&self, config: &Config) -> bool {
        // In strict order by a worker of its own.
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
        let feed = Feed::start(&self.server, setup, self.play)?;
        Ok(Some(Box::new(feed)))
    }
}

/// Slots of the largest part.
fn part_slots(config: &Config) -> usize {
    parts(config.selfplay.games).map(|part| part.len()).max().unwrap_or(0)
}

/// The bounds of a part's poll.
fn poll_limits(config: &Config, game: &dyn AnyGame) -> Result<ChunkLimits> {
    poll::limits(game, part_slots(config), config.selfplay.passes_per_poll)
}

/// Refuses a queue that cannot hold the games of two epochs: workers would wait for a checkpoint, and it for their games.
fn check_queue(config: &Config, game: &dyn AnyGame) -> Result<()> {
    let least = epoch_bytes(config, game).saturating_mul(2);
    let queued = config.cluster.max_queued_bytes;
    if queued >= least {
        return Ok(());
    }
    let expected =
        format!("at least {least}, twice what selfplay.samples_per_epoch samples of this game may need");
    Err(Error::config("cluster.max_queued_bytes", queued, expected))
}

/// The workers of a run, reached through the server.
struct Feed {
    server: Server,
    game: Arc<dyn AnyGame>,
    digest: [u8; 32],
    shared: Arc<Shared>,
    /// None once the run is over.
    entries: Option<EntryReceiver>,
    reader: Option<JoinHandle<()>>,
    /// What the run has taken.
    received: Received,
    /// In strict order.
    lockstep: Option<Lockstep>,
    /// In strict order, where the learner plays.
    own: Option<OwnWorker>,
    max_lag: u64,
    tally: Tally,
    /// When a refused poll was reported last.
    warned_at: Option<Instant>,
}

impl Feed {
    fn start(server: &Server, setup: WorkersSetup<'_>, play: LearnerPlay) -> Result<Self> {
        let WorkersSetup { config, game, received, slots } = setup;
        let (order, plan) = (config.cluster.order, PlayPlan::new(config, &game.sizes()));
        let digest = digest(config, game.as_ref());
        let received = match received {
            [] => Received { run: random(), generation: random(), ..Received::default() },
            bytes => Received::from_bytes(bytes)?,
        };
        let shared = Arc::new(Shared::default());
        let (sender, entries) = waiting::channel();
        let reader = Reader {
            server: server.clone(),
            keys: Keys::new(server.address().run()),
            game: game.clone(),
            plan,
            bounds: ChunkBounds {
                limits: match order {
                    ClusterOrder::Free => ChunkLimits::of(game.as_ref())?,
                    ClusterOrder::Strict => poll_limits(config, game.as_ref())?,
                },
                records: poll::most_records(part_slots(config), config.selfplay.passes_per_poll),
                order,
                max_lag: config.cluster.max_lag,
            },
            digest,
            config: config.to_toml(),
            chunks: ChunkReader::new()?,
            shared: shared.clone(),
            entries: sender,
            read: received.clone(),
            known: LinkState::default(),
            window: Window::new(epoch_bytes(config, game.as_ref()), &config.cluster),
        };
        let reader = thread::Builder::new().name("chunks".into()).spawn(move || reader.run());
        let reader = reader.map_err(|e| Error::unsupported("a thread for chunks", e.to_string()))?;
        let (mut lockstep, mut own) = (None, None);
        if order == ClusterOrder::Strict {
            let slots = match slots {
                [] => new_slots(0, config.selfplay.games, game.as_ref(), &plan),
                slots => slots.to_vec(),
            };
            lockstep = Some(Lockstep::new(game.clone(), plan, slots, config.selfplay.passes_per_poll));
            if play == LearnerPlay::Plays {
                own = Some(OwnWorker::start(server, config, &shared)?);
            }
        }
        Ok(Self {
            server: server.clone(),
            game: game.clone(),
            digest,
            lockstep,
            own,
            shared,
            entries: Some(entries),
            reader: Some(reader),
            received,
            max_lag: config.cluster.max_lag,
            tally: Tally::new(),
            warned_at: None,
        })
    }

    /// The games of the next poll, where all parts of it are there.
    ///
    /// # Errors
    /// [`Error::Server`] where several processes in turn play a part otherwise than the polls of it that were taken.
    fn take_poll(&mut self) -> Result<Option<Vec<FinishedGame>>> {
        let Some(lockstep) = &mut self.lockstep else { return Ok(None) };
        loop {
            match lockstep.take() {
                None => return Ok(None),
                Some(Ok(games)) => {
                    self.shared.polls.store(lockstep.taken(), Ordering::Relaxed);
                    if lockstep.wants_again() {
                        let wanted = &self.shared.read_again;
                        *wanted.lock().unwrap_or_else(PoisonError::into_inner) = Some(lockstep.version());
                    }
                    count(&mut self.tally.counts, &games);
                    return Ok(Some(games));
                }
                Some(Err(Refused { sender, incarnation, part, what, processes })) => {
                    self.tally.counts.refused += 1;
                    if is_due(&mut self.warned_at) {
                        tracing::warn!("{}: a poll of {sender} is refused: {what}", self.server.address());
                    }
                    if processes >= MOST_REFUSED {
                        return Err(self.server.error(&Failure::Final(format!(
                            "{processes} workers in turn do not go on from what was taken of part {part}, so that is not what a sound \
                             worker plays, expected vecaz run --resume, which begins the epoch again"
                        ))));
                    }
                    let process = RefusedProcess { incarnation, part, version: lockstep.version() };
                    self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner).push(process);
                }
            }
        }
    }

    /// Counts a part's poll that arrived, which waits for those of the other parts.
    fn offer(&mut self, poll: PartPoll, bytes: usize, waited: Duration) {
        let Some(lockstep) = &mut self.lockstep else { return };
        let (sender, incarnation, counts) = (poll.sender.clone(), poll.incarnation, &mut self.tally.counts);
        let games = poll.plies.iter().filter(|plies| plies.ended_by.is_some()).count() as u64;
        match lockstep.offer(poll) {
            Offered::Waits => {
                self.tally.take(&Taken { sender: &sender, incarnation, games, bytes, lag: 0, waited });
            }
            Offered::NoRoom => {}
            Offered::Repeated => counts.repeated += 1,
            Offered::OtherVersion => counts.stale += 1,
            Offered::Impossible => {
                counts.refused += 1;
                if is_due(&mut self.warned_at) {
                    let server = self.server.address();
                    tracing::warn!("{server}: a poll of {sender} is refused: no worker plays it");
                }
            }
        }
    }

    /// Counts what arrived, marks it as taken, and returns its games.
    fn take(&mut self, entry: StreamEntry) -> Vec<FinishedGame> {
        let StreamEntry { generation, id, bytes, since, outcome } = entry;
        (self.received.generation, self.received.position) = (generation, id);
        let waited = since.elapsed();
        let counts = &mut self.tally.counts;
        counts.bytes += bytes as u64;
        let (sender, incarnation, version, games) = match outcome {
            ChunkOutcome::Next { sender, incarnation, sequence, version, games } => {
                self.received.take(incarnation, sequence);
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
        // Newer weights may have been published since it was read.
        let lag = self.shared.version.load(Ordering::Relaxed).saturating_sub(version);
        self.shared.lag.fetch_max(lag, Ordering::Relaxed);
        match games {
            Ok(games) if lag <= self.max_lag => {
                count(counts, &games);
                let number = games.len() as u64;
                self.tally.take(&Taken { sender: &sender, incarnation, games: number, bytes, lag, waited });
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

/// Counts games that are taken.
fn count(counts: &mut WorkerCounts, games: &[FinishedGame]) {
    counts.games += games.len() as u64;
    counts.samples += games.iter().map(|game| game.samples.len() as u64).sum::<u64>();
}

impl Workers for Feed {
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<FinishedGame>>> {
        self.own.as_ref().map_or(Ok(()), OwnWorker::check)?;
        if let Some(games) = self.take_poll()? {
            return Ok(Some(games));
        }
        let Some(entries) = &self.entries else { return Ok(None) };
        match entries.receive(wait) {
            Ok(entry) => Ok(Some(self.take(entry?))),
            Err(RecvTimeoutError::Disconnected) => Err(thread_is_gone(&self.server)),
            Err(RecvTimeoutError::Timeout) => {
                self.shared.has_waited.store(true, Ordering::Relaxed);
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
            starts: self.lockstep.as_ref().map(|lockstep| Starts::of(lockstep.slots())),
        };
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.begin(epoch);
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
        let (digest, counts) = (self.digest, &mut self.tally.counts);
        let evaluation = Offer { id: random(), version: epoch, sha256: sha256(&weights), parts: offer.parts };
        Ok(Box::new(OfferedEvaluation::new(&self.server, evaluation, &weights, (digest, limits), counts)?))
    }

    fn slots(&self) -> Option<Vec<GameSlot>> {
        self.lockstep.as_ref().map(|lockstep| lockstep.slots().to_vec())
    }

    fn take_counts(&mut self) -> WorkerCounts {
        let bytes_out = self.shared.bytes_out.swap(0, Ordering::Relaxed);
        WorkerCounts { bytes_out, ..self.tally.end() }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.own = None;
        self.shared.ended.store(true, Ordering::Relaxed);
        self.entries = None;
        if let Some(reader) = self.reader.take() {
            // A panic of the thread was reported by it.
            let _ = reader.join();
        }
    }
}
