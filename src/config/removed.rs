//! Keys of earlier versions. The `config.toml` of an old run has all of its version's keys, so a key that is gone is ignored where it has
//! its default, and refused where the run had something else. A key that had no effect without another such key is ignored with any value.

use crate::error::{Error, Result};

/// Section, key, and the value that does what is done without the key.
const REMOVED: &[(&str, &str, &str)] = &[
    ("net", "global_pool", "0"),             // no global pooling
    ("net", "se", "0"),                      // no squeeze-and-excitation
    ("search", "chance", "\"stratified\""),  // one rule of selection at chance nodes
    ("search", "engine", "\"batched\""),     // there is one search
    ("search", "fpu", "\"reduced\""),        // one rule of first-play urgency
    ("selfplay", "playout_cap_prob", "0.0"), // every ply has all simulations
    ("train", "accumulate", "1"),            // an update is of one batch
    ("train", "optimizer", "\"adamw\""),     // AdamW alone
];

/// Section and key of what is ignored with any value.
const IGNORED: &[(&str, &str)] = &[
    ("selfplay", "fast_simulations"), // of plies that `playout_cap_prob` chose
];

/// The `table` of this section without keys that are gone.
///
/// # Errors
/// [`Error::Config`] for such a key with another value.
pub(super) fn without_removed(section: &str, mut table: toml::Table) -> Result<toml::Table> {
    for (_, key, same) in REMOVED.iter().filter(|(of, ..)| *of == section) {
        let Some(value) = table.remove(*key).filter(|value| value.to_string() != *same) else { continue };
        let expected = format!("{same}, which is what is done now that the key is gone");
        return Err(Error::config(format!("{section}.{key}"), value, expected));
    }
    for (_, key) in IGNORED.iter().filter(|(of, _)| *of == section) {
        table.remove(*key);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Layers};

    fn of(text: &str) -> Result<Config> {
        Layers::default().text(text, "run/config.toml").and_then(Layers::resolve)
    }

    #[test]
    fn a_key_that_is_gone_is_ignored_with_its_default_and_refused_with_another_value() {
        for (section, key, same) in REMOVED {
            assert_eq!(of(&format!("[{section}]\n{key} = {same}")).expect(key), Config::default());
            let refused = of(&format!("[{section}]\n{key} = 77")).expect_err(key).to_string();
            let start =
                format!("config key {section}.{key} (run/config.toml, line 2): got 77, expected {same}, ");
            assert!(refused.starts_with(&start), "{refused}");
        }
    }

    #[test]
    fn a_key_without_effect_is_ignored_with_any_value() {
        for (section, key) in IGNORED {
            assert_eq!(of(&format!("[{section}]\n{key} = 77")).expect(key), Config::default());
        }
    }
}
