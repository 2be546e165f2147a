//! f32 kernels in plain Rust, for any machine.

use super::format::peak;
use super::kernels::{Kernels, tiles};
use super::tile::{Tile, tile};
use crate::net::register_tile::F32;
use crate::simd::Simd;

/// Four lanes: baseline vectors of x86-64 and aarch64.
pub(super) type Portable = crate::simd::Portable<4>;

/// # Safety
/// The kernel contract of [`crate::isa`].
unsafe fn portable<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the kernel contract.
    unsafe { tile::<F32<Portable>, MR, NV>(t) }
}

/// # Safety
/// None: plain Rust. The type is that of all kernels.
unsafe fn portable_peak(rounds: usize) -> f32 {
    // SAFETY: plain Rust needs no instructions of its own.
    unsafe { peak::<F32<Portable>, 12>(rounds) }
}

pub(super) static PORTABLE: Kernels = Kernels {
    name: "portable",
    lanes: Portable::LANES,
    unit: 1,
    out: 1,
    tiles: [tiles!(portable, 1, [1 2 3 4 5]), tiles!(portable, 2, [1 2 3 4 5]), tiles!(portable, 4, [1 2])],
    peak: portable_peak,
    chains: 12,
    matrices: None,
};
