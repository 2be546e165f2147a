//! The register-tile kernel of the forward: MR rows by NV vectors of output channels.
//!
//! It is a GEMM whose left operand is gathered by taps: with nine of them a 3x3 convolution, with one a plain product. Activations
//! are 32-bit units: one f32, two bf16 or four bytes. A row holds the units of one (position, board); tap t of an output row reads the
//! row `shift` positions away. Each accumulator adds its products in the order of taps, then units, whatever the tile's shape, so a
//! row's result does not depend on the rows around it.

use super::format::{Format, relu};
use crate::net::register_tile::{Columns, Rows, Vector, accumulate};
use crate::simd::Simd;
use std::ops::Deref;

/// Words of a channel block, a cache line. In the blocked layout the blocks of a row lie apart, else one after the other.
pub(super) const CHANNEL_BLOCK: usize = 16;

/// One tap of an output row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Tap {
    /// Positions between the tile's source rows and those of the tap.
    pub shift: isize,
    /// Number among the layer's taps, for the weights.
    pub index: usize,
}

/// The operation on a sum p of products; s = p + bias, and bn_relu(x) = relu(scale * x + offset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epilogue {
    /// Residual stream = s; activations = bn_relu(s).
    StemBnRelu,
    /// Residual stream += p; activations = bn_relu(stream). The layers' biases are folded into the norms that follow.
    ResidualAddBnRelu,
    /// Activations = relu(s).
    BiasRelu,
    /// Activations = relu(s + the messages of the row's two vertices).
    VertexAddRelu,
    /// f32 output = relu(s).
    BiasReluF32,
    /// f32 output = s, for the valid lanes only.
    BiasF32,
}

/// The operands common to the tiles of a layer that begin at the same output channel. Strides are in 32-bit words.
#[derive(Clone, Copy)]
pub(super) struct TileColumns {
    /// Units of a tap.
    pub depth: usize,
    /// From one channel block of a source row to the next, and from one position to the next.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "read by kernels that multiply matrices, AMX alone")
    )]
    pub x_block_stride: usize,
    pub x_position: isize,
    /// First block of weights, and from one block to the next.
    pub weights: *const f32,
    pub block: usize,
    /// Vectors of one weight block, `BLOCK` or fewer for the last.
    pub block_vectors: usize,
    pub bias: *const f32,
    /// Scale of each channel's sum of byte products.
    pub dequant_scale: *const f32,
    pub scale: *const f32,
    pub offset: *const f32,
    pub stream_block_stride: usize,
    pub out_block_stride: usize,
    pub end_row: usize,
    /// Boards of the chunk, after which the rows of `run_endpoint` repeat (VertexAddRelu).
    pub boards: usize,
    /// Channels from the first one to the layer's last (BiasF32).
    pub valid: usize,
    pub epilogue: Epilogue,
}

/// The operands of one kernel call: some rows of some columns. Strides are in 32-bit words.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub columns: &'a TileColumns,
    pub taps: &'a [Tap],
    /// Source row of the tile's first output row for a shift of 0.
    pub x: *const f32,
    pub x_row: usize,
    /// Residual stream, first row of the tile (StemBnRelu, ResidualAddBnRelu).
    pub stream: *mut f32,
    pub stream_row: usize,
    /// Message of the vertex that differs from row to row, for the first row of the tile (VertexAddRelu).
    pub row_endpoint: *const f32,
    /// Message of the vertex that all positions of the run share, for the first board (VertexAddRelu).
    pub run_endpoint: *const f32,
    /// Board of the first row (VertexAddRelu).
    pub board: usize,
    /// Activations or f32 output, first row of the tile.
    pub out: *mut f32,
    pub out_row: usize,
    /// Rows of the tile.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "read by kernels that multiply matrices, AMX alone")
    )]
    pub rows: usize,
}

impl Deref for Tile<'_> {
    type Target = TileColumns;

    fn deref(&self) -> &TileColumns {
        self.columns
    }
}

/// Words from the start of a row to its word `word`, channel blocks being `stride` words apart.
#[inline(always)]
pub(super) fn in_row(word: usize, stride: usize) -> usize {
    word / CHANNEL_BLOCK * stride + word % CHANNEL_BLOCK
}

impl Tile<'_> {
    /// The activations of a row from channel `lane` on.
    ///
    /// # Safety
    /// The tile has the row and the channel.
    #[inline(always)]
    unsafe fn out_at<F: Format>(&self, row: usize, lane: usize) -> *mut f32 {
        // SAFETY: the kernel contract.
        unsafe { self.out.add(row * self.out_row + in_row(lane / F::OUT, self.out_block_stride)) }
    }

    /// The residual stream of a row from channel `lane` on.
    ///
    /// # Safety
    /// The tile has the row and the channel.
    #[inline(always)]
    unsafe fn stream_at(&self, row: usize, lane: usize) -> *mut f32 {
        // SAFETY: the kernel contract.
        unsafe { self.stream.add(row * self.stream_row + in_row(lane, self.stream_block_stride)) }
    }
}

/// The sums of products of one or more tiles.
pub(super) trait Sums<F: Format> {
    /// Calls `f` with the tile, the sum, row and first lane of every vector.
    ///
    /// # Safety
    /// The caller enabled F's instructions; the sums are those of the tiles.
    unsafe fn each(self, f: impl Fn(&Tile<'_>, Vector<F>, usize, usize));
}

impl<F: Format, const MR: usize, const NV: usize> Sums<F> for (&Tile<'_>, [[Vector<F>; NV]; MR]) {
    /// # Safety
    /// As for [`Sums::each`].
    #[inline(always)]
    unsafe fn each(self, f: impl Fn(&Tile<'_>, Vector<F>, usize, usize)) {
        let (t, sums) = self;
        for (row, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                f(t, sum, row, j * F::S::LANES);
            }
        }
    }
}

/// Applies the epilogue to the sums.
///
/// # Safety
/// As for [`super::kernels::TileFn`], of the tiles that the sums are of.
#[inline(always)]
pub(super) unsafe fn finish<F: Format, S: Sums<F>>(epilogue: Epilogue, sums: S) {
    // SAFETY: the kernel contract.
    unsafe {
        match epilogue {
            Epilogue::StemBnRelu => sums.each(|t, p, row, lane| {
                let s = with_bias_of::<F>(t, p, lane);
                F::S::store(t.stream_at(row, lane), s);
                store_norm::<F>(t, s, row, lane);
            }),
            Epilogue::ResidualAddBnRelu => sums.each(|t, p, row, lane| {
                let stream = t.stream_at(row, lane);
                let s = F::add_to_stream(F::S::load(stream), p, F::S::load(t.dequant_scale.add(lane)));
                F::S::store(stream, s);
                store_norm::<F>(t, s, row, lane);
            }),
            Epilogue::BiasRelu => sums.each(|t, p, row, lane| {
                F::store_units(t.out_at::<F>(row, lane), relu::<F::S>(with_bias_of::<F>(t, p, lane)));
            }),
            Epilogue::VertexAddRelu => sums.each(|t, p, row, lane| {
                let run_endpoint = t.run_endpoint.add((t.board + row) % t.boards * t.end_row + lane);
                let row_endpoint = t.row_endpoint.add(row * t.end_row + lane);
                let s = F::S::add(
                    F::S::add(with_bias_of::<F>(t, p, lane), F::S::load(run_endpoint)),
                    F::S::load(row_endpoint),
                );
                F::store_units(t.out_at::<F>(row, lane), relu::<F::S>(s));
            }),
            Epilogue::BiasReluF32 => sums.each(|t, p, row, lane| {
                F::S::store(t.out.add(row * t.out_row + lane), relu::<F::S>(with_bias_of::<F>(t, p, lane)));
            }),
            Epilogue::BiasF32 => sums.each(|t, p, row, lane| {
                let s = with_bias_of::<F>(t, p, lane);
                F::S::store_first(t.out.add(row * t.out_row + lane), s, t.valid - lane);
            }),
        }
    }
}

/// [`Format::with_bias`] with the constants of the channels from `lane`.
///
/// # Safety
/// The kernel contract of [`crate::isa`].
#[inline(always)]
unsafe fn with_bias_of<F: Format>(t: &Tile<'_>, sum: Vector<F>, lane: usize) -> Vector<F> {
    // SAFETY: dequant_scale and bias are padded to whole vectors.
    unsafe { F::with_bias(sum, F::S::load(t.dequant_scale.add(lane)), F::S::load(t.bias.add(lane))) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[inline(always)]
unsafe fn store_norm<F: Format>(t: &Tile<'_>, x: Vector<F>, row: usize, lane: usize) {
    // SAFETY: scale and offset are padded to whole vectors; out holds the row.
    unsafe {
        let (scale, offset) = (F::S::load(t.scale.add(lane)), F::S::load(t.offset.add(lane)));
        F::store_units(t.out_at::<F>(row, lane), relu::<F::S>(F::S::mul_add(x, scale, offset)));
    }
}

/// Sums of products over taps and units, in that order.
///
/// # Safety
/// The kernel contract of [`crate::isa`].
#[inline(always)]
pub(super) unsafe fn sums_of_taps<F: Format, const MR: usize, const NV: usize>(
    t: &Tile<'_>,
) -> [[Vector<F>; NV]; MR] {
    let step = t.block_vectors * F::S::LANES * F::WEIGHT_WORDS;
    let columns = |tap: &Tap| {
        let start = t.weights.wrapping_add(tap.index * (t.depth + F::WEIGHTS.first_sums()) * step);
        Columns { start, block: t.block, step }
    };
    // SAFETY: the kernel contract; x and weights hold `depth` units for every tap, weights as many first sums as their format has.
    unsafe {
        let mut sums = [[F::S::splat(0.0); NV]; MR];
        if F::WEIGHTS.first_sums() > 0 {
            sums = [first_sums::<F, NV>(t, columns); MR];
        }
        for tap in t.taps {
            let start = t.x.offset(tap.shift * t.x_position);
            let rows = Rows { start, row: t.x_row, step: 1 };
            accumulate::<F, MR, NV>(rows, columns(tap), t.depth, &mut sums);
        }
        sums
    }
}

/// The sums before the first product.
///
/// # Safety
/// The kernel contract of [`crate::isa`].
#[inline(always)]
unsafe fn first_sums<F: Format, const NV: usize>(
    t: &Tile<'_>,
    columns: impl Fn(&Tap) -> Columns,
) -> [Vector<F>; NV] {
    let mut sums = [F::S::splat(0.0); NV];
    for tap in t.taps {
        let unit = columns(tap).after(t.depth);
        for (j, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the weights have a unit more than `depth` for every tap.
            *sum = unsafe { F::begin(*sum, unit.vector::<F>(j)) };
        }
    }
    sums
}
