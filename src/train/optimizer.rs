//! AdamW over flat parameters, and the learning rate's schedule.

use crate::config::TrainConfig;
use crate::math;
use rayon::prelude::*;

/// Keeps the denominator from 0, as PyTorch's default.
pub(super) const EPS: f32 = 1e-8;
/// The decay of the first moment: Adam's value.
const BETA1: f64 = 0.9;
/// The decay of the second moment: Adam's value.
const BETA2: f64 = 0.999;
/// Parameters of one task.
const PART: usize = 16_384;

/// Parameters, and what the optimiser remembers of earlier gradients, one number a parameter each.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimizerState {
    /// The parameters.
    pub parameters: Vec<f32>,
    /// First moments.
    pub first: Vec<f32>,
    /// Second moments.
    pub second: Vec<f32>,
}

impl OptimizerState {
    /// Before the first update.
    pub fn new(parameters: Vec<f32>) -> Self {
        let zeros = vec![0.0; parameters.len()];
        Self { parameters, first: zeros.clone(), second: zeros }
    }
}

/// The learning rate of the update after `updates` updates: a linear warm-up of at most `lr_updates`, then half a cosine down to the final
/// rate.
pub fn learning_rate(config: &TrainConfig, updates: u64) -> f64 {
    let after = updates + 1;
    let start = config.warmup_updates.min(config.lr_updates);
    let warmup = if after < start { after as f64 / start as f64 } else { 1.0 };
    let length = (config.lr_updates - start).max(1);
    let progress = (updates.saturating_sub(start) as f64 / length as f64).min(1.0);
    let cosine = 0.5 * (1.0 + math::cos_pi(progress));
    config.lr * warmup * (config.lr_final + (1.0 - config.lr_final) * cosine)
}

/// The Euclidean norm, summed in a fixed order.
pub fn norm(gradient: &[f32]) -> f64 {
    let squares: Vec<f64> = gradient
        .par_chunks(PART)
        .map(|part| part.iter().map(|&g| f64::from(g) * f64::from(g)).sum())
        .collect();
    squares.iter().sum::<f64>().sqrt()
}

/// One update's arithmetic.
pub struct UpdateRule {
    pub rate: f32,
    /// The gradient is multiplied by this first.
    scale: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub decay: f32,
    /// Corrections of the moments' start at 0.
    pub first_correction: f32,
    pub second_correction: f32,
}

impl UpdateRule {
    /// Update number `update`, from 1.
    pub fn new(config: &TrainConfig, learning_rate: f64, scale: f64, update: u64) -> Self {
        let correction = |beta: f64| (1.0 - math::power(beta, update)) as f32;
        Self {
            rate: learning_rate as f32,
            scale: scale as f32,
            beta1: BETA1 as f32,
            beta2: BETA2 as f32,
            decay: config.weight_decay as f32,
            first_correction: correction(BETA1),
            second_correction: correction(BETA2),
        }
    }

    /// Writes the state after the update to `next`. `decayed` is 1 for parameters subject to weight decay, else 0.
    pub fn apply(
        &self,
        state: &OptimizerState,
        gradient: &[f32],
        decayed: &[f32],
        next: &mut OptimizerState,
    ) {
        let from = state
            .parameters
            .par_chunks(PART)
            .zip(state.first.par_chunks(PART))
            .zip(state.second.par_chunks(PART))
            .zip(gradient.par_chunks(PART))
            .zip(decayed.par_chunks(PART));
        let to = next
            .parameters
            .par_chunks_mut(PART)
            .zip(next.first.par_chunks_mut(PART))
            .zip(next.second.par_chunks_mut(PART));
        from.zip(to).for_each(|(((((x, m), v), gradient), decayed), ((parameters, first), second))| {
            parameters.copy_from_slice(x);
            first.copy_from_slice(m);
            second.copy_from_slice(v);
            self.adamw(parameters, first, second, gradient, decayed);
        });
    }

    /// Loshchilov and Hutter 2019, algorithm 2.
    fn adamw(
        &self,
        parameters: &mut [f32],
        first: &mut [f32],
        second: &mut [f32],
        gradient: &[f32],
        decayed: &[f32],
    ) {
        let moments = first.iter_mut().zip(second);
        for (((x, (m, v)), g), decayed) in parameters.iter_mut().zip(moments).zip(gradient).zip(decayed) {
            let g = g * self.scale;
            *m = self.beta1 * *m + (1.0 - self.beta1) * g;
            *v = self.beta2 * *v + (1.0 - self.beta2) * g * g;
            let denominator = (*v / self.second_correction).sqrt() + EPS;
            *x -= self.rate * (decayed * self.decay * *x + *m / self.first_correction / denominator);
        }
    }
}
