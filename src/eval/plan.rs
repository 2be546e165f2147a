//! The plan of a match: how many games, and what they have in common.

use super::sprt::Sprt;
use crate::backend::AnyGame;
use crate::batch::{ErasedRules, Playthrough};
use crate::error::Result;
use crate::game::Turn;
use crate::rng::{Key, Purpose, RngStream};
use std::collections::HashSet;
use std::sync::Arc;

/// Openings that are tried for a group before its number of random plies is lowered, since all have ended the game.
const MAX_ATTEMPTS: u64 = 100;

/// The number of games, openings, test and seed of a match.
#[derive(Clone, Copy, Default)]
pub struct MatchPlan<'a> {
    /// Number of games. Each group of P consecutive games has the same opening and the same dice or cards, with the seats rotated. In a
    /// game for one player the contestants play alternately, each pair of games with the same opening and chance outcomes.
    pub games: usize,
    /// Positions in which the groups of games begin, one after the other and then again from the first; the start of the game if there are
    /// none.
    pub openings: &'a [Playthrough],
    /// Uniformly random plies at the start of a game, after its opening.
    pub opening_plies: u32,
    /// The test that ends the match. Only for games of two players who compete.
    pub sprt: Option<Sprt>,
    /// The seed of openings, chance and players.
    pub seed: u64,
}

impl MatchPlan<'_> {
    /// The plan for `game`: for a test, and but for two players, the number of games is rounded up to whole groups, so that all seats have
    /// as many.
    #[must_use]
    pub fn for_game(self, game: &dyn ErasedRules) -> Self {
        match (game.sizes().num_players, self.sprt) {
            (1 | 3.., _) | (_, Some(_)) => {
                Self { games: self.games.next_multiple_of(group_size(game)), ..self }
            }
            _ => self,
        }
    }

    /// The position in which the games of the group with this number begin. Fewer plies are random where as many end the game.
    ///
    /// # Errors
    /// Those of the rules.
    pub fn opening(&self, game: &Arc<dyn AnyGame>, group: u64) -> Result<Playthrough> {
        let mut plies = self.opening_plies;
        loop {
            let mut longest = 0;
            for attempt in 0..MAX_ATTEMPTS {
                let mut rng = Key::new(self.seed, Purpose::Opening).with(group).with(attempt).stream();
                let mut play = match self.openings {
                    [] => Playthrough::new(game.clone()),
                    openings => openings[group as usize % openings.len()].clone(),
                };
                let made = random_plies(&mut play, plies, &mut rng)?;
                if play.turn() != Turn::Over || plies == 0 {
                    return Ok(play);
                }
                longest = longest.max(made);
            }
            plies = longest.saturating_sub(1);
        }
    }

    /// The number of different positions in which the first `groups` groups of games begin.
    ///
    /// # Errors
    /// Those of the rules.
    pub fn different_openings(&self, game: &Arc<dyn AnyGame>, groups: usize) -> Result<usize> {
        let state = |group| self.opening(game, group).map(|play| play.state().to_vec());
        Ok((0..groups as u64).map(state).collect::<Result<HashSet<_>>>()?.len())
    }
}

/// Plays `plies` uniformly random plies, with the chance outcomes before them, or up to the end of the game. Returns how many were played.
fn random_plies(play: &mut Playthrough, plies: u32, rng: &mut RngStream) -> Result<u32> {
    let mut made = 0;
    while made < plies && play.turn() != Turn::Over {
        made += u32::from(play.turn() != Turn::Chance);
        random_step(play, rng)?;
    }
    Ok(made)
}

/// Plays a chance outcome by its probability, or a uniformly random move.
pub(super) fn random_step(play: &mut Playthrough, rng: &mut RngStream) -> Result<()> {
    let legal = play.legal();
    let index = if play.turn() == Turn::Chance {
        rng.weighted(&play.game().chance_probs(play.state(), &legal))
    } else {
        rng.below(legal.len())
    };
    play.step(legal[index])
}

/// Consecutive games with the same opening: one for each seat of the first contestant, and in a game for one player one for each contestant.
/// Where the number of players is drawn, one for each seat that may be taken.
pub fn group_size(game: &dyn ErasedRules) -> usize {
    game.num_seated(&game.init()).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    fn game(name: &str, options: &str) -> Arc<dyn AnyGame> {
        any_game(name, &options.parse().expect("TOML")).expect("registered")
    }

    #[test]
    fn openings_leave_a_decision() {
        for (name, options, plies, longest) in [
            ("tic_tac_toe", "", 9, 8),
            ("tic_tac_toe", "", 1000, 8),
            ("clique", "n = 3", 4, 2),
            ("blob", "", 500, 500),
        ] {
            let game = game(name, options);
            let plan = MatchPlan { opening_plies: plies, seed: 3, ..MatchPlan::default() };
            for group in 0..20 {
                let play = plan.opening(&game, group).expect("legal");
                assert_ne!(play.turn(), Turn::Over, "{name} after {plies} plies");
                assert!(play.actions().len() <= longest, "{name} after {:?}", play.actions());
            }
        }
    }

    #[test]
    fn a_group_has_a_game_for_each_seat_that_may_be_taken() {
        let size = |options: &str| group_size(game("blob", options).as_ref());
        assert_eq!([size(""), size("players = 8\nseated = 3"), size("players = 8\nseated = 0")], [4, 3, 8]);
    }

    #[test]
    fn two_plies_of_othello_are_twelve_openings() {
        let game = game("othello", "");
        let found = |opening_plies| {
            let plan = MatchPlan { opening_plies, seed: 1, ..MatchPlan::default() };
            plan.different_openings(&game, 200).expect("legal")
        };
        assert_eq!((found(0), found(1), found(2)), (1, 4, 12));
        assert!(found(7) > 180);
    }
}
