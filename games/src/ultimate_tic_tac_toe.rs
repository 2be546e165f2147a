//! Ultimate Tic-Tac-Toe: nine boards of tic-tac-toe in a 3x3 board. The cell of a move names the board of the next one; if that board is
//! finished, the player to move chooses one first. Three boards won in a row win.
//!
//! A free choice of the board is a ply of its own, as in OpenSpiel, so that nine actions are enough: boards, or cells of a board, row by row.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::board::transform_cell;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use vecaz::game::{Game, History, NamedText, ObsShape, Sizes, Turn, options_by_section};

section! {
    UltimateTicTacToe {}
}

/// One position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// The cells of each player in each board, as bits. `[P, 9]`
    cells: [[u16; 9]; 2],
    /// The board to play in, [`ANY`] where one is to be chosen.
    board: u16,
    to_play: u16,
}

/// No board is chosen yet.
const ANY: u16 = 9;
const FULL: u16 = 0b111_111_111;
const LINES: [u16; 8] = [
    0b000_000_111,
    0b000_111_000,
    0b111_000_000,
    0b001_001_001,
    0b010_010_010,
    0b100_100_100,
    0b100_010_001,
    0b001_010_100,
];

fn has_line(cells: u16) -> bool {
    LINES.iter().any(|line| line & !cells == 0)
}

/// The cells for which `is_in` is true, as bits.
fn set(is_in: impl Fn(usize) -> bool) -> u16 {
    (0..9).filter(|&cell| is_in(cell)).fold(0, |bits, cell| bits | 1 << cell)
}

/// The image of a set of cells under a symmetry of the square.
fn image(cells: u16, symmetry: u64) -> u16 {
    let has = |cell: &u32| cells >> cell & 1 != 0;
    (0..9).filter(has).fold(0, |bits, cell| bits | 1 << transform_cell(cell, 3, symmetry))
}

impl State {
    /// The boards that `player` has won, as bits.
    fn won(&self, player: usize) -> u16 {
        set(|board| has_line(self.cells[player][board]))
    }

    /// The boards in which nobody can move any more.
    fn finished(&self) -> u16 {
        self.won(0) | self.won(1) | set(|board| self.free(board) == 0)
    }

    /// The cells of a board that nobody has, as bits.
    fn free(&self, board: usize) -> u16 {
        FULL & !(self.cells[0][board] | self.cells[1][board])
    }

    fn winner(&self) -> Option<usize> {
        (0..2).find(|&player| has_line(self.won(player)))
    }
}

/// Row and column of a cell on the board of 9x9 cells.
fn on_board(board: usize, cell: usize) -> (usize, usize) {
    (board / 3 * 3 + cell / 3, board % 3 * 3 + cell % 3)
}

/// The same with a free row and column between boards, which show the borders.
fn spaced(board: usize, cell: usize) -> usize {
    let (row, column) = on_board(board, cell);
    (row + row / 3) * SIDE + column + column / 3
}

/// The side of the board with borders.
const SIDE: usize = 11;

impl Game for UltimateTicTacToe {
    type State = State;
    const NAME: &'static str = "ultimate_tic_tac_toe";
    const CONFIGS: &'static [NamedText] = &[NamedText {
        name: "ultimate_tic_tac_toe",
        text: include_str!("../configs/ultimate_tic_tac_toe.toml"),
    }];

    options_by_section!();

    fn aim(&self, player: u8) -> String {
        format!("{} wins three boards in a row", ["X", "O"][usize::from(player)])
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 9,
            max_legal: 9,
            max_plies: 162,
            obs: ObsShape { channels: 6, height: 9, width: 9 },
            num_symmetries: 8,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { board: ANY, ..State::zeroed() }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.to_play < 2 && s.board <= ANY && s.cells.iter().flatten().all(|&cells| cells <= FULL)
    }

    fn turn(&self, s: &State) -> Turn {
        if s.winner().is_some() || s.finished() == FULL { Turn::Over } else { Turn::Player(s.to_play as u8) }
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let open = if s.board == ANY { FULL & !s.finished() } else { s.free(usize::from(s.board)) };
        let actions = (0..9).filter(|action| open >> action & 1 != 0);
        out.iter_mut().zip(actions).map(|(out, action)| *out = action).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        if s.board == ANY {
            s.board = action;
            return;
        }
        s.cells[usize::from(s.to_play)][usize::from(s.board)] |= 1 << action;
        s.board = if s.finished() >> action & 1 != 0 { ANY } else { action };
        s.to_play ^= 1;
    }

    /// Planes: own cells and the other player's, cells of boards won by oneself and by the other, cells that may be taken next, and 1
    /// everywhere if a board is to be chosen. `[6, 9, 9]`
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let player = usize::from(player);
        let seats = [player, 1 - player];
        let won = seats.map(|seat| s.won(seat));
        let finished = s.finished();
        for board in 0..9 {
            let is_next = s.board == ANY || usize::from(s.board) == board;
            let open = if is_next && finished >> board & 1 == 0 { s.free(board) } else { 0 };
            let choice = if s.board == ANY { FULL } else { 0 };
            let boards_won = won.map(|boards| if boards >> board & 1 != 0 { FULL } else { 0 });
            let [own, other] = seats.map(|seat| s.cells[seat][board]);
            let planes = [own, other, boards_won[0], boards_won[1], open, choice];
            for cell in 0..9 {
                let (row, column) = on_board(board, cell);
                for (plane, cells) in out.chunks_exact_mut(81).zip(planes) {
                    plane[row * 9 + column] = f32::from(cells >> cell & 1);
                }
            }
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let first = [0.0, 1.0, -1.0][s.winner().map_or(0, |winner| winner + 1)];
        out.copy_from_slice(&[first, -first]);
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        let to = |board: usize| transform_cell(board as u32, 3, symmetry) as usize;
        let mut cells = [[0; 9]; 2];
        for (player, board) in (0..2).flat_map(|player| (0..9).map(move |board| (player, board))) {
            cells[player][to(board)] = image(s.cells[player][board], symmetry);
        }
        let board = if s.board == ANY { ANY } else { to(usize::from(s.board)) as u16 };
        State { cells, board, ..*s }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        transform_cell(u32::from(action), 3, symmetry) as u16
    }

    fn view(&self, s: &State, _: Viewer) -> View {
        let letter = |owner, mark, name: &str| Piece { owner, mark, shape: Shape::Letter, name: name.into() };
        let mut pieces = Piece::pair([Shape::Cross, Shape::Ring], ["X", "O"]);
        pieces.extend([
            letter(Some(0), 'x', "free cell of a board of X"),
            letter(Some(1), 'o', "free cell of a board of O"),
        ]);
        pieces.push(letter(None, '+', "border"));
        let mut cells = vec![Some(4); SIDE * SIDE];
        let won = [s.won(0), s.won(1)];
        for (board, cell) in (0..81).map(|i| (i / 9, i % 9)) {
            let [first, second] = [0, 1].map(|player| s.cells[player][board] >> cell & 1 != 0);
            let of_board =
                Piece::of(won[0] >> board & 1 != 0, won[1] >> board & 1 != 0).map(|piece| piece + 2);
            cells[spaced(board, cell)] = Piece::of(first, second).or(of_board);
        }
        let grid = Grid::labelled(
            GridStyle::Squares,
            [SIDE; 2],
            |i| i % 4 == 3,
            pieces,
            |row, column| cells[row * SIDE + column],
        );
        let rows = |player: usize| LINES.into_iter().filter(move |line| line & !won[player] == 0).take(1);
        let boards =
            |player: usize| rows(player).flat_map(|line| (0..9).filter(move |board| line >> board & 1 != 0));
        let taken =
            |player: usize, board: usize| (0..9).filter(move |cell| s.cells[player][board] >> cell & 1 != 0);
        let line =
            (0..2).flat_map(|p| boards(p).flat_map(move |b| taken(p, b).map(move |cell| spaced(b, cell))));
        let next = match s.board {
            _ if self.turn(s) == Turn::Over => None,
            ANY => Some("any board can be chosen".to_string()),
            board => Some(format!("to play in board {}", board + 1)),
        };
        let view = View::new(Board::Grid(grid), &[Colour::Blue, Colour::Red]).with_line(line);
        next.into_iter().fold(view, View::with_note)
    }

    fn spot(&self, s: &State, action: u16) -> Spot {
        let action = usize::from(action);
        let at = if s.board == ANY { spaced(action, 4) } else { spaced(usize::from(s.board), action) };
        Spot::Place(at as u16)
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        if s.board == ANY {
            return format!("board {}", action + 1);
        }
        let (row, column) = on_board(usize::from(s.board), usize::from(action));
        format!("{}{}", char::from(b'a' + column as u8), row + 1)
    }
}
