//! The two works of an epoch, self-play that gathers samples and the updates that are due: one after the other, or both at the
//! same time.

use super::findings::FindingsLog;
use super::learner::Learner;
use crate::config::{Config, TrainingMode};
use crate::error::Result;
use crate::replay::{BatchPlan, Replay, Symmetries};
use crate::report::metrics::Losses;
use crate::report::progress::Progress;
use crate::selfplay::{FinishedGame, Sample, SelfPlay};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// Finished games of an epoch that are stored for people and `vecaz verify`.
const STORED_GAMES: usize = 64;

/// What an epoch's self-play did.
#[derive(Default)]
pub struct Played {
    /// Games finished.
    pub games: u64,
    /// Their plies.
    pub plies: u64,
    /// Their samples.
    pub samples: u64,
    /// Games with more than one winner.
    pub draws: u64,
    /// Games that player 0 alone won.
    pub first_player_wins: u64,
    /// The first games, without their samples.
    pub stored: Vec<FinishedGame>,
}

/// What both works did.
pub struct Done {
    /// Of self-play.
    pub played: Played,
    /// Means over the updates; None where none were due.
    pub losses: Option<Losses>,
    /// When each of them took place.
    pub times: Times,
}

/// Seconds of an epoch's works.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Of self-play.
    pub selfplay: f64,
    /// Of the updates.
    pub training: f64,
    /// Of both at once.
    pub overlapped: f64,
}

/// Self-play until an epoch's samples are there.
pub struct Collector<'a> {
    /// The games.
    pub selfplay: &'a mut SelfPlay,
    /// Takes what is found.
    pub findings: &'a mut FindingsLog,
    /// The configuration.
    pub config: &'a Config,
}

/// Updates until as many are made as the samples in the replay call for.
pub struct Training<'a> {
    /// The network.
    pub trainer: &'a mut dyn Learner,
    /// The configuration.
    pub config: &'a Config,
}

/// An epoch's works, and what they share.
pub struct EpochRunner<'a> {
    /// The one.
    pub collector: Collector<'a>,
    /// The other.
    pub training: Training<'a>,
    /// Where samples go, and where batches come from.
    pub replay: &'a mut Replay,
    /// Says how far they are.
    pub progress: &'a mut Progress,
    /// Set where both are to end early.
    pub stop: &'a AtomicBool,
}

impl EpochRunner<'_> {
    /// Both in the order that the configuration asks for; None where `stop` is set before their end.
    ///
    /// # Errors
    /// What self-play, training or the disk says.
    pub fn run(self) -> Result<Option<Done>> {
        self.progress.start("self-play", self.collector.target(), "samples");
        match self.training.config.train.mode {
            TrainingMode::InTurns => self.in_turns(),
            TrainingMode::Overlapped => self.overlapped(),
        }
    }

    /// Self-play, then updates on all samples, those of this epoch included.
    fn in_turns(self) -> Result<Option<Done>> {
        let Self { collector, training, replay, progress, stop } = self;
        let start = Instant::now();
        let keep_running = || !stop.load(Ordering::Relaxed);
        let keep = &mut |sample: Sample| replay.push(&sample);
        let Some(played) = collector.run(progress, &keep_running, keep)? else { return Ok(None) };
        let selfplay = start.elapsed().as_secs_f64();
        let due = training.due(replay);
        if due > 0 {
            progress.start("training", due, "updates");
        }
        let tell = &|made| progress.set(made);
        let Some(losses) = training.run(replay, due, &keep_running, tell)? else { return Ok(None) };
        let times = Times { selfplay, training: start.elapsed().as_secs_f64() - selfplay, overlapped: 0.0 };
        Ok(Some(Done { played, losses, times }))
    }

    /// Self-play and, at the same time, the updates that the samples of earlier epochs call for, on those samples alone. Neither
    /// depends on how fast the other is; where one fails, the other ends early.
    fn overlapped(self) -> Result<Option<Done>> {
        let Self { collector, training, replay, progress, stop } = self;
        let start = Instant::now();
        let failed = AtomicBool::new(false);
        let keep_running = || !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed);
        let (tell, told) = mpsc::channel();
        let (due, earlier) = (training.due(replay), &*replay);
        let mut samples = Vec::new();
        let (played, trained, times) = thread::scope(|scope| {
            let training = scope.spawn(|| {
                // Nobody is told any more where self-play has panicked.
                let trained =
                    training.run(earlier, due, &keep_running, &|made| tell.send(made).unwrap_or_default());
                drop(tell);
                failed.fetch_or(trained.is_err(), Ordering::Relaxed);
                (trained, start.elapsed().as_secs_f64())
            });
            let played = collector.run(progress, &keep_running, &mut |sample| samples.push(sample));
            failed.fetch_or(played.is_err(), Ordering::Relaxed);
            let selfplay = start.elapsed().as_secs_f64();
            if due > 0 {
                progress.start("training", due, "updates");
                told.iter().for_each(|made| progress.set(made));
            }
            let (trained, training) = training.join().unwrap_or_else(|panic| resume_unwind(panic));
            (played, trained, Times { selfplay, training, overlapped: selfplay.min(training) })
        });
        let (Some(played), Some(losses)) = (played?, trained?) else { return Ok(None) };
        samples.iter().for_each(|sample| replay.push(sample));
        Ok(Some(Done { played, losses, times }))
    }
}

impl Collector<'_> {
    fn target(&self) -> u64 {
        self.config.selfplay.samples_per_epoch as u64
    }

    /// Plays as long as `keep_running`, and gives every sample to `keep`.
    fn run(
        self,
        progress: &Progress,
        keep_running: &dyn Fn() -> bool,
        keep: &mut dyn FnMut(Sample),
    ) -> Result<Option<Played>> {
        let target = self.target();
        let mut played = Played::default();
        while played.samples < target {
            if !keep_running() {
                return Ok(None);
            }
            for mut game in self.selfplay.stride()? {
                played.take(&game);
                game.finding.iter().try_for_each(|finding| self.findings.add(finding))?;
                game.samples.drain(..).for_each(&mut *keep);
                if played.stored.len() < STORED_GAMES {
                    played.stored.push(game);
                }
            }
            progress.set(played.samples.min(target));
        }
        Ok(Some(played))
    }
}

impl Training<'_> {
    /// Updates that the samples of `replay` call for and that are not made yet.
    fn due(&self, replay: &Replay) -> u64 {
        let (train, added) = (&self.config.train, replay.added());
        if added < train.min_samples as u64 {
            return 0;
        }
        let all = (added as f64 * train.replay_ratio / (train.batch * train.accumulate) as f64) as u64;
        all.saturating_sub(self.trainer.updates())
    }

    /// Makes `due` updates as long as `keep_running`, and tells after each how many are made; no losses where none are due.
    fn run(
        self,
        replay: &Replay,
        due: u64,
        keep_running: &dyn Fn() -> bool,
        tell: &dyn Fn(u64),
    ) -> Result<Option<Option<Losses>>> {
        if due == 0 {
            return Ok(Some(None));
        }
        let first = self.trainer.updates();
        let Config { train, run, .. } = self.config;
        let plan = BatchPlan {
            size: train.batch * train.accumulate,
            seed: run.seed,
            number: first,
            symmetries: if train.symmetries { Symmetries::Random } else { Symmetries::Identity },
        };
        let mut sum = Losses::default();
        for made in 0..due {
            if !keep_running() {
                return Ok(None);
            }
            let step = self.trainer.update(replay, BatchPlan { number: first + made, ..plan })?;
            sum.policy += step.policy_cross_entropy;
            sum.policy_kl += step.policy_kl;
            sum.value += step.value_mse;
            sum.grad_norm += step.gradient_norm;
            sum.lr = step.learning_rate;
            tell(made + 1);
        }
        let mean = |sum: f64| sum / due as f64;
        Ok(Some(Some(Losses {
            policy: mean(sum.policy),
            policy_kl: mean(sum.policy_kl),
            value: mean(sum.value),
            grad_norm: mean(sum.grad_norm),
            lr: sum.lr,
        })))
    }
}

impl Played {
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
