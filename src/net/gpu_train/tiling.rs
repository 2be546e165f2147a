//! How products of matrices are cut into tiles, a block of threads each. Twin of `Tiling`, `StageTiles` and `SmemPanel` in kernels/train,
//! where linear.cuh counts what each tile costs.

use super::constants::{COPIES_PER_STEP, COPY_BYTES, STAGES, TILE_THREADS};
use super::layers::LinearShape;
use crate::device::{LaunchShape, Limits};
use crate::model::Connectivity;

/// Blocks that keep a large GPU busy: two for each multiprocessor.
const BUSY_BLOCKS: usize = 264;
/// Rows of a part of a weight gradient, at least: fewer would be summed in less time than a part is written and read again.
const SPLIT_ROWS: usize = 512;

/// The tile of sums that a block makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiling {
    /// 128 rows of 128 columns.
    Wide,
    /// 256 rows of 64 columns.
    Tall,
    /// 128 rows of 32 columns.
    Narrow,
}

impl Tiling {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Wide, Self::Tall, Self::Narrow];

    /// Rows and columns.
    fn sides(self) -> [usize; 2] {
        match self {
            Self::Wide => [128, 128],
            Self::Tall => [256, 64],
            Self::Narrow => [128, 32],
        }
    }

    /// What a sum costs relative to the others: cycles of what limits it by the counts in linear.cuh.
    fn cost(self) -> usize {
        match self {
            Self::Wide => 15,
            Self::Tall => 16,
            Self::Narrow => 31,
        }
    }

    /// The kernel of linear layers with this tiling.
    pub fn linear_kernel(self) -> &'static str {
        match self {
            Self::Wide => "linear_wide",
            Self::Tall => "linear_tall",
            Self::Narrow => "linear_narrow",
        }
    }

    /// The kernel of weight gradients with this tiling.
    pub fn gradient_kernel(self) -> &'static str {
        match self {
            Self::Wide => "linear_gradient_wide",
            Self::Tall => "linear_gradient_tall",
            Self::Narrow => "linear_gradient_narrow",
        }
    }

    /// The tiles of `rows` rows and `columns` columns.
    fn tiles(self, rows: usize, columns: usize) -> usize {
        let [tile_rows, tile_columns] = self.sides();
        rows.div_ceil(tile_rows) * columns.div_ceil(tile_columns)
    }

    /// The cost of one tile.
    fn cost_of_tile(self) -> usize {
        self.sides().iter().product::<usize>() * self.cost()
    }

    /// The tiling for `rows` rows of the output of `shape`, in numbers of `bytes` bytes: of those that fit the device the one that
    /// costs least on the multiprocessor that has most of its blocks. Sums do not depend on it.
    pub fn of_product(shape: &LinearShape, rows: usize, bytes: usize, limits: Limits) -> Self {
        let cost = |tiling: &Self| {
            let blocks = tiling.product_blocks(shape, rows).div_ceil(limits.multiprocessors as usize);
            // A lone block leaves its multiprocessor idle while it waits for memory, and so costs 1.5 times as much.
            let doubled_cost = if blocks == 1 { 3 } else { 2 * blocks };
            doubled_cost * tiling.cost_of_tile()
        };
        let fitting =
            Self::ALL.into_iter().filter(|tiling| tiling.product_bytes(bytes) <= limits.shared as usize);
        fitting.min_by_key(cost).unwrap_or(Self::Narrow)
    }

    /// Blocks for `rows` rows of the output of `shape`.
    fn product_blocks(self, shape: &LinearShape, rows: usize) -> usize {
        let (area, columns) = ((shape.height * shape.width) as usize, shape.columns as usize);
        if shape.mode == Connectivity::Spread {
            area * self.tiles(rows / area, columns)
        } else {
            self.tiles(rows, columns)
        }
    }

    /// How `product` is launched for `rows` rows of the output of `shape`, in numbers of `bytes` bytes.
    pub fn product(self, shape: &LinearShape, rows: usize, bytes: usize) -> LaunchShape {
        let (grid, shared) = (self.product_blocks(shape, rows), self.product_bytes(bytes));
        LaunchShape { grid: grid as u32, block: TILE_THREADS, shared: shared as u32 }
    }

    /// The tiling for the gradient of the weights of `shape`.
    pub fn of_gradient(shape: &LinearShape) -> Self {
        let cost = |tiling: &Self| tiling.gradient_tiles(shape) * tiling.cost_of_tile();
        Self::ALL.into_iter().min_by_key(cost).unwrap_or(Self::Narrow)
    }

    /// Tiles of the gradient of the weights of `shape`.
    fn gradient_tiles(self, shape: &LinearShape) -> usize {
        self.tiles((shape.taps * shape.inputs) as usize, shape.columns as usize)
    }

    /// How `weight_gradient` is launched for a sum in `splits` parts, in numbers of `bytes` bytes.
    pub fn gradient(self, shape: &LinearShape, splits: usize, bytes: usize) -> LaunchShape {
        let [rows, columns] = self.sides();
        let (depth, per_unit) = (COPIES_PER_STEP * COPY_BYTES / bytes, COPY_BYTES / bytes);
        let shared = STAGES * (panel(depth, rows / per_unit) + panel(depth, columns / per_unit));
        let grid = splits * self.gradient_tiles(shape);
        LaunchShape { grid: grid as u32, block: TILE_THREADS, shared: shared as u32 }
    }

    /// Bytes of shared memory of `product`.
    fn product_bytes(self, bytes: usize) -> usize {
        let [rows, columns] = self.sides();
        let depth = COPIES_PER_STEP * COPY_BYTES / bytes;
        STAGES * (panel(rows, COPIES_PER_STEP) + panel(depth, columns * bytes / COPY_BYTES))
    }
}

/// Bytes of so many lines of so many units in shared memory.
fn panel(lines: usize, units: usize) -> usize {
    lines * COPY_BYTES * (units + 1)
}

/// In how many ranges of rows the gradient of the weights of `shape` is summed: depends on the sizes alone.
pub fn splits(shape: &LinearShape, rows: usize) -> usize {
    let tiles = Tiling::of_gradient(shape).gradient_tiles(shape);
    (BUSY_BLOCKS / tiles).clamp(1, rows.div_ceil(SPLIT_ROWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Limits = Limits { capability: 90, multiprocessors: 132, shared: 227 << 10 };

    fn conv(inputs: u32, columns: u32) -> LinearShape {
        LinearShape {
            mode: Connectivity::Conv3x3,
            height: 6,
            width: 7,
            taps: 9,
            inputs,
            columns,
            x_width: inputs,
            x_offset: 0,
            out_width: columns,
            out_offset: 0,
            biases: 0,
        }
    }

    #[test]
    fn tiles_are_as_wide_as_layers_and_fill_multiprocessors() {
        let chosen =
            |columns: u32, boards: usize| Tiling::of_product(&conv(columns, columns), 42 * boards, 2, H100);
        for (columns, boards, right) in [
            (32, 4096, Tiling::Narrow),
            (40, 4096, Tiling::Tall),
            (64, 512, Tiling::Narrow),
            (64, 1024, Tiling::Tall),
            (128, 128, Tiling::Narrow),
            (128, 256, Tiling::Wide),
            (128, 512, Tiling::Wide),
            (192, 4096, Tiling::Tall),
            (256, 512, Tiling::Wide),
        ] {
            assert_eq!(chosen(columns, boards), right, "{columns} columns, {boards} boards");
        }
        let turing = Limits::of(75, 40);
        assert_eq!(Tiling::of_product(&conv(64, 64), 42 << 10, 2, turing), Tiling::Narrow, "what fits");
    }

    #[test]
    fn every_launch_fits_every_gpu() {
        for bytes in [2, 4] {
            for limits in [Limits::of(75, 1), Limits::of(86, 1), H100] {
                for columns in [8, 64, 128] {
                    let shape = conv(columns, columns);
                    let product =
                        Tiling::of_product(&shape, 5000, bytes, limits).product(&shape, 5000, bytes);
                    let gradient = Tiling::of_gradient(&shape).gradient(&shape, 1, bytes);
                    assert!(product.shared <= limits.shared && gradient.shared <= limits.shared);
                }
            }
        }
    }

    #[test]
    fn gradients_keep_a_large_gpu_busy() {
        let blocks = |columns: u32, boards: usize| {
            let (shape, rows) = (conv(columns, columns), 42 * boards);
            Tiling::of_gradient(&shape).gradient(&shape, splits(&shape, rows), 2).grid as usize
        };
        for columns in [64, 128, 256] {
            for boards in [1024, 2048, 4096] {
                let found = blocks(columns, boards);
                assert!((250..=BUSY_BLOCKS).contains(&found), "{columns} columns, {boards} boards: {found}");
            }
        }
        assert_eq!(blocks(64, 512), 126, "parts that pay for being written");
    }
}
