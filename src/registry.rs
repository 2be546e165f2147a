//! The games of a program: a value that the caller makes. Built-in and other games are entries of one list.
//!
//! A game's type is erased once, here; what depends on the type afterwards (its rows on the CPU, its rollout player) comes from the
//! erased game itself.
//!
//! ```
//! use vecaz::registry::Registry;
//!
//! let games = Registry::built_in();
//! let hex = games.game("hex", &toml::toml! { size = 7 })?;
//! assert_eq!(hex.sizes().num_actions, 49);
//! # Ok::<(), vecaz::Error>(())
//! ```

pub use crate::backend::AnyGame;
use crate::batch::ErasedGame;
use crate::config::{Config, DEFAULT_GAME, nearest_hint};
use crate::contract::{self, BrokenLaw};
use crate::error::{Error, Result};
use crate::game::{Game, NamedText, for_each_built_in};
use rayon::prelude::*;
use std::sync::Arc;

/// A game of a registry.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    configs: &'static [NamedText],
    make: fn(&toml::Table) -> Result<Arc<dyn AnyGame>>,
    check: fn() -> std::result::Result<(), Box<BrokenLaw>>,
}

impl Entry {
    fn of<G: Game>() -> Self {
        Self {
            name: G::NAME,
            configs: G::CONFIGS,
            make: |options| Ok(erase(G::from_options(options)?)),
            check: contract::check::<G>,
        }
    }
}

/// The games that a program knows, by name.
#[derive(Clone)]
pub struct Registry {
    entries: Vec<Entry>,
    default: &'static str,
}

impl Default for Registry {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Registry {
    /// The ten built-in games.
    pub fn built_in() -> Self {
        macro_rules! entries {
            ($($game:ty),+ $(,)?) => { vec![$(Entry::of::<$game>()),+] };
        }
        Self { entries: for_each_built_in!(entries), default: DEFAULT_GAME }
    }

    /// The same with the game `G`, which becomes the game of command lines that name none.
    ///
    /// # Errors
    /// [`Error::Config`] if the name has other characters than letters, digits, `_` and `-`, if a game or configuration has it already, or
    /// if `G` has no configuration of its own name where it has any.
    pub fn with<G: Game>(mut self) -> Result<Self> {
        let new = Entry::of::<G>();
        let wrong = |found: &str, expected: &str| {
            Err(Error::config(format!("a game called {}", G::NAME), found, expected))
        };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if new.name.is_empty() || !new.name.chars().all(is_of_name) {
            let found = format!("{:?}", new.name);
            return Err(Error::config("the name of a game", found, "letters, digits, _ and -"));
        }
        if self.names().contains(&new.name) {
            return wrong("another game of this name", "one game of each name");
        }
        if self.config(new.name).is_some() {
            return wrong("a configuration of this name", "a name that no configuration has");
        }
        if !new.configs.is_empty() && new.configs[0].name != new.name {
            return wrong(new.configs[0].name, "a first configuration of the game's name");
        }
        let is_taken = |name| self.config(name).is_some() || self.names().contains(&name);
        if let Some(config) = new.configs.iter().find(|config| is_taken(config.name)) {
            return wrong(config.name, "configurations whose names no other game has");
        }
        self.entries.push(new);
        Ok(Self { default: new.name, ..self })
    }

    /// The same with the game called `name` as that of command lines that name none.
    ///
    /// # Errors
    /// [`Error::UnknownGame`] with the names of all games.
    pub fn with_default(self, name: &str) -> Result<Self> {
        match self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.name) {
            Some(default) => Ok(Self { default, ..self }),
            None => Err(self.unknown(name)),
        }
    }

    /// The names of all games, in the order in which they were added.
    pub fn names(&self) -> Vec<&'static str> {
        self.entries.iter().map(|entry| entry.name).collect()
    }

    /// The game of command lines that name none: that of [`Registry::with_default`] or the one added last, [`DEFAULT_GAME`] if none was added.
    pub fn default_name(&self) -> &'static str {
        self.default
    }

    /// The game called `name` with its `options`.
    ///
    /// # Errors
    /// [`Error::UnknownGame`] with the names of all games; those of [`Game::from_options`].
    pub fn game(&self, name: &str, options: &toml::Table) -> Result<Arc<dyn AnyGame>> {
        match self.entries.iter().find(|entry| entry.name == name) {
            Some(entry) => (entry.make)(options),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let known = format!(
            "{}{}; a program made by `vecaz new` has its own as well, and opens their runs",
            self.names().join(", "),
            nearest_hint(name, self.names())
        );
        Error::UnknownGame { name: name.to_string(), origin: None, known }
    }

    /// The game of a configuration.
    ///
    /// # Errors
    /// Those of [`Registry::game`].
    pub fn game_of(&self, config: &Config) -> Result<Arc<dyn AnyGame>> {
        self.game(config.game_name(), &config.game_options())
    }

    /// Checks that every game keeps the laws of the contract, with all its variants; games are checked in parallel.
    ///
    /// # Errors
    /// A law that does not hold.
    pub fn check_contracts(&self) -> std::result::Result<(), Box<BrokenLaw>> {
        self.entries.par_iter().try_for_each(|entry| (entry.check)())
    }

    /// The built-in configurations of all games, sorted by name.
    pub fn configs(&self) -> Vec<NamedText> {
        let mut all: Vec<NamedText> = self.entries.iter().flat_map(|entry| entry.configs).copied().collect();
        all.sort_by_key(|config| config.name);
        all
    }

    /// The text of the built-in configuration called `name`: a game, or another such as `quick`.
    pub fn config(&self, name: &str) -> Option<&'static str> {
        let mut all = self.entries.iter().flat_map(|entry| entry.configs);
        all.find(|config| config.name == name).map(|config| config.text)
    }
}

/// `game` with its type erased, whether a registry has it or not.
pub fn erase<G: Game>(game: G) -> Arc<dyn AnyGame> {
    Arc::new(ErasedGame::new(game))
}

/// The built-in game called `name` with its `options`.
///
/// # Errors
/// Those of [`Registry::game`].
pub fn any_game(name: &str, options: &toml::Table) -> Result<Arc<dyn AnyGame>> {
    Registry::built_in().game(name, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::hex::Hex;
    use std::path::Path;

    #[test]
    fn every_file_of_configs_belongs_to_one_game() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("configs/")
            .map(|entry| entry.expect("an entry").path())
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        files.sort();
        let names: Vec<&str> = Registry::built_in().configs().iter().map(|config| config.name).collect();
        assert_eq!(names, files);
    }

    #[test]
    fn two_games_of_one_name_are_refused() {
        let error = Registry::built_in().with::<Hex>().err().expect("refused").to_string();
        assert!(error.contains("hex") && error.contains("another game of this name"), "{error}");
    }

    #[test]
    fn the_default_game_is_the_one_that_is_set() {
        let games = Registry::built_in().with_default("hex").expect("known");
        assert_eq!(games.default_name(), "hex");
        assert!(games.with_default("shogi").is_err());
    }

    #[test]
    fn an_unknown_game_is_refused_with_all_names() {
        let error = any_game("shogi", &toml::Table::new()).err().expect("refused").to_string();
        assert!(error.contains("shogi") && error.contains("tic_tac_toe, connect_four"), "{error}");
    }
}
