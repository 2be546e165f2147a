//! Tiles of instructions of 64-bit ARM that multiply a matrix of two rows by two units with one of two units by two outputs, for machines
//! with BF16 or I8MM. Four sums of a register are those of two rows and two outputs.

use super::format::Format;
use super::tile::Tile;
use crate::net::register_tile::{BLOCK, Columns, Vector};
use crate::simd::{Neon, Simd};
use std::arch::aarch64::*;
use std::array::from_fn;

/// Kernels of pairs. Of 32 registers the sums of 4 x 4 take 16, the rows 4 and their pairs 2; the rest are for weights. Eight rows of two
/// vectors have as many sums and need twice the instructions that pair rows.
macro_rules! pair_kernels {
    ($static:ident = $name:literal, $format:ty) => {
        $crate::net::cpu::kernels::kernels! {
            static $static = $name, $format, sums $crate::net::cpu::aarch64_pairs::sums_of_pairs;
            chains 16;
            rows [1 2 3 4 5 6 7 8] [1 2 3 4 5 6] [1 2 3 4]
        }
    };
}
pub(super) use pair_kernels;

/// The maximum number of pairs of rows of a tile.
const MAX_PAIRS: usize = 4;

/// Words of a vector's weights for two steps.
const VECTOR: usize = 2 * Neon::<1>::LANES;

/// Sums of two rows and of the two lower and the two upper outputs of a vector.
type Sums<const NV: usize> = [[[float32x4_t; 2]; NV]; MAX_PAIRS];

/// Sums of products over taps and units. The last of an odd number of rows is multiplied twice.
///
/// # Safety
/// As for [`super::kernels::TileFn`]; `F::dot` multiplies matrices.
#[inline(always)]
pub(super) unsafe fn sums_of_pairs<F, const MR: usize, const NV: usize>(t: &Tile<'_>) -> [[Vector<F>; NV]; MR]
where
    F: Format<S = Neon, Weights = Vector<F>>,
{
    const { assert!(MR.div_ceil(2) <= MAX_PAIRS, "a row without sums") };
    let step = t.block_vectors * VECTOR;
    // SAFETY: the kernel contract; x and weights hold `depth` units, an even number, for every tap.
    unsafe {
        let mut sums = [[[vdupq_n_f32(0.0); 2]; NV]; MAX_PAIRS];
        for tap in t.taps {
            let start = t.weights.wrapping_add(tap.index * (t.depth / 2) * step);
            let mut columns = Columns { start, block: t.block, step };
            let x = t.x.offset(tap.shift * t.x_position);
            let mut rows: [*const f32; MR] = from_fn(|row| x.wrapping_add(row * t.x_row));
            for _ in 0..t.depth / 4 {
                let units = rows.map(|row| vld1q_f32(row));
                multiply::<F, 0, MR, NV>(&units, columns, &mut sums);
                multiply::<F, 1, MR, NV>(&units, columns.after(1), &mut sums);
                rows = rows.map(|row| row.wrapping_add(4));
                columns = columns.after(2);
            }
            if !t.depth.is_multiple_of(4) {
                let units = rows.map(|row| vcombine_f32(vld1_f32(row), vdup_n_f32(0.0)));
                multiply::<F, 0, MR, NV>(&units, columns, &mut sums);
            }
        }
        from_fn(|row| {
            let sums = sums[row / 2];
            sums.map(|[low, high]| [if row % 2 == 0 { half::<0>(low, high) } else { half::<1>(low, high) }])
        })
    }
}

/// Adds the products of units 2 HALF and 2 HALF + 1 of every row with NV vectors.
///
/// # Safety
/// The kernel contract of [`crate::isa`].
#[inline(always)]
unsafe fn multiply<F, const HALF: usize, const MR: usize, const NV: usize>(
    units: &[float32x4_t; MR],
    columns: Columns,
    sums: &mut Sums<NV>,
) where
    F: Format<S = Neon, Weights = Vector<F>>,
{
    // SAFETY: the kernel contract.
    unsafe {
        // Pairs beyond the rows are not multiplied.
        let pair = |i: usize| half::<HALF>(units[i * 2 % MR], units[(i * 2 + 1).min(MR - 1)]);
        let pairs: [float32x4_t; MAX_PAIRS] = from_fn(pair);
        for j in 0..NV {
            let vector = columns.start.wrapping_add(j / BLOCK * columns.block + j % BLOCK * VECTOR);
            for (i, sums) in sums.iter_mut().enumerate().take(MR.div_ceil(2)) {
                for (k, sum) in sums[j].iter_mut().enumerate() {
                    let weights = F::load_weights(vector.wrapping_add(k * Neon::<1>::LANES));
                    [*sum] = F::dot([pairs[i]], weights, [*sum]);
                }
            }
        }
    }
}

/// The lower (HALF = 0) or upper half of `a`, then that of `b`.
///
/// # Safety
/// None: every machine of this architecture has NEON.
#[inline(always)]
unsafe fn half<const HALF: usize>(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    // SAFETY: as above.
    unsafe {
        let (a, b) = (vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b));
        vreinterpretq_f32_f64(if HALF == 0 { vtrn1q_f64(a, b) } else { vtrn2q_f64(a, b) })
    }
}
