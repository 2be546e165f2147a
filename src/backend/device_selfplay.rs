//! Self-play that a device makes by itself: its settings, the game slots it starts from, and the decisions it returns.

use crate::config::Config;
use crate::game::Sizes;
use crate::search::root::RootSummary;

/// The settings of self-play.
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
    /// Probability of a ply with the small budget (playout cap randomisation).
    pub playout_cap_prob: f32,
    /// S of a ply with the small budget.
    pub fast_simulations: u32,
    /// Weight of the search's value in a value target; the rest is the game's result.
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

/// The game in progress in a slot.
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
    /// The current state, hidden information included.
    pub state: &'a [u8],
}

/// Who ends a pass: plays the decided plies and begins the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassDriver {
    /// The caller, on the host.
    Caller,
    /// The backend itself.
    Backend {
        /// The most passes until [`super::Backend::drain_decisions`].
        most_passes: u32,
    },
}

/// One ply that a device decided. Chance outcomes and the next game's opening follow from the keys of random numbers, so the host replays
/// them and gets the same game.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The slot's index among the attached ones.
    pub slot: usize,
    /// Passes since the slots were attached, this one included.
    pub pass: u32,
    /// The index of the played action in the legal list.
    pub place: usize,
    /// The result of the search.
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
