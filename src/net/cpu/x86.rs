//! f32 kernels for x86-64: AVX-512, AVX2 with FMA.

use super::format::peak;
use super::kernels::{Kernels, tiles};
use super::tile::{Tile, tile};
use crate::net::register_tile::F32;
use crate::simd::{Avx2, Avx512, Simd};

/// # Safety
/// The machine has the kernel's instructions, and the tile's rows, vectors and taps lie inside their arrays.
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the caller's promise, and this function enables the instructions.
    unsafe { tile::<F32<Avx512>, MR, NV>(t) }
}

/// # Safety
/// The machine has these instructions.
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
    tiles: [
        tiles!(avx512, 1, [1 2 3 4 5 6 7 8 9 10 11 12]),
        tiles!(avx512, 2, [1 2 3 4 5 6 7 8 9 10 11 12]),
        tiles!(avx512, 4, [1 2 3 4 5 6]),
    ],
    peak: avx512_peak,
    chains: 16,
    matrices: None,
};

/// # Safety
/// The machine has the kernel's instructions, and the tile's rows, vectors and taps lie inside their arrays.
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the caller's promise, and this function enables the instructions.
    unsafe { tile::<F32<Avx2>, MR, NV>(t) }
}

/// # Safety
/// The machine has these instructions.
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
    tiles: [tiles!(avx2, 1, [1 2 3 4 5 6]), tiles!(avx2, 2, [1 2 3 4 5 6]), tiles!(avx2, 4, [1 2])],
    peak: avx2_peak,
    chains: 12,
    matrices: None,
};
