//! Which positions a network evaluates.

use crate::config::{Algorithm, Config};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

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

impl Display for EvaluatedPositions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Decisions => "in which a player decides",
            Self::Afterstates => "after a whole turn",
        })
    }
}

impl EvaluatedPositions {
    /// Those of self-play by `algorithm`.
    pub fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Puct | Algorithm::Gumbel => Self::Decisions,
            Algorithm::Afterstate => Self::Afterstates,
        }
    }

    /// Sets the search algorithms of `config`, of self-play and of evaluation, to ones that such a network can serve.
    pub fn fit(self, config: &mut Config) {
        match self {
            Self::Afterstates => {
                config.search.algorithm = Algorithm::Afterstate;
                config.eval.algorithm = None;
            }
            Self::Decisions => {
                if config.search.algorithm == Algorithm::Afterstate {
                    config.search.algorithm = Algorithm::Gumbel;
                }
                config.eval.algorithm = config.eval.algorithm.filter(|found| *found != Algorithm::Afterstate);
                config.eval.turns = 1;
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn the_algorithm_fits_what_networks_evaluate() {
        use Algorithm::{Afterstate, Gumbel, Puct};
        for (search, eval, of_decisions) in [
            (Afterstate, None, Gumbel),
            (Gumbel, Some(Afterstate), Gumbel),
            (Puct, None, Gumbel),
            (Gumbel, Some(Puct), Puct),
        ] {
            let mut config = Config::default();
            (config.search.algorithm, config.eval.algorithm) = (search, eval);
            let mut other = config.clone();
            EvaluatedPositions::Decisions.fit(&mut config);
            EvaluatedPositions::Afterstates.fit(&mut other);
            assert_eq!((config.eval_algorithm(), other.eval_algorithm()), (of_decisions, Afterstate));
            assert_ne!(config.search.algorithm, Afterstate);
            assert_eq!(other.search.algorithm, Afterstate);
            for config in [config, other] {
                Layers::default().config(&config).and_then(Layers::resolve).expect("valid");
            }
        }
    }
}
