//! The stand-in for candle's networks in a build without the feature `candle`: none can be made.

use super::{IoShape, Network, Weights};
use crate::config::DeviceName;
use crate::error::{Error, Result};
use crate::model::Model;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Never {}

/// A device of candle, of which there is none.
#[derive(Clone, Debug)]
pub struct CandleDevice(Never);

impl CandleDevice {
    /// Is never called.
    pub fn never(&self) -> ! {
        match self.0 {}
    }
}

/// Refuses the device.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn candle_device(name: DeviceName) -> Result<CandleDevice> {
    Err(Error::without_feature(format!("candle on {name}"), "candle"))
}

/// A network of candle, of which there is none.
pub struct CandleNet(CandleDevice);

impl CandleNet {
    /// The network on `device`, of which there is none.
    ///
    /// # Errors
    /// None.
    pub fn on(device: &CandleDevice, _model: impl Into<Arc<Model>>, _weights: &Weights) -> Result<Self> {
        device.never()
    }
}

impl Network for CandleNet {
    fn shape(&self) -> IoShape {
        self.0.never()
    }

    fn forward(&mut self, _obs: &[f32], _logits: &mut [f32], _values: &mut [f32]) -> Result<()> {
        self.0.never()
    }

    fn fork(&self) -> Box<dyn Network> {
        self.0.never()
    }
}
