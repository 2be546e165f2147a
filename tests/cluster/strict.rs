//! Strict order: with any workers and after any failure, the run ends with the bytes of a run on one machine.

use super::server::{Redis, SMALL_SEARCH, SMALL_TRAINING, Vecaz, limit, wait_until};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vecaz::rng::{Key, Purpose};

/// The last epoch.
const EPOCHS: u64 = 4;
/// 7 partitions, so that each of 7 workers has one; two updates in 3 samples.
const COMMON: &str = "
[selfplay]
games = 230
samples_per_epoch = 6000
passes_per_poll = 16
opening_plies = 2
[eval]
every = 0
";

struct Run<'a> {
    folder: &'a Path,
    config: String,
}

impl<'a> Run<'a> {
    fn new(folder: &'a Path, game: &str) -> Self {
        let config = folder.join("config.toml");
        std::fs::write(&config, format!("[game]\n{game}{SMALL_SEARCH}{SMALL_TRAINING}{COMMON}"))
            .expect("written");
        Self { folder, config: config.display().to_string() }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The process of a run on one machine, or of a learner.
    fn start(&self, name: &str, more: &[&str]) -> Vecaz {
        let (out, epochs) = (self.out(name).display().to_string(), EPOCHS.to_string());
        let line = ["run", "--config", &self.config, "--out", &out, "--epochs", &epochs, "--threads", "1"];
        Vecaz::spawn(&[&line[..], more].concat())
    }

    /// The files at the end of a run.
    fn bytes(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        let checkpoint = format!("checkpoints/epoch-{EPOCHS:06}");
        let games = (1..=EPOCHS).map(|epoch| format!("games/epoch-{epoch:06}.jsonl"));
        let entries = std::fs::read_dir(self.out(name).join(&checkpoint)).expect("a checkpoint");
        let names = entries.map(|entry| entry.expect("listed").file_name().into_string().expect("a name"));
        let arrays = names.filter(|name| name.ends_with(".safetensors"));
        let mut files: Vec<String> = arrays.map(|name| format!("{checkpoint}/{name}")).collect();
        files.sort();
        assert!(files.len() >= 3, "{files:?}");
        let read = |file: String| {
            let path = self.out(name).join(&file);
            let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            (file, bytes)
        };
        files.into_iter().chain(games).map(read).collect()
    }

    fn alone(&self) -> Vec<(String, Vec<u8>)> {
        success(self.start("alone", &[]));
        self.bytes("alone")
    }

    /// Compares the files at the end of a run with those of a run on one machine.
    fn check(&self, name: &str, expected: &[(String, Vec<u8>)]) {
        let found = self.bytes(name);
        assert_eq!(found.len(), expected.len(), "{name}");
        for ((file, found), (expected_file, expected)) in found.iter().zip(expected) {
            assert_eq!(file, expected_file, "{name}");
            assert!(found == expected, "{name}: {file} differs from that of a run on one machine");
        }
    }
}

fn success(process: Vecaz) {
    let output = process.output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn worker(url: &str) -> Vecaz {
    Vecaz::spawn(&["work", url, "--threads", "1"])
}

fn wait_for_state(redis: &Redis, name: &str) {
    let key = format!("{name}:state");
    wait_until("state of the run", || redis.command(&["EXISTS", &key]) == redis::Value::Int(1));
}

const STRICT: [&str; 2] = ["--set", "cluster.order=strict"];

#[test]
fn any_number_of_workers_gives_the_bytes_of_one_machine() {
    let Some(redis) = Redis::start(&[]) else { return };
    for (name, more) in [("connect_four", ""), ("hex", "\nsize = 5")] {
        let folder = tempfile::tempdir().expect("a folder");
        let run = Run::new(folder.path(), &format!("name = '{name}'{more}"));
        let expected = run.alone();
        for workers in [1, 2, 7] {
            let name = format!("{name}-{workers}");
            let url = redis.url(&name);
            let learner = run.start(&name, &[&["--cluster", &url, "--play", "0"][..], &STRICT].concat());
            wait_for_state(&redis, &name);
            let _workers: Vec<Vecaz> = (0..workers).map(|_| worker(&url)).collect();
            success(learner);
            run.check(&name, &expected);
        }
    }
}

/// What a head learns from the end of a game, the learner computes from the games that it replays.
#[test]
fn ownership_in_games_of_workers_is_that_of_one_machine() {
    let Some(redis) = Redis::start(&[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run::new(folder.path(), "name = 'othello'\nsize = 6");
    let learns = ["--set", "net.auxiliary=ownership"];
    success(run.start("alone", &learns));
    let expected = run.bytes("alone");
    let url = redis.url("ownership");
    let cluster = ["--cluster", &url, "--play", "0"];
    let learner = run.start("ownership", &[&cluster[..], &STRICT, &learns].concat());
    wait_for_state(&redis, "ownership");
    let _workers: Vec<Vecaz> = (0..2).map(|_| worker(&url)).collect();
    success(learner);
    run.check("ownership", &expected);
}

#[test]
fn a_learner_that_plays_itself_needs_no_worker() {
    let Some(redis) = Redis::start(&[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run::new(folder.path(), "name = 'hex'\nsize = 4");
    let expected = run.alone();
    success(run.start("own", &[&["--cluster", &redis.url("own")][..], &STRICT].concat()));
    run.check("own", &expected);
}

/// `VECAZ_KILLS=50` makes the test longer.
#[test]
fn after_any_failure_the_bytes_are_those_of_one_machine() {
    let Some(mut redis) = Redis::start(&["--appendfsync", "everysec"]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run::new(folder.path(), "name = 'connect_four'");
    let expected = run.alone();
    let kills = std::env::var("VECAZ_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8_usize);
    let mut rng = Key::new(6, Purpose::Evaluation).stream();
    let (mut made, mut round) = (0, 0);
    while made < kills {
        let (name, began) = (format!("kills-{round}"), Instant::now());
        let url = redis.url(&name);
        let out = run.out(&name).display().to_string();
        // After a kill the server first reads its file.
        redis.command(&["PING"]);
        let cluster = [&["--cluster", &url, "--play", "0"][..], &STRICT].concat();
        let mut learner = run.start(&name, &cluster);
        wait_for_state(&redis, &name);
        let mut workers = [worker(&url), worker(&url)];
        while !learner.is_over() {
            assert!(began.elapsed() < limit(120), "{name} does not end");
            sleep(Duration::from_millis(100 + rng.below(400) as u64));
            if learner.is_over() {
                break;
            }
            made += 1;
            // A worker stops if the run begins again, since its learner was killed before the first checkpoint.
            for stopped in workers.iter_mut().filter_map(|one| one.is_over().then_some(one)) {
                *stopped = worker(&url);
            }
            match rng.below(5) {
                which @ (0 | 1) => {
                    workers[which].kill();
                    workers[which] = worker(&url);
                }
                2 => {
                    learner.kill();
                    redis.command(&["PING"]);
                    let resume =
                        ["run", "--resume", &out, "--cluster", &url, "--play", "0", "--threads", "1"];
                    learner = Vecaz::spawn(&resume);
                    // A learner that has not begun ends where no server is.
                    learner.prints("policy loss");
                }
                3 => redis.kill(Duration::from_millis(100)),
                _ => drop(redis.command(&["FLUSHALL"])),
            }
        }
        success(learner);
        run.check(&name, &expected);
        round += 1;
    }
    println!("{made} failures in {round} runs");
}
