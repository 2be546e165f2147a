//! The format of a game's records.

use super::players::Players;
use super::{pgn, sgf};
use crate::batch::{ErasedRules, Playthrough};

/// A format of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Smart Game Format 4, a tree for each game.
    Sgf,
    /// Portable Game Notation.
    Pgn,
}

impl Format {
    /// The format of the game `game`; None if it has none.
    pub fn of(game: &dyn ErasedRules) -> Option<Self> {
        match game.name() {
            "chess" => Some(Self::Pgn),
            name => sgf::number(name).map(|_| Self::Sgf),
        }
    }

    /// A game as text with its last line break.
    pub fn write(self, play: &Playthrough, players: &Players<'_>) -> String {
        match self {
            Self::Sgf => sgf::write(play, players),
            Self::Pgn => pgn::write(play, players),
        }
    }
}
