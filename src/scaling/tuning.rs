//! The fastest settings of self-play on a machine, found by trying: hill climbing along each setting in turn, then changes of two settings
//! at once. Knows no self-play: the rate of a combination of values comes from a [`Meter`].

use crate::error::Result;

/// How much faster a combination must be to replace another: more than repeated measurements differ.
const MARGIN: f64 = 1.02;
/// Values without a gain after which a direction is given up: one may be slow where the next is fast.
const PATIENCE: usize = 2;
/// Combinations that are measured again at the end.
const FINALISTS: usize = 4;
/// Measurements of each of them.
const REPEATS: usize = 3;
/// Finalists within this factor of the fastest are taken as equal.
const EQUAL: f64 = 0.99;
/// Combinations of two changes are tried if the changes by themselves make this of the fastest together.
const PROMISING: f64 = 0.8;

/// A setting and the values to try, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The configuration key.
    pub key: &'static str,
    /// The values.
    pub values: Vec<u64>,
}

/// A combination that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The index of each setting's value. `[axes]`
    pub at: Vec<usize>,
    /// The rates that were measured, in simulations/s; empty if the combination is not possible.
    pub rates: Vec<f64>,
}

impl Measurement {
    /// The median rate in simulations/s; 0 if the combination is not possible.
    pub fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(0.0)
    }
}

/// What measures combinations.
pub trait Meter {
    /// The rate of a combination in simulations/s, None if it is not possible. `values [axes]`
    ///
    /// # Errors
    /// Those of a measurement.
    fn measure(&mut self, values: &[u64]) -> Result<Option<f64>>;

    /// True if there is no time for `more` measurements, or none shall be made any more.
    fn is_over(&self, more: usize) -> bool;
}

/// The combinations that were measured.
pub struct Tuning<'a> {
    axes: &'a [Axis],
    meter: &'a mut dyn Meter,
    /// The combination that was there before. `[axes]`
    start: Vec<usize>,
    tried: Vec<Measurement>,
}

impl<'a> Tuning<'a> {
    /// Nothing measured yet; `start [axes]` is the first to be.
    pub fn new(axes: &'a [Axis], start: Vec<usize>, meter: &'a mut dyn Meter) -> Self {
        Self { axes, meter, start, tried: Vec::new() }
    }

    /// The values of a combination.
    pub fn values(axes: &[Axis], at: &[usize]) -> Vec<u64> {
        axes.iter().zip(at).map(|(axis, &index)| axis.values[index]).collect()
    }

    /// Climbs from the start until no change of one or of two settings gains, measures the start and the best combinations again, and
    /// returns all that were measured, the one to take first.
    ///
    /// # Errors
    /// Those of the measurements.
    pub fn climb(mut self) -> Result<Vec<Measurement>> {
        let mut best = self.start.clone();
        self.rate(&best)?;
        loop {
            let before = best.clone();
            for axis in 0..self.axes.len() {
                for direction in [1, -1] {
                    best = self.climb_along(axis, direction, best)?;
                }
            }
            if best == before {
                best = self.change_two(best)?;
            }
            if best == before || self.meter.is_over(self.reserve()) {
                return self.finish();
            }
        }
    }

    /// The first combination found faster than `best` among those that differ from it by two settings, the most promising first: two
    /// changes may gain together what neither does alone. `best` if there is none.
    fn change_two(&mut self, best: Vec<usize>) -> Result<Vec<usize>> {
        let fastest = self.rate(&best)?;
        for change in self.promising(&best, fastest) {
            if self.meter.is_over(self.reserve()) {
                break;
            }
            if self.rate(&change)? > MARGIN * fastest {
                return Ok(change);
            }
        }
        Ok(best)
    }

    /// The combinations that differ from `best` by two settings and were not measured, those first whose changes by themselves keep most
    /// of its rate `fastest`; a change that was not measured by itself keeps all.
    fn promising(&self, best: &[usize], fastest: f64) -> Vec<Vec<usize>> {
        let known = |at: &[usize]| self.tried.iter().find(|tried| tried.at == at);
        let with = |changes: &[(usize, usize)]| {
            let mut at = best.to_vec();
            changes.iter().for_each(|&(axis, index)| at[axis] = index);
            at
        };
        let of_axis =
            |axis: usize| (0..self.axes[axis].values.len()).filter(move |&index| index != best[axis]);
        let mut found: Vec<(f64, Vec<usize>)> = Vec::new();
        for (first, second) in
            (0..best.len()).flat_map(|second| (0..second).map(move |first| (first, second)))
        {
            for (i, j) in of_axis(first).flat_map(|i| of_axis(second).map(move |j| (i, j))) {
                let changes = [(first, i), (second, j)];
                let kept =
                    changes.map(|change| known(&with(&[change])).map_or(1.0, |one| one.rate() / fastest));
                let (expected, both) = (kept[0] * kept[1], with(&changes));
                if expected >= PROMISING && known(&both).is_none() {
                    found.push((expected, both));
                }
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// Measures every combination, the start first, until the meter is over, and returns all that were measured, the one to take first.
    ///
    /// # Errors
    /// Those of the measurements.
    pub fn exhaust(mut self) -> Result<Vec<Measurement>> {
        self.rate(&self.start.clone())?;
        let count: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        for number in 0..count {
            let mut rest = number;
            let at = self.axes.iter().map(|axis| {
                let index = rest % axis.values.len();
                rest /= axis.values.len();
                index
            });
            let at = at.collect::<Vec<_>>();
            if self.meter.is_over(1) {
                break;
            }
            self.rate(&at)?;
        }
        self.finish()
    }

    /// Measurements that are still to be made when the climb has ended: of the finalists so far, one more included, and of the start.
    fn reserve(&self) -> usize {
        (self.tried.len() + 1).min(FINALISTS + 1) * (REPEATS - 1)
    }

    /// The best combination that differs from `best` by a higher or a lower value of one setting, or `best`.
    fn climb_along(&mut self, axis: usize, direction: isize, mut best: Vec<usize>) -> Result<Vec<usize>> {
        let (mut next, mut without_gain) = (best.clone(), 0);
        while without_gain < PATIENCE && !self.meter.is_over(self.reserve()) {
            match next[axis].checked_add_signed(direction) {
                Some(index) if index < self.axes[axis].values.len() => next[axis] = index,
                _ => break,
            }
            if self.rate(&next)? > MARGIN * self.rate(&best)? {
                best.clone_from(&next);
                without_gain = 0;
            } else {
                without_gain += 1;
            }
        }
        Ok(best)
    }

    /// The rate of a combination, measured if it was not.
    fn rate(&mut self, at: &[usize]) -> Result<f64> {
        if let Some(known) = self.tried.iter().find(|tried| tried.at == at) {
            return Ok(known.rate());
        }
        let rate = self.meter.measure(&Self::values(self.axes, at))?;
        self.tried.push(Measurement { at: at.to_vec(), rates: rate.into_iter().collect() });
        Ok(rate.unwrap_or(0.0))
    }

    /// Measures the start and the best combinations by turns, so that a machine that becomes slower does so for all of them.
    fn finish(mut self) -> Result<Vec<Measurement>> {
        self.sort();
        let finalists = self.tried.len().min(FINALISTS);
        let is_repeated = |index: &usize| {
            let tried = &self.tried[*index];
            !tried.rates.is_empty() && (*index < finalists || tried.at == self.start)
        };
        let again: Vec<usize> = (0..self.tried.len()).filter(is_repeated).collect();
        for index in (1..REPEATS).flat_map(|_| &again) {
            if self.meter.is_over(1) {
                break;
            }
            let values = Self::values(self.axes, &self.tried[*index].at);
            let rate = self.meter.measure(&values)?;
            self.tried[*index].rates.extend(rate);
        }
        let fastest = self.tried[..finalists].iter().map(Measurement::rate).fold(0.0, f64::max);
        // Of equal ones that with the lowest values: fewer games and threads, and less memory.
        let is_equal = |tried: &&Measurement| tried.rate() >= EQUAL * fastest;
        let lowest = self.tried[..finalists].iter().filter(is_equal).map(|tried| tried.at.clone()).min();
        self.sort();
        if let Some(at) = self.tried.iter().position(|tried| Some(&tried.at) == lowest.as_ref()) {
            self.tried[..=at].rotate_right(1);
        }
        Ok(self.tried)
    }

    /// The fastest first; equal ones in the order of their values.
    fn sort(&mut self) {
        self.tried.sort_by(|a, b| b.rate().total_cmp(&a.rate()).then_with(|| a.at.cmp(&b.at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates by a formula, with the number of measurements that are left.
    struct Formula {
        of: fn(&[u64]) -> Option<f64>,
        left: usize,
        made: Vec<Vec<u64>>,
    }

    impl Meter for Formula {
        fn measure(&mut self, values: &[u64]) -> Result<Option<f64>> {
            self.left = self.left.saturating_sub(1);
            self.made.push(values.to_vec());
            Ok((self.of)(values))
        }

        fn is_over(&self, more: usize) -> bool {
            self.left < more
        }
    }

    fn axes() -> Vec<Axis> {
        let axis = |key, values: &[u64]| Axis { key, values: values.to_vec() };
        vec![axis("run.threads", &[1, 2, 4, 8]), axis("selfplay.games", &[16, 32, 64, 128, 256, 512, 1024])]
    }

    /// The best is 4 threads and 256 games; 8 threads and 1024 games do not fit.
    fn peak(values: &[u64]) -> Option<f64> {
        let (threads, games) = (values[0] as f64, values[1] as f64);
        (values[0] * values[1] < 8192)
            .then(|| 1000.0 / (1.0 + (threads / 4.0).log2().powi(2) + (games / 256.0).log2().powi(2)))
    }

    fn run(
        of: fn(&[u64]) -> Option<f64>,
        left: usize,
        start: [usize; 2],
    ) -> (Vec<Measurement>, Vec<Vec<u64>>) {
        let axes = axes();
        let mut meter = Formula { of, left, made: Vec::new() };
        let found = Tuning::new(&axes, start.to_vec(), &mut meter).climb().unwrap();
        (found, meter.made)
    }

    #[test]
    fn the_peak_is_found_from_every_combination_with_fewer_measurements_than_all() {
        for start in (0..4).flat_map(|threads| (0..7).map(move |games| [threads, games])) {
            let (found, made) = run(peak, usize::MAX, start);
            assert_eq!(Tuning::values(&axes(), &found[0].at), [4, 256], "from {start:?}");
            assert!(found.len() < 28, "{start:?}: {}", found.len());
            assert_eq!(made[0], Tuning::values(&axes(), &start));
            let again: usize = found.iter().map(|tried| tried.rates.len().saturating_sub(1)).sum();
            assert!(again >= FINALISTS * (REPEATS - 1) && made.len() == found.len() + again, "{start:?}");
            let own = found.iter().find(|tried| tried.at == start);
            // 8 threads with 1024 games have no rate.
            assert_eq!(own.map(|own| own.rates.len()), Some(if start == [3, 6] { 0 } else { REPEATS }));
        }
    }

    #[test]
    fn a_dip_of_one_value_is_crossed() {
        let dip = |values: &[u64]| Some(if values[1] == 128 { 1.0 } else { values[1] as f64 });
        assert_eq!(Tuning::values(&axes(), &run(dip, usize::MAX, [0, 2]).0[0].at), [1, 1024]);
    }

    /// Neither more games nor more threads gain, both together do.
    #[test]
    fn two_changes_that_gain_only_together_are_found() {
        let together = |values: &[u64]| {
            let changes = u32::from(values[0] == 8) + u32::from(values[1] == 16);
            Some([100.0, 97.0, 110.0][changes as usize])
        };
        assert_eq!(Tuning::values(&axes(), &run(together, usize::MAX, [1, 3]).0[0].at), [8, 16]);
        let (found, made) = run(together, RESERVE + 6, [1, 3]);
        assert!(found[0].rate() == 100.0 && made.len() <= RESERVE + 6, "no time for it: {made:?}");
    }

    #[test]
    fn equal_rates_take_the_lowest_values_and_impossible_combinations_are_last() {
        let flat = |values: &[u64]| (values[0] < 8).then(|| 100.0 + 1e-4 * (values[0] * values[1]) as f64);
        let (found, _) = run(flat, usize::MAX, [2, 3]);
        let lowest = found.iter().filter(|tried| tried.rates.len() == REPEATS).map(|tried| &tried.at).min();
        assert_eq!(Some(&found[0].at), lowest);
        let (last, rest) = found.split_last().unwrap();
        assert!(last.rates.is_empty() && last.rate() == 0.0, "{last:?}");
        assert!(rest.iter().all(|tried| tried.rate() > 0.0));
    }

    /// The measurements that the finalists and the start take once there are as many.
    const RESERVE: usize = (FINALISTS + 1) * (REPEATS - 1);

    #[test]
    fn a_short_time_still_tries_another_combination() {
        let (found, made) = run(peak, 2 * REPEATS, [0, 0]);
        assert_eq!((found.len(), made.len()), (2, 2 * REPEATS));
        assert_eq!(Tuning::values(&axes(), &found[0].at), [2, 16]);
    }

    #[test]
    fn the_end_of_the_time_ends_the_search_with_the_best_so_far() {
        let (found, made) = run(peak, RESERVE + 5, [0, 0]);
        assert_eq!(
            (made.len(), found.len()),
            (RESERVE + 5, 6),
            "the reserve goes into the best and the start"
        );
        assert_eq!(found[0].rates.len(), REPEATS);
        let (found, made) = run(peak, 3, [0, 0]);
        assert_eq!((made.len(), found.len()), (3, 1), "without a reserve the start alone is measured");
    }

    #[test]
    fn every_combination_is_measured_once() {
        let axes = axes();
        let mut meter = Formula { of: peak, left: usize::MAX, made: Vec::new() };
        let found = Tuning::new(&axes, vec![1, 1], &mut meter).exhaust().unwrap();
        assert_eq!((found.len(), found[0].at.as_slice()), (28, [2, 4].as_slice()));
        assert_eq!(meter.made[0], [2, 32]);
        meter.made.truncate(28);
        meter.made.sort();
        meter.made.dedup();
        assert_eq!(meter.made.len(), 28);
        let mut meter = Formula { of: peak, left: 9, made: Vec::new() };
        let found = Tuning::new(&axes, vec![1, 1], &mut meter).exhaust().unwrap();
        assert_eq!((found.len(), meter.made.len()), (9, 9), "the meter is over after nine measurements");
    }
}
