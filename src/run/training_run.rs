//! A run in memory and in its folder.

use super::checkpoint::{self, Checkpoint, CheckpointState, Counters, StoredReplay};
use super::epoch::{Collector, EpochResult, EpochRunner, Extent, Training};
use super::epoch_network::{EpochNetwork, averaged};
use super::epoch_size;
use super::factory::{ComponentFactory, DefaultFactory};
use super::files::{CONFIG, FINAL, GAMES, OPPONENTS};
use super::findings::FindingsLog;
use super::fixed_keys::{fixed_keys, fixed_values};
use super::folder::{self, RunFolder};
use super::learner::Learner;
use super::local_selfplay::{LocalSelfPlay, NewWeights, finished_in, take_weights};
use super::manifest::Manifest;
use super::pace::{EvaluationPace, MeasurementTime};
use super::setup::{self, RunSetup, RunState};
use super::strength::StrengthMeter;
use super::workers::{Workers, WorkersSetup};
use crate::backend::AnyGame;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::files::{FileDigest, remove_temporaries, write_atomic};
use crate::net::Weights;
use crate::play::FinishedGame;
use crate::replay::Replay;
use crate::report::exporter::Exporter;
use crate::report::learning;
use crate::report::metrics::{EpochRecord, MetricsLog, RootCacheUse};
use crate::report::progress::Progress;
use crate::report::prometheus::MetricsText;
use crate::report::tensorboard::EventWriter;
use crate::stop::Stop;
use crate::weights::FileTemplate;
use crate::words::count;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// What is called with the metrics of every epoch.
type OnEpoch = Box<dyn FnMut(&EpochRecord) + Send>;

/// A run in progress, in memory and in its folder.
pub struct Run {
    pub(super) factory: Box<dyn ComponentFactory>,
    pub(super) config: Config,
    pub(super) game: Arc<dyn AnyGame>,
    pub(super) template: FileTemplate,
    pub(super) folder: RunFolder,
    pub(super) manifest: Manifest,
    pub(super) trainer: Box<dyn Learner>,
    /// The network that plays after the last epoch.
    pub(super) network: EpochNetwork,
    pub(super) replay: Replay,
    /// Its files in the last checkpoint.
    pub(super) stored: StoredReplay,
    pub(super) local_selfplay: LocalSelfPlay,
    pub(super) workers: Option<Box<dyn Workers>>,
    /// [`Workers::received`] of the last checkpoint; a run without workers copies it to the next ones.
    pub(super) received: Vec<u8>,
    pub(super) counters: Counters,
    pub(super) strength_meter: StrengthMeter,
    pub(super) pace: EvaluationPace,
    pub(super) metrics: MetricsLog,
    pub(super) findings: FindingsLog,
    pub(super) events: EventWriter,
    pub(super) exporter: Option<Exporter>,
    pub(super) on_epoch: Option<OnEpoch>,
    pub(super) resumed_at: Instant,
    pub(super) seconds_before: f64,
}

impl Run {
    /// Starts a run of a built-in game in the folder `dir`, which is created or empty.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the folder is not empty, [`Error::Memory`], [`Error::Io`], or those of the game's and the
    /// network's settings.
    pub fn start(config: Config, dir: &Path, threads: usize) -> Result<Self> {
        Self::start_on(Box::new(DefaultFactory::default()), config, dir, threads)
    }

    /// [`Run::start`] with the components of `factory`.
    ///
    /// # Errors
    /// Those of [`Run::start`].
    pub fn start_on(
        factory: Box<dyn ComponentFactory>,
        config: Config,
        dir: &Path,
        threads: usize,
    ) -> Result<Self> {
        let setup = RunSetup::new(factory, &config, threads)?;
        let start = setup::starting_state(&setup)?;
        Self::begin(setup, start.as_ref(), RunFolder::create(dir)?, Manifest::new(dir), threads)
    }

    /// Resumes the run in the folder `dir` from its last checkpoint, with `config`. A run without a checkpoint starts anew.
    ///
    /// # Errors
    /// [`Error::Format`] if the folder has no run or a file differs from the manifest; [`Error::Mismatch`] if `config` has another
    /// game or network than the run. The folder is then unchanged.
    pub fn resume(config: Config, dir: &Path, threads: usize) -> Result<Self> {
        Self::resume_on(Box::new(DefaultFactory::default()), config, dir, threads)
    }

    /// [`Run::resume`] with the components of `factory`.
    ///
    /// # Errors
    /// Those of [`Run::resume`].
    pub fn resume_on(
        factory: Box<dyn ComponentFactory>,
        config: Config,
        dir: &Path,
        threads: usize,
    ) -> Result<Self> {
        let setup = RunSetup::new(factory, &config, threads)?;
        let config = setup.config.clone();
        let folder = RunFolder::open(dir)?;
        let mut manifest = match Manifest::load(dir)? {
            None if folder::is_unstarted(dir)? => Manifest::new(dir),
            _ => Manifest::of_run(dir)?,
        };
        setup::check_files(&manifest)?;
        manifest.resolve_pending()?;
        let Some((epoch, latest)) = manifest.checkpoints().pop() else {
            let start = setup::starting_state(&setup)?;
            return Self::begin(setup, start.as_ref(), folder, manifest, threads);
        };
        let loaded = checkpoint::load(
            &latest,
            epoch,
            setup.game.as_ref(),
            (config.replay.capacity, setup.targets.clone()),
        );
        let Checkpoint { counters, slots, received, trainer: state, weights, replay, stored } = loaded?;
        let trainer = setup.factory.learner(&config, &setup.game, &setup.spec, Some(&state))?;
        let state =
            RunState { trainer, weights, replay, stored, slots, received, counters, folder, manifest };
        let mut run = Self::assemble(config, setup, state, threads)?;
        run.manifest.fix(fixed_values(fixed_keys(run.game.as_ref(), &run.config)));
        // Written last, so that a refused configuration does not replace the saved one.
        run.manifest.replace(CONFIG, run.config.file_text()?.as_bytes())?;
        run.keep_best()?;
        run.manifest.write(epoch)?;
        if let Some(workers) = &mut run.workers {
            workers.publish(epoch, &run.network.file, run.metrics.records().last())?;
        }
        Ok(run)
    }

    /// Starts a run from epoch 0, with first weights or those of the state `start`. The configuration is written first, so that the run can be
    /// resumed after a kill at any moment.
    fn begin(
        setup: RunSetup,
        start: Option<&Weights>,
        folder: RunFolder,
        mut manifest: Manifest,
        threads: usize,
    ) -> Result<Self> {
        let config = setup.config.clone();
        let text = config.file_text()?;
        manifest.fix(fixed_values(fixed_keys(setup.game.as_ref(), &config)));
        match manifest.names().is_empty() {
            true => {
                write_atomic(folder.path().join(CONFIG), text.as_bytes())?;
                manifest.set(CONFIG, FileDigest::of(text.as_bytes()));
            }
            false => manifest.replace(CONFIG, text.as_bytes())?,
        }
        manifest.write(0)?;
        let trainer = setup.factory.learner(&config, &setup.game, &setup.spec, start)?;
        let weights = trainer.weights()?;
        let replay = Replay::with_targets(setup.game.as_ref(), config.replay.capacity, setup.targets.clone());
        let counters = Counters::default();
        let (stored, slots, received) = (StoredReplay::default(), Vec::new(), Vec::new());
        let state =
            RunState { trainer, weights, replay, stored, slots, received, counters, folder, manifest };
        let mut run = Self::assemble(config, setup, state, threads)?;
        run.finish_epoch().map_err(|error| run.folder.cause_of(error))?;
        Ok(run)
    }

    fn assemble(config: Config, setup: RunSetup, state: RunState, threads: usize) -> Result<Self> {
        let RunSetup { factory, game, template, strength_meter, .. } = setup;
        let RunState { trainer, weights, replay, stored, slots, received, counters, folder, manifest } =
            state;
        let workers = factory.workers(WorkersSetup {
            config: &config,
            game: &game,
            received: &received,
            slots: &slots,
            checkpoint: manifest.checkpoint_number(counters.epoch),
        })?;
        let weights = (weights, trainer.updates());
        let network = EpochNetwork::new(factory.as_ref(), &config, game.as_ref(), &template, weights)?;
        let local_selfplay = match factory.plays_itself(&config) {
            true => {
                let network = network.network.as_ref();
                LocalSelfPlay::playing(factory.as_ref(), &config, &game, network, slots, threads)?
            }
            false => LocalSelfPlay::Idle(slots),
        };
        let dir = folder.path();
        tracing::info!(
            "{} after epoch {}: {} updates, {} samples in the replay buffer, {threads} threads",
            dir.display(),
            counters.epoch,
            trainer.updates(),
            replay.len()
        );
        let mut metrics = MetricsLog::open(dir, counters.epoch)?;
        if !manifest.lists(FINAL) {
            manifest.remove_unlisted_final()?;
            metrics.remove_later()?;
        }
        remove_temporaries(dir)?;
        remove_temporaries(&dir.join(GAMES))?;
        checkpoint::prune(dir, &manifest.checkpoints())?;
        remove_temporaries(&dir.join(OPPONENTS))?;
        Ok(Self {
            factory,
            pace: EvaluationPace::new(&config.eval, strength_meter.items(), metrics.records()),
            strength_meter,
            metrics,
            findings: FindingsLog::open(dir)?,
            events: EventWriter::create(dir, counters.epoch)?,
            exporter: None,
            on_epoch: None,
            seconds_before: counters.seconds,
            resumed_at: Instant::now(),
            folder,
            manifest,
            config,
            game,
            template,
            trainer,
            network,
            replay,
            stored,
            local_selfplay,
            workers,
            received,
            counters,
        })
    }

    /// Passes the run's metrics to `exporter`, now and after every epoch.
    pub fn export_metrics(&mut self, exporter: Exporter) {
        exporter.set(MetricsText::of_run(self.metrics.records()));
        self.exporter = Some(exporter);
    }

    /// Calls `call` with the metrics of every epoch, once its checkpoint is written.
    pub fn on_epoch(&mut self, call: impl FnMut(&EpochRecord) + Send + 'static) {
        self.on_epoch = Some(Box::new(call));
    }

    /// The run's folder.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Number of finished epochs.
    pub fn epoch(&self) -> u64 {
        self.counters.epoch
    }

    /// Number of samples that the replay buffer has received so far.
    pub fn samples(&self) -> u64 {
        self.replay.added()
    }

    /// Number of updates so far.
    pub fn updates(&self) -> u64 {
        self.trainer.updates()
    }

    /// Runs epochs until the configuration's limit or until `stop` is requested. An epoch that does not end in time is cut: its
    /// network is trained on what was played, measured and kept, but is no checkpoint. A resumed run plays the epoch in full and gives
    /// the bytes of an uninterrupted one. The run cannot be continued after a cut epoch or an error.
    ///
    /// # Errors
    /// [`Error::Stopped`]; [`Error::TimeLimit`] before self-play has begun; those of play, training and the disk, with no new checkpoint.
    pub fn run_epochs(&mut self, progress: &mut Progress, stop: &Stop) -> Result<()> {
        let first = self.counters.epoch;
        let stop = stop.at(self.last_moment());
        self.local_selfplay.stop_by(&stop);
        while !self.is_done() {
            match self.work(progress, &stop) {
                Ok(record) => {
                    progress.finish();
                    progress.set_run(self.eta());
                    progress.epoch(&record)?;
                    for warning in learning::new_warnings(&self.config, self.metrics.records()) {
                        progress.note(&format!("warning: {}", warning.sentence(&self.config)))?;
                    }
                    if let Some(call) = &mut self.on_epoch {
                        call(&record);
                    }
                    if let Some(exporter) = &self.exporter {
                        exporter.set(MetricsText::of_run(self.metrics.records()));
                    }
                    if record.cut {
                        return self.close(progress);
                    }
                }
                Err(Error::Stopped(cause)) => return self.end_early(cause, first, progress),
                Err(error) => return Err(self.folder.cause_of(self.cause_of(error))),
            }
        }
        if self.counters.epoch == first {
            self.finish_workers();
            let key = if self.has_all_epochs() { "--epochs" } else { "--minutes" };
            return progress.note(&format!(
                "the limit is reached after {}{}; set a higher limit with {key}",
                count(first, "epoch"),
                self.last_epoch_seconds().map(|s| format!(" of about {s:.1} s")).unwrap_or_default()
            ));
        }
        self.close(progress)
    }

    /// Runs one epoch.
    fn work(&mut self, progress: &mut Progress, stop: &Stop) -> Result<EpochRecord> {
        stop.check()?;
        progress.set_run(self.eta());
        let started = Instant::now();
        let cache = self.play_with_new_weights(progress, stop)?;
        let prepared_at = started.elapsed().as_secs_f64();
        let EpochResult { played, losses, times, extent } = self.play_and_train(progress, stop)?;
        let Self { factory, config, game, template, trainer, .. } = self;
        let updates = trainer.updates();
        let weights = averaged(config, &self.network.file, trainer.weights()?, updates);
        self.network =
            EpochNetwork::new(factory.as_ref(), config, game.as_ref(), template, (weights, updates))?;
        let (pass_metrics, trained_at) =
            (self.local_selfplay.take_metrics(), started.elapsed().as_secs_f64());
        let epoch = self.counters.epoch + 1;
        let moment = if extent == Extent::Cut { MeasurementTime::Last } else { self.moment_after(epoch) };
        let strength = self.evaluate(epoch, moment, progress, stop)?;
        let sizes = self.game.sizes();
        let record = EpochRecord {
            epoch,
            seconds: self.seconds(),
            games: played.games,
            positions: played.plies,
            samples: played.samples,
            simulations: pass_metrics.simulations,
            selfplay_seconds: prepared_at + times.selfplay,
            train_seconds: times.training,
            overlapped_seconds: times.overlapped,
            eval_seconds: started.elapsed().as_secs_f64() - trained_at,
            updates: self.trainer.updates(),
            cut: extent == Extent::Cut,
            replay_fill: self.replay.len() as f64 / self.config.replay.capacity as f64,
            losses,
            mean_game_length: (played.games > 0).then(|| played.plies as f64 / played.games as f64),
            draw_share: played.outcome_share(played.draws, &sizes),
            first_player_win_share: played.outcome_share(played.first_player_wins, &sizes),
            strength,
            cache_hit_rate: pass_metrics.cache_hit_rate(),
            evaluations: pass_metrics.evaluations,
            root_cache: (cache.trees > 0).then_some(RootCacheUse {
                games: pass_metrics.cached_starts,
                inherited_visits: pass_metrics.inherited_visits,
                ..cache
            }),
            findings: (self.findings.count() > 0).then(|| self.findings.count()),
            workers: self.workers.as_mut().map(|workers| workers.take_counts()),
            ..EpochRecord::default()
        };
        let record = record.with_rates();
        let written_from = Instant::now();
        match extent {
            Extent::Full => self.close_epoch(record.clone(), &played.stored, stop)?,
            Extent::Cut => self.close_cut(record.clone(), stop)?,
        }
        tracing::debug!(
            "epoch {epoch}: {} games of {} plies, {} simulations in {} passes; preparation {prepared_at:.3} s, self-play {:.3} s, \
             training {:.3} s, evaluation {:.3} s, files {:.3} s",
            played.games,
            played.plies,
            pass_metrics.simulations,
            pass_metrics.passes,
            times.selfplay,
            times.training,
            record.eval_seconds,
            written_from.elapsed().as_secs_f64()
        );
        Ok(record)
    }

    /// Writes the epoch's files, then the checkpoint and the manifest: a run that is killed before the manifest repeats the epoch and
    /// writes the same files. A signal may interrupt only the report, which is derived from the other files.
    fn close_epoch(&mut self, record: EpochRecord, games: &[FinishedGame], stop: &Stop) -> Result<()> {
        self.folder.check()?;
        let writing = stop.write_guard();
        self.manifest.drop_cut_record()?;
        self.counters.epoch = record.epoch;
        self.counters.seconds = record.seconds;
        self.findings.sync()?;
        if let Some(rank) = self.best_rank_with(&record) {
            self.counters.best = Some((record.epoch, rank));
        }
        // After `drop_cut_record`, which writes the manifest of the epoch before: it must not list this epoch's games.
        self.store_games(games)?;
        self.keep_network(&record)?;
        self.events.append(&record)?;
        self.metrics.append(record)?;
        drop(writing);
        self.write_report()?;
        let _writing = stop.write_guard();
        self.finish_epoch()?;
        self.keep_best()
    }

    /// Passes the current weights and their root cache to self-play. Returns the cost of the cache.
    fn play_with_new_weights(&mut self, progress: &mut Progress, stop: &Stop) -> Result<RootCacheUse> {
        let Self { config, game, local_selfplay, counters, network, .. } = self;
        match local_selfplay {
            LocalSelfPlay::Idle(_) => Ok(RootCacheUse::default()),
            LocalSelfPlay::Playing(selfplay) => {
                let weights = NewWeights {
                    config,
                    game: game.as_ref(),
                    network: network.network.as_ref(),
                    epochs: counters.epoch,
                    finished: finished_in(selfplay.slots()),
                };
                take_weights(selfplay, &weights, &mut || progress.start("root cache", 1, "build"), stop)
            }
        }
    }

    /// Runs an epoch's self-play and updates.
    fn play_and_train(&mut self, progress: &mut Progress, stop: &Stop) -> Result<EpochResult> {
        let target = epoch_size::samples_of(&self.config.selfplay, self.counters.epoch + 1);
        let deadline = self.epoch_deadline()?;
        let last = self.metrics.records().last();
        let length_before = last.and_then(|record| record.mean_game_length);
        let last_samples = last.map_or(0, |record| record.samples);
        let Self { config, game, local_selfplay, workers, findings, trainer, replay, folder, .. } = self;
        let game = game.as_ref();
        let workers = workers.as_deref_mut();
        let collector = Collector { local_selfplay, workers, findings, folder, target, length_before };
        let training = Training { game, trainer: trainer.as_mut(), config, folder, last_samples };
        EpochRunner { collector, training, replay, progress, stop, deadline }.run()
    }

    /// Writes the checkpoint and the manifest of the current epoch, and removes the checkpoints beyond `run.keep_checkpoints`.
    fn finish_epoch(&mut self) -> Result<()> {
        let state = self.trainer.state()?;
        if let Some(workers) = &self.workers {
            self.received = workers.received();
        }
        let of_workers = self.workers.as_ref().and_then(|workers| workers.slots());
        let parts = CheckpointState {
            counters: &self.counters,
            slots: of_workers.unwrap_or_else(|| self.local_selfplay.slots()),
            received: &self.received,
            trainer: &state,
            replay: &self.replay,
            stored: &self.stored,
            network: &self.network.file,
        };
        let (files, stored) = checkpoint::save(self.dir(), self.game.as_ref(), parts)?;
        files.into_iter().for_each(|(name, digest)| self.manifest.set(name, digest));
        self.stored = stored;
        self.list_logs();
        self.manifest.keep_checkpoints(self.config.run.keep_checkpoints);
        self.manifest.write_full(self.counters.epoch)?;
        if let Some(workers) = &mut self.workers {
            workers.publish(self.counters.epoch, &self.network.file, self.metrics.records().last())?;
        }
        checkpoint::prune(self.dir(), &self.manifest.checkpoints())
    }
}
