//! Which positions a network evaluates.

use crate::config::Algorithm;
use serde::{Deserialize, Serialize};

/// The positions that a network was trained to evaluate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluatedPositions {
    /// Those in which a player decides.
    #[default]
    Decisions,
    /// Those after a whole turn (`search.algorithm = "afterstate"`), without a policy.
    Afterstates,
}

impl EvaluatedPositions {
    /// Those of self-play by `algorithm`.
    pub fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Puct | Algorithm::Gumbel => Self::Decisions,
            Algorithm::Afterstate => Self::Afterstates,
        }
    }

    /// True for those that files do not name.
    pub(super) fn are_decisions(&self) -> bool {
        *self == Self::Decisions
    }

    /// The player who sees them, in words.
    pub fn observer(self) -> &'static str {
        match self {
            Self::Decisions => "the player to move",
            Self::Afterstates => "the player whose turn has led to it",
        }
    }
}
