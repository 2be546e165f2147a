//! A run's folder, a weights file, or nothing -> a game, a network and how to search with it.

use crate::backend::Placement;
use crate::batch::{AnyGame, any_game};
use crate::config::{Config, Layers, NetConfig, Precision};
use crate::error::{Error, Result};
use crate::net::fast::FastNet;
use crate::net::{NetSpec, Network};
use crate::run::network::{check_machine, place};
use crate::run::{BEST, CONFIG, checkpoint};
use crate::search::SearchParams;
use crate::weights::NetFile;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The network inside the program: Connect Four, as `vecaz run` makes it.
const EMBEDDED: &[u8] = include_bytes!("../../assets/connect_four.safetensors");

/// A network with its game and configuration.
pub struct Source {
    /// The rules.
    pub game: Arc<dyn AnyGame>,
    /// The weights and what is known of them.
    pub file: NetFile,
    /// The network's sizes in this game.
    pub spec: NetSpec,
    /// The run's configuration; the built-in one of the game where only weights are given.
    pub config: Config,
}

impl Source {
    /// Reads a run's folder (its best network, else the latest) or a weights file; the network inside the program where
    /// `path` is None. The assignments `set` are laid over the run's configuration, which is on the CPU here whatever the run
    /// was on: `run.device=cuda` among them puts trees and network on a GPU.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] or [`Error::Mismatch`] naming the file; as [`Layers::resolve`] for `set`.
    pub fn open(path: Option<&Path>, set: &[String]) -> Result<Self> {
        Self::read(path)?.set(set)
    }

    fn read(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            let file = NetFile::from_bytes(Path::new("the network inside the program"), EMBEDDED)?;
            return Self::from_file(file);
        };
        if !path.is_dir() {
            return Self::from_file(NetFile::load(path)?);
        }
        let config = viewed_config(path)?;
        let file = NetFile::load(&weights_of(path)?)?;
        let game = any_game(config.game_name(), &config.game_options())?;
        let spec = file.spec_for(game.as_ref())?;
        Ok(Self { game, file, spec, config })
    }

    /// The game and configuration that belong to a weights file.
    ///
    /// # Errors
    /// As [`any_game`].
    pub fn from_file(file: NetFile) -> Result<Self> {
        let header = &file.header;
        let game = any_game(&header.game, &header.options)?;
        let mut layers = Layers::default();
        if let Some(text) = super::built_in_config(&header.game) {
            layers = layers.text(text, "built-in")?;
        }
        let mut config = layers.resolve()?;
        config.game = header.options.clone();
        config.game.insert("name".into(), header.game.clone().into());
        let spec = file.spec_for(game.as_ref())?;
        Ok(Self { game, file, spec, config })
    }

    fn set(self, assignments: &[String]) -> Result<Self> {
        if assignments.is_empty() {
            return Ok(self);
        }
        let base = Layers::default().text(&self.config.to_toml(), "the run's configuration")?;
        let config =
            assignments.iter().try_fold(base, |layers, assignment| layers.set(assignment))?.resolve()?;
        let NetConfig { executor, precision, isa, tensor_cores, device, .. } = config.net;
        if config.net
            != (NetConfig { executor, precision, isa, tensor_cores, device, ..self.config.net.clone() })
        {
            let expected = "the sizes that the weights have; only net.executor, net.precision, net.isa, \
                            net.tensor_cores and net.device may change";
            return Err(Error::config("net", "other sizes", expected));
        }
        check_machine(&config)?;
        let game = any_game(config.game_name(), &config.game_options())?;
        Self { config, ..self }.for_game(&game)
    }

    /// The same network in `game`.
    ///
    /// # Errors
    /// As [`NetFile::spec_for`].
    pub fn for_game(self, game: &Arc<dyn AnyGame>) -> Result<Self> {
        let spec = self.file.spec_for(game.as_ref())?;
        Ok(Self { game: game.clone(), spec, ..self })
    }

    /// The network where the configuration has it.
    ///
    /// # Errors
    /// As [`place`].
    pub fn network(&self) -> Result<Box<dyn Network>> {
        Ok(place(&self.config, self.game.as_ref(), &self.spec, &self.file.weights)?.0)
    }

    /// The network in f32, whatever self-play uses: what the self-check vectors were made with.
    ///
    /// # Errors
    /// As [`FastNet::new`].
    pub fn exact_network(&self) -> Result<FastNet> {
        FastNet::new(&self.spec, &self.file.weights, Precision::F32)
    }

    /// How to search: the run's configuration, by `eval.algorithm`, with `eval.simulations` or the number that is given, one leaf
    /// a pass.
    pub fn params(&self, simulations: Option<u32>) -> SearchParams {
        let mut params = SearchParams::new(&self.config.search, &self.game.sizes());
        params.rule = self.config.eval.algorithm;
        params.simulations = simulations.unwrap_or(self.config.eval.simulations);
        params.leaves = 1;
        params
    }

    /// Where searches of this network run: as the run's self-play, on its first device.
    pub fn placement(&self) -> Placement {
        Placement::of_run(&self.config).on_first_device()
    }

    /// Determinisations of a position; 1 where nothing is hidden.
    pub fn determinisations(&self) -> usize {
        if self.game.sizes().hidden_information { self.config.eval_determinisations() } else { 1 }
    }
}

/// The configuration that the run in `dir` was started with.
///
/// # Errors
/// [`Error::Format`] where `dir` holds no run; as [`Layers::resolve`].
pub fn saved_config(dir: &Path) -> Result<Config> {
    saved_layers(dir)?.resolve()
}

/// The same for who looks at the run: on the CPU, whatever the run was on.
///
/// # Errors
/// As [`saved_config`].
pub fn viewed_config(dir: &Path) -> Result<Config> {
    saved_layers(dir)?.on_cpu().resolve()
}

fn saved_layers(dir: &Path) -> Result<Layers> {
    let path = dir.join(CONFIG);
    if !path.is_file() {
        return Err(Error::format(dir, format!("no run is here (it has no {CONFIG})")));
    }
    Layers::default().file(&path)
}

/// The best weights of the run in `dir`, else those of its latest checkpoint.
///
/// # Errors
/// [`Error::Format`] where there is none yet.
pub fn weights_of(dir: &Path) -> Result<PathBuf> {
    let best = dir.join(BEST);
    if best.is_file() {
        return Ok(best);
    }
    match checkpoint::list(dir)?.pop() {
        Some((_, folder)) => Ok(folder.join(checkpoint::WEIGHTS)),
        None => Err(Error::format(dir, "the run has no checkpoint yet")),
    }
}

/// The number of threads that was asked for, 0 for all cores; rayon's pool is made for them.
pub fn start_threads(asked: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if asked == 0 { cores } else { asked };
    // An error means that a pool is there already, which then serves.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    threads
}
