//! The shape of one layer's kernel: which sums a block of threads makes and in what pieces it fetches its operands. Twin of
//! `kernels/net/layer.cuh`, whose head has the reasons.

use super::numbers::Numbers;
use crate::backend::kernels::device::{LaunchShape, Limits};
use crate::error::{Error, Result};

/// Threads of a warp.
const WARP: usize = 32;
/// Words of a row that one instruction takes.
const STEP: usize = 8;
/// Output channels that are laid out together.
const SIXTEEN: usize = 16;

/// A layer, as a network needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSpec {
    /// Number format of input and weights.
    pub numbers: Numbers,
    /// 9 for a 3x3 convolution with zeros around the board, 1 for a 1x1 convolution or, on boards of one square, a linear layer.
    pub taps: usize,
    /// Lines of the board.
    pub height: usize,
    /// Squares of a line.
    pub width: usize,
    /// Numbers of an input square as it lies in memory, a multiple of 4 words.
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

/// Numbers of a square of `channels` channels as it lies in memory: whole units of 4 words.
pub fn row_numbers(numbers: Numbers, channels: usize) -> usize {
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
                // Two blocks to a multiprocessor where that can be, else one.
                let roomy = [3, 2]
                    .map(of)
                    .into_iter()
                    .find(|layer| 2 * layer.shared() + 4096 <= limits.shared as usize);
                roomy.or([3, 2].map(of).into_iter().find(|layer| layer.shared() <= limits.shared as usize))
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
        ];
        numbers.map(|x| x.to_string()).join(",")
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

    /// Bytes of shared memory of a block: zeros, inputs, weights.
    fn shared(&self) -> usize {
        let conv = self.spec.taps == 9;
        let halo = if conv { self.spec.width + 1 } else { 0 };
        let pitch = 4 * self.chunk_words + 16;
        let inputs = match (conv, self.chunks()) {
            (false, _) => self.stages,
            (true, 1) => 1,
            (true, _) => 2,
        };
        8 * pitch + inputs * (self.tile.rows() + 2 * halo) * pitch + self.stages * self.slab_words() * 4
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
        // Column 4 t + e of 16 is column 2 t + e % 2 of the (e / 2)th instruction.
        let lane = (within / 4 * 2 + within % 2) * 4 + k % 4;
        let slab = (block * self.chunks() + chunk) * self.spec.taps + tap;
        let place = slab * self.slab_words() + (step * sixteens + sixteen) * 128 + lane * 4;
        (place + within / 2 % 2 * 2 + k / 4, part)
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

    /// Numbers by channel, with zeros for the channels that fill the last block.
    pub fn by_channel(&self, numbers: &[f32]) -> Vec<f32> {
        let mut all = numbers.to_vec();
        all.resize(self.columns(), 0.0);
        all
    }
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
    let tile = |warp_rows, warp_columns, row_tiles, column_tiles| {
        let tile = Tile { warp_rows, warp_columns, row_tiles, column_tiles };
        (tile, sixteens.div_ceil(tile.sixteens()))
    };
    let large = if sixteens > 4 {
        // Two warps side by side, as wide as leaves the fewest channels empty.
        let blocks = sixteens.div_ceil(8);
        let column_tiles = sixteens.div_ceil(blocks).div_ceil(2);
        vec![tile(2, 2, 4, column_tiles)]
    } else if spec.taps == 9 {
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

    fn conv(numbers: Numbers, channels: usize, width: usize) -> LayerSpec {
        let inputs = row_numbers(numbers, channels);
        LayerSpec { numbers, taps: 9, height: 6, width, inputs, outputs: channels }
    }

    #[test]
    fn every_weight_has_a_place_of_its_own() {
        for (numbers, channels) in [(Numbers::Bf16, 20), (Numbers::F32, 70), (Numbers::F16, 200)] {
            let layer = Layer::new(conv(numbers, channels, 7), 42_000, H200).expect("fits");
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
            let layer = Layer::new(conv(Numbers::Bf16, channels, width), 1 << 20, H200).expect("fits");
            assert_eq!(layer.stages, stages, "{layer:?}");
            assert!(2 * (layer.shared() + 1024) <= 228 << 10, "{layer:?}");
        }
    }

    #[test]
    fn every_board_fits_every_gpu() {
        for shared in [64, 99, 163, 227] {
            let limits = Limits { shared: shared << 10, ..H200 };
            for numbers in [Numbers::Bf16, Numbers::F32] {
                for channels in [1, 32, 64, 100, 128, 512] {
                    let layer = Layer::new(conv(numbers, channels, 19), 1 << 20, limits).expect("fits");
                    assert!(layer.shared() <= limits.shared as usize, "{layer:?}");
                }
            }
        }
    }
}
