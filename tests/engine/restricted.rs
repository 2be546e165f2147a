//! Searches of some moves alone.

use super::*;

/// All visits are of the allowed moves, whose priors are a distribution; a restriction that is lifted leaves nothing behind.
#[test]
fn a_restricted_search_visits_its_moves_alone() {
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        let make = || engine_by("othello", algorithm);
        let mut engine = make();
        let free = engine.analyse(&Limit::simulations(600)).expect("a position");
        let mut moves: Vec<u16> = free.moves.iter().rev().take(2).map(|m| m.action).collect();
        engine.restrict(&moves).expect("legal");
        let found = engine.analyse(&Limit::simulations(600)).expect("a position");
        moves.sort_unstable();
        let mut searched: Vec<u16> = found.moves.iter().map(|m| m.action).collect();
        searched.sort_unstable();
        assert_eq!(searched, moves, "{algorithm:?}");
        assert!(found.visits >= 600 && found.simulations >= 600, "{} visits", found.visits);
        assert!(found.moves.iter().all(|m| m.visits > 0), "{:?}", found.moves);
        let priors: f32 = found.moves.iter().map(|m| m.prior).sum();
        assert!((priors - 1.0).abs() < 1e-5, "{priors}");
        // The same restriction goes on with the tree.
        let more = engine.analyse(&Limit::simulations(700)).expect("a position");
        assert!(more.visits >= 700 && more.simulations < 400, "{} new ones", more.simulations);
        engine.restrict(&[]).expect("all");
        let again = engine.analyse(&Limit::simulations(600)).expect("a position");
        assert_eq!(facts(&again), facts(&make().analyse(&Limit::simulations(600)).expect("a position")));
    }
}

/// What a restricted search finds of a move is what a search finds that has made the move, with the sign of the other player.
#[test]
fn a_restriction_ends_with_its_position_and_its_tree_is_kept() {
    let mut engine = engine("hex");
    let wrong = engine.restrict(&[3, 500]).expect_err("illegal").to_string();
    assert!(wrong.contains("500"), "{wrong}");
    engine.restrict(&[3]).expect("legal");
    let found = engine.analyse(&Limit::simulations(500)).expect("a position");
    assert_eq!((found.moves.len(), found.best().action, found.best().visits), (1, 3, found.visits));
    engine.play(3).expect("legal");
    let kept = engine.analyse(&Limit::simulations(1)).expect("a position");
    assert!(kept.visits > 300 && kept.simulations == 0, "{} kept", kept.visits);
    assert_eq!(kept.moves.len(), 120, "the next position has all its moves");
    let difference = kept.own_value() + found.own_value();
    assert!(difference.abs() < 0.05, "{} and {}", kept.own_value(), found.own_value());

    // X wins by a fourth stone in the lowest row; the outer columns give no four.
    let mut engine = self::engine("connect_four");
    for action in [3, 3, 2, 2, 4, 4] {
        engine.play(action).expect("legal");
    }
    engine.restrict(&[0, 3]).expect("legal");
    let restricted = engine.analyse(&Limit::simulations(3)).expect("a position");
    assert_eq!(restricted.moves.len(), 2);
    let play = engine.playthrough().clone();
    engine.set_position(&play).expect("the same position");
    let free = engine.analyse(&Limit::simulations(2000)).expect("a position");
    assert_eq!(
        (free.moves.len(), free.own_value(), free.proven),
        (7, 1.0, true),
        "the same position is free again"
    );
}

/// With hidden information the deals are searched with the allowed moves alone; an algorithm without trees says that it cannot.
#[test]
fn deals_are_restricted_and_whole_turns_are_not() {
    let (game, network) = setup("blob", "players = 3\ncards = 2\ndealer = 2");
    let settings = Settings { determinisations: 5, ..settings(game.as_ref()) };
    let mut engine = Engine::new(game, &network, settings).expect("valid");
    for card in "2♠ K♥ Q♥ 3♦ 9♣ 10♥".split(' ') {
        let action = engine.playthrough().find(card).expect("legal");
        engine.play(action).expect("legal");
    }
    let legal = engine.playthrough().legal();
    engine.restrict(&legal[1..]).expect("legal");
    let found = engine.analyse(&Limit::simulations(100)).expect("a position");
    assert_eq!(found.moves.len(), legal.len() - 1);
    assert!(found.moves.iter().all(|m| m.action != legal[0]));

    let mut engine = engine_of_backgammon_with(Algorithm::Afterstate);
    let legal = engine.playthrough().legal();
    engine.restrict(&legal[..1]).expect("legal");
    let error = engine.analyse(&Limit::simulations(100)).expect_err("no trees").to_string();
    assert!(error.contains("afterstate") && !error.contains('\n'), "{error}");
}
