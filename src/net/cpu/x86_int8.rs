//! 8-bit integer kernels for x86-64 with AVX-512 VNNI: unsigned activations, which follow a relu, times signed weights.
//!
//! Sums of products are exact 32-bit integers: up to 4,096 channels times 9 taps times 255 * 127 they cannot overflow.

use super::format::{Format, peak};
use super::kernels::Kernels;
use super::tile::{Tile, tile};
use super::x86::avx512_tiles;
use crate::net::register_tile::DotProduct;
use crate::simd::{Avx512, Simd};
use std::arch::x86_64::*;

/// Reads f32 observations, writes bytes.
struct FloatToBytes;

/// Reads and writes bytes.
pub(super) struct Bytes;

/// Rounds sixteen f32, none of them negative, to bytes; more than 255 becomes 255.
///
/// # Safety
/// The machine has AVX-512F; p holds four words.
#[inline(always)]
unsafe fn store_bytes(p: *mut f32, a: __m512) {
    // SAFETY: the kernel contract.
    unsafe { _mm_storeu_si128(p.cast(), _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(a))) }
}

impl DotProduct for FloatToBytes {
    type S = Avx512;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: __m512, b: __m512, acc: __m512) -> __m512 {
        Avx512::mul_add(a, b, acc)
    }
}

impl Format for FloatToBytes {
    const OUT: usize = 4;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: __m512) {
        // SAFETY: the kernel contract.
        unsafe { store_bytes(p, a) }
    }
}

impl DotProduct for Bytes {
    type S = Avx512;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: __m512, b: __m512, acc: __m512) -> __m512 {
        // SAFETY: the kernel contract.
        unsafe {
            let (a, b, acc) = (_mm512_castps_si512(a), _mm512_castps_si512(b), _mm512_castps_si512(acc));
            _mm512_castsi512_ps(_mm512_dpbusd_epi32(acc, a, b))
        }
    }
}

impl Format for Bytes {
    const OUT: usize = 4;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn add_to_stream(stream: __m512, sum: __m512, dequant_scale: __m512) -> __m512 {
        // SAFETY: the kernel contract.
        unsafe { Self::with_bias(sum, dequant_scale, stream) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn with_bias(sum: __m512, dequant_scale: __m512, bias: __m512) -> __m512 {
        // SAFETY: the kernel contract.
        unsafe { Avx512::mul_add(_mm512_cvtepi32_ps(_mm512_castps_si512(sum)), dequant_scale, bias) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: __m512) {
        // SAFETY: the kernel contract.
        unsafe { store_bytes(p, a) }
    }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx512f")]
unsafe fn stem<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the kernel contract; this function enables the instructions.
    unsafe { tile::<FloatToBytes, MR, NV>(t) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx512f")]
unsafe fn stem_peak(rounds: usize) -> f32 {
    // SAFETY: this function enables the instructions.
    unsafe { peak::<FloatToBytes, 16>(rounds) }
}

pub(super) static STEM: Kernels = Kernels {
    name: "avx512",
    lanes: Avx512::LANES,
    unit: 1,
    out: 4,
    tiles: avx512_tiles!(stem),
    peak: stem_peak,
    chains: 16,
    matrices: None,
};

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn bytes<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the kernel contract; this function enables the instructions.
    unsafe { tile::<Bytes, MR, NV>(t) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn bytes_peak(rounds: usize) -> f32 {
    // SAFETY: this function enables the instructions.
    unsafe { peak::<Bytes, 16>(rounds) }
}

pub(super) static TOWER: Kernels = Kernels {
    name: "avx512-vnni",
    lanes: Avx512::LANES,
    unit: 4,
    out: 4,
    tiles: avx512_tiles!(bytes),
    peak: bytes_peak,
    chains: 16,
    matrices: None,
};
