//! 8-bit integer kernels for 64-bit ARM: products of signed bytes on machines with DotProd, of matrices of unsigned with signed ones on
//! those with I8MM. The standard library's functions for both are unstable, hence the assembly.

use super::aarch64::neon_kernels;
use super::aarch64_pairs::pair_kernels;
use super::format::WeightFormat;
use super::int8::{ByteProducts, ByteStore, Bytes, FloatToBytes};
use crate::simd::Neon;
use std::arch::aarch64::*;
use std::arch::asm;

type Words = [float32x4_t; 1];

impl ByteStore for Neon {
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_bytes(p: *mut f32, [a]: Words) {
        // SAFETY: the kernel contract. The minimum of a NaN and a number is the number.
        unsafe {
            let integers = vcvtnq_u32_f32(vminnmq_f32(a, vdupq_n_f32(255.0)));
            let narrowed = vmovn_u32(integers);
            let bytes = vmovn_u16(vcombine_u16(narrowed, narrowed));
            vst1_lane_u32::<0>(p.cast(), vreinterpret_u32_u8(bytes));
        }
    }
}

/// `sdot`, for which 128 is subtracted from activations: their highest bit is flipped.
struct SignedProducts;

impl SignedProducts {
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn less_128([a]: Words) -> float32x4_t {
        // SAFETY: the kernel contract.
        unsafe {
            let flipped = veorq_u32(vreinterpretq_u32_f32(a), vdupq_n_u32(0x8080_8080));
            vreinterpretq_f32_u32(flipped)
        }
    }
}

impl ByteProducts for SignedProducts {
    type S = Neon;
    const WEIGHTS: WeightFormat = WeightFormat::SignedBytes;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: Words, [b]: Words, [mut acc]: Words) -> Words {
        // SAFETY: the kernel contract; the instruction touches nothing but these registers.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {acc:v}.4s, {b:v}.16b, {a:v}.16b",
                acc = inout(vreg) acc, a = in(vreg) Self::less_128(a), b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        [acc]
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_quad(p: *const f32) -> Words {
        // SAFETY: the kernel contract.
        unsafe { [Self::less_128([vld1q_f32(p)])] }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot_lane<const LANE: i32>([a]: Words, [b]: Words, [mut acc]: Words) -> Words {
        // SAFETY: as for `dot`.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {acc:v}.4s, {b:v}.16b, {a:v}.4b[{lane}]",
                acc = inout(vreg) acc, a = in(vreg) a, b = in(vreg) b, lane = const LANE,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        [acc]
    }
}

/// `usmmla`, which multiplies two rows of eight bytes with those of two outputs.
struct MatrixProducts;

impl ByteProducts for MatrixProducts {
    type S = Neon;
    const WEIGHTS: WeightFormat = WeightFormat::Pairs;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot([a]: Words, [b]: Words, [mut acc]: Words) -> Words {
        // SAFETY: the kernel contract; the instruction touches nothing but these registers.
        unsafe {
            asm!(
                ".arch_extension i8mm",
                "usmmla {acc:v}.4s, {a:v}.16b, {b:v}.16b",
                acc = inout(vreg) acc, a = in(vreg) a, b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        [acc]
    }
}

neon_kernels!(STEM = "neon", FloatToBytes<Neon>);
neon_kernels!(SIGNED = "neon-sdot", Bytes<SignedProducts>);
pair_kernels!(MATRIX = "neon-usmmla", Bytes<MatrixProducts>);
