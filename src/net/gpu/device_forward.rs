//! A network on a device: its weights, its activations, and the launches of a forward.

use super::blocks::{Boards, LayerBlock, ValuesBlock};
use super::board_range::BoardRange;
use super::element_type::{Arithmetic, ElementType};
use super::forward_plan::{ActivationBuffers, ForwardPlan, WorkBytes};
use super::layer::ForwardLayer;
use super::layers::ForwardLayers;
use super::network::{DeviceNetwork, ObsFormat, SlotOrder, Slots};
use super::pack::{self, LayerOffsets, PackedParameters};
use crate::device::{Arg, Device, LaunchShape, WARP};
use crate::error::{Error, Result};
use crate::model::{ActivationShape, LayerKind, NetSpec, Weights, taps_on_board};

/// Threads of a block of all kernels but those of layers.
const BLOCK: u32 = 128;

/// A network on the device `D`, for a fixed number of slots.
pub struct DeviceForward<D: Device> {
    pub(super) spec: NetSpec,
    pub(super) arithmetic: Arithmetic,
    pub(super) layers: ForwardLayers,
    pub(super) module: D::Module,
    pub(super) slots: usize,
    pub(super) offsets: PackedParameters,
    pub(super) parameters: D::Buffer,
    pub(super) work: ActivationBuffers<D::Buffer>,
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
        let ForwardPlan { spec, arithmetic, layers, slots, offsets, program } = plan;
        let module = device.module(&program)?;
        let mut parameters = device.alloc(offsets.bytes.len())?;
        device.upload(&mut parameters, 0, &offsets.bytes)?;
        let boards = layers.boards;
        let bytes = WorkBytes::new(arithmetic.element_type, &layers);
        let work = ActivationBuffers {
            planes: device.alloc(boards * bytes.planes)?,
            a: device.alloc(boards * bytes.activations)?,
            b: device.alloc(boards * bytes.activations)?,
            stream: device.alloc(boards * bytes.stream)?,
            heads: device.alloc(boards * bytes.heads)?,
            vertices: device.alloc(boards * bytes.vertices)?,
            hidden: device.alloc(boards * bytes.hidden)?,
            not_finite: device.alloc(4)?,
        };
        Ok(Self { spec, arithmetic, layers, module, slots, offsets, parameters, work })
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
        self.offsets = pack::pack(weights, &self.layers)?;
        // What the weights of before have made says nothing of these.
        device.upload(&mut self.work.not_finite, 0, &[0; 4])?;
        device.upload(&mut self.parameters, 0, &self.offsets.bytes)
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
            (LayerKind::Conv3x3 { outputs, .. }, &[ActivationShape::Board { channels, height, width }]) => {
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
            return Err(Error::mismatch("slots of a network on the device", slots.num.max(num), self.slots));
        }
        for first in (0..num).step_by(self.layers.boards) {
            let boards = self.layers.boards.min(num - first);
            self.part(device, BoardRange { first, boards, live: slots.live }, &slots)?;
        }
        Ok(())
    }

    /// The address of the parameters from byte `at` on.
    pub(super) fn parameter(&self, device: &D, at: usize) -> u64 {
        device.address(&self.parameters) + at as u64
    }

    /// The block of a layer on `part`, whose activations before it are in `input`, without outputs yet.
    pub(super) fn block(
        &self,
        device: &D,
        offsets: LayerOffsets,
        (input, part): (&D::Buffer, BoardRange<'_, D::Buffer>),
    ) -> LayerBlock {
        LayerBlock {
            input: device.address(input),
            weights: self.parameter(device, offsets.weights),
            bias: self.parameter(device, offsets.bias),
            scale: self.parameter(device, offsets.scale),
            offset: self.parameter(device, offsets.offset),
            messages: 0,
            stream: 0,
            output: 0,
            logits: 0,
            hidden: 0,
            boards: part.boards(device),
        }
    }

    /// Launches a layer on the boards of `block`.
    pub(super) fn layer(
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
    pub(super) fn launch_threads(
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
    pub(super) fn stream_layer(
        &self,
        device: &D,
        kernel: &'static str,
        (layer, offsets): (&ForwardLayer, LayerOffsets),
        source: (&D::Buffer, BoardRange<'_, D::Buffer>),
    ) -> Result<()> {
        let block = LayerBlock {
            stream: device.address(&self.work.stream),
            output: device.address(&self.work.a),
            ..self.block(device, offsets, source)
        };
        self.layer(device, kernel, layer, &block)
    }

    /// The blocks of a residual network or perceptron.
    fn tower(&self, device: &D, part: BoardRange<'_, D::Buffer>) -> Result<()> {
        let (tower, work) = (&self.layers.tower, &self.work);
        for &[first, last] in &self.offsets.blocks {
            let output = device.address(&work.b);
            let block = LayerBlock { output, ..self.block(device, first, (&work.a, part)) };
            self.layer(device, "bias_relu", tower, &block)?;
            self.stream_layer(device, "residual_add_bn_relu", (tower, last), (&work.b, part))?;
        }
        Ok(())
    }

    /// Evaluates one part of the batch.
    fn part(&self, device: &D, part: BoardRange<'_, D::Buffer>, slots: &Slots<'_, D::Buffer>) -> Result<()> {
        let (layers, work, offsets, spec) = (&self.layers, &self.work, &self.offsets, &self.spec);
        let BoardRange { first, .. } = part;
        let logits_at = 4 * first * spec.num_actions;
        let logits = device.address(slots.logits) + logits_at as u64;
        let values = device.address(slots.values) + (4 * first * spec.num_players) as u64;
        self.observe(device, part, slots.obs)?;
        self.stream_layer(device, "stem", (&layers.stem, offsets.stem), (&work.planes, part))?;
        let board = match (&layers.head, &layers.graph) {
            (_, Some(graph)) => {
                self.edge_tower(device, graph, part)?;
                self.edge_heads(device, part, (slots.logits, logits_at))?;
                &work.heads
            }
            (Some(head), None) => {
                self.tower(device, part)?;
                let output = device.address(&work.heads);
                let block = LayerBlock { output, ..self.block(device, offsets.head, (&work.a, part)) };
                self.layer(device, "head", head, &block)?;
                &work.heads
            }
            (None, None) => {
                self.tower(device, part)?;
                &work.a
            }
        };
        let hidden = device.address(&work.hidden);
        let block = LayerBlock { logits, hidden, ..self.block(device, offsets.dense, (board, part)) };
        self.layer(device, "dense", &layers.dense, &block)?;
        let block = ValuesBlock {
            hidden,
            weights: self.parameter(device, offsets.values.weights),
            bias: self.parameter(device, offsets.values.bias),
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
