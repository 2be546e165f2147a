//! The losses and their gradients at the network's outputs.

use super::TrainBatch;
use crate::math;
use crate::model::NetSpec;
use crate::net::cpu_train::Outputs;
use rayon::prelude::*;
use std::ops::Range;

/// Rows of one task; sums are made row by row in order afterwards.
const ROWS: usize = 32;

/// Weighted sums over samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossSums {
    pub cross_entropy: f64,
    pub target_entropy: f64,
    pub squared_error: f64,
}

impl LossSums {
    pub fn add(&mut self, other: &Self) {
        self.cross_entropy += other.cross_entropy;
        self.target_entropy += other.target_entropy;
        self.squared_error += other.squared_error;
    }
}

/// Some rows of a batch. Shapes as in [`TrainBatch`].
pub struct TargetRows<'a> {
    policy: &'a [f32],
    legal: &'a [u8],
    values: &'a [f32],
    weight: &'a [f32],
    num_actions: usize,
    num_players: usize,
    num_values: usize,
}

impl<'a> TargetRows<'a> {
    pub fn new(spec: &NetSpec, batch: &'a TrainBatch, rows: Range<usize>) -> Self {
        let (a, p) = (spec.num_actions, spec.num_players);
        Self {
            policy: &batch.policy[rows.start * a..rows.end * a],
            legal: &batch.legal[rows.start * a..rows.end * a],
            values: &batch.values[rows.start * p..rows.end * p],
            weight: &batch.weight[rows],
            num_actions: a,
            num_players: p,
            num_values: spec.num_values(),
        }
    }
}

/// Gradients of the mean loss at the outputs, and the losses' sums.
pub struct Gradients {
    /// `[B, A]`
    pub logits: Vec<f32>,
    /// `[B, V]`
    pub values: Vec<f32>,
    pub sums: LossSums,
}

/// The loss is the weighted mean over `total_weight` of `CE + value_weight * MSE`.
pub fn gradients(
    targets: &TargetRows<'_>,
    outputs: &Outputs,
    total_weight: f64,
    value_weight: f64,
) -> Gradients {
    let TargetRows { num_actions, num_players, num_values, .. } = *targets;
    let mut logits = outputs.logits.clone();
    let mut values = outputs.values.clone();
    let arrays = logits
        .par_chunks_mut(ROWS * num_actions)
        .zip(values.par_chunks_mut(ROWS * num_values))
        .zip(targets.policy.par_chunks(ROWS * num_actions))
        .zip(targets.legal.par_chunks(ROWS * num_actions))
        .zip(targets.values.par_chunks(ROWS * num_players))
        .zip(targets.weight.par_chunks(ROWS));
    let sums = arrays.map(|(((((logits, values), policy), legal), target_values), weight)| {
        let mut sums = LossSums::default();
        let actions = num_actions;
        for (row, &w) in weight.iter().enumerate() {
            let columns = row * actions..(row + 1) * actions;
            let share = (f64::from(w) / total_weight) as f32;
            let (ce, entropy) =
                policy_row(&mut logits[columns.clone()], &policy[columns.clone()], &legal[columns], share);
            let values = &mut values[row * num_values..(row + 1) * num_values];
            let scale = share * value_weight as f32;
            let error = value_row(values, &target_values[row * num_players..], scale);
            let w = f64::from(w);
            sums.add(&LossSums {
                cross_entropy: w * ce,
                target_entropy: w * entropy,
                squared_error: w * error,
            });
        }
        sums
    });
    let mut total = LossSums::default();
    sums.collect::<Vec<_>>().iter().for_each(|sums| total.add(sums));
    Gradients { logits, values, sums: total }
}

/// Replaces a row of logits by `share` times the gradient of its cross-entropy. Returns the cross-entropy and the target's
/// entropy. Illegal actions take no part.
fn policy_row(logits: &mut [f32], target: &[f32], legal: &[u8], share: f32) -> (f64, f64) {
    let mut max = f32::NEG_INFINITY;
    for (&logit, _) in logits.iter().zip(legal).filter(|(_, legal)| **legal != 0) {
        max = if logit > max { logit } else { max };
    }
    let (mut sum, mut mass) = (0.0f32, 0.0f32);
    for ((&logit, &t), _) in logits.iter().zip(target).zip(legal).filter(|(_, legal)| **legal != 0) {
        sum += math::exp(logit - max);
        mass += t;
    }
    let log_sum = f64::from(sum.ln());
    let (mut cross_entropy, mut entropy) = (0.0f64, 0.0f64);
    for ((logit, &t), &legal) in logits.iter_mut().zip(target).zip(legal) {
        if legal == 0 {
            *logit = 0.0;
            continue;
        }
        let shifted = *logit - max;
        if t > 0.0 {
            cross_entropy -= f64::from(t) * (f64::from(shifted) - log_sum);
            entropy -= f64::from(t) * f64::from(t).ln();
        }
        *logit = share * (mass * math::exp(shifted) / sum - t);
    }
    (cross_entropy, entropy)
}

/// Replaces a row of values by `scale` times the gradient of their mean squared error. Returns that error.
fn value_row(values: &mut [f32], target: &[f32], scale: f32) -> f64 {
    let count = values.len() as f32;
    let mut error = 0.0f64;
    for (value, t) in values.iter_mut().zip(target) {
        let difference = *value - t;
        error += f64::from(difference * difference) / f64::from(count);
        *value = scale * 2.0 * difference / count;
    }
    error
}
