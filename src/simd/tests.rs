//! Every instruction set against the trait's own bodies, to the bit.

use super::{F8, Portable, Register, Simd};
use proptest::prelude::*;

/// A compared value: the lanes of one result as bits, or a number.
fn bits<R: Register<f32>>(x: R) -> Vec<u32> {
    x.lanes().iter().map(|x| x.to_bits()).collect()
}

/// A register of the lanes of `numbers`, which is taken from the start as often as it takes.
fn register<T: Copy, R: Register<T>>(mut out: R, numbers: &[T]) -> R {
    out.lanes_mut().iter_mut().zip(numbers.iter().cycle()).for_each(|(out, x)| *out = *x);
    out
}

/// The lanes, one NaN for all: its sign depends on the order in which an instruction looks at its operands.
fn without_nan<R: Register<f32>>(mut x: R) -> R {
    x.lanes_mut().iter_mut().for_each(|x| *x = if x.is_nan() { f32::NAN } else { *x });
    x
}

/// The results of every method that all instruction sets share, in order.
#[inline(always)]
fn results<S: Simd>(
    a: &[f32; 8],
    b: &[f32; 8],
    n: &[i32; 8],
    zero: S::I32,
) -> (Vec<Vec<u32>>, Vec<i64>, Vec<Vec<i32>>) {
    let m = n.map(|x| x.wrapping_mul(3));
    let scalars = [a[0], a[7], 0.0];
    let [a, b] = [a, b].map(|x| register(S::splat(0.0), x));
    let [n, m] = [n, &m].map(|x| register(zero, x));
    let floats = [
        S::add(a, b),
        S::sub(a, b),
        S::mul(a, b),
        S::div(a, b),
        without_nan(S::mul_add(a, b, S::max(b, a))),
        without_nan(S::mul_add_lane::<0>(a, b, a)),
        without_nan(S::mul_add_lane::<3>(a, b, a)),
        S::max(a, b),
        S::min(a, b),
        S::max(a, S::splat(0.0)),
        S::select_lt(a, b, b, a),
        S::select_eq(a, b, S::splat(1.0), b),
        S::power_of_two(a),
        S::exponent(a),
        S::mantissa(a),
        S::to_f32(n),
        S::select_gt_i32(n, 0, a, b),
        S::select_eq_i32(n, 3, a, b),
    ];
    let mut numbers = vec![
        i64::from(S::reduce_sum(a).to_bits()),
        i64::from(S::reduce_max(a).to_bits()),
        i64::from(S::reduce_sum_i32(n)),
        i64::from(S::reduce_max_i32(n)),
    ];
    for x in scalars {
        numbers.push(i64::from(S::lowest_index_eq(a, x, n)));
        numbers.push(S::first_lane_eq(a, x).min(S::LANES) as i64);
    }
    let integers = [S::add_i32(n, m), S::sub_i32(n, m), S::max_i32(n, m), S::select_index_gt(a, b, n, m)];
    let mut stored = Vec::new();
    for count in 0..=S::LANES + 1 {
        let mut memory = vec![7.0; 2 * S::LANES];
        // SAFETY: the array has a whole register after the first element; a register is read from the start.
        unsafe {
            S::store_first(memory.as_mut_ptr().add(1), a, count);
            S::store(memory.as_mut_ptr().add(1), S::max(S::load(memory.as_ptr().add(1)), b));
        }
        stored.extend(memory.iter().map(|x| x.to_bits()));
    }
    let mut floats: Vec<_> = floats.into_iter().map(bits).collect();
    floats.push(stored);
    (floats, numbers, integers.iter().map(|x| x.lanes().to_vec()).collect())
}

/// Numbers that are equal, zero, infinite and no numbers as often as not.
pub(super) fn any_floats() -> impl Strategy<Value = [f32; 8]> {
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

#[cfg(target_arch = "aarch64")]
proptest! {
    #[test]
    fn every_instruction_set_equals_plain_rust(
        a in any_floats(), b in any_floats(), n in proptest::array::uniform8(-9i32..9),
    ) {
        use super::Neon;
        use std::arch::aarch64::vdupq_n_s32;
        // SAFETY: every machine of this architecture has NEON.
        let zero = unsafe { vdupq_n_s32(0) };
        let rows = results::<Neon<2>>(&a, &b, &n, [zero; 2]);
        prop_assert_eq!(rows, results::<Portable<8>>(&a, &b, &n, [0; 8]));
        let products = results::<Neon<1>>(&a, &b, &n, [zero]);
        prop_assert_eq!(products, results::<Portable<4>>(&a, &b, &n, [0; 4]));
        let exp_ln = |x: [f32; 8]| [F8::<Neon<2>>::of(x).exp().0, F8::<Neon<2>>::of(x).ln().0].map(bits);
        let expected = |x: [f32; 8]| [F8::<Portable>::of(x).exp().0, F8::<Portable>::of(x).ln().0].map(bits);
        prop_assert_eq!(exp_ln(a), expected(a));
    }
}

#[cfg(target_arch = "x86_64")]
proptest! {
    #[test]
    fn every_instruction_set_equals_plain_rust(
        a in any_floats(), b in any_floats(), n in proptest::array::uniform8(-9i32..9),
    ) {
        use super::{Avx2, Avx512};
        use crate::isa::Isa;
        use std::arch::x86_64::{_mm256_setzero_si256, _mm512_setzero_si512};
        #[target_feature(enable = "avx2,fma")]
        fn avx2(a: &[f32; 8], b: &[f32; 8], n: &[i32; 8]) {
            assert_eq!(results::<Avx2>(a, b, n, _mm256_setzero_si256()), results::<Portable<8>>(a, b, n, [0; 8]));
            let exp_ln = |x: [f32; 8]| [F8::<Avx2>::of(x).exp().0, F8::<Avx2>::of(x).ln().0].map(bits);
            let expected = |x: [f32; 8]| [F8::<Portable>::of(x).exp().0, F8::<Portable>::of(x).ln().0].map(bits);
            assert_eq!(exp_ln(*a), expected(*a));
        }
        #[target_feature(enable = "avx512f")]
        fn avx512(a: &[f32; 8], b: &[f32; 8], n: &[i32; 8]) {
            assert_eq!(results::<Avx512>(a, b, n, _mm512_setzero_si512()), results::<Portable<16>>(a, b, n, [0; 16]));
        }
        for isa in Isa::available() {
            match isa {
                // SAFETY: the machine has the instructions.
                Isa::Avx512 => unsafe { avx512(&a, &b, &n) },
                // SAFETY: as above.
                Isa::Avx2 => unsafe { avx2(&a, &b, &n) },
                Isa::Amx | Isa::Bfmmla | Isa::Neon | Isa::Portable => {}
            }
        }
    }
}
