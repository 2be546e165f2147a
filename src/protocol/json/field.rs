//! The defect of a field of a query, and players by name.

use crate::protocol::position::Position;
use serde_json::Value;

/// The defect of a field.
pub type Defect = (&'static str, String);

/// A refusal of `field`.
///
/// # Errors
/// Always, for `?`.
pub fn defect<T>(field: &'static str, what: impl Into<String>) -> Result<T, Defect> {
    Err((field, what.into()))
}

/// The text by which a client may name a player: B and W in games with black and white pieces, otherwise the number.
pub fn player_name(position: &Position, player: u8) -> String {
    let black_first = match position.game().name() {
        "go" | "gomoku" | "othello" => true,
        "chess" => false,
        _ => return player.to_string(),
    };
    if black_first == (player == 0) { "B".into() } else { "W".into() }
}

/// The player whom a client calls `name`, B or W: the first and the second in games without such names.
pub fn player_of(position: &Position, name: &str) -> u8 {
    (0..2).find(|&player| player_name(position, player) == name).unwrap_or(u8::from(name == "W"))
}

/// True if `name` is one of the player's.
pub fn is_player(position: &Position, name: &Value, player: u8) -> bool {
    match name {
        Value::String(name) => {
            name.eq_ignore_ascii_case(&player_name(position, player)) || *name == player.to_string()
        }
        _ => name.as_u64() == Some(player.into()),
    }
}
