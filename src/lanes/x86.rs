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

// SAFETY of every method: called only inside functions that enable AVX2.
impl Simd for Avx2 {
    #[inline(always)]
    fn add(a: Floats, b: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe { floats_of(_mm256_add_ps(ps(a), ps(b))) }
    }

    #[inline(always)]
    fn sub(a: Floats, b: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe { floats_of(_mm256_sub_ps(ps(a), ps(b))) }
    }

    #[inline(always)]
    fn mul(a: Floats, b: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe { floats_of(_mm256_mul_ps(ps(a), ps(b))) }
    }

    #[inline(always)]
    fn div(a: Floats, b: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe { floats_of(_mm256_div_ps(ps(a), ps(b))) }
    }

    #[inline(always)]
    fn max(a: Floats, b: Floats) -> Floats {
        // SAFETY: see the impl. The instruction returns its second operand where they are equal or not ordered.
        unsafe { floats_of(_mm256_max_ps(ps(b), ps(a))) }
    }

    #[inline(always)]
    fn min(a: Floats, b: Floats) -> Floats {
        // SAFETY: see the impl. The instruction returns its second operand where they are equal or not ordered.
        unsafe { floats_of(_mm256_min_ps(ps(b), ps(a))) }
    }

    #[inline(always)]
    fn where_below(x: Floats, bound: Floats, yes: Floats, no: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe { floats_of(_mm256_blendv_ps(ps(no), ps(yes), _mm256_cmp_ps::<_CMP_LT_OQ>(ps(x), ps(bound)))) }
    }

    #[inline(always)]
    fn where_equal(x: Floats, what: Floats, yes: Floats, no: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe { floats_of(_mm256_blendv_ps(ps(no), ps(yes), _mm256_cmp_ps::<_CMP_EQ_OQ>(ps(x), ps(what)))) }
    }

    #[inline(always)]
    fn sum(a: Floats) -> f32 {
        // SAFETY: see the impl.
        unsafe {
            let join = |a, b| _mm_add_ps(a, b);
            _mm_cvtss_f32(by_halves!(ps(a), _mm256_castps256_ps128, _mm256_extractf128_ps, join, permuted))
        }
    }

    #[inline(always)]
    fn largest(a: Floats) -> f32 {
        // SAFETY: see the impl; see `max` for the order.
        unsafe {
            let join = |a, b| _mm_max_ps(b, a);
            _mm_cvtss_f32(by_halves!(ps(a), _mm256_castps256_ps128, _mm256_extractf128_ps, join, permuted))
        }
    }

    #[inline(always)]
    fn power_of_two(a: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe {
            let shifted = _mm256_slli_epi32::<23>(_mm256_castps_si256(ps(a)));
            floats_of(_mm256_castsi256_ps(_mm256_add_epi32(shifted, _mm256_set1_epi32(127 << 23))))
        }
    }

    #[inline(always)]
    fn exponent(a: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe {
            let bits = _mm256_srli_epi32::<23>(_mm256_castps_si256(ps(a)));
            floats_of(_mm256_cvtepi32_ps(_mm256_sub_epi32(bits, _mm256_set1_epi32(126))))
        }
    }

    #[inline(always)]
    fn mantissa(a: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe {
            let bits = _mm256_and_si256(_mm256_castps_si256(ps(a)), _mm256_set1_epi32(0x007F_FFFF));
            floats_of(_mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3F00_0000))))
        }
    }

    #[inline(always)]
    fn floats(a: Ints) -> Floats {
        // SAFETY: see the impl.
        unsafe { floats_of(_mm256_cvtepi32_ps(ints(a))) }
    }

    #[inline(always)]
    fn plus(a: Ints, b: Ints) -> Ints {
        // SAFETY: see the impl.
        unsafe { ints_of(_mm256_add_epi32(ints(a), ints(b))) }
    }

    #[inline(always)]
    fn most(a: Ints, b: Ints) -> Ints {
        // SAFETY: see the impl.
        unsafe { ints_of(_mm256_max_epi32(ints(a), ints(b))) }
    }

    #[inline(always)]
    fn where_positive(n: Ints, yes: Floats, no: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe {
            let positive = _mm256_cmpgt_epi32(ints(n), _mm256_setzero_si256());
            floats_of(_mm256_blendv_ps(ps(no), ps(yes), _mm256_castsi256_ps(positive)))
        }
    }

    #[inline(always)]
    fn minus(a: Ints, b: Ints) -> Ints {
        // SAFETY: see the impl.
        unsafe { ints_of(_mm256_sub_epi32(ints(a), ints(b))) }
    }

    #[inline(always)]
    fn where_same(n: Ints, what: i32, yes: Floats, no: Floats) -> Floats {
        // SAFETY: see the impl.
        unsafe {
            let same = _mm256_cmpeq_epi32(ints(n), _mm256_set1_epi32(what));
            floats_of(_mm256_blendv_ps(ps(no), ps(yes), _mm256_castsi256_ps(same)))
        }
    }

    #[inline(always)]
    fn total(a: Ints) -> i32 {
        // SAFETY: see the impl.
        unsafe {
            let join = |a, b| _mm_add_epi32(a, b);
            let one = by_halves!(
                ints(a),
                _mm256_castsi256_si128,
                _mm256_extracti128_si256,
                join,
                _mm_shuffle_epi32
            );
            _mm_cvtsi128_si32(one)
        }
    }

    #[inline(always)]
    fn highest(a: Ints) -> i32 {
        // SAFETY: see the impl.
        unsafe {
            let join = |a, b| _mm_max_epi32(a, b);
            let one = by_halves!(
                ints(a),
                _mm256_castsi256_si128,
                _mm256_extracti128_si256,
                join,
                _mm_shuffle_epi32
            );
            _mm_cvtsi128_si32(one)
        }
    }

    #[inline(always)]
    fn place_where_above(a: Floats, b: Floats, place: Ints, other: Ints) -> Ints {
        // SAFETY: see the impl.
        unsafe {
            let above = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GT_OQ>(ps(a), ps(b)));
            ints_of(_mm256_blendv_epi8(ints(other), ints(place), above))
        }
    }

    #[inline(always)]
    fn lowest_where_equal(x: Floats, what: f32, places: Ints) -> i32 {
        // SAFETY: see the impl.
        unsafe {
            let equal = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_EQ_OQ>(ps(x), _mm256_set1_ps(what)));
            let places = _mm256_blendv_epi8(_mm256_set1_epi32(i32::MAX), ints(places), equal);
            let join = |a, b| _mm_min_epi32(a, b);
            let one =
                by_halves!(places, _mm256_castsi256_si128, _mm256_extracti128_si256, join, _mm_shuffle_epi32);
            _mm_cvtsi128_si32(one)
        }
    }
}
