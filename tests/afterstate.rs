//! Decisions on whole turns, against a plain 1-ply search: enumerate every way to play the turn, evaluate where it ends, take the best.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vecaz::backend::{AnyGame, Placement, RootCache};
use vecaz::batch::Playthrough;
use vecaz::config::{Algorithm, Config, Layers, SearchConfig};
use vecaz::engine::{EndCause, Engine, Limit, Settings};
use vecaz::game::Turn;
use vecaz::net::{HashNet, IoShape, Network};
use vecaz::play::FinishedGame;
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::searcher::{SearchRequest, Searchers};
use vecaz::selfplay::SelfPlay;

fn game(name: &str, options: &str) -> Arc<dyn AnyGame> {
    any_game(name, &options.parse().expect("TOML")).expect("registered")
}

fn network(game: &dyn AnyGame) -> HashNet {
    HashNet(IoShape::of(&game.sizes()))
}

/// A network that tells positions little apart, as a trained one does: several turns are nearly equal.
#[derive(Clone)]
struct Close(HashNet);

impl Network for Close {
    fn shape(&self) -> IoShape {
        self.0.shape()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> vecaz::Result<()> {
        self.0.forward(obs, logits, values)?;
        values.iter_mut().for_each(|value| *value *= 0.1);
        Ok(())
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

/// Positions of random games in which a player is to move, whole turns and parts of them.
fn positions(game: &Arc<dyn AnyGame>, count: u64) -> Vec<Playthrough> {
    let position = |number: u64| {
        let mut rng = Key::new(number, Purpose::Evaluation).stream();
        // Fewer than any game has.
        let plies = rng.below(if game.name() == "backgammon" { 60 } else { 7 });
        let mut play = Playthrough::new(game.clone());
        while play.turn() == Turn::Chance || play.actions().len() < plies {
            if play.turn() == Turn::Over {
                play = Playthrough::new(game.clone());
                continue;
            }
            let legal = play.legal();
            play.step(legal[rng.below(legal.len())]).expect("legal");
        }
        play
    };
    (0..count).map(position).filter(|play| play.turn() != Turn::Over).collect()
}

/// The value for `player` of the best end of the turn from `play` on.
fn best_end(play: &Playthrough, player: u8, network: &mut dyn Network) -> f32 {
    best_end_but(play, player, network, &mut HashMap::new())
}

/// [`best_end`], with those of the positions in `known`, which are of the same turn.
fn best_end_but(
    play: &Playthrough,
    player: u8,
    network: &mut dyn Network,
    known: &mut HashMap<Vec<u8>, f32>,
) -> f32 {
    let game = play.game();
    if let Some(value) = known.get(play.state()) {
        return *value;
    }
    let value = match play.turn() {
        Turn::Player(p) if p == player => {
            let ends = play.legal().into_iter().map(|action| {
                let mut after = play.clone();
                after.step(action).expect("legal");
                best_end_but(&after, player, network, known)
            });
            ends.fold(f32::NEG_INFINITY, f32::max)
        }
        Turn::Over => game.returns(play.state())[usize::from(player)],
        _ => {
            let sizes = game.sizes();
            let mut obs = vec![0.0; sizes.obs.len()];
            game.observe_batch_by(play.state(), &[player], &mut obs);
            let (mut logits, mut values) = (vec![0.0; sizes.num_actions], vec![0.0; sizes.num_players]);
            network.forward(&obs, &mut logits, &mut values).expect("finite");
            values[0]
        }
    };
    known.insert(play.state().to_vec(), value);
    value
}

fn search(game: &Arc<dyn AnyGame>, plays: &[Playthrough], rows: usize, threads: usize) -> Vec<RootSummary> {
    search_with(&network(game.as_ref()), 1, game, plays, rows, threads)
}

fn search_with(
    network: &dyn Network,
    turns: u32,
    game: &Arc<dyn AnyGame>,
    plays: &[Playthrough],
    rows: usize,
    threads: usize,
) -> Vec<RootSummary> {
    let config = SearchConfig { algorithm: Algorithm::Afterstate, ..SearchConfig::default() };
    let params = SearchParams { turns, ..SearchParams::new(&config, &game.sizes()) };
    let searchers = Searchers::new(game.as_ref(), network, params, Placement::default(), rows, threads);
    let requests: Vec<SearchRequest> = plays
        .iter()
        .map(|play| SearchRequest {
            state: play.state().to_vec(),
            history: play.history().to_vec(),
            key: RowKey::default(),
        })
        .collect();
    searchers.expect("fits").search(&requests, 1, Exploration::Plain).expect("finite")
}

#[test]
fn the_turn_to_the_best_afterstate_is_played() {
    for (name, options) in [
        ("backgammon", ""),
        ("backgammon", "simple_doubles = true\nshort_game = true"),
        ("connect_four", ""),
        ("othello", "size = 6"),
        ("chess", ""),
    ] {
        let game = game(name, options);
        let mut network = network(game.as_ref());
        let plays = positions(&game, 40);
        assert!(plays.len() > 20, "{name}");
        for (play, found) in plays.iter().zip(search(&game, &plays, 7, 1)) {
            let Turn::Player(player) = play.turn() else { panic!("a decision") };
            assert_eq!((found.player, &found.actions), (player, &play.legal()));
            let of_action = |&action: &u16| {
                let mut after = play.clone();
                after.step(action).expect("legal");
                best_end(&after, player, &mut network)
            };
            let expected: Vec<f32> = play.legal().iter().map(of_action).collect();
            assert_eq!(found.q, expected, "{name} {:?}", play.actions());
            let best = expected.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!((found.q[found.best], found.value[usize::from(player)]), (best, best));
            assert_eq!((found.policy[found.best], found.policy.iter().sum::<f32>()), (1.0, 1.0));
        }
    }
}

/// The ends of `player`'s turn from `play` on, each position once: the position, the value by itself, and the first action.
fn ends(play: &Playthrough, player: u8, network: &mut dyn Network) -> Vec<(Playthrough, f32, u16)> {
    let (mut found, mut seen, mut open) = (Vec::new(), HashSet::new(), vec![play.clone()]);
    while let Some(at) = open.pop() {
        if !seen.insert(at.state().to_vec()) {
            continue;
        }
        if at.turn() != Turn::Player(player) {
            let first = at.actions()[play.actions().len()];
            let value = best_end(&at, player, network);
            found.push((at, value, first));
            continue;
        }
        for action in at.legal().into_iter().rev() {
            let mut after = at.clone();
            after.step(action).expect("legal");
            open.push(after);
        }
    }
    found
}

/// The value for `player` of `play`, which ends a turn of that player: the mean over chance of what the best reply leaves.
fn after_best_reply(play: &Playthrough, player: u8, network: &mut dyn Network) -> f32 {
    match play.turn() {
        Turn::Over => play.game().returns(play.state())[usize::from(player)],
        // Two players, so that the best for one leaves the opposite to the other.
        Turn::Player(other) if other == player => best_end(play, player, network),
        Turn::Player(other) => -best_end(play, other, network),
        Turn::Chance => {
            let outcomes = play.legal();
            let probabilities = play.game().chance_probs(play.state(), &outcomes);
            let of_outcome = |(&outcome, probability): (&u16, f32)| {
                let mut after = play.clone();
                after.step(outcome).expect("possible");
                probability * after_best_reply(&after, player, network)
            };
            outcomes.iter().zip(probabilities).map(of_outcome).sum()
        }
    }
}

/// The best of the turns that are nearly the best by themselves is played, by the mean over dice of the best reply.
#[test]
fn a_look_of_two_turns_sees_the_best_replies() {
    let (mut answered, mut changed) = (0, 0);
    for (name, options) in [
        ("backgammon", ""),
        ("backgammon", "short_game = true"),
        ("connect_four", ""),
        ("othello", "size = 6"),
    ] {
        let game = game(name, options);
        let mut network = Close(network(game.as_ref()));
        let plays = positions(&game, 30);
        let alone = search_with(&network, 1, &game, &plays, 7, 1);
        let found = search_with(&network, 2, &game, &plays, 7, 1);
        for ((play, alone), found) in plays.iter().zip(alone).zip(found) {
            let Turn::Player(player) = play.turn() else { panic!("a decision") };
            let mut ends = ends(play, player, &mut network);
            ends.sort_by(|a, b| b.1.total_cmp(&a.1));
            let best = ends[0].1;
            ends.retain(|end| end.1 >= best - 0.06);
            ends.truncate(8);
            let value = found.value[usize::from(player)];
            if ends.len() == 1 {
                assert_eq!((found.best, value), (alone.best, best));
                continue;
            }
            let replies: Vec<(u16, f32)> = ends
                .iter()
                .map(|(end, _, first)| (*first, after_best_reply(end, player, &mut network)))
                .collect();
            let expected = replies.iter().map(|reply| reply.1).fold(f32::NEG_INFINITY, f32::max);
            assert!((value - expected).abs() < 1e-5, "{name}: {value}, expected {expected}");
            assert!((found.q[found.best] - value).abs() < 1e-6);
            answered += 1;
            changed += usize::from(found.best != alone.best);
        }
    }
    assert!(answered > 40 && changed > 10, "{answered} decisions by replies, {changed} of them others");
}

#[test]
fn a_look_of_two_turns_does_not_depend_on_rows_and_threads() {
    let game = game("backgammon", "");
    let (plays, network) = (positions(&game, 40), Close(network(game.as_ref())));
    let one = search_with(&network, 2, &game, &plays, 1, 1);
    for (rows, threads) in [(3, 1), (64, 2)] {
        let found = search_with(&network, 2, &game, &plays, rows, threads);
        assert!(one == found, "{rows} rows, {threads} threads");
    }
}

#[test]
fn results_do_not_depend_on_rows_and_threads() {
    let game = game("backgammon", "");
    let plays = positions(&game, 90);
    let one = search(&game, &plays, 1, 1);
    for (rows, threads) in [(3, 1), (64, 2), (200, 3)] {
        assert!(one == search(&game, &plays, rows, threads), "{rows} rows, {threads} threads");
    }
}

fn config(assignments: &[&str]) -> Config {
    let base = [
        "game.name=backgammon",
        "search.algorithm=afterstate",
        "selfplay.games=37",
        "selfplay.opening_plies=3",
        "train.td_lambda=0.7",
    ];
    let layers = base.iter().chain(assignments).try_fold(Layers::default(), |layers, one| layers.set(one));
    layers.and_then(Layers::resolve).expect("valid")
}

/// Games of `polls` polls, and the games in progress.
fn played(config: &Config, threads: usize, polls: usize) -> Vec<FinishedGame> {
    let game = game(config.game_name(), "");
    let network = network(game.as_ref());
    let mut selfplay = SelfPlay::new(&game, config, &network, Vec::new(), threads).expect("fits");
    selfplay.begin_plies(RootCache::default()).expect("begun");
    let mut finished: Vec<FinishedGame> = (0..polls).flat_map(|_| selfplay.poll().expect("played")).collect();
    finished.sort_by_key(|game| (game.slot, game.game));
    finished
}

#[test]
fn self_play_does_not_depend_on_threads() {
    let config = config(&[]);
    let one = played(&config, 1, 12);
    assert!(one.len() > 40, "{} games", one.len());
    assert!([2, 3].iter().all(|&threads| played(&config, threads, 12) == one));
    // Dice that are played anew from the middle of a turn give the same games, as their best ends are the same.
    let anew = self::config(&["search.reuse=false"]);
    assert_eq!(played(&anew, 1, 12), one);
}

/// A sample for each turn: the position after it, without a policy, and the lambda returns of the values.
#[test]
fn samples_are_afterstates_with_lambda_returns() {
    let (config, mut turns) = (config(&[]), 0);
    let game = game("backgammon", "");
    let mut network = network(game.as_ref());
    for finished in &played(&config, 1, 12)[..20] {
        let mut play = Playthrough::new(game.clone());
        let mut expected = Vec::new();
        for (ply, &action) in finished.actions.iter().enumerate() {
            let turn = play.turn();
            play.step(action).expect("legal");
            if let (Turn::Player(player), true) = (turn, ply >= finished.opening as usize)
                && ![turn, Turn::Over].contains(&play.turn())
            {
                expected.push((player, play.state().to_vec(), best_end(&play, player, &mut network)));
            }
        }
        let mut target = finished.returns[0];
        for (sample, (player, state, own)) in finished.samples.iter().zip(expected.iter()).rev() {
            assert_eq!((sample.player, &sample.state), (*player, state));
            assert!(sample.actions.is_empty() && sample.policy.is_empty());
            assert!((sample.values[0] - target).abs() < 1e-5 && sample.values[1] == -sample.values[0]);
            let own = if *player == 0 { *own } else { -own };
            target = 0.7 * target + 0.3 * own;
            turns += 1;
        }
        assert_eq!(finished.samples.len(), expected.len());
    }
    assert!(turns > 400, "{turns} turns");
}

/// An engine decides a whole turn whatever the limit in simulations, and says so where the rules need earlier positions.
#[test]
fn an_engine_looks_two_turns_ahead() {
    let backgammon = game("backgammon", "");
    let config = config(&["eval.turns=2"]);
    let settings = Settings { threads: 1, ..Settings::new(&config, &backgammon.sizes()) };
    let (mut close, mut answered) = (Close(network(backgammon.as_ref())), 0);
    let mut engine = Engine::new(backgammon.clone(), &close, settings).expect("fits");
    for play in positions(&backgammon, 12) {
        engine.set_position(&play).expect("of this game");
        let found = engine.analyse(&Limit::simulations(1)).expect("analysed");
        assert_eq!(found.end, EndCause::Simulations);
        let expected = &search_with(&close, 2, &backgammon, std::slice::from_ref(&play), 1, 1)[0];
        assert_eq!(found.best().action, expected.actions[expected.best]);
        let value = found.own_value();
        assert_eq!(value, expected.value[usize::from(expected.player)]);
        // The rest of the turn is not decided anew, and leaves what was found.
        for &action in &found.best().line {
            let next = engine.analyse(&Limit::default()).expect("analysed");
            assert_eq!((next.best().action, next.own_value()), (action, value));
            assert_eq!(next.best().value, Some(value));
            engine.play(action).expect("legal");
        }
        let end = engine.playthrough().clone();
        assert_ne!(end.turn(), Turn::Player(found.player));
        if value != best_end(&end, found.player, &mut close) {
            let left = after_best_reply(&end, found.player, &mut close);
            assert!((value - left).abs() < 1e-5, "{value}, left {left}");
            answered += 1;
        }
    }
    assert!(answered > 3, "{answered} turns by replies");
    let chess = game("chess", "");
    let error = Engine::new(chess.clone(), &network(chess.as_ref()), settings).err().expect("refused");
    assert!(error.to_string().contains("eval.turns = 1"), "{error}");
}

#[test]
fn an_engine_ends_with_the_turn() {
    let game = game("backgammon", "");
    let settings = Settings { threads: 1, ..Settings::new(&config(&[]), &game.sizes()) };
    let network = network(game.as_ref());
    let mut engine = Engine::new(game.clone(), &network, settings).expect("fits");
    for play in positions(&game, 12) {
        engine.set_position(&play).expect("of this game");
        let found = engine.analyse(&Limit::simulations(1_000_000)).expect("analysed");
        assert_eq!(found.end, EndCause::Simulations);
        let expected = &search(&game, std::slice::from_ref(&play), 1, 1)[0];
        assert_eq!(found.best().action, expected.actions[expected.best]);
        assert_eq!(
            (found.own_value(), found.moves.len()),
            (expected.q[expected.best], expected.actions.len())
        );
        assert!(found.moves.windows(2).skip(1).all(|pair| pair[0].value >= pair[1].value));
        // The rest of the turn, ply by ply, ends where the line says.
        let line = found.best().line.clone();
        for action in line {
            assert_eq!(engine.analyse(&Limit::default()).expect("analysed").best().action, action);
            engine.play(action).expect("legal");
        }
        assert!(engine.playthrough().turn() != Turn::Player(found.player));
    }
}
