//! Messages between the edges of K_n, which a layer adds to its linear map, forward and backward, one chunk at a time.

use super::gemm_kernels::weight_gradient;
use super::layer::Linear;
use super::operands::Operands;
use super::view::{View, ViewMut};
use crate::isa::Isa;
use crate::model::CompleteGraph;
use crate::net::edge_messages::{self, TriangleColumns};
use std::sync::Arc;

/// The message that a layer adds to its linear map.
#[derive(Clone, Debug)]
pub(super) enum LayerMessage {
    /// Nothing.
    None,
    /// The mean over the edges of each vertex, through a linear layer of its own, is added to every edge from both its endpoints.
    Vertex(Arc<CompleteGraph>, Box<Linear>),
    /// The first input columns of the linear layer become products summed over triangles.
    Triangle(Arc<CompleteGraph>, TriangleColumns),
}

/// One chunk at a layer: its rows and the layer's normalised input. `[E, rows, width]`
#[derive(Clone, Copy)]
pub(super) struct LayerChunk<'a> {
    pub isa: Isa,
    pub rows: usize,
    pub active: &'a [f32],
}

impl LayerMessage {
    /// The message's own linear layer.
    pub fn linear(&self) -> Option<&Linear> {
        match self {
            Self::Vertex(_, linear) => Some(linear.as_ref()),
            Self::None | Self::Triangle(..) => None,
        }
    }

    /// The message's own linear layer, mutable.
    pub fn linear_mut(&mut self) -> Option<&mut Linear> {
        match self {
            Self::Vertex(_, linear) => Some(linear.as_mut()),
            Self::None | Self::Triangle(..) => None,
        }
    }

    /// Scratch floats per board that the other methods need.
    pub fn scratch_len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Vertex(edges, linear) => {
                edges.vertices * (2 * linear.inputs.len().next_multiple_of(16) + linear.columns)
            }
            Self::Triangle(edges, shape) => edges.len() * shape.width,
        }
    }

    /// The linear layer's input: `chunk.active`, or a transformed copy of it in `scratch`.
    pub fn source<'a>(&self, chunk: LayerChunk<'a>, scratch: &'a mut [f32]) -> &'a [f32] {
        let Self::Triangle(edges, shape) = self else { return chunk.active };
        let copy = &mut scratch[..chunk.active.len()];
        copy.copy_from_slice(chunk.active);
        edge_messages::triangles(chunk.isa, edges, *shape, copy);
        copy
    }

    /// Adds the vertex messages to the linear layer's output `y [E, rows, columns]`.
    pub fn add(&self, chunk: LayerChunk<'_>, y: &mut [f32], scratch: &mut [f32]) {
        let Self::Vertex(edges, linear) = self else { return };
        let LayerChunk { isa, rows, active } = chunk;
        let width = active.len() / (edges.len() * rows);
        let (means, rest) = scratch.split_at_mut(edges.vertices * rows * width);
        let out = &mut rest[..edges.vertices * rows * linear.columns];
        edge_messages::vertex_sums(isa, edges, active, edges.vertex_scale(), means);
        linear.start(out);
        let view = View { data: means, width, offset: 0 };
        linear.forward(isa, rows, view, ViewMut { data: out, width: linear.columns, offset: 0 });
        edge_messages::add_ends(isa, edges, out, 1.0, y);
    }

    /// Turns `dx`, the gradient of the linear layer's input, into the gradient of `chunk.active`, and adds the weight gradient of the
    /// message's own layer to `weights`. `dy [E, rows, columns]` is the gradient of the layer's output.
    pub fn backward(
        &self,
        chunk: LayerChunk<'_>,
        dy: &[f32],
        dx: &mut [f32],
        weights: &mut [f32],
        scratch: &mut [f32],
    ) {
        let LayerChunk { isa, rows, active } = chunk;
        match self {
            Self::None => {}
            Self::Triangle(edges, shape) => edge_messages::triangle_gradient(isa, edges, *shape, active, dx),
            Self::Vertex(edges, linear) => {
                let width = active.len() / (edges.len() * rows);
                let (means, rest) = scratch.split_at_mut(edges.vertices * rows * width);
                let (d_out, rest) = rest.split_at_mut(edges.vertices * rows * linear.columns);
                let d_means = &mut rest[..edges.vertices * rows * width];
                edge_messages::vertex_sums(isa, edges, active, edges.vertex_scale(), means);
                edge_messages::vertex_sums(isa, edges, dy, 1.0, d_out);
                let (x, d) = (
                    View { data: means, width, offset: 0 },
                    View { data: d_out, width: linear.columns, offset: 0 },
                );
                let pairs = &linear.tap_map.pairs[0];
                weight_gradient(isa, Operands::F32, pairs, rows, [x, d], weights, linear.columns);
                d_means.fill(0.0);
                linear.backward(isa, rows, d_out, d_means, width);
                edge_messages::add_ends(isa, edges, d_means, edges.vertex_scale(), dx);
            }
        }
    }
}

/// Adds to every edge's `dx [E, L]` its share of the gradient `d [L]` of their mean.
pub(super) fn add_mean_gradient(edges: &CompleteGraph, d: &[f32], dx: &mut [f32]) {
    let share = 1.0 / edges.len() as f32;
    for dx in dx.chunks_exact_mut(d.len()) {
        dx.iter_mut().zip(d).for_each(|(dx, d)| *dx += d * share);
    }
}
