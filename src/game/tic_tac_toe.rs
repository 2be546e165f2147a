//! Tic-tac-toe: three in a row on a 3x3 board. Actions are cells, row-major (0 top left), as in pgx and OpenSpiel.

use super::set_up::{SetUp, refused};
use super::view::{Board, Colour, GridStyle, Piece, Shape, Spot, View, Viewer};
use super::{ExactSolver, Game, History, ObsShape, PointActions, Sizes, Turn, board};
use crate::config::keys::section;
use crate::device_struct::{device_constants, device_struct};
use crate::error::Result;
use bytemuck::{Pod, Zeroable};

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

device_constants! {
    fn device_constants;
    /// All cells.
    const FULL: u16 as "u32" = 0b111_111_111;
}

section! {
    /// Tic-tac-toe has no settings.
    TicTacToe {}
}

device_struct! {
    /// The cells of each player as bits; the player to move follows from their number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// Bit i: player p holds cell i. `[P]`
        pub cells: [u16; 2],
    }
}

fn has_line(cells: u16) -> bool {
    LINES.iter().any(|line| line & !cells == 0)
}

/// Cell `cell` under one of the eight symmetries of the square: bit 2 transposes, bit 1 flips rows, bit 0 columns.
fn transform_cell(cell: u16, symmetry: u64) -> u16 {
    let (mut row, mut col) = (cell / 3, cell % 3);
    if symmetry & 4 != 0 {
        std::mem::swap(&mut row, &mut col);
    }
    if symmetry & 2 != 0 {
        row = 2 - row;
    }
    if symmetry & 1 != 0 {
        col = 2 - col;
    }
    row * 3 + col
}

impl Game for TicTacToe {
    type State = State;
    const NAME: &'static str = "tic_tac_toe";
    const CONFIGS: &'static [super::NamedText] = super::configs!("tic_tac_toe");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("tic_tac_toe");

    super::options_by_section!();

    fn aim(&self, player: u8) -> String {
        format!("{} makes three in a row", ["X", "O"][usize::from(player)])
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 9,
            point_actions: Some(PointActions::ONE),
            max_legal: 9,
            obs: ObsShape { channels: 2, height: 3, width: 3 },
            max_plies: 9,
            num_symmetries: 8,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { cells: [0, 0] }
    }

    fn turn(&self, s: &State) -> Turn {
        let taken = s.cells[0] | s.cells[1];
        if taken == FULL || has_line(s.cells[0]) || has_line(s.cells[1]) {
            Turn::Over
        } else {
            Turn::Player((taken.count_ones() & 1) as u8)
        }
    }

    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        let free = FULL & !(s.cells[0] | s.cells[1]);
        let mut n = 0;
        for cell in 0..9 {
            out[n] = cell;
            n += usize::from(free >> cell & 1);
        }
        n
    }

    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        let player = (s.cells[0] | s.cells[1]).count_ones() & 1;
        s.cells[player as usize] |= 1 << action;
    }

    /// Planes: own cells, the other player's cells. `[2, 3, 3]`
    #[inline(always)]
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let (own, other) = (s.cells[usize::from(player)], s.cells[usize::from(1 - player)]);
        for cell in 0..9 {
            out[cell] = f32::from(own >> cell & 1);
            out[9 + cell] = f32::from(other >> cell & 1);
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let value = f32::from(has_line(s.cells[0]) as i8 - has_line(s.cells[1]) as i8);
        out[0] = value;
        out[1] = -value;
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        let image = |cells: u16| {
            (0..9)
                .filter(|cell| cells >> cell & 1 == 1)
                .fold(0, |bits, cell| bits | 1 << transform_cell(cell, symmetry))
        };
        State { cells: s.cells.map(image) }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        transform_cell(action, symmetry)
    }

    fn exact_solver(&self) -> Option<ExactSolver> {
        Some(ExactSolver::Exhaustive)
    }

    fn solved_positions(&self) -> Option<&'static str> {
        Some(include_str!("../../assets/positions/tic_tac_toe.jsonl"))
    }

    fn set_up(&self, set_up: SetUp<'_>) -> Result<State> {
        let cells = set_up.stones(Self::NAME, 9)?;
        set_up.check_turn(Self::NAME, [cells[0].len(), cells[1].len()])?;
        let state = State {
            cells: [&cells[0], &cells[1]].map(|cells| cells.iter().fold(0, |bits, cell| bits | 1 << cell)),
        };
        match self.turn(&state) {
            Turn::Over => Err(refused(Self::NAME, "the game is over in it")),
            _ => Ok(state),
        }
    }

    fn view(&self, s: &State, _viewer: Viewer) -> View {
        let has = |player: usize, cell: usize| s.cells[player] >> cell & 1 == 1;
        let pieces = Piece::pair([Shape::Cross, Shape::Ring], ["X", "O"]);
        let grid = board::grid(3, GridStyle::Squares, pieces, |cell| {
            Piece::of(has(0, cell as usize), has(1, cell as usize))
        });
        let run = |player: usize| board::winning_run(3, 3, |cell| has(player, cell), |length| length == 3);
        View::new(Board::Grid(grid), &[Colour::Blue, Colour::Red]).with_line((0..2).flat_map(run))
    }

    fn spot(&self, _state: &State, action: u16) -> Spot {
        Spot::Place(action)
    }

    fn action_name(&self, _state: &State, action: u16) -> String {
        format!("{}{}", (b'a' + (action % 3) as u8) as char, action / 3 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_struct::DeviceType;
    use crate::game::check_device_header;

    #[test]
    fn generated_header_is_up_to_date() {
        check_device_header::<TicTacToe>("", &[device_constants(), State::definition()]);
    }
}
