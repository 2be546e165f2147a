//! Published problems: wins by consecutive fours. The tests try all moves by the rules to check that every reply is forced.

use super::*;
use crate::game::tests::legal;
use crate::view::draw;

/// A position, black `x` and white `o`, and the published solution, columns from the left and rows from below.
struct Problem {
    source: &'static str,
    board: &'static str,
    solution: &'static str,
}

const RENJU_PORTAL_3040: Problem = Problem {
    source: "https://renjuportal.com/puzzle/3040/",
    board: "
        . . . . . . . . . . . . . . .
        . . . . . . . . o . . x . . .
        . . . . x . o x . . . . . . .
        . . . . . . . x . . o . . . .
        . . . . . . . o x . . o . . .
        . . . . . . x x o . x . . . .
        . . . . . o . o o x . o . . .
        . . . . . . . x x o . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .",
    solution: "J12 K13 G9 F8 G6 H7 G8 G7 G12 G11 F12 I12 D12 E12 F10 E11 E10 D10 F11 D9 F14 F13 C11",
};

const SHADOWS_AND_FOG: Problem = Problem {
    source: "\"Shadows and fog\" by Tama Hoshiduki",
    board: "
        . x o . o x . x o o o o x o o
        . . . x . . o x x o . . o x x
        o . x . . . . . . . . . x . x
        x . . . o o . . . . . . . o o
        . . x . . . . . . . . . . x o
        o x o o . . . . . . . . . x x
        o x . x . . o . . . . x . . .
        x o o o . . . x . o . . . . o
        o o . . . . . . . . . . . . o
        o . . . . . o x o . . . . . o
        x . . . x . . . . o . . . . x
        . x . x . . . o x . . . . . .
        . . . . . . o . x x . . . . .
        x . . . . . . . . x . . o x .
        . . . x . . x o . . x . . . x",
    solution: "F6 G7 C3 B2 E1 D2 C1 F1 A1 B1 A4 A3 C4 E4 C5 C2 C6 C7 D5 B5 E6 B3 D6 B6 G8 F7 D7 D3 F5 G5 G4 H3 F8 E7
        I8 E8 F2 E3 F3 F4 H5 E2 H7 H9 L1 K2 M1 N1 I1 J1 I2 I5 H2 G2 K5 J4 L4 M3 M5 K3 L5 N5 L3 L2 L6 L7 M6 K4 J6
        I7 K6 N6 M4 J7 M7 M8 N8 O9 N7 N9 O2 N3 O3 O4 K7 N4 K9 K8 M9 L8 J9 I9 K10 L11 M10 L10 M12 M11 L13 K14 K13
        N13 K11 K12 J10 L12 I13 J13 J12 G15 I11 L14 H12 G13 H11 H13 G11 J11 E11 F11 I10 I12 G10 H10 E9 F10 F9 C9
        D11 E10 B11 A11 B13 B12 F13 G12 D13 E13 D12 D15 B14 A15 E14 C12 C14",
};

/// White to move, by renju's rules, in which black may not make two fours at once.
const RENJU_PORTAL_2990: Problem = Problem {
    source: "https://renjuportal.com/puzzle/2990/",
    board: "
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . o . . .
        . . . . . . . . . . x . . . .
        . . . . . . . . . o . o x . .
        . . . . . . . . o . . . x . .
        . . . . . . . o o x . o . . .
        . . . . . . x o x x . . x . .
        . . . . . o x x . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .
        . . . . . . . . . . . . . . .",
    solution: "L13 L11 K12 J11 I12 H12 I13 I14 H14",
};

fn game(rule: Rule) -> Gomoku {
    Gomoku { rule, ..Gomoku::default() }
}

/// Plays the stones in the order of the board, in which no five occurs.
fn start(game: &Gomoku, problem: &Problem) -> State {
    let marks: Vec<char> = problem.board.chars().filter(|c| !c.is_whitespace()).collect();
    assert_eq!(marks.len(), 225, "{}", problem.source);
    let cells =
        |mark: char| -> Vec<u16> { (0..225).filter(|&cell| marks[usize::from(cell)] == mark).collect() };
    let stones = [cells('x'), cells('o')];
    let mut s = game.init();
    for ply in 0..stones[0].len() + stones[1].len() {
        game.step(&mut s, stones[ply % 2][ply / 2], History::default());
        assert_eq!(s.outcome, 0, "{}", problem.source);
    }
    s
}

/// The cells of a solution. Published rows are counted from below, ours from the top.
fn moves(problem: &Problem) -> Vec<u16> {
    let cell = |name: &str| {
        let row: u16 = name[1..].parse().expect("a row");
        (15 - row) * 15 + u16::from(name.as_bytes()[0] - b'A')
    };
    problem.solution.split_whitespace().map(cell).collect()
}

fn after(game: &Gomoku, s: &State, cell: u16) -> State {
    let mut next = *s;
    game.step(&mut next, cell, History::default());
    next
}

/// The moves with which the player to move wins at once.
fn winning(game: &Gomoku, s: &State) -> Vec<u16> {
    let Turn::Player(player) = game.turn(s) else { return Vec::new() };
    legal(game, s).into_iter().filter(|&cell| after(game, s, cell).outcome == player + 1).collect()
}

/// The replies after which the opponent cannot win at once; None if a reply itself wins.
fn saving(game: &Gomoku, s: &State) -> Option<Vec<u16>> {
    if !winning(game, s).is_empty() {
        return None;
    }
    Some(legal(game, s).into_iter().filter(|&cell| winning(game, &after(game, s, cell)).is_empty()).collect())
}

/// Plays a solution and returns the replies that save its last position: none if it wins. Before that every four must
/// leave the published reply and no other.
fn replies_left(game: &Gomoku, problem: &Problem) -> Option<Vec<u16>> {
    let mut s = start(game, problem);
    let moves = moves(problem);
    for pair in moves.chunks(2) {
        s = after(game, &s, pair[0]);
        if let [attack, reply] = pair {
            assert_eq!(
                saving(game, &s),
                Some(vec![*reply]),
                "{} {attack} {}",
                problem.source,
                draw(game, &s)
            );
            s = after(game, &s, *reply);
        }
    }
    assert_eq!((s.outcome, moves.len() % 2), (0, 1), "the solution ends with an attack");
    saving(game, &s)
}

#[test]
fn published_wins_by_fours_leave_one_reply_each_and_none_at_last() {
    // In either rule: no row of six comes up in them.
    for rule in [Rule::Freestyle, Rule::Exact] {
        for (problem, plies) in [(&RENJU_PORTAL_3040, 23), (&SHADOWS_AND_FOG, 145)] {
            assert_eq!(moves(problem).len(), plies);
            assert_eq!(replies_left(&game(rule), problem), Some(vec![]), "{}", problem.source);
        }
    }
}

#[test]
fn a_win_that_needs_renjus_forbidden_moves_is_none_here() {
    // The one reply left, K11, is a double four, which renju forbids black; gomoku forbids nothing.
    let k11 = 4 * 15 + 10;
    assert_eq!(replies_left(&game(Rule::Freestyle), &RENJU_PORTAL_2990), Some(vec![k11]));
}

#[test]
fn a_straight_four_is_lost_and_a_closed_one_is_not() {
    // Threats as Allis, van den Herik and Huntjens define them (Go-Moku and Threat-Space Search, 1994): a straight four
    // can be completed at either end, a four at one place only, a three that is left alone becomes a straight four.
    let play = |rule, names: &str| {
        let game = game(rule);
        let mut s = game.init();
        for name in names.split_whitespace() {
            let cell = game.parse_action(&s, History::default(), name).expect(name);
            s = after(&game, &s, cell);
        }
        saving(&game, &s).expect("white wins nowhere").len()
    };
    assert_eq!(play(Rule::Freestyle, "f8 a1 g8 c1 h8 e1 i8"), 0);
    assert_eq!(play(Rule::Freestyle, "f8 a1 g8 c1 h8 e8 i8"), 1);
    assert_eq!(play(Rule::Freestyle, "a8 a1 b8 c1 c8 e1 d8"), 1);
    // A stone beyond one end turns that end into six in a row: of no use where five must be exact.
    let beyond = "d8 a1 f8 c1 g8 e1 h8 g1 i8";
    assert_eq!((play(Rule::Freestyle, beyond), play(Rule::Exact, beyond)), (0, 1));
}

#[test]
fn swap2_plays_on_by_the_rule_of_rows() {
    // Black's row from d8 ends at h8; with i8 from the opening it has six.
    for (rule, opening, outcome) in [
        (Rule::Exact, "d8 a1 e8 white b3 f8 c5 g8 e1 h8", 1),
        (Rule::Exact, "d8 a1 i8 black c5 e8 g5 f8 e1 g8 b3 h8", 0),
        (Rule::Freestyle, "d8 a1 i8 black c5 e8 g5 f8 e1 g8 b3 h8", 2),
    ] {
        let game = Gomoku { rule, opening: Opening::Swap2, ..Gomoku::default() };
        let mut s = game.init();
        for name in opening.split_whitespace() {
            let action = game.parse_action(&s, History::default(), name).expect(name);
            assert_eq!(s.outcome, 0, "{opening}");
            assert!(legal(&game, &s).contains(&action), "{opening} {name}");
            game.step(&mut s, action, History::default());
        }
        assert_eq!(s.outcome, outcome, "{rule:?} {opening} {}", draw(&game, &s));
    }
}
