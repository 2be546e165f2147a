//! The losses of the heads and their gradients at the heads' outputs.

use crate::config::TrainConfig;
use crate::error::{Error, Result};
use crate::math;
use crate::model::{Head, HeadRole, Loss, Model, VALUES};
use crate::replay::TrainBatch;
use rayon::prelude::*;

/// Rows of one task; sums are made row by row in order afterwards.
const ROWS: usize = 32;

/// The weight of the loss of `head` in the total loss.
pub fn weight(config: &TrainConfig, head: &Head) -> f64 {
    let of_role = match head.role {
        HeadRole::Policy => 1.0,
        HeadRole::Value => config.value_weight,
        HeadRole::Auxiliary => config.auxiliary_weight,
    };
    of_role * head.weight
}

/// Weighted sums over samples, of one head or of all.
#[derive(Clone, Debug, Default)]
pub struct LossSums {
    /// The loss of each head.
    pub heads: Vec<f64>,
    /// Entropy of the policy's target.
    pub target_entropy: f64,
    /// Squared error of the values that the search reads.
    pub squared_error: f64,
}

/// What one sample adds to the sums.
#[derive(Clone, Copy, Debug, Default)]
struct RowLoss {
    loss: f64,
    entropy: f64,
}

/// Replaces `outputs [rows, outputs]` of `head` by the gradient of its loss, `factor` times the samples' weights. Returns the weighted sums
/// of loss and target entropy.
fn head_gradients(
    (model, head): (&Model, &Head),
    batch: &TrainBatch,
    outputs: &mut [f32],
    total_weight: f64,
    factor: f32,
) -> Result<RowLoss> {
    let target = batch.targets.get(&head.target).ok_or_else(|| missing(head))?;
    let (out_len, target_len) = (model.head_outputs(head), model.target_len(head));
    let num_actions = model.num_actions();
    let tasks = outputs
        .par_chunks_mut(ROWS * out_len)
        .zip(target.par_chunks(ROWS * target_len))
        .zip(batch.legal.par_chunks(ROWS * num_actions))
        .zip(batch.weight.par_chunks(ROWS));
    let sums = tasks.map(|(((outputs, target), legal), weight)| {
        let mut sums = RowLoss::default();
        let outputs = outputs.chunks_exact_mut(out_len).zip(target.chunks_exact(target_len));
        for (((outputs, target), legal), &w) in outputs.zip(legal.chunks_exact(num_actions)).zip(weight) {
            let share = (f64::from(w) / total_weight) as f32;
            let row = row_gradient(head.loss, outputs, target, legal, share * factor);
            sums.loss += f64::from(w) * row.loss;
            sums.entropy += f64::from(w) * row.entropy;
        }
        sums
    });
    let add = |all: RowLoss, one: &RowLoss| RowLoss {
        loss: all.loss + one.loss,
        entropy: all.entropy + one.entropy,
    };
    Ok(sums.collect::<Vec<_>>().iter().fold(RowLoss::default(), add))
}

/// Gradients of the mean loss at the heads' outputs, in whose place they are written, and the losses' sums. The loss is the
/// weighted mean over `total_weight` of the heads' losses times their weights.
///
/// # Errors
/// [`Error::Mismatch`] where the batch lacks a head's target.
pub fn gradients(
    (model, config): (&Model, &TrainConfig),
    batch: &TrainBatch,
    outputs: &mut [Vec<f32>],
    total_weight: f64,
) -> Result<LossSums> {
    let mut sums = LossSums::default();
    for (head, outputs) in model.heads.iter().zip(outputs) {
        let of_values = value_error(model, head, batch, outputs);
        let factor = weight(config, head) as f32;
        let RowLoss { loss, entropy } = head_gradients((model, head), batch, outputs, total_weight, factor)?;
        match head.role {
            HeadRole::Policy => sums.target_entropy += entropy,
            HeadRole::Value => sums.squared_error += of_values.unwrap_or(loss),
            HeadRole::Auxiliary => {}
        }
        sums.heads.push(loss);
    }
    Ok(sums)
}

/// The weighted squared error of the values that the search computes from `outputs`, of a value head that learns something else; None for
/// other heads.
fn value_error(model: &Model, head: &Head, batch: &TrainBatch, outputs: &[f32]) -> Option<f64> {
    let play = head.play.filter(|&play| head.role == HeadRole::Value && play != head.layer)?;
    let (function, players) = (model.layers[play].kind.value_function()?, model.num_players);
    let target = batch.targets.get(VALUES)?;
    let mut values = vec![0.0; model.num_values()];
    let of_rows = outputs.chunks_exact(model.head_outputs(head)).zip(target.chunks_exact(players));
    let errors = of_rows.zip(&batch.weight).map(|((outputs, target), &weight)| {
        function.apply(outputs, &mut values);
        f64::from(weight) * squared_error(&mut values, target, 0.0)
    });
    Some(errors.sum())
}

fn missing(head: &Head) -> Error {
    Error::mismatch(
        format_args!("targets of the head {} in a training batch", head.name),
        "none",
        format_args!("a column called {}", head.target),
    )
}

/// Replaces a row of outputs by `scale` times the gradient of its loss.
fn row_gradient(loss: Loss, outputs: &mut [f32], target: &[f32], legal: &[u8], scale: f32) -> RowLoss {
    match loss {
        Loss::LegalCrossEntropy => cross_entropy(outputs, target, |action| legal[action] != 0, scale),
        Loss::ClassCrossEntropy => cross_entropy(outputs, target, |_| true, scale),
        Loss::SquaredError => RowLoss { loss: squared_error(outputs, target, scale), entropy: 0.0 },
        Loss::BinaryCrossEntropy => binary_cross_entropy(outputs, target, scale),
    }
}

/// Cross-entropy of the softmax over the outputs that are `counted`; others take no part.
fn cross_entropy(logits: &mut [f32], target: &[f32], counted: impl Fn(usize) -> bool, scale: f32) -> RowLoss {
    let mut max = f32::NEG_INFINITY;
    for (_, &logit) in logits.iter().enumerate().filter(|(i, _)| counted(*i)) {
        max = if logit > max { logit } else { max };
    }
    let (mut sum, mut mass) = (0.0f32, 0.0f32);
    for (_, (&logit, &t)) in logits.iter().zip(target).enumerate().filter(|(i, _)| counted(*i)) {
        sum += math::exp(logit - max);
        mass += t;
    }
    let log_sum = f64::from(math::ln(sum));
    let mut row = RowLoss::default();
    for (i, (logit, &t)) in logits.iter_mut().zip(target).enumerate() {
        if !counted(i) {
            *logit = 0.0;
            continue;
        }
        let shifted = *logit - max;
        if t > 0.0 {
            row.loss -= f64::from(t) * (f64::from(shifted) - log_sum);
            row.entropy -= f64::from(t) * f64::from(math::ln(t));
        }
        *logit = scale * (mass * math::exp(shifted) / sum - t);
    }
    row
}

/// The mean squared error. `target` may be longer than the outputs.
fn squared_error(outputs: &mut [f32], target: &[f32], scale: f32) -> f64 {
    let count = outputs.len() as f32;
    let mut error = 0.0f64;
    for (output, t) in outputs.iter_mut().zip(target) {
        let difference = *output - t;
        error += f64::from(difference * difference) / f64::from(count);
        *output = scale * 2.0 * difference / count;
    }
    error
}

/// The mean binary cross-entropy of sigmoid(y) with (1 + t) / 2: max(y, 0) - y p + ln(1 + exp(-|y|)), which overflows nowhere.
fn binary_cross_entropy(outputs: &mut [f32], target: &[f32], scale: f32) -> RowLoss {
    let count = outputs.len() as f32;
    let mut row = RowLoss::default();
    for (output, &t) in outputs.iter_mut().zip(target) {
        let (y, p) = (*output, 0.5 + 0.5 * t);
        let small = math::exp(-y.abs());
        row.loss += f64::from(y.max(0.0) - y * p) + f64::from(math::ln_1p(small));
        let sigmoid = if y >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) };
        *output = scale * (sigmoid - p) / count;
    }
    row.loss /= f64::from(count);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gradient of every loss is the slope of its value.
    #[test]
    fn gradients_are_the_slopes_of_losses() {
        let outputs = [0.3f32, -1.2, 2.1, 0.0];
        let cases = [
            (Loss::LegalCrossEntropy, [0.5f32, 0.0, 0.25, 0.25]),
            (Loss::ClassCrossEntropy, [0.1, 0.2, 0.0, 0.7]),
            (Loss::SquaredError, [0.5, -1.0, 1.0, 0.0]),
            (Loss::BinaryCrossEntropy, [1.0, -1.0, 0.0, 0.5]),
        ];
        let legal = [1, 0, 1, 1];
        for (loss, target) in cases {
            let value = |outputs: [f32; 4]| row_gradient(loss, &mut { outputs }, &target, &legal, 1.0).loss;
            let mut gradient = outputs;
            row_gradient(loss, &mut gradient, &target, &legal, 3.0);
            for i in 0..4 {
                let moved = |step: f32| {
                    let mut outputs = outputs;
                    outputs[i] += step;
                    value(outputs)
                };
                let slope = 3.0 * (moved(0.01) - moved(-0.01)) / 0.02;
                let found = f64::from(gradient[i]);
                assert!((slope - found).abs() < 2e-3, "{loss:?} {i}: {slope} {found}");
            }
        }
    }

    #[test]
    fn large_outputs_have_finite_losses() {
        let mut outputs = [90.0f32, -90.0, 0.0, 1000.0];
        let row = binary_cross_entropy(&mut outputs, &[-1.0, 1.0, 1.0, 1.0], 1.0);
        let expected = (90.0 + 90.0 + std::f64::consts::LN_2) / 4.0;
        assert!((row.loss - expected).abs() < 1e-4, "{row:?}");
        assert_eq!(outputs, [0.25, -0.25, -0.125, 0.0]);
    }
}
