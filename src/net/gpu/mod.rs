//! The network's own kernels: stem, tower and heads, one launch a layer, on tensor cores where the device has them.
//! `kernels/net.cu` and `kernels/net/` are the sources.
//!
//! [`DeviceForward`] owns the packed weights and all activations. A forward allocates nothing, copies nothing and does not wait for
//! the device, so that it can be captured in a graph; new weights overwrite the old ones in place. Logits and values of a board
//! are the same to the bit in any slot of any batch.

pub mod network; // a network whose input and output stay on a device
pub mod network_need; // the memory that it needs
mod open; // a network on a GPU
mod element_type;
mod tile; // the tiles of a layer and their computed cost
mod layer; // one layer's kernel
mod layers; // all layers of a network
pub(crate) mod slot_order; // whether compacting slots lowers the cost
#[cfg(test)]
mod generated;
#[cfg(test)]
mod tests;
mod pack; // weights as the kernels read them
pub(crate) mod blocks; // parameter blocks of the kernels
mod edge; // vertices and heads of an edge network
pub mod pooling_block; // pooling layers as kernels see them, of networks and of training
mod pooling; // biases and scales of channels out of a whole board
mod evaluator; // for callers on the host
mod double_buffer; // for callers on the host that prepare one batch while another is evaluated

use crate::config::TensorCores;
use crate::device::source;
use crate::device::{Arg, Device, GpuCode, LaunchShape, Limits, Program, WARP};
use crate::error::{Error, Result};
use crate::model::{ActivationShape, GlobalPooling, LayerKind, NetSpec, Weights, taps_on_board};
use blocks::{Boards, LayerBlock, ValuesBlock};
pub use element_type::{Arithmetic, ElementType};
pub use evaluator::DeviceEvaluator;
pub use layer::{ForwardLayer, LayerSpec, padded_channels};
use layers::ForwardLayers;
use network::{DeviceNetwork, ObsFormat, SlotOrder, Slots};
use network_need::NetworkNeed;
pub use open::cuda_network;
use pack::{LayerPlace, PackedParameters};

/// Threads of a block of all kernels but those of layers.
const BLOCK: u32 = 128;

/// The program of `spec` for `slots` slots on a device of these limits.
///
/// # Errors
/// [`Error::Config`] for an edge network on anything but the edges of a complete graph, [`Error::Unsupported`] where the device is
/// too small or lacks the instruction.
pub fn program(
    spec: &NetSpec,
    arithmetic: impl Into<Arithmetic>,
    slots: usize,
    limits: Limits,
) -> Result<Program> {
    let arithmetic = arithmetic.into();
    let layers = ForwardLayers::new(spec, arithmetic, slots, limits)?;
    let mut units = match (&layers.head, &layers.graph) {
        (_, Some(_)) => vec!["net.cu", "net_edge.cu"],
        (Some(_), None) => vec!["net.cu", "net_tower.cu", "net_head.cu"],
        (None, None) => vec!["net.cu", "net_tower.cu"],
    };
    units.extend(layers.all_pooling().next().map(|_| "net_pooling.cu"));
    let program = source::compose("a network", &units, layers.defines(arithmetic.element_type));
    let code = match arithmetic.cores {
        TensorCores::Mma => GpuCode::Portable,
        TensorCores::Wgmma => GpuCode::ArchSpecific,
    };
    Ok(Program { code, ..program })
}

/// The program of kernel `measure_peak(out, rounds)`: [`PEAK_BLOCK`] threads a block, of which each warp adds up
/// [`PEAK_PRODUCTS`] products of `numbers` a round and each thread writes one float to `out`.
pub fn peak_program(element_type: ElementType) -> Program {
    let defines = [
        ("VZ_ELEMENT_TYPE", element_type.name().into()),
        ("VZ_THREADS", PEAK_BLOCK.to_string()),
        ("VZ_CHAINS", PEAK_CHAINS.to_string()),
    ];
    source::compose("a product", &["net_peak.cu"], defines.map(|(name, value)| (name.into(), value)).into())
}

/// Threads of a block of [`peak_program`].
pub const PEAK_BLOCK: u32 = 256;
/// Products of 16-bit numbers that a warp adds up in a round of [`peak_program`].
pub const PEAK_PRODUCTS: u64 = PEAK_CHAINS * (16 * 8 * 16);
/// Independent sums of a warp of it, which hide the instruction's latency.
const PEAK_CHAINS: u64 = 16;

/// A network on the device `D`, for a fixed number of slots.
pub struct DeviceForward<D: Device> {
    spec: NetSpec,
    arithmetic: Arithmetic,
    layers: ForwardLayers,
    module: D::Module,
    slots: usize,
    places: PackedParameters,
    parameters: D::Buffer,
    work: ActivationBuffers<D::Buffer>,
}

/// Activations of the boards that go through the network together.
struct ActivationBuffers<B> {
    /// `[boards, squares, planes]` as words
    planes: B,
    /// `[boards, squares, C]` as words
    a: B,
    /// `[boards, squares, C]` as words
    b: B,
    /// `[boards, squares, C]`, 32-bit floats
    stream: B,
    /// `[boards, squares, head channels]` as words; on edges `[boards, C]` as words, the mean over them
    heads: B,
    /// On edges. `[boards, vertices, C]`, 32-bit floats
    vertices: B,
    /// The input of a pooling layer. `[boards, squares, C]`, 32-bit floats
    pooling_input: B,
    /// The results of a pooling layer, see [`GlobalPooling::values_per_board`]. `[boards, values_per_board]`, 32-bit floats
    pooling: B,
    /// `[boards, hidden units]`, 32-bit floats
    hidden: B,
    /// Not 0 once a logit or value was not finite. `[1]`
    not_finite: B,
}

/// A network's packed weights, and the memory that it needs on a device, before any of it is allocated.
pub struct ForwardPlan {
    spec: NetSpec,
    arithmetic: Arithmetic,
    layers: ForwardLayers,
    slots: usize,
    places: PackedParameters,
    program: Program,
}

impl ForwardPlan {
    /// The network of `spec` with `weights` for `slots` slots on a device of these limits.
    ///
    /// # Errors
    /// As [`program`]; [`Error::Mismatch`] and [`Error::NotFinite`] for weights that do not fit `spec`.
    pub fn new(
        spec: &NetSpec,
        weights: &Weights,
        arithmetic: impl Into<Arithmetic>,
        slots: usize,
        limits: Limits,
    ) -> Result<Self> {
        let arithmetic = arithmetic.into();
        let layers = ForwardLayers::new(spec, arithmetic, slots, limits)?;
        let places = pack::pack(weights, &layers)?;
        let program = program(spec, arithmetic, slots, limits)?;
        Ok(Self { spec: spec.clone(), arithmetic, layers, slots, places, program })
    }

    /// The memory that it needs on the device.
    pub fn need(&self) -> NetworkNeed {
        NetworkNeed {
            parameters: self.places.bytes.len() as u64,
            board: WorkBytes::new(self.arithmetic.element_type, &self.layers).board() as u64,
            max_boards: self.layers.max_boards(),
        }
    }
}

/// Bytes of one board in each of the arrays of [`ActivationBuffers`].
struct WorkBytes {
    planes: usize,
    activations: usize,
    stream: usize,
    heads: usize,
    vertices: usize,
    pooling_input: usize,
    pooling: usize,
    hidden: usize,
}

impl WorkBytes {
    fn new(element_type: ElementType, layers: &ForwardLayers) -> Self {
        let words =
            |layer: &ForwardLayer, rows: usize| 4 * rows * layer.spec.inputs / element_type.per_word();
        let squares = layers.squares;
        let pooling = layers.all_pooling().map(GlobalPooling::values_per_board).max();
        Self {
            planes: words(&layers.stem, squares),
            activations: words(&layers.tower, squares),
            stream: 4 * squares * layers.tower.spec.inputs,
            heads: match (&layers.head, &layers.graph) {
                (None, None) => 0,
                _ => words(&layers.dense, 1),
            },
            vertices: layers.graph.map_or(0, |graph| 4 * graph.vertices * graph.layer.spec.inputs),
            pooling_input: pooling.map_or(0, |_| 4 * squares * layers.tower.spec.inputs),
            pooling: 4 * pooling.unwrap_or(0),
            hidden: 4 * layers.model.outputs(layers.form.hidden),
        }
    }

    fn board(&self) -> usize {
        let Self { planes, activations, stream, heads, vertices, pooling_input, pooling, hidden } = self;
        planes + 2 * activations + stream + heads + vertices + pooling_input + pooling + hidden
    }
}

impl<D: Device> DeviceForward<D> {
    /// The network of `spec` with `weights` for `slots` slots, compiled and loaded.
    ///
    /// # Errors
    /// As [`ForwardPlan::new`], and [`Error::Device`] where there is no buffer or the kernels do not compile.
    pub fn new(
        device: &D,
        spec: &NetSpec,
        weights: &Weights,
        arithmetic: impl Into<Arithmetic>,
        slots: usize,
    ) -> Result<Self> {
        Self::planned(device, ForwardPlan::new(spec, weights, arithmetic, slots, device.limits()?)?)
    }

    /// The network that `plan` is for, compiled and loaded.
    ///
    /// # Errors
    /// [`Error::Device`] where there is no buffer or the kernels do not compile.
    pub fn planned(device: &D, plan: ForwardPlan) -> Result<Self> {
        let ForwardPlan { spec, arithmetic, layers, slots, places, program } = plan;
        let module = device.module(&program)?;
        let mut parameters = device.alloc(places.bytes.len())?;
        device.upload(&mut parameters, 0, &places.bytes)?;
        let boards = layers.boards;
        let bytes = WorkBytes::new(arithmetic.element_type, &layers);
        let work = ActivationBuffers {
            planes: device.alloc(boards * bytes.planes)?,
            a: device.alloc(boards * bytes.activations)?,
            b: device.alloc(boards * bytes.activations)?,
            stream: device.alloc(boards * bytes.stream)?,
            heads: device.alloc(boards * bytes.heads)?,
            vertices: device.alloc(boards * bytes.vertices)?,
            pooling_input: device.alloc(boards * bytes.pooling_input)?,
            pooling: device.alloc(boards * bytes.pooling)?,
            hidden: device.alloc(boards * bytes.hidden)?,
            not_finite: device.alloc(4)?,
        };
        Ok(Self { spec, arithmetic, layers, module, slots, places, parameters, work })
    }

    /// True where this is the network of `spec` in this arithmetic, with any weights.
    pub fn is_for(&self, spec: &NetSpec, arithmetic: Arithmetic) -> bool {
        self.spec == *spec && self.arithmetic == arithmetic
    }

    /// Overwrites the weights with others of the same shape, in place, so that a captured forward uses them too.
    ///
    /// # Errors
    /// As for [`DeviceForward::new`]; the old weights then stay.
    pub fn set_weights(&mut self, device: &D, weights: &Weights) -> Result<()> {
        self.places = pack::pack(weights, &self.layers)?;
        device.upload(&mut self.parameters, 0, &self.places.bytes)
    }

    /// The number format in use.
    pub fn element_type(&self) -> ElementType {
        self.arithmetic.element_type
    }

    /// Multiply-adds of one board with all taps, those off the board included. Products around an edge network's triangles have no
    /// weights and are not counted.
    pub fn executed_macs_per_sample(&self) -> usize {
        let model = &self.layers.model;
        let off_board = |index: usize| match (model.layers[index].kind, &model.input_shapes(index)[..]) {
            (LayerKind::Conv3x3 { outputs }, &[ActivationShape::Board { channels, height, width }]) => {
                (9 * height * width - taps_on_board(height, width)) * channels * outputs
            }
            _ => 0,
        };
        self.weight_macs_per_sample() + (0..model.layers.len()).map(off_board).sum::<usize>()
    }

    /// The same without the taps off the board.
    pub fn weight_macs_per_sample(&self) -> usize {
        let model = &self.layers.model;
        let has_weights = |&index: &usize| !matches!(model.layers[index].kind, LayerKind::TriangleMix { .. });
        (0..model.layers.len()).filter(has_weights).map(|index| model.layer_multiply_adds(index)).sum()
    }

    /// Evaluates the first `num` slots, or those of them that are live.
    ///
    /// # Errors
    /// As [`DeviceNetwork::forward`].
    pub fn forward_first(&mut self, device: &D, slots: Slots<'_, D::Buffer>, num: usize) -> Result<()> {
        if slots.num != self.slots || num > self.slots {
            let what = "slots of a network on the device".to_string();
            return Err(Error::Mismatch {
                what,
                found: slots.num.max(num).to_string(),
                expected: self.slots.to_string(),
            });
        }
        for first in (0..num).step_by(self.layers.boards) {
            let boards = self.layers.boards.min(num - first);
            self.part(device, BoardRange { first, boards, live: slots.live }, &slots)?;
        }
        Ok(())
    }

    /// The address of the parameters from byte `at` on.
    fn parameter(&self, device: &D, at: usize) -> u64 {
        device.address(&self.parameters) + at as u64
    }

    /// The block of a layer on `part`, whose activations before it are in `input`, without outputs yet.
    fn block(
        &self,
        device: &D,
        place: LayerPlace,
        (input, part): (&D::Buffer, BoardRange<'_, D::Buffer>),
    ) -> LayerBlock {
        LayerBlock {
            input: device.address(input),
            weights: self.parameter(device, place.weights),
            bias: self.parameter(device, place.bias),
            scale: self.parameter(device, place.scale),
            offset: self.parameter(device, place.offset),
            messages: 0,
            stream: 0,
            output: 0,
            logits: 0,
            hidden: 0,
            boards: part.boards(device),
        }
    }

    /// Launches a layer on the boards of `block`.
    fn layer(
        &self,
        device: &D,
        kernel: &'static str,
        layer: &ForwardLayer,
        block: &LayerBlock,
    ) -> Result<()> {
        let rows = block.boards.boards as usize * layer.spec.height * layer.spec.width;
        device.launch_in(&self.module, kernel, layer.launch_shape(rows), &[Arg::of(block)])
    }

    /// Launches a kernel of `threads` threads for every board.
    fn launch_threads(
        &self,
        device: &D,
        kernel: &'static str,
        (boards, threads): (Boards, usize),
        args: &[Arg<'_, D::Buffer>],
    ) -> Result<()> {
        let grid = (boards.boards as usize * threads).div_ceil(BLOCK as usize) as u32;
        device.launch_in(&self.module, kernel, LaunchShape { grid, block: BLOCK, shared: 0 }, args)
    }

    /// Launches a layer that ends in the residual stream; activations go to `a`.
    fn stream_layer(
        &self,
        device: &D,
        kernel: &'static str,
        (layer, place): (&ForwardLayer, LayerPlace),
        source: (&D::Buffer, BoardRange<'_, D::Buffer>),
    ) -> Result<()> {
        let block = LayerBlock {
            stream: device.address(&self.work.stream),
            output: device.address(&self.work.a),
            ..self.block(device, place, source)
        };
        self.layer(device, kernel, layer, &block)
    }

    /// The blocks of a residual network or perceptron.
    fn tower(&self, device: &D, part: BoardRange<'_, D::Buffer>) -> Result<()> {
        let (tower, work) = (&self.layers.tower, &self.work);
        for (block, [first_layer, last_layer]) in self.places.blocks.iter().enumerate() {
            let [first_pooling, last_pooling] = [0, 1].map(|layer| self.layers.pooling(block, layer));
            let [bias, scale] = self.places.pooling[block];
            if let Some(pooling) = first_pooling {
                self.pool_relu(device, pooling, [*first_layer, bias], part)?;
            } else {
                let output = device.address(&work.b);
                let block = LayerBlock { output, ..self.block(device, *first_layer, (&work.a, part)) };
                self.layer(device, "bias_relu", tower, &block)?;
            }
            match last_pooling {
                Some(pooling) => self.pool_residual_add(device, pooling, [*last_layer, scale], part)?,
                None => {
                    self.stream_layer(device, "residual_add_bn_relu", (tower, *last_layer), (&work.b, part))?
                }
            }
        }
        Ok(())
    }

    /// Evaluates one part of the batch.
    fn part(&self, device: &D, part: BoardRange<'_, D::Buffer>, slots: &Slots<'_, D::Buffer>) -> Result<()> {
        let (layers, work, places, spec) = (&self.layers, &self.work, &self.places, &self.spec);
        let BoardRange { first, .. } = part;
        let logits_at = 4 * first * spec.num_actions;
        let logits = device.address(slots.logits) + logits_at as u64;
        let values = device.address(slots.values) + (4 * first * spec.num_players) as u64;
        self.observe(device, part, slots.obs)?;
        self.stream_layer(device, "stem", (&layers.stem, places.stem), (&work.planes, part))?;
        let board = match (&layers.head, &layers.graph) {
            (_, Some(graph)) => {
                self.edge_tower(device, graph, part)?;
                self.edge_heads(device, part, (slots.logits, logits_at))?;
                &work.heads
            }
            (Some(head), None) => {
                self.tower(device, part)?;
                let output = device.address(&work.heads);
                let block = LayerBlock { output, ..self.block(device, places.head, (&work.a, part)) };
                self.layer(device, "head", head, &block)?;
                &work.heads
            }
            (None, None) => {
                self.tower(device, part)?;
                &work.a
            }
        };
        let hidden = device.address(&work.hidden);
        let block = LayerBlock { logits, hidden, ..self.block(device, places.dense, (board, part)) };
        self.layer(device, "dense", &layers.dense, &block)?;
        let block = ValuesBlock {
            hidden,
            weights: self.parameter(device, places.values.weights),
            bias: self.parameter(device, places.values.bias),
            logits,
            values,
            not_finite: device.address(&work.not_finite),
            boards: part.boards(device),
        };
        self.launch_threads(device, "values", (block.boards, WARP), &[Arg::of(&block)])
    }

    /// Transposes observations into rows of words.
    fn observe(&self, device: &D, part: BoardRange<'_, D::Buffer>, obs: &D::Buffer) -> Result<()> {
        let (kernel, bytes) = match self.format() {
            ObsFormat::F32 => ("take_observations_f32", 4),
            ObsFormat::Bf16 => ("take_observations_bf16", 2),
        };
        let words = self.layers.stem.spec.inputs / self.element_type().per_word();
        let from = Arg::Buffer(obs, bytes * part.first * self.spec.obs.len());
        let boards = part.boards(device);
        let args = [from, Arg::Buffer(&self.work.planes, 0), Arg::of(&boards)];
        self.launch_threads(device, kernel, (boards, self.layers.squares * words), &args)
    }
}

/// Boards that go through the network together: the batch, or a part of it.
struct BoardRange<'a, B> {
    /// The slot of the first board.
    first: usize,
    boards: usize,
    /// How many slots of the batch are to be evaluated; all of them for None.
    live: Option<&'a B>,
}

impl<B> Clone for BoardRange<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for BoardRange<'_, B> {}

impl<B> BoardRange<'_, B> {
    /// As kernels take them.
    fn boards<D: Device<Buffer = B>>(&self, device: &D) -> Boards {
        let live = self.live.map_or(0, |live| device.address(live));
        Boards { live, boards: self.boards as u32, first: self.first as u32 }
    }
}

impl<D: Device> DeviceNetwork<D> for DeviceForward<D> {
    /// Bfloat16 if the stem rounds its input to it.
    fn format(&self) -> ObsFormat {
        if self.element_type() == ElementType::Bf16 { ObsFormat::Bf16 } else { ObsFormat::F32 }
    }

    /// Compact where the computed cost of that is lower.
    fn slot_order(&self) -> SlotOrder {
        self.layers.order
    }

    fn forward(&mut self, device: &D, slots: Slots<'_, D::Buffer>) -> Result<()> {
        let num = slots.num;
        self.forward_first(device, slots, num)
    }

    fn not_finite(&self) -> Option<&D::Buffer> {
        Some(&self.work.not_finite)
    }
}
