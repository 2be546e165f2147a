//! The digest of a run's configuration, which learner and workers must share.

use super::incarnation::PROTOCOL;
use crate::backend::AnyGame;
use crate::config::{
    ClusterConfig, ClusterOrder, Config, DeviceName, EvalConfig, Executor, IsaChoice, NetConfig, Precision,
    ReplayConfig, RunConfig, SelfPlayConfig, TrainConfig,
};
use crate::isa::Isa;
use crate::net::cpu::{available_isas, choose_isa};
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
            // The first epoch's root cache depends on the samples of an epoch.
            let SelfPlayConfig { games, samples_per_epoch, passes_per_poll, .. } = *selfplay;
            format!("{}, {games}, {samples_per_epoch}, {passes_per_poll}", platform(config))
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

/// The properties of a machine on which the bits of a network's outputs depend: kind of device, number format, executor, and the
/// instruction set only where it matters ([`repeats_elsewhere`]).
fn platform(config: &Config) -> String {
    let net = &config.net;
    match config.network_devices().first() {
        DeviceName::Cpu => {
            let instructions = match choose_isa(net.isa, net.precision) {
                Err(_) => "none".to_string(),
                Ok(isa) if repeats_elsewhere(net, isa) => "any instructions".to_string(),
                // Candle's matrix products take the best that the machine has.
                Ok(_) if net.executor == Executor::Candle => Isa::detect().to_string(),
                Ok(isa) => isa.to_string(),
            };
            format!("{} on the CPU by {} with {instructions}", net.precision, net.executor)
        }
        DeviceName::Metal => format!("{} on metal by {}", net.precision, net.executor),
        DeviceName::Cuda(_) => {
            format!("{} on a GPU by {} with {}", net.precision, net.executor, net.tensor_cores)
        }
    }
}

/// The configuration with an instruction set that this machine has: the named one, or where it is another processor's, one with the same
/// bits.
pub fn on_this_machine(mut config: Config) -> Config {
    let net = &config.net;
    if let IsaChoice::Only(named) = net.isa
        && repeats_elsewhere(net, named)
    {
        let available = available_isas(net.precision);
        let same_bits = available.iter().find(|isa| repeats_elsewhere(net, **isa));
        if let (false, Some(isa)) = (available.contains(&named), same_bits) {
            config.net.isa = IsaChoice::Only(*isa);
        }
    }
    config
}

/// Whether the network has the same bits with every other instruction set: not in the bf16 of AMX and `bfmmla`, and not by candle.
fn repeats_elsewhere(net: &NetConfig, isa: Isa) -> bool {
    net.executor != Executor::Candle && !(isa.has_own_bf16() && net.precision == Precision::Bf16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    #[test]
    fn machines_with_the_same_bits_have_one_digest() {
        let on = |executor, precision, isa| {
            let mut config = Config::default();
            (config.net.executor, config.net.precision) = (executor, precision);
            config.net.isa = IsaChoice::Only(isa);
            platform(&config)
        };
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let portable = on(Executor::Auto, precision, Isa::Portable);
            for isa in available_isas(precision) {
                let same = precision != Precision::Bf16 || ![Isa::Amx, Isa::Bfmmla].contains(&isa);
                assert_eq!(on(Executor::Auto, precision, isa) == portable, same, "{precision} {isa}");
            }
        }
        let by_candle = on(Executor::Candle, Precision::F32, Isa::Portable);
        assert!(by_candle.ends_with(Isa::detect().name()), "{by_candle}");
    }

    #[test]
    fn another_processors_instruction_set_is_replaced_by_one_with_the_same_bits() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let of = |isa| {
            let mut config = Config::default();
            (config.net.precision, config.net.isa) = (Precision::Bf16, isa);
            config.cluster.order = ClusterOrder::Strict;
            on_this_machine(config)
        };
        let portable = of(IsaChoice::Only(Isa::Portable));
        for named in [Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Portable] {
            let config = of(IsaChoice::Only(named));
            let IsaChoice::Only(isa) = config.net.isa else { panic!("a name") };
            let available = available_isas(Precision::Bf16);
            assert!(
                available.contains(&isa) && (isa == named || !available.contains(&named)),
                "{named} {isa}"
            );
            assert_eq!(digest(&config, game.as_ref()), digest(&portable, game.as_ref()), "{named}");
        }
        assert_eq!(of(IsaChoice::Native).net.isa, IsaChoice::Native);
        for named in [Isa::Amx, Isa::Bfmmla].map(IsaChoice::Only) {
            assert_eq!(of(named).net.isa, named, "its bits are its own");
        }
    }
}
