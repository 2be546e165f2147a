//! What a resumed run cannot change, compared with its saved configuration.

use crate::config::{ClusterOrder, Config};
use crate::error::{Error, Result};
use crate::registry::Registry;
use crate::run::fixed_keys::{FixedKey, check_fixed, fixed_keys, fixed_values};

/// Refuses to resume a run with another game, network, seed, or other sizes of its arrays.
///
/// # Errors
/// Those of [`check_fixed`]; [`Error::Config`] for other value targets of a strict run; those of the games' settings.
pub fn check_same_run(registry: &Registry, saved: &Config, config: &Config) -> Result<()> {
    let keys =
        |config| -> Result<Vec<FixedKey>> { Ok(fixed_keys(registry.game_of(config)?.as_ref(), config)) };
    let (was, is) = (keys(saved)?, keys(config)?);
    let (expected, found) = (saved.train.td_lambda, config.train.td_lambda);
    if saved.cluster.order == ClusterOrder::Strict && found != expected && found != 1.0 {
        let expected = format!(
            "{expected}, that of the resumed run, whose games in progress have no values of the search (cluster.order)"
        );
        return Err(Error::config("train.td_lambda", found, expected));
    }
    check_fixed(&is, &fixed_values(was))
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

    #[test]
    fn targets_are_compared_by_their_names() {
        let of = |names: &str| {
            let text = format!("[game]\nname = 'othello'\n[net]\nauxiliary = '{names}'");
            Layers::default().text(&text, "test").and_then(Layers::resolve).expect("valid")
        };
        let check = |saved: &str, names: &str| check_same_run(&Registry::built_in(), &of(saved), &of(names));
        check("ownership", " ownership ,").expect("the same heads");
        let error = check("ownership", "").expect_err("another network").to_string();
        assert!(error.starts_with("config key net.auxiliary: got \"\", expected \"ownership\""), "{error}");
    }
}
