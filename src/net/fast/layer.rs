//! One layer, packed for the kernels, and its run over a chunk of boards.

use super::board::Runs;
use super::observe::bf16_pair;
use super::tile::{BLOCK, Epilogue, Kernels, Tile};
use crate::error::Result;
use crate::net::fold::{Affine, check_folded};
use bytemuck::{Pod, Zeroable};

/// 16 words on a cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([f32; 16]);

/// Numbers of a [`Line`].
pub(super) const LINE: usize = 16;

/// A vector of `words` zeros on cache lines.
pub(super) fn lines(words: usize) -> Vec<Line> {
    vec![Line::zeroed(); words.div_ceil(LINE)]
}

/// Weights as numbers, before packing.
pub(super) struct Dense<'a> {
    pub outputs: usize,
    /// Channels of a row as written: `outputs` or more, the others 0.
    pub width: usize,
    pub taps: usize,
    pub inputs: usize,
    /// Weight of (output, tap, input).
    pub weight: &'a dyn Fn(usize, usize, usize) -> f32,
    pub bias: Vec<f32>,
    /// The BatchNorm after the residual stream (Enter, Leave).
    pub norm: Option<Affine>,
    pub epilogue: Epilogue,
    /// What one step of a byte activation is worth, as read and as written; 1 in the float formats.
    pub steps: [f32; 2],
}

impl Dense<'_> {
    /// Refuses weights that folding BatchNorm in has made infinite.
    fn check(&self) -> Result<()> {
        let inputs = |output, tap| (0..self.inputs).map(move |input| (self.weight)(output, tap, input));
        let outputs = (0..self.outputs).flat_map(|output| (0..self.taps).map(move |tap| (output, tap)));
        let weights = outputs.flat_map(|(output, tap)| inputs(output, tap));
        check_folded(weights.chain(self.bias.iter().copied()))
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
pub(super) struct Layer {
    kernels: &'static Kernels,
    runs: Runs,
    epilogue: Epilogue,
    outputs: usize,
    vectors: usize,
    /// Units of a tap.
    depth: usize,
    /// Words of a full weight block.
    block: usize,
    weights: Vec<Line>,
    bias: Vec<Line>,
    worth: Vec<Line>,
    scale: Vec<Line>,
    offset: Vec<Line>,
}

/// `boards` rows of one array per position: a pointer to the first, and the words of a row.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub start: *mut f32,
    pub row: usize,
}

impl Rows {
    /// No rows.
    pub(super) const NONE: Self = Self { start: std::ptr::null_mut(), row: 0 };
}

/// Where a layer reads and writes. Stream and out may not overlap the source. `ends` is what every vertex sends (Meet), a
/// vertex being a position.
#[derive(Clone, Copy)]
pub(super) struct Buffers {
    pub source: Rows,
    pub stream: Rows,
    pub out: Rows,
    pub ends: Rows,
}

impl Layer {
    /// Packs `dense`.
    ///
    /// # Errors
    /// [`Error::NotFinite`].
    pub(super) fn new(kernels: &'static Kernels, runs: Runs, dense: &Dense<'_>) -> Result<Self> {
        dense.check()?;
        let vectors = dense.width.div_ceil(kernels.lanes);
        let depth = dense.inputs.div_ceil(kernels.unit).next_multiple_of(kernels.units());
        let weight_steps = if kernels.unit == 4 { dense.weight_steps() } else { vec![1.0; dense.outputs] };
        let [source, out] = dense.steps;
        // What leaves the layer as activations is counted in their steps.
        let inner = if dense.epilogue == Epilogue::Inner { out } else { 1.0 };
        let divided = |numbers: &[f32], by: f32| numbers.iter().map(|x| x / by).collect::<Vec<f32>>();
        let padded = |numbers: &[f32]| padded(numbers, vectors * kernels.lanes);
        let affine =
            |part: fn(&Affine) -> &[f32]| padded(&divided(dense.norm.as_ref().map_or(&[], part), out));
        let worth: Vec<f32> = weight_steps.iter().map(|step| step * source / inner).collect();
        Ok(Self {
            kernels,
            runs,
            epilogue: dense.epilogue,
            outputs: dense.outputs,
            vectors,
            depth,
            block: dense.taps * depth * BLOCK * kernels.lanes,
            weights: pack(kernels, dense, &weight_steps, depth),
            bias: padded(&divided(&dense.bias, inner)),
            worth: padded(&worth),
            scale: affine(|a| &a.scale),
            offset: affine(|a| &a.offset),
        })
    }

    /// Numbers that the layer multiplies for one board: taps on the board only, no padding.
    pub(super) fn products(&self, inputs: usize) -> usize {
        self.runs.many.iter().map(|run| run.count * run.taps.len()).sum::<usize>() * inputs * self.outputs
    }

    /// Runs the layer on a chunk.
    ///
    /// # Safety
    /// The machine has the kernels' instructions. `source`, `stream` and `out` hold `boards` rows for each position of
    /// the layer's input and output: source rows of `depth` units, and after them as many more as [`Kernels::matrices`]
    /// may read, stream rows of whole vectors, out rows of whole vectors of activations or numbers (Output: of `outputs`
    /// numbers); `ends` rows of whole vectors for every vertex (Meet). Writes do not overlap the source.
    pub(super) unsafe fn run(&self, boards: usize, buffers: Buffers) {
        let Buffers { source, stream, out, ends } = buffers;
        let base = Tile {
            taps: &[],
            depth: self.depth,
            x: source.start,
            x_row: source.row,
            x_position: (boards * source.row) as isize,
            weights: words(&self.weights),
            block: self.block,
            block_vectors: BLOCK,
            bias: words(&self.bias),
            worth: words(&self.worth),
            scale: words(&self.scale),
            offset: words(&self.offset),
            stream: stream.start,
            stream_row: stream.row,
            moving: ends.start,
            staying: ends.start,
            end_row: ends.row,
            board: 0,
            boards,
            out: out.start,
            out_row: out.row,
            valid: self.outputs,
            rows: 0,
            epilogue: self.epilogue,
        };
        for run in self.runs.of(boards) {
            let first = run.first * boards;
            // SAFETY: the run's rows lie inside the arrays, by the caller's promise; steps over positions are rows where
            // there is one board.
            unsafe {
                let tile = Tile {
                    taps: &run.taps,
                    x: base.x.add(first * base.x_row),
                    x_row: base.x_row * run.step,
                    stream: base.stream.add(first * base.stream_row),
                    stream_row: base.stream_row * run.step,
                    moving: base.moving.add(run.ends[1] * boards * base.end_row),
                    staying: base.staying.add(run.ends[0] * boards * base.end_row),
                    out: base.out.add(first * base.out_row),
                    out_row: base.out_row * run.step,
                    ..base
                };
                self.rows(&tile, run.count * boards);
            }
        }
    }

    /// `count` rows from the one that `base` points at, all output channels.
    unsafe fn rows(&self, base: &Tile<'_>, count: usize) {
        let mut vector = 0;
        while vector < self.vectors {
            let class = self.width_class(self.vectors - vector, count);
            let kernels = self.kernels.tiles[class];
            let grain = self.kernels.grain();
            let grains = count.div_ceil(grain);
            let tiles = grains.div_ceil(kernels.len() / grain);
            let (each, longer) = (grains / tiles, grains % tiles);
            let mut row = 0;
            for i in 0..tiles {
                let rows = ((each + usize::from(i < longer)) * grain).min(count - row);
                // SAFETY: `row + rows` and `vector + 2^class` stay inside the caller's arrays and the packed weights.
                unsafe { kernels[rows - 1](&Tile { rows, ..self.at(base, row, vector) }) };
                row += rows;
            }
            vector += 1 << class;
        }
    }

    /// log2 of the vectors to take at once: the widest where the rows are few, which keeps enough sums in flight.
    fn width_class(&self, vectors: usize, rows: usize) -> usize {
        match vectors {
            4.. if rows <= self.kernels.tiles[2].len() => 2,
            2.. => 1,
            _ => 0,
        }
    }

    /// The tile at `row` and `vector`.
    unsafe fn at<'a>(&self, base: &Tile<'a>, row: usize, vector: usize) -> Tile<'a> {
        let lane = vector * self.kernels.lanes;
        let out_lane = match self.epilogue {
            Epilogue::Enter | Epilogue::Leave | Epilogue::Inner | Epilogue::Meet => lane / self.kernels.out,
            Epilogue::Hidden | Epilogue::Output => lane,
        };
        let norm = if matches!(self.epilogue, Epilogue::Enter | Epilogue::Leave) { lane } else { 0 };
        let end = if self.epilogue == Epilogue::Meet { lane } else { 0 };
        // SAFETY: the caller vouches for the row; lane is a lane of the layer, and arrays it does not have are not moved in.
        unsafe {
            Tile {
                x: base.x.add(row * base.x_row),
                weights: base.weights.add(vector / BLOCK * base.block),
                block_vectors: BLOCK.min(self.vectors - vector),
                bias: base.bias.add(lane),
                worth: base.worth.add(lane),
                scale: base.scale.add(norm),
                offset: base.offset.add(norm),
                stream: base.stream.add(row * base.stream_row + norm),
                moving: base.moving.add(row * base.end_row + end),
                staying: base.staying.add(end),
                board: row % base.boards,
                out: base.out.add(row * base.out_row + out_lane),
                valid: self.outputs - lane,
                ..*base
            }
        }
    }
}

fn words(lines: &[Line]) -> *const f32 {
    lines.as_ptr().cast()
}

/// Numbers padded with zeros to `len` and whole lines.
fn padded(numbers: &[f32], len: usize) -> Vec<Line> {
    let mut out = lines(len);
    bytemuck::cast_slice_mut::<Line, f32>(&mut out)[..numbers.len()].copy_from_slice(numbers);
    out
}

/// `[block, tap, unit, vector of the block, lane]` units, absent outputs and inputs 0.
fn pack(kernels: &Kernels, dense: &Dense<'_>, steps: &[f32], depth: usize) -> Vec<Line> {
    let vectors = dense.width.div_ceil(kernels.lanes);
    let mut out = lines(dense.taps * depth * vectors * kernels.lanes);
    let mut units = bytemuck::cast_slice_mut::<Line, f32>(&mut out).iter_mut();
    for first in (0..vectors).step_by(BLOCK) {
        let lanes = BLOCK.min(vectors - first) * kernels.lanes;
        for tap in 0..dense.taps {
            for k in 0..depth {
                for (lane, unit) in units.by_ref().take(lanes).enumerate() {
                    let output = first * kernels.lanes + lane;
                    if output < dense.outputs {
                        *unit = weight_unit(kernels, dense, steps[output], [output, tap, k]);
                    }
                }
            }
        }
    }
    out
}

/// Unit k of an output's tap.
fn weight_unit(kernels: &Kernels, dense: &Dense<'_>, step: f32, [output, tap, k]: [usize; 3]) -> f32 {
    let number = |part: usize| {
        let input = k * kernels.unit + part;
        if input < dense.inputs { (dense.weight)(output, tap, input) } else { 0.0 }
    };
    match kernels.unit {
        1 => number(0),
        2 => bf16_pair(number(0), number(1)),
        _ => {
            let byte = |part| (number(part) / step).round().clamp(-127.0, 127.0) as i8 as u8;
            f32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
        }
    }
}
