//! The backward pass of [`CpuTrainNet`].
//!
//! One parallel pass over the partitions for each layer: the normalisation above it turns dz into dy; dy and the recomputed input give
//! the weights' gradient; dy through the transposed weights gives the next dz and the sums that its normalisation needs.

use super::gemm_kernels::weight_gradient;
use super::head::{self, HeadArrays, HeadLayers};
use super::layer::{CpuBatchNorm, Linear};
use super::message::{LayerChunk, add_mean_gradient};
use super::norm;
use super::operands::Operands;
use super::preact_layer::{PreActLayer, Scratch};
use super::split::BatchSplit;
use super::tower::{CpuTrainNet, GradBuffers, Outputs, TowerArrays};
use super::view::View;
use crate::isa::Isa;
use crate::model::{HeadInput, ResidualGrad};
use rayon::prelude::*;
use std::ops::Range;

/// A partition's part of the residual stream's gradient at a layer's output; see [`ResidualGrad`].
enum StreamGrad<'a> {
    None,
    Start(&'a mut [f32]),
    Accumulate(&'a mut [f32]),
}

/// One partition at the output of a layer.
struct LayerOutput<'a> {
    isa: Isa,
    above: &'a CpuBatchNorm,
    y: &'a [f32],      // [positions, rows, columns] in chunks
    dz: &'a mut [f32], // [positions, rows, columns] in chunks
    stream: StreamGrad<'a>,
}

/// One partition at the input of a layer.
struct LayerInput<'a> {
    layer: &'a PreActLayer,
    x: &'a [f32], // [positions, rows, width] in chunks
    /// Output: dz of the layer's normalisation. `[positions, rows, width]` in chunks
    next: &'a mut [f32],
    /// Scratch for a chunk's activations after the ReLU. `[positions, rows, width]`
    active: &'a mut [f32],
    /// Scratch for the layer's message. `[rows, scratch_len]`
    message: &'a mut [f32],
    /// Scratch for what the layer's products multiply. `[operand_words]`
    operands: &'a mut [f32],
}

/// The sums of a partition.
struct PartitionSums<'a> {
    /// `[taps, inputs, columns]`
    weights: &'a mut [f32],
    /// Weight gradient of the message's own layer. `[inputs, columns]`
    message: &'a mut [f32],
    /// `[columns]`
    bias: Vec<f32>,
    /// Sums for the normalisation's gradient. `[chunks][2, width]`
    norm: Vec<Vec<f32>>,
}

impl CpuTrainNet {
    /// Adds to `gradient` the gradient of the parameters for the last [`CpuTrainNet::forward`], given the gradients of its outputs.
    ///
    /// # Shapes
    /// `outputs` as that forward pass gave them, `gradients` of each of them; `gradient` flat as in [`crate::model::Model::flatten`].
    pub fn backward(&mut self, outputs: &Outputs, gradients: &Outputs, gradient: &mut [f32]) {
        let heads = self.heads.iter().zip(outputs.iter().zip(gradients));
        let of_outs: Vec<Vec<f32>> =
            heads.map(|(head, (y, d))| head.output_gradient(&self.split, y, d)).collect();
        self.backward_tail(of_outs);
        for number in (0..self.layers.len()).rev() {
            self.backward_layer(number);
        }
        self.backward_stem();
        self.gather(gradient);
    }

    /// From the gradients of the heads' last layers, `[heads]` in their layout, to dz of the tail's normalisation.
    fn backward_tail(&mut self, of_outs: Vec<Vec<f32>>) {
        let floats = self.tail_floats();
        let Self { split, tail, pool, heads, arrays, isa, .. } = self;
        let (isa, pool) = (*isa, pool.as_deref());
        let of_hidden = |head: &HeadLayers| vec![0.0; split.boards * head.hidden_floats()];
        let mut d_heads: Vec<HeadArrays> = of_outs
            .into_iter()
            .zip(heads.iter())
            .map(|(out, head)| HeadArrays { hidden: of_hidden(head), out })
            .collect();
        let x = arrays.activations.last().map_or(&[][..], |x| &x[..]);
        let forward = split.parts(x, floats).into_par_iter().zip(split.parts(&arrays.tail, floats));
        let hidden: Vec<Vec<&[f32]>> = heads
            .iter()
            .zip(&arrays.heads)
            .map(|(head, arrays)| split.parts(&arrays.hidden, head.hidden_floats()))
            .collect();
        let written = split.parts_mut(&mut arrays.flow.dz, floats).into_par_iter().zip(head::parts_mut(
            split,
            heads,
            &mut d_heads,
        ));
        let partitions = split.partitions.par_iter().enumerate();
        let sums = partitions.zip(forward).zip(written).map(|parts| {
            let (((number, partition), (x, active)), (dz, mut d_heads)) = parts;
            let mut done = 0;
            split
                .chunks(partition)
                .map(|boards| {
                    let rows = done..done + boards.len();
                    let part = rows.start * floats..rows.end * floats;
                    let dz = &mut dz[part.clone()];
                    dz.fill(0.0);
                    for ((head, hidden), d_head) in heads.iter().zip(&hidden).zip(&mut d_heads) {
                        let (hidden, d) = (hidden[number], &mut *d_head);
                        match (head.input, pool) {
                            (HeadInput::MeanOverEdges, Some(edges)) => {
                                let mut d_mean = vec![0.0; rows.len() * tail.width];
                                head.backward(isa, &rows, hidden, d, (&mut d_mean, tail.width));
                                add_mean_gradient(edges, &d_mean, dz);
                            }
                            _ => head.backward(isa, &rows, hidden, d, (&mut *dz, tail.width)),
                        }
                    }
                    let sums = relu_gradient(isa, tail, &x[part.clone()], &active[part], dz);
                    done = rows.end;
                    sums
                })
                .collect::<Vec<_>>()
        });
        let sums = sums.collect::<Vec<_>>().concat();
        tail.prepare_gradient(&sums);
        for ((head, forward), d) in heads.iter_mut().zip(&arrays.heads).zip(&d_heads) {
            let source = head.source(&arrays.tail, &arrays.pooled);
            match &mut head.hidden {
                Some(hidden) => {
                    head_gradient(isa, split, hidden, source, tail.width, &d.hidden);
                    head_gradient(isa, split, &mut head.out, &forward.hidden, hidden.columns, &d.out);
                }
                None => head_gradient(isa, split, &mut head.out, source, tail.width, &d.out),
            }
        }
    }

    fn backward_layer(&mut self, number: usize) {
        let Self { split, layers, tail, arrays, isa, blocks, .. } = self;
        let TowerArrays { activations, flow, scratch, .. } = arrays;
        let residual_grad = ResidualGrad::of_output(number + 1, *blocks);
        let above = layers.get(number + 1).map_or(&*tail, |layer| &layer.norm);
        let layer = &layers[number];
        let x_floats = layer.linear.tap_map.inputs * layer.norm.width;
        let outputs =
            outputs(*isa, split, above, &layer.linear, &activations[number + 1], flow, residual_grad);
        let (outputs, next) = outputs;
        let inputs =
            split.parts(&activations[number], x_floats).into_iter().zip(split.parts_mut(next, x_floats));
        let jobs: Vec<_> = outputs
            .into_iter()
            .zip(inputs)
            .zip(scratch)
            .map(|((output, (x, next)), scratch)| {
                let Scratch { active, weights, message, message_weights, operands } = scratch;
                let layers = [Some(&layer.linear), layer.message.linear()];
                let sums = PartitionSums::new(layers, [weights, message_weights]);
                (output, LayerInput { layer, x, next, active, message, operands }, sums)
            })
            .collect();
        let sums: Vec<PartitionSums<'_>> = jobs
            .into_par_iter()
            .zip(&split.partitions)
            .map(|((output, input, sums), partition)| input.run(split, partition, output, sums))
            .collect();
        let PreActLayer { norm, linear, message, .. } = &mut layers[number];
        take_sums(linear, &sums, |sums| sums.weights);
        if let Some(linear) = message.linear_mut() {
            take_sums(linear, &sums, |sums| sums.message);
        }
        let norm_sums: Vec<Vec<f32>> = sums.into_iter().flat_map(|sums| sums.norm).collect();
        norm.prepare_gradient(&norm_sums);
        std::mem::swap(&mut flow.dz, &mut flow.next);
    }

    fn backward_stem(&mut self) {
        let Self { split, layers, tail, arrays, isa, stem, .. } = self;
        let TowerArrays { activations, flow, scratch, obs, .. } = arrays;
        let above = layers.first().map_or(&*tail, |layer| &layer.norm);
        let residual_grad = ResidualGrad::of_output(0, self.blocks);
        let x_floats = stem.tap_map.inputs * stem.inputs.len();
        let y_floats = stem.tap_map.outputs * stem.columns;
        let (outputs, _) = outputs(*isa, split, above, stem, &activations[0], flow, residual_grad);
        let jobs: Vec<_> = outputs.into_iter().zip(split.parts(obs, x_floats)).zip(scratch).collect();
        let sums =
            jobs.into_par_iter().zip(&split.partitions).map(|(((mut output, x), scratch), partition)| {
                let scratches = [&mut scratch.weights, &mut scratch.message_weights];
                let mut sums =
                    PartitionSums::new([Some(&*stem), None], scratches.map(|scratch| &mut scratch[..]));
                let mut done = 0;
                for boards in split.chunks(partition) {
                    let rows = boards.len();
                    let dy = output.gradient(done * y_floats..(done + rows) * y_floats);
                    let x = &x[done * x_floats..(done + rows) * x_floats];
                    let x = View { data: x, width: stem.inputs.len(), offset: 0 };
                    sums.add(*isa, stem, rows, [x, stem.output_view(dy)], &mut []);
                    done += rows;
                }
                sums
            });
        let sums: Vec<PartitionSums<'_>> = sums.collect();
        take_sums(stem, &sums, |sums| sums.weights);
    }

    /// Adds every layer's gradient to the flat one.
    fn gather(&self, gradient: &mut [f32]) {
        let mut parts = self.model.parts_mut(gradient);
        self.layers
            .iter()
            .map(|layer| &layer.norm)
            .chain([&self.tail])
            .for_each(|norm| norm.add_gradient(&mut parts));
        let jobs: Vec<(&Linear, Vec<&mut [f32]>)> = self
            .linears()
            .map(|linear| (linear, linear.slots().map(|slot| std::mem::take(&mut parts[slot])).collect()))
            .collect();
        jobs.into_par_iter().for_each(|(linear, mut tensors)| linear.add_gradient(&mut tensors));
    }
}

/// Every partition at the output `y` of `linear`, and the array for the next dz.
fn outputs<'a>(
    isa: Isa,
    split: &BatchSplit,
    above: &'a CpuBatchNorm,
    linear: &Linear,
    y: &'a [f32],
    flow: &'a mut GradBuffers,
    residual_grad: ResidualGrad,
) -> (Vec<LayerOutput<'a>>, &'a mut Vec<f32>) {
    let floats = linear.tap_map.outputs * linear.columns;
    let GradBuffers { dz, next, stream } = flow;
    let streams: Vec<StreamGrad<'a>> = match residual_grad {
        ResidualGrad::None => split.partitions.iter().map(|_| StreamGrad::None).collect(),
        ResidualGrad::Start => split.parts_mut(stream, floats).into_iter().map(StreamGrad::Start).collect(),
        ResidualGrad::Accumulate => {
            split.parts_mut(stream, floats).into_iter().map(StreamGrad::Accumulate).collect()
        }
    };
    let arrays = split.parts(y, floats).into_iter().zip(split.parts_mut(dz, floats)).zip(streams);
    let outputs = arrays.map(|((y, dz), stream)| LayerOutput { isa, above, y, dz, stream }).collect();
    (outputs, next)
}

impl LayerOutput<'_> {
    /// Turns a chunk's dz of the normalisation above into the gradient of the layer's output and updates the stream's gradient.
    fn gradient(&mut self, part: Range<usize>) -> &[f32] {
        let dz = &mut self.dz[part.clone()];
        norm::input_gradient(self.isa, &self.y[part.clone()], &self.above.gradient_columns(), dz);
        match &mut self.stream {
            StreamGrad::None => dz,
            StreamGrad::Start(stream) => {
                stream[part].copy_from_slice(dz);
                dz
            }
            StreamGrad::Accumulate(stream) => {
                let stream = &mut stream[part];
                norm::add(self.isa, dz, stream);
                stream
            }
        }
    }
}

impl LayerInput<'_> {
    fn run<'s>(
        self,
        split: &BatchSplit,
        partition: &Range<usize>,
        mut output: LayerOutput<'_>,
        mut sums: PartitionSums<'s>,
    ) -> PartitionSums<'s> {
        let PreActLayer { norm, linear, message, .. } = self.layer;
        let isa = output.isa;
        let x_floats = linear.tap_map.inputs * norm.width;
        let y_floats = linear.tap_map.outputs * linear.columns;
        let mut done = 0;
        for boards in split.chunks(partition) {
            let rows = boards.len();
            let dy = output.gradient(done * y_floats..(done + rows) * y_floats);
            let part = done * x_floats..(done + rows) * x_floats;
            let (x, next) = (&self.x[part.clone()], &mut self.next[part]);
            let active = &mut self.active[..rows * x_floats];
            norm::normalize_relu(isa, x, &norm.columns(), active);
            let here = LayerChunk { isa, rows, active };
            let source = message.source(here, self.message);
            next.fill(0.0);
            let dy = linear.output_view(dy);
            let units = linear.operands.by_columns(isa, dy, self.operands);
            linear.backward(isa, rows, units.data, next, norm.width);
            let source = View { data: source, width: norm.width, offset: 0 };
            sums.add(isa, linear, rows, [source, dy], self.operands);
            message.backward(here, dy.data, next, sums.message, self.message);
            sums.norm.push(relu_gradient(isa, norm, x, active, next));
            done += rows;
        }
        sums
    }
}

impl<'a> PartitionSums<'a> {
    /// Sums of a layer and of its message's layer, each in its scratch array.
    fn new(layers: [Option<&Linear>; 2], scratches: [&'a mut [f32]; 2]) -> Self {
        let [weights, message] = scratches;
        let [len, message_len] = layers.map(|layer| layer.map_or(0, |linear| linear.gradient.len()));
        let (weights, message) = (&mut weights[..len], &mut message[..message_len]);
        weights.fill(0.0);
        message.fill(0.0);
        let columns = layers[0].map_or(0, |linear| linear.columns);
        Self { weights, message, bias: vec![0.0; columns], norm: Vec::new() }
    }

    /// Adds the sums of a chunk of `rows` boards with input `x` and the gradient `dy` of its output. `scratch [operand_words]`
    fn add(&mut self, isa: Isa, linear: &Linear, rows: usize, [x, dy]: [View<'_>; 2], scratch: &mut [f32]) {
        if linear.has_bias() {
            norm::add_rows(isa, dy.data, &mut self.bias);
        }
        let Linear { operands, columns, .. } = *linear;
        let units = rows.div_ceil(operands.unit());
        let x_words = operands.input_words(isa, x, rows);
        let (of_x, of_dy) = scratch.split_at_mut(scratch.len().min(x_words));
        let both = [operands.input_of_gradient(isa, x, rows, of_x), operands.by_rows(isa, dy, rows, of_dy)];
        let size = linear.inputs.len() * columns;
        for (pairs, out) in linear.tap_map.pairs.iter().zip(self.weights.chunks_exact_mut(size)) {
            weight_gradient(isa, operands, pairs, units, both, out, columns);
        }
    }
}

fn relu_gradient(isa: Isa, norm: &CpuBatchNorm, x: &[f32], active: &[f32], dz: &mut [f32]) -> Vec<f32> {
    let mut sums = vec![0.0; 2 * norm.width];
    let (sum, product) = sums.split_at_mut(norm.width);
    norm::relu_gradient(isa, x, norm.columns().mean, active, dz, sum, product);
    sums
}

/// Adds the partitions' sums in order; `weights` selects the layer's.
fn take_sums<'a>(
    linear: &mut Linear,
    sums: &'a [PartitionSums<'_>],
    weights: impl Fn(&'a PartitionSums<'_>) -> &'a [f32] + Sync,
) {
    const PART: usize = 4096;
    linear.gradient.par_chunks_mut(PART).enumerate().for_each(|(number, out)| {
        out.fill(0.0);
        let start = number * PART;
        for partition in sums {
            let part = &weights(partition)[start..start + out.len()];
            out.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
    });
    linear.bias_gradient.fill(0.0);
    if !linear.has_bias() {
        return;
    }
    for partition in sums {
        linear.bias_gradient.iter_mut().zip(&partition.bias).for_each(|(sum, x)| *sum += x);
    }
}

/// The gradient of a head's layer. Threads share its rows, each of which is summed over the chunks in order: heads can have thousands
/// of outputs, too many for an array per partition.
fn head_gradient(isa: Isa, split: &BatchSplit, linear: &mut Linear, x: &[f32], width: usize, dy: &[f32]) {
    const INPUTS: usize = 16;
    let (inputs, columns) = (linear.inputs.clone(), linear.columns);
    let tap_map = &linear.tap_map;
    let (floats, d_floats) = (tap_map.inputs * width, tap_map.outputs * columns);
    let mut jobs = Vec::new();
    for (pairs, gradient) in
        tap_map.pairs.iter().zip(linear.gradient.chunks_exact_mut(inputs.len() * columns))
    {
        for (number, out) in gradient.chunks_mut(INPUTS * columns).enumerate() {
            jobs.push((pairs, inputs.start + number * INPUTS, out));
        }
    }
    jobs.into_par_iter().for_each(|(pairs, offset, out)| {
        out.fill(0.0);
        for boards in split.partitions.iter().flat_map(|partition| split.chunks(partition)) {
            let x = &x[boards.start * floats..boards.end * floats];
            let dy = &dy[boards.start * d_floats..boards.end * d_floats];
            let dy = View { data: dy, width: columns, offset: 0 };
            let both = [View { data: x, width, offset }, dy];
            weight_gradient(isa, Operands::F32, pairs, boards.len(), both, out, columns);
        }
    });
    if linear.has_bias() {
        linear.bias_gradient.fill(0.0);
        norm::add_rows(isa, dy, &mut linear.bias_gradient);
    }
}
