//! How strongly another program is to play.

use std::time::Duration;

/// Limits and settings of another program.
#[derive(Clone, Debug, Default)]
pub struct Strength {
    /// The time of a move.
    pub time: Option<Duration>,
    /// The nodes of a move, where the protocol has them.
    pub nodes: Option<u64>,
    /// Settings of the program by name, where the protocol has them.
    pub options: Vec<(String, String)>,
}
