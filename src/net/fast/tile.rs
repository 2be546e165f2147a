//! The one inner kernel: a tile of MR rows by NV vectors of output channels.
//!
//! Activations are 32-bit units: one f32, two bf16 or four bytes. A row holds the units of one (position, board); tap t of an output
//! row reads the row `shift` rows away. Each accumulator takes its products in the order of taps, then units, whatever
//! the tile's shape, so a row's result does not depend on the rows im2col it.

use super::board::Run;
use super::format::{Format, Vector, relu};
use crate::isa::prefetch_at;
use crate::simd::Simd;
#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::ops::Deref;

/// Vectors of a packed weight block: `[taps, depth, BLOCK, LANES]` units.
pub(super) const BLOCK: usize = 2;

/// Words of a row of activations or of the residual stream that lie together: a cache line. Strides from one to the next
/// are 16 where rows are whole.
pub(super) const CHANNEL_BLOCK: usize = 16;

/// One tap of an output row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(super) struct Tap {
    /// Positions between the source and the output.
    pub shift: isize,
    /// Index among the layer's taps, for the weights.
    pub index: usize,
}

/// What becomes of a sum p of products, or s = p + bias. `norm` is relu(scale * x + offset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epilogue {
    /// Residual stream = s; activations = norm(s).
    StemBnRelu,
    /// Residual stream += p; activations = norm(stream). Norms have what such layers would add to each sum.
    ResidualAddBnRelu,
    /// Activations = relu(s).
    BiasRelu,
    /// Activations = relu(s + what the row's two vertices send).
    VertexAddRelu,
    /// f32 output = relu(s).
    BiasReluF32,
    /// f32 output = s, of the valid lanes only.
    BiasF32,
}

/// What the tiles of a layer share that begin at the same output channel. Strides are in 32-bit words.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    /// Units of a tap.
    pub depth: usize,
    /// Words between two pieces of a source row, and between two positions.
    pub x_block_stride: usize,
    pub x_position: isize,
    /// First block of weights, and words from one to the next.
    pub weights: *const f32,
    pub block: usize,
    /// Vectors of one weight block, `BLOCK` or fewer for the last.
    pub block_vectors: usize,
    pub bias: *const f32,
    /// What a sum of byte products is dequant_scale, for each channel.
    pub dequant_scale: *const f32,
    pub scale: *const f32,
    pub offset: *const f32,
    pub stream_block_stride: usize,
    pub out_block_stride: usize,
    pub end_row: usize,
    /// Boards of the chunk, after which `fixed_endpoint` starts again (VertexAddRelu).
    pub boards: usize,
    /// BiasF32 channels from the first one to the layer's last (BiasF32).
    pub valid: usize,
    pub epilogue: Epilogue,
}

/// What one kernel call works on: some rows of some columns. Strides are in 32-bit words.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub columns: &'a Columns,
    pub taps: &'a [Tap],
    /// Source row of the tile's first output row under a shift of 0.
    pub x: *const f32,
    pub x_row: usize,
    /// Residual stream, first row of the tile (StemBnRelu, ResidualAddBnRelu).
    pub stream: *mut f32,
    pub stream_row: usize,
    /// What is sent from the vertex that moves on with the rows, first row of the tile (VertexAddRelu).
    pub moving_endpoint: *const f32,
    /// What is sent from the vertex that stays, first board (VertexAddRelu).
    pub fixed_endpoint: *const f32,
    /// Board of the first row (VertexAddRelu).
    pub board: usize,
    /// Activations or f32 output, first row of the tile.
    pub out: *mut f32,
    pub out_row: usize,
    /// Rows of the tile.
    pub rows: usize,
}

impl Deref for Tile<'_> {
    type Target = Columns;

    fn deref(&self) -> &Columns {
        self.columns
    }
}

/// Words from the start of a row to its word `word`, pieces being `stride` words apart.
#[inline(always)]
pub(super) fn in_row(word: usize, stride: usize) -> usize {
    word / CHANNEL_BLOCK * stride + word % CHANNEL_BLOCK
}

impl Tile<'_> {
    /// Where the activations of a row from channel `lane` on are written.
    ///
    /// # Safety
    /// The tile has the row and the channel.
    #[inline(always)]
    unsafe fn out_at<F: Format>(&self, row: usize, lane: usize) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.out.add(row * self.out_row + in_row(lane / F::OUT, self.out_block_stride)) }
    }

    /// Where the residual stream of a row from channel `lane` on is.
    ///
    /// # Safety
    /// The tile has the row and the channel.
    #[inline(always)]
    unsafe fn stream_at(&self, row: usize, lane: usize) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.stream.add(row * self.stream_row + in_row(lane, self.stream_block_stride)) }
    }
}

/// A kernel of fixed shape.
///
/// # Safety
/// The machine has the kernel's instructions, and every pointer of the tile is valid for what MR rows, NV vectors, the
/// taps, the depth and the epilogue reach.
pub(super) type TileFn = unsafe fn(&Tile<'_>);

/// Some columns of all rows of a chunk, whose rows are in pieces, and whose boards are whole tiles.
pub(super) struct Strip<'a> {
    /// The tile of no rows at position 0.
    pub start: Tile<'a>,
    /// Rows of a matrix, of which a tile has two: the thread is ready for so many.
    pub rows: usize,
    pub runs: &'a [Run],
    /// Words from one position of the residual stream and of the output to the next.
    pub stream_position: usize,
    pub out_position: usize,
}

/// A kernel for strips.
///
/// # Safety
/// As for [`TileFn`], for every tile of the strip.
pub(super) type StripFn = unsafe fn(&Strip<'_>);

/// What kernels that multiply whole matrices need. They read a tile's rows to the last one, whether asked for or not.
pub(super) struct Matrices {
    /// Rows of a matrix; a tile's rows are best a multiple.
    pub rows: usize,
    /// Units that are multiplied at once: a row's units are a multiple.
    pub units: usize,
    /// Kernels for strips of one and two vectors.
    pub strips: [StripFn; 2],
    /// Makes the thread ready for matrices of so many rows, `rows` unless it is for strips, and undoes that.
    pub begin: unsafe fn(usize),
    pub end: unsafe fn(),
}

/// The kernels of one instruction set and number format.
pub(super) struct Kernels {
    pub name: &'static str,
    /// f32 numbers of a vector.
    pub lanes: usize,
    /// Activations of a unit as read.
    pub unit: usize,
    /// Activations of a unit as written.
    pub out: usize,
    /// By log2(NV), then MR - 1.
    pub tiles: [&'static [TileFn]; 3],
    /// `rounds` times `chains` multiplications of whole vectors that wait for nothing but registers.
    pub peak: unsafe fn(rounds: usize) -> f32,
    pub chains: usize,
    /// Where they multiply whole matrices.
    pub matrices: Option<Matrices>,
}

impl Kernels {
    /// The most rows of a strip's tiles; 1 where no matrices are multiplied.
    pub(super) fn tile_rows(&self) -> usize {
        self.matrices.as_ref().map_or(1, |m| 2 * m.rows)
    }

    /// Rows of a matrix in strips over a chunk of `boards` boards, which are as few more than that as make the tiles alike; None
    /// where the chunk is not taken in strips.
    pub(super) fn strip_rows(&self, boards: usize) -> Option<usize> {
        /// With fewer boards more is lost by reading weights for each position than by reading rows from further away.
        const LEAST: usize = 6;
        self.matrices.as_ref().filter(|_| boards >= LEAST)?;
        Some(boards.div_ceil(2 * boards.div_ceil(self.tile_rows())))
    }

    /// The boards of a chunk's arrays, of which the first `boards` count.
    pub(super) fn whole_tiles(&self, boards: usize) -> usize {
        self.strip_rows(boards).map_or(boards, |rows| boards.next_multiple_of(2 * rows))
    }

    /// Units that a row of activations is a multiple of.
    pub(super) fn units(&self) -> usize {
        self.matrices.as_ref().map_or(1, |m| m.units)
    }

    /// Rows that a tile is best a multiple of.
    pub(super) fn batch_multiple(&self) -> usize {
        self.matrices.as_ref().map_or(1, |m| m.rows)
    }

    /// Channels that a row of activations is a multiple of.
    pub(super) fn channels(&self) -> usize {
        self.lanes.max(self.units() * self.unit)
    }

    /// Channels that a layer writes a multiple of: all of a row, but for bytes, of which none is infinite times 0.
    pub(super) fn written(&self) -> usize {
        if self.unit == 4 { self.lanes } else { self.channels() }
    }
}

/// The kernel `$entry` of NV = `$nv` for every listed MR.
macro_rules! tiles {
    ($entry:ident, $nv:literal, [$($mr:literal)*]) => { &[$($entry::<$mr, $nv> as $crate::net::fast::tile::TileFn),*] };
}
pub(super) use tiles;

/// The kernel's body; instantiated inside functions that enable F's instructions.
///
/// # Safety
/// As for [`TileFn`].
#[inline(always)]
pub(super) unsafe fn tile<F: Format, const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the caller's promise covers every row, vector and tap.
    unsafe {
        let sums = products::<F, MR, NV>(t);
        finish::<F, _>(t.epilogue, (t, sums));
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

/// Does what becomes of the sums.
///
/// # Safety
/// As for [`TileFn`], of the tiles that the sums are of.
#[inline(always)]
pub(super) unsafe fn finish<F: Format, S: Sums<F>>(epilogue: Epilogue, sums: S) {
    // SAFETY: the caller's promise covers every row and vector below.
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
                let fixed_endpoint = t.fixed_endpoint.add((t.board + row) % t.boards * t.end_row + lane);
                let moving_endpoint = t.moving_endpoint.add(row * t.end_row + lane);
                let s = F::S::add(
                    F::S::add(with_bias_of::<F>(t, p, lane), F::S::load(fixed_endpoint)),
                    F::S::load(moving_endpoint),
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
#[inline(always)]
unsafe fn with_bias_of<F: Format>(t: &Tile<'_>, sum: Vector<F>, lane: usize) -> Vector<F> {
    // SAFETY: dequant_scale and bias are padded to whole vectors.
    unsafe { F::with_bias(sum, F::S::load(t.dequant_scale.add(lane)), F::S::load(t.bias.add(lane))) }
}

#[inline(always)]
unsafe fn store_norm<F: Format>(t: &Tile<'_>, x: Vector<F>, row: usize, lane: usize) {
    // SAFETY: scale and offset are padded to whole vectors; out holds the row.
    unsafe {
        let (scale, offset) = (F::S::load(t.scale.add(lane)), F::S::load(t.offset.add(lane)));
        F::store_units(t.out_at::<F>(row, lane), relu::<F::S>(F::S::mul_add(x, scale, offset)));
    }
}

/// Sums of products over taps and units, in that order.
#[inline(always)]
unsafe fn products<F: Format, const MR: usize, const NV: usize>(t: &Tile<'_>) -> [[Vector<F>; NV]; MR] {
    // SAFETY: the caller's promise; x and weights hold `depth` units for every tap.
    unsafe {
        let mut sums = [[F::S::splat(0.0); NV]; MR];
        let row = t.block_vectors * F::S::LANES;
        for tap in t.taps {
            // Not unrolled: the compiler would move broadcasts ahead of their step and spill them.
            let mut rows = Rows::new(t.x.offset(tap.shift * t.x_position), t.x_row);
            let mut w = t.weights.add(tap.index * t.depth * row);
            for _ in 0..t.depth {
                step::<F, MR, NV>(t, &rows, w, &mut sums);
                rows.next();
                w = w.add(row);
            }
        }
        sums
    }
}

/// Steps between asking for weights, which come from the second cache, and using them.
const AHEAD: usize = 8;

/// Where the units of a tile's rows are. Every third row has a pointer of its own, and the two after it are one stride and two
/// strides on, which an address can say: to work out twelve addresses one from another takes instructions that get in the way of
/// the multiplications.
struct Rows {
    thirds: [*const f32; 4],
    row: usize,
}

impl Rows {
    #[inline(always)]
    fn new(x: *const f32, row: usize) -> Self {
        Self { thirds: [0, 3, 6, 9].map(|first| x.wrapping_add(first * row)), row }
    }

    #[inline(always)]
    fn at(&self, row: usize) -> *const f32 {
        self.thirds[row / 3].wrapping_add(row % 3 * self.row)
    }

    /// On to the next unit.
    #[inline(always)]
    fn next(&mut self) {
        self.thirds = self.thirds.map(|third| unknown(third.wrapping_add(1)));
    }
}

/// `p`, of which the compiler knows nothing any more: else it works pointers out one from another again.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn unknown(mut p: *const f32) -> *const f32 {
    // SAFETY: there are no instructions.
    unsafe { asm!("/* {} */", inout(reg) p, options(pure, readonly, nostack, preserves_flags)) }
    p
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn unknown(p: *const f32) -> *const f32 {
    p
}

#[inline(always)]
unsafe fn step<F: Format, const MR: usize, const NV: usize>(
    t: &Tile<'_>,
    rows: &Rows,
    w: *const f32,
    sums: &mut [[Vector<F>; NV]; MR],
) {
    // SAFETY: as for `products`.
    unsafe {
        let mut b = [F::S::splat(0.0); NV];
        for (j, b) in b.iter_mut().enumerate() {
            let w = w.add(j / BLOCK * t.block + j % BLOCK * F::S::LANES);
            prefetch_at(w.wrapping_add(AHEAD * t.block_vectors * F::S::LANES));
            *b = F::S::load(w);
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let a = F::S::splat(*rows.at(i));
            for j in 0..NV {
                sums[j] = F::dot(a, b[j], sums[j]);
            }
        }
    }
}
