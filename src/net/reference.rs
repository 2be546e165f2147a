//! The plainest executor: one observation at a time, every layer as its formula reads, in 64-bit floats. Tests compare
//! the other executors with it.

use crate::error::Result;
use crate::game::{PointActions, PointOrder};
use crate::model::{ActivationShape, Array, BN_EPS, CompleteGraph, Layer, LayerKind, Model, Weights};

/// Evaluates one observation `[F]`: logits `[A]` and values `[P]` relative to the observer.
///
/// # Errors
/// Those of [`Model::check`].
pub fn forward(model: &Model, weights: &Weights, obs: &[f32]) -> Result<(Vec<f32>, Vec<f32>)> {
    let layers = activations(model, weights, obs)?;
    let round = |layer: usize| -> Vec<f32> { layers[layer].iter().map(|&x| x as f32).collect() };
    let mut values = round(model.value());
    if model.num_values() < model.num_players {
        values.push(-values[0]);
    }
    Ok((round(model.policy()), values))
}

/// The output of every layer, `[channels, positions]`.
///
/// # Errors
/// Those of [`Model::check`].
pub fn activations(model: &Model, weights: &Weights, obs: &[f32]) -> Result<Vec<Vec<f64>>> {
    model.check(weights)?;
    let mut done: Vec<Vec<f64>> = Vec::with_capacity(model.layers.len());
    for layer in &model.layers {
        let params: Vec<&Array> =
            model.params[layer.params.clone()].iter().map(|param| &weights[&param.name]).collect();
        let inputs: Vec<LayerInput<'_>> = layer
            .inputs
            .iter()
            .map(|&input| LayerInput { shape: model.layers[input].shape, x: &done[input] })
            .collect();
        let out = if layer.kind == LayerKind::Input {
            obs.iter().map(|&x| f64::from(x)).collect()
        } else {
            run(layer, &params, &inputs)
        };
        done.push(out);
    }
    Ok(done)
}

/// The input of a layer. `x [channels, positions]`
struct LayerInput<'a> {
    shape: ActivationShape,
    x: &'a [f64],
}

/// One layer. `params` as [`LayerKind::params`] lists them.
fn run(layer: &Layer, params: &[&Array], inputs: &[LayerInput<'_>]) -> Vec<f64> {
    let LayerInput { shape, x } = inputs[0];
    let map = |f: fn(f64) -> f64| x.iter().map(|&x| f(x)).collect();
    match layer.kind {
        LayerKind::Input | LayerKind::Flatten => x.to_vec(),
        LayerKind::Conv3x3 { .. } => conv3x3(params[0], x, shape),
        LayerKind::Conv1x1 { .. } => pointwise(params[0], x, shape.positions()),
        LayerKind::Linear { .. } => {
            let sums = pointwise(params[0], x, 1);
            sums.iter().zip(&params[1].data).map(|(sum, &bias)| sum + f64::from(bias)).collect()
        }
        LayerKind::BatchNorm => batch_norm(params, x, shape),
        LayerKind::Relu => map(|x| x.max(0.0)),
        LayerKind::Tanh => map(f64::tanh),
        LayerKind::WinLoss => {
            let sum: f64 = x.iter().map(|x| x.exp()).sum();
            vec![(x[0].exp() - x[2].exp()) / sum]
        }
        LayerKind::Add => x.iter().zip(inputs[1].x).map(|(x, y)| x + y).collect(),
        LayerKind::EdgeMessage => edge_message(params, x, &edges_of(shape)),
        LayerKind::TriangleMix { channels } => triangle_mix(x, channels, &edges_of(shape)),
        LayerKind::MeanOverEdges => x.chunks_exact(shape.positions()).map(mean).collect(),
        LayerKind::PointLogits(actions) => point_logits(actions, x, shape),
    }
}

fn edges_of(shape: ActivationShape) -> CompleteGraph {
    match shape {
        ActivationShape::Edges { vertices, .. } => CompleteGraph::new(vertices),
        ActivationShape::Vector(_) | ActivationShape::Board { .. } => panic!("{shape} are not edges of K_n"),
    }
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// Convolution with zeros around the board. `weight [outputs, inputs, 3, 3]`
fn conv3x3(weight: &Array, x: &[f64], shape: ActivationShape) -> Vec<f64> {
    let ActivationShape::Board { channels, height, width } = shape else { panic!("{shape} are not boards") };
    let sum = |output: usize, row: usize, column: usize| -> f64 {
        let taps = (0..channels * 9).filter_map(|tap| {
            let (input, y, z) = (tap / 9, row + tap / 3 % 3, column + tap % 3);
            let on_board = (1..=height).contains(&y) && (1..=width).contains(&z);
            let w = f64::from(weight.data[output * channels * 9 + tap]);
            on_board.then(|| w * x[(input * height + y - 1) * width + z - 1])
        });
        taps.sum()
    };
    let area = height * width;
    let outputs = weight.shape[0];
    (0..outputs * area).map(|at| sum(at / area, at % area / width, at % width)).collect()
}

/// The same linear map at every position. `weight [outputs, inputs, ..]`, `x [inputs, positions]`
fn pointwise(weight: &Array, x: &[f64], positions: usize) -> Vec<f64> {
    let (outputs, inputs) = (weight.shape[0], weight.shape[1]);
    let sum = |output: usize, position: usize| -> f64 {
        let row = &weight.data[output * inputs..][..inputs];
        row.iter().zip(x.iter().skip(position).step_by(positions)).map(|(&w, x)| f64::from(w) * x).sum()
    };
    (0..outputs * positions).map(|at| sum(at / positions, at % positions)).collect()
}

/// With the running statistics.
fn batch_norm(params: &[&Array], x: &[f64], shape: ActivationShape) -> Vec<f64> {
    let normalised = x.iter().enumerate().map(|(at, x)| {
        let [weight, bias, mean, variance] =
            [0, 1, 2, 3].map(|number: usize| f64::from(params[number].data[at / shape.positions()]));
        (x - mean) / (variance + BN_EPS).sqrt() * weight + bias
    });
    normalised.collect()
}

fn edge_message(params: &[&Array], x: &[f64], edges: &CompleteGraph) -> Vec<f64> {
    let means: Vec<f64> = x
        .chunks_exact(edges.len())
        .flat_map(|channel| {
            (0..edges.vertices).map(|vertex| {
                let here = channel.iter().zip(&edges.ends).filter(|(_, ends)| ends.contains(&vertex));
                here.map(|(x, _)| x).sum::<f64>() / (edges.vertices - 1) as f64
            })
        })
        .collect();
    let sent = pointwise(params[1], &means, edges.vertices);
    let mut out = pointwise(params[0], x, edges.len());
    for (at, out) in out.iter_mut().enumerate() {
        let (channel, [i, j]) = (at / edges.len(), edges.ends[at % edges.len()]);
        *out += sent[channel * edges.vertices + i] + sent[channel * edges.vertices + j];
    }
    out
}

fn triangle_mix(x: &[f64], channels: usize, edges: &CompleteGraph) -> Vec<f64> {
    let n = edges.vertices;
    let value = |channel: &[f64], i: usize, j: usize| -> f64 {
        let same = |ends: &&[usize; 2]| ends.contains(&i) && ends.contains(&j);
        edges.ends.iter().zip(channel).filter(|(ends, _)| same(ends)).map(|(_, x)| x).sum()
    };
    let mut out = x.to_vec();
    for (at, out) in out.iter_mut().take(channels * edges.len()).enumerate() {
        let channel = &x[at / edges.len() * edges.len()..][..edges.len()];
        let [i, j] = edges.ends[at % edges.len()];
        let others = (0..n).filter(|&k| k != i && k != j);
        let sum: f64 = others.map(|k| value(channel, i, k) * value(channel, j, k)).sum();
        *out = sum / ((n - 2) as f64).sqrt();
    }
    out
}

/// Channels at the points in the order of the actions, then the means of the others.
fn point_logits(PointActions { planes, order }: PointActions, x: &[f64], shape: ActivationShape) -> Vec<f64> {
    let ActivationShape::Board { height, width, .. } = shape else { panic!("{shape} are not boards") };
    let points: Vec<usize> = match order {
        PointOrder::Rows => (0..height * width).collect(),
        PointOrder::Columns => {
            (0..width).flat_map(|column| (0..height).rev().map(move |row| row * width + column)).collect()
        }
    };
    let (at_points, others) = x.split_at(planes * points.len());
    let planes = || at_points.chunks_exact(height * width);
    let by_point = points.iter().flat_map(|&point| planes().map(move |plane| plane[point]));
    by_point.chain(others.chunks_exact(height * width).map(mean)).collect()
}

/// Largest difference, as a share of 1 + the largest number; infinite where one of them is NaN.
#[cfg(test)]
pub(crate) fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let scale = 1.0 + b.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
    let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    apart.fold(0.0, |m: f32, d| m.max(if d.is_nan() { f32::INFINITY } else { d })) / scale
}

#[test]
fn no_number_is_far_from_any() {
    for (a, b) in [([1.0, f32::NAN], [1.0, 2.0]), ([f32::NAN, 1.0], [f32::NAN, 1.0])] {
        assert_eq!(difference(&a, &b), f32::INFINITY);
    }
    assert_eq!(difference(&[1.0, 2.0], &[1.0, 3.0]), 0.25);
}
