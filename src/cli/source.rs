//! A run's folder, a weights file, or nothing -> a game, a network and how to search with it.

use crate::batch::{AnyGame, any_game};
use crate::config::{Config, Layers, Precision};
use crate::error::{Error, Result};
use crate::net::fast::FastNet;
use crate::run::{BEST, CONFIG, checkpoint};
use crate::search::SearchParams;
use crate::weights::{NetFile, pack};
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
    /// The run's configuration; the built-in one of the game where only weights are given.
    pub config: Config,
}

impl Source {
    /// Reads a run's folder (its best network, else the latest) or a weights file; the network inside the program where
    /// `path` is None.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] or [`Error::Mismatch`] naming the file.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            let file = NetFile::from_bytes(Path::new("the network inside the program"), EMBEDDED)?;
            return Self::from_file(file);
        };
        if !path.is_dir() {
            return Self::from_file(NetFile::load(path)?);
        }
        let config = saved_config(path)?;
        let file = NetFile::load(&weights_of(path)?)?;
        let game = any_game(config.game_name(), &config.game_options())?;
        file.expect_game(game.as_ref())?;
        Ok(Self { game, file, config })
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
        Ok(Self { game, file, config })
    }

    /// The network, packed.
    ///
    /// # Errors
    /// As [`FastNet::new`].
    pub fn network(&self) -> Result<FastNet> {
        pack(self.game.as_ref(), &self.file.header.net, &self.file.weights, self.config.net.precision)
    }

    /// The network in f32, whatever self-play uses: what the self-check vectors were made with.
    ///
    /// # Errors
    /// As [`FastNet::new`].
    pub fn exact_network(&self) -> Result<FastNet> {
        FastNet::new(&self.file.header.net, &self.file.weights, Precision::F32)
    }

    /// How to search: the run's configuration, by `eval.algorithm`, with another number of simulations where one is given,
    /// one leaf a pass.
    pub fn params(&self, simulations: Option<u32>) -> SearchParams {
        let mut params = SearchParams::new(&self.config.search, &self.game.sizes());
        params.rule = self.config.eval.algorithm;
        params.simulations = simulations.unwrap_or(params.simulations);
        params.leaves = 1;
        params
    }

    /// Determinisations of a position; 1 where nothing is hidden.
    pub fn determinisations(&self) -> usize {
        if self.game.sizes().hidden_information { self.config.search.determinisations as usize } else { 1 }
    }
}

/// The configuration that the run in `dir` was started with.
///
/// # Errors
/// [`Error::Format`] where `dir` holds no run; as [`Layers::resolve`].
pub fn saved_config(dir: &Path) -> Result<Config> {
    let path = dir.join(CONFIG);
    if !path.is_file() {
        return Err(Error::format(dir, format!("no run is here (it has no {CONFIG})")));
    }
    Layers::default().file(&path)?.resolve()
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
