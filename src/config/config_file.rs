//! A whole configuration.

use super::device::Devices;
use super::keys::{self, KeyInfo, Section};
use super::nearest::nearest;
use super::net::NetConfig;
use super::sections::{
    Algorithm, ClusterConfig, EvalConfig, ReplayConfig, RunConfig, SearchConfig, SelfPlayConfig, TrainConfig,
};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The game of a configuration without `game.name`.
pub const DEFAULT_GAME: &str = "connect_four";

macro_rules! config {
    ($($(#[doc = $doc:literal])* $(#[serde($($serde:tt)*)])? $section:ident: $ty:ident),+ $(,)?) => {
        /// A whole configuration file.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Config {
            /// `name` and the game's own settings
            pub game: toml::Table,
            $($(#[doc = $doc])* $(#[serde($($serde)*)])? pub $section: $ty),+
        }

        impl Config {
            /// All sections but `[game]`, whose keys depend on the game: name, purpose and keys.
            pub fn sections(&self) -> Vec<(&'static str, &'static str, Vec<KeyInfo>)> {
                vec![$((stringify!($section), concat!($($doc),*).trim(), self.$section.keys())),+]
            }

            /// Reads the section called `name`.
            pub(super) fn read_section(&mut self, name: &str, table: toml::Table) -> Result<()> {
                if name == "game" {
                    self.game = table;
                    return Ok(());
                }
                $(if name == stringify!($section) {
                    self.$section = keys::read(name, table, suggest)?;
                    return Ok(());
                })+
                Err(unknown_section(name, &table))
            }
        }
    };
}
config! {
    /// the network
    net: NetConfig,
    /// one search
    search: SearchConfig,
    /// the games that produce samples
    selfplay: SelfPlayConfig,
    /// the replay buffer
    replay: ReplayConfig,
    /// optimisation
    train: TrainConfig,
    /// seed, length, threads, devices, memory
    run: RunConfig,
    /// playing strength
    eval: EvalConfig,
    /// workers on other machines
    #[serde(skip_serializing_if = "ClusterConfig::is_default")]
    cluster: ClusterConfig,
}

impl Config {
    /// The game's name; default: [`DEFAULT_GAME`].
    pub fn game_name(&self) -> &str {
        self.game.get("name").and_then(toml::Value::as_str).unwrap_or(DEFAULT_GAME)
    }

    /// The game's settings: `[game]` without `name`.
    pub fn game_options(&self) -> toml::Table {
        let mut options = self.game.clone();
        options.remove("name");
        options
    }

    /// D in evaluation, for a game with hidden information.
    pub fn eval_determinisations(&self) -> usize {
        match self.eval.determinisations {
            0 => self.search.determinisations as usize,
            d => d as usize,
        }
    }

    /// The search algorithm of evaluation.
    pub fn eval_algorithm(&self) -> Algorithm {
        self.eval.algorithm.unwrap_or(match self.search.algorithm {
            Algorithm::Afterstate => Algorithm::Afterstate,
            Algorithm::Puct | Algorithm::Gumbel => Algorithm::Gumbel,
        })
    }

    /// The devices of the network, in self-play and in training.
    pub fn network_devices(&self) -> Devices {
        self.net.device.unwrap_or(self.run.device)
    }

    /// The whole configuration as TOML; reading it gives an equal configuration. Empty if [`Config::file_text`] fails.
    pub fn to_toml(&self) -> String {
        self.file_text().unwrap_or_default()
    }

    /// The whole configuration as TOML, for a file.
    ///
    /// # Errors
    /// [`Error::ConfigText`] if a value cannot be written as TOML.
    pub fn file_text(&self) -> Result<String> {
        toml::to_string(self).map_err(|e| Error::ConfigText {
            origin: "as a file".into(),
            what: format!("cannot be written: {e}"),
        })
    }
}

/// True for the name of a section.
pub(super) fn is_section(name: &str) -> bool {
    name == "game" || Config::default().sections().iter().any(|(section, ..)| *section == name)
}

/// The hint for a key that does not exist.
fn suggest(key: &str) -> String {
    // The settings of the game are its own, so only the spelling of the section can be corrected.
    if let Some((section, name)) = key.split_once('.')
        && section != "game"
        && section.eq_ignore_ascii_case("game")
    {
        return format!("the nearest is game.{}", name.to_lowercase());
    }
    let sections = Config::default().sections();
    let keys = sections.iter().flat_map(|(section, _, keys)| keys.iter().map(move |key| (section, key.name)));
    let known = keys.map(|(section, name)| format!("{section}.{name}")).chain(["game.name".to_string()]);
    let known: Vec<String> = known.collect();
    match nearest(key, known.iter().map(String::as_str)) {
        Some(nearest) => format!("the nearest is {nearest}, `vecaz config` lists all"),
        None => "`vecaz config` lists all".into(),
    }
}

/// The error for a key that does not exist.
pub(super) fn unknown_key(key: String) -> Error {
    let hint = suggest(&key);
    Error::unknown_key(key, hint)
}

/// The error for a section that does not exist. It names the first key of the section.
fn unknown_section(name: &str, table: &toml::Table) -> Error {
    match table.keys().next() {
        Some(key) => unknown_key(format!("{name}.{key}")),
        None => Error::unknown_key(name, "`vecaz config` lists all"),
    }
}
