//! The keys that a resumed run cannot change: those that its checkpoint's arrays, weights and games in progress depend on.

use crate::backend::AnyGame;
use crate::config::keys::{Section, toml_text};
use crate::config::{Config, IsaChoice, NetConfig};
use crate::error::{Error, Result};
use crate::weights::EvaluatedPositions;
use std::collections::BTreeMap;

/// A key that is fixed.
pub struct FixedKey {
    /// Dotted key.
    pub key: String,
    /// Its value, as TOML.
    pub value: String,
    /// Why it is fixed.
    reason: &'static str,
}

/// The fixed keys of a run of `game` with their values.
pub fn fixed_keys(game: &dyn AnyGame, config: &Config) -> Vec<FixedKey> {
    let fixed = |key: String, value, reason| FixedKey { key, value, reason };
    let of_game = "the network and the samples are of that game";
    let mut keys = vec![fixed("game.name".into(), toml_text(&game.name()), of_game)];
    keys.extend(game.keys().into_iter().map(|key| fixed(format!("game.{}", key.name), key.value, of_game)));
    // Names that are separated in another way are the same.
    let auxiliary = config.net.auxiliary_names().collect::<Vec<_>>().join(",");
    let net = NetConfig { device: None, isa: IsaChoice::Native, auxiliary, ..config.net.clone() };
    let of_net = "the weights and every later epoch depend on it";
    keys.extend(net.keys().into_iter().map(|key| fixed(format!("net.{}", key.name), key.value, of_net)));
    let others = [
        (
            "train.mode",
            toml_text(&config.train.mode),
            "it decides for which samples of the checkpoint updates are still due",
        ),
        (
            "search.algorithm",
            match EvaluatedPositions::of(config.search.algorithm) {
                EvaluatedPositions::Afterstates => "afterstate",
                EvaluatedPositions::Decisions => "puct or gumbel",
            }
            .to_string(),
            "the network and the samples are of the positions that it evaluates",
        ),
        ("run.start", toml_text(&config.run.start), "the run's first weights came from that file"),
        ("run.seed", config.run.seed.to_string(), "the games in progress were drawn from it"),
        (
            "selfplay.games",
            config.selfplay.games.to_string(),
            "the checkpoint has that number of games in progress",
        ),
        (
            "replay.capacity",
            config.replay.capacity.to_string(),
            "the checkpoint's replay buffer has that size",
        ),
    ];
    keys.extend(others.map(|(key, value, reason)| fixed(key.to_string(), value, reason)));
    keys
}

/// The values of `keys` by their names.
pub fn fixed_values(keys: Vec<FixedKey>) -> BTreeMap<String, String> {
    keys.into_iter().map(|FixedKey { key, value, .. }| (key, value)).collect()
}

/// Refuses `keys` of which one has another value than `was`, that of the run. The error names the key, why it is fixed, and which keys can
/// be changed. Keys that `was` lacks are not compared.
///
/// # Errors
/// [`Error::Config`] with the first key that differs.
pub fn check_fixed(keys: &[FixedKey], was: &BTreeMap<String, String>) -> Result<()> {
    // The settings of another game have other names: its name comes first and differs.
    let mut compared = keys.iter().filter_map(|key| Some((key, was.get(&key.key)?)));
    let changed = compared.find(|(key, was)| key.value != **was);
    let Some((FixedKey { key, value, reason }, was)) = changed else { return Ok(()) };
    let expected = format!(
        "{was}, that of the resumed run: {reason}. Fixed are game, net (without net.device and net.isa), train.mode, run.start, run.seed, whether search.algorithm is afterstate, \
         selfplay.games and replay.capacity, in strict order train.td_lambda; all others can be changed, and `vecaz run --out` begins another run"
    );
    Err(Error::config(key, value, expected))
}
