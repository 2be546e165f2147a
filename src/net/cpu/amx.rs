//! Kernels for x86-64 with AMX: tiles of 16 rows by 16 units of activations times 16 units by 16 channels of weights, in
//! bf16 and in bytes.
//!
//! Instructions as in Intel's Software Developer's Manual, volume 2, `TDPBF16PS` and `TDPBUSD`. Sums of bytes are the
//! integers of AVX-512 VNNI, hence the same results to the bit. Sums of bf16 add the even and the odd of 32 channels apart before
//! both join the total, so their last bits differ from `vdpbf16ps`.
//!
//! In a strip (`amx_strip`) the weights of two vectors of channels, 36 KiB at 64 channels in bf16, stay in the L1 cache; rows are
//! loaded past it.

use super::amx_epilogue::EpilogueOp;
use super::amx_mma::store_all;
use super::amx_strip::{self, ScheduledFormat, StripContext, TileSchedule, TileTask};
use super::format::{Format, WeightFormat};
use super::int8::Bytes;
use super::kernels::{Kernels, Matrices, Strip, TileFn};
use super::tile::{Sums, Tap, Tile, finish};
use super::x86_int8::Vnni;
use crate::net::amx_tile::{
    self, LINE_BYTES, Multiply, SumBuffer, TILE, TILE_ROWS, TileConfig, configure, load, load_nontemporal,
    multiply, release,
};
use crate::net::bf16_products::Avx512Bf16;
use crate::net::register_tile::Vector;
use crate::simd::{Avx512, Simd};
use std::mem::MaybeUninit;
use std::ops::Range;

/// For 1 to 16 rows.
static CONFIGS: [TileConfig; TILE_ROWS] = {
    let mut all = [const { TileConfig::new(TILE_ROWS, TILE_ROWS) }; TILE_ROWS];
    let mut rows = 1;
    while rows < TILE_ROWS {
        all[rows - 1] = TileConfig::new(rows, TILE_ROWS);
        rows += 1;
    }
    all
};

/// # Safety
/// The machine has AMX, and the system lets the process use it.
unsafe fn begin(rows: usize) {
    // SAFETY: the caller has AMX.
    unsafe { configure(&CONFIGS[rows - 1]) }
}

/// # Safety
/// The machine has AMX, and the system lets the process use it.
unsafe fn end() {
    // SAFETY: the caller has AMX.
    unsafe { release() }
}

/// The addresses that one multiplication reads.
#[derive(Clone, Copy)]
struct TileAddrs {
    x: *const f32,
    x_row: usize,
    weights: *const f32,
    block: usize,
}

impl TileAddrs {
    /// The first multiplication of a tap.
    #[inline(always)]
    fn new(t: &Tile<'_>, x: *const f32, tap: &Tap) -> Self {
        Self {
            x: x.wrapping_offset(tap.shift * t.x_position),
            x_row: t.x_row,
            weights: t.weights.wrapping_add(tap.index * t.depth * t.block_vectors * TILE_ROWS),
            block: t.block,
        }
    }

    /// The next multiplication; past the last one the addresses are not used.
    #[inline(always)]
    fn next(self, t: &Tile<'_>) -> Self {
        let weights = self.weights.wrapping_add(t.block_vectors * TILE_ROWS * TILE_ROWS);
        Self { x: self.x.wrapping_add(t.x_block_stride), weights, ..self }
    }
}

/// One multiplication. Weights are loaded with the hint that they need not stay in the L1 cache, where the rows of neighbouring
/// positions stay.
///
/// # Safety
/// As for [`begin`], which this thread has called; reads and writes are whole tiles inside their arrays.
#[inline(always)]
unsafe fn step<F: Multiply, const ROWS: usize, const VECTORS: usize>(at: TileAddrs) {
    let row_bytes = at.x_row * size_of::<f32>();
    // SAFETY: the kernel contract.
    unsafe {
        load::<4>(at.x, row_bytes);
        load_nontemporal::<6>(at.weights, LINE_BYTES);
        if VECTORS == 4 {
            let after = at.weights.wrapping_add(at.block);
            load_nontemporal::<7>(at.weights.wrapping_add(TILE), LINE_BYTES);
            load_nontemporal::<5>(after, LINE_BYTES);
            F::product::<0, 4, 6>();
            load_nontemporal::<6>(after.wrapping_add(TILE), LINE_BYTES);
            F::product::<1, 4, 7>();
            F::product::<2, 4, 5>();
            F::product::<3, 4, 6>();
            return;
        }
        if ROWS == 2 {
            load::<5>(at.x.wrapping_add(TILE_ROWS * at.x_row), row_bytes);
        }
        F::product::<0, 4, 6>();
        if ROWS == 2 {
            F::product::<1, 5, 6>();
        }
        if VECTORS == 2 {
            load_nontemporal::<7>(at.weights.wrapping_add(TILE), LINE_BYTES);
            F::product::<ROWS, 4, 7>();
        }
        if (ROWS, VECTORS) == (2, 2) {
            F::product::<3, 5, 7>();
        }
    }
}

/// Multiplies tiles that are not 0: on a busy machine tiles of zeros are multiplied twice as fast.
///
/// # Safety
/// As for [`begin`], which this thread has called; reads and writes are whole tiles inside their arrays.
unsafe fn peak<F: Multiply>(rounds: usize) -> f32 {
    let numbers = SumBuffer([f32::from_bits(0x3F00_3F00); 4 * TILE]).0;
    // SAFETY: the caller has AMX, and this thread its configuration; there are four tiles of numbers.
    unsafe {
        load::<4>(numbers.as_ptr(), LINE_BYTES);
        load::<5>(numbers.as_ptr(), LINE_BYTES);
        load::<6>(numbers.as_ptr(), LINE_BYTES);
        load::<7>(numbers.as_ptr(), LINE_BYTES);
        amx_tile::zero();
        for _ in 0..rounds {
            F::product::<0, 4, 6>();
            F::product::<1, 4, 7>();
            F::product::<2, 5, 6>();
            F::product::<3, 5, 7>();
        }
    }
    0.0
}

/// The kernels of one number format: the sums of ROWS by VECTORS tiles and their epilogue. Sums are in tiles 0 to 3, column after
/// column.
macro_rules! kernels {
    ($module:ident, $format:ty, $features:literal) => {
        mod $module {
            use super::*;

            impl ScheduledFormat for $format {
                /// # Safety
                /// As for [`TileSchedule::run`].
                #[target_feature(enable = $features)]
                #[inline(never)]
                unsafe fn run<C: TileSchedule, E: EpilogueOp, const VECTORS: usize>(
                    context: &StripContext<'_, Self, E, VECTORS>,
                    task: TileTask<'_>,
                ) {
                    // SAFETY: the kernel contract; this function enables the instructions.
                    unsafe { C::run(context, task) }
                }
            }

            /// # Safety
            /// As for [`begin`], which this thread has called; reads and writes are whole tiles inside their arrays.
            #[target_feature(enable = $features)]
            unsafe fn kernel<const ROWS: usize, const VECTORS: usize>(t: &Tile<'_>) {
                let mut sums = MaybeUninit::<SumBuffer>::uninit();
                let sums: *mut f32 = sums.as_mut_ptr().cast();
                // SAFETY: the kernel contract; sums are stored before they are read.
                unsafe {
                    amx_tile::zero();
                    for tap in t.taps {
                        let mut at = TileAddrs::new(t, t.x, tap);
                        for _ in 0..t.depth / TILE_ROWS {
                            step::<$format, ROWS, VECTORS>(at);
                            at = at.next(t);
                        }
                    }
                    store_all(sums, TILE);
                    finish::<$format, _>(t.epilogue, Tiles::<ROWS, VECTORS> { t, sums, rows: 0..t.rows });
                }
            }

            /// # Safety
            /// As for [`begin`], which this thread has called; reads and writes are whole tiles inside their arrays.
            #[target_feature(enable = $features)]
            unsafe fn strip<const VECTORS: usize>(s: &Strip<'_>) {
                // SAFETY: the kernel contract; this function enables the instructions.
                unsafe { amx_strip::strip::<$format, VECTORS>(s) }
            }

            pub(in crate::net::cpu) static KERNELS: Kernels = Kernels {
                name: concat!("amx-", stringify!($module)),
                lanes: TILE_ROWS,
                unit: <$format as Format>::OUT,
                writes: <$format as Format>::WRITES,
                weights: WeightFormat::Units,
                tiles: [
                    &by_rows(kernel::<1, 1>, kernel::<2, 1>),
                    &by_rows(kernel::<1, 2>, kernel::<2, 2>),
                    &[kernel::<1, 4> as TileFn; TILE_ROWS],
                ],
                peak: peak::<$format>,
                chains: 4 * TILE_ROWS * TILE_ROWS,
                matrices: Some(Matrices {
                    rows: TILE_ROWS,
                    units: TILE_ROWS,
                    strips: [strip::<1>, strip::<2>],
                    begin,
                    end,
                }),
            };
        }
    };
}

/// The kernel for every number of rows: with `one` row of tiles or `two`.
const fn by_rows(one: TileFn, two: TileFn) -> [TileFn; 2 * TILE_ROWS] {
    let mut kernels = [one; 2 * TILE_ROWS];
    let mut rows = TILE_ROWS;
    while rows < 2 * TILE_ROWS {
        kernels[rows] = two;
        rows += 1;
    }
    kernels
}

/// Some rows of a tile's sums in memory, column after column.
struct Tiles<'a, const ROWS: usize, const VECTORS: usize> {
    t: &'a Tile<'a>,
    sums: *const f32,
    rows: Range<usize>,
}

impl<F: Format<S = Avx512>, const ROWS: usize, const VECTORS: usize> Sums<F> for Tiles<'_, ROWS, VECTORS> {
    /// # Safety
    /// As for [`Sums::each`].
    #[inline(always)]
    unsafe fn each(self, f: impl Fn(&Tile<'_>, Vector<F>, usize, usize)) {
        for row in self.rows {
            for j in 0..VECTORS {
                // SAFETY: the kernel contract; the tile has the row and the vector.
                let sum = unsafe { Avx512::load(self.sums.add((j * ROWS * TILE_ROWS + row) * TILE_ROWS)) };
                f(self.t, sum, row, j * TILE_ROWS);
            }
        }
    }
}

multiply!(Bytes<Vnni>, "tdpbusd");
kernels!(bf16, Avx512Bf16, "avx512f,avx512bf16");
kernels!(int8, Bytes<Vnni>, "avx512f,avx512vnni");

pub(super) use bf16::KERNELS as BF16;
pub(super) use int8::KERNELS as INT8;
