//! f32 kernels for x86-64: AVX-512, AVX2 with FMA.

use super::format::{F32, Vectors, peak};
use super::tile::{Kernels, Tile, tile, tiles};
use std::arch::x86_64::*;

/// AVX-512.
pub(super) struct Avx512;

// SAFETY of every method: called only inside functions that enable AVX-512F, on pointers the tile vouches for.
impl Vectors for Avx512 {
    const LANES: usize = 16;
    type Vector = __m512;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        // SAFETY: see the impl.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m512 {
        // SAFETY: see the impl.
        unsafe { _mm512_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> __m512 {
        // SAFETY: see the impl.
        unsafe { _mm512_set1_ps(*p) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see the impl.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: see the impl.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn relu(a: __m512) -> __m512 {
        // SAFETY: see the impl. The instruction returns its second operand where one is NaN.
        unsafe { _mm512_max_ps(_mm512_setzero_ps(), a) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, a: __m512) {
        // SAFETY: see the impl.
        unsafe { _mm512_storeu_ps(p, a) }
    }

    #[inline(always)]
    unsafe fn store_valid(p: *mut f32, a: __m512, valid: usize) {
        let mask = if valid >= 16 { u16::MAX } else { (1 << valid) - 1 };
        // SAFETY: see the impl; masked lanes are not touched.
        unsafe { _mm512_mask_storeu_ps(p, mask, a) }
    }
}

#[target_feature(enable = "avx512f")]
unsafe fn avx512<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the caller's promise, and this function enables the instructions.
    unsafe { tile::<F32<Avx512>, MR, NV>(t) }
}

#[target_feature(enable = "avx512f")]
unsafe fn avx512_peak(rounds: usize) -> f32 {
    // SAFETY: this function enables the instructions.
    unsafe { peak::<F32<Avx512>, 16>(rounds) }
}

pub(super) static AVX512: Kernels = Kernels {
    name: "avx512",
    lanes: 16,
    unit: 1,
    out: 1,
    tiles: [
        tiles!(avx512, 1, [1 2 3 4 5 6 7 8 9 10 11 12]),
        tiles!(avx512, 2, [1 2 3 4 5 6 7 8 9 10 11 12]),
        tiles!(avx512, 4, [1 2 3 4 5 6]),
    ],
    peak: avx512_peak,
    chains: 16,
    matrices: None,
};

/// AVX2 with FMA.
pub(super) struct Avx2;

// SAFETY of every method: called only inside functions that enable AVX2 and FMA, on pointers the tile vouches for.
impl Vectors for Avx2 {
    const LANES: usize = 8;
    type Vector = __m256;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        // SAFETY: see the impl.
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m256 {
        // SAFETY: see the impl.
        unsafe { _mm256_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> __m256 {
        // SAFETY: see the impl.
        unsafe { _mm256_set1_ps(*p) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see the impl.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: see the impl.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn relu(a: __m256) -> __m256 {
        // SAFETY: see the impl. The instruction returns its second operand where one is NaN.
        unsafe { _mm256_max_ps(_mm256_setzero_ps(), a) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, a: __m256) {
        // SAFETY: see the impl.
        unsafe { _mm256_storeu_ps(p, a) }
    }

    #[inline(always)]
    unsafe fn store_valid(p: *mut f32, a: __m256, valid: usize) {
        let mut lanes = [0.0; 8];
        // SAFETY: see the impl; `lanes` holds a vector, and only valid lanes are copied.
        unsafe {
            _mm256_storeu_ps(lanes.as_mut_ptr(), a);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), p, valid.min(8));
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the caller's promise, and this function enables the instructions.
    unsafe { tile::<F32<Avx2>, MR, NV>(t) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_peak(rounds: usize) -> f32 {
    // SAFETY: this function enables the instructions.
    unsafe { peak::<F32<Avx2>, 12>(rounds) }
}

pub(super) static AVX2: Kernels = Kernels {
    name: "avx2",
    lanes: 8,
    unit: 1,
    out: 1,
    tiles: [tiles!(avx2, 1, [1 2 3 4 5 6]), tiles!(avx2, 2, [1 2 3 4 5 6]), tiles!(avx2, 4, [1 2])],
    peak: avx2_peak,
    chains: 12,
    matrices: None,
};
