//! Products of bf16 pairs for [`accumulate`](super::register_tile::accumulate): `vdpbf16ps`, and the same by fused multiply-adds elsewhere.
//!
//! A unit holds two numbers, the first in the low half. The product of the high halves is added first, then that of the low halves; each
//! addition is fused and rounds to nearest even: the bits of the instruction, except that the instruction treats denormals as 0.

use super::number::{bf16_high, bf16_low};
use super::register_tile::DotProduct;
use crate::simd::Simd;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
#[cfg(target_arch = "x86_64")]
use std::{arch::x86_64::*, mem::transmute};

/// `vdpbf16ps`.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512Bf16;

#[cfg(target_arch = "x86_64")]
impl DotProduct for Avx512Bf16 {
    type S = Avx512;
    type Weights = __m512;
    const UNIT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> __m512 {
        // SAFETY: the kernel contract.
        unsafe { Avx512::load(p) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: __m512, b: __m512, acc: __m512) -> __m512 {
        // SAFETY: the kernel contract; both types are 512 plain bits.
        unsafe { _mm512_dpbf16_ps(acc, transmute::<__m512, __m512bh>(a), transmute::<__m512, __m512bh>(b)) }
    }
}

/// `vdpbf16ps` emulated with AVX2 and FMA. Weights with their halves apart in memory, as NEON has them, are no faster here.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2Bf16;

#[cfg(target_arch = "x86_64")]
impl DotProduct for Avx2Bf16 {
    type S = Avx2;
    type Weights = __m256;
    const UNIT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> __m256 {
        // SAFETY: the kernel contract.
        unsafe { Avx2::load(p) }
    }

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

/// Four lanes in plain Rust.
pub(super) struct PortableBf16;

/// The vectors of [`PortableBf16`].
type Portable = crate::simd::Portable<4>;

impl DotProduct for PortableBf16 {
    type S = Portable;
    type Weights = <Portable as Simd>::F32;
    const UNIT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> Self::Weights {
        // SAFETY: the kernel contract.
        unsafe { Portable::load(p) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: Self::Weights, b: Self::Weights, acc: Self::Weights) -> Self::Weights {
        let first = Portable::mul_add(a.map(bf16_high), b.map(bf16_high), acc);
        Portable::mul_add(a.map(bf16_low), b.map(bf16_low), first)
    }
}
