//! What an edge network has besides the layers of a perceptron at every edge: a layer at the vertices, and heads of its own.
//! `kernels/net_edge.cu` and `kernels/net/graph.cuh` are the kernels, [`crate::net::edges`] is the truth.

use super::{DeviceForward, Layer, LayerSpec, threads};
use crate::backend::kernels::device::{Arg, Device, Limits};
use crate::error::Result;
use crate::model::Edges;
use crate::model::NetSpec;

/// The vertices of K_n and their layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Graph {
    pub vertices: usize,
    /// What a vertex sends to its edges, from the mean over them.
    pub layer: Layer,
}

impl Graph {
    /// That of `spec`, whose layers at edges are as `edges`, for `boards` boards.
    pub fn new(spec: &NetSpec, edges: LayerSpec, boards: usize, limits: Limits) -> Result<Self> {
        let vertices = Edges::of_observation(spec.obs, spec.num_actions)?.vertices;
        let layer = LayerSpec { height: vertices, width: 1, ..edges };
        Ok(Self { vertices, layer: Layer::new(layer, boards * vertices, limits)? })
    }
}

impl<D: Device> DeviceForward<D> {
    /// The blocks on `boards` boards: three launches each.
    pub(super) fn edge_tower(&self, device: &D, graph: &Graph, boards: usize) -> Result<()> {
        let (tower, work) = (&self.layers.tower, &self.work);
        let (rows, vertices) = (boards * self.layers.squares, boards * graph.vertices);
        let sent = Arg::Buffer(&work.vertices, 0);
        for ([inner, leave], place) in self.places.blocks.iter().zip(&self.places.vertices) {
            self.layer(device, "vertices", (&graph.layer, *place), (&work.a, vertices), &[sent])?;
            let rest = [self.parameter(inner.bias), sent, Arg::Buffer(&work.b, 0)];
            self.layer(device, "edges", (tower, *inner), (&work.a, rows), &rest)?;
            self.stream_layer(device, "leave", (tower, *leave), (&work.b, rows))?;
        }
        Ok(())
    }

    /// The logits of `boards` boards, and the mean over the edges of each for the value head.
    pub(super) fn edge_heads(&self, device: &D, boards: usize, logits: Arg<'_, D::Buffer>) -> Result<()> {
        let (a, rows) = (Arg::Buffer(&self.work.a, 0), boards * self.layers.squares);
        let args = [a, self.parameter(self.places.policy.weights), logits, Arg::U32(rows as u32)];
        device.launch_in(&self.module, "logits", threads(rows), &args)?;
        let words = self.layers.dense.spec.inputs / self.numbers().per_word();
        let args = [a, Arg::Buffer(&self.work.heads, 0), Arg::U32(boards as u32)];
        device.launch_in(&self.module, "mean_of_edges", threads(boards * words), &args)
    }
}
