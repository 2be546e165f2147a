//! Forward and backward through all layers: one launcher for each kernel of `kernels/train.cu`, of the same name, and their
//! order.

use super::arrays::{TrainArrays, chunk_rows};
use super::constants::{BLOCK, GROUP, VEC};
use super::layers::{LinearShape, Norm, TrainLayer, TrainLayers};
use super::process_group::ProcessGroup;
use super::tiling::{Tiling, splits};
use crate::backend::kernels::device::{Arg, Device, LaunchShape, Limits, WARP};
use crate::error::Result;

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
    /// What is new in an update.
    pub settings: B,
    /// The statistics that devices exchange.
    pub report: B,
}

/// One pass over one part of a batch.
pub struct TrainPass<'a, D: Device> {
    /// The device, with the program loaded.
    pub device: &'a D,
    /// What it has.
    pub limits: Limits,
    /// The network.
    pub layers: &'a TrainLayers,
    /// Bytes of a number of activations and packed weights.
    pub bytes: usize,
    /// Parameters, then moments.
    pub state: &'a D::Buffer,
    /// Running statistics, being moved.
    pub statistics: &'a D::Buffer,
    /// What passes share.
    pub shared: &'a PassBuffers<D::Buffer>,
    /// What this pass writes.
    pub arrays: &'a TrainArrays<D::Buffer>,
    /// The other devices, whose rows normalisations are of too, where there are some.
    pub group: Option<&'a ProcessGroup<D>>,
}

/// What a layer's output is to the gradient of the residual stream in the backward pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResidualGrad {
    /// Nothing: the output is not added to the stream.
    None,
    /// The output is the last one added: the stream's gradient starts here.
    Start,
    /// The output is added to the stream: its gradient accumulates here.
    Accumulate,
}

/// Ping-pong buffers of the gradients of activations: a unit reads `d` and writes `next`, and then they are exchanged.
struct GradBuffers<'a, B> {
    d: &'a B,
    next: &'a B,
}

fn norm_width<'a, B>(norm: Norm) -> Arg<'a, B> {
    Arg::U32(norm.width as u32)
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

/// The launch of `num` warps.
pub fn warps(num: usize) -> LaunchShape {
    blocks(num.div_ceil(BLOCK as usize / WARP), BLOCK)
}

impl<D: Device> TrainPass<'_, D> {
    fn launch(&self, kernel: &'static str, shape: LaunchShape, args: &[Arg<'_, D::Buffer>]) -> Result<()> {
        self.device.launch(kernel, shape, args)
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
            let input = self.input_of(number);
            match (skipped, &unit.pooled[1]) {
                (Some(residual), Some(scale)) => self.linear_with_scale(number, scale, [input, residual])?,
                _ => {
                    let out = &arrays.activations[number + 1];
                    self.linear_forward(number + 1, input, skipped.or(sent), out)?;
                }
            }
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

    /// What the layer of unit `number` reads.
    fn input_of(&self, number: usize) -> &D::Buffer {
        match &self.arrays.graph {
            Some(graph) if number % 2 == 1 => &graph.mixed[number / 2],
            _ => &self.arrays.active[number],
        }
    }

    /// What the hidden layer of the values reads.
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
            let dy = self.scale_backward(number, self.output_gradient(number + 1, flow.d)?)?;
            self.layer_gradient(number + 1, self.input_of(number), dy)?;
            match self.on_graph() {
                Some(on) => self.edge_network_backward(on, number, dy, flow.next)?,
                None => self.linear_backward(number + 1, dy, 0, None, flow.next)?,
            }
            if let Some(bias) = self.bias_of(number) {
                self.bias_backward(number, bias, flow.next)?;
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
        self.linear_backward(last + 3, &arrays.d_values, 0, Some(&arrays.hidden), &arrays.d_hidden)?;
        self.layer_gradient(last + 2, self.value_input(), &arrays.d_hidden)?;
        match self.on_graph().map(|on| &on.arrays().d_pooled) {
            Some(d_pooled) => {
                self.linear_backward(last + 2, &arrays.d_hidden, 0, None, d_pooled)?;
                self.spread(d_pooled, d)?;
            }
            None => self.linear_backward(last + 2, &arrays.d_hidden, 0, None, d)?,
        }
        self.layer_gradient(last + 1, &arrays.active[last], &arrays.d_logits)?;
        // Both heads of all but a residual network read the same columns.
        let adds = u32::from(layers.policy.forward.x_offset == layers.hidden.forward.x_offset);
        self.linear_backward(last + 1, &arrays.d_logits, adds, None, d)
    }

    /// The gradient of the output number `number` of the tower, out of that behind the ReLU of the normalisation above it.
    fn output_gradient(&self, number: usize, d: &D::Buffer) -> Result<&D::Buffer> {
        let (arrays, stream_end) = (self.arrays, 2 * self.layers.blocks);
        let residual_grad = match number {
            above if above > stream_end || above % 2 == 1 => ResidualGrad::None,
            above if above == stream_end => ResidualGrad::Start,
            _ => ResidualGrad::Accumulate,
        };
        let out = if residual_grad == ResidualGrad::None { &arrays.dy } else { &arrays.stream };
        let norm = self.norm(number);
        let args = [
            Arg::Buffer(&arrays.activations[number], 0),
            Arg::Buffer(d, 0),
            Arg::U32(self.rows() as u32),
            Arg::U32(norm.width as u32),
            Arg::Buffer(&arrays.norm_statistics[number], 0),
            self.is_masked(number),
            Arg::Buffer(&arrays.stream, 0),
            Arg::U32(u32::from(residual_grad == ResidualGrad::Accumulate)),
            Arg::Buffer(out, 0),
        ];
        self.launch("norm_gradient", elementwise(self.rows() * norm.width), &args)?;
        Ok(out)
    }

    /// True if the gradient above output `number` is taken before the ReLU: a pooling bias precedes it.
    fn is_masked(&self, number: usize) -> Arg<'_, D::Buffer> {
        Arg::U32(u32::from(self.bias_of(number).is_some()))
    }

    /// The normalisation above the output number `number` of the tower.
    fn norm(&self, number: usize) -> Norm {
        self.layers.units.get(number).map_or(self.layers.tail, |unit| unit.norm)
    }

    fn shape_of(&self, number: usize, direction: usize) -> Arg<'_, D::Buffer> {
        Arg::Buffer(&self.shared.shapes, (2 * number + direction) * size_of::<LinearShape>())
    }

    fn weights(&self, first: usize) -> Arg<'_, D::Buffer> {
        Arg::Buffer(&self.shared.packed, first * self.bytes)
    }

    fn bias(&self, layer: &TrainLayer) -> Arg<'_, D::Buffer> {
        Arg::Buffer(self.state, layer.bias.map_or(0, |(first, _)| first * 4))
    }

    fn take_observations(&self) -> Result<()> {
        let (channels, width) = self.layers.obs;
        let sizes = [self.arrays.boards, channels, self.layers.area, width].map(|n| Arg::U32(n as u32));
        let [boards, channels, area, wide] = sizes;
        let obs = Arg::Buffer(&self.arrays.samples.obs, 0);
        let args = [obs, boards, channels, area, wide, Arg::Buffer(&self.arrays.obs, 0)];
        self.launch("take_observations", elementwise(self.rows() * width), &args)
    }

    /// Launches the kernel of those for all tilings that suits `rows` rows of the output of `shape`.
    fn launch_product(
        &self,
        kernels: [&'static str; 3],
        shape: &LinearShape,
        rows: usize,
        args: &[Arg<'_, D::Buffer>],
    ) -> Result<()> {
        let tiling = Tiling::of_product(shape, rows, self.bytes, self.limits);
        self.launch(tiling.choose(kernels), tiling.product(shape, rows, self.bytes), args)
    }

    /// `out = x W + bias (+ added)`; the hidden layer of the values has a ReLU.
    pub(super) fn linear_forward(
        &self,
        number: usize,
        x: &D::Buffer,
        added: Option<&D::Buffer>,
        out: &D::Buffer,
    ) -> Result<()> {
        let layer = self.layers.linear(number);
        let rows = self.arrays.boards * layer.positions;
        let relu = number == self.layers.units.len() + 2;
        let args = [
            self.shape_of(number, 0),
            Arg::U32(rows as u32),
            Arg::Buffer(x, 0),
            self.weights(layer.weights.start),
            self.bias(layer),
            Arg::Buffer(added.unwrap_or(out), 0),
            Arg::U32(u32::from(added.is_some())),
            Arg::U32(u32::from(relu)),
            Arg::Buffer(out, 0),
        ];
        let kernels = ["linear_forward_wide", "linear_forward_tall", "linear_forward_narrow"];
        self.launch_product(kernels, &layer.forward, rows, &args)
    }

    /// The same in 32-bit floats.
    fn linear_outputs(&self, number: usize, x: &D::Buffer, out: &D::Buffer) -> Result<()> {
        let layer = self.layers.linear(number);
        let rows = self.arrays.boards * layer.positions;
        let args = [
            self.shape_of(number, 0),
            Arg::U32(rows as u32),
            Arg::Buffer(x, 0),
            self.weights(layer.weights.start),
            self.bias(layer),
            Arg::Buffer(out, 0),
        ];
        self.launch("linear_outputs", Tiling::Narrow.product(&layer.forward, rows, self.bytes), &args)
    }

    /// `dx = dy W^T`.
    pub(super) fn linear_backward(
        &self,
        number: usize,
        dy: &D::Buffer,
        adds: u32,
        relu_mask: Option<&D::Buffer>,
        dx: &D::Buffer,
    ) -> Result<()> {
        let layer = self.layers.linear(number);
        let rows = self.arrays.boards * layer.sources;
        let args = [
            self.shape_of(number, 1),
            Arg::U32(rows as u32),
            Arg::Buffer(dy, 0),
            self.weights(layer.transposed.start),
            Arg::U32(adds),
            Arg::Buffer(relu_mask.unwrap_or(dx), 0),
            Arg::U32(u32::from(relu_mask.is_some())),
            Arg::Buffer(dx, 0),
        ];
        let kernels = ["linear_backward_wide", "linear_backward_tall", "linear_backward_narrow"];
        self.launch_product(kernels, &layer.backward, rows, &args)
    }

    /// Adds a layer's gradient, out of its input and its output's gradient.
    pub(super) fn layer_gradient(&self, number: usize, x: &D::Buffer, dy: &D::Buffer) -> Result<()> {
        let layer = self.layers.linear(number);
        let rows = self.arrays.boards * layer.positions;
        let shape = &layer.forward;
        let (splits, tiling) = (splits(shape, rows), Tiling::of_gradient(shape));
        let args = [
            self.shape_of(number, 0),
            Arg::U32(rows as u32),
            Arg::U32(splits as u32),
            Arg::Buffer(x, 0),
            Arg::Buffer(dy, 0),
            Arg::Buffer(&self.arrays.parts, 0),
        ];
        let kernels = ["linear_gradient_wide", "linear_gradient_tall", "linear_gradient_narrow"];
        self.launch(tiling.choose(kernels), tiling.gradient(shape, splits, self.bytes), &args)?;
        self.sum_parts(splits, layer.weights.len(), layer.weights.start)?;
        let Some((_, map)) = layer.bias else { return Ok(()) };
        let columns = shape.columns as usize;
        let chunks = self.sum_columns("sum_columns", rows, columns, [Arg::Buffer(dy, 0)], [])?;
        self.sum_parts(chunks, columns, map)
    }

    /// Adds the sums of `num` parts of `count` numbers to the places in the gradient that the map names from `map` on.
    fn sum_parts(&self, num: usize, count: usize, map: usize) -> Result<()> {
        let args = [
            Arg::Buffer(&self.arrays.parts, 0),
            Arg::U32(num as u32),
            Arg::U32(count as u32),
            Arg::Buffer(&self.shared.map, map * 4),
            Arg::Buffer(&self.shared.gradient, 0),
        ];
        // A thread for each number: it waits for one part after the other.
        self.launch("sum_parts", elementwise(count * VEC * VECTORS), &args)
    }

    /// One of the kernels that sum columns over chunks of rows; gives the number of chunks.
    fn sum_columns<'a, const N: usize, const M: usize>(
        &'a self,
        kernel: &'static str,
        rows: usize,
        width: usize,
        before: [Arg<'a, D::Buffer>; N],
        after: [Arg<'a, D::Buffer>; M],
    ) -> Result<usize> {
        let chunk = chunk_rows(rows);
        let chunks = rows.div_ceil(chunk);
        let sizes = [rows, chunk, width].map(|n| Arg::U32(n as u32));
        let parts = [Arg::Buffer(&self.arrays.parts, 0)];
        let args: Vec<_> = before.into_iter().chain(sizes).chain(after).chain(parts).collect();
        self.launch(kernel, blocks(chunks * width.div_ceil(GROUP), BLOCK), &args)?;
        Ok(chunks)
    }

    /// Normalisation and ReLU of output number `number` of the tower.
    fn normalise(&self, number: usize) -> Result<()> {
        let (arrays, rows, norm) = (self.arrays, self.rows(), self.norm(number));
        let x = &arrays.activations[number];
        self.sum_columns("norm_moments", rows, norm.width, [Arg::Buffer(x, 0)], [])?;
        let into = [
            Arg::Buffer(&self.shared.map, norm.maps * 4),
            Arg::Buffer(self.state, 0),
            Arg::Buffer(self.statistics, 0),
            Arg::Buffer(&arrays.norm_statistics[number], 0),
            Arg::Buffer(&self.shared.report, 0),
        ];
        match self.group {
            None => {
                self.launch("norm_prepare", warps(norm.width), &[&self.chunks(norm)[..], &into].concat())?
            }
            Some(group) => {
                self.exchange("norm_local_moments", norm, group)?;
                let statistics = group.statistics.borrow();
                let from =
                    [norm_width(norm), Arg::Buffer(&*statistics, 0), Arg::U32(group.sums.size() as u32)];
                let shape = blocks(norm.width.div_ceil(BLOCK as usize), BLOCK);
                self.launch("norm_prepare_synced", shape, &[&from[..], &into].concat())?;
            }
        }
        if let Some(bias) = self.bias_of(number) {
            return self.normalise_with_bias(number, bias);
        }
        let args = [
            Arg::Buffer(x, 0),
            Arg::U32(rows as u32),
            Arg::U32(norm.width as u32),
            Arg::Buffer(&arrays.norm_statistics[number], 0),
            Arg::Buffer(&arrays.active[number], 0),
        ];
        self.launch("norm_relu", elementwise(rows * norm.width), &args)
    }

    /// What the backward direction of normalisation number `number` needs, and the gradients of its weights.
    fn norm_gradient_sums(&self, number: usize, d: &D::Buffer) -> Result<()> {
        let (arrays, rows, norm) = (self.arrays, self.rows(), self.norm(number));
        let before = [Arg::Buffer(&arrays.activations[number], 0), Arg::Buffer(d, 0)];
        let after = [Arg::Buffer(&arrays.norm_statistics[number], 0), self.is_masked(number)];
        self.sum_columns("norm_gradient_sums", rows, norm.width, before, after)?;
        let into = [
            Arg::Buffer(&self.shared.map, norm.maps * 4),
            Arg::Buffer(&arrays.norm_statistics[number], 0),
            Arg::Buffer(&self.shared.gradient, 0),
        ];
        let Some(group) = self.group else {
            let args = [&self.chunks(norm)[..], &into].concat();
            return self.launch("norm_gradient_prepare", warps(norm.width), &args);
        };
        self.exchange("norm_local_gradient_sums", norm, group)?;
        let statistics = group.statistics.borrow();
        let [own, devices] = [group.sums.rank(), group.sums.size()].map(|n| Arg::U32(n as u32));
        let from = [norm_width(norm), Arg::Buffer(&*statistics, 0), own, devices];
        let shape = blocks(norm.width.div_ceil(BLOCK as usize), BLOCK);
        self.launch("norm_gradient_prepare_synced", shape, &[&from[..], &into].concat())
    }

    /// The sums over chunks of rows of a normalisation's columns, as kernels take them.
    fn chunks(&self, norm: Norm) -> [Arg<'_, D::Buffer>; 4] {
        let rows = self.rows();
        let sizes = [rows, chunk_rows(rows)].map(|n| Arg::U32(n as u32));
        [norm_width(norm), sizes[0], sizes[1], Arg::Buffer(&self.arrays.parts, 0)]
    }

    /// Writes this device's statistics by `kernel` and exchanges them with all devices.
    fn exchange(&self, kernel: &'static str, norm: Norm, group: &ProcessGroup<D>) -> Result<()> {
        {
            let statistics = group.statistics.borrow();
            let [own, devices] = [group.sums.rank(), group.sums.size()].map(|n| Arg::U32(n as u32));
            let args = [&self.chunks(norm)[..], &[own, devices, Arg::Buffer(&*statistics, 0)]].concat();
            self.launch(kernel, warps(norm.width), &args)?;
        }
        group.all_reduce(self.device, norm.width)
    }
}
