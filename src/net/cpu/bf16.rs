//! bfloat16 kernels without instructions for bf16: fused multiply-adds of bf16 in words of f32, at the rate of f32.

use super::format::{Activations, Format, WeightFormat};
use super::kernels::kernels;
use super::portable::Portable;
use crate::net::number::bf16_rounded;
use crate::net::register_tile::DotProduct;
use crate::simd::{Register, Simd};
use std::marker::PhantomData;

/// Products of bf16 in words of f32: of each pair the second first, as the instructions multiply.
pub(super) struct Rounded<S>(PhantomData<S>);

impl<S: Simd> DotProduct for Rounded<S> {
    type S = S;
    type Weights = S::F32;
    const UNIT: usize = 1;
    const IN_PAIRS: bool = true;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> S::F32 {
        // SAFETY: the kernel contract.
        unsafe { S::load(p) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: S::F32, b: S::F32, acc: S::F32) -> S::F32 {
        S::mul_add(a, b, acc)
    }
}

impl<S: Simd> Format for Rounded<S> {
    const WRITES: Activations = Activations::RoundedF32;
    const WEIGHTS: WeightFormat = WeightFormat::Rounded;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, mut a: S::F32) {
        a.lanes_mut().iter_mut().for_each(|x| *x = bf16_rounded(*x));
        // SAFETY: the kernel contract.
        unsafe { S::store(p, a) }
    }
}

kernels! {
    static PORTABLE = "portable-bf16", Rounded<Portable>;
    chains 12;
    rows [1 2 3 4 5] [1 2 3 4 5] [1 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::number::{bf16_bits, bf16_high, bf16_low, bf16_pair};
    use crate::net::register_tile::{Columns, Rows, accumulate};
    use crate::rng::{Key, Purpose};

    /// A sum takes the product of a pair's second numbers, then that of the first ones, as `vdpbf16ps` takes the high number of a unit before the low one.
    #[test]
    fn sums_are_those_of_units() {
        const ROWS: usize = 3;
        const DEPTH: usize = 10;
        let mut rng = Key::new(7, Purpose::Evaluation).stream();
        // Of sizes so different that the order of a sum shows.
        let mut number = |i: usize| bf16_rounded(rng.normal() * (1_u32 << (7 * i % 23)) as f32);
        let mut numbers = |len: usize| -> Vec<f32> { (0..len).map(&mut number).collect() };
        let (x, w) = (numbers(ROWS * DEPTH), numbers(DEPTH * 4));
        let rows = Rows { start: x.as_ptr(), row: DEPTH, step: 1 };
        let columns = Columns { start: w.as_ptr(), block: 0, step: 4 };
        let mut sums = [[[0.0; 4]; 1]; ROWS];
        // SAFETY: plain Rust; rows and columns hold DEPTH steps.
        unsafe { accumulate::<Rounded<Portable>, ROWS, 1>(rows, columns, DEPTH, &mut sums) };
        let mut in_memory_order = Vec::new();
        for (x, [sums]) in x.chunks_exact(DEPTH).zip(sums) {
            for (lane, found) in sums.into_iter().enumerate() {
                let units = x.as_chunks::<2>().0.iter().enumerate();
                let units = units.map(|(k, &[first, second])| {
                    let weight = |number: usize| w[4 * number + lane];
                    [bf16_pair(first, second), bf16_pair(weight(2 * k), weight(2 * k + 1))]
                });
                let expected = units.fold(0.0, |sum, [a, b]| {
                    bf16_low(a).mul_add(bf16_low(b), bf16_high(a).mul_add(bf16_high(b), sum))
                });
                assert_eq!(found.to_bits(), f32::to_bits(expected));
                let products = x.iter().enumerate();
                in_memory_order.push(products.fold(0.0, |sum, (k, x)| x.mul_add(w[4 * k + lane], sum)));
            }
        }
        let found = sums.as_flattened().as_flattened();
        assert!(found.iter().zip(&in_memory_order).any(|(sum, other)| sum != other), "{found:?}");
    }

    #[test]
    fn activations_are_written_as_bf16() {
        let numbers = [1.0 + f32::EPSILON, -0.3, f32::NAN, 1e38];
        let mut out = [0.0; 4];
        // SAFETY: plain Rust; `out` has all lanes.
        unsafe { Rounded::<Portable>::store_units(out.as_mut_ptr(), numbers) };
        let high = numbers.map(|x| bf16_bits(x) << 16);
        assert_eq!(out.map(f32::to_bits), high);
        assert!(out[0] == 1.0 && out[2].is_nan());
    }
}
