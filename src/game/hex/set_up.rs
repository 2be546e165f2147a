//! Positions of Hex that people set up.

use super::{Hex, State};
use crate::error::Result;
use crate::game::board::Cells;
use crate::game::set_up::{SetUp, refused};
use crate::game::{Game, board};

/// The position of `set_up`, in which nobody has connected. Where the swap may have been played, the second player may have one
/// stone more.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the reason.
pub fn set_up(hex: &Hex, set_up: SetUp<'_>) -> Result<State> {
    let stones = set_up.stones(Hex::NAME, (hex.size * hex.size) as usize)?;
    let counts = [stones[0].len(), stones[1].len()];
    // After a swap the counts differ: the second player has one stone more when the first is to move, and as many when the second is.
    let is_swapped = hex.swap && {
        let mover = usize::from(set_up.player);
        counts[1 - mover] == counts[mover] + usize::from(mover == 0) && counts[1] > 0
    };
    if !is_swapped {
        set_up.check_turn(Hex::NAME, counts)?;
    }
    let plies = (counts[0] + counts[1] + usize::from(is_swapped)) as u32;
    let mut state = State { plies, to_play: set_up.player.into(), ..hex.init() };
    for (player, cells) in stones.iter().enumerate() {
        cells.iter().for_each(|&cell| state.stones[player].insert(cell));
    }
    for player in 0..2 {
        let own: Cells = state.stones[player];
        for cell in own.iter().filter(|&cell| hex.depth(cell as u32, player) == 0) {
            if hex.link(&own, &mut state.linked, player, cell as u32) {
                let (from, name) = (board::cell_name(cell as u32, hex.size), ["X", "O"][player]);
                return Err(refused(
                    Hex::NAME,
                    format!("{name} has connected its borders already, from {from}"),
                ));
            }
        }
    }
    Ok(state)
}
