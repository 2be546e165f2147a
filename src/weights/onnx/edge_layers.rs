//! Layers on the edges of K_n, `[batch, C, E]`: products with weights from the left, sums over edges from the right.

use super::graph::Attribute;
use super::layers::{LayerWriter, scaled_rows};
use crate::error::{Error, Result};
use crate::model::{ActivationShape, CompleteGraph};

/// The names of constants: n x n matrices and the edges of K_n.
struct Cells {
    /// The edge of each cell, and any on the diagonal. `[n n]`
    edges: String,
    /// The root of the sum's scale in each cell, and 0 on the diagonal. `[n n]`
    scales: String,
    /// The cell above the diagonal of each edge. `[E]`
    of_edges: String,
}

impl LayerWriter<'_> {
    /// The same weights at every edge.
    pub(super) fn product(&mut self, index: usize) -> Result<String> {
        let norm = self.folded(index)?;
        let (weight_name, weight) = self.param(index, 0);
        let weight = self.graph.matrix(weight_name, &weight.shape, &scaled_rows(weight, norm.as_ref()))?;
        let (name, x) = (self.name(index), self.read(index));
        let Some(norm) = norm else { return Ok(self.graph.node("MatMul", &name, &[&weight, &x], &[])) };
        let product = self.graph.node("MatMul", &format!("{name}.product"), &[&weight, &x], &[]);
        self.with_offset(&name, &product, &norm.offset)
    }

    /// The edges' own part, and what the vertices at their ends send: sums over the edges at each vertex, whose mean is in the weights.
    pub(super) fn edge_message(&mut self, index: usize) -> Result<String> {
        let norm = self.folded(index)?;
        let edges = self.edges(index)?;
        let (name, x) = (self.name(index), self.read(index));
        let ((own_name, own), (sent_name, sent)) = (self.param(index, 0), self.param(index, 1));
        let own = self.graph.matrix(own_name, &own.shape, &scaled_rows(own, norm.as_ref()))?;
        let mean = (edges.vertices - 1) as f64;
        let means = scaled_rows(sent, norm.as_ref()).into_iter().map(|w| (f64::from(w) / mean) as f32);
        let sent = self.graph.matrix(sent_name, &sent.shape, &means.collect::<Vec<_>>())?;
        let (n, len) = (edges.vertices, edges.len());
        let touches = |edge: usize, vertex: usize| f32::from(u8::from(edges.ends[edge].contains(&vertex)));
        let to_vertices: Vec<f32> = (0..len * n).map(|at| touches(at / n, at % n)).collect();
        let to_edges: Vec<f32> = (0..n * len).map(|at| touches(at % len, at / len)).collect();
        let to_vertices = self.graph.vector("edges_to_vertices", &[len, n], &to_vertices)?;
        let to_edges = self.graph.vector("vertices_to_edges", &[n, len], &to_edges)?;

        let own = self.graph.node("MatMul", &format!("{name}.own"), &[&own, &x], &[]);
        let sums = self.graph.node("MatMul", &format!("{name}.sums"), &[&x, &to_vertices], &[]);
        let sent = self.graph.node("MatMul", &format!("{name}.sent"), &[&sent, &sums], &[]);
        let ends = self.graph.node("MatMul", &format!("{name}.ends"), &[&sent, &to_edges], &[]);
        let Some(norm) = norm else { return Ok(self.graph.node("Add", &name, &[&own, &ends], &[])) };
        let sum = self.graph.node("Add", &format!("{name}.sum"), &[&own, &ends], &[]);
        self.with_offset(&name, &sum, &norm.offset)
    }

    /// The product of the symmetric n x n matrices of the first channels with themselves, which is the sum over triangles, beside the
    /// other channels. Each of the two matrices carries the square root of the sum's scale.
    pub(super) fn triangle_mix(&mut self, index: usize, channels: usize) -> Result<String> {
        let (name, x) = (self.name(index), self.read(index));
        if channels == 0 {
            return Ok(x);
        }
        let edges = self.edges(index)?;
        let Cells { of_edges, edges: of_cells, scales } = self.cells(&edges)?;
        let (n, all) = (edges.vertices as i64, self.model.layers[index].shape.channels());
        let [zero, mixed, end] = [0, channels, all].map(|channel| self.graph.channel(channel));
        let axis = self.graph.channel_axis();
        let square = self.graph.integers("shape_of_matrices", &[0, channels as i64, n, n]);
        let flat = self.graph.integers("shape_of_cells", &[0, channels as i64, n * n]);

        let by_edge = [Attribute::Int("axis", 2)];
        let first = self.graph.node("Slice", &format!("{name}.mixed"), &[&x, &zero, &mixed, &axis], &[]);
        let cells = self.graph.node("Gather", &format!("{name}.cells"), &[&first, &of_cells], &by_edge);
        let scaled = self.graph.node("Mul", &format!("{name}.scaled"), &[&cells, &scales], &[]);
        let matrix = self.graph.node("Reshape", &format!("{name}.matrix"), &[&scaled, &square], &[]);
        let products = self.graph.node("MatMul", &format!("{name}.products"), &[&matrix, &matrix], &[]);
        let sums = self.graph.node("Reshape", &format!("{name}.sums"), &[&products, &flat], &[]);
        let sums = self.graph.node("Gather", &format!("{name}.triangles"), &[&sums, &of_edges], &by_edge);
        if channels == all {
            return Ok(sums);
        }
        let rest = self.graph.node("Slice", &format!("{name}.rest"), &[&x, &mixed, &end, &axis], &[]);
        Ok(self.graph.node("Concat", &name, &[&sums, &rest], &[Attribute::Int("axis", 1)]))
    }

    /// The constants of n x n matrices with the edges of K_n in their cells.
    fn cells(&mut self, edges: &CompleteGraph) -> Result<Cells> {
        let n = edges.vertices;
        let edge_of = |i: usize, j: usize| edges.ends.iter().position(|ends| *ends == [i.min(j), i.max(j)]);
        let cells: Vec<Option<usize>> = (0..n * n).map(|at| edge_of(at / n, at % n)).collect();
        let indices: Vec<i64> = cells.iter().map(|edge| edge.unwrap_or(0) as i64).collect();
        let factor = f64::from(edges.triangle_scale()).sqrt() as f32;
        let scales: Vec<f32> = cells.iter().map(|edge| edge.map_or(0.0, |_| factor)).collect();
        let upper: Vec<i64> = edges.ends.iter().map(|&[i, j]| (i * n + j) as i64).collect();
        Ok(Cells {
            edges: self.graph.integers("edges_of_cells", &indices),
            scales: self.graph.vector("scales_of_cells", &[n * n], &scales)?,
            of_edges: self.graph.integers("cells_of_edges", &upper),
        })
    }

    /// `x` with a number added to each channel.
    fn with_offset(&mut self, name: &str, x: &str, offset: &[f32]) -> Result<String> {
        let offset = self.graph.vector(&format!("{name}.bias"), &[offset.len(), 1], offset)?;
        Ok(self.graph.node("Add", name, &[x, &offset], &[]))
    }

    /// The graph of layer `index`.
    fn edges(&self, index: usize) -> Result<CompleteGraph> {
        match self.model.layers[index].shape {
            ActivationShape::Edges { vertices, .. } => Ok(CompleteGraph::new(vertices)),
            shape @ (ActivationShape::Vector(_) | ActivationShape::Board { .. }) => Err(Error::unsupported(
                format!("layer {} as ONNX", self.name(index)),
                format!("it is for the edges of a complete graph, and its activations are {shape}"),
            )),
        }
    }
}
