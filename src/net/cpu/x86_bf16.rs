//! bfloat16 kernels for x86-64: AVX-512 BF16, and the same by shifts and fused multiply-adds in AVX2.

use super::format::Format;
use super::kernels::kernels;
use super::x86::avx512_kernels;
use crate::net::bf16_products::{Avx2Bf16, Avx512Bf16};
use crate::net::number::bf16_bits;
use std::arch::x86_64::*;
use std::mem::transmute;

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

avx512_kernels!(AVX512 = "avx512-bf16", Avx512Bf16, "avx512f,avx512bf16");

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

// Of 16 registers the sums take at most 8 (4 x 2): the mask and the halves of the operands take some too.
kernels! {
    static AVX2 = "avx2-bf16", Avx2Bf16, "avx2,fma";
    chains 10;
    rows [1 2 3 4 5 6] [1 2 3 4] [1 2]
}
