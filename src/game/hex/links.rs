//! What a network sees with `network_sees = "links"`: which stones are linked to which border.

use super::Hex;
use crate::game::board::{Cells, MAX_SIDE};

/// Rows and columns outside each border: as far as a bridge reaches.
pub(super) const MARGIN: usize = 2;
const ROWS: usize = MAX_SIDE as usize + 2 * MARGIN;

/// Bit `MARGIN` + c of element `MARGIN` + r is the cell in row r and column c.
pub(super) type Rows = [u32; ROWS];

impl Hex {
    /// The stones of each of `players` that are linked to the player's first border, and those linked to the far one. Links are neighbours, and
    /// bridges: two cells with two empty neighbours in common, of which the other player can take only one. A border is a row of stones
    /// outside the board. `[4]`
    pub(super) fn links(&self, stones: &[Cells; 2], players: [usize; 2]) -> [Rows; 4] {
        let side = self.size as usize;
        let board = ((1 << side) - 1) << MARGIN;
        let own = [0, 1].map(|player| {
            let mut rows = [0; ROWS];
            stones[player].write_rows(side, MARGIN, &mut rows[MARGIN..][..side]);
            rows
        });
        let mut empty = [0; ROWS];
        for row in MARGIN..MARGIN + side {
            empty[row] = board & !(own[0][row] | own[1][row]);
        }
        let borders = [MARGIN - 1, MARGIN + side];
        let [a, b] = players;
        [(a, borders[0]), (a, borders[1]), (b, borders[0]), (b, borders[1])].map(|(player, outside)| {
            let mut linked = [0; ROWS];
            // The row or column next to the border, and where it goes on at the corners.
            match player {
                0 => linked[outside] = board << 1 | board >> 1,
                _ => linked[MARGIN - 1..=MARGIN + side].fill(1 << outside),
            }
            link(&own[player], &empty, &mut linked, side);
            linked
        })
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

/// [`link`] for one row. A bridge two rows up ends one column to the right, one two rows down one column to the left.
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
