//! What players look at: contact, shots, escapes, primes. By bit masks over the indices of the board; whole numbers, so that every machine
//! computes the same.

use super::moves::POINTS;
use super::{ACE, BAR, BOARD_LEN, HOME, OTHER_BAR, ROLLS, turned};
use crate::device_struct::device_constants;

device_constants! {
    fn device_constants;
    /// Numbers of each side with `network_sees = "features"`.
    pub(super) const SIDE_LEN: usize as "int" = 12;
    /// The first of them; without them, the end of the observation.
    pub(super) const FEATURES_AT: usize as "int" = 24 * 8 + 4 + 2 + 10 + 2 + 1;
}

/// The checkers of one side, who counts positive, before those of the other.
struct Side {
    /// Points with at least one own checker, and the bar.
    own: u32,
    /// Points with exactly one.
    blots: u32,
    /// Points with more, where the other side cannot land.
    made: u32,
    /// Points with at least one checker of the other side, and its bar.
    other: u32,
    /// Points that the other side holds.
    blocked: u32,
    /// The other side's checkers on the bar.
    other_on_bar: u32,
}

impl Side {
    fn of(board: &[i8; BOARD_LEN]) -> Self {
        let mut side = Self { own: 0, blots: 0, made: 0, other: 0, blocked: 0, other_on_bar: 0 };
        for (index, &n) in board.iter().enumerate().take(OTHER_BAR + 1).skip(BAR) {
            side.own |= u32::from(n > 0) << index;
            side.blots |= u32::from(n == 1) << index;
            side.made |= u32::from(n > 1) << index;
            side.other |= u32::from(n < 0) << index;
            side.blocked |= u32::from(n < -1) << index;
        }
        side.blots &= POINTS;
        side.made &= POINTS;
        side.blocked &= POINTS;
        side.other_on_bar = u32::from(board[OTHER_BAR].unsigned_abs());
        side
    }

    /// The own blots that the other side can hit with the dice `a` and `b`.
    fn hit_by(&self, a: u8, b: u8) -> u32 {
        let free = POINTS & !self.made;
        if a == b {
            let (mut front, mut hit) = (self.other, 0);
            for step in 1..=4 {
                // While checkers are on the bar, they alone move.
                let from =
                    if step <= self.other_on_bar { 1 << OTHER_BAR } else { front | self.other & POINTS };
                front = (from >> a) & free;
                hit |= front & self.blots;
                if front == 0 {
                    return hit;
                }
            }
            return hit;
        }
        let mut hit = 0;
        for (first, second) in [(a, b), (b, a)] {
            let from = if self.other_on_bar > 0 { 1 << OTHER_BAR } else { self.other };
            let front = (from >> first) & free;
            hit |= front & self.blots;
            let next = match self.other_on_bar {
                0 => front,
                1 if front != 0 => front | self.other & POINTS,
                1 => 0,
                _ if front != 0 => 1 << OTHER_BAR,
                _ => 0,
            };
            hit |= (next >> second) & free & self.blots;
        }
        hit
    }

    /// Of 36 rolls, those that hit a blot, and the pips that the blot farthest on the way loses over all rolls.
    fn shots(&self) -> (u32, u32) {
        if self.blots == 0 {
            return (0, 0);
        }
        let (mut rolls, mut pips) = (0, 0);
        for [a, b] in ROLLS {
            let hit = self.hit_by(a, b);
            if hit != 0 {
                let weight = if a == b { 1 } else { 2 };
                rolls += weight;
                pips += weight * (31 - hit.leading_zeros() - BAR as u32);
            }
        }
        (rolls, pips)
    }

    /// Of 36 rolls, those that take the rearmost own checker on by both dice (of doubles two).
    fn escapes(&self) -> u32 {
        let rear = self.own.trailing_zeros();
        let free = !self.blocked;
        let is_free = |pips: u8| (free >> (rear + u32::from(pips)).min(31)) & 1 != 0;
        let rolls = ROLLS.iter().filter(|[a, b]| (is_free(*a) || is_free(*b)) && is_free(a + b));
        rolls.map(|[a, b]| if a == b { 1 } else { 2 }).sum()
    }

    /// The longest run of made points in front of the other side's rearmost checker.
    fn prime(&self, other_rear: usize) -> u32 {
        let mut run = self.made & ((1 << other_rear) - 1);
        let mut length = 0;
        while run != 0 {
            run &= run >> 1;
            length += 1;
        }
        length
    }
}

/// Writes the features of the side that counts positive, in the order of `Backgammon::observe`. `[12]`
pub(super) fn write_side(board: &[i8; BOARD_LEN], out: &mut [f32]) {
    let side = Side::of(board);
    let other_rear = 31 - (side.other | 1).leading_zeros() as usize;
    let contact: u32 = (BAR..other_rear)
        .map(|index| (other_rear - index) as u32 * u32::from(board[index].max(0).unsigned_abs()))
        .sum();
    let home = (side.made >> HOME).count_ones();
    let rear = side.own.trailing_zeros().min(ACE as u32 + 1);
    let prime = side.prime(other_rear);
    out.fill(0.0);
    if contact > 0 {
        let (rolls, pips) = side.shots();
        out[0] = contact as f32 * (1.0 / 100.0);
        out[1] = 1.0;
        out[2] = rolls as f32 * (1.0 / 36.0);
        out[3] = pips as f32 * (1.0 / 432.0);
        out[4] = side.escapes() as f32 * (1.0 / 36.0);
        for (least, out) in (3..).zip(&mut out[5..9]) {
            *out = f32::from(u8::from(prime >= least));
        }
    }
    out[9] = (home * home) as f32 * (1.0 / 36.0);
    out[10] = side.blots.count_ones() as f32 * 0.25;
    out[11] = (ACE as u32 + 1 - rear) as f32 * (1.0 / 24.0);
}

/// [`write_side`] for both sides of `board`, the one that counts positive first. `[24]`
pub(super) fn write_both(board: &[i8; BOARD_LEN], out: &mut [f32]) {
    let (own, other) = out.split_at_mut(SIDE_LEN);
    write_side(board, own);
    write_side(&turned(board), other);
}

#[cfg(test)]
mod tests {
    use super::super::{Backgammon, State};
    use super::*;
    use crate::batch::GameBatch;

    /// The blots of the side that counts positive on `board` that the other one can hit with `dice`, by playing them in every way.
    fn hit_by_playing(board: &[i8; BOARD_LEN], dice: &[u8]) -> u32 {
        let mut hit = 0;
        for (at, &die) in dice.iter().enumerate() {
            let rest: Vec<u8> = dice.iter().enumerate().filter(|&(i, _)| i != at).map(|(_, &d)| d).collect();
            let last = if board[OTHER_BAR] < 0 { OTHER_BAR } else { BAR };
            for from in last..=OTHER_BAR {
                let Some(to) = from.checked_sub(usize::from(die)).filter(|&to| to > BAR) else { continue };
                if board[from] >= 0 || board[to] > 1 {
                    continue;
                }
                let mut after = *board;
                after[from] += 1;
                hit |= u32::from(after[to] == 1) << to;
                after[to] = (after[to] - 1).min(-1);
                hit |= hit_by_playing(&after, &rest);
            }
        }
        hit
    }

    /// Boards of random games.
    fn boards() -> Vec<[i8; BOARD_LEN]> {
        let mut batch = GameBatch::new(Backgammon::default(), 16);
        let mut boards = Vec::new();
        for _ in 0..400 {
            batch.step_random(3);
            boards.extend(batch.states().iter().map(|s: &State| s.board));
        }
        boards
    }

    #[test]
    fn shots_are_those_found_by_playing() {
        let (mut hits, mut on_bar) = (0, 0);
        for board in boards() {
            let side = Side::of(&board);
            for [a, b] in ROLLS {
                let dice = if a == b { vec![a; 4] } else { vec![a, b] };
                let found = side.hit_by(a, b);
                assert_eq!(found, hit_by_playing(&board, &dice) & side.blots, "{board:?}, {a}-{b}");
                hits += u32::from(found != 0);
                on_bar += u32::from(found != 0 && board[OTHER_BAR] < 0);
            }
        }
        assert!(hits > 10_000 && on_bar > 500, "{hits}, {on_bar}");
    }

    /// Rolls of 36 that hit a blot at each distance, without anything in between (for example Magriel, "Backgammon", 1976).
    #[test]
    fn single_shots_are_the_published_ones() {
        let known = [11, 12, 14, 15, 15, 17, 6, 6, 5, 3, 2, 3, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 0];
        for (distance, expected) in (1..).zip(known) {
            let mut board = [0; BOARD_LEN];
            (board[2], board[2 + distance]) = (1, -1);
            assert_eq!(Side::of(&board).shots().0, expected, "{distance} pips");
        }
    }

    #[test]
    fn the_first_position_has_these_features() {
        let mut found = [f32::NAN; 2 * SIDE_LEN];
        write_both(&super::super::START, &mut found);
        // 152 pips of contact; no blots; 6-1, 5-2, 4-3, 4-1, 3-2, 5-5 and 6-6 do not take the rearmost checkers on.
        let side = [1.52, 1.0, 0.0, 0.0, 24.0 / 36.0, 0.0, 0.0, 0.0, 0.0, 1.0 / 36.0, 0.0, 1.0];
        for (found, expected) in found.iter().zip(side.iter().chain(&side)) {
            assert!((found - expected).abs() < 1e-6, "{found}, {expected}");
        }
    }

    #[test]
    fn primes_count_in_front_of_the_rearmost_checker_alone() {
        let mut board = [0; BOARD_LEN];
        (10..15).for_each(|index| board[index] = 2);
        board[20] = -1;
        let side = Side::of(&board);
        assert_eq!((side.prime(20), side.prime(13), side.prime(9)), (5, 3, 0));
    }
}
