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
        let expected = "a game with records: go, hex, gomoku and othello (SGF), chess (PGN), backgammon by its usual rules (match text)";
        let formats = Format::of(game.as_ref());
        let is_record = |format: &Format| [Format::Sgf, Format::Pgn, Format::Mat].contains(format);
        let format = formats.into_iter().find(is_record);
        let format = format.ok_or_else(|| Error::config("--record", game.name(), expected))?;
        Ok(Self { path: path.to_path_buf(), format, games: Vec::new() })
    }

    /// Adds a game between the contestants with these `names`.
    pub fn add(&mut self, game: &PlayedGame, names: [&str; 2]) {
        let names = if game.seat == 0 { names } else { [names[1], names[0]] };
        let (names, round) = (names.map(String::from).to_vec(), Some(game.number + 1));
        let players = Players { names, resigned: game.resigned, round };
        self.games.push((game.number, self.format.write_game(&game.play, &players)));
    }

    /// Writes the first `games` of the match, as far as they were added, in their order; nothing where there are none.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Unsupported`] for a game that the format does not have.
    pub fn write(mut self, games: usize) -> Result<()> {
        self.games.retain(|(number, _)| *number < games);
        if self.games.is_empty() {
            return Ok(());
        }
        self.games.sort_by_key(|(number, _)| *number);
        let games: String = self.games.into_iter().map(|(_, text)| text).collect::<Result<_>>()?;
        write_atomic(&self.path, (self.format.head().to_string() + &games).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Playthrough;
    use crate::game::Turn;
    use crate::records;
    use crate::registry::{Registry, any_game};
    use crate::rng::{Key, Purpose};

    /// Games come in any order; the file has one head, and the games of the match in their order with the names of the seats.
    #[test]
    fn games_of_backgammon_are_one_match_text() {
        let game = any_game("backgammon", &toml::Table::new()).expect("registered");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("games.mat");
        let mut records = Records::new(&file, &game).expect("it has records");
        let mut first = None;
        for number in [2, 0, 1] {
            let mut play = Playthrough::new(game.clone());
            while play.turn() != Turn::Over {
                let key = Key::new(number as u64, Purpose::Evaluation).with(play.actions().len() as u64);
                let legal = play.legal();
                play.step(legal[key.stream().below(legal.len())]).expect("legal");
            }
            first = if number == 0 { Some(play.clone()) } else { first };
            records.add(
                &PlayedGame { number, seat: (number % 2) as u8, play, returns: Vec::new(), resigned: None },
                ["own", "other"],
            );
        }
        records.write(2).expect("written");
        let text = std::fs::read_to_string(&file).expect("read");
        let heads: Vec<&str> = text.lines().filter(|line| line.contains("point match")).collect();
        assert_eq!(
            (heads, text.starts_with(" 0 point match\n\n Game 1\n own : 0 ")),
            (vec![" 0 point match"], true)
        );
        let games: Vec<&str> = text.lines().filter(|line| line.starts_with(" Game ")).collect();
        assert_eq!(games, [" Game 1", " Game 2"]);
        assert!(text.contains("\n other : 0 ") && text.matches("Wins ").count() == 2, "{text}");
        let again = records::read(&text, &Registry::built_in()).expect("readable");
        assert_eq!(first.map(|play| play.state().to_vec()).as_deref(), Some(again.state()));
    }
}
