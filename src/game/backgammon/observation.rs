//! What a network sees of a position.

use super::{ACE, BAR, Backgammon, OFF, OTHER_BAR, OTHER_OFF, Sight, State, features, pips, turned};

impl Backgammon {
    /// Writes what [`Game::observe`](super::Game::observe) says of a board, seen by `player`. `[211]` or `[235]`
    #[inline]
    pub(super) fn write_board(&self, s: &State, player: u8, out: &mut [f32]) {
        let board = s.seen_by(player);
        let of_other = turned(&board);
        let is_at_least = |n: i8, least: i8| f32::from(u8::from(n >= least));
        let (points, rest) = out.split_at_mut(24 * 8);
        for (units, &n) in points.chunks_exact_mut(8).zip(&board[2..=ACE]) {
            for (units, n) in units.chunks_exact_mut(4).zip([n, -n]) {
                units.copy_from_slice(&[
                    is_at_least(n, 1),
                    is_at_least(n, 2),
                    is_at_least(n, 3),
                    f32::from((n - 3).max(0)) * 0.5,
                ]);
            }
        }
        let (bar, other_bar) = (board[BAR], -board[OTHER_BAR]);
        rest[0] = is_at_least(bar, 1);
        rest[1] = f32::from(bar) * 0.5;
        rest[2] = is_at_least(other_bar, 1);
        rest[3] = f32::from(other_bar) * 0.5;
        rest[4] = f32::from(board[OFF]) / 15.0;
        rest[5] = f32::from(-board[OTHER_OFF]) / 15.0;
        let left = s.dice.iter().filter(|&&d| d > 0).count();
        rest[6..16].fill(0.0);
        s.dice.iter().filter(|&&d| d > 0).for_each(|&d| rest[5 + usize::from(d)] = 1.0);
        if left > 0 {
            rest[11 + left] = 1.0;
        }
        rest[16] = pips(&board) as f32 / 167.0;
        rest[17] = pips(&of_other) as f32 / 167.0;
        rest[18] = f32::from(u8::from(player == s.mover));
        if self.network_sees == Sight::Features {
            features::write([&board, &of_other], &mut rest[19..]);
        }
    }
}
