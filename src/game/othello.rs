//! Othello: a disc flips the runs of the other colour that it encloses; the player with more discs at the end wins.
//!
//! Actions are cells, row-major (0 top left), then the pass (64 on 8x8, 36 on 6x6), as in pgx and OpenSpiel. The pass is
//! legal only where no cell is. Player 0 has black and starts; d5 and e4 are black.
//!
//! The game ends as soon as neither player can move, as in tournaments and OpenSpiel. With `end = "two_passes"` it ends
//! as in pgx: two passes in a row are made where neither can move, unless the board is full or a colour is gone.
//!
//! Bitboard: row-major with 8 bits per row on either board, so that one set of shifts serves both.

mod set_up;

use super::board;
use super::set_up::SetUp;
use super::view::{Board, Colour, GridStyle, Piece, Shape, Spot, View, Viewer};
use super::{Game, History, ObsShape, PointActions, Sizes, Target, Turn, ownership};
use crate::config::keys::{names, section};
use crate::device_struct::{device_constants, device_struct};
use crate::error::Result;
use bytemuck::{Pod, Zeroable};

names! {
    /// The end of a game in which neither player can move and cells are free.
    End {
        /// At once.
        NoMove = "no_move",
        /// After a pass by each player; at once where a colour is gone.
        TwoPasses = "two_passes",
    }

    /// What an observation has.
    Sight {
        /// The discs.
        Discs = "discs",
        /// Also the cells where each player may place a disc.
        Moves = "moves",
    }
}

section! {
    /// The settings of Othello.
    Othello {
        /// Side of the board.
        size: u32 [[6, 8]] = 8,
        /// The end of a game in which neither player can move and cells are free: at once, or after a pass by each player.
        end: End = End::NoMove,
        /// What the network observes: the discs, or also the cells where each player may place one.
        network_sees: Sight = Sight::Discs,
    }
}

device_struct! {
    /// One position.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// The discs of each player. `[P]`
        pub discs: [u64; 2],
        /// Cells where the player to move may place a disc; empty = must pass. Empty once the game is over.
        pub moves: u64,
        /// The player to move.
        pub to_play: u16,
        /// 1 if the last action was a pass.
        pub passed: u16,
        /// 1 once the game is over.
        pub over: u32,
    }
}

device_constants! {
    fn device_constants;
    /// The cells of the 6x6 board.
    const SMALL_BOARD: u64 = 0x0000_3F3F_3F3F_3F3F;
    /// Columns b to g: flipped runs never reach a border column sideways.
    const INNER: u64 = 0x7E7E_7E7E_7E7E_7E7E;
}

/// The four directions as shifts to the left; to the right they are the four others.
const DIRECTIONS: [(u32, u64); 4] = [(1, INNER), (8, !0), (7, INNER), (9, INNER)];

/// Runs of `middle` that begin next to `from`, one way and the other, of up to six cells.
#[inline(always)]
fn runs(from: u64, middle: u64, shift: u32) -> [u64; 2] {
    let mut up = middle & from << shift;
    let mut down = middle & from >> shift;
    up |= middle & up << shift;
    down |= middle & down >> shift;
    // From here on, runs grow by two cells per step (Kogge-Stone).
    let (pairs_up, pairs_down) = (middle & middle << shift, middle & middle >> shift);
    up |= pairs_up & up << (2 * shift);
    down |= pairs_down & down >> (2 * shift);
    up |= pairs_up & up << (2 * shift);
    down |= pairs_down & down >> (2 * shift);
    [up, down]
}

/// Cells that enclose a run of `other` with `own`, occupied ones included.
#[inline]
fn run_ends(own: u64, other: u64) -> u64 {
    let mut ends = 0;
    for (shift, mask) in DIRECTIONS {
        let [up, down] = runs(own, other & mask, shift);
        ends |= up << shift | down >> shift;
    }
    ends
}

/// The discs of `other` that a disc of `own` at bit `placed` flips.
#[inline]
fn flips(placed: u64, own: u64, other: u64) -> u64 {
    let closed = |run: u64, end: u64| if end & own != 0 { run } else { 0 };
    let mut all = 0;
    for (shift, mask) in DIRECTIONS {
        let [up, down] = runs(placed, other & mask, shift);
        all |= closed(up, up << shift) | closed(down, down >> shift);
    }
    all
}

impl Othello {
    /// The bits that are cells.
    #[inline(always)]
    fn board(&self) -> u64 {
        if self.size == 8 { !0 } else { SMALL_BOARD }
    }

    #[inline(always)]
    fn pass(&self) -> u16 {
        (self.size * self.size) as u16
    }

    /// A bound on the moves of a position: each needs an own disc next to another's, so k own and l other discs allow at
    /// most min(8 k, 8 l, cells - k - l), which is largest at k = l = 7 (on 6x6: 4).
    fn max_moves(&self) -> usize {
        if self.size == 8 { 50 } else { 28 }
    }

    #[inline(always)]
    fn bit_of(&self, cell: u32) -> u32 {
        if self.size == 8 { cell } else { cell / 6 * 8 + cell % 6 }
    }

    #[inline(always)]
    fn cell_of(&self, bit: u32) -> u32 {
        if self.size == 8 { bit } else { bit - (bit >> 3) * 2 }
    }

    #[inline(always)]
    fn moves(&self, own: u64, other: u64) -> u64 {
        run_ends(own, other) & self.board() & !(own | other)
    }

    fn transform_bits(&self, mut bits: u64, symmetry: u64) -> u64 {
        let mut image = 0;
        while bits != 0 {
            let cell = self.cell_of(bits.trailing_zeros());
            image |= 1 << self.bit_of(board::transform_cell(cell, self.size, symmetry));
            bits &= bits - 1;
        }
        image
    }

    /// True if the game ends after `passes` consecutive passes, given that `own` is to move and has no moves.
    #[inline]
    fn ends(&self, own: u64, other: u64, passes: u16) -> bool {
        match self.end {
            End::NoMove => self.moves(other, own) == 0,
            End::TwoPasses => passes == 2 || own == 0 || other == 0 || own | other == self.board(),
        }
    }
}

impl Game for Othello {
    type State = State;
    const NAME: &'static str = "othello";
    const CONFIGS: &'static [super::NamedText] = super::configs!("othello");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("othello");
    const VARIANTS: &'static [&'static str] =
        &["size = 6", "size = 6\nend = 'two_passes'", "size = 8\nend = 'no_move'", "network_sees = 'moves'"];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];

    super::options_by_section!();

    fn aim(&self, player: u8) -> String {
        let name = ["X (black)", "O (white)"][usize::from(player)];
        format!("{name} ends with more discs")
    }

    fn sizes(&self) -> Sizes {
        let side = self.size as usize;
        let cells = side * side;
        let planes = match self.network_sees {
            Sight::Discs => 2,
            Sight::Moves => 4,
        };
        Sizes {
            num_actions: cells + 1,
            point_actions: Some(PointActions::ONE),
            max_legal: self.max_moves(),
            obs: ObsShape { channels: planes, height: side, width: side },
            // A disc follows every pass but two at the end.
            max_plies: 2 * (cells - 4) + 2,
            num_symmetries: 8,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        let half = self.size / 2;
        let bit = |row: u32, column: u32| 1u64 << (row * 8 + column);
        let black = bit(half - 1, half) | bit(half, half - 1);
        let white = bit(half - 1, half - 1) | bit(half, half);
        State { discs: [black, white], moves: self.moves(black, white), to_play: 0, passed: 0, over: 0 }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.to_play < 2 && (s.discs[0] | s.discs[1] | s.moves) & !self.board() == 0
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        if s.over == 0 { Turn::Player(s.to_play as u8) } else { Turn::Over }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        if s.moves == 0 {
            out[0] = self.pass();
            return 1;
        }
        let n = board::write_bits(s.moves, 0, out);
        if self.size != 8 {
            out[..n].iter_mut().for_each(|action| *action = self.cell_of(u32::from(*action)) as u16);
        }
        n
    }

    #[inline]
    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        let (player, waiting) = (usize::from(s.to_play), usize::from(1 - s.to_play));
        let before = s.passed;
        s.passed = u16::from(action == self.pass());
        if s.passed == 0 {
            let placed = 1u64 << self.bit_of(u32::from(action));
            let turned = flips(placed, s.discs[player], s.discs[waiting]);
            s.discs[player] |= placed | turned;
            s.discs[waiting] &= !turned;
        }
        s.to_play = waiting as u16;
        let (own, other) = (s.discs[waiting], s.discs[player]);
        s.moves = self.moves(own, other);
        if s.moves == 0 {
            s.over = u32::from(self.ends(own, other, before + s.passed));
        }
    }

    /// Planes: own discs, the other player's discs; with `network_sees = "moves"` then the cells where the player may place a disc, and those
    /// where the other player may, whoever is to move. `[2 or 4, size, size]`
    #[inline(always)]
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let side = self.size as usize;
        let (own, other) = (s.discs[usize::from(player)], s.discs[usize::from(1 - player)]);
        let moves = match self.network_sees {
            Sight::Discs => [0, 0],
            Sight::Moves => [self.moves(own, other), self.moves(other, own)],
        };
        for (plane, bits) in out.chunks_exact_mut(side * side).zip([own, other, moves[0], moves[1]]) {
            for (row, cells) in plane.chunks_exact_mut(side).enumerate() {
                for (column, cell) in cells.iter_mut().enumerate() {
                    *cell = (bits >> (row * 8 + column) & 1) as f32;
                }
            }
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let lead = s.discs[0].count_ones() as i32 - s.discs[1].count_ones() as i32;
        let value = lead.signum() as f32;
        out[0] = value;
        out[1] = -value;
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        if symmetry == 0 {
            return *s;
        }
        let image = |bits| self.transform_bits(bits, symmetry);
        State { discs: s.discs.map(image), moves: image(s.moves), ..*s }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        if action == self.pass() {
            return action;
        }
        board::transform_cell(u32::from(action), self.size, symmetry) as u16
    }

    /// Clears `passed`, which affects neither the observation nor the legal list.
    fn canonical(&self, s: &State) -> State {
        State { passed: 0, ..*s }
    }

    fn targets(&self) -> Vec<Target> {
        vec![ownership()]
    }

    fn write_target(&self, _number: usize, _position: &State, end: &State, player: u8, out: &mut [f32]) {
        let player = usize::from(player);
        let [own, other] = [end.discs[player], end.discs[1 - player]];
        for (cell, owner) in (0..).zip(out) {
            let bit = self.bit_of(cell);
            *owner = (own >> bit & 1) as f32 - (other >> bit & 1) as f32;
        }
    }

    /// Discs of each player.
    fn scores(&self, s: &State) -> Vec<f32> {
        s.discs.iter().map(|discs| discs.count_ones() as f32).collect()
    }

    fn set_up(&self, set_up: SetUp<'_>) -> Result<State> {
        set_up::set_up(self, set_up)
    }

    fn view(&self, s: &State, _viewer: Viewer) -> View {
        let has = |player: usize, cell: u32| s.discs[player] >> self.bit_of(cell) & 1 == 1;
        let pieces = Piece::pair([Shape::Disc; 2], ["black", "white"]);
        let grid =
            board::grid(self.size, GridStyle::Squares, pieces, |cell| Piece::of(has(0, cell), has(1, cell)));
        let [black, white] = s.discs.map(u64::count_ones);
        View::new(Board::Grid(grid), &[Colour::Black, Colour::White])
            .with_note(format!("discs: X {black}, O {white}"))
    }

    fn spot(&self, _state: &State, action: u16) -> Spot {
        if action == self.pass() { Spot::Button } else { Spot::Place(action) }
    }

    /// Column letter and row number, from the top, as in tournament records, or `pass`.
    fn action_name(&self, _state: &State, action: u16) -> String {
        if action == self.pass() { "pass".into() } else { board::cell_name(u32::from(action), self.size) }
    }
}

#[cfg(test)]
mod tests;
