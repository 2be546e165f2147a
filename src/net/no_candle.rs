//! What takes candle's place in a build without the feature `candle`: there is no network of it.

use super::cpu::CpuNet;
use super::{IoShape, NetSpec, Network, Weights};
use crate::config::{DeviceName, Precision};
use crate::error::{Error, Result};
use crate::model::Model;
use std::sync::Arc;

/// No device of candle.
#[derive(Clone, Debug)]
pub enum CandleDevice {}

/// Refuses the device.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn candle_device(name: DeviceName) -> Result<CandleDevice> {
    Err(Error::without_feature(format!("candle on {name}"), "candle"))
}

/// The network that computes and checks self-check vectors: the fused one in f32.
///
/// # Errors
/// As [`CpuNet::new`].
pub fn checking_network(spec: &NetSpec, weights: &Weights) -> Result<CpuNet> {
    CpuNet::new(spec, weights, Precision::F32)
}

/// No network of candle.
pub enum CandleNet {}

impl CandleNet {
    /// The network on `device`, of which there is none.
    ///
    /// # Errors
    /// None.
    pub fn on(device: &CandleDevice, _model: impl Into<Arc<Model>>, _weights: &Weights) -> Result<Self> {
        match *device {}
    }
}

impl Network for CandleNet {
    fn shape(&self) -> IoShape {
        match *self {}
    }

    fn forward(&mut self, _obs: &[f32], _logits: &mut [f32], _values: &mut [f32]) -> Result<()> {
        match *self {}
    }

    fn fork(&self) -> Box<dyn Network> {
        match *self {}
    }
}
