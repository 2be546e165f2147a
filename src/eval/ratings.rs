//! Ratings of several players from matches between pairs of them: Elo by maximum likelihood, or points by least squares.
//!
//! Elo ratings are those of Bradley and Terry's model (1952), in which the expected score of a game is logistic in the difference; a draw
//! is half a win, as in BayesElo one drawn game between the players of each match is added, so that ratings stay finite, and the standard
//! errors are of the sandwich form with the observed variance of a game (White 1982), which is smaller where games are drawn. Ratings are
//! relative to the first player, and so are their intervals.

use super::elo::{MatchResult, Mean, Z95};

/// Elo points of a unit of the logistic scale.
const ELO_PER_UNIT: f64 = 400.0 / std::f64::consts::LN_10;
/// The largest change of a rating in one step of Newton's method, in units of the logistic scale.
const MAX_STEP: f64 = 2.0;
/// The largest change of a rating that ends the iteration.
const TOLERANCE: f64 = 1e-9;
/// Steps of Newton's method; it takes about ten.
const MAX_STEPS: usize = 500;

/// A match between two players, by their numbers.
#[derive(Clone, Copy, Debug)]
pub struct Pairing<T> {
    /// The player from whose side the result is.
    pub first: usize,
    /// The other player.
    pub second: usize,
    /// The result.
    pub result: T,
}

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Half the width of the interval.
    pub half_width: f64,
}

impl Estimate {
    /// The interval.
    pub fn interval(&self) -> [f64; 2] {
        [self.value - self.half_width, self.value + self.half_width]
    }
}

/// Ratings relative to that of player 0, and their covariances.
#[derive(Clone, Debug)]
pub struct Ratings {
    values: Vec<f64>,
    /// `[players, players]`; row and column of player 0 are 0.
    covariance: Vec<Vec<f64>>,
}

impl Ratings {
    /// Elo ratings of `players` players, every one of whom is connected to player 0 by `matches`.
    pub fn elo(players: usize, matches: &[Pairing<MatchResult>]) -> Self {
        let mut values = vec![0.0f64; players];
        for _ in 0..MAX_STEPS {
            let mut sums = NormalEquations::new(players);
            for pairing in matches {
                let (games, score, _) = with_prior(&pairing.result);
                let expected = expected_score(&values, pairing);
                sums.add(pairing, games * expected * (1.0 - expected), games * (score - expected));
            }
            let step = sums.solve();
            let largest = step.iter().fold(0.0, |max: f64, step| max.max(step.abs()));
            let scale = (MAX_STEP / largest.max(MAX_STEP)).min(1.0);
            values.iter_mut().zip(&step).for_each(|(value, step)| *value += scale * step);
            if largest < TOLERANCE {
                break;
            }
        }
        let (mut information, mut noise) = (NormalEquations::new(players), NormalEquations::new(players));
        for pairing in matches {
            let (games, _, variance) = with_prior(&pairing.result);
            let expected = expected_score(&values, pairing);
            information.add(pairing, games * expected * (1.0 - expected), 0.0);
            noise.add(pairing, games * variance, 0.0);
        }
        Self { values, covariance: sandwich(&information, &noise) }.scaled(ELO_PER_UNIT)
    }

    /// Ratings in points of `players` players from the mean leads of `matches`, by least squares over all games.
    pub fn points(players: usize, matches: &[Pairing<Mean>]) -> Self {
        let (mut sums, mut noise) = (NormalEquations::new(players), NormalEquations::new(players));
        for pairing in matches {
            let (games, error) =
                (pairing.result.count as f64, pairing.result.half_width.unwrap_or(0.0) / Z95);
            sums.add(pairing, games, games * pairing.result.mean);
            noise.add(pairing, games * games * error * error, 0.0);
        }
        Self { values: sums.solve(), covariance: sandwich(&sums, &noise) }
    }

    fn scaled(self, unit: f64) -> Self {
        let scale = |row: Vec<f64>, unit: f64| row.into_iter().map(|value| value * unit).collect();
        let covariance = self.covariance.into_iter().map(|row| scale(row, unit * unit)).collect();
        Self { values: scale(self.values, unit), covariance }
    }

    /// The rating of `player` minus that of `other`.
    pub fn difference(&self, player: usize, other: usize) -> Estimate {
        let of = |i: usize, j: usize| self.covariance[i][j];
        let variance = of(player, player) + of(other, other) - 2.0 * of(player, other);
        let value = self.values[player] - self.values[other];
        Estimate { value, half_width: Z95 * variance.max(0.0).sqrt() }
    }
}

/// The expected score of the first player of a match, by `values` on the logistic scale.
fn expected_score<T>(values: &[f64], pairing: &Pairing<T>) -> f64 {
    1.0 / (1.0 + (values[pairing.second] - values[pairing.first]).exp())
}

/// Games, score per game and variance of a game's score of a match, with one more game, a draw. The variance has half a game of each
/// result more (Jeffreys's prior), as that of [`MatchResult::score_interval`].
fn with_prior(result: &MatchResult) -> (f64, f64, f64) {
    let games = result.games() as f64;
    let score = (result.wins as f64 + 0.5 * result.draws as f64 + 0.5) / (games + 1.0);
    (games + 1.0, score, result.variance())
}

/// Weighted sums over matches: the normal equations of the differences between players.
struct NormalEquations {
    /// `[players, players]`
    matrix: Vec<Vec<f64>>,
    /// `[players]`
    right: Vec<f64>,
}

impl NormalEquations {
    fn new(players: usize) -> Self {
        Self { matrix: vec![vec![0.0; players]; players], right: vec![0.0; players] }
    }

    /// Adds a match with this weight, whose first player is better than expected by `excess`.
    fn add<T>(&mut self, pairing: &Pairing<T>, weight: f64, excess: f64) {
        let (i, j) = (pairing.first, pairing.second);
        self.matrix[i][i] += weight;
        self.matrix[j][j] += weight;
        self.matrix[i][j] -= weight;
        self.matrix[j][i] -= weight;
        self.right[i] += excess;
        self.right[j] -= excess;
    }

    /// The solution whose entry of player 0 is 0.
    fn solve(&self) -> Vec<f64> {
        let inverse = self.inverse();
        inverse.iter().map(|row| row.iter().zip(&self.right).map(|(a, b)| a * b).sum()).collect()
    }

    /// The inverse without row and column of player 0, which are 0 in the result: Gauss-Jordan elimination, without pivoting since the
    /// matrix is positive definite.
    fn inverse(&self) -> Vec<Vec<f64>> {
        let players = self.right.len();
        let (mut left, mut right) = (self.matrix.clone(), vec![vec![0.0; players]; players]);
        (1..players).for_each(|i| right[i][i] = 1.0);
        for pivot in 1..players {
            let scale = 1.0 / left[pivot][pivot];
            left[pivot].iter_mut().chain(right[pivot].iter_mut()).for_each(|entry| *entry *= scale);
            for row in (1..players).filter(|row| *row != pivot) {
                let factor = left[row][pivot];
                for column in 1..players {
                    left[row][column] -= factor * left[pivot][column];
                    right[row][column] -= factor * right[pivot][column];
                }
            }
        }
        right
    }
}

/// The covariance of the solution of `sums`, whose right side has the covariance `noise`.
fn sandwich(sums: &NormalEquations, noise: &NormalEquations) -> Vec<Vec<f64>> {
    let inverse = sums.inverse();
    product(&product(&inverse, &noise.matrix), &inverse)
}

fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let entry = |row: &Vec<f64>, column: usize| row.iter().zip(b).map(|(x, row)| x * row[column]).sum();
    a.iter().map(|row| (0..b.len()).map(|column| entry(row, column)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::elo::random_result;
    use super::*;
    use crate::rng::{Key, Purpose};

    fn result(wins: u64, draws: u64, losses: u64) -> MatchResult {
        MatchResult { wins, draws, losses, ..MatchResult::default() }
    }

    fn pairing<T>(first: usize, second: usize, result: T) -> Pairing<T> {
        Pairing { first, second, result }
    }

    #[test]
    fn one_match_has_the_elo_difference_of_its_score() {
        let ratings = Ratings::elo(2, &[pairing(1, 0, result(640, 0, 360))]);
        let found = ratings.difference(1, 0);
        // 640.5 of 1001 points.
        let expected = 400.0 * (640.5f64 / 360.5).log10();
        assert!((found.value - expected).abs() < 1e-6, "{found:?}");
        // The interval of the match's own figures, which has no prior of a drawn game.
        let elo = result(640, 0, 360).elo();
        let half = 0.5 * (elo.high.unwrap() - elo.low.unwrap());
        assert!((found.half_width / half - 1.0).abs() < 0.01, "{found:?} {half}");
        assert_eq!(ratings.difference(0, 0), Estimate { value: 0.0, half_width: 0.0 });
        let back = ratings.difference(0, 1);
        assert_eq!((back.value, back.half_width), (-found.value, found.half_width));
    }

    #[test]
    fn draws_narrow_the_interval_and_whitewashes_are_finite() {
        let of = |result| Ratings::elo(2, &[pairing(1, 0, result)]).difference(1, 0);
        assert!(of(result(10, 80, 10)).half_width < 0.6 * of(result(50, 0, 50)).half_width);
        let won = of(result(20, 0, 0));
        assert!(won.value > 400.0 && won.value < 1000.0 && won.half_width > 100.0, "{won:?}");
    }

    /// Chains add up, and a further match between their ends moves all of them and narrows the interval.
    #[test]
    fn matches_of_a_chain_add_up() {
        let chain = [pairing(1, 0, result(75, 0, 25)), pairing(2, 1, result(75, 0, 25))];
        let ratings = Ratings::elo(3, &chain);
        let (step, both) = (ratings.difference(1, 0), ratings.difference(2, 0));
        assert!((both.value - 2.0 * step.value).abs() < 1e-6);
        assert!((both.half_width - step.half_width * 2f64.sqrt()).abs() < 1e-6);
        assert!((ratings.difference(2, 1).half_width - step.half_width).abs() < 1e-6);
        let closed = [chain[0], chain[1], pairing(2, 0, result(70, 0, 30))];
        let closed = Ratings::elo(3, &closed).difference(2, 0);
        assert!(closed.value < both.value && closed.half_width < both.half_width, "{closed:?} {both:?}");
    }

    /// The intervals of simulated ladders contain the true ratings in about 95 of 100 cases.
    #[test]
    fn intervals_cover_the_truth() {
        let truth: [f64; 6] = [0.0, 150.0, 180.0, 300.0, 250.0, 420.0];
        let (mut covered, mut all) = (0, 0);
        for trial in 0..300 {
            let mut rng = Key::new(3, Purpose::Evaluation).with(trial).stream();
            let mut matches = Vec::new();
            for (first, second) in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (2, 0), (3, 1), (4, 2), (5, 3)] {
                let expected = 1.0 / (1.0 + 10f64.powf((truth[second] - truth[first]) / 400.0));
                let draw = 0.4 * expected.min(1.0 - expected);
                let counts = random_result(&mut rng, [expected - 0.5 * draw, draw], 80);
                matches.push(pairing(first, second, counts));
            }
            let ratings = Ratings::elo(6, &matches);
            for (player, truth) in truth.iter().enumerate().skip(1) {
                let [low, high] = ratings.difference(player, 0).interval();
                covered += u32::from(low <= *truth && *truth <= high);
                all += 1;
            }
        }
        let share = f64::from(covered) / f64::from(all);
        assert!((0.925..0.975).contains(&share), "{share}");
    }

    #[test]
    fn leads_in_points_add_up_too() {
        let lead = |mean, half_width, count| Mean { count, mean, half_width: Some(half_width) };
        let ratings =
            Ratings::points(3, &[pairing(1, 0, lead(2.0, 0.3, 50)), pairing(2, 1, lead(-0.5, 0.4, 50))]);
        let found = ratings.difference(2, 0);
        assert!((found.value - 1.5).abs() < 1e-9 && (found.half_width - 0.5).abs() < 1e-9, "{found:?}");
        // With as many games, a direct match counts twice as much as the two matches by way of player 1.
        let direct = [
            pairing(1, 0, lead(2.0, 0.3, 50)),
            pairing(2, 1, lead(-0.5, 0.4, 50)),
            pairing(2, 0, lead(0.0, 0.3, 50)),
        ];
        assert!((Ratings::points(3, &direct).difference(2, 0).value - 0.5).abs() < 1e-9);
    }
}
