//! f32 kernels in plain Rust, for any machine.

use super::kernels::kernels;
use crate::net::register_tile::F32;

/// Four lanes: baseline vectors of x86-64 and aarch64.
pub(super) type Portable = crate::simd::Portable<4>;

kernels! {
    static PORTABLE = "portable", F32<Portable>;
    chains 12;
    rows [1 2 3 4 5] [1 2 3 4 5] [1 2]
}
