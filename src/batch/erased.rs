//! A game whose type has been erased.

use super::env_shard::{EnvShard, GameEnvs};
use crate::config::KeyInfo;
use crate::error::Result;
use crate::game::set_up::SetUp;
use crate::game::view::{Spot, View, Viewer};
use crate::game::{
    CudaSource, ExactSolver, Game, History, Sizes, TallyCell, TallyTable, Target, Turn, Valuation,
};
use crate::rng::RngStream;

/// Declares the methods of [`ErasedRules`] and implements them for [`ErasedGame`], in which `self.0` is the game.
macro_rules! erased_rules {
    ($($(#[$doc:meta])* fn $name:ident($($argument:tt)*) $(-> $out:ty)? $body:block)+) => {
        /// A game whose type has been erased; a state is [`ErasedRules::state_size`] bytes.
        ///
        /// The `*_batch` operations take M states back to back and cost one dynamic call each.
        pub trait ErasedRules: Send + Sync {
            $($(#[$doc])* fn $name($($argument)*) $(-> $out)?;)+
        }

        impl<G: Game> ErasedRules for ErasedGame<G> {
            $(fn $name($($argument)*) $(-> $out)? $body)+
        }
    };
}

erased_rules! {
    /// The name in the registry.
    fn name(&self) -> &'static str { G::NAME }
    /// All settings, resolved.
    fn options(&self) -> toml::Table { self.0.options() }
    /// See [`Game::CUDA_SOURCE`]; None with a [`Game::valuation`], which kernels do not compute.
    fn cuda_source(&self) -> Option<CudaSource> { G::CUDA_SOURCE.filter(|_| self.0.valuation().is_none()) }
    /// See [`Game::SIZE_OPTION`].
    fn size_option(&self) -> Option<&'static str> { G::SIZE_OPTION }
    /// See [`Game::SPAN_OPTIONS`].
    fn span_options(&self) -> &'static [&'static str] { G::SPAN_OPTIONS }
    /// See [`Game::SIGHT_OPTIONS`].
    fn sight_options(&self) -> &'static [&'static str] { G::SIGHT_OPTIONS }
    /// The options without the [`Game::SIGHT_OPTIONS`].
    fn rules(&self) -> toml::Table {
        let is_rule = |key: &str| !G::SIGHT_OPTIONS.contains(&key);
        self.0.options().into_iter().filter(|(key, _)| is_rule(key)).collect()
    }
    /// See [`Game::keys`].
    fn keys(&self) -> Vec<KeyInfo> { self.0.keys() }
    /// See [`Game::aim`].
    fn aim(&self, player: u8) -> String { self.0.aim(player) }
    /// The sizes of every array.
    fn sizes(&self) -> Sizes { self.0.sizes() }
    /// Bytes of a state.
    fn state_size(&self) -> usize { size_of::<G::State>() }
    /// The state before the first ply.
    fn init(&self) -> Vec<u8> { bytemuck::bytes_of(&self.0.init()).to_vec() }
    /// See [`Game::set_up`].
    ///
    /// # Errors
    /// Those of [`Game::set_up`].
    fn set_up(&self, set_up: SetUp<'_>) -> Result<Vec<u8>> { self.0.set_up(set_up).map(|state| bytemuck::bytes_of(&state).to_vec()) }
    /// See [`Game::is_valid`].
    fn is_valid(&self, state: &[u8]) -> bool { self.0.is_valid(&Self::state(state)) }
    /// Who decides next.
    fn turn(&self, state: &[u8]) -> Turn { self.0.turn(&Self::state(state)) }
    /// The legal actions or outcomes, ascending; empty once the game is over.
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
    /// See [`Game::chance_probs`].
    fn chance_probs(&self, state: &[u8], outcomes: &[u16]) -> Vec<f32> {
        let mut out = vec![0.0; outcomes.len()];
        self.0.chance_probs(&Self::state(state), outcomes, &mut out);
        out
    }
    /// See [`Game::step`].
    fn step(&self, state: &mut [u8], action: u16, history: History<'_>) {
        let mut typed = Self::state(state);
        self.0.step(&mut typed, action, history);
        state.copy_from_slice(bytemuck::bytes_of(&typed));
    }
    /// See [`Game::returns`]. `[P]`
    fn returns(&self, state: &[u8]) -> Vec<f32> {
        let mut out = vec![0.0; self.0.sizes().num_players];
        self.0.returns(&Self::state(state), &mut out);
        out
    }
    /// See [`Game::stage_returns`]. `[P]`
    fn stage_returns(&self, state: &[u8]) -> Vec<f32> {
        let mut out = vec![0.0; self.0.sizes().num_players];
        self.0.stage_returns(&Self::state(state), &mut out);
        out
    }
    /// See [`Game::num_seated`].
    fn num_seated(&self, state: &[u8]) -> usize { self.0.num_seated(&Self::state(state), self.0.sizes().num_players) }
    /// See [`Game::is_horizon`]. False where a player is to move.
    fn is_horizon(&self, state: &[u8]) -> bool {
        let state = Self::state(state);
        self.0.turn(&state) == Turn::Chance && self.0.is_horizon(&state)
    }
    /// See [`Game::scores`]. `[P]`
    fn scores(&self, state: &[u8]) -> Vec<f32> { self.0.scores(&Self::state(state)) }
    /// See [`Game::points_of_value`].
    fn points_of_value(&self) -> Option<f32> { self.0.points_of_value() }
    /// See [`Game::tally_table`].
    fn tally_table(&self) -> Option<TallyTable> { self.0.tally_table() }
    /// See [`Game::tally`].
    fn tally(&self, before: &[u8], after: &[u8], player: u8) -> Option<TallyCell> {
        self.0.tally(&Self::state(before), &Self::state(after), player)
    }
    /// See [`Game::targets`].
    fn targets(&self) -> Vec<Target> { self.0.targets() }
    /// See [`Game::write_target`].
    fn write_target(&self, number: usize, position: &[u8], end: &[u8], player: u8, out: &mut [f32]) {
        self.0.write_target(number, &Self::state(position), &Self::state(end), player, out);
    }
    /// See [`Game::valuation`].
    fn valuation(&self) -> Option<Valuation> { self.0.valuation() }
    /// See [`Game::finding`].
    fn finding(&self, state: &[u8]) -> Option<serde_json::Value> { self.0.finding(&Self::state(state)) }
    /// See [`Game::exact_solver`].
    fn exact_solver(&self) -> Option<ExactSolver> { self.0.exact_solver() }
    /// See [`Game::solved_positions`].
    fn solved_positions(&self) -> Option<&'static str> { self.0.solved_positions() }
    /// See [`Game::history_key`].
    fn history_key(&self, state: &[u8]) -> u64 { self.0.history_key(&Self::state(state)) }
    /// See [`Game::determinise`].
    fn determinise(&self, state: &[u8], player: u8, rng: &mut RngStream) -> Vec<u8> {
        bytemuck::bytes_of(&self.0.determinise(&Self::state(state), player, rng)).to_vec()
    }
    /// The observation of the player to move in each of M states: `states [M, bytes]` -> `out [M, F]`. At chance nodes and after the end it
    /// is that of player 0.
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
    /// The observation of the player `observers[i]` in state `i` of M: `states [M, bytes]`, `observers [M]` -> `out [M, F]`.
    fn observe_batch_by(&self, states: &[u8], observers: &[u8], out: &mut [f32]) {
        let len = self.0.sizes().obs.len();
        let states = states.chunks_exact(size_of::<G::State>()).zip(observers);
        for ((bytes, &observer), out) in states.zip(out.chunks_exact_mut(len)) {
            self.0.observe(&Self::state(bytes), observer, out);
        }
    }
    /// Environments number `first..first + count`, at the start of the games of the seed 0.
    fn env_shard(&self, first: u64, count: usize) -> Box<dyn EnvShard> { Box::new(GameEnvs::new(self.0.clone(), first, count)) }
    /// M states through one symmetry each: `states [M, bytes]`, `symmetries [M]`, in place.
    fn transform_batch(&self, states: &mut [u8], symmetries: &[u64]) {
        for (bytes, &symmetry) in states.chunks_exact_mut(size_of::<G::State>()).zip(symmetries) {
            let image = self.0.transform(&Self::state(bytes), symmetry);
            bytes.copy_from_slice(bytemuck::bytes_of(&image));
        }
    }
    /// See [`Game::transform_action`].
    fn transform_action(&self, action: u16, symmetry: u64) -> u16 { self.0.transform_action(action, symmetry) }
    /// See [`Game::transform_player`].
    fn transform_player(&self, player: u8, symmetry: u64) -> u8 { self.0.transform_player(player, symmetry) }
    /// See [`describe`](crate::game::describe).
    fn view(&self, state: &[u8], history: History<'_>, viewer: Viewer) -> View {
        crate::game::describe(&self.0, &Self::state(state), history, viewer)
    }
    /// See [`Game::spot`].
    fn spot(&self, state: &[u8], action: u16) -> Spot { self.0.spot(&Self::state(state), action) }
    /// See [`is_known`](crate::game::is_known).
    fn is_known(&self, state: &[u8], action: u16, viewer: Viewer) -> bool {
        crate::game::is_known(&self.0, &Self::state(state), action, viewer)
    }
    /// See [`Game::notation`].
    fn notation(&self, state: &[u8]) -> Option<(&'static str, String)> { self.0.notation(&Self::state(state)) }
    /// See [`Game::sgf_point`].
    fn sgf_point(&self, action: u16) -> Option<String> { self.0.sgf_point(action) }
    /// See [`Game::action_name`].
    fn action_name(&self, state: &[u8], action: u16) -> String { self.0.action_name(&Self::state(state), action) }
    /// See [`Game::record_name`].
    fn record_name(&self, state: &[u8], action: u16) -> String { self.0.record_name(&Self::state(state), action) }
    /// See [`Game::parse_action`].
    fn parse_action(&self, state: &[u8], history: History<'_>, text: &str) -> Option<u16> {
        self.0.parse_action(&Self::state(state), history, text)
    }
}

/// A game of type `G` behind [`ErasedRules`].
pub struct ErasedGame<G>(pub(crate) G);

impl<G: Game> ErasedGame<G> {
    /// `game` with its type erased.
    pub fn new(game: G) -> Self {
        Self(game)
    }

    fn state(bytes: &[u8]) -> G::State {
        bytemuck::pod_read_unaligned(bytes)
    }
}
