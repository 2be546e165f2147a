//! Configuration layers: TOML files and single assignments, merged in order.

use super::Config;
use crate::error::{Error, Result};
use crate::files::read_text;
use serde::Serialize;
use std::path::Path;

/// Bytes that a configuration may have.
pub const MAX_BYTES: u64 = 1 << 20;

/// Merged configuration layers; a later layer overrides an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Layers(toml::Table);

impl Layers {
    /// Adds the file at `path` as the next layer.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::ConfigText`].
    pub fn file(mut self, path: &Path) -> Result<Self> {
        let text = read_text(path, MAX_BYTES).map_err(|e| Error::io("reading", path, e))?;
        merge(&mut self.0, parse_toml(&text, &path.display().to_string())?);
        Ok(self)
    }

    /// Adds TOML `text` as the next layer. Errors name `origin`.
    ///
    /// # Errors
    /// [`Error::ConfigText`].
    pub fn text(mut self, text: &str, origin: &str) -> Result<Self> {
        merge(&mut self.0, parse_toml(text, origin)?);
        Ok(self)
    }

    /// Sets one dotted key to a TOML value. A bare word is a string.
    ///
    /// # Errors
    /// [`Error::ConfigText`] if the assignment has no `=` or no key.
    pub fn set(mut self, assignment: &str) -> Result<Self> {
        let bad = |what: &str| Error::ConfigText { origin: format!("--set {assignment}"), what: what.into() };
        let (key, value) = assignment.split_once('=').ok_or_else(|| bad("expected key=value"))?;
        let value = parse_toml(&format!("v={value}"), "").or_else(|_| {
            let quoted = toml::Value::String(value.trim().to_string());
            parse_toml(&format!("v={quoted}"), "")
        })?;
        let mut value = value.into_iter().next().map(|(_, v)| v).ok_or_else(|| bad("empty value"))?;
        for part in key.trim().rsplit('.') {
            if part.is_empty() {
                return Err(bad("expected section.key=value"));
            }
            value = toml::Value::Table(toml::Table::from_iter([(part.to_string(), value)]));
        }
        if let toml::Value::Table(table) = value {
            merge(&mut self.0, table);
        }
        Ok(self)
    }

    /// Removes the keys that need a GPU: devices, the format of training, and GPU-only formats of the network, which then is
    /// in f32.
    pub fn on_cpu(mut self) -> Self {
        let gpu_only: [(&str, &str, &[&str]); 4] = [
            ("run", "device", &[]),
            ("net", "device", &[]),
            ("train", "precision", &[]),
            ("net", "precision", &["f16", "tf32"]),
        ];
        for (section, key, values) in gpu_only {
            let Some(table) = self.0.get_mut(section).and_then(toml::Value::as_table_mut) else { continue };
            let found = table.get(key).and_then(toml::Value::as_str).unwrap_or_default();
            if values.is_empty() || values.contains(&found) {
                table.remove(key);
            }
        }
        self
    }

    /// The checked configuration.
    ///
    /// # Errors
    /// [`Error::ConfigText`] for unknown keys and wrong types, [`Error::Config`] for values out of range.
    pub fn resolve(self) -> Result<Config> {
        let mut config = Config::default();
        let sections: Vec<(String, toml::Value)> = self.0.into_iter().collect();
        for (name, value) in sections {
            let table = match value {
                toml::Value::Table(table) => table,
                other => return Err(Error::config(name, other, "a table of keys")),
            };
            match name.as_str() {
                "game" => config.game = table,
                "net" => config.net = section(&name, table)?,
                "search" => config.search = section(&name, table)?,
                "selfplay" => config.selfplay = section(&name, table)?,
                "replay" => config.replay = section(&name, table)?,
                "train" => config.train = section(&name, table)?,
                "run" => config.run = section(&name, table)?,
                "eval" => config.eval = section(&name, table)?,
                _ => {
                    let expected = "one of game, net, search, selfplay, replay, train, run, eval";
                    return Err(Error::config(name, "an unknown section", expected));
                }
            }
        }
        config.check()?;
        Ok(config)
    }
}

fn parse_toml(text: &str, origin: &str) -> Result<toml::Table> {
    text.parse().map_err(|e: toml::de::Error| Error::ConfigText {
        origin: origin.to_string(),
        what: e.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

fn merge(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Renamed keys: section, old key, new key.
const RENAMED: [(&str, &str, &str); 7] = [
    ("search", "noise_fraction", "dirichlet_epsilon"),
    ("search", "noise_alpha", "dirichlet_alpha"),
    ("search", "considered", "max_num_considered_actions"),
    ("selfplay", "stride", "passes_per_poll"),
    ("selfplay", "fast_fraction", "playout_cap_prob"),
    ("train", "reuse", "replay_ratio"),
    ("train", "order", "mode"),
];

/// Reads one section key by key, so that an error names the key.
fn section<T>(name: &str, table: toml::Table) -> Result<T>
where
    T: Default + Serialize + serde::de::DeserializeOwned,
{
    for (key, value) in &table {
        if let Some((_, _, new)) = RENAMED.iter().find(|(section, old, _)| *section == name && old == key) {
            let what = format!("this key is now {name}.{new}");
            return Err(Error::ConfigText { origin: format!("key {name}.{key} = {value}"), what });
        }
        let one = toml::Table::from_iter([(key.clone(), value.clone())]);
        one.try_into::<T>().map_err(|e: toml::de::Error| {
            let what = e.message().split('\n').next().unwrap_or_default().to_string();
            Error::ConfigText { origin: format!("key {name}.{key} = {value}"), what }
        })?;
    }
    table.try_into().map_err(|e: toml::de::Error| Error::ConfigText {
        origin: format!("[{name}]"),
        what: e.message().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Devices, Precision, TrainPrecision};
    use super::*;

    fn error(assignment: &str) -> String {
        match Layers::default().set(assignment).and_then(Layers::resolve) {
            Ok(_) => panic!("{assignment} was accepted"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn on_cpu_removes_only_the_keys_that_need_a_gpu() {
        let text = "[run]\ndevice = 'cuda:1'\nseed = 7\n[net]\ndevice = 'cuda:0'\nprecision = 'f16'\n[train]\nprecision = 'bf16'";
        let config = Layers::default().text(text, "test").expect("TOML").on_cpu().resolve().expect("valid");
        assert_eq!(
            (config.run.device, config.network_devices(), config.run.seed),
            (Devices::default(), Devices::default(), 7)
        );
        assert_eq!((config.net.precision, config.train.precision), (Precision::F32, TrainPrecision::F32));
        let kept = Layers::default().text("[net]\nprecision = 'bf16'", "test").expect("TOML").on_cpu();
        assert_eq!(kept.resolve().expect("valid").net.precision, Precision::Bf16);
    }

    #[test]
    fn wrong_input_is_one_sentence_with_the_key() {
        for (assignment, part) in [
            ("search.simulations=0", "search.simulations: got 0, expected 1..=1000000"),
            ("search.simulatons=5", "search.simulatons"),
            ("selfplay.games=many", "selfplay.games"),
            ("selfplay.games=0", "selfplay.games: got 0"),
            ("serch.simulations=5", "serch"),
            ("search=5", "search: got 5"),
            ("eval.positions=0", "eval.positions: got 0"),
            ("eval.match_games=0", "eval.match_games: got 0"),
            ("train.lr=nan", "train.lr"),
            ("search.algorithm=uct", "search.algorithm"),
            ("nothing", "expected key=value"),
            ("run.device=gpu", "run.device"),
            ("net.precision=f16", "net.precision: got f16, expected f32, bf16 or int8 on the CPU"),
            ("net.precision=tf32", "net.precision: got tf32, expected f32, bf16 or int8 on the CPU"),
            ("train.reuse=2", "key train.reuse = 2: this key is now train.replay_ratio"),
        ] {
            let message = error(assignment);
            assert!(message.contains(part) && !message.contains('\n'), "{assignment}: {message}");
        }
    }

    #[test]
    fn later_layers_override_earlier_ones_and_round_trip() {
        let config = Layers::default()
            .text("[search]\nsimulations = 5\nleaves = 2", "a")
            .and_then(|l| l.set("search.simulations=7"))
            .and_then(|l| l.set("game.name=tic_tac_toe"))
            .and_then(Layers::resolve)
            .expect("valid");
        assert_eq!((config.search.simulations, config.search.leaves), (7, 2));
        assert_eq!(config.game_name(), "tic_tac_toe");
        let again = Layers::default().text(&config.to_toml(), "b").and_then(Layers::resolve).expect("valid");
        assert_eq!(again, config);
    }

    #[test]
    fn a_list_of_devices_round_trips() {
        let mut config = Config::default();
        config.run.device = "cuda:2,cuda:0".parse().expect("a list");
        config.net.device = Some("cuda:0,cuda:1,cuda:2".parse().expect("a list"));
        let text = config.to_toml();
        assert!(text.contains("\ndevice = \"cuda:2,cuda:0\"\n"), "{text}");
        assert_eq!(toml::from_str::<Config>(&text).expect("a configuration"), config);
        let devices = config.training_devices();
        assert_eq!((devices.all().len(), config.network_devices()), (3, devices));
    }
}
