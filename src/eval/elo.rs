//! Elo difference, score and win rate of a match, with 95 % confidence intervals.

use serde::{Deserialize, Serialize};

/// The two-sided 95 % point of the standard normal distribution.
pub(super) const Z95: f64 = 1.959_963_984_540_054;

/// Minimum number of groups of games from which the spread of all is estimated.
const MIN_GROUPS: usize = 10;

/// Results of a match between two players, from the first one's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MatchResult {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
    /// The variance of one game's points as groups of games with the same opening show it, where there are enough groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_variance: Option<f64>,
}

impl MatchResult {
    /// Adds one game by the first player's return: positive is a win, negative a loss.
    pub fn add(&mut self, first_player_return: f32) {
        match first_player_return {
            r if r > 0.0 => self.wins += 1,
            r if r < 0.0 => self.losses += 1,
            _ => self.draws += 1,
        }
    }

    /// Games played.
    pub fn games(&self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// Points per game, a draw being half a point; 0.5 before the first game.
    pub fn score(&self) -> f64 {
        match self.games() {
            0 => 0.5,
            games => (self.wins as f64 + 0.5 * self.draws as f64) / games as f64,
        }
    }

    /// The score in words, such as "score 0.620"; empty before the first game.
    pub fn score_so_far(&self) -> String {
        if self.games() == 0 { String::new() } else { format!("score {:.3}", self.score()) }
    }

    /// The 95 % interval of [`MatchResult::score`]: Wilson's (1927, <https://doi.org/10.2307/2276774>) with an effective
    /// number of games.
    ///
    /// A draw has less variance than a win or loss, and so has a pair of games in which the seat decides. Let v be
    /// [`Self::variance`] and s the score (with half a game of each result added, Jeffreys's prior). Then n games have the
    /// information of n s (1 - s) / v games without draws, each with an opening of its own. Unlike the normal interval, this
    /// one lies in [0, 1] and has positive width even if all games end alike.
    pub fn score_interval(&self) -> [f64; 2] {
        let games = self.games() as f64;
        if games == 0.0 {
            return [0.0, 1.0];
        }
        let mean = self.mean_with_prior();
        share_interval(self.score(), games * mean * (1.0 - mean) / self.variance())
    }

    /// The variance of one game's points: that of groups where there is one, else with half a game of each result added (Jeffreys's prior).
    pub fn variance(&self) -> f64 {
        let [_, draws, wins] = self.shares_with_prior();
        let mean = self.mean_with_prior();
        self.group_variance.unwrap_or(wins + 0.25 * draws - mean * mean)
    }

    /// Sets the variance of one game's points from the first player's returns in all games, which come in groups of `group` consecutive games: the
    /// variance of the groups' mean points, times `group`. Does nothing with fewer than ten groups. A group of independent fair games is added
    /// (a prior), so that the variance is above 0.
    pub fn set_group_variance(&mut self, returns: &[f32], group: usize) {
        let means: Vec<f64> = returns
            .chunks_exact(group.max(1))
            .map(|games| games.iter().map(|&game| points(game)).sum::<f64>() / games.len() as f64)
            .collect();
        if means.len() < MIN_GROUPS {
            return;
        }
        let (size, groups) = (group.max(1) as f64, means.len() as f64 + 1.0);
        let mean = (means.iter().sum::<f64>() + 0.5) / groups;
        let squares = means.iter().map(|mean| mean * mean).sum::<f64>() + 0.25 + 0.25 / size;
        self.group_variance = Some(size * (squares / groups - mean * mean));
    }

    fn mean_with_prior(&self) -> f64 {
        let [_, draws, wins] = self.shares_with_prior();
        wins + 0.5 * draws
    }

    /// The fractions of games lost, drawn and won, with half a game of each result added.
    fn shares_with_prior(&self) -> [f64; 3] {
        [self.losses, self.draws, self.wins].map(|count| (count as f64 + 0.5) / (self.games() as f64 + 1.5))
    }

    /// The fraction of games won, without draws; 0 before the first game.
    pub fn win_rate(&self) -> f64 {
        self.wins as f64 / self.games().max(1) as f64
    }

    /// The 95 % interval of [`MatchResult::win_rate`]: Wilson's.
    pub fn win_rate_interval(&self) -> [f64; 2] {
        match self.games() {
            0 => [0.0, 1.0],
            games => share_interval(self.win_rate(), games as f64),
        }
    }

    /// The Elo difference with its interval.
    pub fn elo(&self) -> Elo {
        let [low, high] = self.score_interval();
        Elo {
            difference: elo_of_score(self.score()),
            low: if self.losses == self.games() { None } else { elo_of_score(low) },
            high: if self.wins == self.games() { None } else { elo_of_score(high) },
            superiority: self.superiority(),
        }
    }

    /// The likelihood of superiority: the probability that the first player is stronger, by the normal approximation of the
    /// wins among decided games. Draws have no influence.
    pub fn superiority(&self) -> f64 {
        let decided = (self.wins + self.losses) as f64;
        if decided == 0.0 {
            return 0.5;
        }
        normal_below((self.wins as f64 - self.losses as f64) / decided.sqrt())
    }
}

/// A difference in strength on Elo's logistic scale: 400 points are odds of ten to one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elo {
    /// First player minus second; `None` (unbounded) if one of them won every game.
    pub difference: Option<f64>,
    /// Lower end of the 95 % interval; `None` if unbounded.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; `None` if unbounded.
    pub high: Option<f64>,
    /// See [`MatchResult::superiority`].
    pub superiority: f64,
}

impl std::fmt::Display for Elo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = |value: Option<f64>, unbounded: &str| match value {
            Some(value) => signed(value, 0),
            None => unbounded.to_string(),
        };
        let difference = bound(self.difference, "unbounded");
        write!(f, "Elo {difference} [{} to {}]", bound(self.low, "-inf"), bound(self.high, "+inf"))
    }
}

/// Wilson's 95 % interval of a fraction `s` observed in `n` games or positions. It contains `s`, also after rounding.
pub fn share_interval(s: f64, n: f64) -> [f64; 2] {
    let z2n = Z95 * Z95 / n;
    let centre = (s + 0.5 * z2n) / (1.0 + z2n);
    let half = (Z95 / (1.0 + z2n)) * (s * (1.0 - s) / n + 0.25 * z2n / n).sqrt();
    [(centre - half).max(0.0).min(s), (centre + half).min(1.0).max(s)]
}

/// The points of a game by the first player's return.
fn points(first_player_return: f32) -> f64 {
    match first_player_return {
        r if r > 0.0 => 1.0,
        r if r < 0.0 => 0.0,
        _ => 0.5,
    }
}

/// The two-sided 95 % point of Student's t distribution with `freedom` degrees of freedom, at least one: from tables up to five, then by
/// Fisher's expansion (Abramowitz and Stegun 1964, 26.7.5; error below 0.002).
fn student95(freedom: usize) -> f64 {
    const TABLE: [f64; 5] = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706];
    if let Some(&value) = TABLE.get(freedom - 1) {
        return value;
    }
    let (z, n) = (Z95, freedom as f64);
    let [z3, z5, z7] = [z.powi(3), z.powi(5), z.powi(7)];
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n)
}

/// The Elo difference whose expected score is `score`; `None` for 0 and 1.
fn elo_of_score(score: f64) -> Option<f64> {
    (score > 0.0 && score < 1.0).then(|| 400.0 * (score / (1.0 - score)).log10())
}

/// `value` with its sign and this number of decimals. What rounds to zero has the sign `+`: a draw is no loss.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    match text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        true => text,
        false => text.replace('-', "+"),
    }
}

/// The standard normal distribution function (Abramowitz and Stegun 1964, 26.2.17; error below 7.5e-8).
fn normal_below(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let polynomial = series.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    let above = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt() * polynomial;
    if x >= 0.0 { 1.0 - above } else { above }
}

/// The mean of a quantity over games (points, returns), with its 95 % interval by Student's t distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// Number of values.
    pub count: usize,
    /// The mean; 0 if there are no values.
    pub mean: f64,
    /// Half the width of the 95 % interval; `None` for fewer than two values.
    pub half_width: Option<f64>,
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.interval() {
            Some([low, high]) => {
                write!(f, "{} [{} to {}]", signed(self.mean, 3), signed(low, 3), signed(high, 3))
            }
            None => f.write_str(&signed(self.mean, 3)),
        }
    }
}

impl Mean {
    /// The 95 % interval; `None` for fewer than two values.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.half_width.map(|half| [self.mean - half, self.mean + half])
    }

    /// The mean of the values times `factor`.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { mean: self.mean * factor, half_width: self.half_width.map(|half| half * factor.abs()), ..self }
    }

    /// The mean of the values plus `term`.
    #[must_use]
    pub fn shifted(self, term: f64) -> Self {
        Self { mean: self.mean + term, ..self }
    }

    /// The mean of `values`.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len();
        // The sum of no values, and of draws for the second player, is -0.
        let mean = values.iter().sum::<f64>() / count.max(1) as f64 + 0.0;
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        let half_width =
            (count > 1).then(|| student95(count - 1) * (squares / (count - 1) as f64 / count as f64).sqrt());
        Self { count, mean, half_width }
    }

    /// The mean of `values`, of which groups of `group` consecutive ones had the same opening and chance. The interval is that of the groups'
    /// means, where there are at least ten.
    pub fn of_groups(values: &[f64], group: usize) -> Self {
        let groups = values.chunks_exact(group.max(1));
        let means: Vec<f64> = groups.map(|values| values.iter().sum::<f64>() / values.len() as f64).collect();
        match means.len() < MIN_GROUPS {
            true => Self::of(values),
            false => Self { half_width: Self::of(&means).half_width, ..Self::of(values) },
        }
    }
}

/// The result of `games` whose outcomes are drawn: a win and a draw with these probabilities.
#[cfg(test)]
pub(super) fn random_result(
    rng: &mut crate::rng::RngStream,
    [win, draw]: [f64; 2],
    games: usize,
) -> MatchResult {
    let mut result = MatchResult::default();
    for _ in 0..games {
        let u = f64::from(rng.uniform());
        let outcome = match u {
            _ if u < win => 1.0,
            _ if u < win + draw => 0.0,
            _ => -1.0,
        };
        result.add(outcome);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(wins: u64, draws: u64, losses: u64) -> MatchResult {
        MatchResult { wins, draws, losses, ..MatchResult::default() }
    }

    #[test]
    fn ten_to_one_is_four_hundred_points() {
        let elo = result(1000, 0, 100).elo();
        assert!((elo.difference.unwrap() - 400.0).abs() < 1e-9);
        assert!(elo.low.unwrap() > 360.0 && elo.high.unwrap() < 440.0);
        assert!(elo.low.unwrap() < 400.0 && elo.high.unwrap() > 400.0);
    }

    /// Also at the ends, where rounding would leave them out for every fourth number of games.
    #[test]
    fn an_interval_contains_its_share() {
        for games in 1..2000 {
            for won in [0, 1, games / 2, games] {
                let share = won as f64 / games as f64;
                let [low, high] = share_interval(share, games as f64);
                assert!(0.0 <= low && low <= share && share <= high && high <= 1.0, "{won} of {games}");
            }
        }
    }

    #[test]
    fn zero_has_no_minus() {
        for (value, decimals, text) in [
            (-0.0, 0, "+0"),
            (-0.4, 0, "+0"),
            (-0.6, 0, "-1"),
            (-0.0004, 3, "+0.000"),
            (-0.5, 3, "-0.500"),
            (10.0, 0, "+10"),
        ] {
            assert_eq!(signed(value, decimals), text);
        }
        for values in [&[][..], &[-0.0, -0.0]] {
            assert!(
                Mean::of(values).mean.is_sign_positive()
                    && Mean::of(values).to_string().starts_with("+0.000")
            );
        }
        assert!(result(3, 4, 3).elo().to_string().starts_with("Elo +0 ["));
    }

    #[test]
    fn without_draws_the_interval_is_wilsons() {
        // Wilson's interval for 60 of 100 is [0.5020, 0.6906]; the prior's share of draws moves it in the third digit.
        let [low, high] = result(60, 0, 40).score_interval();
        assert!((low - 0.5020).abs() < 2e-3 && (high - 0.6906).abs() < 2e-3, "{low} {high}");
    }

    #[test]
    fn draws_do_not_count_as_wins() {
        let r = result(60, 25, 15);
        assert_eq!((r.win_rate(), result(0, 0, 0).win_rate_interval()), (0.6, [0.0, 1.0]));
        let [low, high] = r.win_rate_interval();
        assert!((low - 0.5020).abs() < 1e-4 && (high - 0.6906).abs() < 1e-4, "{low} {high}");
    }

    #[test]
    fn draws_narrow_the_interval() {
        let width = |r: MatchResult| r.score_interval()[1] - r.score_interval()[0];
        assert!(width(result(10, 80, 10)) < 0.6 * width(result(50, 0, 50)));
        assert!(width(result(0, 100, 0)) > 0.0);
    }

    #[test]
    fn one_sided_matches_are_bounded_on_one_side() {
        let won = result(20, 0, 0).elo();
        assert_eq!((won.difference, won.high), (None, None));
        assert!(won.low.unwrap() > 200.0);
        let lost = result(0, 0, 20).elo();
        assert_eq!((lost.difference, lost.low), (None, None));
        assert!((lost.high.unwrap() + won.low.unwrap()).abs() < 1e-6);
        assert_eq!(won.to_string(), format!("Elo unbounded [{:+.0} to +inf]", won.low.unwrap()));
    }

    #[test]
    fn superiority_is_the_normal_distribution_of_decided_games() {
        assert_eq!(result(0, 9, 0).superiority(), 0.5);
        assert!((result(50, 7, 50).superiority() - 0.5).abs() < 1e-7);
        // (60 - 40) / sqrt(100) = 2 standard deviations.
        assert!((result(60, 0, 40).superiority() - 0.977_249_87).abs() < 1e-7);
        assert!((result(40, 0, 60).superiority() - 0.022_750_13).abs() < 1e-7);
    }

    /// The interval must contain the true score in about 95 of 100 trials.
    #[test]
    fn intervals_cover_the_truth() {
        use crate::rng::{Key, Purpose};
        let (win, draw) = (0.5, 0.3);
        let truth = win + 0.5 * draw;
        let mut covered = 0;
        for trial in 0..2000 {
            let mut rng = Key::new(1, Purpose::Evaluation).with(trial).stream();
            let [low, high] = random_result(&mut rng, [win, draw], 60).score_interval();
            covered += u32::from(low <= truth && truth <= high);
        }
        assert!((1870..=1940).contains(&covered), "{covered} of 2000");
    }

    #[test]
    fn a_mean_has_the_width_of_its_spread() {
        let mean = Mean::of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(mean.mean, 2.5);
        assert!((mean.half_width.unwrap() - 3.1824 * (5.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-3);
        assert_eq!(mean.to_string(), "+2.500 [+0.446 to +4.554]");
        assert_eq!((Mean::of(&[3.0]).half_width, Mean::of(&[-3.0]).to_string()), (None, "-3.000".into()));
        assert_eq!(mean.scaled(-2.0).to_string(), "-5.000 [-9.108 to -0.892]", "fewer points are better");
    }

    #[test]
    fn few_values_have_students_interval() {
        for (freedom, expected) in
            [(1, 12.706), (5, 2.571), (6, 2.447), (10, 2.228), (30, 2.042), (1_000_000, 1.960)]
        {
            assert!((student95(freedom) - expected).abs() < 2e-3, "{freedom}");
        }
    }

    /// Pairs whose games go to one seat have a narrower interval than as many single games, pairs that go to one player a wider one. The interval
    /// contains the true score in about 95 of 100 trials of both kinds.
    #[test]
    fn pairs_have_the_width_of_their_spread() {
        use crate::rng::{Key, Purpose};
        let width = |result: MatchResult| result.score_interval()[1] - result.score_interval()[0];
        for (both_alike, narrower) in [(0.1, true), (0.9, false)] {
            let mut covered = 0;
            for trial in 0..2000 {
                let mut rng = Key::new(2, Purpose::Evaluation).with(trial).stream();
                let mut returns = Vec::new();
                for _ in 0..60 {
                    let mut sign = || if rng.uniform() < 0.5 { 1.0 } else { -1.0 };
                    let first = sign();
                    returns.extend([first, if rng.uniform() < both_alike { first } else { -first }]);
                }
                let mut result = MatchResult::default();
                returns.iter().for_each(|&game| result.add(game));
                let by_games = width(result);
                result.set_group_variance(&returns, 2);
                assert!((width(result) < by_games) == narrower, "{both_alike}");
                let [low, high] = result.score_interval();
                covered += u32::from(low <= 0.5 && 0.5 <= high);
            }
            assert!((1860..=1960).contains(&covered), "{both_alike}: {covered} of 2000");
        }
        let mut seats = result(40, 0, 40);
        seats.set_group_variance(&[1.0, -1.0].repeat(40), 2);
        assert!((0.005..0.05).contains(&width(seats)), "{}", width(seats));
        let mut nine_pairs = result(9, 0, 9);
        nine_pairs.set_group_variance(&[1.0, -1.0].repeat(9), 2);
        assert_eq!(nine_pairs.group_variance, None, "too small a sample");
    }

    #[test]
    fn means_of_groups_have_the_spread_of_groups() {
        let values: Vec<f64> = (0..24).map(|i| f64::from(i % 2) * 10.0 + f64::from(i / 2 % 3)).collect();
        let (by_value, by_group) = (Mean::of(&values), Mean::of_groups(&values, 2));
        assert_eq!((by_value.mean, by_value.count), (by_group.mean, by_group.count));
        assert!(by_group.half_width.unwrap() < 0.3 * by_value.half_width.unwrap());
        assert_eq!(Mean::of_groups(&values[..18], 2), Mean::of(&values[..18]), "too small a sample");
    }
}
