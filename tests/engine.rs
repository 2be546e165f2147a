//! The engine: slices, stops, kept trees, clocks, memory and hidden information.

#[path = "engine/failing_network.rs"]
mod failing_network;
#[path = "engine/restricted.rs"]
mod restricted;

use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::config::{Algorithm, Config, NetConfig, Precision, ValueHead};
use vecaz::engine::{Analysis, EndCause, Engine, Limit, Settings};
use vecaz::game::Turn;
use vecaz::model::NetSpec;
use vecaz::net::cpu::CpuNet;
use vecaz::net::{HashNet, IoShape, UniformNet};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::stop::Stop;

/// A game by name, with a network of pseudo-random outputs.
fn setup(name: &str, options: &str) -> (Arc<dyn AnyGame>, HashNet) {
    let game = any_game(name, &options.parse().expect("TOML")).expect("registered");
    let shape = IoShape::of(&game.sizes());
    (game, HashNet(shape))
}

fn settings(game: &dyn AnyGame) -> Settings {
    let mut settings = Settings { threads: 2, ..Settings::new(&Config::default(), &game.sizes()) };
    settings.params.algorithm = Algorithm::Puct;
    settings
}

fn engine(name: &str) -> Engine {
    engine_with(name, |_| ())
}

fn engine_with(name: &str, change: impl FnOnce(&mut Settings)) -> Engine {
    let (game, network) = setup(name, "");
    let mut settings = settings(game.as_ref());
    change(&mut settings);
    Engine::new(game, &network, settings).expect("valid")
}

fn engine_by(name: &str, algorithm: Algorithm) -> Engine {
    engine_with(name, |s| s.params.algorithm = algorithm)
}

/// Action, visits, bits of the policy and line of each move; bits of the values; proven.
type Facts = (Vec<(u16, u64, u32, Vec<u16>)>, Vec<u32>, bool);

/// All that an analysis found about the moves and the value.
fn facts(found: &Analysis) -> Facts {
    let of_move = |m: &vecaz::engine::Move| (m.action, m.visits, m.policy.to_bits(), m.line.clone());
    let value = found.value.iter().map(|value| value.to_bits()).collect();
    (found.moves.iter().map(of_move).collect(), value, found.proven)
}

/// A random action or outcome.
fn any_action(play: &Playthrough, seed: u64) -> u16 {
    let legal = play.legal();
    let mut rng = Key::new(seed, Purpose::Evaluation).with(play.actions().len() as u64).stream();
    legal[rng.below(legal.len())]
}

#[test]
fn a_search_in_slices_equals_one_search() {
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        let make = || engine_by("othello", algorithm);
        let whole = make().analyse(&Limit::simulations(3000)).expect("a position");
        assert_eq!(whole.end, EndCause::Simulations);
        let mut sliced = make();
        let mut simulations = 0;
        loop {
            // Each slice ends by a stop that a report of its progress requests.
            let stop = Stop::default();
            let limit = Limit::simulations(3000).or_stop(&stop);
            let found =
                sliced.analyse_with(&limit, Duration::ZERO, &mut |_| stop.cancel()).expect("a position");
            simulations += found.simulations;
            if found.end == EndCause::Simulations {
                assert_eq!(facts(&found), facts(&whole), "{algorithm:?}");
                assert_eq!(simulations, whole.simulations);
                break;
            }
            assert_eq!(found.end, EndCause::Stopped);
        }
    }
}

/// Each of four rounds has a quarter of the simulations, for 16, 8, 4 and 2 actions; arrays that grow do not begin it anew.
#[test]
fn many_simulations_are_one_sequential_halving() {
    let mut engine = engine_by("hex", Algorithm::Gumbel);
    let found = engine.analyse(&Limit::simulations(10_000)).expect("a position");
    let mut visits: Vec<u64> = found.moves.iter().map(|m| m.visits).collect();
    visits.sort_unstable();
    assert!(visits[visits.len() - 2] >= 2300, "{visits:?}");
}

/// Equal settings give equal results, for several leaves a pass and threads.
#[test]
fn results_repeat() {
    for (leaves, threads) in [(0, 2), (8, 2), (3, 3)] {
        let search = || {
            let mut engine = engine_with("gomoku", |s| (s.leaves, s.threads) = (leaves, threads));
            facts(&engine.analyse(&Limit::simulations(1500)).expect("a position"))
        };
        assert_eq!(search(), search());
    }
}

/// A proof ends a search before its limits, after as many simulations each time.
#[test]
fn searches_with_a_proof_repeat() {
    let search = |limit: &Limit| {
        let mut engine = engine("connect_four");
        // X threatens at both ends of the lowest row.
        for action in [3, 3, 2, 2, 4] {
            engine.play(action).expect("legal");
        }
        let found = engine.analyse(limit).expect("a position");
        assert_eq!((found.end, found.proven, found.own_value()), (EndCause::Proven, true, -1.0));
        (facts(&found), found.simulations)
    };
    let first = search(&Limit::simulations(20_000));
    assert!((0..3).all(|_| search(&Limit::simulations(20_000)) == first));
    search(&Limit { time: Some(Duration::from_secs(1000)), ..Limit::simulations(u64::MAX) });
}

/// The threads of one tree change its speed alone.
#[test]
fn one_tree_does_not_depend_on_threads() {
    let search = |threads| {
        let mut engine = engine_with("connect_four", |s| (s.leaves, s.threads) = (16, threads));
        facts(&engine.analyse(&Limit::simulations(2000)).expect("a position"))
    };
    assert_eq!(search(1), search(3));
}

#[test]
fn a_thousand_random_stops_leave_a_legal_best_move() {
    let mut engine = engine("backgammon");
    let mut rng = Key::new(7, Purpose::Evaluation).stream();
    for i in 0..1000u64 {
        while engine.playthrough().turn() == Turn::Chance {
            let action = any_action(engine.playthrough(), i);
            engine.play(action).expect("legal");
        }
        if engine.playthrough().turn() == Turn::Over {
            let start = Playthrough::new(engine.game().clone());
            engine.set_position(&start).expect("the same game");
            continue;
        }
        let stop = Stop::default();
        let delay = Duration::from_micros(rng.below(600) as u64);
        let found = std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                std::thread::sleep(delay);
                stop.cancel();
            });
            engine.analyse(&Limit::stop(stop)).expect("a position")
        });
        assert!(matches!(found.end, EndCause::Stopped | EndCause::Proven | EndCause::Memory));
        let legal = engine.playthrough().legal();
        assert!(legal.contains(&found.best().action));
        assert_eq!(found.moves.len(), legal.len());
        let total: f32 = found.moves.iter().map(|m| m.policy).sum();
        assert!((total - 1.0).abs() < 1e-3, "{total}");
        let action = if i % 2 == 0 { found.best().action } else { any_action(engine.playthrough(), i) };
        engine.play(action).expect("legal");
    }
}

/// Also the analysis whose time is over before it begins has the network's policy.
#[test]
fn a_deadline_gives_what_was_found() {
    let mut engine = engine("chess");
    let found = engine.analyse(&Limit::time(Duration::ZERO)).expect("a position");
    assert_eq!((found.end, found.moves.len(), found.visits), (EndCause::Time, 20, 0));
    let likeliest = found.moves.iter().map(|m| m.prior).fold(0.0, f32::max);
    assert_eq!(found.best().prior, likeliest);
    assert!(likeliest > 0.0);
    for ms in [1, 5, 20] {
        let start = Instant::now();
        let found = engine.analyse(&Limit::time(Duration::from_millis(ms))).expect("a position");
        let late = start.elapsed().saturating_sub(Duration::from_millis(ms));
        assert_eq!(found.end, EndCause::Time);
        assert!(late < Duration::from_millis(250), "{late:?} after {ms} ms on a busy machine");
    }
    let over = Stop::default().at(Some(Instant::now()));
    for limit in [Limit::stop(&over), Limit::time(Duration::from_secs(600)).or_stop(&over)] {
        let found = engine.analyse(&limit).expect("a position");
        assert_eq!((found.end, found.simulations), (EndCause::Time, 0), "the time limit of the stop");
    }
}

/// Pondering: the tree of the opponent's position serves the reply, and the tree passes through dice.
#[test]
fn the_tree_is_kept_through_the_opponents_move_and_dice() {
    let mut engine = engine("othello");
    let found = engine.analyse(&Limit::simulations(4000)).expect("a position");
    let [own, reply] = found.best().line[..2] else { panic!("a line") };
    engine.play(own).expect("legal");
    engine.play(reply).expect("legal");
    let kept = engine.analyse(&Limit::simulations(1)).expect("a position");
    assert!(kept.visits > 100 && kept.simulations == 0, "{} kept", kept.visits);
    assert_value_is_of_the_moves(&kept);

    let mut engine = engine_of_backgammon();
    let found = engine.analyse(&Limit::simulations(20_000)).expect("a position");
    let line = found.best().line.clone();
    let mut through_dice = false;
    for action in line {
        if engine.playthrough().turn() == Turn::Chance {
            through_dice = true;
        } else if through_dice {
            break;
        }
        engine.play(action).expect("legal");
    }
    assert!(through_dice, "the line has a roll");
    let kept = engine.analyse(&Limit::simulations(1)).expect("a position");
    assert!(kept.visits > 0 && kept.simulations == 0, "{} kept", kept.visits);
    assert_value_is_of_the_moves(&kept);
}

/// The value of a kept tree's root: the mean of its own evaluation and those of the visits below its moves.
fn assert_value_is_of_the_moves(kept: &Analysis) {
    let moves: f32 = kept.moves.iter().map(|m| m.value.unwrap_or(0.0) * m.visits as f32).sum();
    let visits: u64 = kept.moves.iter().map(|m| m.visits).sum();
    let [low, high] = [-1.0, 1.0].map(|own| (moves + own) / (visits + 1) as f32);
    let own = kept.own_value();
    assert!((low - 1e-3..=high + 1e-3).contains(&own), "{own} is not in {low}..={high}");
}

/// Backgammon after the first roll.
fn engine_of_backgammon() -> Engine {
    engine_of_backgammon_with(Algorithm::Puct)
}

fn engine_of_backgammon_with(algorithm: Algorithm) -> Engine {
    let mut engine = engine_with("backgammon", |s| s.params.algorithm = algorithm);
    while engine.playthrough().turn() == Turn::Chance {
        let action = any_action(engine.playthrough(), 3);
        engine.play(action).expect("legal");
    }
    engine
}

/// A position that continues the present one keeps the tree; any other gets a new one, and the same results as a new engine.
#[test]
fn a_position_that_continues_the_present_one_keeps_the_tree() {
    let mut engine = engine("hex");
    let best = engine.analyse(&Limit::simulations(2000)).expect("a position").best().action;
    let mut play = Playthrough::new(engine.game().clone());
    play.step(best).expect("legal");
    engine.set_position(&play).expect("the same game");
    assert!(engine.analyse(&Limit::simulations(1)).expect("a position").visits > 100);
    let start = Playthrough::new(engine.game().clone());
    engine.set_position(&start).expect("the same game");
    let again = engine.analyse(&Limit::simulations(500)).expect("a position");
    let fresh = self::engine("hex").analyse(&Limit::simulations(500)).expect("a position");
    assert_eq!(facts(&again), facts(&fresh));
    let (other, _) = setup("hex", "size = 5");
    engine.set_position(&Playthrough::new(other)).expect_err("another game");
}

#[test]
fn full_memory_ends_the_search_and_the_next_move_recycles_it() {
    let mut engine = engine_with("othello", |s| s.memory_mib = 8);
    let found = engine.analyse(&Limit::time(Duration::from_secs(600))).expect("a position");
    assert_eq!(found.end, EndCause::Memory);
    assert!(found.visits > 1000, "{} visits", found.visits);
    engine.play(found.best().action).expect("legal");
    let next = engine.analyse(&Limit::time(Duration::from_secs(600))).expect("a position");
    assert_eq!(next.end, EndCause::Memory);
    assert!(next.simulations > 100, "{} simulations", next.simulations);
    let (game, network) = setup("othello", "");
    let settings = Settings { memory_mib: 0, ..settings(game.as_ref()) };
    let error = Engine::new(game, &network, settings).err().expect("no memory").to_string();
    assert!(error.contains("memory_mib: got 0, expected at least"), "{error}");
}

/// More threads look at fewer leaves each where the memory is small.
#[test]
fn many_threads_fit_into_little_memory() {
    let mut engine = engine_with("chess", |s| (s.threads, s.memory_mib) = (64, 64));
    assert_eq!(engine.analyse(&Limit::simulations(10)).expect("a position").end, EndCause::Simulations);
}

/// The other players' values, too, are those of the whole search, whose simulations are begun several times.
#[test]
fn values_of_all_players_are_kept_from_one_halving_to_the_next() {
    let sum_of = |name: &str, options: &str, deal: usize| {
        let (game, HashNet(shape)) = setup(name, options);
        let mut settings = Settings { determinisations: 1, ..settings(game.as_ref()) };
        settings.params.algorithm = Algorithm::Gumbel;
        let mut engine = Engine::new(game, &UniformNet(shape), settings).expect("valid");
        for seed in 0..deal {
            engine.play(any_action(engine.playthrough(), seed as u64)).expect("legal");
        }
        engine.analyse(&Limit::simulations(3000)).expect("a position").value
    };
    let ramsey = sum_of("clique", "n = 6\nk = 3\nmode = 'ramsey'", 3);
    assert!((ramsey[0] - ramsey[1]).abs() < 1e-4, "both players have one aim: {ramsey:?}");
    let blob = sum_of("blob", "players = 3\ncards = 3", 12);
    assert!(blob.iter().sum::<f32>().abs() < 1e-5 && blob.iter().any(|v| v.abs() > 1e-3), "{blob:?}");
}

/// A search in trees that grew finds what one finds whose trees had room from the start.
#[test]
fn trees_that_grow_hold_the_same_search() {
    let mut engine = engine_with("clique", |s| s.leaves = 1);
    let found = engine.analyse(&Limit::simulations(30_000)).expect("a position");
    assert!(found.proven || found.nodes > 20_000, "{} nodes", found.nodes);
    let visits: u64 = found.moves.iter().map(|m| m.visits).sum();
    assert_eq!(visits, found.visits);
    assert!(found.proven || found.visits == 30_000);
}

#[test]
fn progress_is_reported() {
    let mut engine = engine("connect_four");
    let mut reports = Vec::new();
    let limit = Limit::simulations(3000);
    let found = engine
        .analyse_with(&limit, Duration::ZERO, &mut |so_far| reports.push((so_far.visits, so_far.end)))
        .expect("a position");
    assert!(reports.len() > 10);
    assert!(reports.is_sorted_by_key(|(visits, _)| *visits));
    assert!(reports.iter().all(|(_, end)| *end == EndCause::Running));
    assert!(found.simulations_per_second() > 0.0 && found.evaluations > 0);
}

/// Two deals that the player to move cannot tell apart give the same result.
#[test]
fn hidden_cards_are_not_read() {
    let (game, network) = setup("blob", "players = 3\ncards = 2\ndealer = 2\nnetwork_sees = 'deal'");
    let analyse = |cards: &str| {
        let settings = Settings { determinisations: 5, ..settings(game.as_ref()) };
        let mut engine = Engine::new(game.clone(), &network, settings).expect("valid");
        for card in cards.split_whitespace() {
            let action = engine.playthrough().find(card).expect("legal");
            engine.play(action).expect("legal");
        }
        let first = facts(&engine.analyse(&Limit::simulations(300)).expect("a position"));
        let action = first.0[0].0;
        engine.play(action).expect("legal");
        first
    };
    let one = analyse("2♠ K♥ Q♥ 3♦ 9♣ 10♥");
    assert_eq!(one, analyse("2♠ A♠ A♥ 3♦ A♣ A♦"));
    assert_ne!(one, analyse("2♣ A♠ A♥ 3♦ A♣ A♦"), "another hand of the player to move");
}

/// Win, draw and loss agree with the value of the search; of a network that knows values alone there are none.
#[test]
fn outcomes_agree_with_the_value() {
    let (game, scalar) = setup("connect_four", "");
    let net = NetConfig { blocks: 1, channels: 8, value_head: ValueHead::Wdl, ..NetConfig::default() };
    let spec = NetSpec::new(&net, &game.sizes());
    let weights = spec.model().expect("a network").random_weights(Key::new(3, Purpose::Weights));
    let network = CpuNet::new(&spec, &weights, Precision::F32).expect("fits");
    let mut engine = Engine::new(game.clone(), &network, settings(game.as_ref())).expect("valid");
    for action in [3, 3, 2, 2, 1] {
        let found = engine.analyse(&Limit::simulations(100)).expect("a position");
        let [win, draw, loss] = found.outcome.expect("win, draw and loss");
        assert!((win - loss - found.own_value()).abs() < 1e-5 && (win + draw + loss - 1.0).abs() < 1e-5);
        assert!(found.proven || draw > 0.1, "untrained, all three are about as likely: {draw}");
        engine.play(action).expect("legal");
    }
    // X threatens both ends of three in a row.
    let lost = engine.analyse(&Limit::simulations(100_000)).expect("a position");
    assert_eq!((lost.end, lost.outcome), (EndCause::Proven, Some([0.0, 0.0, 1.0])));
    let mut engine = Engine::new(game.clone(), &scalar, settings(game.as_ref())).expect("valid");
    assert_eq!(engine.analyse(&Limit::simulations(100)).expect("a position").outcome, None);
}

/// A position that the player to move wins by force, and the actions that do.
#[derive(Deserialize)]
struct ForcedWin {
    game: String,
    options: toml::Table,
    actions: Vec<u16>,
    wins: Vec<u16>,
}

/// Search alone proves forced wins that other programs found, and plays one of them.
#[test]
fn forced_wins_are_proven() {
    let lines = include_str!("fixtures/forced_wins.jsonl").lines();
    let mut proven = std::collections::BTreeMap::<String, usize>::new();
    for line in lines {
        let ForcedWin { game, options, actions, wins } = serde_json::from_str(line).expect("a position");
        let (rules, HashNet(shape)) = setup(&game, &options.to_string());
        let mut engine =
            Engine::new(rules.clone(), &UniformNet(shape), settings(rules.as_ref())).expect("valid");
        actions.iter().for_each(|&action| engine.play(action).expect("legal"));
        let found = engine.analyse(&Limit::simulations(2_000_000)).expect("a position");
        assert_eq!((found.end, found.own_value()), (EndCause::Proven, 1.0), "{line}");
        assert!(wins.contains(&found.best().action), "{} in {line}", found.best().name);
        *proven.entry(game).or_default() += 1;
    }
    let expected = ["chess", "connect_four", "gomoku", "othello"].map(|game| (game.to_string(), 20));
    assert_eq!(proven.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn chance_nodes_and_finished_games_are_refused_in_a_sentence() {
    let error = engine("backgammon").analyse(&Limit::simulations(1)).expect_err("dice").to_string();
    assert!(error.contains("chance node"), "{error}");
    let mut engine = engine("tic_tac_toe");
    for action in [0, 3, 1, 4, 2] {
        engine.play(action).expect("legal");
    }
    let error = engine.analyse(&Limit::simulations(1)).expect_err("over").to_string();
    assert!(error.contains("the game is over"), "{error}");
}
