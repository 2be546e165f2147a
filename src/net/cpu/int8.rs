//! 8-bit integer formats: unsigned activations, which follow a relu, times signed weights, and their kernels in plain Rust.
//!
//! Sums of products are exact 32-bit integers: up to 4,096 channels times 9 taps times 255 * 127 they cannot overflow. So every
//! instruction set gives the same bits.

use super::format::{Activations, Format, WeightFormat};
use super::kernels::kernels;
use super::portable::Portable;
use crate::net::register_tile::{DotProduct, F32, Vector};
use crate::simd::{Register, Simd, integers, words};
use std::marker::PhantomData;

/// Registers whose numbers can be written as bytes.
pub(super) trait ByteStore: Simd {
    /// Rounds numbers, none of them negative, to bytes, ties to even; more than 255 and NaN become 255. Writes LANES / 4 words.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    unsafe fn store_bytes(p: *mut f32, a: Self::F32);
}

/// Products of bytes. A word of the operands is a unit of four bytes, of the sums a 32-bit integer.
pub(super) trait ByteProducts {
    /// The instruction set's registers.
    type S: ByteStore;
    /// How weights lie in memory: as [`WeightFormat::SignedBytes`] where activations are multiplied less 128.
    const WEIGHTS: WeightFormat = WeightFormat::Units;

    /// acc + the product of units.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    unsafe fn dot(
        a: <Self::S as Simd>::F32,
        b: <Self::S as Simd>::F32,
        acc: <Self::S as Simd>::F32,
    ) -> <Self::S as Simd>::F32;

    /// Four units of a row at `p`, as [`ByteProducts::dot_lane`] takes them.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_quad(p: *const f32) -> <Self::S as Simd>::F32 {
        // SAFETY: the kernel contract.
        unsafe { Self::S::load(p) }
    }

    /// acc + the product of unit LANE of `a` with all units of `b`.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot_lane<const LANE: i32>(
        a: <Self::S as Simd>::F32,
        b: <Self::S as Simd>::F32,
        acc: <Self::S as Simd>::F32,
    ) -> <Self::S as Simd>::F32 {
        // SAFETY: the kernel contract.
        unsafe { Self::dot(Self::S::splat(a.lanes()[LANE as usize]), b, acc) }
    }
}

/// Sums that are written as bytes.
pub(super) struct AsBytes;

/// Reads f32 observations, writes bytes.
pub(super) type FloatToBytes<S> = F32<S, AsBytes>;

/// Reads and writes bytes.
pub(super) struct Bytes<P>(PhantomData<P>);

impl<S: ByteStore> Format for FloatToBytes<S> {
    const WRITES: Activations = Activations::Bytes;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: Vector<Self>) {
        // SAFETY: the kernel contract.
        unsafe { S::store_bytes(p, a) }
    }
}

impl<P: ByteProducts> DotProduct for Bytes<P> {
    type S = P::S;
    type Weights = Vector<Self>;
    const UNIT: usize = 4;
    const BY_LANE: bool = P::S::BY_LANE;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_weights(p: *const f32) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe { P::S::load(p) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: Vector<Self>, b: Vector<Self>, acc: Vector<Self>) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe { P::dot(a, b, acc) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn load_quad(p: *const f32) -> [Vector<Self>; 2] {
        // SAFETY: the kernel contract.
        unsafe { [P::load_quad(p); 2] }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot_lane<const LANE: i32>(
        a: [Vector<Self>; 2],
        b: Vector<Self>,
        acc: Vector<Self>,
    ) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe { P::dot_lane::<LANE>(a[0], b, acc) }
    }
}

impl<P: ByteProducts> Format for Bytes<P> {
    const WRITES: Activations = Activations::Bytes;
    const WEIGHTS: WeightFormat = P::WEIGHTS;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn begin(sums: Vector<Self>, unit: *const f32) -> Vector<Self> {
        // SAFETY: the kernel contract.
        let more = unsafe { P::S::load(unit) };
        words::<P::S>(P::S::add_i32(integers::<P::S>(sums), integers::<P::S>(more)))
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn add_to_stream(
        stream: Vector<Self>,
        sum: Vector<Self>,
        dequant_scale: Vector<Self>,
    ) -> Vector<Self> {
        // SAFETY: the kernel contract.
        unsafe { Self::with_bias(sum, dequant_scale, stream) }
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn with_bias(sum: Vector<Self>, dequant_scale: Vector<Self>, bias: Vector<Self>) -> Vector<Self> {
        P::S::mul_add(P::S::to_f32(integers::<P::S>(sum)), dequant_scale, bias)
    }

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: Vector<Self>) {
        // SAFETY: the kernel contract.
        unsafe { P::S::store_bytes(p, a) }
    }
}

impl ByteStore for Portable {
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_bytes(p: *mut f32, a: [f32; 4]) {
        let bytes = a.map(|x| x.min(255.0).round_ties_even() as u8);
        // SAFETY: the kernel contract; four bytes are a word.
        unsafe { p.cast::<[u8; 4]>().write(bytes) }
    }
}

/// Plain Rust.
struct PortableBytes;

impl ByteProducts for PortableBytes {
    type S = Portable;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: [f32; 4], b: [f32; 4], acc: [f32; 4]) -> [f32; 4] {
        let mut sums = integers::<Portable>(acc);
        for (sum, (a, b)) in sums.iter_mut().zip(a.into_iter().zip(b)) {
            let pairs = a.to_ne_bytes().into_iter().zip(b.to_ne_bytes());
            let products = pairs.map(|(a, b)| i32::from(a) * i32::from(b.cast_signed()));
            *sum = products.fold(*sum, i32::wrapping_add);
        }
        words::<Portable>(sums)
    }
}

kernels! {
    static STEM = "portable", FloatToBytes<Portable>;
    chains 8;
    rows [1 2 3 4] [1 2 3] [1]
}

kernels! {
    static TOWER = "portable-int8", Bytes<PortableBytes>;
    chains 8;
    rows [1 2 3 4] [1 2 3] [1]
}
