//! What a record says of the players, beside their moves.

/// The players of a game.
#[derive(Clone, Debug, Default)]
pub struct Players {
    /// Their names; none if they have no names. `[P]`
    pub names: Vec<String>,
    /// The player who resigned.
    pub resigned: Option<u8>,
    /// The number of the game in a match, from 1.
    pub round: Option<usize>,
}
