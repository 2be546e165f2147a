//! The ladder of a run's networks: their strengths relative to the first one, from matches between them.
//!
//! Input: results of the matches. Output: the table, and `ladder.json`, its file in the folder of the run.

use super::elo::{MatchResult, Mean};
use super::matches::MatchOutcome;
use super::ratings::{Estimate, Pairing, Ratings};
use crate::batch::ErasedRules;
use crate::error::{Error, Result};
use crate::files::{if_exists, read_text, write_atomic};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file's name in the folder of a run.
pub const FILE_NAME: &str = "ladder.json";
const FORMAT: u32 = 1;
/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 26;

/// What the strengths of a ladder are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Elo differences, in games of two players.
    Elo,
    /// Leads in points per game, in games of three or more.
    Points,
    /// Mean scores, in games for one player.
    Score,
}

impl Measure {
    /// The measure of games for so many players.
    pub fn of(players: usize) -> Self {
        match players {
            1 => Self::Score,
            2 => Self::Elo,
            _ => Self::Points,
        }
    }

    /// Its name in tables and charts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Elo => "Elo",
            Self::Points => "points",
            Self::Score => "score",
        }
    }

    /// Decimals in tables.
    pub fn decimals(self) -> usize {
        match self {
            Self::Elo => 0,
            Self::Points | Self::Score => 2,
        }
    }
}

/// A network of a ladder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LadderRung {
    /// The epoch that made it.
    pub epoch: u64,
    /// Updates of its weights.
    pub updates: u64,
    /// Its strength: relative to the first network, or in games for one player the mean score.
    pub strength: f64,
    /// The 95 % interval of `strength`; None for the first network, which others are relative to.
    pub interval: Option<[f64; 2]>,
    /// Its strength minus that of the network before it.
    pub gain: Option<f64>,
    /// The 95 % interval of `gain`.
    pub gain_interval: Option<[f64; 2]>,
    /// The games that it played.
    pub games: u64,
    /// The fraction of solved positions where the search's action changes the outcome, and its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_outcome_error: Option<f64>,
    /// The 95 % interval of `search_outcome_error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_outcome_interval: Option<[f64; 2]>,
    /// The fraction of solved positions where the raw policy's action changes the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_outcome_error: Option<f64>,
}

/// A match of a ladder, from the side of the later network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderMatch {
    /// The epoch of the later network.
    pub later: u64,
    /// The epoch of the earlier network.
    pub earlier: u64,
    /// Wins, draws and losses, in games of two or more players.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<MatchResult>,
    /// The lead in points per game, in games with points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<Mean>,
    /// Games, in those for one player of each network.
    pub games: u64,
}

/// The strengths of a run's networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// The version of the format.
    pub format: u32,
    /// What the strengths are.
    pub measure: Measure,
    /// Simulations per ply.
    pub simulations: u32,
    /// Random plies at the start of each group of games.
    pub opening_plies: u32,
    /// The seed of openings and chance.
    pub seed: u64,
    /// The networks, the earliest first.
    pub rungs: Vec<LadderRung>,
    /// The matches.
    pub matches: Vec<LadderMatch>,
}

/// The conditions of a ladder's matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// What is measured.
    pub measure: Measure,
    /// Simulations per ply.
    pub simulations: u32,
    /// Random plies at the start of each group of games.
    pub opening_plies: u32,
    /// The seed of openings and chance.
    pub seed: u64,
}

impl Ladder {
    /// The ladder of `rungs`, whose epochs and updates are set and whose strengths are those that `matches` show, with the later network as
    /// first contestant. Every network has a match with its neighbours.
    pub fn new(
        conditions: Conditions,
        mut rungs: Vec<LadderRung>,
        matches: &[Pairing<MatchOutcome>],
    ) -> Self {
        let Conditions { measure, simulations, opening_plies, seed } = conditions;
        set_strengths(measure, &mut rungs, matches);
        let of = |pairing: &Pairing<MatchOutcome>| LadderMatch {
            later: rungs[pairing.first].epoch,
            earlier: rungs[pairing.second].epoch,
            result: (measure != Measure::Score).then_some(pairing.result.result),
            lead: pairing.result.lead(),
            games: pairing.result.scores.len() as u64,
        };
        let played: Vec<LadderMatch> = matches.iter().map(of).collect();
        Self { format: FORMAT, measure, simulations, opening_plies, seed, rungs, matches: played }
    }

    /// Reads the ladder of the run in `dir`; None if it has none.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a damaged file or one of another version.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(FILE_NAME);
        let Some(text) = if_exists(&path, read_text(&path, MAX_BYTES))? else { return Ok(None) };
        let damaged = |what: String| {
            Error::format(&path, format!("{what}; make it again with vecaz eval {} --ladder", dir.display()))
        };
        let ladder: Self = serde_json::from_str(&text).map_err(|e| damaged(format!("no ladder: {e}")))?;
        match ladder.format {
            FORMAT => Ok(Some(ladder)),
            other => Err(damaged(format!("has format {other}, expected {FORMAT}"))),
        }
    }

    /// Writes the ladder into the folder `dir` of its run.
    ///
    /// # Errors
    /// [`Error::Io`]; an earlier ladder is then unchanged.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(FILE_NAME);
        let text = serde_json::to_string_pretty(self).map_err(|e| Error::format(&path, e.to_string()))?;
        write_atomic(&path, (text + "\n").as_bytes())
    }
}

/// Sets strengths, gains and numbers of games.
fn set_strengths(measure: Measure, rungs: &mut [LadderRung], matches: &[Pairing<MatchOutcome>]) {
    let estimates: Vec<[Option<Estimate>; 2]> = match measure {
        Measure::Score => mean_scores(rungs.len(), matches),
        Measure::Elo | Measure::Points => {
            let ratings = ratings(measure, rungs.len(), matches);
            let of = |number: usize| {
                let gain = number.checked_sub(1).map(|before| ratings.difference(number, before));
                [Some(ratings.difference(number, 0)), gain]
            };
            (0..rungs.len()).map(of).collect()
        }
    };
    for (number, (rung, [strength, gain])) in rungs.iter_mut().zip(estimates).enumerate() {
        let is_reference = measure != Measure::Score && number == 0;
        rung.strength = strength.map_or(0.0, |estimate| estimate.value);
        rung.interval = strength.filter(|_| !is_reference).map(|estimate| estimate.interval());
        rung.gain = gain.map(|estimate| estimate.value);
        rung.gain_interval = gain.map(|estimate| estimate.interval());
        let played = matches.iter().filter(|pairing| [pairing.first, pairing.second].contains(&number));
        rung.games = played.map(|pairing| pairing.result.scores.len() as u64).sum();
    }
}

fn ratings(measure: Measure, players: usize, matches: &[Pairing<MatchOutcome>]) -> Ratings {
    let pair = |pairing: &Pairing<MatchOutcome>| (pairing.first, pairing.second);
    match measure {
        Measure::Elo => {
            let of = |pairing: &Pairing<MatchOutcome>| {
                let (first, second) = pair(pairing);
                Pairing { first, second, result: pairing.result.result }
            };
            Ratings::elo(players, &matches.iter().map(of).collect::<Vec<_>>())
        }
        Measure::Points | Measure::Score => {
            let of = |pairing: &Pairing<MatchOutcome>| {
                let (first, second) = pair(pairing);
                Pairing { first, second, result: pairing.result.lead_in_scores() }
            };
            Ratings::points(players, &matches.iter().map(of).collect::<Vec<_>>())
        }
    }
}

/// The mean score of each network in a game for one player, and its gain over the network before it, whose games had the same chance.
fn mean_scores(players: usize, matches: &[Pairing<MatchOutcome>]) -> Vec<[Option<Estimate>; 2]> {
    let estimate = |mean: Mean| Estimate { value: mean.mean, half_width: mean.half_width.unwrap_or(0.0) };
    let of = |number: usize| {
        let against_earlier = matches.iter().find(|pairing| pairing.first == number);
        let against_later = matches.iter().find(|pairing| pairing.second == number);
        let own = against_earlier.map(|pairing| &pairing.result.scores);
        let scores = own.or(against_later.map(|pairing| &pairing.result.other_scores));
        let before = matches.iter().find(|pairing| pairing.first == number && pairing.second + 1 == number);
        [
            scores.map(|scores| estimate(Mean::of(scores))),
            before.map(|pairing| estimate(pairing.result.lead_in_scores())),
        ]
    };
    (0..players).map(of).collect()
}

/// The epochs of a ladder out of those that have a network, in order: the first of every `every` epochs, the last one, and `best`.
pub fn choose(epochs: &[u64], every: u64, best: Option<u64>) -> Vec<u64> {
    let (mut chosen, mut last_block) = (Vec::new(), None);
    for &epoch in epochs {
        let block = Some(epoch / every.max(1));
        if block != last_block || Some(epoch) == best || Some(&epoch) == epochs.last() {
            chosen.push(epoch);
        }
        last_block = block;
    }
    chosen
}

/// Refuses strengths of players who do not compete.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn check_players(game: &dyn ErasedRules) -> Result<()> {
    if !game.sizes().cooperative {
        return Ok(());
    }
    let what = format!("a ladder of {}, whose players do not compete", game.name());
    Err(Error::unsupported(what, "their games have no winner, and so no Elo difference"))
}

/// At most `max` of `epochs`, evenly spaced, the first and the last among them; never fewer than two. From three on `best` is one of them,
/// instead of the nearest.
pub fn thin(epochs: &[u64], max: usize, best: Option<u64>) -> Vec<u64> {
    let (max, last) = (max.max(2), epochs.len().saturating_sub(1));
    if epochs.len() <= max {
        return epochs.to_vec();
    }
    let mut kept: Vec<u64> = (0..max).map(|i| epochs[(i * last + (max - 1) / 2) / (max - 1)]).collect();
    if let Some(best) = best.filter(|best| epochs.contains(best) && !kept.contains(best))
        && let Some(nearest) = kept[1..max - 1].iter_mut().min_by_key(|epoch| epoch.abs_diff(best))
    {
        *nearest = best;
    }
    kept
}

/// The matches of a ladder of so many networks, as (later, earlier): neighbours, and next but one unless the measure is that of single
/// networks.
pub fn pairings(networks: usize, measure: Measure) -> Vec<(usize, usize)> {
    let distances = if measure == Measure::Score { 1..=1 } else { 1..=2 };
    distances.flat_map(|distance| (distance..networks).map(move |later| (later, later - distance))).collect()
}

#[cfg(test)]
mod tests;
