//! Legal moves of the dice, by bit masks over the indices of the board.
//!
//! With doubles, every playable die begins a longest turn: a checker's moves depend only on blocked points, and bearing off stays
//! possible once it is. So only two different dice need a look-ahead, of one die.

use super::{BAR, BOARD_LEN, NO_MOVE};
use crate::device_struct::device_constants;

device_constants! {
    fn device_constants;
    /// Indices 2..=25.
    pub(super) const POINTS: u32 = 0x03FF_FFFC;
    /// Indices 2..=19, from where no checker may be left when bearing off.
    const OUTSIDE: u32 = 0x000F_FFFC;
    /// The bit of the index [`BAR`].
    const BAR_BIT: u32 = 1 << BAR;
}

/// The mover's checkers and the points that block them; bit i is index i.
#[derive(Clone, Copy, Debug)]
pub(super) struct Movers {
    /// Indices with at least one of the mover's checkers.
    own: u32,
    /// Indices with exactly one.
    single: u32,
    /// Points held by the other player.
    blocked: u32,
}

/// The indices from which `die` can be played.
#[inline]
fn sources(own: u32, blocked: u32, die: u8) -> u32 {
    if own & BAR_BIT != 0 {
        return BAR_BIT & !(blocked >> die);
    }
    let steps = own & ((POINTS & !blocked) >> die);
    if own & OUTSIDE != 0 {
        return steps;
    }
    let exact = 1 << (26 - die);
    let rear = own & own.wrapping_neg();
    steps | (own & exact) | if rear > exact { rear } else { 0 }
}

impl Movers {
    #[inline]
    pub(super) fn of(board: &[i8; BOARD_LEN]) -> Self {
        let (mut own, mut single, mut blocked) = (0, 0, 0);
        for (index, &n) in board.iter().enumerate().take(26).skip(1) {
            own |= u32::from(n > 0) << index;
            single |= u32::from(n == 1) << index;
            blocked |= u32::from(n < -1) << index;
        }
        Self { own, single, blocked }
    }

    /// Of the indices `from` where `die` can be played, those after which `then` can be played.
    #[inline]
    fn followed(&self, from: u32, die: u8, then: u32, then_die: u8) -> u32 {
        if then & (then.wrapping_sub(1)) != 0 {
            return from; // `then` can be played from two indices, of which the first die empties at most one
        }
        let mut kept = 0;
        let mut rest = from;
        while rest != 0 {
            let source = rest & rest.wrapping_neg();
            rest ^= source;
            let own = (self.own & !(source & self.single)) | (source << die & POINTS);
            if sources(own, self.blocked, then_die) != 0 {
                kept |= source;
            }
        }
        kept
    }

    /// The indices from which the higher and the lower of two different dice can be played so that the turn uses as many
    /// dice as possible, or the higher where only one can be used.
    fn first_of_two(&self, high: u8, low: u8) -> [u32; 2] {
        let from_high = sources(self.own, self.blocked, high);
        let from_low = sources(self.own, self.blocked, low);
        let both =
            [self.followed(from_high, high, from_low, low), self.followed(from_low, low, from_high, high)];
        if both != [0, 0] {
            both
        } else if from_high != 0 {
            [from_high, 0]
        } else {
            [0, from_low]
        }
    }

    /// Writes the legal actions in ascending order to the front of `out` and returns the count. `dice` holds what is left
    /// to play, the higher first.
    #[inline]
    pub(super) fn list(&self, dice: &[u8; 4], out: &mut [u16]) -> usize {
        let (high, low) = (dice[0], dice[1]);
        let [from_high, from_low] = if low != 0 && low != high {
            self.first_of_two(high, low)
        } else {
            [sources(self.own, self.blocked, high), 0]
        };
        let mut rest = from_high | from_low;
        if rest == 0 {
            out[0] = NO_MOVE;
            return 1;
        }
        let mut n = 0;
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= rest - 1;
            if from_low >> index & 1 != 0 {
                out[n] = (index * 6) as u16 + u16::from(low) - 1;
                n += 1;
            }
            if from_high >> index & 1 != 0 {
                out[n] = (index * 6) as u16 + u16::from(high) - 1;
                n += 1;
            }
        }
        n
    }
}
