//! The stones and the moves of a query: texts -> positions.

use super::field::{Defect, defect, is_player};
use crate::game::set_up::PlacedPieces;
use crate::protocol::dialogue::Dialogue;
use crate::protocol::position::Position;
use serde_json::{Map, Value};

/// The field with stones on the board before the first move.
const STONES: &str = "initialStones";

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
        None => Err(cut_off(position).unwrap_or_else(|| play.illegal(name).to_string())),
    }
}

/// Gives the turn to the player called `name`. In Go the other one passes, or a pass is taken back; after the two passes of the end play goes
/// on as if they had not been. In other games it must be that player's turn.
fn give_turn(position: &mut Position, name: &Value) -> Result<(), String> {
    let is_next =
        |position: &Position| position.player().is_some_and(|player| is_player(position, name, player));
    let refused = || Err(not_to_move(name));
    if is_next(position) {
        return Ok(());
    }
    if position.game().name() != "go" {
        // At chance and at the end the move itself is what is wrong, if anything.
        return if position.player().is_none() { Ok(()) } else { refused() };
    }
    if player_called(position, name).is_none() {
        return refused();
    }
    let pass = pass_of(position);
    if position.is_over() {
        *position = position.back(last_passes(position).min(2));
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

/// The position in which a query begins: `start`, in Go with the stones of `initialStones` and the turn of `initialPlayer`, without one of the
/// player of the first move, else of black.
///
/// # Errors
/// The field and its defect.
pub fn first_position(start: Position, fields: &Map<String, Value>) -> Result<Position, Defect> {
    let stones: &[Value] = match fields.get(STONES) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(stones)) => stones.as_slice(),
        Some(_) => return defect(STONES, "expected a list of pairs of a player and a point"),
    };
    if start.game().name() != "go" {
        return match stones {
            [] => Ok(start),
            _ => defect(STONES, "games other than Go begin at their start; give all stones as moves"),
        };
    }
    let player = first_player(&start, fields)?;
    if stones.is_empty() && start.player() == Some(player) {
        return Ok(start);
    }
    let placed = PlacedPieces { cells: cells_with(&start, stones)?, player };
    Position::set_up(start.game(), &placed).or_else(|e| defect(STONES, e.to_string()))
}

/// The player of Go who moves first.
fn first_player(start: &Position, fields: &Map<String, Value>) -> Result<u8, Defect> {
    let of_moves = || Some(("moves", fields.get("moves")?.get(0)?.get(0)?));
    let given = fields.get("initialPlayer").filter(|name| !name.is_null());
    let Some((field, name)) = given.map(|name| ("initialPlayer", name)).or_else(of_moves) else {
        return Ok(0);
    };
    player_called(start, name).map_or_else(|| defect(field, not_to_move(name)), Ok)
}

/// The cells of the empty board of `start` with these stones, as in [`PlacedPieces`].
fn cells_with(start: &Position, stones: &[Value]) -> Result<String, Defect> {
    let mut cells = vec!['.'; usize::from(pass_of(start))];
    for (number, stone) in stones.iter().enumerate() {
        set_stone(start, &mut cells, stone)
            .or_else(|what| defect(STONES, format!("stone {number}: {what}")))?;
    }
    Ok(cells.into_iter().collect())
}

/// Adds one of `initialStones` to `cells`.
fn set_stone(start: &Position, cells: &mut [char], stone: &Value) -> Result<(), String> {
    let Some([name, Value::String(point)]) = stone.as_array().map(Vec::as_slice) else {
        return Err("expected a pair of a player and a point".into());
    };
    let player = player_called(start, name).ok_or_else(|| format!("got {name}, expected B or W"))?;
    let cell = start.play().find(point).and_then(|action| cells.get_mut(usize::from(action)));
    match cell {
        Some(cell) if *cell == '.' => *cell = char::from(b'0' + player),
        Some(_) => return Err(format!("{point} has a stone already")),
        None => return Err(format!("{point} is no point of the board")),
    }
    Ok(())
}

/// The player of Go whom a client calls `name`.
fn player_called(position: &Position, name: &Value) -> Option<u8> {
    (0..2).find(|&player| is_player(position, name, player))
}

fn not_to_move(name: &Value) -> String {
    format!("{name} is not to move")
}

/// The last action of Go.
fn pass_of(position: &Position) -> u16 {
    (position.game().sizes().num_actions - 1) as u16
}

/// The passes after the last move on the board.
fn last_passes(position: &Position) -> usize {
    let pass = pass_of(position);
    position.actions().iter().rev().take_while(|&&action| action == pass).count()
}

/// The sentence where the option `max_plies` has ended a game of Go, and not two passes; None everywhere else.
pub fn cut_off(position: &Position) -> Option<String> {
    let is_cut_off = position.game().name() == "go" && position.is_over() && last_passes(position) < 2;
    let limit = position.game().sizes().max_plies;
    is_cut_off.then(|| {
        format!("the game is cut off after {limit} plies, its max_plies; --set game.max_plies=N allows more")
    })
}
