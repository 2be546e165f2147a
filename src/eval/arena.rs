//! Sides of a match: a search with a network, a player without a network, an external program.

use super::external::ExternalPlayer;
use crate::backend::AnyGame;
use crate::backend::Placement;
use crate::batch::Playthrough;
use crate::batch::rollouts::{Player, RandomPlayer, RolloutSettings};
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::net::Network;
use crate::rng::Purpose;
use crate::search::SearchParams;
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::searcher::{SearchRequest, Searchers};
use crate::stop::Stop;
use rayon::prelude::*;
use std::time::Duration;

/// Number of positions that an evaluation searches at once.
pub const ROWS: usize = 128;

/// The current position of a playthrough.
pub fn position_of(play: &Playthrough, key: RowKey) -> SearchRequest {
    SearchRequest { state: play.state().to_vec(), history: play.history().to_vec(), key }
}

/// A side of a match.
pub enum Contestant {
    /// A search with a network.
    Search {
        /// The searchers.
        searchers: Searchers,
        /// Simulations per ply and determinisation.
        simulations: u32,
        /// Determinisations per position; 1 without hidden information.
        determinisations: usize,
    },
    /// A player without a network, one copy per thread.
    Plain(Vec<Box<dyn Player>>),
}

impl Contestant {
    /// A search with `params`, without noise.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the network is of another game.
    pub fn search(
        game: &dyn AnyGame,
        network: &dyn Network,
        params: SearchParams,
        placement: Placement,
        determinisations: usize,
        threads: usize,
    ) -> Result<Self> {
        Ok(Self::Search {
            searchers: Searchers::new(game, network, params, placement, ROWS * determinisations, threads)?,
            simulations: params.simulations,
            determinisations,
        })
    }

    /// The opponent named by `text`: `random`, or `rollouts:S`.
    ///
    /// # Errors
    /// [`Error::Config`] with `key` for any other text.
    pub fn named(game: &dyn AnyGame, text: &str, key: &str, threads: usize) -> Result<Self> {
        let wrong = || Error::config(key, text, "random, or rollouts:S with S from 1 to 1000000");
        let make = || -> Result<Box<dyn Player>> {
            if text == "random" {
                return Ok(Box::new(RandomPlayer));
            }
            let simulations = text.strip_prefix("rollouts:").and_then(|s| s.parse::<usize>().ok());
            match simulations {
                Some(s) if (1..=1_000_000).contains(&s) => Ok(game.rollout_player(RolloutSettings::new(s))),
                _ => Err(wrong()),
            }
        };
        Ok(Self::Plain((0..threads.max(1)).map(|_| make()).collect::<Result<_>>()?))
    }

    /// The external program that `command` starts, one process per thread, with `timeout` per reply and without the variables
    /// `withheld` in its environment.
    ///
    /// # Errors
    /// Those of [`ExternalPlayer::start`].
    pub fn external(command: &str, timeout: Duration, threads: usize, withheld: &[String]) -> Result<Self> {
        let start = |_| -> Result<Box<dyn Player>> {
            Ok(Box::new(ExternalPlayer::start(command, timeout, withheld)?))
        };
        Ok(Self::Plain((0..threads.max(1)).map(start).collect::<Result<_>>()?))
    }

    /// The same contestant; its choices fail with [`Error::Stopped`] once `stop` is requested.
    pub fn stopped_by(mut self, stop: &Stop) -> Self {
        match &mut self {
            Self::Search { searchers, .. } => searchers.stop_by(stop),
            Self::Plain(players) => players.iter_mut().for_each(|player| player.stop_by(stop)),
        }
        self
    }

    /// Chooses one action per playthrough; `keys[i]` is the key of `plays[i]`.
    pub(super) fn choose(&mut self, plays: &[&Playthrough], keys: &[RowKey]) -> Result<Vec<u16>> {
        match self {
            Self::Plain(players) => {
                let share = plays.len().div_ceil(players.len()).max(1);
                let chosen: Vec<Result<Vec<u16>>> = players
                    .par_iter_mut()
                    .zip(plays.par_chunks(share).zip(keys.par_chunks(share)))
                    .map(|(player, (plays, keys))| {
                        let each = plays.iter().zip(keys);
                        each.map(|(play, key)| player.choose(play, key.key(Purpose::Rollout))).collect()
                    })
                    .collect();
                Ok(chosen.into_iter().collect::<Result<Vec<_>>>()?.concat())
            }
            Self::Search { searchers, simulations, determinisations } => {
                let d = *determinisations;
                let mut positions = Vec::with_capacity(plays.len() * d);
                for (play, key) in plays.iter().zip(keys) {
                    positions.extend(determinised(play, *key, d));
                }
                let found = searchers.search(&positions, *simulations, Exploration::Plain)?;
                let mut sum = RootSummary::default();
                let chosen = found.chunks_exact(d).map(|parts| {
                    if d == 1 {
                        return parts[0].actions[parts[0].best];
                    }
                    crate::play::act::sum_determinisations(parts, &mut sum);
                    sum.actions[sum.best]
                });
                Ok(chosen.collect())
            }
        }
    }
}

/// The positions to search: `d` determinisations for the player to move, or the position itself without hidden information.
pub fn determinised(play: &Playthrough, key: RowKey, d: usize) -> Vec<SearchRequest> {
    let game = play.game();
    if !game.sizes().hidden_information {
        return vec![position_of(play, key)];
    }
    let player = match play.turn() {
        Turn::Player(p) => p,
        Turn::Chance | Turn::Over => 0,
    };
    let draw = |determinisation: u64| {
        let key = RowKey { determinisation, ..key };
        let mut rng = key.key(Purpose::Determinise).stream();
        let state = game.determinise(play.state(), player, &mut rng);
        SearchRequest { state, history: play.history().to_vec(), key }
    };
    (0..d as u64).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;
    use std::sync::Arc;

    /// A game with these cards dealt.
    fn dealt(game: &Arc<dyn AnyGame>, names: &str) -> Playthrough {
        let mut play = Playthrough::new(game.clone());
        names.split_whitespace().for_each(|name| play.step_text(name).expect("legal"));
        play
    }

    #[test]
    fn determinisations_do_not_depend_on_hidden_hands() {
        let options = "players = 3\ncards = 2\ndealer = 2\nnetwork_sees = 'deal'";
        let game = any_game("blob", &options.parse().expect("TOML")).expect("valid");
        let one = dealt(&game, "2♠ K♥ Q♥ 3♦ 9♣ 10♥");
        let other = dealt(&game, "2♠ A♠ A♥ 3♦ A♣ A♦");
        assert_eq!((one.turn(), other.turn()), (Turn::Player(0), Turn::Player(0)));
        assert_ne!(one.state(), other.state());
        let key = RowKey { seed: 5, ..RowKey::default() };
        let (drawn, same) = (determinised(&one, key, 8), determinised(&other, key, 8));
        assert_eq!(drawn, same);
        let mut states: Vec<&[u8]> = drawn.iter().map(|position| position.state.as_slice()).collect();
        states.sort_unstable();
        states.dedup();
        assert_eq!(states.len(), 8, "all draws are different deals");
    }
}
