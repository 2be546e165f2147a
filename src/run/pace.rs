//! When a run measures its strength, and on how many items: a share of the working time. This follows the clock, so it must influence
//! neither games nor training.

use crate::config::EvalConfig;
use crate::eval::opponent::Opponent;
use crate::report::metrics::EpochRecord;
use std::collections::BTreeMap;

/// Seconds after the last measurement from which a smaller one than wanted is made.
const PATIENCE: f64 = 15.0;
/// Seconds within which one measurement at least should follow another.
const INTERVAL: f64 = 30.0;
/// Seconds whose share the last measurement of a run may take, if the last one before it was made later than that.
const LAST: f64 = 30.0;

/// Whether a measurement is the last one of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementTime {
    /// Epochs follow.
    Within,
    /// The run ends.
    Last,
}

/// What would be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The opponent; None for solved positions.
    pub opponent: Option<Opponent>,
    /// The full number of items.
    pub items: usize,
    /// The smallest number of items that shows anything.
    pub min_items: usize,
    /// A measurement has a multiple of this number of items, unless it is full.
    pub group: usize,
}

/// The times of measurements.
#[derive(Clone, Debug)]
pub struct EvaluationPace {
    every: u64,
    share: f64,
    /// Working seconds of the run at the end of the last measurement; None before the first.
    ended: Option<f64>,
    /// Seconds of an item, by kind of opponent.
    costs: BTreeMap<Option<Opponent>, f64>,
}

impl EvaluationPace {
    /// The pace of a run with these `records`, whose measurements on solved positions have this number of them.
    pub fn new(eval: &EvalConfig, positions: usize, records: &[EpochRecord]) -> Self {
        let mut pace = Self { every: eval.every, share: eval.share, ended: None, costs: BTreeMap::new() };
        for record in records {
            let Some(strength) = record.strength else { continue };
            pace.ended = Some(record.seconds);
            match strength.rung.zip(strength.match_games) {
                Some((rung, games)) => {
                    pace.keep_cost(Some(rung.opponent), games as usize, record.eval_seconds)
                }
                None => pace.keep_cost(None, positions, record.eval_seconds),
            }
        }
        pace
    }

    /// The number of items to measure after `epoch`, `now` in working seconds of the run; None where nothing is measured.
    pub fn items(&self, epoch: u64, now: f64, wanted: Wanted, moment: MeasurementTime) -> Option<usize> {
        let Wanted { items, min_items, group, .. } = wanted;
        let min_items = min_items.min(items);
        if self.every == 0 || (moment == MeasurementTime::Within && !epoch.is_multiple_of(self.every)) {
            return None;
        }
        if self.share == 0.0 {
            return Some(items);
        }
        let since = now - self.ended.unwrap_or(0.0);
        let budget = self.share * if moment == MeasurementTime::Last { since.max(LAST) } else { since };
        let affordable = match self.cost(wanted.opponent) {
            None => min_items,
            Some(cost) => ((budget / cost) as usize).min(items),
        };
        let affordable = if affordable < items { affordable / group * group } else { items };
        let is_worth_it = affordable == items || (affordable >= min_items && since >= PATIENCE);
        match self.ended.is_none() || moment == MeasurementTime::Last {
            true => Some(affordable.max(min_items)),
            false => is_worth_it.then_some(affordable),
        }
    }

    /// Keeps the cost of a measurement of so many `items` that took `seconds` and ended at `now`, in working seconds of the run.
    pub fn measured(&mut self, opponent: Option<Opponent>, items: usize, seconds: f64, now: f64) {
        self.ended = Some(now);
        self.keep_cost(opponent, items, seconds);
    }

    fn keep_cost(&mut self, opponent: Option<Opponent>, items: usize, seconds: f64) {
        self.costs.insert(kind(opponent), seconds.max(1e-6) / items.max(1) as f64);
    }

    /// True if so few items against `opponent` would take more than the share of [`INTERVAL`]. False while their cost is not known.
    pub fn is_too_slow(&self, opponent: Opponent, items: usize) -> bool {
        let seconds = self.cost(Some(opponent)).map_or(0.0, |cost| cost * items as f64);
        self.share > 0.0 && seconds > self.share * INTERVAL
    }

    /// Estimated seconds of an item; None if nothing like it was measured. The cost of another rollout player is taken to grow with its
    /// simulations, that of an own network to be twice that of the weakest opponent.
    fn cost(&self, opponent: Option<Opponent>) -> Option<f64> {
        let known = |opponent| self.costs.get(&kind(opponent)).copied();
        known(opponent).or_else(|| match opponent? {
            Opponent::Random => None,
            Opponent::Epoch(_) => known(Some(Opponent::Random)).map(|cost| 2.0 * cost),
            Opponent::Rollouts(simulations) => {
                self.costs.iter().rev().find_map(|(other, cost)| match other {
                    Some(Opponent::Rollouts(fewer)) => {
                        Some(cost * f64::from(simulations) / f64::from(*fewer).min(f64::from(simulations)))
                    }
                    _ => None,
                })
            }
        })
    }
}

/// All own networks cost the same.
fn kind(opponent: Option<Opponent>) -> Option<Opponent> {
    opponent.map(|opponent| match opponent {
        Opponent::Epoch(_) => Opponent::Epoch(0),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use MeasurementTime::{Last, Within};

    fn pace(share: f64) -> EvaluationPace {
        EvaluationPace::new(&EvalConfig { share, ..EvalConfig::default() }, 0, &[])
    }

    fn against(opponent: Opponent) -> Wanted {
        Wanted { opponent: Some(opponent), items: 64, min_items: 8, group: 2 }
    }

    #[test]
    fn the_first_epoch_and_the_end_are_always_measured() {
        let mut pace = pace(0.1);
        assert_eq!(pace.items(1, 9.0, against(Opponent::Random), Within), Some(8));
        pace.measured(Some(Opponent::Random), 8, 40.0, 49.0);
        assert_eq!(pace.items(2, 50.0, against(Opponent::Random), Within), None);
        assert_eq!(pace.items(2, 50.0, against(Opponent::Random), Last), Some(8));
    }

    #[test]
    fn measurements_take_at_most_their_share_and_come_within_thirty_seconds() {
        for (seconds_of_game, epoch_seconds) in [(0.001, 3.0), (0.05, 9.0), (0.3, 7.0), (0.37, 2.0)] {
            let (mut pace, mut now, mut spent) = (pace(0.1), 0.0, 0.0);
            let (mut last, mut gap) = (0.0_f64, 0.0_f64);
            for epoch in 1..500 {
                now += epoch_seconds;
                let Some(games) = pace.items(epoch, now, against(Opponent::Random), Within) else { continue };
                gap = gap.max(now - last);
                let seconds = games as f64 * seconds_of_game;
                (now, spent) = (now + seconds, spent + seconds);
                pace.measured(Some(Opponent::Random), games, seconds, now);
                last = now;
            }
            assert!(spent / now < 0.105 && gap < 30.001, "{seconds_of_game}: {spent} of {now}, {gap}");
        }
    }

    #[test]
    fn without_a_share_the_clock_has_no_effect() {
        let mut pace = pace(0.0);
        pace.every = 2;
        pace.measured(None, 8, 1e9, 1.0);
        let items = |epoch, moment| pace.items(epoch, 1.0, against(Opponent::Random), moment);
        assert_eq!([items(1, Within), items(2, Within), items(3, Last)], [None, Some(64), Some(64)]);
        pace.every = 0;
        assert_eq!(pace.items(2, 1.0, against(Opponent::Random), Last), None);
    }

    #[test]
    fn the_cost_of_a_harder_opponent_is_estimated() {
        let mut pace = pace(0.1);
        pace.measured(Some(Opponent::Rollouts(100)), 10, 1.0, 0.0);
        let games = |pace: &EvaluationPace, opponent| pace.items(2, 20.0, against(opponent), Within);
        assert_eq!(games(&pace, Opponent::Rollouts(100)), Some(20), "2 s at 0.1 s a game");
        assert_eq!(games(&pace, Opponent::Rollouts(800)), None, "2 s at 0.8 s a game");
        pace.measured(Some(Opponent::Random), 10, 0.5, 0.0);
        assert_eq!(games(&pace, Opponent::Epoch(3)), Some(20), "2 s at 0.1 s a game");
    }

    #[test]
    fn an_opponent_is_too_slow_if_measurements_would_be_far_apart() {
        let mut timed = pace(0.1);
        assert!(!timed.is_too_slow(Opponent::Rollouts(100), 8), "its cost is not known");
        timed.measured(Some(Opponent::Rollouts(100)), 10, 0.5, 0.0);
        let is_too_slow = |games| timed.is_too_slow(Opponent::Rollouts(800), games);
        assert_eq!([is_too_slow(7), is_too_slow(8)], [false, true], "3 s at 0.4 s a game");
        let mut unlimited = pace(0.0);
        unlimited.measured(Some(Opponent::Rollouts(100)), 1, 1e6, 0.0);
        assert!(!unlimited.is_too_slow(Opponent::Rollouts(800), 8));
    }

    #[test]
    fn a_resumed_run_continues_the_pace() {
        let rung = crate::eval::opponent::Rung { number: 1, opponent: Opponent::Rollouts(100) };
        let strength = crate::report::metrics::Strength {
            rung: Some(rung),
            match_games: Some(10),
            ..Default::default()
        };
        let record =
            EpochRecord { seconds: 100.0, eval_seconds: 1.0, strength: Some(strength), ..Default::default() };
        let pace = EvaluationPace::new(&EvalConfig::default(), 0, &[record, EpochRecord::default()]);
        assert_eq!(pace.items(3, 105.0, against(Opponent::Rollouts(100)), Within), None);
        assert_eq!(pace.items(3, 120.0, against(Opponent::Rollouts(100)), Within), Some(20));

        let slow =
            EpochRecord { eval_seconds: 100.0, strength: Some(Default::default()), ..Default::default() };
        let pace = EvaluationPace::new(&EvalConfig::default(), 200, &[slow]);
        let positions = Wanted { opponent: None, items: 200, min_items: 200, group: 1 };
        assert_eq!(pace.items(3, 120.0, positions, Within), None, "200 positions take 100 s");
    }
}
