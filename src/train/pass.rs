//! The executors of a training pass: the fused passes, or candle's autograd.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::net::CandleNet;
use crate::net::candle::BatchNormMode;
use crate::net::cpu_train::{CpuTrainNet, Outputs};
use candle_core::{Device, Tensor, Var};
use std::sync::Arc;

/// A model's forward and backward pass in training mode, normalised by the batch.
#[derive(Clone, Debug)]
pub(super) enum AutogradPass {
    /// The fused passes on the CPU.
    Fused(Box<CpuTrainNet>),
    /// candle's operations on any of its devices.
    Candle(CandlePass),
}

impl AutogradPass {
    pub fn model(&self) -> &Model {
        match self {
            Self::Fused(tower) => tower.model(),
            Self::Candle(pass) => &pass.model,
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
            Self::Candle(pass) => {
                if let Some(recorded) = &pass.recorded {
                    statistics.copy_from_slice(&recorded.net.statistics()?);
                }
            }
        }
        Ok(())
    }
}

/// A model on a device of candle.
#[derive(Clone)]
pub(super) struct CandlePass {
    model: Arc<Model>,
    device: Device,
    recorded: Option<ForwardTape>,
}

/// A forward pass, as autograd needs it.
#[derive(Clone)]
struct ForwardTape {
    net: CandleNet,
    /// Variables for the parameters, tensors for the statistics; in the order of [`Model::params`].
    params: Vec<Tensor>,
    /// The heads' outputs, in the order of [`Model::heads`].
    outputs: Vec<Tensor>,
}

impl std::fmt::Debug for CandlePass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CandlePass").field("device", &self.device).finish_non_exhaustive()
    }
}

impl CandlePass {
    pub fn new(model: Model, device: Device) -> Self {
        Self { model: Arc::new(model), device, recorded: None }
    }

    fn forward(&mut self, parameters: &[f32], statistics: &[f32], obs: &[f32]) -> Result<Outputs> {
        let device = &self.device;
        let tensor = |param: &crate::model::Param| -> Result<Tensor> {
            let flat = if param.role.is_statistic() { statistics } else { parameters };
            let tensor = Tensor::from_slice(&flat[param.range.clone()], param.shape.as_slice(), device)?;
            if param.role.is_statistic() {
                return Ok(tensor);
            }
            Ok(Var::from_tensor(&tensor)?.into_inner())
        };
        let params: Vec<Tensor> = self.model.params.iter().map(tensor).collect::<Result<_>>()?;
        let net = CandleNet::from_tensors(device, self.model.clone(), &params)?;
        let features = self.model.obs().len();
        let obs = Tensor::from_slice(obs, (obs.len() / features, features), device)?;
        let outputs = net.heads_t(&obs, BatchNormMode::Train)?;
        let numbers = |tensor: &Tensor| Ok::<_, Error>(tensor.flatten_all()?.to_vec1::<f32>()?);
        let found = outputs.iter().map(numbers).collect::<Result<_>>()?;
        self.recorded = Some(ForwardTape { net, params, outputs });
        Ok(found)
    }

    fn backward(&mut self, gradients: &Outputs, gradient: &mut [f32]) -> Result<()> {
        let Some(ForwardTape { params, outputs, .. }) = &self.recorded else { return Ok(()) };
        // The gradient of sum(outputs * d) is what `d` at the outputs gives.
        let weighted = |(output, d): (&Tensor, &Vec<f32>)| -> Result<Tensor> {
            Ok((output * Tensor::from_slice(d, output.dims(), &self.device)?)?.sum_all()?)
        };
        let terms = outputs.iter().zip(gradients).map(weighted).collect::<Result<Vec<_>>>()?;
        let Some(sum) = terms.into_iter().map(Ok).reduce(|sum, term| sum? + term?) else { return Ok(()) };
        let gradients = sum?.backward()?;
        for (param, tensor) in self.model.params.iter().zip(params) {
            let Some(found) = gradients.get(tensor).filter(|_| !param.role.is_statistic()) else { continue };
            let found = found.flatten_all()?.to_vec1::<f32>()?;
            gradient[param.range.clone()].iter_mut().zip(found).for_each(|(sum, g)| *sum += g);
        }
        Ok(())
    }
}
