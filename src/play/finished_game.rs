//! One finished game.

use super::sample::Sample;
use serde::{Deserialize, Serialize};

/// One finished game.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FinishedGame {
    /// The slot it was played in.
    #[serde(alias = "lane")]
    pub slot: u64,
    /// Its number in the slot.
    pub game: u64,
    /// Everything played and dealt, opening included.
    pub actions: Vec<u16>,
    /// Plies at the front that were drawn at random.
    pub opening: u32,
    /// The result. `[P]`
    pub returns: Vec<f32>,
    /// The state in which it ended.
    #[serde(skip)]
    pub end: Vec<u8>,
    /// Its samples.
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// A result that is saved as a file of its own; see [`crate::game::Game::finding`].
    #[serde(skip)]
    pub finding: Option<serde_json::Value>,
}
