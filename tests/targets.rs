//! Targets of games' own: ownership by another computation on games of other programs, under symmetries, and in training batches.

use serde::Deserialize;
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::config::NetConfig;
use vecaz::game::view::{Board, Viewer};
use vecaz::game::{History, Turn};
use vecaz::model::NetSpec;
use vecaz::play::Sample;
use vecaz::registry::any_game;
use vecaz::replay::{BatchPlan, Replay, Symmetries, TargetList};
use vecaz::rng::{Key, Purpose};

#[derive(Deserialize)]
struct Recorded {
    game: String,
    options: toml::Table,
    actions: Vec<u16>,
    returns: Option<Vec<f32>>,
}

/// Finished games of other programs.
fn recorded(file: &str) -> Vec<Recorded> {
    let path = format!("{}/tests/fixtures/playthroughs/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("read");
    let games = text.lines().map(|line| serde_json::from_str::<Recorded>(line).expect("a game"));
    games.filter(|game| game.returns.is_some()).collect()
}

/// The marks of a board's cells, row by row: X, O, or a point for a free one.
fn marks(game: &dyn AnyGame, state: &[u8]) -> Vec<char> {
    let Board::Grid(grid) = game.view(state, History::default(), Viewer::All).board else { panic!("a grid") };
    let mark = |piece: &Option<u8>| piece.map_or('.', |piece| grid.pieces[usize::from(piece)].mark);
    grid.cells.iter().map(mark).collect()
}

/// 1 for X, -1 for O, 0 for neither: stones, and empty regions that touch one colour only.
fn area_owners(marks: &[char], side: usize) -> Vec<f32> {
    let owner = |start: usize| {
        let (mut seen, mut open, mut touched) = (vec![false; marks.len()], vec![start], [false; 2]);
        while let Some(point) = open.pop() {
            match marks[point] {
                'X' => touched[0] = true,
                'O' => touched[1] = true,
                _ if std::mem::replace(&mut seen[point], true) => {}
                _ => {
                    let (row, column) = (point / side, point % side);
                    open.extend((row > 0).then(|| point - side));
                    open.extend((row + 1 < side).then_some(point + side));
                    open.extend((column > 0).then(|| point - 1));
                    open.extend((column + 1 < side).then_some(point + 1));
                }
            }
        }
        f32::from(u8::from(touched == [true, false])) - f32::from(u8::from(touched == [false, true]))
    };
    (0..marks.len()).map(owner).collect()
}

fn disc_owners(marks: &[char], _side: usize) -> Vec<f32> {
    let owner = |mark: &char| match mark {
        'X' => 1.0,
        'O' => -1.0,
        _ => 0.0,
    };
    marks.iter().map(owner).collect()
}

#[test]
fn ownership_is_that_of_another_computation() {
    let files = [
        ("go.jsonl", area_owners as fn(&[char], usize) -> Vec<f32>),
        ("go_gnugo.jsonl", area_owners),
        ("othello_open_spiel.jsonl", disc_owners),
        ("othello_pgx.jsonl", disc_owners),
    ];
    for (file, owners) in files {
        let (mut neutral, mut owned) = (0, 0);
        for recorded in recorded(file) {
            let game = any_game(&recorded.game, &recorded.options).expect("registered");
            let (positions, end) = played(&game, &recorded.actions);
            let side = game.sizes().obs.height;
            let expected = owners(&marks(game.as_ref(), &end), side);
            neutral += expected.iter().filter(|owner| **owner == 0.0).count();
            owned += expected.iter().filter(|owner| **owner != 0.0).count();
            let mut found = vec![9.0; side * side];
            for position in &positions {
                let Turn::Player(player) = game.turn(position) else { panic!("a decision") };
                game.write_target(0, position, &end, player, &mut found);
                let sign = if player == 0 { 1.0 } else { -1.0 };
                assert!(found.iter().zip(&expected).all(|(x, owner)| *x == sign * owner), "{file}");
            }
        }
        assert!(owned > 200, "{file}: {owned} owned, {neutral} neutral");
    }
}

/// The positions of a finished game, and its last state.
fn played(game: &Arc<dyn AnyGame>, actions: &[u16]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut play = Playthrough::new(game.clone());
    let mut positions = Vec::new();
    for &action in actions {
        positions.push(play.state().to_vec());
        play.step(action).expect("legal");
    }
    assert_eq!(play.turn(), Turn::Over);
    (positions, play.state().to_vec())
}

/// A game at random to its end.
fn random_game(game: &Arc<dyn AnyGame>, seed: u64) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut rng = Key::new(seed, Purpose::Evaluation).stream();
    let mut play = Playthrough::new(game.clone());
    let mut actions = Vec::new();
    while play.turn() != Turn::Over {
        let legal = play.legal().to_vec();
        actions.push(legal[rng.below(legal.len())]);
        play.step(actions[actions.len() - 1]).expect("legal");
    }
    played(game, &actions)
}

fn games() -> [Arc<dyn AnyGame>; 4] {
    [("go", 7), ("go", 9), ("othello", 6), ("othello", 8)].map(|(name, size)| {
        any_game(name, &toml::Table::from_iter([("size".to_string(), toml::Value::Integer(size))]))
            .expect("registered")
    })
}

/// The target of the images is the image of the target. Actions of these games are points, in the order of the target.
#[test]
fn ownership_follows_symmetries() {
    for game in games() {
        let (positions, end) = random_game(&game, 3);
        let points = game.sizes().obs.height * game.sizes().obs.width;
        for symmetry in 0..game.sizes().num_symmetries {
            for position in positions.iter().step_by(7) {
                let (mut plain, mut image) = (vec![9.0; points], vec![9.0; points]);
                let Turn::Player(player) = game.turn(position) else { panic!("a decision") };
                game.write_target(0, position, &end, player, &mut plain);
                let mut states = [position, &end].map(Clone::clone);
                states.iter_mut().for_each(|state| game.transform_batch(state, &[symmetry]));
                let player = game.transform_player(player, symmetry);
                game.write_target(0, &states[0], &states[1], player, &mut image);
                let moved = |point: usize| usize::from(game.transform_action(point as u16, symmetry));
                assert!((0..points).all(|point| image[moved(point)] == plain[point]), "{}", game.name());
                assert!(plain.iter().any(|owner| *owner != 0.0));
            }
        }
    }
}

fn list(game: &Arc<dyn AnyGame>) -> TargetList {
    let net = NetConfig { auxiliary: "ownership".into(), ..NetConfig::default() };
    let spec = NetSpec::with_targets(&net, &game.sizes(), &game.targets()).expect("a target");
    TargetList::new(game.as_ref(), &spec.model().expect("a network")).expect("known")
}

/// A buffer that has wrapped, and for each of its samples the position and the end of its game.
fn filled(game: &Arc<dyn AnyGame>, capacity: usize) -> (Replay, Vec<[Vec<u8>; 2]>) {
    let mut replay = Replay::with_targets(game.as_ref(), capacity, list(game));
    let mut expected = vec![[vec![], vec![]]; capacity];
    for (positions, end) in (0..20).map(|seed| random_game(game, seed)) {
        for state in positions {
            let Turn::Player(player) = game.turn(&state) else { panic!("a decision") };
            let at = replay.added() as usize % capacity;
            expected[at] = [state.clone(), end.clone()];
            replay.push(&Sample { state, player, values: vec![0.0; 2], ..Sample::default() }, &end);
        }
    }
    assert!(replay.added() > capacity as u64);
    (replay, expected)
}

#[test]
fn batches_have_the_ownership_of_their_samples_games() {
    for game in games() {
        let capacity = 200;
        let (replay, samples) = filled(&game, capacity);
        let points = game.sizes().obs.height * game.sizes().obs.width;
        for symmetries in [Symmetries::Random, Symmetries::Identity] {
            let plan = BatchPlan { size: 150, seed: 3, number: 1, symmetries };
            let batch = replay.batch(game.as_ref(), plan);
            let column = &batch.targets["ownership"];
            assert_eq!(column.len(), 150 * points);
            for (row, found) in column.chunks_exact(points).enumerate() {
                let (at, symmetry) = replay.draw(plan, row);
                let mut pair = samples[at].clone();
                pair.iter_mut().for_each(|state| game.transform_batch(state, &[symmetry]));
                let mut expected = vec![9.0; points];
                let Turn::Player(player) = game.turn(&pair[0]) else { panic!("a decision") };
                game.write_target(0, &pair[0], &pair[1], player, &mut expected);
                assert_eq!(found, expected, "{} row {row}", game.name());
                let mut obs = vec![9.0; game.sizes().obs.len()];
                game.observe_batch(&pair[0], &mut obs);
                assert_eq!(batch.obs[row * obs.len()..][..obs.len()], obs, "of the same image");
            }
        }
    }
}

#[test]
fn a_saved_buffer_keeps_the_ends_of_games_and_one_without_them_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let game = &games()[2];
    let files = |replay: &Replay| {
        let segments = replay.segments(&[]).into_iter();
        segments.map(|segment| (segment, folder.path().join(segment.file_name()))).collect::<Vec<_>>()
    };
    let (replay, _) = filled(game, 60);
    let saved = files(&replay);
    saved.iter().for_each(|(segment, path)| replay.save(*segment, path).expect("saved"));
    let loaded = Replay::load(game.as_ref(), 60, list(game), &saved).expect("loaded");
    let plan = BatchPlan { size: 40, seed: 3, number: 1, symmetries: Symmetries::Random };
    assert_eq!(loaded.batch(game.as_ref(), plan), replay.batch(game.as_ref(), plan));
    let mut plain = Replay::new(game.as_ref(), 60);
    let (positions, end) = random_game(game, 1);
    plain.push(&Sample { state: positions[0].clone(), values: vec![0.0; 2], ..Sample::default() }, &end);
    let saved = files(&plain);
    saved.iter().for_each(|(segment, path)| plain.save(*segment, path).expect("saved"));
    let error = Replay::load(game.as_ref(), 60, list(game), &saved).err().expect("refused").to_string();
    assert!(error.contains("replay array ends") && error.lines().count() == 1, "{error}");
}

#[test]
fn an_unknown_target_is_refused_with_those_of_the_game() {
    let refused = |game: &str, auxiliary: &str| {
        let game = any_game(game, &toml::Table::new()).expect("registered");
        let net = NetConfig { auxiliary: auxiliary.into(), ..NetConfig::default() };
        NetSpec::with_targets(&net, &game.sizes(), &game.targets()).expect_err("refused").to_string()
    };
    assert!(refused("go", "owners").contains("net.auxiliary: got owners, expected ownership"));
    let none = refused("connect_four", "ownership");
    assert!(none.contains("net.auxiliary: got ownership, expected an empty text"), "{none}");
}

/// A buffer with the decisions of a random game and random values for each player.
fn random_samples(game: &Arc<dyn AnyGame>) -> Replay {
    let players = game.sizes().num_players;
    let mut replay = Replay::new(game.as_ref(), 90);
    let mut rng = Key::new(8, Purpose::Evaluation).stream();
    let mut play = Playthrough::new(game.clone());
    while play.turn() != Turn::Over {
        let (state, actions) = (play.state().to_vec(), play.legal().to_vec());
        if let Turn::Player(player) = play.turn() {
            let values = (0..players).map(|p| rng.uniform() - 0.2 * p as f32).collect();
            let policy = vec![1.0 / actions.len() as f32; actions.len()];
            let (state, actions) = (state.clone(), actions.clone());
            replay.push(&Sample { state, player, actions, policy, values }, &[]);
        }
        play.step(actions[rng.below(actions.len())]).expect("legal");
    }
    replay
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

#[test]
fn baselines_are_the_losses_of_constant_predictions_on_the_batches() {
    for (name, options, symmetries) in [
        ("othello", "", Symmetries::Random),
        ("blob", "", Symmetries::Identity),
        ("blob", "players = 5\nseated = 3", Symmetries::Identity),
    ] {
        let game = any_game(name, &options.parse().expect("TOML")).expect("registered");
        let (players, replay) = (game.sizes().num_players, random_samples(&game));
        let plan = BatchPlan { size: 70, seed: 5, number: 3, symmetries };
        let found = replay.baselines(game.as_ref(), plan, 4);
        let batches = (3..7).map(|number| replay.batch(game.as_ref(), BatchPlan { number, ..plan }));
        let (mut logs, mut of_seats) = (Vec::new(), vec![Vec::new(); players]);
        for batch in batches {
            let rows = batch.legal.chunks_exact(game.sizes().num_actions);
            logs.extend(rows.map(|row| (row.iter().filter(|&&legal| legal == 1).count() as f64).ln()));
            let values = batch.targets["values"].iter().zip((0..players).cycle());
            values.for_each(|(&value, seat)| of_seats[seat].push(f64::from(value)));
        }
        let error = |values: &Vec<f64>| {
            let constant = mean(values);
            mean(&values.iter().map(|value| (value - constant).powi(2)).collect::<Vec<_>>())
        };
        let expected = mean(&of_seats.iter().map(error).collect::<Vec<_>>());
        assert!((found.constant_values - expected).abs() < 1e-6, "{name}: {found:?} {expected}");
        let uniform = found.uniform_policy.expect("policies");
        assert!((uniform - mean(&logs)).abs() < 1e-6 && uniform > 0.5, "{name}: {uniform}");
    }
}

/// What a target says is seen by the player whose sample it is, who is not the one to move after a whole turn.
#[test]
fn targets_are_those_of_the_samples_players() {
    for game in games() {
        let (positions, end) = random_game(&game, 5);
        let mut replay = Replay::with_targets(game.as_ref(), 2, list(&game));
        for player in [0, 1] {
            let state = positions[4].clone();
            replay.push(&Sample { state, player, values: vec![0.0; 2], ..Sample::default() }, &end);
        }
        let plan = BatchPlan { size: 40, seed: 3, number: 1, symmetries: Symmetries::Identity };
        let batch = replay.batch(game.as_ref(), plan);
        let points = game.sizes().obs.height * game.sizes().obs.width;
        let mut rows = [vec![], vec![]];
        for (row, found) in batch.targets["ownership"].chunks_exact(points).enumerate() {
            rows[replay.draw(plan, row).0] = found.to_vec();
        }
        let [own, other] = rows;
        assert!(own.iter().any(|&owner| owner != 0.0) && own.len() == points);
        assert!(own.iter().zip(&other).all(|(a, b)| *a == -*b), "{}", game.name());
    }
}
