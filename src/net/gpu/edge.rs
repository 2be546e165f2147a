//! The parts of an edge network that a perceptron at every edge lacks: a layer at the vertices, and its own heads.
//! `kernels/net_edge.cu` and `kernels/net/graph.cuh` are the kernels, [`crate::net::edge_messages`] is the reference.

use super::blocks::LayerBlock;
use super::board_range::BoardRange;
use super::device_forward::DeviceForward;
use super::edge_graph::EdgeGraph;
use crate::device::{Arg, Device};
use crate::error::Result;

impl<D: Device> DeviceForward<D> {
    /// The blocks: three launches each.
    pub(super) fn edge_tower(
        &self,
        device: &D,
        graph: &EdgeGraph,
        part: BoardRange<'_, D::Buffer>,
    ) -> Result<()> {
        let (tower, work) = (&self.layers.tower, &self.work);
        let messages = device.address(&work.vertices);
        for ([first_layer, last_layer], offsets) in self.offsets.blocks.iter().zip(&self.offsets.vertices) {
            let input = (&work.a, part);
            let block = LayerBlock { output: messages, ..self.block(device, *offsets, input) };
            self.layer(device, "vertices", &graph.layer, &block)?;
            let output = device.address(&work.b);
            let block = LayerBlock { messages, output, ..self.block(device, *first_layer, input) };
            self.layer(device, "edges", tower, &block)?;
            self.stream_layer(device, "residual_add_bn_relu", (tower, *last_layer), (&work.b, part))?;
        }
        Ok(())
    }

    /// The logits, and each board's mean over edges for the value head.
    pub(super) fn edge_heads(
        &self,
        device: &D,
        part: BoardRange<'_, D::Buffer>,
        logits: (&D::Buffer, usize),
    ) -> Result<()> {
        let (work, boards) = (&self.work, part.boards(device));
        let weights = Arg::Buffer(&self.parameters, self.offsets.policy.weights);
        let args = [Arg::Buffer(&work.a, 0), weights, Arg::Buffer(logits.0, logits.1), Arg::of(&boards)];
        self.launch_threads(device, "logits", (boards, self.layers.squares), &args)?;
        let words = self.layers.dense.spec.inputs / self.element_type().per_word();
        let args = [Arg::Buffer(&work.a, 0), Arg::Buffer(&work.heads, 0), Arg::of(&boards)];
        self.launch_threads(device, "mean_of_edges", (boards, words), &args)
    }
}
