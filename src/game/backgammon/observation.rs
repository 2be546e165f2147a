//! What a network sees of a position.

use super::{ACE, BAR, Backgammon, OFF, OTHER_BAR, OTHER_OFF, Sight, State, features, pips, turned};

impl Backgammon {
    /// 211 elements, or 235 with `network_sees = "features"`, from `player`'s viewpoint. `[F]`
    ///
    /// For each point from the player's 24-point to the 1-point, own checkers then the other player's, four elements each:
    /// n >= 1, n >= 2, n >= 3, max(n - 3, 0) / 2 (TD-Gammon, Tesauro 1992); then on the bar, own then other: n >= 1, n / 2;
    /// borne off, own then other: n / 15; whether a 1, 2, .., 6 is left to play; whether 1, 2, 3, 4 dice are left; pips to
    /// go, own then other, / 167; whether it is the player's turn. This includes all of pgx's observation. Then the features of
    /// both sides, own then other, 12 elements each:
    /// pips until all checkers have passed the other side's rearmost one, / 100; whether there are any; of 36 rolls, those with which the other side hits
    /// a blot, / 36; pips so lost over all rolls, / 432; of 36 rolls, those that take the rearmost checker on by both dice, / 36; whether the longest prime in
    /// front of the other side's rearmost checker has 3, 4, 5, 6 points; the square of the share of points made in the home board; blots, / 4; the rearmost
    /// checker's pips, / 24.
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
