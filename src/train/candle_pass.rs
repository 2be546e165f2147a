//! A training pass by candle's autograd.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::net::candle::{BatchNormMode, CandleDevice, CandleNet};
use crate::net::cpu_train::Outputs;
use candle_core::{Tensor, Var};
use std::sync::Arc;

/// A model on a device of candle.
#[derive(Clone)]
pub(super) struct CandlePass {
    model: Arc<Model>,
    device: CandleDevice,
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
    pub fn new(model: Model, device: CandleDevice) -> Self {
        Self { model: Arc::new(model), device, recorded: None }
    }

    pub fn forward(&mut self, parameters: &[f32], statistics: &[f32], obs: &[f32]) -> Result<Outputs> {
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

    pub fn backward(&mut self, gradients: &Outputs, gradient: &mut [f32]) -> Result<()> {
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

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Writes the running statistics after the last forward pass.
    pub fn update_statistics(&self, statistics: &mut [f32]) -> Result<()> {
        if let Some(recorded) = &self.recorded {
            statistics.copy_from_slice(&recorded.net.statistics()?);
        }
        Ok(())
    }
}
