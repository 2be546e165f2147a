//! Matrix products over (position, tap) pairs, with register tiles for each instruction set.
//!
//! Operands are arrays of 32-bit units, [`Operands::unit`] numbers each; sums are f32. Sums run over taps and units of input channels in a fixed
//! order, so a row's result does not depend on the other rows.

use super::operands::{Operands, set_number};
use super::tap_map::{TapLink, TapLists};
use super::view::{View, ViewMut};
use crate::net::register_tile::{Columns, DotProduct, Rows, Vector, accumulate};
use crate::simd::Simd;

/// Columns are padded to a multiple of this everywhere.
pub const LANES: usize = 16;
/// Columns of packed weights that lie together.
pub(super) const BLOCK: usize = 32;

/// `n` rounded up to whole vectors.
pub fn padded(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// The weights of a product: for each block of 32 columns (the last may have 16) `[taps, units of inputs, columns]`.
#[derive(Clone, Debug, Default)]
pub struct PackedWeights {
    pub(super) operands: Operands,
    pub(super) taps: usize,
    /// Units of the inputs.
    pub(super) depth: usize,
    pub(super) columns: usize,
    pub(super) data: Vec<f32>,
}

impl PackedWeights {
    /// Zeros for `taps x inputs x columns` weights, `columns` a multiple of [`LANES`].
    pub fn new(operands: Operands, taps: usize, inputs: usize, columns: usize) -> Self {
        assert!(columns.is_multiple_of(LANES), "padded columns");
        // Whole vectors of pairs, of which tiles have one or two; inputs are padded with zeros to that.
        let depth = match operands {
            Operands::F32 => inputs,
            Operands::Bf16 => padded(inputs) / 2,
        };
        Self { operands, taps, depth, columns, data: vec![0.0; taps * depth * columns] }
    }

    /// Where the weight of (tap 0, unit 0, `column`) lies, and the words from one (tap, unit) to the next.
    fn column(&self, column: usize) -> (usize, usize) {
        let block = column / BLOCK;
        let width = BLOCK.min(self.columns - block * BLOCK);
        (block * BLOCK * self.taps * self.depth + column % BLOCK, width)
    }

    /// Sets the weights of one column from `[inputs, taps]`.
    pub fn set_column(&mut self, column: usize, weights: &[f32]) {
        let at = self.column(column);
        for (input, weights) in weights.chunks_exact(self.taps).enumerate() {
            self.set_taps(at, input, weights);
        }
    }

    /// Sets the weights of one input from `[columns, taps]`; columns beyond those given keep theirs.
    pub fn set_input(&mut self, input: usize, weights: &[f32]) {
        for (column, weights) in weights.chunks_exact(self.taps).enumerate() {
            self.set_taps(self.column(column), input, weights);
        }
    }

    /// Sets the weights of one input in the column whose start and step [`PackedWeights::column`] gives. `[taps]`
    fn set_taps(&mut self, (start, step): (usize, usize), input: usize, weights: &[f32]) {
        let Self { operands, depth, data, .. } = self;
        for (tap, &weight) in weights.iter().enumerate() {
            match operands {
                Operands::F32 => data[start + (tap * *depth + input) * step] = weight,
                Operands::Bf16 => {
                    set_number(&mut data[start + (tap * *depth + input / 2) * step], input % 2, weight);
                }
            }
        }
    }
}

/// `out += x W` at every written position of `links`, checked by [`super::gemm_kernels::product`].
pub(super) struct Product<'a> {
    pub links: &'a TapLists,
    pub rows: usize,
    pub x: View<'a>,
    pub weights: &'a PackedWeights,
}

/// Some columns of a product at one written position.
#[derive(Clone, Copy)]
struct OutputStrip<'a> {
    taps: &'a [TapLink],
    /// First row and column of the input at position 0.
    x: *const f32,
    x_width: usize,
    /// Words from one input position to the next.
    x_step: usize,
    /// Units of the inputs.
    depth: usize,
    /// First of the columns in the packed weights.
    weights: *const f32,
    /// Words from one unit's weights to the next.
    block: usize,
    /// First row and column of the output.
    out: *mut f32,
    out_width: usize,
}

impl Product<'_> {
    /// # Safety
    /// Code compiled for `F`; lengths as asserted in [`super::gemm_kernels::product`].
    #[inline(always)]
    pub(super) unsafe fn run<F: DotProduct, const ROWS: usize>(&self, out: ViewMut<'_>) {
        let PackedWeights { taps, depth, columns, ref data, .. } = *self.weights;
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
                        depth,
                        weights: data.as_ptr().add(first * taps * depth),
                        block,
                        out: out_start.add(position * self.rows * out.width + out.offset + first),
                        out_width: out.width,
                    }
                };
                // SAFETY: the strip has `block` columns and `rows` rows.
                unsafe { strip.run::<F, ROWS>(self.rows) };
            }
        }
    }
}

impl OutputStrip<'_> {
    /// # Safety
    /// Code compiled for `F`; the strip has `rows` rows and `block` columns.
    #[inline(always)]
    unsafe fn run<F: DotProduct, const ROWS: usize>(self, rows: usize) {
        let mut column = 0;
        while column < self.block {
            // SAFETY: `column` is inside the block; a block is a whole number of vectors.
            let part =
                unsafe { Self { weights: self.weights.add(column), out: self.out.add(column), ..self } };
            // SAFETY: as above.
            unsafe {
                if column + 2 * F::S::LANES <= self.block {
                    part.columns::<F, ROWS, 2>(rows);
                    column += 2 * F::S::LANES;
                } else {
                    part.columns::<F, ROWS, 1>(rows);
                    column += F::S::LANES;
                }
            }
        }
    }

    /// All rows of `WIDE` vectors of columns.
    ///
    /// # Safety
    /// As [`OutputStrip::run`].
    #[inline(always)]
    unsafe fn columns<F: DotProduct, const ROWS: usize, const WIDE: usize>(&self, rows: usize) {
        let mut row = 0;
        // SAFETY: every tile ends at or before the last row.
        unsafe {
            while row + ROWS <= rows {
                self.tile::<F, ROWS, WIDE>(row);
                row += ROWS;
            }
            while row + 4 <= rows {
                self.tile::<F, 4, WIDE>(row);
                row += 4;
            }
            while row < rows {
                self.tile::<F, 1, WIDE>(row);
                row += 1;
            }
        }
    }

    /// # Safety
    /// As [`OutputStrip::run`]; rows `row..row + ROWS` exist.
    #[inline(always)]
    unsafe fn tile<F: DotProduct, const ROWS: usize, const WIDE: usize>(&self, row: usize) {
        // SAFETY: positions and taps are below `links.sources` and `links.taps`, which the lengths were checked against;
        // rows and columns exist.
        unsafe {
            let mut sums: [[Vector<F>; WIDE]; ROWS] = [[F::S::splat(0.0); WIDE]; ROWS];
            for tap in self.taps {
                let start = self.x.add(tap.position * self.x_step + row * self.x_width);
                let weights = self.weights.add(tap.tap * self.depth * self.block);
                let columns = Columns { start: weights, block: 0, step: self.block };
                let x = Rows { start, row: self.x_width, step: 1 };
                accumulate::<F, ROWS, WIDE>(x, columns, self.depth, &mut sums);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    let out = self.out.add((row + i) * self.out_width + j * F::S::LANES);
                    F::S::store(out, F::S::add(F::S::load(out), *sum));
                }
            }
        }
    }
}

/// `out += x^T dy` over the rows of pairs of positions, checked by [`super::gemm_kernels::weight_gradient`].
pub(super) struct WeightGradient<'a> {
    pub pairs: &'a [(usize, usize)],
    pub rows: usize,
    pub x: View<'a>,
    pub dy: View<'a>,
    pub columns: usize,
}

impl WeightGradient<'_> {
    /// # Safety
    /// Code compiled for `F`; lengths as asserted in [`super::gemm_kernels::weight_gradient`].
    #[inline(always)]
    pub(super) unsafe fn run<F: DotProduct, const INPUTS: usize>(&self, out: &mut [f32]) {
        let inputs = out.len() / self.columns;
        let mut column = 0;
        while column < self.columns {
            // SAFETY: `column` plus the vectors of a tile is at most `columns`.
            unsafe {
                if column + 2 * F::S::LANES <= self.columns {
                    self.strip::<F, INPUTS, 2>(inputs, column, out.as_mut_ptr());
                    column += 2 * F::S::LANES;
                } else {
                    self.strip::<F, INPUTS, 1>(inputs, column, out.as_mut_ptr());
                    column += F::S::LANES;
                }
            }
        }
    }

    /// # Safety
    /// As [`WeightGradient::run`]; `WIDE` vectors from `column` on exist.
    #[inline(always)]
    unsafe fn strip<F: DotProduct, const INPUTS: usize, const WIDE: usize>(
        &self,
        inputs: usize,
        column: usize,
        out: *mut f32,
    ) {
        let mut input = 0;
        // SAFETY: every tile ends at or before the last input.
        unsafe {
            while input + INPUTS <= inputs {
                self.tile::<F, INPUTS, WIDE>(input, column, out);
                input += INPUTS;
            }
            while input < inputs {
                self.tile::<F, 1, WIDE>(input, column, out);
                input += 1;
            }
        }
    }

    /// # Safety
    /// As [`WeightGradient::strip`]; inputs `input..input + INPUTS` exist.
    #[inline(always)]
    unsafe fn tile<F: DotProduct, const INPUTS: usize, const WIDE: usize>(
        &self,
        input: usize,
        column: usize,
        out: *mut f32,
    ) {
        // SAFETY: positions were checked against the chunks' lengths; rows and columns exist.
        unsafe {
            let mut sums: [[Vector<F>; WIDE]; INPUTS] = [[F::S::splat(0.0); WIDE]; INPUTS];
            for &(from, to) in self.pairs {
                let x = self.x.data.as_ptr().add(from * self.rows * self.x.width + self.x.offset + input);
                let dy = self.dy.data.as_ptr().add(to * self.rows * self.dy.width + self.dy.offset + column);
                let x = Rows { start: x, row: 1, step: self.x.width };
                let dy = Columns { start: dy, block: 0, step: self.dy.width };
                accumulate::<F, INPUTS, WIDE>(x, dy, self.rows, &mut sums);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    let out = out.add((input + i) * self.columns + column + j * F::S::LANES);
                    F::S::store(out, F::S::add(F::S::load(out), *sum));
                }
            }
        }
    }
}
