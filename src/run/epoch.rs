//! Self-play and updates of an epoch, one after the other or overlapped.

use super::epoch_eta::{Ended, EpochEta};
use super::findings::FindingsLog;
use super::folder::RunFolder;
use super::learner::Learner;
use super::local_selfplay::LocalSelfPlay;
use super::workers::Workers;
use crate::backend::AnyGame;
use crate::batch::MAX_UNDECIDED_GAMES;
use crate::config::{Config, TrainingMode};
use crate::error::{Error, Result, StopCause};
use crate::game::{Sizes, winners};
use crate::play::{FinishedGame, Sample};
use crate::replay::{BatchPlan, Replay, Symmetries};
use crate::report::metrics::EpochLosses;
use crate::report::progress::Progress;
use crate::selfplay::PollEnd;
use crate::stop::Stop;
use crate::threads;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Number of finished games per epoch that are stored, for `vecaz inspect` and `vecaz verify`.
const STORED_GAMES: usize = 64;
/// Time between two estimates of the time left.
const ESTIMATE_INTERVAL: Duration = Duration::from_millis(500);
/// Polling interval for requests to stop, in a run whose games are all played by workers.
const IDLE_WAIT: Duration = Duration::from_millis(50);

/// Counts of an epoch's self-play.
#[derive(Default)]
pub struct SelfPlayCounts {
    /// Games finished.
    pub games: u64,
    /// Plies of those games, random openings and dealt outcomes among them.
    pub plies: u64,
    /// Samples of those games.
    pub samples: u64,
    /// Games whose players all have the same return.
    pub draws: u64,
    /// Games with player 0 as the only winner.
    pub first_player_wins: u64,
    /// The first games, without their samples.
    pub stored: Vec<FinishedGame>,
}

/// The results of an epoch's self-play and updates.
pub struct EpochResult {
    /// Counts of self-play.
    pub played: SelfPlayCounts,
    /// Means over the updates; None if no update was due.
    pub losses: Option<EpochLosses>,
    /// Durations.
    pub times: EpochTimes,
    /// Whether the time limit ended the epoch.
    pub extent: Extent,
}

/// Whether an epoch is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All its samples and updates.
    Full,
    /// Those for which there was time.
    Cut,
}

/// The time limit of an epoch.
#[derive(Clone, Copy, Debug, Default)]
pub struct EpochDeadline {
    /// The latest end of its self-play; None without a time limit.
    pub selfplay: Option<Instant>,
    /// The end of its updates; None without a time limit.
    pub training: Option<Instant>,
    /// Estimated seconds of an update.
    pub update_seconds: f64,
}

impl EpochDeadline {
    /// True if self-play must end for `due` updates to be made in time.
    fn ends_selfplay(&self, due: u64) -> bool {
        let needed = Duration::try_from_secs_f64(due as f64 * self.update_seconds).unwrap_or_default();
        let now = Instant::now();
        self.selfplay.is_some_and(|end| now >= end) || self.training.is_some_and(|end| now + needed >= end)
    }

    /// True if no further update is made.
    fn ends_training(&self) -> bool {
        self.training.is_some_and(|end| Instant::now() >= end)
    }
}

/// Durations of an epoch's self-play and updates, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpochTimes {
    /// Self-play.
    pub selfplay: f64,
    /// Updates.
    pub training: f64,
    /// Overlap of both.
    pub overlapped: f64,
}

/// Plays until an epoch's samples are collected.
pub struct Collector<'a> {
    /// The games of this process.
    pub local_selfplay: &'a mut LocalSelfPlay,
    /// Other processes that play games of this run.
    pub workers: Option<&'a mut (dyn Workers + 'static)>,
    /// The log of findings.
    pub findings: &'a mut FindingsLog,
    /// The run's folder; the epoch fails if it is removed.
    pub folder: &'a RunFolder,
    /// Minimum number of samples.
    pub target: u64,
    /// Mean length of the games of the epoch before.
    pub length_before: Option<f64>,
}

/// Makes the updates that are due by `train.replay_ratio`.
pub struct Training<'a> {
    /// The game of the samples.
    pub game: &'a dyn AnyGame,
    /// The network in training.
    pub trainer: &'a mut dyn Learner,
    /// The configuration.
    pub config: &'a Config,
    /// The run's folder; the epoch fails if it is removed.
    pub folder: &'a RunFolder,
    /// Samples of the epoch before.
    pub last_samples: u64,
}

/// Runs an epoch's self-play and updates.
pub struct EpochRunner<'a> {
    /// Self-play.
    pub collector: Collector<'a>,
    /// Updates.
    pub training: Training<'a>,
    /// Receives samples and gives batches.
    pub replay: &'a mut Replay,
    /// Terminal output.
    pub progress: &'a mut Progress,
    /// The request to end the epoch early, without a result.
    pub stop: &'a Stop,
    /// The time limit, which ends the epoch early with what it has.
    pub deadline: EpochDeadline,
}

impl EpochRunner<'_> {
    /// Runs self-play and updates as `train.mode` sets it: one after the other, or overlapped.
    ///
    /// # Errors
    /// Those of self-play, training and the disk; [`Error::Stopped`] once a stop is requested.
    pub fn run(self) -> Result<EpochResult> {
        self.progress.start("self-play", self.collector.target, "samples");
        match self.training.config.train.mode {
            TrainingMode::InTurns => self.in_turns(),
            TrainingMode::Overlapped => self.overlapped(),
        }
    }

    /// Self-play, then updates on all samples, including those of this epoch.
    fn in_turns(self) -> Result<EpochResult> {
        let Self { collector, training, replay, progress, stop, deadline } = self;
        let start = Instant::now();
        let check = || stop.check();
        let before = replay.added();
        let ends = |samples| deadline.ends_selfplay(training.due(before, before + samples));
        let end = SelfPlayEnd { latest: deadline.selfplay, ends: &ends };
        let mut keep = |sample, end: &Arc<[u8]>| replay.push(&sample, end);
        let (played, extent) = collector.run(progress, &check, end, &mut keep)?;
        let selfplay = start.elapsed().as_secs_f64();
        let due = training.due(before, replay.added());
        if due > 0 {
            progress.start("training", due, "updates");
        }
        let report = &|made| progress.set(made);
        let (losses, trained) = training.run(replay, due, deadline, &check, report)?;
        let times =
            EpochTimes { selfplay, training: start.elapsed().as_secs_f64() - selfplay, overlapped: 0.0 };
        Ok(EpochResult { played, losses, times, extent: extent.and(trained) })
    }

    /// Self-play and, in parallel, the updates that are due for the samples of earlier epochs, on those samples only. The
    /// results do not depend on the speed of either. If one fails, the other ends early.
    fn overlapped(self) -> Result<EpochResult> {
        let Self { collector, training, replay, progress, stop, deadline } = self;
        let start = Instant::now();
        let failed = AtomicBool::new(false);
        let check = || match failed.load(Ordering::Relaxed) {
            true => Err(Error::Stopped(StopCause::Failure)),
            false => stop.check(),
        };
        let (sender, made_updates) = mpsc::channel();
        let before = replay.added().saturating_sub(training.last_samples);
        let (due, earlier) = (training.due(before, replay.added()), &*replay);
        let mut samples = Vec::new();
        let (played, trained, times) = std::thread::scope(|scope| -> Result<_> {
            let training = threads::start(scope, "training", || {
                // The receiver is gone if self-play has panicked; the error is then ignored.
                let report = &|made| sender.send(made).unwrap_or_default();
                let trained = training.run(earlier, due, deadline, &check, report);
                drop(sender);
                failed.fetch_or(trained.is_err(), Ordering::Relaxed);
                (trained, start.elapsed().as_secs_f64())
            })?;
            let end = SelfPlayEnd { latest: deadline.selfplay, ends: &|_| deadline.ends_selfplay(0) };
            let mut keep = |sample, end: &Arc<[u8]>| samples.push((sample, end.clone()));
            let played = collector.run(progress, &check, end, &mut keep);
            failed.fetch_or(played.is_err(), Ordering::Relaxed);
            let selfplay = start.elapsed().as_secs_f64();
            if due > 0 {
                progress.start("training", due, "updates");
                made_updates.iter().for_each(|made| progress.set(made));
            }
            let (trained, training) = threads::join(training);
            Ok((played, trained, EpochTimes { selfplay, training, overlapped: selfplay.min(training) }))
        })?;
        let ((played, extent), (losses, trained)) = match (played, trained) {
            (Ok(played), Ok(trained)) => (played, trained),
            (Err(Error::Stopped(StopCause::Failure)), Err(error)) | (Err(error), _) | (_, Err(error)) => {
                return Err(error);
            }
        };
        samples.iter().for_each(|(sample, end)| replay.push(sample, end));
        Ok(EpochResult { played, losses, times, extent: extent.and(trained) })
    }
}

impl Extent {
    /// Full if both parts are.
    fn and(self, other: Self) -> Self {
        if self == Self::Full { other } else { self }
    }
}

/// What ends an epoch's self-play before it has all samples.
struct SelfPlayEnd<'a> {
    /// The time after which no pass begins.
    latest: Option<Instant>,
    /// True if self-play must end with this number of samples.
    ends: &'a dyn Fn(u64) -> bool,
}

impl Collector<'_> {
    /// Plays until the target, `end`, or an error of `check`, and passes every sample to `keep`, with the state in which its game ended.
    fn run(
        mut self,
        progress: &Progress,
        check: &dyn Fn() -> Result<()>,
        end: SelfPlayEnd<'_>,
        keep: &mut dyn FnMut(Sample, &Arc<[u8]>),
    ) -> Result<(SelfPlayCounts, Extent)> {
        let target = self.target;
        let mut played = SelfPlayCounts::default();
        let mut folder = self.folder.periodic_check();
        let mut estimate = Estimate::new(&self);
        while played.samples < target {
            folder.check()?;
            check()?;
            if played.samples == 0 && played.games >= MAX_UNDECIDED_GAMES {
                let why = format!("none of the first {} games has a position to learn from", played.games);
                return Err(Error::unsupported("training", why));
            }
            let mut take = |games: Vec<FinishedGame>| -> Result<bool> {
                for mut game in games {
                    played.take(&game);
                    game.finding.iter().try_for_each(|finding| self.findings.add(finding))?;
                    let end = Arc::from(std::mem::take(&mut game.end));
                    game.samples.drain(..).for_each(|sample| keep(sample, &end));
                    if played.stored.len() < STORED_GAMES {
                        played.stored.push(game);
                    }
                }
                Ok(played.samples < target)
            };
            let (games, poll_end) = self.local_selfplay.poll_until(end.latest)?;
            let mut keep_running = take(games)?;
            if let Some(workers) = &mut self.workers {
                let mut wait = match self.local_selfplay {
                    LocalSelfPlay::Playing(_) => Duration::ZERO,
                    LocalSelfPlay::Idle(_) => IDLE_WAIT,
                };
                while keep_running && let Some(games) = workers.receive(wait)? {
                    keep_running = take(games)?;
                    wait = Duration::ZERO;
                }
            }
            match self.workers.as_mut().and_then(|workers| workers.missing()) {
                Some(missing) => progress.set_with(played.samples.min(target), None, missing),
                None => estimate.show(self.local_selfplay, &played, target, progress),
            }
            // What a poll has played that time ended is not the same on every machine.
            if poll_end == PollEnd::Time || played.samples < target && (end.ends)(played.samples) {
                return Ok((played, Extent::Cut));
            }
        }
        Ok((played, Extent::Full))
    }
}

/// The progress of self-play, estimated at intervals.
struct Estimate {
    /// None where other processes play too: their games in progress are not known.
    eta: Option<EpochEta>,
    fraction: Option<f64>,
    due: Instant,
}

impl Estimate {
    fn new(collector: &Collector<'_>) -> Self {
        let Collector { local_selfplay, workers, target, length_before, .. } = collector;
        let eta = match &**local_selfplay {
            LocalSelfPlay::Playing(selfplay) if workers.is_none() => {
                Some(EpochEta::new(*target, selfplay.slots(), *length_before))
            }
            LocalSelfPlay::Playing(_) | LocalSelfPlay::Idle(_) => None,
        };
        Self { eta, fraction: eta.map(|_| 0.0), due: Instant::now() }
    }

    /// Shows the number of samples so far and, where it can be estimated, the fraction of the time.
    fn show(&mut self, selfplay: &LocalSelfPlay, played: &SelfPlayCounts, target: u64, progress: &Progress) {
        let now = Instant::now();
        if let (Some(eta), LocalSelfPlay::Playing(selfplay)) = (&self.eta, selfplay)
            && now >= self.due
        {
            let SelfPlayCounts { games, plies, samples, .. } = *played;
            let ended = Ended { games: games as f64, plies: plies as f64, samples: samples as f64 };
            self.fraction = Some(eta.fraction(selfplay.slots(), ended));
            self.due = now + ESTIMATE_INTERVAL;
        }
        progress.set_with(played.samples.min(target), self.fraction, String::new());
    }
}

impl Training<'_> {
    /// Number of updates due for the samples of the run from number `before` to `added`; with the first updates for all of them. What was
    /// made for earlier ones does not count, since a resumed run may have another ratio, batch or number of samples before updates.
    fn due(&self, before: u64, added: u64) -> u64 {
        let (train, needed) = (&self.config.train, self.config.first_update_samples());
        if added < needed {
            return 0;
        }
        let of_all = |samples: u64| (samples as f64 * train.replay_ratio / train.batch as f64) as u64;
        let are_first = before < needed && self.trainer.updates() == 0;
        of_all(added) - if are_first { 0 } else { of_all(before) }
    }

    /// Makes `due` updates, up to the deadline or an error of `check`, and calls `report` after each with their number. No losses
    /// without an update.
    fn run(
        self,
        replay: &Replay,
        due: u64,
        deadline: EpochDeadline,
        check: &dyn Fn() -> Result<()>,
        report: &dyn Fn(u64),
    ) -> Result<(Option<EpochLosses>, Extent)> {
        let first = self.trainer.updates();
        let Config { train, run, .. } = self.config;
        let plan = BatchPlan {
            size: train.batch,
            seed: run.seed,
            number: first,
            symmetries: if train.symmetries { Symmetries::Random } else { Symmetries::Identity },
        };
        let mut sum = EpochLosses::default();
        let mut folder = self.folder.periodic_check();
        let mut made = 0;
        while made < due && !deadline.ends_training() {
            folder.check()?;
            check()?;
            let step = self.trainer.update(replay, BatchPlan { number: first + made, ..plan })?;
            sum.policy += step.policy_cross_entropy;
            sum.policy_kl += step.policy_kl;
            sum.value += step.value_mse;
            for head in step.further_heads() {
                *sum.heads.entry(head.name.clone()).or_default() += head.mean;
            }
            sum.grad_norm += step.gradient_norm;
            sum.lr = step.learning_rate;
            made += 1;
            report(made);
        }
        let mean = |sum: f64| sum / made as f64;
        let baselines = (made > 0).then(|| replay.baselines(self.game, plan, made));
        let losses = baselines.map(|baselines| EpochLosses {
            policy: mean(sum.policy),
            policy_kl: mean(sum.policy_kl),
            policy_uniform: baselines.uniform_policy,
            value: mean(sum.value),
            value_constant: Some(baselines.constant_values),
            heads: sum.heads.into_iter().map(|(name, loss)| (name, mean(loss))).collect(),
            grad_norm: mean(sum.grad_norm),
            lr: sum.lr,
        });
        Ok((losses, if made == due { Extent::Full } else { Extent::Cut }))
    }
}

impl SelfPlayCounts {
    fn take(&mut self, game: &FinishedGame) {
        self.games += 1;
        self.plies += game.actions.len() as u64;
        self.samples += game.samples.len() as u64;
        // Nobody wins where all have the same, also in games that are not zero-sum.
        let winners = winners(&game.returns, true);
        self.draws += u64::from(winners.is_empty());
        self.first_player_wins += u64::from(winners == [0]);
    }

    /// The fraction of the games finished that `games` are; None without a game, and where nobody competes: with one player, or with players
    /// who all get the same.
    pub fn outcome_share(&self, games: u64, sizes: &Sizes) -> Option<f64> {
        let is_contest = sizes.num_players > 1 && !sizes.cooperative;
        (is_contest && self.games > 0).then(|| games as f64 / self.games as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_win_is_no_draw() {
        let counts = |returns: &[f32]| {
            let mut counts = SelfPlayCounts::default();
            counts.take(&FinishedGame { returns: returns.to_vec(), ..FinishedGame::default() });
            (counts.draws, counts.first_player_wins)
        };
        assert_eq!([counts(&[1.0, -1.0]), counts(&[-1.0, 1.0])], [(0, 1), (0, 0)]);
        assert_eq!([counts(&[0.0, 0.0]), counts(&[1.0, 1.0])], [(1, 0), (1, 0)]);
        assert_eq!([counts(&[0.5, -1.0, 0.5]), counts(&[0.4, 0.2, -0.6])], [(0, 0), (0, 1)]);
    }

    #[test]
    fn only_contests_have_shares_of_outcomes() {
        let counts = SelfPlayCounts { games: 4, ..SelfPlayCounts::default() };
        let (contest, common) = (Sizes::default(), Sizes { cooperative: true, ..Sizes::default() });
        let alone = Sizes { num_players: 1, ..Sizes::default() };
        let shares = [&contest, &common, &alone].map(|sizes| counts.outcome_share(1, sizes));
        assert_eq!(shares, [Some(0.25), None, None]);
        assert_eq!(SelfPlayCounts::default().outcome_share(0, &contest), None);
    }
}
