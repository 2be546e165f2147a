//! A process of which a poll is refused is notified, and its partition becomes free for another one, despite failures of the server.

use super::play::Setting;
use super::server::{Redis, TINY, wait_until};
use std::time::Duration;
use vecaz::cluster::Incarnation;
use vecaz::cluster::chunk::Sealer;
use vecaz::cluster::learner::{Begin, LearnerFactory, LearnerPlay};
use vecaz::cluster::received::{Received, StreamId};
use vecaz::cluster::server::bytes_of;
use vecaz::cluster::strict::poll::{SlotPlies, limits, seal};
use vecaz::play::GameRecord;
use vecaz::registry::Registry;
use vecaz::run::factory::ComponentFactory;
use vecaz::run::workers::{Workers, WorkersSetup};

/// The version of the weights.
const EPOCH: u64 = 1;

/// A run in strict order whose game slots are one partition.
struct Learner<'a> {
    redis: &'a Redis,
    setting: Setting,
    workers: Box<dyn Workers>,
    /// Polls and chunks that were refused.
    refused: u64,
}

impl<'a> Learner<'a> {
    fn new(redis: &'a Redis) -> Self {
        let setting = Setting::new(&format!("{TINY}order = 'strict'\n"));
        let factory = LearnerFactory {
            registry: Registry::built_in(),
            server: redis.server("run"),
            play: LearnerPlay::Idle,
            begin: Begin::New,
            password_file: None,
        };
        let setup = WorkersSetup {
            config: &setting.config,
            game: &setting.game,
            received: &[],
            slots: &[],
            checkpoint: None,
        };
        let mut workers = factory.workers(setup).expect("a server").expect("workers");
        workers.publish(EPOCH, &setting.network(), None).expect("published");
        wait_until("epoch", || redis.command(&["EXISTS", "run:polls"]) == redis::Value::Int(1));
        Self { redis, setting, workers, refused: 0 }
    }

    /// Sends the first poll of the partition, with a slot that the run does not have, in the name of `incarnation`.
    fn send_wrong_poll(&self, incarnation: Incarnation) {
        let selfplay = &self.setting.config.selfplay;
        let limits = limits(self.setting.game.as_ref(), selfplay.games, selfplay.passes_per_poll);
        let mut sealer = Sealer::new(self.setting.sender(incarnation)).expect("memory");
        let record = GameRecord { slot: 99, actions: vec![0], ..GameRecord::default() };
        let plies = vec![SlotPlies { ended_by: None, record }];
        let chunk = seal(&mut sealer, &limits.expect("small"), (EPOCH, 1), 0, plies).expect("fits");
        self.redis.command_with(&["XADD", "run:games", "*", "c"], &chunk);
    }

    /// Receives entries until `done` is true.
    fn receive_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        wait_until(what, || {
            self.workers.receive(Duration::from_millis(5)).expect("no final failure");
            self.refused += self.workers.take_counts().refused;
            done(self)
        });
    }

    /// Receives all present entries of the stream.
    fn receive_all(&mut self) {
        let id = bytes_of(self.redis.command(&["XADD", "run:games", "*", "c", "junk"])).expect("an id");
        let id = StreamId::parse(&String::from_utf8(id).expect("a text")).expect("an id");
        self.receive_until("end of the stream", |learner| {
            Received::from_bytes(&learner.workers.received()).expect("its bytes").position >= id
        });
    }

    fn holder(&self) -> Option<Vec<u8>> {
        bytes_of(self.redis.command(&["GET", &format!("run:lease:{EPOCH}:0")]))
    }

    fn is_notified(&self, incarnation: Incarnation) -> bool {
        bytes_of(self.redis.command(&["HGET", "run:refused", &incarnation.field()])).is_some()
    }
}

#[test]
fn a_refused_process_is_notified_once_the_server_has_memory_and_the_stream_is_read_again_once() {
    let Some(redis) = Redis::start(&[]) else { return };
    let mut learner = Learner::new(&redis);
    let (holder, other) = (Incarnation(7), Incarnation(8));
    redis.command(&["SET", &format!("run:lease:{EPOCH}:0"), &holder.field()]);
    learner.send_wrong_poll(holder);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    learner.receive_until("refused poll", |learner| learner.refused > 0);
    learner.receive_until("full server, twice", |_| redis.number("errorstats", "errorstat_OOM:count=") > 1);
    assert!(!learner.is_notified(holder) && learner.holder().is_some(), "a full server accepts nothing");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    learner.receive_until("refused process", |learner| learner.is_notified(holder));
    assert_eq!(learner.holder(), None, "another worker can take the partition");
    learner.receive_all();
    assert_eq!(learner.refused, 3, "the poll, the same poll read again, and the junk");

    // The refusal of a process without the partition's lease leaves the lease of the holder.
    redis.command(&["SET", &format!("run:lease:{EPOCH}:0"), "another"]);
    learner.send_wrong_poll(other);
    learner.receive_until("refused process", |learner| learner.is_notified(other));
    assert_eq!(learner.holder().as_deref(), Some(&b"another"[..]));

    // After the server has lost its data, both refusals are published again.
    redis.command(&["FLUSHALL"]);
    learner.receive_until("both again", |learner| learner.is_notified(holder) && learner.is_notified(other));
}
