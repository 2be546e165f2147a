//! Whole runs: a learner and its workers as processes.

use super::server::{Redis, Vecaz, tiny, wait_until};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

fn metrics(run: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn success(what: &str, process: Vecaz) -> String {
    let output = process.output();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a process prints that is ended by SIGTERM.
fn interrupted(what: &str, process: Vecaz) -> String {
    process.terminate();
    let output = process.output();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(output.status.code().or(output.status.signal()), Some(143), "{what}: {out}{err}");
    out
}

#[test]
fn a_learner_that_does_not_play_learns_from_two_workers() {
    let Some(redis) = Redis::start(&[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (config, run) = (tiny(&folder).display().to_string(), folder.path().join("run"));
    let (url, out) = (redis.url("tiny"), run.display().to_string());
    let run_line = format!(
        "run --cluster {url} --play 0 --config {config} --threads 1 --minutes 5 --out {out} \
         --set selfplay.samples_per_epoch=30000 --set cluster.max_queued_bytes=4194304 --set train.replay_ratio=0.1"
    );
    let learner = Vecaz::spawn(&run_line.split_whitespace().collect::<Vec<_>>());
    wait_until("state of the run", || redis.command(&["EXISTS", "tiny:state"]) == redis::Value::Int(1));
    let workers = ["one", "two"].map(|name| Vecaz::spawn(&["work", &url, "--threads", "1", "--name", name]));
    wait_until("games of both workers in one epoch, and a few epochs", || {
        let records = metrics(&run);
        records.len() >= 4 && records.iter().any(|record| record["workers"]["active"] == 2)
    });
    wait_until("both workers in the overview", || {
        let text = success("top", Vecaz::spawn(&["top", &url, "--once"]));
        ["2 workers: ", "\none  ", "\ntwo  ", "\nepoch ", "\nof workers ", " 0 refused", "limited by"]
            .iter()
            .all(|part| text.contains(part))
    });
    let stopped = interrupted("learner", learner);
    assert!(stopped.contains(&format!("vecaz run --resume {out} --cluster {url} --play 0\n")), "{stopped}");
    let records = metrics(&run);
    for record in &records {
        assert_eq!(record["games"], record["workers"]["games"], "{record}");
        assert!(record["samples"].as_u64() >= Some(30_000), "{record}");
        assert_eq!(record["workers"]["refused"], 0, "{record}");
    }
    assert!(records[3]["updates"].as_u64() > records[0]["updates"].as_u64(), "it has learned");

    // SIGTERM: what a worker has is sent, then it leaves.
    for worker in workers {
        let text = interrupted("worker", worker);
        assert!(text.contains(" games with ") && !text.contains("could not be sent"), "{text}");
    }
    success("verify", Vecaz::spawn(&["verify", &out]));

    // The same run goes on alone, and then with a worker again, whose games it takes besides its own.
    let first = records.len();
    let alone = format!(
        "run --resume {out} --threads 1 --epochs {} --set selfplay.samples_per_epoch=3000",
        first + 1
    );
    success("alone", Vecaz::spawn(&alone.split_whitespace().collect::<Vec<_>>()));
    let again = ["--threads", "1", "--epochs", "1000000", "--minutes", "5"];
    let learner = Vecaz::spawn(&[&["run", "--resume", &out, "--cluster", &url][..], &again].concat());
    let mut worker = Vecaz::spawn(&["work", &url, "--threads", "1"]);
    let own = |record: &serde_json::Value| record["games"].as_u64() > record["workers"]["games"].as_u64();
    let of_worker = |record: &serde_json::Value| record["workers"]["games"].as_u64() > Some(0);
    wait_until("games of its own and of the worker", || {
        let records = metrics(&run);
        records.len() > first + 1
            && [&own as &dyn Fn(&_) -> bool, &of_worker]
                .iter()
                .all(|has| records[first + 1..].iter().any(has))
    });
    interrupted("with a worker", learner);
    let records = metrics(&run);
    assert!(records[first]["workers"].is_null(), "{}", records[first]);
    assert!(!worker.is_over(), "a worker stays when the learner ends");
    success("verify", Vecaz::spawn(&["verify", &out]));
}

/// The user that docs/cluster.md describes can do all that learner and workers do, and nothing with another run.
#[test]
fn the_recommended_user_suffices() {
    let Some(redis) = Redis::start(&[]) else { return };
    let line =
        include_str!("../../docs/cluster.md").lines().find(|line| line.trim().starts_with("ACL SETUSER"));
    let line = line.expect("in the page").replace("hex-9", "acl").replace("SECRET", "right");
    redis.command(&line.split_whitespace().collect::<Vec<_>>());
    let folder = tempfile::tempdir().expect("a folder");
    let (config, out) =
        (tiny(&folder).display().to_string(), folder.path().join("run").display().to_string());
    let password = folder.path().join("password");
    std::fs::write(&password, "right").expect("written");
    let (password, url) = (password.display().to_string(), redis.url("acl").replace("//", "//hex@"));
    let credentials = ["--password-file", &password, "--threads", "1"];
    let run = ["run", "--cluster", &url, "--play", "0", "--config", &config, "--epochs", "2", "--out", &out];
    let learner = Vecaz::spawn(&[&run[..], &credentials].concat());
    wait_until("state of the run", || redis.command(&["EXISTS", "acl:state"]) == redis::Value::Int(1));
    let worker = Vecaz::spawn(&[&["work", &url][..], &credentials].concat());
    success("learner", learner);
    let top = success("top", Vecaz::spawn(&["top", &url, "--password-file", &password]));
    assert!(top.contains("/acl: weights ") && top.contains("\n0 workers: 0.0 games/s"), "{top}");
    worker.terminate();
    assert_eq!(worker.output().status.code(), Some(143));
    let other =
        Vecaz::spawn(&[&["work", &url.replace("/acl", "/other")][..], &credentials].concat()).output();
    let text = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(!other.status.success() && text.contains("the user lacks a permission"), "{text}");
}
