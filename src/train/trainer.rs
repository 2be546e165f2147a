//! A network in training on the CPU.

use super::candle_pass::CandlePass;
use super::loss;
use super::losses::Losses;
use super::optimizer::{self, OptimizerState};
use super::pass::AutogradPass;
use super::state::TrainerSnapshot;
use crate::config::{TrainConfig, TrainPrecision};
use crate::error::{Error, Result};
use crate::isa::Isa;
use crate::model::{NetSpec, Weights};
use crate::net::candle::CandleDevice;
use crate::net::cpu_train::CpuTrainNet;
use crate::replay::TrainBatch;

/// A network in training with its optimiser.
#[derive(Clone, Debug)]
pub struct Trainer {
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
        let net = CpuTrainNet::new(spec, config.precision.into())?;
        Self::with_pass(config, weights, AutogradPass::Fused(Box::new(net)))
    }

    /// As [`Trainer::new`] by the instructions of `isa`.
    ///
    /// # Errors
    /// As [`Trainer::new`], and [`Error::Unsupported`] where this machine lacks the instructions.
    pub fn with_isa(spec: &NetSpec, config: &TrainConfig, seed: u64, isa: Isa) -> Result<Self> {
        let net = CpuTrainNet::with_isa(spec, config.precision.into(), isa)?;
        let weights = spec.model()?.initial_weights(seed);
        Self::with_pass(config, &weights, AutogradPass::Fused(Box::new(net)))
    }

    /// A network at its first weights that candle trains on one of its devices, whatever layers it has.
    ///
    /// # Errors
    /// As [`crate::model::Model::new`].
    pub fn on_candle(spec: &NetSpec, config: &TrainConfig, seed: u64, device: CandleDevice) -> Result<Self> {
        let model = spec.model()?;
        let weights = model.initial_weights(seed);
        Self::with_pass(config, &weights, AutogradPass::Candle(Box::new(CandlePass::new(model, device))))
    }

    fn with_pass(config: &TrainConfig, weights: &Weights, pass: AutogradPass) -> Result<Self> {
        let (parameters, statistics) = pass.model().flatten(weights)?;
        let decayed = pass.model().decay_mask();
        let state = OptimizerState::new(parameters);
        Ok(Self {
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

    /// One update.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where an array of the batch has the wrong length; [`Error::NotFinite`] where a loss, the
    /// gradient or a new weight is NaN or infinite; [`Error::Config`] for `train.precision = "f16"`, which is for GPUs. The trainer is then as it
    /// was before.
    pub fn step(&mut self, batch: &TrainBatch) -> Result<Losses> {
        if self.config.precision == TrainPrecision::F16 {
            // A trainer of GPUs begins with the state of this one.
            return Err(Error::config("train.precision", self.config.precision, "f32 or bf16 on the CPU"));
        }
        batch.check(self.pass.model())?;
        let total_weight = batch.total_weight();
        self.gradient.fill(0.0);
        let mut statistics = self.statistics.clone();
        let outputs = self.pass.forward(&self.state.parameters, &statistics, &batch.obs)?;
        let mut gradients = outputs.clone();
        let rule = (self.pass.model(), &self.config);
        let sums = loss::gradients(rule, batch, &mut gradients, total_weight)?;
        self.pass.backward(&outputs, &gradients, &mut self.gradient)?;
        self.pass.update_statistics(&mut statistics)?;
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
