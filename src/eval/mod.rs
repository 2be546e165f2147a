//! How strong a player is: exact solvers, solved positions, plain opponents, Elo.
//!
//! In: games, chosen actions, results of matches. Out: exact scores, error rates, differences with intervals. Knows
//! games and random numbers, neither networks nor search: whoever plays is asked from outside.

pub mod connect_four_solver;
pub mod elo;
pub mod generate;
pub mod positions;
pub mod rollouts;
pub mod solver;
