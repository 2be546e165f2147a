//! Eight numbers side by side. Every operation is one loop over the lanes, which the compiler turns into one vector
//! instruction of whatever instruction set the caller is compiled for; results are the same to the bit with any of them.

#![allow(clippy::excessive_precision)] // the published coefficients, digit for digit

use crate::math;
use std::ops::{Add, Div, Mul, Sub};

/// How many.
pub const LANES: usize = 8;

/// Eight floats.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct F8(pub [f32; LANES]);

/// Eight integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct I8(pub [i32; LANES]);

macro_rules! each_lane {
    ($trait:ident, $method:ident, $op:tt) => {
        impl $trait for F8 {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.zip(other, |a, b| a $op b)
            }
        }
    };
}
each_lane!(Add, add, +);
each_lane!(Sub, sub, -);
each_lane!(Mul, mul, *);
each_lane!(Div, div, /);

impl F8 {
    /// The same number eight times.
    #[inline(always)]
    pub fn all(x: f32) -> Self {
        Self([x; LANES])
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self.0;
        for (a, b) in out.iter_mut().zip(other.0) {
            *a = f(*a, b);
        }
        Self(out)
    }

    /// The larger of each pair; the first where they are not ordered.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if b > a { b } else { a })
    }

    /// The smaller of each pair; the first where they are not ordered.
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if b < a { b } else { a })
    }

    /// `yes` where this is below `bound`, else `no`.
    #[inline(always)]
    pub fn where_below(self, bound: f32, yes: Self, no: Self) -> Self {
        let mut out = no.0;
        for ((o, y), x) in out.iter_mut().zip(yes.0).zip(self.0) {
            *o = if x < bound { y } else { *o };
        }
        Self(out)
    }

    /// `yes` where this equals `what`, else `no`.
    #[inline(always)]
    pub fn where_equal(self, what: f32, yes: Self, no: Self) -> Self {
        let mut out = no.0;
        for ((o, y), x) in out.iter_mut().zip(yes.0).zip(self.0) {
            *o = if x == what { y } else { *o };
        }
        Self(out)
    }

    /// The sum, joined by halves.
    #[inline(always)]
    pub fn sum(self) -> f32 {
        math::fold(self.0)
    }

    /// The largest.
    #[inline(always)]
    pub fn largest(self) -> f32 {
        math::largest(self.0)
    }

    #[inline(always)]
    fn bits(self) -> [u32; LANES] {
        self.0.map(f32::to_bits)
    }

    #[inline(always)]
    fn from_bits(bits: [u32; LANES]) -> Self {
        Self(bits.map(f32::from_bits))
    }

    /// [`math::exp`] of each.
    #[inline(always)]
    pub fn exp(self) -> Self {
        const ROUND: f32 = 12_582_912.0;
        let all = Self::all;
        let clamped = self.max(all(-87.3)).min(all(88.3));
        let shifted = clamped * all(std::f32::consts::LOG2_E) + all(ROUND);
        let n = shifted - all(ROUND);
        let r = (clamped - n * all(0.693_359_375)) - n * all(-2.121_944_4e-4);
        let mut p = all(math::EXP[0]);
        for &c in &math::EXP[1..] {
            p = p * r + all(c);
        }
        let e = (p * (r * r) + r) + all(1.0);
        let scale = Self::from_bits(shifted.bits().map(|b| (b << 23).wrapping_add(127 << 23)));
        self.where_below(-87.3, all(0.0), e * scale)
    }

    /// [`math::ln`] of each.
    #[inline(always)]
    pub fn ln(self) -> Self {
        let all = Self::all;
        let bits = self.max(all(f32::MIN_POSITIVE)).bits();
        let e = Self(bits.map(|b| ((b >> 23) as i32 - 126) as f32));
        let m = Self::from_bits(bits.map(|b| (b & 0x007F_FFFF) | 0x3F00_0000));
        const HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
        let e = m.where_below(HALF, e - all(1.0), e);
        let m = m.where_below(HALF, m + m - all(1.0), m - all(1.0));
        let z = m * m;
        let mut p = all(math::LN[0]);
        for &c in &math::LN[1..] {
            p = p * m + all(c);
        }
        let y = (m * z) * p + e * all(-2.121_944_4e-4) - all(0.5) * z;
        (m + y) + e * all(0.693_359_375)
    }
}

impl I8 {
    /// Each as a float.
    #[inline(always)]
    pub fn floats(self) -> F8 {
        F8(self.0.map(|x| x as f32))
    }

    /// Sum of each pair.
    #[inline(always)]
    pub fn plus(self, other: Self) -> Self {
        let mut out = self.0;
        for (a, b) in out.iter_mut().zip(other.0) {
            *a += b;
        }
        Self(out)
    }

    /// The larger of each pair.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        let mut out = self.0;
        for (a, b) in out.iter_mut().zip(other.0) {
            *a = if b > *a { b } else { *a };
        }
        Self(out)
    }

    /// `yes` where this is above 0, else `no`.
    #[inline(always)]
    pub fn where_positive(self, yes: F8, no: F8) -> F8 {
        let mut out = no.0;
        for ((o, y), x) in out.iter_mut().zip(yes.0).zip(self.0) {
            *o = if x > 0 { y } else { *o };
        }
        F8(out)
    }
}

/// A running maximum over lanes; the lowest place wins ties.
#[derive(Clone, Copy, Debug)]
pub struct Best {
    score: F8,
    place: [u32; LANES],
}

impl Default for Best {
    #[inline(always)]
    fn default() -> Self {
        Self { score: F8::all(f32::NEG_INFINITY), place: [u32::MAX; LANES] }
    }
}

impl Best {
    /// Offers the scores of places `LANES * group` and on.
    #[inline(always)]
    pub fn offer(&mut self, group: usize, scores: F8) {
        let mut place = self.place;
        for (lane, p) in place.iter_mut().enumerate() {
            let better = scores.0[lane] > self.score.0[lane];
            *p = if better { (group * LANES + lane) as u32 } else { *p };
        }
        self.place = place;
        self.score = self.score.max(scores);
    }

    /// The best place, or None where every score was -inf.
    #[inline(always)]
    pub fn place(&self) -> Option<usize> {
        let most = self.score.largest();
        let mut places = self.place;
        for (place, score) in places.iter_mut().zip(self.score.0) {
            *place = if score == most { *place } else { u32::MAX };
        }
        let place = math::by_halves(places, |a, b| if b < a { b } else { a });
        (place != u32::MAX).then_some(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lanes_equal_scalars_to_the_bit(x in proptest::array::uniform8(-100.0f32..100.0)) {
            for (lane, y) in F8(x).exp().0.iter().enumerate() {
                prop_assert_eq!(y.to_bits(), math::exp(x[lane]).to_bits());
            }
            let positive = x.map(|x| x.abs() * 1e-3);
            for (lane, y) in F8(positive).ln().0.iter().enumerate() {
                prop_assert_eq!(y.to_bits(), math::ln(positive[lane]).to_bits());
            }
        }

        #[test]
        fn the_lowest_of_the_best_is_found(scores in proptest::collection::vec(0u8..4, 24)) {
            let mut best = Best::default();
            for (group, part) in scores.chunks_exact(LANES).enumerate() {
                best.offer(group, F8(std::array::from_fn(|lane| f32::from(part[lane]))));
            }
            let most = scores.iter().max().copied().unwrap_or(0);
            prop_assert_eq!(best.place(), scores.iter().position(|&s| s == most));
        }
    }

    #[test]
    fn nothing_is_best_of_refused() {
        let mut best = Best::default();
        best.offer(0, F8::all(f32::NEG_INFINITY));
        assert_eq!(best.place(), None);
    }
}
