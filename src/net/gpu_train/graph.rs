//! Message passing of an edge network: sums over shared vertices and over triangles, forward and backward, and the mean over edges
//! that the value layers read. The kernels are `kernels/train/graph.cuh`; [`crate::net::edge_messages`] is the reference.

use super::arrays::GraphArrays;
use super::blocks::{MessageBlock, TriangleTerms};
use super::layers::VertexLayers;
use super::passes::{InputGradient, TrainPass, elementwise};
use crate::device::{Arg, Device};
use crate::error::Result;

/// Both parts of an edge network: its layers and its arrays.
pub struct OnGraph<'a, B> {
    graph: &'a VertexLayers,
    arrays: &'a GraphArrays<B>,
}

impl<'p, D: Device> TrainPass<'p, D> {
    /// The layers and arrays of an edge network; None for other networks.
    pub(super) fn on_graph(&self) -> Option<OnGraph<'p, D::Buffer>> {
        let (graph, arrays) = (self.layers.graph.as_ref()?, self.arrays.graph.as_ref()?);
        Some(OnGraph { graph, arrays })
    }

    /// The number of the layer at the vertices of block `block` among all layers.
    fn at_vertices(&self, block: usize) -> usize {
        self.layers.units.len() + 4 + block
    }

    fn columns(&self) -> u32 {
        self.layers.stem.forward.columns
    }

    /// A block that reads `a` and writes `out`.
    fn message_block(&self, graph: &VertexLayers, a: &D::Buffer, out: &D::Buffer) -> MessageBlock {
        MessageBlock {
            a: self.address(a),
            b: 0,
            out: self.address(out),
            boards: self.arrays.boards as u32,
            vertices: graph.vertices as u32,
            width: self.columns(),
            columns: 0,
            scale: 1.0,
            terms: TriangleTerms::Forward,
        }
    }

    /// `out` = `scale` times the sum of the edges `x` at every vertex.
    fn vertex_sums(&self, graph: &VertexLayers, x: &D::Buffer, scale: f32, out: &D::Buffer) -> Result<()> {
        self.over_ends(graph, ("vertex_sums", graph.vertices), x, scale, out)
    }

    /// `out` = `scale` times the sum of `x` over both ends of every edge.
    fn sums_of_ends(&self, graph: &VertexLayers, x: &D::Buffer, scale: f32, out: &D::Buffer) -> Result<()> {
        self.over_ends(graph, ("sums_of_ends", self.layers.area), x, scale, out)
    }

    /// A kernel that writes `rows` rows a board.
    fn over_ends(
        &self,
        graph: &VertexLayers,
        (kernel, rows): (&'static str, usize),
        x: &D::Buffer,
        scale: f32,
        out: &D::Buffer,
    ) -> Result<()> {
        let block = MessageBlock { scale, ..self.message_block(graph, x, out) };
        let numbers = self.arrays.boards * rows * self.columns() as usize;
        self.device.launch(kernel, elementwise(numbers), &[Arg::of(&block)])
    }

    /// `out` = the sums of `terms` over the triangles of `a` and `b`.
    fn triangle_sums(
        &self,
        (graph, block): (&VertexLayers, usize),
        [a, b]: [&D::Buffer; 2],
        terms: TriangleTerms,
        out: &D::Buffer,
    ) -> Result<()> {
        let block = MessageBlock {
            b: self.address(b),
            columns: graph.triangle_columns[block] as u32,
            scale: graph.scales[1],
            terms,
            ..self.message_block(graph, a, out)
        };
        let numbers = self.arrays.boards * self.layers.area * self.columns() as usize;
        self.device.launch("triangle_sums", elementwise(numbers), &[Arg::of(&block)])
    }

    /// The mean over the edges of `x`, or the gradient of that spread over them.
    fn over_board(&self, kernel: &'static str, x: &D::Buffer, rows: usize, out: &D::Buffer) -> Result<()> {
        let sizes =
            [self.arrays.boards, self.layers.area, self.columns() as usize].map(|n| Arg::U32(n as u32));
        let [boards, area, width] = sizes;
        let args = [Arg::Buffer(x, 0), boards, area, width, Arg::Buffer(out, 0)];
        let numbers = self.arrays.boards * rows * self.columns() as usize;
        self.device.launch(kernel, elementwise(numbers), &args)
    }

    /// Computes the input of the layer of unit `number` of an edge network in addition to its activations: triangle products for a block's second layer,
    /// or, for its first, the messages of both endpoints, which are returned to be added to the layer's sums.
    pub(super) fn edge_network_forward(
        &self,
        on: OnGraph<'p, D::Buffer>,
        number: usize,
    ) -> Result<Option<&'p D::Buffer>> {
        let OnGraph { graph, arrays } = on;
        let (block, x) = (number / 2, &self.arrays.active[number]);
        if number % 2 == 1 {
            self.triangle_sums((graph, block), [x, x], TriangleTerms::Forward, &arrays.mixed[block])?;
            return Ok(None);
        }
        self.vertex_sums(graph, x, graph.scales[0], &arrays.means[block])?;
        self.linear_forward(self.at_vertices(block), &arrays.means[block], None, &arrays.sent)?;
        self.sums_of_ends(graph, &arrays.sent, 1.0, &arrays.at_edges)?;
        Ok(Some(&arrays.at_edges))
    }

    /// Backward pass of unit `number` of an edge network: the gradient `dx` of its activations out of `dy`, that of its sums.
    pub(super) fn edge_network_backward(
        &self,
        on: OnGraph<'p, D::Buffer>,
        number: usize,
        dy: &D::Buffer,
        dx: &D::Buffer,
    ) -> Result<()> {
        let OnGraph { graph, arrays } = on;
        let block = number / 2;
        if number % 2 == 1 {
            self.linear_backward(number + 1, dy, InputGradient::Written, None, &arrays.at_edges)?;
            return self.triangle_sums(
                (graph, block),
                [&arrays.at_edges, &self.arrays.active[number]],
                TriangleTerms::Backward,
                dx,
            );
        }
        let vertices = self.at_vertices(block);
        self.vertex_sums(graph, dy, 1.0, &arrays.sent)?;
        self.layer_gradient(vertices, &arrays.means[block], &arrays.sent)?;
        self.linear_backward(vertices, &arrays.sent, InputGradient::Written, None, &arrays.d_means)?;
        self.sums_of_ends(graph, &arrays.d_means, graph.scales[0], dx)?;
        self.linear_backward(number + 1, dy, InputGradient::Added, None, dx)
    }

    /// The input of the value layers, out of the tail.
    pub(super) fn pool(&self, tail: &D::Buffer, pooled: &D::Buffer) -> Result<()> {
        self.over_board("means", tail, 1, pooled)
    }

    /// The gradient of the tail out of that of what the value layers read.
    pub(super) fn spread(&self, d_pooled: &D::Buffer, d: &D::Buffer) -> Result<()> {
        self.over_board("spread_means", d_pooled, self.layers.area, d)
    }
}

impl<'a, B> OnGraph<'a, B> {
    /// The arrays.
    pub(super) fn arrays(self) -> &'a GraphArrays<B> {
        self.arrays
    }
}
