//! What an analysis found.

use super::limit::EndCause;

/// What an analysis found.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The player to move.
    pub player: u8,
    /// The expected result of every player, in [-1, 1]. `[P]`
    pub value: Vec<f32>,
    /// The probabilities of win, draw and loss for the player to move, where the network's value head has them: win less loss is the
    /// search's value, a draw as likely as the network says of this position, as far as that value allows.
    pub outcome: Option<[f32; 3]>,
    /// True if the value is proven.
    pub proven: bool,
    /// Visits of the position in all trees, those of earlier analyses and of kept trees included.
    pub visits: u64,
    /// Simulations that this analysis made.
    pub simulations: u64,
    /// Positions that the network evaluated in this analysis.
    pub evaluations: u64,
    /// Seconds of this analysis.
    pub seconds: f64,
    /// Nodes of all trees.
    pub nodes: usize,
    /// Why it ended.
    pub end: EndCause,
    /// The legal moves, the best first, then by visits.
    pub moves: Vec<Move>,
}

/// A legal move of the analysed position.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The action.
    pub action: u16,
    /// Its name.
    pub name: String,
    /// Its visits in all trees.
    pub visits: u64,
    /// The network's probability.
    pub prior: f32,
    /// The share of the search's policy.
    pub policy: f32,
    /// Expected result for the player to move; None before its first visit.
    pub value: Option<f32>,
    /// The expected continuation, this move first. The move alone where continuations depend on hidden information.
    pub line: Vec<u16>,
    /// The names of the actions of `line`.
    pub line_names: Vec<String>,
}

impl Analysis {
    /// The best move.
    pub fn best(&self) -> &Move {
        &self.moves[0]
    }

    /// The value for the player to move.
    pub fn own_value(&self) -> f32 {
        self.value[usize::from(self.player)]
    }

    /// Simulations a second.
    pub fn simulations_per_second(&self) -> f64 {
        self.simulations as f64 / self.seconds.max(1e-9)
    }
}
