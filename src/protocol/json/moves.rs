//! The stones and the moves of a query: texts -> positions.

use super::field::{Defect, defect, is_player};
use crate::game::view::{Board, Viewer};
use crate::protocol::dialogue::Dialogue;
use crate::protocol::position::Position;
use serde_json::{Map, Value, json};

/// Plays a move: a name or a number, or a pair of a player and a move, for which [`give_turn`] holds. In chess play goes on after a draw that
/// nobody need claim.
///
/// # Errors
/// The defect in a sentence.
pub fn step(dialogue: &Dialogue, position: &mut Position, text: &Value) -> Result<(), String> {
    if position.is_over()
        && let Some(resumed) = dialogue.resumed(position)
    {
        *position = resumed;
    }
    let text = match text.as_array().map(Vec::as_slice) {
        None => text,
        Some([player, text]) => {
            give_turn(position, player)?;
            text
        }
        Some(_) => return Err("expected a move, or a pair of a player and a move".into()),
    };
    match text {
        Value::String(name) => play(position, name),
        Value::Number(number) => play(position, &number.to_string()),
        _ => Err(format!("got {text}, expected a name or a number")),
    }
}

fn play(position: &mut Position, name: &str) -> Result<(), String> {
    let play = position.play();
    match play.find(name) {
        Some(action) => position.step(action).map_err(|e| e.to_string()),
        None => Err(play.illegal(name).to_string()),
    }
}

/// Gives the turn to the player called `name`. In Go the other one passes, or a pass is taken back; after the two passes of the end play goes
/// on as if they had not been. In other games it must be that player's turn.
fn give_turn(position: &mut Position, name: &Value) -> Result<(), String> {
    let is_next =
        |position: &Position| position.player().is_some_and(|player| is_player(position, name, player));
    let refused = || Err(format!("{name} is not to move"));
    if is_next(position) {
        return Ok(());
    }
    if position.game().name() != "go" {
        // At chance and at the end the move itself is what is wrong, if anything.
        return if position.player().is_none() { Ok(()) } else { refused() };
    }
    if !(0..2).any(|player| is_player(position, name, player)) {
        return refused();
    }
    // The last action of Go.
    let pass = (position.game().sizes().num_actions - 1) as u16;
    if position.is_over() {
        let passes = position.actions().iter().rev().take_while(|&&action| action == pass).count();
        *position = position.back(passes.min(2));
    }
    if is_next(position) || position.is_over() {
        return Ok(());
    }
    if position.actions().last() == Some(&pass) {
        *position = position.back(1);
        return Ok(());
    }
    position.step(pass).map_err(|e| e.to_string())
}

/// Places the stones of `initialStones` in Go, and gives the turn to `initialPlayer`, without one to the player of the first move, else to
/// black. Between the stones of a player the other one passes, as in GTP.
///
/// # Errors
/// The field and its defect.
pub fn set_stones(position: &mut Position, fields: &Map<String, Value>) -> Result<(), Defect> {
    const FIELD: &str = "initialStones";
    let stones = match fields.get(FIELD) {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(stones)) if stones.is_empty() => return Ok(()),
        Some(Value::Array(stones)) if position.game().name() == "go" => stones,
        Some(Value::Array(_)) => {
            return defect(FIELD, "games other than Go begin at their start; give all stones as moves");
        }
        Some(_) => return defect(FIELD, "expected a list of pairs of a player and a point"),
    };
    for (number, stone) in stones.iter().enumerate() {
        place_stone(position, stone).or_else(|what| defect(FIELD, format!("stone {number}: {what}")))?;
    }
    if num_stones(position) != stones.len() {
        return defect(FIELD, "stones without a liberty");
    }
    let black = json!("B");
    let of_moves = fields.get("moves").and_then(|moves| moves.get(0)?.get(0));
    let (field, first) = match (fields.get("initialPlayer"), of_moves) {
        (Some(player), _) => ("initialPlayer", player),
        (None, Some(player)) => ("moves", player),
        (None, None) => ("initialPlayer", &black),
    };
    give_turn(position, first).or_else(|what| defect(field, what))
}

fn place_stone(position: &mut Position, stone: &Value) -> Result<(), String> {
    match stone.as_array().map(Vec::as_slice) {
        Some([player, Value::String(point)]) if !point.trim().eq_ignore_ascii_case("pass") => {
            give_turn(position, player)?;
            play(position, point)
        }
        _ => Err("expected a pair of a player and a point".into()),
    }
}

/// The stones on the board.
fn num_stones(position: &Position) -> usize {
    match position.play().view(Viewer::Public).board {
        Board::Grid(grid) => grid.cells.iter().flatten().count(),
        _ => 0,
    }
}
