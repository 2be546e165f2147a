//! The kernel of one layer: its tile, the weight tiles that stream through shared memory, and the layout of packed weights.
//! Twin of `kernels/net/layer.cuh`, whose head gives the reasons.

use super::element_type::{Arithmetic, ElementType, MatrixInstruction};
use super::tile::{BlockCost, BlockWork, MMA_TILE, TileShape, WARPGROUP, tiles};
use crate::device::{LaunchShape, Limits};
use crate::error::{Error, Result};

/// Words of a row that one mma instruction takes.
const STEP: usize = 8;
/// A larger tile is taken where its computed cost is at most so many times the lowest: the model is no more exact than that, and
/// batches of like size then share a program.
const SAME_COST: f64 = 1.03;

/// The sizes and arithmetic of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSpec {
    /// Number format of input and weights.
    pub element_type: ElementType,
    /// The instruction that multiplies them.
    pub cores: MatrixInstruction,
    /// 9 for a 3x3 convolution with zeros around the board, 1 for a 1x1 convolution or, on boards of one square, a linear layer.
    pub taps: usize,
    /// Squares of a board's column.
    pub height: usize,
    /// Squares of a board's row.
    pub width: usize,
    /// Input channels of a square in memory, padded to a multiple of 4 words.
    pub inputs: usize,
    /// Output channels.
    pub outputs: usize,
}

/// A layer's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardLayer {
    /// Sizes and arithmetic.
    pub spec: LayerSpec,
    /// Words of an input square in one weight tile.
    k_tile_words: usize,
    tile: TileShape,
    /// Blocks of threads side by side, which share the output channels.
    column_blocks: usize,
    /// Slabs of weights in shared memory.
    stages: usize,
}

/// Channels of a square in memory: `channels` rounded up to whole units of 4 words.
pub fn padded_channels(element_type: ElementType, channels: usize) -> usize {
    channels.next_multiple_of(4 * element_type.per_word())
}

impl ForwardLayer {
    /// The kernel of `spec` with the tile of the lowest computed cost for `rows` squares of all boards together. Of tiles that
    /// cost about the same it takes the largest.
    ///
    /// # Errors
    /// As [`ForwardLayer::candidates`].
    pub fn new(spec: LayerSpec, rows: usize, limits: Limits) -> Result<Self> {
        let all = Self::candidates(spec, limits)?;
        let lowest = all.iter().map(|layer| layer.cycles(rows, limits)).fold(f64::INFINITY, f64::min);
        let is_cheap = |layer: &&Self| layer.cycles(rows, limits) <= SAME_COST * lowest;
        Ok(*all.iter().find(is_cheap).unwrap_or(&all[0]))
    }

    /// The kernels of `spec` with each tile that fits the device, those with the most sums first. They differ in speed alone.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the device has too little shared memory for boards so wide.
    pub fn candidates(spec: LayerSpec, limits: Limits) -> Result<Vec<Self>> {
        let fitting: Vec<Self> = tiles(spec.cores, spec.taps, spec.outputs)
            .into_iter()
            .filter_map(|tile| {
                let column_blocks = spec.outputs.div_ceil(tile.columns());
                let k_tile_words = k_tile_words(spec, limits);
                let of = |stages| Self { spec, k_tile_words, tile, column_blocks, stages };
                let layers = || weight_tiles_in_flight(spec.cores).iter().copied().map(of);
                // Two blocks to a multiprocessor where that is possible, else one.
                let roomy = layers().find(|layer| 2 * layer.shared() + 4096 <= limits.shared as usize);
                roomy.or(layers().find(|layer| layer.shared() <= limits.shared as usize))
            })
            .collect();
        if fitting.is_empty() {
            let what = format!("a {} x {} board on this GPU", spec.height, spec.width);
            let why = format!("{} bytes of shared memory a block are too few", limits.shared);
            return Err(Error::unsupported(what, why));
        }
        Ok(fitting)
    }

    /// The computed cost of a launch for `rows` squares, in cycles of a multiprocessor.
    pub fn cycles(&self, rows: usize, limits: Limits) -> f64 {
        self.block_cost(limits).launch(self.blocks(rows), limits.multiprocessors as usize)
    }

    /// Rows and columns of the product that one block computes.
    pub fn block_shape(&self) -> [usize; 2] {
        [self.tile.rows(), self.tile.columns()]
    }

    fn block_cost(&self, limits: Limits) -> BlockCost {
        let weight_tiles = self.k_tiles() * self.spec.taps;
        let work = BlockWork {
            tile: self.tile,
            words: weight_tiles * self.k_tile_words,
            weight_tiles,
            input_bytes: 4 * (self.tile.rows() + 2 * self.halo()) * self.row_words(),
            shared: self.shared(),
        };
        work.cost(Arithmetic { element_type: self.spec.element_type, cores: self.spec.cores }, limits)
    }

    /// The template arguments of the kernel's `Layer` after its element type.
    pub fn constants(&self) -> String {
        let Self { spec, k_tile_words, tile, column_blocks, stages } = *self;
        let numbers = [
            spec.taps,
            spec.height,
            spec.width,
            self.row_words(),
            k_tile_words,
            self.k_tiles(),
            tile.warp_rows,
            tile.warp_columns,
            tile.row_tiles,
            tile.column_tiles,
            column_blocks,
            stages,
            self.warps_per_mma(),
            tile.threads(),
            self.shared(),
        ];
        numbers.map(|x| x.to_string()).join(",")
    }

    /// Warps that issue one product.
    fn warps_per_mma(&self) -> usize {
        match self.spec.cores {
            MatrixInstruction::Mma => 1,
            MatrixInstruction::Wgmma => WARPGROUP,
        }
    }

    /// Words of an input square.
    fn row_words(&self) -> usize {
        self.spec.inputs / self.spec.element_type.per_word()
    }

    fn k_tiles(&self) -> usize {
        self.row_words().div_ceil(self.k_tile_words)
    }

    /// Blocks of threads for `rows` squares.
    fn blocks(&self, rows: usize) -> usize {
        rows.div_ceil(self.tile.rows()) * self.column_blocks
    }

    /// How the kernel is launched for `rows` squares.
    pub fn launch_shape(&self, rows: usize) -> LaunchShape {
        let block = self.tile.threads() as u32;
        LaunchShape { grid: self.blocks(rows) as u32, block, shared: self.shared() as u32 }
    }

    /// Rows before and after a block's own that its taps read.
    fn halo(&self) -> usize {
        if self.spec.taps == 9 { self.spec.width + 1 } else { 0 }
    }

    /// Bytes of shared memory of a block: zeros, inputs, weights and, for wgmma, an mbarrier for each weight tile.
    fn shared(&self) -> usize {
        let conv = self.spec.taps == 9;
        let pitch = 4 * self.k_tile_words + 16;
        let inputs = match (conv, self.k_tiles()) {
            (false, _) => self.stages,
            (true, 1) => 1,
            (true, _) => 2,
        };
        let mbarriers = match self.spec.cores {
            MatrixInstruction::Mma => 0,
            MatrixInstruction::Wgmma => 8 * self.stages,
        };
        8 * pitch
            + inputs * (self.tile.rows() + 2 * self.halo()) * pitch
            + self.stages * self.weight_tile_words() * 4
            + mbarriers
    }

    /// Words of the weights of one tap and chunk for a block.
    fn weight_tile_words(&self) -> usize {
        self.k_tile_words * self.tile.n_tiles() * MMA_TILE
    }

    /// Output channels, with those that only fill the last block.
    pub fn columns(&self) -> usize {
        self.column_blocks * self.tile.n_tiles() * MMA_TILE
    }

    /// Words of the packed weights.
    pub fn weight_words(&self) -> usize {
        self.column_blocks * self.k_tiles() * self.spec.taps * self.weight_tile_words()
    }

    /// The word of the packed weights, and the element in it, of output channel `output`, tap `tap`, input channel `input`.
    /// Twin of `weight_offset`.
    pub fn word_offset(&self, output: usize, tap: usize, input: usize) -> (usize, usize) {
        let per_word = self.spec.element_type.per_word();
        let (word, part) = (input / per_word, input % per_word);
        let n_tiles = self.tile.n_tiles();
        let (block, sixteen, within) =
            (output / (MMA_TILE * n_tiles), output / MMA_TILE % n_tiles, output % MMA_TILE);
        let (k_tile, step, k) = (word / self.k_tile_words, word % self.k_tile_words / STEP, word % STEP);
        let word_offset = match self.spec.cores {
            MatrixInstruction::Mma => fragment_offset(within, k),
            MatrixInstruction::Wgmma => core_matrix_offset(within, k),
        };
        let tile = (block * self.k_tiles() + k_tile) * self.spec.taps + tap;
        (tile * self.weight_tile_words() + (step * n_tiles + sixteen) * 128 + word_offset, part)
    }

    /// The packed weights; `weight(output, tap, input)` for input channels up to `inputs`, 0 past them.
    pub fn pack(&self, inputs: usize, weight: impl Fn(usize, usize, usize) -> f32) -> Vec<u32> {
        let element_type = self.spec.element_type;
        let mut words = vec![0u32; self.weight_words()];
        for output in 0..self.spec.outputs {
            for tap in 0..self.spec.taps {
                for input in 0..inputs {
                    let (word, part) = self.word_offset(output, tap, input);
                    words[word] |= element_type.bits(weight(output, tap, input)) << (16 * part);
                }
            }
        }
        words
    }

    /// One value for each channel, with zeros for the channels that fill the last block.
    pub fn by_channel(&self, values: &[f32]) -> Vec<f32> {
        let mut all = values.to_vec();
        all.resize(self.columns(), 0.0);
        all
    }
}

/// Slabs of weights in shared memory, the best choice first. wgmma needs three: a barrier then stands between the request of a weight tile
/// and the wait for it.
fn weight_tiles_in_flight(cores: MatrixInstruction) -> &'static [usize] {
    match cores {
        MatrixInstruction::Mma => &[3, 2],
        MatrixInstruction::Wgmma => &[3],
    }
}

/// The position of word `k` of 8 of column `column` of 16 in the order of mma.sync's fragments: column 4 t + e is column 2 t + e % 2
/// of instruction e / 2. Twin of `fragment_offset`.
fn fragment_offset(column: usize, k: usize) -> usize {
    let lane = (column / 4 * 2 + column % 2) * 4 + k % 4;
    lane * 4 + column / 2 % 2 * 2 + k / 4
}

/// The same in the core matrices of 8 columns by 4 words that wgmma reads: the first four words of 8 columns, the next four of the
/// same columns, then those of the next columns. Twin of `core_matrix_offset` in `kernels/net/warpgroup.cuh`, which names the sources.
fn core_matrix_offset(column: usize, k: usize) -> usize {
    let in_block = column / 4 * 2 + column % 2;
    column / 2 % 2 * 64 + k / 4 * 32 + in_block * 4 + k % 4
}

/// Words of a row in a weight tile. They depend on the device and the layer's inputs alone, since the order of a sum's products must not
/// depend on the batch or the tile.
fn k_tile_words(spec: LayerSpec, limits: Limits) -> usize {
    let words = spec.inputs / spec.element_type.per_word();
    let max = if limits.shared < 96 << 10 { 2 * STEP } else { 4 * STEP };
    let chunks = words.div_ceil(max);
    words.div_ceil(chunks).next_multiple_of(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Limits = Limits { capability: 90, multiprocessors: 132, shared: 227 << 10 };

    fn conv(element_type: ElementType, channels: usize, width: usize) -> LayerSpec {
        let inputs = padded_channels(element_type, channels);
        LayerSpec {
            element_type,
            cores: MatrixInstruction::Mma,
            taps: 9,
            height: 6,
            width,
            inputs,
            outputs: channels,
        }
    }

    /// In bf16 by warpgroups.
    fn by_warpgroups(channels: usize, width: usize) -> LayerSpec {
        LayerSpec { cores: MatrixInstruction::Wgmma, ..conv(ElementType::Bf16, channels, width) }
    }

    #[test]
    fn every_weight_has_a_place_of_its_own() {
        let specs = [(ElementType::Bf16, 20), (ElementType::F32, 70), (ElementType::F16, 200)]
            .map(|(n, c)| conv(n, c, 7));
        let together = [20, 70, 200].map(|channels| by_warpgroups(channels, 7));
        for spec in specs.into_iter().chain(together) {
            let (element_type, channels) = (spec.element_type, spec.outputs);
            let layer = ForwardLayer::new(spec, 42_000, H200).expect("fits");
            let packed = layer.pack(channels, |_, _, _| 1.0);
            let one = element_type.bits(1.0);
            let ones: usize = packed
                .iter()
                .map(|word| {
                    if element_type.per_word() == 2 {
                        usize::from(word & 0xFFFF == one) + usize::from(word >> 16 == one)
                    } else {
                        usize::from(*word == one)
                    }
                })
                .sum();
            assert_eq!(ones, 9 * channels * channels);
        }
    }

    #[test]
    fn two_blocks_fit_a_multiprocessor_where_it_counts() {
        for (channels, width, stages) in [(32, 7, 3), (64, 19, 3), (128, 7, 3), (128, 19, 3), (256, 7, 3)] {
            for spec in [conv(ElementType::Bf16, channels, width), by_warpgroups(channels, width)] {
                let layer = ForwardLayer::new(spec, 1 << 20, H200).expect("fits");
                assert_eq!(layer.stages, stages, "{layer:?}");
                assert!(2 * (layer.shared() + 1024) <= 228 << 10, "{layer:?}");
            }
        }
    }

    /// As the instruction has it: up to 256 columns, a multiple of 8, of which its kernel has all multiples of 16 up to 128.
    #[test]
    fn warpgroups_are_whole_and_their_products_exist() {
        for outputs in 1..=600 {
            for rows in [42, 4_000, 1 << 20] {
                for taps in [1, 9] {
                    let spec = LayerSpec { outputs, taps, ..by_warpgroups(64, 7) };
                    let TileShape { warp_rows, warp_columns, row_tiles, column_tiles } =
                        ForwardLayer::new(spec, rows, H200).expect("fits").tile;
                    assert!(warp_rows % WARPGROUP == 0 && warp_columns == 1, "{outputs} {rows} {taps}");
                    assert!(
                        column_tiles <= 8 && 8 * row_tiles * column_tiles <= 64,
                        "{outputs} {rows} {taps}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_board_fits_every_gpu() {
        for shared in [64, 99, 163, 227] {
            let limits = Limits { shared: shared << 10, ..H200 };
            for element_type in [ElementType::Bf16, ElementType::F32] {
                for channels in [1, 32, 64, 100, 128, 512] {
                    let layer =
                        ForwardLayer::new(conv(element_type, channels, 19), 1 << 20, limits).expect("fits");
                    assert!(layer.shared() <= limits.shared as usize, "{layer:?}");
                }
            }
        }
    }
}
