//! What an edge network has besides the layers of a perceptron at every edge: a layer at the vertices, and its own heads.
//! `kernels/net_edge.cu` and `kernels/net/graph.cuh` are the kernels, [`crate::net::edges`] is the reference.

use super::{BoardRange, DeviceForward, ForwardLayer, LayerSpec};
use crate::backend::kernels::device::{Arg, Device, Limits};
use crate::error::{Error, Result};
use crate::model::Tower;

/// The vertices of K_n and their layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeGraph {
    pub vertices: usize,
    /// Channels that are multiplied around triangles.
    pub triangle_channels: usize,
    /// The message of a vertex to its edges, from the mean over them.
    pub layer: ForwardLayer,
}

impl EdgeGraph {
    /// Those of `tower` on K_n, whose layers at edges are as `edges`, for `boards` boards.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where blocks mix different numbers of channels around triangles, and as [`ForwardLayer::new`].
    pub fn new(
        tower: &Tower,
        vertices: usize,
        edges: LayerSpec,
        boards: usize,
        limits: Limits,
    ) -> Result<Self> {
        let mut mixed = tower.blocks.iter().map(|block| block.triangle_channels);
        let triangle_channels = mixed.next().unwrap_or(0);
        if mixed.any(|channels| channels != triangle_channels) {
            let why = "its blocks mix different numbers of channels around triangles";
            return Err(Error::unsupported("the network's kernels on a GPU", why));
        }
        let layer = LayerSpec { height: vertices, width: 1, ..edges };
        Ok(Self { vertices, triangle_channels, layer: ForwardLayer::new(layer, boards * vertices, limits)? })
    }
}

impl<D: Device> DeviceForward<D> {
    /// The blocks: three launches each.
    pub(super) fn edge_tower<'a>(
        &'a self,
        device: &D,
        graph: &EdgeGraph,
        part: BoardRange<'a, D::Buffer>,
    ) -> Result<()> {
        let (tower, work) = (&self.layers.tower, &self.work);
        let messages = Arg::Buffer(&work.vertices, 0);
        for ([first_layer, last_layer], place) in self.places.blocks.iter().zip(&self.places.vertices) {
            self.layer(device, "vertices", (&graph.layer, *place), (&work.a, part), &[messages])?;
            let rest = [self.parameter(first_layer.bias), messages, Arg::Buffer(&work.b, 0)];
            self.layer(device, "edges", (tower, *first_layer), (&work.a, part), &rest)?;
            self.stream_layer(device, "residual_add_bn_relu", (tower, *last_layer), (&work.b, part))?;
        }
        Ok(())
    }

    /// The logits, and each board's mean over edges for the value head.
    pub(super) fn edge_heads<'a>(
        &'a self,
        device: &D,
        part: BoardRange<'a, D::Buffer>,
        logits: Arg<'a, D::Buffer>,
    ) -> Result<()> {
        let a = Arg::Buffer(&self.work.a, 0);
        let args = [a, self.parameter(self.places.policy.weights), logits];
        self.launch_threads(device, "logits", (part, self.layers.squares), &args)?;
        let words = self.layers.dense.spec.inputs / self.numbers().per_word();
        self.launch_threads(device, "mean_of_edges", (part, words), &[a, Arg::Buffer(&self.work.heads, 0)])
    }
}
