//! f32 kernels for 64-bit ARM with NEON.

use crate::net::register_tile::F32;
use crate::simd::Neon;

/// NEON kernels. Of 32 registers a tile's sums take at most 20 (5 x 4) or 16 (8 x 2), four units of each row 5 or 8; the rest are for
/// weights.
macro_rules! neon_kernels {
    ($static:ident = $name:literal, $format:ty $(, $features:literal)?) => {
        $crate::net::cpu::kernels::kernels! {
            static $static = $name, $format $(, $features)?;
            chains 16;
            rows [1 2 3 4 5 6 7 8] [1 2 3 4 5 6 7 8] [1 2 3 4 5]
        }
    };
}
pub(super) use neon_kernels;

neon_kernels!(NEON = "neon", F32<Neon>);
