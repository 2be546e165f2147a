//! The file of one network: weights, the game that it is for, self-check vectors.

use super::arrays::{MAX_BYTES, load_arrays, parse_arrays, serialize_in};
use super::describe;
use super::evaluated::EvaluatedPositions;
use super::number_format::NumberFormat;
use super::target_network::no_head;
use crate::batch::ErasedRules;
use crate::config::Precision;
use crate::error::{Error, Result};
use crate::files::write_atomic;
use crate::game::{MAX_PLAYERS, ObsShape, Valuation};
use crate::model::{Array, NetSpec, Weights};
use crate::net::Network;
use crate::net::cpu::CpuNet;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of the file's layout.
const VERSION: u32 = 1;
/// Maximum size of the weights in a file, in bytes; the rest is for the header and the self-check.
const MAX_WEIGHTS: u64 = MAX_BYTES / 16 * 15;
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
    /// The positions that it evaluates.
    #[serde(default, skip_serializing_if = "EvaluatedPositions::are_decisions")]
    pub evaluates: EvaluatedPositions,
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

impl NetworkHeader {
    /// The header as JSON; errors name `path`.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub(super) fn to_json(&self, path: &Path) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::format(path, format!("cannot be written: {e}")))
    }

    /// The header in a file's metadata, with sizes in the valid ranges; errors name `path`.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self> {
        let header: Self = serde_json::from_str(text)
            .map_err(|e| Error::format(path, format!("its header is not that of a network: {e}")))?;
        if header.version != VERSION {
            let what = format!("layout version {}, expected {VERSION}", header.version);
            return Err(Error::format(path, what));
        }
        check_sizes(path, &header.net)?;
        Ok(header)
    }
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
    /// [`Error::Mismatch`] if `net` does not fit the game, [`Error::Config`] and [`Error::Unsupported`] for sizes that [`NetFile::load`] does not
    /// read, [`Error::Unsupported`] for a game whose deals end it.
    pub fn new(game: &dyn ErasedRules, net: &NetSpec) -> Result<Self> {
        expect_sizes(game, net)?;
        net.check_layers()?;
        let refused = |why: String| Err(Error::unsupported(format!("networks for {}", game.name()), why));
        size_out_of_range(net).map_or(Ok(()), refused)?;
        weights_too_large(net)?.map_or(Ok(()), refused)?;
        let header = NetworkHeader {
            version: VERSION,
            game: game.name().to_string(),
            options: game.options(),
            net: net.clone(),
            evaluates: EvaluatedPositions::Decisions,
            meaning: describe::meaning(net, EvaluatedPositions::Decisions),
            actions: describe::action_names(game),
            updates: 0,
            model: None,
        };
        Ok(Self { header, obs: describe::observations(game, CHECKS)? })
    }

    /// The same for networks that evaluate `positions`.
    #[must_use]
    pub fn evaluating(mut self, positions: EvaluatedPositions) -> Self {
        self.header.evaluates = positions;
        self.header.meaning = describe::meaning(&self.header.net, positions);
        self
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
        self.to_bytes_in(NumberFormat::F32, path)
    }

    /// The bytes of the file with its weights in `format`; the self-check vectors are in f32.
    ///
    /// # Errors
    /// [`Error::Format`] if the header cannot be written as JSON, [`Error::Unsupported`] for weights beyond the range of `format`.
    pub(super) fn to_bytes_in(&self, format: NumberFormat, path: &Path) -> Result<Vec<u8>> {
        let mut arrays = self.weights.clone();
        let SelfCheck { obs, logits, values } = &self.check;
        for (name, data) in [(OBS, obs), (LOGITS, logits), (VALUES, values)] {
            let shape = vec![CHECKS, data.len() / CHECKS];
            arrays.insert(name.to_string(), Array { shape, data: data.clone() });
        }
        let format_of = |name: &str| if is_check(name) { NumberFormat::F32 } else { format };
        serialize_in(path, &arrays, &self.header.to_json(path)?, format_of)
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
        let header = NetworkHeader::parse(path, header)?;
        let check = SelfCheck::take(path, &mut arrays, &header.net, CHECKS)?;
        header
            .net
            .model()
            .and_then(|model| model.check(&arrays))
            .map_err(|e| Error::format(path, e.to_string()))?;
        Ok(Self { header, weights: arrays, check })
    }

    /// The network's sizes in `game`: the stored ones, or for an edge network those of another number of vertices. Options that
    /// change neither sizes nor meanings ([`Game::SPAN_OPTIONS`](crate::game::Game::SPAN_OPTIONS)) are not the network's.
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
        let (trained, expected) = (self.options_in(game), game.options());
        let is_equal_without = |keys: &[&str]| {
            self.header.game == game.name() && without(&trained, keys) == without(&expected, keys)
        };
        let span = game.span_options();
        if is_equal_without(span) {
            expect_sizes(game, net)?;
            if let Some(valuation) = game.valuation() {
                self.expect_head(&valuation)?;
            }
            return Ok(net.clone());
        }
        let size = game.size_option().filter(|&size| {
            let mut keys = span.to_vec();
            keys.push(size);
            is_equal_without(&keys)
        });
        match net.for_sizes(&game.sizes()).filter(|_| size.is_some()) {
            Some(spec) => Ok(spec),
            None => {
                let what = match size {
                    Some(size) => {
                        format!("the network's game (only an edge network serves another game.{size})")
                    }
                    None => "the network's game".into(),
                };
                let found = describe(&self.header.game, &trained);
                Err(Error::mismatch(what, found, describe(game.name(), &expected)))
            }
        }
    }

    /// Refuses a network that cannot be valued by `valuation`.
    fn expect_head(&self, valuation: &Valuation) -> Result<()> {
        if self.header.evaluates != EvaluatedPositions::Afterstates {
            return Err(Error::unsupported(
                "these settings of the game with this network",
                "they need one that was trained with search.algorithm = \"afterstate\"",
            ));
        }
        match self.header.net.auxiliary.iter().any(|target| target.name == valuation.target) {
            true => Ok(()),
            false => Err(no_head(valuation)),
        }
    }

    /// The stored options. Those of `game` that the network's program did not know yet have their defaults.
    pub(crate) fn options_in(&self, game: &dyn ErasedRules) -> toml::Table {
        let mut options = self.header.options.clone();
        if self.header.game != game.name() {
            return options;
        }
        for key in game.keys() {
            if !options.contains_key(key.name)
                && let Ok(default) = toml::from_str::<toml::Table>(&format!("{} = {}", key.name, key.default))
            {
                options.extend(default);
            }
        }
        options
    }

    /// Runs the self-check on `network`. Returns the largest difference from the stored outputs, relative where they exceed 1.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the difference exceeds the tolerance or the network has other sizes; those of [`Network::forward`].
    pub fn verify(&self, network: &mut dyn Network) -> Result<f32> {
        self.check.verify(&self.header.net, network)
    }
}

impl SelfCheck {
    /// Takes the tensors of `rows` observations and outputs of `net` out of `arrays`; errors name `path`.
    ///
    /// # Errors
    /// [`Error::Format`] for a tensor that is missing or has another shape.
    pub(super) fn take(path: &Path, arrays: &mut Weights, net: &NetSpec, rows: usize) -> Result<Self> {
        let mut take = |name: &str, width: usize| match arrays.remove(name) {
            Some(Array { shape, data }) if shape == [rows, width] => Ok(data),
            Some(Array { shape, .. }) => {
                let what = format!("tensor {name} has shape {shape:?}, expected [{rows}, {width}]");
                Err(Error::format(path, what))
            }
            None => Err(Error::format(path, format!("tensor {name} is missing"))),
        };
        let (obs, logits) = (take(OBS, net.obs.len())?, take(LOGITS, net.num_actions)?);
        Ok(Self { obs, logits, values: take(VALUES, net.num_players)? })
    }

    /// Compares the outputs of `network`, of the sizes `net`. Returns the largest difference, relative where they exceed 1.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the difference exceeds [`TOLERANCE`] or the network has other sizes; those of [`Network::forward`].
    pub(super) fn verify(&self, net: &NetSpec, network: &mut dyn Network) -> Result<f32> {
        let Self { obs, logits, values } = self;
        let shape = network.shape();
        let found = (shape.obs_len, shape.num_actions, shape.num_players);
        let expected = (net.obs.len(), net.num_actions, net.num_players);
        expect_equal("sizes (F, A, P) of the network under check", found, expected)?;
        let (mut l, mut v) = (vec![0.0; logits.len()], vec![0.0; values.len()]);
        network.forward(obs, &mut l, &mut v)?;
        let pairs = l.iter().zip(logits).chain(v.iter().zip(values));
        let differences = pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
        // Expected outputs of another program may be NaN, which then stays.
        let worst =
            differences.fold(0.0_f32, |worst, x| if worst.is_nan() || x <= worst { worst } else { x });
        if worst.is_nan() || worst > TOLERANCE {
            return Err(Error::mismatch(
                "self-check of the network",
                format_args!("outputs that differ by {worst}"),
                format_args!("at most {TOLERANCE}"),
            ));
        }
        Ok(worst)
    }
}

/// The network that computes and checks self-check vectors: the fused one in f32, which has the same bits on every machine.
///
/// # Errors
/// As [`CpuNet::new`].
pub(super) fn checking_network(spec: &NetSpec, weights: &Weights) -> Result<CpuNet> {
    CpuNet::new(spec, weights, Precision::F32)
}

/// The tensor of the self-check's observations.
pub(super) const OBS: &str = "selfcheck.obs";
const LOGITS: &str = "selfcheck.logits";
const VALUES: &str = "selfcheck.values";

/// True for the name of a tensor of the self-check.
pub(super) fn is_check(name: &str) -> bool {
    [OBS, LOGITS, VALUES].contains(&name)
}

/// The self-check of a network on `obs`. `[8, F]`
pub(super) fn evaluate(net: &NetSpec, weights: &Weights, obs: Vec<f32>) -> Result<SelfCheck> {
    let mut logits = vec![0.0; CHECKS * net.num_actions];
    let mut values = vec![0.0; CHECKS * net.num_players];
    checking_network(net, weights)?.forward(&obs, &mut logits, &mut values)?;
    Ok(SelfCheck { obs, logits, values })
}

/// `options` but for those called `keys`.
fn without(options: &toml::Table, keys: &[&str]) -> toml::Table {
    let mut options = options.clone();
    for key in keys {
        options.remove(*key);
    }
    options
}

fn expect_sizes(game: &dyn ErasedRules, net: &NetSpec) -> Result<()> {
    let sizes = game.sizes();
    let text = |obs: ObsShape, num_actions: usize, num_players: usize| {
        let ObsShape { channels, height, width } = obs;
        let planes = if height * width == 1 { String::new() } else { format!(" x {height} x {width}") };
        format!("observations of {channels}{planes} numbers, {num_actions} actions, {num_players} players")
    };
    let found = text(net.obs, net.num_actions, net.num_players);
    let seen = game.valuation().map_or(sizes.obs, |valuation| valuation.seen);
    let expected = text(seen, sizes.num_actions, sizes.num_players);
    match found == expected {
        true => Ok(()),
        false => {
            Err(Error::mismatch(format_args!("the network's sizes for {}", game.name()), found, expected))
        }
    }
}

/// Refuses sizes that differ from the expected ones.
fn expect_equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::mismatch(what, format_args!("{found:?}"), format_args!("{expected:?}")))
}

/// Refuses sizes outside of the valid ranges, before anything is allocated for them.
fn check_sizes(path: &Path, net: &NetSpec) -> Result<()> {
    net.check_layers().map_err(|e| Error::format(path, e.to_string()))?;
    size_out_of_range(net).map_or(Ok(()), |why| Err(Error::format(path, why)))
}

/// The size of the weights of `net`, in words, where a file of them would be too large to be read again.
fn weights_too_large(net: &NetSpec) -> Result<Option<String>> {
    let model = net.model()?;
    let bytes = 4 * (model.num_parameters() + model.num_statistics()) as u64;
    let why = || format!("their weights have {bytes} bytes, expected at most {MAX_WEIGHTS}");
    Ok((bytes > MAX_WEIGHTS).then(why))
}

/// The first of the game's sizes that is outside of the range of network files, in words.
fn size_out_of_range(net: &NetSpec) -> Option<String> {
    let sizes = [
        ("obs.channels", net.obs.channels, 65_536),
        ("obs.height", net.obs.height, 256),
        ("obs.width", net.obs.width, 256),
        ("num_actions", net.num_actions, 65_536),
        ("num_players", net.num_players, MAX_PLAYERS),
    ];
    let out = sizes.into_iter().find(|(_, found, max)| !(1..=*max).contains(found));
    out.map(|(key, found, max)| format!("{key} is {found}, expected 1..={max}"))
}
