//! Self-play and updates of an epoch, one after the other or overlapped.

use super::findings::FindingsLog;
use super::folder::RunFolder;
use super::learner::Learner;
use super::local_selfplay::LocalSelfPlay;
use super::workers::Workers;
use crate::config::{Config, TrainingMode};
use crate::error::{Error, Result, StopCause};
use crate::play::{FinishedGame, Sample};
use crate::replay::{BatchPlan, Replay, Symmetries};
use crate::report::metrics::EpochLosses;
use crate::report::progress::Progress;
use crate::stop::Stop;
use crate::threads;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Number of finished games per epoch that are stored, for `vecaz inspect` and `vecaz verify`.
const STORED_GAMES: usize = 64;
/// Polling interval for requests to stop, in a run whose games are all played by workers.
const IDLE_WAIT: Duration = Duration::from_millis(50);

/// Counts of an epoch's self-play.
#[derive(Default)]
pub struct SelfPlayCounts {
    /// Games finished.
    pub games: u64,
    /// Plies of those games.
    pub plies: u64,
    /// Samples of those games.
    pub samples: u64,
    /// Games with more than one winner.
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
    /// The configuration.
    pub config: &'a Config,
    /// The run's folder; the epoch fails if it is removed.
    pub folder: &'a RunFolder,
}

/// Makes the updates that are due by `train.replay_ratio`.
pub struct Training<'a> {
    /// The network in training.
    pub trainer: &'a mut dyn Learner,
    /// The configuration.
    pub config: &'a Config,
    /// The run's folder; the epoch fails if it is removed.
    pub folder: &'a RunFolder,
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
    /// The request to end the epoch early.
    pub stop: &'a Stop,
}

impl EpochRunner<'_> {
    /// Runs self-play and updates as `train.mode` sets it: one after the other, or overlapped.
    ///
    /// # Errors
    /// Those of self-play, training and the disk; [`Error::Stopped`] once a stop is requested.
    pub fn run(self) -> Result<EpochResult> {
        self.progress.start("self-play", self.collector.target(), "samples");
        match self.training.config.train.mode {
            TrainingMode::InTurns => self.in_turns(),
            TrainingMode::Overlapped => self.overlapped(),
        }
    }

    /// Self-play, then updates on all samples, including those of this epoch.
    fn in_turns(self) -> Result<EpochResult> {
        let Self { collector, training, replay, progress, stop } = self;
        let start = Instant::now();
        let check = || stop.check();
        let played = collector.run(progress, &check, &mut |sample, end| replay.push(&sample, end))?;
        let selfplay = start.elapsed().as_secs_f64();
        let due = training.due(replay);
        if due > 0 {
            progress.start("training", due, "updates");
        }
        let report = &|made| progress.set(made);
        let losses = training.run(replay, due, &check, report)?;
        let times =
            EpochTimes { selfplay, training: start.elapsed().as_secs_f64() - selfplay, overlapped: 0.0 };
        Ok(EpochResult { played, losses, times })
    }

    /// Self-play and, in parallel, the updates that are due for the samples of earlier epochs, on those samples only. The
    /// results do not depend on the speed of either. If one fails, the other ends early.
    fn overlapped(self) -> Result<EpochResult> {
        let Self { collector, training, replay, progress, stop } = self;
        let start = Instant::now();
        let failed = AtomicBool::new(false);
        let check = || match failed.load(Ordering::Relaxed) {
            true => Err(Error::Stopped(StopCause::Failure)),
            false => stop.check(),
        };
        let (sender, made_updates) = mpsc::channel();
        let (due, earlier) = (training.due(replay), &*replay);
        let mut samples = Vec::new();
        let (played, trained, times) = std::thread::scope(|scope| -> Result<_> {
            let training = threads::start(scope, "training", || {
                // The receiver is gone if self-play has panicked; the error is then ignored.
                let report = &|made| sender.send(made).unwrap_or_default();
                let trained = training.run(earlier, due, &check, report);
                drop(sender);
                failed.fetch_or(trained.is_err(), Ordering::Relaxed);
                (trained, start.elapsed().as_secs_f64())
            })?;
            let mut keep = |sample, end: &Arc<[u8]>| samples.push((sample, end.clone()));
            let played = collector.run(progress, &check, &mut keep);
            failed.fetch_or(played.is_err(), Ordering::Relaxed);
            let selfplay = start.elapsed().as_secs_f64();
            if due > 0 {
                progress.start("training", due, "updates");
                made_updates.iter().for_each(|made| progress.set(made));
            }
            let (trained, training) = threads::join(training);
            Ok((played, trained, EpochTimes { selfplay, training, overlapped: selfplay.min(training) }))
        })?;
        let (played, losses) = match (played, trained) {
            (Ok(played), Ok(losses)) => (played, losses),
            (Err(Error::Stopped(StopCause::Failure)), Err(error)) | (Err(error), _) | (_, Err(error)) => {
                return Err(error);
            }
        };
        samples.iter().for_each(|(sample, end)| replay.push(sample, end));
        Ok(EpochResult { played, losses, times })
    }
}

impl Collector<'_> {
    fn target(&self) -> u64 {
        self.config.selfplay.samples_per_epoch as u64
    }

    /// Plays until the target, or an error of `check`, and passes every sample to `keep`, with the state in which its game ended.
    fn run(
        mut self,
        progress: &Progress,
        check: &dyn Fn() -> Result<()>,
        keep: &mut dyn FnMut(Sample, &Arc<[u8]>),
    ) -> Result<SelfPlayCounts> {
        let target = self.target();
        let mut played = SelfPlayCounts::default();
        let mut folder = self.folder.periodic_check();
        while played.samples < target {
            folder.check()?;
            check()?;
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
            let mut keep_running = take(self.local_selfplay.poll()?)?;
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
            progress.set(played.samples.min(target));
        }
        Ok(played)
    }
}

impl Training<'_> {
    /// Number of updates due for the samples added to `replay` and not made yet.
    fn due(&self, replay: &Replay) -> u64 {
        let (train, added) = (&self.config.train, replay.added());
        if added < train.min_samples as u64 {
            return 0;
        }
        let all = (added as f64 * train.replay_ratio / (train.batch * train.accumulate) as f64) as u64;
        all.saturating_sub(self.trainer.updates())
    }

    /// Makes `due` updates, up to an error of `check`, and calls `report` after each with their number. No losses if `due` is 0.
    fn run(
        self,
        replay: &Replay,
        due: u64,
        check: &dyn Fn() -> Result<()>,
        report: &dyn Fn(u64),
    ) -> Result<Option<EpochLosses>> {
        if due == 0 {
            return Ok(None);
        }
        let first = self.trainer.updates();
        let Config { train, run, .. } = self.config;
        let plan = BatchPlan {
            size: train.batch * train.accumulate,
            seed: run.seed,
            number: first,
            symmetries: if train.symmetries { Symmetries::Random } else { Symmetries::Identity },
        };
        let mut sum = EpochLosses::default();
        let mut folder = self.folder.periodic_check();
        for made in 0..due {
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
            report(made + 1);
        }
        let mean = |sum: f64| sum / due as f64;
        Ok(Some(EpochLosses {
            policy: mean(sum.policy),
            policy_kl: mean(sum.policy_kl),
            value: mean(sum.value),
            heads: sum.heads.into_iter().map(|(name, loss)| (name, mean(loss))).collect(),
            grad_norm: mean(sum.grad_norm),
            lr: sum.lr,
        }))
    }
}

impl SelfPlayCounts {
    fn take(&mut self, game: &FinishedGame) {
        self.games += 1;
        self.plies += game.actions.len() as u64;
        self.samples += game.samples.len() as u64;
        let best = game.returns.iter().fold(f32::NEG_INFINITY, |m, &r| m.max(r));
        let winners = game.returns.iter().filter(|&&r| r == best).count();
        self.draws += u64::from(winners > 1);
        self.first_player_wins += u64::from(winners == 1 && game.returns[0] == best);
    }
}
