//! Number formats of activations in memory: f32, bfloat16, in words of f32 too, and IEEE half precision, each rounded to the nearest, ties to even. Twin:
//! `kernels/number.cuh`.

use bytemuck::{Pod, Zeroable};

/// A number format of activations.
pub trait Activation: Copy {
    /// The number as f32.
    fn to_f32(self) -> f32;
    /// The number nearest to `x`, ties to even.
    fn from_f32(x: f32) -> Self;
}

impl Activation for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        x
    }
}

/// A bfloat16 number: the upper half of an f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bf16(u16);

impl Activation for Bf16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        Self(bf16_bits(x) as u16)
    }
}

/// A bfloat16 number as an f32 whose lower half is 0.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct RoundedF32(f32);

impl Activation for RoundedF32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.0
    }

    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        Self(bf16_rounded(x))
    }
}

/// The bfloat16 number nearest to `x`.
#[inline(always)]
pub(super) fn bf16_rounded(x: f32) -> f32 {
    f32::from_bits(bf16_bits(x) << 16)
}

/// A unit of two numbers, the first in its low half.
#[inline(always)]
pub(super) fn bf16_pair(low: f32, high: f32) -> f32 {
    f32::from_bits(bf16_bits(low) | bf16_bits(high) << 16)
}

/// The first number of a unit of two bf16.
#[inline(always)]
pub(super) fn bf16_low(unit: f32) -> f32 {
    f32::from_bits(unit.to_bits() << 16)
}

/// The second number of a unit of two bf16.
#[inline(always)]
pub(super) fn bf16_high(unit: f32) -> f32 {
    f32::from_bits(unit.to_bits() & 0xFFFF_0000)
}

/// The upper half of a number rounded to nearest even; NaN stays NaN. Without branches, for the compiler's vectors.
#[inline(always)]
pub(super) fn bf16_bits(x: f32) -> u32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    let quiet_nan = bits >> 16 | 0x40;
    if x.is_nan() { quiet_nan } else { rounded }
}

/// The bits of the IEEE half-precision number nearest to `x`.
pub(super) fn f16_bits(x: f32) -> u32 {
    half::f16::from_f32(x).to_bits().into()
}

/// The number with these bits in IEEE half precision.
pub(super) fn f16_number(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_that_of_the_half_crate() {
        let patterns = (0..=u16::MAX).flat_map(|high| {
            [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF].map(|low: u32| u32::from(high) << 16 | low)
        });
        for x in patterns.map(f32::from_bits) {
            let expected = u32::from(half::bf16::from_f32(x).to_bits());
            assert_eq!(bf16_bits(x), expected, "{x} {:x}", x.to_bits());
        }
    }
}
