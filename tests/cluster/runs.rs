//! Complete runs: a learner and its workers as processes.

use super::server::{Redis, SLOW, TinyRun, Vecaz, free_port, tiny, wait_until};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use vecaz::cluster::overview::OverviewReader;
use vecaz::run::CONFIG;

fn metrics(run: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn success(what: &str, process: Vecaz) -> String {
    let output = process.output();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The output of a process that is stopped by SIGTERM.
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

    // After SIGTERM a worker sends its games, then ends.
    for worker in workers {
        let text = interrupted("worker", worker);
        assert!(text.contains(" games with ") && !text.contains("could not be sent"), "{text}");
    }
    success("verify", Vecaz::spawn(&["verify", &out]));

    resume_alone_and_with_a_worker(&run, &url);
}

/// Resumes the run of the folder `run` for one epoch alone, then with a worker, whose games it takes in addition to its own.
fn resume_alone_and_with_a_worker(run: &Path, url: &str) {
    let out = run.display().to_string();
    let first = metrics(run).len();
    let alone = format!(
        "run --resume {out} --threads 1 --epochs {} --set selfplay.samples_per_epoch=3000",
        first + 1
    );
    success("alone", Vecaz::spawn(&alone.split_whitespace().collect::<Vec<_>>()));
    let again = ["--threads", "1", "--epochs", "1000000", "--minutes", "5"];
    let learner = Vecaz::spawn(&[&["run", "--resume", &out, "--cluster", url][..], &again].concat());
    let mut worker = Vecaz::spawn(&["work", url, "--threads", "1"]);
    let own = |record: &serde_json::Value| record["games"].as_u64() > record["workers"]["games"].as_u64();
    let of_worker = |record: &serde_json::Value| record["workers"]["games"].as_u64() > Some(0);
    wait_until("games of its own and of the worker", || {
        let records = metrics(run);
        records.len() > first + 1
            && [&own as &dyn Fn(&_) -> bool, &of_worker]
                .iter()
                .all(|has| records[first + 1..].iter().any(has))
    });
    interrupted("with a worker", learner);
    let records = metrics(run);
    assert!(records[first]["workers"].is_null(), "{}", records[first]);
    assert!(!worker.is_over(), "a worker stays when the learner ends");
    success("verify", Vecaz::spawn(&["verify", &out]));
}

/// The run's number on the server is that of its checkpoint until a checkpoint has one of its own.
#[test]
fn a_run_that_takes_workers_late_resumes_before_its_first_checkpoint_with_them() {
    let Some(redis) = Redis::start(&[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (config, run) = (tiny(&folder).display().to_string(), folder.path().join("run"));
    let (url, out) = (redis.url("late"), run.display().to_string());
    success(
        "alone",
        Vecaz::spawn(&["run", "--config", &config, "--threads", "1", "--epochs", "1", "--out", &out]),
    );
    let resume = ["run", "--resume", &out, "--cluster", &url, "--threads", "1", "--epochs", "2"];
    let idle = Vecaz::spawn(&[&resume[..], &["--play", "0"]].concat());
    wait_until("state of the run", || redis.command(&["EXISTS", "late:state"]) == redis::Value::Int(1));
    interrupted("without games", idle);
    success("again", Vecaz::spawn(&resume));
    assert_eq!(metrics(&run).len(), 2);
}

/// The users `hex` and `hex-worker` of docs/cluster.md, for the run `acl`, with passwords in files.
struct Users {
    folder: tempfile::TempDir,
    learner: String,
    worker: String,
}

impl Users {
    fn new(redis: &Redis) -> Self {
        let lines = include_str!("../../docs/cluster.md").lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| line.starts_with("ACL SETUSER")).collect();
        let [learner, worker] = lines[..] else { panic!("two users in the page: {lines:?}") };
        assert!(learner.contains(" hex on >SECRET ") && worker.contains(" hex-worker reset on >SECRET2 "));
        for line in lines {
            let line = line.replace("hex-9", "acl").replace("SECRET", "right");
            redis.command(&line.split_whitespace().collect::<Vec<_>>());
        }
        let folder = tempfile::tempdir().expect("a folder");
        let [learner, worker] = ["right", "right2"].map(|password| {
            let file = folder.path().join(password);
            std::fs::write(&file, password).expect("written");
            file.display().to_string()
        });
        Self { folder, learner, worker }
    }

    /// Starts a learner that does not play.
    fn learn(&self, redis: &Redis, more: &[&str]) -> (Vecaz, PathBuf) {
        let (config, out) = (tiny(&self.folder).display().to_string(), self.folder.path().join("run"));
        let url = redis.url("acl").replace("//", "//hex@");
        let out_text = out.display().to_string();
        let run = ["run", "--cluster", &url, "--play", "0", "--config", &config, "--out", &out_text];
        let credentials = ["--password-file", &self.learner, "--threads", "1"];
        let learner = Vecaz::spawn(&[&run[..], &credentials, more].concat());
        wait_until("state of the run", || redis.command(&["EXISTS", "acl:state"]) == redis::Value::Int(1));
        (learner, out)
    }

    fn work(&self, redis: &Redis, run: &str) -> Vecaz {
        let url = redis.url(run).replace("//", "//hex-worker@");
        Vecaz::spawn(&["work", &url, "--password-file", &self.worker, "--threads", "1"])
    }
}

/// Stops a worker, and checks that it reported no missing permission.
fn end_work(worker: Vecaz) {
    worker.terminate();
    let output = worker.output();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(143) && !text.contains("permission"), "{text}");
}

#[test]
fn the_recommended_users_suffice() {
    let Some(redis) = Redis::start(&[]) else { return };
    let users = Users::new(&redis);
    let eval = ["eval.every=1", "eval.share=0.0", "eval.positions=500", "eval.simulations=500"]
        .map(|key| ["--set", key]);
    let eval = eval.as_flattened();
    let (learner, out) = users.learn(&redis, &[&["--minutes", "5"][..], eval].concat());
    let worker = users.work(&redis, "acl");
    wait_until("games and tasks of an evaluation by the worker", || {
        let records = metrics(&out);
        records.len() >= 2
            && records.iter().any(|record| record["workers"]["evaluated"].as_u64() > Some(0))
            && redis.command(&["HLEN", "acl:workers"]) == redis::Value::Int(1)
    });
    interrupted("learner", learner);
    let url = redis.url("acl").replace("//", "//hex@");
    let top = success("top", Vecaz::spawn(&["top", &url, "--password-file", &users.learner]));
    assert!(top.contains("/acl: weights ") && top.contains("\n1 worker: "), "{top}");
    end_work(worker);
}

#[test]
fn the_recommended_users_suffice_in_strict_order() {
    let Some(redis) = Redis::start(&[]) else { return };
    let users = Users::new(&redis);
    let strict = ["--epochs", "2", "--set", "cluster.order=strict"];
    let (learner, _) = users.learn(&redis, &strict);
    let worker = users.work(&redis, "acl");
    success("learner", learner);
    // The run has reached its limit, which ends the worker.
    let output = worker.output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_user_of_a_worker_cannot_write_the_keys_of_the_learner() {
    let Some(redis) = Redis::start(&[]) else { return };
    let users = Users::new(&redis);
    let client =
        redis::Client::open(redis.url("acl").replace("//", "//hex-worker:right2@").replace("/acl", ""));
    let mut link = client.and_then(|client| client.get_connection()).expect("the user is there");
    let mut send = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        redis::cmd(words[0]).arg(&words[1..]).query::<redis::Value>(&mut link)
    };
    for allowed in
        ["XADD acl:games * c junk", "HSET acl:workers 1 junk", "HMGET acl:state version", "GET acl:weights:1"]
    {
        send(allowed).unwrap_or_else(|e| panic!("{allowed}: {e}"));
    }
    for line in [
        "HSET acl:state version 9",
        "HSET acl:marks 1 9",
        "DEL acl:marks",
        "DEL acl:state",
        "SET acl:weights:1 junk",
        "HSET acl:resend 1 1",
        "HSET acl:slots:1 0 junk",
        "SET acl:polls 1",
        "HSET acl:refused 1 1",
        "HSET acl:evaluation id 1",
        "DEL acl:games",
        "EXPIRE acl:games 1",
        "XTRIM acl:games MAXLEN 0",
        "XREAD STREAMS acl:games 0",
        "HGETALL acl:marks",
        "HGETALL acl:workers",
        "HGET acl:results:1 0",
        "XADD other:games * c junk",
        "GET other:weights:1",
        "FLUSHALL",
        "KEYS *",
        "CONFIG GET maxmemory",
    ] {
        let error = send(line).expect_err(line);
        assert_eq!(error.code(), Some("NOPERM"), "{line}: {error}");
    }
    let output = users.work(&redis, "other").output();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("the user lacks a permission"), "{text}");
}

#[test]
fn an_overview_is_read_again_after_the_server_was_unreachable() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let missing = OverviewReader::new(redis.server("away")).expect("a server").read();
    assert!(missing.expect_err("no run yet").to_string().contains("no run of this name"));
    let folder = tempfile::tempdir().expect("a folder");
    let (config, out) = (tiny(&folder).display().to_string(), folder.path().join("run"));
    let (url, out) = (redis.url("away"), out.display().to_string());
    let _learner =
        Vecaz::spawn(&["run", "--cluster", &url, "--play", "0", "--config", &config, "--out", &out]);
    wait_until("state of the run", || redis.command(&["EXISTS", "away:state"]) == redis::Value::Int(1));
    let mut reader = OverviewReader::new(redis.server("away")).expect("a server");
    let before = reader.read().expect("a run");
    redis.kill(Duration::from_millis(50));
    assert!(reader.read().is_err(), "the connection is broken");
    let mut after = None;
    wait_until("an overview", || {
        after = reader.read().ok();
        after.is_some()
    });
    assert_eq!(after.expect("read").version, before.version);
}

#[test]
fn a_worker_that_is_stopped_while_it_builds_its_first_root_cache_ends() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (url, run) = (redis.url("early"), TinyRun::of(SLOW));
    let _learner = run.learner(&url, &["--play", "0", "--minutes", "5"]);
    let worker = Vecaz::spawn(&["work", &url, "--threads", "1"]);
    // The first status comes before the weights, and the root cache after them.
    wait_until("status", || redis.command(&["HLEN", "early:workers"]) == redis::Value::Int(1));
    sleep(Duration::from_secs(1));
    let text = interrupted("worker", worker);
    assert!(text.contains("0 games with 0 samples in 0 chunks"), "{text}");
}

/// A run can be resumed from its configuration, which it writes first.
#[test]
fn deployments_resume_a_run_that_was_killed_when_it_began() {
    for (text, folder) in [
        (include_str!("../../docs/deploy/compose.yaml"), "/data/run"),
        (include_str!("../../docs/deploy/kubernetes.yaml"), "/data/run"),
        (include_str!("../../docs/deploy/vecaz-learner.service"), "hex-9"),
    ] {
        let choice = format!(
            "if [ -e {folder}/{CONFIG} ]; then set -- --resume {folder}; else set -- --game hex --out {folder}; fi;"
        );
        assert!(text.contains(&choice), "{choice:?} is not in {text}");
    }
}

/// The page shows what `vecaz top` shows.
#[cfg(feature = "http")]
#[test]
fn the_page_shows_the_workers() {
    use std::io::{Read, Write};
    let Some(redis) = Redis::start(&[]) else { return };
    let (url, run, port) = (redis.url("watched"), TinyRun::new(), free_port());
    let mut page = Vecaz::spawn(&["serve", "--port", &port.to_string(), "--cluster", &url]);
    page.wait_for_text("Ctrl-C");
    let look = || -> serde_json::Value {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("a server");
        let request = format!("GET /api/clusters HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        let (_, body) = reply.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    };
    assert!(look()[0]["error"].as_str().is_some_and(|error| error.contains("no run of this name")));
    let _learner = run.learner(&url, &["--play", "0", "--minutes", "5"]);
    let worker = Vecaz::spawn(&["work", &url, "--threads", "1", "--name", "one"]);
    wait_until("the worker on the page", || {
        let shown = look();
        let first = &shown[0]["workers"][0];
        first["name"] == "one"
            && first["games_per_second"].as_f64() > Some(0.0)
            && first["limited_by"].is_string()
    });
    assert!(look()[0]["workers"][0]["seconds_ago"].as_f64().is_some_and(|seconds| seconds < 10.0));
    worker.terminate();
    wait_until("a page without workers", || look()[0]["workers"].as_array().is_some_and(Vec::is_empty));
}
