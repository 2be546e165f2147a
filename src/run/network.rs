//! Where the network of self-play is.

use crate::backend::kernels::{check_devices, cuda_network};
use crate::batch::AnyGame;
use crate::config::{Config, DeviceName, NetConfig, TensorCores};
use crate::error::Result;
use crate::net::fast::CpuKernel;
use crate::net::{NetParts, NetSpec, Network, Weights};
use crate::weights::pack;

/// Refuses devices of trees and network, and instructions of the network, that this machine lacks.
///
/// # Errors
/// [`crate::Error::Device`] and [`crate::Error::Config`] in one sentence.
pub fn check_machine(config: &Config) -> Result<()> {
    check_devices(&config.run.device)?;
    let devices = config.network_devices();
    check_devices(&devices)?;
    match devices.is_cpu() {
        true => CpuKernel::choose(config.net.isa, config.net.precision).map(drop),
        false => Ok(()),
    }
}

/// The network for self-play and evaluation on the device that `config` names, and the name of the path its forward takes: the
/// fused forward on the CPU, on a GPU the network's own kernels, which answer beside the trees where those are on the same GPU.
///
/// # Errors
/// As [`pack`] and [`cuda_network`].
pub fn place(
    config: &Config,
    game: &dyn AnyGame,
    spec: &NetSpec,
    weights: &Weights,
) -> Result<(Box<dyn Network>, String)> {
    let devices = config.network_devices();
    match devices.first() {
        DeviceName::Cpu => {
            let network = pack(game, spec, weights, &config.net)?;
            let path = network.path().to_string();
            Ok((Box::new(network), path))
        }
        DeviceName::Cuda(_) => {
            let NetConfig { precision, tensor_cores, .. } = config.net;
            let parts = NetParts { spec: spec.clone(), weights: weights.clone(), precision, tensor_cores };
            let by = match tensor_cores {
                TensorCores::Mma => "",
                TensorCores::Wgmma => " by wgmma",
            };
            Ok((cuda_network(parts, devices)?, format!("kernels in {precision}{by}, {devices}")))
        }
    }
}
