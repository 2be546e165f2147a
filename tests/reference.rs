//! The batched engine against the plain one: whole searches must agree to the last visit and the last bit, on every game,
//! with every instruction set the machine has.

mod support;
#[path = "support/typed_games.rs"]
mod typed_games;
#[path = "support/oracle/mod.rs"]
mod oracle;
#[path = "support/selection.rs"]
mod selection;

use oracle::ReferenceBackend;
use selection::{GUMBEL, SELECTIONS, Selection};
use support::{plan, search};
use typed_games::{GameVisitor, dispatch};
use vecaz::backend::plan::BackendPlan;
use vecaz::backend::{AnyGame, Backend, RootCache};
use vecaz::batch::Playthrough;
use vecaz::config::{Algorithm, Config, Layers, SearchConfig};
use vecaz::game::{Game, Turn};
use vecaz::isa::Isa;
use vecaz::net::{HashNet, IoShape};
use vecaz::play::FinishedGame;
use vecaz::registry::{Registry, any_game};
use vecaz::rng::{Key, Purpose};
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::searcher::SearchRequest;
use vecaz::selfplay::SelfPlay;

/// Games with their settings and the plies at which they are searched.
const GAMES: [(&str, &str, &[usize]); 14] = [
    ("tic_tac_toe", "", &[0, 3, 5]),
    ("connect_four", "", &[0, 9, 22]),
    ("othello", "size = 6", &[0, 11, 25]),
    ("hex", "size = 5", &[0, 1, 12]),
    ("gomoku", "size = 7", &[0, 9, 30]),
    ("gomoku", "size = 7\nrule = \"exact\"\nopening = \"swap2\"", &[0, 4, 21]),
    ("go", "size = 5\nmax_plies = 60", &[2, 31, 44]),
    ("chess", "", &[1, 24, 90]),
    ("clique", "n = 5\nk = 3\nmode = \"avoid_clique\"", &[0, 2, 5]),
    ("backgammon", "", &[2, 9, 40]),
    ("blob", "players = 3\ncards = 4", &[14, 19, 24]),
    ("blob", "players = 3\ncards = 2\nfull = true", &[9, 13, 21, 25]),
    ("blob", "players = 5\ncards = 3\nseated = 0\nnetwork_sees = \"deal\"", &[12, 17, 21]),
    ("clique", "n = 5\nk = 3\nmode = \"ramsey\"", &[1, 2, 5]),
];

/// A position of `game` after about `plies` random plies, as the player to move knows it.
fn position(game: &std::sync::Arc<dyn AnyGame>, plies: usize, slot: u64) -> SearchRequest {
    for attempt in 0u64.. {
        let mut play = Playthrough::new(game.clone());
        let mut rng = Key::new(17, Purpose::Evaluation).with(slot).with(attempt).stream();
        while play.turn() != Turn::Over && (play.actions().len() < plies || play.turn() == Turn::Chance) {
            let legal = play.legal();
            play.step(legal[rng.below(legal.len())]).expect("legal");
        }
        if let Turn::Player(player) = play.turn() {
            let key = RowKey { seed: 5, slot, game: 2, determinisation: 1, ply: plies as u64 };
            let state = game.determinise(play.state(), player, &mut rng);
            return SearchRequest { state, history: play.history().to_vec(), key };
        }
    }
    unreachable!("some playthrough gets that far")
}

/// The plain search of `game` in every row of `plan`.
fn reference_backend(game: &dyn AnyGame, plan: BackendPlan) -> Box<dyn Backend> {
    struct MakeReference(BackendPlan);
    impl GameVisitor for MakeReference {
        type Out = Box<dyn Backend>;
        fn visit<G: Game>(self, game: G) -> Self::Out {
            Box::new(ReferenceBackend::new(game, self.0))
        }
    }
    dispatch(game.name(), &game.options(), MakeReference(plan)).expect("a built-in game")
}

#[derive(Clone, Copy, Debug)]
enum Engine {
    Batched(Isa),
    Reference,
}

fn run(
    name: &str,
    settings: &str,
    plies: &[usize],
    config: &SearchConfig,
    exploration: Exploration,
    engine: Engine,
) -> Vec<RootSummary> {
    let options: toml::Table = settings.parse().expect("TOML");
    let game = any_game(name, &options).expect("registered");
    let sizes = game.sizes();
    let positions: Vec<SearchRequest> =
        plies.iter().zip(1..).map(|(&plies, slot)| position(&game, plies, slot)).collect();
    let plan = plan(config, &sizes, positions.len());
    let mut backend = match engine {
        Engine::Batched(isa) => game.cpu_backend(plan, isa).expect("available"),
        Engine::Reference => reference_backend(game.as_ref(), plan),
    };
    let mut network = HashNet(IoShape::of(&sizes));
    search(backend.as_mut(), &mut network, &positions, config.simulations, exploration)
}

/// All that a caller can see, to the bit.
fn facts(summary: &RootSummary) -> impl PartialEq + std::fmt::Debug {
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let s = summary;
    let reals = [bits(&s.prior), bits(&s.q), bits(&s.policy), bits(&s.value)];
    (s.actions.clone(), s.visits.clone(), s.new_visits.clone(), reals, s.best, s.player, s.proven)
}

fn compare(name: &str, settings: &str, plies: &[usize], config: &SearchConfig, exploration: Exploration) {
    let of = |engine| run(name, settings, plies, config, exploration, engine);
    let expected = of(Engine::Reference);
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| isa.is_available()) {
        for (row, (found, right)) in of(Engine::Batched(isa)).iter().zip(&expected).enumerate() {
            assert_eq!(facts(found), facts(right), "{name} row {row} {isa:?} {exploration:?} {config:?}");
        }
    }
    for summary in &expected {
        let visits: i32 = summary.visits.iter().sum();
        // In a full tree a simulation may end at the root.
        let all = summary.proven || config.nodes > 0 || visits == config.simulations as i32;
        assert!(all, "{name} {config:?} {summary:?}");
    }
}

fn config((algorithm, puct_visits): Selection, simulations: u32, leaves: u32) -> SearchConfig {
    SearchConfig { algorithm, puct_visits, simulations, leaves, ..SearchConfig::default() }
}

#[test]
fn batched_and_reference_agree_on_every_game() {
    let missing =
        Registry::built_in().names().into_iter().find(|name| !GAMES.iter().any(|(game, ..)| game == name));
    assert_eq!(missing, None, "a game is not compared");
    for (name, settings, plies) in GAMES {
        for (i, &simulations) in [2, 23, 150].iter().enumerate() {
            for selection in SELECTIONS {
                for leaves in [1, 4] {
                    let explorations = [Exploration::Noisy, Exploration::Plain];
                    let solver = i != 1;
                    let config = SearchConfig { solver, ..config(selection, simulations, leaves) };
                    compare(name, settings, plies, &config, explorations[i % 2]);
                }
            }
        }
    }
}

#[test]
fn they_agree_where_searches_are_deep_and_full_of_proofs() {
    for selection in SELECTIONS {
        for leaves in [1, 3, 17] {
            for solver in [true, false] {
                let config = SearchConfig { solver, ..config(selection, 1400, leaves) };
                compare("tic_tac_toe", "", &[0, 2, 3, 4], &config, Exploration::Noisy);
                compare("connect_four", "", &[20, 27, 30], &config, Exploration::Plain);
            }
        }
    }
}

#[test]
fn they_agree_with_every_constant() {
    for fpu_reduction in [0.0, 0.2, 2.0] {
        let base = SearchConfig {
            fpu_reduction,
            c_init: 2.5,
            c_base: 40.0,
            dirichlet_alpha: 0.3,
            ..SearchConfig::default()
        };
        let puct = SearchConfig { algorithm: Algorithm::Puct, simulations: 90, ..base };
        compare("backgammon", "", &[2, 33], &puct, Exploration::Noisy);
        compare("othello", "size = 6", &[14, 3], &puct, Exploration::Noisy);
    }
    for (max_num_considered_actions, c_visit, c_scale) in
        [(2, 50.0, 1.0), (3, 0.0, 0.1), (7, 10.0, 0.0), (1000, 5.0, 0.3)]
    {
        let base = config(GUMBEL, 90, 2);
        let gumbel = SearchConfig { max_num_considered_actions, c_visit, c_scale, ..base };
        compare("backgammon", "", &[2, 33], &gumbel, Exploration::Noisy);
        compare("connect_four", "", &[8, 25], &gumbel, Exploration::Noisy);
    }
}

#[test]
fn they_agree_where_the_tree_is_full() {
    for selection in SELECTIONS {
        for leaves in [1, 5] {
            let config = SearchConfig { nodes: 19, ..config(selection, 120, leaves) };
            compare("connect_four", "", &[4, 21], &config, Exploration::Noisy);
            compare("backgammon", "", &[2, 12], &config, Exploration::Noisy);
        }
    }
}

type MakeBackend = fn(&dyn AnyGame, BackendPlan) -> Box<dyn Backend>;

fn selfplay(make: MakeBackend) -> Vec<FinishedGame> {
    let text = "[game]\nname = \"connect_four\"\n[search]\nsimulations = 24\nreuse = false\n[selfplay]\ngames = 5\npasses_per_poll = 300";
    let config: Config = Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid");
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let network = HashNet(IoShape::of(&game.sizes()));
    let make = |plan| Ok(make(game.as_ref(), plan));
    let mut selfplay = SelfPlay::with_backends(&game, &config, &network, Vec::new(), 2, &make).expect("fits");
    selfplay.set_network(&network, RootCache::default()).expect("a network");
    let mut games = Vec::new();
    for _ in 0..4 {
        games.extend(selfplay.poll().expect("finite"));
    }
    games
}

#[test]
fn self_play_by_both_is_the_same() {
    let games = selfplay(|game, plan| game.cpu_backend(plan, Isa::detect()).expect("detected"));
    assert!(games.len() > 5, "{}", games.len());
    assert_eq!(games, selfplay(reference_backend));
}
