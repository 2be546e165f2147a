//! Self-play split over several devices against self-play on one: games, samples, games in progress and counts must be equal
//! to the bit, wherever the network is evaluated.

use super::networks::OnDevice;
use super::resident::{self, Make};
use super::selfplay::{CASES, Evaluator, config, on_one_device, play};
use crate::host_device::HostDevice;
use vecaz::backend::gpu::KernelBackend;
use vecaz::backend::plan::BackendPlan;
use vecaz::backend::split::SplitBackend;
use vecaz::backend::{AnyGame, Backend};
use vecaz::config::{Config, DeviceName};
use vecaz::isa::Isa;
use vecaz::net::gpu::network::{ObsFormat, SlotOrder};
use vecaz::net::{HashNet, IoShape, UniformNet};
use vecaz::pass::PassMetrics;
use vecaz::play::PlayPlan;
use vecaz::registry::any_game;
use vecaz::selfplay::SelfPlay;
use vecaz::{Error, Result};

/// The rows of `plan` on `num` devices, with what `make` makes of each.
pub fn split(
    config: &Config,
    plan: BackendPlan,
    num: u32,
    make: &dyn Fn(DeviceName, BackendPlan) -> Result<Box<dyn Backend>>,
) -> Result<Box<dyn Backend>> {
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let devices: Vec<DeviceName> = (0..num).map(DeviceName::Cuda).collect();
    let rows_per_game = PlayPlan::new(config, &game.sizes()).determinisations;
    Ok(Box::new(SplitBackend::new(plan, &devices, rows_per_game, make)?))
}

/// Kernels for a part of the rows, on the host.
fn kernels(game: &dyn AnyGame, device: DeviceName, plan: BackendPlan) -> Result<KernelBackend<HostDevice>> {
    let DeviceName::Cuda(number) = device else { panic!("{device} is none of those") };
    KernelBackend::new(HostDevice::new(10 + u64::from(number)), game, plan)
}

fn compare(config: &Config, evaluator: Evaluator, num: u32) {
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let (found, metrics) = play(config, evaluator, &|plan, shape: IoShape| {
        split(config, plan, num, &|device, plan| {
            let mut backend = kernels(game.as_ref(), device, plan)?;
            if evaluator == Evaluator::ResidentNetwork {
                let network = OnDevice {
                    network: HashNet(shape),
                    format: ObsFormat::F32,
                    order: SlotOrder::ByLeaf,
                    forwards: 0,
                };
                backend.set_network(Some(Box::new(network)));
            }
            Ok(Box::new(backend))
        })
    });
    let (right, right_metrics) = on_one_device(config, evaluator);
    let what = format!("{} on {num} devices with {evaluator:?}", config.game_name());
    assert!(right.games.iter().any(|game| !game.samples.is_empty()), "{what}: nothing was played");
    assert_eq!(found.games.len(), right.games.len(), "{what}");
    for (found, right) in found.games.iter().zip(&right.games) {
        assert_eq!(found, right, "{what}");
    }
    assert_eq!(found.slots, right.slots, "{what}");
    let counts = |metrics: PassMetrics| PassMetrics { copied: Default::default(), device: 0.0, ..metrics };
    assert_eq!(counts(metrics), counts(right_metrics), "{what}");
    assert_eq!(metrics.copied.inside == 0, right_metrics.copied.inside == 0, "{what}");
    assert_eq!(metrics.device > 0.0, right_metrics.device > 0.0, "{what}");
}

#[test]
fn games_on_several_devices_are_those_of_one() {
    for (game, search, selfplay) in CASES {
        let config = config(game, search, selfplay);
        for (evaluator, num) in
            [(Evaluator::Host, 2), (Evaluator::ResidentNetwork, 3), (Evaluator::Constant, 2)]
        {
            compare(&config, evaluator, num);
        }
    }
}

#[test]
fn seven_games_are_split_over_three_devices() {
    let hex = config("name = 'hex'\nsize = 3", "simulations = 8", "games = 7\npasses_per_poll = 40");
    let blob = config(
        "name = 'blob'\nplayers = 3\ncards = 2",
        "simulations = 5\ndeterminisations = 2",
        "games = 7\npasses_per_poll = 40",
    );
    for evaluator in [Evaluator::Host, Evaluator::ResidentNetwork, Evaluator::Constant] {
        compare(&hex, evaluator, 3);
        compare(&blob, evaluator, 3);
    }
}

#[test]
fn every_device_has_the_network_and_its_new_weights() {
    for case in resident::CASES {
        let (game, search, selfplay, _, precision) = case;
        let config = config(game, search, selfplay);
        let rules = any_game(config.game_name(), &config.game_options()).expect("registered");
        let ((right, right_between, _), _) = resident::on_one_device(case);
        for num in [2, 3].into_iter().filter(|&num| num as usize <= config.selfplay.games) {
            let ((found, between, inside), _) = resident::play_case(case, &|plan| {
                if plan.rows == 1 {
                    // The root cache.
                    return Ok(Box::new(KernelBackend::new(HostDevice::new(6), rules.as_ref(), plan)?));
                }
                split(&config, plan, num, &|device, plan| {
                    Ok(Box::new(kernels(rules.as_ref(), device, plan)?))
                })
            });
            assert_eq!(
                (found, between),
                (right.clone(), right_between.clone()),
                "{game} {precision:?} on {num}"
            );
            assert_eq!(inside, 0, "{inside} bytes are copied within passes");
        }
    }
}

#[test]
fn what_cannot_be_split_is_refused() {
    let game = any_game("blob", &toml::Table::new()).expect("registered");
    let sizes = game.sizes();
    let shape =
        IoShape { obs_len: sizes.obs.len(), num_actions: sizes.num_actions, num_players: sizes.num_players };
    let with_games = |games: u64, free: [usize; 2]| {
        let config =
            config("name = 'blob'", "determinisations = 4\nsimulations = 50", &format!("games = {games}"));
        let make: Make<'_> = &|plan| {
            split(&config, plan, 2, &|device, plan| {
                let free = free[usize::from(device == DeviceName::Cuda(1))];
                let device = HostDevice::new(1).with_free_bytes(free);
                Ok(Box::new(KernelBackend::new(device, game.as_ref(), plan)?))
            })
        };
        SelfPlay::with_backends(&game, &config, &UniformNet(shape), Vec::new(), 1, make).map(drop)
    };
    let all = usize::MAX;
    let few = with_games(1, [all, all]).expect_err("no game for the second");
    assert_eq!(few.to_string(), "1 games on 2 devices: every device needs at least one game");

    let free = [70 << 20, 68 << 20];
    let Err(Error::Memory { largest_games, detail, have_mib, .. }) = with_games(200, free) else {
        panic!("there is no room for 200 games")
    };
    assert!(detail.starts_with("on cuda:1: 400 trees of "), "{detail}");
    assert_eq!(have_mib, 68);
    assert!(
        (10..200).contains(&largest_games) && largest_games.is_multiple_of(2),
        "{largest_games}: {detail}"
    );
    assert!(with_games(largest_games, free).is_ok(), "{largest_games} games do not fit");
    assert!(with_games(largest_games + 2, free).is_err(), "{largest_games} games are not the most");

    // Rows that need the host for every pass and rows that do not are no one backend.
    let config = config("name = 'tic_tac_toe'", "simulations = 4", "games = 2");
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let make: Make<'_> = &|plan| {
        split(&config, plan, 2, &|device, plan| match device {
            DeviceName::Cuda(0) => game.cpu_backend(plan, Isa::detect()),
            _ => Ok(Box::new(kernels(game.as_ref(), device, plan)?)),
        })
    };
    let sizes = game.sizes();
    let shape =
        IoShape { obs_len: sizes.obs.len(), num_actions: sizes.num_actions, num_players: sizes.num_players };
    let network = UniformNet(shape);
    let mixed = SelfPlay::with_backends(&game, &config, &network, Vec::new(), 1, make);
    assert_eq!(
        mixed.map(drop).expect_err("of two kinds").to_string(),
        "devices that make passes by themselves: found 1 of 2, expected all of them, or none"
    );
}
