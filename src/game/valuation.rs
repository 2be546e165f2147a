//! Values of positions by what a network predicts of the end of a game.

use super::ObsShape;

/// How positions are valued that a network was not trained on as such: by its predictions of a target of the game's own, and by elements of an
/// observation that it does not see. In backgammon a network that knows no cube predicts the results of a game, and from these follows what the
/// position is worth with the cube.
#[derive(Clone, Copy, Debug)]
pub struct Valuation {
    /// The name of the target, a vector of signs, among [`Game::targets`](super::Game::targets).
    pub target: &'static str,
    /// The leading elements of an observation, which the network sees: the observation of the game that it was trained in.
    pub seen: ObsShape,
    /// Computes values out of the other elements of an observation and the predictions, numbers 2 p - 1 for the probability p of the sign 1:
    /// `(others [F - seen], predictions [N], out [P])`, in seats relative to the observer, in [-1, 1].
    pub values: fn(&[f32], &[f32], &mut [f32]),
}
