//! The stand-in for candle in training in a build without the feature `candle`: it has no device.

use crate::error::Result;
use crate::model::Model;
use crate::net::candle::CandleDevice;
use crate::net::cpu_train::Outputs;

/// A pass on a device of candle, of which there is none.
#[derive(Clone, Debug)]
pub(super) struct CandlePass(CandleDevice);

impl CandlePass {
    pub fn new(_: Model, device: CandleDevice) -> Self {
        Self(device)
    }

    pub fn model(&self) -> &Model {
        self.0.never()
    }

    pub fn forward(&mut self, _: &[f32], _: &[f32], _: &[f32]) -> Result<Outputs> {
        self.0.never()
    }

    pub fn backward(&mut self, _: &Outputs, _: &mut [f32]) -> Result<()> {
        self.0.never()
    }

    pub fn update_statistics(&self, _: &mut [f32]) -> Result<()> {
        self.0.never()
    }
}
