//! From one game to N: the only "vmap" in vecaz.
//!
//! [`GameBatch`] plays N games at once with finished slots refilled; [`ErasedRules`] is a game whose type has been erased, its
//! states plain bytes, so that everything above the backend is written once for all games. The `*_batch` operations
//! cost one dynamic call each, with the loop over states inside; operations once a ply of a game, such as a step of its record, cost
//! one call each. [`Envs`] is a [`GameBatch`] behind such an interface, for callers that choose the actions. Knows games and no trees.

pub(crate) mod action_list;
mod env_shard;
mod envs;
mod erased;
mod playthrough;
pub mod programs; // kernels that depend on a game's rules
pub mod rollouts;

pub use action_list::play_list;
pub use env_shard::{Actions, AutoReset, EnvPosition, EnvShard, StepResults};
pub use envs::Envs;
pub use erased::{ErasedGame, ErasedRules};
pub use playthrough::{PastPly, Playthrough};

use crate::game::{Game, History, Sizes, Turn};
use crate::rng::{Key, Purpose};

/// Maximum number of consecutive games that end in their deal; after them no further game begins. Nothing can be learned from a game that
/// reaches it.
pub const MAX_UNDECIDED_GAMES: u64 = 10_000;

/// N games of one kind, stepped together. Finished games stay put until [`GameBatch::refill`].
#[derive(Clone, Debug)]
pub struct GameBatch<G: Game> {
    game: G,
    sizes: Sizes,
    /// `[N]`
    states: Vec<G::State>,
    /// Keys of earlier positions, kept only where the rules use them. `[N][plies so far]`
    histories: Vec<Vec<u64>>,
    /// Legal actions, the first `num_legal` of each row. `[N, E]`
    legal: Vec<u16>,
    /// `[N]`
    num_legal: Vec<u16>,
    /// Plies made in the slot's present game. `[N]`
    plies: Vec<u32>,
    /// Games finished before the slot's present one. `[N]`
    games: Vec<u64>,
}

impl<G: Game> GameBatch<G> {
    /// N games at their start.
    pub fn new(game: G, num_games: usize) -> Self {
        let sizes = game.sizes();
        let mut batch = Self {
            states: vec![game.init(); num_games],
            histories: vec![Vec::new(); num_games],
            legal: vec![0; num_games * sizes.num_edges()],
            num_legal: vec![0; num_games],
            plies: vec![0; num_games],
            games: vec![0; num_games],
            game,
            sizes,
        };
        (0..num_games).for_each(|slot| batch.list_legal(slot));
        batch
    }

    /// N.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// True for a batch of no games.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The positions. `[N]`
    pub fn states(&self) -> &[G::State] {
        &self.states
    }

    /// Plies made in each slot's present game. `[N]`
    pub fn plies(&self) -> &[u32] {
        &self.plies
    }

    /// Games finished and refilled in each slot. `[N]`
    pub fn finished(&self) -> &[u64] {
        &self.games
    }

    /// The legal actions (or outcomes) of a slot; empty once its game is over.
    pub fn legal(&self, slot: usize) -> &[u16] {
        let start = slot * self.sizes.num_edges();
        &self.legal[start..start + usize::from(self.num_legal[slot])]
    }

    /// Makes one ply in every slot whose game is not over. `actions` is `[N]`; entries of finished slots are not read.
    pub fn step(&mut self, actions: &[u16]) {
        for (slot, &action) in actions.iter().enumerate() {
            if self.num_legal[slot] > 0 {
                self.step_slot(slot, action);
            }
        }
    }

    /// Makes one uniformly random ply in every slot (chance outcomes by their probabilities), refilling finished games.
    /// The draws depend on `seed`, the slot, its game's number and the ply alone.
    pub fn step_random(&mut self, seed: u64) {
        let mut probs = vec![0.0f32; self.game.sizes().num_chance];
        for slot in 0..self.len() {
            let mut rng = Key::new(seed, Purpose::Evaluation)
                .with(slot as u64)
                .with(self.games[slot])
                .with(u64::from(self.plies[slot]))
                .stream();
            let legal = self.legal(slot);
            let index = if self.game.turn(&self.states[slot]) == Turn::Chance {
                let probs = &mut probs[..legal.len()];
                self.game.chance_probs(&self.states[slot], legal, probs);
                rng.weighted(probs)
            } else {
                rng.below(legal.len())
            };
            self.step_slot(slot, legal[index]);
            if self.num_legal[slot] == 0 {
                self.refill_slot(slot);
            }
        }
    }

    /// Starts a new game in every slot whose game is over; returns how many.
    pub fn refill(&mut self) -> usize {
        let over: Vec<usize> = (0..self.len()).filter(|&slot| self.num_legal[slot] == 0).collect();
        over.iter().for_each(|&slot| self.refill_slot(slot));
        over.len()
    }

    fn step_slot(&mut self, slot: usize, action: u16) {
        let before = self.sizes.uses_history.then(|| self.game.history_key(&self.states[slot]));
        let history = History { played: &self.histories[slot], path: &[] };
        self.game.step(&mut self.states[slot], action, history);
        self.histories[slot].extend(before);
        self.plies[slot] += 1;
        self.list_legal(slot);
    }

    fn refill_slot(&mut self, slot: usize) {
        self.states[slot] = self.game.init();
        self.histories[slot].clear();
        self.plies[slot] = 0;
        self.games[slot] += 1;
        self.list_legal(slot);
    }

    fn list_legal(&mut self, slot: usize) {
        let state = &self.states[slot];
        let e = self.sizes.num_edges();
        self.num_legal[slot] = match self.game.turn(state) {
            Turn::Over => 0,
            _ => {
                let history = History { played: &self.histories[slot], path: &[] };
                self.game.legal(state, history, &mut self.legal[slot * e..(slot + 1) * e]) as u16
            }
        };
    }
}
