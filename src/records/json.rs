//! vecaz's own format of a game: one object of JSON. Several games are a line each.

use super::players::Players;
use crate::batch::Playthrough;
use crate::error::{Error, Result};
use crate::game::set_up::PlacedPieces;
use crate::game::{Turn, without_minus_zero};
use crate::registry::Registry;
use serde::{Deserialize, Serialize};

/// What the field `format` says.
const FORMAT: &str = "vecaz game";
/// The version of the format.
const VERSION: u32 = 1;

/// The game as one object of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct GameFile {
    format: String,
    version: u32,
    game: String,
    #[serde(default)]
    options: toml::Table,
    /// The position before the first action, if it was set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    placed: Option<PlacedPieces>,
    actions: Vec<u16>,
    /// The names of the actions, for people; not read.
    #[serde(default)]
    names: Vec<String>,
    /// The names of the players; not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    players: Vec<String>,
    /// The player who resigned; not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resigned: Option<u8>,
    /// The result, also of a game that was resigned, or that an exact solver has ended; not read.
    #[serde(default)]
    returns: Option<Vec<f32>>,
}

/// The game as a line.
///
/// # Errors
/// [`Error::Unsupported`] if it cannot be written as JSON.
pub fn write(play: &Playthrough, players: &Players) -> Result<String> {
    let game = play.game();
    let by_rules = || (play.turn() == Turn::Over).then(|| game.returns(play.state()));
    let returns = players.returns.clone().or_else(by_rules);
    let file = GameFile {
        format: FORMAT.into(),
        version: VERSION,
        game: game.name().to_string(),
        options: game.options(),
        placed: play.placed(),
        actions: play.actions().to_vec(),
        names: play.names(),
        players: players.names.clone(),
        resigned: players.resigned,
        returns: returns.map(without_minus_zero),
    };
    let text = serde_json::to_string(&file);
    text.map(|text| text + "\n").map_err(|e| Error::unsupported("writing a game as JSON", e.to_string()))
}

/// Reads the first game of a file.
///
/// # Errors
/// [`Error::Unsupported`] for any other text; [`Error::UnknownGame`], wrong options, [`Error::IllegalAction`].
pub fn read(text: &str, registry: &Registry) -> Result<Playthrough> {
    const WHAT: &str = "reading this file as a game of vecaz";
    let games: std::result::Result<Vec<GameFile>, _> =
        serde_json::Deserializer::from_str(text).into_iter().collect();
    let games = games.map_err(|e| Error::unsupported(WHAT, e.to_string()))?;
    let file = games.into_iter().next().ok_or_else(|| Error::unsupported(WHAT, "it is empty"))?;
    if (file.format.as_str(), file.version) != (FORMAT, VERSION) {
        let found = format!("{:?} version {}", file.format, file.version);
        return Err(Error::unsupported(
            WHAT,
            format!("it is {found}, expected {FORMAT:?} version {VERSION}"),
        ));
    }
    let game = registry.game(&file.game, &file.options)?;
    let mut play = match &file.placed {
        Some(placed) => Playthrough::set_up(game, placed)?,
        None => Playthrough::new(game),
    };
    file.actions.into_iter().try_for_each(|action| play.step(action))?;
    Ok(play)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_game_is_read_as_written() {
        let registry = Registry::built_in();
        let hex = registry.game("hex", &toml::toml! { size = 3 }).expect("valid");
        let mut play = Playthrough::new(hex);
        ["b2", "a1", "c3"].iter().for_each(|name| play.step_text(name).expect("legal"));
        let again = read(&write(&play, &Players::default()).expect("JSON"), &registry).expect("legal");
        assert_eq!((again.actions(), again.state()), (play.actions(), play.state()));
        assert_eq!(again.game().options(), play.game().options());
    }

    #[test]
    fn a_position_that_was_set_up_is_read_as_written() {
        let registry = Registry::built_in();
        let go = registry.game("go", &toml::toml! { size = 5 }).expect("valid");
        let placed = PlacedPieces { cells: format!("0.1{}", ".".repeat(22)), player: 1 };
        let mut play = Playthrough::set_up(go, &placed).expect("a position");
        ["C3", "D4"].iter().for_each(|name| play.step_text(name).expect("legal"));
        let text = write(&play, &Players::default()).expect("JSON");
        let again = read(&text, &registry).expect("legal");
        assert_eq!(
            (again.actions(), again.state(), again.placed()),
            (play.actions(), play.state(), Some(placed))
        );
        let error = read(&text.replace("0.1", "0x1"), &registry).err().expect("refused").to_string();
        assert!(error.contains("piece 33"), "{error}");
    }

    #[test]
    fn other_texts_are_refused() {
        let valid = r#"{"format":"vecaz game","version":1,"game":"tic_tac_toe","actions":[4,0]}"#;
        assert!(read(valid, &Registry::built_in()).is_ok());
        for (from, to) in
            [("vecaz game", "other"), (":1", ":2"), ("[4,0]", "[4,4]"), ("tic_tac_toe", "shogi"), ("{", "[")]
        {
            let text = valid.replacen(from, to, 1);
            assert!(read(&text, &Registry::built_in()).is_err(), "{text}");
        }
    }
}
