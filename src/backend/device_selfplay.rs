//! Self-play that a backend leads by itself: what it is told once, and what it tells.

use crate::config::Config;
use crate::game::Sizes;
use crate::search::root::RootSummary;

/// What self-play needs of the configuration.
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
    /// Share of games without one.
    pub opening_none: f32,
    /// Plies after the opening whose actions are drawn from the policy target.
    pub temperature_plies: u32,
    /// Share of plies with the small budget.
    pub playout_cap_prob: f32,
    /// The small budget.
    pub fast_simulations: u32,
    /// Share of the search's value in a value target.
    pub value_mix: f32,
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
            value_mix: selfplay.value_mix,
        }
    }
}

/// Where a slot stands.
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
    /// The present position, nothing hidden.
    pub state: &'a [u8],
}

/// Who ends a pass: who plays the plies that are decided, and begins the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassDriver {
    /// Whoever calls the backend.
    Caller,
    /// The backend itself.
    Backend {
        /// The most passes until [`super::Backend::drain_decisions`].
        most_passes: u32,
    },
}

/// One ply that a backend decided. What follows from it, chance and the next game's opening, follows from the keys of random
/// numbers, and is the same on either side.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The slot's place among those that were taken over.
    pub slot: usize,
    /// Passes since the slots were taken over, this one included.
    pub pass: u32,
    /// The place, in the legal list, of the action that is played.
    pub place: usize,
    /// What the search found.
    pub summary: RootSummary,
}

/// Bytes copied between host and device, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Within passes.
    pub inside: u64,
    /// In all.
    pub total: u64,
}
