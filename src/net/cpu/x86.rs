//! f32 kernels for x86-64: AVX-512, AVX2 with FMA.

use super::kernels::kernels;
use crate::net::register_tile::F32;
use crate::simd::{Avx2, Avx512};

/// AVX-512 kernels. Of 32 registers a tile's sums take at most 24 (12 x 2 or 6 x 4); the rest are for 2 or 4 vectors of weights and the
/// broadcast activations.
macro_rules! avx512_kernels {
    ($static:ident = $name:literal, $format:ty, $features:literal) => {
        $crate::net::cpu::kernels::kernels! {
            static $static = $name, $format, $features;
            chains 16;
            rows [1 2 3 4 5 6 7 8 9 10 11 12] [1 2 3 4 5 6 7 8 9 10 11 12] [1 2 3 4 5 6]
        }
    };
}
pub(super) use avx512_kernels;

avx512_kernels!(AVX512 = "avx512", F32<Avx512>, "avx512f");

// Of 16 registers the sums take at most 12 (6 x 2).
kernels! {
    static AVX2 = "avx2", F32<Avx2>, "avx2,fma";
    chains 12;
    rows [1 2 3 4 5 6] [1 2 3 4 5 6] [1 2]
}
