//! The laws that every search keeps, on small games written down as trees and on the real ones.

mod support;
#[path = "support/tree_game.rs"]
mod tree_game;

use proptest::prelude::*;
use support::{finish, io_shape, plan, search};
use tree_game::{Place, TreeGame};
use vecaz::act::sum_determinisations;
use vecaz::backend::cpu::CpuBackend;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::backend::reference::ReferenceBackend;
use vecaz::backend::{Backend, PlyPlan};
use vecaz::batch::{Playthrough, any_game};
use vecaz::config::{Algorithm, ChanceRule, Config, Layers, SearchConfig};
use vecaz::game::backgammon::Backgammon;
use vecaz::game::connect_four::ConnectFour;
use vecaz::game::{Game, Turn};
use vecaz::net::{HashNet, IoShape, Network, UniformNet};
use vecaz::rng::{Key, Purpose, Stream};
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::searcher::Position;
use vecaz::selfplay::{FinishedGame, SelfPlay};
use vecaz::tree::{Kind, NO_NODE, Tree};

const BOTH: [Algorithm; 2] = [Algorithm::Puct, Algorithm::Gumbel];

fn config(algorithm: Algorithm, simulations: u32) -> SearchConfig {
    SearchConfig { algorithm, simulations, ..SearchConfig::default() }
}

/// Both engines' answers at the start of a game, which must be one.
fn solve(game: &TreeGame, config: &SearchConfig, network: &mut dyn Network) -> RootSummary {
    let plan = plan(config, &game.sizes(), 3);
    let start = Position { state: bytemuck::bytes_of(&game.init()).to_vec(), ..Position::default() };
    let positions = [start];
    let mut batched = CpuBackend::new(game.clone(), plan);
    let mut reference = ReferenceBackend::new(game.clone(), plan);
    let out = search(&mut batched, network, &positions, config.simulations, Exploration::Noisy);
    let again = search(&mut reference, network, &positions, config.simulations, Exploration::Noisy);
    assert_eq!(out[0].visits, again[0].visits, "{game:?} {config:?}");
    assert_eq!((&out[0].value, &out[0].policy), (&again[0].value, &again[0].policy), "{game:?} {config:?}");
    out.into_iter().next().expect("one")
}

fn uniform(game: &TreeGame) -> UniformNet {
    UniformNet(io_shape(&game.sizes()))
}

fn ends(value: f32) -> Place {
    Place::Ends(vec![value, -value])
}

#[test]
fn a_chance_node_is_worth_its_expectation() {
    // 0: dice of 1/2, 1/4, 1/4 for 0.5, -0.75 and 0.25, that is 0.125. 1: 0.0625 for sure. 2: the same dice turned round.
    let dice = |win, lose, rest| Place::Deals(vec![(0.5, win), (0.25, lose), (0.25, rest)]);
    let places = vec![
        Place::Moves(0, vec![1, 2, 3]),
        dice(4, 5, 6),
        ends(0.0625),
        dice(7, 8, 9),
        ends(0.5),
        ends(-0.75),
        ends(0.25),
        ends(-0.5),
        ends(0.75),
        ends(-0.25),
    ];
    let game = TreeGame { players: 2, places };
    for algorithm in BOTH {
        let config = SearchConfig { noise_fraction: 0.0, ..config(algorithm, 2000) };
        let found = solve(&game, &config, &mut uniform(&game));
        for (edge, expected) in [0.125, 0.0625, -0.125].into_iter().enumerate() {
            // Stratified outcomes are never a whole visit away from their share.
            let bound = 1.5 / found.visits[edge] as f32;
            assert!((found.q[edge] - expected).abs() <= bound, "{algorithm:?} {edge} {found:?}");
        }
        let sampled = SearchConfig { chance: ChanceRule::Sample, ..config };
        let sampled = solve(&game, &sampled, &mut uniform(&game));
        assert!((sampled.q[0] - 0.125).abs() < 0.05, "{algorithm:?} {sampled:?}");
        assert_ne!(sampled.q, found.q);
    }
}

#[test]
fn three_players_each_look_after_themselves() {
    // Player 0 chooses between what player 1 and player 2 then choose: (0.2, 0.7, -0.9) or (0.4, -0.6, 0.2). The prizes of
    // 0.9 for player 0 are not what the others will let happen.
    let end = |values: [f32; 3]| Place::Ends(values.to_vec());
    let places = vec![
        Place::Moves(0, vec![1, 2]),
        Place::Moves(1, vec![3, 4]),
        Place::Moves(2, vec![5, 6, 7]),
        end([0.9, 0.1, -1.0]),
        end([0.2, 0.7, -0.9]),
        end([0.9, -0.1, -0.8]),
        end([0.4, -0.6, 0.2]),
        end([-0.5, 0.6, -0.1]),
    ];
    let game = TreeGame { players: 3, places };
    for algorithm in BOTH {
        let found = solve(&game, &config(algorithm, 6000), &mut uniform(&game));
        assert_eq!(found.best, 1, "{algorithm:?} {found:?}");
        let share = found.visits[1] as f32 / 6000.0;
        let exact = [0.2, 0.7, -0.9].into_iter().zip([0.4, -0.6, 0.2]);
        for (value, (left, right)) in found.value.iter().zip(exact) {
            let expected = (1.0 - share) * left + share * right;
            assert!(!found.proven && (value - expected).abs() < 0.04, "{algorithm:?} {found:?}");
        }
    }
}

#[test]
fn a_player_may_move_twice_in_a_row() {
    // Player 0 moves, moves again, and only then player 1: after 1, 0 player 0 has 0.5 whatever player 1 does. A sign that
    // flips with depth would take the second move for the opponent's and prefer action 0.
    let places = vec![
        Place::Moves(0, vec![1, 2]),
        Place::Moves(0, vec![3, 4]),
        Place::Moves(0, vec![5, 6]),
        ends(0.25),
        ends(0.125),
        Place::Moves(1, vec![7, 8]),
        ends(-0.75),
        ends(0.5),
        ends(0.75),
    ];
    let game = TreeGame { players: 2, places };
    for algorithm in BOTH {
        let proven = solve(&game, &config(algorithm, 500), &mut uniform(&game));
        assert!(proven.proven && proven.value == [0.5, -0.5] && proven.best == 1, "{algorithm:?} {proven:?}");
        let unproven = SearchConfig { solver: false, ..config(algorithm, 4000) };
        let found = solve(&game, &unproven, &mut uniform(&game));
        assert!(!found.proven && found.best == 1, "{algorithm:?} {found:?}");
        assert!(
            (found.q[1] - 0.5).abs() < 0.02 && (found.q[0] - 0.25).abs() < 0.05,
            "{algorithm:?} {found:?}"
        );
    }
}

/// A network sure of action 0: the priors of all others underflow to 0.
#[derive(Clone)]
struct Overconfident(IoShape);

impl Network for Overconfident {
    fn shape(&self) -> IoShape {
        self.0
    }

    fn forward(&mut self, _: &[f32], logits: &mut [f32], values: &mut [f32]) -> vecaz::Result<()> {
        logits.fill(0.0);
        logits.chunks_exact_mut(self.0.num_actions).for_each(|row| row[0] = 500.0);
        values.fill(0.0);
        Ok(())
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

#[test]
fn edges_of_prior_zero_are_taken_once_all_others_are_lost() {
    // Action 0 looks won, since player 1's only likely answer loses; player 1's other answer wins.
    let places =
        vec![Place::Moves(0, vec![1, 2]), Place::Moves(1, vec![3, 4]), ends(0.25), ends(1.0), ends(-1.0)];
    let game = TreeGame { players: 2, places };
    for algorithm in BOTH {
        let mut network = Overconfident(io_shape(&game.sizes()));
        let found = solve(&game, &config(algorithm, 40), &mut network);
        assert!(found.proven && found.value == [0.25, -0.25] && found.best == 1, "{algorithm:?} {found:?}");
    }
}

/// Grows a random game below a new place and returns the place's number. Real places come first in `places`, so that
/// adding chance later leaves their numbers, and with them a [`HashNet`]'s answers, as they are.
fn grow(rng: &mut Stream, players: usize, depth: usize, places: &mut Vec<Place>) -> usize {
    let here = places.len();
    places.push(Place::Ends(Vec::new()));
    if depth == 0 || (places.len() > 1 && rng.uniform() < 0.2) {
        let value = [-1.0, -0.5, 0.0, 0.5, 1.0][rng.below(5)];
        let others = -value / (players - 1) as f32;
        let winner = rng.below(players);
        places[here] = Place::Ends((0..players).map(|p| if p == winner { value } else { others }).collect());
    } else {
        let mover = rng.below(players) as u8;
        let next = (0..2 + rng.below(3)).map(|_| grow(rng, players, depth - 1, places)).collect();
        places[here] = Place::Moves(mover, next);
    }
    here
}

fn random_game(seed: u64, players: usize, depth: usize) -> TreeGame {
    let mut places = Vec::new();
    grow(&mut Key::new(seed, Purpose::Evaluation).stream(), players, depth, &mut places);
    TreeGame { players, places }
}

/// The same game with a chance node of one outcome before every place below the root.
fn with_certain_chance(game: &TreeGame) -> TreeGame {
    let mut places = game.places.clone();
    for place in &game.places {
        let Place::Moves(..) = place else { continue };
        for_each_next(place, |_, next| places.push(Place::Deals(vec![(1.0, next)])));
    }
    let mut chance = game.places.len();
    for place in &mut places[..game.places.len()] {
        if let Place::Moves(_, next) = place {
            next.iter_mut().for_each(|next| {
                *next = chance;
                chance += 1;
            });
        }
    }
    TreeGame { places, ..game.clone() }
}

fn for_each_next(place: &Place, mut f: impl FnMut(usize, usize)) {
    if let Place::Moves(_, next) = place {
        next.iter().enumerate().for_each(|(i, &n)| f(i, n));
    }
}

/// The exact value for player 0 of a two-player game.
fn minimax(game: &TreeGame, at: usize) -> f32 {
    match &game.places[at] {
        Place::Ends(returns) => returns[0],
        Place::Moves(0, next) => next.iter().map(|&n| minimax(game, n)).fold(-1.0, f32::max),
        Place::Moves(_, next) => next.iter().map(|&n| minimax(game, n)).fold(1.0, f32::min),
        Place::Deals(next) => next.iter().map(|&(p, n)| p * minimax(game, n)).sum(),
    }
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![Just(Algorithm::Puct), Just(Algorithm::Gumbel)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn a_chance_node_of_one_outcome_is_none(seed in 0u64..1000, algorithm in algorithm(), leaves in 1u32..6, players in 2usize..5) {
        let game = random_game(seed, players, 4);
        let config = SearchConfig { solver: false, leaves, ..config(algorithm, 70) };
        let mut network = HashNet(io_shape(&game.sizes()));
        let plain = solve(&game, &config, &mut network);
        let dealt = solve(&with_certain_chance(&game), &config, &mut network);
        prop_assert_eq!(plain, dealt);
    }

    #[test]
    fn edge_visits_add_up(seed in 0u64..1000, algorithm in algorithm(), leaves in 1u32..6, simulations in 1u32..200, players in 2usize..5) {
        let game = random_game(seed, players, 4);
        let config = SearchConfig { solver: false, leaves, ..config(algorithm, simulations) };
        let plan = plan(&config, &game.sizes(), 2);
        let mut backend = CpuBackend::new(game.clone(), plan);
        let mut network = HashNet(io_shape(&game.sizes()));
        let positions = [0, 0].map(|s: u64| Position { state: s.to_ne_bytes().to_vec(), ..Position::default() });
        let out = search(&mut backend, &mut network, &positions, simulations, Exploration::Noisy);
        prop_assert_eq!(out[1].visits.iter().sum::<i32>(), simulations as i32);
        prop_assert_eq!(&out[1].visits, &out[1].new_visits);
        check_tree(&mut backend.snapshot(1, usize::MAX).tree, Grown::Whole);
    }
}

#[test]
fn what_the_solver_proves_is_the_exact_value() {
    for algorithm in BOTH {
        let mut num_proven = 0;
        for seed in 0..150 {
            let game = random_game(seed, 2, 4);
            let Place::Moves(mover, next) = &game.places[0] else { panic!("the root is a decision") };
            let config = SearchConfig { leaves: 1 + seed as u32 % 7, ..config(algorithm, 600) };
            let found = solve(&game, &config, &mut HashNet(io_shape(&game.sizes())));
            if !found.proven {
                continue;
            }
            num_proven += 1;
            let exact = minimax(&game, 0);
            assert_eq!(found.value, [exact, -exact], "{algorithm:?} {seed} {found:?}");
            let is_lost = if *mover == 0 { exact == -1.0 } else { exact == 1.0 };
            assert!(is_lost || minimax(&game, next[found.best]) == exact, "{algorithm:?} {seed} {found:?}");
        }
        assert!(num_proven > 50, "{algorithm:?} {num_proven}");
    }
}

/// What a tree has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grown {
    /// Every node that was made is there.
    Whole,
    /// Only the most visited were kept at some time.
    Trimmed,
}

fn check_tree(tree: &mut Tree, grown: Grown) {
    let count = tree.count(0) as i32;
    let row = tree.row_mut(0);
    assert_eq!(row.nodes[0].parent, NO_NODE);
    for n in 0..count {
        let node = &row.nodes[n as usize];
        let edges = row.edges(n);
        let num_edges = usize::from(node.num_edges);
        if n > 0 {
            assert!(node.parent >= 0 && node.parent < n, "parent {} of {n}", node.parent);
            assert_eq!(
                row.edges(node.parent).child[usize::from(node.parent_edge)],
                n,
                "closed under parents"
            );
        }
        let below: i32 = edges.visits[..num_edges].iter().sum();
        match node.kind() {
            Kind::Decision if !node.is_proven() => assert_eq!(node.visits, 1 + below, "node {n}"),
            Kind::Decision => assert!(node.visits > below, "node {n}"),
            Kind::Chance => assert_eq!(node.visits, below, "node {n}"),
            Kind::Terminal | Kind::Horizon => assert!(node.visits > 0, "node {n}"),
            Kind::New => panic!("node {n} was never evaluated"),
        }
        for edge in 0..num_edges {
            let (child, visits) = (edges.child[edge], edges.visits[edge]);
            if child == NO_NODE {
                assert!(visits == 0 || grown == Grown::Trimmed, "node {n} edge {edge} lost its child");
                continue;
            }
            assert!(child > n && child < count);
            let reached = row.nodes[child as usize].visits;
            assert!(
                reached == visits || (grown == Grown::Trimmed && reached < visits),
                "node {n} edge {edge}"
            );
        }
    }
}

fn play_on<G: Game>(game: G, config: &SearchConfig, spare: usize) {
    let sizes = game.sizes();
    let ply = plan(config, &sizes, 1);
    let grown = if spare >= ply.nodes { Grown::Whole } else { Grown::Trimmed };
    let plan = BackendPlan { rows: 3, nodes: ply.nodes + spare, reuse: Reuse::Keep, ..ply };
    let mut backend = CpuBackend::new(game.clone(), plan);
    let mut network = HashNet(io_shape(&sizes));
    let mut play = Playthrough::new(any_game(G::NAME, &game.options()).expect("registered"));
    let mut inherited = 0;
    let deal = |play: &mut Playthrough, backend: &mut CpuBackend<G>, ply: u64| {
        while play.turn() == Turn::Chance {
            let outcomes = play.legal();
            let outcome = outcomes[Key::new(ply, Purpose::Chance).stream().below(outcomes.len())];
            play.step(outcome).expect("legal");
            backend.advance(2, outcome);
        }
    };
    backend.plant(2, play.state(), &[]);
    deal(&mut play, &mut backend, 99);
    for ply in 0..9 {
        let key = RowKey { ply, ..RowKey::default() };
        backend.begin(2, PlyPlan { simulations: config.simulations, exploration: Exploration::Noisy, key });
        finish(&mut backend, &mut network);
        let mut summary = RootSummary::default();
        backend.summarise(2, &mut summary);
        inherited += summary.visits.iter().sum::<i32>() - summary.new_visits.iter().sum::<i32>();
        if play.turn() == Turn::Over {
            break;
        }
        assert_eq!(backend.root_state(2), play.state());
        // A snapshot of everything changes nothing.
        check_tree(&mut backend.snapshot(2, usize::MAX).tree, grown);
        let action = summary.actions[summary.best];
        play.step(action).expect("legal");
        backend.advance(2, action);
        deal(&mut play, &mut backend, ply);
    }
    assert!(inherited > 0, "nothing was ever kept");
}

#[test]
fn kept_subtrees_stay_trees() {
    for algorithm in BOTH {
        for (leaves, spare) in [(1, 1000), (3, 1000), (1, 11), (4, 7)] {
            let config = SearchConfig { leaves, ..config(algorithm, 60) };
            play_on(ConnectFour::from_options(&toml::Table::new()).expect("defaults"), &config, spare);
            play_on(Backgammon::from_options(&toml::Table::new()).expect("defaults"), &config, spare);
        }
    }
}

#[test]
fn trimmed_trees_prove_nothing_false() {
    for algorithm in BOTH {
        let mut num_proven = 0;
        for seed in 0..120 {
            let game = random_game(seed, 2, 7);
            let config = config(algorithm, 24 + seed as u32 % 17);
            let ply = plan(&config, &game.sizes(), 2);
            let plan = BackendPlan { nodes: ply.nodes + 5, reuse: Reuse::Keep, ..ply };
            let mut backend = CpuBackend::new(game.clone(), plan);
            let mut network = HashNet(io_shape(&game.sizes()));
            let mut state = game.init();
            backend.plant(1, bytemuck::bytes_of(&state), &[]);
            for ply in 0.. {
                let Place::Moves(mover, next) = &game.places[state as usize] else { break };
                let key = RowKey { ply, ..RowKey::default() };
                let exploration = Exploration::Noisy;
                backend.begin(1, PlyPlan { simulations: config.simulations, exploration, key });
                finish(&mut backend, &mut network);
                let mut found = RootSummary::default();
                backend.summarise(1, &mut found);
                let exact = minimax(&game, state as usize);
                if found.proven {
                    num_proven += 1;
                    assert_eq!(found.value, [exact, -exact], "{algorithm:?} {seed} {ply} {found:?}");
                    let is_lost = if *mover == 0 { exact == -1.0 } else { exact == 1.0 };
                    assert!(
                        is_lost || minimax(&game, next[found.best]) == exact,
                        "{algorithm:?} {seed} {ply}"
                    );
                }
                state = next[found.best] as u64;
                backend.advance(1, found.actions[found.best]);
            }
        }
        assert!(num_proven > 100, "{algorithm:?} {num_proven}");
    }
}

fn openings<G: Game>(game: &G, num: u64) -> Vec<Position> {
    let any = any_game(G::NAME, &game.options()).expect("registered");
    (0..num)
        .map(|lane| {
            let mut play = Playthrough::new(any.clone());
            let mut rng = Key::new(lane, Purpose::Evaluation).stream();
            while play.turn() == Turn::Chance || play.actions().len() < 5 {
                let legal = play.legal();
                play.step(legal[rng.below(legal.len())]).expect("legal");
            }
            let key = RowKey { lane, ..RowKey::default() };
            Position { state: play.state().to_vec(), history: Vec::new(), key }
        })
        .collect()
}

fn permute_rows<G: Game>(game: G, config: &SearchConfig, order: &[usize]) {
    let sizes = game.sizes();
    let plan = plan(config, &sizes, order.len());
    let mut network = HashNet(io_shape(&sizes));
    let mut run = |positions: &[Position]| {
        let mut backend = CpuBackend::new(game.clone(), plan);
        search(&mut backend, &mut network, positions, config.simulations, Exploration::Noisy)
    };
    let positions = openings(&game, order.len() as u64);
    let straight = run(&positions);
    let permuted: Vec<Position> = order.iter().map(|&i| positions[i].clone()).collect();
    for (summary, &i) in run(&permuted).iter().zip(order) {
        assert_eq!(summary, &straight[i]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(6) })]

    #[test]
    fn permuted_rows_give_permuted_results(
        order in Just((0..7usize).collect::<Vec<_>>()).prop_shuffle(),
        algorithm in algorithm(),
        leaves in 1u32..5,
    ) {
        let config = SearchConfig { leaves, ..config(algorithm, 50) };
        permute_rows(ConnectFour::from_options(&toml::Table::new()).expect("defaults"), &config, &order);
        permute_rows(Backgammon::from_options(&toml::Table::new()).expect("defaults"), &config, &order);
    }
}

#[test]
fn equal_determinisations_say_what_one_says() {
    let game = Backgammon::from_options(&toml::Table::new()).expect("defaults");
    for algorithm in BOTH {
        let config = config(algorithm, 75);
        let mut backend = CpuBackend::new(game.clone(), plan(&config, &game.sizes(), 4));
        let mut network = HashNet(io_shape(&game.sizes()));
        let one = openings(&game, 1).remove(0);
        let parts = search(&mut backend, &mut network, &vec![one; 4], 75, Exploration::Noisy);
        let mut sum = RootSummary::default();
        sum_determinisations(&parts, &mut sum);
        let one = &parts[0];
        assert_eq!((sum.best, sum.player, &sum.actions), (one.best, one.player, &one.actions));
        assert_eq!(sum.visits, one.visits.iter().map(|v| 4 * v).collect::<Vec<_>>());
        // Four equal numbers added and divided by four are exact.
        assert_eq!((&sum.policy, &sum.value), (&one.policy, &one.value));
    }
}

fn games(text: &str, threads: usize) -> Vec<FinishedGame> {
    let config: Config = Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid");
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let network = HashNet(io_shape(&game.sizes()));
    let mut selfplay = SelfPlay::new(&game, &config, &network, Vec::new(), threads).expect("fits");
    selfplay.set_network(&network, Vec::new());
    (0..3).flat_map(|_| selfplay.stride().expect("finite")).collect()
}

#[test]
fn games_do_not_depend_on_the_number_of_threads() {
    let selfplay = "[selfplay]\ngames = 5\nfast_fraction = 0.4\nfast_simulations = 5\nstride";
    for (game, search) in [
        ("name = \"backgammon\"\nply_limit = 100", "simulations = 9\nchance = \"sample\""),
        ("name = \"go\"\nsize = 5\nmax_plies = 40", "simulations = 11\nleaves = 2"),
        ("name = \"blob\"\nplayers = 3\ncards = 3", "simulations = 7\ndeterminisations = 3"),
        ("name = \"connect_four\"", "simulations = 19\nalgorithm = \"puct\""),
    ] {
        let text = format!("[game]\n{game}\n[search]\n{search}\n{selfplay} = 500");
        let one = games(&text, 1);
        assert!(one.len() >= 5 && one.iter().any(|g| g.game > 0), "{game}: {} games", one.len());
        assert!(one.iter().all(|g| !g.samples.is_empty()));
        for threads in [2, 3] {
            assert_eq!(games(&text, threads), one, "{game} {threads} threads");
        }
    }
}
