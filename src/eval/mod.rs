//! Evaluation of playing strength: exact solvers, solved positions, opponents without a network, matches and tests by them, Elo.
//!
//! Input: games, networks, chosen actions, match results. Output: exact scores, error rates, Elo differences with intervals, decisions.
//! Only [`arena`], [`choices`], [`luck`] and [`mod@matches`] depend on networks and search.

pub mod arena;
pub mod choices;
pub mod elo;
pub mod external;
pub mod ladder;
pub mod luck;
mod match_game;
pub mod matches;
pub mod openings;
pub mod opponent;
mod plan;
mod process_tree;
pub mod positions;
pub mod program;
pub mod ratings;
mod repetitions;
pub mod solver;
pub mod sprt;
