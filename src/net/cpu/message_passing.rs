//! The messages of an edge network between its layers.

use super::format::Activations;
use super::layer::{Buffers, PackedLayer, RowLayout};
use crate::isa::Isa;
use crate::model::CompleteGraph;
use crate::net::edge_messages::{self, TriangleColumns};
use crate::net::number::{Activation, Bf16, RoundedF32};

/// The messages of an edge network. The factors 1 / (n - 1) of means and those of triangles are folded into the weights that read them.
pub(super) struct EdgeMessages {
    pub edges: CompleteGraph,
    pub isa: Isa,
    /// For every block the channels that are mixed around triangles. `[blocks]`
    pub triangle_channels: Vec<usize>,
    /// For every block the layer that makes the messages of the vertices. `[blocks]`
    pub vertex: Vec<PackedLayer>,
}

/// Arrays of an edge network for one chunk.
#[derive(Clone, Copy)]
pub(super) struct MessageRows {
    /// Sums of activations at every vertex.
    pub sums: RowLayout,
    /// The message of every vertex, f32.
    pub ends: RowLayout,
    /// Means of activations over all edges, f32.
    pub pooled: RowLayout,
    /// Logits by position: one an edge, or those at a point. `[positions, boards, row]`
    pub logits: RowLayout,
}

/// `positions` times `boards` rows as a slice.
///
/// # Safety
/// The rows lie inside their array, hold elements of type T, and nothing else refers to them.
pub(super) unsafe fn slice<'a, T>(rows: RowLayout, positions: usize, boards: usize) -> &'a mut [T] {
    let words = positions * boards * rows.row;
    // SAFETY: the kernel contract; T is a plain number no larger than a word.
    unsafe { std::slice::from_raw_parts_mut(rows.start.cast(), words * size_of::<f32>() / size_of::<T>()) }
}

impl EdgeMessages {
    /// Writes the messages of the vertices in block `number` to `rows.ends`, given the activations `a`.
    ///
    /// # Safety
    /// The arrays are those of the layout for `boards` boards, distinct, with activations in `format`.
    pub(super) unsafe fn send(
        &self,
        number: usize,
        boards: usize,
        format: Activations,
        a: RowLayout,
        rows: MessageRows,
    ) {
        // SAFETY: the kernel contract.
        unsafe {
            match format {
                Activations::F32 => self.vertex_sums::<f32>(boards, a, rows.sums),
                Activations::RoundedF32 => self.vertex_sums::<RoundedF32>(boards, a, rows.sums),
                Activations::Bf16 => self.vertex_sums::<Bf16>(boards, a, rows.sums),
                Activations::Bytes => no_bytes(),
            }
            let buffers =
                Buffers { source: rows.sums, stream: rows.ends, out: rows.ends, ends: RowLayout::NONE };
            self.vertex[number].run(boards, buffers);
        }
    }

    /// Mixes the first channels of the activations `b` of block `number` around triangles.
    ///
    /// # Safety
    /// As for [`EdgeMessages::send`].
    pub(super) unsafe fn mix(&self, number: usize, boards: usize, format: Activations, b: RowLayout) {
        // SAFETY: the kernel contract.
        unsafe {
            match format {
                Activations::F32 => self.triangles::<f32>(number, boards, b),
                Activations::RoundedF32 => self.triangles::<RoundedF32>(number, boards, b),
                Activations::Bf16 => self.triangles::<Bf16>(number, boards, b),
                Activations::Bytes => no_bytes(),
            }
        }
    }

    /// The means of the activations `a` over all edges.
    ///
    /// # Safety
    /// As for [`EdgeMessages::send`].
    pub(super) unsafe fn pool(&self, boards: usize, format: Activations, a: RowLayout, pooled: RowLayout) {
        // SAFETY: the kernel contract; a row of `pooled` has as many elements as one of `a`.
        unsafe {
            match format {
                Activations::F32 | Activations::RoundedF32 => self.mean::<f32>(boards, a, pooled),
                Activations::Bf16 => self.mean::<Bf16>(boards, a, pooled),
                Activations::Bytes => no_bytes(),
            }
        }
    }

    /// # Safety
    /// As for [`EdgeMessages::send`], with activations of type N.
    unsafe fn vertex_sums<N: Activation>(&self, boards: usize, a: RowLayout, sums: RowLayout) {
        let edges = &self.edges;
        // SAFETY: the kernel contract.
        let (a, sums) = unsafe { (slice::<N>(a, edges.len(), boards), slice(sums, edges.vertices, boards)) };
        edge_messages::vertex_sums(self.isa, edges, a, 1.0, sums);
    }

    /// # Safety
    /// As for [`EdgeMessages::send`], with activations of type N.
    unsafe fn triangles<N: Activation>(&self, number: usize, boards: usize, b: RowLayout) {
        let edges = &self.edges;
        // SAFETY: the kernel contract.
        let b = unsafe { slice::<N>(b, edges.len(), boards) };
        let width = b.len() / (edges.len() * boards);
        let shape = TriangleColumns { width, columns: self.triangle_channels[number], scale: 1.0 };
        edge_messages::triangles(self.isa, edges, shape, b);
    }

    /// # Safety
    /// As for [`EdgeMessages::pool`], with activations of type N.
    unsafe fn mean<N: Activation>(&self, boards: usize, a: RowLayout, pooled: RowLayout) {
        let edges = &self.edges;
        // SAFETY: the kernel contract.
        let (a, pooled) = unsafe { (slice::<N>(a, edges.len(), boards), slice(pooled, 1, boards)) };
        edge_messages::mean(self.isa, edges, a, pooled);
    }
}

/// An edge network in bytes, which [`super::check_precision`] refuses.
fn no_bytes() {
    unreachable!("products around triangles have no 8-bit kernels");
}
