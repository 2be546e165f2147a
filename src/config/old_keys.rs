//! Keys of earlier versions, renamed or removed: the hint of the error about each, and the values accepted in the saved configuration of
//! a run.

use super::keys::toml_text;

/// Renamed keys: old key, new key.
const RENAMED: [(&str, &str); 7] = [
    ("search.noise_fraction", "search.dirichlet_epsilon"),
    ("search.noise_alpha", "search.dirichlet_alpha"),
    ("search.considered", "search.max_num_considered_actions"),
    ("selfplay.stride", "selfplay.passes_per_poll"),
    ("selfplay.fast_fraction", "selfplay.playout_cap_prob"),
    ("train.reuse", "train.replay_ratio"),
    ("train.order", "train.mode"),
];

/// Removed keys: key, its present fixed value as TOML, and an explanation or the replacement.
const REMOVED: [(&str, &str, &str); 6] = [
    (
        "selfplay.value_mix",
        "0.0",
        "a value target is the game's result, or the root's value if that is proven",
    ),
    ("train.momentum", "0.9", "this is AlphaZero's momentum and the decay of Adam's first moment"),
    ("train.beta2", "0.999", "this is the decay of Adam's second moment"),
    ("train.schedule", "\"cosine\"", "train.lr_final = 1 makes the rate constant"),
    ("train.lr_steps", "[]", "the rate falls along half a cosine"),
    ("train.lr_step_factor", "10.0", "the rate falls along half a cosine"),
];

/// The hint for a key of an earlier version.
pub(super) fn hint(key: &str) -> Option<String> {
    if let Some((_, new)) = RENAMED.iter().find(|(old, _)| *old == key) {
        return Some(format!("this key is now {new}"));
    }
    let (_, value, replacement) = REMOVED.iter().find(|(old, ..)| *old == key)?;
    Some(format!("this key was removed and is {value} in every run: {replacement}"))
}

/// Removes from `table` the removed keys that are set to their fixed value.
pub(super) fn drop_removed(table: &mut toml::Table) {
    for (key, value, _) in REMOVED {
        let Some((section, name)) = key.split_once('.') else { continue };
        let Some(section) = table.get_mut(section).and_then(toml::Value::as_table_mut) else { continue };
        if section.get(name).is_some_and(|found| toml_text(found) == value) {
            section.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Layers};
    use super::*;

    #[test]
    fn old_keys_are_refused_with_what_replaces_them() {
        for (old, new) in RENAMED {
            let error = Layers::default().assign(old, "1").and_then(Layers::resolve).expect_err(old);
            let expected = format!("config key {old}: no such key; this key is now {new}");
            assert_eq!(error.to_string(), expected);
        }
        for (old, value, replacement) in REMOVED {
            let error = Layers::default().assign(old, value).and_then(Layers::resolve).expect_err(old);
            let expected = format!(
                "config key {old}: no such key; this key was removed and is {value} in every run: {replacement}"
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_saved_configuration_may_have_removed_keys_with_the_value_that_every_run_has() {
        for (key, value, _) in REMOVED {
            let saved = Layers::default().assign(key, value).expect("TOML").without_removed_keys();
            assert_eq!(saved.resolve().expect(key), Config::default());
            let other = Layers::default().assign(key, "0.5").expect("TOML").without_removed_keys();
            assert!(other.resolve().expect_err(key).to_string().contains("this key was removed"), "{key}");
        }
    }
}
