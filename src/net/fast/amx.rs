//! Kernels for x86-64 with AMX: tiles of 16 rows by 16 units of activations times 16 units by 16 channels of weights, in
//! bf16 and in bytes.
//!
//! Instructions as in Intel's Software Developer's Manual, volume 2, `TDPBF16PS` and `TDPBUSD`. Sums of bytes are the
//! integers of AVX-512 VNNI, hence the same results to the bit. Sums of bf16 take even and odd channels of 32 apart before
//! they join the total: other last bits than `vdpbf16ps`.
//!
//! In a strip (`amx_strip`) the weights of two vectors of channels, 36 KiB at 64 channels in bf16, stay in the nearest cache;
//! rows pass it by.

use super::amx_strip::{self, Multiply, Reads, SIDE, Stored};
use super::tile::{Format, Kernels, Matrices, Strip, Sums, Tap, Tile, TileFn, Vector, Vectors, finish};
use super::x86::Avx512;
use super::x86_bf16::Avx512Bf16;
use super::x86_int8::Bytes;
use std::arch::asm;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;

/// Bytes from a row of sums or weights to the next.
const LINE_BYTES: usize = SIDE * size_of::<f32>();

/// True where the processor has AMX in bf16 and bytes and the operating system lets this process use it.
pub(super) fn is_here() -> bool {
    static HERE: OnceLock<bool> = OnceLock::new();
    *HERE.get_or_init(|| has_instructions() && may_use())
}

/// Bits 22, 24 and 25 of EDX in leaf 7 are AMX-BF16, AMX-TILE and AMX-INT8.
fn has_instructions() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const WANTED: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & WANTED == WANTED
}

/// Asks Linux for the state of the tiles, which a process must do once (Documentation/arch/x86/xstate.rst).
#[cfg(target_os = "linux")]
fn may_use() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    // SAFETY: the call takes two numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn may_use() -> bool {
    false
}

/// What `ldtilecfg` reads: palette 1, eight tiles of up to 16 rows of 64 bytes.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl TileConfig {
    /// Sums and factors of `rows` rows in tiles 0 to 5, weights in 6 and 7.
    const fn new(rows: u8) -> Self {
        const WEIGHTS: u8 = SIDE as u8;
        Self {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
            rows: [rows, rows, rows, rows, rows, rows, WEIGHTS, WEIGHTS, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }
}

/// For 1 to 16 rows.
static CONFIGS: [TileConfig; SIDE] = {
    let mut all = [const { TileConfig::new(SIDE as u8) }; SIDE];
    let mut rows = 1;
    while rows < SIDE {
        all[rows - 1] = TileConfig::new(rows as u8);
        rows += 1;
    }
    all
};

unsafe fn begin(rows: usize) {
    let config = &raw const CONFIGS[rows - 1];
    // SAFETY: the caller has AMX; the configuration is a whole one.
    unsafe { asm!("ldtilecfg [{}]", in(reg) config, options(nostack, preserves_flags)) }
}

unsafe fn end() {
    // SAFETY: the caller has AMX.
    unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
}

/// Instructions on tiles; unsafe: the machine has AMX, this thread the configuration, and all that they name is there.
/// Between the blocks of assembly the tiles keep what is in them: the compiler makes no code that touches them.
///
/// {a} is a row of the source and {b} one 16 rows below, {w} are weights and {v} those of the next block, {r} the bytes
/// from row to row of the source; {s} those of weights and of sums, which are at {o}.
macro_rules! tiles {
    ($at:expr, $sums:expr, [$($instruction:expr),* $(,)?]) => {
        asm!(
            concat!($($instruction, "\n",)* "/* {a} {b} {w} {v} {r} {s} {o} */"),
            a = in(reg) $at.x,
            b = in(reg) $at.x.wrapping_add(SIDE * $at.x_row),
            w = in(reg) $at.weights,
            v = in(reg) $at.weights.wrapping_add($at.block),
            r = in(reg) $at.x_row * size_of::<f32>(),
            s = in(reg) LINE_BYTES,
            o = in(reg) $sums,
            options(nostack, preserves_flags),
        )
    };
}

/// Adds the product of two tiles to the sums in a third.
macro_rules! add {
    ($dot:literal, $sum:literal, $x:literal, $w:literal) => {
        concat!($dot, " tmm", $sum, ", tmm", $x, ", tmm", $w)
    };
}

/// Instructions on tiles for a strip, whose rows lie together: {x} are the rows of the first matrix and {y} those of the second, {w} the
/// weights, {s} the bytes from row to row of all. Sums of the first matrix are at {o}, those of the second right after them at {p}.
macro_rules! strip {
    ($reads:expr, $sums:expr, [$($instruction:expr),* $(,)?]) => {
        asm!(
            concat!($($instruction, "\n",)* "/* {x} {y} {w} {s} {o} {p} */"),
            x = in(reg) $reads.x,
            y = in(reg) $reads.x.wrapping_add($reads.below),
            w = in(reg) $reads.weights,
            s = in(reg) LINE_BYTES,
            o = in(reg) $sums,
            p = in(reg) $sums.wrapping_add($reads.below),
            options(nostack, preserves_flags),
        )
    };
}

/// Loads a tile from where a register points to, or some bytes behind.
macro_rules! load {
    ($load:literal, $tile:literal, $at:literal) => {
        concat!($load, " tmm", $tile, ", [", $at, " + {s}]")
    };
}

/// Stores the sums in a tile and sets them to zero. Between products that costs next to nothing, all four together as much as a step.
macro_rules! begin {
    ($sum:literal, $at:literal) => {
        concat!("tilestored [", $at, " + {s}], tmm", $sum, "\ntilezero tmm", $sum)
    };
}

/// Where a multiplication reads.
#[derive(Clone, Copy)]
struct At {
    x: *const f32,
    x_row: usize,
    weights: *const f32,
    block: usize,
}

impl At {
    /// The first multiplication of a tap.
    #[inline(always)]
    fn new(t: &Tile<'_>, x: *const f32, tap: &Tap) -> Self {
        Self {
            x: x.wrapping_offset(tap.shift * t.x_position),
            x_row: t.x_row,
            weights: t.weights.wrapping_add(tap.index * t.depth * t.block_vectors * SIDE),
            block: t.block,
        }
    }

    /// The next one, which may be one too many.
    #[inline(always)]
    fn next(self, t: &Tile<'_>) -> Self {
        let weights = self.weights.wrapping_add(t.block_vectors * SIDE * SIDE);
        Self { x: self.x.wrapping_add(t.x_piece), weights, ..self }
    }
}

/// The kernels of one number format: the sums of ROWS by VECTORS tiles and what becomes of them. Sums are in tiles 0 to 3,
/// column after column.
macro_rules! kernels {
    ($module:ident, $format:ty, $features:literal, $dot:literal) => {
        mod $module {
            use super::*;

            /// One multiplication. Weights are read with the hint that they need not stay in the nearest cache, which the
            /// rows of neighbouring positions do.
            #[inline(always)]
            unsafe fn step<const ROWS: usize, const VECTORS: usize>(at: At) {
                let none = std::ptr::null::<f32>();
                // SAFETY: the caller's promise.
                unsafe {
                    match (ROWS, VECTORS) {
                        (1, 1) => tiles!(
                            at,
                            none,
                            [
                                "tileloadd tmm4, [{a} + {r}]",
                                "tileloaddt1 tmm6, [{w} + {s}]",
                                add!($dot, 0, 4, 6)
                            ]
                        ),
                        (2, 1) => tiles!(
                            at,
                            none,
                            [
                                "tileloadd tmm4, [{a} + {r}]",
                                "tileloaddt1 tmm6, [{w} + {s}]",
                                add!($dot, 0, 4, 6),
                                "tileloadd tmm5, [{b} + {r}]",
                                add!($dot, 1, 5, 6)
                            ]
                        ),
                        (1, 2) => tiles!(
                            at,
                            none,
                            [
                                "tileloadd tmm4, [{a} + {r}]",
                                "tileloaddt1 tmm6, [{w} + {s}]",
                                add!($dot, 0, 4, 6),
                                "tileloaddt1 tmm7, [{w} + {s} + 1024]",
                                add!($dot, 1, 4, 7)
                            ]
                        ),
                        (1, 4) => tiles!(
                            at,
                            none,
                            [
                                "tileloadd tmm4, [{a} + {r}]",
                                "tileloaddt1 tmm6, [{w} + {s}]",
                                add!($dot, 0, 4, 6),
                                "tileloaddt1 tmm7, [{w} + {s} + 1024]",
                                add!($dot, 1, 4, 7),
                                "tileloaddt1 tmm5, [{v} + {s}]",
                                add!($dot, 2, 4, 5),
                                "tileloaddt1 tmm6, [{v} + {s} + 1024]",
                                add!($dot, 3, 4, 6)
                            ]
                        ),
                        _ => tiles!(
                            at,
                            none,
                            [
                                "tileloadd tmm4, [{a} + {r}]",
                                "tileloadd tmm5, [{b} + {r}]",
                                "tileloaddt1 tmm6, [{w} + {s}]",
                                "tileloaddt1 tmm7, [{w} + {s} + 1024]",
                                add!($dot, 0, 4, 6),
                                add!($dot, 1, 5, 6),
                                add!($dot, 2, 4, 7),
                                add!($dot, 3, 5, 7)
                            ]
                        ),
                    }
                }
            }

            #[target_feature(enable = $features)]
            unsafe fn kernel<const ROWS: usize, const VECTORS: usize>(t: &Tile<'_>) {
                let mut sums = MaybeUninit::<Stored>::uninit();
                let sums: *mut f32 = sums.as_mut_ptr().cast();
                // SAFETY: the caller's promise; sums are stored before they are read.
                unsafe {
                    asm!(
                        "tilezero tmm0",
                        "tilezero tmm1",
                        "tilezero tmm2",
                        "tilezero tmm3",
                        options(nomem, nostack)
                    );
                    for tap in t.taps {
                        let mut at = At::new(t, t.x, tap);
                        for _ in 0..t.depth / SIDE {
                            step::<ROWS, VECTORS>(at);
                            at = at.next(t);
                        }
                    }
                    store(sums, SIDE * SIDE);
                    finish::<$format, _>(t.epilogue, Tiles::<ROWS, VECTORS> { t, sums, rows: 0..t.rows });
                }
            }

            impl Multiply for $format {
                #[inline(always)]
                unsafe fn load<const VECTORS: usize>(reads: Reads) {
                    let none = std::ptr::null_mut::<f32>();
                    // SAFETY: the caller's promise.
                    unsafe {
                        strip!(
                            reads,
                            none,
                            [
                                load!("tileloaddt1", 4, "{x}"),
                                load!("tileloaddt1", 5, "{y}"),
                                load!("tileloadd", 6, "{w}")
                            ]
                        );
                        if VECTORS == 2 {
                            strip!(reads, none, [load!("tileloadd", 7, "{w} + 1024")]);
                        }
                    }
                }

                /// Rows are read with the hint that they need not stay in the nearest cache, where the weights do then.
                #[inline(always)]
                unsafe fn part<const VECTORS: usize, const PART: usize>(next: Reads) {
                    let none = std::ptr::null_mut::<f32>();
                    // SAFETY: the caller's promise.
                    unsafe {
                        match (VECTORS, PART) {
                            (_, 0) => strip!(next, none, [add!($dot, 0, 4, 6)]),
                            (1, 1) => strip!(
                                next,
                                none,
                                [
                                    add!($dot, 1, 5, 6),
                                    load!("tileloadd", 6, "{w}"),
                                    load!("tileloaddt1", 4, "{x}"),
                                    load!("tileloaddt1", 5, "{y}")
                                ]
                            ),
                            (2, 1) => {
                                strip!(next, none, [add!($dot, 1, 5, 6), load!("tileloadd", 6, "{w}")])
                            }
                            (2, 2) => {
                                strip!(next, none, [add!($dot, 2, 4, 7), load!("tileloaddt1", 4, "{x}")])
                            }
                            (2, 3) => strip!(
                                next,
                                none,
                                [
                                    add!($dot, 3, 5, 7),
                                    load!("tileloaddt1", 5, "{y}"),
                                    load!("tileloadd", 7, "{w} + 1024")
                                ]
                            ),
                            _ => (),
                        }
                    }
                }

                #[inline(always)]
                unsafe fn first_part<const VECTORS: usize, const PART: usize>(next: Reads, sums: *mut f32) {
                    // SAFETY: the caller's promise.
                    unsafe {
                        if PART < 2 * VECTORS {
                            match PART {
                                0 => strip!(next, sums, [begin!(0, "{o}")]),
                                1 => strip!(next, sums, [begin!(1, "{p}")]),
                                2 => strip!(next, sums, [begin!(2, "{o} + 2048")]),
                                _ => strip!(next, sums, [begin!(3, "{p} + 2048")]),
                            }
                        }
                        Self::part::<VECTORS, PART>(next);
                    }
                }

                #[inline(always)]
                unsafe fn store(sums: *mut f32, below: usize) {
                    // SAFETY: the caller's promise.
                    unsafe { store(sums, below) }
                }
            }

            #[target_feature(enable = $features)]
            unsafe fn strip<const VECTORS: usize>(s: &Strip<'_>) {
                // SAFETY: the caller's promise, and this function enables the instructions.
                unsafe { amx_strip::strip::<$format, VECTORS>(s) }
            }

            /// Tiles that hold nothing but what they were set to zero with multiply twice as fast on a busy machine: these are loaded.
            unsafe fn peak(rounds: usize) -> f32 {
                let numbers = Stored::filled(f32::from_bits(0x3F00_3F00));
                let reads = Reads { x: numbers.start(), below: SIDE * SIDE, weights: numbers.start() };
                // SAFETY: the caller has AMX, and this thread its configuration; there are four tiles of numbers.
                unsafe {
                    <$format>::load::<2>(reads);
                    asm!(
                        "tilezero tmm0",
                        "tilezero tmm1",
                        "tilezero tmm2",
                        "tilezero tmm3",
                        options(nomem, nostack)
                    );
                    for _ in 0..rounds {
                        strip!(
                            reads,
                            numbers.start(),
                            [
                                add!($dot, 0, 4, 6),
                                add!($dot, 1, 4, 7),
                                add!($dot, 2, 5, 6),
                                add!($dot, 3, 5, 7)
                            ]
                        );
                    }
                }
                0.0
            }

            pub(in crate::net::fast) static KERNELS: Kernels = Kernels {
                name: concat!("amx-", stringify!($module)),
                lanes: SIDE,
                unit: <$format as Format>::OUT,
                out: <$format as Format>::OUT,
                tiles: [
                    &by_rows(kernel::<1, 1>, kernel::<2, 1>),
                    &by_rows(kernel::<1, 2>, kernel::<2, 2>),
                    &[kernel::<1, 4> as TileFn; SIDE],
                ],
                peak,
                chains: 4 * SIDE * SIDE,
                matrices: Some(Matrices {
                    rows: SIDE,
                    units: SIDE,
                    strips: [strip::<1>, strip::<2>],
                    begin,
                    end,
                }),
            };
        }
    };
}

/// The kernel for every number of rows: `one` row of tiles or `two`.
const fn by_rows(one: TileFn, two: TileFn) -> [TileFn; 2 * SIDE] {
    let mut kernels = [one; 2 * SIDE];
    let mut rows = SIDE;
    while rows < 2 * SIDE {
        kernels[rows] = two;
        rows += 1;
    }
    kernels
}

/// Stores the sums of four tiles, those of the second and last one `below` words after those of the first and third.
///
/// # Safety
/// The machine has AMX, and this thread the tiles' configuration; there is room for the sums.
#[inline(always)]
unsafe fn store(sums: *mut f32, below: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "tilestored [{o} + {s}], tmm0",
            "tilestored [{p} + {s}], tmm1",
            "tilestored [{o} + {s} + 2048], tmm2",
            "tilestored [{p} + {s} + 2048], tmm3",
            o = in(reg) sums,
            p = in(reg) sums.wrapping_add(below),
            s = in(reg) LINE_BYTES,
            options(nostack, preserves_flags),
        );
    }
}

/// Some rows of a tile's sums, which are in memory, column after column.
struct Tiles<'a, const ROWS: usize, const VECTORS: usize> {
    t: &'a Tile<'a>,
    sums: *const f32,
    rows: Range<usize>,
}

impl<F: Format<V = Avx512>, const ROWS: usize, const VECTORS: usize> Sums<F> for Tiles<'_, ROWS, VECTORS> {
    #[inline(always)]
    unsafe fn each(self, f: impl Fn(&Tile<'_>, Vector<F>, usize, usize)) {
        for row in self.rows {
            for j in 0..VECTORS {
                // SAFETY: the caller's promise; the tile has the row and the lane.
                let sum = unsafe {
                    let sum = Avx512::load(self.sums.add((j * ROWS * SIDE + row) * SIDE));
                    F::finish(self.t, sum, j * SIDE)
                };
                f(self.t, sum, row, j * SIDE);
            }
        }
    }
}

kernels!(bf16, Avx512Bf16, "avx512f,avx512bf16", "tdpbf16ps");
kernels!(int8, Bytes, "avx512f,avx512vnni", "tdpbusd");

pub(super) use bf16::KERNELS as BF16;
pub(super) use int8::KERNELS as INT8;
