//! Tests of the rules against walks along the lines of the board.

use super::*;
use crate::device_struct::DeviceType;
use crate::game::check_device_header;
use crate::game::tests::{assert_refused, legal, play, play_on};
use crate::rng::{Key, Purpose};

#[test]
fn generated_header_is_up_to_date() {
    check_device_header::<Othello>("", &[device_constants(), State::definition()]);
}

fn othello(size: u32, end: End) -> Othello {
    Othello { size, end, ..Othello::default() }
}

fn perft(game: &Othello, s: &State, depth: u32) -> u64 {
    if game.turn(s) == Turn::Over {
        return 1;
    }
    let actions = legal(game, s);
    if depth == 1 {
        return actions.len() as u64;
    }
    let below = |&action: &u16| {
        let mut next = *s;
        game.step(&mut next, action, History::default());
        perft(game, &next, depth - 1)
    };
    actions.iter().map(below).sum()
}

#[test]
fn perft_is_as_published() {
    let game = othello(8, End::NoMove);
    let published = [4, 12, 56, 244, 1_396, 8_200, 55_092, 390_216, 3_005_288];
    for (depth, leaves) in (1..).zip(published) {
        assert_eq!(perft(&game, &game.init(), depth), leaves, "depth {depth}");
    }
}

/// The discs a move turns over, found by walking from the cell; no bitboards.
fn walk(side: i32, board: &[i8], cell: usize, colour: i8) -> Vec<usize> {
    let mut turned = Vec::new();
    if board[cell] != 0 {
        return turned;
    }
    for (down, right) in (-1..=1).flat_map(|down| (-1..=1).map(move |right| (down, right))) {
        let (mut row, mut column) = (cell as i32 / side + down, cell as i32 % side + right);
        let mut run = Vec::new();
        while (down, right) != (0, 0) && (0..side).contains(&row) && (0..side).contains(&column) {
            let at = (row * side + column) as usize;
            if board[at] == -colour {
                run.push(at);
            } else {
                turned.extend(run.drain(..).filter(|_| board[at] == colour));
                break;
            }
            row += down;
            column += right;
        }
    }
    turned
}

#[test]
fn random_games_agree_with_rules_that_walk_the_board() {
    for (size, end, seed) in
        (0..150).flat_map(|seed| [(6, End::NoMove, seed), (8, End::NoMove, seed), (6, End::TwoPasses, seed)])
    {
        let game = othello(size, end);
        let cells = (size * size) as usize;
        let mut s = game.init();
        let mut board = vec![0i8; cells];
        let half = (size / 2) as usize;
        let centre = (half - 1) * size as usize + half - 1;
        for (offset, colour) in [(0, -1), (1, 1), (size as usize, 1), (size as usize + 1, -1)] {
            board[centre + offset] = colour;
        }
        let (mut colour, mut passes) = (1, 0);
        let mut rng = Key::new(seed, Purpose::Evaluation).with(u64::from(size)).stream();
        loop {
            let moves = |colour| {
                let turns = |&cell: &usize| !walk(size as i32, &board, cell, colour).is_empty();
                (0..cells).filter(turns).map(|cell| cell as u16).collect::<Vec<_>>()
            };
            let (own, other) = (moves(colour), moves(-colour));
            let one_colour = !board.contains(&1) || !board.contains(&-1);
            let over = match end {
                End::NoMove => own.is_empty() && other.is_empty(),
                End::TwoPasses => !board.contains(&0) || one_colour || passes == 2,
            };
            assert_eq!(game.turn(&s) == Turn::Over, over);
            if over {
                break;
            }
            let expected = if own.is_empty() { vec![cells as u16] } else { own };
            assert_eq!(legal(&game, &s), expected);
            assert!(expected.len() <= game.sizes().max_legal);
            let action = expected[rng.below(expected.len())];
            game.step(&mut s, action, History::default());
            if usize::from(action) < cells {
                let turned = walk(size as i32, &board, usize::from(action), colour);
                turned.iter().for_each(|&cell| board[cell] = colour);
                board[usize::from(action)] = colour;
                passes = 0;
            } else {
                passes += 1;
            }
            colour = -colour;
        }
        let lead: i32 = board.iter().map(|&disc| i32::from(disc)).sum();
        let mut returns = [9.0; 2];
        game.returns(&s, &mut returns);
        assert_eq!(returns, [lead.signum() as f32, -lead.signum() as f32]);
    }
}

#[test]
fn the_shortest_game_ends_with_no_white_disc() {
    let game = othello(8, End::NoMove);
    let s = play(&game, "e6 f4 e3 f6 g5 d6 e7 f5 c5");
    assert_eq!(game.turn(&s), Turn::Over);
    assert_eq!(game.scores(&s), [13.0, 0.0]);
}

#[test]
fn the_end_without_moves_is_at_once_or_after_two_passes() {
    // Black a1, white b1 and h8; c1 leaves neither player a move.
    let discs = [1, 1 << 1 | 1 << 63];
    for (end, passes) in [(End::NoMove, ""), (End::TwoPasses, "pass pass")] {
        let game = othello(8, end);
        let moves = game.moves(discs[0], discs[1]);
        let mut s = State { discs, moves, to_play: 0, passed: 0, over: 0 };
        play_on(&game, &mut s, "C1");
        for pass in passes.split_whitespace() {
            assert_eq!((legal(&game, &s), game.turn(&s) == Turn::Over), (vec![64], false));
            play_on(&game, &mut s, pass);
        }
        assert_eq!(game.turn(&s), Turn::Over);
        assert_eq!(game.scores(&s), [3.0, 1.0]);
    }
}

#[test]
fn bad_options_name_the_key() {
    assert_refused::<Othello>(&[
        ("size = 7", "game.size: got 7, expected 6 or 8"),
        ("end = 'never'", "game.end: got \"never\", expected no_move or two_passes"),
        ("side = 8", "game.side: no such key; the nearest is game.size"),
        ("size = -8", "game.size: got -8, expected 6 or 8"),
    ]);
}

#[test]
fn both_players_see_the_legal_cells_of_each() {
    for size in [6, 8] {
        let game = Othello { size, network_sees: Sight::Moves, ..Othello::default() };
        let cells = (size * size) as usize;
        let mut rng = Key::new(u64::from(size), Purpose::Evaluation).stream();
        let mut s = game.init();
        while let Turn::Player(player) = game.turn(&s) {
            let planes = |player: u8| {
                let mut planes = vec![f32::NAN; 4 * cells];
                game.observe(&s, player, &mut planes);
                planes
            };
            let (mover, waiting) = (planes(player), planes(1 - player));
            let seen: Vec<u16> =
                (0..cells).filter(|cell| mover[2 * cells + cell] == 1.0).map(|cell| cell as u16).collect();
            let actions = legal(&game, &s);
            let expected = if actions[0] == game.pass() { &[][..] } else { &actions };
            assert_eq!(seen, expected, "{s:?}");
            assert_eq!(mover[2 * cells..3 * cells], waiting[3 * cells..]);
            assert_eq!(mover[3 * cells..], waiting[2 * cells..3 * cells]);
            game.step(&mut s, actions[rng.below(actions.len())], History::default());
        }
    }
}
