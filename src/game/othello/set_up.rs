//! Positions of Othello that people set up.

use super::{Othello, State};
use crate::error::Result;
use crate::game::Game;
use crate::game::set_up::{SetUp, refused};

/// The position of `set_up`: the four cells of the start are taken, and a player can still move.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the reason.
pub fn set_up(othello: &Othello, set_up: SetUp<'_>) -> Result<State> {
    let cells = set_up.stones(Othello::NAME, (othello.size * othello.size) as usize)?;
    let bits =
        |cells: &Vec<usize>| cells.iter().fold(0, |bits, &cell| bits | 1u64 << othello.bit_of(cell as u32));
    let discs = [bits(&cells[0]), bits(&cells[1])];
    let start = othello.init();
    if (start.discs[0] | start.discs[1]) & !(discs[0] | discs[1]) != 0 {
        return Err(refused(Othello::NAME, "the four cells in the middle are never empty"));
    }
    let (player, waiting) = (usize::from(set_up.player), usize::from(1 - set_up.player));
    let moves = othello.moves(discs[player], discs[waiting]);
    if moves == 0 && othello.ends(discs[player], discs[waiting], 0) {
        return Err(refused(Othello::NAME, "neither player can move, so the game is over"));
    }
    Ok(State { discs, moves, to_play: set_up.player.into(), passed: 0, over: 0 })
}
