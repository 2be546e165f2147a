//! Square boards up to 19x19: sets of cells as bits, the eight symmetries, coordinates.
//!
//! Cells are numbered row-major, 0 top left. Independent of any game's rules.

use super::view::{Grid, GridStyle, Piece};
use crate::device_struct::device_constants;
use bytemuck::{Pod, Zeroable};
use std::ops::BitOr;

/// The longest side of a board.
pub const MAX_SIDE: u32 = 19;

device_constants! {
    fn device_constants;
    /// Words of a set of cells.
    const CELL_WORDS: usize as "int" = (MAX_SIDE * MAX_SIDE).div_ceil(64) as usize;
}

/// Declares the CUDA type of the fields of type [`Cells`] in the generated header of a game with the option `size`.
#[cfg(test)]
pub(super) const CELLS_PREAMBLE: &str = "
// A set of cells of this game's board (board.cuh).
typedef board::CellSet<VZ_OPT_SIZE * VZ_OPT_SIZE> Cells;
";

/// A set of cells: cell i is bit i % 64 of word i / 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Cells(pub [u64; CELL_WORDS]);

impl Cells {
    /// No cell.
    pub const EMPTY: Self = Self([0; CELL_WORDS]);

    /// True if `cell` is in the set.
    #[inline(always)]
    pub fn contains(&self, cell: usize) -> bool {
        self.0[cell >> 6] >> (cell & 63) & 1 != 0
    }

    /// True if all cells of the set are below `num_cells`.
    pub fn fits(&self, num_cells: u32) -> bool {
        self.iter().all(|cell| cell < num_cells as usize)
    }

    /// Inserts `cell`.
    #[inline(always)]
    pub fn insert(&mut self, cell: usize) {
        self.0[cell >> 6] |= 1 << (cell & 63);
    }

    /// Removes and returns the lowest cell.
    #[inline]
    pub fn pop(&mut self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        let bit = self.0[word].trailing_zeros() as usize;
        self.0[word] &= self.0[word] - 1;
        Some(word * 64 + bit)
    }

    /// The cells, ascending.
    pub fn iter(mut self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || self.pop())
    }

    /// Writes the cells below `num_cells` that are *not* in the set to the front of `out`, ascending; returns the count.
    #[inline]
    pub fn write_free(&self, num_cells: usize, out: &mut [u16]) -> usize {
        let mut n = 0;
        for (i, &word) in self.0[..num_cells.div_ceil(64)].iter().enumerate() {
            let below = num_cells - i * 64;
            let mask = if below < 64 { (1u64 << below) - 1 } else { !0 };
            n += write_bits(!word & mask, i as u16 * 64, &mut out[n..]);
        }
        n
    }

    /// Writes 1 for cells in the set and 0 for others. `plane` is `[cells]`.
    #[inline(always)]
    pub fn write_plane(&self, plane: &mut [f32]) {
        write_plane_of_words(&self.0, plane);
    }

    /// Writes the rows of a board with this `side`: bit `margin` + c of a row is its cell in column c. `rows` is `[side]`.
    #[inline]
    pub fn write_rows(&self, side: usize, margin: usize, rows: &mut [u32]) {
        for (number, row) in rows.iter_mut().enumerate() {
            let (word, bit) = (number * side / 64, number * side % 64);
            let next = self.0.get(word + 1).map_or(0, |next| u128::from(*next) << 64);
            let bits = ((u128::from(self.0[word]) | next) >> bit) as u32;
            *row = (bits & ((1 << side) - 1)) << margin;
        }
    }

    /// The set under `symmetry` of a board with this `side`.
    pub fn transform(self, side: u32, symmetry: u64) -> Self {
        if symmetry == 0 {
            return self;
        }
        let mut image = Self::EMPTY;
        self.iter().for_each(|cell| image.insert(transform_cell(cell as u32, side, symmetry) as usize));
        image
    }
}

impl BitOr for Cells {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

/// Writes the bits of `words`, 1 or 0 each, the lowest of the first word first, as many as `plane` has elements.
#[inline(always)]
pub fn write_plane_of_words(words: &[u64], plane: &mut [f32]) {
    for (chunk, &word) in plane.chunks_mut(64).zip(words) {
        for (bit, cell) in chunk.iter_mut().enumerate() {
            *cell = (word >> bit & 1) as f32;
        }
    }
}

/// Writes 1 for cells in `rows`, which are those of [`Cells::write_rows`], and 0 for others. Always inlined, so that callers with vector instructions
/// use them. `rows` is `[side]`, `plane` is `[side, side]`.
#[inline(always)]
pub fn write_plane_of_rows(rows: &[u32], side: usize, margin: usize, plane: &mut [f32]) {
    for (row, cells) in rows.iter().zip(plane.chunks_exact_mut(side)) {
        let bits = row >> margin;
        for (column, cell) in cells.iter_mut().enumerate() {
            *cell = (bits >> column & 1) as f32;
        }
    }
}

/// Writes `base` plus the index of each set bit to the front of `out`, ascending; returns the count.
#[inline(always)]
pub fn write_bits(mut bits: u64, base: u16, out: &mut [u16]) -> usize {
    let n = bits.count_ones() as usize;
    for action in &mut out[..n] {
        *action = base + bits.trailing_zeros() as u16;
        bits &= bits - 1;
    }
    n
}

/// The image of `cell` under one of the eight symmetries of the square: bit 2 of `symmetry` transposes, then bit 1 flips the
/// rows and bit 0 the columns.
#[inline]
pub fn transform_cell(cell: u32, side: u32, symmetry: u64) -> u32 {
    let (mut row, mut column) = (cell / side, cell % side);
    if symmetry & 4 != 0 {
        std::mem::swap(&mut row, &mut column);
    }
    if symmetry & 2 != 0 {
        row = side - 1 - row;
    }
    if symmetry & 1 != 0 {
        column = side - 1 - column;
    }
    row * side + column
}

/// Column letter and row number, from the top: `a1` is the top left corner.
pub fn cell_name(cell: u32, side: u32) -> String {
    format!("{}{}", column_letter(cell % side), cell / side + 1)
}

/// A cell as SGF writes it: column and row letters, from the top left.
pub fn sgf_point(cell: u32, side: u32) -> String {
    [cell % side, cell / side].map(column_letter).iter().collect()
}

fn column_letter(column: u32) -> char {
    (b'a' + column as u8) as char
}

/// A square board as data, with columns and rows labelled as by [`cell_name`]; `piece` gives the index in `pieces` of each cell's piece.
pub fn grid(side: u32, style: GridStyle, pieces: Vec<Piece>, piece: impl Fn(u32) -> Option<u8>) -> Grid {
    let at = |row: usize, column: usize| piece(row as u32 * side + column as u32);
    Grid::labelled(style, [side as usize; 2], |_| false, pieces, at)
}

/// The cells of the first straight run of stones whose length `wins`, row-major and then across, down and along both diagonals; empty if
/// there is none. `has` says which cells of the board have the stones.
pub fn winning_run(
    rows: usize,
    columns: usize,
    has: impl Fn(usize) -> bool,
    wins: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let stone = |row: usize, column: usize| row < rows && column < columns && has(row * columns + column);
    for start in 0..rows * columns {
        let (row, column) = (start / columns, start % columns);
        for (down, right) in [(0, 1), (1, 0), (1, 1), (1, -1)] {
            // Steps beyond the top or the left border wrap to numbers that are on no board.
            let at = |k: isize| (row.wrapping_add_signed(k * down), column.wrapping_add_signed(k * right));
            let is_stone = |k: isize| stone(at(k).0, at(k).1);
            if is_stone(-1) {
                continue;
            }
            let run: Vec<usize> =
                (0..).take_while(|&k| is_stone(k)).map(|k| at(k).0 * columns + at(k).1).collect();
            if wins(run.len()) {
                return run;
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_struct::check_header;

    #[test]
    fn generated_header_of_boards_is_up_to_date() {
        check_header("games/board_layout.cuh", "board", "", &[device_constants()]);
    }

    #[test]
    fn sets_contain_the_inserted_cells() {
        let cells = [0, 5, 63, 64, 200, 360];
        let mut set = Cells::EMPTY;
        cells.iter().for_each(|&cell| set.insert(cell));
        assert_eq!(set.iter().collect::<Vec<_>>(), cells);
        let mut free = [0; 361];
        for side in [13u32, 16, 19] {
            let n = set.write_free((side * side) as usize, &mut free);
            let expected: Vec<u16> =
                (0..(side * side) as u16).filter(|&c| !set.contains(usize::from(c))).collect();
            assert_eq!(free[..n], expected);
        }
        let mut plane = [0.5; 361];
        set.write_plane(&mut plane);
        assert!(plane.iter().enumerate().all(|(cell, &x)| x == f32::from(set.contains(cell) as u8)));
        assert_eq!(Cells([1, 0, 0, 0, 0, 0]) | set, set);
        assert_ne!(Cells([2, 0, 0, 0, 0, 0]) | set, set);
    }

    #[test]
    fn the_eight_symmetries_are_different_and_keep_neighbours() {
        let side = 5;
        let images: Vec<Vec<u32>> =
            (0..8).map(|s| (0..side * side).map(|cell| transform_cell(cell, side, s)).collect()).collect();
        for (i, image) in images.iter().enumerate() {
            assert!(images[..i].iter().all(|other| other != image));
            let mut sorted = image.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..side * side));
            for cell in 0..side * side - 1 {
                let (a, b) = (image[cell as usize], image[cell as usize + 1]);
                if cell % side != side - 1 {
                    let distance = (a / side).abs_diff(b / side) + (a % side).abs_diff(b % side);
                    assert_eq!(distance, 1);
                }
            }
        }
        let set = Cells([0b1_0110_0010, 0, 0, 0, 0, 0]);
        assert_eq!(set.transform(side, 3).transform(side, 3), set);
        assert_eq!(set.transform(side, 4).iter().collect::<Vec<_>>(), [1, 5, 6, 16]);
    }

    #[test]
    fn names_count_from_the_top_left() {
        assert_eq!([cell_name(0, 8), cell_name(26, 8), cell_name(360, 19)], ["a1", "c4", "s19"]);
    }

    #[test]
    fn runs_are_found_in_all_directions_and_end_at_the_borders() {
        let run = |stones: &[usize], length: usize| {
            winning_run(3, 4, |cell| stones.contains(&cell), |found| found == length)
        };
        assert_eq!(run(&[4, 5, 6], 3), [4, 5, 6]);
        assert_eq!(run(&[1, 5, 9], 3), [1, 5, 9]);
        assert_eq!(run(&[1, 6, 11], 3), [1, 6, 11]);
        assert_eq!(run(&[2, 5, 8], 3), [2, 5, 8]);
        assert!(run(&[3, 4, 5], 3).is_empty(), "the end of a row does not touch the next");
        assert_eq!((run(&[0, 1, 2, 3], 3), run(&[0, 1, 2, 3], 4)), (vec![], vec![0, 1, 2, 3]));
    }
}
