//! Eight numbers side by side. Results are the same to the bit with any instruction set; [`Simd`] says which is used, since a
//! compiler left to find vectors in plain loops takes eight numbers apart as often as not.

#![allow(clippy::excessive_precision)] // the published coefficients, digit for digit

#[cfg(target_arch = "x86_64")]
mod x86;

use crate::math;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Sub};

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::Avx2;

/// How many.
pub const LANES: usize = 8;

type Floats = [f32; LANES];
type Ints = [i32; LANES];

/// Eight numbers at once, in one instruction set. What a method does is what its body here does.
pub trait Simd: Copy + Debug + PartialEq {
    /// a + b.
    #[inline(always)]
    fn add(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| a + b)
    }

    /// a - b.
    #[inline(always)]
    fn sub(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| a - b)
    }

    /// a * b.
    #[inline(always)]
    fn mul(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| a * b)
    }

    /// a / b.
    #[inline(always)]
    fn div(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| a / b)
    }

    /// The larger of each pair; the first where they are not ordered.
    #[inline(always)]
    fn max(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| if b > a { b } else { a })
    }

    /// The smaller of each pair; the first where they are not ordered.
    #[inline(always)]
    fn min(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| if b < a { b } else { a })
    }

    /// `yes` where x < bound, else `no`.
    #[inline(always)]
    fn where_below(x: Floats, bound: Floats, yes: Floats, no: Floats) -> Floats {
        std::array::from_fn(|i| if x[i] < bound[i] { yes[i] } else { no[i] })
    }

    /// `yes` where x == what, else `no`.
    #[inline(always)]
    fn where_equal(x: Floats, what: Floats, yes: Floats, no: Floats) -> Floats {
        std::array::from_fn(|i| if x[i] == what[i] { yes[i] } else { no[i] })
    }

    /// The sum, joined by halves.
    #[inline(always)]
    fn sum(a: Floats) -> f32 {
        math::fold(a)
    }

    /// The largest.
    #[inline(always)]
    fn largest(a: Floats) -> f32 {
        math::largest(a)
    }

    /// 2^n of numbers whose lowest bits are the integer n.
    #[inline(always)]
    fn power_of_two(a: Floats) -> Floats {
        a.map(|x| f32::from_bits((x.to_bits() << 23).wrapping_add(127 << 23)))
    }

    /// The exponents of positive numbers, as if their mantissas were in [0.5, 1).
    #[inline(always)]
    fn exponent(a: Floats) -> Floats {
        a.map(|x| ((x.to_bits() >> 23) as i32 - 126) as f32)
    }

    /// Their mantissas, in [0.5, 1).
    #[inline(always)]
    fn mantissa(a: Floats) -> Floats {
        a.map(|x| f32::from_bits((x.to_bits() & 0x007F_FFFF) | 0x3F00_0000))
    }

    /// Integers as floats.
    #[inline(always)]
    fn floats(a: Ints) -> Floats {
        a.map(|x| x as f32)
    }

    /// Sum of each pair.
    #[inline(always)]
    fn plus(a: Ints, b: Ints) -> Ints {
        std::array::from_fn(|i| a[i].wrapping_add(b[i]))
    }

    /// The larger of each pair.
    #[inline(always)]
    fn most(a: Ints, b: Ints) -> Ints {
        std::array::from_fn(|i| a[i].max(b[i]))
    }

    /// `yes` where n > 0, else `no`.
    #[inline(always)]
    fn where_positive(n: Ints, yes: Floats, no: Floats) -> Floats {
        std::array::from_fn(|i| if n[i] > 0 { yes[i] } else { no[i] })
    }

    /// Difference of each pair.
    #[inline(always)]
    fn minus(a: Ints, b: Ints) -> Ints {
        std::array::from_fn(|i| a[i].wrapping_sub(b[i]))
    }

    /// `yes` where n == what, else `no`.
    #[inline(always)]
    fn where_same(n: Ints, what: i32, yes: Floats, no: Floats) -> Floats {
        std::array::from_fn(|i| if n[i] == what { yes[i] } else { no[i] })
    }

    /// The sum of all.
    #[inline(always)]
    fn total(a: Ints) -> i32 {
        math::tree_reduce(a, i32::wrapping_add)
    }

    /// The largest of all.
    #[inline(always)]
    fn highest(a: Ints) -> i32 {
        math::tree_reduce(a, i32::max)
    }

    /// `place` where a > b, else `other`.
    #[inline(always)]
    fn place_where_above(a: Floats, b: Floats, place: Ints, other: Ints) -> Ints {
        std::array::from_fn(|i| if a[i] > b[i] { place[i] } else { other[i] })
    }

    /// The lowest place where x == what; [`i32::MAX`] where there is none.
    #[inline(always)]
    fn lowest_where_equal(x: Floats, what: f32, places: Ints) -> i32 {
        math::tree_reduce(std::array::from_fn(|i| if x[i] == what { places[i] } else { i32::MAX }), i32::min)
    }

    /// The first lane where x == what; [`LANES`] or more where there is none.
    #[inline(always)]
    fn first_where_equal(x: Floats, what: f32) -> usize {
        x.iter().position(|&x| x == what).unwrap_or(LANES)
    }
}

#[inline(always)]
fn zip(a: Floats, b: Floats, f: impl Fn(f32, f32) -> f32) -> Floats {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// Plain Rust, for any machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Portable;

impl Simd for Portable {}

/// Eight floats.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct F8<S>(pub Floats, PhantomData<S>);

/// Eight integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct I8<S>(pub Ints, PhantomData<S>);

macro_rules! each_lane {
    ($trait:ident, $method:ident) => {
        impl<S: Simd> $trait for F8<S> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self::of(S::$method(self.0, other.0))
            }
        }
    };
}
each_lane!(Add, add);
each_lane!(Sub, sub);
each_lane!(Mul, mul);
each_lane!(Div, div);

impl<S: Simd> F8<S> {
    /// These numbers.
    #[inline(always)]
    pub fn of(x: Floats) -> Self {
        Self(x, PhantomData)
    }

    /// The same number eight times.
    #[inline(always)]
    pub fn all(x: f32) -> Self {
        Self::of([x; LANES])
    }

    /// The larger of each pair; the first where they are not ordered.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        Self::of(S::max(self.0, other.0))
    }

    /// The smaller of each pair; the first where they are not ordered.
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        Self::of(S::min(self.0, other.0))
    }

    /// `yes` where this is below `bound`, else `no`.
    #[inline(always)]
    pub fn where_below(self, bound: f32, yes: Self, no: Self) -> Self {
        Self::of(S::where_below(self.0, [bound; LANES], yes.0, no.0))
    }

    /// `yes` where this equals `what`, else `no`.
    #[inline(always)]
    pub fn where_equal(self, what: f32, yes: Self, no: Self) -> Self {
        Self::of(S::where_equal(self.0, [what; LANES], yes.0, no.0))
    }

    /// The sum, joined by halves.
    #[inline(always)]
    pub fn sum(self) -> f32 {
        S::sum(self.0)
    }

    /// The largest.
    #[inline(always)]
    pub fn largest(self) -> f32 {
        S::largest(self.0)
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
        self.where_below(-87.3, all(0.0), e * Self::of(S::power_of_two(shifted.0)))
    }

    /// [`math::ln`] of each.
    #[inline(always)]
    pub fn ln(self) -> Self {
        let all = Self::all;
        let normal = self.max(all(f32::MIN_POSITIVE));
        let (e, m) = (Self::of(S::exponent(normal.0)), Self::of(S::mantissa(normal.0)));
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

impl<S: Simd> I8<S> {
    /// These numbers.
    #[inline(always)]
    pub fn of(x: Ints) -> Self {
        Self(x, PhantomData)
    }

    /// The same number eight times.
    #[inline(always)]
    pub fn all(x: i32) -> Self {
        Self::of([x; LANES])
    }

    /// Each as a float.
    #[inline(always)]
    pub fn floats(self) -> F8<S> {
        F8::of(S::floats(self.0))
    }

    /// Sum of each pair.
    #[inline(always)]
    pub fn plus(self, other: Self) -> Self {
        Self::of(S::plus(self.0, other.0))
    }

    /// Difference of each pair.
    #[inline(always)]
    pub fn minus(self, other: Self) -> Self {
        Self::of(S::minus(self.0, other.0))
    }

    /// `yes` where this is `what`, else `no`.
    #[inline(always)]
    pub fn where_same(self, what: i32, yes: F8<S>, no: F8<S>) -> F8<S> {
        F8::of(S::where_same(self.0, what, yes.0, no.0))
    }

    /// The larger of each pair.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        Self::of(S::most(self.0, other.0))
    }

    /// `yes` where this is above 0, else `no`.
    #[inline(always)]
    pub fn where_positive(self, yes: F8<S>, no: F8<S>) -> F8<S> {
        F8::of(S::where_positive(self.0, yes.0, no.0))
    }

    /// The sum of all.
    #[inline(always)]
    pub fn total(self) -> i32 {
        S::total(self.0)
    }

    /// The largest of all.
    #[inline(always)]
    pub fn highest(self) -> i32 {
        S::highest(self.0)
    }
}

/// A running maximum over lanes; the lowest place wins ties.
#[derive(Clone, Copy, Debug)]
pub struct Best<S> {
    score: F8<S>,
    place: I8<S>,
}

impl<S: Simd> Default for Best<S> {
    #[inline(always)]
    fn default() -> Self {
        Self { score: F8::all(f32::NEG_INFINITY), place: I8::all(i32::MAX) }
    }
}

impl<S: Simd> Best<S> {
    /// The best place where these are all scores, or None where every one is -inf.
    #[inline(always)]
    pub fn of(scores: F8<S>) -> Option<usize> {
        let scores = F8::all(f32::NEG_INFINITY).max(scores);
        let most = scores.largest();
        (most > f32::NEG_INFINITY).then_some(S::first_where_equal(scores.0, most))
    }

    /// Offers the scores of places `LANES * group` and on.
    #[inline(always)]
    pub fn offer(&mut self, group: usize, scores: F8<S>) {
        let first = (group * LANES) as i32;
        let places = S::plus([first; LANES], [0, 1, 2, 3, 4, 5, 6, 7]);
        self.place = I8::of(S::place_where_above(scores.0, self.score.0, places, self.place.0));
        self.score = self.score.max(scores);
    }

    /// The best place, or None where every score was -inf.
    #[inline(always)]
    pub fn place(&self) -> Option<usize> {
        let place = S::lowest_where_equal(self.score.0, self.score.largest(), self.place.0);
        (place != i32::MAX).then_some(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every method on the same numbers gives the same bits as in plain Rust.
    fn equals_portable<S: Simd>(a: Floats, b: Floats, n: Ints) {
        let same = |x: Floats, y: Floats| assert_eq!(x.map(f32::to_bits), y.map(f32::to_bits));
        type P = Portable;
        same(S::add(a, b), P::add(a, b));
        same(S::sub(a, b), P::sub(a, b));
        same(S::mul(a, b), P::mul(a, b));
        same(S::div(a, b), P::div(a, b));
        same(S::max(a, b), P::max(a, b));
        same(S::min(a, b), P::min(a, b));
        same(S::where_below(a, b, b, a), P::where_below(a, b, b, a));
        same(S::where_equal(a, b, [1.0; LANES], b), P::where_equal(a, b, [1.0; LANES], b));
        same(S::power_of_two(a), P::power_of_two(a));
        same(S::exponent(a), P::exponent(a));
        same(S::mantissa(a), P::mantissa(a));
        same(S::floats(n), P::floats(n));
        same(S::where_positive(n, a, b), P::where_positive(n, a, b));
        assert_eq!(S::sum(a).to_bits(), P::sum(a).to_bits());
        assert_eq!(S::largest(a).to_bits(), P::largest(a).to_bits());
        let m = n.map(|x| x.wrapping_mul(3));
        assert_eq!(S::plus(n, m), P::plus(n, m));
        assert_eq!(S::minus(n, m), P::minus(n, m));
        same(S::where_same(n, 3, a, b), P::where_same(n, 3, a, b));
        assert_eq!(S::most(n, m), P::most(n, m));
        assert_eq!((S::total(n), S::highest(n)), (P::total(n), P::highest(n)));
        assert_eq!(S::place_where_above(a, b, n, m), P::place_where_above(a, b, n, m));
        for what in [a[0], a[7], 0.0] {
            assert_eq!(S::lowest_where_equal(a, what, n), P::lowest_where_equal(a, what, n));
            assert_eq!(S::first_where_equal(a, what).min(LANES), P::first_where_equal(a, what));
        }
        same(F8::<S>::of(a).exp().0, F8::<P>::of(a).exp().0);
        same(F8::<S>::of(a).ln().0, F8::<P>::of(a).ln().0);
    }

    /// Numbers that are equal, zero, infinite and no numbers as often as not.
    fn any_floats() -> impl Strategy<Value = Floats> {
        let some = prop_oneof![
            -100.0f32..100.0,
            (-3i8..4).prop_map(f32::from),
            Just(-0.0),
            Just(f32::NEG_INFINITY),
            Just(f32::INFINITY),
            any::<u32>().prop_map(f32::from_bits).prop_filter("NaNs' payloads may differ", |x| !x.is_nan())
        ];
        proptest::array::uniform8(some)
    }

    proptest! {
        #[test]
        #[cfg(target_arch = "x86_64")]
        fn avx2_equals_plain_rust(a in any_floats(), b in any_floats(), n in proptest::array::uniform8(-9i32..9)) {
            #[target_feature(enable = "avx2")]
            fn check(a: Floats, b: Floats, n: Ints) {
                equals_portable::<Avx2>(a, b, n);
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: just detected.
                unsafe { check(a, b, n) };
            }
        }

        #[test]
        fn lanes_equal_scalars_to_the_bit(x in proptest::array::uniform8(-100.0f32..100.0)) {
            for (lane, y) in F8::<Portable>::of(x).exp().0.iter().enumerate() {
                prop_assert_eq!(y.to_bits(), math::exp(x[lane]).to_bits());
            }
            let positive = x.map(|x| x.abs() * 1e-3);
            for (lane, y) in F8::<Portable>::of(positive).ln().0.iter().enumerate() {
                prop_assert_eq!(y.to_bits(), math::ln(positive[lane]).to_bits());
            }
        }

        #[test]
        fn the_lowest_of_the_best_is_found(scores in proptest::collection::vec(0u8..4, 24)) {
            let mut best = Best::<Portable>::default();
            for (group, part) in scores.chunks_exact(LANES).enumerate() {
                best.offer(group, F8::of(std::array::from_fn(|lane| f32::from(part[lane]))));
            }
            let most = scores.iter().max().copied().unwrap_or(0);
            prop_assert_eq!(best.place(), scores.iter().position(|&s| s == most));
        }

        #[test]
        fn the_best_of_one_group_is_that_of_several(scores in any_floats()) {
            let scores = F8::<Portable>::of(scores);
            let mut best = Best::default();
            best.offer(0, scores);
            prop_assert_eq!(Best::of(scores), best.place());
        }
    }

    #[test]
    fn nothing_is_best_of_refused() {
        let mut best = Best::<Portable>::default();
        best.offer(0, F8::all(f32::NEG_INFINITY));
        assert_eq!(best.place(), None);
    }
}
