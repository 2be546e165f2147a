//! Selection of a run's network executor and its device.

use super::valued_network::ValuedNetwork;
use crate::backend::AnyGame;
use crate::config::{Config, DeviceName, Executor, NetConfig, Precision};
use crate::device::check_devices;
use crate::error::{Error, Result};
use crate::model::{Model, Tower};
use crate::net::candle::{CandleDevice, candle_device};
use crate::net::cpu::{CpuNet, check_precision, choose_isa};
use crate::net::gpu::cuda_network;
use crate::net::{CandleNet, IoShape, NetSpec, Network, NetworkDesc, Weights};
use crate::weights::{pack, target_network};

/// Refuses devices of trees and network, and an instruction set of the network, that this machine does not have.
///
/// # Errors
/// [`crate::Error::Device`] and [`crate::Error::Config`].
pub fn check_machine(config: &Config) -> Result<()> {
    check_devices(&config.run.device)?;
    let devices = config.network_devices();
    check_devices(&devices)?;
    match devices.is_cpu() {
        true => choose_isa(config.net.isa, config.net.precision).map(drop),
        false => Ok(()),
    }
}

/// The executor of a network.
#[derive(Clone, Debug)]
pub enum NetExecutor {
    /// The fused kernels of this program.
    Fused,
    /// candle, on this device.
    Candle(CandleDevice),
}

/// Selects the executor of `model` by `net.executor`. Returns it with a text for people: its name and the reason.
///
/// # Errors
/// [`Error::Config`] if `net.executor` is fused and its kernels do not cover the model, or if the executor lacks the number format;
/// [`Error::Unsupported`] for candle on a GPU in a build without it.
pub fn select_executor(config: &Config, model: &Model) -> Result<(NetExecutor, String)> {
    let requested = config.net.executor;
    let missing = Tower::of(model).err();
    if requested != Executor::Candle && missing.is_none() && config.network_devices().is_cpu() {
        check_precision(model, config.net.precision)?;
    }
    match (requested, missing) {
        (Executor::Fused, Some(why)) => {
            Err(Error::config("net.executor", requested, format!("auto or candle, since {why}")))
        }
        (Executor::Fused, None) => Ok((NetExecutor::Fused, "fused kernels, as set by net.executor".into())),
        (Executor::Auto, None) => Ok((NetExecutor::Fused, "fused kernels, which cover every layer".into())),
        (Executor::Auto | Executor::Candle, why) => {
            config.check_candle_format()?;
            let device = candle_device(config.network_devices().first())?;
            let why = match requested {
                Executor::Auto => why.unwrap_or_default(),
                Executor::Candle | Executor::Fused => "as set by net.executor".into(),
            };
            Ok((NetExecutor::Candle(device), format!("candle, {why}")))
        }
    }
}

/// Makes the network for self-play and evaluation on its configured device. Returns it with the name of its executor: the fused forward
/// with its instruction set on the CPU, the kernels on a GPU, or candle.
///
/// # Errors
/// Those of [`select_executor`], [`pack`], [`cuda_network`] and [`target_network`]; [`Error::Config`] for a number format that is scaled by observations
/// of a game that the network was not trained in.
pub fn make_network(
    config: &Config,
    game: &dyn AnyGame,
    spec: &NetSpec,
    weights: &Weights,
) -> Result<(Box<dyn Network>, String)> {
    let Some(valuation) = game.valuation() else {
        return own_network(config, game, spec, weights);
    };
    if config.net.precision == Precision::Int8 {
        let expected = "f32 or bf16 with these settings of the game";
        return Err(Error::config("net.precision", config.net.precision, expected));
    }
    let (spec, weights) = target_network(spec, weights, &valuation)?;
    let (network, path) = own_network(config, game, &spec, &weights)?;
    let shape = IoShape::of(&game.sizes());
    Ok((Box::new(ValuedNetwork::new(network, valuation, shape)), path))
}

/// The network of `spec` by itself.
fn own_network(
    config: &Config,
    game: &dyn AnyGame,
    spec: &NetSpec,
    weights: &Weights,
) -> Result<(Box<dyn Network>, String)> {
    let devices = config.network_devices();
    let model = spec.model()?;
    if let (NetExecutor::Candle(device), _) = select_executor(config, &model)? {
        let network = CandleNet::on(&device, model, weights)?;
        return Ok((Box::new(network), format!("candle, {devices}")));
    }
    match devices.first() {
        DeviceName::Cpu => {
            let network = pack(game, spec, weights, &config.net)?;
            let path = network.kernel_name().to_string();
            Ok((Box::new(network), path))
        }
        DeviceName::Cuda(_) | DeviceName::Metal => {
            let NetConfig { precision, tensor_cores, .. } = config.net;
            let parts = NetworkDesc { spec: spec.clone(), weights: weights.clone(), precision, tensor_cores };
            Ok((cuda_network(parts, devices)?, format!("kernels in {precision}, {devices}")))
        }
    }
}

/// Makes the network on the CPU in f32, independent of any configuration: fused if the kernels cover it, otherwise by candle.
///
/// # Errors
/// Those of [`CpuNet::new`], [`candle_device`] and [`CandleNet::on`].
pub fn f32_network(spec: &NetSpec, weights: &Weights) -> Result<Box<dyn Network>> {
    let model = spec.model()?;
    match Tower::of(&model) {
        Ok(_) => Ok(Box::new(CpuNet::new(spec, weights, Precision::F32)?)),
        Err(_) => Ok(Box::new(CandleNet::on(&candle_device(DeviceName::Cpu)?, model, weights)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Arch;
    use crate::registry::any_game;

    #[test]
    #[cfg(feature = "candle")]
    fn the_executor_follows_the_configuration_and_gives_its_reason() {
        let game = any_game("connect_four", &toml::Table::new()).expect("registered");
        let mut config = Config::default();
        let model = NetSpec::new(&config.net, &game.sizes()).model().expect("a network");
        let mut choice = |executor| {
            config.net.executor = executor;
            select_executor(&config, &model).expect("covered")
        };
        assert!(
            matches!(choice(Executor::Auto), (NetExecutor::Fused, why) if why.contains("cover every layer"))
        );
        assert!(matches!(choice(Executor::Fused), (NetExecutor::Fused, _)));
        assert!(
            matches!(choice(Executor::Candle), (NetExecutor::Candle(_), why) if why.contains("net.executor"))
        );
        config.net.executor = Executor::Candle;
        config.net.precision = Precision::Bf16;
        let error = select_executor(&config, &model).expect_err("candle has f32").to_string();
        assert!(error.contains("net.precision"), "{error}");
    }

    /// The error comes from the selection, before a run starts, and not from packing the network.
    #[test]
    fn a_format_without_kernels_for_a_layer_is_refused() {
        let game = any_game("clique", &toml::Table::new()).expect("registered");
        let net = NetConfig { arch: Arch::Edge, precision: Precision::Int8, ..NetConfig::default() };
        let model = NetSpec::new(&net, &game.sizes()).model().expect("a network");
        let error = select_executor(&Config { net, ..Config::default() }, &model)
            .expect_err("no kernels")
            .to_string();
        assert!(error.contains("net.precision: got int8, expected f32 or bf16"), "{error}");
    }
}
