//! bfloat16 kernels in plain Rust: `vdpbf16ps`, one operation at a time.
//!
//! A unit holds two numbers, the first in the low half. A product of two bf16 is exact in f32, so only the two additions round, the
//! high half's first, to nearest even: the bits of the instruction, except that the instruction treats denormals as 0.

use super::format::{Format, peak};
use super::kernels::{Kernels, tiles};
use super::portable::Portable;
use super::tile::{Tile, tile};
use crate::net::number::bf16_bits;
use crate::net::register_tile::DotProduct;
use crate::simd::Simd;

/// Four lanes; a unit is two bf16.
struct PortableBf16;

type Vector = <Portable as Simd>::F32;

/// The low half as f32.
#[inline(always)]
fn low(unit: f32) -> f32 {
    f32::from_bits(unit.to_bits() << 16)
}

/// The high half as f32.
#[inline(always)]
fn high(unit: f32) -> f32 {
    f32::from_bits(unit.to_bits() & 0xFFFF_0000)
}

impl DotProduct for PortableBf16 {
    type S = Portable;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn dot(a: Vector, b: Vector, acc: Vector) -> Vector {
        std::array::from_fn(|i| (acc[i] + high(a[i]) * high(b[i])) + low(a[i]) * low(b[i]))
    }
}

impl Format for PortableBf16 {
    const OUT: usize = 2;

    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn store_units(p: *mut f32, a: Vector) {
        for (i, &x) in a.iter().enumerate() {
            // SAFETY: the kernel contract; LANES numbers of 16 bits are LANES / 2 words.
            unsafe { p.cast::<u16>().add(i).write(bf16_bits(x) as u16) };
        }
    }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
unsafe fn portable<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the kernel contract.
    unsafe { tile::<PortableBf16, MR, NV>(t) }
}

/// # Safety
/// None: plain Rust. The type is that of all kernels.
unsafe fn portable_peak(rounds: usize) -> f32 {
    // SAFETY: plain Rust needs no instructions of its own.
    unsafe { peak::<PortableBf16, 8>(rounds) }
}

pub(super) static PORTABLE: Kernels = Kernels {
    name: "portable-bf16",
    lanes: Portable::LANES,
    unit: 2,
    out: 2,
    tiles: [tiles!(portable, 1, [1 2 3 4]), tiles!(portable, 2, [1 2 3]), tiles!(portable, 4, [1])],
    peak: portable_peak,
    chains: 8,
    matrices: None,
};
