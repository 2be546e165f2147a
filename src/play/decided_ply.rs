//! One decided ply.

use crate::search::root::RootSummary;

/// One decided ply: the action and the search result from which it was chosen. Chance outcomes and the next game's opening follow from keyed
/// random numbers, of which host and device draw the same ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecidedPly<'a> {
    /// The player to move.
    pub player: u8,
    /// True where `value` is proven.
    pub proven: bool,
    /// The legal actions. `[E]`
    pub actions: &'a [u16],
    /// The policy target. `[E]`
    pub policy: &'a [f32],
    /// The root's value for every player. `[P]`
    pub value: &'a [f32],
    /// The index, in `actions`, of the action that is played.
    pub action_index: usize,
}

impl<'a> DecidedPly<'a> {
    /// The ply of a search that found `summary` and plays the action at `action_index`.
    pub fn new(summary: &'a RootSummary, action_index: usize) -> Self {
        let RootSummary { player, proven, actions, policy, value, .. } = summary;
        Self { player: *player, proven: *proven, actions, policy, value, action_index }
    }
}
