//! Two games of hidden information whose optimum is known: Kuhn poker and Leduc poker, by the rules of OpenSpiel. Their exact exploitability
//! shows how far a strategy is from the optimum, and so what self-play with determinised search learns in such games.

mod deck;
mod figures;
mod kuhn;
mod leduc;
mod networks;
#[path = "../support/playthrough.rs"]
mod playthrough;
mod tree;

use figures::ReferenceFigures;
use kuhn::Kuhn;
use leduc::Leduc;
use networks::{head_strategy, registry, search_strategies, train};
use std::collections::HashMap;
use std::path::Path;
use tree::{GameTree, Strategy};
use vecaz::batch::Playthrough;
use vecaz::config::{Config, Layers};
use vecaz::engine::Settings;
use vecaz::eval::luck::LuckEstimate;
use vecaz::game::{Game, History, Turn};
use vecaz::net::{HashNet, IoShape};
use vecaz::registry::erase;
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::source::{RunNetworks, Source};

/// Games that OpenSpiel has played, one line each, with the ones in the tensor of each information state.
const OPEN_SPIEL: &str = include_str!("open_spiel.jsonl");

/// Chips by which exact figures may differ: rounding in 64 bits.
const TOLERANCE: f64 = 1e-9;

#[test]
fn the_laws_hold() {
    vecaz::contract::check::<Kuhn>().unwrap();
    vecaz::contract::check::<Leduc>().unwrap();
}

#[test]
fn games_of_open_spiel_replay_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/poker");
    assert_eq!(playthrough::replay_folder(&registry().unwrap(), &folder), 160);
}

/// Observations are OpenSpiel's information states, which have all that a player may remember.
#[test]
fn observations_are_those_of_open_spiel() {
    let registry = registry().unwrap();
    for line in OPEN_SPIEL.lines() {
        let played: serde_json::Value = serde_json::from_str(line).unwrap();
        let game = registry.game(played["game"].as_str().unwrap(), &toml::Table::new()).unwrap();
        let mut play = Playthrough::new(game.clone());
        for (ply, action) in
            played["plies"].as_array().unwrap().iter().zip(played["actions"].as_array().unwrap())
        {
            if let Turn::Player(_) = play.turn() {
                let mut observation = vec![0.0; game.sizes().obs.len()];
                game.observe_batch(play.state(), &mut observation);
                let ones: Vec<usize> = (0..observation.len()).filter(|&i| observation[i] == 1.0).collect();
                assert_eq!(serde_json::json!(ones), ply["ones"], "{line}");
            }
            play.step(action.as_u64().unwrap() as u16).unwrap();
        }
    }
}

#[test]
fn figures_are_those_of_open_spiel() {
    compare_figures(&GameTree::new(&Kuhn {}), 12, &figures::KUHN);
    compare_figures(&GameTree::new(&Leduc {}), 936, &figures::LEDUC);
}

fn compare_figures(tree: &GameTree, info_states: usize, references: &[ReferenceFigures]) {
    assert_eq!(tree.info_states().len(), info_states);
    for ReferenceFigures { title, strategy, value, nash_conv } in references {
        let found = tree.figures(&tree.strategy(strategy));
        assert!((found.value - value).abs() < TOLERANCE, "{title}: {found:?}, expected the value {value}");
        let error = (found.nash_conv() - nash_conv).abs();
        assert!(error < TOLERANCE, "{title}: {found:?}, expected NashConv {nash_conv}");
    }
}

/// No strategy of a player wins more than the best response.
#[test]
fn no_strategy_wins_more_than_the_best_response() {
    for tree in [GameTree::new(&Kuhn {}), GameTree::new(&Leduc {})] {
        let mut rng = Key::new(1, Purpose::Evaluation).stream();
        for _ in 0..20 {
            let [first, second] = [(); 2].map(|()| random_strategy(&tree, &mut rng));
            let value = tree.value(&of_players(&tree, [&first, &second]));
            let best = [tree.best_response(&second, 0), tree.best_response(&first, 1)];
            assert!(value <= best[0] + TOLERANCE && -value <= best[1] + TOLERANCE, "{value}, {best:?}");
        }
    }
}

fn random_strategy(tree: &GameTree, rng: &mut RngStream) -> Strategy {
    tree.strategy(|info| {
        let mut probs = vec![0.0; info.legal.len()];
        rng.dirichlet(0.5, &mut probs);
        tree::normalised(&probs)
    })
}

/// The strategy of which player 0's part is that of the first, and player 1's part that of the second.
fn of_players(tree: &GameTree, strategies: [&Strategy; 2]) -> Strategy {
    let parts = tree.info_states().iter().enumerate();
    parts.map(|(number, info)| strategies[usize::from(info.player)][number].clone()).collect()
}

/// A deal that a player cannot tell from the real one is drawn as often as any other.
#[test]
fn deals_are_drawn_evenly() {
    draws_are_even(&Kuhn {}, &[2, 0, 0], 2);
    draws_are_even(&Leduc {}, &[5, 0, 2], 5);
    draws_are_even(&Leduc {}, &[5, 0, 1, 1, 3], 4);
}

fn draws_are_even<G: Game>(game: &G, actions: &[u16], deals: usize) {
    const DRAWS: usize = 20_000;
    let mut state = game.init();
    actions.iter().for_each(|&action| game.step(&mut state, action, History::default()));
    let Turn::Player(player) = game.turn(&state) else { panic!("a decision") };
    let mut rng = Key::new(1, Purpose::Determinise).stream();
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    for _ in 0..DRAWS {
        let drawn = game.determinise(&state, player, &mut rng);
        *counts.entry(bytemuck::bytes_of(&drawn).to_vec()).or_default() += 1;
    }
    let expected = DRAWS as f64 / deals as f64;
    // Five standard deviations.
    let is_even = |&count: &usize| (count as f64 - expected).abs() < 5.0 * expected.sqrt();
    assert!(counts.len() == deals && counts.values().all(is_even), "{} {actions:?}: {counts:?}", G::NAME);
}

const TRAINING: &str = "
[game]
name = 'kuhn_poker'
[net]
arch = 'mlp'
blocks = 1
channels = 32
[search]
simulations = 32
determinisations = 8
[selfplay]
games = 64
samples_per_epoch = 2000
[train]
batch = 64
min_samples = 2000
replay_ratio = 8.0
lr = 5e-3
lr_updates = 1500
[run]
epochs = 6
seed = 5
[eval]
every = 0
";

/// What determinised search learns is far better than uniform play. It is no equilibrium: the search plans as if the cards were known, so that
/// a bluff never seems to pay. Its limit without a network has an exploitability of 3/32 (`known cards` in `tests/oracles/poker.py`).
#[test]
fn kuhn_poker_is_learned_from_zero() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let config = Layers::default().text(TRAINING, "test").and_then(Layers::resolve).unwrap();
    train(config.clone(), &dir, 2).unwrap();
    let networks = RunNetworks::of(&dir).unwrap();
    let last = *networks.epochs().last().unwrap();
    let source = Source::from_file(networks.open(last).unwrap(), &registry().unwrap()).unwrap();
    let (tree, game) = (GameTree::new(&Kuhn {}), erase(Kuhn {}));
    let mut network = source.network().unwrap();
    let head = head_strategy(&tree, &game, network.as_mut()).unwrap();
    let search = search_strategies(&tree, &game, network.as_ref(), &config, 16).unwrap();
    let exploitability = |strategy: &Strategy| tree.figures(strategy).exploitability();
    let [head, drawn, best, uniform] =
        [&head, &search.drawn, &search.best, &tree.strategy(figures::uniform)].map(exploitability);
    println!(
        "exploitability of Kuhn poker after {last} epochs, chips a game: policy head {head:.4}, search {drawn:.4}, its best actions \
         {best:.4}; uniform play {uniform:.4}"
    );
    assert!(head < 0.5 * uniform, "policy head {head}, uniform play {uniform}");
    assert!(drawn < 0.5 * uniform, "search {drawn}, uniform play {uniform}");
}

/// A network's value of hidden hands depends on who looks, so luck has no estimate by it.
#[test]
fn hidden_hands_have_no_estimate_of_luck() {
    let game = erase(Kuhn {});
    let sizes = game.sizes();
    assert!(sizes.is_zero_sum_pair() && sizes.num_chance > 0);
    let shape = IoShape::of(&sizes);
    let settings = Settings::new(&Config::default(), &sizes);
    assert!(LuckEstimate::new(game.as_ref(), &HashNet(shape), settings).unwrap().is_none());
}
