//! From one game to N: the only "vmap" in vecaz.
//!
//! [`GameBatch`] plays N games at once with finished slots refilled; [`AnyGame`] is a game whose type has been erased, its
//! states plain bytes, so that everything above the backend is written once for all games. The `*_batch` operations
//! cost one dynamic call each, with the loop over states inside; operations once a ply of a game, such as a step of its record, cost
//! one call each. Knows games and no trees.

mod playthrough;
pub mod programs; // kernels that depend on a game's rules

pub use playthrough::Playthrough;

use crate::config::KeyInfo;
use crate::error::Result;
use crate::game::{self, ExactSolver, Game, GameVisitor, History, Sizes, Turn};
use crate::rng::{Key, Purpose, RngStream};
use std::sync::Arc;

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
        let mut probs = [0.0f32; 256];
        for slot in 0..self.len() {
            let mut rng = Key::new(seed, Purpose::Evaluation)
                .with(slot as u64)
                .with(self.games[slot])
                .with(u64::from(self.plies[slot]))
                .stream();
            let legal = self.legal(slot);
            let place = if self.game.turn(&self.states[slot]) == Turn::Chance {
                let probs = &mut probs[..legal.len()];
                self.game.chance_probs(&self.states[slot], legal, probs);
                rng.weighted(probs)
            } else {
                rng.below(legal.len())
            };
            self.step_slot(slot, legal[place]);
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

/// A game whose type has been erased; a state is [`AnyGame::state_size`] bytes.
///
/// The `*_batch` operations take M states back to back and cost one dynamic call each.
pub trait AnyGame: Send + Sync {
    /// The name in the registry.
    fn name(&self) -> &'static str;
    /// All settings, resolved.
    fn options(&self) -> toml::Table;
    /// See [`Game::SIZE_OPTION`].
    fn size_option(&self) -> Option<&'static str>;
    /// See [`Game::keys`].
    fn keys(&self) -> Vec<KeyInfo>;
    /// See [`Game::aim`].
    fn aim(&self, player: u8) -> String;
    /// The sizes of every array.
    fn sizes(&self) -> Sizes;
    /// Bytes of a state.
    fn state_size(&self) -> usize;
    /// The state before the first ply.
    fn init(&self) -> Vec<u8>;
    /// See [`Game::is_valid`].
    fn is_valid(&self, state: &[u8]) -> bool;
    /// Who decides next.
    fn turn(&self, state: &[u8]) -> Turn;
    /// The legal actions or outcomes, ascending; empty once the game is over.
    fn legal(&self, state: &[u8], history: History<'_>) -> Vec<u16>;
    /// See [`Game::chance_probs`].
    fn chance_probs(&self, state: &[u8], outcomes: &[u16]) -> Vec<f32>;
    /// See [`Game::step`].
    fn step(&self, state: &mut [u8], action: u16, history: History<'_>);
    /// See [`Game::returns`]. `[P]`
    fn returns(&self, state: &[u8]) -> Vec<f32>;
    /// See [`Game::scores`]. `[P]`
    fn scores(&self, state: &[u8]) -> Vec<f32>;
    /// See [`Game::finding`].
    fn finding(&self, state: &[u8]) -> Option<serde_json::Value>;
    /// See [`Game::exact_solver`].
    fn exact_solver(&self) -> Option<ExactSolver>;
    /// See [`Game::solved_positions`].
    fn solved_positions(&self) -> Option<&'static str>;
    /// See [`Game::history_key`].
    fn history_key(&self, state: &[u8]) -> u64;
    /// See [`Game::determinise`].
    fn determinise(&self, state: &[u8], player: u8, rng: &mut RngStream) -> Vec<u8>;
    /// The observation of the player to move in each of M states: `states [M, bytes]` -> `out [M, F]`. At chance nodes and after the end it
    /// is that of player 0.
    fn observe_batch(&self, states: &[u8], out: &mut [f32]);
    /// M states through one symmetry each: `states [M, bytes]`, `symmetries [M]`, in place.
    fn transform_batch(&self, states: &mut [u8], symmetries: &[u64]);
    /// See [`Game::transform_action`].
    fn transform_action(&self, action: u16, symmetry: u64) -> u16;
    /// See [`Game::transform_player`].
    fn transform_player(&self, player: u8, symmetry: u64) -> u8;
    /// See [`Game::display`].
    fn display(&self, state: &[u8]) -> String;
    /// See [`Game::notation`].
    fn notation(&self, state: &[u8]) -> Option<(&'static str, String)>;
    /// See [`Game::sgf_point`].
    fn sgf_point(&self, action: u16) -> Option<String>;
    /// See [`Game::action_name`].
    fn action_name(&self, state: &[u8], action: u16) -> String;
    /// See [`Game::parse_action`].
    fn parse_action(&self, state: &[u8], history: History<'_>, text: &str) -> Option<u16>;
}

struct Erased<G>(G);

impl<G: Game> Erased<G> {
    fn state(bytes: &[u8]) -> G::State {
        bytemuck::pod_read_unaligned(bytes)
    }
}

impl<G: Game> AnyGame for Erased<G> {
    fn name(&self) -> &'static str {
        G::NAME
    }

    fn options(&self) -> toml::Table {
        self.0.options()
    }

    fn size_option(&self) -> Option<&'static str> {
        G::SIZE_OPTION
    }

    fn keys(&self) -> Vec<KeyInfo> {
        self.0.keys()
    }

    fn aim(&self, player: u8) -> String {
        self.0.aim(player)
    }

    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }

    fn state_size(&self) -> usize {
        size_of::<G::State>()
    }

    fn init(&self) -> Vec<u8> {
        bytemuck::bytes_of(&self.0.init()).to_vec()
    }

    fn is_valid(&self, state: &[u8]) -> bool {
        self.0.is_valid(&Self::state(state))
    }

    fn turn(&self, state: &[u8]) -> Turn {
        self.0.turn(&Self::state(state))
    }

    fn legal(&self, state: &[u8], history: History<'_>) -> Vec<u16> {
        let state = Self::state(state);
        if self.0.turn(&state) == Turn::Over {
            return Vec::new();
        }
        let mut out = vec![0; self.0.sizes().num_edges()];
        let n = self.0.legal(&state, history, &mut out);
        out.truncate(n);
        out
    }

    fn chance_probs(&self, state: &[u8], outcomes: &[u16]) -> Vec<f32> {
        let mut out = vec![0.0; outcomes.len()];
        self.0.chance_probs(&Self::state(state), outcomes, &mut out);
        out
    }

    fn step(&self, state: &mut [u8], action: u16, history: History<'_>) {
        let mut typed = Self::state(state);
        self.0.step(&mut typed, action, history);
        state.copy_from_slice(bytemuck::bytes_of(&typed));
    }

    fn returns(&self, state: &[u8]) -> Vec<f32> {
        let mut out = vec![0.0; self.0.sizes().num_players];
        self.0.returns(&Self::state(state), &mut out);
        out
    }

    fn scores(&self, state: &[u8]) -> Vec<f32> {
        self.0.scores(&Self::state(state))
    }

    fn finding(&self, state: &[u8]) -> Option<serde_json::Value> {
        self.0.finding(&Self::state(state))
    }

    fn exact_solver(&self) -> Option<ExactSolver> {
        self.0.exact_solver()
    }

    fn solved_positions(&self) -> Option<&'static str> {
        self.0.solved_positions()
    }

    fn history_key(&self, state: &[u8]) -> u64 {
        self.0.history_key(&Self::state(state))
    }

    fn determinise(&self, state: &[u8], player: u8, rng: &mut RngStream) -> Vec<u8> {
        bytemuck::bytes_of(&self.0.determinise(&Self::state(state), player, rng)).to_vec()
    }

    fn observe_batch(&self, states: &[u8], out: &mut [f32]) {
        let len = self.0.sizes().obs.len();
        for (bytes, out) in states.chunks_exact(size_of::<G::State>()).zip(out.chunks_exact_mut(len)) {
            let state = Self::state(bytes);
            let player = match self.0.turn(&state) {
                Turn::Player(p) => p,
                Turn::Chance | Turn::Over => 0,
            };
            self.0.observe(&state, player, out);
        }
    }

    fn transform_batch(&self, states: &mut [u8], symmetries: &[u64]) {
        for (bytes, &symmetry) in states.chunks_exact_mut(size_of::<G::State>()).zip(symmetries) {
            let image = self.0.transform(&Self::state(bytes), symmetry);
            bytes.copy_from_slice(bytemuck::bytes_of(&image));
        }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        self.0.transform_action(action, symmetry)
    }

    fn transform_player(&self, player: u8, symmetry: u64) -> u8 {
        self.0.transform_player(player, symmetry)
    }

    fn display(&self, state: &[u8]) -> String {
        self.0.display(&Self::state(state))
    }

    fn notation(&self, state: &[u8]) -> Option<(&'static str, String)> {
        self.0.notation(&Self::state(state))
    }

    fn sgf_point(&self, action: u16) -> Option<String> {
        self.0.sgf_point(action)
    }

    fn action_name(&self, state: &[u8], action: u16) -> String {
        self.0.action_name(&Self::state(state), action)
    }

    fn parse_action(&self, state: &[u8], history: History<'_>, text: &str) -> Option<u16> {
        self.0.parse_action(&Self::state(state), history, text)
    }
}

/// The game called `name` with its `options`, its type erased.
///
/// # Errors
/// As [`game::dispatch`].
pub fn any_game(name: &str, options: &toml::Table) -> Result<Arc<dyn AnyGame>> {
    struct Erase;
    impl GameVisitor for Erase {
        type Out = Arc<dyn AnyGame>;
        fn visit<G: Game>(self, game: G) -> Self::Out {
            erase(game)
        }
    }
    game::dispatch(name, options, Erase)
}

/// `game` with its type erased, whether the registry has it or not.
pub fn erase<G: Game>(game: G) -> Arc<dyn AnyGame> {
    Arc::new(Erased(game))
}
