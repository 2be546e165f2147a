//! What a server offers: the games of its registry, networks from files, and runs to watch.
//!
//! Networks and runs are chosen by identifiers that are made here, never by paths from a request.

use super::options::{game_options, json_options};
use super::refusal::{Refusal, Served};
use super::run_folder::{ManifestStamp, ServedRun};
use super::seat::Seat;
use super::table::Table;
use crate::backend::AnyGame;
use crate::config::DEFAULT_GAME;
use crate::engine::Settings;
use crate::error::Result;
use crate::net::{IoShape, Network, UniformNet};
use crate::registry::Registry;
use crate::run::folder::is_run_or_unstarted;
use crate::run::memory::engine_mib;
use crate::source::{Source, built_in_layers};
use crate::weights::EvaluatedPositions;
use crate::words::count;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The identifier of the search without a network.
pub const UNIFORM: &str = "uniform";
/// The identifier of the network in the program.
const EMBEDDED: &str = "embedded";
/// The folder of runs if none is named.
const RUNS: &str = "runs";
/// Networks that are kept in memory.
const KEPT: usize = 16;
/// Maximum MiB of an engine's trees.
const ENGINE_MIB: usize = 256;

/// A network that can be chosen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NetworkInfo {
    /// Its identifier.
    pub id: String,
    /// Its game; None if it plays all.
    pub game: Option<String>,
    /// The game's options with which it was made.
    pub options: Option<serde_json::Value>,
    /// Its name for people.
    pub label: String,
    /// Its size for people.
    pub size: Option<String>,
    /// The run that made it.
    pub run: Option<String>,
    /// The epoch that made it, for a checkpoint.
    pub epoch: Option<u64>,
    /// Updates of its weights, if they are known without reading the file.
    pub updates: Option<u64>,
    /// Its file; None for the embedded network and for that without weights.
    #[serde(skip)]
    path: Option<PathBuf>,
    /// The state of the run whose network it is, which changes while the run goes on; None for other networks.
    #[serde(skip)]
    state: Option<ManifestStamp>,
}

/// A network in memory, for one game with its options.
struct Prepared {
    id: String,
    state: Option<ManifestStamp>,
    rules: (String, toml::Table),
    game: Arc<dyn AnyGame>,
    network: Box<dyn Network>,
    settings: Settings,
    label: String,
}

/// A network for a game, and how an engine searches with it.
pub struct EngineParts {
    /// The game by the rules that were asked for, observed as the network was trained to.
    pub game: Arc<dyn AnyGame>,
    /// The network.
    pub network: Box<dyn Network>,
    /// How the engine searches.
    pub settings: Settings,
    /// The network's name for people.
    pub label: String,
}

/// What a server offers.
pub struct Catalogue {
    registry: Registry,
    threads: usize,
    /// Those of runs as they were last seen.
    networks: Mutex<Vec<NetworkInfo>>,
    runs: Vec<ServedRun>,
    prepared: Mutex<Vec<Prepared>>,
}

impl Catalogue {
    /// The networks and runs of `paths`, each a run's folder or a network's file; without paths, the runs in the folder `runs`. The
    /// embedded network and the search without a network are always offered. Also returns a line for each run of that folder which
    /// cannot be read.
    ///
    /// # Errors
    /// Those of [`Source::open`] for a named path.
    pub fn open(paths: &[PathBuf], registry: &Registry, threads: usize) -> Result<(Self, Vec<String>)> {
        let mut catalogue = Self {
            registry: registry.clone(),
            threads,
            networks: Mutex::default(),
            runs: Vec::new(),
            prepared: Mutex::default(),
        };
        let mut notes = Vec::new();
        for path in paths {
            catalogue.add(path)?;
        }
        if paths.is_empty() {
            for path in folders_of_runs(Path::new(RUNS)) {
                if let Err(error) = catalogue.add(&path) {
                    notes.push(format!("left out: {error}"));
                }
            }
        }
        catalogue.add_embedded()?;
        let label = "search without a network".into();
        catalogue.list(NetworkInfo { id: UNIFORM.into(), label, ..NetworkInfo::default() });
        Ok((catalogue, notes))
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let id = format!("n{}", self.networks.lock().unwrap_or_else(PoisonError::into_inner).len());
        if !is_run_or_unstarted(path) {
            let source = Source::open(Some(path), &self.registry, &[])?;
            self.list(NetworkInfo { path: Some(path.to_path_buf()), ..info_of(&source, id) });
            return Ok(());
        }
        let run = ServedRun::open(format!("r{}", self.runs.len()), path, &self.registry)?;
        // A run that has no network yet gets one; what cannot be read at the start is refused.
        let info = match run.has_network() {
            true => self.network_of(&run, id)?,
            false => NetworkInfo { id, run: Some(run.id.clone()), ..NetworkInfo::default() },
        };
        self.runs.push(run);
        self.list(info);
        Ok(())
    }

    fn list(&self, network: NetworkInfo) {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner).push(network);
    }

    /// The network that a run has now.
    fn network_of(&self, run: &ServedRun, id: String) -> Result<NetworkInfo> {
        let state = run.state();
        let source = Source::open(Some(run.dir()), &self.registry, &[])?;
        let (path, run) = (Some(run.dir().to_path_buf()), Some(run.id.clone()));
        Ok(NetworkInfo { run, path, state, ..info_of(&source, id) })
    }

    /// The networks but for checkpoints, those of runs as they are now. A run that is being written is looked at again the next time.
    fn listed(&self) -> Vec<NetworkInfo> {
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        for network in networks.iter_mut() {
            let Some(run) = self.runs.iter().find(|run| network.run.as_ref() == Some(&run.id)) else {
                continue;
            };
            if network.state != run.state()
                && run.has_network()
                && let Ok(now) = self.network_of(run, network.id.clone())
            {
                *network = now;
            }
        }
        networks.iter().filter(|network| network.game.is_some() || network.id == UNIFORM).cloned().collect()
    }

    /// Adds the embedded network, if the registry has its game.
    fn add_embedded(&mut self) -> Result<()> {
        if self.registry.names().contains(&DEFAULT_GAME) {
            let source = Source::embedded(&self.registry)?;
            self.list(info_of(&source, EMBEDDED.into()));
        }
        Ok(())
    }

    /// The games.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The runs.
    pub fn runs(&self) -> &[ServedRun] {
        &self.runs
    }

    /// The run with this identifier.
    ///
    /// # Errors
    /// 404 with the known ones.
    pub fn run(&self, id: &str) -> Served<&ServedRun> {
        let known = || self.runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.runs.iter().find(|run| run.id == id);
        found.ok_or_else(|| Refusal::unknown(format!("run {id:?} is not served; known are: {}", known())))
    }

    /// All networks, the checkpoints of runs included.
    pub fn networks(&self) -> Vec<NetworkInfo> {
        let mut all = Vec::new();
        for network in &self.listed() {
            all.push(network.clone());
            let run = self.runs.iter().find(|run| network.run.as_ref() == Some(&run.id));
            let checkpoints = run.map(ServedRun::checkpoints).unwrap_or_default();
            all.extend(checkpoints.into_iter().rev().map(|(epoch, path)| NetworkInfo {
                id: format!("{}-{epoch}", network.id),
                label: format!("{}, epoch {epoch}", run.map_or("", |run| run.name.as_str())),
                epoch: Some(epoch),
                updates: None,
                path: Some(path),
                state: None,
                ..network.clone()
            }));
        }
        all
    }

    /// The network with this identifier.
    ///
    /// # Errors
    /// 404.
    pub fn network(&self, id: &str) -> Served<NetworkInfo> {
        let found = self.networks().into_iter().find(|network| network.id == id);
        found.ok_or_else(|| Refusal::unknown(format!("network {id:?} is not served; /api/info lists them")))
    }

    /// The state of the run whose network `id` is; None for networks that do not change.
    pub fn state_of(&self, id: &str) -> Option<ManifestStamp> {
        self.listed().into_iter().find(|network| network.id == id)?.state
    }

    /// The identifier of the network that plays `game` unless another is chosen: the first one that is made for it.
    pub fn default_network(&self, game: &dyn AnyGame) -> String {
        let rules = json_options(&game.rules());
        let has_rules = |network: &NetworkInfo| {
            let options = network.options.as_ref().and_then(serde_json::Value::as_object);
            options.is_some_and(|options| {
                let mut rules_of = options.clone();
                rules_of.retain(|key, _| !game.sight_options().contains(&key.as_str()));
                serde_json::Value::Object(rules_of) == rules
            })
        };
        let listed = self.listed();
        let of_game: Vec<&NetworkInfo> =
            listed.iter().filter(|network| network.game.as_deref() == Some(game.name())).collect();
        let exact = of_game.iter().find(|network| has_rules(network));
        let fitting = || of_game.iter().find(|network| self.parts(&network.id, game).is_ok());
        exact.or_else(fitting).map_or(UNIFORM.into(), |network| network.id.clone())
    }

    /// The identifier of the network that analyses at `table` if no other is asked for: that of the first engine that has one, else the
    /// game's default.
    pub fn network_at(&self, table: &Table) -> String {
        let mut engines = table.seats().iter().filter_map(Seat::engine);
        let seated = engines.find(|engine| engine.network != UNIFORM);
        seated.map_or_else(|| self.default_network(table.game().as_ref()), |engine| engine.network.clone())
    }

    /// The game of a table and its options.
    ///
    /// # Errors
    /// 400 for an unknown game or wrong options.
    pub fn game(
        &self,
        name: &str,
        options: &serde_json::Map<String, serde_json::Value>,
    ) -> Served<Arc<dyn AnyGame>> {
        let keys = self.registry.game(name, &toml::Table::new())?.keys();
        let table = game_options(options, &keys)?;
        Ok(self.registry.game(name, &table)?)
    }

    /// The network `id` for `game`, and how an engine searches with it.
    ///
    /// # Errors
    /// 404 for an unknown network, 400 for one that does not fit the game or cannot be read.
    pub fn parts(&self, id: &str, game: &dyn AnyGame) -> Served<EngineParts> {
        let key = (game.name().to_string(), game.rules());
        let info = self.network(id)?;
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ready = |ready: &Prepared| ready.id == id && ready.rules == key && ready.state == info.state;
        if let Some(at) = prepared.iter().position(is_ready) {
            // The last used network is the last to go.
            let ready = prepared.remove(at);
            prepared.push(ready);
        } else {
            if prepared.len() >= KEPT {
                prepared.remove(0);
            }
            prepared.retain(|ready| ready.id != id || ready.rules != key);
            let ready = self.prepare(&info, game, key)?;
            prepared.push(ready);
        }
        let ready = &prepared[prepared.len() - 1];
        let settings = Settings { memory_mib: engine_mib(ENGINE_MIB), ..ready.settings };
        let (game, network) = (ready.game.clone(), ready.network.fork());
        Ok(EngineParts { game, network, settings, label: ready.label.clone() })
    }

    fn prepare(
        &self,
        info: &NetworkInfo,
        game: &dyn AnyGame,
        rules: (String, toml::Table),
    ) -> Served<Prepared> {
        let (id, state, sizes) = (info.id.clone(), info.state, game.sizes());
        if info.game.is_none() {
            let network = Box::new(UniformNet(IoShape::of(&sizes)));
            let mut config = built_in_layers(&self.registry, game.name())?.on_cpu().resolve()?;
            EvaluatedPositions::Decisions.fit(&mut config);
            let settings = Settings { threads: self.threads, ..Settings::new(&config, &sizes) };
            let (label, game) = (info.label.clone(), self.registry.game(game.name(), &game.options())?);
            return Ok(Prepared { id, state, rules, game, network, settings, label });
        }
        if info.game.as_deref() != Some(game.name()) {
            let found = info.game.as_deref().unwrap_or_default();
            let what = format!("network {id} plays {found}, expected a network of {}", game.name());
            return Err(Refusal::bad(what));
        }
        let source = match &info.path {
            Some(path) => Source::open(Some(path), &self.registry, &[])?,
            None => Source::embedded(&self.registry)?,
        };
        let source = source.for_rules_of(game, &self.registry)?;
        let (network, settings) = (source.network()?, source.settings(None, self.threads));
        let label = if info.epoch.is_some() { info.label.clone() } else { source.label };
        Ok(Prepared { id, state, rules, game: source.game, network, settings, label })
    }
}

fn info_of(source: &Source, id: String) -> NetworkInfo {
    NetworkInfo {
        id,
        game: Some(source.game.name().to_string()),
        options: Some(json_options(&source.game.options())),
        label: source.label.clone(),
        size: Some(size_of(source)),
        updates: Some(source.file.header.updates),
        ..NetworkInfo::default()
    }
}

/// The runs in `folder`, sorted by name.
fn folders_of_runs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()));
    let mut found: Vec<PathBuf> =
        entries.into_iter().flatten().filter(|path| is_run_or_unstarted(path)).collect();
    found.sort();
    found
}

/// The size of a network: blocks, channels, weights.
fn size_of(source: &Source) -> String {
    let weights: usize = source.file.weights.values().map(|array| array.data.len()).sum();
    let (blocks, channels) = (source.spec.blocks, source.spec.channels);
    format!("{}, {}, {}k weights", count(blocks, "block"), count(channels, "channel"), weights.div_ceil(1000))
}
