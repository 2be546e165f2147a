//! The laws of games whose rules look at earlier positions.

use super::law::{Law, equal, holds};
use super::trail::Trail;
use super::walk::{legal_after, num_games, walk};
use crate::game::view::{Board, Viewer};
use crate::game::{Game, History};
use crate::view::draw;
use std::collections::HashMap;

/// Actions played at each split of a history.
const ACTIONS: usize = 6;

/// By their keys the rules know positions again: there is more than one key, and positions of one key have the same board. Nothing else is
/// compared, since keys may leave out what observations have: counters, the last move, in Go even the player to move.
pub(super) fn history_keys_follow_the_position<G: Game>(game: &G, trail: &Trail) -> Law {
    if !game.sizes().uses_history {
        return Ok(());
    }
    // The first position of each key.
    let mut first_states: HashMap<u64, G::State> = HashMap::new();
    let mut positions = 0;
    walk(game, trail, |position, _| {
        positions += 1;
        let (state, key) = (&position.state, game.history_key(&position.state));
        let first = *first_states.entry(key).or_insert(*state);
        holds!(
            first == *state || board(game, &first) == board(game, state),
            "positions with different boards have one history_key, {key}; expected one key only where the \
             rules take two positions as the same:\n{}\n{}",
            draw(game, &first),
            draw(game, state)
        );
        Ok(())
    })?;
    let games = num_games(game);
    holds!(
        first_states.len() > 1,
        "history_key is the same for all {positions} positions of {games} games; expected different keys of \
         different positions, since the rules know a position again by its key"
    );
    Ok(())
}

/// The board of a position. None for a text, which may have counters in it.
fn board<G: Game>(game: &G, state: &G::State) -> Option<Board> {
    match game.view(state, Viewer::All).board {
        Board::Text { .. } => None,
        board => Some(board),
    }
}

/// Search gives a history in two parts: the keys of the game as played, which end before the root, and those of its path from the root on.
/// Where the root is makes no difference for the rules.
pub(super) fn search_paths_are_history<G: Game>(game: &G, trail: &Trail) -> Law {
    if !game.sizes().uses_history {
        return Ok(());
    }
    walk(game, trail, |position, rng| {
        if position.is_over() {
            return Ok(());
        }
        let after = |action: u16, history: History<'_>| {
            let mut state = position.state;
            game.step(&mut state, action, history);
            state
        };
        let plies = position.keys.len();
        let actions: [u16; ACTIONS] =
            std::array::from_fn(|_| position.legal[rng.below(position.legal.len())]);
        for root in [0, plies / 2, plies.saturating_sub(2), rng.below(plies + 1)] {
            let (played, path) = position.keys.split_at(root);
            let history = History { played, path };
            let split =
                || format!("with the first {root} of {plies} keys in `played` and the others in `path`");
            equal!(legal_after(game, &position.state, history), position.legal, "legal {}", split());
            for action in actions {
                let expected = after(action, position.history());
                equal!(after(action, history), expected, "the state after action {action} {}", split());
            }
        }
        Ok(())
    })
}
