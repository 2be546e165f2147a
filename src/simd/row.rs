//! Eight f32 or eight i32 as values with operators, for the loops over a row's edges.
//!
//! Results are the same to the bit with every instruction set: eight lanes everywhere, sums joined in one order, no fused
//! multiply-add.

#![allow(clippy::excessive_precision)] // the published coefficients, digit for digit

use super::{Register, Simd};
use crate::device_struct::device_constants;
use crate::math;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Sub};

device_constants! {
    fn device_constants;
    /// Lanes of the row loops: partial sums of a sum over edges.
    pub const LANES: usize as "int" = 8;
}

/// Eight floats, operated on by the instructions of `S`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct F8<S>(pub [f32; LANES], PhantomData<S>);

/// Eight integers, operated on by the instructions of `S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct I8<S>(pub [i32; LANES], PhantomData<S>);

/// Eight numbers in a register.
#[inline(always)]
fn register<T: Copy, R: Register<T>>(x: [T; LANES]) -> R {
    const { assert!(size_of::<R>() == size_of::<[T; LANES]>(), "row loops have eight lanes") }
    // SAFETY: both are eight T of any bits, and as long.
    unsafe { std::mem::transmute_copy(&x) }
}

/// A register's eight numbers.
#[inline(always)]
fn array<T: Copy, R: Register<T>>(x: R) -> [T; LANES] {
    const { assert!(size_of::<R>() == size_of::<[T; LANES]>(), "row loops have eight lanes") }
    // SAFETY: as for `register`.
    unsafe { std::mem::transmute_copy(&x) }
}

macro_rules! operator {
    ($vector:ident, $trait:ident, $method:ident, $simd:ident) => {
        impl<S: Simd> $trait for $vector<S> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self::of(array(S::$simd(register(self.0), register(other.0))))
            }
        }
    };
}
operator!(F8, Add, add, add);
operator!(F8, Sub, sub, sub);
operator!(F8, Mul, mul, mul);
operator!(F8, Div, div, div);
operator!(I8, Add, add, add_i32);
operator!(I8, Sub, sub, sub_i32);

impl<S: Simd> F8<S> {
    /// These numbers.
    #[inline(always)]
    pub fn of(x: [f32; LANES]) -> Self {
        Self(x, PhantomData)
    }

    /// `x` in every lane.
    #[inline(always)]
    pub fn splat(x: f32) -> Self {
        Self::of([x; LANES])
    }

    /// The larger of each pair; self where they are not ordered.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        Self::of(array(S::max(register(self.0), register(other.0))))
    }

    /// The smaller of each pair; self where they are not ordered.
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        Self::of(array(S::min(register(self.0), register(other.0))))
    }

    /// `yes` where self < bound, else `no`.
    #[inline(always)]
    pub fn select_lt(self, bound: f32, yes: Self, no: Self) -> Self {
        let bound = register([bound; LANES]);
        Self::of(array(S::select_lt(register(self.0), bound, register(yes.0), register(no.0))))
    }

    /// `yes` where self == x, else `no`.
    #[inline(always)]
    pub fn select_eq(self, x: f32, yes: Self, no: Self) -> Self {
        let x = register([x; LANES]);
        Self::of(array(S::select_eq(register(self.0), x, register(yes.0), register(no.0))))
    }

    /// The sum, added as a binary tree.
    #[inline(always)]
    pub fn reduce_sum(self) -> f32 {
        S::reduce_sum(register(self.0))
    }

    /// The largest.
    #[inline(always)]
    pub fn reduce_max(self) -> f32 {
        S::reduce_max(register(self.0))
    }

    /// [`math::exp`] of each.
    #[inline(always)]
    pub fn exp(self) -> Self {
        let splat = Self::splat;
        let clamped = self.max(splat(math::EXP_MIN)).min(splat(math::EXP_MAX));
        let shifted = clamped * splat(std::f32::consts::LOG2_E) + splat(math::ROUND);
        let n = shifted - splat(math::ROUND);
        let r = (clamped - n * splat(math::LN_2_HIGH)) - n * splat(math::LN_2_LOW);
        let mut p = splat(math::EXP[0]);
        for &c in &math::EXP[1..] {
            p = p * r + splat(c);
        }
        let e = (p * (r * r) + r) + splat(1.0);
        let scale = Self::of(array(S::power_of_two(register(shifted.0))));
        self.select_lt(math::EXP_MIN, splat(0.0), e * scale)
    }

    /// [`math::ln`] of each.
    #[inline(always)]
    pub fn ln(self) -> Self {
        let splat = Self::splat;
        let normal = self.max(splat(f32::MIN_POSITIVE));
        let e = Self::of(array(S::exponent(register(normal.0))));
        let m = Self::of(array(S::mantissa(register(normal.0))));
        const LIMIT: f32 = std::f32::consts::FRAC_1_SQRT_2;
        let e = m.select_lt(LIMIT, e - splat(1.0), e);
        let m = m.select_lt(LIMIT, m + m - splat(1.0), m - splat(1.0));
        let z = m * m;
        let mut p = splat(math::LN[0]);
        for &c in &math::LN[1..] {
            p = p * m + splat(c);
        }
        let y = (m * z) * p + e * splat(math::LN_2_LOW) - splat(0.5) * z;
        (m + y) + e * splat(math::LN_2_HIGH)
    }
}

impl<S: Simd> I8<S> {
    /// These numbers.
    #[inline(always)]
    pub fn of(x: [i32; LANES]) -> Self {
        Self(x, PhantomData)
    }

    /// `x` in every lane.
    #[inline(always)]
    pub fn splat(x: i32) -> Self {
        Self::of([x; LANES])
    }

    /// Each as a float.
    #[inline(always)]
    pub fn to_f32(self) -> F8<S> {
        F8::of(array(S::to_f32(register(self.0))))
    }

    /// The larger of each pair.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        Self::of(array(S::max_i32(register(self.0), register(other.0))))
    }

    /// `yes` where self > n, else `no`.
    #[inline(always)]
    pub fn select_gt(self, n: i32, yes: F8<S>, no: F8<S>) -> F8<S> {
        F8::of(array(S::select_gt_i32(register(self.0), n, register(yes.0), register(no.0))))
    }

    /// `yes` where self == n, else `no`.
    #[inline(always)]
    pub fn select_eq(self, n: i32, yes: F8<S>, no: F8<S>) -> F8<S> {
        F8::of(array(S::select_eq_i32(register(self.0), n, register(yes.0), register(no.0))))
    }

    /// The sum, wrapping.
    #[inline(always)]
    pub fn reduce_sum(self) -> i32 {
        S::reduce_sum_i32(register(self.0))
    }

    /// The largest.
    #[inline(always)]
    pub fn reduce_max(self) -> i32 {
        S::reduce_max_i32(register(self.0))
    }
}

/// The argmax of scores that come eight at a time; the lowest index wins ties. Each lane keeps its own maximum until the end.
#[derive(Clone, Copy, Debug)]
pub struct Argmax<S> {
    score: F8<S>,
    index: I8<S>,
}

impl<S: Simd> Default for Argmax<S> {
    #[inline(always)]
    fn default() -> Self {
        Self { score: F8::splat(f32::NEG_INFINITY), index: I8::splat(i32::MAX) }
    }
}

impl<S: Simd> Argmax<S> {
    /// The argmax of eight scores, or None where every one is -inf.
    #[inline(always)]
    pub fn of(scores: F8<S>) -> Option<usize> {
        let scores = F8::splat(f32::NEG_INFINITY).max(scores);
        let max = scores.reduce_max();
        (max > f32::NEG_INFINITY).then_some(S::first_lane_eq(register(scores.0), max))
    }

    /// Takes in the scores of the indices from `LANES * group` on.
    #[inline(always)]
    pub fn update(&mut self, group: usize, scores: F8<S>) {
        let first = (group * LANES) as i32;
        let index = I8::<S>::splat(first) + I8::of([0, 1, 2, 3, 4, 5, 6, 7]);
        let (new, best) = (register(scores.0), register(self.score.0));
        self.index = I8::of(array(S::select_index_gt(new, best, register(index.0), register(self.index.0))));
        self.score = self.score.max(scores);
    }

    /// The argmax, or None where every score was -inf.
    #[inline(always)]
    pub fn index(&self) -> Option<usize> {
        let max = self.score.reduce_max();
        let index = S::lowest_index_eq(register(self.score.0), max, register(self.index.0));
        (index != i32::MAX).then_some(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Portable;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lanes_equal_scalars_to_the_bit(x in proptest::array::uniform8(-100.0f32..100.0)) {
            for (lane, y) in F8::<Portable>::of(x).exp().0.iter().enumerate() {
                prop_assert_eq!(y.to_bits(), math::exp(x[lane]).to_bits());
            }
            let positive = x.map(|x| x.abs() * 1e-3);
            for (lane, y) in F8::<Portable>::of(positive).ln().0.iter().enumerate() {
                prop_assert_eq!(y.to_bits(), math::ln(positive[lane]).to_bits());
            }
            prop_assert_eq!(F8::<Portable>::of(x).reduce_sum().to_bits(), math::fold(x).to_bits());
        }

        #[test]
        fn the_lowest_index_wins_ties(scores in proptest::collection::vec(0u8..4, 24)) {
            let mut best = Argmax::<Portable>::default();
            for (group, part) in scores.chunks_exact(LANES).enumerate() {
                best.update(group, F8::of(std::array::from_fn(|lane| f32::from(part[lane]))));
            }
            let max = scores.iter().max().copied().unwrap_or(0);
            prop_assert_eq!(best.index(), scores.iter().position(|&s| s == max));
        }

        #[test]
        fn the_argmax_of_one_group_is_that_of_several(scores in crate::simd::tests::any_floats()) {
            let scores = F8::<Portable>::of(scores);
            let mut best = Argmax::default();
            best.update(0, scores);
            prop_assert_eq!(Argmax::of(scores), best.index());
        }
    }

    #[test]
    fn refused_edges_have_no_argmax() {
        let mut best = Argmax::<Portable>::default();
        best.update(0, F8::splat(f32::NEG_INFINITY));
        assert_eq!(best.index(), None);
    }
}
