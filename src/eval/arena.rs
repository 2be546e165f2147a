//! Sides of a match: a search with a network, a player without a network, an external program.

use super::external::ExternalPlayer;
use super::solver::SolverPlayer;
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::batch::rollouts::{Decision, Player, RandomPlayer, RolloutSettings};
use crate::engine::{PositionBatch, Settings};
use crate::error::{Error, Result};
use crate::net::Network;
use crate::rng::Purpose;
use crate::search::root::RowKey;
use crate::stop::Stop;
use crate::threads;
use rayon::prelude::*;
use std::sync::Arc;
use std::thread::scope;
use std::time::Duration;

/// Number of positions that an evaluation searches at once.
pub const ROWS: usize = 128;

/// A side of a match.
pub enum Contestant {
    /// A search with a network.
    Search(PositionBatch),
    /// A player without a network, one copy per thread.
    Plain(Vec<Box<dyn Player>>),
}

impl Contestant {
    /// A search by `settings`, of many games at once.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the network is of another game.
    pub fn search(game: &dyn AnyGame, network: &dyn Network, settings: Settings) -> Result<Self> {
        Ok(Self::Search(PositionBatch::new(game, network, settings, ROWS)?))
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
        Self::plain(threads, make)
    }

    /// Perfect play by the game's exact solver, for so many threads.
    ///
    /// # Errors
    /// Those of [`SolverPlayer::several`].
    pub fn solver(game: &Arc<dyn AnyGame>, key: &str, threads: usize) -> Result<Self> {
        let players = SolverPlayer::several(game, key, threads)?;
        Ok(Self::Plain(players.into_iter().map(|player| -> Box<dyn Player> { Box::new(player) }).collect()))
    }

    /// The external program that `command` starts, one process per thread, with `timeout` per reply and without the variables
    /// `withheld` in its environment.
    ///
    /// # Errors
    /// Those of [`ExternalPlayer::start`].
    pub fn external(command: &str, timeout: Duration, threads: usize, withheld: &[String]) -> Result<Self> {
        Self::plain(threads, || -> Result<Box<dyn Player>> {
            Ok(Box::new(ExternalPlayer::start(command, timeout, withheld)?))
        })
    }

    /// Players without a network, one from `start` for each thread.
    ///
    /// # Errors
    /// That of the first player that does not start; the ones before it end, all at once.
    pub fn plain(threads: usize, mut start: impl FnMut() -> Result<Box<dyn Player>>) -> Result<Self> {
        let mut players = Vec::new();
        for _ in 0..threads.max(1) {
            match start() {
                Ok(player) => players.push(player),
                Err(error) => {
                    // A list would end them one after the other.
                    drop(Self::Plain(players));
                    return Err(error);
                }
            }
        }
        Ok(Self::Plain(players))
    }

    /// The same contestant; its choices fail with [`Error::Stopped`] once `stop` is requested.
    pub fn stopped_by(mut self, stop: &Stop) -> Self {
        match &mut self {
            Self::Search(batch) => batch.stop_by(stop),
            Self::Plain(players) => players.iter_mut().for_each(|player| player.stop_by(stop)),
        }
        self
    }

    /// Decides in each playthrough; `keys[i]` is the key of `plays[i]`.
    pub(super) fn decide(&mut self, plays: &[&Playthrough], keys: &[RowKey]) -> Result<Vec<Decision>> {
        match self {
            Self::Plain(players) => {
                let share = plays.len().div_ceil(players.len()).max(1);
                let chosen: Vec<Result<Vec<Decision>>> = players
                    .par_iter_mut()
                    .zip(plays.par_chunks(share).zip(keys.par_chunks(share)))
                    .map(|(player, (plays, keys))| {
                        let each = plays.iter().zip(keys);
                        each.map(|(play, key)| player.decide(play, key.key(Purpose::Rollout))).collect()
                    })
                    .collect();
                Ok(chosen.into_iter().collect::<Result<Vec<_>>>()?.concat())
            }
            Self::Search(batch) => {
                let found = batch.search(plays, keys)?;
                Ok(found.iter().map(|root| Decision::Play(root.actions[root.best])).collect())
            }
        }
    }
}

impl Drop for Contestant {
    /// Ends all players at once: an external program may take seconds to exit after its stdin is closed.
    fn drop(&mut self) {
        let Self::Plain(players) = self else { return };
        scope(|scope| {
            for player in players.drain(..) {
                // Without a thread the player ends here.
                let _ = threads::start(scope, "the end of a player", || drop(player));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;
    use std::sync::{Arc, Condvar, Mutex};

    /// How far the ends of some players are.
    struct Ends {
        /// Players whose end has not begun.
        to_begin: usize,
        /// True once a player has waited for the others in vain.
        is_stuck: bool,
    }

    /// A player whose end waits until that of all others has begun.
    struct Lingering(Arc<(Mutex<Ends>, Condvar)>);

    impl Player for Lingering {
        fn choose(&mut self, position: &Playthrough, key: Key) -> Result<u16> {
            RandomPlayer.choose(position, key)
        }
    }

    impl Drop for Lingering {
        fn drop(&mut self) {
            let (ends, changed) = &*self.0;
            let mut ends = ends.lock().expect("no panic");
            ends.to_begin -= 1;
            changed.notify_all();
            let is_waiting = |ends: &mut Ends| ends.to_begin > 0 && !ends.is_stuck;
            let waited = changed.wait_timeout_while(ends, Duration::from_secs(60), is_waiting);
            let (mut ends, time) = waited.expect("no panic");
            ends.is_stuck |= time.timed_out();
        }
    }

    fn ends_of_four() -> Arc<(Mutex<Ends>, Condvar)> {
        Arc::new((Mutex::new(Ends { to_begin: 4, is_stuck: false }), Condvar::new()))
    }

    #[test]
    fn the_ends_of_players_do_not_wait_for_each_other() {
        let ends = ends_of_four();
        let player = || -> Result<Box<dyn Player>> { Ok(Box::new(Lingering(ends.clone()))) };
        drop(Contestant::plain(4, player).unwrap_or_else(|e| panic!("{e}")));
        let ends = ends.0.lock().expect("no panic");
        assert_eq!((ends.to_begin, ends.is_stuck), (0, false));
    }

    /// Four players have started when the fifth one does not.
    #[test]
    fn the_ends_of_players_before_one_that_does_not_start_do_not_wait_either() {
        let ends = ends_of_four();
        let mut started = 0;
        let failed = Contestant::plain(8, || -> Result<Box<dyn Player>> {
            started += 1;
            match started {
                ..5 => Ok(Box::new(Lingering(ends.clone()))),
                _ => Err(Error::unsupported("this player", "it does not start")),
            }
        });
        assert_eq!(failed.err().expect("the fifth").to_string(), "this player: it does not start");
        assert_eq!(started, 5, "none is started after it");
        let ends = ends.0.lock().expect("no panic");
        assert_eq!((ends.to_begin, ends.is_stuck), (0, false));
    }
}
