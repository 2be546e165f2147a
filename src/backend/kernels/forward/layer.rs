//! The shape of one layer's kernel: which sums a block of threads makes and in what pieces it fetches its operands. Twin of
//! `kernels/net/layer.cuh`, whose head has the reasons.

use super::element_type::ElementType;
use crate::backend::kernels::device::{LaunchShape, Limits};
use crate::config::TensorCores;
use crate::error::{Error, Result};

/// Threads of a warp.
const WARP: usize = 32;
/// Warps of a warpgroup, which make a product together by wgmma.
const WARPGROUP: usize = 4;
/// Words of a row that one instruction takes.
const STEP: usize = 8;
/// Output channels that are laid out together.
const SIXTEEN: usize = 16;

/// A layer, as a network needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSpec {
    /// Number format of input and weights.
    pub numbers: ElementType,
    /// What multiplies them.
    pub cores: TensorCores,
    /// 9 for a 3x3 convolution with zeros around the board, 1 for a 1x1 convolution or, on boards of one square, a linear layer.
    pub taps: usize,
    /// Lines of the board.
    pub height: usize,
    /// Squares of a line.
    pub width: usize,
    /// ElementType of an input square as it lies in memory, a multiple of 4 words.
    pub inputs: usize,
    /// Output channels.
    pub outputs: usize,
}

/// A layer's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// What it computes.
    pub spec: LayerSpec,
    /// Words of an input square in one slab of weights.
    chunk_words: usize,
    tile: Tile,
    column_blocks: usize,
    stages: usize,
}

/// Warps of a block and what one of them takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    warp_rows: usize,
    warp_columns: usize,
    /// 16 rows each.
    row_tiles: usize,
    /// 16 channels each.
    column_tiles: usize,
}

impl Tile {
    fn rows(self) -> usize {
        16 * self.warp_rows * self.row_tiles
    }

    fn sixteens(self) -> usize {
        self.warp_columns * self.column_tiles
    }
}

/// ElementType of a square of `channels` channels as it lies in memory: whole units of 4 words.
pub fn row_numbers(numbers: ElementType, channels: usize) -> usize {
    channels.next_multiple_of(4 * numbers.per_word())
}

impl Layer {
    /// The kernel of `spec` for `rows` squares of all boards together.
    ///
    /// Blocks are as large as leaves one for every multiprocessor, or the smallest there are.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the device has too little shared memory for boards so wide.
    pub fn new(spec: LayerSpec, rows: usize, limits: Limits) -> Result<Self> {
        let fitting: Vec<Self> = tiles(spec)
            .into_iter()
            .filter_map(|(tile, column_blocks)| {
                let chunk_words = chunk_words(spec, limits);
                let of = |stages| Self { spec, chunk_words, tile, column_blocks, stages };
                let layers = || slabs_in_flight(spec.cores).iter().copied().map(of);
                // Two blocks to a multiprocessor where that can be, else one.
                let roomy = layers().find(|layer| 2 * layer.shared() + 4096 <= limits.shared as usize);
                roomy.or(layers().find(|layer| layer.shared() <= limits.shared as usize))
            })
            .collect();
        let filling = fitting.iter().find(|layer| layer.blocks(rows) >= limits.multiprocessors as usize);
        filling.or(fitting.last()).copied().ok_or_else(|| {
            let what = format!("a {} x {} board on this GPU", spec.height, spec.width);
            let why = format!("{} bytes of shared memory a block are too few", limits.shared);
            Error::unsupported(what, why)
        })
    }

    /// The constants that the kernel's `Layer` takes after its number format.
    pub fn constants(&self) -> String {
        let Self { spec, chunk_words, tile, column_blocks, stages } = *self;
        let numbers = [
            spec.taps,
            spec.height,
            spec.width,
            self.row_words(),
            chunk_words,
            self.chunks(),
            tile.warp_rows,
            tile.warp_columns,
            tile.row_tiles,
            tile.column_tiles,
            column_blocks,
            stages,
            self.warps_together(),
        ];
        numbers.map(|x| x.to_string()).join(",")
    }

    /// Warps that make a product.
    fn warps_together(&self) -> usize {
        match self.spec.cores {
            TensorCores::Mma => 1,
            TensorCores::Wgmma => WARPGROUP,
        }
    }

    /// Words of an input square.
    fn row_words(&self) -> usize {
        self.spec.inputs / self.spec.numbers.per_word()
    }

    fn chunks(&self) -> usize {
        self.row_words().div_ceil(self.chunk_words)
    }

    /// Blocks of threads for `rows` squares.
    fn blocks(&self, rows: usize) -> usize {
        rows.div_ceil(self.tile.rows()) * self.column_blocks
    }

    /// How the kernel is launched for `rows` squares.
    pub fn launch_shape(&self, rows: usize) -> LaunchShape {
        let Tile { warp_rows, warp_columns, .. } = self.tile;
        let block = WARP * warp_rows * warp_columns;
        LaunchShape { grid: self.blocks(rows) as u32, block: block as u32, shared: self.shared() as u32 }
    }

    /// Bytes of shared memory of a block: zeros, inputs, weights, and by warpgroups where they hear of weights.
    fn shared(&self) -> usize {
        let conv = self.spec.taps == 9;
        let halo = if conv { self.spec.width + 1 } else { 0 };
        let pitch = 4 * self.chunk_words + 16;
        let inputs = match (conv, self.chunks()) {
            (false, _) => self.stages,
            (true, 1) => 1,
            (true, _) => 2,
        };
        let arrivals = match self.spec.cores {
            TensorCores::Mma => 0,
            TensorCores::Wgmma => 8 * self.stages,
        };
        8 * pitch
            + inputs * (self.tile.rows() + 2 * halo) * pitch
            + self.stages * self.slab_words() * 4
            + arrivals
    }

    /// Words of the weights of one tap and chunk for a block.
    fn slab_words(&self) -> usize {
        self.chunk_words * self.tile.sixteens() * SIXTEEN
    }

    /// Output channels with those that only fill the last block.
    pub fn columns(&self) -> usize {
        self.column_blocks * self.tile.sixteens() * SIXTEEN
    }

    /// Words of the packed weights.
    pub fn weight_words(&self) -> usize {
        self.column_blocks * self.chunks() * self.spec.taps * self.slab_words()
    }

    /// The word of the packed weights, and the number in it, of output channel `output`, tap `tap`, input channel `input`.
    /// Twin of `weight_place`.
    pub fn place(&self, output: usize, tap: usize, input: usize) -> (usize, usize) {
        let per_word = self.spec.numbers.per_word();
        let (word, part) = (input / per_word, input % per_word);
        let sixteens = self.tile.sixteens();
        let (block, sixteen, within) =
            (output / (SIXTEEN * sixteens), output / SIXTEEN % sixteens, output % SIXTEEN);
        let (chunk, step, k) = (word / self.chunk_words, word % self.chunk_words / STEP, word % STEP);
        let place = match self.spec.cores {
            TensorCores::Mma => place_in_fragments(within, k),
            TensorCores::Wgmma => place_in_blocks(within, k),
        };
        let slab = (block * self.chunks() + chunk) * self.spec.taps + tap;
        (slab * self.slab_words() + (step * sixteens + sixteen) * 128 + place, part)
    }

    /// The packed weights; `weight(output, tap, input)` for input channels up to `inputs`, 0 past them.
    pub fn pack(&self, inputs: usize, weight: impl Fn(usize, usize, usize) -> f32) -> Vec<u32> {
        let numbers = self.spec.numbers;
        let mut words = vec![0u32; self.weight_words()];
        for output in 0..self.spec.outputs {
            for tap in 0..self.spec.taps {
                for input in 0..inputs {
                    let (word, part) = self.place(output, tap, input);
                    words[word] |= numbers.bits(weight(output, tap, input)) << (16 * part);
                }
            }
        }
        words
    }

    /// ElementType by channel, with zeros for the channels that fill the last block.
    pub fn by_channel(&self, numbers: &[f32]) -> Vec<f32> {
        let mut all = numbers.to_vec();
        all.resize(self.columns(), 0.0);
        all
    }
}

/// Slabs of weights that may be in shared memory. Warpgroups need three: a barrier is then between asking for one and waiting for it.
fn slabs_in_flight(cores: TensorCores) -> &'static [usize] {
    match cores {
        TensorCores::Mma => &[3, 2],
        TensorCores::Wgmma => &[3],
    }
}

/// Where word `k` of 8 of column `column` of 16 lies in the order of mma.sync's fragments: column 4 t + e is column 2 t + e % 2 of the
/// (e / 2)th instruction. Twin of `place_in_fragments`.
fn place_in_fragments(column: usize, k: usize) -> usize {
    let lane = (column / 4 * 2 + column % 2) * 4 + k % 4;
    lane * 4 + column / 2 % 2 * 2 + k / 4
}

/// The same in the blocks of 8 columns by 4 words that wgmma reads, the first four words of 8 columns, the next of the same columns, then
/// those of the next columns. Twin of `place_in_blocks` in `kernels/net/warpgroup.cuh`, which has the sources.
fn place_in_blocks(column: usize, k: usize) -> usize {
    let in_block = column / 4 * 2 + column % 2;
    column / 2 % 2 * 64 + k / 4 * 32 + in_block * 4 + k % 4
}

/// Words of a row in a slab. It depends on the device and the layer's inputs alone: the order of a sum's products must not
/// depend on the batch.
fn chunk_words(spec: LayerSpec, limits: Limits) -> usize {
    let words = spec.inputs / spec.numbers.per_word();
    let most = if limits.shared < 96 << 10 { 2 * STEP } else { 4 * STEP };
    let chunks = words.div_ceil(most);
    words.div_ceil(chunks).next_multiple_of(STEP)
}

/// Tiles for `spec` with how many of them lie side by side, those with most sums first.
fn tiles(spec: LayerSpec) -> Vec<(Tile, usize)> {
    let sixteens = spec.outputs.div_ceil(SIXTEEN);
    let all = match spec.cores {
        TensorCores::Mma => tiles_of_warps(spec.taps, sixteens),
        TensorCores::Wgmma => tiles_of_warpgroups(spec.taps, sixteens),
    };
    all.into_iter().map(|tile| (tile, sixteens.div_ceil(tile.sixteens()))).collect()
}

/// Those whose products warpgroups make, each of all columns of the block: two of them, or one where blocks are to be many. A thread
/// has 64 sums at most, so that two blocks fit a multiprocessor.
fn tiles_of_warpgroups(taps: usize, sixteens: usize) -> Vec<Tile> {
    let tile = |warpgroups, row_tiles, column_tiles| Tile {
        warp_rows: WARPGROUP * warpgroups,
        warp_columns: 1,
        row_tiles,
        column_tiles,
    };
    let large = if sixteens > 4 {
        let blocks = sixteens.div_ceil(8);
        vec![tile(2, 1, sixteens.div_ceil(blocks))]
    } else if taps == 9 {
        vec![tile(2, 2, sixteens), tile(2, 1, sixteens)]
    } else {
        vec![tile(2, 1, sixteens)]
    };
    let narrow = sixteens.min(4);
    let small = [tile(1, 1, narrow), tile(1, 1, narrow.min(2)), tile(1, 1, 1)];
    large.into_iter().chain(small).collect()
}

/// Those whose products warps make by themselves.
fn tiles_of_warps(taps: usize, sixteens: usize) -> Vec<Tile> {
    let tile = |warp_rows, warp_columns, row_tiles, column_tiles| Tile {
        warp_rows,
        warp_columns,
        row_tiles,
        column_tiles,
    };
    let large = if sixteens > 4 {
        // Two warps side by side, as wide as leaves the fewest channels empty.
        let blocks = sixteens.div_ceil(8);
        let column_tiles = sixteens.div_ceil(blocks).div_ceil(2);
        vec![tile(2, 2, 4, column_tiles)]
    } else if taps == 9 {
        vec![tile(4, 1, 4, sixteens), tile(2, 1, 4, sixteens)]
    } else {
        vec![tile(4, 1, 2, sixteens)]
    };
    let narrow = sixteens.min(4);
    let small = [tile(2, 1, 2, narrow), tile(2, 1, 1, narrow.min(2)), tile(1, 1, 1, 1)];
    large.into_iter().chain(small).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Limits = Limits { capability: 90, multiprocessors: 132, shared: 227 << 10 };

    fn conv(numbers: ElementType, channels: usize, width: usize) -> LayerSpec {
        let inputs = row_numbers(numbers, channels);
        LayerSpec { numbers, cores: TensorCores::Mma, taps: 9, height: 6, width, inputs, outputs: channels }
    }

    /// In bf16 by warpgroups.
    fn by_warpgroups(channels: usize, width: usize) -> LayerSpec {
        LayerSpec { cores: TensorCores::Wgmma, ..conv(ElementType::Bf16, channels, width) }
    }

    #[test]
    fn every_weight_has_a_place_of_its_own() {
        let specs = [(ElementType::Bf16, 20), (ElementType::F32, 70), (ElementType::F16, 200)]
            .map(|(n, c)| conv(n, c, 7));
        let together = [20, 70, 200].map(|channels| by_warpgroups(channels, 7));
        for spec in specs.into_iter().chain(together) {
            let (numbers, channels) = (spec.numbers, spec.outputs);
            let layer = Layer::new(spec, 42_000, H200).expect("fits");
            let packed = layer.pack(channels, |_, _, _| 1.0);
            let one = numbers.bits(1.0);
            let ones: usize = packed
                .iter()
                .map(|word| {
                    if numbers.per_word() == 2 {
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
                let layer = Layer::new(spec, 1 << 20, H200).expect("fits");
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
                    let Tile { warp_rows, warp_columns, row_tiles, column_tiles } =
                        Layer::new(spec, rows, H200).expect("fits").tile;
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
            for numbers in [ElementType::Bf16, ElementType::F32] {
                for channels in [1, 32, 64, 100, 128, 512] {
                    let layer = Layer::new(conv(numbers, channels, 19), 1 << 20, limits).expect("fits");
                    assert!(layer.shared() <= limits.shared as usize, "{layer:?}");
                }
            }
        }
    }
}
