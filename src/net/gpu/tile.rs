//! Tiles: how many rows and columns of a layer's matrix product one block of threads computes, which shapes there are, and what a
//! launch with each of them costs by computation.
//!
//! The cost decides between tiles and nothing else: a sum has the same order in every tile, so results are equal to the bit.
//! The constants are throughputs that are published or follow from the instruction, and two latencies that are assumed; none was
//! fitted to a measurement.

use super::element_type::{Arithmetic, ElementType, MatrixInstruction};
use crate::device::{Limits, WARP};

/// Warps of a warpgroup, which issue wgmma together.
pub(super) const WARPGROUP: usize = 4;
/// Rows and columns of the smallest tile of a warp.
pub(super) const MMA_TILE: usize = 16;

/// Registers of a multiprocessor, on all GPUs from compute capability 7.5 on.
const REGISTERS: usize = 1 << 16;
/// Shared memory that the driver takes of every block, in bytes.
const RESERVED_SHARED: usize = 1024;

/// Cycles of a block that do not depend on its tile: start, the first loads from L2 or DRAM, the last store. Assumed.
const BLOCK_LATENCY: f64 = 2000.0;
/// Cycles of a block for each weight tile: the barrier, ldmatrix and the first product after it. Assumed.
const WEIGHT_TILE_LATENCY: f64 = 150.0;
/// Bytes of shared memory that a multiprocessor reads or writes in a cycle.
const SHARED_BYTES: f64 = 128.0;
/// Bytes that a multiprocessor exchanges with L2 in a cycle while all of them do: 6.5 TB/s over 132 at 1.76 GHz on an H100 or H200.
const L2_BYTES: f64 = 28.0;

/// The warps of a block and the share of the block's sums that each of them computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TileShape {
    /// Warps along the rows.
    pub warp_rows: usize,
    /// Warps along the columns.
    pub warp_columns: usize,
    /// Rows of a warp, in units of 16.
    pub row_tiles: usize,
    /// Output channels of a warp, in units of 16.
    pub column_tiles: usize,
}

impl TileShape {
    const fn new(warps: [usize; 2], tiles: [usize; 2]) -> Self {
        let ([warp_rows, warp_columns], [row_tiles, column_tiles]) = (warps, tiles);
        Self { warp_rows, warp_columns, row_tiles, column_tiles }
    }

    /// Rows of a block.
    pub fn rows(self) -> usize {
        MMA_TILE * self.warp_rows * self.row_tiles
    }

    /// Output channels of a block, in units of 16.
    pub fn n_tiles(self) -> usize {
        self.warp_columns * self.column_tiles
    }

    /// Output channels of a block.
    pub fn columns(self) -> usize {
        MMA_TILE * self.n_tiles()
    }

    /// Warps of a block.
    pub fn warps(self) -> usize {
        self.warp_rows * self.warp_columns
    }

    /// Threads of a block.
    pub fn threads(self) -> usize {
        WARP * self.warps()
    }

    /// Registers of a thread, within 40 above to 30 below what the compiler takes: sums, fragments of both operands by mma.sync, addresses.
    fn registers(self, cores: MatrixInstruction) -> usize {
        let Self { row_tiles, column_tiles, .. } = self;
        let fragments = match cores {
            MatrixInstruction::Mma => 4 * (row_tiles + column_tiles),
            MatrixInstruction::Wgmma => 0,
        };
        (64 + 8 * row_tiles * column_tiles + fragments).next_multiple_of(8).min(255)
    }
}

/// Loads, multiply-adds and stores of one block of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockWork {
    pub tile: TileShape,
    /// Words of K: all taps and channels, with those that only fill the last weight tile.
    pub words: usize,
    /// Slabs of weights.
    pub weight_tiles: usize,
    /// Bytes of input rows, those around the tile's included.
    pub input_bytes: usize,
    /// Bytes of shared memory.
    pub shared: usize,
}

impl BlockWork {
    /// Blocks that run on a multiprocessor at once.
    pub fn resident(&self, cores: MatrixInstruction, limits: Limits) -> usize {
        let by_shared = (limits.shared as usize + RESERVED_SHARED) / (self.shared + RESERVED_SHARED);
        let by_registers = REGISTERS / (self.tile.threads() * self.tile.registers(cores));
        let (threads, blocks) = match limits.capability {
            75 => (1024, 16),
            86 => (1536, 16),
            89 | 120.. => (1536, 24),
            _ => (2048, 32),
        };
        by_shared.min(by_registers).min(threads / self.tile.threads()).clamp(1, blocks)
    }

    /// The cost of a block.
    pub fn cost(&self, arithmetic: Arithmetic, limits: Limits) -> BlockCost {
        let TileShape { row_tiles, column_tiles, .. } = self.tile;
        let (rows, columns) = (self.tile.rows(), self.tile.columns());
        let steps = self.words / 8;
        let read = match arithmetic.cores {
            // Each warp reads its rows and its columns.
            MatrixInstruction::Mma => steps * self.tile.warps() * 512 * (row_tiles + column_tiles),
            // Each product of 64 rows reads all columns, and its rows by ldmatrix.
            MatrixInstruction::Wgmma => steps * (rows / (MMA_TILE * WARPGROUP)) * (32 * columns + 2048),
        };
        let weight_bytes = 4 * self.words * columns;
        let fetched = weight_bytes + self.input_bytes;
        // Two bytes of an inner layer, ten of one that ends in the residual stream: six on average.
        let stored = 6 * rows * columns;
        let multiplying =
            (rows * columns * self.words) as f64 / words_per_cycle(arithmetic, limits.capability);
        let throughput =
            multiplying.max((read + fetched) as f64 / SHARED_BYTES).max((fetched + stored) as f64 / L2_BYTES);
        // A multiprocessor has four tensor cores, and a warp runs on one of them.
        let by_itself = throughput.max(multiplying * 4.0 / self.tile.warps().min(4) as f64);
        let latency = BLOCK_LATENCY + WEIGHT_TILE_LATENCY * self.weight_tiles as f64;
        BlockCost {
            throughput,
            duration: latency + by_itself,
            resident: self.resident(arithmetic.cores, limits),
        }
    }
}

/// Cycles that one block costs a multiprocessor.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockCost {
    /// While other blocks fill its latencies: the busiest of tensor cores, shared memory and L2.
    pub throughput: f64,
    /// By itself, from its start to its end.
    pub duration: f64,
    /// Blocks that run at once.
    pub resident: usize,
}

impl BlockCost {
    /// Cycles of a launch of `blocks` blocks: those of the multiprocessor that has the most of them. It runs them in waves, each
    /// of which lasts as long as one block by itself, or as the throughput of all blocks in it.
    pub fn launch(&self, blocks: usize, multiprocessors: usize) -> f64 {
        let busiest = blocks.div_ceil(multiprocessors);
        let wave = |num: usize| match num {
            0 => 0.0,
            num => (num as f64 * self.throughput).max(self.duration),
        };
        (busiest / self.resident) as f64 * wave(self.resident) + wave(busiest % self.resident)
    }
}

/// Products of pairs of words that a multiprocessor makes in a cycle. mma.sync reaches 0.6 of Hopper's tensor cores, wgmma all; other
/// generations by their published peaks at 16 bits.
fn words_per_cycle(Arithmetic { element_type, cores }: Arithmetic, capability: u32) -> f64 {
    match (element_type, cores, capability) {
        (ElementType::F32, ..) => 128.0,
        (_, MatrixInstruction::Wgmma, _) => 1024.0,
        (_, MatrixInstruction::Mma, 90..120) => 0.6 * 1024.0,
        (_, MatrixInstruction::Mma, 80 | 87) => 512.0,
        (_, MatrixInstruction::Mma, _) => 256.0,
    }
}

/// The tiles for `outputs` channels with `taps` taps, those with the most sums first.
///
/// Programs depend on the tile, so there are few: one for each range of rows a block that the computed cost tells apart by more than
/// a few percent.
pub(super) fn tiles(cores: MatrixInstruction, taps: usize, outputs: usize) -> Vec<TileShape> {
    let n_tiles = outputs.div_ceil(MMA_TILE);
    match cores {
        MatrixInstruction::Mma => tiles_of_warps(taps, n_tiles),
        MatrixInstruction::Wgmma => tiles_of_warpgroups(taps, n_tiles),
    }
}

/// Those of wgmma. A warpgroup takes all columns of its block. A thread has 64 sums at most, so that two blocks of two warpgroups fit
/// a multiprocessor.
fn tiles_of_warpgroups(taps: usize, n_tiles: usize) -> Vec<TileShape> {
    let tile = |warpgroups, row_tiles, column_tiles| {
        TileShape::new([WARPGROUP * warpgroups, 1], [row_tiles, column_tiles])
    };
    let large = if n_tiles > 4 {
        let blocks = n_tiles.div_ceil(8);
        vec![tile(2, 1, n_tiles.div_ceil(blocks))]
    } else if taps == 9 {
        vec![tile(2, 2, n_tiles), tile(2, 1, n_tiles)]
    } else {
        vec![tile(2, 1, n_tiles)]
    };
    let n_limit = n_tiles.min(4);
    let small = [tile(1, 1, n_limit), tile(1, 1, n_limit.min(2)), tile(1, 1, 1)];
    large.into_iter().chain(small).collect()
}

/// Those of mma.sync, which a warp issues by itself.
fn tiles_of_warps(taps: usize, n_tiles: usize) -> Vec<TileShape> {
    let large = if n_tiles > 4 {
        // As wide as leaves the fewest channels empty: 128, 112 where four warps share the columns, or 96 rows.
        let wide = n_tiles.div_ceil(n_tiles.div_ceil(8));
        let two = wide.div_ceil(2);
        let four = wide.is_multiple_of(4).then(|| TileShape::new([1, 4], [7, wide / 4]));
        let [first, last] = [4, 3].map(|row_tiles| TileShape::new([2, 2], [row_tiles, two]));
        [first].into_iter().chain(four).chain([last]).collect()
    } else if taps == 9 {
        let of = |warps, row_tiles| TileShape::new([warps, 1], [row_tiles, n_tiles]);
        vec![of(4, 4), of(4, 3), of(2, 4)]
    } else {
        vec![TileShape::new([4, 1], [2, n_tiles])]
    };
    let n_limit = n_tiles.min(4);
    let small = [
        TileShape::new([2, 1], [3, n_limit]),
        TileShape::new([2, 1], [2, n_limit]),
        TileShape::new([2, 1], [1, n_limit.min(2)]),
        TileShape::new([1, 1], [1, 1]),
    ];
    large.into_iter().chain(small).collect()
}
