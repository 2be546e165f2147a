//! Games that may end in their deal, as blackjack does: those that do have no decision, and the next game of the slot is played instead.

use super::ends;
use super::tree_game::{TreeGame, TreeNode};
use std::sync::Arc;
use vecaz::backend::{AnyGame, RootCache};
use vecaz::batch::{AutoReset, Envs};
use vecaz::config::{Config, FirstGame, NetConfig, Precision};
use vecaz::game::Game;
use vecaz::model::NetSpec;
use vecaz::net::{IoShape, UniformNet};
use vecaz::play::{GameRecord, PlayPlan};
use vecaz::registry::erase;
use vecaz::rng::{Key, Purpose};
use vecaz::selfplay::SelfPlay;
use vecaz::weights::{NetFile, pack};

/// A game of one decision, unless its deal ends it, which has this probability.
fn dealt(ending: f32) -> TreeGame {
    let nodes = vec![
        TreeNode::Deals(vec![(ending, 1), (1.0 - ending, 2)]),
        ends(1.0),
        TreeNode::Moves(0, vec![3, 4]),
        ends(0.5),
        ends(-0.5),
    ];
    TreeGame { players: 2, nodes }
}

fn self_play(game: &TreeGame, config: &Config) -> vecaz::Result<SelfPlay> {
    let erased: Arc<dyn AnyGame> = erase(game.clone());
    SelfPlay::new(&erased, config, &UniformNet(IoShape::of(&game.sizes())), Vec::new(), 1)
}

fn config(first_game: FirstGame) -> Config {
    let mut config = Config::default();
    config.search.simulations = 4;
    config.selfplay.games = 9;
    config.selfplay.passes_per_poll = 60;
    config.selfplay.first_game = first_game;
    config
}

#[test]
fn self_play_passes_over_games_that_their_deals_end() {
    let game = dealt(0.5);
    let network = UniformNet(IoShape::of(&game.sizes()));
    for first_game in [FirstGame::Start, FirstGame::Within] {
        let config = config(first_game);
        let mut selfplay = self_play(&game, &config).expect("decisions");
        selfplay.set_network(&network, RootCache::default()).expect("a network");
        let games = selfplay.poll().expect("finite");
        assert!(games.len() > 50, "{} games", games.len());
        let (erased, plan) = (erase(game.clone()), PlayPlan::new(&config, &game.sizes()));
        for played in &games {
            assert_eq!((played.actions[0], played.actions.len(), played.samples.len()), (1, 2, 1));
            let record = GameRecord::of(played);
            assert_eq!(record.replay(erased.as_ref(), &plan).as_ref(), Ok(played));
        }
        let of_first: Vec<u64> =
            games.iter().filter(|played| played.slot == 0).map(|played| played.game).collect();
        let passed_over = (0..*of_first.last().expect("games")).find(|number| !of_first.contains(number));
        let game = passed_over.expect("a game that its deal ended");
        let first = games.iter().find(|played| played.slot == 0).expect("games");
        let record = GameRecord { game, ..GameRecord::of(first) };
        let refused = record.replay(erased.as_ref(), &plan).expect_err("it has no decision");
        assert!(refused.contains("expected slot 0, game"), "{refused}");
    }
}

#[test]
fn self_play_of_a_game_without_decisions_is_refused() {
    let error = self_play(&dealt(1.0), &config(FirstGame::Within)).err().expect("refused").to_string();
    assert!(error.contains("self-play of tree_game") && error.contains("ends in its deal"), "{error}");
}

/// Names of actions, self-checks and 8-bit scales come from random games.
#[test]
fn networks_are_described_by_games_that_their_deals_do_not_end() {
    let net = NetConfig { precision: Precision::Int8, ..Config::default().net };
    let described = |ending| {
        let game = erase(dealt(ending));
        let spec = NetSpec::new(&net, &game.sizes());
        let weights = spec.model()?.random_weights(Key::new(1, Purpose::Weights));
        pack(game.as_ref(), &spec, &weights, &net)?;
        NetFile::new(game.as_ref(), &spec, weights, 0)
    };
    assert_eq!(described(0.5).expect("decisions").header.actions.len(), 2);
    let error = described(1.0).expect_err("refused").to_string();
    assert!(error.contains("a network of tree_game") && error.contains("ends in its deal"), "{error}");
}

#[test]
fn environments_pass_over_games_that_their_deals_end() {
    const N: usize = 7;
    let game: Arc<dyn AnyGame> = erase(dealt(0.5));
    for auto_reset in [AutoReset::SameStep, AutoReset::NextStep] {
        let mut envs = Envs::new(game.clone(), N, 2, auto_reset);
        let (mut actions, mut rewards, mut ended) = ([0; N], [0.0; 2 * N], [false; N]);
        for _ in 0..40 {
            assert_eq!(envs.players(), [0; N], "{auto_reset:?}");
            envs.sample(&mut actions);
            envs.step(&actions, &mut rewards, &mut ended).expect("legal");
            assert_eq!((ended, rewards.map(f32::abs)), ([true; N], [0.5; 2 * N]), "{auto_reset:?}");
            if auto_reset == AutoReset::NextStep {
                envs.step(&actions, &mut rewards, &mut ended).expect("not read");
                assert_eq!(ended, [false; N]);
            }
        }
        assert!(envs.position(0).game > 45, "{auto_reset:?}: {} games", envs.position(0).game);
    }
}
