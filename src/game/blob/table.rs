//! The table of one game of Blob: who plays, and the rounds. A function of the settings and the number of players.

use super::{Blob, MAX_PLAYERS, Trump};
use crate::device_struct::device_constants;

device_constants! {
    fn device_constants;
    /// Cards of the pack.
    pub const NUM_CARDS: usize as "int" = 52;
    /// Minimum number of players of a game.
    pub(super) const MIN_PLAYERS: u32 as "int" = 3;
}

/// The players and the rounds of one game.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// Number of players, who are numbered from 0. At most `seats`.
    pub players: usize,
    /// P: seats of every array and of an observation.
    pub seats: usize,
    /// Cards each player holds in the first (or only) round.
    cards: usize,
    full: bool,
    trump: Trump,
    dealer: usize,
}

impl Table {
    /// The table of `game` with so many players, who share the pack: fewer cards than the settings have where it does not suffice.
    #[inline]
    pub fn of(game: &Blob, players: usize) -> Self {
        Self {
            players,
            seats: game.players as usize,
            cards: (game.cards as usize).min(NUM_CARDS / players),
            full: game.full,
            trump: game.trump,
            dealer: game.dealer as usize,
        }
    }

    /// Rounds of the game.
    #[inline]
    pub fn num_rounds(&self) -> usize {
        if self.full { 2 * self.cards + self.players - 2 } else { 1 }
    }

    /// Cards each player gets in `round`.
    #[inline]
    pub fn cards_in(&self, round: usize) -> usize {
        let (single, last) = (self.cards - 1, self.cards - 1 + self.players);
        if round < single {
            self.cards - round
        } else if round < last {
            1
        } else {
            round - last + 2
        }
    }

    /// Trump of `round`.
    #[inline]
    pub fn trump_in(&self, round: usize) -> Trump {
        const ROTATION: [Trump; 5] =
            [Trump::Spades, Trump::Hearts, Trump::Clubs, Trump::Diamonds, Trump::None];
        ROTATION[(self.trump as usize + round) % 5]
    }

    /// Dealer of `round`.
    #[inline]
    pub fn dealer_in(&self, round: usize) -> usize {
        (self.dealer + round) % self.players
    }

    /// Plies of the game, chance outcomes included.
    pub fn num_plies(&self) -> usize {
        (0..self.num_rounds()).map(|round| self.players * (2 * self.cards_in(round) + 1)).sum()
    }

    /// Cards of the largest round.
    pub fn max_cards(&self) -> usize {
        self.cards
    }

    /// Maximum number of points one player can make in the game: 10 + cards, summed over the rounds.
    #[inline]
    pub fn max_points(&self) -> usize {
        let all_cards = if self.full { self.cards * (self.cards + 1) + self.players - 2 } else { self.cards };
        10 * self.num_rounds() + all_cards
    }

    /// Maximum number of points one player can make in the rounds after `round`.
    pub fn max_points_after(&self, round: usize) -> usize {
        (round + 1..self.num_rounds()).map(|later| 10 + self.cards_in(later)).sum()
    }

    /// `points` of `player` minus the mean of the others', as a share of `max`.
    pub fn share_of(&self, points: [i32; MAX_PLAYERS], player: usize, max: usize) -> f32 {
        let total: i32 = points[..self.players].iter().sum();
        let ahead = self.players as i32 * points[player] - total;
        ahead as f32 / ((self.players - 1) * max) as f32
    }

    /// The player `steps` (at most the number of players) seats after `player`.
    #[inline]
    pub fn seat_after(&self, player: usize, steps: usize) -> usize {
        let seat = player + steps;
        if seat >= self.players { seat - self.players } else { seat }
    }
}
