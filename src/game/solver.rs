//! Exact solvers of a game.

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
}
