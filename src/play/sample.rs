//! One position to learn from.

use crate::batch::ErasedRules;
use crate::game::Turn;
use serde::{Deserialize, Serialize};

/// One position to learn from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The state's bytes.
    pub state: Vec<u8>,
    /// The player who observes: of a decision, the player to move; of an afterstate, the player who has moved.
    pub player: u8,
    /// The policy target: legal actions. None for an afterstate.
    pub actions: Vec<u16>,
    /// The policy target: probabilities of `actions`, summing to 1.
    pub policy: Vec<f32>,
    /// The value target for every player. `[P]`
    pub values: Vec<f32>,
}

impl Sample {
    /// Whether this can be a sample of the position `state` of `game` with these legal actions.
    pub(super) fn is_of(&self, game: &dyn ErasedRules, state: &[u8], legal: &[u16]) -> bool {
        self.state == state
            && game.turn(state) == Turn::Player(self.player)
            && self.actions == legal
            && self.policy.len() == legal.len()
            && is_policy(&self.policy)
            && self.values.len() == game.sizes().num_players
            && self.values.iter().copied().all(is_value)
    }
}

impl Sample {
    /// Whether this can be a sample of the afterstate `state` of a turn of `player`.
    pub(super) fn is_after(&self, game: &dyn ErasedRules, state: &[u8], player: u8) -> bool {
        self.state == state
            && self.player == player
            && ![Turn::Player(player), Turn::Over].contains(&game.turn(state))
            && self.actions.is_empty()
            && self.policy.is_empty()
            && self.values.len() == game.sizes().num_players
            && self.values.iter().copied().all(is_value)
    }
}

/// The tolerance of policies and values of samples for rounding.
const ROUNDING: f32 = 1e-3;

/// Whether these are probabilities that sum to 1, or none at all.
pub(crate) fn is_policy(policy: &[f32]) -> bool {
    policy.iter().all(|&p| p >= 0.0)
        && (policy.is_empty() || (policy.iter().sum::<f32>() - 1.0).abs() <= ROUNDING)
}

/// Whether this is a player's result, in [-1, 1] but for rounding.
pub(crate) fn is_value(value: f32) -> bool {
    value.abs() <= 1.0 + ROUNDING
}
