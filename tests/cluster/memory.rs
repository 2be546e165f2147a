//! The buffers of learner and workers are bounded, and their memory plans include them.

use super::play::Setting;
use super::server::{Redis, TINY, find_worker, publish};
use vecaz::cluster::learner::{Begin, LearnerFactory, LearnerPlay};
use vecaz::cluster::server::Server;
use vecaz::error::Error;
use vecaz::registry::Registry;
use vecaz::run::factory::ComponentFactory;

const MIB: u64 = 1 << 20;

#[test]
fn a_learner_plans_its_queued_chunks_and_buffered_polls() {
    let planned = |order: &str, games: usize, play| {
        let text = TINY.replace("games = 16", &format!("games = {games}"));
        let setting = Setting::new(&format!("{text}order = '{order}'\n"));
        let server = Server::new("redis://127.0.0.1:1/run".parse().expect("an address"), None);
        let factory = LearnerFactory {
            registry: Registry::built_in(),
            server: server.expect("a client"),
            play,
            begin: Begin::New,
            password_file: None,
        };
        let plan = factory.memory(&setting.config, setting.game.as_ref()).expect("a plan");
        assert!(plan.describe().ends_with(&format!("chunks of workers {} MiB", plan.workers.div_ceil(MIB))));
        plan.workers
    };
    let free = planned("free", 16, LearnerPlay::Plays);
    assert_eq!((free, planned("free", 160, LearnerPlay::Idle)), (64 * MIB, 64 * MIB));
    // The buffer of polls, and a poll of all slots in addition: 9 records of 16 slots.
    let [few, many] = [16, 160].map(|games| planned("strict", games, LearnerPlay::Idle) - free);
    let of_slots = few - 64 * MIB;
    assert!((9 * 16 * 100..9 * 16 * 400).contains(&of_slots), "{of_slots} bytes");
    assert_eq!(many - 64 * MIB, 10 * of_slots);
    // The local worker buffers as much.
    assert_eq!(planned("strict", 16, LearnerPlay::Plays) - free, 2 * few);
}

#[test]
fn a_worker_plans_the_chunks_that_it_keeps() {
    let Some(redis) = Redis::start(&[]) else { return };
    let find = |more: &str| {
        let setting = Setting::new(&TINY.replace("max_queued_bytes = 1048576", more));
        publish(&mut redis.client(), &setting.config.to_toml(), setting.digest);
        let limits = [("run.threads", Some("1".into())), ("run.memory_mib", Some("200".into()))];
        find_worker(redis.server("run"), &limits).map(drop)
    };
    find("max_queued_bytes = 1048576").expect("fits");
    find("order = 'strict'").expect("fits");
    // 3000 samples of 59 bytes, times the versions that max_lag allows.
    match find("max_queued_bytes = 1073741824").expect_err("too much") {
        Error::Memory { need_mib, detail, .. } => {
            assert!(need_mib > 1024, "{need_mib}");
            assert!(detail.contains("chunks of workers, set by cluster.max_queued_bytes"), "{detail}");
        }
        other => panic!("{other}"),
    }
}
