//! What a network sees with `network_sees = "threats"`: rows of five that a player can still complete, with three or four stones in them.

use super::Gomoku;
use crate::game::board::{Cells, MAX_SIDE};

/// Cells of a row that wins.
const FIVE: usize = 5;
/// Bits below those of the first column, which are barred to a row of five that leaves the board.
pub(super) const MARGIN: usize = FIVE - 1;
/// Rows of the largest board.
const SIDE: usize = MAX_SIDE as usize;

/// Bit `MARGIN` + c of element r is the cell in row r and column c; the last rows are outside.
pub(super) type Rows = [u32; SIDE + MARGIN];
/// A bit for each row of five in one direction, at its first cell.
type Fives = [u32; SIDE];

impl Gomoku {
    /// The empty cells of five cells in a line that have no stone of the other colour and three of the first one, those that have four, and the
    /// same of the second colour. `[4]`
    pub(super) fn threats(&self, colours: [&Cells; 2]) -> [Rows; 4] {
        let side = self.size as usize;
        let board = ((1 << side) - 1) << MARGIN;
        let stones = colours.map(|cells| {
            let mut rows = [0; SIDE + MARGIN];
            cells.write_rows(side, MARGIN, &mut rows[..side]);
            rows
        });
        let barred = stones.map(|mut rows| {
            rows[..side].iter_mut().for_each(|row| *row |= !board);
            rows[side..].fill(!0);
            rows
        });
        let [first, second] = [(&stones[0], &barred[1]), (&stones[1], &barred[0])].map(|(own, barred)| {
            let mut threats = [[0; SIDE + MARGIN]; 2];
            mark::<0, 1>(own, barred, &mut threats);
            mark::<1, 0>(own, barred, &mut threats);
            mark::<1, 1>(own, barred, &mut threats);
            mark::<1, -1>(own, barred, &mut threats);
            threats
        });
        [first[0], first[1], second[0], second[1]]
    }
}

/// Adds the threats of all rows of five whose next cell is `DOWN` rows below and `RIGHT` columns to the right, with three stones
/// and with four. Each loop is over all rows of the board, so that it runs in vector registers.
#[inline]
fn mark<const DOWN: usize, const RIGHT: i32>(own: &Rows, barred: &Rows, threats: &mut [Rows; 2]) {
    let forward = |bits: u32, i: usize| if RIGHT < 0 { bits << i } else { bits >> (i * RIGHT as usize) };
    let back = |bits: u32, i: usize| if RIGHT < 0 { bits >> i } else { bits << (i * RIGHT as usize) };
    let cell =
        |rows: &Rows, i: usize| -> Fives { std::array::from_fn(|first| forward(rows[first + i * DOWN], i)) };
    let stones: [Fives; FIVE] = std::array::from_fn(|i| cell(own, i));
    let mut free: Fives = [!0; SIDE];
    for i in 0..FIVE {
        free.iter_mut().zip(cell(barred, i)).for_each(|(free, barred)| *free &= !barred);
    }
    let mut with: [Fives; 2] = [[0; SIDE]; 2];
    for first in 0..SIDE {
        // The number of stones, bit by bit.
        let [a, b, c, d, e] = std::array::from_fn(|i| stones[i][first]);
        let (some, pairs) = (a ^ b ^ c, a & b | c & (a ^ b));
        let (ones, more_pairs) = (some ^ d ^ e, some & d | e & (some ^ d));
        with[0][first] = free[first] & ones & (pairs ^ more_pairs);
        with[1][first] = free[first] & !ones & pairs & more_pairs;
    }
    for (rows, with) in threats.iter_mut().zip(with) {
        for (i, stones) in stones.iter().enumerate() {
            for first in 0..SIDE {
                rows[first + i * DOWN] |= back(with[first] & !stones[first], i);
            }
        }
    }
}
