//! Loading of a network with its game and configuration, from a run's folder, a weights file, or the program itself; an engine of one.

use crate::backend::AnyGame;
use crate::batch::ErasedRules;
use crate::config::keys::Section;
use crate::config::{Algorithm, Config, Layers, NetConfig};
use crate::engine::{Engine, Settings};
use crate::error::{Error, Result};
use crate::net::{NetSpec, Network};
use crate::registry::Registry;
use crate::report::metrics::{self, EpochRecord};
use crate::run::checkpoint;
use crate::run::folder::{expect_run, is_run, is_run_or_unstarted, is_unstarted};
use crate::run::manifest::Manifest;
use crate::run::network::{check_machine, f32_network, make_network};
use crate::run::{BEST, CONFIG, FINAL, MANIFEST, OPPONENTS};
use crate::weights::{EvaluatedPositions, NetFile};
use crate::words::count;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The embedded network of the default game, which sees the stones alone.
const EMBEDDED: &[u8] = include_bytes!("../assets/connect_four.safetensors");

/// A network with its game and configuration.
pub struct Source {
    /// The rules.
    pub game: Arc<dyn AnyGame>,
    /// The weights and their metadata.
    pub file: NetFile,
    /// The network's sizes in this game.
    pub spec: NetSpec,
    /// The run's configuration; for a weights file, the game's built-in configuration.
    pub config: Config,
    /// The network in messages: its file, epoch and updates.
    pub label: String,
    /// L, where it was set for this command.
    leaves: Option<u32>,
}

impl Source {
    /// Reads a run's folder (its best network, otherwise the latest) or a weights file, of a game of `registry`; the embedded network if
    /// `path` is None, where it plays the default game. The assignments `set` override the run's configuration. Its devices are replaced by the
    /// CPU; `run.device=cuda` in `set` puts trees and network on a GPU.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] or [`Error::Mismatch`] with the file's name; [`Error::Unsupported`] without a path where another game is
    /// the default; those of [`Layers::resolve`] for `set`.
    pub fn open(path: Option<&Path>, registry: &Registry, set: &[String]) -> Result<Self> {
        Self::read(path, registry)?.set(registry, set)
    }

    fn read(path: Option<&Path>, registry: &Registry) -> Result<Self> {
        let Some(path) = path else {
            let embedded = Self::embedded(registry)?;
            let (own, name) = (registry.default_name(), embedded.game.name());
            if own != name {
                let why = format!(
                    "the embedded network plays {name}; `run --game {own} --minutes 10` trains one, and its folder is what to name"
                );
                return Err(Error::unsupported(
                    format!("{own} without the path of a run or of a network file"),
                    why,
                ));
            }
            return Ok(embedded);
        };
        let found = network_file(path)?;
        if !is_run(path) {
            return Self::from_file(found, registry);
        }
        let NetworkFile { file, label, .. } = found;
        let config = viewed_config(path)?;
        let game = registry.game_of(&config)?;
        let spec = file.spec_for(game.as_ref())?;
        Ok(Self { game, file, spec, config, label, leaves: None })
    }

    /// The embedded network.
    ///
    /// # Errors
    /// [`Error::UnknownGame`] if `registry` does not have its game.
    pub fn embedded(registry: &Registry) -> Result<Self> {
        let name = Path::new("the embedded network");
        Self::from_file(NetworkFile::new(name, NetFile::from_bytes(name, EMBEDDED)?, None), registry)
    }

    /// A weights file with its game and the game's built-in configuration.
    ///
    /// # Errors
    /// Those of [`Registry::game`].
    pub fn from_file(found: NetworkFile, registry: &Registry) -> Result<Self> {
        let NetworkFile { file, label, .. } = found;
        let header = &file.header;
        let game = registry.game(&header.game, &header.options)?;
        // The sizes are the network's, not those of the game's built-in configuration.
        let mut sizes = header.net.keys().into_iter();
        let built_in = built_in_layers(registry, &header.game)?;
        let of_network =
            |layers: Layers, (key, value): (&str, String)| layers.assign(&format!("net.{key}"), &value);
        let mut config = sizes.try_fold(built_in, of_network)?.resolve()?;
        config.game = header.options.clone();
        config.game.insert("name".into(), header.game.clone().into());
        header.evaluates.fit(&mut config);
        let spec = file.spec_for(game.as_ref())?;
        Ok(Self { game, file, spec, config, label, leaves: None })
    }

    /// The game and the configuration of this one with another network of the same run.
    ///
    /// # Errors
    /// Those of [`NetFile::spec_for`].
    pub fn with_network(&self, found: NetworkFile) -> Result<Self> {
        let NetworkFile { file, label, .. } = found;
        let spec = file.spec_for(self.game.as_ref())?;
        Ok(Self {
            game: self.game.clone(),
            file,
            spec,
            config: self.config.clone(),
            label,
            leaves: self.leaves,
        })
    }

    fn set(self, registry: &Registry, assignments: &[String]) -> Result<Self> {
        if assignments.is_empty() {
            return Ok(self);
        }
        let base = Layers::default().config(&self.config)?;
        let over = |base| assignments.iter().try_fold(base, |layers: Layers, text| layers.set(text));
        let layers = over(base)?.with_format_of_device(&over(Layers::default())?);
        let config = layers.clone().resolve()?;
        if config.game_name() != self.game.name() {
            let (got, own) = (config.game_name().to_string(), self.game.name());
            let expected = format!(
                "{own}, which the network plays; `vecaz run --game {got} --minutes 10` trains one of another game"
            );
            return Err(layers.locate(Error::config("game.name", got, expected)));
        }
        let is_of_decisions = self.file.header.evaluates == EvaluatedPositions::Decisions;
        if is_of_decisions && config.search.algorithm == Algorithm::Afterstate {
            let expected = "puct or gumbel for a network of decisions";
            return Err(layers.locate(Error::config("search.algorithm", Algorithm::Afterstate, expected)));
        }
        if let Some((key, got, made)) = other_size(&config.net, &self.config.net) {
            let expected = format!(
                "{made}, the value of the weights; net.executor, net.precision, net.isa, net.tensor_cores and net.device can be set"
            );
            return Err(layers.locate(Error::config(format!("net.{key}"), got, expected)));
        }
        check_machine(&config)?;
        let game = registry.game_of(&config).map_err(|e| layers.locate(e))?;
        let leaves = assigned_leaves(assignments, &config);
        Self { config, leaves, ..self }.for_game(&game)
    }

    /// The same network in `game`.
    ///
    /// # Errors
    /// Those of [`NetFile::spec_for`]; [`Error::Config`] for a search of positions that are not valued.
    pub fn for_game(self, game: &Arc<dyn AnyGame>) -> Result<Self> {
        let spec = self.file.spec_for(game.as_ref())?;
        if game.valuation().is_some() {
            check_valued(&self.config)?;
        }
        Ok(Self { game: game.clone(), spec, ..self })
    }

    /// The same network in games by the rules of `game`, of which it observes what it was trained to.
    ///
    /// # Errors
    /// Those of [`Source::for_game`].
    pub fn for_rules_of(self, game: &dyn ErasedRules, registry: &Registry) -> Result<Self> {
        let (mut options, own) = (game.options(), self.game.options());
        if game.name() == self.game.name() {
            let seen = own.into_iter().filter(|(key, _)| game.sight_options().contains(&key.as_str()));
            options.extend(seen);
        }
        self.for_game(&registry.game(game.name(), &options)?)
    }

    /// The network on its configured device.
    ///
    /// # Errors
    /// Those of [`make_network`].
    pub fn network(&self) -> Result<Box<dyn Network>> {
        let (network, path) = make_network(&self.config, self.game.as_ref(), &self.spec, &self.file.weights)?;
        let (spec, updates) = (&self.spec, self.file.header.updates);
        tracing::debug!(
            "{} network {}x{} after {updates} updates: {path}",
            self.game.name(),
            spec.blocks,
            spec.channels
        );
        Ok(network)
    }

    /// The network in f32, independent of the configuration: the format of the self-check vectors.
    ///
    /// # Errors
    /// Those of [`f32_network`].
    pub fn f32_network(&self) -> Result<Box<dyn Network>> {
        f32_network(&self.spec, &self.file.weights)
    }

    /// How an engine searches with this network: by the run's configuration, `eval.algorithm`, and `simulations` or `eval.simulations`.
    /// `search.leaves` counts only where it was set for this command: that of the run is for self-play.
    pub fn settings(&self, simulations: Option<u32>, threads: usize) -> Settings {
        let mut settings = Settings::new(&self.config, &self.game.sizes());
        settings.params.simulations = simulations.unwrap_or(settings.params.simulations);
        Settings { threads, leaves: self.leaves.unwrap_or(0), ..settings }
    }

    /// True where play searches a tree by simulations; false where it compares whole turns.
    pub fn searches_a_tree(&self) -> bool {
        self.config.eval_algorithm() != Algorithm::Afterstate
    }

    /// Refuses the value of `option`, which limits a search, where play compares whole turns.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn expect_tree(&self, option: &'static str, value: Option<impl Display>) -> Result<()> {
        let expected = "none: this network compares whole turns and searches no tree; --set eval.turns=2 looks a turn further";
        match value {
            Some(value) if !self.searches_a_tree() => Err(Error::config(option, value, expected)),
            _ => Ok(()),
        }
    }
}

impl Engine {
    /// An engine with the network in `path`, of a game in `registry`. The path is that of a run's folder (its best network, otherwise the latest), a checkpoint or a weights file: by
    /// the run's search and game, on all cores.
    ///
    /// # Errors
    /// Those of [`Source::open`], [`Source::network`] and [`Engine::new`].
    pub fn open(path: &Path, registry: &Registry) -> Result<Self> {
        let source = Source::open(Some(path), registry, &[])?;
        let settings = source.settings(None, 0);
        Self::new(source.game.clone(), source.network()?.as_ref(), settings)
    }
}

/// L of `config`, if one of the `assignments` of a command has set it there: that of a run is for self-play.
pub fn assigned_leaves(assignments: &[String], config: &Config) -> Option<u32> {
    let is_set = |text: &String| text.split('=').next().is_some_and(|key| key.trim() == "search.leaves");
    assignments.iter().any(is_set).then_some(config.search.leaves)
}

/// Refuses tree searches and lookahead for a game whose values follow from predictions: its values are defined after whole turns alone, and
/// before the next roll somebody may have another decision.
fn check_valued(config: &Config) -> Result<()> {
    let (algorithm, turns) = (config.eval_algorithm(), config.eval.turns);
    if algorithm != Algorithm::Afterstate {
        return Err(Error::config("eval.algorithm", algorithm, "afterstate with these settings of the game"));
    }
    match turns {
        1 => Ok(()),
        _ => Err(Error::config("eval.turns", turns, "1 with these settings of the game")),
    }
}

/// The first key of the network's sizes that differs, with its values in `net` and in `made`, the configuration of the weights.
fn other_size(net: &NetConfig, made: &NetConfig) -> Option<(&'static str, String, String)> {
    let NetConfig { executor, precision, isa, tensor_cores, device, .. } = *net;
    let made = NetConfig { executor, precision, isa, tensor_cores, device, ..made.clone() };
    let keys = net.keys().into_iter().zip(made.keys());
    keys.map(|(key, made)| (key.name, key.value, made.value)).find(|(_, got, made)| got != made)
}

/// A network read from a file.
pub struct NetworkFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The network.
    pub file: NetFile,
    /// The network in messages: its file, epoch and updates.
    pub label: String,
}

impl NetworkFile {
    /// The network `file` that was read from `path`, made in `epoch` of its run if that is known.
    pub fn new(path: &Path, file: NetFile, epoch: Option<u64>) -> Self {
        let epoch = epoch.map(|epoch| format!("epoch {epoch}, ")).unwrap_or_default();
        let label = format!("{} ({epoch}{})", path.display(), count(file.header.updates, "update"));
        Self { path: path.to_path_buf(), file, label }
    }
}

/// The network in `path`: a run's best, otherwise its latest; that of a checkpoint's folder; or that of a weights file. A file of a run
/// is compared with the run's manifest.
///
/// # Errors
/// Those of [`Manifest::read`] and [`NetFile::load`]; [`Error::Format`] if the run has no network yet.
pub fn network_file(path: &Path) -> Result<NetworkFile> {
    let of_run = |shown: &Path, dir: &Path, name: &str, manifest: &Manifest| {
        let file = NetFile::from_bytes(&dir.join(name), &manifest.read(name)?)?;
        let epoch = epoch_of(manifest, name, &file);
        Ok(NetworkFile::new(shown, file, epoch))
    };
    if is_run(path) {
        return Manifest::with_current(path, |manifest| {
            let name = manifest.network()?;
            of_run(&path.join(&name), path, &name, manifest)
        });
    }
    let of_checkpoint = path.join(checkpoint::WEIGHTS);
    let path = if of_checkpoint.is_file() { &of_checkpoint } else { path };
    if is_run_or_unstarted(path) {
        return Err(Error::format(path, "the run has no network yet"));
    }
    if path.is_dir() {
        let missing = if path.join(CONFIG).is_file() { MANIFEST } else { CONFIG };
        let what = format!(
            "neither a run (it has no {missing}) nor a checkpoint (it has no {})",
            checkpoint::WEIGHTS
        );
        return Err(Error::format(path, what));
    }
    match Manifest::listing(path)? {
        Some((dir, name)) => Manifest::with_current(&dir, |manifest| of_run(path, &dir, &name, manifest)),
        None => Ok(NetworkFile::new(path, NetFile::load(path)?, None)),
    }
}

/// The built-in configuration of the game called `name`, or no layer where it has none.
///
/// # Errors
/// [`Error::ConfigText`].
pub fn built_in_layers(registry: &Registry, name: &str) -> Result<Layers> {
    match registry.config(name) {
        Some(text) => Layers::default().text(text, "built-in"),
        None => Ok(Layers::default()),
    }
}

/// The networks that a run has in its folder: those that it keeps, those of its checkpoints, the best and the last one.
pub struct RunNetworks {
    dir: PathBuf,
    /// The epoch of the best network, which commands take, if it is known.
    pub best: Option<u64>,
    /// The file of each epoch's network, in the folder of the run.
    names: BTreeMap<u64, String>,
}

impl RunNetworks {
    /// The networks of the run in `dir`.
    ///
    /// # Errors
    /// Those of [`Manifest::of_run`]; [`Error::Format`] for a damaged network.
    pub fn of(dir: &Path) -> Result<Self> {
        Manifest::with_current(dir, |manifest| {
            let mut found = Self { dir: dir.to_path_buf(), best: None, names: BTreeMap::new() };
            let best = manifest.network()?;
            for name in manifest.names() {
                let epoch = match [BEST, FINAL].contains(&name.as_str()) {
                    true => {
                        let file = NetFile::from_bytes(&dir.join(&name), &manifest.read(&name)?)?;
                        epoch_of(manifest, &name, &file)
                    }
                    false => kept_epoch(&name),
                };
                found.best = if name == best { epoch } else { found.best };
                found.names.extend(epoch.map(|epoch| (epoch, name)));
            }
            // A run in progress removes its old checkpoints, and no other network.
            for (epoch, _) in manifest.checkpoints() {
                found.names.entry(epoch).or_insert_with(|| checkpoint::weights_name(epoch));
            }
            found.best = found.best.or_else(|| checkpoint::epoch_of(&best));
            Ok(found)
        })
    }

    /// The epochs that have a network, in order.
    pub fn epochs(&self) -> Vec<u64> {
        self.names.keys().copied().collect()
    }

    /// Reads the network of `epoch`, one of [`RunNetworks::epochs`].
    ///
    /// # Errors
    /// Those of [`network_file`]; [`Error::Format`] for another epoch.
    pub fn open(&self, epoch: u64) -> Result<NetworkFile> {
        let none = || Error::format(&self.dir, format!("the run has no network of epoch {epoch}"));
        network_file(&self.dir.join(self.names.get(&epoch).ok_or_else(none)?))
    }
}

/// The epoch of a network in the folder of opponents, by the path of its file.
fn kept_epoch(name: &str) -> Option<u64> {
    let file = name.strip_prefix(OPPONENTS)?.strip_prefix("/epoch-")?;
    file.strip_suffix(".safetensors")?.parse().ok()
}

/// The epoch of the network in the file `name` of a run: from the folder of a checkpoint, or for the best and the last from the metrics, by
/// its number of updates.
fn epoch_of(manifest: &Manifest, name: &str, file: &NetFile) -> Option<u64> {
    if ![BEST, FINAL].contains(&name) {
        return checkpoint::epoch_of(name);
    }
    let text = String::from_utf8(manifest.read(metrics::FILE_NAME).ok()?).ok()?;
    let records = text.lines().filter_map(|line| serde_json::from_str::<EpochRecord>(line).ok());
    let is_of = |record: &EpochRecord| {
        let is_kept = if name == FINAL { record.cut } else { record.strength.is_some() && !record.cut };
        is_kept && record.updates == file.header.updates
    };
    let evaluated = records.filter(is_of);
    evaluated.map(|record| record.epoch).next_back()
}

/// The configuration of the run in `dir` for use on the CPU, without its GPU settings.
///
/// # Errors
/// Those of [`saved_layers`] and [`Layers::resolve`].
pub fn viewed_config(dir: &Path) -> Result<Config> {
    saved_layers(dir)?.on_cpu().resolve()
}

/// [`viewed_config`] without a comparison with the manifest.
///
/// # Errors
/// [`Error::Format`] if `dir` has no run; those of [`Layers::resolve`].
pub fn unchecked_config(dir: &Path) -> Result<Config> {
    expect_run(dir)?;
    Layers::default().file(&dir.join(CONFIG))?.on_cpu().resolve()
}

/// The configuration of the run in `dir` as a layer.
///
/// # Errors
/// [`Error::Format`] if `dir` has no run or its configuration differs from the manifest; [`Error::ConfigText`].
pub fn saved_layers(dir: &Path) -> Result<Layers> {
    let path = dir.join(CONFIG);
    expect_run(dir)?;
    if is_unstarted(dir)? {
        return Layers::default().file(&path);
    }
    let bytes = Manifest::with_current(dir, |manifest| manifest.read(CONFIG))?;
    let text = String::from_utf8(bytes).map_err(|_| Error::format(&path, "not UTF-8"))?;
    Layers::default().text(&text, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DEFAULT_GAME;

    #[test]
    fn leaves_of_a_pass_are_those_of_this_command_alone() {
        let leaves = |assignments: &[String]| {
            let source = Source::open(None, &Registry::built_in(), assignments).expect("embedded");
            source.settings(None, 2).leaves
        };
        assert_eq!(leaves(&[]), 0, "the engine chooses");
        assert_eq!(leaves(&["search.leaves=4".into()]), 4);
    }

    #[test]
    fn the_embedded_network_plays_the_default_game() {
        assert_eq!(
            Source::open(None, &Registry::built_in(), &[]).expect("embedded").game.name(),
            DEFAULT_GAME
        );
    }
}
