//! Eight numbers in one AVX register.

use super::{Floats, Ints, Simd};
use std::arch::x86_64::*;
use std::mem::transmute;

/// AVX2, and all that has it. Its methods may be called only inside functions that enable AVX2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Avx2;

#[inline(always)]
fn ps(a: Floats) -> __m256 {
    // SAFETY: both are 256 plain bits.
    unsafe { transmute::<Floats, __m256>(a) }
}

#[inline(always)]
fn ints(a: Ints) -> __m256i {
    // SAFETY: both are 256 plain bits.
    unsafe { transmute::<Ints, __m256i>(a) }
}

#[inline(always)]
fn floats_of(a: __m256) -> Floats {
    // SAFETY: both are 256 plain bits.
    unsafe { transmute::<__m256, Floats>(a) }
}

#[inline(always)]
fn ints_of(a: __m256i) -> Ints {
    // SAFETY: both are 256 plain bits.
    unsafe { transmute::<__m256i, Ints>(a) }
}

/// Joins eight by halves, three joins deep: 0 with 4, then 0 with 2, then 0 with 1.
macro_rules! by_halves {
    ($a:expr, $cast:ident, $high:ident, $join:expr, $shuffle:ident) => {{
        let four = $join($cast($a), $high::<1>($a));
        let two = $join(four, $shuffle::<0b00_00_11_10>(four));
        $join(two, $shuffle::<0b00_00_00_01>(two))
    }};
}

/// Four floats in the order that the immediate says.
#[inline(always)]
unsafe fn permuted<const ORDER: i32>(a: __m128) -> __m128 {
    // SAFETY: the caller enables AVX2.
    unsafe { _mm_permute_ps::<ORDER>(a) }
}

/// `yes` where `mask` is set, else `no`.
#[inline(always)]
unsafe fn chosen(mask: __m256, yes: Floats, no: Floats) -> Floats {
    // SAFETY: the caller enables AVX2.
    unsafe { floats_of(_mm256_blendv_ps(ps(no), ps(yes), mask)) }
}

/// Methods that are one expression.
macro_rules! methods {
    ($(fn $name:ident($($argument:ident: $of:ty),+) -> $out:ty = $body:expr;)+) => {
        $(#[inline(always)]
        fn $name($($argument: $of),+) -> $out {
            // SAFETY: see the impl.
            unsafe { $body }
        })+
    };
}

/// Joins all eight floats.
macro_rules! join_floats {
    ($a:expr, $join:expr) => {
        _mm_cvtss_f32(by_halves!($a, _mm256_castps256_ps128, _mm256_extractf128_ps, $join, permuted))
    };
}

/// Joins all eight integers.
macro_rules! join_ints {
    ($a:expr, $join:expr) => {
        _mm_cvtsi128_si32(by_halves!(
            $a,
            _mm256_castsi256_si128,
            _mm256_extracti128_si256,
            $join,
            _mm_shuffle_epi32
        ))
    };
}

// SAFETY of every method: called only inside functions that enable AVX2.
impl Simd for Avx2 {
    methods! {
        fn add(a: Floats, b: Floats) -> Floats = floats_of(_mm256_add_ps(ps(a), ps(b)));
        fn sub(a: Floats, b: Floats) -> Floats = floats_of(_mm256_sub_ps(ps(a), ps(b)));
        fn mul(a: Floats, b: Floats) -> Floats = floats_of(_mm256_mul_ps(ps(a), ps(b)));
        fn div(a: Floats, b: Floats) -> Floats = floats_of(_mm256_div_ps(ps(a), ps(b)));
        // These two return their second operand where both are equal or not ordered.
        fn max(a: Floats, b: Floats) -> Floats = floats_of(_mm256_max_ps(ps(b), ps(a)));
        fn min(a: Floats, b: Floats) -> Floats = floats_of(_mm256_min_ps(ps(b), ps(a)));
        fn where_below(x: Floats, bound: Floats, yes: Floats, no: Floats) -> Floats =
            chosen(_mm256_cmp_ps::<_CMP_LT_OQ>(ps(x), ps(bound)), yes, no);
        fn where_equal(x: Floats, what: Floats, yes: Floats, no: Floats) -> Floats =
            chosen(_mm256_cmp_ps::<_CMP_EQ_OQ>(ps(x), ps(what)), yes, no);
        fn where_positive(n: Ints, yes: Floats, no: Floats) -> Floats =
            chosen(_mm256_castsi256_ps(_mm256_cmpgt_epi32(ints(n), _mm256_setzero_si256())), yes, no);
        fn where_same(n: Ints, what: i32, yes: Floats, no: Floats) -> Floats =
            chosen(_mm256_castsi256_ps(_mm256_cmpeq_epi32(ints(n), _mm256_set1_epi32(what))), yes, no);
        fn sum(a: Floats) -> f32 = join_floats!(ps(a), |a, b| _mm_add_ps(a, b));
        fn largest(a: Floats) -> f32 = join_floats!(ps(a), |a, b| _mm_max_ps(b, a));
        fn floats(a: Ints) -> Floats = floats_of(_mm256_cvtepi32_ps(ints(a)));
        fn plus(a: Ints, b: Ints) -> Ints = ints_of(_mm256_add_epi32(ints(a), ints(b)));
        fn minus(a: Ints, b: Ints) -> Ints = ints_of(_mm256_sub_epi32(ints(a), ints(b)));
        fn most(a: Ints, b: Ints) -> Ints = ints_of(_mm256_max_epi32(ints(a), ints(b)));
        fn total(a: Ints) -> i32 = join_ints!(ints(a), |a, b| _mm_add_epi32(a, b));
        fn highest(a: Ints) -> i32 = join_ints!(ints(a), |a, b| _mm_max_epi32(a, b));
        fn power_of_two(a: Floats) -> Floats = {
            let shifted = _mm256_slli_epi32::<23>(_mm256_castps_si256(ps(a)));
            floats_of(_mm256_castsi256_ps(_mm256_add_epi32(shifted, _mm256_set1_epi32(127 << 23))))
        };
        fn exponent(a: Floats) -> Floats = {
            let bits = _mm256_srli_epi32::<23>(_mm256_castps_si256(ps(a)));
            floats_of(_mm256_cvtepi32_ps(_mm256_sub_epi32(bits, _mm256_set1_epi32(126))))
        };
        fn mantissa(a: Floats) -> Floats = {
            let bits = _mm256_and_si256(_mm256_castps_si256(ps(a)), _mm256_set1_epi32(0x007F_FFFF));
            floats_of(_mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3F00_0000))))
        };
        fn place_where_above(a: Floats, b: Floats, place: Ints, other: Ints) -> Ints = {
            let above = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GT_OQ>(ps(a), ps(b)));
            ints_of(_mm256_blendv_epi8(ints(other), ints(place), above))
        };
        fn first_where_equal(x: Floats, what: f32) -> usize = {
            let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(ps(x), _mm256_set1_ps(what));
            (_mm256_movemask_ps(equal) as u32).trailing_zeros() as usize
        };
        fn lowest_where_equal(x: Floats, what: f32, places: Ints) -> i32 = {
            let equal = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_EQ_OQ>(ps(x), _mm256_set1_ps(what)));
            let places = _mm256_blendv_epi8(_mm256_set1_epi32(i32::MAX), ints(places), equal);
            join_ints!(places, |a, b| _mm_min_epi32(a, b))
        };
    }
}
