//! The committed sets of solved positions: what they promise, that they are right, and that they can be made again.

#[path = "../examples/solved_positions/generate.rs"]
mod generate;

use generate::{Generator, SetPlan, every_position};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::eval::positions::{self, SolvedPosition};
use vecaz::eval::solver::Solver;
use vecaz::registry::any_game;

fn game(name: &str) -> Arc<dyn AnyGame> {
    any_game(name, &toml::Table::new()).unwrap()
}

fn set(name: &str, game: &Arc<dyn AnyGame>) -> Vec<SolvedPosition> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    positions::read(&path, game).unwrap()
}

/// State bytes, the lesser of the position and its mirror image.
fn image(position: &SolvedPosition, game: &Arc<dyn AnyGame>) -> Vec<u8> {
    let state = positions::replay(position, game).unwrap().state().to_vec();
    let mut mirrored = state.clone();
    game.transform_batch(&mut mirrored, &[1]);
    state.min(mirrored)
}

#[test]
fn connect_four_sets_are_varied_and_share_nothing() {
    let game = game("connect_four");
    let (solved, dev) = (
        set("tests/fixtures/connect_four_solved.jsonl", &game),
        set("assets/positions/connect_four.jsonl", &game),
    );
    let different: HashSet<Vec<u8>> =
        solved.iter().chain(&dev).map(|position| image(position, &game)).collect();
    assert_eq!(different.len(), solved.len() + dev.len());
    for (name, set, random_error) in [("solved", &solved, 0.5441), ("dev", &dev, 0.5613)] {
        let plies: HashSet<usize> = set.iter().map(|position| position.actions.len()).collect();
        assert_eq!(plies, (6..=34).collect(), "{name}");
        let mixed = set.iter().filter(|position| position.has_right_and_wrong()).count();
        assert!(4 * mixed > 3 * set.len(), "{name}: {mixed} of {} have right and wrong actions", set.len());
        let random = positions::random_error_rates(set).outcome_error;
        assert!((random - random_error).abs() < 1e-4, "{name}: {random}, the README says {random_error}");
    }
    assert_eq!((solved.len(), dev.len()), (600, 300));
}

/// The solver is checked against exhaustive search elsewhere; here it must still say what it said. Positions of the late
/// middle game take no time.
#[test]
fn connect_four_scores_are_found_again() {
    let game = game("connect_four");
    let mut solver = Solver::for_game(&game).unwrap();
    for name in ["tests/fixtures/connect_four_solved.jsonl", "assets/positions/connect_four.jsonl"] {
        let set = set(name, &game);
        let late: Vec<&SolvedPosition> = set.iter().filter(|position| position.actions.len() >= 18).collect();
        assert!(late.len() > 100);
        for position in late {
            let found = solver.scores(&positions::replay(position, &game).unwrap());
            assert_eq!(found, position.scores, "{name}, after {:?}", position.actions);
        }
    }
}

#[test]
fn the_seed_makes_the_same_set() {
    let game = game("connect_four");
    let make = |seed| {
        let plan =
            SetPlan { positions: 12, plies: 20..=31, keep_tactical: 0.25, keep_indifferent: 0.1, seed };
        let set: Result<Vec<_>, _> = Generator::new(game.clone(), plan, &[]).unwrap().collect();
        set.unwrap()
    };
    let first = make(1);
    assert_eq!(first, make(1));
    assert_ne!(first, make(2));
    let plies: Vec<usize> = first.iter().map(|position| position.actions.len()).collect();
    assert_eq!(plies, (20..=31).collect::<Vec<_>>());

    let plan = SetPlan { positions: 12, plies: 20..=31, keep_tactical: 0.25, keep_indifferent: 0.1, seed: 1 };
    let others: Result<Vec<_>, _> = Generator::new(game.clone(), plan, &first).unwrap().collect();
    assert!(others.unwrap().iter().all(|position| !first.contains(position)), "excluded positions came back");
}

#[test]
fn tic_tac_toe_is_listed_whole() {
    let game = game("tic_tac_toe");
    let listed = set("assets/positions/tic_tac_toe.jsonl", &game);
    assert_eq!(listed, every_position(&game).unwrap());
    assert_eq!(listed.len(), 627, "765 positions up to symmetry, 138 of them finished");
    assert_eq!(listed[0].scores, vec![Some(0); 9]);
}

/// Compared with another implementation by tests/oracles/clique_solved.py.
#[test]
fn the_clique_game_on_six_vertices_is_listed_whole() {
    let game = game("clique");
    let listed = set("assets/positions/clique.jsonl", &game);
    assert_eq!(listed, every_position(&game).unwrap());
    let mixed = listed.iter().filter(|position| position.has_right_and_wrong()).count();
    assert_eq!((listed.len(), mixed), (2250, 1955));
    assert_eq!(
        listed[0].scores,
        vec![Some(5); 15],
        "the first player wins with the fourth edge from the end of his eight"
    );
}

#[test]
fn impossible_plans_are_refused() {
    let game = game("tic_tac_toe");
    let backwards = SetPlan {
        positions: 5,
        plies: std::ops::RangeInclusive::new(7, 3),
        keep_tactical: 1.0,
        keep_indifferent: 1.0,
        seed: 1,
    };
    let refused = Generator::new(game.clone(), backwards, &[]).err().unwrap().to_string();
    assert_eq!(refused, "config key plies: got 7..=3, expected a range that is not empty");
    // One position has no ply: the second cannot be found.
    let plan = SetPlan { positions: 2, plies: 0..=0, keep_tactical: 1.0, keep_indifferent: 1.0, seed: 1 };
    let made: Vec<_> = Generator::new(game, plan, &[]).unwrap().collect();
    assert!(made[0].is_ok());
    assert!(made[1].as_ref().unwrap_err().to_string().contains("no new position at ply 0"));
}
