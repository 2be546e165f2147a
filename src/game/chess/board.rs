//! Squares, attacks and position keys: the geometry of the chess board.
//!
//! A square is `file * 8 + rank`, a1 = 0, a2 = 1, h8 = 63, so that actions in ascending order are squares in ascending
//! order. Boards are from the view of the side to move, whose first rank is rank 0; the other side's view is the same squares
//! with the ranks turned round ([`flip`]).

use crate::device_struct::device_constants;
use crate::rng;

device_constants! {
    fn device_constants;
    /// The index of the pawns among the bitboards of a position; the other kinds of pieces follow.
    pub const PAWN: usize as "int" = 0;
    pub const KNIGHT: usize as "int" = 1;
    pub const BISHOP: usize as "int" = 2;
    pub const ROOK: usize as "int" = 3;
    pub const QUEEN: usize as "int" = 4;
    pub const KING: usize as "int" = 5;
    /// The square of the king of the side to move in the initial position.
    pub const KING_HOME: u32 as "int" = 32;
    /// That of its rook on the a-file.
    pub const ROOK_HOME_A: u32 as "int" = 0;
    /// That of its rook on the h-file.
    pub const ROOK_HOME_H: u32 as "int" = 56;
    pub const RANK_2: u64 = 0x0202_0202_0202_0202;
    pub const RANK_8: u64 = 0x8080_8080_8080_8080;
    /// The squares of the colour of a1.
    pub const DARK: u64 = 0xAA55_AA55_AA55_AA55;
    /// The seed of the table of keys of pieces.
    const PIECE_SEED: u64 = 1;
    /// The seed of the table of keys of castling rights.
    const CASTLING_SEED: u64 = 2;
    /// The seed of the table of keys of en passant files.
    const EN_PASSANT_SEED: u64 = 3;
    /// The seed of the table with the key of black to move.
    const BLACK_SEED: u64 = 4;
}

/// Both back ranks, where pawns cannot stand.
pub const BACK_RANKS: u64 = 0x8181_8181_8181_8181;

/// The bitboard of one square.
#[inline(always)]
pub const fn bit(square: u32) -> u64 {
    1 << square
}

/// A bitboard from the view of the other side.
#[inline(always)]
pub const fn flip(board: u64) -> u64 {
    board.reverse_bits().swap_bytes()
}

/// A square from the view of the other side.
#[inline(always)]
pub const fn flip_square(square: u32) -> u32 {
    square ^ 7
}

/// The squares of a bitboard, ascending.
#[inline(always)]
pub fn squares(mut board: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (board != 0).then(|| {
            let square = board.trailing_zeros();
            board &= board - 1;
            square
        })
    })
}

/// The square `files` to the right and `ranks` up, as a bitboard; empty beyond the border.
const fn neighbour(square: u32, files: i32, ranks: i32) -> u64 {
    let (file, rank) = ((square / 8) as i32 + files, (square % 8) as i32 + ranks);
    if file < 0 || file > 7 || rank < 0 || rank > 7 { 0 } else { 1 << (file * 8 + rank) }
}

const fn leaper(steps: &[(i32, i32)]) -> [u64; 64] {
    let mut out = [0; 64];
    let mut square = 0;
    while square < 64 {
        let mut i = 0;
        while i < steps.len() {
            out[square] |= neighbour(square as u32, steps[i].0, steps[i].1);
            i += 1;
        }
        square += 1;
    }
    out
}

pub static KNIGHT_ATTACKS: [u64; 64] =
    leaper(&[(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]);
pub static KING_ATTACKS: [u64; 64] =
    leaper(&[(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]);
/// The squares that a pawn of the side to move attacks.
pub static PAWN_ATTACKS: [u64; 64] = leaper(&[(-1, 1), (1, 1)]);

/// One of the four lines through a square: its squares with lower and with higher numbers.
#[derive(Clone, Copy)]
pub struct Line {
    pub low: u64,
    pub high: u64,
}

impl Line {
    /// The whole line without the square itself.
    #[inline(always)]
    pub fn both(self) -> u64 {
        self.low | self.high
    }

    /// The squares a slider reaches along the line, the first occupied one in each direction included: the obstruction
    /// difference of M. Hoffmann and G. Isenberg (chessprogramming wiki).
    #[inline(always)]
    pub fn attacks(self, occupied: u64) -> u64 {
        let below = (self.low & occupied) | 1;
        let above = self.high & occupied;
        let from_below = u64::MAX << (63 - below.leading_zeros());
        let up_to_above = above ^ above.wrapping_sub(1);
        self.both() & from_below & up_to_above
    }
}

const fn lines() -> [[Line; 4]; 64] {
    let directions = [(0, 1), (1, 0), (1, 1), (1, -1)];
    let mut out = [[Line { low: 0, high: 0 }; 4]; 64];
    let mut square = 0;
    while square < 64 {
        let mut d = 0;
        while d < 4 {
            let mut k = 1;
            while k < 8 {
                out[square][d].high |= neighbour(square as u32, directions[d].0 * k, directions[d].1 * k);
                out[square][d].low |= neighbour(square as u32, -directions[d].0 * k, -directions[d].1 * k);
                k += 1;
            }
            d += 1;
        }
        square += 1;
    }
    out
}

/// The lines through each square: its file, its rank, the rising and the falling diagonal.
pub static LINES: [[Line; 4]; 64] = lines();

/// The squares that a rook on `square` attacks.
#[inline(always)]
pub fn rook_attacks(square: u32, occupied: u64) -> u64 {
    let lines = &LINES[square as usize];
    lines[0].attacks(occupied) | lines[1].attacks(occupied)
}

/// The squares that a bishop on `square` attacks.
#[inline(always)]
pub fn bishop_attacks(square: u32, occupied: u64) -> u64 {
    let lines = &LINES[square as usize];
    lines[2].attacks(occupied) | lines[3].attacks(occupied)
}

/// Where a plane of the action encoding leads: files right and ranks up. Planes 0 to 8 are underpromotions.
const fn plane_step(plane: usize) -> (i32, i32) {
    const KNIGHT_STEPS: [(i32, i32); 8] =
        [(-2, -1), (-2, 1), (-1, -2), (-1, 2), (2, -1), (2, 1), (1, -2), (1, 2)];
    let k = (plane as i32 - 9) % 7;
    match plane {
        0..=8 => ([0, 1, -1][plane % 3], 1),
        9..=15 => (0, k - 7),
        16..=22 => (0, k + 1),
        23..=29 => (k - 7, 0),
        30..=36 => (k + 1, 0),
        37..=43 => (k - 7, k - 7),
        44..=50 => (k + 1, k + 1),
        51..=57 => (k - 7, 7 - k),
        58..=64 => (k + 1, -k - 1),
        _ => KNIGHT_STEPS[plane - 65],
    }
}

const fn plane_deltas() -> [i8; 73] {
    let mut out = [0; 73];
    let mut plane = 0;
    while plane < 73 {
        let (files, ranks) = plane_step(plane);
        out[plane] = (files * 8 + ranks) as i8;
        plane += 1;
    }
    out
}

const fn planes() -> [[u8; 64]; 64] {
    let mut out = [[0; 64]; 64];
    let mut from = 0;
    while from < 64 {
        let mut plane = 9;
        while plane < 73 {
            let (files, ranks) = plane_step(plane);
            let to = neighbour(from as u32, files, ranks);
            if to != 0 {
                out[from][to.trailing_zeros() as usize] = plane as u8 - 9;
            }
            plane += 1;
        }
        from += 1;
    }
    out
}

/// Actions from one square.
pub const PLANES_OF_A_SQUARE: u16 = 73;
/// The target square of a plane, minus the square of origin.
pub static PLANE_DELTAS: [i8; 73] = plane_deltas();
/// The plane minus 9 of the move from one square to another: `PLANES[from][to]`. The 64 planes fit a u64.
pub static PLANES: [[u8; 64]; 64] = planes();

static PIECE_KEYS: [u64; 768] = rng::table(PIECE_SEED);
/// Key of each set of castling rights, in absolute colours.
pub static CASTLING_KEYS: [u64; 16] = rng::table(CASTLING_SEED);
/// Key of each file on which a pawn can be taken en passant.
pub static EN_PASSANT_KEYS: [u64; 8] = rng::table(EN_PASSANT_SEED);
/// Key of black to move.
pub static BLACK_KEY: [u64; 1] = rng::table(BLACK_SEED);

/// The key (Zobrist 1970) of a piece of absolute `colour` (0 white) on an absolute square.
#[inline(always)]
pub fn piece_key(kind: usize, colour: usize, square: u32) -> u64 {
    PIECE_KEYS[(colour * 6 + kind) * 64 + square as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks square by square until the first piece.
    fn walk(square: u32, occupied: u64, directions: &[(i32, i32)]) -> u64 {
        let mut out = 0;
        for &(files, ranks) in directions {
            for k in 1..8 {
                let target = neighbour(square, files * k, ranks * k);
                out |= target;
                if target == 0 || target & occupied != 0 {
                    break;
                }
            }
        }
        out
    }

    #[test]
    fn slider_attacks_equal_a_walk() {
        let mut occupied = 0x1234_5678_9ABC_DEF1u64;
        for _ in 0..2000 {
            occupied =
                occupied.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let sparse = occupied & occupied.rotate_left(17);
            for square in 0..64 {
                let rook = walk(square, sparse, &[(0, 1), (0, -1), (1, 0), (-1, 0)]);
                assert_eq!(rook_attacks(square, sparse), rook, "rook {square} {sparse:x}");
                let bishop = walk(square, sparse, &[(1, 1), (1, -1), (-1, 1), (-1, -1)]);
                assert_eq!(bishop_attacks(square, sparse), bishop, "bishop {square} {sparse:x}");
            }
        }
    }

    #[test]
    fn planes_and_steps_are_inverse() {
        for from in 0..64usize {
            let reachable =
                squares(walk(from as u32, 0, &[(0, 1), (1, 0), (1, 1), (1, -1)]) | KNIGHT_ATTACKS[from]);
            for to in reachable {
                let plane = usize::from(PLANES[from][to as usize]) + 9;
                assert_eq!(from as i32 + i32::from(PLANE_DELTAS[plane]), to as i32);
            }
        }
    }
}
