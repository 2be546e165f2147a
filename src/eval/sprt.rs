//! The sequential probability ratio test of a match: is the first player at least `elo1` stronger, or not more than `elo0`?
//!
//! The generalised test (GSPRT) of Van den Bergh, as fishtest, cutechess and fastchess have it: a sample is a pair of games with the same
//! opening and exchanged seats, whose score is one of five values. Openings that favour a seat and the dependence of both games of a pair
//! are then part of the samples' distribution. The log-likelihood ratio compares the most likely distribution of these five values that has
//! the expected score of `elo1` with that of `elo0` (<https://www.cantate.be/Fishtest/support_MLE_multinomial.pdf>, proposition 1.1).

use crate::error::{Error, Result};
use serde::Serialize;

/// The probability of either error: of accepting `elo1` at the true difference `elo0`, and the reverse.
pub const ERROR_RATE: f64 = 0.05;
/// Scores of a pair, in points of 2: lost both, lost and drew, two draws or one win each, won and drew, won both.
const SCORES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// What a value that was not seen counts for, in pairs, so that every value stays possible. The value of fishtest and fastchess.
const UNSEEN: f64 = 1e-3;
/// Pairs in a row that repeat earlier ones, after which a test ends undecided: 2,000 games without a new one. Where one pair in a hundred is
/// still new, so many repeat with a probability of 0.00004.
const MAX_REPEATED_PAIRS: u64 = 1000;
/// The largest Elo difference of a hypothesis.
const MAX_ELO: f64 = 1000.0;

/// The two hypotheses of a test: Elo differences on the logistic scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sprt {
    /// The difference of hypothesis H0.
    pub elo0: f64,
    /// The difference of hypothesis H1, above `elo0`.
    pub elo1: f64,
}

/// A hypothesis that a test has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Hypothesis {
    /// The difference is `elo0` or less.
    H0,
    /// The difference is `elo1` or more.
    H1,
}

/// The pairs of a test so far, in the order of their numbers, and what they decide.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SprtState {
    /// The hypotheses.
    #[serde(flatten)]
    pub test: Sprt,
    /// The number of pairs of each score. `[5]`
    pub pairs: [u64; 5],
    /// The log-likelihood ratio of H1 to H0.
    pub llr: f64,
    /// The hypothesis that is accepted; None while the ratio is between the bounds.
    pub accepted: Option<Hypothesis>,
    /// Pairs since the last one that was added, all of which repeat earlier ones and count for nothing.
    #[serde(skip)]
    pub repeated: u64,
}

impl Sprt {
    /// The test called `text`: both differences, with a comma.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn parse(text: &str) -> Result<Self> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|elo| elo.abs() <= MAX_ELO);
        let parsed = text.split_once(',').and_then(|(elo0, elo1)| {
            let (elo0, elo1) = (number(elo0)?, number(elo1)?);
            (elo0 < elo1).then_some(Self { elo0, elo1 })
        });
        let expected = "two Elo differences from -1000 to 1000, the smaller one first, as in 0,20";
        parsed.ok_or_else(|| Error::config("--sprt", text, expected))
    }

    /// The ratios that decide: at or below the first H0 is accepted, at or above the second H1.
    pub fn bounds() -> [f64; 2] {
        let upper = ((1.0 - ERROR_RATE) / ERROR_RATE).ln();
        [-upper, upper]
    }

    /// The log-likelihood ratio of H1 to H0 after pairs with these scores. `[5]`
    pub fn llr(&self, pairs: [u64; 5]) -> f64 {
        let counts = pairs.map(|count| if count == 0 { UNSEEN } else { count as f64 });
        let total: f64 = counts.iter().sum();
        let shares = counts.map(|count| count / total);
        let [h0, h1] = [self.elo0, self.elo1].map(|elo| tilt(&shares, score_of(elo)));
        // The most likely shares are these, divided by 1 + theta (score - expected score).
        let log_ratio = |score: f64| (h0.divisor(score) / h1.divisor(score)).ln();
        counts.iter().zip(SCORES).map(|(count, score)| count * log_ratio(score)).sum()
    }
}

impl SprtState {
    /// A test without a pair yet.
    pub fn new(test: Sprt) -> Self {
        Self { test, pairs: [0; 5], llr: 0.0, accepted: None, repeated: 0 }
    }

    /// Adds a pair by the first player's results of both games: positive is a win, negative a loss. A test that has decided stays as it
    /// is.
    pub fn add(&mut self, results: [f32; 2]) {
        if self.accepted.is_some() {
            return;
        }
        let points = |result: f32| 1 + usize::from(result > 0.0) - usize::from(result < 0.0);
        self.repeated = 0;
        self.pairs[points(results[0]) + points(results[1])] += 1;
        self.llr = self.test.llr(self.pairs);
        let [lower, upper] = Sprt::bounds();
        self.accepted = match self.llr {
            llr if llr >= upper => Some(Hypothesis::H1),
            llr if llr <= lower => Some(Hypothesis::H0),
            _ => None,
        };
    }

    /// Passes over a pair that repeats an earlier one.
    pub fn pass_over(&mut self) {
        self.repeated += 1;
    }

    /// True if so many pairs in a row have repeated earlier ones that no decision is to be expected.
    pub fn is_exhausted(&self) -> bool {
        self.repeated >= MAX_REPEATED_PAIRS
    }

    /// True if no further pair is needed.
    pub fn is_over(&self) -> bool {
        self.accepted.is_some() || self.is_exhausted()
    }

    /// The number of pairs.
    pub fn num_pairs(&self) -> u64 {
        self.pairs.iter().sum()
    }
}

impl std::fmt::Display for SprtState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [lower, upper] = Sprt::bounds();
        write!(f, "LLR {:+.2} [{lower:+.2} to {upper:+.2}]", self.llr)
    }
}

/// The expected score of a player who is `elo` stronger.
fn score_of(elo: f64) -> f64 {
    1.0 / (1.0 + 10f64.powf(-elo / 400.0))
}

/// The tilt of a distribution to an expected score.
struct Tilt {
    theta: f64,
    expected: f64,
}

impl Tilt {
    fn divisor(&self, score: f64) -> f64 {
        1.0 + self.theta * (score - self.expected)
    }
}

/// The tilt that makes `expected` the mean of the shares divided by [`Tilt::divisor`]. The condition falls strictly in theta between its
/// poles, so bisection finds its only root, to the last bit.
fn tilt(shares: &[f64; 5], expected: f64) -> Tilt {
    let excess = |theta: f64| {
        let tilt = Tilt { theta, expected };
        let term = |(share, score): (&f64, f64)| share * (score - expected) / tilt.divisor(score);
        shares.iter().zip(SCORES).map(term).sum::<f64>()
    };
    let (mut low, mut high) = (-1.0 / (1.0 - expected), 1.0 / expected);
    loop {
        let theta = 0.5 * (low + high);
        if theta <= low || theta >= high {
            return Tilt { theta, expected };
        }
        if excess(theta) > 0.0 {
            low = theta;
        } else {
            high = theta;
        }
    }
}

#[cfg(test)]
mod tests;
