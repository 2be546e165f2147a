//! A pre-activation layer of the tower, `y = linear(relu(norm(x)))`, with optional messages, residual sum and pooling layers
//! (He et al. 2016, Identity Mappings in Deep Residual Networks), and its forward pass on one chunk.

use super::layer::{CpuBatchNorm, Linear};
use super::message::{LayerChunk, LayerMessage};
use super::norm;
use super::operands::{Operands, column_words};
use super::pooled::TrainPooling;
use super::tap_map::TapMap;
use super::view::{View, ViewMut};
use crate::isa::Isa;
use crate::model::{CompleteGraph, Model, PreActivation, Residual, TrainMessage};
use crate::net::edge_messages::TriangleColumns;
use crate::net::pooling::BoardRows;
use std::sync::Arc;

/// `y = linear(relu(norm(x)))`, plus a message and the residual stream where the layer has them.
#[derive(Clone, Debug)]
pub(super) struct PreActLayer {
    pub norm: CpuBatchNorm,
    pub linear: Linear,
    pub message: LayerMessage,
    pub residual: Residual,
    /// Added to channels before the ReLU, and multiplied with those that the linear layer puts out.
    pub bias: Option<TrainPooling>,
    pub scale: Option<TrainPooling>,
}

impl PreActLayer {
    /// The layer `layer` of `model`, whose products take `operands`; `edges` is K_n for a tower on its edges.
    pub fn new(
        model: &Model,
        layer: &PreActivation,
        operands: Operands,
        edges: Option<&Arc<CompleteGraph>>,
    ) -> Self {
        let norm = CpuBatchNorm::new(model, &[layer.norm]);
        let message = match (&layer.message, edges) {
            (TrainMessage::Vertex(linear), Some(edges)) => {
                LayerMessage::Vertex(edges.clone(), Box::new(Linear::new(model, linear)))
            }
            (&TrainMessage::Triangle(columns), Some(edges)) => {
                let scale = edges.triangle_scale();
                LayerMessage::Triangle(edges.clone(), TriangleColumns { width: norm.width, columns, scale })
            }
            _ => LayerMessage::None,
        };
        let [bias, scale] = layer.pooling.map(|index| {
            let index = index?;
            Some(TrainPooling::new(model, index, model.pooling(index)?))
        });
        let linear = Linear::with_operands(model, &layer.linear, operands);
        Self { norm, linear, message, residual: layer.residual, bias, scale }
    }

    /// Its pooling layers.
    pub fn pooled(&self) -> impl Iterator<Item = &TrainPooling> {
        self.bias.iter().chain(&self.scale)
    }

    /// Words of what its products multiply in the backward pass of a chunk of `boards` boards, where that is not f32; 0 where it is.
    pub fn operand_words(&self, boards: usize) -> usize {
        let Self { norm, linear, .. } = self;
        let TapMap { inputs, outputs, .. } = linear.tap_map;
        let units = boards.div_ceil(2);
        match linear.operands {
            Operands::F32 => 0,
            Operands::Bf16 => norm.width * column_words(inputs * units) + outputs * units * linear.columns,
        }
    }

    /// Floats a board of its output before the scale; 0 where there is none.
    pub fn unscaled_floats(&self) -> usize {
        self.scale.as_ref().map_or(0, |_| self.linear.tap_map.outputs * self.linear.columns)
    }

    /// Writes relu(norm(x)) of `boards` boards to `active`. `x` and `active` are `[positions, boards, width]`.
    pub fn activate(&self, isa: Isa, x: &[f32], boards: usize, active: &mut [f32], scratch: &mut [f32]) {
        match &self.bias {
            None => norm::normalize_relu(isa, x, &self.norm.columns(), active),
            Some(bias) => bias.normalize_relu(isa, (x, &self.norm.columns()), boards, active, scratch),
        }
    }

    /// The rows of the linear layer's output.
    pub fn output_rows(&self, boards: usize) -> BoardRows {
        BoardRows { boards, width: self.linear.columns }
    }

    /// The layer on one chunk of `boards` boards: `y`, and `unscaled` where it has a scale. `stream` is the term that a residual
    /// layer adds. `x` is `[positions, boards, width]`, the others `[positions, boards, columns]`.
    pub fn forward(
        &self,
        isa: Isa,
        boards: usize,
        (x, stream): (&[f32], Option<&[f32]>),
        [unscaled, y]: [&mut [f32]; 2],
        scratch: &mut Scratch,
    ) {
        let Self { norm, linear, message, scale, .. } = self;
        let active = &mut scratch.active[..x.len()];
        self.activate(isa, x, boards, active, &mut scratch.pooling);
        let here = LayerChunk { isa, rows: boards, active };
        let source = message.source(here, &mut scratch.message);
        let view = View { data: source, width: norm.width, offset: 0 };
        let view = linear.operands.by_columns(isa, view, &mut scratch.operands);
        let forward = |out: &mut [f32]| {
            linear.forward(isa, boards, view, ViewMut { data: out, width: linear.columns, offset: 0 });
        };
        match (stream, scale) {
            (Some(stream), Some(scale)) => {
                linear.start(unscaled);
                forward(unscaled);
                let both = [&*unscaled, stream];
                scale.add_scaled(isa, self.output_rows(boards), both, y, &mut scratch.pooling);
            }
            (Some(stream), None) => {
                linear.start_from(stream, y);
                forward(y);
            }
            (None, _) => {
                linear.start(y);
                forward(y);
            }
        }
        message.add(here, y, &mut scratch.message);
    }
}

/// Scratch of one partition, as many floats as the largest layer needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// A chunk after its ReLU. `[positions, boards, width]`
    pub active: Vec<f32>,
    /// The partition's part of a layer's weight gradient. `[taps, inputs, columns]`
    pub weights: Vec<f32>,
    /// Scratch of messages. `[boards, scratch_len]`
    pub message: Vec<f32>,
    /// The partition's part of a message's weight gradient. `[inputs, columns]`
    pub message_weights: Vec<f32>,
    /// Scratch of pooling layers. `[boards, scratch_len]`
    pub pooling: Vec<f32>,
    /// The partition's parts of the gradients of pooling layers' parameters: the bias's, then the scale's.
    pub pooling_weights: Vec<f32>,
    /// A chunk's gradient of the output before its scale. `[positions, boards, columns]`
    pub unscaled: Vec<f32>,
    /// What the products of a chunk multiply, where that is not f32. `[operand_words]`
    pub operands: Vec<f32>,
}
