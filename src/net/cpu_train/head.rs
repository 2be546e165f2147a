//! The linear layers of a head, forward and backward, on chunks of the tail.

use super::layer::Linear;
use super::split::BatchSplit;
use super::view::{View, ViewMut};
use crate::isa::Isa;
use crate::math;
use crate::model::{HeadInput, HeadOutput, Model, PointLogits, TrainHead};
use std::ops::Range;

/// A head: an optional hidden layer with a ReLU, and the layer of its outputs.
#[derive(Clone, Debug)]
pub(super) struct HeadLayers {
    pub input: HeadInput,
    pub hidden: Option<Linear>,
    pub out: Linear,
    output: HeadOutput,
    points: Option<PointLogits>,
    /// Outputs of a sample at one position of `out`, without padding.
    width: usize,
}

/// The arrays of a head, or a partition's parts of them.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadArrays<T = Vec<f32>> {
    /// After the ReLU; empty where there is no hidden layer. `[B, hidden padded]`
    pub hidden: T,
    /// Before the output's function. `[B, outputs padded]`, or `[positions, rows, channels padded]` in chunks
    pub out: T,
}

/// The parts of all heads' arrays for each partition. `[partitions][heads]`
pub(super) fn parts_mut<'a>(
    split: &BatchSplit,
    heads: &[HeadLayers],
    arrays: &'a mut [HeadArrays],
) -> Vec<Vec<HeadArrays<&'a mut [f32]>>> {
    let mut parts: Vec<Vec<_>> = split.partitions.iter().map(|_| Vec::with_capacity(heads.len())).collect();
    for (head, HeadArrays { hidden, out }) in heads.iter().zip(arrays) {
        let hidden = split.parts_mut(hidden, head.hidden_floats());
        let both = hidden.into_iter().zip(split.parts_mut(out, head.out_floats()));
        parts.iter_mut().zip(both).for_each(|(part, (hidden, out))| part.push(HeadArrays { hidden, out }));
    }
    parts
}

impl HeadLayers {
    pub fn new(model: &Model, head: &TrainHead) -> Self {
        let width = head.out.weights.iter().map(|&weight| model.params[weight].shape[0]).sum();
        Self {
            input: head.input,
            hidden: head.hidden.as_ref().map(|hidden| Linear::new(model, hidden)),
            out: Linear::new(model, &head.out),
            output: head.output,
            points: head.points,
            width,
        }
    }

    /// Layers with weights, from input to output.
    pub fn linears(&self) -> impl Iterator<Item = &Linear> {
        self.hidden.iter().chain([&self.out])
    }

    /// The same, mutable.
    pub fn linears_mut(&mut self) -> impl Iterator<Item = &mut Linear> {
        self.hidden.iter_mut().chain([&mut self.out])
    }

    /// Arrays for `boards` boards.
    pub fn arrays(&self, boards: usize) -> HeadArrays {
        HeadArrays {
            hidden: vec![0.0; boards * self.hidden_floats()],
            out: vec![0.0; boards * self.out_floats()],
        }
    }

    /// Floats of the hidden layer for one board.
    pub fn hidden_floats(&self) -> usize {
        self.hidden.as_ref().map_or(0, |hidden| hidden.columns)
    }

    /// Floats of the outputs for one board.
    pub fn out_floats(&self) -> usize {
        self.out.tap_map.outputs * self.out.columns
    }

    /// What the head reads: the tail, or its mean over all edges.
    pub fn source<'a>(&self, tail: &'a [f32], pooled: &'a [f32]) -> &'a [f32] {
        match self.input {
            HeadInput::Tail => tail,
            HeadInput::MeanOverEdges => pooled,
        }
    }

    /// The outputs of a chunk of `rows` boards, of which the first is number `done` of the partition.
    pub fn forward(
        &self,
        isa: Isa,
        rows: usize,
        x: View<'_>,
        arrays: &mut HeadArrays<&mut [f32]>,
        done: usize,
    ) {
        let part = |floats: usize| done * floats..(done + rows) * floats;
        let run = |linear: &Linear, x: View<'_>, data: &mut [f32]| {
            linear.start(data);
            linear.forward(isa, rows, x, ViewMut { data, width: linear.columns, offset: 0 });
        };
        let out = &mut arrays.out[part(self.out_floats())];
        let Some(hidden) = &self.hidden else { return run(&self.out, x, out) };
        let h = &mut arrays.hidden[part(hidden.columns)];
        run(hidden, x, h);
        h.iter_mut().filter(|h| **h < 0.0).for_each(|h| *h = 0.0);
        run(&self.out, View { data: h, width: hidden.columns, offset: 0 }, out);
    }

    /// Adds to `dz [positions, rows, width]` the gradient of what the head reads, for the boards `rows` of a partition. `hidden` is that of
    /// the forward pass; `d` has the gradient of the outputs, and takes that of the hidden layer.
    pub fn backward(
        &self,
        isa: Isa,
        rows: &Range<usize>,
        hidden: &[f32],
        d: &mut HeadArrays<&mut [f32]>,
        (dz, width): (&mut [f32], usize),
    ) {
        let (count, of) = (rows.len(), |floats: usize| rows.start * floats..rows.end * floats);
        let d_out = &d.out[of(self.out_floats())];
        let Some(layer) = &self.hidden else { return self.out.backward(isa, count, d_out, dz, width) };
        let d_hidden = &mut d.hidden[of(layer.columns)];
        self.out.backward(isa, count, d_out, d_hidden, layer.columns);
        let inactive = hidden[of(layer.columns)].iter().map(|h| *h <= 0.0);
        d_hidden.iter_mut().zip(inactive).filter(|(_, off)| *off).for_each(|(d, _)| *d = 0.0);
        layer.backward(isa, count, d_hidden, dz, width);
    }

    /// The outputs of a batch. `[B, outputs]`
    pub fn outputs(&self, split: &BatchSplit, arrays: &HeadArrays) -> Vec<f32> {
        let columns = self.out.columns;
        let mut outputs: Vec<f32> = match self.points {
            None => arrays.out.chunks_exact(columns).flat_map(|row| &row[..self.width]).copied().collect(),
            Some(points) => split.read_points(&arrays.out, points, columns),
        };
        if self.output == HeadOutput::Tanh {
            outputs.iter_mut().for_each(|y| *y = math::tanh(*y));
        }
        outputs
    }

    /// The gradient `d` of the outputs `[B, outputs]` as that of the last layer, in its layout.
    pub fn output_gradient(&self, split: &BatchSplit, outputs: &[f32], d: &[f32]) -> Vec<f32> {
        let columns = self.out.columns;
        let rows = |d: &[f32]| match self.points {
            None => pad_rows(d, self.width, columns),
            Some(points) => split.point_gradient(d, points, columns),
        };
        match self.output {
            HeadOutput::Linear => rows(d),
            HeadOutput::Tanh => {
                rows(&d.iter().zip(outputs).map(|(d, y)| d * (1.0 - y * y)).collect::<Vec<f32>>())
            }
        }
    }
}

/// Rows of `width` elements padded with 0 to `columns`.
fn pad_rows(x: &[f32], width: usize, columns: usize) -> Vec<f32> {
    let mut out = vec![0.0; x.len() / width * columns];
    for (row, wide) in x.chunks_exact(width).zip(out.chunks_exact_mut(columns)) {
        wide[..width].copy_from_slice(row);
    }
    out
}
