//! The network's own kernels beside the trees, from a backend's first weights to the games of self-play: equal to the bit to
//! games led on the CPU that ask the same kernels through the host.

use super::scenario::{assert_same, cpu, facts, finish, kernels};
use super::selfplay::{Played, cache_by, config};
use super::shared::Shared;
use super::{Noisy, scenario};
use crate::host_device::{HostBuffer, HostDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vecaz::backend::AnyGame;
use vecaz::backend::gpu::KernelBackend;
use vecaz::backend::plan::BackendPlan;
use vecaz::backend::{Backend, DevicePasses, PlyPlan, RootCache, TreeRows};
use vecaz::config::{Config, DeviceName, Precision};
use vecaz::isa::Isa;
use vecaz::net::gpu::network::{DeviceNetwork, ObsFormat, SlotOrder, Slots};
use vecaz::net::gpu::{DeviceEvaluator, DeviceForward, ElementType};
use vecaz::net::{NetSpec, Network, NetworkDesc};
use vecaz::play::GameSlot;
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::selfplay::SelfPlay;
use vecaz::{Error, Result};

/// A network for a game, in small.
pub fn parts(game: &dyn AnyGame, net: &str, precision: Precision, seed: u64) -> NetworkDesc {
    let net = super::selfplay::layered(&format!("[net]\n{net}")).net;
    let spec = NetSpec::new(&net, &game.sizes());
    let weights = spec.model().expect("a network").random_weights(Key::new(seed, Purpose::Weights));
    NetworkDesc { spec, weights, precision, tensor_cores: net.tensor_cores }
}

/// The network of `parts` for callers on the host, which counts in `opened` how often it was opened. Backends that say that
/// they are on the CPU, as all of these tests do, are given its weights.
pub fn evaluator(parts: NetworkDesc, opened: &Arc<AtomicUsize>) -> DeviceEvaluator<HostDevice> {
    let opened = opened.clone();
    DeviceEvaluator::new(parts, DeviceName::Cpu, move || {
        opened.fetch_add(1, Ordering::Relaxed);
        Ok(HostDevice::new(21))
    })
}

pub type Make<'a> = &'a (dyn Fn(BackendPlan) -> Result<Box<dyn Backend>> + Sync);

/// Self-play with two sets of weights, two polls each, from `slots` on; the slots after the first set too.
pub fn play(
    config: &Config,
    networks: &[&dyn Network],
    slots: Vec<GameSlot>,
    make: Make<'_>,
) -> (Played, Vec<GameSlot>, u64) {
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let mut selfplay =
        SelfPlay::with_backends(&game, config, networks[0], slots, 1, make).expect("a backend");
    let (mut games, mut between) = (Vec::new(), Vec::new());
    for network in networks {
        between = selfplay.slots().cloned().collect();
        let cache = cache_by(config, game.as_ref(), *network, make);
        selfplay.set_network(*network, cache).expect("a network");
        for _ in 0..2 {
            games.extend(selfplay.poll().expect("finite"));
        }
    }
    let inside = selfplay.take_metrics().copied.inside;
    (Played { games, slots: selfplay.slots().cloned().collect() }, between, inside)
}

pub const RESNET: &str =
    "blocks = 1\nchannels = 8\npolicy_channels = 2\nvalue_channels = 1\nvalue_hidden = 8";
const MLP: &str = "arch = 'mlp'\nblocks = 1\nchannels = 24\nvalue_hidden = 8";

const EDGE: &str = "arch = 'edge'\nblocks = 1\nchannels = 12\nvalue_hidden = 8";

/// A game, how it is searched and played, the network and its format.
type Case = (&'static str, &'static str, &'static str, &'static str, Precision);

pub const CASES: [Case; 7] = [
    (
        "name = 'tic_tac_toe'",
        "algorithm = 'puct'\nsimulations = 10",
        "games = 4\npasses_per_poll = 50\nopening_plies = 3\ntemperature_plies = 2",
        RESNET,
        Precision::F32,
    ),
    (
        "name = 'connect_four'\nrows = 4\ncolumns = 5\nconnect = 3",
        "algorithm = 'gumbel'\nsimulations = 9\nleaves = 2\nroot_cache = 40",
        "games = 3\npasses_per_poll = 40",
        RESNET,
        Precision::Bf16,
    ),
    (
        "name = 'hex'\nsize = 3\nswap = true",
        "simulations = 8",
        "games = 3\npasses_per_poll = 50",
        RESNET,
        Precision::F16,
    ),
    (
        "name = 'backgammon'\nply_limit = 100",
        "algorithm = 'puct'\nsimulations = 5",
        "games = 3\npasses_per_poll = 250\nopening_plies = 0",
        MLP,
        Precision::Tf32,
    ),
    (
        "name = 'blob'\nplayers = 3\ncards = 2",
        "simulations = 6\ndeterminisations = 2",
        "games = 2\npasses_per_poll = 60",
        MLP,
        Precision::F32,
    ),
    (
        "name = 'clique'\nn = 5\nk = 3\nmode = 'avoid_clique'",
        "algorithm = 'puct'\nsimulations = 8\nroot_cache = 30",
        "games = 3\npasses_per_poll = 40\nopening_plies = 2\ntemperature_plies = 3",
        EDGE,
        Precision::F32,
    ),
    (
        "name = 'clique'\nn = 6\nk = 4\nmode = 'ramsey'",
        "algorithm = 'gumbel'\nsimulations = 7\nleaves = 2",
        "games = 3\npasses_per_poll = 50",
        EDGE,
        Precision::Bf16,
    ),
];

/// What [`play`] gives, and how often networks were opened for the host.
type PlayedCase = ((Played, Vec<GameSlot>, u64), usize);

/// [`play`] with two sets of weights.
pub fn play_case(case: Case, make: Make<'_>) -> PlayedCase {
    let (game, search, selfplay, net, precision) = case;
    let config = config(game, search, selfplay);
    let rules = any_game(config.game_name(), &config.game_options()).expect("registered");
    let opened = Arc::new(AtomicUsize::new(0));
    let [old, new] = [1, 2].map(|seed| evaluator(parts(rules.as_ref(), net, precision, seed), &opened));
    (play(&config, &[&old, &new], Vec::new(), make), opened.load(Ordering::Relaxed))
}

/// The same on one device, played once for all tests that compare with it.
pub fn on_one_device(case: Case) -> PlayedCase {
    static PLAYED: Shared<PlayedCase> = Shared::new();
    PLAYED.get(format!("{case:?}"), || {
        let (game, search, selfplay, ..) = case;
        let config = config(game, search, selfplay);
        let rules = any_game(config.game_name(), &config.game_options()).expect("registered");
        play_case(case, &|plan| Ok(Box::new(KernelBackend::new(HostDevice::new(6), rules.as_ref(), plan)?)))
    })
}

#[test]
fn games_are_those_of_the_cpu_with_the_weights_swapped_and_nothing_copied() {
    for case in CASES {
        let (game, search, selfplay, net, precision) = case;
        let config = config(game, search, selfplay);
        let rules = any_game(config.game_name(), &config.game_options()).expect("registered");
        let ((right, ..), num_calls) = play_case(case, &|plan| rules.cpu_backend(plan, Isa::detect()));
        assert_eq!(num_calls, 2, "the CPU calls both through the host");
        let ((found, between, inside), num_calls) = on_one_device(case);
        assert!(found.games.iter().any(|game| game.game > 0), "{game}: {} games", found.games.len());
        assert_eq!(found, right, "{game} {precision:?}");
        assert_eq!(
            (num_calls, inside),
            (0, 0),
            "{game}: the host's network is not called, and nothing is copied in passes"
        );

        // The second set of weights alone, from the games as they stood: what a resumed run does.
        let new = evaluator(parts(rules.as_ref(), net, precision, 2), &Arc::default());
        let make: Make<'_> =
            &|plan| Ok(Box::new(KernelBackend::new(HostDevice::new(7), rules.as_ref(), plan)?));
        let (resumed, ..) = play(&config, &[&new], between, make);
        assert!(found.games.ends_with(&resumed.games), "{game} {precision:?}");
        assert_eq!(resumed.slots, found.slots, "{game} {precision:?}");
    }
}

#[test]
fn new_weights_go_where_the_old_ones_are_and_the_recorded_pass_has_them() {
    check_new_weights(("connect_four", "", &[0, 9]), RESNET);
    check_new_weights(("clique", "n = 5\nk = 3", &[0, 4]), EDGE);
}

fn check_new_weights(game: (&'static str, &'static str, &'static [usize]), net: &str) {
    let scenario = scenario(game, super::config(super::GUMBEL, 12, 2));
    let game = scenario.game();
    let [old, new] = [1, 2].map(|seed| parts(game.as_ref(), net, Precision::Bf16, seed));
    let begin = |backend: &mut dyn Backend| {
        for (b, position) in scenario.positions().iter().enumerate() {
            backend.set_root(b, &position.state, &position.history).expect("a device");
            let plan = PlyPlan { simulations: 12, exploration: Noisy, key: position.key };
            backend.begin(b, plan).expect("a device");
        }
    };
    let mut backend = kernels(&scenario, HostDevice::new(8));
    backend.take_network(Some(&old)).expect("fits");
    begin(&mut backend);
    while backend.num_unfinished().expect("a device") > 0 {
        backend.simulate_resident(3).expect("runs").expect("it has a network");
    }
    let first: Vec<_> = (0..backend.rows()).map(|b| facts(&mut backend, b)).collect();
    let (made, replayed) =
        (backend.with_device(HostDevice::allocations), backend.with_device(HostDevice::graph_launches));
    backend.take_network(Some(&new)).expect("of the same shape");
    begin(&mut backend);
    let mut passes = 0;
    while backend.num_unfinished().expect("a device") > 0 {
        backend.simulate_resident(3).expect("runs").expect("it has a network");
        passes += 3;
    }
    assert_eq!(backend.with_device(HostDevice::allocations), made, "nothing new is made");
    assert_eq!(
        backend.with_device(HostDevice::graph_launches),
        replayed + passes,
        "all passes are the recorded one"
    );
    let mut right = cpu(&scenario);
    begin(right.as_mut());
    finish(right.as_mut(), &mut evaluator(new, &Arc::default()));
    for (b, first) in first.iter().enumerate() {
        let found = facts(&mut backend, b);
        assert_same(&found, &facts(right.as_mut(), b), &format!("row {b}"));
        assert!(found != *first, "the weights make a difference");
    }
    backend.take_network(None).expect("nothing to take");
    assert!(backend.simulate_resident(1).expect("nothing to do").is_none(), "the network is gone");
}

/// A network's own kernels with compact slots, whether or not they pay.
struct Compact(DeviceForward<HostDevice>);

impl DeviceNetwork<HostDevice> for Compact {
    fn format(&self) -> ObsFormat {
        self.0.format()
    }

    fn slot_order(&self) -> SlotOrder {
        SlotOrder::Compact
    }

    fn forward(&mut self, device: &HostDevice, slots: Slots<'_, HostBuffer>) -> Result<()> {
        self.0.forward(device, slots)
    }
}

#[test]
fn searches_with_compact_slots_are_those_of_the_cpu() {
    let scenario = scenario(("connect_four", "", &[0, 9, 30, 34]), super::config(super::GUMBEL, 40, 2));
    let parts = parts(scenario.game().as_ref(), RESNET, Precision::Bf16, 1);
    let begin = |backend: &mut dyn Backend| {
        for (b, position) in scenario.positions().iter().enumerate() {
            backend.set_root(b, &position.state, &position.history).expect("a root");
            backend
                .begin(b, PlyPlan { simulations: 40, exploration: Noisy, key: position.key })
                .expect("begins");
        }
    };
    let mut backend = kernels(&scenario, HostDevice::new(8));
    begin(&mut backend);
    let slots = 2 * backend.rows();
    let forward =
        backend.with_device(|d| DeviceForward::new(d, &parts.spec, &parts.weights, ElementType::Bf16, slots));
    let mut network = Compact(forward.expect("fits"));
    let (mut leaves, mut evaluations) = (0, 0);
    while backend.num_unfinished().expect("a device") > 0 {
        let done = backend.simulate(&mut network, 7).expect("runs");
        (leaves, evaluations) = (leaves + done.leaves, evaluations + done.evaluations);
    }
    assert!(evaluations < leaves, "{evaluations} of {leaves} leaves need the network");
    let mut right = cpu(&scenario);
    begin(right.as_mut());
    finish(right.as_mut(), &mut evaluator(parts, &Arc::default()));
    for b in 0..right.rows() {
        assert_same(&facts(&mut backend, b), &facts(right.as_mut(), b), &format!("row {b}"));
    }
}

#[test]
fn the_parts_of_a_pass_are_timed_apart() {
    let config = config("name = 'tic_tac_toe'", "simulations = 6", "games = 2\npasses_per_poll = 20");
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let network = evaluator(parts(game.as_ref(), RESNET, Precision::F32, 1), &Arc::default());
    let parts_of = |make: Make<'_>| {
        let mut selfplay =
            SelfPlay::with_backends(&game, &config, &network, Vec::new(), 1, make).expect("fits");
        selfplay.set_network(&network, RootCache::default()).expect("finite weights");
        selfplay.poll().expect("finite");
        let seconds = selfplay.take_metrics().device;
        (selfplay.profile_last_passes(5).expect("finite"), seconds)
    };
    let (parts, seconds) =
        parts_of(&|plan| Ok(Box::new(KernelBackend::new(HostDevice::new(6), game.as_ref(), plan)?)));
    let parts = parts.expect("a resident network");
    assert!(seconds > 0.0);
    assert!(parts.seconds.iter().all(|&seconds| seconds > 0.0), "{parts:?}");
    let launches =
        |name: &str| parts.kernels.iter().find(|time| time.kernel == name).map(|time| time.launches);
    for kernel in ["select_rows", "observe_leaves", "expand_leaves", "backup_rows"] {
        assert_eq!(launches(kernel), Some(8), "{parts:?}");
    }
    assert!(parts.kernels.iter().all(|time| time.seconds > 0.0), "{parts:?}");
    assert_eq!(parts_of(&|plan| game.cpu_backend(plan, Isa::detect())), (None, 0.0));
}

#[test]
fn weights_that_give_no_number_stop_self_play() {
    let config = config("name = 'tic_tac_toe'", "simulations = 6", "games = 2\npasses_per_poll = 4");
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let mut huge = parts(game.as_ref(), RESNET, Precision::F32, 1);
    huge.weights.get_mut("policy.linear.weight").expect("there").data.fill(3e38);
    let network = evaluator(huge, &Arc::default());
    let make: Make<'_> = &|plan| Ok(Box::new(KernelBackend::new(HostDevice::new(6), game.as_ref(), plan)?));
    let mut selfplay = SelfPlay::with_backends(&game, &config, &network, Vec::new(), 1, make).expect("fits");
    selfplay.set_network(&network, RootCache::default()).expect("finite weights");
    let error = selfplay.poll().expect_err("infinite logits");
    assert_eq!(error.to_string(), "a logit or value of the network is not finite (NaN)");
}

#[test]
fn a_network_that_does_not_fit_with_the_games_is_refused_with_the_number_that_fits() {
    check_what_fits("connect_four", "blocks = 1\nchannels = 64", 2000);
    check_what_fits("clique", "arch = 'edge'\nblocks = 1\nchannels = 512", 800);
}

/// So many games fit into 100 MiB without a network, and not with one.
fn check_what_fits(game: &str, network: &str, games: usize) {
    let rules = any_game(game, &toml::Table::new()).expect("registered");
    let config =
        |games: usize| config(&format!("name = '{game}'"), "simulations = 10", &format!("games = {games}"));
    let parts = parts(rules.as_ref(), network, Precision::Bf16, 1);
    let uniform = vecaz::net::UniformNet(parts.spec.io());
    let free = 100 << 20;
    let try_games = |games: usize, resident: Option<&NetworkDesc>| {
        let config = config(games);
        let make: Make<'_> = &|plan| {
            let device = HostDevice::new(1).with_free_bytes(free);
            let mut backend = KernelBackend::new(device, rules.as_ref(), plan)?;
            backend.take_network(resident)?;
            Ok(Box::new(backend))
        };
        SelfPlay::with_backends(&rules, &config, &uniform, Vec::new(), 1, make).map(|_| ())
    };
    assert!(try_games(games, None).is_ok());
    let Err(Error::Memory { largest_games, detail, need_mib, have_mib, .. }) = try_games(games, Some(&parts))
    else {
        panic!("more than there is room for")
    };
    assert!(detail.contains(", games ") && detail.contains(", network "), "{detail}");
    assert!(need_mib > have_mib && (99..=100).contains(&have_mib), "{need_mib} of {have_mib} MiB");
    let largest = largest_games as usize;
    assert!(largest > games / 4 && largest < games, "{largest}: {detail}");
    assert!(try_games(largest, Some(&parts)).is_ok(), "{largest} games do not fit");
    assert!(
        try_games(largest + largest / 20, Some(&parts)).is_err(),
        "{largest} games are not the most: {detail}"
    );
}
