//! N environments of one game: actions in, rewards out, with finished games begun anew. For callers that choose the actions themselves.
//!
//! ```
//! use vecaz::batch::{AutoReset, Envs, StepResults};
//! use vecaz::registry::any_game;
//!
//! let hex = any_game("hex", &Default::default())?;
//! let mut envs = Envs::new(hex, 64, 2, AutoReset::SameStep);
//! let (mut actions, mut rewards, mut ended) = ([0; 64], [0.0; 2 * 64], [false; 64]);
//! for _ in 0..100 {
//!     envs.sample(&mut actions);
//!     envs.step(&actions, &mut rewards, &mut ended)?;
//! }
//! println!("{:?} are to move", envs.players());
//! # Ok::<(), vecaz::Error>(())
//! ```

use super::env_shard::{Actions, AutoReset, EnvPosition, EnvShard, StepResults};
use super::erased::ErasedRules;
use crate::error::{Error, Result};
use crate::game::Sizes;
use crate::isa::Isa;
use crate::words::count;
use rayon::prelude::*;
use std::sync::Arc;

/// N environments of one game, divided over threads. A player is to move in each, or its game is over: chance is dealt by random numbers
/// that depend on the seed, the environment, its game's number and the ply alone, as in [`GameBatch::step_random`](super::GameBatch::step_random).
/// A game that its deal ends is passed over.
pub struct Envs {
    game: Arc<dyn ErasedRules>,
    sizes: Sizes,
    auto_reset: AutoReset,
    /// Each for one thread.
    shards: Vec<Box<dyn EnvShard>>,
    /// Environments of a shard; the last may have fewer.
    per_shard: usize,
    /// The player to move, -1 where the game is over. `[N]`
    players: Vec<i8>,
}

impl Envs {
    /// `num_envs` environments in at most `shards` shards, at the start of the games of the seed 0. With more than one shard, operations run in
    /// rayon's current pool; results do not depend on the shards.
    pub fn new(game: Arc<dyn ErasedRules>, num_envs: usize, shards: usize, auto_reset: AutoReset) -> Self {
        let per_shard = num_envs.div_ceil(shards.max(1)).max(1);
        let shard = |first: usize| game.env_shard(first as u64, per_shard.min(num_envs - first));
        let mut envs = Self {
            sizes: game.sizes(),
            auto_reset,
            shards: (0..num_envs).step_by(per_shard).map(shard).collect(),
            per_shard,
            players: vec![-1; num_envs],
            game,
        };
        envs.reset(0);
        envs
    }

    /// The rules.
    pub fn game(&self) -> &Arc<dyn ErasedRules> {
        &self.game
    }

    /// N.
    pub fn len(&self) -> usize {
        self.players.len()
    }

    /// True for no environments.
    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// The number of shards.
    pub fn num_shards(&self) -> usize {
        self.shards.len()
    }

    /// The player to move in each environment, -1 where the game is over. `[N]`
    pub fn players(&self) -> &[i8] {
        &self.players
    }

    /// Starts the games of `seed` in all environments.
    pub fn reset(&mut self, seed: u64) {
        let Self { shards, per_shard, players, .. } = self;
        run(shards.iter_mut().zip(players.chunks_mut(*per_shard)), |(shard, players)| {
            shard.reset(seed, players)
        });
    }

    /// Starts the next game in the environments that `chosen` marks. `[N]`
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another number of environments.
    pub fn restart(&mut self, chosen: &[bool]) -> Result<()> {
        self.check_len("environments to restart", chosen.len())?;
        let Self { shards, per_shard, players, .. } = self;
        let parts = chosen.chunks(*per_shard).zip(players.chunks_mut(*per_shard));
        run(shards.iter_mut().zip(parts), |(shard, (chosen, players))| shard.restart(chosen, players));
        Ok(())
    }

    /// Plays `actions [N]`; entries of games that are over are not read. Writes to `rewards [N, P]` the returns of games that ended and 0 elsewhere, and to `ended [N]` whether the game ended, or without reset whether it is over.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another number of actions, and for the first action that is not legal. No game is then stepped.
    ///
    /// # Panics
    /// If the outputs have other lengths.
    pub fn step(&mut self, actions: &[i64], rewards: &mut [f32], ended: &mut [bool]) -> Result<()> {
        self.step_chosen(Actions { actions, chosen: None }, rewards, ended)
    }

    /// [`Envs::step`] in the environments that `actions.chosen` marks; the others stay as they are.
    ///
    /// # Errors
    /// As [`Envs::step`].
    ///
    /// # Panics
    /// As [`Envs::step`].
    pub fn step_chosen(
        &mut self,
        actions: Actions<'_>,
        rewards: &mut [f32],
        ended: &mut [bool],
    ) -> Result<()> {
        self.check_actions(actions)?;
        let Self { shards, per_shard, players, auto_reset, sizes, .. } = self;
        let (n, auto_reset) = (*per_shard, *auto_reset);
        assert_eq!((rewards.len(), ended.len()), (players.len() * sizes.num_players, players.len()));
        let outputs =
            rewards.chunks_mut(n * sizes.num_players).zip(ended.chunks_mut(n)).zip(players.chunks_mut(n));
        let parts = shards.iter_mut().zip(parts_of(actions, n)).zip(outputs);
        run(parts, |((shard, actions), ((rewards, ended), players))| {
            shard.step(actions, auto_reset, StepResults { rewards, ended, players });
        });
        Ok(())
    }

    /// Writes a uniformly random legal action of each environment to `actions [N]`, -1 where the game is over.
    ///
    /// # Panics
    /// If `actions` has another length.
    pub fn sample(&self, actions: &mut [i64]) {
        assert_eq!(actions.len(), self.len());
        let parts = self.shards.iter().zip(actions.chunks_mut(self.per_shard));
        run(parts, |(shard, actions)| shard.sample(actions));
    }

    /// Writes true for every legal action to `mask [N, A]`.
    ///
    /// # Panics
    /// If `mask` has another length.
    pub fn write_legal(&self, mask: &mut [bool]) {
        let row = self.sizes.num_actions;
        assert_eq!(mask.len(), self.len() * row);
        let parts = self.shards.iter().zip(mask.chunks_mut(self.per_shard * row));
        run(parts, |(shard, mask)| shard.write_legal(mask));
    }

    /// Writes the observation of the player to move (of player 0 where the game is over), or of player `observer`, to `out [N, F]`. Numbers
    /// that depend on what the observer does not know are 0.
    ///
    /// # Panics
    /// If `out` has another length or there is no such player.
    pub fn observe(&self, observer: Option<u8>, out: &mut [f32]) {
        let row = self.sizes.obs.len();
        assert_eq!(out.len(), self.len() * row);
        assert!(observer.is_none_or(|player| usize::from(player) < self.sizes.num_players));
        let isa = Isa::detect();
        let parts = self.shards.iter().zip(out.chunks_mut(self.per_shard * row));
        run(parts, |(shard, out)| shard.observe(isa, observer, out));
    }

    /// The legal actions of environment `env`, ascending; empty where the game is over.
    ///
    /// # Panics
    /// If there is no such environment.
    pub fn legal(&self, env: usize) -> &[u16] {
        self.shards[env / self.per_shard].legal(env % self.per_shard)
    }

    /// The position of environment `env`.
    ///
    /// # Panics
    /// If there is no such environment.
    pub fn position(&self, env: usize) -> EnvPosition<'_> {
        self.shards[env / self.per_shard].position(env % self.per_shard)
    }

    fn check_actions(&self, actions: Actions<'_>) -> Result<()> {
        self.check_len("actions", actions.actions.len())?;
        actions.chosen.map_or(Ok(()), |chosen| self.check_len("environments to step", chosen.len()))?;
        let mut found = vec![None; self.shards.len()];
        let parts = self.shards.iter().zip(parts_of(actions, self.per_shard)).zip(&mut found);
        run(parts, |((shard, actions), found)| *found = shard.find_illegal(actions));
        let mut firsts = found.iter().zip((0..).step_by(self.per_shard));
        match firsts.find_map(|(env, first)| Some(first + (*env)?)) {
            Some(env) => Err(self.illegal(env, actions.actions[env])),
            None => Ok(()),
        }
    }

    fn check_len(&self, what: &str, found: usize) -> Result<()> {
        match found == self.len() {
            true => Ok(()),
            false => Err(Error::mismatch(format_args!("number of {what}"), found, self.len())),
        }
    }

    /// The refusal of `action` in environment `env`.
    fn illegal(&self, env: usize, action: i64) -> Error {
        /// Maximum number of legal actions that are all named.
        const SHORT: usize = 12;
        let legal = self.legal(env);
        let shown: Vec<String> = legal.iter().take(SHORT).map(ToString::to_string).collect();
        let rest = match legal.len().saturating_sub(SHORT) {
            0 => String::new(),
            more => format!(" and {}", count(more, "other")),
        };
        Error::mismatch(
            format_args!("action of environment {env}"),
            action,
            format_args!("a legal action: {}{rest}", shown.join(", ")),
        )
    }
}

/// The actions of each shard of `len` environments.
fn parts_of(actions: Actions<'_>, len: usize) -> impl Iterator<Item = Actions<'_>> {
    let chosen = move |part: usize| actions.chosen.and_then(|chosen| chosen.chunks(len).nth(part));
    let parts = actions.actions.chunks(len).enumerate();
    parts.map(move |(part, of)| Actions { actions: of, chosen: chosen(part) })
}

/// Does `work` for each of `parts`: in rayon's current pool, or by the caller where there is one part.
fn run<T: Send>(parts: impl Iterator<Item = T>, work: impl Fn(T) + Send + Sync) {
    let parts: Vec<T> = parts.collect();
    match parts.len() {
        0 | 1 => parts.into_iter().for_each(work),
        _ => parts.into_par_iter().for_each(work),
    }
}
