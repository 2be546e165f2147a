//! Tests of the rules, of links against merged labels, and of the value of small boards.

use super::*;
use crate::device_struct::DeviceType;
use crate::game::check_device_header;
use crate::game::tests::{assert_refused, legal, play};
use crate::rng::{Key, Purpose};
use std::collections::HashMap;

#[test]
fn generated_header_is_up_to_date() {
    check_device_header::<Hex>(board::CELLS_PREAMBLE, &[device_constants(), State::definition()]);
}

#[test]
fn the_first_player_connects_top_and_bottom_the_second_left_and_right() {
    let game = Hex { size: 3, ..Hex::default() };
    assert_eq!(play(&game, "b1 a1 b2 c3 b3").outcome, 1);
    assert_eq!(play(&game, "a1 a2 b1 b2 c3 c2").outcome, 2);
    // Down-left is adjacent, down-right is not.
    assert_eq!(play(&game, "c1 a1 b2 c3 a3").outcome, 1);
    assert_eq!(play(&game, "a1 c1 b2 a3 c3").outcome, 0);
    // The last column does not touch the first.
    let game = Hex { size: 4, ..Hex::default() };
    assert_eq!(play(&game, "d1 b1 a2 c1 a3 b4 a4").outcome, 0);
    assert_eq!(play(&game, "a1 b1 a2 c1 d2 b4 d3 c4 d4").outcome, 0);
}

/// Stones connected to the player's first border, by repeated merging of cell labels.
fn linked_by_labels(side: usize, stones: &Cells, player: usize) -> Cells {
    let mut label: Vec<usize> = (0..side * side).collect();
    let merge = |label: &mut Vec<usize>, a: usize, b: usize| {
        let (from, to) = (label[a].max(label[b]), label[a].min(label[b]));
        label.iter_mut().filter(|x| **x == from).for_each(|x| *x = to);
    };
    for cell in stones.iter() {
        let (row, column) = (cell / side, cell % side);
        let right = (column + 1 < side).then_some(cell + 1);
        let below = (row + 1 < side).then_some(cell + side);
        let below_left = (row + 1 < side && column > 0).then(|| cell + side - 1);
        for other in [right, below, below_left].into_iter().flatten() {
            if stones.contains(other) {
                merge(&mut label, cell, other);
            }
        }
    }
    let on_border = |&cell: &usize| if player == 0 { cell < side } else { cell % side == 0 };
    let roots: Vec<usize> = stones.iter().filter(on_border).map(|cell| label[cell]).collect();
    let mut linked = Cells::EMPTY;
    stones.iter().filter(|&cell| roots.contains(&label[cell])).for_each(|cell| linked.insert(cell));
    linked
}

#[test]
fn links_agree_with_merged_labels_in_random_games() {
    for size in 3..=19u32 {
        let game = Hex { size, swap: size % 2 == 0, ..Hex::default() };
        let side = size as usize;
        for seed in 0..4 {
            let mut rng = Key::new(seed, Purpose::Evaluation).with(u64::from(size)).stream();
            let mut s = game.init();
            while game.turn(&s) != Turn::Over {
                let actions = legal(&game, &s);
                game.step(&mut s, actions[rng.below(actions.len())], History::default());
                let [top, left] = [0, 1].map(|player| linked_by_labels(side, &s.stones[player], player));
                assert_eq!(s.linked, top | left);
                let outcome = if top.iter().any(|cell| cell / side == side - 1) {
                    1
                } else if left.iter().any(|cell| cell % side == side - 1) {
                    2
                } else {
                    0
                };
                assert_eq!(s.outcome, outcome);
            }
        }
    }
}

#[test]
fn the_swap_takes_the_stone_over_at_the_mirrored_cell() {
    let game = Hex { size: 5, swap: true, ..Hex::default() };
    let s = play(&game, "b4");
    let actions = legal(&game, &s);
    assert_eq!((actions.len(), actions[24]), (25, 25));
    let s = play(&game, "b4 Swap");
    assert_eq!((s.stones[0], s.stones[1].iter().collect::<Vec<_>>()), (Cells::EMPTY, vec![8]));
    assert_eq!(game.turn(&s), Turn::Player(0));
    assert!(!legal(&game, &s).contains(&25));
    // A stone swapped onto the left border is linked to it.
    assert_eq!(play(&game, "c1 swap").linked.iter().collect::<Vec<_>>(), [10]);
    assert_eq!(Hex { size: 5, ..Hex::default() }.sizes().num_actions, 25);
}

#[test]
fn the_mover_sees_own_stones_and_own_borders_first() {
    let game = Hex { size: 3, swap: true, ..Hex::default() };
    let s = play(&game, "b1");
    let top_bottom = [1., 1., 1., 0., 0., 0., 1., 1., 1.];
    let left_right = [1., 0., 1., 1., 0., 1., 1., 0., 1.];
    let stone = [0., 1., 0., 0., 0., 0., 0., 0., 0.];
    let mut out = [9.0; 45];
    game.observe(&s, 1, &mut out);
    assert_eq!(out, [[0.; 9], stone, left_right, top_bottom, [1.; 9]].concat()[..]);
    game.observe(&s, 0, &mut out);
    assert_eq!(out, [stone, [0.; 9], top_bottom, left_right, [1.; 9]].concat()[..]);
}

fn solve(game: &Hex, s: &State, known: &mut HashMap<Vec<u8>, u8>) -> u8 {
    if let Turn::Player(player) = game.turn(s) {
        let key = bytemuck::bytes_of(s).to_vec();
        if let Some(&winner) = known.get(&key) {
            return winner;
        }
        let wins = |&action: &u16| {
            let mut next = *s;
            game.step(&mut next, action, History::default());
            solve(game, &next, known) == player
        };
        let winner = if legal(game, s).iter().any(wins) { player } else { 1 - player };
        known.insert(key, winner);
        return winner;
    }
    s.outcome as u8 - 1
}

#[test]
fn the_first_player_wins_but_not_under_the_pie_rule() {
    for (swap, winner) in [(false, 0), (true, 1)] {
        let game = Hex { size: 3, swap, ..Hex::default() };
        assert_eq!(solve(&game, &game.init(), &mut HashMap::new()), winner);
    }
}

#[test]
fn bad_options_name_the_key() {
    assert_refused::<Hex>(&[
        ("size = 2", "game.size: got 2, expected a whole number from 3 to 19"),
        ("size = 20", "game.size: got 20, expected a whole number from 3 to 19"),
        ("swap = 'pie'", "game.swap: got \"pie\", expected true or false"),
    ]);
}

/// The cells around one, in a circle: each is a neighbour of the next.
const AROUND: [(i32, i32); 6] = [(-1, 0), (-1, 1), (0, 1), (1, 0), (1, -1), (0, -1)];

/// Stones of `player` that neighbours and bridges link to the border beyond which is the row or column `outside`, stone by stone.
fn linked_by_steps(side: i32, stones: &[Cells; 2], player: usize, outside: i32) -> Vec<f32> {
    let inside = |(row, column): (i32, i32)| (0..side).contains(&row) && (0..side).contains(&column);
    let has = |set: &Cells, (row, column)| set.contains((row * side + column) as usize);
    let is_own = |cell| inside(cell) && has(&stones[player], cell);
    let is_empty = |cell| inside(cell) && !has(&(stones[0] | stones[1]), cell);
    let mut reached: Vec<(i32, i32)> =
        (-1..=side).map(|i| if player == 0 { (outside, i) } else { (i, outside) }).collect();
    let mut next = 0;
    while let Some(&(row, column)) = reached.get(next) {
        for (i, &a) in AROUND.iter().enumerate() {
            let b = AROUND[(i + 1) % 6];
            let [near, other] = [a, b].map(|(down, right)| (row + down, column + right));
            let far = (row + a.0 + b.0, column + a.1 + b.1);
            let bridges = is_empty(near) && is_empty(other);
            for cell in [Some(near), bridges.then_some(far)].into_iter().flatten() {
                if is_own(cell) && !reached.contains(&cell) {
                    reached.push(cell);
                }
            }
        }
        next += 1;
    }
    (0..side * side).map(|cell| f32::from(u8::from(reached.contains(&(cell / side, cell % side))))).collect()
}

#[test]
fn links_are_those_found_step_by_step() {
    let mut seen = 0;
    for (size, swap) in [(3, false), (5, true), (11, false), (19, true)] {
        let game = Hex { size, swap, network_sees: Sight::Links };
        let (side, cells) = (size as i32, (size * size) as usize);
        let mut rng = Key::new(u64::from(size), Purpose::Evaluation).stream();
        let mut s = game.init();
        while let Turn::Player(player) = game.turn(&s) {
            let mut planes = vec![f32::NAN; game.sizes().obs.len()];
            game.observe(&s, player, &mut planes);
            let own = usize::from(player);
            let expected = [(own, -1), (own, side), (1 - own, -1), (1 - own, side)];
            for (plane, (player, outside)) in planes[4 * cells..].chunks_exact(cells).zip(expected) {
                assert_eq!(plane, linked_by_steps(side, &s.stones, player, outside), "{s:?} {player}");
                seen += plane.iter().filter(|&&cell| cell == 1.0).count();
            }
            let actions = legal(&game, &s);
            game.step(&mut s, actions[rng.below(actions.len())], History::default());
        }
    }
    assert!(seen > 1000, "{seen}");
}
