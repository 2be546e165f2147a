//! The networks as candle modules: the truth that the fused passes and the kernels are held to.

use super::edge::Edge;
use super::mlp::Mlp;
use super::resnet::Resnet;
use super::spec::{NetSpec, Weights};
use super::{IoShape, Network};
use crate::config::Arch;
use crate::error::{Error, Result};
use candle_core::{DType, Device, Tensor};
use candle_nn::{BatchNorm, BatchNormConfig, Linear, Module, VarBuilder, linear, linear_no_bias};
use std::collections::HashMap;
use std::sync::Arc;

/// Which statistics normalise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The batch's own; the running statistics move towards them.
    Train,
    /// The running statistics.
    Eval,
}

pub(super) fn mode_flag(mode: Mode) -> bool {
    mode == Mode::Train
}

/// A normalisation as PyTorch's default: epsilon 1e-5, momentum 0.1.
pub(super) fn norm(channels: usize, vb: VarBuilder<'_>) -> candle_core::Result<BatchNorm> {
    candle_nn::batch_norm(channels, BatchNormConfig { eps: 1e-5, momentum: 0.1, ..Default::default() }, vb)
}

/// Everything below the heads' linear layers: observations `[B, F]` -> what the policy layer and the value layer read,
/// `[B, inputs]`, or `[B, A, inputs]` where the policy layer makes one logit an action.
pub(super) trait Trunk: Send + Sync {
    fn forward(&self, obs: &Tensor, mode: Mode) -> candle_core::Result<(Tensor, Tensor)>;
}

struct Layers {
    trunk: Box<dyn Trunk>,
    policy: Linear,
    hidden: Linear,
    values: Linear,
}

/// A network built of candle-nn modules.
///
/// As a [`Network`] it evaluates with the running statistics. candle's products may sum in another order for another
/// batch size, so it is batch-invariant only up to rounding.
#[derive(Clone)]
pub struct CandleNet {
    spec: NetSpec,
    layers: Arc<Layers>,
    device: Device,
}

impl CandleNet {
    /// The network of `spec` with `weights` on the CPU.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where a tensor is missing, surplus or of another shape.
    pub fn new(spec: &NetSpec, weights: &Weights) -> Result<Self> {
        Self::on(&Device::Cpu, spec, weights)
    }

    /// The network of `spec` with `weights` on `device`.
    ///
    /// # Errors
    /// As [`CandleNet::new`], and [`Error::Candle`] where the device has no room.
    pub fn on(device: &Device, spec: &NetSpec, weights: &Weights) -> Result<Self> {
        spec.check(weights)?;
        let tensors = weights.iter().map(|(name, array)| {
            Ok((name.clone(), Tensor::from_slice(&array.data, array.shape.as_slice(), device)?))
        });
        Self::from_tensors(spec, tensors.collect::<Result<_>>()?)
    }

    /// The network of `spec` on given tensors, which may be variables that candle follows.
    ///
    /// # Errors
    /// [`Error::Candle`] where a tensor is missing or of another shape; those of [`NetSpec::check_graph`].
    pub fn from_tensors(spec: &NetSpec, tensors: HashMap<String, Tensor>) -> Result<Self> {
        let device = tensors.values().next().map_or(Device::Cpu, |tensor| tensor.device().clone());
        let vb = VarBuilder::from_tensors(tensors, DType::F32, &device);
        let area = spec.obs.height * spec.obs.width;
        let (trunk, policy_inputs, hidden_inputs): (Box<dyn Trunk>, _, _) = match spec.arch {
            Arch::Resnet => {
                (Box::new(Resnet::new(spec, &vb)?), spec.policy_channels * area, spec.value_channels * area)
            }
            Arch::Mlp => (Box::new(Mlp::new(spec, &vb)?), spec.channels, spec.channels),
            Arch::Edge => (Box::new(Edge::new(spec, &vb)?), spec.channels, spec.channels),
        };
        let policy = vb.pp("policy.linear");
        let layers = Layers {
            trunk,
            policy: match spec.arch {
                Arch::Edge => linear_no_bias(policy_inputs, 1, policy)?,
                Arch::Resnet | Arch::Mlp => linear(policy_inputs, spec.num_actions, policy)?,
            },
            hidden: linear(hidden_inputs, spec.value_hidden, vb.pp("value.hidden"))?,
            values: linear(spec.value_hidden, spec.num_values(), vb.pp("value.out"))?,
        };
        Ok(Self { spec: spec.clone(), layers: Arc::new(layers), device })
    }

    /// Logits `[B, A]` and values `[B, V]` of observations `[B, F]`.
    ///
    /// # Errors
    /// [`Error::Candle`].
    pub fn forward_t(&self, obs: &Tensor, mode: Mode) -> Result<(Tensor, Tensor)> {
        let (policy, value) = self.layers.trunk.forward(obs, mode)?;
        let logits = self.layers.policy.forward(&policy)?.flatten_from(1)?;
        let hidden = self.layers.hidden.forward(&value)?.relu()?;
        Ok((logits, self.layers.values.forward(&hidden)?.tanh()?))
    }
}

impl Network for CandleNet {
    fn shape(&self) -> IoShape {
        self.spec.io()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        let features = self.spec.obs.len();
        if obs.is_empty() {
            return Ok(());
        }
        let obs = Tensor::from_slice(obs, (obs.len() / features, features), &self.device)?;
        let (l, v) = self.forward_t(&obs, Mode::Eval)?;
        logits.copy_from_slice(&l.flatten_all()?.to_vec1::<f32>()?);
        let v = v.flatten_all()?.to_vec1::<f32>()?;
        if self.spec.zero_sum_pair {
            for (out, v) in values.chunks_exact_mut(2).zip(v) {
                out.copy_from_slice(&[v, -v]);
            }
        } else {
            values.copy_from_slice(&v);
        }
        let outputs = [("a logit of the network", &*logits), ("a value of the network", &*values)];
        for (what, numbers) in outputs {
            if let Some(&value) = numbers.iter().find(|x| !x.is_finite()) {
                return Err(Error::NotFinite { what: what.into(), value });
            }
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}
