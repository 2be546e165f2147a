//! The forward as its formulas read: one observation at a time, 64-bit sums, no layout, no folding. Slow; the other
//! forwards are checked against it.

use super::edges::Edges;
use super::spec::{Array, BN_EPS, NetSpec, Weights};
use crate::config::Arch;
use crate::error::Result;

/// Evaluates one observation `[F]`: logits `[A]` and values `[P]` relative to the observer.
///
/// # Errors
/// Those of [`NetSpec::check`].
pub fn forward(spec: &NetSpec, weights: &Weights, obs: &[f32]) -> Result<(Vec<f32>, Vec<f32>)> {
    spec.check(weights)?;
    let net = Naive { spec, weights };
    let x: Vec<f64> = obs.iter().map(|&x| f64::from(x)).collect();
    let (logits, value) = match spec.arch {
        Arch::Resnet => net.resnet(&x),
        Arch::Mlp => net.mlp(&x),
        Arch::Edge => net.edge(&Edges::of_observation(spec.obs, spec.num_actions)?, &x),
    };
    let mut values: Vec<f32> = value.iter().map(|v| v.tanh() as f32).collect();
    if spec.zero_sum_pair {
        values.push(-values[0]);
    }
    Ok((logits.iter().map(|&x| x as f32).collect(), values))
}

struct Naive<'a> {
    spec: &'a NetSpec,
    weights: &'a Weights,
}

impl Naive<'_> {
    fn resnet(&self, obs: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut x = self.conv("stem", obs);
        for i in 0..self.spec.blocks {
            let y = self.conv(&format!("blocks.{i}.conv1"), &self.bn_relu(&format!("blocks.{i}.bn1"), &x));
            let y = self.conv(&format!("blocks.{i}.conv2"), &self.bn_relu(&format!("blocks.{i}.bn2"), &y));
            x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        }
        let x = self.bn_relu("bn", &x);
        let policy = self.bn_relu("policy.bn", &self.conv("policy.conv", &x));
        let value = self.bn_relu("value.bn", &self.conv("value.conv", &x));
        (self.linear("policy.linear", &policy), self.value_out(&value))
    }

    fn mlp(&self, obs: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut x = self.linear("stem", obs);
        for i in 0..self.spec.blocks {
            let y =
                self.linear(&format!("blocks.{i}.linear1"), &self.bn_relu(&format!("blocks.{i}.bn1"), &x));
            let y =
                self.linear(&format!("blocks.{i}.linear2"), &self.bn_relu(&format!("blocks.{i}.bn2"), &y));
            x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        }
        let x = self.bn_relu("bn", &x);
        (self.linear("policy.linear", &x), self.value_out(&x))
    }

    /// The formulas of `net/edge.rs`, on features `[C, E]`.
    fn edge(&self, edges: &Edges, obs: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut x = self.pointwise("stem", obs, edges.len());
        for i in 0..self.spec.blocks {
            let a = self.bn_relu(&format!("blocks.{i}.bn1"), &x);
            let at_vertices =
                self.pointwise(&format!("blocks.{i}.vertex"), &vertex_means(edges, &a), edges.vertices);
            let mut y = self.pointwise(&format!("blocks.{i}.edge"), &a, edges.len());
            for (index, y) in y.iter_mut().enumerate() {
                let (channel, [j, k]) = (index / edges.len(), edges.ends[index % edges.len()]);
                *y += at_vertices[channel * edges.vertices + j] + at_vertices[channel * edges.vertices + k];
            }
            let z = self.bn_relu(&format!("blocks.{i}.bn2"), &y);
            let mixed = triangles(edges, &z, self.spec.channels / 2);
            let y = self.pointwise(&format!("blocks.{i}.out"), &mixed, edges.len());
            x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        }
        let x = self.bn_relu("bn", &x);
        let mean = |channel: &[f64]| channel.iter().sum::<f64>() / edges.len() as f64;
        let pooled: Vec<f64> = x.chunks_exact(edges.len()).map(mean).collect();
        (self.pointwise("policy.linear", &x, edges.len()), self.value_out(&pooled))
    }

    /// The same linear map without bias at every position; x `[inputs, positions]`.
    fn pointwise(&self, name: &str, x: &[f64], positions: usize) -> Vec<f64> {
        let (shape, weight) = self.tensor(&format!("{name}.weight"));
        let sum = |output: usize, position: usize| -> f64 {
            let row = &weight[output * shape[1]..][..shape[1]];
            row.iter().zip(x.iter().skip(position).step_by(positions)).map(|(&w, x)| f64::from(w) * x).sum()
        };
        (0..shape[0] * positions).map(|index| sum(index / positions, index % positions)).collect()
    }

    fn value_out(&self, x: &[f64]) -> Vec<f64> {
        let hidden: Vec<f64> = self.linear("value.hidden", x).iter().map(|x| x.max(0.0)).collect();
        self.linear("value.out", &hidden)
    }

    fn tensor(&self, name: &str) -> (&[usize], &[f32]) {
        let Array { shape, data } = &self.weights[name];
        (shape, data)
    }

    /// Convolution with zero padding that keeps the board's size; x `[Cin, H, W]`.
    fn conv(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (shape, weight) = self.tensor(&format!("{name}.weight"));
        let (outputs, inputs, size) = (shape[0], shape[1], shape[2]);
        let (height, width, pad) = (self.spec.obs.height, self.spec.obs.width, size / 2);
        let mut out = vec![0.0; outputs * height * width];
        for (index, out) in out.iter_mut().enumerate() {
            let (co, y, x0) = (index / (height * width), index / width % height, index % width);
            for (tap, w) in weight[co * inputs * size * size..][..inputs * size * size].iter().enumerate() {
                let (ci, ky, kx) = (tap / (size * size), tap / size % size, tap % size);
                let (sy, sx) = (y + ky, x0 + kx);
                if (pad..height + pad).contains(&sy) && (pad..width + pad).contains(&sx) {
                    *out += f64::from(*w) * x[(ci * height + sy - pad) * width + sx - pad];
                }
            }
        }
        out
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (_, weight) = self.tensor(&format!("{name}.weight"));
        let (_, bias) = self.tensor(&format!("{name}.bias"));
        let rows = weight.chunks_exact(x.len());
        rows.zip(bias)
            .map(|(row, &b)| f64::from(b) + row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum::<f64>())
            .collect()
    }

    /// relu(BatchNorm(x)) with the running statistics; x is channel-major.
    fn bn_relu(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let part = |part: &str| self.tensor(&format!("{name}.{part}")).1;
        let (weight, bias) = (part("weight"), part("bias"));
        let (mean, var) = (part("running_mean"), part("running_var"));
        let per_channel = x.len() / weight.len();
        let norm = |(i, x): (usize, &f64)| {
            let c = i / per_channel;
            let unit = (x - f64::from(mean[c])) / (f64::from(var[c]) + BN_EPS).sqrt();
            (unit * f64::from(weight[c]) + f64::from(bias[c])).max(0.0)
        };
        x.iter().enumerate().map(norm).collect()
    }
}

/// The mean over the n - 1 edges at each vertex; `[C, E]` -> `[C, n]`.
fn vertex_means(edges: &Edges, x: &[f64]) -> Vec<f64> {
    let mean = |channel: &[f64], vertex: usize| -> f64 {
        let at = channel.iter().zip(&edges.ends).filter(|(_, ends)| ends.contains(&vertex));
        at.map(|(x, _)| x).sum::<f64>() / (edges.vertices - 1) as f64
    };
    let channels = x.chunks_exact(edges.len());
    channels.flat_map(|channel| (0..edges.vertices).map(move |vertex| mean(channel, vertex))).collect()
}

/// The first `channels` of `[C, E]` at (i, j) become the sum over k of (i, k) (j, k), over the root of n - 2.
fn triangles(edges: &Edges, x: &[f64], channels: usize) -> Vec<f64> {
    let n = edges.vertices;
    let value = |channel: &[f64], i: usize, j: usize| -> f64 {
        let same = |ends: &&[usize; 2]| ends.contains(&i) && ends.contains(&j);
        edges.ends.iter().zip(channel).filter(|(ends, _)| same(ends)).map(|(_, x)| x).sum()
    };
    let mut out = x.to_vec();
    for (index, out) in out.iter_mut().take(channels * edges.len()).enumerate() {
        let (channel, [i, j]) =
            (&x[index / edges.len() * edges.len()..][..edges.len()], edges.ends[index % edges.len()]);
        let others = (0..n).filter(|&k| k != i && k != j);
        *out = others.map(|k| value(channel, i, k) * value(channel, j, k)).sum::<f64>()
            / ((n - 2) as f64).sqrt();
    }
    out
}
