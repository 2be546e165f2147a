//! The start of a run: components, which are checked before anything is written, and the state, new or from a checkpoint.

use super::checkpoint::{self, Counters, StoredReplay};
use super::epoch_size::sized;
use super::factory::ComponentFactory;
use super::files::{BEST, CONFIG, FINAL};
use super::findings;
use super::folder::RunFolder;
use super::learner::Learner;
use super::manifest::{CheckDepth, Manifest};
use super::network::{NetExecutor, select_executor};
use super::strength::StrengthMeter;
use crate::backend::AnyGame;
use crate::config::{Arch, Config, ValueHead};
use crate::error::{Error, Result};
use crate::net::gpu_train::check_heads;
use crate::net::{NetSpec, Weights};
use crate::play::GameSlot;
use crate::replay::{Replay, TargetList};
use crate::report::metrics;
use crate::selfplay::{check_algorithm, check_nodes};
use crate::train::Trainer;
use crate::weights::{EvaluatedPositions, FileTemplate, NetFile};
use std::path::Path;
use std::sync::Arc;

/// The components of a configuration, made and checked before anything is written.
pub(super) struct RunSetup {
    pub(super) factory: Box<dyn ComponentFactory>,
    /// With the size of its epochs.
    pub(super) config: Config,
    pub(super) game: Arc<dyn AnyGame>,
    pub(super) spec: NetSpec,
    /// What the replay buffer's batches have besides policy and values.
    pub(super) targets: TargetList,
    pub(super) template: FileTemplate,
    pub(super) strength_meter: StrengthMeter,
}

impl RunSetup {
    pub(super) fn new(factory: Box<dyn ComponentFactory>, config: &Config, threads: usize) -> Result<Self> {
        let game = factory.registry().game_of(config)?;
        check_trained(game.as_ref())?;
        let sized = sized(config, &game.sizes())?;
        let config = &sized;
        factory.check(config)?;
        config.check_replay()?;
        check_algorithm(config, &game.sizes())?;
        check_nodes(config, &game.sizes())?;
        let spec = NetSpec::with_targets(&config.net, &game.sizes(), &game.targets())?;
        let model = spec.model()?;
        check_net(config, game.as_ref())?;
        match select_executor(config, &model)?.0 {
            NetExecutor::Candle(_) => config.check_candle_training()?,
            NetExecutor::Fused if !config.network_devices().is_cpu() => check_heads(&model)?,
            NetExecutor::Fused => {}
        }
        let targets = TargetList::new(game.as_ref(), &model)?;
        factory.memory(config, game.as_ref())?.check(config)?;
        let positions = EvaluatedPositions::of(config.search.algorithm);
        let template = FileTemplate::new(game.as_ref(), &spec)?.evaluating(positions);
        let strength_meter = StrengthMeter::new(config, &game, threads)?;
        Ok(Self { factory, game, spec, targets, template, strength_meter, config: sized })
    }
}

/// Refuses what a network cannot learn of this game: draws where results are points, and anything where each input is normalised over a
/// single number.
fn check_net(config: &Config, game: &dyn AnyGame) -> Result<()> {
    let (net, obs) = (&config.net, game.sizes().obs);
    if net.value_head == ValueHead::Wdl && game.points_of_value().is_some() {
        let expected = "scalar: results of this game are points, not win, draw and loss alone";
        return Err(Error::config("net.value_head", net.value_head, expected));
    }
    if net.arch == Arch::Resnet && obs.height * obs.width == 1 && config.train.batch == 1 {
        let expected =
            "at least 2 with observations of one cell: normalised over one sample every input is 0";
        return Err(Error::config("train.batch", config.train.batch, expected));
    }
    Ok(())
}

/// Refuses a game that networks play but do not learn.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn check_trained(game: &dyn AnyGame) -> Result<()> {
    match game.valuation() {
        None => Ok(()),
        Some(_) => Err(Error::unsupported(
            format!("training {} with these settings of the game", game.name()),
            "networks learn it without them, and then play it with them in eval, play and serve",
        )),
    }
}

/// The state of a run's trainer before the first update, with the weights of `run.start`; None: those that its seed draws.
///
/// # Errors
/// Those of [`NetFile::load`], [`NetFile::spec_for`] and [`Trainer::with_weights`]; [`Error::Config`] with the first key of the network that
/// differs; [`Error::Mismatch`] for a network of other positions than those that the run's search evaluates.
pub(super) fn starting_state(setup: &RunSetup) -> Result<Option<Weights>> {
    let RunSetup { config, game, spec, .. } = setup;
    if config.run.start.is_empty() {
        return Ok(None);
    }
    let file = NetFile::load(Path::new(&config.run.start))?;
    let (made, own) = (file.options_in(game.as_ref()), game.options());
    let differs = |key: &&&str| made.get(**key) != own.get(**key);
    if file.header.game == game.name()
        && let Some(&key) = game.sight_options().iter().find(differs)
    {
        let expected = format!("{}, that of the network of run.start", made[key]);
        return Err(Error::config(format!("game.{key}"), &own[key], expected));
    }
    let trained = file.spec_for(game.as_ref())?;
    let mut keys = spec.effective_keys().into_iter().zip(trained.effective_keys());
    if let Some(((key, found), (_, trained))) = keys.find(|(found, trained)| found != trained) {
        let expected = format!("{trained}, that of the network of run.start");
        return Err(Error::config(format!("net.{key}"), found, expected));
    }
    let (found, expected) = (file.header.evaluates, EvaluatedPositions::of(config.search.algorithm));
    if found != expected {
        return Err(Error::mismatch(
            "what the network of run.start evaluates",
            found.observer(),
            expected.observer(),
        ));
    }
    Ok(Some(Trainer::with_weights(spec, &config.train, &file.weights)?.state()))
}

/// The initial state of a run: new, or from a checkpoint.
pub(super) struct RunState {
    pub(super) trainer: Box<dyn Learner>,
    /// The weights of the network that plays: the trainer's, or their average.
    pub(super) weights: Weights,
    pub(super) replay: Replay,
    pub(super) stored: StoredReplay,
    pub(super) slots: Vec<GameSlot>,
    pub(super) received: Vec<u8>,
    pub(super) counters: Counters,
    pub(super) folder: RunFolder,
    pub(super) manifest: Manifest,
}

/// Compares a run's files with its manifest: the content of those on which the next epochs depend, the size of all others.
pub(super) fn check_files(manifest: &Manifest) -> Result<()> {
    let latest = manifest.checkpoints().pop().map(|(epoch, _)| epoch);
    let read = [CONFIG, BEST, FINAL, metrics::FILE_NAME, findings::FILE_NAME];
    for name in manifest.names() {
        let is_read =
            read.contains(&name.as_str()) || checkpoint::epoch_of(&name).is_some_and(|e| Some(e) == latest);
        manifest.check(&name, if is_read { CheckDepth::Content } else { CheckDepth::Size })?;
    }
    Ok(())
}
