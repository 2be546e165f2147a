//! Games in progress: what their slots keep, and the targets of their samples.

use super::*;
use crate::config::Config;
use crate::registry::any_game;
use crate::rng::RngStream;

/// A game in progress after `plies` decided plies at random, with a sample of each.
fn played(game: &dyn ErasedRules, plan: &PlayPlan, plies: usize) -> GameSlot {
    let mut slot = new_slot(5);
    slot.open(game, plan);
    let mut rng = Key::new(3, Purpose::Evaluation).stream();
    for _ in 0..plies {
        let actions = game.legal(&slot.state, slot.history());
        let policy = vec![1.0 / actions.len() as f32; actions.len()];
        let Turn::Player(player) = game.turn(&slot.state) else { panic!("a decision") };
        let action_index = rng.below(actions.len());
        let value = vec![0.25; game.sizes().num_players];
        let (actions, policy, value) = (&actions[..], &policy[..], &value[..]);
        slot.play(
            game,
            plan,
            &DecidedPly { player, proven: action_index == 0, actions, policy, value, action_index },
        );
    }
    slot
}

/// The bytes of a slot as a checkpoint has them, with a few of them changed.
fn forged(bytes: &[u8], rng: &mut RngStream) -> Option<GameSlot> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + rng.below(3) {
        let extremes = [0, 1, 127, 128, 255, rng.below(256) as u8];
        let index = rng.below(bytes.len());
        bytes[index] = extremes[rng.below(extremes.len())];
    }
    postcard::from_bytes(&bytes).ok()
}

#[test]
fn targets_are_lambda_returns() {
    let sample = |values: &[f32]| Sample { values: values.to_vec(), ..Sample::default() };
    let search = [[0.5, -0.5], [0.25, -0.25], [-0.75, 0.75]].map(|values| sample(&values));
    let targets = |proven: [Proof; 3], lambda: f32| {
        let mut samples = search.to_vec();
        lambda_returns(&mut samples, &proven, &[1.0, -1.0], lambda);
        samples.iter().map(|sample| sample.values[0]).collect::<Vec<f32>>()
    };
    let none = [Proof::None; 3];
    assert_eq!(targets(none, 1.0), [1.0, 1.0, 1.0], "the result");
    assert_eq!(targets(none, 0.0), [0.25, -0.75, 1.0], "the next value");
    // Backwards: 1; half of -0.75 and 1; half of 0.25 and 0.125.
    assert_eq!(targets(none, 0.5), [0.1875, 0.125, 1.0]);
    let proven = [Proof::None, Proof::Exact, Proof::None];
    assert_eq!(targets(proven, 0.5), [0.1875, 0.25, 1.0], "a proven value stays");
    assert_eq!(targets(proven, 1.0), [1.0, 0.25, 1.0]);
}

/// Where search ends at a horizon, so do the value targets.
#[test]
fn targets_of_a_round_are_its_own_result() {
    let game = any_game("blob", &"players = 3\ncards = 2\nfull = true".parse().expect("TOML"));
    let game = game.expect("registered");
    let (game, mut config) = (game.as_ref(), Config::default());
    (config.selfplay.opening_plies, config.selfplay.first_game) = (0, FirstGame::Start);
    let plan = PlayPlan::new(&config, &game.sizes());
    let mut slot = new_slot(3);
    slot.open(game, &plan);
    let (mut rng, mut results, mut decided) =
        (Key::new(9, Purpose::Evaluation).stream(), Vec::new(), Vec::new());
    let finished = loop {
        let Turn::Player(player) = game.turn(&slot.state) else { panic!("a decision") };
        let actions = game.legal(&slot.state, slot.history());
        let policy = vec![1.0 / actions.len() as f32; actions.len()];
        let action_index = rng.below(actions.len());
        let mut after = slot.state.clone();
        game.step(&mut after, actions[action_index], slot.history());
        decided.push(results.len());
        if game.turn(&after) == Turn::Over || game.is_horizon(&after) {
            results.push(game.stage_returns(&after));
        }
        let (actions, policy, value) = (&actions[..], &policy[..], &[0.5, 0.25, -0.75][..]);
        let ply = DecidedPly { player, proven: false, actions, policy, value, action_index };
        if let Some(finished) = slot.play(game, &plan, &ply) {
            break finished;
        }
    };
    assert_eq!(results.len(), 5, "rounds of 2, 1, 1, 1 and 2 cards");
    assert!(results.iter().any(|result| *result != finished.returns));
    for (sample, round) in finished.samples.iter().zip(decided) {
        assert_eq!(sample.values, results[round], "round {round}");
    }
}

#[test]
fn first_games_begin_at_all_plies_of_random_games_and_later_ones_at_the_start() {
    let config = Config::default();
    for name in ["chess", "backgammon", "blob", "hex"] {
        let game = any_game(name, &toml::Table::new()).expect("registered");
        let plan = PlayPlan::new(&config, &game.sizes());
        let slots = new_slots(0, 200, game.as_ref(), &plan);
        let mut lengths: Vec<u32> = slots.iter().map(|slot| slot.opening).collect();
        lengths.sort_unstable();
        // Counted from the first decision: Blob deals all cards before it.
        let dealt = lengths.iter().find(|&&length| length > 0).map_or(0, |length| length - 1);
        lengths.iter_mut().for_each(|length| *length = length.saturating_sub(dealt));
        let longest = lengths[199];
        assert!(
            lengths[50] < longest / 2 && lengths[150] > longest / 5 && lengths[10] < longest / 8,
            "{name}: {lengths:?}"
        );
        for (number, mut slot) in (0..).zip(slots) {
            assert_eq!(slot.check(game.as_ref(), number), Ok(()), "{name}");
            slot.game = 1;
            slot.open(game.as_ref(), &plan);
            assert_eq!(slot.opening as usize, slot.actions.len(), "{name}");
        }
    }
}

/// Openings that end their games are drawn again, which must not give them another chance to be none.
#[test]
fn the_share_of_games_without_an_opening_is_the_one_that_is_set() {
    let mut config = Config::default();
    config.selfplay.first_game = FirstGame::Start;
    config.selfplay.opening_plies = 9;
    config.selfplay.opening_none = 0.25;
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let slots = new_slots(0, 4000, game.as_ref(), &PlayPlan::new(&config, &game.sizes()));
    let none = slots.iter().filter(|slot| slot.opening == 0).count() as f64 / 4000.0;
    assert!((none - 0.25).abs() < 0.03, "{none}");
    assert!(slots.iter().all(|slot| game.turn(&slot.state) != Turn::Over));
}

#[test]
fn a_slot_is_taken_only_as_the_game_that_its_actions_make() {
    let mut config = Config::default();
    config.selfplay.opening_plies = 3;
    let mut rng = Key::new(4, Purpose::Evaluation).stream();
    for name in ["clique", "blob", "backgammon", "chess", "go", "gomoku"] {
        let game = any_game(name, &toml::Table::new()).expect("registered");
        let plan = PlayPlan::new(&config, &game.sizes());
        let slot = played(game.as_ref(), &plan, 9);
        assert_eq!(slot.check(game.as_ref(), 5), Ok(()), "{name}");
        assert!(slot.check(game.as_ref(), 4).is_err());
        let bytes = postcard::to_stdvec(&slot).expect("in memory");
        let (mut refused, mut taken) = (0, 0);
        for mut changed in (0..400).filter_map(|_| forged(&bytes, &mut rng)) {
            if changed.check(game.as_ref(), 5).is_err() {
                refused += 1;
                continue;
            }
            // Only fields on which play does not depend have changed.
            taken += 1;
            assert_eq!((&changed.state, &changed.actions), (&slot.state, &slot.actions), "{name}");
            changed.finish(game.as_ref(), &plan);
        }
        assert!(refused > 50, "{name}: {refused} refused, {taken} taken");
    }
}
