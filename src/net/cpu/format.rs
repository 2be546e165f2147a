//! Number formats of the forward's matrix kernels: how units are multiplied and how activations are written, on top of an
//! instruction set's registers ([`Simd`]).

use crate::net::register_tile::{DotProduct, F32, Vector};
use crate::simd::Simd;

/// How units of weights lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeightFormat {
    /// As those of activations: a unit is a word.
    Units,
    /// f32 rounded to bf16, as activations of [`Activations::RoundedF32`].
    Rounded,
    /// The two bf16 of a unit as f32: for each vector of units the high ones, then the low ones.
    HighLow,
    /// Bytes, and after the units of each tap 128 times their sums: for instructions that multiply signed bytes alone, for which 128 is
    /// subtracted from every activation.
    SignedBytes,
    /// Two units of an output, then those of the next: for instructions that multiply matrices of two rows by two outputs.
    Pairs,
}

impl WeightFormat {
    /// Units of first sums after those of each tap.
    pub(super) const fn first_sums(self) -> usize {
        match self {
            Self::Units | Self::Rounded | Self::HighLow | Self::Pairs => 0,
            Self::SignedBytes => 1,
        }
    }
}

/// How activations lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activations {
    F32,
    /// bf16, each in a word of its own.
    RoundedF32,
    /// Two bf16 in a word.
    Bf16,
    /// Four bytes in a word.
    Bytes,
}

impl Activations {
    /// Activations of a word.
    pub(super) const fn per_word(self) -> usize {
        match self {
            Self::F32 | Self::RoundedF32 => 1,
            Self::Bf16 => 2,
            Self::Bytes => 4,
        }
    }
}

/// How sums become activations, and how these are written.
///
/// Methods may be called only inside functions that enable the format's instructions; pointers are those of a tile, which its
/// caller vouches for.
pub(super) trait Format: DotProduct {
    /// How activations are written.
    const WRITES: Activations;
    /// Activations in a 32-bit unit as written.
    const OUT: usize = Self::WRITES.per_word();
    /// How weights lie in memory.
    const WEIGHTS: WeightFormat = WeightFormat::Units;
    /// `sums` and the first sums of one tap more, which are at `unit` ([`WeightFormat::SignedBytes`]).
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn begin(sums: Vector<Self>, _unit: *const f32) -> Vector<Self> {
        sums
    }
    /// A sum as f32 plus its bias. A sum of byte products is multiplied by its channel's `dequant_scale` first.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn with_bias(sum: Vector<Self>, _dequant_scale: Vector<Self>, bias: Vector<Self>) -> Vector<Self> {
        Self::S::add(sum, bias)
    }
    /// The residual stream plus a sum.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn add_to_stream(
        stream: Vector<Self>,
        sum: Vector<Self>,
        _dequant_scale: Vector<Self>,
    ) -> Vector<Self> {
        Self::S::add(stream, sum)
    }
    /// Writes the lanes as activations: LANES / OUT words.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    unsafe fn store_units(p: *mut f32, a: Vector<Self>);
    /// Writes the lanes of `a`, then those of `b`.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "read by kernels that multiply matrices, AMX alone")
    )]
    #[inline(always)]
    unsafe fn store_pair(p: *mut f32, a: Vector<Self>, b: Vector<Self>) {
        // SAFETY: the kernel contract.
        unsafe {
            Self::store_units(p, a);
            Self::store_units(p.add(Self::S::LANES / Self::OUT), b);
        }
    }
}

/// max(a, 0); NaN where a is NaN.
#[inline(always)]
pub(super) fn relu<S: Simd>(a: S::F32) -> S::F32 {
    S::max(a, S::splat(0.0))
}

impl<S: Simd> Format for F32<S> {
    const WRITES: Activations = Activations::F32;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: S::F32) {
        // SAFETY: the kernel contract.
        unsafe { S::store(p, a) }
    }
}

/// Multiplies CHAINS independent sums in registers, without memory: the peak of the machine.
///
/// # Safety
/// The machine has F's instructions.
#[inline(always)]
pub(super) unsafe fn peak<F: Format, const CHAINS: usize>(rounds: usize) -> f32 {
    // SAFETY: the kernel contract; loads and stores are of a local array of at least LANES numbers.
    unsafe {
        let mut numbers = std::hint::black_box([0.5_f32; 16]);
        let (factor, weights) = (F::S::load(numbers.as_ptr()), F::load_weights(numbers.as_ptr()));
        let mut sums = [factor; CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = F::dot(factor, weights, *sum);
            }
        }
        let total = sums.into_iter().reduce(F::S::add).unwrap_or(factor);
        F::S::store(numbers.as_mut_ptr(), total);
        numbers[0]
    }
}
