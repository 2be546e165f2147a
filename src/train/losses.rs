//! The losses of an update.

use super::loss::{self, LossSums};
use super::optimizer::learning_rate;
use crate::config::TrainConfig;
use crate::error::{Error, Result};
use crate::model::{Head, HeadRole, Model, POLICY};

/// The loss of one head.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadLoss {
    /// The head's name.
    pub name: String,
    /// The weighted mean over the batch.
    pub mean: f64,
}

/// Losses of one update: weighted means over the batch, before the update.
#[derive(Clone, Debug, PartialEq)]
pub struct Losses {
    /// The loss of each head, in the order of [`Model::heads`].
    pub heads: Vec<HeadLoss>,
    /// Cross-entropy of the softmax over legal actions with the target, in nats.
    pub policy_cross_entropy: f64,
    /// The same less the target's entropy, in nats.
    pub policy_kl: f64,
    /// Squared error of the values that the search reads, averaged over the value head's outputs.
    pub value_mse: f64,
    /// The total loss: the sum of the heads' losses times their weights.
    pub total: f64,
    /// Norm of the whole gradient before clipping.
    pub gradient_norm: f64,
    /// The learning rate of this update.
    pub learning_rate: f64,
}

impl Losses {
    /// Of the update after `updates`, out of sums over samples.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a loss.
    pub(super) fn new(
        (model, config): (&Model, &TrainConfig),
        sums: &LossSums,
        total_weight: f64,
        norm: f64,
        updates: u64,
    ) -> Result<Self> {
        let mean = |sum: f64| sum / total_weight;
        let (mut heads, mut total, mut policy_cross_entropy) =
            (Vec::with_capacity(model.heads.len()), 0.0, 0.0);
        for (head, &sum) in model.heads.iter().zip(&sums.heads) {
            let loss = mean(sum);
            finite(&format!("the {} loss", head.name), loss)?;
            total += loss::weight(config, head) * loss;
            if head.role == HeadRole::Policy {
                policy_cross_entropy = loss;
            }
            heads.push(HeadLoss { name: head.name.clone(), mean: loss });
        }
        Ok(Self {
            heads,
            policy_cross_entropy,
            policy_kl: policy_cross_entropy - mean(sums.target_entropy),
            value_mse: mean(sums.squared_error),
            total,
            gradient_norm: norm,
            learning_rate: learning_rate(config, updates),
        })
    }

    /// The losses of heads that are no field of their own: all but those called policy and value.
    pub fn further_heads(&self) -> impl Iterator<Item = &HeadLoss> {
        self.heads.iter().filter(|head| head.name != POLICY && head.name != Head::VALUE)
    }

    /// The same, if the gradient's norm is finite.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for the norm.
    pub(super) fn finite(self) -> Result<Self> {
        finite("the norm of the gradient", self.gradient_norm)?;
        Ok(self)
    }
}

fn finite(what: &str, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::NotFinite { what: what.into(), value: value as f32 })
}
