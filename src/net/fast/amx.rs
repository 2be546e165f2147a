//! Kernels for x86-64 with AMX: tiles of 16 rows by 16 units of activations times 16 units by 16 channels of weights, in
//! bf16 and in bytes.
//!
//! Instructions as in Intel's Software Developer's Manual, volume 2, `TDPBF16PS` and `TDPBUSD`. Sums of bytes are the
//! integers of AVX-512 VNNI, hence the same results to the bit. Sums of bf16 take even and odd channels of 32 apart before
//! they join the total: other last bits than `vdpbf16ps`.

use super::tile::{Format, Kernels, Matrices, Sums, Tap, Tile, TileFn, Vector, Vectors, finish};
use super::x86::Avx512;
use super::x86_bf16::Avx512Bf16;
use super::x86_int8::Bytes;
use std::arch::asm;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Rows of a tile, units of its rows, and channels.
const SIDE: usize = 16;
/// Sums that a kernel keeps: four tiles.
const SUMS: usize = 4 * SIDE * SIDE;

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

/// What `ldtilecfg` reads: palette 1, eight tiles of 16 rows of 64 bytes.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIG: TileConfig = TileConfig {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

unsafe fn begin() {
    // SAFETY: the caller has AMX; the configuration is a whole one.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, preserves_flags)) }
}

unsafe fn end() {
    // SAFETY: the caller has AMX.
    unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
}

const MATRICES: Option<Matrices> = Some(Matrices { rows: SIDE, units: SIDE, begin, end });

/// Where a kernel's matrices lie, in bytes; the assembly reads these fields by their offsets.
#[repr(C)]
struct Walk {
    taps: *const Tap,
    taps_end: *const Tap,
    x: *const f32,
    weights: *const f32,
    /// From one position of the source to the next.
    x_position: isize,
    /// From one tap's weights to the next.
    tap: usize,
    x_row: usize,
    weight_row: usize,
    /// From a tile's rows to those of the one below.
    x_below: usize,
    /// Multiplications of a tap.
    steps: usize,
    out: *mut f32,
    /// From the weights of one multiplication to those of the next.
    weight_step: usize,
    /// From one block of weights to the next.
    weight_block: usize,
    out_row: usize,
}

impl Walk {
    fn new(t: &Tile<'_>, vectors: usize, out: *mut f32) -> Self {
        let taps = t.taps.as_ptr_range();
        let weight_row = t.block_vectors * SIDE;
        let bytes = |words: usize| words * size_of::<f32>();
        Self {
            taps: taps.start,
            taps_end: taps.end,
            x: t.x,
            weights: t.weights,
            x_position: t.x_position * size_of::<f32>() as isize,
            tap: bytes(t.depth * weight_row),
            x_row: bytes(t.x_row),
            weight_row: bytes(weight_row),
            x_below: bytes(SIDE * t.x_row),
            steps: t.depth / SIDE,
            out,
            weight_step: bytes(SIDE * weight_row),
            weight_block: bytes(t.block),
            out_row: bytes(vectors * SIDE),
        }
    }
}

/// Weights are read with the hint that they need not stay in the nearest cache, which the rows of neighbouring positions do:
/// a fifth faster at 64 channels.
///
/// Runs over taps and units: `$step` multiplies at the source rows {a} and the rows below {b}, with the weights {w} and those
/// of the next block {v}; `$store` writes the sums at {a} in rows of {s} bytes.
macro_rules! walk {
    ($walk:expr, [$($zero:literal)*], [$($step:expr),*], [$($store:literal)*]) => {
        // SAFETY: the caller has AMX, this thread has its configuration, and every matrix of the walk is there.
        unsafe { asm!(
            $($zero,)*
            "mov {taps}, [{p}]",
            "mov {r}, [{p} + 48]",
            "mov {s}, [{p} + 56]",
            "2:",
            "mov {a}, [{taps}]",
            "imul {a}, [{p} + 32]",
            "add {a}, [{p} + 16]",
            "mov {b}, {a}",
            "add {b}, [{p} + 64]",
            "mov {w}, [{taps} + 8]",
            "imul {w}, [{p} + 40]",
            "add {w}, [{p} + 24]",
            "mov {v}, {w}",
            "add {v}, [{p} + 96]",
            "mov {k}, [{p} + 72]",
            "3:",
            $($step,)*
            "add {a}, 64",
            "add {b}, 64",
            "add {w}, [{p} + 88]",
            "add {v}, [{p} + 88]",
            "dec {k}",
            "jnz 3b",
            "add {taps}, 16",
            "cmp {taps}, [{p} + 8]",
            "jne 2b",
            "mov {a}, [{p} + 80]",
            "mov {s}, [{p} + 104]",
            "mov {b}, {s}",
            "shl {b}, 4",
            "add {b}, {a}",
            $($store,)*
            p = in(reg) $walk,
            taps = out(reg) _,
            r = out(reg) _,
            s = out(reg) _,
            a = out(reg) _,
            b = out(reg) _,
            w = out(reg) _,
            v = out(reg) _,
            k = out(reg) _,
            out("tmm0") _,
            out("tmm1") _,
            out("tmm2") _,
            out("tmm3") _,
            out("tmm4") _,
            out("tmm5") _,
            out("tmm6") _,
            out("tmm7") _,
            options(nostack),
        ) }
    };
}

/// The kernels of one number format: the sums of ROWS by VECTORS tiles and what becomes of them.
macro_rules! kernels {
    ($module:ident, $format:ty, $features:literal, $dot:literal) => {
        mod $module {
            use super::*;

            /// Writes the sums, `[16 * ROWS, 16 * VECTORS]`.
            ///
            /// # Safety
            /// As for [`TileFn`], on a thread with the tiles' configuration.
            #[inline(always)]
            unsafe fn products<const ROWS: usize, const VECTORS: usize>(walk: &Walk) {
                match (ROWS, VECTORS) {
                    (1, 1) => walk!(walk,
                        ["tilezero tmm0"],
                        ["tileloadd tmm4, [{a} + {r}]", "tileloaddt1 tmm6, [{w} + {s}]", concat!($dot, " tmm0, tmm4, tmm6")],
                        ["tilestored [{a} + {s}], tmm0"]),
                    (2, 1) => walk!(walk,
                        ["tilezero tmm0" "tilezero tmm1"],
                        ["tileloadd tmm4, [{a} + {r}]", "tileloaddt1 tmm6, [{w} + {s}]", concat!($dot, " tmm0, tmm4, tmm6"),
                         "tileloadd tmm5, [{b} + {r}]", concat!($dot, " tmm1, tmm5, tmm6")],
                        ["tilestored [{a} + {s}], tmm0" "tilestored [{b} + {s}], tmm1"]),
                    (1, 2) => walk!(walk,
                        ["tilezero tmm0" "tilezero tmm1"],
                        ["tileloadd tmm4, [{a} + {r}]", "tileloaddt1 tmm6, [{w} + {s}]", concat!($dot, " tmm0, tmm4, tmm6"),
                         "tileloaddt1 tmm7, [{w} + {s} + 64]", concat!($dot, " tmm1, tmm4, tmm7")],
                        ["tilestored [{a} + {s}], tmm0" "tilestored [{a} + {s} + 64], tmm1"]),
                    (1, 4) => walk!(walk,
                        ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
                        ["tileloadd tmm4, [{a} + {r}]", "tileloaddt1 tmm6, [{w} + {s}]", concat!($dot, " tmm0, tmm4, tmm6"),
                         "tileloaddt1 tmm7, [{w} + {s} + 64]", concat!($dot, " tmm1, tmm4, tmm7"),
                         "tileloaddt1 tmm5, [{v} + {s}]", concat!($dot, " tmm2, tmm4, tmm5"),
                         "tileloaddt1 tmm6, [{v} + {s} + 64]", concat!($dot, " tmm3, tmm4, tmm6")],
                        ["tilestored [{a} + {s}], tmm0" "tilestored [{a} + {s} + 64], tmm1"
                         "tilestored [{a} + {s} + 128], tmm2" "tilestored [{a} + {s} + 192], tmm3"]),
                    _ => walk!(walk,
                        ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
                        ["tileloadd tmm4, [{a} + {r}]", "tileloaddt1 tmm6, [{w} + {s}]", concat!($dot, " tmm0, tmm4, tmm6"),
                         "tileloadd tmm5, [{b} + {r}]", concat!($dot, " tmm2, tmm5, tmm6"),
                         "tileloaddt1 tmm7, [{w} + {s} + 64]", concat!($dot, " tmm1, tmm4, tmm7"),
                         concat!($dot, " tmm3, tmm5, tmm7")],
                        ["tilestored [{a} + {s}], tmm0" "tilestored [{a} + {s} + 64], tmm1"
                         "tilestored [{b} + {s}], tmm2" "tilestored [{b} + {s} + 64], tmm3"]),
                }
            }

            #[target_feature(enable = $features)]
            unsafe fn kernel<const ROWS: usize, const VECTORS: usize>(t: &Tile<'_>) {
                let mut sums = MaybeUninit::<Stored>::uninit();
                let start: *mut f32 = sums.as_mut_ptr().cast();
                // SAFETY: the caller's promise; the sums of four tiles have room, and are read only after they were written.
                unsafe {
                    products::<ROWS, VECTORS>(&Walk::new(t, VECTORS, start));
                    finish::<$format, _>(t, Tiles::<VECTORS>(start));
                }
            }

            unsafe fn peak(rounds: usize) -> f32 {
                for _ in 0..rounds {
                    // SAFETY: the caller has AMX, and this thread its configuration.
                    unsafe { asm!(
                        concat!($dot, " tmm0, tmm4, tmm6"),
                        concat!($dot, " tmm1, tmm4, tmm7"),
                        concat!($dot, " tmm2, tmm5, tmm6"),
                        concat!($dot, " tmm3, tmm5, tmm7"),
                        out("tmm0") _,
                        out("tmm1") _,
                        out("tmm2") _,
                        out("tmm3") _,
                        options(nomem, nostack, preserves_flags),
                    ) }
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
                matrices: MATRICES,
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

/// Room for the sums of four tiles.
#[repr(C, align(64))]
struct Stored([f32; SUMS]);

/// Sums in memory, rows of VECTORS vectors.
struct Tiles<const VECTORS: usize>(*const f32);

impl<F: Format<V = Avx512>, const VECTORS: usize> Sums<F> for Tiles<VECTORS> {
    #[inline(always)]
    unsafe fn each(self, t: &Tile<'_>, f: impl Fn(Vector<F>, usize, usize)) {
        for row in 0..t.rows {
            for j in 0..VECTORS {
                let lane = j * SIDE;
                // SAFETY: the caller's promise; the tile has the row and the lane.
                let sum =
                    unsafe { F::finish(t, Avx512::load(self.0.add(row * VECTORS * SIDE + lane)), lane) };
                f(sum, row, lane);
            }
        }
    }
}

kernels!(bf16, Avx512Bf16, "avx512f,avx512bf16", "tdpbf16ps");
kernels!(int8, Bytes, "avx512f,avx512vnni", "tdpbusd");

pub(super) use bf16::KERNELS as BF16;
pub(super) use int8::KERNELS as INT8;
