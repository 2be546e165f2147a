//! The strength of a network after an epoch, as the metrics have it.

use super::compact::compact;
use crate::eval::opponent::Rung;
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
    /// The match's opponent and its place on the ladder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// The lead over the other seats, in games of more than two players whose scores are points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<Lead>,
    /// The score, in games for one player.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_score: Option<MeanScore>,
}

/// The mean difference of two scores per game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lead {
    /// The network's mean score per game.
    pub points: f64,
    /// `points` minus the mean score of the other seats.
    pub mean: f64,
    /// The 95 % interval of `mean`.
    pub interval: [f64; 2],
}

/// The mean score of a game for one player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanScore {
    /// The network's mean score per game.
    pub mean: f64,
    /// The 95 % interval of `mean`.
    pub interval: [f64; 2],
}

impl Strength {
    /// The rank of an epoch's network; lower is better. Scores of games for one player are compared as they are. Matches against opponents of the ladder are compared by the number of
    /// opponents that were beaten before, then by the score.
    pub fn rank(&self) -> Option<f64> {
        if let Some(score) = self.mean_score {
            return Some(-score.mean);
        }
        let beaten = self.rung.map_or(0.0, |rung| f64::from(rung.number));
        self.search_outcome_error.or(self.match_score.map(|score| -(beaten + score)))
    }
}

impl std::fmt::Display for Strength {
    /// In at most 25 characters: the outcome error on solved positions, "4.5 % err (2.5-8.0)"; the score of a match, "73 % (56-85)
    /// rollouts:100"; the lead in points in games of points, "+1.9 ±0.7 random"; or the mean score in games for one player, "61.2 ±3.5".
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
        if let Some(Lead { mean, interval: [_, high], .. }) = self.lead {
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
