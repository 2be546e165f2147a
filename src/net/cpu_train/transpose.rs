//! Units of rows with those of a column one after the other, as AMX's tiles take the input of a weight gradient.

use super::view::View;
use crate::net::number::bf16_pair;
use std::arch::x86_64::*;

/// Floats of a register.
const LANES: usize = 16;

/// Units of two adjacent rows, those of a column one after the other, position after position; the last of an odd number of rows is with zeros.
/// `x [positions, rows, width]` from column 0 on, `out [width, words]` with words for all units of a column
///
/// # Safety
/// The machine has AVX-512; `width` is a multiple of [`LANES`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) unsafe fn transpose_pairs(x: View<'_>, rows: usize, out: &mut [f32]) {
    const ZEROS: [f32; LANES] = [0.0; LANES];
    let (units, words) = (rows.div_ceil(2), out.len() / x.width);
    for (position, rows_of) in x.data.chunks_exact(rows * x.width).enumerate() {
        for column in (0..x.width).step_by(LANES) {
            for first in (0..units).step_by(LANES) {
                let count = LANES.min(units - first);
                let mut pairs = [_mm512_setzero_ps(); LANES];
                for (unit, pair) in (first..first + count).zip(&mut pairs) {
                    let low_and_high = &rows_of[2 * unit * x.width + column..];
                    let low = &low_and_high[..LANES];
                    let has_second = 2 * unit + 1 < rows;
                    let high = if has_second { &low_and_high[x.width..][..LANES] } else { &ZEROS };
                    let mut numbers = ZEROS;
                    for (number, (&low, &high)) in numbers.iter_mut().zip(low.iter().zip(high)) {
                        *number = bf16_pair(low, high);
                    }
                    // SAFETY: sixteen floats.
                    *pair = unsafe { _mm512_loadu_ps(numbers.as_ptr()) };
                }
                let mask = u16::MAX >> (LANES - count);
                for (i, pairs) in transpose(pairs).into_iter().enumerate() {
                    let out = &mut out[(column + i) * words + position * units + first..][..count];
                    // SAFETY: the mask has `count` words.
                    unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), mask, pairs) };
                }
            }
        }
    }
}

/// The transpose of a matrix of 16 rows: its blocks of 8 by 8 off the diagonal are exchanged, then those of 4 by 4 in each block, and so on.
#[target_feature(enable = "avx512f")]
fn transpose(rows: [__m512; LANES]) -> [__m512; LANES] {
    exchange_blocks::<1>(exchange_blocks::<2>(exchange_blocks::<4>(exchange_blocks::<8>(rows))))
}

/// Exchanges the blocks of STEP by STEP off the diagonal in every block of twice that.
#[target_feature(enable = "avx512f")]
fn exchange_blocks<const STEP: usize>(mut rows: [__m512; LANES]) -> [__m512; LANES] {
    /// Lanes of the upper row of two and, from 16 on, of the lower one.
    const fn lanes(step: usize, lower: bool) -> [i32; LANES] {
        let mut lanes = [0; LANES];
        let mut i = 0;
        while i < LANES {
            let is_left = i & step == 0;
            lanes[i] = match (lower, is_left) {
                (false, true) => i,
                (false, false) => LANES + i - step,
                (true, true) => i + step,
                (true, false) => LANES + i,
            } as i32;
            i += 1;
        }
        lanes
    }
    // SAFETY: sixteen indices each.
    let [upper, lower] = unsafe {
        [const { lanes(STEP, false) }, const { lanes(STEP, true) }].map(|x| _mm512_loadu_epi32(x.as_ptr()))
    };
    for i in (0..LANES).filter(|i| i & STEP == 0) {
        let (a, b) = (rows[i], rows[i + STEP]);
        rows[i] = _mm512_permutex2var_ps(a, upper, b);
        rows[i + STEP] = _mm512_permutex2var_ps(a, lower, b);
    }
    rows
}
