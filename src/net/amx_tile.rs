//! Instructions on AMX tiles: sums are in tiles 0 to 3, rows in 4 and 5, weights in 6 and 7.
//!
//! The tiles keep their contents between the blocks of assembly: the compiler generates no code that touches them.

use super::bf16_products::Avx512Bf16;
use std::arch::asm;

/// The maximum number of rows of a tile, of units of a row, and of channels.
pub(super) const TILE_ROWS: usize = 16;
/// Words of a whole tile.
pub(super) const TILE: usize = TILE_ROWS * TILE_ROWS;
/// Bytes from a row to the next in the blocked layout.
pub(super) const LINE_BYTES: usize = TILE_ROWS * size_of::<f32>();

/// A buffer for the sums of four tiles.
#[repr(C, align(64))]
pub(super) struct SumBuffer(pub [f32; 4 * TILE]);

/// The operand of `ldtilecfg`: palette 1, eight tiles of up to 16 rows of 64 bytes.
#[repr(C, align(64))]
pub(super) struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl TileConfig {
    /// Tiles 0 to 3 have `rows` rows by 16 channels, 4 and 5 `rows` rows by `units` units, 6 and 7 `units` units by 16 channels. Both
    /// numbers are 1 to [`TILE_ROWS`].
    pub(super) const fn new(rows: usize, units: usize) -> Self {
        assert!(1 <= rows && rows <= TILE_ROWS && 1 <= units && units <= TILE_ROWS, "a tile");
        let (r, k, x) = (rows as u8, units as u8, (units * size_of::<f32>()) as u16);
        Self {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [64, 64, 64, 64, x, x, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
            rows: [r, r, r, r, r, r, k, k, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }
}

/// Configures this thread's tiles.
///
/// # Safety
/// The machine has AMX, and the system lets the process use it.
#[inline(always)]
pub(super) unsafe fn configure(config: &TileConfig) {
    // SAFETY: the caller has AMX; the configuration is a whole one.
    unsafe { asm!("ldtilecfg [{}]", in(reg) config, options(readonly, nostack, preserves_flags)) }
}

/// Releases this thread's tiles.
///
/// # Safety
/// As for [`configure`].
#[inline(always)]
pub(super) unsafe fn release() {
    // SAFETY: the caller has AMX.
    unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
}

/// Sets the sums to zero.
///
/// # Safety
/// The machine has AMX, and this thread the tiles' configuration.
#[inline(always)]
pub(super) unsafe fn zero() {
    // SAFETY: the kernel contract.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            options(nostack, preserves_flags)
        );
    }
}

/// Loads tile T from rows `row_bytes` apart.
///
/// # Safety
/// As for [`zero`]; the rows are there.
#[inline(always)]
pub(super) unsafe fn load<const T: usize>(from: *const f32, row_bytes: usize) {
    // SAFETY: the kernel contract.
    unsafe {
        asm!("tileloadd tmm{t}, [{p} + {s}]", t = const T, p = in(reg) from, s = in(reg) row_bytes,
            options(nostack, preserves_flags));
    }
}

/// The same with the hint that the rows need not stay in the L1 cache.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub(super) unsafe fn load_nontemporal<const T: usize>(from: *const f32, row_bytes: usize) {
    // SAFETY: the kernel contract.
    unsafe {
        asm!("tileloaddt1 tmm{t}, [{p} + {s}]", t = const T, p = in(reg) from, s = in(reg) row_bytes,
            options(nostack, preserves_flags));
    }
}

/// Stores the sums in tile T to rows `row_bytes` apart.
///
/// # Safety
/// As for [`zero`]; `to` has capacity for a tile of sums.
#[inline(always)]
pub(super) unsafe fn store<const T: usize>(to: *mut f32, row_bytes: usize) {
    // SAFETY: the kernel contract.
    unsafe {
        asm!("tilestored [{p} + {s}], tmm{t}", t = const T, p = in(reg) to, s = in(reg) row_bytes,
            options(nostack, preserves_flags));
    }
}

/// Stores the sums in tile T, one row after the other, and sets them to zero. One tile between two products costs next to nothing; all
/// four at once cost as much as four products.
///
/// # Safety
/// As for [`store`].
#[inline(always)]
pub(super) unsafe fn flush<const T: usize>(to: *mut f32) {
    // SAFETY: the kernel contract.
    unsafe {
        store::<T>(to, LINE_BYTES);
        asm!("tilezero tmm{t}", t = const T, options(nostack, preserves_flags));
    }
}

/// Products of tiles in one number format.
pub(super) trait Multiply {
    /// Adds the product of rows in tile X and weights in tile W to the sums in tile S.
    ///
    /// # Safety
    /// As for [`zero`].
    unsafe fn product<const S: usize, const X: usize, const W: usize>();
}

/// Implements [`Multiply`] for a format by an instruction.
macro_rules! multiply {
    ($format:ty, $dot:literal) => {
        impl Multiply for $format {
            /// # Safety
            /// As for [`Multiply::product`].
            #[inline(always)]
            unsafe fn product<const S: usize, const X: usize, const W: usize>() {
                // SAFETY: the kernel contract.
                unsafe {
                    std::arch::asm!(concat!($dot, " tmm{s}, tmm{x}, tmm{w}"), s = const S, x = const X, w = const W,
                        options(nostack, preserves_flags));
                }
            }
        }
    };
}
pub(super) use multiply;

multiply!(Avx512Bf16, "tdpbf16ps");
