//! Matrix products of training over (position, tap) pairs, on the forward's f32 tile kernels.
//!
//! Both products are sums over taps, then over a row's numbers, in a fixed order, so a row's result does not depend on the rows
//! around it. In the gradient of the weights the boards are what is summed: its kernel rows are the input channels, one word apart,
//! and its units a row of the chunk apart.

use super::geometry::Links;
use crate::isa::Isa;
use crate::net::fast::f32_kernels;
use crate::net::fast::kernels::{Kernels, row_tiles};
use crate::net::fast::tile::{Columns, Tap, Tile};

/// Columns are padded to a multiple of this everywhere.
pub const LANES: usize = 16;
/// Columns of packed weights that lie together.
const BLOCK: usize = 32;

/// `n` rounded up to whole vectors.
pub fn padded(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// Some columns of a chunk `[positions, rows, width]`, from `offset` on.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The whole chunk.
    pub data: &'a [f32],
    /// Floats of one row.
    pub width: usize,
    /// First column.
    pub offset: usize,
}

/// As [`View`], to be written.
pub struct ViewMut<'a> {
    /// The whole chunk.
    pub data: &'a mut [f32],
    /// Floats of one row.
    pub width: usize,
    /// First column.
    pub offset: usize,
}

/// The weights of a product: for each block of 32 columns (the last may have 16) `[taps, inputs, columns]`.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    taps: usize,
    inputs: usize,
    columns: usize,
    data: Vec<f32>,
}

impl Packed {
    /// Room for `taps x inputs x columns` weights, `columns` a multiple of [`LANES`].
    pub fn new(taps: usize, inputs: usize, columns: usize) -> Self {
        assert!(columns.is_multiple_of(LANES), "padded columns");
        Self { taps, inputs, columns, data: vec![0.0; taps * inputs * columns] }
    }

    /// Where the weight of (tap 0, input 0, `column`) lies, and the floats from one (tap, input) to the next.
    fn column(&self, column: usize) -> (usize, usize) {
        let block = column / BLOCK;
        let width = BLOCK.min(self.columns - block * BLOCK);
        (block * BLOCK * self.taps * self.inputs + column % BLOCK, width)
    }

    /// Sets the weights of one column from `[inputs, taps]`.
    pub fn set_column(&mut self, column: usize, weights: &[f32]) {
        let (start, step) = self.column(column);
        for (input, weights) in weights.chunks_exact(self.taps).enumerate() {
            for (tap, &weight) in weights.iter().enumerate() {
                self.data[start + (tap * self.inputs + input) * step] = weight;
            }
        }
    }

    /// Sets the weights of one input from `[columns, taps]`; columns beyond those given keep theirs.
    pub fn set_input(&mut self, input: usize, weights: &[f32]) {
        for (column, weights) in weights.chunks_exact(self.taps).enumerate() {
            let (start, step) = self.column(column);
            for (tap, &weight) in weights.iter().enumerate() {
                self.data[start + (tap * self.inputs + input) * step] = weight;
            }
        }
    }
}

/// `out += x W` at every written position of `links`.
///
/// # Shapes
/// `x [links.sources, rows, x.width]` from column `x.offset`, `weights [taps, inputs, columns]`,
/// `out [links.lists.len(), rows, out.width]` from column `out.offset`.
pub fn product(isa: Isa, links: &Links, rows: usize, x: View<'_>, weights: &Packed, out: ViewMut<'_>) {
    let Packed { taps, inputs, columns, ref data } = *weights;
    assert_eq!(x.data.len(), links.sources * rows * x.width, "input chunk");
    assert_eq!(out.data.len(), links.lists.len() * rows * out.width, "output chunk");
    assert!(x.offset + inputs <= x.width && out.offset + columns <= out.width, "columns");
    assert_eq!(links.taps, taps, "taps");
    let kernels = f32_kernels(isa);
    let source = x.data.as_ptr().wrapping_add(x.offset);
    let target = out.data.as_mut_ptr().wrapping_add(out.offset);
    for first in (0..columns).step_by(BLOCK) {
        let block = BLOCK.min(columns - first);
        let weights = data.as_ptr().wrapping_add(first * taps * inputs);
        for (position, list) in links.lists.iter().enumerate() {
            let out = Output {
                start: target.wrapping_add(position * rows * out.width + first),
                row: out.width,
                rows,
                columns: block,
            };
            let operands = Operands { taps: list, x: source, x_row: x.width, x_unit: 1, depth: inputs };
            // SAFETY: positions and taps are below `links.sources` and `links.taps`, which the lengths were checked against; the
            // columns lie inside their rows and the block inside the packed weights.
            unsafe { multiply_add(kernels, operands, rows * x.width, (weights, block), out) }
        }
    }
}

/// `out += x^T dy` over the rows of all pairs of (input, output) positions of one tap: the gradient of that tap's weights.
///
/// # Shapes
/// `x [sources, rows, x.width]`, `inputs` columns from `x.offset` on; `dy [.., rows, dy.width]`, `columns` from `dy.offset` on, a
/// multiple of [`LANES`]; `out [inputs, columns]`.
pub fn weight_gradient(
    isa: Isa,
    pairs: &[Tap],
    rows: usize,
    x: View<'_>,
    dy: View<'_>,
    out: &mut [f32],
    columns: usize,
) {
    let inputs = out.len() / columns;
    assert!(columns.is_multiple_of(LANES) && out.len() == inputs * columns, "gradient");
    assert!(x.offset + inputs <= x.width && dy.offset + columns <= dy.width, "columns");
    let (sources, targets) = (x.data.len() / (rows * x.width), dy.data.len() / (rows * dy.width));
    let inside = |pair: &Tap| (0..sources as isize).contains(&pair.shift) && pair.index < targets;
    assert!(pairs.iter().all(inside), "positions");
    let source = x.data.as_ptr().wrapping_add(x.offset);
    let gradients = dy.data.as_ptr().wrapping_add(dy.offset);
    let out = Output { start: out.as_mut_ptr(), row: columns, rows: inputs, columns };
    let operands = Operands { taps: pairs, x: source, x_row: 1, x_unit: x.width, depth: rows };
    // SAFETY: positions were checked against the lengths; rows and columns exist.
    unsafe { multiply_add(f32_kernels(isa), operands, rows * x.width, (gradients, dy.width), out) }
}

/// The left operand of a product: `depth` numbers for every tap of every output row. Strides are in floats.
#[derive(Clone, Copy)]
struct Operands<'a> {
    taps: &'a [Tap],
    /// First number of the first row at position 0.
    x: *const f32,
    /// From one output row's numbers to the next row's.
    x_row: usize,
    /// From one of a row's numbers to the next.
    x_unit: usize,
    depth: usize,
}

/// The output of a product. Strides are in floats.
#[derive(Clone, Copy)]
struct Output {
    start: *mut f32,
    row: usize,
    rows: usize,
    columns: usize,
}

/// Adds a product to `out`, tile by tile. `x_position` is the distance of positions in x; `weights` are the right operand and the
/// distance of its rows, of which tap `index` has those from `index * depth` on.
///
/// # Safety
/// The operands hold `depth` numbers for every row and tap, the right one `columns` numbers for each of those; `out` holds the rows
/// and columns, a multiple of [`LANES`].
unsafe fn multiply_add(
    kernels: &Kernels,
    operands: Operands<'_>,
    x_position: usize,
    (weights, weights_row): (*const f32, usize),
    out: Output,
) {
    let Operands { taps, x, x_row, x_unit, depth } = operands;
    let mut column = 0;
    while column < out.columns {
        let pair = usize::from(column + 2 * kernels.lanes <= out.columns);
        let tiles = kernels.tiles[pair];
        let columns =
            Columns::add_f32(depth, [x_unit, x_position], weights.wrapping_add(column), weights_row);
        for (row, rows) in row_tiles(out.rows, tiles.len(), 1) {
            let first = (x.wrapping_add(row * x_row), x_row);
            let to = (out.start.wrapping_add(row * out.row + column), out.row);
            // SAFETY: the caller's promise; the tile ends at or before the last row and column, and the machine has the
            // instructions of `f32_kernels`.
            unsafe { tiles[rows - 1](&Tile::plain(&columns, taps, first, to, rows)) }
        }
        column += kernels.lanes << pair;
    }
}
