//! A pre-activation layer of the tower, `y = linear(relu(norm(x)))`, with optional messages and residual sum
//! (He et al. 2016, Identity Mappings in Deep Residual Networks), and its forward pass on one chunk.

use super::layer::{CpuBatchNorm, Linear};
use super::message::{LayerChunk, LayerMessage};
use super::norm;
use super::operands::{Operands, column_words};
use super::tap_map::TapMap;
use super::view::{View, ViewMut};
use crate::isa::Isa;
use crate::model::{CompleteGraph, Model, PreActivation, Residual, TrainMessage};
use crate::net::edge_messages::TriangleColumns;
use std::sync::Arc;

/// `y = linear(relu(norm(x)))`, plus a message and the residual stream where the layer has them.
#[derive(Clone, Debug)]
pub(super) struct PreActLayer {
    pub norm: CpuBatchNorm,
    pub linear: Linear,
    pub message: LayerMessage,
    pub residual: Residual,
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
        let linear = Linear::with_operands(model, &layer.linear, operands);
        Self { norm, linear, message, residual: layer.residual }
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

    /// The layer on one chunk of `boards` boards. `stream` is the term that a residual layer adds. `x` is `[positions, boards, width]`,
    /// the others `[positions, boards, columns]`.
    pub fn forward(
        &self,
        isa: Isa,
        boards: usize,
        (x, stream): (&[f32], Option<&[f32]>),
        y: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Self { norm, linear, message, .. } = self;
        let active = &mut scratch.active[..x.len()];
        norm::normalize_relu(isa, x, &norm.columns(), active);
        let here = LayerChunk { isa, rows: boards, active };
        let source = message.source(here, &mut scratch.message);
        let view = View { data: source, width: norm.width, offset: 0 };
        let view = linear.operands.by_columns(isa, view, &mut scratch.operands);
        match stream {
            Some(stream) => linear.start_from(stream, y),
            None => linear.start(y),
        }
        linear.forward(isa, boards, view, ViewMut { data: y, width: linear.columns, offset: 0 });
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
    /// What the products of a chunk multiply, where that is not f32. `[operand_words]`
    pub operands: Vec<f32>,
}
