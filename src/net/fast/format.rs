//! What an instruction set and a number format give the kernels: vectors, products of units, activations as they are written.

use std::marker::PhantomData;

/// Vectors of LANES f32 in one instruction set.
pub(super) trait Vectors {
    const LANES: usize;
    type Vector: Copy;
    unsafe fn zero() -> Self::Vector;
    unsafe fn load(p: *const f32) -> Self::Vector;
    /// One word in every lane.
    unsafe fn splat(p: *const f32) -> Self::Vector;
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a * b + c.
    unsafe fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// max(a, 0), NaN where a is NaN.
    unsafe fn relu(a: Self::Vector) -> Self::Vector;
    unsafe fn store(p: *mut f32, a: Self::Vector);
    /// The first `valid` lanes, which may be more than there are.
    unsafe fn store_valid(p: *mut f32, a: Self::Vector, valid: usize);
}

/// A vector of the format's instruction set; as a sum, of 32-bit integers in the format of bytes.
pub(super) type Vector<F> = <<F as Format>::V as Vectors>::Vector;

/// How activations are multiplied and written.
pub(super) trait Format {
    type V: Vectors;
    /// Activations of a 32-bit unit as written.
    const OUT: usize;
    /// acc + the product of units.
    unsafe fn dot(a: Vector<Self>, b: Vector<Self>, acc: Vector<Self>) -> Vector<Self>;
    /// A sum as f32 with its bias, a sum of byte products being dequant_scale `dequant_scale` each.
    #[inline(always)]
    unsafe fn with_bias(sum: Vector<Self>, _worth: Vector<Self>, bias: Vector<Self>) -> Vector<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::V::add(sum, bias) }
    }
    /// The residual stream with a sum added.
    #[inline(always)]
    unsafe fn onto(stream: Vector<Self>, sum: Vector<Self>, _worth: Vector<Self>) -> Vector<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::V::add(stream, sum) }
    }
    /// Lanes as activations: LANES / OUT words.
    unsafe fn store_units(p: *mut f32, a: Vector<Self>);
    /// The lanes of `a`, then those of `b`.
    #[inline(always)]
    unsafe fn store_pair(p: *mut f32, a: Vector<Self>, b: Vector<Self>) {
        // SAFETY: the caller's promise.
        unsafe {
            Self::store_units(p, a);
            Self::store_units(p.add(Self::V::LANES / Self::OUT), b);
        }
    }
}

/// Activations in f32.
pub(super) struct F32<V>(PhantomData<V>);

// SAFETY of every method: called only inside functions that enable V's instructions, on pointers the tile vouches for.
impl<V: Vectors> Format for F32<V> {
    type V = V;
    const OUT: usize = 1;

    #[inline(always)]
    unsafe fn dot(a: V::Vector, b: V::Vector, acc: V::Vector) -> V::Vector {
        // SAFETY: see the impl.
        unsafe { V::mul_add(a, b, acc) }
    }

    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: V::Vector) {
        // SAFETY: see the impl.
        unsafe { V::store(p, a) }
    }
}

/// The most that the machine can multiply: CHAINS sums in registers, no memory.
///
/// # Safety
/// The machine has F's instructions.
#[inline(always)]
pub(super) unsafe fn peak<F: Format, const CHAINS: usize>(rounds: usize) -> f32 {
    // SAFETY: the caller's promise; loads and stores are of a local array of at least LANES numbers.
    unsafe {
        let mut numbers = std::hint::black_box([0.5_f32; 16]);
        let factor = F::V::load(numbers.as_ptr());
        let mut sums = [factor; CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = F::dot(factor, factor, *sum);
            }
        }
        let total = sums.into_iter().reduce(|a, b| F::V::add(a, b)).unwrap_or(factor);
        F::V::store(numbers.as_mut_ptr(), total);
        numbers[0]
    }
}
