//! How strong a player is: exact solvers, solved positions, plain opponents, Elo.
//!
//! In: games, networks, chosen actions, results of matches. Out: exact scores, error rates, differences with intervals.
//! Only [`arena`] knows networks and search; the rest judges whoever plays.

pub mod arena;
pub mod connect_four_solver;
pub mod elo;
pub mod external;
pub mod generate;
pub mod positions;
pub mod rollouts;
pub mod solver;
