//! Tests of the rules against lines of the board as text, and of positions by hand.

use super::*;
use crate::device_struct::DeviceType;
use crate::game::check_device_header;
use crate::game::tests::{assert_refused, legal, play};
use crate::rng::{Key, Purpose};
use crate::view::draw;

#[test]
fn generated_header_is_up_to_date() {
    let definitions = [device_constants(), Phase::definition(), State::definition()];
    check_device_header::<Gomoku>(board::CELLS_PREAMBLE, &definitions);
}

fn gomoku(size: u32, rule: Rule) -> Gomoku {
    Gomoku { size, rule, ..Gomoku::default() }
}

/// Every row, column and diagonal of the board as text, read for rows of five.
fn winner_by_text(side: i32, s: &State, rule: Rule) -> Option<char> {
    let mark = |row: i32, column: i32| {
        let cell = (row * side + column) as usize;
        [(0, 'X'), (1, 'O')].into_iter().find(|&(c, _)| s.stones[c].contains(cell)).map_or('.', |(_, m)| m)
    };
    let inside = |&(row, column): &(i32, i32)| (0..side).contains(&row) && (0..side).contains(&column);
    let read = |cell_at: &dyn Fn(i32) -> (i32, i32)| -> String {
        (-side..2 * side).map(cell_at).filter(inside).map(|(row, column)| mark(row, column)).collect()
    };
    let lines = (-side..2 * side)
        .flat_map(|k| [read(&|i| (k, i)), read(&|i| (i, k)), read(&|i| (i, i + k)), read(&|i| (i, k - i))]);
    let lines: Vec<String> = lines.collect();
    ['X', 'O'].into_iter().find(|&colour| {
        let mut runs = lines.iter().flat_map(|line| line.split(|c| c != colour)).map(str::len);
        match rule {
            Rule::Freestyle => runs.any(|length| length >= 5),
            Rule::Exact => runs.any(|length| length == 5),
        }
    })
}

#[test]
fn random_games_end_where_the_text_of_a_line_shows_it() {
    let mut ends = [0; 4];
    for (size, games) in [(5, 60), (6, 60), (7, 40), (9, 10), (15, 4), (19, 2)] {
        for (seed, rule) in (0..games).flat_map(|seed| [(seed, Rule::Freestyle), (seed, Rule::Exact)]) {
            let game = gomoku(size, rule);
            let mut rng = Key::new(seed, Purpose::Evaluation).with(u64::from(size)).stream();
            let mut s = game.init();
            while game.turn(&s) != Turn::Over {
                let actions = legal(&game, &s);
                game.step(&mut s, actions[rng.below(actions.len())], History::default());
                let expected = match winner_by_text(size as i32, &s, rule) {
                    Some('X') => 1,
                    Some(_) => 2,
                    None if s.placed == size * size => DRAW,
                    None => 0,
                };
                assert_eq!(s.outcome, expected, "{}", draw(&game, &s));
            }
            ends[usize::from(s.outcome)] += 1;
        }
    }
    assert!(ends[1..].iter().all(|&n| n > 20), "all three results were met: {ends:?}");
}

#[test]
fn six_in_a_row_win_only_in_freestyle() {
    let moves = "a1 a3 b1 b3 c1 c3 e1 e3 f1 f3 d1";
    assert_eq!(play(&gomoku(15, Rule::Freestyle), moves).outcome, 1);
    assert_eq!(play(&gomoku(15, Rule::Exact), moves).outcome, 0);
    // The other player may then still win with five.
    assert_eq!(play(&gomoku(15, Rule::Exact), &format!("{moves} h8 o15 d3")).outcome, 0);
    assert_eq!(play(&gomoku(15, Rule::Exact), "a1 a3 b1 b3 c1 c3 e1 e3 f1 h9 d1 d3").outcome, 2);
    // A stone in a row of six and in one of five wins.
    let both = "a1 a15 b1 b15 c1 c15 e1 f15 f1 g15 d2 h15 d3 i15 d4 k15 d5 l15 d1";
    assert_eq!(play(&gomoku(15, Rule::Exact), both).outcome, 1);
}

#[test]
fn rows_do_not_go_round_the_board() {
    assert_eq!(play(&gomoku(5, Rule::Freestyle), "c1 a3 d1 b3 e1 c3 a2 e4 b2").outcome, 0);
    assert_eq!(play(&gomoku(5, Rule::Freestyle), "e1 a1 d2 b1 c3 c1 b4 d1 a5").outcome, 1);
}

#[test]
fn a_full_board_without_five_is_a_draw() {
    let board = ["XXOXX", "OOXOO", "XXOXX", "OOXOO", "XOXOX"].concat();
    let cells =
        |mark: char| board.chars().enumerate().filter(move |&(_, c)| c == mark).map(|(cell, _)| cell as u16);
    let game = gomoku(5, Rule::Freestyle);
    let mut s = game.init();
    let mut white = cells('O');
    for black in cells('X') {
        assert_eq!(s.outcome, 0);
        game.step(&mut s, black, History::default());
        white.by_ref().take(1).for_each(|cell| game.step(&mut s, cell, History::default()));
    }
    assert_eq!((s.outcome, s.placed), (DRAW, 25));
    let mut returns = [9.0; 2];
    game.returns(&s, &mut returns);
    assert_eq!(returns, [0.0; 2]);
}

#[test]
fn swap2_gives_every_choice_its_colours_and_turns() {
    let game = Gomoku { opening: Opening::Swap2, ..Gomoku::default() };
    let turn_and_black = |names: &str| {
        let s = play(&game, names);
        (game.turn(&s), s.black)
    };
    let three = "h8 a1 h9";
    assert_eq!(legal(&game, &play(&game, three)), [225, 226, 227]);
    for (names, player) in [("", 0), ("h8", 0), ("h8 a1", 0), (three, 1)] {
        assert_eq!(turn_and_black(names).0, Turn::Player(player));
    }
    assert_eq!(turn_and_black(&format!("{three} black")), (Turn::Player(0), 1));
    assert_eq!(turn_and_black(&format!("{three} white")), (Turn::Player(1), 0));
    assert_eq!(turn_and_black(&format!("{three} more")).0, Turn::Player(1));
    assert_eq!(turn_and_black(&format!("{three} more a2")).0, Turn::Player(1));
    let five = format!("{three} more a2 h10");
    assert_eq!(legal(&game, &play(&game, &five)), [225, 226]);
    assert_eq!(turn_and_black(&five).0, Turn::Player(0));
    assert_eq!(turn_and_black(&format!("{five} black")), (Turn::Player(1), 0));
    assert_eq!(turn_and_black(&format!("{five} white")), (Turn::Player(0), 1));
    let s = play(&game, &five);
    assert_eq!(s.stones.map(|stones| stones.iter().count()), [3, 2]);
    // Player 0 took white; black's five (h8 to h12) is player 1's.
    let s = play(&game, &format!("{five} white b1 h11 b2 h12"));
    let mut returns = [9.0; 2];
    game.returns(&s, &mut returns);
    assert_eq!((game.turn(&s), returns), (Turn::Over, [-1.0, 1.0]));
}

#[test]
fn swap2_shows_the_phase_and_the_colour_to_be_placed() {
    let game = Gomoku { size: 5, opening: Opening::Swap2, ..Gomoku::default() };
    // The sum of each plane.
    let planes = |names: &str, player: u8| -> Vec<f32> {
        let mut out = [9.0; 150];
        game.observe(&play(&game, names), player, &mut out);
        out.chunks(25).map(|plane| plane.iter().sum::<f32>()).collect()
    };
    assert_eq!(planes("", 0), [0., 0., 25., 0., 0., 0.]);
    assert_eq!(planes("a1", 0), [0., 1., 25., 0., 0., 0.]);
    assert_eq!(planes("a1 b1 c1", 1), [1., 2., 0., 25., 0., 0.]);
    assert_eq!(planes("a1 b1 c1", 0), [1., 2., 0., -25., 0., 0.]);
    assert_eq!(planes("a1 b1 c1 more d2", 1), [2., 2., 0., 0., 25., 0.]);
    assert_eq!(planes("a1 b1 c1 more d2 d3", 0), [2., 3., 0., 0., 0., 25.]);
    assert_eq!(planes("a1 b1 c1 black", 0), [1., 2., 0., 0., 0., 0.]);
    assert_eq!(planes("a1 b1 c1 black d3", 1), [2., 2., 0., 0., 0., 0.]);
    assert_eq!(planes("a1 b1 c1 black d3 d4", 0), [2., 3., 0., 0., 0., 0.]);
}

/// The owner of each colour's stones is the player who has it, whose colour is told beside them.
#[test]
fn swap2_stones_belong_to_the_player_of_their_colour() {
    let game = Gomoku { size: 5, opening: Opening::Swap2, ..Gomoku::default() };
    for (names, owners) in [("a1 b1 c1 white", [Some(0), Some(1)]), ("a1 b1 c1 black", [Some(1), Some(0)])] {
        let view = game.view(&play(&game, names), Viewer::All);
        let Board::Grid(grid) = view.board else { panic!("a grid") };
        assert_eq!([grid.pieces[0].owner, grid.pieces[1].owner], owners, "{names}");
        assert_eq!(view.colours[usize::from(owners[0].expect("a player"))], Colour::Black, "{names}");
    }
}

#[test]
fn bad_options_name_the_key() {
    assert_refused::<Gomoku>(&[
        ("size = 4", "game.size: got 4, expected a whole number from 5 to 19"),
        ("rule = 'renju'", "game.rule: got \"renju\", expected freestyle or exact"),
        ("opening = 'swap'", "game.opening: got \"swap\", expected none or swap2"),
    ]);
}

/// Empty cells of five cells in a line, without a stone of `other` and with `count` of `own`, cell by cell.
fn threats_by_cell(side: i32, own: &Cells, other: &Cells, count: usize) -> Vec<f32> {
    let mut threats = vec![0.0; (side * side) as usize];
    for ((row, column), (down, right)) in (0..side)
        .flat_map(|row| (0..side).map(move |column| (row, column)))
        .flat_map(|cell| DIRECTIONS.map(|direction| (cell, direction)))
    {
        let five = [0, 1, 2, 3, 4].map(|i| (row + i * down, column + i * right));
        if five.iter().any(|&(r, c)| !(0..side).contains(&r) || !(0..side).contains(&c)) {
            continue;
        }
        let five = five.map(|(r, c)| (r * side + c) as usize);
        let stones = five.iter().filter(|&&cell| own.contains(cell)).count();
        if stones == count && !five.iter().any(|&cell| other.contains(cell)) {
            five.iter().filter(|&&cell| !own.contains(cell)).for_each(|&cell| threats[cell] = 1.0);
        }
    }
    threats
}

#[test]
fn threats_are_those_of_every_five_cells() {
    let mut seen = [0; 2];
    for (size, opening) in
        [(5, Opening::None), (8, Opening::Swap2), (15, Opening::None), (19, Opening::Swap2)]
    {
        let game = Gomoku { size, opening, network_sees: Sight::Threats, ..Gomoku::default() };
        let cells = (size * size) as usize;
        let mut rng = Key::new(u64::from(size), Purpose::Evaluation).stream();
        let mut s = game.init();
        while let Turn::Player(player) = game.turn(&s) {
            let mut planes = vec![f32::NAN; game.sizes().obs.len()];
            game.observe(&s, player, &mut planes);
            let colour = game.first_colour(&s, player);
            let of_both = planes[planes.len() - THREAT_PLANES * cells..].chunks_exact(cells);
            let expected = [(colour, 3), (colour, 4), (1 - colour, 3), (1 - colour, 4)];
            for (plane, (of, count)) in of_both.zip(expected) {
                assert_eq!(plane, threats_by_cell(size as i32, &s.stones[of], &s.stones[1 - of], count));
                seen[count - 3] += plane.iter().filter(|&&cell| cell == 1.0).count();
            }
            let actions = legal(&game, &s);
            game.step(&mut s, actions[rng.below(actions.len())], History::default());
        }
    }
    assert!(seen.iter().all(|&cells| cells > 50), "{seen:?}");
}
