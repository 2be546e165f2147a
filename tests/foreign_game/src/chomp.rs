//! Chomp: a player eats a square of a chocolate bar with all squares below and to the right of it; the upper left one is poisoned.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::{Game, History, NamedText, ObsShape, Sizes, Turn, options_by_section};

section! {
    /// The bar.
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
        Sizes {
            num_actions: squares,
            max_legal: squares,
            obs: ObsShape { channels: 1, height: self.rows, width: self.columns },
            max_plies: squares,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        let mut left = [0; 8];
        left[..self.rows].fill(self.columns as u8);
        State { left, to_play: 0 }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.to_play < 2 && s.left[..self.rows].iter().all(|&left| usize::from(left) <= self.columns)
    }

    fn turn(&self, s: &State) -> Turn {
        if s.left[0] == 0 { Turn::Over } else { Turn::Player(s.to_play) }
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let squares =
            (0..self.rows).flat_map(|r| (0..usize::from(s.left[r])).map(move |c| r * self.columns + c));
        out.iter_mut().zip(squares).map(|(out, square)| *out = square as u16).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        let (row, column) = (usize::from(action) / self.columns, usize::from(action) % self.columns);
        s.left[row..].iter_mut().for_each(|left| *left = (*left).min(column as u8));
        s.to_play ^= 1;
    }

    fn observe(&self, s: &State, _player: u8, out: &mut [f32]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = f32::from(u8::from(i % self.columns < usize::from(s.left[i / self.columns])));
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        // The player who moved last has eaten the poisoned square.
        out.fill(-1.0);
        out[usize::from(s.to_play)] = 1.0;
    }

    fn display(&self, s: &State) -> String {
        let row =
            |&left: &u8| "# ".repeat(left.into()) + &". ".repeat(self.columns - usize::from(left)) + "\n";
        s.left[..self.rows].iter().map(row).collect()
    }

    fn action_name(&self, _: &State, action: u16) -> String {
        format!(
            "{}{}",
            (b'a' + (action % self.columns as u16) as u8) as char,
            action / self.columns as u16 + 1
        )
    }
}
