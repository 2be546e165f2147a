//! Evaluation of playing strength: exact solvers, solved positions, opponents without a network, Elo.
//!
//! Input: games, networks, chosen actions, match results. Output: exact scores, error rates, Elo differences with intervals.
//! Only [`arena`], [`choices`] and [`mod@matches`] depend on networks and search.

pub mod arena;
pub mod choices;
pub mod elo;
pub mod external;
pub mod generate;
mod match_game;
pub mod matches;
pub mod opponent;
mod plan;
pub mod positions;
pub mod program;
pub mod solver;
