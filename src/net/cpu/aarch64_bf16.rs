//! bfloat16 kernels for 64-bit ARM: by shifts and fused multiply-adds on any machine, and by the widening products of machines with BF16.
//! Both round as the instruction of AVX-512 does, the product of the high halves before that of the low ones. The products of matrices of
//! the same machines (`bfmmla`) are faster and round otherwise: an instruction set of its own.

use super::aarch64::neon_kernels;
use super::aarch64_pairs::pair_kernels;
use super::format::{Activations, Format, WeightFormat};
use super::kernels::kernels;
use crate::net::register_tile::{DotProduct, Vector};
use crate::simd::{Neon, Simd};
use std::arch::aarch64::*;
use std::arch::asm;

/// Four bf16 for four numbers, as [`crate::net::number::bf16_bits`] rounds.
///
/// # Safety
/// The kernel contract of [`crate::isa`]; p holds two words.
#[inline(always)]
unsafe fn store_rounded(p: *mut f32, [a]: [float32x4_t; 1]) {
    // SAFETY: the kernel contract.
    unsafe {
        let bits = vreinterpretq_u32_f32(a);
        let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
        let rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), odd);
        let quiet_nan = vorrq_u32(bits, vdupq_n_u32(0x0040_0000));
        let rounded = vbslq_u32(vceqq_f32(a, a), rounded, quiet_nan);
        vst1_u16(p.cast(), vshrn_n_u32::<16>(rounded));
    }
}

/// Fused multiply-adds. Weights are in memory as f32, the high halves of a vector's units before the low ones.
struct NeonBf16;

impl NeonBf16 {
    /// The high and the low halves of units.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn high_and_low([a]: [float32x4_t; 1]) -> [float32x4_t; 2] {
        let high: float32x4_t;
        // SAFETY: the kernel contract. Of an `and` that the compiler knows it would make one for each lane that a product takes.
        unsafe {
            asm!(
                "and {high:v}.16b, {a:v}.16b, {mask:v}.16b",
                high = lateout(vreg) high, a = in(vreg) a, mask = in(vreg) vdupq_n_u32(0xFFFF_0000),
                options(pure, nomem, nostack, preserves_flags),
            );
            [high, vreinterpretq_f32_u32(vshlq_n_u32::<16>(vreinterpretq_u32_f32(a)))]
        }
    }
}

impl DotProduct for NeonBf16 {
    type S = Neon;
    type Weights = [float32x4_t; 2];
    const UNIT: usize = 2;
    const BY_LANE: bool = true;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> [float32x4_t; 2] {
        // SAFETY: the kernel contract.
        unsafe { [vld1q_f32(p), vld1q_f32(p.add(4))] }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: Vector<Self>, [high, low]: [float32x4_t; 2], [acc]: Vector<Self>) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe {
            let [a_high, a_low] = Self::high_and_low(a);
            [vfmaq_f32(vfmaq_f32(acc, a_high, high), a_low, low)]
        }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_quad(p: *const f32) -> [Vector<Self>; 2] {
        // SAFETY: the kernel contract.
        unsafe { Self::high_and_low(Neon::load(p)).map(|half| [half]) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot_lane<const LANE: i32>(
        [[a_high], [a_low]]: [Vector<Self>; 2],
        [high, low]: [float32x4_t; 2],
        [acc]: Vector<Self>,
    ) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe { [vfmaq_laneq_f32::<LANE>(vfmaq_laneq_f32::<LANE>(acc, high, a_high), low, a_low)] }
    }
}

impl Format for NeonBf16 {
    const WRITES: Activations = Activations::Bf16;
    const WEIGHTS: WeightFormat = WeightFormat::HighLow;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: Vector<Self>) {
        // SAFETY: the kernel contract; four numbers of 16 bits are two words.
        unsafe { store_rounded(p, a) }
    }
}

// The halves of a row's units take two registers: 4 x 4 sums, 8 halves and 2 of weights are 26 of 32, 6 x 2 sums as many.
kernels! {
    static NEON = "neon-bf16", NeonBf16;
    chains 16;
    rows [1 2 3 4 5 6 7 8] [1 2 3 4 5 6] [1 2 3 4]
}

/// `bfmlalt` and `bfmlalb`, which multiply the odd and the even bf16 of two registers, exactly, and round the sum in f32.
struct WideningBf16;

impl DotProduct for WideningBf16 {
    type S = Neon;
    type Weights = Vector<Self>;
    const UNIT: usize = 2;
    const BY_LANE: bool = true;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe { Neon::load(p) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot([a]: Vector<Self>, [b]: Vector<Self>, [mut acc]: Vector<Self>) -> Vector<Self> {
        // SAFETY: the kernel contract; the instructions touch nothing but these registers.
        unsafe {
            asm!(
                ".arch_extension bf16",
                "bfmlalt {acc:v}.4s, {a:v}.8h, {b:v}.8h",
                "bfmlalb {acc:v}.4s, {a:v}.8h, {b:v}.8h",
                acc = inout(vreg) acc, a = in(vreg) a, b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        [acc]
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot_lane<const LANE: i32>(
        [[a], _]: [Vector<Self>; 2],
        [b]: Vector<Self>,
        [mut acc]: Vector<Self>,
    ) -> Vector<Self> {
        // SAFETY: as for `dot`. An element of 16 bits is one of the lower registers.
        unsafe {
            asm!(
                ".arch_extension bf16",
                "bfmlalt {acc:v}.4s, {b:v}.8h, {a:v}.h[2 * {lane} + 1]",
                "bfmlalb {acc:v}.4s, {b:v}.8h, {a:v}.h[2 * {lane}]",
                acc = inout(vreg) acc, a = in(vreg_low16) a, b = in(vreg) b, lane = const LANE,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        [acc]
    }
}

impl Format for WideningBf16 {
    const WRITES: Activations = Activations::Bf16;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: Vector<Self>) {
        // SAFETY: the kernel contract; four numbers of 16 bits are two words.
        unsafe { store_rounded(p, a) }
    }
}

neon_kernels!(WIDENING = "neon-bfmlal", WideningBf16);

/// `bfmmla`, which multiplies two rows of four bf16 with those of two outputs. Products of a pair are added before the sum, rounded to odd,
/// denormals are 0.
struct MatrixBf16;

impl DotProduct for MatrixBf16 {
    type S = Neon;
    type Weights = Vector<Self>;
    const UNIT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe { Neon::load(p) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot([a]: Vector<Self>, [b]: Vector<Self>, [mut acc]: Vector<Self>) -> Vector<Self> {
        // SAFETY: the kernel contract; the instruction touches nothing but these registers.
        unsafe {
            asm!(
                ".arch_extension bf16",
                "bfmmla {acc:v}.4s, {a:v}.8h, {b:v}.8h",
                acc = inout(vreg) acc, a = in(vreg) a, b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        [acc]
    }
}

impl Format for MatrixBf16 {
    const WRITES: Activations = Activations::Bf16;
    const WEIGHTS: WeightFormat = WeightFormat::Pairs;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: Vector<Self>) {
        // SAFETY: the kernel contract; four numbers of 16 bits are two words.
        unsafe { store_rounded(p, a) }
    }
}

pair_kernels!(MATRIX = "neon-bfmmla", MatrixBf16);
