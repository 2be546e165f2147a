//! Network files: safetensors with weights, a description for other programs, and self-check vectors.
//!
//! Input: a game, a network's sizes and weights. Output: a file that vecaz and PyTorch load, and back. Independent of training and
//! search.
//!
//! A file holds the tensors of [`crate::model::Model::params`] under their names, three tensors of the self-check
//! (`selfcheck.obs [8, F]`, `selfcheck.logits [8, A]`, `selfcheck.values [8, P]`), and one metadata entry `vecaz`: the
//! [`NetworkHeader`] as JSON.

mod arrays;
mod describe;

pub use arrays::{load_arrays, parse_arrays, save_arrays, serialize_arrays};

use crate::batch::ErasedRules;
use crate::config::{NetConfig, Precision};
use crate::error::{Error, Result};
use crate::files::write_atomic;
use crate::game::MAX_PLAYERS;
use crate::model::{Array, NetSpec, Weights};
use crate::net::Network;
use crate::net::candle::checking_network;
use crate::net::cpu::{self, CpuNet};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of the file's layout.
const VERSION: u32 = 1;
/// Number of observations of the self-check.
const CHECKS: usize = 8;
/// Maximum difference, absolute or relative, between outputs and the self-check.
pub const TOLERANCE: f32 = 1e-3;

/// The game, sizes and origin of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkHeader {
    /// Version of the file's layout.
    pub version: u32,
    /// The game's name.
    pub game: String,
    /// The game's settings, resolved.
    pub options: toml::Table,
    /// The network's sizes; `net.obs` is the observation's shape.
    pub net: NetSpec,
    /// The meaning of an observation and of the outputs, in words.
    pub meaning: String,
    /// The name of every action of the policy head that has the same name at all its occurrences in random games. `[A]`
    pub actions: Vec<Option<String>>,
    /// Number of optimiser updates of the weights.
    pub updates: u64,
    /// The network as a list of layers ([`crate::model::Model`] as JSON), for programs that do not
    /// know `net`; only in exported files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<serde_json::Value>,
}

/// Observations and the expected outputs of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfCheck {
    /// `[8, F]`
    pub obs: Vec<f32>,
    /// `[8, A]`
    pub logits: Vec<f32>,
    /// In seats relative to the observer. `[8, P]`
    pub values: Vec<f32>,
}

/// A network's file.
#[derive(Clone, Debug, PartialEq)]
pub struct NetFile {
    /// The game, sizes and origin.
    pub header: NetworkHeader,
    /// Its weights.
    pub weights: Weights,
    /// The self-check vectors.
    pub check: SelfCheck,
}

/// All of a network's files but the weights and what follows from them: made once, for the files of all epochs.
#[derive(Clone, Debug)]
pub struct FileTemplate {
    /// The header of a network without updates.
    header: NetworkHeader,
    /// The observations of the self-check. `[8, F]`
    obs: Vec<f32>,
}

impl FileTemplate {
    /// The template of networks of the sizes `net` on `game`. Names of actions and the self-check's observations come from random games.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if `net` does not fit the game.
    pub fn new(game: &dyn ErasedRules, net: &NetSpec) -> Result<Self> {
        expect_sizes(game, net)?;
        let header = NetworkHeader {
            version: VERSION,
            game: game.name().to_string(),
            options: game.options(),
            net: net.clone(),
            meaning: describe::meaning(net),
            actions: describe::action_names(game),
            updates: 0,
            model: None,
        };
        Ok(Self { header, obs: describe::observations(game, CHECKS) })
    }

    /// A file for `weights` after `updates` updates.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the weights do not fit the network, [`Error::NotFinite`] if an output of the network is not finite.
    pub fn file(&self, weights: Weights, updates: u64) -> Result<NetFile> {
        let check = evaluate(&self.header.net, &weights, self.obs.clone())?;
        Ok(NetFile { header: NetworkHeader { updates, ..self.header.clone() }, weights, check })
    }
}

impl NetFile {
    /// A file for `weights` after `updates` updates on `game`, for a caller that makes one.
    ///
    /// # Errors
    /// Those of [`FileTemplate::new`] and [`FileTemplate::file`].
    pub fn new(game: &dyn ErasedRules, net: &NetSpec, weights: Weights, updates: u64) -> Result<Self> {
        FileTemplate::new(game, net)?.file(weights, updates)
    }

    /// Writes the file, atomically.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: &Path) -> Result<()> {
        write_atomic(path, &self.to_bytes(path)?)
    }

    /// The bytes of the file; errors name `path`.
    ///
    /// # Errors
    /// [`Error::Format`] if the header cannot be written as JSON.
    pub fn to_bytes(&self, path: &Path) -> Result<Vec<u8>> {
        let mut arrays = self.weights.clone();
        let SelfCheck { obs, logits, values } = &self.check;
        for (name, data) in [(OBS, obs), (LOGITS, logits), (VALUES, values)] {
            let shape = vec![CHECKS, data.len() / CHECKS];
            arrays.insert(name.to_string(), Array { shape, data: data.clone() });
        }
        let header = serde_json::to_string(&self.header)
            .map_err(|e| Error::format(path, format!("cannot be written: {e}")))?;
        serialize_arrays(path, &arrays, &header)
    }

    /// Reads a file and checks that it has exactly the expected tensors, with their shapes and finite values.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Format`].
    pub fn load(path: &Path) -> Result<Self> {
        let (arrays, header) = load_arrays(path)?;
        Self::from_arrays(path, arrays, &header)
    }

    /// [`NetFile::load`] for bytes in memory (an embedded network); errors name `path`.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self> {
        let (arrays, header) = parse_arrays(path, bytes)?;
        Self::from_arrays(path, arrays, &header)
    }

    fn from_arrays(path: &Path, mut arrays: Weights, header: &str) -> Result<Self> {
        let header: NetworkHeader = serde_json::from_str(header)
            .map_err(|e| Error::format(path, format!("its header is not that of a network: {e}")))?;
        if header.version != VERSION {
            let what = format!("layout version {}, expected {VERSION}", header.version);
            return Err(Error::format(path, what));
        }
        check_sizes(path, &header.net)?;
        let widths = [header.net.obs.len(), header.net.num_actions, header.net.num_players];
        let mut take = |name: &str, width: usize| match arrays.remove(name) {
            Some(Array { shape, data }) if shape == [CHECKS, width] => Ok(data),
            Some(Array { shape, .. }) => {
                let what = format!("tensor {name} has shape {shape:?}, expected [{CHECKS}, {width}]");
                Err(Error::format(path, what))
            }
            None => Err(Error::format(path, format!("tensor {name} is missing"))),
        };
        let check = SelfCheck {
            obs: take(OBS, widths[0])?,
            logits: take(LOGITS, widths[1])?,
            values: take(VALUES, widths[2])?,
        };
        header
            .net
            .model()
            .and_then(|model| model.check(&arrays))
            .map_err(|e| Error::format(path, e.to_string()))?;
        Ok(Self { header, weights: arrays, check })
    }

    /// The network's sizes in `game`: the stored ones, or for an edge network those of another number of vertices.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the network is for another game or other settings.
    pub fn spec_for(&self, game: &dyn ErasedRules) -> Result<NetSpec> {
        let describe = |name: &str, options: &toml::Table| {
            let options: Vec<String> =
                options.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            format!("{name} ({})", options.join(", "))
        };
        let net = &self.header.net;
        let (trained, expected) = (&self.header.options, game.options());
        if self.header.game == game.name() && *trained == expected {
            expect_sizes(game, net)?;
            return Ok(net.clone());
        }
        let size = game.size_option().filter(|size| {
            let others = |options: &toml::Table| {
                let mut options = options.clone();
                options.remove(*size);
                options
            };
            self.header.game == game.name() && others(trained) == others(&expected)
        });
        match net.for_sizes(&game.sizes()).filter(|_| size.is_some()) {
            Some(spec) => Ok(spec),
            None => Err(Error::Mismatch {
                what: match size {
                    Some(size) => {
                        format!("the network's game (only an edge network serves another game.{size})")
                    }
                    None => "the network's game".into(),
                },
                found: describe(&self.header.game, &self.header.options),
                expected: describe(game.name(), &expected),
            }),
        }
    }

    /// Runs the self-check on `network`. Returns the largest difference from the stored outputs, relative where they exceed 1.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the difference exceeds [`TOLERANCE`] or the network has other sizes; those of [`Network::forward`].
    pub fn verify(&self, network: &mut dyn Network) -> Result<f32> {
        let SelfCheck { obs, logits, values } = &self.check;
        let (shape, net) = (network.shape(), &self.header.net);
        let found = (shape.obs_len, shape.num_actions, shape.num_players);
        let expected = (net.obs.len(), net.num_actions, net.num_players);
        expect_equal("sizes (F, A, P) of the network under check", found, expected)?;
        let (mut l, mut v) = (vec![0.0; logits.len()], vec![0.0; values.len()]);
        network.forward(obs, &mut l, &mut v)?;
        let pairs = l.iter().zip(logits).chain(v.iter().zip(values));
        let worst = pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f32::max);
        if worst > TOLERANCE {
            return Err(Error::Mismatch {
                what: "self-check of the network".into(),
                found: format!("outputs that differ by {worst}"),
                expected: format!("at most {TOLERANCE}"),
            });
        }
        Ok(worst)
    }
}

/// Checks a network with its self-check vectors and writes it to `out` with a description of its layers, for other programs.
///
/// # Errors
/// Those of [`NetFile::verify`] and [`NetFile::save`].
pub fn export(mut file: NetFile, out: &Path) -> Result<NetFile> {
    let model = file.header.net.model()?;
    let described = serde_json::to_value(&model);
    file.header.model = Some(described.map_err(|e| Error::format(out, format!("cannot be written: {e}")))?);
    file.verify(&mut checking_network(&file.header.net, &file.weights)?)?;
    file.save(out)?;
    Ok(file)
}

/// Packs a network for self-play in the number format and with the instruction set of `config`. 8-bit scales are calibrated on positions
/// of random games.
///
/// # Errors
/// Those of [`CpuNet::new`] and [`CpuNet::int8_with_isa`]; [`Error::Unsupported`] for a format that only GPUs support; [`Error::Config`] for an
/// instruction set that the machine or the format does not support, and for a format without kernels for the network's layers.
pub fn pack(game: &dyn ErasedRules, net: &NetSpec, weights: &Weights, config: &NetConfig) -> Result<CpuNet> {
    let precision = config.precision;
    let isa = || cpu::choose_isa(config.isa, precision);
    match precision {
        Precision::Int8 => {
            CpuNet::int8_with_isa(net, weights, &describe::observations(game, CALIBRATION), isa()?)
        }
        Precision::F32 | Precision::Bf16 => CpuNet::with_isa(net, weights, precision, isa()?),
        Precision::F16 | Precision::Tf32 => Err(Error::unsupported(
            format!("a network in {precision} on the CPU"),
            "the CPU supports f32, bf16 and int8",
        )),
    }
}

/// Number of positions on which 8-bit scales are calibrated.
const CALIBRATION: usize = 512;

const OBS: &str = "selfcheck.obs";
const LOGITS: &str = "selfcheck.logits";
const VALUES: &str = "selfcheck.values";

fn evaluate(net: &NetSpec, weights: &Weights, obs: Vec<f32>) -> Result<SelfCheck> {
    let mut logits = vec![0.0; CHECKS * net.num_actions];
    let mut values = vec![0.0; CHECKS * net.num_players];
    checking_network(net, weights)?.forward(&obs, &mut logits, &mut values)?;
    Ok(SelfCheck { obs, logits, values })
}

fn expect_sizes(game: &dyn ErasedRules, net: &NetSpec) -> Result<()> {
    let sizes = game.sizes();
    let expected = (sizes.obs, sizes.num_actions, sizes.num_players);
    let found = (net.obs, net.num_actions, net.num_players);
    expect_equal(&format!("the network's sizes for {}", game.name()), found, expected)
}

/// Refuses sizes that differ from the expected ones.
fn expect_equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Mismatch {
        what: what.to_string(),
        found: format!("{found:?}"),
        expected: format!("{expected:?}"),
    })
}

/// Refuses sizes outside of the valid ranges, before anything is allocated for them.
fn check_sizes(path: &Path, net: &NetSpec) -> Result<()> {
    net.check_layers().map_err(|e| Error::format(path, e.to_string()))?;
    let sizes = [
        ("obs.channels", net.obs.channels, 65_536),
        ("obs.height", net.obs.height, 256),
        ("obs.width", net.obs.width, 256),
        ("num_actions", net.num_actions, 65_536),
        ("num_players", net.num_players, MAX_PLAYERS),
    ];
    for (key, found, max) in sizes {
        if !(1..=max).contains(&found) {
            return Err(Error::format(path, format!("{key} is {found}, expected 1..={max}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
