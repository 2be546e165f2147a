//! Self-play that the device leads against self-play led pass by pass on the CPU: games, samples and games in progress must be
//! equal to the bit, wherever the network is evaluated.

use super::networks::OnDevice;
use super::scenario::tree_bytes;
use super::shared::Shared;
use crate::host_device::HostDevice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vecaz::Result;
use vecaz::backend::AnyGame;
use vecaz::backend::gpu::KernelBackend;
use vecaz::backend::plan::BackendPlan;
use vecaz::backend::{Backend, DevicePasses, PlyPlan, RootCache, TreeRows};
use vecaz::config::{Config, Layers};
use vecaz::isa::Isa;
use vecaz::net::gpu::network::{ObsFormat, SlotOrder};
use vecaz::net::{HashNet, IoShape, Network, UniformNet};
use vecaz::pass::PassMetrics;
use vecaz::play::{FinishedGame, GameSlot};
use vecaz::play::{PlayPlan, SlotStart};
use vecaz::registry::any_game;
use vecaz::root_cache::{self, CachePlan};
use vecaz::search::root::{Exploration, RowKey};
use vecaz::selfplay::{SelfPlay, backend_plan};
use vecaz::stop::Stop;

/// Who evaluator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluator {
    /// A network on the host, called after every selection.
    Host,
    /// The same one, resident.
    ResidentNetwork,
    /// One constant output for all leaves.
    Constant,
}

/// All results of self-play.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    pub games: Vec<FinishedGame>,
    pub slots: Vec<GameSlot>,
}

pub fn config(game: &str, search: &str, selfplay: &str) -> Config {
    layered(&format!("[game]\n{game}\n[search]\n{search}\n[selfplay]\nfirst_game = 'start'\n{selfplay}"))
}

/// The configuration that says `text`.
pub fn layered(text: &str) -> Config {
    Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid")
}

/// Games for which root caches are planned: some of their random openings are shared.
pub const GAMES: f64 = 64.0;

/// The root cache of `config`, if it has one, built by backends that `make` makes.
pub fn cache_by(
    config: &Config,
    game: &dyn AnyGame,
    network: &dyn Network,
    make: &(dyn Fn(BackendPlan) -> Result<Box<dyn Backend>> + Sync),
) -> RootCache {
    let sizes = game.sizes();
    let plan = CachePlan::for_run(config, backend_plan(config, &sizes, 1), &sizes, GAMES);
    let Some(plan) = plan else { return RootCache::default() };
    let (mut snapshots, mut simulations) = (Vec::new(), 0);
    for batch in plan.trees(game).chunk_by(|a, b| a.leaves == b.leaves) {
        let stop = Stop::default();
        let built = root_cache::build_batch(game, network.fork(), &plan, batch, make, &stop).expect("built");
        snapshots.extend(built.snapshots);
        simulations += built.simulations;
    }
    let counted = (config.search.inherit_cap * config.search.simulations as f32) as u32;
    RootCache::new(snapshots, simulations, counted)
}

/// A number of polls, with new weights in between, by backends that `make` makes.
pub fn play(
    config: &Config,
    evaluator: Evaluator,
    make: &dyn Fn(BackendPlan, IoShape) -> Result<Box<dyn Backend>>,
) -> (Played, PassMetrics) {
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let sizes = game.sizes();
    let shape =
        IoShape { obs_len: sizes.obs.len(), num_actions: sizes.num_actions, num_players: sizes.num_players };
    let network: Box<dyn Network> = match evaluator {
        Evaluator::Constant => Box::new(UniformNet(shape)),
        Evaluator::Host | Evaluator::ResidentNetwork => Box::new(HashNet(shape)),
    };
    let cache = || match CachePlan::for_run(config, backend_plan(config, &sizes, 1), &sizes, GAMES) {
        None => RootCache::default(),
        Some(plan) => root_cache::build(game.as_ref(), network.as_ref(), plan, None, &Stop::default())
            .expect("no failure"),
    };
    let backends = |plan| make(plan, shape);
    let mut selfplay = SelfPlay::with_backends(&game, config, network.as_ref(), Vec::new(), 1, &backends)
        .expect("a backend");
    let mut games = Vec::new();
    for _ in 0..2 {
        selfplay.set_network(network.as_ref(), cache()).expect("a network");
        for _ in 0..2 {
            games.extend(selfplay.poll().expect("finite"));
        }
    }
    let mut metrics = selfplay.take_metrics();
    [metrics.select, metrics.forward, metrics.expand, metrics.backup] = [0.0; 4];
    (Played { games, slots: selfplay.slots().cloned().collect() }, metrics)
}

fn on_cpu(config: &Config, evaluator: Evaluator) -> (Played, PassMetrics) {
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    play(config, evaluator, &|plan, _| game.cpu_backend(plan, Isa::detect()))
}

fn on_device(config: &Config, evaluator: Evaluator, missing_barrier: i32) -> (Played, PassMetrics) {
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    play(config, evaluator, &|plan, shape| {
        let device = HostDevice::new(6).without_barrier(missing_barrier);
        let mut backend = KernelBackend::new(device, game.as_ref(), plan)?;
        if evaluator == Evaluator::ResidentNetwork {
            let network = OnDevice {
                network: HashNet(shape),
                format: ObsFormat::F32,
                order: SlotOrder::Compact,
                forwards: 0,
            };
            backend.set_network(Some(Box::new(network)));
        }
        Ok(Box::new(backend))
    })
}

/// The same with all barriers, played once for all tests that compare with it.
pub fn on_one_device(config: &Config, evaluator: Evaluator) -> (Played, PassMetrics) {
    static PLAYED: Shared<(Played, PassMetrics)> = Shared::new();
    PLAYED.get(format!("{config:?} {evaluator:?}"), || on_device(config, evaluator, 0))
}

/// Fails where device and CPU differ; returns the games.
fn compare(config: &Config, evaluator: Evaluator) -> Vec<FinishedGame> {
    let (right, right_metrics) = on_cpu(config, evaluator);
    let (found, metrics) = on_one_device(config, evaluator);
    let what = format!("{} with {evaluator:?}, {:?}", config.game_name(), config.search);
    assert_eq!(found.games.len(), right.games.len(), "{what}");
    for (found, right) in found.games.iter().zip(&right.games) {
        assert_eq!(found, right, "{what}");
    }
    assert_eq!(found.slots, right.slots, "{what}");
    let counts = |c: PassMetrics| {
        let starts = [c.cached_starts, c.inherited_visits];
        ([c.passes, c.simulations, c.plies, c.idle_rows, c.depth_sum, c.depth_max], starts)
    };
    assert_eq!(counts(metrics), counts(right_metrics), "{what}");
    let inside = metrics.copied.inside;
    assert_eq!(inside > 0, evaluator == Evaluator::Host, "{inside} bytes were copied within passes, {what}");
    found.games
}

/// Games with how they are searched and played: between them both algorithms, several leaves a pass, reuse and none,
/// openings, chance, repeat turns, a history, hidden hands of several determinisations and of one, a full tree.
pub const CASES: [(&str, &str, &str); 9] = [
    (
        "name = 'tic_tac_toe'",
        "algorithm = 'puct'\nsimulations = 12",
        "games = 5\npasses_per_poll = 60\nopening_plies = 3\ntemperature_plies = 2",
    ),
    (
        "name = 'tic_tac_toe'",
        "algorithm = 'gumbel'\nsimulations = 40\nleaves = 3",
        "games = 3\npasses_per_poll = 60\nopening_plies = 9\nopening_none = 0.3",
    ),
    (
        "name = 'connect_four'",
        "algorithm = 'gumbel'\nsimulations = 9\nleaves = 2\nreuse = false",
        "games = 5\npasses_per_poll = 75",
    ),
    (
        "name = 'connect_four'",
        "algorithm = 'puct'\nsimulations = 20\nleaves = 4\nnodes = 21\nroot_cache = 60",
        "games = 5\npasses_per_poll = 60\nopening_plies = 2",
    ),
    (
        "name = 'hex'\nsize = 3\nswap = true",
        "simulations = 8",
        "games = 3\npasses_per_poll = 60\nopening_plies = 1",
    ),
    (
        "name = 'go'\nsize = 5\nmax_plies = 14",
        "simulations = 8\nleaves = 2",
        "games = 3\npasses_per_poll = 40\nopening_plies = 1\nopening_none = 0.0",
    ),
    (
        "name = 'backgammon'\nply_limit = 100",
        "algorithm = 'puct'\nsimulations = 6\nroot_cache = 20",
        "games = 4\npasses_per_poll = 300\nopening_plies = 0",
    ),
    (
        "name = 'blob'\nplayers = 3\ncards = 2\nfull = true",
        "simulations = 6\ndeterminisations = 3",
        "games = 3\npasses_per_poll = 250",
    ),
    (
        "name = 'blob'\nplayers = 4\ncards = 2",
        "algorithm = 'puct'\nsimulations = 5\ndeterminisations = 1\nleaves = 2",
        "games = 3\npasses_per_poll = 120\nopening_plies = 3",
    ),
];

#[test]
fn the_device_plays_the_games_of_the_cpu() {
    for (game, search, selfplay) in CASES {
        let config = config(game, search, selfplay);
        for evaluator in [Evaluator::Host, Evaluator::ResidentNetwork, Evaluator::Constant] {
            let games = compare(&config, evaluator);
            assert!(games.iter().any(|game| game.game > 0), "{game}: {} games", games.len());
        }
    }
}

#[test]
fn two_polls_are_under_way_at_most_and_are_collected_in_their_order() {
    let config = config("name = 'tic_tac_toe'", "simulations = 4", "games = 3");
    let game = any_game("tic_tac_toe", &config.game_options()).expect("registered");
    let sizes = game.sizes();
    let plan = PlayPlan::new(&config, &sizes);
    let mut backend = KernelBackend::new(HostDevice::new(2), game.as_ref(), backend_plan(&config, &sizes, 3))
        .expect("fits");
    let refused = |result: Result<()>| result.expect_err("refused").to_string();
    assert!(refused(backend.end_poll()).starts_with("game slots attached to the device: found none"));
    let state = game.init();
    let start = |slot| SlotStart { slot, game: 0, plies: 0, opening: 0, state: &state };
    let attach = |backend: &mut KernelBackend<HostDevice>| {
        for b in 0..3 {
            let key = RowKey { seed: plan.seed, slot: b as u64, ..RowKey::default() };
            backend.set_root(b, &state, &[]).expect("a device");
            let ply = PlyPlan { simulations: 4, exploration: Exploration::Noisy, key };
            backend.begin(b, ply).expect("a device");
        }
        backend.attach_selfplay(&plan, &[0, 1, 2].map(start), &RootCache::default()).expect("memory");
    };
    let (logits, values) = (vec![0.0; sizes.num_actions], vec![0.0; sizes.num_players]);
    let poll = |backend: &mut KernelBackend<HostDevice>, passes| {
        assert!(backend.launch_passes(Some((&logits, &values)), passes)?);
        backend.end_poll()
    };
    // Twice: attaching anew discards the polls under way.
    for _ in 0..2 {
        attach(&mut backend);
        let nothing =
            "polls that have ended and were not collected: found 0, expected at least 1 to be collected";
        assert_eq!(refused(backend.collect_poll().map(drop)), nothing);
        poll(&mut backend, 7).expect("the first");
        poll(&mut backend, 2).expect("the second");
        let third = refused(poll(&mut backend, 1));
        assert!(third.ends_with("found 2, expected fewer than 2 before passes of another one"), "{third}");
        assert_eq!(backend.collect_poll().expect("the first").visited, 3 * 7);
        let passes: Vec<u32> =
            backend.decisions().expect("copied").iter().flat_map(|b| b.iter().map(|one| one.pass)).collect();
        assert!(passes.len() >= 3 && passes.iter().all(|pass| (1..=7).contains(pass)), "{passes:?}");
        poll(&mut backend, 1).expect("the third, now that there is room");
        assert_eq!(backend.collect_poll().expect("the second").visited, 3 * 2);
        assert_eq!(backend.collect_poll().expect("the third").visited, 3);
        poll(&mut backend, 1).expect("one that is discarded");
    }
}

#[test]
fn without_the_barriers_between_plies_results_differ() {
    // A plain game, and one whose games begin with a tree that is copied.
    let mut unseen: Vec<i32> = Vec::new();
    for (case, barriers) in [(0, &[23, 30, 31] as &[i32]), (3, &[24])] {
        let (game, search, selfplay) = CASES[case];
        let config = config(game, search, selfplay);
        let right = on_cpu(&config, Evaluator::Constant).0;
        let agree = |barrier| {
            let played = || on_device(&config, Evaluator::Constant, barrier).0 == right;
            catch_unwind(AssertUnwindSafe(played)).unwrap_or(false)
        };
        assert!(agree(0));
        unseen.extend(barriers.iter().filter(|&&barrier| agree(barrier)));
    }
    assert!(unseen.is_empty(), "nothing differs without the barriers {unseen:?}");
}

#[test]
fn the_root_cache_is_the_same_tree_wherever_it_is_built() {
    for (game, search, selfplay, num_trees) in [
        ("name = 'backgammon'", "algorithm = 'puct'\nroot_cache = 40\nsimulations = 90", "games = 40", 30),
        (
            "name = 'connect_four'",
            "algorithm = 'gumbel'\nroot_cache = 300\nsimulations = 40\nnodes = 100",
            "games = 40\nopening_plies = 2",
            8,
        ),
        (
            "name = 'go'\nsize = 5",
            "algorithm = 'puct'\nroot_cache = 300\nsimulations = 40",
            "games = 40\nopening_plies = 1\nopening_none = 0.0",
            26,
        ),
    ] {
        let config = config(game, search, selfplay);
        let game = any_game(config.game_name(), &config.game_options()).expect("registered");
        let sizes = game.sizes();
        let shape = IoShape {
            obs_len: sizes.obs.len(),
            num_actions: sizes.num_actions,
            num_players: sizes.num_players,
        };
        let rows = backend_plan(&config, &sizes, 1);
        let plan = CachePlan::for_run(&config, rows, &sizes, GAMES).expect("one");
        let right = root_cache::build(game.as_ref(), &HashNet(shape), plan, None, &Stop::default())
            .expect("no failure");
        let make = |plan| -> Result<Box<dyn Backend>> {
            Ok(Box::new(KernelBackend::new(HostDevice::new(9), game.as_ref(), plan)?))
        };
        let found = cache_by(&config, game.as_ref(), &HashNet(shape), &make);
        assert_eq!([found.trees().len(), right.trees().len()], [num_trees; 2], "{search}");
        assert_eq!(found.simulations(), right.simulations());
        for (tree, right) in found.trees().iter().zip(right.trees()) {
            assert_eq!(tree.snapshot.history, right.snapshot.history);
            assert_eq!(tree_bytes(&tree.snapshot), tree_bytes(&right.snapshot), "{search}");
            assert_eq!(tree.inherited, right.inherited);
            assert!(tree.snapshot.tree.count(0) > 4);
        }
    }
}

#[test]
fn too_many_games_are_refused_with_the_number_that_fits() {
    let config = |games| {
        config("name = 'blob'", "determinisations = 4\nsimulations = 50", &format!("games = {games}"))
    };
    let game = any_game("blob", &config(1).game_options()).expect("registered");
    let sizes = game.sizes();
    let shape =
        IoShape { obs_len: sizes.obs.len(), num_actions: sizes.num_actions, num_players: sizes.num_players };
    // Game slots have 64 MiB for the decisions of two polls.
    let (games, free) = (100, 70 << 20);
    let make = |plan| -> Result<Box<dyn Backend>> {
        let device = HostDevice::new(1).with_free_bytes(free);
        Ok(Box::new(KernelBackend::new(device, game.as_ref(), plan)?))
    };
    let try_games = |games: u64| {
        let selfplay =
            SelfPlay::with_backends(&game, &config(games), &UniformNet(shape), Vec::new(), 1, &make);
        selfplay.and_then(|mut selfplay| selfplay.set_network(&UniformNet(shape), RootCache::default()))
    };
    let refused = try_games(games).expect_err("too many");
    let vecaz::Error::Memory { largest_games, detail, .. } = refused else { panic!("{refused}") };
    assert!(detail.contains(", games 6"), "{detail}");
    assert!((10..games).contains(&largest_games), "{largest_games} games: {detail}");
    assert!(try_games(largest_games).is_ok(), "{largest_games} games do not fit");
    assert!(try_games(largest_games + 2).is_err(), "{largest_games} games are not the most");
}
