//! The plan of a match: how many games, and what they have in common.

use crate::batch::ErasedRules;

/// The number of games, openings and seed of a match.
#[derive(Clone, Copy, Debug)]
pub struct MatchPlan {
    /// Number of games. Each group of P consecutive games has the same opening and the same dice or cards, with the seats rotated. In a
    /// game for one player the contestants play alternately, each pair of games with the same opening and chance outcomes.
    pub games: usize,
    /// Uniformly random plies at the start of a game.
    pub opening_plies: u32,
    /// The seed of openings, chance and players.
    pub seed: u64,
}

impl MatchPlan {
    /// The plan for `game`: in a game for one player the number of games is rounded up to whole pairs.
    #[must_use]
    pub fn for_game(self, game: &dyn ErasedRules) -> Self {
        match game.sizes().num_players {
            1 => Self { games: self.games.next_multiple_of(group_size(game)), ..self },
            _ => self,
        }
    }
}

/// Consecutive games with the same opening: one for each seat of the first contestant, and in a game for one player one for each contestant.
pub fn group_size(game: &dyn ErasedRules) -> usize {
    game.sizes().num_players.max(2)
}
