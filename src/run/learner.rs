//! Training of a run's network: fused on the CPU or on one or several GPUs, or by candle.

use super::network::{NetExecutor, select_executor};
use crate::backend::AnyGame;
use crate::config::{Config, DeviceName};
use crate::device::Device;
use crate::device::collective::LinkedDevice;
use crate::device::{OnDevices, on_cuda};
use crate::error::Result;
use crate::net::cpu_train::Operands;
use crate::net::{NetSpec, Weights};
use crate::replay::{BatchPlan, Replay};
use crate::train::device::{DeviceReplay, DeviceTrainer};
use crate::train::{Losses, TrainBatch, Trainer};
use std::sync::Arc;

/// A network in training on batches from a replay buffer.
pub trait Learner: Send {
    /// Number of updates so far.
    fn updates(&self) -> u64;

    /// Makes one update on the batch [`Replay::batch`] of `plan`.
    ///
    /// # Errors
    /// Those of [`Trainer::step`] and of the device.
    fn update(&mut self, replay: &Replay, plan: BatchPlan) -> Result<Losses>;

    /// The current weights.
    ///
    /// # Errors
    /// Those of the device.
    fn weights(&self) -> Result<Weights>;

    /// Weights and optimiser state: with the configuration and the replay buffer, they determine the next update.
    ///
    /// # Errors
    /// Those of the device.
    fn state(&self) -> Result<Weights>;
}

/// The learner of `config`, with initial weights or from `state`.
///
/// # Errors
/// [`crate::Error::Mismatch`] if the state is of another network; those of the device.
pub fn learner(
    config: &Config,
    game: &Arc<dyn AnyGame>,
    spec: &NetSpec,
    state: Option<&Weights>,
) -> Result<Box<dyn Learner>> {
    let (chosen, _) = select_executor(config, &spec.model()?)?;
    let operands = Operands::from(config.train.precision);
    let isa = operands.isa(config.net.isa);
    let mut trainer = match &chosen {
        NetExecutor::Fused => Trainer::with_isa(spec, &config.train, config.run.seed, isa)?,
        NetExecutor::Candle(device) => {
            Trainer::on_candle(spec, &config.train, config.run.seed, device.clone())?
        }
    };
    if let Some(state) = state {
        trainer.restore(state)?;
    }
    let number = |name: &DeviceName| match *name {
        DeviceName::Cpu | DeviceName::Metal => None,
        DeviceName::Cuda(number) => Some(number),
    };
    let numbers: Vec<u32> = config.network_devices().all().iter().filter_map(number).collect();
    if numbers.is_empty() || matches!(chosen, NetExecutor::Candle(_)) {
        if operands == Operands::Bf16 && !isa.trains_fast_in_bf16() {
            tracing::warn!(
                "products of bf16 by {isa} are slow here: train.precision = \"f32\" is faster, or net.isa = \"native\" where there is AMX"
            );
        }
        return Ok(Box::new(HostLearner { game: game.clone(), trainer, prefetched: None }));
    }
    let first = trainer.state();
    on_cuda(&numbers, NewLearner { config, game, spec, state: state.unwrap_or(&first) })
}

/// A learner on these devices instead of the configured ones, from `state`.
///
/// # Errors
/// Those of [`learner`].
pub fn learner_on<D: Device + 'static>(
    devices: Vec<LinkedDevice<D>>,
    config: &Config,
    game: &Arc<dyn AnyGame>,
    spec: &NetSpec,
    state: &Weights,
) -> Result<Box<dyn Learner>> {
    let batch_per_device = config.train.batch.div_ceil(devices.len().max(1));
    let trainer = DeviceTrainer::on_devices(devices, spec, &config.train, Some(game.as_ref()), state)?;
    let replay = |device| DeviceReplay::new(device, game.as_ref(), config.replay.capacity, batch_per_device);
    let samples = game.cuda_source().is_some().then(|| trainer.devices().map(replay).collect::<Result<_>>());
    Ok(Box::new(DeviceLearner { game: game.clone(), trainer, samples: samples.transpose()? }))
}

/// Trains on batches gathered on the host. The next batch is gathered in parallel with an update.
struct HostLearner {
    game: Arc<dyn AnyGame>,
    trainer: Trainer,
    /// The next batch: its number, the number of samples added when it was gathered, and the batch.
    prefetched: Option<(u64, u64, TrainBatch)>,
}

impl Learner for HostLearner {
    fn updates(&self) -> u64 {
        self.trainer.updates()
    }

    fn update(&mut self, replay: &Replay, plan: BatchPlan) -> Result<Losses> {
        let game = self.game.as_ref();
        let gather = |number: u64| replay.batch(game, BatchPlan { number, ..plan });
        let (number, added) = (plan.number, replay.added());
        let batch = match self.prefetched.take() {
            Some((n, a, batch)) if (n, a) == (number, added) => batch,
            _ => gather(number),
        };
        let (step, next) = rayon::join(|| self.trainer.step(&batch), || gather(number + 1));
        self.prefetched = Some((number + 1, added, next));
        step
    }

    fn weights(&self) -> Result<Weights> {
        Ok(self.trainer.weights())
    }

    fn state(&self) -> Result<Weights> {
        Ok(self.trainer.state())
    }
}

/// Trains on one or several GPUs.
struct DeviceLearner<D: Device> {
    game: Arc<dyn AnyGame>,
    trainer: DeviceTrainer<D>,
    /// A replay buffer per device if the game has kernels; otherwise batches are gathered on the host.
    samples: Option<Vec<DeviceReplay<D::Buffer>>>,
}

impl<D: Device> Learner for DeviceLearner<D> {
    fn updates(&self) -> u64 {
        self.trainer.updates()
    }

    fn update(&mut self, replay: &Replay, plan: BatchPlan) -> Result<Losses> {
        match &mut self.samples {
            Some(samples) => self.trainer.step_from(samples, replay, plan),
            None => self.trainer.step(&replay.batch(self.game.as_ref(), plan)),
        }
    }

    fn weights(&self) -> Result<Weights> {
        self.trainer.weights()
    }

    fn state(&self) -> Result<Weights> {
        self.trainer.state()
    }
}

/// The arguments of a [`learner_on`] call, once the devices are open.
struct NewLearner<'a> {
    config: &'a Config,
    game: &'a Arc<dyn AnyGame>,
    spec: &'a NetSpec,
    state: &'a Weights,
}

impl OnDevices for NewLearner<'_> {
    type Out = Box<dyn Learner>;

    fn run<D: Device + 'static>(self, devices: Vec<LinkedDevice<D>>) -> Result<Box<dyn Learner>> {
        learner_on(devices, self.config, self.game, self.spec, self.state)
    }
}
