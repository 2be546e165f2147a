//! One device of those that train a network: its weights, optimiser and arrays, and its share of every batch.
//!
//! Several devices hold the same parameters, moments and statistics, to the bit. Each makes its rows of a batch; sums of batch
//! normalisation and the gradient are all-reduced, so that an update is that of one device but for the order of sums. All then make the same update by themselves.

use super::step::{LossBlock, Settings, UpdateReport};
use crate::batch::ErasedRules;
use crate::batch::programs::training;
use crate::config::{TrainConfig, TrainPrecision};
use crate::device::collective::{DataType, LinkedDevice};
use crate::device::{Arg, Device, Limits};
use crate::error::Result;
use crate::model::{Model, NetSpec};
use crate::net::gpu_train::arrays::{Samples, TrainArrays};
use crate::net::gpu_train::blocks::UpdateBlock;
use crate::net::gpu_train::constants::{BLOCK, SQUARED};
use crate::net::gpu_train::layers::{TrainLayer, TrainLayers};
use crate::net::gpu_train::passes::{PassBuffers, TrainPass, blocks, elementwise, warps};
use crate::net::gpu_train::process_group::{LinkGuard, ProcessGroup};
use crate::train::state::TrainerSnapshot;

/// The plan of an update, equal on all devices.
pub struct TrainPlan {
    pub spec: NetSpec,
    pub config: TrainConfig,
    pub model: Model,
    pub layers: TrainLayers,
}

/// A network in training on one device, with its optimiser.
pub struct Replica<D: Device> {
    /// The captured updates, for each of the two buffers that the state can be in. The first field, so that they are dropped before the
    /// program that they launch.
    graphs: [Option<D::Graph>; 2],
    pub device: D,
    limits: Limits,
    /// The others, where there are some.
    group: Option<ProcessGroup<D>>,
    /// Parameters, first and second moments `[3, parameters]`, and those after the update.
    state: [D::Buffer; 2],
    /// Running means and variances, and those after the update.
    statistics: [D::Buffer; 2],
    /// 1 for parameters subject to weight decay, else 0.
    decayed: D::Buffer,
    /// Parts of the gradient's squares.
    squares: D::Buffer,
    shared: PassBuffers<D::Buffer>,
    arrays: Option<TrainArrays<D::Buffer>>,
    /// Index of the captured update for the present state: the two are exchanged whenever the buffers of the state are.
    turn: usize,
    /// True once all kernels of an update have been launched.
    is_warm: bool,
}

impl<D: Device> Replica<D> {
    /// Allocates the arrays on the device, which hold nothing yet, and loads the kernels.
    ///
    /// # Errors
    /// Those of the device; so for all below.
    pub fn new(linked: LinkedDevice<D>, plan: &TrainPlan, game: Option<&dyn ErasedRules>) -> Result<Self> {
        let LinkedDevice { mut device, sums } = linked;
        let TrainPlan { config, model, layers, .. } = plan;
        let limits = device.limits()?;
        if config.precision == TrainPrecision::Bf16 && limits.capability < 80 {
            tracing::warn!("this GPU's tensor cores have no bf16: train.precision = \"f16\" is faster on it");
        }
        device.load(&training(game, config.precision)?)?;
        let shapes: Vec<_> = layers.linears().flat_map(|layer| [layer.forward, layer.backward]).collect();
        let count = model.num_parameters();
        let shared = PassBuffers {
            shapes: uploaded(&device, &shapes)?,
            map: uploaded(&device, &layers.map)?,
            packed: device.alloc(layers.packed * element_bytes(config.precision))?,
            gradient: device.alloc(count * 4)?,
            settings: device.alloc(size_of::<Settings>())?,
            report: device.alloc(size_of::<UpdateReport>())?,
        };
        let pair = |numbers: usize| -> Result<[D::Buffer; 2]> {
            Ok([device.alloc(numbers * 4)?, device.alloc(numbers * 4)?])
        };
        Ok(Self {
            state: pair(3 * count)?,
            statistics: pair(model.num_statistics())?,
            decayed: uploaded(&device, &model.decay_mask())?,
            squares: device.alloc(count.div_ceil(SQUARED) * 8)?,
            group: sums.map(|sums| ProcessGroup::new(&device, layers, sums)).transpose()?,
            shared,
            arrays: None,
            graphs: Default::default(),
            turn: 0,
            is_warm: false,
            limits,
            device,
        })
    }

    /// All but the last step of an update on the samples that there is room for, which `fill` writes: the state after it is stored next to
    /// the one before, and the statistics of the update are downloaded.
    pub fn attempt(
        &mut self,
        plan: &TrainPlan,
        settings: &Settings,
        fill: impl FnOnce(&D, &mut Samples<D::Buffer>) -> Result<()>,
    ) -> Result<UpdateReport> {
        self.device.upload(&mut self.shared.settings, 0, bytemuck::bytes_of(settings))?;
        if let Some(arrays) = &mut self.arrays {
            fill(&self.device, &mut arrays.samples)?;
        }
        self.run(plan)?;
        self.is_warm = true;
        let mut report = UpdateReport::default();
        self.device.download(&self.shared.report, 0, bytemuck::bytes_of_mut(&mut report))?;
        Ok(report)
    }

    /// Makes the launches of an update: as a captured graph, once all kernels have been launched, unless they contain an all-reduce or
    /// are to be made one by one.
    fn run(&mut self, plan: &TrainPlan) -> Result<()> {
        if !self.is_warm || self.group.is_some() || !self.device.may_capture() {
            return self.launch(plan);
        }
        let graph = match self.graphs[self.turn].take() {
            Some(graph) => graph,
            None => self.capture(plan)?,
        };
        self.device.launch_graph(&graph)?;
        self.graphs[self.turn] = Some(graph);
        Ok(())
    }

    /// Captures an update. A capture that fails is ended as well.
    fn capture(&mut self, plan: &TrainPlan) -> Result<D::Graph> {
        self.device.begin_capture()?;
        let launched = self.launch(plan);
        let graph = self.device.end_capture();
        launched.and(graph)
    }

    fn launch(&mut self, plan: &TrainPlan) -> Result<()> {
        self.begin(plan)?;
        self.differentiate(plan)?;
        self.sum_gradients(plan)?;
        self.optimise(plan)
    }

    /// Ends the sums of all devices when it is dropped, unless the update succeeded.
    pub fn guard_link(&self) -> Option<LinkGuard<D>> {
        self.group.as_ref().map(ProcessGroup::guard_link)
    }

    /// Makes the state after the update the current one.
    pub fn accept(&mut self) {
        self.state.swap(0, 1);
        self.statistics.swap(0, 1);
        self.turn = 1 - self.turn;
    }

    /// Makes room for `boards` samples of an update.
    pub fn resize(&mut self, plan: &TrainPlan, boards: usize) -> Result<()> {
        if self.arrays.as_ref().is_none_or(|arrays| arrays.boards != boards) {
            self.graphs = Default::default();
            self.arrays = None;
            let bytes = element_bytes(plan.config.precision);
            self.arrays = Some(TrainArrays::new(&self.device, &plan.spec, &plan.layers, boards, bytes)?);
        }
        Ok(())
    }

    /// The block of the kernels that begin and end an update.
    fn update_block(&self, plan: &TrainPlan) -> UpdateBlock {
        let address = |buffer| self.device.address(buffer);
        let count = plan.model.num_parameters();
        UpdateBlock {
            settings: address(&self.shared.settings),
            from: address(&self.state[0]),
            to: address(&self.state[1]),
            decayed: address(&self.decayed),
            gradient: address(&self.shared.gradient),
            squares: address(&self.squares),
            old_statistics: address(&self.statistics[0]),
            new_statistics: address(&self.statistics[1]),
            report: address(&self.shared.report),
            num_parameters: count as u32,
            num_statistics: plan.model.num_statistics() as u32,
            num_parts: count.div_ceil(SQUARED) as u32,
            padding: 0,
        }
    }

    /// Zeroes sums and packs the weights.
    fn begin(&self, plan: &TrainPlan) -> Result<()> {
        let block = self.update_block(plan);
        self.device.launch("begin_update", elementwise(plan.model.num_parameters()), &[Arg::of(&block)])?;
        let args = [
            Arg::Buffer(&self.state[0], 0),
            Arg::Buffer(&self.shared.map, 0),
            Arg::U64(plan.layers.packed as u64),
            Arg::Buffer(&self.shared.packed, 0),
        ];
        self.device.launch("pack_weights", elementwise(plan.layers.packed), &args)
    }

    /// Forward, losses and backward of the samples in the arrays.
    fn differentiate(&self, plan: &TrainPlan) -> Result<()> {
        let Some(arrays) = &self.arrays else { return Ok(()) };
        let pass = TrainPass {
            device: &self.device,
            limits: self.limits,
            layers: &plan.layers,
            bytes: element_bytes(plan.config.precision),
            state: &self.state[0],
            statistics: &self.statistics[1],
            shared: &self.shared,
            group: self.group.as_ref(),
            arrays,
        };
        pass.forward()?;
        let width = |layer: &TrainLayer| layer.positions as u32 * layer.forward.columns;
        let address = |buffer| self.device.address(buffer);
        let samples = &arrays.samples;
        let block = LossBlock {
            settings: address(&self.shared.settings),
            target_policy: address(&samples.policy),
            legal: address(&samples.legal),
            target_values: address(&samples.values),
            weight: address(&samples.weight),
            logits: address(&arrays.logits),
            values: address(&arrays.values),
            d_logits: address(&arrays.d_logits),
            d_values: address(&arrays.d_values),
            losses: address(&arrays.losses),
            rows: arrays.boards as u32,
            actions: plan.spec.num_actions as u32,
            players: plan.spec.num_players as u32,
            outputs: plan.spec.num_values() as u32,
            logit_width: width(&plan.layers.policy),
            layout: plan.layers.logits,
            value_width: width(&plan.layers.values),
        };
        self.device.launch("sample_losses", warps(arrays.boards), &[Arg::of(&block)])?;
        let args = [
            Arg::Buffer(&arrays.losses, 0),
            Arg::U32(arrays.boards as u32),
            Arg::Buffer(&self.shared.report, 0),
        ];
        self.device.launch("sum_losses", blocks(1, BLOCK), &args)?;
        pass.backward()
    }

    /// Sums the gradients of all devices.
    fn sum_gradients(&mut self, plan: &TrainPlan) -> Result<()> {
        let Some(group) = &self.group else { return Ok(()) };
        let count = plan.model.num_parameters();
        group.sums.all_reduce_sum(&self.device, &mut self.shared.gradient, DataType::F32, count)
    }

    /// The gradient's norm, and the state after the update.
    fn optimise(&self, plan: &TrainPlan) -> Result<()> {
        let count = plan.model.num_parameters();
        let block = self.update_block(plan);
        let args = [Arg::of(&block)];
        self.device.launch("square_gradient", blocks(block.num_parts as usize, BLOCK), &args)?;
        self.device.launch("measure_gradient", blocks(1, BLOCK), &args)?;
        self.device.launch("optimise", elementwise(count), &args)
    }

    /// Takes over a state.
    pub fn restore(&mut self, snapshot: &TrainerSnapshot) -> Result<()> {
        let parts = [&snapshot.parameters, &snapshot.first, &snapshot.second];
        for (number, part) in parts.into_iter().enumerate() {
            let at = 4 * number * snapshot.parameters.len();
            self.device.upload(&mut self.state[0], at, bytemuck::cast_slice(part))?;
        }
        self.device.upload(&mut self.statistics[0], 0, bytemuck::cast_slice(&snapshot.statistics))
    }

    /// The parameters, or all of the state: the first `numbers`.
    pub fn state(&self, numbers: usize) -> Result<Vec<f32>> {
        self.download(&self.state[0], numbers)
    }

    /// Running means and variances.
    pub fn statistics(&self, numbers: usize) -> Result<Vec<f32>> {
        self.download(&self.statistics[0], numbers)
    }

    /// The gradient of the last update, times the loss scale.
    pub fn gradient(&self, numbers: usize) -> Result<Vec<f32>> {
        self.download(&self.shared.gradient, numbers)
    }

    fn download(&self, buffer: &D::Buffer, numbers: usize) -> Result<Vec<f32>> {
        let mut out = vec![0.0; numbers];
        self.device.download(buffer, 0, bytemuck::cast_slice_mut(&mut out))?;
        Ok(out)
    }
}

/// A buffer with `data`.
fn uploaded<D: Device, T: bytemuck::NoUninit>(device: &D, data: &[T]) -> Result<D::Buffer> {
    let bytes: &[u8] = bytemuck::cast_slice(data);
    let mut buffer = device.alloc(bytes.len())?;
    device.upload(&mut buffer, 0, bytes)?;
    Ok(buffer)
}

/// Bytes of a number of activations.
fn element_bytes(precision: TrainPrecision) -> usize {
    match precision {
        TrainPrecision::F32 => 4,
        TrainPrecision::Bf16 | TrainPrecision::F16 => 2,
    }
}
