//! The products of training in bf16 by AMX tiles: up to 16 rows of 16 units times 16 units of 16 columns.
//!
//! Sums lie in tiles from the first tap, or pair of positions, to the last. The even and the odd of a tile's numbers are added apart before both
//! join the sum, so last bits differ from those of `vdpbf16ps`.

use super::gemm::{BLOCK, LANES, PackedWeights, Product, WeightGradient};
use super::tap_map::TapLink;
use super::view::ViewMut;
use crate::net::amx_tile::{
    Multiply, TILE_ROWS, TileConfig, configure, load, load_nontemporal, release, store,
};
use crate::net::bf16_products::Avx512Bf16;
use std::ops::Range;

/// The largest tile of which several make `n` rows or units.
fn even_tile(n: usize) -> usize {
    (1..=TILE_ROWS).rev().find(|size| n.is_multiple_of(*size)).unwrap_or(1)
}

/// `n` rows as ranges, each with the number of rows of its tiles. Tiles are of one size if at least half full; else all are full but the
/// last.
fn row_tiles(n: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
    let even = even_tile(n);
    let size = if even < TILE_ROWS / 2 && n > TILE_ROWS { TILE_ROWS } else { even };
    let (full, rest) = (n / size * size, n % size);
    [(0..full, size), (full..n, rest)].into_iter().filter(|(rows, _)| !rows.is_empty())
}

/// Words between rows of a product's matrices.
#[derive(Clone, Copy)]
struct RowWords {
    x: usize,
    weights: usize,
    sums: usize,
}

/// Adds the products of `operands`, pairs of a tile of rows and one of weights, to `ROWS x VECTORS` tiles of sums. The second tile of rows is
/// `below` rows after the first, that of weights a vector. Rows are loaded past the L1 cache, which is left to the weights.
///
/// # Safety
/// The kernel contract of [`crate::isa`]; all tiles lie inside their arrays.
#[inline(always)]
unsafe fn accumulate<const ROWS: usize, const VECTORS: usize>(
    words: RowWords,
    below: usize,
    sums: *mut f32,
    operands: impl Iterator<Item = [*const f32; 2]>,
) {
    let [x_bytes, weight_bytes, sum_bytes] =
        [words.x, words.weights, words.sums].map(|words| words * size_of::<f32>());
    let sums_below = sums.wrapping_add(below * words.sums);
    // SAFETY: the kernel contract.
    unsafe {
        load::<0>(sums, sum_bytes);
        if ROWS == 2 {
            load::<1>(sums_below, sum_bytes);
        }
        if VECTORS == 2 {
            load::<2>(sums.wrapping_add(LANES), sum_bytes);
        }
        if (ROWS, VECTORS) == (2, 2) {
            load::<3>(sums_below.wrapping_add(LANES), sum_bytes);
        }
        for [x, weights] in operands {
            load_nontemporal::<4>(x, x_bytes);
            load::<6>(weights, weight_bytes);
            Avx512Bf16::product::<0, 4, 6>();
            if ROWS == 2 {
                load_nontemporal::<5>(x.wrapping_add(below * words.x), x_bytes);
                Avx512Bf16::product::<1, 5, 6>();
            }
            if VECTORS == 2 {
                load::<7>(weights.wrapping_add(LANES), weight_bytes);
                Avx512Bf16::product::<2, 4, 7>();
            }
            if (ROWS, VECTORS) == (2, 2) {
                Avx512Bf16::product::<3, 5, 7>();
            }
        }
        store::<0>(sums, sum_bytes);
        if ROWS == 2 {
            store::<1>(sums_below, sum_bytes);
        }
        if VECTORS == 2 {
            store::<2>(sums.wrapping_add(LANES), sum_bytes);
        }
        if (ROWS, VECTORS) == (2, 2) {
            store::<3>(sums_below.wrapping_add(LANES), sum_bytes);
        }
    }
}

/// [`accumulate`] for one or two tiles of rows and one or two vectors.
///
/// # Safety
/// As for [`accumulate`].
#[inline(always)]
unsafe fn accumulate_tiles(
    words: RowWords,
    below: usize,
    sums: *mut f32,
    operands: impl Iterator<Item = [*const f32; 2]>,
    [tiles, vectors]: [usize; 2],
) {
    // SAFETY: the kernel contract.
    unsafe {
        match (tiles, vectors) {
            (2, 2) => accumulate::<2, 2>(words, below, sums, operands),
            (2, _) => accumulate::<2, 1>(words, below, sums, operands),
            (_, 2) => accumulate::<1, 2>(words, below, sums, operands),
            _ => accumulate::<1, 1>(words, below, sums, operands),
        }
    }
}

/// Runs `f(first, tiles)` on `rows`: two tiles of `size` at a time, then the last one.
#[inline(always)]
fn for_each_tile_pair(rows: Range<usize>, size: usize, mut f: impl FnMut(usize, usize)) {
    let mut first = rows.start;
    while first < rows.end {
        let tiles = if first + 2 * size <= rows.end { 2 } else { 1 };
        f(first, tiles);
        first += tiles * size;
    }
}

/// [`Product`]
///
/// # Safety
/// The machine has AMX, and the system lets the process use it; lengths as asserted in [`super::gemm_kernels::product`].
pub(super) unsafe fn product(product: &Product<'_>, mut out: ViewMut<'_>) {
    let tile_units = even_tile(product.weights.depth);
    for (range, size) in row_tiles(product.rows) {
        // SAFETY: the caller has AMX.
        unsafe { configure(&TileConfig::new(size, tile_units)) };
        for first in (0..product.weights.columns).step_by(BLOCK) {
            for (position, taps) in product.links.lists.iter().enumerate() {
                for_each_tile_pair(range.clone(), size, |row, tiles| {
                    let at = SumsAt { position, row, first, taps };
                    // SAFETY: the configuration has `size` rows; the tiles divide rows and units.
                    unsafe { product_tiles(product, &at, &mut out, [tiles, size, tile_units]) }
                });
            }
        }
        // SAFETY: the caller has AMX.
        unsafe { release() };
    }
}

/// Where up to two by two tiles of a product's sums are: from a row of a position and the first column of a block on.
struct SumsAt<'a> {
    position: usize,
    row: usize,
    first: usize,
    taps: &'a [TapLink],
}

/// One or two tiles of rows of a product, of `size` rows, and its block's columns.
///
/// # Safety
/// As for [`product`], with configured tiles that are inside the arrays.
#[inline(always)]
unsafe fn product_tiles(
    product: &Product<'_>,
    at: &SumsAt<'_>,
    out: &mut ViewMut<'_>,
    [tiles, size, tile_units]: [usize; 3],
) {
    let Product { links, rows, x, weights } = *product;
    let PackedWeights { depth, columns, ref data, .. } = *weights;
    let block = BLOCK.min(columns - at.first);
    let packed = data[at.first * links.taps * depth..].as_ptr();
    let words = RowWords { x: x.width, weights: block, sums: out.width };
    let sums = (at.position * rows + at.row) * out.width + out.offset + at.first;
    let sums = out.data.as_mut_ptr().wrapping_add(sums);
    let operands = at.taps.iter().flat_map(|tap| {
        let x = x.data.as_ptr().wrapping_add((tap.position * rows + at.row) * x.width + x.offset);
        let packed = packed.wrapping_add(tap.tap * depth * block);
        let units = (0..depth).step_by(tile_units);
        units.map(move |unit| [x.wrapping_add(unit), packed.wrapping_add(unit * block)])
    });
    // SAFETY: positions and taps are below those that the lengths were checked against; a block has one vector or two.
    unsafe { accumulate_tiles(words, size, sums, operands, [tiles, block / LANES]) }
}

/// [`WeightGradient`], with `x [x.width, column_words]` as [`super::transpose::transpose_pairs`] makes it. Where several positions follow each other in both operands,
/// as in a row of a board, so do their units, and tiles need not end with a position.
///
/// # Safety
/// The machine has AMX, and the system lets the process use it; lengths as asserted in [`super::gemm_kernels::weight_gradient`].
pub(super) unsafe fn gradient(gradient: &WeightGradient<'_>, out: &mut [f32]) {
    let WeightGradient { pairs, rows: units, x, dy, columns } = *gradient;
    let adjacent = || pairs.chunk_by(|a, b| (a.0 + 1, a.1 + 1) == *b);
    let tile_units = even_tile(adjacent().map(|pairs| pairs.len() * units).fold(0, greatest_common_divisor));
    let words = RowWords { x: x.data.len() / x.width, weights: dy.width, sums: columns };
    for (range, size) in row_tiles(out.len() / columns) {
        // SAFETY: the caller has AMX.
        unsafe { configure(&TileConfig::new(size, tile_units)) };
        for_each_tile_pair(0..columns, LANES, |column, vectors| {
            for_each_tile_pair(range.clone(), size, |input, tiles| {
                let operands = adjacent().flat_map(|pairs| {
                    let (from, to) = pairs[0];
                    let x = x.data.as_ptr().wrapping_add((x.offset + input) * words.x + from * units);
                    let dy = dy.data.as_ptr().wrapping_add(to * units * dy.width + dy.offset + column);
                    let units = (0..pairs.len() * units).step_by(tile_units);
                    units.map(move |unit| [x.wrapping_add(unit), dy.wrapping_add(unit * words.weights)])
                });
                let sums = out.as_mut_ptr().wrapping_add(input * columns + column);
                // SAFETY: positions were checked against the chunks' lengths; the tiles divide inputs, units and columns.
                unsafe { accumulate_tiles(words, size, sums, operands, [tiles, vectors]) }
            });
        });
        // SAFETY: the caller has AMX.
        unsafe { release() };
    }
}

/// The greatest common divisor by Euclid's algorithm; that of 0 and `b` is `b`.
fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if a == 0 { b } else { greatest_common_divisor(b % a, a) }
}
