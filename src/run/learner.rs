//! What trains a run's network: the fused passes on the CPU, on the GPU that the network is on or on several of them; or candle.

use super::network::{Chosen, choose};
use crate::backend::kernels::collective::Place;
use crate::backend::kernels::device::Device;
use crate::backend::kernels::source::has_game;
use crate::backend::kernels::{OnDevices, on_cuda};
use crate::batch::AnyGame;
use crate::config::{Config, DeviceName};
use crate::error::Result;
use crate::net::{NetSpec, Weights};
use crate::replay::{BatchPlan, Replay};
use crate::train::device::{DeviceReplay, DeviceTrainer};
use crate::train::{Losses, TrainBatch, Trainer};
use std::sync::Arc;

/// A network in training on batches out of a replay.
pub trait Learner: Send {
    /// Updates made so far.
    fn updates(&self) -> u64;

    /// One update, on the batch that [`Replay::batch`] makes of `plan`.
    ///
    /// # Errors
    /// As [`Trainer::step`], and what the device says.
    fn update(&mut self, replay: &Replay, plan: BatchPlan) -> Result<Losses>;

    /// The present weights.
    ///
    /// # Errors
    /// What the device says.
    fn weights(&self) -> Result<Weights>;

    /// Everything that the next update depends on beside the configuration and the replay.
    ///
    /// # Errors
    /// What the device says.
    fn state(&self) -> Result<Weights>;
}

/// The learner that `config` asks for, at its first weights, or going on from `state`.
///
/// # Errors
/// [`crate::Error::Mismatch`] where the state is another network's, and what the device says.
pub fn learner(
    config: &Config,
    game: &Arc<dyn AnyGame>,
    spec: &NetSpec,
    state: Option<&Weights>,
) -> Result<Box<dyn Learner>> {
    let (chosen, _) = choose(config, &spec.model()?)?;
    let mut trainer = match &chosen {
        Chosen::Fused => Trainer::new(spec, &config.train, config.run.seed)?,
        Chosen::Candle(device) => Trainer::on_candle(spec, &config.train, config.run.seed, device.clone())?,
    };
    if let Some(state) = state {
        trainer.restore(state)?;
    }
    let number = |name: &DeviceName| match *name {
        DeviceName::Cpu => None,
        DeviceName::Cuda(number) => Some(number),
    };
    let numbers: Vec<u32> = config.training_devices().all().iter().filter_map(number).collect();
    if numbers.is_empty() || matches!(chosen, Chosen::Candle(_)) {
        return Ok(Box::new(HostLearner { game: game.clone(), trainer, ahead: None }));
    }
    let first = trainer.state();
    on_cuda(&numbers, Opening { config, game, spec, state: state.unwrap_or(&first) })
}

/// A learner on these devices, whatever the configuration names, that goes on from `state`.
///
/// # Errors
/// As [`learner`].
pub fn learner_on<D: Device + 'static>(
    places: Vec<Place<D>>,
    config: &Config,
    game: &Arc<dyn AnyGame>,
    spec: &NetSpec,
    state: &Weights,
) -> Result<Box<dyn Learner>> {
    let (rules, share) = (game.as_ref(), config.train.batch.div_ceil(places.len().max(1)));
    let trainer = DeviceTrainer::on_places(places, spec, &config.train, Some(rules), state)?;
    let replay = |device| DeviceReplay::new(device, rules, config.replay.capacity, share);
    let samples = has_game(game.name()).then(|| trainer.devices().map(replay).collect::<Result<_>>());
    Ok(Box::new(DeviceLearner { game: game.clone(), trainer, samples: samples.transpose()? }))
}

/// Trains with batches gathered on the host: while it makes an update, the next batch is gathered.
struct HostLearner {
    game: Arc<dyn AnyGame>,
    trainer: Trainer,
    /// A batch, its number, and the samples that had been added when it was gathered.
    ahead: Option<(u64, u64, TrainBatch)>,
}

impl Learner for HostLearner {
    fn updates(&self) -> u64 {
        self.trainer.updates()
    }

    fn update(&mut self, replay: &Replay, plan: BatchPlan) -> Result<Losses> {
        let game = self.game.as_ref();
        let gather = |number: u64| replay.batch(game, BatchPlan { number, ..plan });
        let (number, added) = (plan.number, replay.added());
        let batch = match self.ahead.take() {
            Some((n, a, batch)) if (n, a) == (number, added) => batch,
            _ => gather(number),
        };
        let (step, next) = rayon::join(|| self.trainer.step(&batch), || gather(number + 1));
        self.ahead = Some((number + 1, added, next));
        step
    }

    fn weights(&self) -> Result<Weights> {
        Ok(self.trainer.weights())
    }

    fn state(&self) -> Result<Weights> {
        Ok(self.trainer.state())
    }
}

/// Trains on a device, or on several.
struct DeviceLearner<D: Device> {
    game: Arc<dyn AnyGame>,
    trainer: DeviceTrainer<D>,
    /// A replay on each device where the game has kernels; else batches are gathered on the host.
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

/// What [`learner`] does once there are devices.
struct Opening<'a> {
    config: &'a Config,
    game: &'a Arc<dyn AnyGame>,
    spec: &'a NetSpec,
    state: &'a Weights,
}

impl OnDevices for Opening<'_> {
    type Out = Box<dyn Learner>;

    fn run<D: Device + 'static>(self, places: Vec<Place<D>>) -> Result<Box<dyn Learner>> {
        learner_on(places, self.config, self.game, self.spec, self.state)
    }
}
