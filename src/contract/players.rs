//! The laws about players: who takes part, and what each of them wants.

use super::law::{Law, equal, holds};
use super::trail::Trail;
use super::walk::{returns, stage_returns, walk};
use crate::game::{Game, Turn};

/// Seats without a player never move and have the result 0, and a game has as many players at each of its decisions.
pub(super) fn empty_seats_take_no_part<G: Game>(game: &G, trail: &Trail) -> Law {
    let seats = game.sizes().num_players;
    walk(game, trail, |position, _| {
        let seated = game.num_seated(&position.state, seats);
        holds!((1..=seats).contains(&seated), "{seated} players have a seat, expected 1 to {seats}");
        if let Turn::Player(player) = position.turn {
            holds!(usize::from(player) < seated, "player {player} is to move, of {seated}");
        }
        let decision = position.before.iter().find(|state| matches!(game.turn(state), Turn::Player(_)));
        if let Some(decision) = decision {
            equal!(seated, game.num_seated(decision, seats), "the number of players changes");
        }
        let is_end = position.turn == Turn::Chance && game.is_horizon(&position.state);
        if position.is_over() || is_end {
            let whole = position.is_over().then(|| returns(game, &position.state));
            for values in whole.into_iter().chain([stage_returns(game, &position.state)]) {
                holds!(values[seated..].iter().all(|&value| value == 0.0), "{values:?} for {seated} players");
            }
        }
        Ok(())
    })
}

/// Every player has an aim, as a sentence without a full stop.
pub(super) fn aims_are_sentences<G: Game>(game: &G, _trail: &Trail) -> Law {
    for player in 0..game.sizes().num_players as u8 {
        let aim = game.aim(player);
        let is_sentence = !aim.trim().is_empty() && !aim.ends_with('.') && !aim.contains('\n');
        holds!(is_sentence, "the aim of player {player} is {aim:?}, expected a sentence without a full stop");
    }
    Ok(())
}
