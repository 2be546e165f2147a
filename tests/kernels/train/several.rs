//! Training on several devices against training on one: the same updates but for the order of sums, the same bits on all
//! devices, in every order of threads, and nobody who waits for a device that failed.

use super::gather::{BATCH, CAPACITY, Plies, plan};
use super::updates::{assert_close, assert_gradients, plain};
use super::{batch, config, difference, on_device, spec, specs, weights};
use crate::host_device::{HostBuffer, HostDevice};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use vecaz::config::{Arch, NetConfig, TrainConfig, TrainPrecision};
use vecaz::device::Device;
use vecaz::device::collective::{Collective, DataType, LinkedDevice};
use vecaz::model::{NetSpec, Weights};
use vecaz::registry::any_game;
use vecaz::replay::{Replay, Symmetries};
use vecaz::train::Trainer;
use vecaz::train::device::{DeviceReplay, DeviceTrainer};
use vecaz::{Error, Result};

/// Sums over host devices, in the order of their ranks.
struct HostSums {
    link: Arc<Link>,
    rank: usize,
    /// Sums begun so far.
    num_calls: AtomicUsize,
    fault: Fault,
}

/// What an end does wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// It fails instead of making the sum of this number.
    Fails(usize),
    /// It gets another sum of this number than the others.
    Differs(usize),
}

struct Link {
    size: usize,
    sum: Mutex<Sum>,
    changed: Condvar,
}

#[derive(Default)]
struct Sum {
    given: Vec<Option<Vec<u8>>>,
    made: Vec<u8>,
    number: usize,
    is_over: bool,
}

impl Sum {
    /// The sum of what was given, if all is there.
    fn make(&mut self, number: DataType) {
        let given: Option<Vec<Vec<u8>>> = self.given.iter().cloned().collect();
        let Some(given) = given else { return };
        self.made = match number {
            DataType::F32 => added::<f32>(&given),
            DataType::F64 => added::<f64>(&given),
        };
        self.given.fill(None);
        self.number += 1;
    }
}

fn added<T: bytemuck::Pod + std::ops::Add<Output = T>>(given: &[Vec<u8>]) -> Vec<u8> {
    let numbers = given.iter().map(|bytes| bytemuck::pod_collect_to_vec::<u8, T>(bytes));
    let sum = numbers.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a + b).collect());
    bytemuck::cast_slice(&sum.expect("one at least")).to_vec()
}

impl HostSums {
    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.link.sum.lock().expect("nobody panics with it")
    }

    fn error(&self, what: &str) -> Error {
        Error::Device { device: format!("host {}", self.rank), what: what.into() }
    }
}

impl Collective<HostDevice> for HostSums {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.link.size
    }

    fn all_reduce_sum(
        &self,
        device: &HostDevice,
        buffer: &mut HostBuffer,
        number: DataType,
        count: usize,
    ) -> Result<()> {
        let num_calls = self.num_calls.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::Fails(num_calls) {
            return Err(self.error("it fell off the bus"));
        }
        let mut bytes = vec![0; count * number.bytes()];
        device.download(buffer, 0, &mut bytes)?;
        let mut sum = self.sum();
        let before = sum.number;
        sum.given[self.rank] = Some(bytes);
        sum.make(number);
        self.link.changed.notify_all();
        while sum.number == before && !sum.is_over {
            sum = self.link.changed.wait(sum).expect("nobody panics with it");
        }
        if sum.is_over {
            return Err(self.error("another device has given up"));
        }
        let mut made = sum.made.clone();
        if self.fault == Fault::Differs(num_calls) {
            made[0] ^= 1;
        }
        device.upload(buffer, 0, &made)
    }

    fn abort(&self) {
        self.sum().is_over = true;
        self.link.changed.notify_all();
    }
}

/// Devices that are linked.
pub fn linked(num: usize, seed: u64) -> Vec<LinkedDevice<HostDevice>> {
    linked_devices(num, seed, Fault::None)
}

/// The same, whose threads run in orders drawn from `seed`; `fault` is that of the second.
fn linked_devices(num: usize, seed: u64, fault: Fault) -> Vec<LinkedDevice<HostDevice>> {
    let sum = Mutex::new(Sum { given: vec![None; num], ..Sum::default() });
    let link = Arc::new(Link { size: num, sum, changed: Condvar::new() });
    let device_of = |rank| {
        let fault = if rank == 1 { fault } else { Fault::None };
        let sums = HostSums { link: link.clone(), rank, num_calls: AtomicUsize::new(0), fault };
        let sums: Arc<dyn Collective<HostDevice>> = Arc::new(sums);
        LinkedDevice { device: HostDevice::new(seed + rank as u64), sums: Some(sums) }
    };
    (0..num).map(device_of).collect()
}

fn several(num: usize, spec: &NetSpec, config: &TrainConfig, state: &Weights) -> DeviceTrainer<HostDevice> {
    DeviceTrainer::on_devices(linked_devices(num, 3, Fault::None), spec, config, None, state)
        .expect("a trainer")
}

fn first_state(spec: &NetSpec, config: &TrainConfig) -> Weights {
    Trainer::with_weights(spec, config, &weights(spec)).expect("a trainer").state()
}

/// Fails where `found` is further from `right` than sums in another order are.
fn assert_same_statistics(found: &Weights, right: &Weights) {
    for (name, right) in right.iter().filter(|(name, _)| name.contains("running_")) {
        let apart = difference(&found[name], right);
        assert!(apart < 1e-6, "{name}: {apart}");
    }
}

#[test]
fn gradients_statistics_and_losses_are_those_of_one_device() {
    for spec in specs() {
        let state = first_state(&spec, &plain());
        let mut one = on_device(&spec, &plain(), &state);
        let samples = batch(&spec, 19, 2); // no number of devices divides them
        let right_losses = one.step(&samples).expect("finite");
        let right = one.state().expect("a state");
        for num in [2, 3] {
            let mut trainer = several(num, &spec, &plain(), &state);
            assert_close(&trainer.step(&samples).expect("finite"), &right_losses, 1e-6);
            let found = trainer.state().expect("the same bits on all devices");
            assert_gradients(&found, &right, 1e-5);
            assert_same_statistics(&found, &right);
        }
    }
}

#[test]
fn many_updates_follow_those_of_one_device() {
    let config = config();
    for spec in [NetSpec { channels: 12, ..spec(Arch::Resnet) }, spec(Arch::Mlp)] {
        let state = first_state(&spec, &config);
        let mut one = on_device(&spec, &config, &state);
        let mut trainer = several(2, &spec, &config, &state);
        for update in 0..12 {
            let samples = batch(&spec, 23, update % 4);
            let (l, r) = (trainer.step(&samples).expect("finite"), one.step(&samples).expect("finite"));
            assert_close(&l, &r, 1e-3);
        }
        let (found, right) = (trainer.state().expect("the same bits"), one.state().expect("a state"));
        assert_eq!(trainer.updates(), 12);
        for (name, right) in right.iter().filter(|(name, _)| name.starts_with("weights.")) {
            let apart = difference(&found[name], right);
            assert!(apart < 5e-3 || name.contains(".bias"), "{name}: {apart}");
        }
    }
}

#[test]
fn any_order_of_threads_gives_the_same_bits_and_a_state_goes_on() {
    let spec = NetSpec { channels: 12, ..spec(Arch::Resnet) };
    let start = first_state(&spec, &config());
    let run = |seed: u64, state: &Weights, updates: std::ops::Range<u64>| {
        let linked_devices = linked_devices(3, seed, Fault::None);
        let mut trainer =
            DeviceTrainer::on_devices(linked_devices, &spec, &config(), None, state).expect("a trainer");
        for i in updates {
            trainer.step(&batch(&spec, 20, i)).expect("finite");
        }
        trainer.state().expect("the same bits")
    };
    let right = run(1, &start, 0..4);
    assert_eq!(run(50, &start, 0..4), right);
    let middle = run(2, &start, 0..2);
    assert_ne!(middle, right);
    assert_eq!(run(9, &middle, 2..4), right);
}

#[test]
fn batches_are_drawn_from_the_replay_on_every_device() {
    let game = any_game("connect_four", &toml::Table::new()).expect("a game");
    let net = NetConfig { arch: Arch::Mlp, blocks: 1, channels: 16, ..NetConfig::default() };
    let spec = NetSpec::new(&net, &game.sizes());
    let config = config();
    let state = Trainer::new(&spec, &config, 4).expect("a trainer").state();
    let (mut plies, mut replay) = (Plies::new(&game), Replay::new(game.as_ref(), CAPACITY));
    let trainer = || {
        let linked_devices = linked_devices(3, 5, Fault::None);
        DeviceTrainer::on_devices(linked_devices, &spec, &config, Some(game.as_ref()), &state)
            .expect("a trainer")
    };
    let (mut found, mut right) = (trainer(), trainer());
    let share = BATCH.div_ceil(3);
    let replays = found.devices().map(|device| DeviceReplay::new(device, game.as_ref(), CAPACITY, share));
    let mut replays = replays.collect::<Result<Vec<_>>>().expect("memory");
    for number in 0..3 {
        plies.push(&mut replay, 50);
        let plan = plan(number, Symmetries::Random);
        let expected = right.step(&replay.batch(game.as_ref(), plan)).expect("finite");
        assert_eq!(found.step_from(&mut replays, &replay, plan).expect("finite"), expected);
    }
    assert_eq!(found.state().expect("the same bits"), right.state().expect("the same bits"));
    let few = found.step_from(&mut replays[..2], &replay, plan(9, Symmetries::Random)).expect_err("too few");
    assert_eq!(few.to_string(), "replays on devices: found 2, expected 3");
}

#[test]
fn what_overflows_on_one_device_is_made_again_on_all() {
    let spec = NetSpec { channels: 8, blocks: 1, ..spec(Arch::Resnet) };
    let config = TrainConfig { precision: TrainPrecision::F16, value_weight: 30.0, ..config() };
    let mut trainer = several(2, &spec, &config, &first_state(&spec, &config));
    let mut even = batch(&spec, 400, 1);
    trainer.step(&even).expect("finite");
    assert_eq!(trainer.loss_scale().scale, 65_536.0, "no sample counts enough to overflow");
    even.weight[0] = 4000.0; // the first device's
    trainer.step(&even).expect("made at a smaller scale");
    let scale = trainer.loss_scale();
    assert!(scale.scale < 65_536.0 && scale.age == 1, "{scale:?}");
    assert_eq!(trainer.updates(), 2);
    trainer.state().expect("the same bits on all devices");
}

#[test]
fn a_device_that_fails_or_differs_ends_the_update_on_all() {
    let spec = NetSpec { channels: 8, ..spec(Arch::Resnet) };
    let state = first_state(&spec, &config());
    let broken = |fault| {
        let linked_devices = linked_devices(3, 1, fault);
        let mut trainer =
            DeviceTrainer::on_devices(linked_devices, &spec, &config(), None, &state).expect("a trainer");
        let error = trainer.step(&batch(&spec, 12, 1)).expect_err("broken").to_string();
        (trainer, error)
    };
    for sum in [0, 3] {
        let (mut trainer, error) = broken(Fault::Fails(sum));
        assert_eq!(error, "device host 1: it fell off the bus");
        let again = trainer.step(&batch(&spec, 12, 1)).expect_err("it stays broken").to_string();
        assert!(again.ends_with(": another device has given up"), "{again}");
    }
    // Sums of an update: two for each of its six normalisations, then the gradient.
    let (_, error) = broken(Fault::Differs(12));
    let differ = "training on these devices together: their gradients differ, expected identical bits";
    assert_eq!(error, differ);
    let (mut trainer, samples) = (several(2, &spec, &config(), &state), batch(&spec, 12, 1));
    trainer.step(&samples).expect("finite");
    let before = trainer.state().expect("a state");
    let mut spoilt = samples.clone();
    spoilt.obs[7] = f32::NAN;
    assert!(matches!(trainer.step(&spoilt), Err(Error::NotFinite { .. })));
    assert_eq!(trainer.state().expect("as it was"), before);
    trainer.step(&samples).expect("it goes on");
}

#[test]
fn devices_without_samples_or_links_are_refused() {
    let spec = spec(Arch::Mlp);
    let state = first_state(&spec, &config());
    let mut trainer = several(3, &spec, &config(), &state);
    let few = trainer.step(&batch(&spec, 2, 1)).expect_err("two samples").to_string();
    let part = "samples of a training batch: found 2, expected at least 3";
    assert_eq!(few, format!("{part}, one for each device"));
    let refused = |linked_devices| {
        let refused = DeviceTrainer::on_devices(linked_devices, &spec, &config(), None, &state).err();
        refused.expect("refused").to_string()
    };
    let mut two_of_three = linked_devices(3, 1, Fault::None);
    two_of_three.pop();
    let link = "ranks of devices that train together: found ";
    assert!(refused(two_of_three).starts_with(link));
    let mut swapped = linked_devices(2, 1, Fault::None);
    swapped.reverse();
    assert!(refused(swapped).starts_with(link));
    assert!(refused(Vec::new()).starts_with(link));
}
