//! Opponents of a run's matches, and the ladder of opponents that grow with the player.

use super::plan::group_size;
use crate::batch::ErasedRules;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The value of `eval.opponent` for opponents that grow with the player.
pub const LADDER: &str = "ladder";
/// The first opponents of the ladder; then come the run's own earlier networks.
const FIRST: [Opponent; 3] = [Opponent::Random, Opponent::Rollouts(100), Opponent::Rollouts(800)];
/// Maximum number of simulations of a rollout player.
const MAX_ROLLOUTS: u32 = 1_000_000;

/// The opponent of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Opponent {
    /// Uniformly random play.
    Random,
    /// Monte Carlo tree search with random rollouts and this number of simulations.
    Rollouts(u32),
    /// The run's own network after this epoch.
    Epoch(u64),
}

impl fmt::Display for Opponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::Rollouts(simulations) => write!(f, "rollouts:{simulations}"),
            Self::Epoch(epoch) => write!(f, "epoch {epoch}"),
        }
    }
}

impl From<Opponent> for String {
    fn from(opponent: Opponent) -> Self {
        opponent.to_string()
    }
}

impl TryFrom<String> for Opponent {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let epoch = || text.strip_prefix("epoch ")?.parse().ok().map(Self::Epoch);
        Self::without_network(&text).or_else(epoch).ok_or_else(|| format!("{text:?} is no opponent"))
    }
}

impl Opponent {
    /// The opponent without a network called `text`; None for any other text.
    pub fn without_network(text: &str) -> Option<Self> {
        if text == "random" {
            return Some(Self::Random);
        }
        let simulations = text.strip_prefix("rollouts:")?.parse().ok()?;
        (1..=MAX_ROLLOUTS).contains(&simulations).then_some(Self::Rollouts(simulations))
    }
}

/// An opponent and its rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// Opponents below this one, each of which the run has beaten clearly; 0 for an opponent that does not change.
    pub number: u32,
    /// The opponent.
    pub opponent: Opponent,
}

impl Rung {
    /// The first opponent of a run whose `eval.opponent` is `text`.
    ///
    /// # Errors
    /// [`Error::Config`] for an unknown opponent.
    pub fn first(text: &str) -> Result<Self> {
        let named = if text == LADDER { Some(FIRST[0]) } else { Opponent::without_network(text) };
        let expected = "ladder, random, or rollouts:S with S from 1 to 1000000";
        let opponent = named.ok_or_else(|| Error::config("eval.opponent", text, expected))?;
        Ok(Self { number: 0, opponent })
    }

    /// The next opponent of the ladder for a player whose network of `epoch` has beaten this one clearly. Opponents that are too slow are
    /// passed over.
    pub fn above(self, epoch: u64, is_too_slow: &dyn Fn(Opponent) -> bool) -> Self {
        let harder = FIRST.iter().skip_while(|&&opponent| opponent != self.opponent).skip(1);
        let named = harder.copied().find(|&opponent| !is_too_slow(opponent));
        Self { number: self.number + 1, opponent: named.unwrap_or(Opponent::Epoch(epoch)) }
    }
}

/// Minimum score of a match that beats an opponent clearly, and after which the next one is harder: halfway between equal strength and
/// a perfect score. The opponent has all seats of `game` that are taken but one, so equal strength is one win in as many games as seats.
pub fn clear_win(game: &dyn ErasedRules) -> f64 {
    0.5 * (1.0 + 1.0 / group_size(game) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    #[test]
    fn the_ladder_is_the_default() {
        assert_eq!(crate::config::Config::default().eval.opponent, LADDER);
    }

    #[test]
    fn the_ladder_ends_in_the_runs_own_networks() {
        let climb = |rung: &Rung| Some(rung.above(10 * (u64::from(rung.number) + 1), &|_| false));
        let rungs = std::iter::successors(Rung::first(LADDER).ok(), climb).take(5);
        let names: Vec<String> = rungs.map(|rung| rung.opponent.to_string()).collect();
        assert_eq!(names, ["random", "rollouts:100", "rollouts:800", "epoch 30", "epoch 40"]);
    }

    #[test]
    fn opponents_are_read_as_written_and_others_are_refused() {
        for opponent in [Opponent::Random, Opponent::Rollouts(7), Opponent::Epoch(12)] {
            assert_eq!(Opponent::try_from(opponent.to_string()), Ok(opponent));
        }
        for text in ["", "rollouts:0", "rollouts:1000001", "rollouts:x", "epoch", "epoch -1", "ladder"] {
            assert!(Opponent::try_from(text.to_string()).is_err(), "{text}");
        }
        let message = Rung::first("epoch 3").expect_err("not of a configuration").to_string();
        assert!(message.contains("eval.opponent: got epoch 3, expected ladder, random, or"), "{message}");
    }

    #[test]
    fn a_clear_win_lies_halfway_between_equal_strength_and_perfection() {
        let clear = |name: &str, options: &str| {
            clear_win(any_game(name, &options.parse().expect("TOML")).expect("registered").as_ref())
        };
        let empty_seats = clear("blob", "players = 8\nseated = 4");
        assert_eq!([clear("hex", ""), clear("blob", ""), empty_seats], [0.75, 0.625, 0.625]);
    }
}
