//! The fields `allowMoves` and `avoidMoves` of a query.

use super::field::{Defect, defect, is_player};
use crate::protocol::position::Position;
use crate::protocol::restriction::{Restriction, Restricts, moves_left};
use serde_json::{Map, Value};

/// The fields, and what each says of its moves.
const FIELDS: [(&str, Restricts); 2] = [("allowMoves", Restricts::Others), ("avoidMoves", Restricts::These)];

/// The restrictions of a query's fields: lists of `{"player", "moves", "untilDepth"}`. The depth is checked, and means the position alone.
///
/// # Errors
/// The field and its defect.
pub fn read(start: &Position, fields: &Map<String, Value>) -> Result<Vec<Restriction>, Defect> {
    let mut all = Vec::new();
    for (field, restricts) in FIELDS {
        let lists = match fields.get(field) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(lists)) => lists,
            Some(_) => return defect(field, "expected a list of objects with player, moves and untilDepth"),
        };
        for list in lists {
            all.push(restriction(start, (field, restricts), list)?);
        }
    }
    Ok(all)
}

fn restriction(
    start: &Position,
    (field, restricts): (&'static str, Restricts),
    list: &Value,
) -> Result<Restriction, Defect> {
    let players = start.game().sizes().num_players as u8;
    let name = &list["player"];
    let Some(player) = (0..players).find(|&player| is_player(start, name, player)) else {
        return defect(field, format!("player: got {name}, expected a player of the game"));
    };
    let Some(moves) = list["moves"].as_array() else {
        return defect(field, "moves: expected a list of moves");
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    if list["untilDepth"].as_u64().is_none_or(|depth| depth == 0) {
        return defect(field, "untilDepth: expected a whole number, 1 or more");
    }
    Ok(Restriction { restricts, player, moves: moves.iter().map(text).collect() })
}

/// The moves of `position` that are searched; empty for all.
///
/// # Errors
/// The field and the sentence where no move is left.
pub fn moves(position: &Position, turn: usize, restrictions: &[Restriction]) -> Result<Vec<u16>, Defect> {
    let find = |name: &str| position.play().find(name);
    moves_left(position, restrictions, find)
        .or_else(|what| defect("allowMoves", format!("turn {turn}: {what}")))
}
