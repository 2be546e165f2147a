//! The time of a move, from the clock of a game. Pure arithmetic: no clock is read here.

use std::time::Duration;

/// Moves that a player is assumed to make still, where the protocol does not say how many.
const EXPECTED_MOVES: u32 = 30;
/// Share of the increment that a move uses beside its share of the remaining time.
const SHARE_OF_INCREMENT: f64 = 0.75;
/// Share of the usable time for the last move before more time is added.
const SHARE_OF_LAST: f64 = 0.9;
/// Overheads that stay on a clock which has to last for more than one move: one for this move and two for delays of the system, since what
/// is lost to one of them comes back by the increment alone.
const RESERVED: u32 = 3;

/// What a player's clock shows before a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeLeft {
    /// Time on the clock.
    pub remaining: Duration,
    /// Time that is added after each move.
    pub increment: Duration,
    /// Moves until more time is added; None for a game that is played with the time on the clock.
    pub moves_to_go: Option<u32>,
    /// Time that every move has once the clock has run out (byo-yomi); 0 if the game is then lost.
    pub overtime: Duration,
}

impl TimeLeft {
    /// A clock without increment and overtime.
    pub fn of(remaining: Duration) -> Self {
        Self { remaining, ..Self::default() }
    }

    /// The time that a move may take. `overhead` is the longest time between the end of that time and the moment in which the clock of the
    /// game stops: the end of a pass of the search, and the way of the reply.
    ///
    /// At most half of the time beyond three overheads is used, so that a move whose overhead is as expected leaves the clock at two of them
    /// or more, if it was at three.
    pub fn budget(&self, overhead: Duration) -> Duration {
        let moves = self.moves_to_go.unwrap_or(EXPECTED_MOVES).max(1);
        let after_overhead = |time: Duration| time.saturating_sub(overhead).mul_f64(SHARE_OF_LAST);
        let own = match moves {
            1 => after_overhead(self.remaining),
            _ => {
                let usable = self.remaining.saturating_sub(overhead.saturating_mul(RESERVED));
                (usable / moves + self.increment.mul_f64(SHARE_OF_INCREMENT)).min(usable / 2)
            }
        };
        own.max(after_overhead(self.overtime))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn budgets_of_usual_clocks() {
        let budget = |time: TimeLeft| time.budget(50 * MS).as_millis();
        assert_eq!(budget(TimeLeft::of(60_150 * MS)), 2000);
        assert_eq!(budget(TimeLeft { increment: 1000 * MS, ..TimeLeft::of(60_150 * MS) }), 2750);
        assert_eq!(budget(TimeLeft { moves_to_go: Some(10), ..TimeLeft::of(10_150 * MS) }), 1000);
        assert_eq!(budget(TimeLeft { moves_to_go: Some(1), ..TimeLeft::of(10_050 * MS) }), 9000);
        assert_eq!(budget(TimeLeft { moves_to_go: Some(0), ..TimeLeft::of(10_050 * MS) }), 9000);
        assert_eq!(
            budget(TimeLeft { increment: 10_000 * MS, ..TimeLeft::of(1150 * MS) }),
            500,
            "half at most"
        );
        assert_eq!(budget(TimeLeft { overtime: 5050 * MS, ..TimeLeft::default() }), 4500);
        assert_eq!(budget(TimeLeft::of(150 * MS)), 0);
        assert_eq!(budget(TimeLeft::default()), 0);
        assert!(TimeLeft::of(Duration::MAX).budget(MS) < Duration::MAX / 20);
    }

    /// A thousand games of up to 600 moves at 1 s and 10 ms a move, and with 40 moves a period. A move ends up to 9 ms late and
    /// now and then as late as the overhead allows.
    #[test]
    fn no_clock_runs_out() {
        let overhead = 100 * MS;
        for seed in 0..1000 {
            let mut rng = Key::new(seed, Purpose::Evaluation).stream();
            let (mut left, mut period) = (1000 * MS, 4000 * MS);
            let moves = 1 + rng.below(600) as u32;
            for number in 0..moves {
                let mut late = |is_rare: bool| MS * rng.below(if is_rare { 100 } else { 10 }) as u32;
                let time = TimeLeft { increment: 10 * MS, ..TimeLeft::of(left) };
                let is_rare = number % 97 == 0 && left > overhead;
                let used = time.budget(overhead) + late(is_rare);
                assert!(used < left, "seed {seed}, move {number}: {used:?} of {left:?}");
                left = left - used + 10 * MS;
                if number % 40 == 0 {
                    period = 4000 * MS;
                }
                let time = TimeLeft { moves_to_go: Some(40 - number % 40), ..TimeLeft::of(period) };
                let used = time.budget(overhead) + late(false);
                assert!(used < period, "seed {seed}, move {number}: {used:?} of {period:?}");
                period -= used;
            }
        }
    }
}
