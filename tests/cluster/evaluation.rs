//! Evaluations in tasks: with any workers the strength is that of one machine, and tasks with wrong results are measured again.

use super::chunks::{HEADER_BYTES, change, replace_body};
use super::server::SMALL_SEARCH;
use std::ops::Range;
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::cluster::Incarnation;
use vecaz::cluster::chunk::{ChunkLimits, ChunkReader, Origin, Sealer};
use vecaz::cluster::evaluation::{Offer, limits, open, seal};
use vecaz::config::{Config, Layers};
use vecaz::game::Turn;
use vecaz::net::{IoShape, UniformNet};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::run::strength::{EvalResult, StrengthMeter};
use vecaz::stop::Stop;

/// A measurement of a uniform network.
struct Setting {
    game: Arc<dyn AnyGame>,
    config: Config,
    meter: StrengthMeter,
}

impl Setting {
    fn new(game: &str) -> Self {
        let text = format!(
            "[game]\n{game}{SMALL_SEARCH}[eval]\nsimulations = 4\npositions = 40\nmatch_games = 12\nopponent = 'random'"
        );
        let config = Layers::default().text(&text, "test").and_then(Layers::resolve).expect("valid");
        let game = any_game(config.game_name(), &config.game_options()).expect("registered");
        let meter = StrengthMeter::new(&config, &game, 1).expect("known");
        Self { game, config, meter }
    }

    fn measure(&self, items: Range<usize>) -> EvalResult {
        let shape = IoShape::of(&self.game.sizes());
        self.meter.measure(&UniformNet(shape), items, &Stop::default(), &mut |_| ()).expect("measured")
    }

    /// Whether the rules and the chance outcomes of the match allow a result: an oracle that shares no code with the check of results.
    fn is_possible(&self, measured: &EvalResult, items: Range<usize>) -> bool {
        match measured {
            EvalResult::Games(records) => items.zip(records).all(|(number, actions)| {
                let mut play = Playthrough::new(self.game.clone());
                let mut deals = 0;
                for &action in actions {
                    let legal = play.legal();
                    if play.turn() == Turn::Chance {
                        let key = Key::new(self.config.run.seed, Purpose::Chance);
                        let mut rng = key.with(number as u64 / 2).with(deals).stream();
                        deals += 1;
                        let dealt = rng.weighted(&self.game.chance_probs(play.state(), &legal));
                        if action != legal[dealt] {
                            return false;
                        }
                    }
                    if play.step(action).is_err() {
                        return false;
                    }
                }
                play.turn() == Turn::Over
            }),
            EvalResult::Positions(choices) => {
                items.zip(choices).all(|(number, choice)| choice.index == number)
            }
        }
    }
}

fn settings() -> Vec<Setting> {
    ["name = 'connect_four'", "name = 'hex'\nsize = 4", "name = 'backgammon'\nshort_game = true"]
        .map(Setting::new)
        .into_iter()
        .collect()
}

#[test]
fn the_strength_of_an_evaluation_in_tasks_is_that_of_the_whole() {
    for setting in settings() {
        let (meter, all) = (&setting.meter, setting.meter.items());
        let whole = meter.strength(vec![setting.measure(0..all)]).expect("whole");
        let results = [0..3, 3..4, 4..all].map(|items| setting.measure(items)).to_vec();
        let name = setting.game.name();
        assert_eq!(meter.strength(results.clone()).expect("whole"), whole, "{name}");
        meter.check(3..4, &results[1]).expect("measured");
        assert!(
            meter.check(1..2, &results[1]).is_err() || name == "hex",
            "{name}: another position, other dice"
        );
        assert!(meter.check(3..5, &results[1]).is_err(), "{name}: too few");
        assert!(meter.strength(results[1..].to_vec()).is_err(), "{name}: the first are missing");
    }
}

/// A result as it is sent.
struct Sent {
    offer: Offer,
    digest: [u8; 32],
    limits: ChunkLimits,
    reader: ChunkReader,
    bytes: Vec<u8>,
    raw: Vec<u8>,
}

impl Sent {
    const TASK: usize = 1;

    fn new(setting: &Setting, measured: &EvalResult, items: usize) -> Self {
        let offer = Offer { id: 77, version: 5, sha256: [3; 32], tasks: 4, setup: None };
        let digest = vecaz::cluster::digest(&setting.config, setting.game.as_ref());
        let sender = Origin { name: "worker".into(), incarnation: Incarnation(9), digest };
        let mut sealer = Sealer::new(sender).expect("memory");
        let bytes = seal(&mut sealer, &offer, Self::TASK, measured).expect("compressed");
        let limits = limits(setting.game.as_ref(), setting.meter.max_bytes(items)).expect("small");
        let raw_bytes = u32::from_le_bytes(bytes[72..76].try_into().expect("four")) as usize;
        assert!(raw_bytes <= setting.meter.max_bytes(items) + 32, "{raw_bytes} bytes");
        let raw = zstd::bulk::decompress(&bytes[HEADER_BYTES..], raw_bytes).expect("whole");
        Self { offer, digest, limits, reader: ChunkReader::new().expect("memory"), bytes, raw }
    }

    fn open(&mut self, bytes: &[u8]) -> Result<EvalResult, String> {
        open(&mut self.reader, bytes, (&self.digest, &self.limits), &self.offer, Self::TASK)
    }

    /// The chunk after changes at any offset, or of its content with a right checksum.
    fn forged(&self, rng: &mut RngStream) -> Vec<u8> {
        let mut out = self.bytes.clone();
        if rng.below(4) == 0 {
            change(&mut out, rng);
            return out;
        }
        let mut raw = self.raw.clone();
        change(&mut raw, rng);
        replace_body(&mut out, &raw);
        out
    }
}

#[test]
fn changed_results_give_no_games_outside_the_rules() {
    let mut rng = Key::new(12, Purpose::Evaluation).stream();
    let (mut refused, mut taken) = (0, 0);
    for setting in settings() {
        let items = 4..7;
        let measured = setting.measure(items.clone());
        let mut sent = Sent::new(&setting, &measured, items.len());
        let bytes = sent.bytes.clone();
        assert_eq!(sent.open(&bytes), Ok(measured), "as it was sent");
        for number in 0..34_000 {
            let forged = sent.forged(&mut rng);
            let found = sent.open(&forged);
            match found.and_then(|found| setting.meter.check(items.clone(), &found).map(|()| found)) {
                Err(_) => refused += 1,
                Ok(found) => {
                    taken += 1;
                    let name = setting.game.name();
                    assert!(setting.is_possible(&found, items.clone()), "{name} {number}: {found:?}");
                }
            }
        }
    }
    // Taken results are other choices and other legal games.
    assert!(refused > 60_000 && taken > 1_000, "{refused} refused, {taken} taken");
}

mod with_a_server {
    use super::super::server::{Redis, SMALL_SEARCH, SMALL_TRAINING, Vecaz, wait_until};
    use std::path::{Path, PathBuf};

    /// Evaluations of more than a second.
    const COMMON: &str = "
[selfplay]
games = 64
samples_per_epoch = 1500
passes_per_poll = 16
[eval]
share = 0.0
simulations = 3000
positions = 1000
match_games = 40
opponent = 'random'
[cluster]
order = 'strict'
";

    struct Run {
        folder: tempfile::TempDir,
        config: String,
    }

    impl Run {
        fn new(game: &str) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let config = folder.path().join("config.toml");
            std::fs::write(&config, format!("[game]\n{game}{SMALL_SEARCH}{SMALL_TRAINING}{COMMON}"))
                .expect("written");
            Self { config: config.display().to_string(), folder }
        }

        fn out(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn start(&self, name: &str, more: &[&str]) -> Vecaz {
            let out = self.out(name).display().to_string();
            let line = ["run", "--config", &self.config, "--out", &out, "--epochs", "2", "--threads", "1"];
            Vecaz::spawn(&[&line[..], more].concat())
        }
    }

    fn success(process: Vecaz) {
        let output = process.output();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A column of the epochs.
    fn column(run: &Path, pointer: &str) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
        let records = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        records.map(|record| record.pointer(pointer).cloned().unwrap_or_default()).collect()
    }

    fn sum(run: &Path, pointer: &str) -> u64 {
        column(run, pointer).iter().filter_map(serde_json::Value::as_u64).sum()
    }

    #[test]
    fn workers_measure_tasks_and_the_strength_is_that_of_one_machine() {
        let Some(redis) = Redis::start(&[]) else { return };
        for (name, game) in [("positions", "name = 'connect_four'"), ("match", "name = 'hex'\nsize = 5")] {
            let run = Run::new(game);
            success(run.start("alone", &[]));
            let url = redis.url(name);
            let learner = run.start(name, &["--cluster", &url, "--play", "0"]);
            let key = format!("{name}:state");
            wait_until("state of the run", || redis.command(&["EXISTS", &key]) == redis::Value::Int(1));
            let _workers = ["one", "two"].map(|_| Vecaz::spawn(&["work", &url, "--threads", "1"]));
            success(learner);
            let strengths = [run.out("alone"), run.out(name)].map(|out| column(&out, "/strength"));
            assert!(strengths[0][0].is_object() && strengths[0] == strengths[1], "{name}: {strengths:?}");
            assert!(sum(&run.out(name), "/workers/evaluated") > 0, "{name}: workers have measured tasks");
            assert_eq!(sum(&run.out(name), "/workers/refused"), 0, "{name}");
            let left = ["evaluation", "parts"].map(|key| format!("{name}:{key}"));
            let left = redis.command(&["EXISTS", &left[0], &left[1]]);
            assert_eq!(left, redis::Value::Int(0), "{name}: nothing of it is left");
        }
    }

    #[test]
    fn tasks_of_a_stopped_worker_and_tasks_with_wrong_results_are_measured_by_others() {
        let Some(redis) = Redis::start(&[]) else { return };
        let run = Run::new("name = 'hex'\nsize = 5");
        success(run.start("alone", &[]));
        let learner = run.start("lost", &["--cluster", &redis.url("lost")]);
        for _epoch in 0..2 {
            wait_until("evaluation", || {
                redis.command(&["EXISTS", "lost:evaluation"]) == redis::Value::Int(1)
            });
            let redis::Value::BulkString(id) = redis.command(&["HGET", "lost:evaluation", "id"]) else {
                panic!("an evaluation has a number")
            };
            // Tasks claimed by a stopped worker, an invalid result in place of another worker's, and a result of a task that does not exist.
            let claim =
                ["XREADGROUP", "GROUP", "workers", "gone", "COUNT", "9", "STREAMS", "lost:parts", ">"];
            redis.command(&claim);
            let results = format!("lost:results:{}", String::from_utf8(id).expect("text"));
            redis.command(&["HSET", &results, "4", "no result", "999", "no task"]);
            wait_until("end of the evaluation", || {
                redis.command(&["EXISTS", "lost:evaluation"]) == redis::Value::Int(0)
            });
        }
        success(learner);
        let strengths = ["alone", "lost"].map(|name| column(&run.out(name), "/strength"));
        assert!(strengths[0][0].is_object() && strengths[0] == strengths[1], "{strengths:?}");
        assert_eq!(sum(&run.out("lost"), "/workers/evaluated"), 0);
        assert_eq!(sum(&run.out("lost"), "/workers/refused"), 2, "one in each epoch");
    }

    #[test]
    fn after_the_loss_of_the_tasks_the_learner_measures_one_evaluation_alone() {
        let Some(redis) = Redis::start(&[]) else { return };
        let run = Run::new("name = 'hex'\nsize = 5");
        success(run.start("alone", &[]));
        let url = redis.url("flushed");
        let learner = run.start("flushed", &["--cluster", &url, "--play", "0"]);
        wait_until("state of the run", || {
            redis.command(&["EXISTS", "flushed:state"]) == redis::Value::Int(1)
        });
        let worker = Vecaz::spawn(&["work", &url, "--threads", "1"]);
        // The worker finds an evaluation without tasks.
        wait_until("tasks", || redis.command(&["DEL", "flushed:parts"]) == redis::Value::Int(1));
        success(learner);
        let (alone, flushed) = (run.out("alone"), run.out("flushed"));
        assert_eq!(column(&alone, "/strength"), column(&flushed, "/strength"));
        let evaluated = column(&flushed, "/workers/evaluated");
        assert!(evaluated[1].as_u64() > Some(0), "the next evaluation is shared again: {evaluated:?}");
        success(worker);
    }
}
