//! bfloat16 kernels in plain Rust: `vdpbf16ps`, one operation at a time.
//!
//! A unit holds two numbers, the first in the low half. The product of the high halves is added first, then that of the low halves; each
//! addition is fused and rounds to nearest even: the bits of the instruction, except that the instruction treats denormals as 0.

use super::format::Format;
use super::kernels::kernels;
use super::portable::Portable;
use crate::net::number::{bf16_bits, bf16_high, bf16_low};
use crate::net::register_tile::DotProduct;
use crate::simd::Simd;

/// Four lanes; a unit is two bf16.
struct PortableBf16;

type Vector = <Portable as Simd>::F32;

impl DotProduct for PortableBf16 {
    type S = Portable;
    type Weights = Vector;
    const UNIT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> Vector {
        // SAFETY: the kernel contract.
        unsafe { Portable::load(p) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: Vector, b: Vector, acc: Vector) -> Vector {
        let first = Portable::mul_add(a.map(bf16_high), b.map(bf16_high), acc);
        Portable::mul_add(a.map(bf16_low), b.map(bf16_low), first)
    }
}

impl Format for PortableBf16 {
    const OUT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: Vector) {
        for (i, &x) in a.iter().enumerate() {
            // SAFETY: the kernel contract; LANES numbers of 16 bits are LANES / 2 words.
            unsafe { p.cast::<u16>().add(i).write(bf16_bits(x) as u16) };
        }
    }
}

kernels! {
    static PORTABLE = "portable-bf16", PortableBf16;
    chains 8;
    rows [1 2 3 4] [1 2 3] [1]
}
