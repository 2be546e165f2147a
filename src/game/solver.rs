//! Exact solvers of a game.

use crate::stop::Stop;

/// The kind of a game's exact solver.
pub enum ExactSolver {
    /// Exhaustive search of the whole game, for small games.
    Exhaustive,
    /// A solver for this game only.
    GameSpecific(Box<dyn PositionSolver>),
}

/// An exact solver of one game. It may cache positions between calls.
pub trait PositionSolver: Send {
    /// The exact score of each action for the player to move in `state`, None for actions that are not legal: positive for a win,
    /// larger the sooner; 0 for a draw; negative for a loss; half the plies that the longest game would still have, so a win with the
    /// last stone is 1. `[A]`
    fn scores(&mut self, state: &[u8]) -> Vec<Option<i32>>;

    /// Sets a request that ends long searches. Scores that are found after it mean nothing, and the solver is of no use any more.
    fn stop_by(&mut self, _stop: &Stop) {}
}
