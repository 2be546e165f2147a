//! bfloat16 kernels for x86-64: AVX-512 BF16, and the same by shifts and fused multiply-adds in AVX2.

use super::format::{Format, peak};
use super::kernels::{Kernels, tiles};
use super::tile::{Tile, tile};
use super::x86::avx512_tiles;
use crate::net::number::bf16_bits;
use crate::net::register_tile::DotProduct;
use crate::simd::{Avx2, Avx512, Simd};
use std::arch::x86_64::*;
use std::mem::transmute;

/// `vdpbf16ps`.
pub(super) struct Avx512Bf16;

impl DotProduct for Avx512Bf16 {
    type S = Avx512;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: __m512, b: __m512, acc: __m512) -> __m512 {
        // SAFETY: the kernel contract; both types are 512 plain bits.
        unsafe { _mm512_dpbf16_ps(acc, transmute::<__m512, __m512bh>(a), transmute::<__m512, __m512bh>(b)) }
    }
}

impl Format for Avx512Bf16 {
    const OUT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: __m512) {
        // SAFETY: the kernel contract; both types are 256 plain bits.
        unsafe { _mm256_storeu_si256(p.cast(), transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(a))) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_pair(p: *mut f32, a: __m512, b: __m512) {
        // SAFETY: the kernel contract; both types are 512 plain bits.
        unsafe { _mm512_storeu_si512(p.cast(), transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(b, a))) }
    }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn avx512<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the kernel contract; this function enables the instructions.
    unsafe { tile::<Avx512Bf16, MR, NV>(t) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn avx512_peak(rounds: usize) -> f32 {
    // SAFETY: this function enables the instructions.
    unsafe { peak::<Avx512Bf16, 16>(rounds) }
}

pub(super) static AVX512: Kernels = Kernels {
    name: "avx512-bf16",
    lanes: Avx512::LANES,
    unit: 2,
    out: 2,
    tiles: avx512_tiles!(avx512),
    peak: avx512_peak,
    chains: 16,
    matrices: None,
};

/// `vdpbf16ps` emulated with AVX2 and FMA. Products of bf16 are exact in f32, so fusing them changes no bit.
struct Avx2Bf16;

impl DotProduct for Avx2Bf16 {
    type S = Avx2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: __m256, b: __m256, acc: __m256) -> __m256 {
        // SAFETY: the kernel contract.
        unsafe {
            let mask = _mm256_castsi256_ps(_mm256_set1_epi32(0xFFFF_0000_u32 as i32));
            let high = |x| _mm256_and_ps(x, mask);
            let low = |x| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(x)));
            _mm256_fmadd_ps(low(a), low(b), _mm256_fmadd_ps(high(a), high(b), acc))
        }
    }
}

impl Format for Avx2Bf16 {
    const OUT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: __m256) {
        // SAFETY: the kernel contract; eight numbers of 16 bits are four words.
        unsafe {
            let mut numbers = [0.0; 8];
            _mm256_storeu_ps(numbers.as_mut_ptr(), a);
            let bf16 = numbers.map(|x| bf16_bits(x) as u16);
            p.cast::<[u16; 8]>().write_unaligned(bf16);
        }
    }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the kernel contract; this function enables the instructions.
    unsafe { tile::<Avx2Bf16, MR, NV>(t) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_peak(rounds: usize) -> f32 {
    // SAFETY: this function enables the instructions.
    unsafe { peak::<Avx2Bf16, 10>(rounds) }
}

pub(super) static AVX2: Kernels = Kernels {
    name: "avx2-bf16",
    lanes: Avx2::LANES,
    unit: 2,
    out: 2,
    // Of 16 registers the sums take at most 8 (4 x 2): the mask and the halves of the operands take some too.
    tiles: [tiles!(avx2, 1, [1 2 3 4 5 6]), tiles!(avx2, 2, [1 2 3 4]), tiles!(avx2, 4, [1 2])],
    peak: avx2_peak,
    chains: 10,
    matrices: None,
};
