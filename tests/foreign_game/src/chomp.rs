//! Chomp: a player eats a square of a chocolate bar with all squares below and to the right of it; the upper left one is poisoned.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use vecaz::game::{Game, History, NamedText, ObsShape, Sizes, Turn, options_by_section};

section! {
    Chomp {
        /// Rows of squares.
        rows: usize [1..=8] = 3,
        /// Columns of squares.
        columns: usize [1..=8] = 4,
    }
}

/// The squares that are left of each row, and the player to move.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    left: [u8; 8],
    to_play: u8,
}

impl Game for Chomp {
    type State = State;
    const NAME: &'static str = "chomp";
    const VARIANTS: &'static [&'static str] = &["rows = 5\ncolumns = 5"];
    const CONFIGS: &'static [NamedText] = &[NamedText { name: "chomp", text: include_str!("../chomp.toml") }];
    options_by_section!();

    fn aim(&self, player: u8) -> String {
        format!("player {player} leaves the poisoned square to the other")
    }

    fn sizes(&self) -> Sizes {
        let squares = self.rows * self.columns;
        let obs = ObsShape { channels: 1, height: self.rows, width: self.columns };
        Sizes { num_actions: squares, max_legal: squares, max_plies: squares, obs, ..Sizes::default() }
    }

    fn init(&self) -> State {
        let left = std::array::from_fn(|row| if row < self.rows { self.columns as u8 } else { 0 });
        State { left, to_play: 0 }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.to_play < 2
    }

    fn turn(&self, s: &State) -> Turn {
        if s.left[0] == 0 { Turn::Over } else { Turn::Player(s.to_play) }
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let of_row = |r: usize| (0..usize::from(s.left[r])).map(move |c| r * self.columns + c);
        out.iter_mut().zip((0..self.rows).flat_map(of_row)).map(|(out, square)| *out = square as u16).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        let (row, column) = (usize::from(action) / self.columns, usize::from(action) % self.columns);
        s.left[row..].iter_mut().for_each(|left| *left = (*left).min(column as u8));
        s.to_play ^= 1;
    }

    fn observe(&self, s: &State, _player: u8, out: &mut [f32]) {
        let is_left = |i: usize| i % self.columns < usize::from(s.left[i / self.columns]);
        out.iter_mut().enumerate().for_each(|(i, out)| *out = f32::from(u8::from(is_left(i))));
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        out.fill(-1.0);
        out[usize::from(s.to_play)] = 1.0;
    }

    fn view(&self, s: &State, _: Viewer) -> View {
        let chocolate = vec![Piece { owner: None, mark: '#', shape: Shape::Disc, name: "chocolate".into() }];
        let piece = |row: usize, column| (column < usize::from(s.left[row])).then_some(0);
        let grid = Grid::labelled(GridStyle::Squares, [self.rows, self.columns], |_| false, chocolate, piece);
        View::new(Board::Grid(grid), &[Colour::Blue, Colour::Red])
    }

    fn spot(&self, _: &State, action: u16) -> Spot {
        Spot::Place(action)
    }

    fn action_name(&self, _: &State, action: u16) -> String {
        let (row, column) = (usize::from(action) / self.columns, usize::from(action) % self.columns);
        format!("{}{}", (b'a' + column as u8) as char, row + 1)
    }
}
