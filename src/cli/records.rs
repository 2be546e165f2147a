//! The games of a match as a file.

use crate::backend::AnyGame;
use crate::error::{Error, Result};
use crate::eval::matches::PlayedGame;
use crate::files::write_atomic;
use crate::game::Turn;
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
    /// Those of [`format_of`].
    pub fn new(path: &Path, game: &Arc<dyn AnyGame>) -> Result<Self> {
        Ok(Self { path: path.to_path_buf(), format: format_of(path, game)?, games: Vec::new() })
    }

    /// Adds a game between the contestants with these `names`.
    pub fn add(&mut self, game: &PlayedGame, names: [&str; 2]) {
        let seats = match game.play.game().sizes().num_players as u8 {
            1 => vec![usize::from(game.seat)],
            players => (0..players).map(|seat| usize::from(seat != game.seat)).collect(),
        };
        let names = seats.into_iter().map(|contestant| names[contestant].to_string()).collect();
        let returns = (game.play.turn() != Turn::Over).then(|| game.returns.clone());
        let players = Players { names, resigned: game.resigned, returns, round: Some(game.number + 1) };
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

/// The format that the ending of `path` names; otherwise the game's own, and vecaz's JSON for games without one.
///
/// # Errors
/// [`Error::Config`] for a format that the game does not have.
fn format_of(path: &Path, game: &Arc<dyn AnyGame>) -> Result<Format> {
    const FORMATS: [Format; 3] = [Format::Sgf, Format::Pgn, Format::Mat];
    let own = Format::of(game.as_ref()).into_iter().find(|format| FORMATS.contains(format));
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    match FORMATS.into_iter().find(|format| format.ending() == ending) {
        Some(named) if own != Some(named) => {
            let further = own.map_or(String::new(), |own| format!(" or .{}", own.ending()));
            let expected =
                format!("a file that ends in .jsonl{further}: {} has no other records", game.name());
            Err(Error::config("--record", path.display(), expected))
        }
        None if ending == "jsonl" => Ok(Format::Vecaz),
        _ => Ok(own.unwrap_or(Format::Vecaz)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Playthrough;
    use crate::records;
    use crate::registry::{Registry, any_game};
    use crate::rng::{Key, Purpose};

    /// Games come in any order; the file has one head, and the games of the match in their order with the names of the seats.
    #[test]
    fn games_of_backgammon_are_one_match_text() {
        let game = any_game("backgammon", &toml::Table::new()).expect("registered");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("games.mat");
        let mut records = Records::new(&file, &game).expect("a format");
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

    #[test]
    fn the_ending_of_the_file_names_the_format() {
        let format = |name: &str, file: &str| {
            let game = any_game(name, &toml::Table::new()).expect("registered");
            format_of(Path::new(file), &game).map_err(|e| e.to_string())
        };
        for (game, file, expected) in [
            ("go", "games.sgf", Format::Sgf),
            ("go", "games", Format::Sgf),
            ("go", "games.txt", Format::Sgf),
            ("go", "games.jsonl", Format::Vecaz),
            ("chess", "games.pgn", Format::Pgn),
            ("blob", "games.JSONL", Format::Vecaz),
            ("connect_four", "games", Format::Vecaz),
        ] {
            assert_eq!(format(game, file), Ok(expected), "{game} {file}");
        }
        for (game, file, rest) in
            [("go", "a.pgn", ".jsonl or .sgf: go"), ("connect_four", "a.SGF", ".jsonl: connect_four")]
        {
            let expected =
                format!("--record: got {file}, expected a file that ends in {rest} has no other records");
            assert_eq!(format(game, file), Err(expected));
        }
    }

    /// A game of the built-in `name` after `actions`, as number `number` of a match.
    fn game_of(name: &str, number: usize, actions: &[u16]) -> PlayedGame {
        let game = any_game(name, &toml::Table::new()).expect("registered");
        let players = game.sizes().num_players;
        let mut play = Playthrough::new(game);
        actions.iter().for_each(|&action| play.step(action).expect("legal"));
        let seat = (number % players.max(2)) as u8;
        PlayedGame { number, seat, play, returns: vec![0.5; players], resigned: None }
    }

    /// The lines of the file of a match between "own" and "other".
    fn lines(name: &str, games: &[PlayedGame]) -> String {
        let game = any_game(name, &toml::Table::new()).expect("registered");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("games");
        let mut records = Records::new(&file, &game).expect("a format");
        games.iter().for_each(|game| records.add(game, ["own", "other"]));
        records.write(10).expect("written");
        std::fs::read_to_string(&file).expect("read")
    }

    /// The first of several games is read again; beside it stand the names of the players and the result that a judge gave it.
    #[test]
    fn games_without_a_format_of_their_own_are_lines_of_json() {
        let text =
            lines("connect_four", &[0, 1].map(|number| game_of("connect_four", number, &[number as u16, 3])));
        let ends: Vec<&str> =
            text.lines().filter_map(|line| line.split_once("\"players\":")).map(|x| x.1).collect();
        let end = |names| format!("[{names}],\"returns\":[0.5,0.5]}}");
        assert_eq!(ends, [end("\"own\",\"other\""), end("\"other\",\"own\"")]);
        assert_eq!(records::read(&text, &Registry::built_in()).expect("readable").actions(), [0, 3]);
        let cut = &text[..text.len() - 5];
        assert!(records::read(cut, &Registry::built_in()).is_err(), "the second game is cut");
    }

    #[test]
    fn sgf_has_the_result_that_a_judge_gave() {
        let won = PlayedGame { returns: vec![1.0, -1.0], ..game_of("othello", 0, &[]) };
        let text = lines("othello", &[won]);
        assert!(text.starts_with("(;FF[4]") && text.contains("RE[B+]"), "{text}");
    }

    #[test]
    fn every_seat_has_the_name_of_its_contestant() {
        for (name, number, players) in [
            ("blob", 2, r#"["other","other","own","other"]"#),
            ("blob", 4, r#"["own","other","other","other"]"#),
            ("tic_tac_toe", 1, r#"["other","own"]"#),
        ] {
            let text = lines(name, &[game_of(name, number, &[])]);
            assert!(text.contains(&format!("\"players\":{players}")), "{text}");
        }
    }
}
