//! What a record says of the players, besides their moves.

/// The players of a game.
#[derive(Clone, Debug, Default)]
pub struct Players {
    /// Their names; none if they have no names. `[P]`
    pub names: Vec<String>,
    /// The player who resigned.
    pub resigned: Option<u8>,
    /// The result of a game that did not reach its end by the rules; None where it did or goes on. `[P]`
    pub returns: Option<Vec<f32>>,
    /// The number of the game in a match, from 1.
    pub round: Option<usize>,
}
