//! The backward pass of [`Tower`].
//!
//! One parallel pass over the pieces for each unit: the normalisation above it turns dz into dy, dy and the recomputed
//! input give the weights' gradient, dy through the transposed weights gives the next dz and the sums that its
//! normalisation needs.

use super::gemm::{View, padded, weight_gradient};
use super::layer::{Linear, Norm};
use super::norm;
use super::simd::Isa;
use super::split::Split;
use super::tower::{Outputs, Tower, Unit};
use rayon::prelude::*;

/// Gradients on their way down. `[boards, positions, width]` in chunks.
struct Flow {
    /// Gradient behind the ReLU of the normalisation above.
    dz: Vec<f32>,
    /// The same for the normalisation below, being written.
    next: Vec<f32>,
    /// Gradient of the residual stream; empty above it.
    stream: Vec<f32>,
}

/// One piece's part of a unit's backward pass.
struct PieceJob<'a> {
    isa: Isa,
    above: &'a Norm,
    unit: &'a Unit,
    /// Input of the unit.
    x: &'a [f32],
    /// Output of the unit.
    y: &'a [f32],
    dz: &'a mut [f32],
    next: &'a mut [f32],
    stream: Stream<'a>,
}

/// The piece's part of the residual stream's gradient at the unit's output.
enum Stream<'a> {
    /// The output is not on the stream.
    Off,
    /// Nothing has reached the stream yet.
    First(&'a mut [f32]),
    /// To be added to.
    Running(&'a mut [f32]),
}

/// What a piece gives back.
struct PieceSums {
    /// `[taps, inputs, columns]`
    weights: Vec<f32>,
    /// `[columns]`
    bias: Vec<f32>,
    /// Sums that the normalisation's gradient needs. `[chunks][2, width]`
    norm: Vec<Vec<f32>>,
}

impl Tower {
    /// Adds to `gradient` the gradient of the parameters for the last [`Tower::forward`], given the gradients of its outputs.
    ///
    /// # Shapes
    /// `outputs` as that forward pass gave them; `d_logits [B, A]`, `d_values [B, V]` (of the values after the tanh);
    /// `gradient` flat as in [`super::Params`].
    pub fn backward(&mut self, outputs: &Outputs, d_logits: &[f32], d_values: &[f32], gradient: &mut [f32]) {
        let d_values: Vec<f32> =
            d_values.iter().zip(&outputs.values).map(|(d, v)| d * (1.0 - v * v)).collect();
        let d_logits = widen(d_logits, self.spec.num_actions, self.policy.columns);
        let d_values = widen(&d_values, self.spec.num_values(), self.values.columns);
        let mut flow = self.backward_tail(&d_logits, &d_values);
        for number in (0..self.units.len()).rev() {
            self.backward_unit(number, &mut flow);
        }
        self.backward_stem(flow);
        self.gather(gradient);
    }

    /// From the outputs' gradients to dz of the tail's normalisation.
    fn backward_tail(&mut self, d_logits: &[f32], d_values: &[f32]) -> Flow {
        let Self { split, tail, policy, hidden, values, arrays, isa, .. } = self;
        let isa = *isa;
        let floats = policy.geometry.inputs * tail.width;
        let boards = split.boards;
        let widest = arrays.activations.iter().map(Vec::len).max().unwrap_or(0);
        let mut flow = Flow { dz: vec![0.0; widest], next: vec![0.0; widest], stream: Vec::new() };
        let mut d_hidden = vec![0.0; boards * hidden.columns];
        let x = arrays.activations.last().map_or(&[][..], |x| &x[..]);
        let gradients =
            split.parts(d_logits, policy.columns).into_par_iter().zip(split.parts(d_values, values.columns));
        let forward = split
            .parts(x, floats)
            .into_par_iter()
            .zip(split.parts(&arrays.tail, floats))
            .zip(split.parts(&arrays.hidden, hidden.columns));
        let written = split
            .parts_mut(&mut flow.dz[..boards * floats], floats)
            .into_par_iter()
            .zip(split.parts_mut(&mut d_hidden, hidden.columns));
        let sums = split.pieces.par_iter().zip(gradients).zip(forward).zip(written).map(|parts| {
            let (((piece, (d_logits, d_values)), ((x, active), h)), (dz, d_hidden)) = parts;
            let mut done = 0;
            split
                .chunks(piece)
                .map(|boards| {
                    let rows = boards.len();
                    let part = |width: usize| done * width..(done + rows) * width;
                    let d_hidden = &mut d_hidden[part(hidden.columns)];
                    values.backward(isa, rows, &d_values[part(values.columns)], d_hidden, hidden.columns);
                    let inactive = h[part(hidden.columns)].iter().map(|h| *h <= 0.0);
                    d_hidden.iter_mut().zip(inactive).filter(|(_, off)| *off).for_each(|(d, _)| *d = 0.0);
                    let dz = &mut dz[part(floats)];
                    policy.backward(isa, rows, &d_logits[part(policy.columns)], dz, tail.width);
                    hidden.backward(isa, rows, d_hidden, dz, tail.width);
                    let sums = relu_gradient(isa, tail, &x[part(floats)], &active[part(floats)], dz);
                    done += rows;
                    sums
                })
                .collect::<Vec<_>>()
        });
        let sums = sums.collect::<Vec<_>>().concat();
        tail.prepare_gradient(&sums);
        head_gradient(isa, split, policy, &arrays.tail, tail.width, d_logits);
        head_gradient(isa, split, hidden, &arrays.tail, tail.width, &d_hidden);
        head_gradient(isa, split, values, &arrays.hidden, padded(self.spec.value_hidden), d_values);
        flow
    }

    fn backward_unit(&mut self, number: usize, flow: &mut Flow) {
        let Self { split, units, tail, arrays, isa, spec, .. } = self;
        let on_stream = number % 2 == 1 && number < 2 * spec.blocks;
        let above = units.get(number + 1).map_or(&*tail, |unit| &unit.norm);
        let unit = &units[number];
        let x_floats = unit.linear.geometry.inputs * unit.norm.width;
        let y_floats = unit.linear.geometry.outputs * unit.linear.columns;
        let boards = split.boards;
        let streams =
            stream_parts(split, &mut flow.stream, if on_stream { boards * y_floats } else { 0 }, y_floats);
        let jobs: Vec<PieceJob<'_>> = split
            .parts(&arrays.activations[number], x_floats)
            .into_iter()
            .zip(split.parts(&arrays.activations[number + 1], y_floats))
            .zip(split.parts_mut(&mut flow.dz[..boards * y_floats], y_floats))
            .zip(split.parts_mut(&mut flow.next[..boards * x_floats], x_floats))
            .zip(streams)
            .map(|((((x, y), dz), next), stream)| PieceJob { isa: *isa, above, unit, x, y, dz, next, stream })
            .collect();
        let sums: Vec<PieceSums> =
            jobs.into_par_iter().zip(&split.pieces).map(|(job, piece)| job.run(split, piece)).collect();
        let Unit { norm, linear, .. } = &mut units[number];
        take_sums(linear, &sums);
        let norm_sums: Vec<Vec<f32>> = sums.into_iter().flat_map(|sums| sums.norm).collect();
        norm.prepare_gradient(&norm_sums);
        std::mem::swap(&mut flow.dz, &mut flow.next);
    }

    fn backward_stem(&mut self, mut flow: Flow) {
        let Self { split, units, tail, arrays, isa, stem, .. } = self;
        let isa = *isa;
        let above = units.first().map_or(&*tail, |unit| &unit.norm);
        let y_floats = stem.geometry.outputs * stem.columns;
        let x_floats = stem.geometry.inputs * stem.inputs.len();
        let streams = stream_parts(split, &mut flow.stream, split.boards * y_floats, y_floats);
        let parts = split
            .parts(&arrays.obs, x_floats)
            .into_par_iter()
            .zip(split.parts(&arrays.activations[0], y_floats))
            .zip(split.parts_mut(&mut flow.dz[..split.boards * y_floats], y_floats))
            .zip(streams);
        let sums = split.pieces.par_iter().zip(parts).map(|(piece, (((x, y), dz), mut stream))| {
            let mut sums = PieceSums::new(stem);
            let mut done = 0;
            for boards in split.chunks(piece) {
                let rows = boards.len();
                let y_part = done * y_floats..(done + rows) * y_floats;
                let dy = output_gradient(
                    isa,
                    above,
                    &y[y_part.clone()],
                    &mut dz[y_part.clone()],
                    &mut stream,
                    y_part,
                );
                let x = &x[done * x_floats..(done + rows) * x_floats];
                sums.add(isa, stem, rows, View { data: x, width: stem.inputs.len(), offset: 0 }, dy);
                done += rows;
            }
            sums
        });
        let sums: Vec<PieceSums> = sums.collect();
        take_sums(stem, &sums);
    }

    /// Adds every layer's gradient to the flat one.
    fn gather(&mut self, gradient: &mut [f32]) {
        let mut parts = self.params.parts_mut(gradient);
        self.units
            .iter()
            .map(|unit| &unit.norm)
            .chain([&self.tail])
            .for_each(|norm| norm.add_gradient(&mut parts));
        let jobs: Vec<(&Linear, Vec<&mut [f32]>)> = self
            .linears_mut()
            .into_iter()
            .map(|linear| {
                let tensors = linear.slots().map(|slot| std::mem::take(&mut parts[slot])).collect();
                (&*linear, tensors)
            })
            .collect();
        jobs.into_par_iter().for_each(|(linear, mut tensors)| linear.add_gradient(&mut tensors));
    }
}

impl PieceJob<'_> {
    fn run(mut self, split: &Split, piece: &std::ops::Range<usize>) -> PieceSums {
        let Unit { norm, linear, .. } = self.unit;
        let x_floats = linear.geometry.inputs * norm.width;
        let y_floats = linear.geometry.outputs * linear.columns;
        let mut sums = PieceSums::new(linear);
        let mut active = vec![0.0; split.chunk * x_floats];
        let mut done = 0;
        for boards in split.chunks(piece) {
            let rows = boards.len();
            let y_part = done * y_floats..(done + rows) * y_floats;
            let x_part = done * x_floats..(done + rows) * x_floats;
            let (y, dz) = (&self.y[y_part.clone()], &mut self.dz[y_part.clone()]);
            let dy = output_gradient(self.isa, self.above, y, dz, &mut self.stream, y_part);
            let (x, next) = (&self.x[x_part.clone()], &mut self.next[x_part]);
            let active = &mut active[..rows * x_floats];
            norm::normalize_relu(self.isa, x, &norm.columns(), active);
            sums.add(self.isa, linear, rows, View { data: active, width: norm.width, offset: 0 }, dy);
            next.fill(0.0);
            linear.backward(self.isa, rows, dy, next, norm.width);
            sums.norm.push(relu_gradient(self.isa, norm, x, active, next));
            done += rows;
        }
        sums
    }
}

impl PieceSums {
    fn new(linear: &Linear) -> Self {
        Self { weights: vec![0.0; linear.gradient.len()], bias: vec![0.0; linear.columns], norm: Vec::new() }
    }

    fn add(&mut self, isa: Isa, linear: &Linear, rows: usize, x: View<'_>, dy: &[f32]) {
        let gradient = View { data: dy, width: linear.columns, offset: 0 };
        let size = linear.inputs.len() * linear.columns;
        for (pairs, out) in linear.geometry.pairs.iter().zip(self.weights.chunks_exact_mut(size)) {
            weight_gradient(isa, pairs, rows, x, gradient, out, linear.columns);
        }
        if linear.has_bias() {
            norm::add_rows(isa, dy, &mut self.bias);
        }
    }
}

/// Turns a chunk's dz of the normalisation above into the gradient of the layer's output, and keeps the stream's sum.
fn output_gradient<'a>(
    isa: Isa,
    above: &Norm,
    y: &[f32],
    dz: &'a mut [f32],
    stream: &'a mut Stream<'_>,
    part: std::ops::Range<usize>,
) -> &'a [f32] {
    norm::input_gradient(isa, y, &above.gradient_columns(), dz);
    match stream {
        Stream::Off => dz,
        Stream::First(stream) => {
            stream[part].copy_from_slice(dz);
            dz
        }
        Stream::Running(stream) => {
            let stream = &mut stream[part];
            norm::add(isa, dz, stream);
            stream
        }
    }
}

fn stream_parts<'a>(split: &Split, stream: &'a mut Vec<f32>, len: usize, floats: usize) -> Vec<Stream<'a>> {
    if len == 0 {
        return split.pieces.iter().map(|_| Stream::Off).collect();
    }
    if stream.is_empty() {
        stream.resize(len, 0.0);
        return split.parts_mut(stream, floats).into_iter().map(Stream::First).collect();
    }
    split.parts_mut(stream, floats).into_iter().map(Stream::Running).collect()
}

fn relu_gradient(isa: Isa, norm: &Norm, x: &[f32], active: &[f32], dz: &mut [f32]) -> Vec<f32> {
    let mut sums = vec![0.0; 2 * norm.width];
    let (sum, product) = sums.split_at_mut(norm.width);
    norm::relu_gradient(isa, x, norm.columns().mean, active, dz, sum, product);
    sums
}

/// Adds the pieces' sums in order.
fn take_sums(linear: &mut Linear, sums: &[PieceSums]) {
    const PART: usize = 4096;
    linear.gradient.par_chunks_mut(PART).enumerate().for_each(|(number, out)| {
        out.fill(0.0);
        let start = number * PART;
        for piece in sums {
            let part = &piece.weights[start..start + out.len()];
            out.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
    });
    linear.bias_gradient.fill(0.0);
    for piece in sums {
        linear.bias_gradient.iter_mut().zip(&piece.bias).for_each(|(sum, x)| *sum += x);
    }
}

/// The gradient of a head's layer: its rows are shared out, each is summed over the chunks in order. Heads can have
/// thousands of outputs; no piece needs an array of its own here.
fn head_gradient(isa: Isa, split: &Split, linear: &mut Linear, x: &[f32], width: usize, dy: &[f32]) {
    const INPUTS: usize = 16;
    let (inputs, columns) = (linear.inputs.clone(), linear.columns);
    let geometry = &linear.geometry;
    let floats = geometry.inputs * width;
    let mut jobs = Vec::new();
    for (pairs, gradient) in
        geometry.pairs.iter().zip(linear.gradient.chunks_exact_mut(inputs.len() * columns))
    {
        for (number, out) in gradient.chunks_mut(INPUTS * columns).enumerate() {
            jobs.push((pairs, inputs.start + number * INPUTS, out));
        }
    }
    jobs.into_par_iter().for_each(|(pairs, offset, out)| {
        out.fill(0.0);
        for boards in split.pieces.iter().flat_map(|piece| split.chunks(piece)) {
            let x = &x[boards.start * floats..boards.end * floats];
            let dy = &dy[boards.start * columns..boards.end * columns];
            let dy = View { data: dy, width: columns, offset: 0 };
            weight_gradient(isa, pairs, boards.len(), View { data: x, width, offset }, dy, out, columns);
        }
    });
    linear.bias_gradient.fill(0.0);
    norm::add_rows(isa, dy, &mut linear.bias_gradient);
}

/// Rows of `width` numbers padded with 0 to `columns`.
fn widen(x: &[f32], width: usize, columns: usize) -> Vec<f32> {
    let mut out = vec![0.0; x.len() / width * columns];
    for (row, wide) in x.chunks_exact(width).zip(out.chunks_exact_mut(columns)) {
        wide[..width].copy_from_slice(row);
    }
    out
}
