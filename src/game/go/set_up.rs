//! Positions of Go that people set up.

use super::points::{Grid, Points, with_words};
use super::position::key;
use super::{Go, NOWHERE, State};
use crate::error::Result;
use crate::game::set_up::{SetUp, refused};
use crate::game::{Game, Turn};
use bytemuck::Zeroable;

/// The position of `set_up`, in which every group has a liberty. No earlier position is known, so superko bars none.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the reason.
pub fn set_up(go: &Go, set_up: SetUp<'_>) -> Result<State> {
    let cells = set_up.stones(Go::NAME, usize::from(go.points()))?;
    // The parity of the plies says who is to move.
    let mut state = State { last: NOWHERE, plies: set_up.player.into(), ..Zeroable::zeroed() };
    if go.turn(&state) == Turn::Over {
        let why = format!(
            "the game is over: that white is to move counts as the first ply of {} (max_plies)",
            go.max_plies()
        );
        return Err(refused(Go::NAME, why));
    }
    for (player, cells) in cells.iter().enumerate() {
        for &cell in cells {
            state.stones[player][cell / 64] |= 1 << (cell % 64);
            state.hash ^= key(player, cell as u16);
        }
    }
    with_words!(go.size, W => fill_atari::<W>(go, &mut state))?;
    Ok(state)
}

/// Finds the groups with one liberty.
fn fill_atari<const W: usize>(go: &Go, state: &mut State) -> Result<()> {
    let grid = Grid::<W>::new(go.size);
    let stones = state.stones.map(|words| Points::<W>::load(&words));
    let empty = grid.full.without(stones[0].or(stones[1]));
    for (player, own) in stones.into_iter().enumerate() {
        let (mut rest, mut in_atari) = (own, Points::EMPTY);
        while !rest.is_empty() {
            let seed = rest.lowest();
            let group = grid.flood(seed, own);
            rest = rest.without(group);
            let liberties = grid.beside(group).and(empty);
            if liberties.is_empty() {
                let point = seed.iter().next().unwrap_or_default();
                let why = format!("the stones around {} have no liberty", go.action_name(state, point));
                return Err(refused(Go::NAME, why));
            }
            if !liberties.has_two() {
                in_atari = in_atari.or(group);
            }
        }
        in_atari.store(&mut state.atari[player]);
    }
    Ok(())
}
