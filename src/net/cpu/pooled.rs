//! The pooling layers of a block. The convolution before a pooling layer writes f32 rows; the pooling layer turns them into activations
//! after the whole board is written.

use super::format::Activations;
use super::layer::{Buffers, PackedLayer, RowLayout};
use super::tile::{CHANNEL_BLOCK, in_row};
use crate::isa::{Isa, for_each_isa};
use crate::model::folded::Affine;
use crate::net::number::{bf16_pair, bf16_rounded};
use crate::net::pooling::{self, PooledLayer};

/// A pooling layer fused with the operations after it.
pub(super) struct FusedPooling {
    pub layer: PooledLayer,
    pub isa: Isa,
    /// After a block's last layer: the sum with the residual stream, and the BatchNorm that reads it.
    pub norm: Option<Affine>,
    /// Activations are written in this step, as bytes.
    pub step: f32,
    /// How activations are written.
    pub writes: Activations,
    /// Channels of a row as written.
    pub width: usize,
}

/// Arrays of pooling layers for one chunk.
#[derive(Clone, Copy)]
pub(super) struct PoolingRows {
    /// Their input, f32.
    pub numbers: RowLayout,
    /// Scratch, a row for each board.
    pub scratch: RowLayout,
}

/// Rows of f32 and where their activations go, in words of the arrays.
#[derive(Clone, Copy)]
pub(super) struct PooledRows {
    boards: usize,
    numbers: RowLayout,
    stream: RowLayout,
    out: RowLayout,
}

impl FusedPooling {
    /// The layers' scratch floats for one board.
    pub(super) fn scratch_len(&self) -> usize {
        self.layer.scratch_len()
    }

    /// Runs the convolution `layer`, and after it the pooling layer `pooled` if there is one.
    ///
    /// # Safety
    /// As for [`PackedLayer::run`]; the arrays of `rows` are those of the layout for `boards` boards, and distinct.
    pub(super) unsafe fn run_after(
        pooled: Option<&Self>,
        layer: &PackedLayer,
        boards: usize,
        buffers: Buffers,
        rows: PoolingRows,
    ) {
        // SAFETY: the kernel contract; a layer without an epilogue of its own writes whole rows of f32.
        unsafe {
            let Some(pooled) = pooled else { return layer.run(boards, buffers) };
            layer.run(boards, Buffers { out: rows.numbers, ..buffers });
            pooled.finish(layer.runs.positions(), boards, buffers, rows);
        }
    }

    /// Turns the convolution's f32 output into activations.
    ///
    /// # Safety
    /// As for [`FusedPooling::run_after`].
    unsafe fn finish(&self, squares: usize, boards: usize, buffers: Buffers, rows: PoolingRows) {
        let PoolingRows { numbers, scratch } = rows;
        let words = |rows: RowLayout| squares * rows.position;
        // SAFETY: the kernel contract: each array has all rows of its positions, and nothing else refers to it.
        unsafe {
            let x = std::slice::from_raw_parts_mut(numbers.start, words(numbers));
            let scratch = std::slice::from_raw_parts_mut(scratch.start, boards * scratch.row);
            let out = std::slice::from_raw_parts_mut(buffers.out.start, words(buffers.out));
            self.layer.forward(self.isa, pooling::BoardRows { boards, width: numbers.row }, x, scratch);
            let rows_of = PooledRows { boards, numbers, stream: buffers.stream, out: buffers.out };
            match &self.norm {
                None => activate(self.isa, self, rows_of, x, out),
                Some(norm) => {
                    let stream = std::slice::from_raw_parts_mut(buffers.stream.start, words(buffers.stream));
                    activate_sum(self.isa, self, norm, rows_of, (x, stream), out);
                }
            }
        }
    }

    /// Writes relu(x) of a block of channels as activations.
    #[inline(always)]
    fn store(&self, x: &[f32], out: &mut [f32]) {
        let relu = |x: f32| if x < 0.0 { 0.0 } else { x };
        match self.writes {
            Activations::F32 => out.iter_mut().zip(x).for_each(|(out, x)| *out = relu(*x)),
            Activations::RoundedF32 => {
                out.iter_mut().zip(x).for_each(|(out, x)| *out = bf16_rounded(relu(*x)));
            }
            Activations::Bf16 => {
                let pairs = out.iter_mut().zip(x.as_chunks::<2>().0);
                pairs.for_each(|(out, &[low, high])| *out = bf16_pair(relu(low), relu(high)));
            }
            Activations::Bytes => {
                let byte = |x: f32| (relu(x) / self.step).round_ties_even().min(255.0) as u8;
                let fours = out.iter_mut().zip(x.as_chunks::<4>().0);
                fours.for_each(|(out, four)| *out = f32::from_le_bytes(four.map(byte)));
            }
        }
    }
}

/// The first channel and number of channels of each block of a row of `width`.
#[inline(always)]
fn blocks(width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width).step_by(CHANNEL_BLOCK).map(move |first| (first, CHANNEL_BLOCK.min(width - first)))
}

impl PooledRows {
    /// The first words of every row: of f32, of the stream and of activations.
    #[inline(always)]
    fn rows(self, words: usize) -> impl Iterator<Item = [usize; 3]> {
        let Self { boards, numbers, stream, out } = self;
        (0..words / numbers.position.max(1)).flat_map(move |square| {
            (0..boards).map(move |board| {
                [numbers, stream, out].map(|rows| square * rows.position + board * rows.row)
            })
        })
    }
}

for_each_isa! {
    /// Activations of relu(x).
    fn activate(pooled: &FusedPooling, rows_of: PooledRows, x: &[f32], out: &mut [f32]) {
        for [from, _, to] in rows_of.rows(x.len()) {
            for (first, channels) in blocks(pooled.width) {
                let to = to + in_row(first / pooled.writes.per_word(), rows_of.out.block_stride);
                pooled.store(&x[from + first..][..channels], &mut out[to..][..channels / pooled.writes.per_word()]);
            }
        }
    }
}

for_each_isa! {
    /// Residual stream += x; activations of relu(norm(stream)).
    fn activate_sum(
        pooled: &FusedPooling,
        norm: &Affine,
        rows_of: PooledRows,
        arrays: (&[f32], &mut [f32]),
        out: &mut [f32],
    ) {
        let (x, stream) = arrays;
        for [from, at, to] in rows_of.rows(x.len()) {
            for (first, channels) in blocks(pooled.width) {
                let x = &x[from + first..][..channels];
                let stream = &mut stream[at + in_row(first, rows_of.stream.block_stride)..][..channels];
                let (scale, offset) = (&norm.scale[first..][..channels], &norm.offset[first..][..channels]);
                let mut y = [0.0; CHANNEL_BLOCK];
                for i in 0..channels {
                    stream[i] += x[i];
                    y[i] = stream[i] * scale[i] + offset[i];
                }
                let to = to + in_row(first / pooled.writes.per_word(), rows_of.out.block_stride);
                pooled.store(&y[..channels], &mut out[to..][..channels / pooled.writes.per_word()]);
            }
        }
    }
}
