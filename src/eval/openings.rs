//! Openings of a match from a file: one a line, as actions by name or number, as a line of a file of positions, or as the FEN of a chess
//! position.

use crate::backend::AnyGame;
use crate::batch::{Playthrough, play_list};
use crate::error::{Error, Result};
use crate::files::read_text;
use crate::game::Turn;
use crate::registry::Registry;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a file of openings, in bytes.
const MAX_BYTES: u64 = 1 << 26;
/// The key of a game that begins in a position of this notation.
const FEN: &str = "fen";
/// The fields of an EPD line before its operations.
const EPD_FIELDS: usize = 4;

/// A line of a file of positions; its other fields are ignored.
#[derive(Deserialize)]
struct PositionLine {
    actions: Vec<u16>,
}

/// Reads the openings of `game` in the file at `path`. Empty lines and those that begin with `#` are skipped.
///
/// # Errors
/// [`Error::Io`]; [`Error::Format`] with the line's number for what is no opening of this game or ends it, and for a file without any.
pub fn read(path: &Path, game: &Arc<dyn AnyGame>, registry: &Registry) -> Result<Vec<Playthrough>> {
    let text = read_text(path, MAX_BYTES).map_err(|e| Error::io("reading", path, e))?;
    let lines =
        text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let opening = |(line, number): (&str, usize)| {
        parse(line, game, registry).map_err(|what| Error::format(path, format!("line {number}: {what}")))
    };
    let openings = lines.map(opening).collect::<Result<Vec<_>>>()?;
    match openings.is_empty() {
        true => Err(Error::format(path, "has no openings, expected at least one line")),
        false => Ok(openings),
    }
}

fn parse(
    line: &str,
    game: &Arc<dyn AnyGame>,
    registry: &Registry,
) -> std::result::Result<Playthrough, String> {
    let reached = played(line, game, registry).map_err(|e| e.to_string())?;
    match reached.turn() {
        Turn::Over => Err("the game is over after these actions".into()),
        Turn::Player(_) | Turn::Chance => Ok(reached),
    }
}

fn played(line: &str, game: &Arc<dyn AnyGame>, registry: &Registry) -> Result<Playthrough> {
    let has_fen = game.keys().iter().any(|key| key.name == FEN);
    if has_fen && is_fen(line) {
        let mut options = game.options();
        options.insert(FEN.into(), fen_of(line).into());
        return Ok(Playthrough::new(registry.game(game.name(), &options)?));
    }
    let mut play = Playthrough::new(game.clone());
    match line.starts_with('{') {
        true => {
            let position: PositionLine = serde_json::from_str(line)
                .map_err(|e| Error::unsupported("expected {\"actions\":[...]}", e.to_string()))?;
            position.actions.into_iter().try_for_each(|action| play.step(action))?;
        }
        false => play_list(&mut play, line, &mut |_, _, _| Ok(()))?,
    }
    Ok(play)
}

/// True for a line that begins with the eight ranks of a FEN.
fn is_fen(line: &str) -> bool {
    line.split_whitespace().next().is_some_and(|board| board.split('/').count() == 8)
}

/// The FEN of a line. Of an EPD line, whose operations end with semicolons, it has the first four fields.
fn fen_of(line: &str) -> String {
    let fields = line.split_whitespace();
    let fields: Vec<&str> =
        if line.contains(';') { fields.take(EPD_FIELDS).collect() } else { fields.collect() };
    fields.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    fn read_lines(name: &str, text: &str) -> Result<Vec<Playthrough>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("openings.txt");
        std::fs::write(&path, text).expect("written");
        read(&path, &any_game(name, &toml::Table::new()).expect("registered"), &Registry::built_in())
    }

    #[test]
    fn lines_are_actions_by_name_or_number_positions_or_fens() {
        let openings = read_lines("tic_tac_toe", "# two\n\nb2, a1\n4 1\r\n{\"actions\":[8],\"scores\":[]}\n");
        let actions: Vec<Vec<u16>> =
            openings.expect("valid").iter().map(|play| play.actions().to_vec()).collect();
        assert_eq!(actions, [vec![4, 0], vec![4, 1], vec![8]]);
        let fen = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
        let epd = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - id \"king's pawn\";";
        let openings = read_lines("chess", &format!("e4 e5 Nf3\n{fen}\n{epd}\n")).expect("valid");
        assert_eq!(openings[0].names(), ["e2e4", "e7e5", "g1f3"]);
        for opening in &openings[1..] {
            assert_eq!((opening.turn(), opening.actions().len()), (Turn::Player(1), 0));
            assert_eq!(opening.game().notation(opening.state()).expect("a FEN").1, fen);
        }
    }

    #[test]
    fn what_is_no_opening_of_the_game_is_refused_with_its_line() {
        for (game, text, part) in [
            ("tic_tac_toe", "", "has no openings, expected at least one line"),
            ("tic_tac_toe", "# only this\n\n", "has no openings"),
            ("tic_tac_toe", "b2\ne2e4\n", "line 2: ply 0: action e2e4 is not legal here"),
            ("tic_tac_toe", "b2 b2", "line 1: ply 1: action b2 is not legal here"),
            ("tic_tac_toe", "0,3,1,4,2", "line 1: the game is over after these actions"),
            ("tic_tac_toe", "{\"moves\":[1]}", "line 1: expected {\"actions\":[...]}: "),
            (
                "tic_tac_toe",
                "8/8/8/8/8/8/8/8 w - - 0 1",
                "line 1: ply 0: action 8/8/8/8/8/8/8/8 is not legal",
            ),
            ("chess", "8/8/8/8/8/8/8/8 w - - 0 1", "line 1: config key game.fen: got 8/8/8/8/8/8/8/8 w"),
            ("chess", "3 3 3", "line 1: ply 0: action 3 is not legal"),
        ] {
            let error = read_lines(game, text).map(|_| ()).expect_err(text).to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
