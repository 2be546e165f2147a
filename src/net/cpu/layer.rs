//! One layer, packed for the kernels, and its run over a chunk of boards.

use super::board::Runs;
use super::format::WeightFormat;
use super::kernels::Kernels;
use super::tile::{CHANNEL_BLOCK, Epilogue, TileColumns};
use crate::model::folded::{Affine, FoldedLayer};
use crate::net::number::{bf16_high, bf16_low, bf16_pair, bf16_rounded};
use crate::net::register_tile::BLOCK;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// A cache line of 16 words.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct CacheLine([f32; 16]);

/// Words of a [`CacheLine`].
pub(super) const LINE: usize = 16;

/// A vector of `words` zeros on cache lines.
pub(super) fn lines(words: usize) -> Vec<CacheLine> {
    vec![CacheLine::zeroed(); words.div_ceil(LINE)]
}

/// The weights of a layer before packing.
pub(super) struct UnpackedLayer<'a> {
    pub outputs: usize,
    /// Channels of a row as written: `outputs` or more, the others 0.
    pub width: usize,
    pub taps: usize,
    pub inputs: usize,
    /// Weight of (output, tap, input).
    pub weight: Box<dyn Fn(usize, usize, usize) -> f32 + 'a>,
    /// Zeros where the epilogue is ResidualAddBnRelu, which adds no bias. `[outputs]`
    pub bias: Vec<f32>,
    /// The BatchNorm after the residual stream (StemBnRelu, ResidualAddBnRelu).
    pub norm: Option<Affine>,
    pub epilogue: Epilogue,
    /// Dequantisation scales of byte activations, as read and as written; 1 in the float formats.
    pub steps: [f32; 2],
}

impl<'a> UnpackedLayer<'a> {
    /// The weights of `layer`, which writes rows of its outputs.
    pub(super) fn of(layer: &'a FoldedLayer, epilogue: Epilogue) -> Self {
        Self {
            outputs: layer.outputs,
            width: layer.outputs,
            taps: layer.taps,
            inputs: layer.inputs,
            weight: Box::new(|output, tap, input| layer.weight(output, tap, input)),
            bias: layer.bias.clone(),
            norm: None,
            epilogue,
            steps: [1.0; 2],
        }
    }

    /// The same with the padding of its rows as outputs of weight 0.
    pub(super) fn with_padding(self) -> Self {
        let Self { outputs, width, weight, mut bias, .. } = self;
        bias.resize(width, 0.0);
        let padded =
            move |output, tap, input| if output < outputs { weight(output, tap, input) } else { 0.0 };
        Self { outputs: width, weight: Box::new(padded), bias, ..self }
    }

    /// Steps of the weights as bytes: an output's largest weight is 127.
    fn weight_steps(&self) -> Vec<f32> {
        let largest = |output: usize| {
            let taps = (0..self.taps).flat_map(|tap| (0..self.inputs).map(move |input| (tap, input)));
            taps.map(|(tap, input)| (self.weight)(output, tap, input).abs()).fold(0.0, f32::max)
        };
        (0..self.outputs).map(|output| (largest(output) / 127.0).max(f32::MIN_POSITIVE)).collect()
    }
}

/// A layer ready to run.
pub(super) struct PackedLayer {
    pub(super) kernels: &'static Kernels,
    pub(super) runs: Runs,
    pub(super) epilogue: Epilogue,
    pub(super) outputs: usize,
    pub(super) vectors: usize,
    /// Units of a tap.
    depth: usize,
    /// Words of a full weight block.
    block: usize,
    weights: Vec<CacheLine>, // units [blocks, taps, depth and first sums, BLOCK, lanes]
    bias: Vec<CacheLine>,    // f32 [vectors, lanes]
    dequant_scale: Vec<CacheLine>, // f32 [vectors, lanes]
    scale: Vec<CacheLine>,   // f32 [vectors, lanes]
    offset: Vec<CacheLine>,  // f32 [vectors, lanes]
}

/// The layout of an array of `boards` rows per position, each made of channel blocks: its start, and the words from one position, row
/// and channel block to the next.
#[derive(Clone, Copy)]
pub(super) struct RowLayout {
    pub start: *mut f32,
    pub position: usize,
    pub row: usize,
    pub block_stride: usize,
}

/// Lays out rows in an array; the arguments are the array, the number of boards and the words of a row.
pub(super) type RowPlacement = fn(&mut [f32], usize, usize) -> RowLayout;

impl RowLayout {
    /// No rows.
    pub(super) const NONE: Self = Self { start: std::ptr::null_mut(), position: 0, row: 0, block_stride: 0 };

    /// Row after row of `row` words.
    pub(super) fn whole(array: &mut [f32], boards: usize, row: usize) -> Self {
        Self { start: array.as_mut_ptr(), position: boards * row, row, block_stride: CHANNEL_BLOCK }
    }

    /// True in the blocked layout.
    pub(super) fn is_blocked(&self) -> bool {
        self.row == CHANNEL_BLOCK && self.block_stride != CHANNEL_BLOCK
    }

    /// The blocked layout: the first channel blocks of all rows of a position, then the second ones, so that matrices are contiguous.
    pub(super) fn blocked(array: &mut [f32], boards: usize, row: usize) -> Self {
        Self {
            start: array.as_mut_ptr(),
            position: boards * row,
            row: CHANNEL_BLOCK,
            block_stride: boards * CHANNEL_BLOCK,
        }
    }
}

/// The arrays that a layer reads and writes. Stream and out may not overlap the source. `ends` holds the message of every vertex
/// (VertexAddRelu); a vertex is a position there.
#[derive(Clone, Copy)]
pub(super) struct Buffers {
    pub source: RowLayout,
    pub stream: RowLayout,
    pub out: RowLayout,
    pub ends: RowLayout,
}

impl PackedLayer {
    /// Packs `unpacked`.
    pub(super) fn new(kernels: &'static Kernels, runs: Runs, unpacked: &UnpackedLayer<'_>) -> Self {
        let has_bias = unpacked.bias.iter().any(|x| *x != 0.0);
        assert!(
            !(has_bias && unpacked.epilogue == Epilogue::ResidualAddBnRelu),
            "a layer with ResidualAddBnRelu has a bias, which belongs in the next BatchNorm"
        );
        let vectors = unpacked.width.div_ceil(kernels.lanes);
        let depth = unpacked.inputs.div_ceil(kernels.unit).next_multiple_of(kernels.units());
        let weight_steps =
            if kernels.unit == 4 { unpacked.weight_steps() } else { vec![1.0; unpacked.outputs] };
        let [source, out] = unpacked.steps;
        // Activations are stored in units of the output's quantisation step.
        let inner = if unpacked.epilogue == Epilogue::BiasRelu { out } else { 1.0 };
        let divided = |numbers: &[f32], by: f32| numbers.iter().map(|x| x / by).collect::<Vec<f32>>();
        let padded = |numbers: &[f32]| padded(numbers, vectors * kernels.lanes);
        let affine =
            |part: fn(&Affine) -> &[f32]| padded(&divided(unpacked.norm.as_ref().map_or(&[], part), out));
        let dequant_scale: Vec<f32> = weight_steps.iter().map(|step| step * source / inner).collect();
        Self {
            kernels,
            runs,
            epilogue: unpacked.epilogue,
            outputs: unpacked.outputs,
            vectors,
            depth,
            block: unpacked.taps * kernels.tap_words(depth) * BLOCK,
            weights: pack(kernels, unpacked, &weight_steps, depth),
            bias: padded(&divided(&unpacked.bias, inner)),
            dequant_scale: padded(&dequant_scale),
            scale: affine(|a| &a.scale),
            offset: affine(|a| &a.offset),
        }
    }

    /// The operands common to the tiles from vector `vector` on.
    pub(super) fn columns(&self, boards: usize, buffers: &Buffers, vector: usize) -> TileColumns {
        let lane = vector * self.kernels.lanes;
        let from = |numbers: &[CacheLine]| words(numbers).wrapping_add(lane);
        TileColumns {
            depth: self.depth,
            x_block_stride: buffers.source.block_stride,
            x_position: buffers.source.position as isize,
            weights: words(&self.weights).wrapping_add(vector / BLOCK * self.block),
            block: self.block,
            block_vectors: BLOCK.min(self.vectors.saturating_sub(vector)),
            bias: from(&self.bias),
            dequant_scale: from(&self.dequant_scale),
            scale: from(&self.scale),
            offset: from(&self.offset),
            stream_block_stride: buffers.stream.block_stride,
            out_block_stride: buffers.out.block_stride,
            end_row: buffers.ends.row,
            boards,
            valid: self.outputs.saturating_sub(lane),
            epilogue: self.epilogue,
        }
    }
}

fn words(lines: &[CacheLine]) -> *const f32 {
    lines.as_ptr().cast()
}

/// `numbers` padded with zeros to `len` elements and to whole lines.
fn padded(numbers: &[f32], len: usize) -> Vec<CacheLine> {
    let mut out = lines(len);
    bytemuck::cast_slice_mut::<CacheLine, f32>(&mut out)[..numbers.len()].copy_from_slice(numbers);
    out
}

/// `[block, tap, matrix of units, vector of the block, unit, lane]` units, absent outputs and inputs 0. A matrix is a single
/// unit for kernels that do not multiply any; in the format of pairs it has two units, `[lane, unit]`. After the units of a tap come its
/// first sums, for kernels that have any.
fn pack(kernels: &Kernels, unpacked: &UnpackedLayer<'_>, steps: &[f32], depth: usize) -> Vec<CacheLine> {
    let vectors = unpacked.width.div_ceil(kernels.lanes);
    let mut out = lines(unpacked.taps * kernels.tap_words(depth) * vectors);
    let mut words = bytemuck::cast_slice_mut::<CacheLine, f32>(&mut out).iter_mut();
    let mut write = |outputs: Range<usize>, word: &dyn Fn(usize) -> f32| {
        for (output, to) in outputs.zip(words.by_ref()) {
            if output < unpacked.outputs {
                *to = word(output);
            }
        }
    };
    let weights = WeightUnits { unpacked, unit: kernels.unit, steps };
    for first in (0..vectors).step_by(BLOCK) {
        let block = first..vectors.min(first + BLOCK);
        for tap in 0..unpacked.taps {
            for k in (0..depth).step_by(kernels.matrix_units()) {
                for vector in block.clone() {
                    let lanes = vector * kernels.lanes..(vector + 1) * kernels.lanes;
                    let units = k..k + kernels.matrix_units();
                    match kernels.weights {
                        WeightFormat::Units | WeightFormat::SignedBytes => {
                            units.for_each(|k| write(lanes.clone(), &|output| weights.unit(output, tap, k)))
                        }
                        WeightFormat::Rounded => units.for_each(|k| {
                            write(lanes.clone(), &|output| bf16_rounded(weights.unit(output, tap, k)));
                        }),
                        WeightFormat::HighLow => units.for_each(|k| {
                            write(lanes.clone(), &|output| bf16_high(weights.unit(output, tap, k)));
                            write(lanes.clone(), &|output| bf16_low(weights.unit(output, tap, k)));
                        }),
                        WeightFormat::Pairs => lanes.for_each(|output| {
                            units
                                .clone()
                                .for_each(|k| write(output..output + 1, &|o| weights.unit(o, tap, k)));
                        }),
                    }
                }
            }
            if kernels.weights == WeightFormat::SignedBytes {
                let outputs = block.start * kernels.lanes..block.end * kernels.lanes;
                write(outputs, &|output| weights.first_sum(output, tap));
            }
        }
    }
    out
}

/// The weights of a layer as the kernels multiply them.
struct WeightUnits<'a> {
    unpacked: &'a UnpackedLayer<'a>,
    /// Numbers of a unit.
    unit: usize,
    /// Of the outputs' weights as bytes. `[outputs]`
    steps: &'a [f32],
}

impl WeightUnits<'_> {
    /// Unit k of an output's tap.
    fn unit(&self, output: usize, tap: usize, k: usize) -> f32 {
        let number = |part: usize| self.number(output, tap, k * self.unit + part);
        match self.unit {
            1 => number(0),
            2 => bf16_pair(number(0), number(1)),
            _ => f32::from_le_bytes([0, 1, 2, 3].map(|part| self.byte(output, number(part)) as u8)),
        }
    }

    /// The weight of an input, 0 for one that is absent.
    fn number(&self, output: usize, tap: usize, input: usize) -> f32 {
        if input < self.unpacked.inputs { (self.unpacked.weight)(output, tap, input) } else { 0.0 }
    }

    fn byte(&self, output: usize, weight: f32) -> i8 {
        (weight / self.steps[output]).round().clamp(-127.0, 127.0) as i8
    }

    /// What the sum of an output's tap lacks if 128 is subtracted from every activation, an integer.
    fn first_sum(&self, output: usize, tap: usize) -> f32 {
        let bytes = (0..self.unpacked.inputs).map(|input| self.byte(output, self.number(output, tap, input)));
        f32::from_bits((128 * bytes.map(i32::from).sum::<i32>()).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::bf16;
    use super::*;

    /// Without instructions for bf16 weights are bf16 in words of f32, and rows have an even number of inputs.
    #[test]
    fn weights_are_rounded_to_bf16() {
        let weight = |output: usize, tap: usize, input: usize| 0.1 + (7 * output + 3 * tap + input) as f32;
        let unpacked = UnpackedLayer {
            outputs: 3,
            width: 3,
            taps: 2,
            inputs: 3,
            weight: Box::new(weight),
            bias: vec![0.0; 3],
            norm: None,
            epilogue: Epilogue::BiasF32,
            steps: [1.0; 2],
        };
        let layer = PackedLayer::new(&bf16::PORTABLE, Runs::dense(2), &unpacked);
        let words: &[f32] = bytemuck::cast_slice(&layer.weights);
        let (lanes, depth) = (layer.kernels.lanes, 4);
        for (at, word) in words[..2 * depth * lanes].iter().enumerate() {
            let (lane, unit, tap) = (at % lanes, at / lanes % depth, at / lanes / depth);
            let expected = if lane < 3 && unit < 3 { bf16_rounded(weight(lane, tap, unit)) } else { 0.0 };
            assert_eq!(word.to_bits(), expected.to_bits(), "output {lane}, tap {tap}, input {unit}");
        }
    }
}
