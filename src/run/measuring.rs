//! The measurement of strength after an epoch: whether it is due, against which opponent, and the networks that are kept as opponents and for ladders.

use super::epoch_network::EpochNetwork;
use super::evaluation;
use super::files::{BEST, opponent_name};
use super::pace::{MeasurementTime, Wanted};
use super::strength::{MatchSetup, match_games};
use super::training_run::Run;
use crate::error::{Error, Result, StopCause};
use crate::eval::matches::group_size;
use crate::eval::opponent::{LADDER, Opponent, Rung, clear_win};
use crate::files::{FileDigest, create_subfolder, write_atomic};
use crate::net::Network;
use crate::report::metrics::{EpochRecord, Strength};
use crate::report::progress::Progress;
use crate::stop::Stop;
use crate::weights::NetFile;
use std::time::Instant;

/// The smallest number of rounds of a match, in each of which the network takes every seat once.
const MIN_ROUNDS: usize = 4;

impl Run {
    /// The strength of the network after `epoch`; None for an epoch without a measurement.
    pub(super) fn evaluate(
        &mut self,
        epoch: u64,
        moment: MeasurementTime,
        progress: &mut Progress,
        stop: &Stop,
    ) -> Result<Option<Strength>> {
        let (wanted, rung) = self.wanted()?;
        let opponent = wanted.opponent;
        let Some(items) = self.pace.items(epoch, self.seconds(), wanted, moment) else { return Ok(None) };
        let (started, deadline) = (Instant::now(), self.deadline());
        let earlier = match opponent {
            Some(Opponent::Epoch(earlier)) => Some(self.kept_network(earlier)?),
            _ => None,
        };
        self.strength_meter.set_match(MatchSetup { rung, games: items }, earlier);
        let EpochNetwork { file, network } = &self.network;
        let (meter, network) = (&self.strength_meter, network.as_ref());
        // An earlier network is not published.
        let is_shared = !matches!(opponent, Some(Opponent::Epoch(_)));
        let stop = &if moment == MeasurementTime::Last { stop.clone() } else { stop.at(deadline) };
        let strength = match self.workers.as_mut().filter(|_| is_shared) {
            None => evaluation::alone(meter, network, stop, progress),
            Some(workers) => {
                let mut shared = workers.share_evaluation(epoch, file, evaluation::offer(meter))?;
                evaluation::with_workers(meter, network, shared.as_mut(), stop, progress)
            }
        };
        let strength = match strength {
            // The epoch is complete without it.
            Err(Error::Stopped(StopCause::TimeLimit)) => return Ok(None),
            measured => measured?,
        };
        self.pace.measured(opponent, items, started.elapsed().as_secs_f64(), self.seconds());
        Ok(Some(strength))
    }

    /// What the column of strength says, as a sentence; None if it is never measured.
    pub fn strength_meaning(&self) -> Option<String> {
        let (eval, players) = (&self.config.eval, self.game.sizes().num_players);
        if eval.every == 0 {
            return None;
        }
        if self.strength_meter.match_setup().is_none() {
            let positions = self.strength_meter.items();
            return Some(format!(
                "strength: of {positions} solved positions, the share where the search's move changes the outcome; lower is better"
            ));
        }
        let what = match players {
            1 => return Some("strength: the mean score of a game; higher is better".into()),
            _ if self.game.sizes().cooperative => {
                return Some("strength: the mean return of a game; higher is better".into());
            }
            2 => "score of a match",
            _ => "lead over the other seats in points, else the score of a match,",
        };
        Some(match eval.opponent == LADDER {
            false => format!("strength: {what} against {}; higher is better", eval.opponent),
            true => format!(
                "strength: {what} against the opponent that is named, which grows once it is beaten: random play, rollouts, then this run's own network \
                 of an earlier epoch, so that less against a later one is no loss"
            ),
        })
    }

    /// What is measured next, and against which opponent.
    fn wanted(&self) -> Result<(Wanted, Rung)> {
        let first = Rung::first(&self.config.eval.opponent)?;
        if self.strength_meter.match_setup().is_none() {
            let items = self.strength_meter.items();
            return Ok((Wanted { opponent: None, items, min_items: items, group: 1 }, first));
        }
        let is_ladder = self.config.eval.opponent == LADDER;
        let group = group_size(self.game.as_ref());
        let min_items = MIN_ROUNDS * group;
        let is_too_slow = |opponent| self.pace.is_too_slow(opponent, min_items);
        let rung = match is_ladder {
            true => {
                let clear = clear_win(self.game.as_ref());
                next_rung(first, clear, self.metrics.records(), &is_too_slow, &|rung| self.has_kept(rung))
            }
            false => first,
        };
        let items = match_games(&self.config, self.game.as_ref());
        let wanted = Wanted { opponent: Some(rung.opponent), items, min_items, group };
        Ok((wanted, rung))
    }

    /// Keeps the present network as the best one, if it is. The checkpoint comes first: its epoch may be played in another way by a resumed
    /// run, which would measure another network. A run that is killed between them keeps it when it is resumed.
    pub(super) fn keep_best(&mut self) -> Result<()> {
        let epoch = self.counters.epoch;
        if self.counters.best.is_none_or(|(best, _)| best != epoch) {
            return Ok(());
        }
        let bytes = self.network.file.to_bytes(&self.dir().join(BEST))?;
        self.manifest.replace(BEST, &bytes)?;
        self.manifest.write(epoch)
    }

    /// The best rank with that of `record`, if its network becomes the best one. A resumed run may measure in another way: the best one
    /// before does not count then.
    pub(super) fn best_rank_with(&self, record: &EpochRecord) -> Option<f64> {
        let strength = record.strength?;
        let last = self.metrics.records().iter().rev().find_map(|record| record.strength);
        let is_comparable = last.is_none_or(|last| strength.is_comparable_to(&last));
        strength.succeeds(self.counters.best.filter(|_| is_comparable).map(|(_, rank)| rank))
    }

    /// Keeps the network of `record` in the folder if it may be the next opponent, or is due by `run.keep_networks`.
    pub(super) fn keep_network(&mut self, record: &EpochRecord) -> Result<()> {
        if !is_due(self.config.run.keep_networks, record.epoch) && !self.may_be_opponent(record) {
            return Ok(());
        }
        let name = opponent_name(record.epoch);
        let path = self.dir().join(&name);
        path.parent().map_or(Ok(()), create_subfolder)?;
        let bytes = self.network.file.to_bytes(&path)?;
        write_atomic(path, &bytes)?;
        self.manifest.set(name, FileDigest::of(&bytes));
        Ok(())
    }

    /// True if the next match may be against the network of `record`: its opponent was beaten clearly, and the next one may be passed over.
    fn may_be_opponent(&self, record: &EpochRecord) -> bool {
        let is_clear = |strength| is_clear_win(&strength, clear_win(self.game.as_ref()));
        self.config.eval.opponent == LADDER && record.strength.is_some_and(is_clear)
    }

    /// True for an opponent without a network, and for an own network whose file is in the folder. It may be missing if an earlier match had a
    /// fixed opponent, or if the file was removed.
    fn has_kept(&self, rung: Rung) -> bool {
        match rung.opponent {
            Opponent::Epoch(epoch) => {
                self.manifest.lists(&opponent_name(epoch)) && self.dir().join(opponent_name(epoch)).exists()
            }
            Opponent::Random | Opponent::Rollouts(_) => true,
        }
    }

    /// The network of an earlier epoch that was kept as an opponent.
    fn kept_network(&self, epoch: u64) -> Result<Box<dyn Network>> {
        let name = opponent_name(epoch);
        let file = NetFile::from_bytes(&self.dir().join(&name), &self.manifest.read(&name)?)?;
        self.factory.network(&self.config, self.game.as_ref(), &file.header.net, &file.weights)
    }
}

/// True for the first epoch and every `interval`-th one up to number [`DENSE`] of these; after them the interval doubles whenever the epoch
/// has doubled, so that a run of any length keeps few networks. For none if `interval` is 0.
fn is_due(interval: u64, epoch: u64) -> bool {
    if interval == 0 || epoch == 1 {
        return interval > 0;
    }
    let doublings = (epoch / interval / DENSE).checked_ilog2().map_or(0, |power| power + 1);
    interval.checked_shl(doublings).is_some_and(|interval| epoch.is_multiple_of(interval))
}

/// Networks that are kept before their interval grows.
const DENSE: u64 = 32;

/// The opponent of the next match of a run with these `records`: that of the last match on the ladder, or the one above it if it was beaten
/// clearly, with a score of `clear`. Of opponents that it does not have, the one before, or the first.
fn next_rung(
    first: Rung,
    clear: f64,
    records: &[EpochRecord],
    is_too_slow: &dyn Fn(Opponent) -> bool,
    has: &dyn Fn(Rung) -> bool,
) -> Rung {
    let last = records.iter().rev().find_map(|record| {
        let strength = record.strength?;
        // Only the first opponent of the ladder has the number of a fixed one.
        let rung = strength.rung.filter(|&rung| rung.number > 0 || rung == first)?;
        Some((record.epoch, rung, strength))
    });
    let above = last.filter(|(.., strength)| is_clear_win(strength, clear));
    let above = above.map(|(epoch, rung, _)| rung.above(epoch, is_too_slow));
    above.into_iter().chain(last.map(|(_, rung, _)| rung)).find(|&rung| has(rung)).unwrap_or(first)
}

/// True if a match was won clearly. Where scores are points, its lead decides, which must be twice its uncertainty: in a game of cards the
/// best player wins few more rounds than others, but more points.
fn is_clear_win(strength: &Strength, clear: f64) -> bool {
    match (strength.lead, strength.match_score) {
        (Some(lead), _) => lead.mean > 0.0 && lead.interval[0] >= 0.5 * lead.mean,
        (None, score) => score.is_some_and(|score| score >= clear),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::metrics::PointsLead;

    fn record(epoch: u64, number: u32, opponent: Opponent, score: f64) -> EpochRecord {
        let rung = Some(Rung { number, opponent });
        let strength = Strength { rung, match_score: Some(score), ..Strength::default() };
        EpochRecord { epoch, strength: Some(strength), ..EpochRecord::default() }
    }

    #[test]
    fn the_first_network_and_every_tenth_are_kept() {
        let kept = |interval: u64| (1..=30).filter(|&epoch| is_due(interval, epoch)).collect::<Vec<u64>>();
        assert_eq!(kept(10), [1, 10, 20, 30]);
        assert_eq!(kept(1).len(), 30);
        assert_eq!(kept(0), [0; 0]);
        let later: Vec<u64> = (1..=2000).filter(|&epoch| is_due(10, epoch)).collect();
        assert_eq!(later[29..36], [290, 300, 310, 320, 340, 360, 380]);
        assert_eq!(later.len(), 1 + 32 + 16 + 16 + 9, "{later:?}");
    }

    #[test]
    fn the_opponent_grows_with_the_player() {
        let first = Rung::first(LADDER).expect("known");
        let next = |records: &[EpochRecord]| next_rung(first, 0.75, records, &|_| false, &|_| true);
        assert_eq!(next(&[EpochRecord::default()]), first);
        let mut records = vec![record(1, 0, Opponent::Random, 0.74)];
        assert_eq!(next(&records), first);
        records.push(record(2, 0, Opponent::Random, 0.75));
        records.push(EpochRecord::default());
        assert_eq!(next(&records), Rung { number: 1, opponent: Opponent::Rollouts(100) });
        records.push(record(4, 2, Opponent::Rollouts(800), 1.0));
        let own = next(&records);
        assert_eq!(own, Rung { number: 3, opponent: Opponent::Epoch(4) });
        records.push(record(9, 3, own.opponent, 0.2));
        assert_eq!(next(&records), own, "an opponent that was reached stays");
        records.push(record(12, 3, own.opponent, 0.8));
        assert_eq!(next(&records), Rung { number: 4, opponent: Opponent::Epoch(12) });
        let ranks: Vec<f64> = records.iter().filter_map(|record| record.strength?.rank()).collect();
        assert!(ranks[..3].is_sorted_by(|a, b| a > b) && ranks[4] < ranks[2], "{ranks:?}");
    }

    #[test]
    fn an_opponent_that_is_too_slow_is_passed_over() {
        let first = Rung::first(LADDER).expect("known");
        let slow = |opponent| opponent == Opponent::Rollouts(800);
        let beaten = |opponent| next_rung(first, 0.75, &[record(7, 1, opponent, 0.9)], &slow, &|_| true);
        assert_eq!(beaten(Opponent::Random).opponent, Opponent::Rollouts(100));
        assert_eq!(beaten(Opponent::Rollouts(100)), Rung { number: 2, opponent: Opponent::Epoch(7) });
        assert_eq!(beaten(Opponent::Epoch(3)), Rung { number: 2, opponent: Opponent::Epoch(7) });
    }

    #[test]
    fn an_opponent_that_was_not_kept_is_passed_over() {
        let first = Rung::first(LADDER).expect("known");
        let has = |rung: Rung| rung.opponent != Opponent::Epoch(7);
        let next = |before: Rung| {
            next_rung(first, 0.75, &[record(7, before.number, before.opponent, 0.9)], &|_| false, &has)
        };
        let last_named = Rung { number: 2, opponent: Opponent::Rollouts(800) };
        assert_eq!(next(last_named), last_named, "its network of epoch 7 is not there");
        assert_eq!(next(Rung { number: 4, opponent: Opponent::Epoch(7) }), first);
    }

    #[test]
    fn matches_against_a_fixed_opponent_leave_the_ladder_where_it_is() {
        let first = Rung::first(LADDER).expect("known");
        let next = |records: &[EpochRecord]| next_rung(first, 0.75, records, &|_| false, &|_| true);
        let fixed = record(3, 0, Opponent::Rollouts(100), 0.9);
        assert_eq!(next(std::slice::from_ref(&fixed)), first);
        let second = Rung { number: 1, opponent: Opponent::Rollouts(100) };
        assert_eq!(next(&[record(2, 0, Opponent::Random, 0.8), fixed.clone()]), second);
        assert_eq!(next(&[record(2, 1, second.opponent, 0.3), fixed]), second);
    }

    #[test]
    fn in_games_of_points_the_lead_decides_and_not_the_rounds_won() {
        let won_by = |half_width: f64, score: f64| {
            let lead =
                Some(PointsLead { points: 5.0, mean: 1.0, interval: [1.0 - half_width, 1.0 + half_width] });
            let strength = record(3, 0, Opponent::Random, score).strength;
            let strength = strength.map(|strength| Strength { lead, ..strength });
            let record = EpochRecord { epoch: 3, strength, ..EpochRecord::default() };
            next_rung(Rung::first(LADDER).expect("known"), 0.625, &[record], &|_| false, &|_| true).opponent
        };
        assert_eq!(won_by(0.45, 0.3), Opponent::Rollouts(100));
        assert_eq!(won_by(0.55, 0.7), Opponent::Random);
    }
}
