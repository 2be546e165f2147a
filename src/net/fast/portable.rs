//! Kernels in plain Rust, for machines whose instructions have no kernels of their own.

use super::format::{F32, Vectors, peak};
use super::tile::{Kernels, Tile, tile, tiles};

/// Four lanes, which the compiler turns into the machine's baseline vectors.
pub(super) struct Portable;

const LANES: usize = 4;

/// a * b + c, fused where every machine of the architecture has the instruction.
#[inline(always)]
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { a * b + c }
}

// SAFETY of every method: called only on pointers the tile vouches for.
impl Vectors for Portable {
    const LANES: usize = LANES;
    type Vector = [f32; LANES];

    #[inline(always)]
    unsafe fn zero() -> [f32; LANES] {
        [0.0; LANES]
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> [f32; LANES] {
        // SAFETY: see the impl.
        unsafe { p.cast::<[f32; LANES]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> [f32; LANES] {
        // SAFETY: see the impl.
        [unsafe { *p }; LANES]
    }

    #[inline(always)]
    unsafe fn add(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn mul_add(a: [f32; LANES], b: [f32; LANES], c: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| multiply_add(a[i], b[i], c[i]))
    }

    #[inline(always)]
    unsafe fn relu(a: [f32; LANES]) -> [f32; LANES] {
        a.map(|x| if x < 0.0 { 0.0 } else { x })
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, a: [f32; LANES]) {
        // SAFETY: see the impl.
        unsafe { p.cast::<[f32; LANES]>().write_unaligned(a) }
    }

    #[inline(always)]
    unsafe fn store_valid(p: *mut f32, a: [f32; LANES], valid: usize) {
        // SAFETY: see the impl; only valid lanes are copied.
        unsafe { std::ptr::copy_nonoverlapping(a.as_ptr(), p, valid.min(LANES)) }
    }
}

unsafe fn portable<const MR: usize, const NV: usize>(t: &Tile<'_>) {
    // SAFETY: the caller's promise.
    unsafe { tile::<F32<Portable>, MR, NV>(t) }
}

unsafe fn portable_peak(rounds: usize) -> f32 {
    // SAFETY: plain Rust needs no instructions of its own.
    unsafe { peak::<F32<Portable>, 12>(rounds) }
}

pub(super) static PORTABLE: Kernels = Kernels {
    name: "portable",
    lanes: LANES,
    unit: 1,
    out: 1,
    tiles: [tiles!(portable, 1, [1 2 3 4 5]), tiles!(portable, 2, [1 2 3 4 5]), tiles!(portable, 4, [1 2])],
    peak: portable_peak,
    chains: 12,
    matrices: None,
};
