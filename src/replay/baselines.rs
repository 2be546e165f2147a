//! Losses of constant predictions, with which the losses of training are compared.

use super::{BatchPlan, Replay};
use crate::batch::ErasedRules;
use crate::math;
use rayon::prelude::*;
use std::iter::Sum;

/// Mean losses of predictions that are the same for every position, over the samples of some batches. Positions that are in several of
/// them count as often.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baselines {
    /// Cross-entropy of uniform play: the mean of ln(number of legal actions). None if no sample has a policy target.
    pub uniform_policy: Option<f64>,
    /// Squared error of the mean: the variance of the value targets of a seat relative to the observer, averaged over the seats. No
    /// constant prediction has a smaller error.
    pub constant_values: f64,
}

/// Sums over samples.
#[derive(Clone, Debug, Default)]
struct Sums {
    samples: f64,
    /// Samples with a policy target.
    policies: u64,
    log_legal: f64,
    /// Values of each seat. `[P]`
    values: Vec<f64>,
    /// Squared values of all seats.
    squares: f64,
}

impl Replay {
    /// The baselines of the samples of `game` that `count` batches draw, of which `plan` is the first. Some 60 ns a sample.
    pub fn baselines(&self, game: &dyn ErasedRules, plan: BatchPlan, count: u64) -> Baselines {
        let batches = (plan.number..plan.number + count).into_par_iter();
        let sums = batches.map(|number| self.sums_of(game, BatchPlan { number, ..plan }));
        // Added in order, so that the result does not depend on the number of threads.
        let all: Sums = sums.collect::<Vec<_>>().into_iter().sum();
        let of_means: f64 = all.values.iter().map(|sum| sum / all.samples).map(|mean| mean * mean).sum();
        let variances = (all.squares / all.samples - of_means).max(0.0);
        Baselines {
            uniform_policy: (all.policies > 0).then(|| all.log_legal / all.samples),
            constant_values: variances / self.sizes.num_players as f64,
        }
    }

    fn sums_of(&self, game: &dyn ErasedRules, plan: BatchPlan) -> Sums {
        let p = self.sizes.num_players;
        let mut sums = Sums { samples: plan.size as f64, values: vec![0.0; p], ..Sums::default() };
        for row in 0..plan.size {
            let at = self.draw_sample(plan, row);
            let (observer, num_legal) = (usize::from(self.players[at]), self.num_legal[at]);
            sums.policies += u64::from(num_legal > 0);
            sums.log_legal += f64::from(math::ln(f32::from(num_legal.max(1))));
            let seated = game.num_seated(self.state_at(&self.states, at));
            for (player, &value) in self.values[at * p..][..seated].iter().enumerate() {
                let value = f64::from(value);
                sums.values[(player + seated - observer) % seated] += value;
                sums.squares += value * value;
            }
        }
        sums
    }
}

impl Sum for Sums {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum.values.resize(one.values.len(), 0.0);
            sum.values.iter_mut().zip(&one.values).for_each(|(sum, value)| *sum += value);
            sum.samples += one.samples;
            sum.policies += one.policies;
            sum.log_legal += one.log_legal;
            sum.squares += one.squares;
            sum
        })
    }
}
