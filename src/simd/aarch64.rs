//! The vector registers of 64-bit ARM: NEON, which every such machine has.

use super::{Register, Simd};
use std::arch::aarch64::*;
use std::array::from_fn;

/// N registers of four lanes as one: a single one for matrix products, two for the row loops' eight lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Neon<const N: usize = 1>;

/// The floats of N registers.
type F<const N: usize> = [float32x4_t; N];
/// The integers of N registers.
type I<const N: usize> = [int32x4_t; N];

// SAFETY: N times 128 plain bits.
unsafe impl<const N: usize> Register<f32> for F<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Register<i32> for I<N> {}

/// Methods that are one expression of intrinsics for every register `i`.
macro_rules! each {
    ($(fn $name:ident($($argument:ident: $of:ty),+) -> $out:ty = |$i:ident| $body:expr;)+) => {
        $(#[inline(always)]
        fn $name($($argument: $of),+) -> $out {
            // SAFETY: every machine of this architecture has NEON.
            from_fn(|$i| unsafe { $body })
        })+
    };
}

/// Joins the registers, upper half with lower half, until one is left; then its lanes 0 with 2 and 1 with 3, then 0 with 1.
macro_rules! tree_reduce {
    ($a:expr, $low:ident, $high:ident, $join_registers:expr, $join:expr, $swap:ident, $lane:ident) => {{
        let mut a = $a;
        let mut half = a.len() / 2;
        while half > 0 {
            for i in 0..half {
                a[i] = $join_registers(a[i], a[i + half]);
            }
            half /= 2;
        }
        let two = $join($low(a[0]), $high(a[0]));
        $lane::<0>($join(two, $swap(two)))
    }};
}

impl<const N: usize> Simd for Neon<N> {
    type F32 = F<N>;
    type I32 = I<N>;
    const BY_LANE: bool = true;

    #[inline(always)]
    fn splat(x: f32) -> F<N> {
        // SAFETY: every machine of this architecture has NEON.
        [unsafe { vdupq_n_f32(x) }; N]
    }

    each! {
        fn add(a: F<N>, b: F<N>) -> F<N> = |i| vaddq_f32(a[i], b[i]);
        fn sub(a: F<N>, b: F<N>) -> F<N> = |i| vsubq_f32(a[i], b[i]);
        fn mul(a: F<N>, b: F<N>) -> F<N> = |i| vmulq_f32(a[i], b[i]);
        fn div(a: F<N>, b: F<N>) -> F<N> = |i| vdivq_f32(a[i], b[i]);
        fn mul_add(a: F<N>, b: F<N>, c: F<N>) -> F<N> = |i| vfmaq_f32(c[i], a[i], b[i]);
        // `fmax` and `fmin` order the zeros and return NaN where either is one.
        fn max(a: F<N>, b: F<N>) -> F<N> = |i| vbslq_f32(vcgtq_f32(b[i], a[i]), b[i], a[i]);
        fn min(a: F<N>, b: F<N>) -> F<N> = |i| vbslq_f32(vcltq_f32(b[i], a[i]), b[i], a[i]);
        fn select_lt(x: F<N>, bound: F<N>, yes: F<N>, no: F<N>) -> F<N> =
            |i| vbslq_f32(vcltq_f32(x[i], bound[i]), yes[i], no[i]);
        fn select_eq(x: F<N>, y: F<N>, yes: F<N>, no: F<N>) -> F<N> =
            |i| vbslq_f32(vceqq_f32(x[i], y[i]), yes[i], no[i]);
        fn power_of_two(a: F<N>) -> F<N> = |i| {
            let shifted = vshlq_n_s32::<23>(vreinterpretq_s32_f32(a[i]));
            vreinterpretq_f32_s32(vaddq_s32(shifted, vdupq_n_s32(127 << 23)))
        };
        fn exponent(a: F<N>) -> F<N> = |i| {
            let bits = vreinterpretq_s32_u32(vshrq_n_u32::<23>(vreinterpretq_u32_f32(a[i])));
            vcvtq_f32_s32(vsubq_s32(bits, vdupq_n_s32(126)))
        };
        fn mantissa(a: F<N>) -> F<N> = |i| {
            let bits = vandq_u32(vreinterpretq_u32_f32(a[i]), vdupq_n_u32(0x007F_FFFF));
            vreinterpretq_f32_u32(vorrq_u32(bits, vdupq_n_u32(0x3F00_0000)))
        };
        fn to_f32(a: I<N>) -> F<N> = |i| vcvtq_f32_s32(a[i]);
        fn add_i32(a: I<N>, b: I<N>) -> I<N> = |i| vaddq_s32(a[i], b[i]);
        fn sub_i32(a: I<N>, b: I<N>) -> I<N> = |i| vsubq_s32(a[i], b[i]);
        fn max_i32(a: I<N>, b: I<N>) -> I<N> = |i| vmaxq_s32(a[i], b[i]);
        fn select_gt_i32(n: I<N>, m: i32, yes: F<N>, no: F<N>) -> F<N> =
            |i| vbslq_f32(vcgtq_s32(n[i], vdupq_n_s32(m)), yes[i], no[i]);
        fn select_eq_i32(n: I<N>, m: i32, yes: F<N>, no: F<N>) -> F<N> =
            |i| vbslq_f32(vceqq_s32(n[i], vdupq_n_s32(m)), yes[i], no[i]);
        fn select_index_gt(a: F<N>, b: F<N>, yes: I<N>, no: I<N>) -> I<N> =
            |i| vbslq_s32(vcgtq_f32(a[i], b[i]), yes[i], no[i]);
    }

    #[inline(always)]
    fn mul_add_lane<const LANE: i32>(a: F<N>, b: F<N>, c: F<N>) -> F<N> {
        // SAFETY: every machine of this architecture has NEON.
        from_fn(|i| unsafe { vfmaq_laneq_f32::<LANE>(c[i], b[i], a[0]) })
    }

    #[inline(always)]
    fn reduce_sum(a: F<N>) -> f32 {
        // SAFETY: as above.
        unsafe {
            let add = |a, b| vadd_f32(a, b);
            tree_reduce!(a, vget_low_f32, vget_high_f32, |a, b| vaddq_f32(a, b), add, swapped, vget_lane_f32)
        }
    }

    #[inline(always)]
    fn reduce_max(a: F<N>) -> f32 {
        // SAFETY: as above.
        unsafe {
            let max = |a, b| vbsl_f32(vcgt_f32(b, a), b, a);
            let of_registers = |a, b| vbslq_f32(vcgtq_f32(b, a), b, a);
            tree_reduce!(a, vget_low_f32, vget_high_f32, of_registers, max, swapped, vget_lane_f32)
        }
    }

    #[inline(always)]
    fn reduce_sum_i32(a: I<N>) -> i32 {
        // SAFETY: as above. Sums that wrap have no order.
        unsafe { vaddvq_s32(a.into_iter().fold(vdupq_n_s32(0), |a, b| vaddq_s32(a, b))) }
    }

    #[inline(always)]
    fn reduce_max_i32(a: I<N>) -> i32 {
        // SAFETY: as above.
        unsafe { vmaxvq_s32(a.into_iter().fold(vdupq_n_s32(i32::MIN), |a, b| vmaxq_s32(a, b))) }
    }

    #[inline(always)]
    fn lowest_index_eq(x: F<N>, y: f32, index: I<N>) -> i32 {
        // SAFETY: as above.
        unsafe {
            let y = vdupq_n_f32(y);
            let none = vdupq_n_s32(i32::MAX);
            let equal: I<N> = from_fn(|i| vbslq_s32(vceqq_f32(x[i], y), index[i], none));
            vminvq_s32(equal.into_iter().fold(none, |a, b| vminq_s32(a, b)))
        }
    }

    #[inline(always)]
    fn first_lane_eq(x: F<N>, y: f32) -> usize {
        const NUMBERS: [i32; 4] = [0, 1, 2, 3];
        // SAFETY: as above; the array is a register long.
        unsafe {
            let first = vld1q_s32(NUMBERS.as_ptr());
            Self::lowest_index_eq(x, y, from_fn(|i| vaddq_s32(first, vdupq_n_s32(4 * i as i32)))) as usize
        }
    }
}

/// Two lanes, the second first.
#[inline(always)]
fn swapped(a: float32x2_t) -> float32x2_t {
    // SAFETY: every machine of this architecture has NEON.
    unsafe { vrev64_f32(a) }
}
