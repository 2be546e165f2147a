//! The players of a game, as its record names them.

/// Who played, by name and by result.
#[derive(Clone, Debug)]
pub struct Players<'a> {
    /// The names of both players in their order.
    pub names: [&'a str; 2],
    /// The results of both players; None for a game in progress.
    pub returns: Option<[f32; 2]>,
    /// The player who gave the game up.
    pub resigned: Option<u8>,
    /// The number of the game in its match, from 1.
    pub round: usize,
}
