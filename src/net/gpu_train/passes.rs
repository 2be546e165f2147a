//! Forward and backward through all layers: one launcher for each kernel of `kernels/train.cu`, of the same name, and their
//! order.

use super::arrays::{TrainArrays, chunk_rows};
use super::blocks::{Activation, LinearBlock, NormBlock, WeightGradientBlock};
use super::constants::{BLOCK, GROUP, VEC};
use super::layers::{LinearShape, Norm, TrainLayers};
use super::process_group::ProcessGroup;
use super::tiling::{Tiling, splits};
use crate::device::{Arg, Device, LaunchShape, Limits, WARP};
use crate::error::Result;
use crate::model::ResidualGrad;

/// Vectors of a thread of an elementwise kernel at least, and blocks at most.
const VECTORS: usize = 4;
const MAX_BLOCKS: usize = 4096;

/// The arrays that all passes share.
pub struct PassBuffers<B> {
    /// `LinearShape`s: forward and backward of every layer in order.
    pub shapes: B,
    /// [`TrainLayers::map`]
    pub map: B,
    /// Packed weights.
    pub packed: B,
    /// Gradient of the parameters.
    pub gradient: B,
    /// The parameters of an update.
    pub settings: B,
    /// The statistics that devices exchange.
    pub report: B,
}

/// One pass over the device's samples.
pub struct TrainPass<'a, D: Device> {
    /// The device, with the program loaded.
    pub device: &'a D,
    /// Its limits.
    pub limits: Limits,
    /// The network.
    pub layers: &'a TrainLayers,
    /// Bytes of a number of activations and packed weights.
    pub bytes: usize,
    /// Parameters, then moments.
    pub state: &'a D::Buffer,
    /// Running statistics, being moved.
    pub statistics: &'a D::Buffer,
    /// The arrays that all passes share.
    pub shared: &'a PassBuffers<D::Buffer>,
    /// The arrays that this pass writes.
    pub arrays: &'a TrainArrays<D::Buffer>,
    /// The other devices, whose rows normalisations are of too, where there are some.
    pub group: Option<&'a ProcessGroup<D>>,
}

/// How the gradient of a layer's input is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InputGradient {
    /// It replaces the array.
    Written,
    /// It is added to what the array has.
    Added,
}

/// Ping-pong buffers of the gradients of activations: a unit reads `d` and writes `next`, and then they are exchanged.
struct GradBuffers<'a, B> {
    d: &'a B,
    next: &'a B,
}

/// The launch of an elementwise kernel for `numbers` numbers.
pub fn elementwise(numbers: usize) -> LaunchShape {
    let grid = numbers.div_ceil(VEC * VECTORS * BLOCK as usize).clamp(1, MAX_BLOCKS);
    LaunchShape { grid: grid as u32, block: BLOCK, shared: 0 }
}

/// The launch of `num` blocks of `block` threads.
pub fn blocks(num: usize, block: u32) -> LaunchShape {
    LaunchShape { grid: num as u32, block, shared: 0 }
}

/// The launch of the kernels that sum columns over chunks of rows.
fn chunks_of_columns(rows: usize, width: usize) -> LaunchShape {
    blocks(rows.div_ceil(chunk_rows(rows)) * width.div_ceil(GROUP), BLOCK)
}

/// The launch of `num` warps.
pub fn warps(num: usize) -> LaunchShape {
    blocks(num.div_ceil(BLOCK as usize / WARP), BLOCK)
}

impl<D: Device> TrainPass<'_, D> {
    fn launch(&self, kernel: &'static str, shape: LaunchShape, args: &[Arg<'_, D::Buffer>]) -> Result<()> {
        self.device.launch(kernel, shape, args)
    }

    /// The address of an array on the device.
    pub(super) fn address(&self, buffer: &D::Buffer) -> u64 {
        self.device.address(buffer)
    }

    /// Rows of the tower.
    fn rows(&self) -> usize {
        self.arrays.boards * self.layers.area
    }

    /// Logits and values of the samples, normalised by their own statistics.
    ///
    /// # Errors
    /// Those of the device; so for all below.
    pub fn forward(&self) -> Result<()> {
        let (layers, arrays) = (self.layers, self.arrays);
        self.take_observations()?;
        self.linear_forward(0, &arrays.obs, None, &arrays.activations[0])?;
        for (number, unit) in layers.units.iter().enumerate() {
            self.normalise(number)?;
            let skipped = unit.skips.then(|| &arrays.activations[number - 1]);
            let sent = match self.on_graph() {
                Some(on) => self.edge_network_forward(on, number)?,
                None => None,
            };
            let out = &arrays.activations[number + 1];
            self.linear_forward(number + 1, self.input_of(number), skipped.or(sent), out)?;
        }
        let last = layers.units.len();
        self.normalise(last)?;
        let tail = &arrays.active[last];
        self.linear_outputs(last + 1, tail, &arrays.logits)?;
        if let Some(on) = self.on_graph() {
            self.pool(tail, &on.arrays().pooled)?;
        }
        self.linear_forward(last + 2, self.value_input(), None, &arrays.hidden)?;
        self.linear_outputs(last + 3, &arrays.hidden, &arrays.values)
    }

    /// The input of the layer of unit `number`.
    fn input_of(&self, number: usize) -> &D::Buffer {
        match &self.arrays.graph {
            Some(graph) if number % 2 == 1 => &graph.mixed[number / 2],
            _ => &self.arrays.active[number],
        }
    }

    /// The input of the value head's hidden layer.
    fn value_input(&self) -> &D::Buffer {
        self.arrays.graph.as_ref().map_or(&self.arrays.active[self.layers.units.len()], |graph| &graph.pooled)
    }

    /// Adds the gradient of the parameters to the shared one, given those of logits and values.
    pub fn backward(&self) -> Result<()> {
        let arrays = self.arrays;
        let last = self.layers.units.len();
        let mut flow = GradBuffers { d: &arrays.d, next: &arrays.next };
        self.backward_heads(flow.d)?;
        self.norm_gradient_sums(last, flow.d)?;
        for number in (0..last).rev() {
            let dy = self.output_gradient(number + 1, flow.d)?;
            self.layer_gradient(number + 1, self.input_of(number), dy)?;
            match self.on_graph() {
                Some(on) => self.edge_network_backward(on, number, dy, flow.next)?,
                None => self.linear_backward(number + 1, dy, InputGradient::Written, None, flow.next)?,
            }
            self.norm_gradient_sums(number, flow.next)?;
            flow = GradBuffers { d: flow.next, next: flow.d };
        }
        let dy = self.output_gradient(0, flow.d)?;
        self.layer_gradient(0, &arrays.obs, dy)
    }

    /// Backward pass of the heads: the gradient `d` of the tail.
    fn backward_heads(&self, d: &D::Buffer) -> Result<()> {
        let (layers, arrays) = (self.layers, self.arrays);
        let last = layers.units.len();
        self.layer_gradient(last + 3, &arrays.hidden, &arrays.d_values)?;
        let mask = Some(&arrays.hidden);
        self.linear_backward(last + 3, &arrays.d_values, InputGradient::Written, mask, &arrays.d_hidden)?;
        self.layer_gradient(last + 2, self.value_input(), &arrays.d_hidden)?;
        match self.on_graph().map(|on| &on.arrays().d_pooled) {
            Some(d_pooled) => {
                self.linear_backward(last + 2, &arrays.d_hidden, InputGradient::Written, None, d_pooled)?;
                self.spread(d_pooled, d)?;
            }
            None => self.linear_backward(last + 2, &arrays.d_hidden, InputGradient::Written, None, d)?,
        }
        self.layer_gradient(last + 1, &arrays.active[last], &arrays.d_logits)?;
        // Both heads of all but a residual network read the same columns.
        let same_columns = layers.policy.forward.x_offset == layers.hidden.forward.x_offset;
        let input_gradient = if same_columns { InputGradient::Added } else { InputGradient::Written };
        self.linear_backward(last + 1, &arrays.d_logits, input_gradient, None, d)
    }

    /// The gradient of the output number `number` of the tower, out of that of the ReLU of the normalisation above it.
    fn output_gradient(&self, number: usize, d: &D::Buffer) -> Result<&D::Buffer> {
        let arrays = self.arrays;
        let residual_grad = ResidualGrad::of_output(number, self.layers.blocks);
        let out = if residual_grad == ResidualGrad::None { &arrays.dy } else { &arrays.stream };
        let norm = self.norm(number);
        let residual = match residual_grad {
            ResidualGrad::Accumulate => self.address(&arrays.stream),
            ResidualGrad::None | ResidualGrad::Start => 0,
        };
        let block =
            NormBlock { d: self.address(d), residual, out: self.address(out), ..self.norm_block(number) };
        self.launch("norm_gradient", elementwise(self.rows() * norm.width), &[Arg::of(&block)])?;
        Ok(out)
    }

    /// The block of the normalisation above output `number` of the tower: its input, statistics and maps.
    fn norm_block(&self, number: usize) -> NormBlock {
        let (arrays, norm, rows) = (self.arrays, self.norm(number), self.rows());
        let (device, devices) = self.group.map_or((0, 1), |group| (group.sums.rank(), group.sums.size()));
        NormBlock {
            x: self.address(&arrays.activations[number]),
            d: 0,
            residual: 0,
            out: 0,
            parts: self.address(&arrays.parts),
            maps: self.address(&self.shared.map) + norm.maps as u64 * 4,
            parameters: self.address(self.state),
            running: self.address(self.statistics),
            stats: self.address(&arrays.norm_statistics[number]),
            sync_stats: self.group.map_or(0, |group| self.address(&group.statistics.borrow())),
            gradient: self.address(&self.shared.gradient),
            report: self.address(&self.shared.report),
            rows: rows as u32,
            chunk_rows: chunk_rows(rows) as u32,
            width: norm.width as u32,
            device: device as u32,
            devices: devices as u32,
            padding: 0,
        }
    }

    /// The normalisation above the output number `number` of the tower.
    fn norm(&self, number: usize) -> Norm {
        self.layers.units.get(number).map_or(self.layers.tail, |unit| unit.norm)
    }

    /// The address of the shape of layer `number`, 0: forward, 1: backward.
    fn shape_of(&self, number: usize, direction: usize) -> u64 {
        self.address(&self.shared.shapes) + ((2 * number + direction) * size_of::<LinearShape>()) as u64
    }

    fn weights(&self, first: usize) -> u64 {
        self.address(&self.shared.packed) + (first * self.bytes) as u64
    }

    fn take_observations(&self) -> Result<()> {
        let (channels, width) = self.layers.obs;
        let sizes = [self.arrays.boards, channels, self.layers.area, width].map(|n| Arg::U32(n as u32));
        let [boards, channels, area, wide] = sizes;
        let obs = Arg::Buffer(&self.arrays.samples.obs, 0);
        let args = [obs, boards, channels, area, wide, Arg::Buffer(&self.arrays.obs, 0)];
        self.launch("take_observations", elementwise(self.rows() * width), &args)
    }

    /// Launches a linear layer of `shape` with the tiling that suits its rows.
    fn launch_product(&self, shape: &LinearShape, block: &LinearBlock) -> Result<()> {
        let rows = block.rows as usize;
        let tiling = Tiling::of_product(shape, rows, self.bytes, self.limits);
        self.launch(tiling.linear_kernel(), tiling.product(shape, rows, self.bytes), &[Arg::of(block)])
    }

    /// The block of layer `number`'s forward on `x`, without an output yet.
    fn forward_block(&self, number: usize, x: &D::Buffer) -> LinearBlock {
        let layer = self.layers.linear(number);
        let bias = layer.bias.map_or(0, |(first, _)| self.address(self.state) + first as u64 * 4);
        LinearBlock {
            shape: self.shape_of(number, 0),
            x: self.address(x),
            weights: self.weights(layer.weights.start),
            bias,
            residual: 0,
            relu_mask: 0,
            out: 0,
            outputs: 0,
            rows: (self.arrays.boards * layer.positions) as u32,
            activation: Activation::Identity,
        }
    }

    /// `out = x W + bias (+ added)`; the hidden layer of the values has a ReLU.
    pub(super) fn linear_forward(
        &self,
        number: usize,
        x: &D::Buffer,
        added: Option<&D::Buffer>,
        out: &D::Buffer,
    ) -> Result<()> {
        let is_hidden = number == self.layers.units.len() + 2;
        let block = LinearBlock {
            residual: added.map_or(0, |added| self.address(added)),
            out: self.address(out),
            activation: if is_hidden { Activation::Relu } else { Activation::Identity },
            ..self.forward_block(number, x)
        };
        self.launch_product(&self.layers.linear(number).forward, &block)
    }

    /// The same in 32-bit floats.
    fn linear_outputs(&self, number: usize, x: &D::Buffer, out: &D::Buffer) -> Result<()> {
        let block = LinearBlock { outputs: self.address(out), ..self.forward_block(number, x) };
        let shape = &self.layers.linear(number).forward;
        let launch = Tiling::Narrow.product(shape, block.rows as usize, self.bytes);
        self.launch("linear_outputs", launch, &[Arg::of(&block)])
    }

    /// `dx = dy W^T`.
    pub(super) fn linear_backward(
        &self,
        number: usize,
        dy: &D::Buffer,
        input_gradient: InputGradient,
        relu_mask: Option<&D::Buffer>,
        dx: &D::Buffer,
    ) -> Result<()> {
        let layer = self.layers.linear(number);
        let dx = self.address(dx);
        let block = LinearBlock {
            shape: self.shape_of(number, 1),
            x: self.address(dy),
            weights: self.weights(layer.transposed.start),
            bias: 0,
            residual: if input_gradient == InputGradient::Added { dx } else { 0 },
            relu_mask: relu_mask.map_or(0, |mask| self.address(mask)),
            out: dx,
            outputs: 0,
            rows: (self.arrays.boards * layer.sources) as u32,
            activation: Activation::Identity,
        };
        self.launch_product(&layer.backward, &block)
    }

    /// Adds a layer's gradient, out of its input and its output's gradient.
    pub(super) fn layer_gradient(&self, number: usize, x: &D::Buffer, dy: &D::Buffer) -> Result<()> {
        let layer = self.layers.linear(number);
        let rows = self.arrays.boards * layer.positions;
        let shape = &layer.forward;
        let (splits, tiling) = (splits(shape, rows), Tiling::of_gradient(shape));
        let block = WeightGradientBlock {
            shape: self.shape_of(number, 0),
            x: self.address(x),
            dy: self.address(dy),
            parts: self.address(&self.arrays.parts),
            rows: rows as u32,
            splits: splits as u32,
        };
        let launch = tiling.gradient(shape, splits, self.bytes);
        self.launch(tiling.gradient_kernel(), launch, &[Arg::of(&block)])?;
        self.sum_parts(splits, layer.weights.len(), layer.weights.start)?;
        let Some((_, map)) = layer.bias else { return Ok(()) };
        let columns = shape.columns as usize;
        let (chunk, parts) = (chunk_rows(rows), Arg::Buffer(&self.arrays.parts, 0));
        let [all, each, width] = [rows, chunk, columns].map(|n| Arg::U32(n as u32));
        let args = [Arg::Buffer(dy, 0), all, each, width, parts];
        self.launch("sum_columns", chunks_of_columns(rows, columns), &args)?;
        let chunks = rows.div_ceil(chunk);
        self.sum_parts(chunks, columns, map)
    }

    /// Adds the sums of `num` parts of `count` numbers to the elements of the gradient that the map names from `map` on.
    fn sum_parts(&self, num: usize, count: usize, map: usize) -> Result<()> {
        let args = [
            Arg::Buffer(&self.arrays.parts, 0),
            Arg::U32(num as u32),
            Arg::U32(count as u32),
            Arg::Buffer(&self.shared.map, map * 4),
            Arg::Buffer(&self.shared.gradient, 0),
        ];
        // A thread for each number: its loads depend on each other.
        self.launch("sum_parts", elementwise(count * VEC * VECTORS), &args)
    }

    /// Normalisation and ReLU of output number `number` of the tower.
    fn normalise(&self, number: usize) -> Result<()> {
        let (rows, norm) = (self.rows(), self.norm(number));
        let block = NormBlock { out: self.address(&self.arrays.active[number]), ..self.norm_block(number) };
        self.launch("norm_moments", chunks_of_columns(rows, norm.width), &[Arg::of(&block)])?;
        match self.group {
            None => self.launch("norm_prepare", warps(norm.width), &[Arg::of(&block)])?,
            Some(group) => {
                self.exchange("norm_local_moments", &block, group)?;
                let shape = blocks(norm.width.div_ceil(BLOCK as usize), BLOCK);
                self.launch("norm_prepare_synced", shape, &[Arg::of(&block)])?;
            }
        }
        self.launch("norm_relu", elementwise(rows * norm.width), &[Arg::of(&block)])
    }

    /// The backward statistics of normalisation number `number`, and the gradients of its weights.
    fn norm_gradient_sums(&self, number: usize, d: &D::Buffer) -> Result<()> {
        let (rows, norm) = (self.rows(), self.norm(number));
        let block = NormBlock { d: self.address(d), ..self.norm_block(number) };
        self.launch("norm_gradient_sums", chunks_of_columns(rows, norm.width), &[Arg::of(&block)])?;
        let Some(group) = self.group else {
            return self.launch("norm_gradient_prepare", warps(norm.width), &[Arg::of(&block)]);
        };
        self.exchange("norm_local_gradient_sums", &block, group)?;
        let shape = blocks(norm.width.div_ceil(BLOCK as usize), BLOCK);
        self.launch("norm_gradient_prepare_synced", shape, &[Arg::of(&block)])
    }

    /// Writes this device's statistics by `kernel` and exchanges them with all devices.
    fn exchange(&self, kernel: &'static str, block: &NormBlock, group: &ProcessGroup<D>) -> Result<()> {
        let width = block.width as usize;
        self.launch(kernel, warps(width), &[Arg::of(block)])?;
        group.all_reduce(self.device, width)
    }
}
