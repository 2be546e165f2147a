//! After any failure, each game in the memory of a worker or in a checkpoint counts exactly once.
//!
//! The tests use the learner's real connection to its workers, with a ledger in place of the replay buffer. A worker's chunks are taken
//! in order and completely, so the games of each slot in the ledger must be 0, 1, 2, ... without a gap and without a repetition.
//! `VECAZ_KILLS=60` makes the test longer.

use super::play::Setting;
use super::server::{Redis, TINY, Vecaz, find_worker, wait_until};
use std::collections::BTreeMap;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use vecaz::cluster::Incarnation;
use vecaz::cluster::learner::{Begin, LearnerFactory, LearnerPlay};
use vecaz::cluster::published::entries_of;
use vecaz::cluster::server::{Server, bytes_of};
use vecaz::cluster::worker::WorkDone;
use vecaz::error::StopCause;
use vecaz::play::FinishedGame;
use vecaz::registry::Registry;
use vecaz::report::workers::WorkerCounts;
use vecaz::rng::{Key, Purpose};
use vecaz::run::factory::ComponentFactory;
use vecaz::run::workers::{Workers, WorkersSetup};
use vecaz::stop::Stop;
use vecaz::weights::NetFile;

/// Time after which runs of these tests have stalled; runs of users take half a minute.
const STALL: Duration = Duration::from_secs(1);

/// The data of a checkpoint.
#[derive(Clone, Default)]
struct Ledger {
    epoch: u64,
    received: Vec<u8>,
    /// Slot and number of every game that was taken.
    games: Vec<(u64, u64)>,
}

struct Learner {
    setting: Setting,
    factory: LearnerFactory,
    /// Time after which the run has stalled; None for that of real runs.
    stall: Option<Duration>,
    network: NetFile,
    workers: Option<Box<dyn Workers>>,
    ledger: Ledger,
    durable: Ledger,
    counts: WorkerCounts,
}

impl Learner {
    fn new(redis: &Redis, run: &str) -> Self {
        Self::with(redis, run, TINY, None)
    }

    fn with(redis: &Redis, run: &str, config: &str, stall: Option<Duration>) -> Self {
        let setting = Setting::new(config);
        let network = setting.network();
        let factory = LearnerFactory {
            registry: Registry::built_in(),
            server: redis.server(run),
            play: LearnerPlay::Idle,
            begin: Begin::New,
            password_file: None,
        };
        factory.check(&setting.config).expect("a server that fits");
        let mut new = Self {
            setting,
            factory,
            stall,
            network,
            workers: None,
            ledger: Ledger::default(),
            durable: Ledger::default(),
            counts: WorkerCounts::default(),
        };
        new.restart();
        new.checkpoint();
        new
    }

    /// Stops without a checkpoint and continues from the last one.
    fn restart(&mut self) {
        self.workers = None;
        self.ledger = self.durable.clone();
        let setup = WorkersSetup {
            config: &self.setting.config,
            game: &self.setting.game,
            received: &self.ledger.received,
            slots: &[],
            checkpoint: None,
        };
        let mut workers = match self.stall {
            Some(stall) => self.factory.workers_with(setup, stall).expect("a server"),
            None => self.factory.workers(setup).expect("a server").expect("workers"),
        };
        workers.publish(self.ledger.epoch, &self.network, None).expect("published");
        self.workers = Some(workers);
    }

    /// Takes games for `time`, or until none has arrived for `time`, as `end` says.
    fn take(&mut self, time: Duration, end: End) -> usize {
        let workers = self.workers.as_mut().expect("at work");
        let (mut start, mut taken) = (Instant::now(), 0);
        while start.elapsed() < time {
            let Some(games) = workers.receive(Duration::from_millis(20)).expect("no final failure") else {
                continue;
            };
            if end == End::Idle {
                start = Instant::now();
            }
            taken += games.len();
            self.ledger.games.extend(games.iter().map(|game| (game.slot, game.game)));
        }
        taken
    }

    /// The next `number` games.
    fn next_games(&mut self, number: usize) -> Vec<FinishedGame> {
        let workers = self.workers.as_mut().expect("at work");
        let mut games = Vec::new();
        wait_until("games", || {
            let next = workers.receive(Duration::from_millis(20)).expect("no final failure");
            games.extend(next.into_iter().flatten());
            games.len() >= number
        });
        games.truncate(number);
        games
    }

    /// Takes games until `number` entries were refused.
    fn take_refused(&mut self, number: u64) {
        let workers = self.workers.as_mut().expect("at work");
        let mut refused = 0;
        wait_until("refused chunks", || {
            if let Some(games) = workers.receive(Duration::from_millis(20)).expect("no final failure") {
                self.ledger.games.extend(games.iter().map(|game| (game.slot, game.game)));
            }
            refused += workers.take_counts().refused;
            refused == number
        });
    }

    fn checkpoint(&mut self) {
        let workers = self.workers.as_mut().expect("at work");
        self.ledger.epoch += 1;
        self.ledger.received = workers.received();
        self.durable = self.ledger.clone();
        workers.publish(self.ledger.epoch, &self.network, None).expect("published");
        let counts = workers.take_counts();
        self.counts.repeated += counts.repeated;
        self.counts.gaps += counts.gaps;
        assert_eq!((counts.refused, counts.stale), (0, 0), "{counts:?}");
    }

    /// Takes at least `min` games, with a checkpoint every 150 ms.
    fn work(&mut self, min: usize) {
        let (start, mut taken) = (Instant::now(), 0);
        while taken < min {
            assert!(start.elapsed() < Duration::from_secs(60), "{taken} games of {min} within a minute");
            taken += self.take(Duration::from_millis(150), End::Time);
            self.checkpoint();
        }
    }

    /// Checks that the ledger has the games of every slot from the first on, each once. Returns the number of games by incarnation.
    fn audit(&self) -> BTreeMap<u64, u64> {
        let mut slots: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        self.ledger.games.iter().for_each(|(slot, game)| slots.entry(*slot).or_default().push(*game));
        let mut by_process = BTreeMap::new();
        for (slot, mut games) in slots {
            games.sort_unstable();
            let expected: Vec<u64> = (0..games.len() as u64).collect();
            assert_eq!(games, expected, "slot {slot}");
            *by_process.entry(slot >> 20).or_default() += games.len() as u64;
        }
        by_process
    }
}

/// The condition on which [`Learner::take`] ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The time is over.
    Time,
    /// No game has arrived for the time.
    Idle,
}

/// A worker in this process, which is stopped as by SIGTERM.
struct Thread {
    stop: Stop,
    thread: JoinHandle<WorkDone>,
}

impl Thread {
    fn start(server: Server) -> Self {
        let stop = Stop::default();
        let requested = stop.clone();
        let thread = thread::spawn(move || {
            let worker = loop {
                match find_worker(server.clone(), &[("run.threads", Some("1".into()))]) {
                    Ok(worker) => break worker,
                    Err(_) => thread::sleep(Duration::from_millis(50)),
                }
            };
            worker.play("thread", 1, &requested, &mut |_| ()).expect("played")
        });
        Self { stop, thread }
    }

    fn end(self) -> WorkDone {
        self.stop.request(15);
        assert!(matches!(self.stop.cause(), Some(StopCause::Signal(15))));
        self.thread.join().expect("no panic")
    }
}

/// Waits until the stream of the run has entries and gets no further one for `time`, since all workers wait.
fn wait_for_waiting_workers(redis: &Redis, run: &str, time: Duration) {
    let stream = format!("{run}:games");
    let mut before = redis::Value::Int(0);
    wait_until("workers that wait", || {
        thread::sleep(time);
        let length = redis.command(&["XLEN", &stream]);
        let is_full = length == before && length != redis::Value::Int(0);
        before = length;
        is_full
    });
}

/// Takes the remaining games, and checks that all games of these workers have arrived.
fn take_rest(learner: &mut Learner, ended: &[WorkDone]) {
    for round in 0.. {
        learner.take(Duration::from_secs(1), End::Idle);
        learner.checkpoint();
        let by_process = learner.audit();
        let all: Vec<u64> = by_process.values().copied().collect();
        if ended.iter().all(|done| done.unsent == 0 && all.contains(&done.games)) {
            return;
        }
        assert!(round < 10, "{ended:?} ended, and the learner has {by_process:?}");
    }
}

#[test]
fn games_count_once_after_any_failure() {
    let Some(mut redis) = Redis::start(&["--appendfsync", "everysec"]) else { return };
    let mut learner = Learner::new(&redis, "chaos");
    let threads = [(); 1].map(|()| Thread::start(redis.server("chaos")));
    let url = redis.url("chaos");
    let start = || Vecaz::spawn(&["work", &url, "--threads", "1"]);
    let mut worker = start();
    let mut rng = Key::new(5, Purpose::Evaluation).stream();
    let kills = std::env::var("VECAZ_KILLS").ok().and_then(|text| text.parse().ok());
    for _ in 0..kills.unwrap_or(12_usize).div_ceil(6) {
        let mut failures = [0, 1, 2, 3, 4, 5];
        (1..failures.len()).for_each(|i| failures.swap(i, rng.below(i + 1)));
        for failure in failures {
            learner.work(500);
            // Chunks that are taken but not in a checkpoint.
            learner.take(Duration::from_millis(300 + rng.below(200) as u64), End::Time);
            match failure {
                0 => worker.kill(),
                1 => learner.restart(),
                2 => redis.kill(Duration::from_millis(200)),
                3 => drop(redis.command(&["FLUSHALL"])),
                4 => redis.freeze(Duration::from_millis(1500)),
                _ => {
                    // Chunks that were read and not taken are not in a checkpoint. Then server and learner fail together.
                    thread::sleep(Duration::from_millis(800));
                    learner.checkpoint();
                    thread::sleep(Duration::from_millis(500));
                    learner.workers = None;
                    redis.command(&["FLUSHALL"]);
                    learner.restart();
                }
            }
            if failure == 0 {
                worker = start();
            }
            learner.audit();
        }
    }
    learner.work(500);
    // At least one chunk that is taken but not in a checkpoint must be sent again.
    wait_until("repeated chunk", || {
        learner.take(Duration::from_millis(300), End::Time);
        redis.command(&["FLUSHALL"]);
        learner.work(1);
        learner.counts.repeated > 0
    });
    worker.kill();
    let ended = threads.map(Thread::end);
    take_rest(&mut learner, &ended);
    println!("{} games, {:?}, {ended:?}", learner.ledger.games.len(), learner.counts);
    assert!(ended[0].sent.resent > 0, "nothing was sent again: {ended:?}");
}

#[test]
fn a_worker_waits_for_an_unreachable_learner_and_its_games_are_not_lost() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut learner = Learner::new(&redis, "away");
    let worker = Thread::start(redis.server("away"));
    learner.work(200);
    learner.workers = None;
    // The worker fills its share of the queue and waits: at cluster.max_queued_bytes, even if the server names a larger window.
    redis.command(&["HSET", "away:state", "window", "1000000000000"]);
    let queued = |redis: &Redis| match redis.command(&["MEMORY", "USAGE", "away:games", "SAMPLES", "0"]) {
        redis::Value::Int(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    let mut before = 0;
    wait_until("worker that waits", || {
        thread::sleep(Duration::from_secs(1));
        let is_full = queued(&redis) > 60_000 && queued(&redis) == before;
        before = queued(&redis);
        is_full
    });
    assert!(before < 2_500_000, "{before} bytes are queued, with cluster.max_queued_bytes = 1048576");
    learner.restart();
    learner.work(500);
    let ended = [worker.end()];
    take_rest(&mut learner, &ended);
    // All chunks are in a checkpoint, so the stream is empty.
    wait_until("trimmed stream", || redis.command(&["XLEN", "away:games"]) == redis::Value::Int(0));
}

#[test]
fn a_full_server_and_hostile_entries_lose_nothing() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut learner = Learner::new(&redis, "hostile");
    let worker = Thread::start(redis.server("hostile"));
    learner.work(200);
    for junk in ["", "VZCK", "VZCKxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"] {
        redis.command(&["XADD", "hostile:games", "*", "c", junk]);
        redis.command(&["XADD", "hostile:games", "*", "other", junk]);
    }
    learner.take_refused(6);
    // Junk fills the server; only a checkpoint frees memory for weights and games.
    let junk = "x".repeat(100_000);
    for _ in 0..40 {
        redis.command(&["XADD", "hostile:games", "*", "c", &junk]);
    }
    let max = redis.number("memory", "used_memory:") - 2_000_000;
    redis.command(&["CONFIG", "SET", "maxmemory", &max.to_string()]);
    wait_until("full server", || redis.number("errorstats", "errorstat_OOM:count=") > 0);
    learner.take_refused(40);
    learner.work(2_000);
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    learner.work(500);
    let ended = [worker.end()];
    take_rest(&mut learner, &ended);
}

/// A worker that has not read the state since before the last publication must recognise the request as new.
#[test]
fn a_request_to_send_again_differs_from_those_before_the_last_checkpoint() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut learner = Learner::new(&redis, "gap");
    // The second chunk of a process whose first one is missing.
    let process = Incarnation(9);
    let mut writer = learner.setting.writer(process);
    let mut chunks = learner.setting.play(process, 2).into_iter().map(|game| {
        writer.push(&game).expect("fits");
        writer.finish(1).expect("compressed").1
    });
    let gap = chunks.nth(1).expect("two chunks");
    let request = |learner: &mut Learner| {
        let mut found = None;
        wait_until("request", || {
            redis.command_with(&["XADD", "gap:games", "*", "c"], &gap);
            learner.take(Duration::from_millis(20), End::Time);
            found = bytes_of(redis.command(&["HGET", "gap:resend", &process.field()]));
            found.is_some()
        });
        found
    };
    let first = request(&mut learner);
    learner.checkpoint();
    wait_until("publication", || {
        bytes_of(redis.command(&["HGET", "gap:state", "version"])) == Some(b"2".to_vec())
    });
    assert_ne!(request(&mut learner), first);
}

#[test]
fn a_failover_and_missing_replicas_end_neither_learner_nor_worker() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut learner = Learner::new(&redis, "failover");
    let worker = Thread::start(redis.server("failover"));
    learner.work(200);
    let failures: [[&[&str]; 2]; 2] = [
        [&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]],
        [&["CONFIG", "SET", "min-replicas-to-write", "1"], &["CONFIG", "SET", "min-replicas-to-write", "0"]],
    ];
    for [begin, end] in failures {
        redis.command(begin);
        learner.take(Duration::from_secs(1), End::Time);
        // The publication fails too.
        learner.checkpoint();
        learner.take(Duration::from_secs(1), End::Time);
        redis.command(end);
        learner.work(500);
    }
    let ended = [worker.end()];
    take_rest(&mut learner, &ended);
}

/// A generation that a full server lacks is begun once: the learner reads on, up to the checkpoint that frees the server's memory.
#[test]
fn a_new_generation_on_a_full_server_is_read_to_its_end() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut learner = Learner::new(&redis, "full");
    let version = || bytes_of(redis.command(&["HGET", "full:state", "version"]));
    wait_until("publication", || version().is_some_and(|version| version == b"1"));
    learner.workers = None;
    // As an earlier learner has left it after its last checkpoint, with more chunks than a read takes.
    redis.command(&["HSET", "full:state", "generation", "7"]);
    let process = Incarnation(9);
    let mut writer = learner.setting.writer(process);
    for game in learner.setting.play(process, 40) {
        writer.push(&game).expect("fits");
        redis.command_with(&["XADD", "full:games", "*", "c"], &writer.finish(1).expect("compressed").1);
    }
    let max = redis.number("memory", "used_memory:") - 200_000;
    redis.command(&["CONFIG", "SET", "maxmemory", &max.to_string()]);
    learner.restart();
    learner.work(40);
    assert_eq!(learner.audit().values().sum::<u64>(), 40);
    wait_until("trimmed stream", || redis.command(&["XLEN", "full:games"]) == redis::Value::Int(0));
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let newest = learner.ledger.epoch.to_string().into_bytes();
    wait_until("publication", || version().is_some_and(|version| version == newest));
}

/// Without a further chunk the learner sees no gap, and a worker whose window is full sends none.
#[test]
fn chunks_that_are_lost_while_all_workers_wait_are_sent_again() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut learner = Learner::with(&redis, "trimmed", TINY, Some(STALL));
    let worker = Thread::start(redis.server("trimmed"));
    learner.work(200);
    learner.workers = None;
    // More than the first window of a learner: half an epoch.
    redis.command(&["HSET", "trimmed:state", "window", "200000"]);
    wait_for_waiting_workers(&redis, "trimmed", Duration::from_millis(2500));
    redis.command(&["XTRIM", "trimmed:games", "MAXLEN", "0"]);
    learner.restart();
    learner.work(500);
    let ended = [worker.end()];
    take_rest(&mut learner, &ended);
}

/// The worker has played as many polls ahead as it may, so no further one of it arrives.
#[test]
fn in_strict_order_lost_and_damaged_polls_are_sent_again() {
    let Some(redis) = Redis::start(&[]) else { return };
    let config = format!("{}order = 'strict'\n", TINY.replace("games = 16", "games = 64"));
    let mut learner = Learner::with(&redis, "polls", &config, Some(STALL));
    let worker = Thread::start(redis.server("polls"));
    let games = learner.next_games(300);
    learner.workers = None;
    wait_for_waiting_workers(&redis, "polls", Duration::from_millis(500));
    let entries = entries_of(redis.command(&["XRANGE", "polls:games", "-", "+"]));
    assert!(entries.len() >= 2 * 16, "{} polls of two partitions", entries.len());
    redis.command(&["XTRIM", "polls:games", "MAXLEN", "0"]);
    for (_, mut chunk) in entries.into_iter().step_by(2) {
        *chunk.last_mut().expect("bytes") ^= 1;
        redis.command_with(&["XADD", "polls:games", "*", "c"], &chunk);
    }
    // A learner that begins the epoch again.
    learner.restart();
    assert!(learner.next_games(300) == games, "other games than before");
    worker.end();
}

/// A server that is slow at the end, or an uplink with a large network in its way, does not leave workers waiting for ever.
#[test]
fn the_end_of_a_run_is_told_by_a_server_that_is_slow() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut learner = Learner::new(&redis, "end");
    wait_until("state of the run", || redis.command(&["EXISTS", "end:state"]) == redis::Value::Int(1));
    learner.workers.as_mut().expect("at work").finish();
    redis.command(&["CLIENT", "PAUSE", "2000", "WRITE"]);
    learner.workers = None;
    assert_eq!(bytes_of(redis.command(&["HGET", "end:state", "over"])).as_deref(), Some(&b"1"[..]));
}
