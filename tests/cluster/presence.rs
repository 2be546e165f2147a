//! Workers and learners that come and go, and what both say about it.

use super::server::{Redis, SLOW, TinyRun, Vecaz, unbroken, wait_until};
use std::thread::sleep;
use std::time::Duration;
use vecaz::cluster::server::{bytes_of, list_of};
use vecaz::cluster::status::WorkerStatus;

fn texts(process: Vecaz) -> (Option<i32>, String, String) {
    let output = process.output();
    (output.status.code(), unbroken(&output.stdout), unbroken(&output.stderr))
}

#[test]
fn a_worker_waits_for_its_learner_says_for_what_and_ends_when_the_run_has_reached_its_limit() {
    let Some(redis) = Redis::start(&[]) else { return };
    for order in ["free", "strict"] {
        let (url, run) = (redis.url(order), TinyRun::new());
        let mut waiting = Vecaz::spawn(&["work", &url, "--threads", "1"]);
        let waits = format!(
            "{url}: no run of this name, expected one that `vecaz run --cluster {url}` has begun; waiting\n"
        );
        waiting.wait_for_text(&waits);
        let order = format!("cluster.order={order}");
        let (code, _, err) = texts(run.learner(&url, &["--play", "0", "--epochs", "2", "--set", &order]));
        assert_eq!(code, Some(0), "{err}");
        let (code, text, err) = texts(waiting);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{text}");
        assert!(text.contains("the run has reached its limit, and this worker ends: "), "{text}");
        // Another one finds the run over, and refuses or waits for its resumption.
        let (code, _, err) = texts(Vecaz::spawn(&["work", &url, "--wait", "0"]));
        let over =
            "the run has reached its limit after epoch 2, expected `vecaz run --resume` with a higher one";
        assert!(code == Some(1) && err.contains(over), "{err}");
        let mut next = Vecaz::spawn(&["work", &url, "--threads", "1"]);
        next.wait_for_text(over);
        let (code, _, err) = texts(run.resumed(&url, &["--epochs", "40"]));
        assert_eq!(code, Some(0), "{err}");
        let (code, text, err) = texts(next);
        assert!(code == Some(0) && text.contains("this worker ends: "), "{text}{err}");
    }
}

/// The run goes on and is over again between two polls of a worker that waits for it.
#[test]
fn a_worker_that_waits_does_not_miss_a_short_run() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (url, run) = (redis.url("short"), TinyRun::new());
    let (code, _, err) = texts(run.learner(&url, &["--epochs", "1"]));
    assert_eq!(code, Some(0), "{err}");
    let mut worker = Vecaz::spawn(&["work", &url, "--threads", "1"]);
    worker.wait_for_text("after epoch 1, expected");
    // As a learner leaves it that has made one more epoch.
    redis.command(&["HSET", "short:state", "version", "2"]);
    let (code, text, err) = texts(worker);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{text}");
    assert!(text.contains("the run has reached its limit, and this worker ends: it was shorter"), "{text}");
}

#[test]
fn a_learner_that_waits_for_workers_says_that_none_is_there() {
    let Some(redis) = Redis::start(&[]) else { return };
    let url = redis.url("alone");
    let (code, _, err) = texts(TinyRun::new().learner(&url, &["--play", "0", "--minutes", "0.5"]));
    let missing = format!("no worker is there, start some with `vecaz work {url}`");
    assert!(err.matches(&missing).count() >= 2, "in the line after 10 s and in the error: {err}");
    assert!(code == Some(1) && err.contains("self-play: 0 of "), "{err}");
}

#[test]
fn killed_workers_are_named_as_gone_and_one_that_leaves_is_not() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (url, run) = (redis.url("gone"), TinyRun::new());
    let learner = run.learner(&url, &["--minutes", "5"]);
    let worker = |name| Vecaz::spawn(&["work", &url, "--threads", "1", "--name", name]);
    let [mut killed, left] = ["killed", "leaving"].map(worker);
    wait_until("both in the table", || {
        let metrics = std::fs::read_to_string(run.out.join("metrics.jsonl")).unwrap_or_default();
        let last =
            metrics.lines().last().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        last.is_some_and(|record| record["workers"]["active"] == 2)
    });
    let statuses = |number| redis.command(&["HLEN", "gone:workers"]) == redis::Value::Int(number);
    wait_until("a status of both", || statuses(2));
    // One dies with its first status, before it plays.
    let mut early = worker("early");
    wait_until("a status of the third", || statuses(3));
    early.kill();
    // The learner reads the statuses every two seconds.
    sleep(Duration::from_secs(6));
    killed.kill();
    left.terminate();
    sleep(Duration::from_secs(34));
    // A reader that comes now sees nobody.
    let (code, top, err) = texts(Vecaz::spawn(&["top", &url, "--once"]));
    assert!(code == Some(0) && top.contains("0 workers: ") && !top.contains("killed"), "{top}{err}");
    learner.terminate();
    let (_, _, err) = texts(learner);
    assert_eq!(err.matches("worker killed is gone: it has sent no status for 10 s").count(), 1, "{err}");
    assert_eq!(err.matches("worker early is gone: it has sent no status for ").count(), 1, "{err}");
    assert!(!err.contains("leaving"), "{err}");
}

/// The thread that sends chunks repeats the worker's last status; a poll of this run takes minutes.
#[test]
fn a_worker_sends_its_status_during_a_long_poll() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (url, run) = (redis.url("long"), TinyRun::of(SLOW));
    let polls = ["--set", "selfplay.passes_per_poll=100000", "--set", "search.root_cache=0"];
    let _learner = run.learner(&url, &[&["--play", "0", "--minutes", "5"][..], &polls].concat());
    let _worker = Vecaz::spawn(&["work", &url, "--threads", "1"]);
    let mut status = WorkerStatus::default();
    wait_until("fifth status", || {
        let last = list_of(redis.command(&["HVALS", "long:workers"])).and_then(|mut all| all.pop());
        let last = last.and_then(bytes_of).and_then(|bytes| WorkerStatus::read(&bytes));
        status = last.unwrap_or_default();
        status.number >= 5
    });
    assert_eq!(status.games, 0, "the first poll has ended: {status:?}");
}

/// One line when the server fails, and one when it is back.
#[test]
fn a_lost_server_is_warned_of_once_and_its_return_is_said() {
    let Some(mut redis) = Redis::start(&["--appendfsync", "always"]) else { return };
    let (url, run) = (redis.url("back"), TinyRun::new());
    let learner = run.learner(&url, &["--minutes", "5"]);
    wait_until("an epoch", || run.out.join("metrics.jsonl").exists());
    let worker = Vecaz::spawn(&["work", &url, "--threads", "1"]);
    wait_until("a status of the worker", || redis.command(&["HLEN", "back:workers"]) == redis::Value::Int(1));
    redis.kill(Duration::from_secs(4));
    redis.command(&["PING"]);
    sleep(Duration::from_secs(3));
    for process in [worker, learner] {
        process.terminate();
        let (_, _, err) = texts(process);
        assert_eq!(err.matches("; retrying").count(), 1, "{err}");
        assert_eq!(err.matches("connected again after ").count(), 1, "{err}");
    }
}
