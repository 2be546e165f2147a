//! 8-bit integer kernels for x86-64: AVX-512 VNNI, and the same by products of 16-bit integers in AVX2, at the rate of f32.

use super::int8::{ByteProducts, ByteStore, Bytes, FloatToBytes};
use super::kernels::kernels;
use super::x86::avx512_kernels;
use crate::simd::{Avx2, Avx512};
use std::arch::x86_64::*;

impl ByteStore for Avx512 {
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_bytes(p: *mut f32, a: __m512) {
        // SAFETY: the kernel contract. NaN is converted to the largest integer without a sign.
        unsafe { _mm_storeu_si128(p.cast(), _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(a))) }
    }
}

impl ByteStore for Avx2 {
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_bytes(p: *mut f32, a: __m256) {
        // SAFETY: the kernel contract. The minimum is its second operand where the first is NaN.
        unsafe {
            let integers = _mm256_cvtps_epi32(_mm256_min_ps(a, _mm256_set1_ps(255.0)));
            let (low, high) = (_mm256_castsi256_si128(integers), _mm256_extracti128_si256::<1>(integers));
            let words = _mm_packus_epi32(low, high);
            _mm_storel_epi64(p.cast(), _mm_packus_epi16(words, words));
        }
    }
}

/// `vpdpbusd`.
pub(super) struct Vnni;

impl ByteProducts for Vnni {
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

/// Products of 16-bit integers: the even bytes of each unit, then the odd ones.
struct Avx2Bytes;

impl ByteProducts for Avx2Bytes {
    type S = Avx2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: __m256, b: __m256, acc: __m256) -> __m256 {
        // SAFETY: the kernel contract.
        unsafe {
            let (a, b, acc) = (_mm256_castps_si256(a), _mm256_castps_si256(b), _mm256_castps_si256(acc));
            let a_even = _mm256_and_si256(a, _mm256_set1_epi16(0xFF));
            let b_even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(b));
            let (a_odd, b_odd) = (_mm256_srli_epi16::<8>(a), _mm256_srai_epi16::<8>(b));
            let even = _mm256_madd_epi16(a_even, b_even);
            let odd = _mm256_madd_epi16(a_odd, b_odd);
            _mm256_castsi256_ps(_mm256_add_epi32(acc, _mm256_add_epi32(even, odd)))
        }
    }
}

avx512_kernels!(STEM = "avx512", FloatToBytes<Avx512>, "avx512f");
avx512_kernels!(TOWER = "avx512-vnni", Bytes<Vnni>, "avx512f,avx512vnni");

kernels! {
    static AVX2_STEM = "avx2", FloatToBytes<Avx2>, "avx2,fma";
    chains 12;
    rows [1 2 3 4 5 6] [1 2 3 4 5 6] [1 2]
}

// Of 16 registers the sums take at most 8 (4 x 2): the halves of the operands take some too.
kernels! {
    static AVX2_TOWER = "avx2-int8", Bytes<Avx2Bytes>, "avx2,fma";
    chains 8;
    rows [1 2 3 4 5 6] [1 2 3 4] [1 2]
}
