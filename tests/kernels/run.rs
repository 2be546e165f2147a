//! Whole runs on devices: self-play, network, training, evaluation and checkpoints together, in turns and overlapped.

use crate::host_device::HostDevice;
use crate::search::selfplay::layered;
use crate::search::split::split;
use crate::train::several::linked;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vecaz::backend::AnyGame;
use vecaz::backend::Backend;
use vecaz::backend::gpu::KernelBackend;
use vecaz::backend::plan::BackendPlan;
use vecaz::config::{Config, DeviceName, NetConfig};
use vecaz::device::collective::LinkedDevice;
use vecaz::net::gpu::DeviceEvaluator;
use vecaz::net::{IoShape, NetSpec, Network, NetworkDesc, Weights};
use vecaz::replay::{BatchPlan, Replay};
use vecaz::report::metrics::EpochRecord;
use vecaz::report::progress::{Progress, Verbosity};
use vecaz::run::Run;
use vecaz::run::factory::{ComponentFactory, DefaultFactory};
use vecaz::run::learner::{Learner, learner_on};
use vecaz::stop::Stop;
use vecaz::train::{Losses, Trainer};
use vecaz::{Error, Result};

/// So many devices made of the host, for games, trees, network and training.
struct HostMachine(u32);

impl ComponentFactory for HostMachine {
    fn check(&self, _: &Config) -> Result<()> {
        Ok(())
    }

    fn network(
        &self,
        config: &Config,
        _: &dyn AnyGame,
        spec: &NetSpec,
        weights: &Weights,
    ) -> Result<Box<dyn Network>> {
        let NetConfig { precision, tensor_cores, .. } = config.net;
        let parts = NetworkDesc { spec: spec.clone(), weights: weights.clone(), precision, tensor_cores };
        Ok(Box::new(DeviceEvaluator::new(parts, DeviceName::Cpu, || Ok(HostDevice::new(21)))))
    }

    fn learner(
        &self,
        config: &Config,
        game: &Arc<dyn AnyGame>,
        spec: &NetSpec,
        state: Option<&Weights>,
    ) -> Result<Box<dyn Learner>> {
        let first = Trainer::new(spec, &config.train, config.run.seed)?.state();
        let devices = match self.0 {
            1 => vec![LinkedDevice { device: HostDevice::new(4), sums: None }],
            num => linked(num as usize, 4),
        };
        learner_on(devices, config, game, spec, state.unwrap_or(&first))
    }

    fn backend(
        &self,
        config: &Config,
        game: &dyn AnyGame,
        plan: BackendPlan,
        _: usize,
    ) -> Result<Box<dyn Backend>> {
        let on = |seed: u32, plan| -> Result<Box<dyn Backend>> {
            Ok(Box::new(KernelBackend::new(HostDevice::new(u64::from(seed)), game, plan)?))
        };
        match self.0 {
            1 => on(5, plan),
            num => split(config, plan, num, &|device, plan| match device {
                DeviceName::Cuda(number) => on(6 + number, plan),
                DeviceName::Cpu | DeviceName::Metal => panic!("{device} is none of those"),
            }),
        }
    }
}

fn config(mode: &str, epochs: u64) -> Config {
    layered(&format!(
        "
        [game]
        name = 'tic_tac_toe'
        [net]
        blocks = 1
        channels = 16
        value_hidden = 16
        [search]
        simulations = 8
        [selfplay]
        games = 7
        samples_per_epoch = 200
        passes_per_poll = 16
        opening_plies = 3
        [replay]
        capacity = 500
        [train]
        mode = '{mode}'
        batch = 63
        min_samples = 50
        replay_ratio = 4.0
        lr = 0.01
        warmup_updates = 3
        [eval]
        share = 0.0
        simulations = 4
        positions = 120
        [run]
        seed = 5
        epochs = {epochs}
        "
    ))
}

/// Goes on to the configuration's end; the records of all epochs.
fn run_to_end(run: Result<Run>) -> Vec<EpochRecord> {
    let mut run = run.expect("there is all that it needs");
    run.run_epochs(&mut Progress::new(Verbosity::Quiet), &Stop::default()).expect("nothing fails");
    let text = fs::read_to_string(run.dir().join("metrics.jsonl")).expect("written");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The files of a run that say nothing of time, by name.
fn content(dir: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    const TIMED_FILES: [&str; 6] =
        ["events.out", "metrics.jsonl", "report.html", "config.toml", "progress.bin", "manifest.jsonl"];
    for entry in fs::read_dir(dir).expect("listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            content(&path, found);
        } else if !TIMED_FILES.iter().any(|part| name.starts_with(part)) {
            found.insert(
                format!("{}/{name}", dir.file_name().unwrap_or_default().display()),
                fs::read(&path).expect("read"),
            );
        }
    }
}

/// The same files with the same bytes.
fn assert_same(a: &Path, b: &Path, what: &str) {
    let [left, right] = [a, b].map(|dir| {
        let mut found = BTreeMap::new();
        content(dir, &mut found);
        found
    });
    assert!(left.len() > 8, "{:?}", left.keys());
    assert_eq!(left.keys().collect::<Vec<_>>(), right.keys().collect::<Vec<_>>(), "{what}");
    for (name, bytes) in &left {
        assert!(*bytes == right[name], "{name} differs, {what}");
    }
}

fn check(devices: u32, mode: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let [whole, parts] = ["run", "parts/run"].map(|name| folder.path().join(name));
    let machine = || Box::new(HostMachine(devices));
    let records = run_to_end(Run::start_on(machine(), config(mode, 4), &whole, 2));
    run_to_end(Run::start_on(machine(), config(mode, 1), &parts, 1));
    run_to_end(Run::resume_on(machine(), config(mode, 3), &parts, 2));
    let resumed = run_to_end(Run::resume_on(machine(), config(mode, 4), &parts, 1));
    let what = format!("{mode} on {devices}");
    assert_same(&whole, &parts, &what);
    let timeless =
        |record: &EpochRecord| (record.games, record.updates, record.losses.clone(), record.strength);
    assert_eq!(
        records.iter().map(timeless).collect::<Vec<_>>(),
        resumed.iter().map(timeless).collect::<Vec<_>>()
    );
    let trained = records.iter().filter(|record| record.losses.is_some()).count();
    assert_eq!(trained, if mode == "overlapped" { 3 } else { 4 }, "{what}");
    let errors: Vec<f64> =
        records.iter().filter_map(|record| record.strength?.policy_outcome_error).collect();
    println!("{what}: {errors:?}");
    assert!(errors[3] < 0.85 * errors[0], "nothing is learnt: {errors:?}, {what}");
}

/// The machine's own parts, but a learner that fails in the update of this number.
struct Failing(u64);

impl ComponentFactory for Failing {
    fn learner(
        &self,
        config: &Config,
        game: &Arc<dyn AnyGame>,
        spec: &NetSpec,
        state: Option<&Weights>,
    ) -> Result<Box<dyn Learner>> {
        Ok(Box::new(Forgetful {
            learner: DefaultFactory::default().learner(config, game, spec, state)?,
            until: self.0,
            updates: Arc::default(),
        }))
    }
}

struct Forgetful {
    learner: Box<dyn Learner>,
    until: u64,
    updates: Arc<AtomicUsize>,
}

impl Learner for Forgetful {
    fn updates(&self) -> u64 {
        self.learner.updates()
    }

    fn update(&mut self, replay: &Replay, plan: BatchPlan) -> Result<Losses> {
        if self.updates() == self.until {
            return Err(Error::Device { device: "cuda:7".into(), what: "it fell off the bus".into() });
        }
        self.updates.fetch_add(1, Ordering::Relaxed);
        self.learner.update(replay, plan)
    }

    fn weights(&self) -> Result<Weights> {
        self.learner.weights()
    }

    fn state(&self) -> Result<Weights> {
        self.learner.state()
    }
}

#[test]
fn training_that_fails_ends_the_run_and_no_epoch_is_lost() {
    for mode in ["in_turns", "overlapped"] {
        let folder = tempfile::tempdir().expect("a folder");
        let [whole, failed] = ["run", "failed/run"].map(|name| folder.path().join(name));
        let records = run_to_end(Run::start(config(mode, 4), &whole, 2));
        let until = records[2].updates + 3;
        let mut run = Run::start_on(Box::new(Failing(until)), config(mode, 4), &failed, 2).expect("begins");
        let error = run
            .run_epochs(&mut Progress::new(Verbosity::Quiet), &Stop::default())
            .expect_err("in the fourth epoch");
        assert_eq!(error.to_string(), "device cuda:7: it fell off the bus", "{mode}");
        assert_eq!(run.epoch(), 3, "{mode}");
        drop(run);
        run_to_end(Run::resume(config(mode, 4), &failed, 1));
        assert_same(&whole, &failed, mode);
    }
}

/// The default components, but a network whose forward of this number fails; updates are counted.
struct FailingFactory {
    until: usize,
    updates: Arc<AtomicUsize>,
}

impl ComponentFactory for FailingFactory {
    fn learner(
        &self,
        config: &Config,
        game: &Arc<dyn AnyGame>,
        spec: &NetSpec,
        state: Option<&Weights>,
    ) -> Result<Box<dyn Learner>> {
        let learner = DefaultFactory::default().learner(config, game, spec, state)?;
        Ok(Box::new(Forgetful { learner, until: u64::MAX, updates: self.updates.clone() }))
    }

    fn network(
        &self,
        config: &Config,
        game: &dyn AnyGame,
        spec: &NetSpec,
        weights: &Weights,
    ) -> Result<Box<dyn Network>> {
        let network = DefaultFactory::default().network(config, game, spec, weights)?;
        Ok(Box::new(Tired { network, num_calls: Arc::default(), until: self.until }))
    }
}

struct Tired {
    network: Box<dyn Network>,
    num_calls: Arc<AtomicUsize>,
    until: usize,
}

impl Network for Tired {
    fn shape(&self) -> IoShape {
        self.network.shape()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        if self.num_calls.fetch_add(1, Ordering::Relaxed) == self.until {
            return Err(Error::Device { device: "cuda:7".into(), what: "it fell off the bus".into() });
        }
        self.network.forward(obs, logits, values)
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(Self { network: self.network.fork(), num_calls: self.num_calls.clone(), until: self.until })
    }
}

/// What a run says that `machine` makes the parts of from the second epoch on, with some settings changed.
fn second_epoch(machine: Box<dyn ComponentFactory>, change: &dyn Fn(&mut Config)) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    run_to_end(Run::start(config("overlapped", 1), &dir, 2));
    let mut changed = config("overlapped", 2);
    change(&mut changed);
    let mut run = Run::resume_on(machine, changed, &dir, 2).expect("a checkpoint");
    run.run_epochs(&mut Progress::new(Verbosity::Quiet), &Stop::default()).expect_err("it fails").to_string()
}

#[test]
fn where_one_of_self_play_and_training_fails_the_other_ends_too() {
    let right = "device cuda:7: it fell off the bus";
    // An epoch of hours, which ends.
    let of_training = second_epoch(Box::new(Failing(2)), &|c| {
        (c.selfplay.samples_per_epoch, c.run.memory_mib) = (1_000_000_000, 1 << 40);
    });
    assert_eq!(of_training, right);
    let updates = Arc::default();
    let machine = FailingFactory { until: 9, updates: Arc::clone(&updates) };
    let of_self_play = second_epoch(Box::new(machine), &|c| c.train.replay_ratio = 1000.0);
    assert_eq!(of_self_play, right);
    let (made, due) = (updates.load(Ordering::Relaxed), 200 * 1000 / 63);
    assert!(made < due / 2, "{made} of at least {due} updates are made");
}

#[test]
fn a_run_on_one_device_is_resumed_to_the_same_bytes_and_learns() {
    check(1, "in_turns");
}

#[test]
fn a_run_on_two_devices_beside_training_is_resumed_to_the_same_bytes_and_learns() {
    check(2, "overlapped");
}
