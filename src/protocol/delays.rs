//! The delays of a dialogue, measured: how much later a move ends on the client's clock than it should. Pure arithmetic.

use super::clock::TimeLeft;
use std::time::Duration;

/// Players with a clock.
const PLAYERS: usize = 2;
/// The longest delay that a clock can tell: a larger difference is a change of the clock by hand.
const LONGEST: Duration = Duration::from_secs(5);
/// The overhead is this many times the worst measured delay.
const SAFETY_FACTOR: u32 = 2;
/// The overhead grows to at most this many times the configured one.
const MAX_FACTOR: u32 = 10;

/// The worst delay of late moves. Each move lets it fade by an eighth, so that one hiccup does not take the time of a whole game.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    worst: Duration,
    /// What each player's clock showed before the last move, and the time of that move as it was measured here.
    last: [Option<(TimeLeft, Duration)>; PLAYERS],
}

impl Delays {
    /// Takes the delay of a move.
    pub fn note(&mut self, delay: Duration) {
        self.worst = delay.min(LONGEST).max(self.worst - self.worst / 8);
    }

    /// Takes what the client's clock of `player` shows before a move. What it has lost since the last one, beyond the time that was measured
    /// here, is the way of the messages, and the delay of a client that is not at its turn.
    pub fn see_clock(&mut self, player: u8, clock: TimeLeft) {
        let Some((before, spent)) = self.last.get_mut(usize::from(player)).and_then(Option::take) else {
            return;
        };
        let at_most = before.remaining.saturating_add(before.increment);
        // A clock that shows more, or much less, has been set anew.
        if clock.increment == before.increment
            && let Some(used) = at_most.checked_sub(clock.remaining)
            && used.saturating_sub(spent) <= LONGEST
        {
            self.note(used.saturating_sub(spent));
        }
    }

    /// Takes the time from the arrival of the request for a move to its answer, with `clock` before it.
    pub fn moved(&mut self, player: u8, clock: TimeLeft, spent: Duration) {
        if let Some(last) = self.last.get_mut(usize::from(player)) {
            *last = Some((clock, spent));
        }
    }

    /// Forgets what the clocks showed: those of a new game say nothing of the moves of the last one.
    pub fn forget_clocks(&mut self) {
        self.last = Default::default();
    }

    /// The overhead of a move, `own` by default: twice the worst delay, if that is more.
    pub fn overhead(&self, own: Duration) -> Duration {
        own.max((SAFETY_FACTOR * self.worst).min(MAX_FACTOR * own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_clock_tells_what_the_way_of_a_move_took() {
        let mut delays = Delays::default();
        let clock = |ms: u32| TimeLeft { increment: 10 * MS, ..TimeLeft::of(ms * MS) };
        assert_eq!(delays.overhead(50 * MS), 50 * MS);
        delays.see_clock(0, clock(1000));
        delays.moved(0, clock(1000), 30 * MS);
        delays.see_clock(1, clock(400));
        assert_eq!(delays.worst, Duration::ZERO, "the other player's clock tells nothing of this move");
        // 1000 - 30 - 40 + 10
        delays.see_clock(0, clock(940));
        assert_eq!((delays.worst, delays.overhead(50 * MS)), (40 * MS, 80 * MS));
        delays.see_clock(0, clock(500));
        assert_eq!(delays.worst, 40 * MS, "without a move of the engine between, nothing is known");
        assert_eq!(delays.overhead(5 * MS), 50 * MS, "ten times at most");
        delays.moved(0, clock(500), 30 * MS);
        delays.see_clock(0, clock(1000));
        assert_eq!(delays.worst, 40 * MS, "a new game");
        delays.moved(0, clock(300_000), 30 * MS);
        delays.see_clock(0, clock(10_000));
        assert_eq!(delays.worst, 40 * MS, "set anew by hand");
        delays.moved(0, clock(1000), 30 * MS);
        delays.forget_clocks();
        delays.see_clock(0, clock(500));
        assert_eq!(delays.worst, 40 * MS, "a new game with less time");
    }

    #[test]
    fn a_delay_fades_with_the_moves_after_it() {
        let mut delays = Delays::default();
        delays.note(800 * MS);
        delays.note(Duration::ZERO);
        assert_eq!(delays.worst, 700 * MS);
        (0..40).for_each(|_| delays.note(2 * MS));
        assert_eq!(delays.overhead(10 * MS), 10 * MS);
        delays.note(Duration::from_secs(3600));
        assert_eq!(delays.worst, LONGEST);
    }
}
