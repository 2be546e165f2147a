//! The plan of self-play: the part of a configuration by which games are played.

use crate::config::{Algorithm, Config, FirstGame};
use crate::device_struct::device_constants;
use crate::game::Sizes;

device_constants! {
    fn device_constants;
    /// Random openings that are tried until one does not end the game; a game then starts without one.
    pub const MAX_OPENING_ATTEMPTS: u64 = 100;
    /// Maximum number of consecutive games of a slot that end in their deal; after them the slot begins no further game.
    pub const MAX_UNDECIDED_GAMES: u64 = crate::batch::MAX_UNDECIDED_GAMES;
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
    /// Maximum number of plies of a random opening.
    pub opening_plies: u32,
    /// Share of games without a random opening.
    pub opening_none: f32,
    /// Plies after the opening whose actions are drawn from the policy target.
    pub temperature_plies: u32,
    /// Where the first game of a slot begins.
    pub first_game: FirstGame,
    /// The positions of samples.
    pub samples: SampleKind,
    /// Lambda of the value targets.
    pub td_lambda: f32,
}

/// The positions of which samples are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    /// Those in which a player decides, with the search's policy.
    Decisions,
    /// Those after a player's whole turn, without a policy.
    Afterstates,
}

impl PlayPlan {
    /// The plan of a configuration for a game of these sizes.
    pub fn new(config: &Config, sizes: &Sizes) -> Self {
        let (search, selfplay) = (&config.search, &config.selfplay);
        Self {
            seed: config.run.seed,
            simulations: search.simulations,
            determinisations: sizes.determinisations(search.determinisations) as usize,
            opening_plies: selfplay.opening_plies,
            opening_none: selfplay.opening_none,
            temperature_plies: selfplay.temperature_plies,
            first_game: selfplay.first_game,
            samples: match search.algorithm {
                Algorithm::Puct | Algorithm::Gumbel => SampleKind::Decisions,
                Algorithm::Afterstate => SampleKind::Afterstates,
            },
            td_lambda: config.train.td_lambda,
        }
    }
}
