//! Matrix products over (position, tap) pairs, with register tiles for each instruction set.
//!
//! Sums run over taps and input channels in a fixed order, so a row's result does not depend on the other rows.

use super::tap_map::{TapLink, TapLists};
use crate::isa::Isa;
use crate::net::register_tile::{Columns, F32, Rows, accumulate};
#[cfg(target_arch = "aarch64")]
use crate::simd::Neon;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::simd::{Portable, Simd};

/// Columns are padded to a multiple of this everywhere.
pub const LANES: usize = 16;
/// Columns of packed weights that lie together.
const BLOCK: usize = 32;

/// `n` rounded up to whole vectors.
pub fn padded(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// Some columns of a chunk `[positions, rows, width]`, from `offset` on.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The whole chunk.
    pub data: &'a [f32],
    /// Floats of one row.
    pub width: usize,
    /// First column.
    pub offset: usize,
}

/// As [`View`], to be written.
pub struct ViewMut<'a> {
    /// The whole chunk.
    pub data: &'a mut [f32],
    /// Floats of one row.
    pub width: usize,
    /// First column.
    pub offset: usize,
}

/// The weights of a product: for each block of 32 columns (the last may have 16) `[taps, inputs, columns]`.
#[derive(Clone, Debug, Default)]
pub struct PackedWeights {
    taps: usize,
    inputs: usize,
    columns: usize,
    data: Vec<f32>,
}

impl PackedWeights {
    /// Zeros for `taps x inputs x columns` weights, `columns` a multiple of [`LANES`].
    pub fn new(taps: usize, inputs: usize, columns: usize) -> Self {
        assert!(columns.is_multiple_of(LANES), "padded columns");
        Self { taps, inputs, columns, data: vec![0.0; taps * inputs * columns] }
    }

    /// Where the weight of (tap 0, input 0, `column`) lies, and the floats from one (tap, input) to the next.
    fn column(&self, column: usize) -> (usize, usize) {
        let block = column / BLOCK;
        let width = BLOCK.min(self.columns - block * BLOCK);
        (block * BLOCK * self.taps * self.inputs + column % BLOCK, width)
    }

    /// Sets the weights of one column from `[inputs, taps]`.
    pub fn set_column(&mut self, column: usize, weights: &[f32]) {
        let (start, step) = self.column(column);
        for (input, weights) in weights.chunks_exact(self.taps).enumerate() {
            for (tap, &weight) in weights.iter().enumerate() {
                self.data[start + (tap * self.inputs + input) * step] = weight;
            }
        }
    }

    /// Sets the weights of one input from `[columns, taps]`; columns beyond those given keep theirs.
    pub fn set_input(&mut self, input: usize, weights: &[f32]) {
        for (column, weights) in weights.chunks_exact(self.taps).enumerate() {
            let (start, step) = self.column(column);
            for (tap, &weight) in weights.iter().enumerate() {
                self.data[start + (tap * self.inputs + input) * step] = weight;
            }
        }
    }
}

/// `out += x W` at every written position of `links`.
///
/// # Shapes
/// `x [links.sources, rows, x.width]` from column `x.offset`, `weights [taps, inputs, columns]`,
/// `out [links.lists.len(), rows, out.width]` from column `out.offset`.
pub fn product(
    isa: Isa,
    links: &TapLists,
    rows: usize,
    x: View<'_>,
    weights: &PackedWeights,
    out: ViewMut<'_>,
) {
    assert_eq!(x.data.len(), links.sources * rows * x.width, "input chunk");
    assert_eq!(out.data.len(), links.lists.len() * rows * out.width, "output chunk");
    assert!(x.offset + weights.inputs <= x.width && out.offset + weights.columns <= out.width, "columns");
    assert_eq!(links.taps, weights.taps, "taps");
    let product = Product { links, rows, x, weights };
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the instruction set (see `Isa`); `Product::run`'s bounds were checked above.
        Isa::Amx | Isa::Avx512 => unsafe { product_avx512(&product, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { product_avx2(&product, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Isa::Bfmmla | Isa::Neon => unsafe { product.run::<Neon, 8>(out) },
        // SAFETY: as above.
        _ => unsafe { product.run::<Portable<4>, 4>(out) },
    }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn product_avx512(product: &Product<'_>, out: ViewMut<'_>) {
    // SAFETY: the kernel contract.
    unsafe { product.run::<Avx512, 12>(out) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn product_avx2(product: &Product<'_>, out: ViewMut<'_>) {
    // SAFETY: the kernel contract.
    unsafe { product.run::<Avx2, 6>(out) }
}

struct Product<'a> {
    links: &'a TapLists,
    rows: usize,
    x: View<'a>,
    weights: &'a PackedWeights,
}

/// Some columns of a product at one written position.
#[derive(Clone, Copy)]
struct OutputStrip<'a> {
    taps: &'a [TapLink],
    /// First row and column of the input at position 0.
    x: *const f32,
    x_width: usize,
    /// Floats from one input position to the next.
    x_step: usize,
    inputs: usize,
    /// First of the columns in the packed weights.
    weights: *const f32,
    /// Floats from one input's weights to the next.
    block: usize,
    /// First row and column of the output.
    out: *mut f32,
    out_width: usize,
}

impl Product<'_> {
    /// # Safety
    /// Code compiled for `V`; lengths as asserted in [`product`].
    #[inline(always)]
    unsafe fn run<V: Simd, const ROWS: usize>(&self, out: ViewMut<'_>) {
        let PackedWeights { taps, inputs, columns, ref data } = *self.weights;
        let out_start = out.data.as_mut_ptr();
        for first in (0..columns).step_by(BLOCK) {
            let block = BLOCK.min(columns - first);
            for (position, list) in self.links.lists.iter().enumerate() {
                // SAFETY: the views' columns lie inside their rows, the block inside the packed weights.
                let strip = unsafe {
                    OutputStrip {
                        taps: list,
                        x: self.x.data.as_ptr().add(self.x.offset),
                        x_width: self.x.width,
                        x_step: self.rows * self.x.width,
                        inputs,
                        weights: data.as_ptr().add(first * taps * inputs),
                        block,
                        out: out_start.add(position * self.rows * out.width + out.offset + first),
                        out_width: out.width,
                    }
                };
                // SAFETY: the strip has `block` columns and `rows` rows.
                unsafe { strip.run::<V, ROWS>(self.rows) };
            }
        }
    }
}

impl OutputStrip<'_> {
    /// # Safety
    /// Code compiled for `V`; the strip has `rows` rows and `block` columns.
    #[inline(always)]
    unsafe fn run<V: Simd, const ROWS: usize>(self, rows: usize) {
        let mut column = 0;
        while column < self.block {
            // SAFETY: `column` is inside the block; a block is a whole number of vectors.
            let part =
                unsafe { Self { weights: self.weights.add(column), out: self.out.add(column), ..self } };
            // SAFETY: as above.
            unsafe {
                if column + 2 * V::LANES <= self.block {
                    part.columns::<V, ROWS, 2>(rows);
                    column += 2 * V::LANES;
                } else {
                    part.columns::<V, ROWS, 1>(rows);
                    column += V::LANES;
                }
            }
        }
    }

    /// All rows of `WIDE` vectors of columns.
    ///
    /// # Safety
    /// As [`OutputStrip::run`].
    #[inline(always)]
    unsafe fn columns<V: Simd, const ROWS: usize, const WIDE: usize>(&self, rows: usize) {
        let mut row = 0;
        // SAFETY: every tile ends at or before the last row.
        unsafe {
            while row + ROWS <= rows {
                self.tile::<V, ROWS, WIDE>(row);
                row += ROWS;
            }
            while row + 4 <= rows {
                self.tile::<V, 4, WIDE>(row);
                row += 4;
            }
            while row < rows {
                self.tile::<V, 1, WIDE>(row);
                row += 1;
            }
        }
    }

    /// # Safety
    /// As [`OutputStrip::run`]; rows `row..row + ROWS` exist.
    #[inline(always)]
    unsafe fn tile<V: Simd, const ROWS: usize, const WIDE: usize>(&self, row: usize) {
        // SAFETY: positions and taps are below `links.sources` and `links.taps`, which the lengths were checked against;
        // rows and columns exist.
        unsafe {
            let mut sums = [[V::splat(0.0); WIDE]; ROWS];
            for tap in self.taps {
                let start = self.x.add(tap.position * self.x_step + row * self.x_width);
                let weights = self.weights.add(tap.tap * self.inputs * self.block);
                let columns = Columns { start: weights, block: 0, step: self.block };
                let x = Rows { start, row: self.x_width, step: 1 };
                accumulate::<F32<V>, ROWS, WIDE>(x, columns, self.inputs, &mut sums);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    let out = self.out.add((row + i) * self.out_width + j * V::LANES);
                    V::store(out, V::add(V::load(out), *sum));
                }
            }
        }
    }
}

/// `out += x^T dy` over the rows of all (input, output) position pairs of one tap: the gradient of that tap's weights.
///
/// # Shapes
/// `x [sources, rows, x.width]`, `inputs` columns from `x.offset` on; `dy [.., rows, dy.width]`, `columns` from
/// `dy.offset` on, a multiple of [`LANES`]; `out [inputs, columns]`.
pub fn weight_gradient(
    isa: Isa,
    pairs: &[(usize, usize)],
    rows: usize,
    x: View<'_>,
    dy: View<'_>,
    out: &mut [f32],
    columns: usize,
) {
    let inputs = out.len() / columns;
    assert!(columns.is_multiple_of(LANES) && out.len() == inputs * columns, "gradient");
    assert!(x.offset + inputs <= x.width && dy.offset + columns <= dy.width, "columns");
    let (sources, targets) = (x.data.len() / (rows * x.width), dy.data.len() / (rows * dy.width));
    assert!(pairs.iter().all(|&(from, to)| from < sources && to < targets), "positions");
    let product = WeightGradient { pairs, rows, x, dy, columns };
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the instruction set (see `Isa`); the bounds were checked above.
        Isa::Amx | Isa::Avx512 => unsafe { weight_gradient_avx512(&product, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { weight_gradient_avx2(&product, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Isa::Bfmmla | Isa::Neon => unsafe { product.run::<Neon, 8>(out) },
        // SAFETY: as above.
        _ => unsafe { product.run::<Portable<4>, 4>(out) },
    }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn weight_gradient_avx512(product: &WeightGradient<'_>, out: &mut [f32]) {
    // SAFETY: the kernel contract.
    unsafe { product.run::<Avx512, 8>(out) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn weight_gradient_avx2(product: &WeightGradient<'_>, out: &mut [f32]) {
    // SAFETY: the kernel contract.
    unsafe { product.run::<Avx2, 4>(out) }
}

struct WeightGradient<'a> {
    pairs: &'a [(usize, usize)],
    rows: usize,
    x: View<'a>,
    dy: View<'a>,
    columns: usize,
}

impl WeightGradient<'_> {
    /// # Safety
    /// Code compiled for `V`; lengths as asserted in [`weight_gradient`].
    #[inline(always)]
    unsafe fn run<V: Simd, const INPUTS: usize>(&self, out: &mut [f32]) {
        let inputs = out.len() / self.columns;
        let mut column = 0;
        while column < self.columns {
            // SAFETY: `column` plus the vectors of a tile is at most `columns`.
            unsafe {
                if column + 2 * V::LANES <= self.columns {
                    self.strip::<V, INPUTS, 2>(inputs, column, out.as_mut_ptr());
                    column += 2 * V::LANES;
                } else {
                    self.strip::<V, INPUTS, 1>(inputs, column, out.as_mut_ptr());
                    column += V::LANES;
                }
            }
        }
    }

    /// # Safety
    /// As [`WeightGradient::run`]; `WIDE` vectors from `column` on exist.
    #[inline(always)]
    unsafe fn strip<V: Simd, const INPUTS: usize, const WIDE: usize>(
        &self,
        inputs: usize,
        column: usize,
        out: *mut f32,
    ) {
        let mut input = 0;
        // SAFETY: every tile ends at or before the last input.
        unsafe {
            while input + INPUTS <= inputs {
                self.tile::<V, INPUTS, WIDE>(input, column, out);
                input += INPUTS;
            }
            while input < inputs {
                self.tile::<V, 1, WIDE>(input, column, out);
                input += 1;
            }
        }
    }

    /// # Safety
    /// As [`WeightGradient::strip`]; inputs `input..input + INPUTS` exist.
    #[inline(always)]
    unsafe fn tile<V: Simd, const INPUTS: usize, const WIDE: usize>(
        &self,
        input: usize,
        column: usize,
        out: *mut f32,
    ) {
        // SAFETY: positions were checked against the chunks' lengths; rows and columns exist.
        unsafe {
            let mut sums = [[V::splat(0.0); WIDE]; INPUTS];
            for &(from, to) in self.pairs {
                let x = self.x.data.as_ptr().add(from * self.rows * self.x.width + self.x.offset + input);
                let dy = self.dy.data.as_ptr().add(to * self.rows * self.dy.width + self.dy.offset + column);
                let x = Rows { start: x, row: 1, step: self.x.width };
                let dy = Columns { start: dy, block: 0, step: self.dy.width };
                accumulate::<F32<V>, INPUTS, WIDE>(x, dy, self.rows, &mut sums);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    let out = out.add((input + i) * self.columns + column + j * V::LANES);
                    V::store(out, V::add(V::load(out), *sum));
                }
            }
        }
    }
}
