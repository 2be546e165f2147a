//! The clocks of GTP: `time_settings`, `kgs-time_settings`, `time_left`.

use crate::protocol::clock::TimeLeft;
use std::time::Duration;

/// What follows the main time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overtime {
    /// Nothing: the game is lost.
    None,
    /// Periods for so many moves each.
    Canadian { period: Duration, stones: u32 },
    /// A period for every move.
    ByoYomi { period: Duration },
}

/// The clock of one player.
#[derive(Clone, Copy, Debug)]
struct Side {
    time: Duration,
    /// Moves to make in `time`; 0 in the main time.
    stones: u32,
}

/// The clocks of both players.
#[derive(Clone, Debug)]
pub struct Clocks {
    /// Each player's time at the start of a game.
    main: Duration,
    overtime: Overtime,
    sides: [Side; 2],
}

/// A whole or broken number of seconds that a clock can hold.
fn seconds(text: &str) -> Option<Duration> {
    text.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok())
}

impl Clocks {
    fn new(main: Duration, overtime: Overtime) -> Self {
        Self { main, overtime, sides: [Side { time: main, stones: 0 }; 2] }
    }

    /// Sets the clocks for the start of another game.
    pub fn restart(&mut self) {
        *self = Self::new(self.main, self.overtime);
    }

    /// Reads the arguments of `time_settings`: main time, byo-yomi time, byo-yomi stones. Some(None) is no limit.
    pub fn of_settings(arguments: &[&str]) -> Option<Option<Self>> {
        let [main, period, stones] = arguments else { return None };
        let (main, period, stones) = (seconds(main)?, seconds(period)?, stones.parse().ok()?);
        Some(match (period.is_zero(), stones) {
            (false, 0) => None,
            (true, _) => Some(Self::new(main, Overtime::None)),
            _ => Some(Self::new(main, Overtime::Canadian { period, stones })),
        })
    }

    /// Reads the arguments of `kgs-time_settings`: `none`, `absolute`, `byoyomi` or `canadian` with their numbers.
    pub fn of_kgs(arguments: &[&str]) -> Option<Option<Self>> {
        Some(match arguments {
            ["none"] => None,
            ["absolute", main] => Some(Self::new(seconds(main)?, Overtime::None)),
            ["byoyomi", main, period, periods] => {
                periods.parse::<u32>().ok()?;
                Some(Self::new(seconds(main)?, Overtime::ByoYomi { period: seconds(period)? }))
            }
            ["canadian", main, period, stones] => {
                let (period, stones) = (seconds(period)?, stones.parse().ok().filter(|&stones| stones > 0)?);
                Some(Self::new(seconds(main)?, Overtime::Canadian { period, stones }))
            }
            _ => return None,
        })
    }

    /// Reads the arguments of `time_left` after the colour: seconds and stones, 0 stones in the main time. With byo-yomi the number of
    /// stones is that of periods. False if they are no numbers.
    pub fn set_left(clocks: &mut Option<Self>, player: usize, arguments: &[&str]) -> bool {
        let [time, stones] = arguments else { return false };
        // Some servers send a clock that has just run out as a negative time.
        let time = match time.parse::<f64>() {
            Ok(time) if time < 0.0 => Some(Duration::ZERO),
            _ => seconds(time),
        };
        let (Some(time), Ok(stones)) = (time, stones.parse()) else { return false };
        let clocks = clocks.get_or_insert_with(|| Self::new(time, Overtime::None));
        clocks.sides[player] = Side { time, stones };
        true
    }

    /// The clock before a move of `player`.
    pub fn left(&self, player: usize) -> TimeLeft {
        let Side { time, stones } = self.sides[player];
        match self.overtime {
            Overtime::None if stones == 0 => TimeLeft::of(time),
            Overtime::None => TimeLeft { moves_to_go: Some(stones), ..TimeLeft::of(time) },
            Overtime::ByoYomi { .. } if stones > 0 => TimeLeft { moves_to_go: Some(1), ..TimeLeft::of(time) },
            Overtime::ByoYomi { period } => TimeLeft { overtime: period, ..TimeLeft::of(time) },
            Overtime::Canadian { .. } if stones > 0 => {
                TimeLeft { moves_to_go: Some(stones), ..TimeLeft::of(time) }
            }
            Overtime::Canadian { period, stones } => {
                TimeLeft { overtime: period / stones.max(1), ..TimeLeft::of(time) }
            }
        }
    }

    /// Takes the time of a move off a clock, for clients that do not send `time_left`.
    pub fn spend(&mut self, player: usize, used: Duration) {
        let Side { time, stones } = self.sides[player];
        let left = Side { time: time.saturating_sub(used), stones: stones.saturating_sub(1) };
        let ends_period = left.time.is_zero() || (stones > 0 && left.stones == 0);
        self.sides[player] = match self.overtime {
            Overtime::ByoYomi { period } if ends_period => Side { time: period, stones: 1 },
            Overtime::Canadian { period, stones } if ends_period => Side { time: period, stones },
            _ => left,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn settings_are_read() {
        let left = |clocks: Option<Option<Clocks>>| clocks.flatten().expect("a clock").left(0);
        assert_eq!(left(Clocks::of_settings(&["300", "0", "0"])), TimeLeft::of(300 * S));
        let canadian = TimeLeft { overtime: 2 * S, ..TimeLeft::of(300 * S) };
        assert_eq!(left(Clocks::of_settings(&["300", "50", "25"])), canadian);
        assert_eq!(left(Clocks::of_kgs(&["canadian", "300", "50", "25"])), canadian);
        assert_eq!(left(Clocks::of_kgs(&["absolute", "1.5"])), TimeLeft::of(S * 3 / 2));
        let byoyomi = TimeLeft { overtime: 30 * S, ..TimeLeft::of(60 * S) };
        assert_eq!(left(Clocks::of_kgs(&["byoyomi", "60", "30", "5"])), byoyomi);
        assert!(matches!(Clocks::of_settings(&["0", "1", "0"]), Some(None)), "no limit");
        assert!(matches!(Clocks::of_kgs(&["none"]), Some(None)));
        for wrong in
            [&["1", "2"][..], &["-1", "0", "0"], &["x", "0", "0"], &["nan", "0", "0"], &["1e300", "0", "0"]]
        {
            assert!(Clocks::of_settings(wrong).is_none(), "{wrong:?}");
        }
        for wrong in [
            &[][..],
            &["fischer", "1"],
            &["absolute"],
            &["canadian", "1", "1", "0"],
            &["byoyomi", "1", "1", "x"],
        ] {
            assert!(Clocks::of_kgs(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_left_counts_and_moves_are_taken_off() {
        let mut clocks = Clocks::of_kgs(&["canadian", "10", "20", "5"]).expect("read");
        assert!(Clocks::set_left(&mut clocks, 1, &["15", "4"]));
        let clock = clocks.as_mut().expect("a clock");
        assert_eq!(clock.left(1), TimeLeft { moves_to_go: Some(4), ..TimeLeft::of(15 * S) });
        clock.spend(0, 4 * S);
        assert_eq!(clock.left(0).remaining, 6 * S);
        clock.spend(0, 7 * S);
        assert_eq!(
            clock.left(0),
            TimeLeft { moves_to_go: Some(5), ..TimeLeft::of(20 * S) },
            "the first period"
        );
        clock.restart();
        assert_eq!([0, 1].map(|player| clock.left(player).remaining), [10 * S; 2], "another game");
        let mut none = None;
        assert!(!Clocks::set_left(&mut none, 0, &["x", "0"]) && !Clocks::set_left(&mut none, 0, &["1"]));
        assert!(none.is_none());
        assert!(Clocks::set_left(&mut none, 0, &["-3", "0"]));
        assert_eq!(none.expect("set").left(0), TimeLeft::default());
    }
}
