//! The executors of a training pass: the fused passes, or candle's autograd.

use super::candle_pass::CandlePass;
use crate::error::Result;
use crate::model::Model;
use crate::net::cpu_train::{CpuTrainNet, Outputs};

/// A model's forward and backward pass in training mode, normalised by the batch.
#[derive(Clone, Debug)]
pub(super) enum AutogradPass {
    /// The fused passes on the CPU.
    Fused(Box<CpuTrainNet>),
    /// candle's operations on any of its devices.
    Candle(Box<CandlePass>),
}

impl AutogradPass {
    pub fn model(&self) -> &Model {
        match self {
            Self::Fused(tower) => tower.model(),
            Self::Candle(pass) => pass.model(),
        }
    }

    /// The heads' outputs for a batch. `parameters` and `statistics` are flat as in [`Model::flatten`], `obs [B, F]`.
    pub fn forward(&mut self, parameters: &[f32], statistics: &[f32], obs: &[f32]) -> Result<Outputs> {
        match self {
            Self::Fused(tower) => Ok(tower.forward(parameters, obs)),
            Self::Candle(pass) => pass.forward(parameters, statistics, obs),
        }
    }

    /// Adds to `gradient` that of the parameters for the last forward pass, given those of its outputs.
    pub fn backward(&mut self, outputs: &Outputs, gradients: &Outputs, gradient: &mut [f32]) -> Result<()> {
        match self {
            Self::Fused(tower) => {
                tower.backward(outputs, gradients, gradient);
                Ok(())
            }
            Self::Candle(pass) => pass.backward(gradients, gradient),
        }
    }

    /// Moves the running statistics towards the last forward pass's batch.
    pub fn update_statistics(&self, statistics: &mut [f32]) -> Result<()> {
        match self {
            Self::Fused(tower) => tower.update_statistics(statistics),
            Self::Candle(pass) => pass.update_statistics(statistics)?,
        }
        Ok(())
    }
}
