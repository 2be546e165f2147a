//! Where the network of self-play is.

use crate::backend::kernels::{candle_device, cuda_network};
use crate::batch::AnyGame;
use crate::config::{Arch, Config, DeviceName};
use crate::error::Result;
use crate::net::{CandleNet, NetParts, NetSpec, Network, Weights};
use crate::weights::pack;
use std::sync::Once;

/// The network for self-play and evaluation on the device that `config` names, and the name of the path its forward takes: the
/// fused forward on the CPU, on a GPU the network's own kernels, which answer beside the trees where those are on the same GPU.
/// The edge network has no kernels: on a GPU it is the candle modules, said once on stderr.
///
/// # Errors
/// As [`pack`], [`candle_device`] and [`cuda_network`].
pub fn place(
    config: &Config,
    game: &dyn AnyGame,
    spec: &NetSpec,
    weights: &Weights,
) -> Result<(Box<dyn Network>, String)> {
    static SAID: Once = Once::new();
    let (devices, precision) = (config.network_devices(), config.net.precision);
    match (devices.first(), spec.arch) {
        (DeviceName::Cpu, _) => {
            let network = pack(game, spec, weights, precision)?;
            let path = network.path().to_string();
            Ok((Box::new(network), path))
        }
        (DeviceName::Cuda(_), Arch::Resnet | Arch::Mlp) => {
            let parts = NetParts { spec: spec.clone(), weights: weights.clone(), precision };
            let name = format!("{precision:?}").to_lowercase();
            Ok((cuda_network(parts, devices)?, format!("kernels in {name}, {devices}")))
        }
        (device @ DeviceName::Cuda(number), Arch::Edge) => {
            SAID.call_once(|| {
                tracing::warn!(
                    "the edge network has no kernels of its own on a GPU: candle's modules answer on {device}, asked by the \
                     host pass by pass"
                );
            });
            let network = CandleNet::on(&candle_device(number)?, spec, weights)?;
            Ok((Box::new(network), format!("candle, {device}")))
        }
    }
}
