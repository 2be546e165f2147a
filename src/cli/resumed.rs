//! The keys that a resumed run cannot change: those that its checkpoint's arrays, weights and games in progress depend on.

use crate::config::keys::{Section, toml_text};
use crate::config::{ClusterOrder, Config, IsaChoice, NetConfig};
use crate::error::{Error, Result};
use crate::registry::Registry;
use crate::weights::EvaluatedPositions;

/// Refuses to resume a run with another game, network, seed, or other sizes of its arrays. The error names the key, why it is
/// fixed, and which keys can be changed.
///
/// # Errors
/// [`Error::Config`] with the first key that differs; those of the games' settings.
pub fn check_same_run(registry: &Registry, saved: &Config, config: &Config) -> Result<()> {
    let [was, is] = [saved, config].map(|config| fixed_keys(registry, config));
    let (was, is) = (was?, is?);
    let (expected, found) = (saved.train.td_lambda, config.train.td_lambda);
    if saved.cluster.order == ClusterOrder::Strict && found != expected && found != 1.0 {
        let expected = format!(
            "{expected}, that of the resumed run, whose games in progress have no values of the search (cluster.order)"
        );
        return Err(Error::config("train.td_lambda", found, expected));
    }
    // The settings of another game have other names: its name comes first and differs.
    let changed = is.iter().zip(&was).find(|((_, got, _), (_, expected, _))| got != expected);
    let Some(((key, got, reason), (_, expected, _))) = changed else { return Ok(()) };
    let expected = format!(
        "{expected}, that of the resumed run: {reason}. Fixed are game, net (without net.device and net.isa), train.mode, run.start, run.seed, whether search.algorithm is afterstate, \
         selfplay.games and replay.capacity, in strict order train.td_lambda; all others can be changed, and `vecaz run --out` begins another run"
    );
    Err(Error::config(key, got, expected))
}

/// The keys that are fixed, each with its value and the reason.
fn fixed_keys(registry: &Registry, config: &Config) -> Result<Vec<(String, String, &'static str)>> {
    let game = registry.game_of(config)?;
    let of_game = "the network and the samples are of that game";
    let mut keys = vec![("game.name".to_string(), toml_text(&game.name()), of_game)];
    keys.extend(game.keys().into_iter().map(|key| (format!("game.{}", key.name), key.value, of_game)));
    let net = NetConfig { device: None, isa: IsaChoice::Native, ..config.net.clone() };
    let of_net = "the weights and every later epoch depend on it";
    keys.extend(net.keys().into_iter().map(|key| (format!("net.{}", key.name), key.value, of_net)));
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
    keys.extend(others.map(|(key, value, reason)| (key.to_string(), value, reason)));
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn the_value_targets_of_a_strict_run_are_fixed() {
        let of = |text: &str| Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid");
        let check =
            |saved: &str, config: &str| check_same_run(&Registry::built_in(), &of(saved), &of(config));
        let (strict, lambda) = ("[cluster]\norder = 'strict'", "[train]\ntd_lambda = 0.5");
        let error = check(strict, lambda).expect_err("games in progress without values").to_string();
        assert!(
            error.starts_with("config key train.td_lambda: got 0.5, expected 1, that of the resumed run"),
            "{error}"
        );
        check(strict, strict).expect("the same run");
        check("", lambda).expect("games in progress with values");
    }
}
