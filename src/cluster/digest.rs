//! The digest of a run's configuration, which learner and workers must share.

use super::incarnation::PROTOCOL;
use crate::backend::AnyGame;
use crate::config::{
    ClusterConfig, ClusterOrder, Config, DeviceName, EvalConfig, NetConfig, ReplayConfig, RunConfig,
    SelfPlayConfig, TrainConfig,
};
use crate::net::cpu::choose_isa;
use sha2::{Digest, Sha256};

/// SHA-256 of all that determines games and their meaning: the game's settings, the network's sizes, search, self-play and the
/// seed. Devices, number formats, threads and the number of games at once may differ between processes. In strict order only the
/// number of threads may differ.
pub fn digest(config: &Config, game: &dyn AnyGame) -> [u8; 32] {
    let (net, selfplay, default) = (&config.net, &config.selfplay, Config::default());
    let NetConfig { executor, precision, isa, tensor_cores, device, .. } = default.net;
    let SelfPlayConfig { games, samples_per_epoch, passes_per_poll, .. } = default.selfplay;
    let machine = match config.cluster.order {
        ClusterOrder::Free => String::new(),
        ClusterOrder::Strict => {
            let SelfPlayConfig { games, passes_per_poll, .. } = *selfplay;
            format!("{}, {games}, {passes_per_poll}", platform(config))
        }
    };
    let common = Config {
        game: toml::Table::new(), // `game.options()` has its settings
        net: NetConfig { executor, precision, isa, tensor_cores, device, ..net.clone() },
        selfplay: SelfPlayConfig { games, samples_per_epoch, passes_per_poll, ..selfplay.clone() },
        replay: ReplayConfig::default(),
        train: TrainConfig::default(),
        run: RunConfig { seed: config.run.seed, ..RunConfig::default() },
        eval: EvalConfig::default(),
        cluster: ClusterConfig::default(),
        ..config.clone()
    };
    let text = format!("{PROTOCOL}\n{}\n{}\n{}\n{machine}", game.name(), game.options(), common.to_toml());
    Sha256::digest(text).into()
}

/// The properties of a machine on which the bits of a network's outputs depend: kind of device, number format, instruction set.
fn platform(config: &Config) -> String {
    let net = &config.net;
    match config.network_devices().first() {
        DeviceName::Cpu => {
            let isa = choose_isa(net.isa, net.precision).map_or("none".into(), |isa| isa.to_string());
            format!("{} on the CPU by {} with {isa}", net.precision, net.executor)
        }
        DeviceName::Cuda(_) => {
            format!("{} on a GPU by {} with {}", net.precision, net.executor, net.tensor_cores)
        }
    }
}
