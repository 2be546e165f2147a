//! What a network sees with `network_sees = "links"`: which stones are linked to which border.

use super::Hex;
use crate::game::board::{Cells, MAX_SIDE, write_row};

/// Rows and columns outside each border: as far as a bridge reaches.
const MARGIN: usize = 2;
const ROWS: usize = MAX_SIDE as usize + 2 * MARGIN;

/// Bit `MARGIN` + c of element `MARGIN` + r is the cell in row r and column c.
type Rows = [u32; ROWS];

impl Hex {
    /// Writes 1 for stones of `player` that are linked to the player's first border in the first plane, to the far border in the second, else 0.
    /// Links are neighbours, and bridges: two cells with two empty neighbours in common, of which the other player can take only one. A border
    /// is a row of stones outside the board. `[2, size, size]`
    pub(super) fn write_links(&self, stones: &[Cells; 2], player: usize, planes: &mut [f32]) {
        let side = self.size as usize;
        let own = self.rows_of(&stones[player]);
        let mut empty = self.rows_of(&(stones[0] | stones[1]));
        let board = ((1 << side) - 1) << MARGIN;
        empty[MARGIN..][..side].iter_mut().for_each(|row| *row = board & !*row);
        for (outside, plane) in
            [MARGIN - 1, MARGIN + side].into_iter().zip(planes.chunks_exact_mut(side * side))
        {
            let mut linked = [0; ROWS];
            // The row or column next to the border, and where it goes on at the corners.
            match player {
                0 => linked[outside] = board << 1 | board >> 1,
                _ => linked[MARGIN - 1..=MARGIN + side].fill(1 << outside),
            }
            link(&own, &empty, &mut linked, side);
            for (cells, row) in plane.chunks_exact_mut(side).zip(&linked[MARGIN..]) {
                write_row(row >> MARGIN, cells);
            }
        }
    }

    fn rows_of(&self, cells: &Cells) -> Rows {
        let side = self.size as usize;
        let mut rows = [0; ROWS];
        for (row, bits) in rows[MARGIN..][..side].iter_mut().enumerate() {
            *bits = cells.row(row, side) << MARGIN;
        }
        rows
    }
}

/// Adds to `linked` all cells of `own` that neighbours and bridges over `empty` cells link to it.
#[inline]
fn link(own: &Rows, empty: &Rows, linked: &mut Rows, side: usize) {
    let rows = MARGIN..MARGIN + side;
    loop {
        let before = *linked;
        rows.clone().for_each(|row| link_row(own, empty, linked, row));
        rows.clone().rev().for_each(|row| link_row(own, empty, linked, row));
        if *linked == before {
            return;
        }
    }
}

/// [`link`] for one row. Two rows above, the cell above is the one right of it; below, the one left of it.
#[inline(always)]
fn link_row(own: &Rows, empty: &Rows, linked: &mut Rows, row: usize) {
    let [up, same, down] = [empty[row - 1], empty[row], empty[row + 1]];
    let (above, below) = (linked[row - 1], linked[row + 1]);
    let neighbours = above | above >> 1 | below | below << 1;
    let bridges = above << 1 & up & same << 1
        | above >> 2 & (up & same) >> 1
        | linked[row - 2] >> 1 & up & up >> 1
        | below >> 1 & same >> 1 & down
        | below << 2 & (same & down) << 1
        | linked[row + 2] << 1 & down & down << 1;
    let mut reached = linked[row] | own[row] & (neighbours | bridges);
    loop {
        let next = reached | own[row] & (reached << 1 | reached >> 1);
        if next == reached {
            break;
        }
        reached = next;
    }
    linked[row] = reached;
}
