//! Chess under the FIDE laws, with draws declared as soon as they may be claimed.
//!
//! - Draws: stalemate; a position occurring for the third time (pieces, side to move, castling rights, legal en passant
//!   captures equal); fifty moves by each side without capture or pawn move, unless the last one mates; too little
//!   material to mate (kings alone, one minor piece, bishops of one square colour only); the setting `max_plies`. This is
//!   what python-chess decides by `is_repetition(3)` and `halfmove_clock >= 100` on the board, as pgx does;
//!   `outcome(claim_draw=True)` of python-chess also claims one ply earlier, where a move that would bring the draw about
//!   is at hand. pgx takes en passant squares into account in repetitions even where no capture is legal; here they count
//!   only where one is.
//! - Actions, 64 x 73 = 4672, numbered as in pgx: `action = from * 73 + plane`, `from = file * 8 + rank`, seen by the
//!   side to move (for black rank 8 is rank 0; files stay). Planes 0 to 8 are promotions to rook, bishop, knight, each
//!   straight on, to the right, to the left; queen moves follow, seven planes a direction by ascending target square
//!   (9 down, 16 up, 23 left, 30 right, 37 down left, 44 up right, 51 up left, 58 down right); then the knight's eight (65).
//!   Promotion to a queen is the plain move, castling the king's two steps.
//! - Names are UCI; SAN is accepted too.

mod board;
mod moves;
mod notation;
mod san;
#[cfg(test)]
mod tests;

pub use moves::{OTHER_LONG, OTHER_SHORT, OWN_LONG, OWN_SHORT, State};
pub use notation::{START_FEN, without_clock};

use super::set_up::SetUp;
use super::view::{Spot, View, Viewer};
use super::{Game, History, ObsShape, PointActions, PointOrder, Sizes, Turn, parse_options, to_options};
use crate::config::keys::{KeyInfo, Section, names, section};
use crate::device_struct::device_enum;
use crate::error::{Error, Result};
use board::flip;
use moves::MAX_LEGAL;

/// Planes of an observation of the pieces.
const PLANES: usize = 21;
/// Planes with the attacks of both sides.
const ATTACK_PLANES: usize = 4;

device_enum! {
    /// How a game ended; [`State::outcome`] holds the number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Outcome: u8 {
        /// The game is in progress.
        None = 0,
        /// White has mated.
        WhiteMates = 1,
        /// Black has mated.
        BlackMates = 2,
        /// No legal move, no check.
        Stalemate = 3,
        /// Neither side can mate.
        InsufficientMaterial = 4,
        /// The third occurrence of a position.
        Repetition = 5,
        /// A hundred plies without capture or pawn move.
        FiftyMoves = 6,
        /// The setting `max_plies` is reached.
        TooLong = 7,
    }
}

/// Maximum of the setting `max_plies`.
pub const MAX_PLIES: usize = 10_000;

names! {
    /// What an observation has.
    Sight {
        /// The pieces, and what else the rules need.
        Pieces = "pieces",
        /// Also the squares that each side attacks.
        Attacks = "attacks",
    }
}

section! {
    /// The settings of chess.
    Options {
        /// The position that every game starts from, in Forsyth-Edwards Notation.
        fen: String = START_FEN.to_string(),
        /// Plies after which a game is drawn; 512 as in AlphaZero and pgx.
        max_plies: u16 [1..=MAX_PLIES as u16] = 512,
        /// What the network observes: the pieces, or also the squares that each side attacks, once or more, and twice or more.
        network_sees: Sight = Sight::Pieces,
    }
}

/// Chess with its settings, [`Options`].
#[derive(Clone, Debug)]
pub struct Chess {
    start: State,
    max_plies: u16,
    network_sees: Sight,
}

impl Chess {
    fn settings(&self) -> Options {
        let &Self { start, max_plies, network_sees } = self;
        Options { fen: self.to_fen(&start), max_plies, network_sees }
    }

    /// Reads a position in Forsyth-Edwards Notation; the clocks are optional.
    ///
    /// # Errors
    /// [`Error::Config`] for `game.fen` with the defect, also if the game is over in the position.
    pub fn from_fen(&self, fen: &str) -> Result<State> {
        let wrong =
            |found: &str, expected: &str| Error::config("game.fen", format!("{fen} ({found})"), expected);
        let mut state = notation::from_fen(fen).map_err(|defect| wrong(&defect.found, &defect.expected))?;
        state.outcome = self.outcome(&state) as u8;
        if state.outcome != Outcome::None as u8 {
            return Err(wrong("the game is over", "a position of a game in progress"));
        }
        Ok(state)
    }

    /// A position in Forsyth-Edwards Notation. The en passant square is given only where such a capture is legal.
    pub fn to_fen(&self, state: &State) -> String {
        notation::to_fen(state)
    }

    /// Sequences of `depth` legal moves from here, without draws by repetition, clock or material ("perft").
    pub fn perft(&self, state: &State, depth: u32) -> u64 {
        let mut legal = [0; MAX_LEGAL];
        let n = state.legal(&mut legal);
        if depth <= 1 {
            return if depth == 0 { 1 } else { n as u64 };
        }
        legal[..n].iter().fold(0, |sum, &action| {
            let mut next = *state;
            next.play(action);
            sum + self.perft(&next, depth - 1)
        })
    }

    /// Whether the game is over; mate comes before every draw.
    fn outcome(&self, s: &State) -> Outcome {
        match s.has_move_and_check() {
            (false, true) if s.colour == 0 => return Outcome::BlackMates,
            (false, true) => return Outcome::WhiteMates,
            (false, false) => return Outcome::Stalemate,
            _ => {}
        }
        if s.insufficient_material() {
            Outcome::InsufficientMaterial
        } else if s.repetitions >= 2 {
            Outcome::Repetition
        } else if s.halfmove_clock >= 100 {
            Outcome::FiftyMoves
        } else if s.plies >= self.max_plies {
            Outcome::TooLong
        } else {
            Outcome::None
        }
    }
}

/// Earlier occurrences of `s`, whose `history` starts with the position two plies before it.
fn repetitions(s: &State, history: History<'_>) -> u8 {
    if s.halfmove_clock < 4 {
        return 0;
    }
    let key = s.key();
    let same_side = usize::from(s.halfmove_clock) / 2;
    history.latest_first().step_by(2).take(same_side).filter(|&k| k == key).count().min(2) as u8
}

impl Game for Chess {
    type State = State;
    const NAME: &'static str = "chess";
    const CONFIGS: &'static [super::NamedText] = super::configs!("chess");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("chess");
    const VARIANTS: &'static [&'static str] = &["max_plies = 40", "network_sees = 'attacks'"];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];
    const SPAN_OPTIONS: &'static [&'static str] = &["fen", "max_plies"];

    fn from_options(options: &toml::Table) -> Result<Self> {
        let o: Options = parse_options(Self::NAME, options)?;
        let start = bytemuck::Zeroable::zeroed();
        let mut game = Self { start, max_plies: o.max_plies, network_sees: o.network_sees };
        game.start = game.from_fen(&o.fen)?;
        Ok(game)
    }

    fn options(&self) -> toml::Table {
        to_options(&self.settings())
    }

    fn keys(&self) -> Vec<KeyInfo> {
        self.settings().keys()
    }

    fn aim(&self, player: u8) -> String {
        match player {
            0 => "White (capital letters) checkmates the black king".into(),
            _ => "Black (small letters) checkmates the white king".into(),
        }
    }

    fn sizes(&self) -> Sizes {
        let attacks = if self.network_sees == Sight::Attacks { ATTACK_PLANES } else { 0 };
        Sizes {
            num_actions: 64 * 73,
            point_actions: Some(PointActions { planes: 73, order: PointOrder::Columns }),
            max_legal: MAX_LEGAL,
            obs: ObsShape { channels: PLANES + attacks, height: 8, width: 8 },
            max_plies: usize::from(self.max_plies),
            uses_history: true,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        self.start
    }

    fn is_valid(&self, s: &State) -> bool {
        s.colour < 2 && s.en_passant <= 64
    }

    /// Player 0 is white.
    #[inline]
    fn turn(&self, s: &State) -> Turn {
        if s.outcome == Outcome::None as u8 { Turn::Player(s.colour) } else { Turn::Over }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        s.legal(out)
    }

    #[inline]
    fn step(&self, s: &mut State, action: u16, history: History<'_>) {
        s.play(action);
        s.repetitions = repetitions(s, history);
        s.outcome = self.outcome(s) as u8;
    }

    /// The planes of AlphaZero (Silver et al. 2018) for the present position alone, the farthest rank first: 0 to 5 own
    /// pawns, knights, bishops, rooks, queens, king; 6 to 11 the other side's; 12 position seen before; 13 to 16 own short
    /// and long castling, the other side's; 17 the square to take en passant; 18 clock / 100; 19 black's view; 20 plies /
    /// max_plies; with `network_sees = "attacks"` 21 and 22 the squares that one or more own pieces attack, and two or more, 23 and 24 those of
    /// the other side's. `[21 or 25, 8, 8]`
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let view = if player == s.colour { *s } else { s.turned() };
        out.fill(0.0);
        for side in 0..2 {
            for kind in 0..6 {
                let plane = &mut out[(side * 6 + kind) * 64..][..64];
                notation::obs_squares(view.pieces[kind] & view.sides[side])
                    .for_each(|square| plane[square] = 1.0);
            }
        }
        if view.en_passant != 0 {
            let square = 1u64 << (view.en_passant - 1);
            notation::obs_squares(square).for_each(|square| out[17 * 64 + square] = 1.0);
        }
        let right = |bit: u8| f32::from(u8::from(view.castling & bit != 0));
        let constants = [
            (12, f32::from(u8::from(s.repetitions > 0))),
            (13, right(OWN_SHORT)),
            (14, right(OWN_LONG)),
            (15, right(OTHER_SHORT)),
            (16, right(OTHER_LONG)),
            (18, f32::from(s.halfmove_clock) / 100.0),
            (19, f32::from(player)),
            (20, f32::from(s.plies) / f32::from(self.max_plies)),
        ];
        for (plane, value) in constants {
            out[plane * 64..][..64].fill(value);
        }
        if self.network_sees == Sight::Attacks {
            let attacked = [view.attacked(), view.turned().attacked().map(flip)];
            for (plane, &squares) in out[PLANES * 64..].chunks_exact_mut(64).zip(attacked.as_flattened()) {
                notation::obs_squares(squares).for_each(|square| plane[square] = 1.0);
            }
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let value = match s.outcome {
            o if o == Outcome::WhiteMates as u8 => 1.0,
            o if o == Outcome::BlackMates as u8 => -1.0,
            _ => 0.0,
        };
        out[0] = value;
        out[1] = -value;
    }

    fn canonical(&self, s: &State) -> State {
        State { hash: 0, fullmove: 0, repetitions: s.repetitions.min(1), ..*s }
    }

    /// The key of pieces, side to move, castling rights and legal en passant captures.
    #[inline]
    fn history_key(&self, s: &State) -> u64 {
        s.key()
    }

    /// Kings and rooks on their squares of the start have the right to castle; no pawn can be taken en passant.
    fn set_up(&self, set_up: SetUp<'_>) -> Result<State> {
        set_up.check(Self::NAME, 64, 12)?;
        self.from_fen(&notation::fen_of(set_up))
    }

    fn view(&self, s: &State, _viewer: Viewer) -> View {
        notation::view(s)
    }

    fn spot(&self, s: &State, action: u16) -> Spot {
        notation::spot(s, action)
    }

    fn notation(&self, s: &State) -> Option<(&'static str, String)> {
        Some(("fen", notation::to_fen(s)))
    }

    /// The move in UCI notation.
    fn action_name(&self, s: &State, action: u16) -> String {
        notation::uci(s, action)
    }

    /// The move in SAN, as PGN writes it.
    fn record_name(&self, s: &State, action: u16) -> String {
        san::san(s, action)
    }

    /// Takes UCI and SAN.
    fn parse_action(&self, s: &State, _history: History<'_>, text: &str) -> Option<u16> {
        let mut legal = [0; MAX_LEGAL];
        let n = s.legal(&mut legal);
        notation::parse(s, &legal[..n], text)
    }
}
