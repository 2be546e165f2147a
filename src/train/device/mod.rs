//! The training step on a device: forward, losses, backward and optimiser as kernels (`kernels/train.cu`), for every network. The
//! passes of [`crate::net::ops`] and the losses and optimiser of [`super`] are the truth.
//!
//! Parameters, moments and statistics are 32-bit floats and stay on the device; activations, their gradients and the weights
//! that products read are in `train.precision`. Sums have a fixed order: a step is a function of the trainer's state and the
//! batch alone, to the bit, for one device and precision.

mod arrays;
mod graph; // what an edge network has besides
mod layers;
mod passes;
mod samples;
mod step;

use super::state::Snapshot;
use super::{Losses, TrainBatch, Trainer};
use crate::backend::kernels::device::{Arg, Device};
use crate::backend::kernels::source;
use crate::batch::AnyGame;
use crate::config::{TrainConfig, TrainPrecision};
use crate::error::{Error, Result};
use crate::net::ops::{Kind, Params};
use crate::net::spec::{NetSpec, Weights};
use crate::replay::{BatchPlan, Replay};
use arrays::Arrays;
pub use arrays::Samples;
pub use layers::{Layer, Layers, Mode, Shape};
use passes::{Pass, Shared, blocks, elementwise, warps};
pub use samples::{DeviceReplay, Residence};
use step::Settings;
pub use step::{LossScale, Report};

/// Numbers of the gradient that one block squares: `SQUARED` of kernels/train/optimizer.cuh.
const SQUARED: usize = 4096;
/// Threads of a block that sums for itself.
const BLOCK: u32 = 128;

/// A network in training on a device, with its optimiser.
pub struct DeviceTrainer<D: Device> {
    spec: NetSpec,
    config: TrainConfig,
    params: Params,
    layers: Layers,
    device: D,
    /// Parameters, first and second moments `[3, parameters]`, and those after the update.
    state: [D::Buffer; 2],
    /// Running means and variances, and those after the update.
    statistics: [D::Buffer; 2],
    /// 1 for parameters subject to weight decay, else 0.
    decayed: D::Buffer,
    /// Parts of the gradient's squares.
    squares: D::Buffer,
    shared: Shared<D::Buffer>,
    arrays: Option<Arrays<D::Buffer>>,
    updates: u64,
    loss_scale: LossScale,
}

/// Bytes of a number of activations.
fn element_bytes(precision: TrainPrecision) -> usize {
    match precision {
        TrainPrecision::F32 => 4,
        TrainPrecision::Bf16 | TrainPrecision::F16 => 2,
    }
}

impl<D: Device> DeviceTrainer<D> {
    /// A network at its first weights, which `seed` fixes, on `device`, which gets the kernels loaded; with those that gather
    /// samples of `game`, if there is one that has them.
    ///
    /// # Errors
    /// Those of [`NetSpec::check_graph`], and what the device says.
    pub fn new(
        device: D,
        spec: &NetSpec,
        config: &TrainConfig,
        game: Option<&dyn AnyGame>,
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
        mut device: D,
        spec: &NetSpec,
        config: &TrainConfig,
        game: Option<&dyn AnyGame>,
        state: &Weights,
    ) -> Result<Self> {
        let params = Params::new(spec);
        let layers = Layers::new(spec, &params)?;
        device.load(&source::training(game, config.precision)?)?;
        let mut decayed = vec![0.0f32; params.num_parameters];
        for slot in params.slots.iter().filter(|slot| slot.kind == Kind::Matrix) {
            decayed[slot.range.clone()].fill(1.0);
        }
        let shapes: Vec<Shape> = layers.linears().flat_map(|layer| [layer.forward, layer.backward]).collect();
        let count = params.num_parameters;
        let shared = Shared {
            shapes: uploaded(&device, &shapes)?,
            map: uploaded(&device, &layers.map)?,
            packed: device.alloc(layers.packed * element_bytes(config.precision))?,
            gradient: device.alloc(count * 4)?,
            settings: device.alloc(size_of::<Settings>())?,
            report: device.alloc(size_of::<Report>())?,
        };
        let room = |numbers: usize| -> Result<[D::Buffer; 2]> {
            Ok([device.alloc(numbers * 4)?, device.alloc(numbers * 4)?])
        };
        let mut trainer = Self {
            spec: spec.clone(),
            config: config.clone(),
            state: room(3 * count)?,
            statistics: room(params.num_statistics)?,
            decayed: uploaded(&device, &decayed)?,
            squares: device.alloc(count.div_ceil(SQUARED) * 8)?,
            shared,
            arrays: None,
            updates: 0,
            loss_scale: LossScale::new(config.precision),
            params,
            layers,
            device,
        };
        trainer.restore(state)?;
        Ok(trainer)
    }

    /// The network's sizes.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// Updates made so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The loss scale of the next update.
    pub fn loss_scale(&self) -> LossScale {
        self.loss_scale
    }

    /// The parameters on the device, flat as in [`Params`], moments behind them; valid until the next update.
    pub fn parameters(&self) -> &D::Buffer {
        &self.state[0]
    }

    /// The running statistics on the device, flat as in [`Params`]; valid until the next update.
    pub fn statistics(&self) -> &D::Buffer {
        &self.statistics[0]
    }

    /// One update, as [`Trainer::step`].
    ///
    /// # Errors
    /// As [`Trainer::step`], and what the device says.
    pub fn step(&mut self, batch: &TrainBatch) -> Result<Losses> {
        let rows = batch.check(&self.spec, self.config.accumulate)?;
        let part = rows / self.config.accumulate;
        self.resize(part)?;
        self.update(batch.total_weight(), |device, samples, number| {
            samples::upload(device, samples, batch, number * part..(number + 1) * part)
        })
    }

    /// One update on a batch drawn from `replay`, of which `samples` holds what the device needs, equal to that of [`Replay::batch`].
    ///
    /// # Errors
    /// As [`DeviceTrainer::step`].
    pub fn step_from(
        &mut self,
        samples: &mut DeviceReplay<D::Buffer>,
        replay: &Replay,
        plan: BatchPlan,
    ) -> Result<Losses> {
        let part = plan.size / self.config.accumulate;
        self.resize(part)?;
        self.update(plan.size as f64, |device, out, number| {
            samples.gather(device, replay, plan, number * part..(number + 1) * part, out)
        })
    }

    fn resize(&mut self, boards: usize) -> Result<()> {
        if self.arrays.as_ref().is_none_or(|arrays| arrays.boards != boards) {
            self.arrays = None;
            let bytes = element_bytes(self.config.precision);
            self.arrays = Some(Arrays::new(&self.device, &self.spec, &self.layers, boards, bytes)?);
        }
        Ok(())
    }

    /// One update on `train.accumulate` parts that `fill` writes.
    fn update(
        &mut self,
        total_weight: f64,
        mut fill: impl FnMut(&D, &mut Samples<D::Buffer>, usize) -> Result<()>,
    ) -> Result<Losses> {
        loop {
            let settings = Settings::new(&self.config, self.updates, total_weight, self.loss_scale.scale);
            self.device.upload(&mut self.shared.settings, 0, bytemuck::bytes_of(&settings))?;
            self.begin()?;
            for part in 0..self.config.accumulate {
                if let Some(arrays) = &mut self.arrays {
                    fill(&self.device, &mut arrays.samples, part)?;
                }
                self.run_part()?;
            }
            let report = self.finish()?;
            let losses = self.losses(&report, total_weight)?;
            if !report.norm.is_finite() && self.loss_scale.fail() {
                continue;
            }
            return self.accept(&report, losses);
        }
    }

    /// Zeroes sums and packs the weights.
    fn begin(&self) -> Result<()> {
        let args = [
            Arg::Buffer(&self.shared.gradient, 0),
            Arg::U32(self.params.num_parameters as u32),
            Arg::Buffer(&self.statistics[0], 0),
            Arg::Buffer(&self.statistics[1], 0),
            Arg::U32(self.params.num_statistics as u32),
            Arg::Buffer(&self.shared.report, 0),
        ];
        self.device.launch("begin_update", elementwise(self.params.num_parameters), &args)?;
        let args = [
            Arg::Buffer(&self.state[0], 0),
            Arg::Buffer(&self.shared.map, 0),
            Arg::U64(self.layers.packed as u64),
            Arg::Buffer(&self.shared.packed, 0),
        ];
        self.device.launch("pack_weights", elementwise(self.layers.packed), &args)
    }

    /// Forward, losses and backward of the part that is in the arrays.
    fn run_part(&self) -> Result<()> {
        let Some(arrays) = &self.arrays else { return Ok(()) };
        let pass = Pass {
            device: &self.device,
            layers: &self.layers,
            bytes: element_bytes(self.config.precision),
            state: &self.state[0],
            statistics: &self.statistics[1],
            shared: &self.shared,
            arrays,
        };
        pass.forward()?;
        let width = |layer: &Layer| Arg::U32(layer.positions as u32 * layer.forward.columns);
        let sizes = [arrays.boards, self.spec.num_actions, self.spec.num_players, self.spec.num_values()];
        let [rows, actions, players, outputs] = sizes.map(|n| Arg::U32(n as u32));
        let args = [
            Arg::Buffer(&self.shared.settings, 0),
            rows,
            actions,
            players,
            outputs,
            Arg::Buffer(&arrays.samples.policy, 0),
            Arg::Buffer(&arrays.samples.legal, 0),
            Arg::Buffer(&arrays.samples.values, 0),
            Arg::Buffer(&arrays.samples.weight, 0),
            Arg::Buffer(&arrays.logits, 0),
            width(&self.layers.policy),
            Arg::U32(self.logit_stride()),
            Arg::Buffer(&arrays.values, 0),
            width(&self.layers.values),
            Arg::Buffer(&arrays.d_logits, 0),
            Arg::Buffer(&arrays.d_values, 0),
            Arg::Buffer(&arrays.losses, 0),
        ];
        self.device.launch("sample_losses", warps(arrays.boards), &args)?;
        let args = [
            Arg::Buffer(&arrays.losses, 0),
            Arg::U32(arrays.boards as u32),
            Arg::Buffer(&self.shared.report, 0),
        ];
        self.device.launch("sum_losses", blocks(1, BLOCK), &args)?;
        pass.backward()
    }

    /// Numbers from one logit of a sample to the next: the columns of a layer that makes one at every position.
    fn logit_stride(&self) -> u32 {
        let policy = &self.layers.policy;
        if policy.positions > 1 { policy.forward.columns } else { 1 }
    }

    /// The optimiser, and what the update tells.
    fn finish(&self) -> Result<Report> {
        let count = self.params.num_parameters;
        let parts = count.div_ceil(SQUARED);
        let gradient = Arg::Buffer(&self.shared.gradient, 0);
        let args = [gradient, Arg::U32(count as u32), Arg::Buffer(&self.squares, 0)];
        self.device.launch("square_gradient", blocks(parts, BLOCK), &args)?;
        let args = [
            Arg::Buffer(&self.shared.settings, 0),
            Arg::Buffer(&self.squares, 0),
            Arg::U32(parts as u32),
            Arg::Buffer(&self.shared.report, 0),
        ];
        self.device.launch("measure_gradient", blocks(1, BLOCK), &args)?;
        let args = [
            Arg::Buffer(&self.shared.settings, 0),
            Arg::U32(count as u32),
            Arg::Buffer(&self.state[0], 0),
            Arg::Buffer(&self.shared.gradient, 0),
            Arg::Buffer(&self.decayed, 0),
            Arg::Buffer(&self.state[1], 0),
            Arg::Buffer(&self.shared.report, 0),
        ];
        self.device.launch("optimise", elementwise(count), &args)?;
        let mut report = Report::default();
        self.device.download(&self.shared.report, 0, bytemuck::bytes_of_mut(&mut report))?;
        Ok(report)
    }

    fn losses(&self, report: &Report, total_weight: f64) -> Result<Losses> {
        let sums = super::loss::LossSums {
            cross_entropy: report.cross_entropy,
            target_entropy: report.target_entropy,
            squared_error: report.squared_error,
        };
        Losses::new(&self.config, &sums, total_weight, report.norm, self.updates)
    }

    /// Takes over the state after the update, if all of it is finite.
    fn accept(&mut self, report: &Report, losses: Losses) -> Result<Losses> {
        let losses = losses.finite()?;
        let checks = [
            ("a running statistic of the network", report.bad_statistic),
            ("a weight after the update", report.bad_weight),
            ("a moment of the optimiser after the update", report.bad_moment),
        ];
        if let Some((what, _)) = checks.iter().find(|(_, bad)| *bad != 0.0) {
            return Err(Error::NotFinite { what: (*what).into(), value: f32::NAN });
        }
        self.state.swap(0, 1);
        self.statistics.swap(0, 1);
        self.updates += 1;
        self.loss_scale.succeed();
        Ok(losses)
    }

    /// The present weights, by one copy to the host.
    ///
    /// # Errors
    /// What the device says.
    pub fn weights(&self) -> Result<Weights> {
        let parameters = self.download(&self.state[0], self.params.num_parameters)?;
        let statistics = self.download(&self.statistics[0], self.params.num_statistics)?;
        Ok(self.params.unflatten(&parameters, &statistics))
    }

    /// The gradient of the last update, flat as in [`Params`], times the loss scale.
    ///
    /// # Errors
    /// What the device says.
    pub fn gradient(&self) -> Result<Vec<f32>> {
        self.download(&self.shared.gradient, self.params.num_parameters)
    }

    /// Everything that the next step depends on beside the configuration, as [`Trainer::state`]; in half precision `loss_scale`
    /// too.
    ///
    /// # Errors
    /// What the device says.
    pub fn state(&self) -> Result<Weights> {
        let count = self.params.num_parameters;
        let all = self.download(&self.state[0], 3 * count)?;
        let snapshot = Snapshot {
            parameters: all[..count].to_vec(),
            first: all[count..2 * count].to_vec(),
            second: all[2 * count..].to_vec(),
            statistics: self.download(&self.statistics[0], self.params.num_statistics)?,
            updates: self.updates,
            loss_scale: self.loss_scale.is_dynamic().then_some((self.loss_scale.scale, self.loss_scale.age)),
        };
        Ok(snapshot.to_arrays(&self.params))
    }

    /// Takes over what [`DeviceTrainer::state`] or [`Trainer::state`] gave.
    ///
    /// # Errors
    /// As [`Trainer::restore`], and what the device says.
    pub fn restore(&mut self, state: &Weights) -> Result<()> {
        let snapshot = Snapshot::from_arrays(&self.params, state)?;
        let all = [snapshot.parameters, snapshot.first, snapshot.second].concat();
        self.device.upload(&mut self.state[0], 0, bytemuck::cast_slice(&all))?;
        self.device.upload(&mut self.statistics[0], 0, bytemuck::cast_slice(&snapshot.statistics))?;
        self.updates = snapshot.updates;
        self.loss_scale = LossScale::new(self.config.precision);
        if let Some((scale, age)) = snapshot.loss_scale.filter(|_| self.loss_scale.is_dynamic()) {
            (self.loss_scale.scale, self.loss_scale.age) = (scale, age);
        }
        Ok(())
    }

    fn download(&self, buffer: &D::Buffer, numbers: usize) -> Result<Vec<f32>> {
        let mut out = vec![0.0; numbers];
        self.device.download(buffer, 0, bytemuck::cast_slice_mut(&mut out))?;
        Ok(out)
    }
}

/// A buffer with `data`.
fn uploaded<D: Device, T: bytemuck::Pod>(device: &D, data: &[T]) -> Result<D::Buffer> {
    let bytes: &[u8] = bytemuck::cast_slice(data);
    let mut buffer = device.alloc(bytes.len())?;
    device.upload(&mut buffer, 0, bytes)?;
    Ok(buffer)
}
