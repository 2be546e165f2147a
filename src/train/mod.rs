//! The training step: a batch in, new weights out.
//!
//! Knows networks as flat parameters and batches as arrays; never sees a tree or a file, nor a game, except that a GPU's copy of the
//! replay buffer (`device`) has the game's kernels make observations. A step is a function of
//! the trainer's state and the batch alone, to the bit, whatever the number of threads.

pub mod device; // the same on a GPU
mod loss;
mod optimizer;
mod pass;
mod state;

pub use optimizer::learning_rate;

use crate::config::TrainConfig;
use crate::error::{Error, Result};
use crate::model::{HeadRole, Model, NetSpec, Weights};
use crate::net::cpu_train::CpuTrainNet;
pub use crate::replay::{TargetColumns, TrainBatch};
use candle_core::Device;
use loss::LossSums;
use optimizer::OptimizerState;
use pass::{AutogradPass, CandlePass};
use state::TrainerSnapshot;

impl TrainBatch {
    /// The number of samples.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where an array has the wrong length, the number of samples is not a multiple of `accumulate`, or their weights
    /// have no positive sum.
    fn check(&self, model: &Model, accumulate: usize) -> Result<usize> {
        let rows = self.weight.len();
        let arrays = [
            ("observations".to_string(), self.obs.len(), model.obs().len()),
            ("legal masks".to_string(), self.legal.len(), model.num_actions()),
        ];
        let targets = model.heads.iter().map(|head| {
            let found = self.targets.get(&head.target).map_or(0, <[f32]>::len);
            (format!("targets called {}", head.target), found, model.target_len(head))
        });
        for (what, found, per_row) in arrays.into_iter().chain(targets) {
            if found != rows * per_row {
                let what = format!("{what} of a training batch of {rows}");
                let expected = format!("{} numbers", rows * per_row);
                return Err(Error::Mismatch { what, found: format!("{found} numbers"), expected });
            }
        }
        if rows == 0 || !rows.is_multiple_of(accumulate) {
            return Err(Error::Mismatch {
                what: "samples of a training batch".into(),
                found: rows.to_string(),
                expected: format!("a positive multiple of train.accumulate = {}", accumulate),
            });
        }
        let total = self.total_weight();
        if !(total.is_finite() && total > 0.0 && self.weight.iter().all(|&w| w >= 0.0)) {
            return Err(Error::Mismatch {
                what: "weights of a training batch".into(),
                found: format!("a sum of {total}"),
                expected: "weights from 0 on with a positive sum".into(),
            });
        }
        Ok(rows)
    }

    /// The sum of all samples' weights.
    fn total_weight(&self) -> f64 {
        self.weight.iter().map(|&w| f64::from(w)).sum()
    }
}

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
    fn new(
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
        self.heads.iter().filter(|head| head.name != "policy" && head.name != "value")
    }

    /// The same, if the gradient's norm is finite.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for the norm.
    fn finite(self) -> Result<Self> {
        finite("the norm of the gradient", self.gradient_norm)?;
        Ok(self)
    }
}

/// A network in training with its optimiser.
#[derive(Clone, Debug)]
pub struct Trainer {
    spec: NetSpec,
    config: TrainConfig,
    pass: AutogradPass,
    state: OptimizerState,
    /// Running means and variances.
    statistics: Vec<f32>,
    updates: u64,
    /// 1 for parameters subject to weight decay, else 0.
    decayed: Vec<f32>,
    /// Room for the gradient and for the state after the update.
    gradient: Vec<f32>,
    next: OptimizerState,
}

impl Trainer {
    /// A network at its first weights, which `seed` fixes.
    ///
    /// # Errors
    /// Those of [`NetSpec::model`], and [`Error::Unsupported`] where fused training does not cover the network.
    pub fn new(spec: &NetSpec, config: &TrainConfig, seed: u64) -> Result<Self> {
        Self::with_weights(spec, config, &spec.model()?.initial_weights(seed))
    }

    /// Training from given weights on, the optimiser fresh.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where the weights are not those of `spec`.
    pub fn with_weights(spec: &NetSpec, config: &TrainConfig, weights: &Weights) -> Result<Self> {
        Self::with_pass(spec, config, weights, AutogradPass::Fused(Box::new(CpuTrainNet::new(spec)?)))
    }

    /// A network at its first weights that candle trains on one of its devices, whatever layers it has.
    ///
    /// # Errors
    /// As [`crate::model::Model::new`].
    pub fn on_candle(spec: &NetSpec, config: &TrainConfig, seed: u64, device: Device) -> Result<Self> {
        let model = spec.model()?;
        let weights = model.initial_weights(seed);
        Self::with_pass(spec, config, &weights, AutogradPass::Candle(CandlePass::new(model, device)))
    }

    fn with_pass(
        spec: &NetSpec,
        config: &TrainConfig,
        weights: &Weights,
        pass: AutogradPass,
    ) -> Result<Self> {
        let (parameters, statistics) = pass.model().flatten(weights)?;
        let decayed = pass.model().decay_mask();
        let state = OptimizerState::new(parameters);
        Ok(Self {
            spec: spec.clone(),
            config: config.clone(),
            pass,
            gradient: decayed.clone(),
            next: state.clone(),
            state,
            statistics,
            updates: 0,
            decayed,
        })
    }

    /// The network's sizes.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// Updates made so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Floating-point operations that one sample takes: forward, and twice that backward.
    pub fn flops_per_sample(&self) -> f64 {
        6.0 * self.pass.model().multiply_adds() as f64
    }

    /// The present weights.
    pub fn weights(&self) -> Weights {
        self.pass.model().unflatten(&self.state.parameters, &self.statistics)
    }

    /// One update. The batch is taken in `train.accumulate` equal parts, each normalised by itself, whose gradients are
    /// summed.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where an array of the batch has the wrong length; [`Error::NotFinite`] where a loss, the
    /// gradient or a new weight is NaN or infinite. The trainer is then as it was before.
    pub fn step(&mut self, batch: &TrainBatch) -> Result<Losses> {
        let rows = batch.check(self.pass.model(), self.config.accumulate)?;
        let total_weight = batch.total_weight();
        self.gradient.fill(0.0);
        let mut statistics = self.statistics.clone();
        let mut sums = LossSums::default();
        let part = rows / self.config.accumulate;
        for start in (0..rows).step_by(part) {
            let features = self.spec.obs.len();
            let obs = &batch.obs[start * features..(start + part) * features];
            let outputs = self.pass.forward(&self.state.parameters, &statistics, obs)?;
            let mut gradients = outputs.clone();
            let rule = (self.pass.model(), &self.config);
            sums.add(&loss::gradients(rule, (batch, start..start + part), &mut gradients, total_weight)?);
            self.pass.backward(&outputs, &gradients, &mut self.gradient)?;
            self.pass.update_statistics(&mut statistics)?;
        }
        let norm = optimizer::norm(&self.gradient);
        let rule = (self.pass.model(), &self.config);
        let losses = Losses::new(rule, &sums, total_weight, norm, self.updates)?.finite()?;
        self.update(&losses, statistics)?;
        Ok(losses)
    }

    fn update(&mut self, losses: &Losses, statistics: Vec<f32>) -> Result<()> {
        if let Some(&value) = statistics.iter().find(|x| !x.is_finite()) {
            return Err(Error::NotFinite { what: "a running statistic of the network".into(), value });
        }
        let clip = self.config.clip_norm;
        let scale = if clip > 0.0 && losses.gradient_norm > clip { clip / losses.gradient_norm } else { 1.0 };
        let rule = optimizer::UpdateRule::new(&self.config, losses.learning_rate, scale, self.updates + 1);
        rule.apply(&self.state, &self.gradient, &self.decayed, &mut self.next);
        let arrays = [("a weight", &self.next.parameters), ("a moment of the optimiser", &self.next.second)];
        for (what, array) in arrays {
            if let Some(&value) = array.iter().find(|x| !x.is_finite()) {
                return Err(Error::NotFinite { what: format!("{what} after the update"), value });
            }
        }
        std::mem::swap(&mut self.state, &mut self.next);
        self.statistics = statistics;
        self.updates += 1;
        Ok(())
    }

    /// Everything that the next step depends on in addition to the configuration: `weights.*`, `first.*`, `second.*` by tensor name,
    /// and `updates` as two 24-bit digits.
    pub fn state(&self) -> Weights {
        let OptimizerState { parameters, first, second } = self.state.clone();
        let statistics = self.statistics.clone();
        let snapshot = TrainerSnapshot {
            parameters,
            first,
            second,
            statistics,
            updates: self.updates,
            loss_scale: None,
        };
        snapshot.to_arrays(self.pass.model())
    }

    /// Takes over what [`Trainer::state`] gave, or a trainer on a device.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where an array is missing, surplus or of another shape. The trainer is then as it was before.
    pub fn restore(&mut self, state: &Weights) -> Result<()> {
        let TrainerSnapshot { parameters, first, second, statistics, updates, .. } =
            TrainerSnapshot::from_arrays(self.pass.model(), state)?;
        self.state = OptimizerState { parameters, first, second };
        self.statistics = statistics;
        self.updates = updates;
        Ok(())
    }
}

fn finite(what: &str, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::NotFinite { what: what.into(), value: value as f32 })
}

#[cfg(test)]
mod tests;
