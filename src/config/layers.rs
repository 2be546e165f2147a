//! Configuration layers: TOML files and single assignments, merged in order.

use super::config_file::{Config, is_section, unknown_key};
use super::removed::without_removed;
use crate::error::{Error, Result};
use crate::files::{open_regular, text_of};
use std::collections::BTreeMap;
use std::path::Path;
use toml::de::DeTable;

/// Maximum size of a configuration, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// The origin of a key that was set by `--set`, in errors.
const SET: &str = "--set";

/// Merged configuration layers; a later layer overrides an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    table: toml::Table,
    /// The origin of each key, by dotted key: a file and its line, or `--set`. Keys set by other flags have none.
    origins: BTreeMap<String, String>,
}

impl Layers {
    /// Adds the file at `path` as the next layer.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::ConfigText`].
    pub fn file(self, path: &Path) -> Result<Self> {
        let opened = open_regular(path).and_then(|file| text_of(file, MAX_BYTES));
        let text = opened.map_err(|e| Error::io("reading", path, e))?;
        self.text(&text, &path.display().to_string())
    }

    /// Adds TOML `text` as the next layer. Errors name `origin` and the line.
    ///
    /// # Errors
    /// [`Error::ConfigText`].
    pub fn text(mut self, text: &str, origin: &str) -> Result<Self> {
        let broken = |e: toml::de::Error| {
            let at = e.span().map(|span| format!(", line {}", line_of(text, span.start))).unwrap_or_default();
            Error::ConfigText { origin: format!("{origin}{at}"), what: e.message().replace('\n', " ") }
        };
        let spanned = DeTable::parse(text).map_err(broken)?;
        for (section, value) in spanned.get_ref() {
            let at = |offset: usize| format!("{origin}, line {}", line_of(text, offset));
            let name = section.get_ref();
            self.origins.insert(name.to_string(), at(section.span().start));
            for (key, _) in value.get_ref().as_table().into_iter().flatten() {
                self.origins.insert(format!("{name}.{}", key.get_ref()), at(key.span().start));
            }
        }
        merge(&mut self.table, text.parse().map_err(broken)?);
        Ok(self)
    }

    /// Adds a configuration as the next layer.
    ///
    /// # Errors
    /// [`Error::ConfigText`] for numbers that TOML cannot represent.
    pub fn config(mut self, config: &Config) -> Result<Self> {
        let table = toml::Table::try_from(config)
            .map_err(|e| Error::ConfigText { origin: "the configuration".into(), what: e.to_string() })?;
        merge(&mut self.table, table);
        Ok(self)
    }

    /// Sets one dotted key, as `--set` does, to a TOML value. A bare word is a text.
    ///
    /// # Errors
    /// [`Error::ConfigText`] if the assignment has no `=` or no key.
    pub fn set(mut self, assignment: &str) -> Result<Self> {
        let bad = |what: &str| Error::ConfigText { origin: format!("{SET} {assignment}"), what: what.into() };
        let (key, value) = assignment.split_once('=').ok_or_else(|| bad("expected key=value"))?;
        let key = key.trim();
        self = self.assign(key, value)?;
        self.origins.insert(key.to_string(), SET.into());
        Ok(self)
    }

    /// Sets one dotted key, given by a flag of its own, to a TOML value. A bare word is a text, and so is any name of a game, such as 2048.
    ///
    /// # Errors
    /// [`Error::ConfigText`] if there is no key or no value.
    pub fn assign(mut self, key: &str, value: &str) -> Result<Self> {
        let bad =
            |what: &str| Error::ConfigText { origin: format!("{SET} {key}={value}"), what: what.into() };
        let parse = |value: &str| format!("v={value}").parse::<toml::Table>();
        let as_text = || parse(&toml::Value::String(value.trim().to_string()).to_string());
        let is_text = |table: &toml::Table| table.get("v").is_some_and(toml::Value::is_str);
        let parsed = match parse(value) {
            // More than one key: the value has a line break.
            Ok(table) if table.len() == 1 && (key != "game.name" || is_text(&table)) => Ok(table),
            _ => as_text(),
        };
        let parsed = parsed.map_err(|e| bad(e.message()))?;
        let mut value = parsed.into_iter().next().map(|(_, v)| v).ok_or_else(|| bad("empty value"))?;
        for name in value.as_table().into_iter().flat_map(|table| table.keys()) {
            self.origins.remove(&format!("{key}.{name}"));
        }
        for part in key.rsplit('.') {
            if part.is_empty() {
                return Err(bad("expected section.key=value"));
            }
            value = toml::Value::Table(toml::Table::from_iter([(part.to_string(), value)]));
        }
        if let toml::Value::Table(table) = value {
            merge(&mut self.table, table);
        }
        self.origins.remove(key);
        Ok(self)
    }

    /// Removes the keys that need a GPU: devices, and GPU-only formats of training and of the network, which then have their defaults.
    pub fn on_cpu(self) -> Self {
        self.without_devices()
            .without(&[("train", "precision", &["f16"]), ("net", "precision", &["f16", "tf32"])])
    }

    /// Removes devices, and what a network on a GPU lacks: the instruction sets of CPUs, and int8, in whose place it has bf16.
    pub fn on_gpu(self) -> Self {
        self.without_devices().without(&[("net", "isa", &[])]).without_int8()
    }

    /// These layers over a built-in configuration, `own` without it. The int8 of a built-in configuration, which only CPUs have, gives way to
    /// bf16 on a GPU.
    #[must_use]
    pub fn with_format_of_device(self, own: &Self) -> Self {
        let device = self.text_of("net", "device").or(self.text_of("run", "device"));
        let is_on_gpu = device.is_some_and(|device| device.starts_with("cuda"));
        match is_on_gpu && own.text_of("net", "precision").is_none() {
            true => self.without_int8(),
            false => self,
        }
    }

    /// The text of a key of `section`; None if it is not set or is not text.
    fn text_of(&self, section: &str, key: &str) -> Option<&str> {
        self.table.get(section)?.get(key)?.as_str()
    }

    fn without_int8(mut self) -> Self {
        if self.text_of("net", "precision") == Some("int8") {
            merge(&mut self.table, toml::toml! { net.precision = "bf16" });
        }
        self
    }

    fn without_devices(self) -> Self {
        self.without(&[("run", "device", &[]), ("net", "device", &[])])
    }

    /// Removes each of `keys` (section, key, values) that has one of its values, or any if it names none.
    fn without(mut self, keys: &[(&str, &str, &[&str])]) -> Self {
        for (section, key, values) in keys {
            let Some(table) = self.table.get_mut(*section).and_then(toml::Value::as_table_mut) else {
                continue;
            };
            let found = table.get(*key).and_then(toml::Value::as_str).unwrap_or_default();
            if values.is_empty() || values.contains(&found) {
                table.remove(*key);
            }
        }
        self
    }

    /// The checked configuration.
    ///
    /// # Errors
    /// [`Error::ConfigKey`] for unknown keys, [`Error::Config`] or [`Error::ConfigKey`] for wrong values, each with the file or option
    /// where the key was set.
    pub fn resolve(self) -> Result<Config> {
        let checked = self.read().and_then(|config| config.check().map(|()| config));
        checked.map_err(|error| self.locate(error))
    }

    /// The configuration without a check of its values together: one that was checked when it was written, perhaps on a machine with other
    /// devices, instruction sets and formats.
    ///
    /// # Errors
    /// [`Error::ConfigKey`] for unknown keys and values that are none.
    pub fn unchecked(self) -> Result<Config> {
        self.read().map_err(|error| self.locate(error))
    }

    /// `error` with the file or option in which its key was set.
    pub fn locate(&self, error: Error) -> Error {
        error.located(|key| self.origins.get(key).cloned())
    }

    fn read(&self) -> Result<Config> {
        let mut config = Config::default();
        for (name, value) in &self.table {
            match value {
                toml::Value::Table(table) => {
                    config.read_section(name, without_removed(name, table.clone())?)?
                }
                other if is_section(name) => return Err(Error::config(name, other, "a table of keys")),
                _ => return Err(unknown_key(name.clone())),
            }
        }
        let train = self.table.get("train").and_then(toml::Value::as_table);
        if train.is_none_or(|train| !train.contains_key("precision")) {
            config.train.precision = config.default_train_precision();
        }
        Ok(config)
    }
}

/// The line of the byte at `offset`, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Devices, IsaChoice, Precision, TrainPrecision};

    fn error(assignment: &str) -> String {
        match Layers::default().set(assignment).and_then(Layers::resolve) {
            Ok(_) => panic!("{assignment} was accepted"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn on_cpu_removes_only_the_keys_that_need_a_gpu() {
        let text = "[run]\ndevice = 'cuda:1'\nseed = 7\n[net]\ndevice = 'cuda:0'\nprecision = 'f16'\n[train]\nprecision = 'f16'";
        let config = Layers::default().text(text, "test").expect("TOML").on_cpu().resolve().expect("valid");
        assert_eq!(
            (config.run.device, config.network_devices(), config.run.seed),
            (Devices::default(), Devices::default(), 7)
        );
        assert_eq!((config.net.precision, config.train.precision), (Precision::F32, TrainPrecision::F32));
        let kept = "[net]\nprecision = 'bf16'\n[train]\nprecision = 'bf16'";
        let kept = Layers::default().text(kept, "test").expect("TOML").on_cpu().resolve().expect("valid");
        assert_eq!((kept.net.precision, kept.train.precision), (Precision::Bf16, TrainPrecision::Bf16));
    }

    #[test]
    fn on_gpu_keeps_the_formats_of_gpus_and_removes_what_is_of_cpus() {
        let of = |net: &str| {
            let text = format!("[run]\ndevice = 'cpu'\n[net]\ndevice = 'cpu'\n{net}");
            Layers::default().text(&text, "test").expect("TOML").on_gpu()
        };
        for net in ["precision = 'f16'", "precision = 'tf32'", "precision = 'bf16'"] {
            let expected = net.split('\'').nth(1);
            assert_eq!(of(net).table["net"].get("precision").and_then(toml::Value::as_str), expected);
        }
        let cleaned = of("precision = 'int8'\nisa = 'avx2'").resolve().expect("valid");
        assert_eq!((cleaned.net.precision, cleaned.net.isa), (Precision::Bf16, IsaChoice::Native));
    }

    #[test]
    fn int8_of_a_built_in_configuration_is_for_cpus() {
        let of = |own: &str| {
            let own = Layers::default().text(own, "own").expect("TOML");
            let mut layers = Layers::default().text("[net]\nprecision = 'int8'", "built-in").expect("TOML");
            merge(&mut layers.table, own.table.clone());
            layers.with_format_of_device(&own).text_of("net", "precision").map(str::to_string)
        };
        for kept in [
            "",
            "[run]\ndevice = 'cuda'\n[net]\ndevice = 'cpu'",
            "[run]\ndevice = 'cuda'\n[net]\nprecision = 'int8'",
        ] {
            assert_eq!(of(kept).as_deref(), Some("int8"), "{kept}");
        }
        for changed in ["[run]\ndevice = 'cuda'", "[net]\ndevice = 'cuda:1'"] {
            assert_eq!(of(changed).as_deref(), Some("bf16"), "{changed}");
        }
    }

    /// As a run that began on a Mac is resumed on another machine with `--set net.device=cpu`.
    #[test]
    fn a_configuration_of_another_machine_is_read_unchecked() {
        let text = "[run]\ndevice = 'cuda'\n[net]\ndevice = 'metal'\nisa = 'amx'\nblocks = 3";
        let read = Layers::default().text(text, "test").and_then(Layers::unchecked).expect("known keys");
        assert_eq!(read.net.blocks, 3);
        Layers::default()
            .text("[net]\nblocks = 'x'", "test")
            .and_then(Layers::unchecked)
            .expect_err("no number");
    }

    #[test]
    fn training_is_in_bf16_where_that_is_fast_and_nothing_says_otherwise() {
        let of = |text: &str| {
            let config = Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid");
            config.train.precision
        };
        let chosen = match IsaChoice::Native.of_bf16_training().trains_fast_in_bf16() {
            true => TrainPrecision::Bf16,
            false => TrainPrecision::F32,
        };
        for format in ["bf16", "int8"] {
            let play = format!("[net]\nprecision = '{format}'\n");
            assert_eq!(of(&play), chosen);
            for other in [
                "isa = 'portable'",
                "[train]\nprecision = 'f32'",
                "[run]\nminutes = 1\n[train]\nprecision = 'f32'",
            ] {
                assert_eq!(of(&format!("{play}{other}")), TrainPrecision::F32, "{other}");
            }
        }
        for text in ["", "[net]\nprecision = 'bf16'\ndevice = 'cuda:0'", "[train]\nbatch = 64"] {
            assert_eq!(of(text), TrainPrecision::F32, "{text}");
        }
        assert_eq!(of("[train]\nprecision = 'bf16'"), TrainPrecision::Bf16);
        // A network that was trained in bf16 is played by candle.
        assert_eq!(of("[net]\nexecutor = 'candle'\n[train]\nprecision = 'bf16'"), TrainPrecision::Bf16);
    }

    #[test]
    fn wrong_input_is_one_sentence_with_the_key() {
        for (assignment, part) in [
            (
                "search.simulations=0",
                "config key search.simulations (--set): got 0, expected a whole number from 1 to 1000000",
            ),
            ("search.simulations=-1", "got -1, expected a whole number from 1 to 1000000"),
            ("search.simulations=2.5", "got 2.5, expected a whole number from 1 to 1000000"),
            ("selfplay.games=many", "got \"many\", expected a whole number from 1 to 1048576"),
            ("run.seed=-1", "got -1, expected a whole number from 0 to 9223372036854775807"),
            ("train.lr=[1]", "got [1], expected a number from 0 to 100"),
            ("train.lr=nan", "got NaN, expected a number from 0 to 100"),
            ("search.solver=maybe", "got \"maybe\", expected true or false"),
            ("search.algorithm=uct", "got \"uct\", expected puct, gumbel or afterstate"),
            ("run.device=gpu", "run.device (--set): gpu is not a device"),
            ("search.simulatons=5", "no such key; the nearest is search.simulations"),
            ("search.sims=5", "no such key; the nearest is search.simulations"),
            ("search.samples_per_epoch=5", "no such key; the nearest is selfplay.samples_per_epoch"),
            ("serch.simulations=5", "no such key; the nearest is search.simulations"),
            ("train.channel=5", "no such key; the nearest is net.channels"),
            ("evl.simulations=5", "no such key; the nearest is eval.simulations"),
            ("batch_size=5", "no such key; the nearest is train.batch"),
            ("train.qqq=5", "no such key; `vecaz config` lists all"),
            ("search.c_puct=2", "no such key; the nearest is search.c_init"),
            ("Game.name=hex", "no such key; the nearest is game.name"),
            ("GAME.size=9", "no such key; the nearest is game.size"),
            ("Search.Leaves=2", "no such key; the nearest is search.leaves"),
            ("net.dropout=0.1", "no such key; `vecaz config` lists all"),
            ("search=5", "search (--set): got 5, expected a table of keys"),
            ("nothing", "expected key=value"),
            ("net.precision=f16", "net.precision (--set): got f16, expected f32, bf16 or int8 on the CPU"),
        ] {
            let message = error(assignment);
            assert!(message.contains(part) && !message.contains('\n'), "{assignment}: {message}");
        }
    }

    #[test]
    fn a_wrong_key_of_a_file_is_named_with_its_line() {
        let error = |text: &str| {
            let layers = Layers::default().text("[search]\nleaves = 2", "base.toml").expect("TOML");
            let resolved = layers.text(text, "my.toml").and_then(Layers::resolve);
            resolved.expect_err(text).to_string()
        };
        for (text, part) in [
            ("# mine\n\n[search]\nleaves = 3\nsims = 5\n", "key search.sims (my.toml, line 5): no such key"),
            ("[net]\nblocks = 3\nchannels = 0", "key net.channels (my.toml, line 3): got 0"),
            ("run.seed = 1\nrun.threads = 'all'", "key run.threads (my.toml, line 2): got \"all\""),
            ("search = { leaves = 0 }", "key search.leaves (my.toml, line 1): got 0"),
            (
                "[[net]]\nblocks = 3",
                "key net (my.toml, line 1): got [{ blocks = 3 }], expected a table of keys",
            ),
            (
                "[train]\nprecision = 'f16'",
                "key train.precision (my.toml, line 2): got f16, expected f32 or bf16",
            ),
            (
                "\n[serch]\nleaves = 1",
                "key serch.leaves (my.toml, line 3): no such key; the nearest is search.leaves",
            ),
            ("[net]\n\nblocks = = 3", "config my.toml, line 3: "),
            ("[net]\nblocks = 3\nblocks = 4", "config my.toml, line 3: duplicate key"),
        ] {
            let message = error(text);
            assert!(message.contains(part) && !message.contains('\n'), "{text}: {message}");
        }
        let later = Layers::default()
            .text("[net]\nblocks = 0", "my.toml")
            .and_then(|layers| layers.assign("net.blocks", "0"));
        let message = later.and_then(Layers::resolve).expect_err("0 blocks").to_string();
        assert!(
            message.contains("config key net.blocks: got 0"),
            "the file's value is overridden: {message}"
        );
        let later = Layers::default()
            .text("[net]\nblocks = 3", "my.toml")
            .and_then(|layers| layers.set("net={blocks=0}"));
        let message = later.and_then(Layers::resolve).expect_err("0 blocks").to_string();
        assert!(
            message.contains("config key net.blocks: got 0"),
            "the file's section is overridden: {message}"
        );
    }

    #[test]
    fn every_key_has_a_meaning_values_and_a_default_that_is_read_back() {
        for (section, purpose, keys) in Config::default().sections() {
            assert!(!purpose.is_empty() && !keys.is_empty(), "{section}");
            for key in keys {
                assert!(key.meaning.len() > 5 && !key.values.is_empty(), "{section}: {key:?}");
                assert_eq!(key.value, key.default);
                if key.default != "none" {
                    let set = Layers::default().assign(&format!("{section}.{}", key.name), &key.default);
                    assert_eq!(set.and_then(Layers::resolve).expect(key.name), Config::default());
                }
            }
        }
        let changed = Layers::default().set("search.leaves=7").and_then(Layers::resolve).expect("valid");
        let sections = changed.sections();
        let leaves =
            sections.iter().flat_map(|(.., keys)| keys).find(|key| key.name == "leaves").expect("a key");
        assert_eq!((leaves.default.as_str(), leaves.value.as_str()), ("1", "7"));
        assert_eq!(leaves.values, "a whole number from 1 to 4096");
    }

    #[test]
    fn a_line_break_in_a_value_begins_no_other_key() {
        for value in ["run.seed=5\na=9", "run.seed=5\nw=9", "run.seed=5\n[a]"] {
            assert!(error(value).contains("expected a whole number"), "{value}");
        }
        let layers = Layers::default().set("run.seed=5\r\n").and_then(Layers::resolve);
        assert_eq!(layers.expect("valid").run.seed, 5);
    }

    #[test]
    fn the_name_of_a_game_may_be_a_number() {
        for layers in
            [Layers::default().set("game.name=2048"), Layers::default().assign("game.name", "'2048'")]
        {
            assert_eq!(layers.and_then(Layers::resolve).expect("valid").game_name(), "2048");
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
        assert_eq!(config.network_devices().all().len(), 3);
    }
}
