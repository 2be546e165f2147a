//! Formats of games, and which game has which.

use super::players::Players;
use super::{json, match_text, pgn, sgf};
use crate::batch::{ErasedRules, Playthrough};
use crate::error::{Error, Result};
use crate::registry::Registry;

/// A format of games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// vecaz's own JSON.
    Vecaz,
    /// Smart Game Format 4.
    Sgf,
    /// Portable Game Notation.
    Pgn,
    /// The position in Forsyth-Edwards Notation, without the game.
    Fen,
    /// The text of a backgammon match.
    Mat,
}

impl Format {
    /// All formats.
    const ALL: [Self; 5] = [Self::Vecaz, Self::Sgf, Self::Pgn, Self::Fen, Self::Mat];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vecaz => "vecaz",
            Self::Sgf => "sgf",
            Self::Pgn => "pgn",
            Self::Fen => "fen",
            Self::Mat => "mat",
        }
    }

    /// The usual ending of a file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Vecaz => "json",
            other => other.name(),
        }
    }

    /// The formats of `game`.
    pub fn of(game: &dyn ErasedRules) -> Vec<Self> {
        let has = |format: &Self| match format {
            Self::Vecaz => true,
            Self::Sgf => sgf::has_format(game),
            Self::Pgn | Self::Fen => pgn::has_format(game),
            Self::Mat => match_text::has_format(game),
        };
        Self::ALL.into_iter().filter(has).collect()
    }

    /// The format called `name`, if `game` has it.
    ///
    /// # Errors
    /// [`Error::Config`] with the formats of the game.
    pub fn named(name: &str, game: &dyn ErasedRules) -> Result<Self> {
        let all = Self::of(game);
        let names = || all.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        let found = all.iter().copied().find(|format| format.name() == name);
        found.ok_or_else(|| {
            Error::unsupported(format!("the format {name:?}"), format!("{} has {}", game.name(), names()))
        })
    }

    /// What a file of games in this format begins with.
    pub fn head(self) -> &'static str {
        match self {
            Self::Mat => match_text::HEAD,
            Self::Vecaz | Self::Sgf | Self::Pgn | Self::Fen => "",
        }
    }

    /// The game as a file in this format, with the names of the `players`, none if they have no names.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what the format does not have.
    pub fn write(self, play: &Playthrough, players: &Players) -> Result<String> {
        Ok(self.head().to_string() + &self.write_game(play, players)?)
    }

    /// The game as it stands in a file after [`Format::head`] and other games.
    ///
    /// # Errors
    /// As [`Format::write`].
    pub fn write_game(self, play: &Playthrough, players: &Players) -> Result<String> {
        match self {
            Self::Vecaz => json::write(play, players),
            Self::Sgf => sgf::write(play, players),
            Self::Pgn => Ok(pgn::write(play, players)),
            Self::Fen => pgn::fen(play),
            Self::Mat => match_text::write(play, players),
        }
    }
}

/// Reads a text in any of the formats, which its first characters tell.
///
/// # Errors
/// [`Error::Unsupported`] for a text in none of them, [`Error::IllegalAction`] for a move against the rules, and those of the game's options.
pub fn read(text: &str, registry: &Registry) -> Result<Playthrough> {
    let text = text.trim_start_matches('\u{feff}').trim();
    match text.chars().next() {
        Some('{') => json::read(text, registry),
        Some('(') => sgf::read(text, registry),
        Some('[') => pgn::read(text, registry),
        _ if match_text::is_match(text) => match_text::read(text, registry),
        _ if pgn::is_fen(text) => pgn::read_fen(text, registry),
        _ if pgn::is_moves(text) => pgn::read(text, registry),
        _ => Err(Error::unsupported(
            "reading this file",
            "it is none of: a game of vecaz in JSON, SGF, PGN, FEN, a backgammon match (.mat)",
        )),
    }
}
