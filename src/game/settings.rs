//! A game's settings: read from its options table, and written.

use crate::config::keys::{self, Section};
use crate::config::nearest;
use crate::error::Result;

/// Reads a game's settings from its options table and checks their values.
///
/// # Errors
/// [`crate::Error::ConfigKey`] with the nearest key or all keys of the game; [`crate::Error::Config`] with the key that has a wrong value;
/// [`crate::Error::ConfigText`] for errors without a key.
pub fn parse_options<T: Section>(game: &str, options: &toml::Table) -> Result<T> {
    keys::read("game", options.clone(), |typed| {
        let known: Vec<String> = T::default().keys().iter().map(|key| format!("game.{}", key.name)).collect();
        match nearest(typed, known.iter().map(String::as_str)) {
            Some(nearest) => format!("the nearest is {nearest}"),
            None if known.is_empty() => format!("{game} has no settings"),
            None => format!("{game} has {}", known.join(", ")),
        }
    })
}

/// Implements [`Game::from_options`](super::Game::from_options), [`Game::options`](super::Game::options) and
/// [`Game::keys`](super::Game::keys) of a game whose settings are defined by `section!`. The argument,
/// where there is one, checks them as a whole: a function `&Self -> Result<()>`.
#[macro_export]
macro_rules! options_by_section {
    () => {
        $crate::options_by_section!(|_| Ok(()));
    };
    ($check:expr) => {
        fn from_options(options: &toml::Table) -> $crate::Result<Self> {
            let check: fn(&Self) -> $crate::Result<()> = $check;
            let game: Self = $crate::game::parse_options(Self::NAME, options)?;
            check(&game).map(|()| game)
        }

        fn options(&self) -> toml::Table {
            $crate::game::to_options(self)
        }

        fn keys(&self) -> Vec<$crate::config::KeyInfo> {
            $crate::config::keys::Section::keys(self)
        }
    };
}
pub use options_by_section;

/// A game's settings as an options table.
pub fn to_options<T: serde::Serialize>(settings: &T) -> toml::Table {
    toml::Table::try_from(settings).unwrap_or_default()
}
