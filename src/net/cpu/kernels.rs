//! The tables of kernels that an instruction set offers for a number format, and how rows are cut into tiles for them.

use super::board::TapRun;
use super::format::{Activations, WeightFormat};
use super::tile::Tile;

/// A kernel of fixed shape.
///
/// # Safety
/// The kernel contract of [`crate::isa`], for MR rows, NV vectors, the taps, the depth and the epilogue.
pub(super) type TileFn = unsafe fn(&Tile<'_>);

/// Cuts `count` rows into as few tiles of at most `max` rows as possible, as equal as multiples of `multiple` allow. Yields each
/// tile's first row and number of rows.
#[inline(always)]
pub(super) fn row_tiles(count: usize, max: usize, multiple: usize) -> impl Iterator<Item = (usize, usize)> {
    let parts = count.div_ceil(multiple);
    let tiles = parts.div_ceil(max / multiple);
    let (each, longer) = (parts / tiles.max(1), parts % tiles.max(1));
    let mut row = 0;
    (0..tiles).map(move |n| {
        let first = row;
        row = (row + (each + usize::from(n < longer)) * multiple).min(count);
        (first, row - first)
    })
}

/// Some columns of all rows of a chunk in the blocked layout, whose boards fill whole tiles.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "read by kernels that multiply matrices, AMX alone")
)]
pub(super) struct Strip<'a> {
    /// The tile of no rows at position 0.
    pub start: Tile<'a>,
    /// Rows of a matrix, of which a tile has two: the thread's tile configuration has this number of rows.
    pub rows: usize,
    pub runs: &'a [TapRun],
    /// Words from one position of the residual stream and of the output to the next.
    pub stream_position: usize,
    pub out_position: usize,
}

/// A kernel for strips.
///
/// # Safety
/// As for [`TileFn`], for every tile of the strip.
pub(super) type StripFn = unsafe fn(&Strip<'_>);

/// Kernels that multiply whole matrices. They read all rows of a tile's matrices, valid or not.
pub(super) struct Matrices {
    /// Rows of a matrix; a tile's rows are best a multiple.
    pub rows: usize,
    /// Units of a matrix row: a row of activations has a multiple.
    pub units: usize,
    /// Kernels for strips of one and two vectors.
    pub strips: [StripFn; 2],
    /// Configures the thread for matrices of the given number of rows (`rows`, except for strips), and undoes that.
    pub begin: unsafe fn(usize),
    pub end: unsafe fn(),
}

/// The kernels of one instruction set and number format.
pub(super) struct Kernels {
    pub name: &'static str,
    /// f32 lanes of a vector.
    pub lanes: usize,
    /// Activations of a unit as read.
    pub unit: usize,
    /// How activations are written.
    pub writes: Activations,
    pub weights: WeightFormat,
    /// By log2(NV), then MR - 1.
    pub tiles: [&'static [TileFn]; 3],
    /// Does `rounds` times `chains` products ([`Kernels::peak_macs`]) that depend on nothing but registers.
    pub peak: unsafe fn(rounds: usize) -> f32,
    pub chains: usize,
    /// For kernels that multiply whole matrices.
    pub matrices: Option<Matrices>,
}

impl Kernels {
    /// The maximum number of rows of a strip's tiles; 1 without matrices.
    pub(super) fn tile_rows(&self) -> usize {
        self.matrices.as_ref().map_or(1, |m| 2 * m.rows)
    }

    /// Rows of a matrix in strips over a chunk of `boards` boards: the fewest that need no more tiles. None for a chunk that is not
    /// processed in strips.
    pub(super) fn strip_rows(&self, boards: usize) -> Option<usize> {
        /// With fewer boards, reading the weights for each position costs more than reading rows from further away.
        const MIN_BOARDS: usize = 6;
        self.matrices.as_ref().filter(|_| boards >= MIN_BOARDS)?;
        Some(boards.div_ceil(2 * boards.div_ceil(self.tile_rows())))
    }

    /// Boards in a chunk's arrays, of which the first `boards` are valid.
    pub(super) fn whole_tiles(&self, boards: usize) -> usize {
        self.strip_rows(boards).map_or(boards, |rows| boards.next_multiple_of(2 * rows))
    }

    /// Words of one tap's weights for a vector of output channels, where it has `depth` units.
    pub(super) fn tap_words(&self, depth: usize) -> usize {
        let words = if self.weights == WeightFormat::HighLow { 2 } else { 1 };
        words * (depth + self.weights.first_sums()) * self.lanes
    }

    /// Activations of a unit as written.
    pub(super) fn out(&self) -> usize {
        self.writes.per_word()
    }

    /// Units that a row of activations is a multiple of.
    pub(super) fn units(&self) -> usize {
        if self.weights == WeightFormat::Rounded { 2 } else { self.matrix_units() }
    }

    /// Units of a row that a kernel multiplies at once, so that their weights lie together.
    pub(super) fn matrix_units(&self) -> usize {
        self.matrices.as_ref().map_or(self.pair(), |m| m.units)
    }

    /// Rows that a tile is best a multiple of.
    pub(super) fn batch_multiple(&self) -> usize {
        self.matrices.as_ref().map_or(self.pair(), |m| m.rows)
    }

    /// Multiply-adds of a round of [`Kernels::peak`].
    pub(super) fn peak_macs(&self) -> usize {
        self.chains * self.lanes * self.unit * self.pair()
    }

    /// Rows and units that an instruction multiplies at once.
    fn pair(&self) -> usize {
        if self.weights == WeightFormat::Pairs { 2 } else { 1 }
    }

    /// Channels that a row of activations is a multiple of.
    pub(super) fn channels(&self) -> usize {
        self.lanes.max(self.units() * self.unit)
    }

    /// Channels that a layer writes a multiple of: whole rows, since padding is multiplied by 0 and must be finite. Bytes always are.
    pub(super) fn written(&self) -> usize {
        if self.unit == 4 { self.lanes } else { self.channels() }
    }
}

/// The kernels of a number format, compiled for `$features`: tiles of as many rows as listed, by one, two and four vectors. `$chains`
/// independent sums occupy the machine in [`Kernels::peak`].
macro_rules! kernels {
    // The sums of a tile, by taps and units or by another function.
    (@sums $tile:expr, $format:ty) => { $crate::net::cpu::tile::sums_of_taps::<$format, MR, NV>($tile) };
    (@sums $tile:expr, $format:ty, $sums:path) => {{
        use $sums as sums;
        sums::<$format, MR, NV>($tile)
    }};
    (static $static:ident = $name:literal, $format:ty $(, $features:literal)? $(, sums $sums:path)?; chains $chains:literal;
     rows [$($one:literal)*] [$($two:literal)*] [$($four:literal)*]) => {
        pub(in crate::net::cpu) static $static: $crate::net::cpu::kernels::Kernels = {
            use $crate::net::cpu::format::{Format, peak};
            use $crate::net::cpu::kernels::{Kernels, TileFn, kernels};
            use $crate::net::cpu::tile::{Tile, finish};
            use $crate::net::register_tile::DotProduct;
            use $crate::simd::Simd;

            /// # Safety
            /// The kernel contract of [`crate::isa`].
            $(#[target_feature(enable = $features)])?
            unsafe fn rows<const MR: usize, const NV: usize>(t: &Tile<'_>) {
                // SAFETY: the kernel contract; this function enables the instructions.
                unsafe {
                    let sums = kernels!(@sums t, $format $(, $sums)?);
                    finish::<$format, _>(t.epilogue, (t, sums));
                }
            }

            /// # Safety
            /// The kernel contract of [`crate::isa`].
            $(#[target_feature(enable = $features)])?
            unsafe fn chains(rounds: usize) -> f32 {
                // SAFETY: this function enables the instructions.
                unsafe { peak::<$format, $chains>(rounds) }
            }

            Kernels {
                name: $name,
                lanes: <$format as DotProduct>::S::LANES,
                unit: <$format as DotProduct>::UNIT,
                writes: <$format as Format>::WRITES,
                weights: <$format as Format>::WEIGHTS,
                tiles: [
                    &[$(rows::<$one, 1> as TileFn),*],
                    &[$(rows::<$two, 2> as TileFn),*],
                    &[$(rows::<$four, 4> as TileFn),*],
                ],
                peak: chains,
                chains: $chains,
                matrices: None,
            }
        };
    };
}
pub(super) use kernels;
