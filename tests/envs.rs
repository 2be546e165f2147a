//! Environments: the games of a seed are those of `GameBatch::step_random`, whatever the shards; wrong actions change nothing; each way of
//! starting the next game.

#[path = "support/typed_games.rs"]
mod typed_games;

use std::collections::HashMap;
use std::sync::Arc;
use typed_games::{GameVisitor, dispatch};
use vecaz::backend::AnyGame;
use vecaz::batch::{Actions, AutoReset, Envs, GameBatch};
use vecaz::game::{Game, Turn};
use vecaz::registry::{Registry, any_game};

const N: usize = 7;
const STEPS: usize = 300;
const SEED: u64 = 5;

fn envs(game: &Arc<dyn AnyGame>, shards: usize, auto_reset: AutoReset) -> Envs {
    let mut envs = Envs::new(game.clone(), N, shards, auto_reset);
    envs.reset(SEED);
    envs
}

fn game(name: &str, options: &str) -> Arc<dyn AnyGame> {
    any_game(name, &options.parse().expect("TOML")).expect("valid")
}

/// The state before each decision, by slot, game and ply.
type Decisions = HashMap<(usize, u64, u32), Vec<u8>>;

/// The decisions of `GameBatch::step_random`.
struct RandomPlay;

impl GameVisitor for RandomPlay {
    type Out = Decisions;

    fn visit<G: Game>(self, game: G) -> Decisions {
        let mut batch = GameBatch::new(game.clone(), N);
        let mut decisions = Decisions::new();
        for _ in 0..STEPS {
            for (slot, state) in batch.states().iter().enumerate() {
                if matches!(game.turn(state), Turn::Player(_)) {
                    let key = (slot, batch.finished()[slot], batch.plies()[slot]);
                    decisions.insert(key, bytemuck::bytes_of(state).to_vec());
                }
            }
            batch.step_random(SEED);
        }
        decisions
    }
}

#[test]
fn sampled_actions_give_the_games_of_random_play_in_any_number_of_shards() {
    for name in Registry::built_in().names() {
        let game = game(name, "");
        let players = game.sizes().num_players;
        let expected = dispatch(name, &toml::Table::new(), RandomPlay).expect("valid");
        let mut found = [0; 2];
        for (shards, found) in [1, 3].into_iter().zip(&mut found) {
            let mut envs = envs(&game, shards, AutoReset::SameStep);
            assert_eq!(envs.num_shards(), shards);
            let (mut actions, mut rewards, mut ended) = ([0; N], vec![0.0; N * players], [false; N]);
            for _ in 0..STEPS {
                for env in 0..N {
                    let position = envs.position(env);
                    let Turn::Player(player) = game.turn(position.state) else { panic!("{name}: no player") };
                    assert_eq!((Some(player), player as i8), (position.player, envs.players()[env]));
                    if let Some(state) = expected.get(&(env, position.game, position.plies)) {
                        assert_eq!(
                            state, position.state,
                            "{name}, environment {env}, ply {}",
                            position.plies
                        );
                        *found += 1;
                    }
                }
                envs.sample(&mut actions);
                envs.step(&actions, &mut rewards, &mut ended).expect("legal");
            }
        }
        assert_eq!(found, [expected.len(); 2], "{name}: decisions of both");
    }
}

#[test]
fn masks_and_observations_are_those_of_the_rules() {
    for name in Registry::built_in().names() {
        let game = game(name, "");
        let sizes = game.sizes();
        let mut envs = envs(&game, 2, AutoReset::SameStep);
        let (mut actions, mut rewards, mut ended) = ([0; N], vec![0.0; N * sizes.num_players], [false; N]);
        let (mut mask, mut obs) = (vec![true; N * sizes.num_actions], vec![9.0; N * sizes.obs.len()]);
        let mut expected = obs.clone();
        for _ in 0..40 {
            envs.write_legal(&mut mask);
            for (env, row) in mask.chunks_exact(sizes.num_actions).enumerate() {
                let set: Vec<u16> =
                    (0..).zip(row).filter(|&(_, &legal)| legal).map(|(action, _)| action).collect();
                assert_eq!(set, envs.legal(env), "{name}");
            }
            let states: Vec<u8> = (0..N).flat_map(|env| envs.position(env).state.to_vec()).collect();
            envs.observe(None, &mut obs);
            game.observe_batch(&states, &mut expected);
            assert_eq!(obs, expected, "{name}");
            let last = sizes.num_players as u8 - 1;
            envs.observe(Some(last), &mut obs);
            game.observe_batch_by(&states, &[last; N], &mut expected);
            assert_eq!(obs, expected, "{name}, player {last}");
            envs.sample(&mut actions);
            envs.step(&actions, &mut rewards, &mut ended).expect("legal");
        }
    }
}

#[test]
fn an_observation_shows_nothing_hidden() {
    let game = game("blob", "players = 3\nnetwork_sees = 'deal'");
    let len = game.sizes().obs.len();
    let envs = envs(&game, 1, AutoReset::SameStep);
    let mut obs = vec![0.0; N * len];
    envs.observe(None, &mut obs);
    for (env, obs) in obs.chunks_exact(len).enumerate() {
        let position = envs.position(env);
        let mut rng = vecaz::rng::Key::new(1, vecaz::rng::Purpose::Determinise).stream();
        let other = game.determinise(position.state, position.player.expect("a player"), &mut rng);
        let mut whole = vec![0.0; len];
        game.observe_batch(position.state, &mut whole);
        let mut of_other = vec![0.0; len];
        game.observe_batch(&other, &mut of_other);
        assert_ne!(whole, of_other, "the network sees the deal");
        // What both deals share is shown; what they do not is 0.
        let differs = whole.iter().zip(&of_other).position(|(a, b)| a != b).expect("another deal");
        assert_eq!(obs[..64.min(differs)], whole[..64.min(differs)]);
        assert!(obs[differs..].iter().all(|&x| x == 0.0));
    }
}

#[test]
fn a_wrong_action_is_named_and_no_game_is_stepped() {
    let game = game("tic_tac_toe", "");
    let mut envs = envs(&game, 3, AutoReset::SameStep);
    let (mut rewards, mut ended) = ([0.0; 2 * N], [false; N]);
    envs.step(&[4; N], &mut rewards, &mut ended).expect("legal");
    let before: Vec<Vec<u8>> = (0..N).map(|env| envs.position(env).state.to_vec()).collect();
    for wrong in [4, 9, -1, i64::MAX, i64::MIN, 65_536] {
        let mut actions = [0; N];
        (actions[5], actions[6]) = (wrong, wrong);
        let error = envs.step(&actions, &mut rewards, &mut ended).expect_err("not legal").to_string();
        let expected = format!(
            "action of environment 5: found {wrong}, expected a legal action: 0, 1, 2, 3, 5, 6, 7, 8"
        );
        assert_eq!(error, expected);
    }
    let error = envs.step(&[0; N - 1], &mut rewards, &mut ended).expect_err("too few").to_string();
    assert_eq!(error, "number of actions: found 6, expected 7");
    let after: Vec<Vec<u8>> = (0..N).map(|env| envs.position(env).state.to_vec()).collect();
    assert_eq!(before, after);
}

/// X wins in the middle column in every environment; then one more step.
fn win(auto_reset: AutoReset) -> (Envs, [f32; 2 * N], [bool; N]) {
    let game = game("tic_tac_toe", "");
    let mut envs = envs(&game, 2, auto_reset);
    let (mut rewards, mut ended) = ([7.0; 2 * N], [true; N]);
    for action in [1, 0, 4, 2] {
        envs.step(&[action; N], &mut rewards, &mut ended).expect("legal");
        assert_eq!((rewards, ended), ([0.0; 2 * N], [false; N]));
    }
    envs.step(&[7; N], &mut rewards, &mut ended).expect("legal");
    let expected: Vec<f32> = [1.0, -1.0].repeat(N);
    assert_eq!((rewards.to_vec(), ended), (expected, [true; N]));
    (envs, rewards, ended)
}

#[test]
fn the_next_game_starts_when_it_is_asked_for() {
    let (same, ..) = win(AutoReset::SameStep);
    assert_eq!((same.players(), same.position(0).game, same.legal(0).len()), (&[0; N][..], 1, 9));

    let (mut next, mut rewards, mut ended) = win(AutoReset::NextStep);
    assert_eq!((next.players(), next.position(0).game, next.legal(0).len()), (&[-1; N][..], 0, 0));
    let mut sampled = [0; N];
    next.sample(&mut sampled);
    assert_eq!(sampled, [-1; N]);
    let few: [bool; N] = std::array::from_fn(|env| env < 3);
    let of_few = Actions { actions: &[99; N], chosen: Some(&few) };
    next.step_chosen(of_few, &mut rewards, &mut ended).expect("not read");
    assert_eq!((rewards, ended), ([0.0; 2 * N], [false; N]), "a game ends once");
    assert_eq!(next.players(), [0, 0, 0, -1, -1, -1, -1]);
    let others = few.map(|few| !few);
    let of_others = Actions { actions: &[99; N], chosen: Some(&others) };
    next.step_chosen(of_others, &mut rewards, &mut ended).expect("not read");
    assert_eq!((rewards, ended), ([0.0; 2 * N], [false; N]));
    assert_eq!((next.players(), next.position(0).game, next.legal(0).len()), (&[0; N][..], 1, 9));

    let (mut off, mut rewards, mut ended) = win(AutoReset::Off);
    off.step(&[99; N], &mut rewards, &mut ended).expect("not read");
    assert_eq!((rewards, ended, off.position(0).game), ([0.0; 2 * N], [true; N], 0));
    let mut chosen = [false; N];
    chosen[N - 1] = true;
    off.restart(&chosen).expect("N");
    assert_eq!((off.players()[0], off.players()[N - 1], off.position(N - 1).game), (-1, 0, 1));
    assert!(off.restart(&[true]).is_err());
    off.reset(SEED);
    assert_eq!((off.players(), off.position(0).game), (&[0; N][..], 0));
}

#[test]
fn only_chosen_environments_are_stepped() {
    let mut envs = envs(&game("tic_tac_toe", ""), 2, AutoReset::SameStep);
    let (mut rewards, mut ended) = ([0.0; 2 * N], [false; N]);
    let mut chosen = [false; N];
    (chosen[1], chosen[6]) = (true, true);
    let mut actions = [-5; N];
    (actions[1], actions[6]) = (3, 4);
    envs.step_chosen(Actions { actions: &actions, chosen: Some(&chosen) }, &mut rewards, &mut ended)
        .expect("legal");
    assert_eq!(envs.players(), [0, 1, 0, 0, 0, 0, 1]);
    assert_eq!(
        (envs.legal(0).len(), envs.legal(1), envs.legal(6).len()),
        (9, &[0, 1, 2, 4, 5, 6, 7, 8][..], 8)
    );
    let again = Actions { actions: &actions, chosen: Some(&chosen) };
    let error = envs.step_chosen(again, &mut rewards, &mut ended).expect_err("taken").to_string();
    assert!(error.starts_with("action of environment 1: found 3, expected"), "{error}");
    let few = Actions { actions: &actions, chosen: Some(&[true]) };
    let error = envs.step_chosen(few, &mut rewards, &mut ended).expect_err("too few").to_string();
    assert_eq!(error, "number of environments to step: found 1, expected 7");
}
