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
}

section! {
    /// The settings of Othello.
    Othello {
        /// Side of the board.
        size: u32 [[6, 8]] = 8,
        /// The end of a game in which neither player can move and cells are free: at once, or after a pass by each player.
        end: End = End::NoMove,
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
        &["size = 6", "size = 6\nend = 'two_passes'", "size = 8\nend = 'no_move'"];

    super::options_by_section!();

    fn aim(&self, player: u8) -> String {
        let name = ["X (black)", "O (white)"][usize::from(player)];
        format!("{name} ends with more discs")
    }

    fn sizes(&self) -> Sizes {
        let side = self.size as usize;
        let cells = side * side;
        Sizes {
            num_actions: cells + 1,
            point_actions: Some(PointActions::ONE),
            max_legal: self.max_moves(),
            obs: ObsShape { channels: 2, height: side, width: side },
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

    /// Planes: own discs, the other player's discs. `[2, size, size]`
    #[inline(always)]
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let side = self.size as usize;
        let boards = [s.discs[usize::from(player)], s.discs[usize::from(1 - player)]];
        for (plane, discs) in out.chunks_exact_mut(side * side).zip(boards) {
            for (row, cells) in plane.chunks_exact_mut(side).enumerate() {
                for (column, cell) in cells.iter_mut().enumerate() {
                    *cell = (discs >> (row * 8 + column) & 1) as f32;
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
mod tests {
    use super::*;
    use crate::device_struct::DeviceType;
    use crate::game::check_device_header;
    use crate::rng::{Key, Purpose};

    #[test]
    fn generated_header_is_up_to_date() {
        check_device_header::<Othello>("", &[device_constants(), State::definition()]);
    }

    fn othello(size: u32, end: End) -> Othello {
        Othello { size, end }
    }

    fn legal(game: &Othello, s: &State) -> Vec<u16> {
        let mut out = [0; 60];
        let n = game.legal(s, History::default(), &mut out);
        out[..n].to_vec()
    }

    fn play(game: &Othello, s: &mut State, names: &str) {
        for name in names.split_whitespace() {
            let action = game.parse_action(s, History::default(), name).expect(name);
            game.step(s, action, History::default());
        }
    }

    fn perft(game: &Othello, s: &State, depth: u32) -> u64 {
        if game.turn(s) == Turn::Over {
            return 1;
        }
        let actions = legal(game, s);
        if depth == 1 {
            return actions.len() as u64;
        }
        let below = |&action: &u16| {
            let mut next = *s;
            game.step(&mut next, action, History::default());
            perft(game, &next, depth - 1)
        };
        actions.iter().map(below).sum()
    }

    #[test]
    fn perft_is_as_published() {
        let game = othello(8, End::NoMove);
        let published = [4, 12, 56, 244, 1_396, 8_200, 55_092, 390_216, 3_005_288];
        for (depth, leaves) in (1..).zip(published) {
            assert_eq!(perft(&game, &game.init(), depth), leaves, "depth {depth}");
        }
    }

    /// The discs a move turns over, found by walking from the cell; no bitboards.
    fn walk(side: i32, board: &[i8], cell: usize, colour: i8) -> Vec<usize> {
        let mut turned = Vec::new();
        if board[cell] != 0 {
            return turned;
        }
        for (down, right) in (-1..=1).flat_map(|down| (-1..=1).map(move |right| (down, right))) {
            let (mut row, mut column) = (cell as i32 / side + down, cell as i32 % side + right);
            let mut run = Vec::new();
            while (down, right) != (0, 0) && (0..side).contains(&row) && (0..side).contains(&column) {
                let at = (row * side + column) as usize;
                if board[at] == -colour {
                    run.push(at);
                } else {
                    turned.extend(run.drain(..).filter(|_| board[at] == colour));
                    break;
                }
                row += down;
                column += right;
            }
        }
        turned
    }

    #[test]
    fn random_games_agree_with_rules_that_walk_the_board() {
        for (size, end, seed) in (0..150)
            .flat_map(|seed| [(6, End::NoMove, seed), (8, End::NoMove, seed), (6, End::TwoPasses, seed)])
        {
            let game = othello(size, end);
            let cells = (size * size) as usize;
            let mut s = game.init();
            let mut board = vec![0i8; cells];
            let half = (size / 2) as usize;
            let centre = (half - 1) * size as usize + half - 1;
            for (offset, colour) in [(0, -1), (1, 1), (size as usize, 1), (size as usize + 1, -1)] {
                board[centre + offset] = colour;
            }
            let (mut colour, mut passes) = (1, 0);
            let mut rng = Key::new(seed, Purpose::Evaluation).with(u64::from(size)).stream();
            loop {
                let moves = |colour| {
                    let turns = |&cell: &usize| !walk(size as i32, &board, cell, colour).is_empty();
                    (0..cells).filter(turns).map(|cell| cell as u16).collect::<Vec<_>>()
                };
                let (own, other) = (moves(colour), moves(-colour));
                let one_colour = !board.contains(&1) || !board.contains(&-1);
                let over = match end {
                    End::NoMove => own.is_empty() && other.is_empty(),
                    End::TwoPasses => !board.contains(&0) || one_colour || passes == 2,
                };
                assert_eq!(game.turn(&s) == Turn::Over, over);
                if over {
                    break;
                }
                let expected = if own.is_empty() { vec![cells as u16] } else { own };
                assert_eq!(legal(&game, &s), expected);
                assert!(expected.len() <= game.sizes().max_legal);
                let action = expected[rng.below(expected.len())];
                game.step(&mut s, action, History::default());
                if usize::from(action) < cells {
                    let turned = walk(size as i32, &board, usize::from(action), colour);
                    turned.iter().for_each(|&cell| board[cell] = colour);
                    board[usize::from(action)] = colour;
                    passes = 0;
                } else {
                    passes += 1;
                }
                colour = -colour;
            }
            let lead: i32 = board.iter().map(|&disc| i32::from(disc)).sum();
            let mut returns = [9.0; 2];
            game.returns(&s, &mut returns);
            assert_eq!(returns, [lead.signum() as f32, -lead.signum() as f32]);
        }
    }

    #[test]
    fn the_shortest_game_ends_with_no_white_disc() {
        let game = othello(8, End::NoMove);
        let mut s = game.init();
        play(&game, &mut s, "e6 f4 e3 f6 g5 d6 e7 f5 c5");
        assert_eq!(game.turn(&s), Turn::Over);
        assert_eq!(game.scores(&s), [13.0, 0.0]);
    }

    #[test]
    fn the_end_without_moves_is_at_once_or_after_two_passes() {
        // Black a1, white b1 and h8; c1 leaves neither player a move.
        let discs = [1, 1 << 1 | 1 << 63];
        for (end, passes) in [(End::NoMove, ""), (End::TwoPasses, "pass pass")] {
            let game = othello(8, end);
            let moves = game.moves(discs[0], discs[1]);
            let mut s = State { discs, moves, to_play: 0, passed: 0, over: 0 };
            play(&game, &mut s, "C1");
            for pass in passes.split_whitespace() {
                assert_eq!((legal(&game, &s), game.turn(&s) == Turn::Over), (vec![64], false));
                play(&game, &mut s, pass);
            }
            assert_eq!(game.turn(&s), Turn::Over);
            assert_eq!(game.scores(&s), [3.0, 1.0]);
        }
    }

    #[test]
    fn bad_options_name_the_key() {
        for (options, part) in [
            ("size = 7", "game.size: got 7, expected 6 or 8"),
            ("end = 'never'", "game.end: got \"never\", expected no_move or two_passes"),
            ("side = 8", "game.side: no such key; the nearest is game.size"),
            ("size = -8", "game.size: got -8, expected 6 or 8"),
        ] {
            let table = options.parse().expect("TOML");
            let message = Othello::from_options(&table).expect_err(options).to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
