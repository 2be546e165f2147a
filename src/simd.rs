//! Vector registers of f32 and i32, one type of [`Simd`] for each instruction set.
//!
//! Three users share the trait: the row loops of the search ([`F8`], [`I8`]: eight lanes, the same bits with every instruction
//! set), the forward's matrix kernels (its number formats stand on [`Simd::F32`]) and those of training. A compiler that is left to
//! find vectors in plain loops takes them apart as often as not, so operations are named one by one.

mod row;
#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::Neon;
#[cfg(test)]
pub(crate) use row::device_constants;
pub use row::{Argmax, F8, I8, LANES};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

/// The registers of the row loops where there is an instruction set with vectors of eight lanes, or two of four.
#[cfg(target_arch = "x86_64")]
pub(crate) type RowSimd = Avx2;
#[cfg(target_arch = "aarch64")]
pub(crate) type RowSimd = Neon<2>;

use crate::math;
use std::fmt::Debug;

/// A register as an array of its lanes.
///
/// # Safety
/// The type is a whole number of `T` and nothing else, aligned for them, and every bit pattern is valid.
pub unsafe trait Register<T: Copy>: Copy {
    /// The lanes, the lowest first.
    #[inline(always)]
    fn lanes(&self) -> &[T] {
        // SAFETY: the type is a whole number of T (see the trait).
        unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>() / size_of::<T>())
        }
    }

    /// The lanes, to be written.
    #[inline(always)]
    fn lanes_mut(&mut self) -> &mut [T] {
        // SAFETY: the type is a whole number of T, of any bits (see the trait).
        unsafe {
            std::slice::from_raw_parts_mut(
                std::ptr::from_mut(self).cast(),
                size_of::<Self>() / size_of::<T>(),
            )
        }
    }
}

// SAFETY: arrays are their elements.
unsafe impl<const N: usize> Register<f32> for [f32; N] {}
// SAFETY: as above.
unsafe impl<const N: usize> Register<i32> for [i32; N] {}

/// The vector registers of one instruction set.
///
/// A method's body here defines its result, to the bit; an instruction set overrides it where it has an instruction.
///
/// Methods may be called only inside functions that are compiled for the instruction set (`#[target_feature]`) and run where the
/// machine has it; they are `inline(always)` for that reason.
pub trait Simd: Copy + Debug + PartialEq {
    /// A register of f32.
    type F32: Register<f32>;
    /// A register of as many i32.
    type I32: Register<i32>;
    /// Numbers of a register.
    const LANES: usize = size_of::<Self::F32>() / size_of::<f32>();

    /// `x` in every lane.
    fn splat(x: f32) -> Self::F32;

    /// The numbers at `p`.
    ///
    /// # Safety
    /// `p` is valid for LANES numbers; it need not be aligned to the register.
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::F32 {
        // SAFETY: the kernel contract.
        unsafe { p.cast::<Self::F32>().read_unaligned() }
    }

    /// Writes all lanes to `p`.
    ///
    /// # Safety
    /// As for [`Simd::load`].
    #[inline(always)]
    unsafe fn store(p: *mut f32, a: Self::F32) {
        // SAFETY: the kernel contract.
        unsafe { p.cast::<Self::F32>().write_unaligned(a) }
    }

    /// Writes the first `count` lanes, or all where `count` is larger, to `p`.
    ///
    /// # Safety
    /// `p` is valid for writes of these lanes.
    #[inline(always)]
    unsafe fn store_first(p: *mut f32, a: Self::F32, count: usize) {
        let lanes = a.lanes();
        // SAFETY: the kernel contract.
        unsafe { std::ptr::copy_nonoverlapping(lanes.as_ptr(), p, count.min(lanes.len())) }
    }

    /// a + b.
    #[inline(always)]
    fn add(a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a: f32, b| a + b)
    }

    /// a - b.
    #[inline(always)]
    fn sub(a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a: f32, b| a - b)
    }

    /// a * b.
    #[inline(always)]
    fn mul(a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a: f32, b| a * b)
    }

    /// a / b.
    #[inline(always)]
    fn div(a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a: f32, b| a / b)
    }

    /// a * b + c, rounded once.
    fn mul_add(a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;

    /// Whether [`Simd::mul_add_lane`] is one instruction, so that numbers of a row are best loaded a register at a time.
    const BY_LANE: bool = false;

    /// a\[LANE\] * b + c, rounded once.
    #[inline(always)]
    fn mul_add_lane<const LANE: i32>(a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        Self::mul_add(Self::splat(a.lanes()[LANE as usize]), b, c)
    }

    /// The larger of each pair; a where they are equal or not ordered, so that `max(a, 0)` keeps a NaN.
    #[inline(always)]
    fn max(a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a: f32, b| if b > a { b } else { a })
    }

    /// The smaller of each pair; a where they are equal or not ordered.
    #[inline(always)]
    fn min(a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a: f32, b| if b < a { b } else { a })
    }

    /// `yes` where x < bound, else `no`.
    #[inline(always)]
    fn select_lt(x: Self::F32, bound: Self::F32, yes: Self::F32, no: Self::F32) -> Self::F32 {
        select(|i| x.lanes()[i] < bound.lanes()[i], yes, no)
    }

    /// `yes` where x == y, else `no`.
    #[inline(always)]
    fn select_eq(x: Self::F32, y: Self::F32, yes: Self::F32, no: Self::F32) -> Self::F32 {
        select(|i| x.lanes()[i] == y.lanes()[i], yes, no)
    }

    /// The sum as a binary tree: of eight lanes 0 with 4 to 3 with 7, then 0 with 2 and 1 with 3, then 0 with 1.
    #[inline(always)]
    fn reduce_sum(a: Self::F32) -> f32 {
        tree_reduce(a, |a: f32, b| a + b)
    }

    /// The largest lane.
    #[inline(always)]
    fn reduce_max(a: Self::F32) -> f32 {
        tree_reduce(a, |a: f32, b| if b > a { b } else { a })
    }

    /// 2^n of numbers whose lowest bits are the integer n.
    #[inline(always)]
    fn power_of_two(a: Self::F32) -> Self::F32 {
        map(a, |x: f32| f32::from_bits((x.to_bits() << 23).wrapping_add(127 << 23)))
    }

    /// The exponents of positive numbers, as if their mantissas were in [0.5, 1).
    #[inline(always)]
    fn exponent(a: Self::F32) -> Self::F32 {
        map(a, |x: f32| ((x.to_bits() >> 23) as i32 - 126) as f32)
    }

    /// Their mantissas, in [0.5, 1).
    #[inline(always)]
    fn mantissa(a: Self::F32) -> Self::F32 {
        map(a, |x: f32| f32::from_bits((x.to_bits() & 0x007F_FFFF) | 0x3F00_0000))
    }

    /// Integers as floats.
    #[inline(always)]
    fn to_f32(a: Self::I32) -> Self::F32 {
        let mut out = Self::splat(0.0);
        out.lanes_mut().iter_mut().zip(a.lanes()).for_each(|(out, a)| *out = *a as f32);
        out
    }

    /// a + b, wrapping.
    #[inline(always)]
    fn add_i32(a: Self::I32, b: Self::I32) -> Self::I32 {
        zip(a, b, i32::wrapping_add)
    }

    /// a - b, wrapping.
    #[inline(always)]
    fn sub_i32(a: Self::I32, b: Self::I32) -> Self::I32 {
        zip(a, b, i32::wrapping_sub)
    }

    /// The larger of each pair.
    #[inline(always)]
    fn max_i32(a: Self::I32, b: Self::I32) -> Self::I32 {
        zip(a, b, i32::max)
    }

    /// The sum of the lanes, wrapping.
    #[inline(always)]
    fn reduce_sum_i32(a: Self::I32) -> i32 {
        tree_reduce(a, i32::wrapping_add)
    }

    /// The largest lane.
    #[inline(always)]
    fn reduce_max_i32(a: Self::I32) -> i32 {
        tree_reduce(a, i32::max)
    }

    /// `yes` where n > m, else `no`.
    #[inline(always)]
    fn select_gt_i32(n: Self::I32, m: i32, yes: Self::F32, no: Self::F32) -> Self::F32 {
        select(|i| n.lanes()[i] > m, yes, no)
    }

    /// `yes` where n == m, else `no`.
    #[inline(always)]
    fn select_eq_i32(n: Self::I32, m: i32, yes: Self::F32, no: Self::F32) -> Self::F32 {
        select(|i| n.lanes()[i] == m, yes, no)
    }

    /// The integers `yes` where a > b, else `no`.
    #[inline(always)]
    fn select_index_gt(a: Self::F32, b: Self::F32, yes: Self::I32, no: Self::I32) -> Self::I32 {
        select(|i| a.lanes()[i] > b.lanes()[i], yes, no)
    }

    /// The lowest of `index` where x == y; [`i32::MAX`] where there is none.
    #[inline(always)]
    fn lowest_index_eq(x: Self::F32, y: f32, index: Self::I32) -> i32 {
        let equal = x.lanes().iter().zip(index.lanes()).filter(|(x, _)| **x == y);
        equal.map(|(_, index)| *index).fold(i32::MAX, i32::min)
    }

    /// The first lane where x == y; LANES or more where there is none.
    #[inline(always)]
    fn first_lane_eq(x: Self::F32, y: f32) -> usize {
        x.lanes().iter().position(|&x| x == y).unwrap_or(Self::LANES)
    }
}

/// The integers that are in a register of f32 as bits.
#[inline(always)]
pub(crate) fn integers<S: Simd>(words: S::F32) -> S::I32 {
    const { assert!(size_of::<S::F32>() == size_of::<S::I32>(), "as many numbers of 32 bits") }
    // SAFETY: both are plain bits, as many.
    unsafe { std::mem::transmute_copy(&words) }
}

/// Integers as the bits of a register of f32.
#[inline(always)]
pub(crate) fn words<S: Simd>(integers: S::I32) -> S::F32 {
    const { assert!(size_of::<S::F32>() == size_of::<S::I32>(), "as many numbers of 32 bits") }
    // SAFETY: as for `integers`.
    unsafe { std::mem::transmute_copy(&integers) }
}

#[inline(always)]
fn map<T: Copy, R: Register<T>>(mut a: R, f: impl Fn(T) -> T) -> R {
    a.lanes_mut().iter_mut().for_each(|a| *a = f(*a));
    a
}

#[inline(always)]
fn zip<T: Copy, R: Register<T>>(mut a: R, b: R, f: impl Fn(T, T) -> T) -> R {
    a.lanes_mut().iter_mut().zip(b.lanes()).for_each(|(a, b)| *a = f(*a, *b));
    a
}

/// The lanes of `yes` where the condition holds, else those of `no`.
#[inline(always)]
fn select<T: Copy, R: Register<T>>(condition: impl Fn(usize) -> bool, yes: R, mut no: R) -> R {
    let lanes = no.lanes_mut().iter_mut().zip(yes.lanes()).enumerate();
    lanes.for_each(|(i, (no, yes))| *no = if condition(i) { *yes } else { *no });
    no
}

/// All lanes joined, the upper half with the lower one until one is left.
#[inline(always)]
fn tree_reduce<T: Copy, R: Register<T>>(mut a: R, join: impl Fn(T, T) -> T) -> T {
    let lanes = a.lanes_mut();
    let mut half = lanes.len() / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = join(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Plain Rust on arrays, for any machine; the compiler makes baseline vectors of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Portable<const N: usize = LANES>;

impl<const N: usize> Simd for Portable<N> {
    type F32 = [f32; N];
    type I32 = [i32; N];

    #[inline(always)]
    fn splat(x: f32) -> [f32; N] {
        [x; N]
    }

    #[inline(always)]
    fn mul_add(a: [f32; N], b: [f32; N], c: [f32; N]) -> [f32; N] {
        math::mul_add_each(a, b, c)
    }
}

#[cfg(test)]
mod tests;
