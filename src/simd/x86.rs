//! The vector registers of x86-64: AVX2 and AVX-512.

use super::{Register, Simd};
use std::arch::x86_64::*;

/// AVX2 with FMA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Avx2;

/// AVX-512 F. The row loops have eight lanes and use [`Avx2`] on these machines too, so operations that only they need are absent here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Avx512;

// SAFETY: 256 plain bits.
unsafe impl Register<f32> for __m256 {}
// SAFETY: as above.
unsafe impl Register<i32> for __m256i {}
// SAFETY: 512 plain bits.
unsafe impl Register<f32> for __m512 {}
// SAFETY: as above.
unsafe impl Register<i32> for __m512i {}

/// Methods that are one expression of intrinsics.
macro_rules! methods {
    ($(fn $name:ident($($argument:ident: $of:ty),+) -> $out:ty = $body:expr;)+) => {
        $(#[inline(always)]
        fn $name($($argument: $of),+) -> $out {
            // SAFETY: the trait's contract: the caller is compiled for the instruction set and runs where the machine has it.
            unsafe { $body }
        })+
    };
}

/// Joins eight lanes as a binary tree, three joins deep: 0 with 4, then 0 with 2, then 0 with 1.
macro_rules! tree_reduce {
    ($a:expr, $cast:ident, $high:ident, $join:expr, $shuffle:ident) => {{
        let four = $join($cast($a), $high::<1>($a));
        let two = $join(four, $shuffle::<0b00_00_11_10>(four));
        $join(two, $shuffle::<0b00_00_00_01>(two))
    }};
}

/// Four floats in the order that the immediate gives.
///
/// # Safety
/// The caller enables AVX2.
#[inline(always)]
unsafe fn permute<const ORDER: i32>(a: __m128) -> __m128 {
    // SAFETY: the caller enables AVX2.
    unsafe { _mm_permute_ps::<ORDER>(a) }
}

macro_rules! reduce_f32 {
    ($a:expr, $join:expr) => {
        _mm_cvtss_f32(tree_reduce!($a, _mm256_castps256_ps128, _mm256_extractf128_ps, $join, permute))
    };
}

macro_rules! reduce_i32 {
    ($a:expr, $join:expr) => {
        _mm_cvtsi128_si32(tree_reduce!(
            $a,
            _mm256_castsi256_si128,
            _mm256_extracti128_si256,
            $join,
            _mm_shuffle_epi32
        ))
    };
}

impl Simd for Avx2 {
    type F32 = __m256;
    type I32 = __m256i;

    methods! {
        fn splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        fn add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
        fn sub(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps(a, b);
        fn mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        fn div(a: __m256, b: __m256) -> __m256 = _mm256_div_ps(a, b);
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        // These two instructions return their second operand where both are equal or not ordered.
        fn max(a: __m256, b: __m256) -> __m256 = _mm256_max_ps(b, a);
        fn min(a: __m256, b: __m256) -> __m256 = _mm256_min_ps(b, a);
        fn select_lt(x: __m256, bound: __m256, yes: __m256, no: __m256) -> __m256 =
            _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LT_OQ>(x, bound));
        fn select_eq(x: __m256, y: __m256, yes: __m256, no: __m256) -> __m256 =
            _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_EQ_OQ>(x, y));
        fn reduce_sum(a: __m256) -> f32 = reduce_f32!(a, |a, b| _mm_add_ps(a, b));
        fn reduce_max(a: __m256) -> f32 = reduce_f32!(a, |a, b| _mm_max_ps(b, a));
        fn power_of_two(a: __m256) -> __m256 = {
            let shifted = _mm256_slli_epi32::<23>(_mm256_castps_si256(a));
            _mm256_castsi256_ps(_mm256_add_epi32(shifted, _mm256_set1_epi32(127 << 23)))
        };
        fn exponent(a: __m256) -> __m256 = {
            let bits = _mm256_srli_epi32::<23>(_mm256_castps_si256(a));
            _mm256_cvtepi32_ps(_mm256_sub_epi32(bits, _mm256_set1_epi32(126)))
        };
        fn mantissa(a: __m256) -> __m256 = {
            let bits = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x007F_FFFF));
            _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3F00_0000)))
        };
        fn to_f32(a: __m256i) -> __m256 = _mm256_cvtepi32_ps(a);
        fn add_i32(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(a, b);
        fn sub_i32(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
        fn max_i32(a: __m256i, b: __m256i) -> __m256i = _mm256_max_epi32(a, b);
        fn reduce_sum_i32(a: __m256i) -> i32 = reduce_i32!(a, |a, b| _mm_add_epi32(a, b));
        fn reduce_max_i32(a: __m256i) -> i32 = reduce_i32!(a, |a, b| _mm_max_epi32(a, b));
        fn select_gt_i32(n: __m256i, m: i32, yes: __m256, no: __m256) -> __m256 =
            _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(_mm256_cmpgt_epi32(n, _mm256_set1_epi32(m))));
        fn select_eq_i32(n: __m256i, m: i32, yes: __m256, no: __m256) -> __m256 =
            _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(_mm256_cmpeq_epi32(n, _mm256_set1_epi32(m))));
        fn select_index_gt(a: __m256, b: __m256, yes: __m256i, no: __m256i) -> __m256i =
            _mm256_blendv_epi8(no, yes, _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GT_OQ>(a, b)));
        fn lowest_index_eq(x: __m256, y: f32, index: __m256i) -> i32 = {
            let equal = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_EQ_OQ>(x, _mm256_set1_ps(y)));
            let index = _mm256_blendv_epi8(_mm256_set1_epi32(i32::MAX), index, equal);
            reduce_i32!(index, |a, b| _mm_min_epi32(a, b))
        };
        fn first_lane_eq(x: __m256, y: f32) -> usize = {
            let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(x, _mm256_set1_ps(y));
            (_mm256_movemask_ps(equal) as u32).trailing_zeros() as usize
        };
    }
}

impl Simd for Avx512 {
    type F32 = __m512;
    type I32 = __m512i;

    methods! {
        fn splat(x: f32) -> __m512 = _mm512_set1_ps(x);
        fn add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        fn to_f32(a: __m512i) -> __m512 = _mm512_cvtepi32_ps(a);
        // The instruction returns its second operand where both are equal or not ordered.
        fn max(a: __m512, b: __m512) -> __m512 = _mm512_max_ps(b, a);
    }

    /// # Safety
    /// As for [`Simd::store_first`].
    #[inline(always)]
    unsafe fn store_first(p: *mut f32, a: __m512, count: usize) {
        let mask = if count >= 16 { u16::MAX } else { (1 << count) - 1 };
        // SAFETY: the kernel contract; lanes that the mask leaves out are not touched.
        unsafe { _mm512_mask_storeu_ps(p, mask, a) }
    }
}
