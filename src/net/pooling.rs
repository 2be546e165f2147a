//! Pooling layers ([`GlobalPooling`]) on rows of f32, forward and backward, for some boards at a time.
//!
//! Arrays are `[squares, boards, width]`. Plain Rust compiled for each instruction set; every sum has one fixed order within its own
//! board and no fused multiply-adds, so the bits are the same on all and in any batch.

use crate::isa::{Isa, for_each_isa};
use crate::math;
use crate::model::{ChannelEffect, GlobalPooling, PoolStatistics, board_factor};

/// A pooling layer with its weights.
#[derive(Clone, Debug)]
pub struct PooledLayer {
    shape: GlobalPooling,
    /// The parameters one after the other, as [`GlobalPooling::param_sizes`].
    params: Vec<f32>,
    /// The weights with outputs together: hidden, then output. `[inputs, outputs]` each
    transposed: [Vec<f32>; 2],
}

/// Some boards' rows.
#[derive(Clone, Copy, Debug)]
pub struct BoardRows {
    /// Boards.
    pub boards: usize,
    /// Elements of a row.
    pub width: usize,
}

/// Intermediate results of a layer for some boards, board by board.
struct PoolingBuffers<'a> {
    /// `[boards, inputs]`
    statistics: &'a mut [f32],
    /// `[boards, hidden]`
    hidden: &'a mut [f32],
    /// `[boards, outputs]`
    output: &'a mut [f32],
}

for_each_isa! {
    /// The statistics `out [boards, inputs]` of `x [squares, boards, width]`.
    fn statistics(x: &[f32], rows: BoardRows, shape: GlobalPooling, out: &mut [f32]) {
        let BoardRows { boards, width } = rows;
        let squares = x.len() / (boards * width);
        let pooled = shape.pooled;
        let share = 1.0 / squares as f32;
        let factor = board_factor(squares) as f32;
        for (board, out) in out.chunks_exact_mut(shape.inputs()).enumerate() {
            out.fill(0.0);
            let (mean, rest) = out.split_at_mut(pooled);
            let rows = (0..squares).map(|square| &x[(square * boards + board) * width..][..pooled]);
            match shape.statistics {
                PoolStatistics::Mean => {
                    for row in rows {
                        mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += *x);
                    }
                    mean.iter_mut().for_each(|sum| *sum *= share);
                }
                PoolStatistics::ReluMeanMax => {
                    let (scaled, max) = rest.split_at_mut(pooled);
                    for row in rows {
                        for ((sum, max), x) in mean.iter_mut().zip(max.iter_mut()).zip(row) {
                            // Not `max`: a NaN must stay one in the sum.
                            let x = if *x < 0.0 { 0.0 } else { *x };
                            *sum += x;
                            *max = if x > *max { x } else { *max };
                        }
                    }
                    for (scaled, mean) in scaled.iter_mut().zip(mean.iter_mut()) {
                        *mean *= share;
                        *scaled = *mean * factor;
                    }
                }
            }
        }
    }
}

for_each_isa! {
    /// `out [boards, outputs] += x [boards, inputs] weight [inputs, outputs]`.
    fn linear(x: &[f32], inputs: usize, weight: &[f32], out: &mut [f32]) {
        let outputs = weight.len() / inputs;
        for (x, out) in x.chunks_exact(inputs).zip(out.chunks_exact_mut(outputs)) {
            for (x, row) in x.iter().zip(weight.chunks_exact(outputs)) {
                out.iter_mut().zip(row).for_each(|(out, w)| *out += *x * *w);
            }
        }
    }
}

for_each_isa! {
    /// Adds the outer products of `d [boards, outputs]` and `x [boards, inputs]` to `out [outputs, inputs]`.
    fn outer(d: &[f32], x: &[f32], inputs: usize, out: &mut [f32]) {
        let outputs = out.len() / inputs;
        for (d, x) in d.chunks_exact(outputs).zip(x.chunks_exact(inputs)) {
            for (d, out) in d.iter().zip(out.chunks_exact_mut(inputs)) {
                out.iter_mut().zip(x).for_each(|(out, x)| *out += *d * *x);
            }
        }
    }
}

for_each_isa! {
    /// Adds `output [boards, outputs]` to the channels from `first` on of `x`, or multiplies them with it.
    fn apply(effect: ChannelEffect, output: &[f32], first: usize, rows: BoardRows, x: &mut [f32]) {
        let outputs = output.len() / rows.boards;
        for boards in x.chunks_exact_mut(rows.boards * rows.width) {
            for (row, output) in boards.chunks_exact_mut(rows.width).zip(output.chunks_exact(outputs)) {
                let channels = row[first..][..outputs].iter_mut().zip(output);
                match effect {
                    ChannelEffect::Bias => channels.for_each(|(x, u)| *x += *u),
                    ChannelEffect::Scale => channels.for_each(|(x, u)| *x *= *u),
                }
            }
        }
    }
}

for_each_isa! {
    /// The sums over the squares of `d` where `active` is positive: `out [boards, outputs]`, of channels from `first` on.
    fn bias_gradient(d: &[f32], active: &[f32], first: usize, rows: BoardRows, out: &mut [f32]) {
        let outputs = out.len() / rows.boards;
        out.fill(0.0);
        let of_square = rows.boards * rows.width;
        for (d, active) in d.chunks_exact(of_square).zip(active.chunks_exact(of_square)) {
            let both = d.chunks_exact(rows.width).zip(active.chunks_exact(rows.width));
            for ((d, active), out) in both.zip(out.chunks_exact_mut(outputs)) {
                for ((sum, d), a) in out.iter_mut().zip(&d[first..]).zip(&active[first..]) {
                    *sum += if *a > 0.0 { *d } else { 0.0 };
                }
            }
        }
    }
}

for_each_isa! {
    /// The sums over the squares of d x, and `dx = d scale`. `scale` and `out` are `[boards, channels]`.
    fn scale_gradient(d: &[f32], x: &[f32], scale: &[f32], rows: BoardRows, dx: &mut [f32], out: &mut [f32]) {
        let channels = out.len() / rows.boards;
        out.fill(0.0);
        let of_square = rows.boards * rows.width;
        let squares = d.chunks_exact(of_square).zip(x.chunks_exact(of_square)).zip(dx.chunks_exact_mut(of_square));
        for ((d, x), dx) in squares {
            for board in 0..rows.boards {
                let row = board * rows.width;
                let (d, x, dx) = (&d[row..][..channels], &x[row..][..channels], &mut dx[row..][..rows.width]);
                dx[channels..].fill(0.0);
                let (scale, out) = (&scale[board * channels..][..channels], &mut out[board * channels..][..channels]);
                for channel in 0..channels {
                    out[channel] += d[channel] * x[channel];
                    dx[channel] = d[channel] * scale[channel];
                }
            }
        }
    }
}

for_each_isa! {
    /// Adds to `dx` the gradient of `x`, given the gradients `d [boards, inputs]` of its statistics; the statistics' ReLU is ignored.
    fn statistics_gradient(d: &[f32], x: &[f32], rows: BoardRows, shape: GlobalPooling, dx: &mut [f32]) {
        let BoardRows { boards, width } = rows;
        let squares = x.len() / (boards * width);
        let pooled = shape.pooled;
        let share = 1.0 / squares as f32;
        let factor = board_factor(squares) as f32;
        let at = |square: usize, board: usize| (square * boards + board) * width;
        for (board, d) in d.chunks_exact(shape.inputs()).enumerate() {
            for square in 0..squares {
                let dx = &mut dx[at(square, board)..][..pooled];
                match shape.statistics {
                    PoolStatistics::Mean => dx.iter_mut().zip(d).for_each(|(dx, d)| *dx += *d * share),
                    PoolStatistics::ReluMeanMax => {
                        for ((dx, d), scaled) in dx.iter_mut().zip(d).zip(&d[pooled..]) {
                            *dx += (*d + *scaled * factor) * share;
                        }
                    }
                }
            }
            if shape.statistics == PoolStatistics::ReluMeanMax {
                for channel in 0..pooled {
                    // The first of equal maxima.
                    let (mut largest, mut square_of_max) = (0.0, 0);
                    for square in 0..squares {
                        let here = x[at(square, board) + channel];
                        if here > largest {
                            (largest, square_of_max) = (here, square);
                        }
                    }
                    dx[at(square_of_max, board) + channel] += d[2 * pooled + channel];
                }
            }
        }
    }
}

/// `[rows, columns]` -> `[columns, rows]`
fn transpose(x: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| x.iter().skip(column).step_by(columns).copied()).collect()
}

/// Where each parameter is among all, given their sizes.
fn split(sizes: [usize; 4], all: &[f32]) -> [&[f32]; 4] {
    let mut rest = all;
    sizes.map(|size| {
        let (part, after) = rest.split_at(size);
        rest = after;
        part
    })
}

fn split_mut(sizes: [usize; 4], all: &mut [f32]) -> [&mut [f32]; 4] {
    let mut rest = all;
    sizes.map(|size| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(size);
        rest = after;
        part
    })
}

fn add_rows(x: &[f32], sum: &mut [f32]) {
    if !sum.is_empty() {
        x.chunks_exact(sum.len()).for_each(|row| sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x));
    }
}

impl PooledLayer {
    /// A layer whose weights are all 0.
    pub fn new(shape: GlobalPooling) -> Self {
        let mut layer = Self { shape, params: Vec::new(), transposed: Default::default() };
        layer.set_params(vec![0.0; shape.param_sizes().iter().sum()]);
        layer
    }

    /// Takes the parameters, one after the other in the layer's order.
    pub fn set_params(&mut self, params: Vec<f32>) {
        let [hidden, _, output, _] = split(self.shape.param_sizes(), &params);
        self.transposed =
            [transpose(hidden, self.shape.inputs()), transpose(output, self.shape.output_inputs())];
        self.params = params;
    }

    /// The number of elements of all parameters.
    pub fn num_params(&self) -> usize {
        self.params.len()
    }

    /// Scratch floats per board that [`PooledLayer::forward`] needs, and half of what the backward passes need.
    pub fn scratch_len(&self) -> usize {
        self.shape.values_per_board()
    }

    fn parts<'a>(&self, boards: usize, scratch: &'a mut [f32]) -> (PoolingBuffers<'a>, &'a mut [f32]) {
        let GlobalPooling { hidden, .. } = self.shape;
        let (statistics, rest) = scratch.split_at_mut(boards * self.shape.inputs());
        let (hidden, rest) = rest.split_at_mut(boards * hidden);
        let (output, rest) = rest.split_at_mut(boards * self.shape.outputs());
        (PoolingBuffers { statistics, hidden, output }, rest)
    }

    /// Statistics, hidden layer, and the bias or scale of each channel.
    fn compute(&self, isa: Isa, x: &[f32], rows: BoardRows, parts: &mut PoolingBuffers<'_>) {
        let [_, hidden_bias, _, output_bias] = split(self.shape.param_sizes(), &self.params);
        let start = |out: &mut [f32], bias: &[f32]| match bias {
            [] => out.fill(0.0),
            _ => out.chunks_exact_mut(bias.len()).for_each(|row| row.copy_from_slice(bias)),
        };
        let PoolingBuffers { statistics: inputs, hidden, output } = parts;
        statistics(isa, x, rows, self.shape, inputs);
        let mut read = &**inputs;
        if self.shape.hidden > 0 {
            start(hidden, hidden_bias);
            linear(isa, read, self.shape.inputs(), &self.transposed[0], hidden);
            hidden.iter_mut().filter(|h| **h < 0.0).for_each(|h| *h = 0.0);
            read = hidden;
        }
        start(output, output_bias);
        linear(isa, read, self.shape.output_inputs(), &self.transposed[1], output);
        if self.shape.effect == ChannelEffect::Scale {
            output.iter_mut().for_each(|u| *u = 1.0 / (1.0 + math::exp(-*u)));
        }
    }

    /// Computes the layer on `x [squares, boards, width]`, in place. `scratch` has [`PooledLayer::scratch_len`] elements a board.
    pub fn forward(&self, isa: Isa, rows: BoardRows, x: &mut [f32], scratch: &mut [f32]) {
        let (mut parts, _) = self.parts(rows.boards, scratch);
        self.compute(isa, x, rows, &mut parts);
        apply(isa, self.shape.effect, parts.output, self.shape.first, rows, x);
    }

    /// Backward pass of a layer whose output goes through a ReLU with the output `active`: adds to `d`, the gradient of that, the
    /// gradient of the statistics, so that passed back through the ReLU it is the gradient of the layer's input. Adds the gradient of
    /// the parameters to `params`.
    ///
    /// # Shapes
    /// `active` and `d` `[squares, boards, width]`; `params [num_params]`; `scratch` of twice [`PooledLayer::scratch_len`] a board.
    pub fn bias_backward(
        &self,
        isa: Isa,
        rows: BoardRows,
        active: &[f32],
        d: &mut [f32],
        (params, scratch): (&mut [f32], &mut [f32]),
    ) {
        // The statistics are of channels without a bias: those of relu(x) are those of `active`.
        let (mut forward, rest) = self.parts(rows.boards, scratch);
        self.compute(isa, active, rows, &mut forward);
        let (mut gradient, _) = self.parts(rows.boards, rest);
        bias_gradient(isa, d, active, self.shape.first, rows, gradient.output);
        self.inner_backward(isa, &forward, &mut gradient, params);
        statistics_gradient(isa, gradient.statistics, active, rows, self.shape, d);
    }

    /// Backward pass of a layer whose output scales `x`: writes `dx`, given the gradient `d` of the product. Adds the gradient
    /// of the parameters to `params`.
    ///
    /// # Shapes
    /// `x`, `d` and `dx` `[squares, boards, width]`; `params [num_params]`; `scratch` of twice [`PooledLayer::scratch_len`] a board.
    pub fn scale_backward(
        &self,
        isa: Isa,
        rows: BoardRows,
        [x, d]: [&[f32]; 2],
        dx: &mut [f32],
        (params, scratch): (&mut [f32], &mut [f32]),
    ) {
        let (mut forward, rest) = self.parts(rows.boards, scratch);
        self.compute(isa, x, rows, &mut forward);
        let (mut gradient, _) = self.parts(rows.boards, rest);
        scale_gradient(isa, d, x, forward.output, rows, dx, gradient.output);
        gradient.output.iter_mut().zip(&*forward.output).for_each(|(d, s)| *d *= s * (1.0 - s));
        self.inner_backward(isa, &forward, &mut gradient, params);
        statistics_gradient(isa, gradient.statistics, x, rows, self.shape, dx);
    }

    /// From the gradient of the output before its sigmoid to that of the statistics.
    fn inner_backward(
        &self,
        isa: Isa,
        forward: &PoolingBuffers<'_>,
        gradient: &mut PoolingBuffers<'_>,
        params: &mut [f32],
    ) {
        let sizes = self.shape.param_sizes();
        let [hidden_weight, _, output_weight, _] = split(sizes, &self.params);
        let [d_hidden_weight, d_hidden_bias, d_output_weight, d_output_bias] = split_mut(sizes, params);
        let PoolingBuffers { statistics: d_statistics, hidden: d_hidden, output: d_output } = gradient;
        add_rows(d_output, d_output_bias);
        d_statistics.fill(0.0);
        if self.shape.hidden == 0 {
            outer(isa, d_output, forward.statistics, self.shape.inputs(), d_output_weight);
            linear(isa, d_output, self.shape.outputs(), output_weight, d_statistics);
            return;
        }
        outer(isa, d_output, forward.hidden, self.shape.hidden, d_output_weight);
        d_hidden.fill(0.0);
        linear(isa, d_output, self.shape.outputs(), output_weight, d_hidden);
        let off = d_hidden.iter_mut().zip(&*forward.hidden).filter(|(_, h)| **h <= 0.0);
        off.for_each(|(d, _)| *d = 0.0);
        add_rows(d_hidden, d_hidden_bias);
        outer(isa, d_hidden, forward.statistics, self.shape.inputs(), d_hidden_weight);
        linear(isa, d_hidden, self.shape.hidden, hidden_weight, d_statistics);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two squares of two boards, rows of two channels and an element that belongs to no channel.
    const ROWS: BoardRows = BoardRows { boards: 2, width: 3 };
    const X: [f32; 12] = [1.0, 5.0, 9.0, 0.0, 1.0, 9.0, -3.0, 6.0, 9.0, 2.0, -1.0, 9.0];

    fn forward(shape: GlobalPooling, params: &[f32]) -> Vec<f32> {
        let mut layer = PooledLayer::new(shape);
        layer.set_params(params.to_vec());
        let (mut x, mut scratch) = (X.to_vec(), vec![f32::NAN; 2 * layer.scratch_len()]);
        layer.forward(Isa::detect(), ROWS, &mut x, &mut scratch);
        x
    }

    #[test]
    fn a_bias_by_hand() {
        let statistics = PoolStatistics::ReluMeanMax;
        let shape = GlobalPooling {
            pooled: 1,
            statistics,
            hidden: 0,
            effect: ChannelEffect::Bias,
            first: 1,
            channels: 2,
        };
        // The first channel's means after the ReLU are 0.5 and 1, its maxima 1 and 2.
        let bias = [2.0 * 0.5 + 10.0, 2.0 * 1.0 + 20.0];
        let right = [1.0, 5.0 + bias[0], 9.0, 0.0, 1.0 + bias[1], 9.0];
        let right = [right, [-3.0, 6.0 + bias[0], 9.0, 2.0, -1.0 + bias[1], 9.0]].concat();
        assert_eq!(forward(shape, &[2.0, 0.0, 10.0]), right);
        // On a board of two squares the mean is weighed with (1.414.. - 14) / 10.
        let off = forward(shape, &[0.0, 1.0, 0.0])[1] - (5.0 - 0.5 * 1.258_578_6);
        assert!(off.abs() < 1e-6, "{off}");
    }

    #[test]
    fn a_scale_by_hand() {
        let statistics = PoolStatistics::Mean;
        let shape = GlobalPooling {
            pooled: 2,
            statistics,
            hidden: 1,
            effect: ChannelEffect::Scale,
            first: 0,
            channels: 2,
        };
        // The channels' means are -1 and 5.5, and 1 and 0: the hidden units are 4.5 and 1.
        let squeeze = [1.0, 1.0, 0.0];
        let found = forward(shape, &[&squeeze[..], &[0.0, 2.0], &[0.0, -1.0]].concat());
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let scales = [[sigmoid(0.0), sigmoid(2.0 * 4.5 - 1.0)], [sigmoid(0.0), sigmoid(2.0 - 1.0)]];
        for (at, (found, x)) in found.iter().zip(X).enumerate() {
            let (board, channel) = (at / 3 % 2, at % 3);
            let right = if channel < 2 { x * scales[board][channel] } else { x };
            assert!((found - right).abs() < 1e-6, "{at}: {found} {right}");
        }
    }
}
