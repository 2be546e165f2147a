//! Self-play that a device drives by itself: its inputs from the host when game slots are attached, and its outputs.

use crate::config::Config;
use crate::device_struct::device_constants;
use crate::game::Sizes;
use crate::search::root::RootSummary;

device_constants! {
    fn device_constants;
    /// Random openings that are tried until one does not end the game; a game then starts without one.
    pub const MAX_OPENING_ATTEMPTS: u64 = 100;
}

/// The configuration of self-play.
#[derive(Clone, Copy, Debug)]
pub struct PlayPlan {
    /// The run's seed.
    pub seed: u64,
    /// S.
    pub simulations: u32,
    /// D.
    pub determinisations: usize,
    /// The most plies of a random opening.
    pub opening_plies: u32,
    /// Share of games without a random opening.
    pub opening_none: f32,
    /// Plies after the opening whose actions are drawn from the policy target.
    pub temperature_plies: u32,
    /// Share of plies with the small budget (playout cap randomisation).
    pub playout_cap_prob: f32,
    /// S of a ply with the small budget.
    pub fast_simulations: u32,
}

impl PlayPlan {
    /// The plan of a configuration for a game of these sizes.
    pub fn new(config: &Config, sizes: &Sizes) -> Self {
        let (search, selfplay) = (&config.search, &config.selfplay);
        Self {
            seed: config.run.seed,
            simulations: search.simulations,
            determinisations: if sizes.hidden_information { search.determinisations as usize } else { 1 },
            opening_plies: selfplay.opening_plies,
            opening_none: selfplay.opening_none,
            temperature_plies: selfplay.temperature_plies,
            playout_cap_prob: selfplay.playout_cap_prob,
            fast_simulations: selfplay.fast_simulations,
        }
    }
}

/// The state of a game slot when it is attached to a device.
#[derive(Clone, Copy, Debug)]
pub struct SlotStart<'a> {
    /// Its number over the whole run.
    pub slot: u64,
    /// Games finished in it.
    pub game: u64,
    /// Plies played and dealt so far.
    pub plies: u32,
    /// Plies at the front that were drawn at random.
    pub opening: u32,
    /// The present state, hidden information included.
    pub state: &'a [u8],
}

/// The side that drives self-play: it plays the decided plies at the end of a pass, and begins the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassDriver {
    /// The caller of the backend.
    Caller,
    /// The backend itself.
    Backend {
        /// The most passes of one poll ([`super::DevicePasses::end_poll`]).
        max_passes: u32,
    },
}

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

/// Bytes copied between host and device, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Within passes.
    pub inside: u64,
    /// In all.
    pub total: u64,
}
