//! The games of a match as a file.

use crate::backend::AnyGame;
use crate::error::{Error, Result};
use crate::eval::matches::PlayedGame;
use crate::files::write_atomic;
use crate::records::{Format, Players};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The games so far, each as text with its number.
pub struct Records {
    path: PathBuf,
    format: Format,
    games: Vec<(usize, Result<String>)>,
}

impl Records {
    /// No games of `game` yet, for the file `path`.
    ///
    /// # Errors
    /// [`Error::Config`] for a game that has no records.
    pub fn new(path: &Path, game: &Arc<dyn AnyGame>) -> Result<Self> {
        let expected = "a game with records: go, hex, gomoku and othello (SGF), chess (PGN)";
        let formats = Format::of(game.as_ref());
        let format = formats.into_iter().find(|format| [Format::Sgf, Format::Pgn].contains(format));
        let format = format.ok_or_else(|| Error::config("--record", game.name(), expected))?;
        Ok(Self { path: path.to_path_buf(), format, games: Vec::new() })
    }

    /// Adds a game between the contestants with these `names`.
    pub fn add(&mut self, game: &PlayedGame, names: [&str; 2]) {
        let names = if game.seat == 0 { names } else { [names[1], names[0]] };
        let (names, round) = (names.map(String::from).to_vec(), Some(game.number + 1));
        let players = Players { names, resigned: game.resigned, round };
        self.games.push((game.number, self.format.write(&game.play, &players)));
    }

    /// Writes the first `games` of the match, as far as they were added, in their order.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Unsupported`] for a game that the format does not have.
    pub fn write(mut self, games: usize) -> Result<()> {
        self.games.retain(|(number, _)| *number < games);
        self.games.sort_by_key(|(number, _)| *number);
        let text: String = self.games.into_iter().map(|(_, text)| text).collect::<Result<_>>()?;
        write_atomic(&self.path, text.as_bytes())
    }
}
