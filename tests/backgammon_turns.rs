//! Where a turn of backgammon can end, against OpenSpiel 2.0.2 (and gnubg 1.07, which agrees on every line): see
//! `tests/oracles/backgammon.py`.

use std::collections::BTreeSet;
use vecaz::game::backgammon::{BOARD_LEN, Backgammon, ROLLS, State};
use vecaz::game::{Duplicates, Game, History, MAX_TURN_POSITIONS, Turn, WholeTurns};

#[derive(serde::Deserialize)]
struct Case {
    board: String,
    roll: String,
    ends: usize,
    crc32: u32,
}

fn board(text: &str) -> [i8; BOARD_LEN] {
    let count = |c: u8| match c {
        b'a'..=b'o' => (c - b'a') as i8 + 1,
        b'A'..=b'O' => -((c - b'A') as i8 + 1),
        _ => 0,
    };
    std::array::from_fn(|index| count(text.as_bytes()[index]))
}

fn text(board: &[i8; BOARD_LEN]) -> String {
    let letter = |&n: &i8| match n {
        0 => '.',
        1.. => (b'a' + n as u8 - 1) as char,
        _ => (b'A' + n.unsigned_abs() - 1) as char,
    };
    board.iter().map(letter).collect()
}

/// Plays every line of the turn out; a finished turn has been turned around to the other player's viewpoint.
fn ends(game: &Backgammon, state: State, mover: u8, found: &mut BTreeSet<String>) {
    match game.turn(&state) {
        Turn::Player(p) => {
            assert_eq!(p, mover, "a turn passes through a roll");
            let mut legal = [0; 30];
            let n = game.legal(&state, History::default(), &mut legal);
            for &action in &legal[..n] {
                let mut after = state;
                game.step(&mut after, action, History::default());
                ends(game, after, mover, found);
            }
        }
        Turn::Chance | Turn::Over => {
            found.insert(seen_by_mover(game, &state));
        }
    }
}

/// The position of a line after its roll.
fn rolled(game: &Backgammon, case: &Case, mover: u8) -> State {
    let dice: Vec<u8> = case.roll.bytes().map(|c| c - b'0').collect();
    let roll = ROLLS.iter().position(|[low, high]| dice == [*high, *low]).expect("a roll");
    let mut state = State::to_roll(board(&case.board), mover).expect("a position");
    game.step(&mut state, roll as u16, History::default());
    state
}

/// A finished turn's board, as the player saw it who made it.
fn seen_by_mover(game: &Backgammon, state: &State) -> String {
    match game.turn(state) {
        Turn::Over => text(&state.board),
        _ => {
            let mut own = state.board.map(|n| -n);
            own.reverse();
            text(&own)
        }
    }
}

/// Each end once: duplicates are joined.
#[test]
fn whole_turns_end_where_open_spiel_and_gnubg_say() {
    let fixture = include_str!("fixtures/backgammon_turns.jsonl");
    let game = Backgammon::default();
    let mut turns = WholeTurns::new(0, Duplicates::Joined);
    let mut legal = [0; 30];
    for (line, mover) in fixture.lines().zip([0u8, 1].into_iter().cycle()) {
        let case: Case = serde_json::from_str(line).expect("a fixture line");
        let state = rolled(&game, &case, mover);
        turns.clear();
        let turn = game.whole_turn(&state, History::default(), &mut turns, &mut legal).expect("short enough");
        let ends = turns.positions()[turn.positions.clone()].iter();
        let mut found: Vec<String> = ends
            .filter(|state| game.turn(state) != Turn::Player(mover))
            .map(|state| seen_by_mover(&game, state))
            .collect();
        assert_eq!((found.len(), turn.player), (case.ends, mover), "{line}");
        found.sort_unstable();
        assert_eq!(crc32fast::hash(found.join("\n").as_bytes()), case.crc32, "{line}");
    }
}

/// The positions after one more ply of player 0.
fn next(game: &Backgammon, state: &State) -> Vec<Vec<u8>> {
    if game.turn(state) != Turn::Player(0) {
        return Vec::new();
    }
    let mut legal = [0; 30];
    let count = game.legal(state, History::default(), &mut legal);
    let after = |&action: &u16| {
        let mut after = *state;
        game.step(&mut after, action, History::default());
        bytemuck::bytes_of(&after).to_vec()
    };
    legal[..count].iter().map(after).collect()
}

/// Plies lead from each position to a later one, and one of them to every position but the first.
#[test]
fn plies_of_a_whole_turn_are_those_of_the_rules() {
    let game = Backgammon::default();
    let mut turns = WholeTurns::new(0, Duplicates::Joined);
    let (mut legal, mut checked) = ([0; 30], 0);
    // 15 checkers apart, each free to move four times.
    let mut apart = [0; BOARD_LEN];
    apart[2..17].fill(1);
    apart[26] = -15;
    let mut state = State::to_roll(apart, 0).expect("a position");
    game.step(&mut state, 0, History::default());
    let turn = game.whole_turn(&state, History::default(), &mut turns, &mut legal).expect("short enough");
    let after_each_ply = std::iter::successors(Some(vec![state]), |before| {
        let after: BTreeSet<Vec<u8>> = before.iter().flat_map(|state| next(&game, state)).collect();
        (!after.is_empty()).then(|| after.iter().map(|bytes| bytemuck::pod_read_unaligned(bytes)).collect())
    });
    let expected: Vec<usize> = after_each_ply.map(|states| states.len()).collect();
    assert_eq!((expected.len(), turn.positions.len()), (5, expected.iter().sum()), "{expected:?}");
    assert!((2000..=MAX_TURN_POSITIONS).contains(&turn.positions.len()));
    let mut reached = vec![false; turn.positions.len()];
    for ply in &turns.plies()[turn.plies.clone()] {
        let mut after = turns.positions()[ply.from as usize];
        let count = game.legal(&after, History::default(), &mut legal);
        assert!(legal[..count].contains(&ply.action) && ply.from < ply.to);
        game.step(&mut after, ply.action, History::default());
        assert_eq!(after, turns.positions()[ply.to as usize]);
        reached[ply.to as usize] = true;
        checked += 1;
    }
    assert!(reached[1..].iter().all(|&reached| reached) && checked > turn.positions.len(), "{checked}");
}

#[test]
fn turns_end_where_open_spiel_and_gnubg_say() {
    let fixture = include_str!("fixtures/backgammon_turns.jsonl");
    let game = Backgammon::default();
    let mut checked = 0;
    for (line, mover) in fixture.lines().zip([0u8, 1].into_iter().cycle()) {
        let case: Case = serde_json::from_str(line).expect("a fixture line");
        let state = rolled(&game, &case, mover);
        let mut found = BTreeSet::new();
        ends(&game, state, mover, &mut found);
        let joined = found.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        assert_eq!(found.len(), case.ends, "{line}\n{joined}");
        assert_eq!(crc32fast::hash(joined.as_bytes()), case.crc32, "{line}\n{joined}");
        checked += 1;
    }
    assert_eq!(checked, 1200);
}
