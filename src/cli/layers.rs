//! The configuration of a command, from layers: a base < `--config` < flags with keys of their own < `--set`.

use crate::config::{Config, Layers, MAX_BYTES, nearest_hint};
use crate::error::{Error, Result};
use crate::files::read_text;
use crate::game::NamedText;
use crate::registry::Registry;
use clap::Args;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The built-in configurations: name, game, and the first sentence of the comment at the top.
///
/// # Errors
/// [`Error::ConfigText`] for a text that is not TOML.
pub fn described_configs(registry: &Registry) -> Result<Vec<(&'static str, String, String)>> {
    let describe = |NamedText { name, text }: NamedText| {
        let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        let head = head.join(" ");
        let sentence = head.split_once(". ").map_or(head.as_str(), |(first, _)| first).trim_end_matches('.');
        // The text is not resolved: a build without CUDA refuses configurations for GPUs.
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| Error::ConfigText {
            origin: name.into(),
            what: e.message().into(),
        })?;
        let game = table.get("game").and_then(|game| game.get("name")).and_then(toml::Value::as_str);
        Ok((name, game.unwrap_or(registry.default_name()).to_string(), sentence.to_string()))
    };
    registry.configs().into_iter().map(describe).collect()
}

/// The flags that choose a configuration, shared by the subcommands that need one.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArgs {
    /// The game; its built-in configuration is the base of all other settings
    #[arg(long, value_name = "G")]
    pub game: Option<String>,
    /// A TOML file laid over the built-in configuration, or the name of a built-in one such as `quick`
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Sets one configuration key, e.g. search.leaves=4; wins over everything else, may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// The lowest layer.
#[derive(Clone, Debug)]
pub enum Base {
    /// The built-in configuration of the game that the layers name.
    BuiltIn,
    /// The saved configuration of a run.
    Saved(Layers),
}

impl ConfigArgs {
    /// The configuration of [`ConfigArgs::layers`].
    ///
    /// # Errors
    /// Those of [`ConfigArgs::layers`].
    pub fn resolve(
        &self,
        registry: &Registry,
        base: Base,
        flags: &[(&str, Option<String>)],
    ) -> Result<Config> {
        self.layers(registry, base, flags)?.resolve()
    }

    /// The layers of a valid configuration: `base` < `--config` < `--game` and `flags` < `--set`. `flags` are pairs of a dotted key
    /// and the typed value, `None` if the flag was not given.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that cannot be read, else as [`Layers::resolve`] and [`Registry::game`].
    pub fn layers(
        &self,
        registry: &Registry,
        base: Base,
        flags: &[(&str, Option<String>)],
    ) -> Result<Layers> {
        let file = self.read_file(registry)?;
        let over = |base: Layers| self.lay_over(base, &file, flags);
        let layers = match base {
            Base::Saved(layers) => over(layers)?,
            Base::BuiltIn => {
                let default = Layers::default().assign("game.name", registry.default_name())?;
                let named = over(default.clone())?.unchecked()?;
                let name = named.game_name();
                match registry.config(name) {
                    Some(text) => {
                        over(Layers::default().text(text, &format!("built-in configuration {name}"))?)?
                    }
                    None => over(default)?,
                }
            }
        };
        // A built-in configuration that `--config` names is not the user's own choice of each of its keys.
        let own_file = file.clone().filter(|(text, origin)| registry.config(origin) != Some(text.as_str()));
        let layers = layers.with_format_of_device(&self.lay_over(Layers::default(), &own_file, flags)?);
        let config = layers.clone().resolve()?;
        registry.game_of(&config).map_err(|e| layers.locate(e))?;
        Ok(layers)
    }

    fn lay_over(
        &self,
        mut layers: Layers,
        file: &Option<(String, String)>,
        flags: &[(&str, Option<String>)],
    ) -> Result<Layers> {
        if let Some((text, origin)) = file {
            layers = layers.text(text, origin)?;
        }
        let game = ("game.name", self.game.clone());
        for (key, value) in std::iter::once(&game).chain(flags) {
            if let Some(value) = value {
                layers = layers.assign(key, value)?;
            }
        }
        self.set.iter().try_fold(layers, |layers, assignment| layers.set(assignment))
    }

    /// The text of `--config` and its name. It is read once, so that it may be a pipe.
    fn read_file(&self, registry: &Registry) -> Result<Option<(String, String)>> {
        let Some(path) = &self.config else { return Ok(None) };
        let origin = path.display().to_string();
        match read_text(path, MAX_BYTES) {
            Ok(text) => Ok(Some((text, origin))),
            Err(e) => match registry.config(&origin) {
                Some(text) => Ok(Some((text.to_string(), origin))),
                // A bare word may be meant as the name of a built-in configuration.
                None if e.kind() == ErrorKind::NotFound
                    && path.extension().is_none()
                    && path.components().count() == 1 =>
                {
                    let names: Vec<&str> = registry.configs().iter().map(|config| config.name).collect();
                    let got = format!("{origin} (not found: {e})");
                    let near = nearest_hint(&origin, names.iter().copied());
                    Err(Error::config(
                        "--config",
                        got,
                        format!("the path of a TOML file, or one of {}{near}", names.join(", ")),
                    ))
                }
                None => Err(Error::io("reading", path, e)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Algorithm;
    use crate::model::NetSpec;
    use crate::net::gpu_train::check_heads;

    #[test]
    fn every_game_has_a_built_in_configuration_that_resolves() {
        let registry = Registry::built_in();
        for name in registry.names() {
            let text = registry.config(name).unwrap_or_else(|| panic!("no configuration {name}"));
            let config = Layers::default().text(text, name).and_then(Layers::resolve).expect(name);
            assert_eq!(config.game_name(), name);
            registry.game_of(&config).map(drop).expect(name);
        }
        for NamedText { name, text } in registry.configs() {
            let resolved = Layers::default().text(text, name).and_then(Layers::resolve);
            match name.ends_with("_gpu") && !cfg!(feature = "cuda") {
                true => {
                    assert!(
                        resolved.expect_err(name).to_string().contains("built without the feature cuda"),
                        "{name}"
                    )
                }
                false => drop(resolved.expect(name)),
            }
        }
    }

    /// As a user names it: over the configuration of its game, whose keys it must not inherit against what its comment says.
    fn named(name: &str) -> Config {
        let args = ConfigArgs { config: Some(name.into()), ..ConfigArgs::default() };
        args.resolve(&Registry::built_in(), Base::BuiltIn, &[]).expect(name)
    }

    #[test]
    fn configurations_with_trees_run_with_workers_and_on_gpus() {
        let registry = Registry::built_in();
        let names = registry.configs().into_iter().map(|config| config.name);
        for name in names.filter(|name| !name.ends_with("_gpu") || cfg!(feature = "cuda")) {
            let config = named(name);
            if config.search.algorithm == Algorithm::Afterstate {
                continue;
            }
            if cfg!(feature = "cuda") {
                let set = vec!["run.device=cuda".to_string()];
                let args = ConfigArgs { config: Some(name.into()), set, ..ConfigArgs::default() };
                args.resolve(&registry, Base::BuiltIn, &[]).expect(name);
            }
            config.check_workers().expect(name);
            let game = registry.game_of(&config).expect(name);
            let spec = NetSpec::with_targets(&config.net, &game.sizes(), &game.targets()).expect(name);
            check_heads(&spec.model().expect(name)).expect(name);
        }
    }

    #[test]
    fn later_layers_win() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.toml");
        let text = "[game]\nname = 'tic_tac_toe'\n[search]\nleaves = 3\nmax_num_considered_actions = 5\nsimulations = 9\n";
        std::fs::write(&path, text).expect("written");
        let args = ConfigArgs {
            game: None,
            config: Some(path),
            set: vec!["search.max_num_considered_actions=6".to_string()],
        };
        let flags = [("search.simulations", Some("11".to_string())), ("run.seed", None)];
        let config = args.resolve(&Registry::built_in(), Base::BuiltIn, &flags).expect("valid");
        let search =
            (config.search.leaves, config.search.max_num_considered_actions, config.search.simulations);
        assert_eq!(search, (3, 6, 11));
        let built_in = Registry::built_in().config("tic_tac_toe").expect("built in");
        let built_in = Layers::default().text(built_in, "t").and_then(Layers::resolve).expect("valid");
        assert_eq!(
            (config.game_name(), &config.net),
            ("tic_tac_toe", &built_in.net),
            "the file names the game"
        );
    }

    #[test]
    fn a_saved_configuration_replaces_the_built_in_one() {
        let base =
            Base::Saved(Layers::default().text("[train]\nbatch = 17", "run/config.toml").expect("TOML"));
        let config = ConfigArgs::default().resolve(&Registry::built_in(), base, &[]).expect("valid");
        assert_eq!(config.train.batch, 17);
        let expected = Layers::default().set("train.batch=17").and_then(Layers::resolve).expect("valid");
        assert_eq!(config, expected);
    }
}
