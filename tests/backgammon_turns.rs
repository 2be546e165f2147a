//! Where a turn of backgammon can end, against OpenSpiel 2.0.2 (and gnubg 1.07, which agrees on every line): see
//! `tests/oracles/backgammon.py`.

use std::collections::BTreeSet;
use vecaz::game::backgammon::{BOARD_LEN, Backgammon, ROLLS, State};
use vecaz::game::{Game, History, Turn};

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
        Turn::Chance => {
            let mut own = state.board.map(|n| -n);
            own.reverse();
            found.insert(text(&own));
        }
        Turn::Over => {
            found.insert(text(&state.board));
        }
    }
}

#[test]
fn turns_end_where_open_spiel_and_gnubg_say() {
    let fixture = include_str!("fixtures/backgammon_turns.jsonl");
    let game = Backgammon::default();
    let mut checked = 0;
    for (line, mover) in fixture.lines().zip([0u8, 1].into_iter().cycle()) {
        let case: Case = serde_json::from_str(line).expect("a fixture line");
        let dice: Vec<u8> = case.roll.bytes().map(|c| c - b'0').collect();
        let roll = ROLLS.iter().position(|[low, high]| dice == [*high, *low]).expect("a roll");
        let mut state = State::to_roll(board(&case.board), mover).expect("a position");
        game.step(&mut state, roll as u16, History::default());
        let mut found = BTreeSet::new();
        ends(&game, state, mover, &mut found);
        let joined = found.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        assert_eq!(found.len(), case.ends, "{line}\n{joined}");
        assert_eq!(crc32fast::hash(joined.as_bytes()), case.crc32, "{line}\n{joined}");
        checked += 1;
    }
    assert_eq!(checked, 1200);
}
