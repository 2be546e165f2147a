//! The plan of a match: how many games, and what they have in common.

use super::sprt::Sprt;
use crate::batch::{ErasedRules, Playthrough};

/// The number of games, openings, end and seed of a match.
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
    /// Plies after which a game ends with the result of perfect play, by the game's exact solver; None: games are played to their end.
    pub adjudicate_after: Option<u32>,
    /// The test that ends the match. Only for games of two players.
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
}

/// Consecutive games with the same opening: one for each seat of the first contestant, and in a game for one player one for each contestant.
pub fn group_size(game: &dyn ErasedRules) -> usize {
    game.sizes().num_players.max(2)
}
