//! The trait of games.

use super::set_up::SetUp;
use super::sizes::{Sizes, Target};
use super::solver::ExactSolver;
use super::source::{CudaSource, NamedText};
use super::tally::{TallyCell, TallyTable};
use super::valuation::Valuation;
use super::view::{Spot, View, Viewer, filled};
use super::whole_turns::{Duplicates, WholeTurn, WholeTurns, too_long};
use crate::config::KeyInfo;
use crate::device_struct::device_constants;
use crate::error::{Error, Result};
use crate::rng::RngStream;
use bytemuck::Pod;

device_constants! {
    fn device_constants;
    /// Maximum number of players of a game.
    pub const MAX_PLAYERS: usize as "int" = 8;
}

/// The decider of the next ply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The player with this number, 0..num_players.
    Player(u8),
    /// Chance: an outcome is dealt with given probabilities.
    Chance,
    /// The game has ended.
    Over,
}

/// The [`Game::history_key`]s of the positions before a state, oldest first; empty if the game does not use them.
#[derive(Clone, Copy, Debug, Default)]
pub struct History<'a> {
    /// Positions of the game as played.
    pub played: &'a [u64],
    /// Positions of the search path below them.
    pub path: &'a [u64],
}

impl History<'_> {
    /// All keys, the latest first.
    pub fn latest_first(&self) -> impl Iterator<Item = u64> + '_ {
        self.path.iter().rev().chain(self.played.iter().rev()).copied()
    }
}

/// The rules of one game. A value of the type holds the settings (board size, number of players).
///
/// Steps have no randomness: where chance decides, [`Game::turn`] is [`Turn::Chance`], [`Game::legal`] lists the possible
/// outcomes, [`Game::chance_probs`] their probabilities, and the caller deals one through [`Game::step`].
///
/// The calling contract, which the contract tests check for every registered game: `legal`, `observe` and `step` are
/// called only on states where they make sense (`legal` and `step` not after the end, `step` only with an action out of
/// `legal`); wrong input from users is refused before it gets here.
pub trait Game: Clone + Send + Sync + 'static {
    /// One position: plain old data of one size for every setting of the game, `#[repr(C)]`, no padding, alignment at
    /// most 8.
    type State: Pod + Send + Sync + std::fmt::Debug + PartialEq;

    /// The name in the registry, of letters, digits, `_` and `-`.
    const NAME: &'static str;

    /// Options, as TOML text, that change rules or sizes: the contract tests play each of them, and the default game.
    const VARIANTS: &'static [&'static str] = &[];

    /// The built-in configurations, the one with the game's name first: it is the base of every configuration that names the game. A game
    /// without it starts from the default of every key.
    const CONFIGS: &'static [NamedText] = &[];

    /// The CUDA source of the rules, the twin of this type for kernels; None where searches run on the CPU only.
    const CUDA_SOURCE: Option<CudaSource> = None;

    /// The option that sets only the size of the board. A network whose parameters do not depend on that size can be used for all values. None
    /// if no network of [`crate::config::Arch`] can, or if the option changes rules too.
    const SIZE_OPTION: Option<&'static str> = None;

    /// The options of which the sizes of a network and the meaning of its numbers do not depend, so that it serves all their values: the position in
    /// which games start, the plies after which they are cut off, what an observation tells, and what [`Game::valuation`] adds.
    const SPAN_OPTIONS: &'static [&'static str] = &[];

    /// The options that set what a network observes, and no rule: networks of all their values play each other, each with its own.
    const SIGHT_OPTIONS: &'static [&'static str] = &[];

    /// The game with the settings of the `[game]` table (its `name` taken out).
    ///
    /// # Errors
    /// [`crate::Error::Config`] or [`crate::Error::ConfigText`] with the unknown or invalid key.
    fn from_options(options: &toml::Table) -> Result<Self>;

    /// All settings, resolved: `from_options(options())` gives an equal game.
    fn options(&self) -> toml::Table;

    /// The keys of the `[game]` table, `name` excepted, with their present values.
    fn keys(&self) -> Vec<KeyInfo> {
        Vec::new()
    }

    /// The aim of `player`, as a sentence without a full stop: "X connects the top border with the bottom border". It begins with the
    /// player's mark in [`Game::view`], or with the verb if players have no marks.
    fn aim(&self, player: u8) -> String;

    /// The sizes of every array.
    fn sizes(&self) -> Sizes;

    /// The state before the first ply.
    fn init(&self) -> Self::State;

    /// The state in which a person has placed these pieces on the grid of [`Game::view`], with as little history as they tell. It must be one of a
    /// game in progress, and placing the pieces of its own view must give it again. By default nothing can be set up.
    ///
    /// # Errors
    /// [`Error::Unsupported`] or [`Error::Config`] with the reason why such a position cannot come about.
    fn set_up(&self, _set_up: SetUp<'_>) -> Result<Self::State> {
        let why = "its positions are reached by its moves alone, since they are more than pieces on a board";
        Err(Error::unsupported(format!("setting up a position of {}", Self::NAME), why))
    }

    /// True if a state read from a file can be observed and transformed: its fields are in the ranges that [`Game::turn`], [`Game::observe`]
    /// and [`Game::transform`] use. The file may have any bytes. The state need not be reachable by play.
    fn is_valid(&self, _state: &Self::State) -> bool {
        true
    }

    /// The decider of the next ply. Chance may end a game before any player decides: self-play passes over such games.
    fn turn(&self, state: &Self::State) -> Turn;

    /// Writes the legal actions (at a chance state: the possible outcomes) in ascending order to the front of `out` and
    /// returns how many. `out` holds at least [`Sizes::num_edges`].
    fn legal(&self, state: &Self::State, history: History<'_>, out: &mut [u16]) -> usize;

    /// Plays `action` (at a chance state: deals that outcome). `history` holds the positions before `state`, without it.
    fn step(&self, state: &mut Self::State, action: u16, history: History<'_>);

    /// Writes the observation of `player` to `out`, row-major in [`Sizes::obs`], from that player's viewpoint. The first
    /// [`Game::known_obs`] elements may depend only on information of that player. With `inline(always)` the function is compiled for the
    /// instruction set of the row loops, which vectorises the planes of a board. `[F]`
    fn observe(&self, state: &Self::State, player: u8, out: &mut [f32]);

    /// Number of leading elements of an observation that depend only on information of the observer: F, unless the network observes the
    /// whole state that search has drawn by [`Game::determinise`].
    fn known_obs(&self) -> usize {
        self.sizes().obs.len()
    }

    /// The result of a finished game for every player, `[P]` in [-1, 1].
    fn returns(&self, state: &Self::State, out: &mut [f32]);

    /// What search and value targets take as the result of a finished game, and at a [horizon](Game::is_horizon): in a game of several rounds
    /// that of the last round alone, on a scale that is the same whatever the number of rounds. `[P]` in [-1, 1]. Players who do their best in
    /// every round must do their best in the game. By default [`Game::returns`].
    fn stage_returns(&self, state: &Self::State, out: &mut [f32]) {
        self.returns(state, out);
    }

    /// The number of players of the game of `state`, of whom there are at most `seats`, P. They are numbered from 0; the other seats are empty:
    /// never to move, and with the result 0. The same at all decisions of a game. By default all seats are taken.
    #[inline(always)]
    fn num_seated(&self, _state: &Self::State, seats: usize) -> usize {
        seats
    }

    /// Probabilities of the outcomes of [`Game::legal`], in its order, with sum 1.
    fn chance_probs(&self, _state: &Self::State, outcomes: &[u16], out: &mut [f32]) {
        out[..outcomes.len()].fill(1.0 / outcomes.len() as f32);
    }

    /// Adds to `turns` the whole turn of the player to move in `state`: every position to which that player's plies lead, up to where chance
    /// or another player decides or the game ends. `history` and `legal`, scratch for the actions of a position, as for [`Game::legal`].
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for a turn of more than [`MAX_TURN_POSITIONS`](super::MAX_TURN_POSITIONS) positions; `turns` must then
    /// be cleared.
    fn whole_turn(
        &self,
        state: &Self::State,
        history: History<'_>,
        turns: &mut WholeTurns<Self::State>,
        legal: &mut [u16],
    ) -> Result<WholeTurn> {
        let Turn::Player(player) = self.turn(state) else {
            return Err(Error::unsupported("the whole turn of a position", "no player is to move"));
        };
        turns.begin(state);
        let first = turns.positions().len() - 1;
        let (mut next, mut end_of_ply, mut path) = (first, first, Vec::new());
        while next < turns.positions().len() {
            if next == end_of_ply {
                end_of_ply = turns.positions().len();
                turns.begin_ply();
            }
            let position = turns.positions()[next];
            if self.turn(&position) == Turn::Player(player) {
                if turns.duplicates() == Duplicates::Kept {
                    path.clear();
                    path.extend(turns.latest_before(next).map(|before| self.history_key(before)));
                    path.reverse();
                }
                let history = History { played: history.played, path: &path };
                let count = self.legal(&position, history, legal);
                for &action in &legal[..count] {
                    let mut after = position;
                    self.step(&mut after, action, history);
                    if !turns.add(next, action, &after) {
                        return Err(too_long(Self::NAME));
                    }
                }
            }
            next += 1;
        }
        Ok(turns.last(player))
    }

    /// True if search must stop although the game continues by chance: the start of a new deal. The value of such a leaf, and of the plies that
    /// led to it, is [`Game::stage_returns`].
    fn is_horizon(&self, _state: &Self::State) -> bool {
        false
    }

    /// A state drawn uniformly from those that `player` cannot distinguish from `state`.
    fn determinise(&self, state: &Self::State, _player: u8, _rng: &mut RngStream) -> Self::State {
        *state
    }

    /// The image of the state under symmetry number `symmetry` in 0..[`Sizes::num_symmetries`].
    fn transform(&self, state: &Self::State, _symmetry: u64) -> Self::State {
        *state
    }

    /// The image of an action under symmetry number `symmetry`: playing the image in the image state gives the image of the next state.
    fn transform_action(&self, action: u16, _symmetry: u64) -> u16 {
        action
    }

    /// The image of an outcome of chance under symmetry number `symmetry`, which is as probable: a tile on the cell's image. By default the
    /// outcome itself: dice and cards have no place on the board.
    fn transform_outcome(&self, outcome: u16, _symmetry: u64) -> u16 {
        outcome
    }

    /// The image of a player under symmetry number `symmetry` (a reflection may swap colours).
    fn transform_player(&self, player: u8, _symmetry: u64) -> u8 {
        player
    }

    /// The state with zeros in all fields that affect neither the observation of the player to move nor the legal list. States with equal
    /// results share an entry of the evaluation cache.
    fn canonical(&self, state: &Self::State) -> Self::State {
        *state
    }

    /// A key of the position for the rules about repetition; positions of one key show the same board.
    fn history_key(&self, _state: &Self::State) -> u64 {
        0
    }

    /// The targets of the game's own; see [`Target`].
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }

    /// Writes target `number` of [`Game::targets`] for `position`, whose game ended in `end`, from the viewpoint of `player`, by
    /// whose observation the network learns it: the player to move, or after a whole turn the one who has moved. The images of all three under
    /// a symmetry have the image of the target.
    fn write_target(
        &self,
        _number: usize,
        _position: &Self::State,
        _end: &Self::State,
        _player: u8,
        out: &mut [f32],
    ) {
        out.fill(0.0);
    }

    /// How a network values positions if it was trained without these settings; None if its own values count.
    fn valuation(&self) -> Option<Valuation> {
        None
    }

    /// Raw scores for people, `[P]`: points, tricks. By default the returns.
    fn scores(&self, state: &Self::State) -> Vec<f32> {
        let mut out = vec![0.0; self.sizes().num_players];
        self.returns(state, &mut out);
        out
    }

    /// Points per unit of value in games whose values are shown as expected points; None where values are shown in [-1, 1].
    fn points_of_value(&self) -> Option<f32> {
        None
    }

    /// The table of what people count in games besides points, if they do.
    fn tally_table(&self) -> Option<TallyTable> {
        None
    }

    /// The cell of [`Game::tally_table`] in which `player` counts once the ply from `before` to `after` is played, if in any.
    fn tally(&self, _before: &Self::State, _after: &Self::State, _player: u8) -> Option<TallyCell> {
        None
    }

    /// The finding of a finished game: a result of interest outside of training, saved in `findings.jsonl` as one line of JSON. In the
    /// clique game it is a Ramsey colouring; most games have none.
    fn finding(&self, _state: &Self::State) -> Option<serde_json::Value> {
        None
    }

    /// The exact solver of positions with these settings, if there is one.
    fn exact_solver(&self) -> Option<ExactSolver> {
        None
    }

    /// Solved positions on which a run measures its strength, one line of JSON each: `{"actions":[..],"scores":[number or null per action]}`,
    /// with the scores of [`PositionSolver::scores`](super::PositionSolver::scores). Without solved positions a run plays matches.
    fn solved_positions(&self) -> Option<&'static str> {
        None
    }

    /// The look of the position, without its actions ([`describe`](super::describe) adds them) and with nothing that `viewer` may not know: a player's
    /// view is the same for all draws of [`Game::determinise`] for that player. By default the fields of the state as text, and no more than a sentence in
    /// games with hidden information.
    fn view(&self, state: &Self::State, _viewer: Viewer) -> View {
        View::text(filled(&match self.sizes().hidden_information {
            true => format!("{} has no view, so that nothing hidden is shown", Self::NAME),
            false => format!("{state:?}"),
        }))
    }

    /// The spot on the board of [`Game::view`] that a legal action or outcome points at. By default actions are chosen by their names.
    fn spot(&self, _state: &Self::State, _action: u16) -> Spot {
        Spot::Button
    }

    /// True if `player` comes to know that `action` was taken, or dealt, in `state`. In games with hidden information these are by default
    /// the player's own actions only.
    fn sees_action(&self, state: &Self::State, _action: u16, player: u8) -> bool {
        !self.sizes().hidden_information || self.turn(state) == Turn::Player(player)
    }

    /// The position in a notation of other programs, with the name of the notation first: `("fen", ..)`.
    fn notation(&self, _state: &Self::State) -> Option<(&'static str, String)> {
        None
    }

    /// The point of a move in SGF (Smart Game Format 4), if the game has such records; a pass is the empty string.
    fn sgf_point(&self, _action: u16) -> Option<String> {
        None
    }

    /// The name of a legal action or outcome in the usual notation. People may type an action's number in place of its name, so a name that is
    /// a number must be that of its own action: "take 1" and not "1" for action 0. It has no commas, which separate the names of a list, and
    /// single blanks between its words, of which there are at most eight.
    fn action_name(&self, state: &Self::State, action: u16) -> String;

    /// The name of a legal action in records of games, where they have another one than [`Game::action_name`].
    fn record_name(&self, state: &Self::State, action: u16) -> String {
        self.action_name(state, action)
    }

    /// The legal action that `text` names, if any, regardless of case.
    fn parse_action(&self, state: &Self::State, history: History<'_>, text: &str) -> Option<u16> {
        let mut legal = vec![0; self.sizes().num_edges()];
        let n = self.legal(state, history, &mut legal);
        legal[..n].iter().copied().find(|&a| self.action_name(state, a).eq_ignore_ascii_case(text))
    }
}
