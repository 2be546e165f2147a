//! Backgammon: one ply plays one die, so the same player moves up to four times in a row. With `cube` and `match_points` it has the doubling cube
//! and matches; without, as networks learn it, it has neither.
//!
//! Actions are `source * 6 + (die - 1)` as in pgx (source 0 = no move, 1 = bar, 2..=25 = the mover's 24-point to
//! 1-point). A die is played wherever rules allow: both dice if possible, else the higher, of doubles as many as
//! possible; where dice are left that cannot be played, the one legal action is 0, "no move". pgx lists six equal
//! actions 0..6 there; all are accepted as text, but only 0 is listed, since a search should not try equal actions. pgx 2.6
//! does not enforce that both dice must be played if possible; this module does, as the official rules say.
//!
//! Chance outcomes number the 21 rolls a <= b lexicographically: 1-1, 1-2, .., 1-6, 2-2, .., 6-6. A game starts with two
//! chance states: outcome 0 or 1 is the player who starts (equally likely), then that player's first roll without doubles (15
//! outcomes, equally likely), as if both had thrown one die and the higher began.
//!
//! A win counts 1, a gammon (the loser has borne off nothing) 2, a backgammon (and has a checker on the bar or in the
//! winner's home) 3; returns are a third of that. A game that reaches `ply_limit` ends with 0 for both.
//!
//! The board is stored from the mover's view and reversed at the end of a turn.

mod cube;
mod equity;
mod features;
mod look;
mod match_equity;
mod moves;
mod observation;
#[cfg(test)]
mod tests;
mod text;

use super::view::{Spot, View, Viewer};
use super::{
    Game, History, ObsShape, Sizes, TallyCell, TallyTable, Target, TargetKind, TargetShape, Turn, Valuation,
};
use crate::config::keys::{names, section};
use crate::device_struct::{device_constants, device_struct};
use crate::error::{Error, Result};
use bytemuck::{Pod, Zeroable};
use cube::{DOUBLE_OR_PASS, NUM_EXTRAS, PHASE_DOUBLE, PHASE_TAKE, ROLL_OR_TAKE};
use features::{FEATURES_AT, SIDE_LEN};
use moves::Movers;

device_constants! {
    fn device_constants;
    /// Length of [`State::board`].
    pub const BOARD_LEN: usize as "int" = 28;
    /// The mover's bar.
    pub const BAR: usize as "int" = 1;
    /// The mover's 1-point, the last index before bearing off.
    const ACE: usize as "int" = 25;
    /// The other player's bar.
    pub const OTHER_BAR: usize as "int" = 26;
    /// The mover's checkers borne off.
    pub const OFF: usize as "int" = 27;
    /// The other player's checkers borne off.
    pub const OTHER_OFF: usize as "int" = 0;
    /// The first index of the winner's home board, in the winner's direction of travel.
    const HOME: usize as "int" = 20;
    /// Checkers of each player.
    const CHECKERS: i8 = 15;
    /// "No move": dice are left, but none can be played.
    pub const NO_MOVE: u16 = 0;
    /// Different rolls of two dice.
    pub const NUM_ROLLS: usize as "int" = 21;
    /// Dice rolls a <= b in the order of their numbers.
    pub const ROLLS: [[u8; 2]; NUM_ROLLS] = rolls();
    /// The phase of [`State::phase`] in which chance draws the player who starts.
    const PHASE_STARTER: u8 = 0;
    /// The phase of the starter's first roll.
    const PHASE_OPENING_ROLL: u8 = 1;
    /// The phase of any other roll.
    const PHASE_ROLL: u8 = 2;
    /// The phase in which the player moves.
    const PHASE_MOVE: u8 = 3;
    /// The phase after the last move.
    const PHASE_OVER: u8 = 4;
}

const fn rolls() -> [[u8; 2]; NUM_ROLLS] {
    let mut out = [[0; 2]; NUM_ROLLS];
    let (mut n, mut a) = (0, 1);
    while a <= 6 {
        let mut b = a;
        while b <= 6 {
            out[n] = [a, b];
            n += 1;
            b += 1;
        }
        a += 1;
    }
    out
}

/// The target of the probabilities of results.
pub const OUTCOMES: &str = "outcomes";
/// Its length.
pub const NUM_OUTCOMES: usize = 5;

/// The standard start from either player's viewpoint.
const START: [i8; BOARD_LEN] =
    [0, 0, 2, 0, 0, 0, 0, -5, 0, -3, 0, 0, 0, 5, -5, 0, 0, 0, 3, 0, 5, 0, 0, 0, 0, -2, 0, 0];
/// A later start with contact, bar and blots in reach, for shorter games (the one BGAI trains on).
const SHORT_START: [i8; BOARD_LEN] =
    [0, 0, 0, -1, -3, 0, 2, -3, 0, -3, -2, 0, 0, -1, 1, 0, 0, 2, 3, 0, 3, -2, 0, 3, 1, 0, 0, 0];

names! {
    /// What an observation has.
    Sight {
        /// The checkers on each point.
        Points = "points",
        /// Contact, shots, escapes and primes too.
        Features = "features",
    }
}

section! {
    /// The settings of backgammon.
    Backgammon {
        /// Start from a later position: same pieces and rules, shorter games.
        short_game: bool = false,
        /// Every roll is a double, each with probability 1/6, the first roll too.
        simple_doubles: bool = false,
        /// What the network observes: the checkers on each point, or also what players look at (contact, shots, escapes, primes).
        network_sees: Sight = Sight::Points,
        /// The doubling cube, for matches and play with a network that was trained without it and with net.auxiliary = "outcomes". No Jacoby rule,
        /// no beavers, stakes of up to 64.
        cube: bool = false,
        /// Points of a match, with Crawford's rule; 0: a single game for points. Like the cube, it is for networks that were trained without it.
        match_points: u32 [0..=25] = 0,
        /// Plies (chance outcomes count) after which a game ends as a draw. Of 60,000 random games the mean was 302 and the longest
        /// 1,215.
        ply_limit: u32 [100..=65_535] = 20_000,
    }
}

device_struct! {
    /// One position.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// Checkers in the mover's direction of travel, the mover's positive, the other player's negative: index 1 is the
        /// mover's bar, 2..=25 the points, 26 the other player's bar, 27 and 0 what the mover and the other have borne off.
        pub board: [i8; BOARD_LEN],
        /// Faces still to be played, the higher first, then zeros.
        pub dice: [u8; 4],
        /// The next event: `PHASE_STARTER` or one of the phases after it.
        pub phase: u8,
        /// The player who moves or rolls; at the end, the winner.
        pub mover: u8,
        /// At the end, the points of the winner: 1, 2, 3, or 0 for a game that reached the limit.
        pub points: u8,
        /// The cube: how often it was turned in three bits, its owner's bit (player 0, player 1), and the bit of Crawford's game; 0 without a
        /// cube.
        pub cube: u8,
        /// Plies made.
        pub plies: u16,
        /// The points of each player in the match, before this game.
        pub score: [u8; 2],
    }
}

impl State {
    /// The position with `mover` to roll. `board` as in the field of that name, 15 checkers each.
    ///
    /// # Errors
    /// [`Error::Config`] if a player does not have 15 checkers, or has one on the other player's bar or off entry.
    pub fn to_roll(board: [i8; BOARD_LEN], mover: u8) -> Result<Self> {
        let own: i32 = board.iter().filter(|&&n| n > 0).map(|&n| i32::from(n)).sum();
        let other: i32 = board.iter().filter(|&&n| n < 0).map(|&n| i32::from(n)).sum();
        if own != 15 || other != -15 {
            return Err(Error::config("board", format!("{own} and {} checkers", -other), "15 each"));
        }
        if board[BAR] < 0 || board[OFF] < 0 || board[OTHER_BAR] > 0 || board[OTHER_OFF] > 0 {
            return Err(Error::config(
                "board",
                format!("{board:?}"),
                "bars and borne-off checkers of their owner",
            ));
        }
        if mover > 1 {
            return Err(Error::config("mover", mover, "0 or 1"));
        }
        Ok(Self {
            board,
            dice: [0; 4],
            phase: PHASE_ROLL,
            mover,
            points: 0,
            cube: 0,
            plies: 0,
            score: [0; 2],
        })
    }

    /// The board from the viewpoint of `player`.
    fn seen_by(&self, player: u8) -> [i8; BOARD_LEN] {
        if player == self.mover { self.board } else { turned(&self.board) }
    }

    fn deal(&mut self, roll: u16) {
        let [low, high] = ROLLS[usize::from(roll)];
        self.dice = if low == high { [low; 4] } else { [high, low, 0, 0] };
        self.phase = PHASE_MOVE;
    }

    fn end_turn(&mut self) {
        self.board = turned(&self.board);
        self.mover ^= 1;
        self.dice = [0; 4];
        self.phase = PHASE_ROLL;
    }

    /// Plays one die.
    fn advance(&mut self, source: usize, die: u8) {
        let target = (source + usize::from(die)).min(OTHER_BAR);
        self.board[source] -= 1;
        if target == OTHER_BAR {
            self.board[OFF] += 1;
        } else if self.board[target] < 0 {
            self.board[target] = 1;
            self.board[OTHER_BAR] -= 1;
        } else {
            self.board[target] += 1;
        }
        let spent = self.dice.iter().position(|&d| d == die).unwrap_or(0);
        self.dice.copy_within(spent + 1.., spent);
        self.dice[3] = 0;
        if self.board[OFF] == CHECKERS {
            self.points = self.win_points();
            self.dice = [0; 4];
            self.phase = PHASE_OVER;
        } else if self.dice[0] == 0 {
            self.end_turn();
        }
    }

    /// The points of the mover after bearing off all checkers.
    fn win_points(&self) -> u8 {
        if self.board[OTHER_OFF] < 0 {
            1
        } else if self.board[HOME..=OTHER_BAR].iter().any(|&n| n < 0) {
            3
        } else {
            2
        }
    }
}

impl Backgammon {
    /// The elements of an observation that a network sees.
    fn seen(&self) -> ObsShape {
        let channels = match self.network_sees {
            Sight::Points => FEATURES_AT,
            Sight::Features => FEATURES_AT + 2 * SIDE_LEN,
        };
        ObsShape { channels, height: 1, width: 1 }
    }
}

/// The board from the other player's viewpoint.
fn turned(board: &[i8; BOARD_LEN]) -> [i8; BOARD_LEN] {
    std::array::from_fn(|index| -board[BOARD_LEN - 1 - index])
}

/// Pips that the checkers of the player who counts positive have to travel.
fn pips(board: &[i8; BOARD_LEN]) -> i32 {
    (BAR..=ACE).map(|index| (26 - index as i32) * i32::from(board[index].max(0))).sum()
}

impl Game for Backgammon {
    type State = State;
    const NAME: &'static str = "backgammon";
    const CONFIGS: &'static [super::NamedText] = super::configs!("backgammon", "backgammon_mcts");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("backgammon");
    const VARIANTS: &'static [&'static str] = &[
        "short_game = true",
        "simple_doubles = true",
        "short_game = true\nsimple_doubles = true",
        "network_sees = 'features'",
        "cube = true",
        "cube = true\nmatch_points = 3\nshort_game = true",
        "match_points = 2\nnetwork_sees = 'features'",
    ];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];
    const SPAN_OPTIONS: &'static [&'static str] = &["ply_limit", "cube", "match_points"];

    super::options_by_section!();

    fn aim(&self, player: u8) -> String {
        match player {
            0 => "X bears off all 15 checkers first, moving from point 24 to point 1".into(),
            _ => "O bears off all 15 checkers first, moving from point 1 to point 24; its moves count from its own side"
                .into(),
        }
    }

    fn sizes(&self) -> Sizes {
        let extras = if self.has_extras() { NUM_EXTRAS } else { 0 };
        Sizes {
            num_actions: 26 * 6,
            max_legal: 30,
            num_chance: NUM_ROLLS,
            // Who begins the next game of a match, and with which roll.
            max_chance_run: if self.match_points > 0 { 2 } else { 1 },
            obs: ObsShape { channels: self.seen().channels + extras, height: 1, width: 1 },
            max_plies: self.ply_limit as usize,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State {
            board: if self.short_game { SHORT_START } else { START },
            dice: [0; 4],
            phase: PHASE_STARTER,
            mover: 0,
            points: 0,
            cube: self.first_cube(),
            plies: 0,
            score: [0; 2],
        }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.mover < 2
            && s.phase <= PHASE_TAKE
            && s.has_valid_cube()
            && s.dice.iter().all(|&die| die <= 6)
            && s.board.iter().all(|n| (-CHECKERS..=CHECKERS).contains(n))
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        match s.phase {
            PHASE_MOVE | PHASE_DOUBLE => Turn::Player(s.mover),
            PHASE_TAKE => Turn::Player(1 - s.mover),
            PHASE_OVER => Turn::Over,
            _ => Turn::Chance,
        }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        let rolls = |out: &mut [u16], keep: fn(&[u8; 2]) -> bool| {
            let mut n = 0;
            for (number, roll) in ROLLS.iter().enumerate() {
                out[n] = number as u16;
                n += usize::from(keep(roll));
            }
            n
        };
        match s.phase {
            PHASE_MOVE => Movers::of(&s.board).list(&s.dice, out),
            PHASE_DOUBLE | PHASE_TAKE => {
                out[..2].copy_from_slice(&[ROLL_OR_TAKE, DOUBLE_OR_PASS]);
                2
            }
            PHASE_STARTER => {
                out[..2].copy_from_slice(&[0, 1]);
                2
            }
            _ if self.simple_doubles => rolls(out, |[a, b]| a == b),
            PHASE_OPENING_ROLL => rolls(out, |[a, b]| a != b),
            _ => rolls(out, |_| true),
        }
    }

    #[inline]
    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        match s.phase {
            PHASE_STARTER => {
                s.mover = action as u8;
                s.phase = PHASE_OPENING_ROLL;
            }
            PHASE_MOVE => {
                match action {
                    ..6 => s.end_turn(),
                    _ => s.advance(usize::from(action / 6), (action % 6) as u8 + 1),
                }
                self.end_of_ply(s);
            }
            PHASE_DOUBLE | PHASE_TAKE => self.decide_cube(s, action),
            _ => s.deal(action),
        }
        s.plies += 1;
        if u32::from(s.plies) >= self.ply_limit && s.phase != PHASE_OVER {
            s.phase = PHASE_OVER;
        }
    }

    /// 211 elements, or 235 with `network_sees = "features"`, from `player`'s viewpoint. `[F]`
    ///
    /// For each point from the player's 24-point to the 1-point, own checkers then the other player's, four elements each:
    /// n >= 1, n >= 2, n >= 3, max(n - 3, 0) / 2 (TD-Gammon, Tesauro 1992); then on the bar, own then other: n >= 1, n / 2;
    /// borne off, own then other: n / 15; whether a 1, 2, .., 6 is left to play; whether 1, 2, 3, 4 dice are left; pips to
    /// go, own then other, / 167; whether it is the player's turn. This includes all of pgx's observation. Then the features of
    /// both sides, own then other, 12 elements each:
    /// pips until all checkers have passed the other side's rearmost one, / 100; whether there are any; of 36 rolls, those with which the other side hits
    /// a blot, / 36; pips so lost over all rolls, / 432; of 36 rolls, those that take the rearmost checker on by both dice, / 36; whether the longest prime in
    /// front of the other side's rearmost checker has 3, 4, 5, 6 points; the square of the share of points made in the home board; blots, / 4; the rearmost
    /// checker's pips, / 24. With a cube or in a match then 8 elements of cube and score, which no network sees.
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let (board, extras) = out.split_at_mut(self.seen().channels);
        if self.has_extras() {
            self.write_extras(s, player, extras);
        }
        self.write_board(s, self.observer(s, player), board);
    }

    fn valuation(&self) -> Option<Valuation> {
        self.has_extras().then(|| Valuation { target: OUTCOMES, seen: self.seen(), values: cube::values })
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let value = if self.has_extras() { self.result_with_extras(s) } else { f32::from(s.points) / 3.0 };
        out[usize::from(s.mover)] = value;
        out[usize::from(1 - s.mover)] = -value;
    }

    fn targets(&self) -> Vec<Target> {
        vec![Target::new(OUTCOMES, TargetShape::Vector(NUM_OUTCOMES), TargetKind::Sign)]
    }

    /// Whether the player wins, wins a gammon at least, wins a backgammon, loses a gammon at least, loses a backgammon: 1 or -1, as GNU
    /// Backgammon's network learns them; after a game that was cut off, which nobody wins, 0 for the first. `[5]`
    fn write_target(&self, _number: usize, _position: &State, end: &State, player: u8, out: &mut [f32]) {
        let won = if end.mover == player { end.points } else { 0 };
        let lost = end.points - won;
        let is_so = [won >= 1, won >= 2, won >= 3, lost >= 2, lost >= 3];
        out.iter_mut().zip(is_so).for_each(|(out, is_so)| *out = if is_so { 1.0 } else { -1.0 });
        if end.points == 0 {
            out[0] = 0.0;
        }
    }

    fn points_of_value(&self) -> Option<f32> {
        match (self.match_points, self.cube) {
            (0, false) => Some(3.0),
            (0, true) => Some(equity::MAX_STAKES as f32),
            _ => None,
        }
    }

    fn tally_table(&self) -> Option<TallyTable> {
        let columns = &["single", "gammon", "backgammon"];
        (self.match_points == 0).then(|| TallyTable { title: "Wins", rows: vec!["won".into()], columns })
    }

    fn tally(&self, before: &State, after: &State, player: u8) -> Option<TallyCell> {
        let is_match = self.match_points > 0;
        let is_end = !is_match && self.turn(before) != Turn::Over && self.turn(after) == Turn::Over;
        let points = usize::from(after.points);
        (is_end && player == after.mover && points > 0).then(|| TallyCell { row: 0, column: points - 1 })
    }

    fn chance_probs(&self, s: &State, outcomes: &[u16], out: &mut [f32]) {
        if s.phase != PHASE_ROLL || self.simple_doubles {
            out[..outcomes.len()].fill(1.0 / outcomes.len() as f32);
            return;
        }
        for (out, &roll) in out.iter_mut().zip(outcomes) {
            let [low, high] = ROLLS[usize::from(roll)];
            *out = if low == high { 1.0 / 36.0 } else { 2.0 / 36.0 };
        }
    }

    fn canonical(&self, s: &State) -> State {
        State { plies: 0, ..s.with_mover_0() }
    }

    /// Raw points: 1, 2 or 3 times the stake and their opposite; of a match 1 and -1.
    fn scores(&self, s: &State) -> Vec<f32> {
        let points = if self.match_points > 0 { self.result_with_extras(s) } else { s.points_won() as f32 };
        if s.mover == 0 { vec![points, -points] } else { vec![-points, points] }
    }

    fn view(&self, s: &State, _viewer: Viewer) -> View {
        look::view(self, s)
    }

    fn spot(&self, s: &State, action: u16) -> Spot {
        look::spot(s, action)
    }

    fn notation(&self, s: &State) -> Option<(&'static str, String)> {
        Some(("position_id", text::position_id(s)))
    }

    /// `13/7`, `bar/22`, `6/off`, `4/off(6)` where a higher die than needed bears off, `no move`; rolls `6-5`; at the very
    /// start `player 0`; `roll` or `double`, then `take` or `pass`.
    fn action_name(&self, s: &State, action: u16) -> String {
        text::name(s, action)
    }

    /// Also accepts hit marks (`13/7*`), dice in either order, `4/off` for any die, and pgx's other numbers for no move.
    fn parse_action(&self, s: &State, history: History<'_>, text: &str) -> Option<u16> {
        let mut legal = [0; 30];
        let n = self.legal(s, history, &mut legal);
        text::parse(s, &legal[..n], text)
    }
}
