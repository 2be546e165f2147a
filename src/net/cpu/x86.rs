//! f32 kernels for x86-64: AVX-512, AVX2 with FMA.

use super::format::peak;
use super::kernels::{Kernels, tiles};
use super::tile::{Tile, tile};
use crate::net::register_tile::F32;
use crate::simd::{Avx2, Avx512, Simd};

/// The AVX-512 kernels made by `$entry`. Of 32 registers a tile's sums take at most 24 (12 x 2 or 6 x 4); the rest are for 2 or 4 vectors of
/// weights and the broadcast activations.
macro_rules! avx512_tiles {
    ($entry:ident) => {
        [
            $crate::net::cpu::kernels::tiles!($entry, 1, [1 2 3 4 5 6 7 8 9 10 11 12]),
            $crate::net::cpu::kernels::tiles!($entry, 2, [1 2 3 4 5 6 7 8 9 10 11 12]),
            $crate::net::cpu::kernels::tiles!($entry, 4, [1 2 3 4 5 6]),
        ]
    };
}
pub(super) use avx512_tiles;

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the kernel contract; this function enables the instructions.
    unsafe { tile::<F32<Avx512>, MR, NV>(t) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx512f")]
unsafe fn avx512_peak(rounds: usize) -> f32 {
    // SAFETY: this function enables the instructions.
    unsafe { peak::<F32<Avx512>, 16>(rounds) }
}

pub(super) static AVX512: Kernels = Kernels {
    name: "avx512",
    lanes: Avx512::LANES,
    unit: 1,
    out: 1,
    tiles: avx512_tiles!(avx512),
    peak: avx512_peak,
    chains: 16,
    matrices: None,
};

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the kernel contract; this function enables the instructions.
    unsafe { tile::<F32<Avx2>, MR, NV>(t) }
}

/// # Safety
/// The kernel contract of [`crate::isa`].
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_peak(rounds: usize) -> f32 {
    // SAFETY: this function enables the instructions.
    unsafe { peak::<F32<Avx2>, 12>(rounds) }
}

pub(super) static AVX2: Kernels = Kernels {
    name: "avx2",
    lanes: Avx2::LANES,
    unit: 1,
    out: 1,
    // Of 16 registers the sums take at most 12 (6 x 2).
    tiles: [tiles!(avx2, 1, [1 2 3 4 5 6]), tiles!(avx2, 2, [1 2 3 4 5 6]), tiles!(avx2, 4, [1 2])],
    peak: avx2_peak,
    chains: 12,
    matrices: None,
};
