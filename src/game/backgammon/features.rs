//! What players look at: contact, shots, escapes, primes. By bit masks over the indices of the board; whole numbers, so that every machine
//! computes the same.

use super::moves::POINTS;
use super::{ACE, BAR, BOARD_LEN, HOME, OTHER_BAR, ROLLS};
use crate::device_struct::device_constants;

device_constants! {
    fn device_constants;
    /// Numbers of each side with `network_sees = "features"`.
    pub(super) const SIDE_LEN: usize as "int" = 12;
    /// The first of them; without them, the end of the observation.
    pub(super) const FEATURES_AT: usize as "int" = 24 * 8 + 4 + 2 + 10 + 2 + 1;
}

/// The faces of a die as bits.
const FACES: u32 = 0x7E;

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
    /// The side that counts positive on `board`, and the other one.
    #[inline]
    fn both(board: &[i8; BOARD_LEN]) -> [Self; 2] {
        let own = mask_of(board, |n| n > 0);
        let singles = mask_of(board, |n| n == 1);
        let other = mask_of(board, |n| n < 0);
        let other_singles = mask_of(board, |n| n == -1);
        let made = own & !singles & POINTS;
        let other_made = other & !other_singles & POINTS;
        let on_bar = |index: usize| u32::from(board[index].unsigned_abs());
        let first = Self {
            own,
            blots: singles & POINTS,
            made,
            other,
            blocked: other_made,
            other_on_bar: on_bar(OTHER_BAR),
        };
        let second = Self {
            own: turned_bits(other),
            blots: turned_bits(other_singles & POINTS),
            made: turned_bits(other_made),
            other: turned_bits(own),
            blocked: turned_bits(made),
            other_on_bar: on_bar(BAR),
        };
        [first, second]
    }

    /// The own blots that the other side can hit with four dice of the face `die`. `fronts` are where one die takes its checkers. `[7]`
    #[inline]
    fn hit_by_double(&self, die: usize, fronts: &[u32; 7]) -> u32 {
        let (free, points) = (POINTS & !self.made, self.other & POINTS);
        let (mut front, mut hit) = (fronts[die], fronts[die]);
        for step in 2..=4 {
            // While checkers are on the bar, they alone move.
            let from = if step <= self.other_on_bar { 1 << OTHER_BAR } else { front | points };
            front = if front == 0 { 0 } else { (from >> die) & free };
            hit |= front;
        }
        hit & self.blots
    }

    /// Of 36 rolls, those that hit a blot, and the pips that the blot farthest on the way loses over all rolls.
    #[inline]
    fn shots(&self) -> (u32, u32) {
        if self.blots == 0 {
            return (0, 0);
        }
        let (free, points) = (POINTS & !self.made, self.other & POINTS);
        let from = if self.other_on_bar > 0 { 1 << OTHER_BAR } else { self.other };
        let fronts: [u32; 7] = std::array::from_fn(|die| (from >> die) & free);
        // What moves by the second die, after the first.
        let next = fronts.map(|front| match self.other_on_bar {
            0 => front,
            _ if front == 0 => 0,
            1 => front | points,
            _ => 1 << OTHER_BAR,
        });
        let (mut rolls, mut pips) = (0, 0);
        for [a, b] in ROLLS.map(|roll| roll.map(usize::from)) {
            let (weight, hit) = match a == b {
                true => (1, self.hit_by_double(a, &fronts)),
                false => {
                    let second = ((next[a] >> b) | (next[b] >> a)) & free;
                    (2, (fronts[a] | fronts[b] | second) & self.blots)
                }
            };
            if hit != 0 {
                rolls += weight;
                pips += weight * (31 - hit.leading_zeros() - BAR as u32);
            }
        }
        (rolls, pips)
    }

    /// Of 36 rolls, those that take the rearmost own checker on by both dice (of doubles two).
    #[inline]
    fn escapes(&self) -> u32 {
        // The bit of a number of pips: 1 if the checker can land there.
        let free = !(self.blocked >> self.own.trailing_zeros().min(31));
        let after = |first: u32| match free >> first & 1 {
            0 => free & FACES,
            _ => FACES,
        };
        (1..=6).map(|first| (free >> first & after(first)).count_ones()).sum()
    }

    /// The longest run of made points in front of the other side's rearmost checker.
    #[inline]
    fn prime(&self, other_rear: usize) -> u32 {
        let mut run = self.made & ((1 << other_rear) - 1);
        let mut length = 0;
        while run != 0 {
            run &= run >> 1;
            length += 1;
        }
        length
    }

    /// Writes the features of this side, in the order of `Backgammon::observe`. `board` is seen by it. `[12]`
    #[inline]
    fn write(&self, board: &[i8; BOARD_LEN], out: &mut [f32]) {
        let other_rear = 31 - (self.other | 1).leading_zeros() as usize;
        let home = (self.made >> HOME).count_ones();
        let rear = self.own.trailing_zeros().min(ACE as u32 + 1);
        out.fill(0.0);
        if self.own & ((1 << other_rear) - 1) != 0 {
            let before = |index: usize| (other_rear as i16 - index as i16).max(0);
            let contact: i16 = (BAR..=ACE).map(|index| before(index) * i16::from(board[index].max(0))).sum();
            let (rolls, pips) = self.shots();
            let prime = self.prime(other_rear);
            out[0] = f32::from(contact) * (1.0 / 100.0);
            out[1] = 1.0;
            out[2] = rolls as f32 * (1.0 / 36.0);
            out[3] = pips as f32 * (1.0 / 432.0);
            out[4] = self.escapes() as f32 * (1.0 / 36.0);
            for (least, out) in (3..).zip(&mut out[5..9]) {
                *out = f32::from(u8::from(prime >= least));
            }
        }
        out[9] = (home * home) as f32 * (1.0 / 36.0);
        out[10] = self.blots.count_ones() as f32 * 0.25;
        out[11] = (ACE as u32 + 1 - rear) as f32 * (1.0 / 24.0);
    }
}

/// The indices of bars and points where `is_one` holds, as bits.
#[inline]
fn mask_of(board: &[i8; BOARD_LEN], is_one: impl Fn(i8) -> bool) -> u32 {
    let mut flags = [0_u8; 32];
    flags.iter_mut().zip(board).for_each(|(flag, &n)| *flag = u8::from(is_one(n)));
    let (bytes, _) = flags.as_chunks();
    // Moves the lowest bit of byte i to bit 56 + i. No two products meet in a bit, so that none carries.
    let bits = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let mask = bytes.iter().rev().fold(0, |mask, bytes| mask << 8 | bits(bytes) as u32);
    mask & (POINTS | 1 << BAR | 1 << OTHER_BAR)
}

/// A mask over the indices of the board from the other side's view.
fn turned_bits(mask: u32) -> u32 {
    mask.reverse_bits() >> (32 - BOARD_LEN)
}

/// Writes the features of both sides, own first. `boards` are the same board seen by each. `[24]`
#[inline]
pub(super) fn write(boards: [&[i8; BOARD_LEN]; 2], out: &mut [f32]) {
    let sides = Side::both(boards[0]);
    for ((side, board), out) in sides.iter().zip(boards).zip(out.chunks_exact_mut(SIDE_LEN)) {
        side.write(board, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Backgammon, State, turned};
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
            for (side, board) in Side::both(&board).iter().zip([board, turned(&board)]) {
                let (mut rolls, mut pips) = (0, 0);
                for [a, b] in ROLLS {
                    let dice = if a == b { vec![a; 4] } else { vec![a, b] };
                    let hit = hit_by_playing(&board, &dice) & side.blots;
                    let weight = if a == b { 1 } else { 2 } * u32::from(hit != 0);
                    rolls += weight;
                    pips += weight * 31_u32.saturating_sub(hit.leading_zeros() + BAR as u32);
                }
                assert_eq!(side.shots(), (rolls, pips), "{board:?}");
                hits += u32::from(rolls > 0);
                on_bar += u32::from(rolls > 0 && board[OTHER_BAR] < 0);
            }
        }
        assert!(hits > 10_000 && on_bar > 2_000, "{hits}, {on_bar}");
    }

    /// Rolls of 36 that hit a blot at each distance, without anything in between (for example Magriel, "Backgammon", 1976).
    #[test]
    fn single_shots_are_the_published_ones() {
        let known = [11, 12, 14, 15, 15, 17, 6, 6, 5, 3, 2, 3, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 0];
        for (distance, expected) in (1..).zip(known) {
            let mut board = [0; BOARD_LEN];
            (board[2], board[2 + distance]) = (1, -1);
            assert_eq!(Side::both(&board)[0].shots().0, expected, "{distance} pips");
        }
    }

    #[test]
    fn the_first_position_has_these_features() {
        let mut found = [f32::NAN; 2 * SIDE_LEN];
        write([&super::super::START; 2], &mut found);
        // 152 pips of contact; no blots; 6-1, 5-2, 4-3, 4-1, 3-2, 5-5 and 6-6 do not take the rearmost checkers on.
        let side = [1.52, 1.0, 0.0, 0.0, 24.0 / 36.0, 0.0, 0.0, 0.0, 0.0, 1.0 / 36.0, 0.0, 1.0];
        for (found, expected) in found.iter().zip(side.iter().chain(&side)) {
            assert!((found - expected).abs() < 1e-6, "{found}, {expected}");
        }
    }

    /// Points that the other side has not made, and all past the last point, are free.
    #[test]
    fn escapes_are_the_rolls_by_which_each_die_lands() {
        let (mut kept, mut past_the_end) = (0, 0);
        for board in boards() {
            for side in Side::both(&board) {
                let rear = side.own.trailing_zeros() as usize;
                let is_free = |pips: u8| (side.blocked >> (rear + usize::from(pips)).min(31)) & 1 == 0;
                let escaping = |[a, b]: &[u8; 2]| (is_free(*a) || is_free(*b)) && is_free(a + b);
                let rolls = ROLLS.iter().filter(|roll| escaping(roll));
                let expected: u32 = rolls.map(|[a, b]| if a == b { 1 } else { 2 }).sum();
                assert_eq!(side.escapes(), expected, "{board:?}");
                kept += u32::from(expected < 36);
                past_the_end += u32::from(rear + 12 > ACE);
            }
        }
        assert!(kept > 1_000 && past_the_end > 1_000, "{kept}, {past_the_end}");
    }

    #[test]
    fn primes_count_in_front_of_the_rearmost_checker_alone() {
        let mut board = [0; BOARD_LEN];
        (10..15).for_each(|index| board[index] = 2);
        board[20] = -1;
        let [side, _] = Side::both(&board);
        assert_eq!((side.prime(20), side.prime(13), side.prime(9)), (5, 3, 0));
    }
}
