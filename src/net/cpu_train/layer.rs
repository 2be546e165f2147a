//! The two kinds of layer: a linear map over a [`TapMap`], and a normalisation with its statistics.

use super::gemm::{PackedWeights, padded};
use super::gemm_kernels::product;
use super::norm::{Columns, GradientColumns};
use super::operands::Operands;
use super::tap_map::TapMap;
use super::view::{View, ViewMut};
use crate::isa::Isa;
use crate::model::{BN_EPS, BN_MOMENTUM, Model, TrainLinear};
use std::ops::Range;

/// A weight tensor `[outputs, inputs, taps]` and the columns it makes.
#[derive(Clone, Debug)]
struct WeightTensor {
    slot: usize,
    column: usize,
}

/// A linear map: a convolution, a linear layer, or several of them that read one input and write adjacent columns.
#[derive(Clone, Debug)]
pub struct Linear {
    pub tap_map: TapMap,
    /// The format of what its products multiply.
    pub operands: Operands,
    /// Columns of a row of the input that are read.
    pub inputs: Range<usize>,
    /// Columns of the output, padded.
    pub columns: usize,
    blocks: Vec<WeightTensor>,
    bias_slot: Option<usize>,
    weights: PackedWeights,
    transposed: PackedWeights,
    /// `[columns]`, empty where there is none.
    bias: Vec<f32>,
    /// `[taps, inputs, columns]`
    pub gradient: Vec<f32>,
    /// `[columns]`
    pub bias_gradient: Vec<f32>,
}

impl Linear {
    /// The layers of `linear` in adjacent columns. Groups of a row of their input begin at whole vectors.
    pub fn new(model: &Model, linear: &TrainLinear) -> Self {
        Self::with_operands(model, linear, Operands::F32)
    }

    /// The same with products of `operands`.
    pub fn with_operands(model: &Model, linear: &TrainLinear, operands: Operands) -> Self {
        let TrainLinear { bias: bias_slot, connectivity, board, group, .. } = *linear;
        let tap_map = TapMap::of(connectivity, board);
        let first: usize = linear.row[..group].iter().map(|&channels| padded(channels)).sum();
        let inputs = first..first + linear.row[group];
        let mut columns = 0;
        let mut blocks = Vec::new();
        for &slot in &linear.weights {
            blocks.push(WeightTensor { slot, column: columns });
            columns += padded(model.params[slot].shape[0]);
        }
        let (taps, width) = (tap_map.taps, inputs.len());
        Self {
            weights: PackedWeights::new(operands, taps, width, columns),
            transposed: PackedWeights::new(operands, taps, columns, padded(width)),
            bias: vec![0.0; if bias_slot.is_some() { columns } else { 0 }],
            gradient: vec![0.0; taps * width * columns],
            bias_gradient: vec![0.0; columns],
            tap_map,
            operands,
            inputs,
            columns,
            blocks,
            bias_slot,
        }
    }

    /// Copies the weights from the flat `parameters [num_parameters]`.
    pub fn pack(&mut self, model: &Model, parameters: &[f32]) {
        let per_output = self.inputs.len() * self.tap_map.taps;
        for block in &self.blocks {
            let tensor = &parameters[model.params[block.slot].range.clone()];
            for (output, weights) in tensor.chunks_exact(per_output).enumerate() {
                self.weights.set_column(block.column + output, weights);
                self.transposed.set_input(block.column + output, weights);
            }
        }
        if let Some(slot) = self.bias_slot {
            let bias = &parameters[model.params[slot].range.clone()];
            self.bias[..bias.len()].copy_from_slice(bias);
        }
    }

    /// True where the layer has a bias.
    pub fn has_bias(&self) -> bool {
        self.bias_slot.is_some()
    }

    /// The tensors of this layer's gradient, as indices of [`Model::params`].
    pub fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.blocks.iter().map(|b| b.slot).chain(self.bias_slot)
    }

    /// Adds the gradient to `tensors`, those of [`Linear::slots`] in their order: weights `[outputs, inputs, taps]`, bias `[outputs]`.
    pub fn add_gradient(&self, tensors: &mut [&mut [f32]]) {
        let (inputs, taps) = (self.inputs.len(), self.tap_map.taps);
        for (block, tensor) in self.blocks.iter().zip(tensors.iter_mut()) {
            for (output, tensor) in tensor.chunks_exact_mut(inputs * taps).enumerate() {
                let column = block.column + output;
                for (input, tensor) in tensor.chunks_exact_mut(taps).enumerate() {
                    for (tap, sum) in tensor.iter_mut().enumerate() {
                        *sum += self.gradient[(tap * inputs + input) * self.columns + column];
                    }
                }
            }
        }
        if self.bias_slot.is_some()
            && let Some(tensor) = tensors.last_mut()
        {
            tensor.iter_mut().zip(&self.bias_gradient).for_each(|(sum, g)| *sum += g);
        }
    }

    /// `out [positions, rows, columns] += x W`, `x [positions, rows, width]` in units of columns, for one chunk of `rows` boards; `out`
    /// starts from the bias with [`Linear::start`].
    pub fn forward(&self, isa: Isa, rows: usize, x: View<'_>, out: ViewMut<'_>) {
        let x = View { offset: self.inputs.start / self.operands.unit(), ..x };
        product(isa, &self.tap_map.forward, rows, x, &self.weights, out);
    }

    /// `y [.., columns]`, the layer's output or the gradient of it.
    pub fn output_view<'a>(&self, y: &'a [f32]) -> View<'a> {
        View { data: y, width: self.columns, offset: 0 }
    }

    /// Fills `out [.., columns]` with the bias, or with 0.
    pub fn start(&self, out: &mut [f32]) {
        if self.bias.is_empty() {
            out.fill(0.0);
        } else {
            out.chunks_exact_mut(self.columns).for_each(|row| row.copy_from_slice(&self.bias));
        }
    }

    /// Fills `out [.., columns]` with `stream [.., columns]` plus the bias, where there is one: the start of a residual layer.
    pub fn start_from(&self, stream: &[f32], out: &mut [f32]) {
        out.copy_from_slice(stream);
        if !self.bias.is_empty() {
            let rows = out.chunks_exact_mut(self.columns);
            rows.for_each(|row| row.iter_mut().zip(&self.bias).for_each(|(x, bias)| *x += bias));
        }
    }

    /// `dx [positions, rows, width] += dy W^T`, `dy [positions, rows, columns]` in units of columns, for one chunk of `rows` boards.
    pub fn backward(&self, isa: Isa, rows: usize, dy: &[f32], dx: &mut [f32], width: usize) {
        let dy = View { data: dy, width: self.columns / self.operands.unit(), offset: 0 };
        let dx = ViewMut { data: dx, width, offset: self.inputs.start };
        product(isa, &self.tap_map.backward, rows, dy, &self.transposed, dx);
    }
}

/// A normalisation's tensors and the columns they are for.
#[derive(Clone, Debug)]
struct NormBlock {
    weight: usize,
    bias: usize,
    mean: usize,
    variance: usize,
    channels: usize,
    column: usize,
}

/// Batch moments of one chunk of one layer.
#[derive(Clone, Debug)]
pub struct Moments {
    /// Rows of the chunk.
    pub rows: usize,
    /// `[width]`
    pub mean: Vec<f32>,
    /// Sums of squared deviations. `[width]`
    pub deviations: Vec<f32>,
}

impl Moments {
    /// Uninitialised moments of `rows` rows: all zeros.
    pub fn new(rows: usize, width: usize) -> Self {
        Self { rows, mean: vec![0.0; width], deviations: vec![0.0; width] }
    }
}

/// A normalisation, or several side by side.
#[derive(Clone, Debug)]
pub struct CpuBatchNorm {
    /// Columns, padded.
    pub width: usize,
    blocks: Vec<NormBlock>,
    count: usize,
    mean: Vec<f32>,            // [width]
    variance: Vec<f64>,        // [width]
    scale: Vec<f32>,           // [width]
    shift: Vec<f32>,           // [width]
    slope: Vec<f32>,           // [width]
    offset: Vec<f32>,          // [width]
    weight_gradient: Vec<f32>, // [width]
    bias_gradient: Vec<f32>,   // [width]
}

impl CpuBatchNorm {
    /// The BatchNorm layers `norms`, each from a padded column on.
    pub fn new(model: &Model, norms: &[usize]) -> Self {
        let mut width = 0;
        let mut blocks = Vec::new();
        for &layer in norms {
            let channels = model.outputs(layer);
            let [weight, bias, mean, variance] = [0, 1, 2, 3].map(|number| model.param_index(layer, number));
            blocks.push(NormBlock { weight, bias, mean, variance, channels, column: width });
            width += padded(channels);
        }
        let zeros = || vec![0.0; width];
        Self {
            width,
            blocks,
            count: 0,
            mean: zeros(),
            variance: vec![0.0; width],
            scale: zeros(),
            shift: zeros(),
            slope: zeros(),
            offset: zeros(),
            weight_gradient: zeros(),
            bias_gradient: zeros(),
        }
    }

    /// Computes the batch's moments from those of its `chunks` in order (Chan, Golub, LeVeque 1983), and takes weight and bias from the flat
    /// `parameters [num_parameters]`.
    pub fn prepare(&mut self, model: &Model, parameters: &[f32], chunks: &[Moments]) {
        self.count = chunks.iter().map(|chunk| chunk.rows).sum();
        for column in 0..self.width {
            let (mut n, mut mean, mut square) = (0.0f64, 0.0f64, 0.0f64);
            for chunk in chunks {
                let rows = chunk.rows as f64;
                let delta = f64::from(chunk.mean[column]) - mean;
                square += f64::from(chunk.deviations[column]) + delta * delta * n * rows / (n + rows);
                mean += delta * rows / (n + rows);
                n += rows;
            }
            self.mean[column] = mean as f32;
            self.variance[column] = square / n;
        }
        for block in &self.blocks {
            let weight = &parameters[model.params[block.weight].range.clone()];
            let bias = &parameters[model.params[block.bias].range.clone()];
            for channel in 0..block.channels {
                let column = block.column + channel;
                let deviation = (self.variance[column] + BN_EPS).sqrt();
                self.scale[column] = (f64::from(weight[channel]) / deviation) as f32;
                self.shift[column] = bias[channel];
            }
        }
    }

    /// Moves the running statistics, flat `[num_statistics]`, towards this batch's (the variance as an unbiased estimate, as PyTorch does).
    pub fn update_statistics(&self, model: &Model, statistics: &mut [f32]) {
        let unbiased = self.count as f64 / (self.count.max(2) - 1) as f64;
        let mix = |old: &mut f32, new: f64| {
            *old = ((1.0 - BN_MOMENTUM) * f64::from(*old) + BN_MOMENTUM * new) as f32
        };
        for block in &self.blocks {
            let columns = block.column..block.column + block.channels;
            let means = &mut statistics[model.params[block.mean].range.clone()];
            means
                .iter_mut()
                .zip(&self.mean[columns.clone()])
                .for_each(|(old, &new)| mix(old, f64::from(new)));
            let variances = &mut statistics[model.params[block.variance].range.clone()];
            variances
                .iter_mut()
                .zip(&self.variance[columns])
                .for_each(|(old, &new)| mix(old, new * unbiased));
        }
    }

    /// The forward normalisation of each column.
    pub fn columns(&self) -> Columns<'_> {
        Columns { mean: &self.mean, scale: &self.scale, shift: &self.shift }
    }

    /// Computes the gradients from the sums of dz and dz (x - mean) over each chunk, in order: `chunks [chunks][2, width]`.
    pub fn prepare_gradient(&mut self, chunks: &[Vec<f32>]) {
        for column in 0..self.width {
            let total = |at: usize| chunks.iter().map(|sums| f64::from(sums[at])).sum::<f64>();
            let (sum, product) = (total(column), total(self.width + column));
            let variance = self.variance[column] + BN_EPS;
            let scale = f64::from(self.scale[column]);
            self.bias_gradient[column] = sum as f32;
            self.weight_gradient[column] = (product / variance.sqrt()) as f32;
            self.offset[column] = (scale * sum / self.count as f64) as f32;
            self.slope[column] = (scale * product / (self.count as f64 * variance)) as f32;
        }
    }

    /// The backward normalisation of each column.
    pub fn gradient_columns(&self) -> GradientColumns<'_> {
        GradientColumns { mean: &self.mean, scale: &self.scale, slope: &self.slope, offset: &self.offset }
    }

    /// Adds the gradients of weights and biases to `parts`, the flat gradient's parts, one for each of [`Model::params`]: `[channels]`.
    pub fn add_gradient(&self, parts: &mut [&mut [f32]]) {
        for block in &self.blocks {
            let columns = block.column..block.column + block.channels;
            for (slot, gradient) in [(block.weight, &self.weight_gradient), (block.bias, &self.bias_gradient)]
            {
                parts[slot].iter_mut().zip(&gradient[columns.clone()]).for_each(|(sum, g)| *sum += g);
            }
        }
    }
}
