//! Where the network of self-play is.

use crate::backend::kernels::candle_device;
use crate::batch::AnyGame;
use crate::config::{Config, DeviceName};
use crate::error::Result;
use crate::net::{CandleNet, NetSpec, Network, Weights};
use crate::weights::pack;

/// The network for self-play on the device that `config` names, and the name of the path its forward takes: the fused
/// forward on the CPU, the candle modules on a GPU.
///
/// # Errors
/// As [`pack`] and [`candle_device`].
pub fn place(
    config: &Config,
    game: &dyn AnyGame,
    spec: &NetSpec,
    weights: &Weights,
) -> Result<(Box<dyn Network>, String)> {
    match config.network_device() {
        DeviceName::Cpu => {
            let network = pack(game, spec, weights, config.net.precision)?;
            let path = network.path().to_string();
            Ok((Box::new(network), path))
        }
        DeviceName::Cuda(number) => {
            let network = CandleNet::on(&candle_device(number)?, spec, weights)?;
            Ok((Box::new(network), format!("candle, {}", config.network_device())))
        }
    }
}
