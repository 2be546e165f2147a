//! The metrics of an epoch.

use super::strength::Strength;
use super::workers::WorkerCounts;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The metrics of one epoch. Absent optional metrics are omitted from the JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpochRecord {
    /// The epoch's number, from 1.
    pub epoch: u64,
    /// Working seconds of the run at the end of the epoch, without the pauses before a resume.
    pub seconds: f64,
    /// Games finished.
    pub games: u64,
    /// Plies of these games: those that were searched, random openings, and what chance dealt.
    pub positions: u64,
    /// Samples added to the replay buffer.
    pub samples: u64,
    /// New simulations in self-play.
    pub simulations: u64,
    /// Seconds of self-play.
    pub selfplay_seconds: f64,
    /// Seconds of training.
    pub train_seconds: f64,
    /// Seconds in which self-play and training overlap, if `train.mode` is `overlapped`.
    pub overlapped_seconds: f64,
    /// Seconds of evaluation.
    pub eval_seconds: f64,
    /// Games per second of self-play; of the whole epoch if the run has workers.
    pub games_per_second: f64,
    /// Plies of the finished games per second of self-play; of the whole epoch if the run has workers.
    pub positions_per_second: f64,
    /// New simulations per second of self-play.
    pub simulations_per_second: f64,
    /// Games per day at this rate, training and evaluation included.
    pub games_per_day: f64,
    /// Updates of the run at the end of the epoch.
    pub updates: u64,
    /// True for the last epoch of a run whose time limit ended it early. A resumed run plays the epoch in full.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Fraction of the replay buffer that is filled.
    pub replay_fill: f64,
    /// The losses, if the epoch had updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<EpochLosses>,
    /// Mean plies of the games finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_game_length: Option<f64>,
    /// Fraction of the games finished in which all players got the same; None in games for one player and in cooperative ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw_share: Option<f64>,
    /// Fraction of the games finished that player 0 won alone; None as above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_player_win_share: Option<f64>,
    /// Strength, if the epoch was evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
    /// Fraction of leaves whose evaluation came from the cache, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hit_rate: Option<f64>,
    /// Positions that the network evaluated in self-play.
    pub evaluations: u64,
    /// The root cache, if the epoch had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_cache: Option<RootCacheUse>,
    /// Distinct findings of the run so far (`findings.jsonl`), if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<u64>,
    /// Counts of workers on other machines, if the run has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkerCounts>,
}

/// Cost and use of the root cache of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootCacheUse {
    /// Trees that were built.
    pub trees: u64,
    /// Simulations of the trees, which are not counted as self-play.
    pub simulations: u64,
    /// Seconds of building the trees.
    pub seconds: f64,
    /// Games that began with one of the trees, or stood at the root of one when it was built.
    pub games: u64,
    /// Inherited visits of these games that count against the budget of a ply.
    pub inherited_visits: u64,
}

/// Means over an epoch's updates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochLosses {
    /// Cross-entropy of the policy to its target, in nats.
    pub policy: f64,
    /// Kullback-Leibler divergence of the policy from its target (cross-entropy minus the target's entropy), in nats.
    pub policy_kl: f64,
    /// Cross-entropy of uniform play over the legal actions, in nats: the mean of ln(number of legal actions). The entropy of the
    /// targets is `policy - policy_kl`; where it is near this, the search tells the network nothing. None without policy targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_uniform: Option<f64>,
    /// Squared error of the values.
    pub value: f64,
    /// Squared error of predicting the mean of the value targets: their variance. Where `value` is not below it, the network has
    /// learned nothing about results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_constant: Option<f64>,
    /// Losses of further heads by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub heads: BTreeMap<String, f64>,
    /// Norm of the gradient before clipping.
    pub grad_norm: f64,
    /// Learning rate of the last update.
    pub lr: f64,
}

impl EpochLosses {
    /// The policy's cross-entropy and divergence; None where no sample has a policy (`search.algorithm = "afterstate"`).
    pub fn of_policy(&self) -> Option<[f64; 2]> {
        (self.policy != 0.0).then_some([self.policy, self.policy_kl])
    }
}

impl EpochRecord {
    /// The record with all its rates computed from its counts and seconds.
    pub fn with_rates(mut self) -> Self {
        let per = |count: u64, seconds: f64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let play_and_train = self.selfplay_seconds + self.train_seconds - self.overlapped_seconds;
        let all_seconds = play_and_train + self.eval_seconds;
        // Workers also play while the learner trains and evaluates.
        let playing = if self.workers.is_some() { all_seconds } else { self.selfplay_seconds };
        self.games_per_second = per(self.games, playing);
        self.positions_per_second = per(self.positions, playing);
        self.simulations_per_second = per(self.simulations, self.selfplay_seconds);
        self.games_per_day = 86_400.0 * per(self.games, all_seconds);
        self
    }

    /// Working minutes of the run at the end of the epoch.
    pub fn minutes(&self) -> f64 {
        self.seconds / 60.0
    }

    /// All metrics that are present, with `group/name` tags.
    pub fn scalars(&self) -> Vec<(Cow<'static, str>, f64)> {
        let losses = |pick: fn(&EpochLosses) -> f64| self.losses.as_ref().map(pick);
        let policy = self.losses.as_ref().and_then(EpochLosses::of_policy);
        let strength = |pick: fn(&Strength) -> Option<f64>| self.strength.as_ref().and_then(pick);
        let workers = |pick: fn(&WorkerCounts) -> u64| self.workers.as_ref().map(|w| pick(w) as f64);
        let cache = |pick: fn(&RootCacheUse) -> f64| self.root_cache.as_ref().map(pick);
        let all = [
            ("loss/policy", policy.map(|[entropy, _]| entropy)),
            ("loss/policy_kl", policy.map(|[_, divergence]| divergence)),
            ("loss/policy_uniform", self.losses.as_ref().and_then(|l| l.policy_uniform)),
            ("loss/value", losses(|l| l.value)),
            ("loss/value_constant", self.losses.as_ref().and_then(|l| l.value_constant)),
            ("train/grad_norm", losses(|l| l.grad_norm)),
            ("train/lr", losses(|l| l.lr)),
            ("train/updates", Some(self.updates as f64)),
            ("train/replay_fill", Some(self.replay_fill)),
            ("strength/search_outcome_error", strength(|s| s.search_outcome_error)),
            ("strength/policy_outcome_error", strength(|s| s.policy_outcome_error)),
            ("strength/search_exact_error", strength(|s| s.search_exact_error)),
            ("strength/policy_exact_error", strength(|s| s.policy_exact_error)),
            ("strength/match_score", strength(|s| s.match_score)),
            ("strength/match_elo", strength(|s| s.match_elo)),
            ("strength/rung", strength(|s| Some(f64::from(s.rung?.number)))),
            ("strength/lead", strength(|s| Some(s.lead?.mean))),
            ("strength/mean_score", strength(|s| Some(s.mean_score?.mean))),
            ("speed/games_per_second", Some(self.games_per_second)),
            ("speed/positions_per_second", Some(self.positions_per_second)),
            ("speed/simulations_per_second", Some(self.simulations_per_second)),
            ("games/evaluations", Some(self.evaluations as f64)),
            ("speed/games_per_day", Some(self.games_per_day)),
            ("speed/cache_hit_rate", self.cache_hit_rate),
            ("root_cache/trees", cache(|c| c.trees as f64)),
            ("root_cache/simulations", cache(|c| c.simulations as f64)),
            ("root_cache/games", cache(|c| c.games as f64)),
            ("root_cache/inherited_visits", cache(|c| c.inherited_visits as f64)),
            ("seconds/root_cache", cache(|c| c.seconds)),
            ("seconds/selfplay", Some(self.selfplay_seconds)),
            ("seconds/train", Some(self.train_seconds)),
            ("seconds/overlapped", Some(self.overlapped_seconds)),
            ("seconds/eval", Some(self.eval_seconds)),
            ("games/finished", Some(self.games as f64)),
            ("games/samples", Some(self.samples as f64)),
            ("games/mean_length", self.mean_game_length),
            ("games/draw_share", self.draw_share),
            ("games/first_player_win_share", self.first_player_win_share),
            ("games/findings", self.findings.map(|count| count as f64)),
            ("workers/active", workers(|w| w.active)),
            ("workers/games", workers(|w| w.games)),
            ("workers/bytes", workers(|w| w.bytes)),
            ("workers/bytes_out", workers(|w| w.bytes_out)),
            ("workers/queue_seconds", self.workers.as_ref().map(|w| w.queue_seconds)),
            ("workers/queue_bytes", self.workers.as_ref().map(|w| w.queue_bytes)),
            ("workers/lag", self.workers.as_ref().map(|w| w.lag)),
            ("workers/evaluated", workers(|w| w.evaluated)),
            ("workers/stale", workers(|w| w.stale)),
            ("workers/repeated", workers(|w| w.repeated)),
            ("workers/refused", workers(|w| w.refused)),
        ];
        let heads = self.losses.iter().flat_map(|losses| &losses.heads);
        let heads = heads.map(|(name, &loss)| (Cow::Owned(format!("loss/{name}")), loss));
        let all = all.into_iter().filter_map(|(name, value)| value.map(|value| (Cow::Borrowed(name), value)));
        all.chain(heads).collect()
    }

    /// One line of JSON with its line break. A number that is not finite is refused, since JSON cannot represent it.
    pub(super) fn json_line(&self) -> Result<String> {
        let not_finite = |what: String| Error::NotFinite { what, value: f32::NAN };
        let value = serde_json::to_value(self).map_err(|e| not_finite(e.to_string()))?;
        match first_null(&value, "metric") {
            Some(what) => Err(not_finite(what)),
            None => Ok(format!("{value}\n")),
        }
    }
}

/// The heads that have losses besides policy and value, in the order of their names.
pub(super) fn head_names(records: &[EpochRecord]) -> Vec<String> {
    let losses = records.iter().filter_map(|record| record.losses.as_ref());
    let names: BTreeSet<&String> = losses.flat_map(|losses| losses.heads.keys()).collect();
    names.into_iter().cloned().collect()
}

/// The dotted name of the first null in `value`.
fn first_null(value: &Value, name: &str) -> Option<String> {
    match value {
        Value::Null => Some(name.to_string()),
        Value::Object(fields) => {
            fields.iter().find_map(|(key, value)| first_null(value, &format!("{name}.{key}")))
        }
        _ => None,
    }
}

/// Synthetic records for tests of output. All metrics have few digits, so that they survive a JSON round trip to the bit.
#[cfg(test)]
pub(super) fn sample_records(epochs: u64) -> Vec<EpochRecord> {
    let short = |value: f64| (value * 1e4).round() / 1e4;
    let record = |epoch: u64| {
        let x = epoch as f64;
        let losses = EpochLosses {
            policy: short(1.1 + 0.8 / x),
            policy_kl: short(0.2 + 0.5 / x),
            policy_uniform: Some(2.5),
            value: short(0.4 + 0.5 / x),
            value_constant: Some(0.95),
            heads: BTreeMap::new(),
            grad_norm: short(0.3 + 0.1 * (x * 1.7).sin()),
            lr: short(2e-3 * (1.0 - x / 60.0)),
        };
        let strength = Strength {
            search_outcome_error: Some(short(0.03 + 0.3 / x)),
            policy_outcome_error: Some(short(0.1 + 0.4 / x)),
            ..Strength::default()
        };
        EpochRecord {
            epoch,
            seconds: 25.0 * x,
            games: 700 + epoch,
            positions: 20_000 + 10 * epoch,
            samples: 20_000,
            simulations: 1_280_000,
            selfplay_seconds: if epoch.is_multiple_of(3) { 8.0 } else { 16.0 },
            train_seconds: 12.0,
            eval_seconds: 4.0,
            updates: 156 * (epoch - 1),
            replay_fill: short((0.05 * x).min(1.0)),
            losses: (epoch > 1).then_some(losses),
            mean_game_length: Some(short(22.0 + x.ln())),
            draw_share: Some(short(0.01 * x)),
            first_player_win_share: Some(0.55),
            strength: Some(strength),
            cache_hit_rate: None,
            ..EpochRecord::default()
        }
        .with_rates()
    };
    (1..=epochs).map(record).collect()
}

/// True if the network of the cut epoch is not measurably weaker than the best one before, or none was measured.
pub fn is_cut_best(records: &[EpochRecord]) -> bool {
    let (cut, before): (Vec<&EpochRecord>, Vec<&EpochRecord>) = records.iter().partition(|record| record.cut);
    let mut before = before.iter().filter_map(|record| record.strength);
    match cut.iter().find_map(|record| record.strength) {
        None => before.next().is_none(),
        Some(cut) => {
            let ranks = before.filter(|of| cut.is_comparable_to(of)).filter_map(|of| of.rank());
            cut.succeeds(ranks.min_by(f64::total_cmp)).is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_counts() {
        let counts = EpochRecord {
            games: 30,
            positions: 600,
            simulations: 6000,
            selfplay_seconds: 6.0,
            train_seconds: 3.0,
            eval_seconds: 1.0,
            ..EpochRecord::default()
        };
        let record = counts.with_rates();
        let rates = (record.games_per_second, record.positions_per_second, record.simulations_per_second);
        assert_eq!(rates, (5.0, 100.0, 1000.0));
        assert_eq!(record.games_per_day, 259_200.0);
        let overlapped = EpochRecord { overlapped_seconds: 2.5, ..record };
        assert_eq!(overlapped.with_rates().games_per_day, 345_600.0);
        assert_eq!(EpochRecord::default().with_rates(), EpochRecord::default(), "no time, no rate");
    }
}
