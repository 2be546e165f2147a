//! The configuration of a command, from layers: a base < `--config` < flags with keys of their own < `--set`.

use crate::batch::any_game;
use crate::config::{Config, DEFAULT_GAME, Layers, MAX_BYTES};
use crate::error::{Error, Result};
use crate::files::read_text;
use clap::Args;
use std::path::PathBuf;

/// The files under `configs/`, which the build lists: name (as `--game` or `--config` gives it) and text.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/configs.rs"));

/// The text of the built-in configuration called `name`: a game, or `quick`.
pub fn built_in_config(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The built-in configurations: name, game, and the first sentence of the comment at the top.
///
/// # Errors
/// Those of [`Layers::text`].
pub fn built_in_configs() -> Result<Vec<(&'static str, String, String)>> {
    let describe = |&(name, text): &(&'static str, &'static str)| {
        let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        let head = head.join(" ");
        let sentence = head.split_once(". ").map_or(head.as_str(), |(first, _)| first).trim_end_matches('.');
        // The text is not resolved: a build without CUDA refuses configurations for GPUs.
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| Error::ConfigText {
            origin: name.into(),
            what: e.message().into(),
        })?;
        let game = table.get("game").and_then(|game| game.get("name")).and_then(toml::Value::as_str);
        Ok((name, game.unwrap_or(DEFAULT_GAME).to_string(), sentence.to_string()))
    };
    BUILT_IN.iter().map(describe).collect()
}

/// The flags that choose a configuration, shared by the subcommands that need one.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArgs {
    /// The game, [`DEFAULT_GAME`] without the flag.
    #[arg(long, value_name = "G")]
    #[arg(help = format!("The game; its built-in configuration is the base of all other settings [default: {DEFAULT_GAME}]"))]
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
    pub fn resolve(&self, base: Base, flags: &[(&str, Option<String>)]) -> Result<Config> {
        self.layers(base, flags)?.resolve()
    }

    /// The layers of a valid configuration: `base` < `--config` < `--game` and `flags` < `--set`. `flags` are pairs of a dotted key
    /// and the typed value, `None` if the flag was not given.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that cannot be read, else as [`Layers::resolve`] and [`any_game`].
    pub fn layers(&self, base: Base, flags: &[(&str, Option<String>)]) -> Result<Layers> {
        let file = self.read_file()?;
        let over = |base: Layers| self.lay_over(base, &file, flags);
        let layers = match base {
            Base::Saved(layers) => over(layers)?,
            Base::BuiltIn => {
                let named = over(Layers::default())?.resolve()?;
                let name = named.game_name();
                match built_in_config(name) {
                    Some(text) => {
                        over(Layers::default().text(text, &format!("built-in configuration {name}"))?)?
                    }
                    None => over(Layers::default())?,
                }
            }
        };
        let config = layers.clone().resolve()?;
        any_game(config.game_name(), &config.game_options()).map_err(|e| layers.locate(e))?;
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
    fn read_file(&self) -> Result<Option<(String, String)>> {
        let Some(path) = &self.config else { return Ok(None) };
        let origin = path.display().to_string();
        match read_text(path, MAX_BYTES) {
            Ok(text) => Ok(Some((text, origin))),
            Err(e) => match built_in_config(&origin) {
                Some(text) => Ok(Some((text.to_string(), origin))),
                None => Err(Error::io("reading", path, e)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game;

    #[test]
    fn every_game_has_a_built_in_configuration_that_resolves() {
        for &name in game::NAMES {
            let text = built_in_config(name).unwrap_or_else(|| panic!("configs/{name}.toml is not built in"));
            let config = Layers::default().text(text, name).and_then(Layers::resolve).expect(name);
            assert_eq!(config.game_name(), name);
            any_game(name, &config.game_options()).map(drop).expect(name);
        }
        for (name, text) in BUILT_IN {
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
        let config = args.resolve(Base::BuiltIn, &flags).expect("valid");
        let search =
            (config.search.leaves, config.search.max_num_considered_actions, config.search.simulations);
        assert_eq!(search, (3, 6, 11));
        let built_in = built_in_config("tic_tac_toe").expect("built in");
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
        let config = ConfigArgs::default().resolve(base, &[]).expect("valid");
        assert_eq!(config.train.batch, 17);
        let expected = Layers::default().set("train.batch=17").and_then(Layers::resolve).expect("valid");
        assert_eq!(config, expected);
    }
}
