//! bfloat16 kernels for x86-64: AVX-512 BF16, and the same by fused multiply-adds of f32 with AVX-512 or AVX2 alone.

use super::bf16::Rounded;
use super::format::{Activations, Format};
use super::kernels::kernels;
use super::x86::avx512_kernels;
use crate::net::bf16_products::Avx512Bf16;
use crate::simd::{Avx2, Avx512};
use std::arch::x86_64::*;
use std::mem::transmute;

impl Format for Avx512Bf16 {
    const WRITES: Activations = Activations::Bf16;

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

avx512_kernels!(AVX512 = "avx512-bf16", Avx512Bf16, "avx512f,avx512bf16");

// For processors with AVX-512 that lack bf16.
avx512_kernels!(AVX512_ROUNDED = "avx512-f32-bf16", Rounded<Avx512>, "avx512f,avx512bw,avx512dq,avx512vl");

// Of 16 registers the sums take at most 12 (6 x 2).
kernels! {
    static AVX2 = "avx2-bf16", Rounded<Avx2>, "avx2,fma";
    chains 12;
    rows [1 2 3 4 5 6] [1 2 3 4 5 6] [1 2]
}
