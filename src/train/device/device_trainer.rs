//! A network in training on a device, or on several.

use super::replica::{Replica, TrainPlan};
use super::samples::{self, DeviceReplay};
use super::step::{LossScale, Settings, UpdateReport};
use crate::batch::ErasedRules;
use crate::config::TrainConfig;
use crate::device::Device;
use crate::device::collective::LinkedDevice;
use crate::error::{Error, Result};
use crate::model::{NetSpec, Weights};
use crate::net::gpu_train::process_group::LinkGuard;
use crate::net::gpu_train::{Samples, TrainLayers};
use crate::replay::{BatchPlan, Replay, TrainBatch};
use crate::threads;
use crate::train::loss::LossSums;
use crate::train::losses::Losses;
use crate::train::state::TrainerSnapshot;
use crate::train::trainer::Trainer;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A network in training on a device, or on several, with its optimiser.
pub struct DeviceTrainer<D: Device> {
    plan: TrainPlan,
    /// One at least.
    replicas: Vec<Replica<D>>,
    updates: u64,
    loss_scale: LossScale,
}

impl<D: Device> DeviceTrainer<D> {
    /// A network at its first weights, which `seed` fixes, on `device`, which gets the kernels loaded; with those that gather
    /// samples of `game`, if there is one that has them.
    ///
    /// # Errors
    /// Those of [`TrainLayers::new`], and those of the device.
    pub fn new(
        device: D,
        spec: &NetSpec,
        config: &TrainConfig,
        game: Option<&dyn ErasedRules>,
        seed: u64,
    ) -> Result<Self> {
        let first = Trainer::new(spec, config, seed)?.state();
        Self::with_state(device, spec, config, game, &first)
    }

    /// Goes on from what [`DeviceTrainer::state`] or [`Trainer::state`] gave.
    ///
    /// # Errors
    /// As [`DeviceTrainer::new`], and [`Error::Mismatch`] where the state is not that of `spec`.
    pub fn with_state(
        device: D,
        spec: &NetSpec,
        config: &TrainConfig,
        game: Option<&dyn ErasedRules>,
        state: &Weights,
    ) -> Result<Self> {
        Self::on_devices(vec![LinkedDevice { device, sums: None }], spec, config, game, state)
    }

    /// The same on one device or on several that are linked, in the order of their ranks.
    ///
    /// # Errors
    /// As [`DeviceTrainer::with_state`], and [`Error::Mismatch`] where the devices are not all those of one link.
    pub fn on_devices(
        devices: Vec<LinkedDevice<D>>,
        spec: &NetSpec,
        config: &TrainConfig,
        game: Option<&dyn ErasedRules>,
        state: &Weights,
    ) -> Result<Self> {
        check_links(&devices)?;
        let model = spec.model()?;
        let layers = TrainLayers::new(&model)?;
        let plan = TrainPlan { spec: spec.clone(), config: config.clone(), model, layers };
        let replicas =
            devices.into_iter().map(|device| Replica::new(device, &plan, game)).collect::<Result<_>>()?;
        let loss_scale = LossScale::new(config.precision);
        let mut trainer = Self { plan, replicas, updates: 0, loss_scale };
        trainer.restore(state)?;
        // What the first update needs is taken before trees may have what is left.
        trainer.make_room(config.batch)?;
        Ok(trainer)
    }

    /// Makes room for `batch` samples, divided over the devices.
    fn make_room(&mut self, batch: usize) -> Result<()> {
        let num = self.replicas.len();
        for (i, replica) in self.replicas.iter_mut().enumerate() {
            replica.resize(&self.plan, share(batch, i, num).len())?;
        }
        Ok(())
    }

    /// Updates made so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// The first device.
    pub fn device(&self) -> &D {
        &self.replicas[0].device
    }

    /// All devices.
    pub fn devices(&self) -> impl Iterator<Item = &D> {
        self.replicas.iter().map(|replica| &replica.device)
    }

    /// The loss scale of the next update.
    pub fn loss_scale(&self) -> LossScale {
        self.loss_scale
    }

    /// One update, as [`Trainer::step`].
    ///
    /// # Errors
    /// As [`Trainer::step`], and those of the device. Where a device of several failed, the trainer can do no more.
    pub fn step(&mut self, batch: &TrainBatch) -> Result<Losses> {
        let size = batch.check(&self.plan.model)?;
        let mut nothing = vec![(); self.replicas.len()];
        self.update(batch.total_weight(), size, &mut nothing, &|_, device, samples, rows| {
            samples::upload(device, samples, batch, rows)
        })
    }

    /// One update on a batch drawn from `replay`, equal to that of [`Replay::batch`]. `samples` holds what each device needs of it:
    /// all of the replay, or room for its share of a batch.
    ///
    /// # Errors
    /// As [`DeviceTrainer::step`], and [`Error::Mismatch`] where `samples` are not as many as the devices.
    pub fn step_from(
        &mut self,
        samples: &mut [DeviceReplay<D::Buffer>],
        replay: &Replay,
        plan: BatchPlan,
    ) -> Result<Losses> {
        if samples.len() != self.replicas.len() {
            return Err(Error::mismatch("replays on devices", samples.len(), self.replicas.len()));
        }
        self.update(plan.size as f64, plan.size, samples, &|samples, device, out, rows| {
            samples.gather(device, replay, plan, rows, out)
        })
    }

    /// Makes one update on `size` samples; `fill` writes a device's rows from that device's source.
    fn update<S: Send>(
        &mut self,
        total_weight: f64,
        size: usize,
        sources: &mut [S],
        fill: &Fill<'_, D, S>,
    ) -> Result<Losses> {
        if size < self.replicas.len() {
            return Err(Error::mismatch(
                "samples of a training batch",
                size,
                format_args!("at least {}, one for each device", self.replicas.len()),
            ));
        }
        // Of a refused update nothing is kept, the smaller scales neither.
        let mut loss_scale = self.loss_scale;
        loop {
            let settings = Settings::new(&self.plan.config, self.updates, total_weight, loss_scale.scale);
            let report = self.attempt(&settings, size, sources, fill)?;
            let losses = self.losses(&report, total_weight)?;
            if report.norm.is_finite() || !loss_scale.fail() {
                return self.accept(&report, losses, loss_scale);
            }
        }
    }

    /// Runs the update up to its last step, one thread per device; returns the merged report.
    fn attempt<S: Send>(
        &mut self,
        settings: &Settings,
        size: usize,
        sources: &mut [S],
        fill: &Fill<'_, D, S>,
    ) -> Result<UpdateReport> {
        // Before any device takes part in an all-reduce: an allocation may wait for the kernels of other devices, and an all-reduce
        // there waits for this device.
        self.make_room(size)?;
        let (plan, num) = (&self.plan, self.replicas.len());
        let work = |i: usize, replica: &mut Replica<D>, source: &mut S| {
            let rows = share(size, i, num);
            replica.attempt(plan, settings, |device, samples| fill(source, device, samples, rows))
        };
        if let ([replica], [source]) = (self.replicas.as_mut_slice(), &mut *sources) {
            return work(0, replica, source);
        }
        // The first error is kept before the other devices are stopped, which makes them fail too.
        let first = Mutex::new(None);
        let stop_others = |error| {
            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        };
        let (work, stop_others) = (&work, &stop_others);
        let reports: Vec<Option<UpdateReport>> = std::thread::scope(|scope| {
            let pairs = self.replicas.iter_mut().zip(sources).enumerate();
            let attempt = |i: usize, replica: &mut Replica<D>, source: &mut S| {
                let guard = replica.guard_link();
                let report = work(i, replica, source).map_err(stop_others).ok();
                if let (Some(_), Some(guard)) = (&report, guard) {
                    guard.disarm();
                }
                report
            };
            let mut started = Vec::with_capacity(num);
            for (i, (replica, source)) in pairs {
                // Without its thread, a replica gives its link up, which ends the waits of the others.
                let guard = replica.guard_link();
                match threads::start(scope, "training on a device", move || attempt(i, replica, source)) {
                    Ok(thread) => {
                        guard.into_iter().for_each(LinkGuard::disarm);
                        started.push(thread);
                    }
                    Err(error) => stop_others(error),
                }
            }
            started.into_iter().map(threads::join).collect()
        });
        match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => UpdateReport::of_all(reports.into_iter().flatten()),
        }
    }

    fn losses(&self, report: &UpdateReport, total_weight: f64) -> Result<Losses> {
        let sums = LossSums {
            heads: vec![report.cross_entropy, report.squared_error],
            target_entropy: report.target_entropy,
            squared_error: report.squared_error,
        };
        Losses::new((&self.plan.model, &self.plan.config), &sums, total_weight, report.norm, self.updates)
    }

    /// Takes over the state after the update, which was made with `loss_scale`, if all of it is finite.
    fn accept(&mut self, report: &UpdateReport, losses: Losses, mut loss_scale: LossScale) -> Result<Losses> {
        let losses = losses.finite()?;
        let checks = [
            ("a running statistic of the network", report.bad_statistic),
            ("a weight after the update", report.bad_weight),
            ("a moment of the optimiser after the update", report.bad_moment),
        ];
        if let Some((what, _)) = checks.iter().find(|(_, bad)| *bad != 0.0) {
            return Err(Error::NotFinite { what: (*what).into(), value: f32::NAN });
        }
        self.replicas.iter_mut().for_each(Replica::accept);
        self.updates += 1;
        loss_scale.succeed();
        self.loss_scale = loss_scale;
        Ok(losses)
    }

    /// The present weights, by one copy to the host.
    ///
    /// # Errors
    /// Those of the device.
    pub fn weights(&self) -> Result<Weights> {
        let model = &self.plan.model;
        let parameters = self.replicas[0].state(model.num_parameters())?;
        let statistics = self.replicas[0].statistics(model.num_statistics())?;
        Ok(model.unflatten(&parameters, &statistics))
    }

    /// The gradient of the last update, flat as in [`Model::flatten`](crate::model::Model::flatten), times the loss scale.
    ///
    /// # Errors
    /// Those of the device.
    pub fn gradient(&self) -> Result<Vec<f32>> {
        self.replicas[0].gradient(self.plan.model.num_parameters())
    }

    /// Everything that the next step depends on in addition to the configuration, as [`Trainer::state`]; in half precision `loss_scale`
    /// too.
    ///
    /// # Errors
    /// Those of the device; [`Error::Unsupported`] where several devices do not hold the same bits any more.
    pub fn state(&self) -> Result<Weights> {
        let count = self.plan.model.num_parameters();
        let on = |replica: &Replica<D>| -> Result<TrainerSnapshot> {
            let all = replica.state(3 * count)?;
            Ok(TrainerSnapshot {
                parameters: all[..count].to_vec(),
                first: all[count..2 * count].to_vec(),
                second: all[2 * count..].to_vec(),
                statistics: replica.statistics(self.plan.model.num_statistics())?,
                updates: self.updates,
                loss_scale: self
                    .loss_scale
                    .is_dynamic()
                    .then_some((self.loss_scale.scale, self.loss_scale.age)),
            })
        };
        let snapshot = on(&self.replicas[0])?;
        for replica in &self.replicas[1..] {
            if on(replica)? != snapshot {
                return Err(UpdateReport::devices_differ("weights"));
            }
        }
        Ok(snapshot.to_arrays(&self.plan.model))
    }

    /// Takes over what [`DeviceTrainer::state`] or [`Trainer::state`] gave.
    ///
    /// # Errors
    /// As [`Trainer::restore`], and those of the device.
    pub fn restore(&mut self, state: &Weights) -> Result<()> {
        let snapshot = TrainerSnapshot::from_arrays(&self.plan.model, state)?;
        self.replicas.iter_mut().try_for_each(|replica| replica.restore(&snapshot))?;
        self.updates = snapshot.updates;
        self.loss_scale = LossScale::new(self.plan.config.precision);
        if let Some((scale, age)) = snapshot.loss_scale.filter(|_| self.loss_scale.is_dynamic()) {
            (self.loss_scale.scale, self.loss_scale.age) = (scale, age);
        }
        Ok(())
    }
}

/// The samples of device `i` of `num`, out of `size`.
fn share(size: usize, i: usize, num: usize) -> Range<usize> {
    size * i / num..size * (i + 1) / num
}

/// Writes some rows of a batch to a device's samples, out of that device's own source.
type Fill<'a, D, S> =
    dyn Fn(&mut S, &D, &mut Samples<<D as Device>::Buffer>, Range<usize>) -> Result<()> + Sync + 'a;

/// Refuses devices that are not all those of one link, in their order.
fn check_links<D: Device>(devices: &[LinkedDevice<D>]) -> Result<()> {
    let link = |device: &LinkedDevice<D>| device.sums.as_ref().map(|sums| (sums.rank(), sums.size()));
    let found: Vec<_> = devices.iter().map(link).collect();
    let alone = found == [None];
    let expected: Vec<_> = (0..devices.len()).map(|rank| Some((rank, devices.len()))).collect();
    if alone || (found == expected && !devices.is_empty()) {
        return Ok(());
    }
    let what = "ranks of devices that train together";
    Err(Error::mismatch(what, format_args!("{found:?}"), format_args!("{expected:?}")))
}
