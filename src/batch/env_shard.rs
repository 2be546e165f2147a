//! Some environments of one game: the part of [`Envs`](super::Envs) that one thread steps.

use super::{GameBatch, MAX_UNDECIDED_GAMES};
use crate::game::{Game, Turn};
use crate::isa::Isa;
use crate::rng::{Key, Purpose, RngStream};

/// What becomes of an environment whose game is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoReset {
    /// The step that ends a game also starts the next one.
    #[default]
    SameStep,
    /// The next step starts a new game and does not read the action.
    NextStep,
    /// Nothing, until [`super::Envs::restart`].
    Off,
}

/// The actions of a step. Those of environments that are not stepped and of games that are over are not read.
#[derive(Clone, Copy, Debug)]
pub struct Actions<'a> {
    /// `[N]`
    pub actions: &'a [i64],
    /// The environments that are stepped; None for all. `[N]`
    pub chosen: Option<&'a [bool]>,
}

impl Actions<'_> {
    /// True if environment `env` is stepped.
    fn has(&self, env: usize) -> bool {
        self.chosen.is_none_or(|chosen| chosen[env])
    }
}

/// Where a step writes its results.
pub struct StepResults<'a> {
    /// The returns of the games that this step ended, 0 in all other environments. `[N, P]`
    pub rewards: &'a mut [f32],
    /// True where this step ended the game, and without reset where it is over. `[N]`
    pub ended: &'a mut [bool],
    /// The player to move, -1 where the game is over. `[N]`
    pub players: &'a mut [i8],
}

/// A position of an environment, for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvPosition<'a> {
    /// The state's bytes.
    pub state: &'a [u8],
    /// Keys of the positions before it, where the rules use them.
    pub history: &'a [u64],
    /// The player to move; None where the game is over.
    pub player: Option<u8>,
    /// Games that the environment began before this one.
    pub game: u64,
    /// Plies of the game so far, those of chance included.
    pub plies: u32,
}

/// Environments of a game whose type has been erased. Every operation is one dynamic call for all of them. A player is to move in each, or its
/// game is over: chance is dealt by keyed random numbers. A game that its deal ends is passed over, since no step could report it.
pub trait EnvShard: Send + Sync {
    /// Starts the games of `seed` in all environments: games number 0, or the first ones that their deals do not end.
    fn reset(&mut self, seed: u64, players: &mut [i8]);

    /// Starts the next game of every environment that `chosen` marks. `[n]`
    fn restart(&mut self, chosen: &[bool], players: &mut [i8]);

    /// The first environment whose action is not legal. `[n]`
    fn find_illegal(&self, actions: Actions<'_>) -> Option<usize>;

    /// Plays one legal action in each environment that is stepped, and deals chance until a player is to move. `[n]`
    fn step(&mut self, actions: Actions<'_>, auto_reset: AutoReset, results: StepResults<'_>);

    /// Writes a uniformly random legal action for each environment, -1 where the game is over. The draw depends on the seed, the
    /// environment, its game and its ply alone. `[n]`
    fn sample(&self, actions: &mut [i64]);

    /// The legal actions of environment `env`, ascending; empty where the game is over.
    fn legal(&self, env: usize) -> &[u16];

    /// Writes true for every legal action. `[n, A]`
    fn write_legal(&self, mask: &mut [bool]);

    /// Writes the observation of the player to move (of player 0 where the game is over), or of player `observer`. Numbers that depend on
    /// what the observer does not know are 0. `[n, F]`
    fn observe(&self, isa: Isa, observer: Option<u8>, out: &mut [f32]);

    /// The position of environment `env`.
    fn position(&self, env: usize) -> EnvPosition<'_>;
}

/// Environments number `first..` of the game `G`.
pub(super) struct GameEnvs<G: Game> {
    batch: GameBatch<G>,
    /// The number of the first environment among all.
    first: u64,
    seed: u64,
    /// Probabilities of outcomes. `[C]`
    probs: Vec<f32>,
}

impl<G: Game> GameEnvs<G> {
    /// `count` environments at the start of their games, by the seed 0.
    pub fn new(game: G, first: u64, count: usize) -> Self {
        let probs = vec![0.0; game.sizes().num_chance];
        let mut envs = Self { batch: GameBatch::new(game, count), first, seed: 0, probs };
        (0..count).for_each(|env| envs.deal_game(env));
        envs
    }

    /// The random numbers of the present ply, as those of [`GameBatch::step_random`].
    fn stream(&self, env: usize) -> RngStream {
        Key::new(self.seed, Purpose::Evaluation)
            .with(self.first + env as u64)
            .with(self.batch.games[env])
            .with(u64::from(self.batch.plies[env]))
            .stream()
    }

    fn turn(&self, env: usize) -> Turn {
        self.batch.game.turn(&self.batch.states[env])
    }

    fn is_over(&self, env: usize) -> bool {
        self.batch.num_legal[env] == 0
    }

    /// Deals outcomes until a player is to move or the game is over.
    fn deal(&mut self, env: usize) {
        while self.batch.sizes.num_chance > 0 && self.turn(env) == Turn::Chance {
            let mut rng = self.stream(env);
            let outcomes = self.batch.legal(env);
            let probs = &mut self.probs[..outcomes.len()];
            self.batch.game.chance_probs(&self.batch.states[env], outcomes, probs);
            let outcome = outcomes[rng.weighted(probs)];
            self.batch.step_slot(env, outcome);
        }
    }

    /// Deals to a game at its start. Where that ends it, goes on to the environment's next game that a player decides.
    fn deal_game(&mut self, env: usize) {
        self.deal(env);
        for _ in 0..MAX_UNDECIDED_GAMES {
            if !self.is_over(env) {
                return;
            }
            self.batch.refill_slot(env);
            self.deal(env);
        }
    }

    fn start_next(&mut self, env: usize) {
        self.batch.refill_slot(env);
        self.deal_game(env);
    }

    fn player(&self, env: usize) -> i8 {
        match self.turn(env) {
            Turn::Player(player) if !self.is_over(env) => player as i8,
            Turn::Player(_) | Turn::Chance | Turn::Over => -1,
        }
    }

    #[inline(always)]
    fn write_observations(&self, observer: Option<u8>, out: &mut [f32]) {
        let (game, len) = (&self.batch.game, self.batch.sizes.obs.len());
        let known = game.known_obs();
        for (state, out) in self.batch.states.iter().zip(out.chunks_exact_mut(len)) {
            let player = observer.unwrap_or_else(|| match game.turn(state) {
                Turn::Player(player) => player,
                Turn::Chance | Turn::Over => 0,
            });
            game.observe(state, player, out);
            out[known..].fill(0.0);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
    fn write_observations_avx2(&self, observer: Option<u8>, out: &mut [f32]) {
        self.write_observations(observer, out);
    }
}

impl<G: Game> EnvShard for GameEnvs<G> {
    fn reset(&mut self, seed: u64, players: &mut [i8]) {
        self.seed = seed;
        for (env, player) in players.iter_mut().enumerate() {
            self.batch.refill_slot(env);
            self.batch.games[env] = 0;
            self.deal_game(env);
            *player = self.player(env);
        }
    }

    fn restart(&mut self, chosen: &[bool], players: &mut [i8]) {
        for (env, player) in players.iter_mut().enumerate().filter(|&(env, _)| chosen[env]) {
            self.start_next(env);
            *player = self.player(env);
        }
    }

    fn find_illegal(&self, actions: Actions<'_>) -> Option<usize> {
        let is_legal = |env: usize, action: i64| {
            self.is_over(env)
                || u16::try_from(action)
                    .is_ok_and(|action| self.batch.legal(env).binary_search(&action).is_ok())
        };
        let wrong = |&(env, &action): &(usize, &i64)| actions.has(env) && !is_legal(env, action);
        actions.actions.iter().enumerate().find(wrong).map(|(env, _)| env)
    }

    fn step(&mut self, actions: Actions<'_>, auto_reset: AutoReset, results: StepResults<'_>) {
        let StepResults { rewards, ended, players } = results;
        rewards.fill(0.0);
        let rewards = rewards.chunks_exact_mut(self.batch.sizes.num_players);
        let outputs = rewards.zip(ended).zip(players).enumerate();
        for (env, ((rewards, ended), player)) in outputs {
            match (actions.has(env), self.is_over(env)) {
                (true, false) => {
                    self.batch.step_slot(env, actions.actions[env] as u16);
                    self.deal(env);
                    if self.is_over(env) {
                        self.batch.game.returns(&self.batch.states[env], rewards);
                    }
                }
                (true, true) if auto_reset == AutoReset::NextStep => self.start_next(env),
                (_, _) => {}
            }
            *ended = self.is_over(env) && (actions.has(env) || auto_reset == AutoReset::Off);
            if *ended && auto_reset == AutoReset::SameStep {
                self.start_next(env);
            }
            *player = self.player(env);
        }
    }

    fn sample(&self, actions: &mut [i64]) {
        for (env, action) in actions.iter_mut().enumerate() {
            let legal = self.batch.legal(env);
            *action = match legal.is_empty() {
                true => -1,
                false => i64::from(legal[self.stream(env).below(legal.len())]),
            };
        }
    }

    fn legal(&self, env: usize) -> &[u16] {
        self.batch.legal(env)
    }

    fn write_legal(&self, mask: &mut [bool]) {
        mask.fill(false);
        for (env, row) in mask.chunks_exact_mut(self.batch.sizes.num_actions).enumerate() {
            self.batch.legal(env).iter().for_each(|&action| row[usize::from(action)] = true);
        }
    }

    fn observe(&self, isa: Isa, observer: Option<u8>, out: &mut [f32]) {
        match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: these include AVX2, FMA and BMI, and `Isa::detect` found them.
            Isa::Amx | Isa::Avx512 | Isa::Avx2 => unsafe { self.write_observations_avx2(observer, out) },
            _ => self.write_observations(observer, out),
        }
    }

    fn position(&self, env: usize) -> EnvPosition<'_> {
        EnvPosition {
            state: bytemuck::bytes_of(&self.batch.states[env]),
            history: &self.batch.histories[env],
            player: u8::try_from(self.player(env)).ok(),
            game: self.batch.games[env],
            plies: self.batch.plies[env],
        }
    }
}
