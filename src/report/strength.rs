//! The strength of a network after an epoch, as the metrics have it.

use super::compact::compact;
use crate::eval::opponent::{Opponent, Rung};
use serde::{Deserialize, Serialize};

/// Strength after an epoch: errors on solved positions, or the score of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Strength {
    /// Fraction of solved positions where the search's action changes the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_outcome_error: Option<f64>,
    /// Fraction of solved positions where the raw policy's action changes the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_outcome_error: Option<f64>,
    /// Fraction of solved positions where the search's action does not have the best score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_exact_error: Option<f64>,
    /// Fraction of solved positions where the raw policy's action does not have the best score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_exact_error: Option<f64>,
    /// The 95 % interval of `search_outcome_error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_outcome_interval: Option<[f64; 2]>,
    /// Points of a match per game, 0 to 1. In games for one player the fraction of pairs of games, one of each contestant with the same
    /// chance, in which its score was the higher; half a pair where they were equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_score: Option<f64>,
    /// The 95 % interval of `match_score`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_interval: Option<[f64; 2]>,
    /// Elo difference to the match's opponent, in games of two players.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_elo: Option<f64>,
    /// Games of the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_games: Option<u64>,
    /// The match's opponent and its rung of the ladder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// The lead over the other seats, in games of more than two players whose scores are points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<PointsLead>,
    /// The score, in games for one player; the return, where players share an aim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_score: Option<MeanScore>,
}

/// The mean difference of two scores per game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointsLead {
    /// The network's mean score per game.
    pub points: f64,
    /// `points` minus the mean score of the other seats.
    pub mean: f64,
    /// The 95 % interval of `mean`.
    pub interval: [f64; 2],
}

/// The mean score of a game for one player; the mean return, where players share an aim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanScore {
    /// The network's mean score per game.
    pub mean: f64,
    /// The 95 % interval of `mean`.
    pub interval: [f64; 2],
}

impl Strength {
    /// The rank of an epoch's network; lower is better. Mean scores are compared as they are. Matches against opponents of the ladder are
    /// compared by the number of opponents that were beaten before, then by the lead where there is one, else by the score.
    pub fn rank(&self) -> Option<f64> {
        if let Some(score) = self.mean_score {
            return Some(-score.mean);
        }
        let beaten = self.rung.map_or(0.0, |rung| f64::from(rung.number));
        // From 0 to 1 as a score is, with 0.5 for equal strength.
        let of_lead = |lead: PointsLead| 0.5 + 0.5 * lead.mean / (1.0 + lead.mean.abs());
        let score = self.lead.map(of_lead).or(self.match_score);
        self.search_outcome_error.or(score.map(|score| -(beaten + score)))
    }

    /// True if the rank of `before`, which was measured earlier in a run, can be compared with this one: both on solved positions, by mean
    /// scores, on the ladder, which is never climbed down, or against the same opponent.
    pub fn is_comparable_to(&self, before: &Self) -> bool {
        let kind = |of: &Self| (of.search_outcome_error.is_some(), of.mean_score.is_some());
        let is_rank_of_match = kind(self) == (false, false);
        let (Some(is), Some(was), true) = (self.rung, before.rung, is_rank_of_match) else {
            return kind(self) == kind(before);
        };
        // The ladder begins with random play.
        let was_on_ladder = was.number > 0 || was.opponent == Opponent::Random;
        was == is || (was.number < is.number && was_on_ladder)
    }

    /// The best rank so far with this one, if the network that was measured becomes the run's best one: where the `best` rank before is not better
    /// than the better end of this measurement's 95 % interval. The newest of networks that cannot be told apart is the best one, since
    /// the highest of many uncertain results is a lucky one.
    pub fn succeeds(&self, best: Option<f64>) -> Option<f64> {
        let rank = self.rank()?;
        let Some(best) = best else { return Some(rank) };
        let at_better_end = Self {
            search_outcome_error: self
                .search_outcome_interval
                .map(|[low, _]| low)
                .or(self.search_outcome_error),
            match_score: self.match_interval.map(|[_, high]| high).or(self.match_score),
            lead: self.lead.map(|lead| PointsLead { mean: lead.interval[1], ..lead }),
            mean_score: self.mean_score.map(|score| MeanScore { mean: score.interval[1], ..score }),
            ..*self
        };
        at_better_end.rank().is_some_and(|least| least <= best).then_some(rank.min(best))
    }
}

impl std::fmt::Display for Strength {
    /// In at most 25 characters: the outcome error on solved positions, "4.5 % err (2.5-8.0)"; the score of a match, "73 % (56-85)
    /// rollouts:100"; the lead in points in games of points, "+1.9 ±0.7 random"; or the mean score, "61.2 ±3.5".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let opponent = self.rung.map(|rung| format!(" {}", rung.opponent)).unwrap_or_default();
        if let Some(error) = self.search_outcome_error {
            write!(f, "{:.1} % err", 100.0 * error)?;
            let shown = |[low, high]: [f64; 2]| write!(f, " ({:.1}-{:.1})", 100.0 * low, 100.0 * high);
            return self.search_outcome_interval.map_or(Ok(()), shown);
        }
        if let Some(MeanScore { mean, interval: [_, high] }) = self.mean_score {
            return write!(f, "{} ±{}", compact(mean), compact(high - mean));
        }
        if let Some(PointsLead { mean, interval: [_, high], .. }) = self.lead {
            return write!(f, "{mean:+.1} ±{:.1}{opponent}", high - mean);
        }
        let Some(score) = self.match_score else { return f.write_str("-") };
        write!(f, "{:.0} %", 100.0 * score)?;
        if let Some([low, high]) = self.match_interval {
            write!(f, " ({:.0}-{:.0})", 100.0 * low, 100.0 * high)?;
        }
        f.write_str(&opponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the networks that become the best one, one after the other.
    fn best_of(strengths: &[Strength]) -> Vec<usize> {
        let mut best = None;
        let mut taken =
            |strength: &Strength| strength.succeeds(best).inspect(|&rank| best = Some(rank)).is_some();
        (0..strengths.len()).filter(|&number| taken(&strengths[number])).collect()
    }

    #[test]
    fn the_newest_network_that_is_not_measurably_weaker_is_the_best() {
        let score = |score: f64, half_width: f64| Strength {
            match_score: Some(score),
            match_interval: Some([score - half_width, score + half_width]),
            ..Strength::default()
        };
        let scores = [score(0.5, 0.1), score(0.7, 0.1), score(0.65, 0.1), score(0.55, 0.1), score(0.62, 0.1)];
        assert_eq!(best_of(&scores), [0, 1, 2, 4], "0.55 is measurably below 0.7, 0.65 is not");
        let error = |error: f64, low: f64| Strength {
            search_outcome_error: Some(error),
            search_outcome_interval: Some([low, 1.0]),
            ..Strength::default()
        };
        assert_eq!(best_of(&[error(0.1, 0.05), error(0.2, 0.1), error(0.2, 0.11)]), [0, 1]);
        let solo = |mean: f64, high: f64| Strength {
            mean_score: Some(MeanScore { mean, interval: [0.0, high] }),
            ..Strength::default()
        };
        assert_eq!(best_of(&[solo(9.0, 12.0), solo(7.0, 8.0), solo(7.0, 9.0)]), [0, 2]);
    }

    #[test]
    fn of_networks_that_win_all_games_the_newest_is_the_best() {
        let interval = crate::eval::elo::share_interval(1.0, 64.0);
        let perfect =
            Strength { match_score: Some(1.0), match_interval: Some(interval), ..Strength::default() };
        assert_eq!(best_of(&[perfect; 3]), [0, 1, 2]);
    }

    #[test]
    fn ranks_are_compared_between_measurements_of_one_kind() {
        let against = |number: u32, opponent: Opponent| Strength {
            rung: Some(Rung { number, opponent }),
            match_score: Some(0.9),
            ..Strength::default()
        };
        let solved = Strength { search_outcome_error: Some(0.1), ..Strength::default() };
        let [random, hundred] = [against(0, Opponent::Random), against(1, Opponent::Rollouts(100))];
        let (own, fixed) = (against(4, Opponent::Epoch(9)), against(0, Opponent::Rollouts(3)));
        for (now, before, expected) in [
            (own, hundred, true),
            (hundred, random, true),
            (random, hundred, false),
            (fixed, own, false),
            (hundred, fixed, false),
            (fixed, fixed, true),
            (solved, own, false),
            (own, solved, false),
            (solved, solved, true),
        ] {
            assert_eq!(now.is_comparable_to(&before), expected, "{now} after {before}");
        }
    }

    /// In games of points the lead ranks, whatever the share of the games that were won.
    #[test]
    fn a_larger_lead_is_better_and_a_beaten_opponent_better_still() {
        let lead = |number: u32, mean: f64, score: f64| Strength {
            lead: Some(PointsLead { points: 0.0, mean, interval: [mean, mean] }),
            match_score: Some(score),
            rung: Some(Rung { number, opponent: Opponent::Random }),
            ..Strength::default()
        };
        let strengths = [lead(0, 1.3, 0.5), lead(0, 2.9, 0.44), lead(0, 2.7, 0.6), lead(1, -5.0, 0.1)];
        assert_eq!(best_of(&strengths), [0, 1, 3]);
    }
}
