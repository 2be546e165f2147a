//! Batch normalisation (Ioffe and Szegedy 2015) fused with the ReLU after it, forward and backward.
//!
//! Arrays are `[rows, width]`: a row is one position of one board, `width` a multiple of 16. Each function processes one chunk; sums
//! over chunks are added in f64 in the chunks' order.

use super::gemm::LANES;
use crate::isa::for_each_isa;

/// LANES elements of a row.
#[inline(always)]
fn lanes(data: &[f32], at: usize) -> [f32; LANES] {
    let mut out = [0.0; LANES];
    out.copy_from_slice(&data[at..at + LANES]);
    out
}

for_each_isa! {
    /// Mean and sum of squared deviations of every column of a chunk. `mean [width]`, `deviations [width]`.
    fn moments(x: &[f32], mean: &mut [f32], deviations: &mut [f32]) {
        let width = mean.len();
        let rows = x.len() / width;
        for first in (0..width).step_by(LANES) {
            let mut sum = [0.0f32; LANES];
            for row in 0..rows {
                let v = lanes(x, row * width + first);
                for i in 0..LANES {
                    sum[i] += v[i];
                }
            }
            let m = sum.map(|s| s / rows as f32);
            let mut square = [0.0f32; LANES];
            for row in 0..rows {
                let v = lanes(x, row * width + first);
                for i in 0..LANES {
                    let d = v[i] - m[i];
                    square[i] += d * d;
                }
            }
            mean[first..first + LANES].copy_from_slice(&m);
            deviations[first..first + LANES].copy_from_slice(&square);
        }
    }

    /// `out = max(0, (x - mean) scale + shift)`.
    fn normalize_relu(x: &[f32], columns: &Columns<'_>, out: &mut [f32]) {
        let width = columns.mean.len();
        for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for first in (0..width).step_by(LANES) {
                let (v, m) = (lanes(x, first), lanes(columns.mean, first));
                let (s, t) = (lanes(columns.scale, first), lanes(columns.shift, first));
                let y: [f32; LANES] = std::array::from_fn(|i| {
                    let y = (v[i] - m[i]) * s[i] + t[i];
                    // Not `max`: a NaN must stay one.
                    if y < 0.0 { 0.0 } else { y }
                });
                out[first..first + LANES].copy_from_slice(&y);
            }
        }
    }

    /// Passes the gradient `dz` back through the ReLU with output `active`, in place, and sums `dz` and `dz (x - mean)` over the
    /// chunk. `sum [width]`, `product [width]`.
    fn relu_gradient(x: &[f32], mean: &[f32], active: &[f32], dz: &mut [f32], sum: &mut [f32], product: &mut [f32]) {
        let width = mean.len();
        let rows = x.len() / width;
        for first in (0..width).step_by(LANES) {
            let m = lanes(mean, first);
            let (mut total, mut weighted) = ([0.0f32; LANES], [0.0f32; LANES]);
            for row in 0..rows {
                let at = row * width + first;
                let (v, a, mut d) = (lanes(x, at), lanes(active, at), lanes(dz, at));
                for i in 0..LANES {
                    d[i] = if a[i] > 0.0 { d[i] } else { 0.0 };
                    total[i] += d[i];
                    weighted[i] += d[i] * (v[i] - m[i]);
                }
                dz[at..at + LANES].copy_from_slice(&d);
            }
            sum[first..first + LANES].copy_from_slice(&total);
            product[first..first + LANES].copy_from_slice(&weighted);
        }
    }

    /// Gradient of the normalisation's input, in place of `dz`: `dz scale - offset - (x - mean) slope`.
    fn input_gradient(x: &[f32], columns: &GradientColumns<'_>, dz: &mut [f32]) {
        let width = columns.mean.len();
        for (x, dz) in x.chunks_exact(width).zip(dz.chunks_exact_mut(width)) {
            for first in (0..width).step_by(LANES) {
                let (v, d, m) = (lanes(x, first), lanes(dz, first), lanes(columns.mean, first));
                let (a, b, c) =
                    (lanes(columns.scale, first), lanes(columns.slope, first), lanes(columns.offset, first));
                let dx: [f32; LANES] = std::array::from_fn(|i| d[i] * a[i] - (v[i] - m[i]) * b[i] - c[i]);
                dz[first..first + LANES].copy_from_slice(&dx);
            }
        }
    }

    /// `y += x`.
    fn add(x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += *x;
        }
    }

    /// Adds every row of `x` to `sum`. `x [rows, width]`, `sum [width]`.
    fn add_rows(x: &[f32], sum: &mut [f32]) {
        let width = sum.len();
        for first in (0..width).step_by(LANES) {
            let mut total = lanes(sum, first);
            for row in 0..x.len() / width {
                let v = lanes(x, row * width + first);
                for i in 0..LANES {
                    total[i] += v[i];
                }
            }
            sum[first..first + LANES].copy_from_slice(&total);
        }
    }
}

/// The forward normalisation of each column. All `[width]`.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    /// Mean of the batch.
    pub mean: &'a [f32],
    /// Weight over standard deviation.
    pub scale: &'a [f32],
    /// Bias.
    pub shift: &'a [f32],
}

/// The backward normalisation of each column. All `[width]`.
#[derive(Clone, Copy)]
pub struct GradientColumns<'a> {
    /// Mean of the batch.
    pub mean: &'a [f32],
    /// Weight over standard deviation.
    pub scale: &'a [f32],
    /// `scale` times the mean of dz (x - mean), over the variance.
    pub slope: &'a [f32],
    /// `scale` times the mean of dz.
    pub offset: &'a [f32],
}
