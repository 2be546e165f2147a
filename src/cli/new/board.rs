//! Your game. Now it is "in a row": two players place stones by turns, and whoever has enough of them in a row wins. Replace its rules by
//! your own, function by function; `cargo test` says which law a change broke, and with which actions.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use vecaz::game::{Game, History, ObsShape, PointActions, Sizes, Turn, options_by_section};

section! {
    // The settings of the game, which users give as `--set game.size=6`.
    Rules {
        /// Squares on a side.
        size: usize [3..=8] = 5,
        /// Stones in a row that win.
        connect: usize [3..=8] = 4,
    }
}

/// One position: plain numbers only, always of the same size, whatever the settings.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// The squares with stones of each player, as bits.
    stones: [u64; 2],
    /// Stones on the board.
    plies: u32,
    /// 0 while the game goes on, 1 or 2 for the winner, 3 for a draw.
    outcome: u32,
}

impl Rules {
    fn has_row(&self, stones: u64) -> bool {
        let size = self.size as i64;
        let has = |row: i64, column: i64| {
            (0..size).contains(&row)
                && (0..size).contains(&column)
                && stones >> (row * size + column) & 1 != 0
        };
        let starts = (0..size * size).flat_map(|i| [(0, 1), (1, 0), (1, 1), (1, -1)].map(|step| (i, step)));
        starts.into_iter().any(|(i, (down, right))| {
            (0..self.connect as i64).all(|k| has(i / size + k * down, i % size + k * right))
        })
    }
}

impl Game for Rules {
    type State = State;
    const NAME: &'static str = "NAME";
    // Settings with which the laws are checked, besides the defaults.
    const VARIANTS: &'static [&'static str] = &["size = 3\nconnect = 3", "size = 8"];

    options_by_section!();

    fn aim(&self, player: u8) -> String {
        format!("{} has {} in a row", ["X", "O"][usize::from(player)], self.connect)
    }

    fn sizes(&self) -> Sizes {
        let squares = self.size * self.size;
        Sizes {
            num_actions: squares,
            // Action i is square i, as `observe` numbers them; a game whose actions are no squares leaves this out.
            point_actions: Some(PointActions::ONE),
            max_legal: squares,
            max_plies: squares,
            obs: ObsShape { channels: 2, height: self.size, width: self.size },
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::zeroed()
    }

    // Can a state with these numbers be observed? States are read from files, too.
    fn is_valid(&self, s: &State) -> bool {
        s.plies as usize <= self.size * self.size && s.outcome <= 3
    }

    fn turn(&self, s: &State) -> Turn {
        if s.outcome != 0 { Turn::Over } else { Turn::Player((s.plies % 2) as u8) }
    }

    // Ascending. A game in which a player may have no move lists a pass as an action of its own.
    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let taken = s.stones[0] | s.stones[1];
        let free = (0..self.size * self.size).filter(|square| taken >> square & 1 == 0);
        out.iter_mut().zip(free).map(|(out, square)| *out = square as u16).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        let player = (s.plies % 2) as usize;
        s.stones[player] |= 1 << action;
        s.plies += 1;
        s.outcome = match self.has_row(s.stones[player]) {
            true => player as u32 + 1,
            false if s.plies as usize == self.size * self.size => 3,
            false => 0,
        };
    }

    // What the network sees, always as the player to move sees it: own stones first, then the other's.
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let planes = [s.stones[usize::from(player)], s.stones[usize::from(1 - player)]];
        for (plane, stones) in out.chunks_exact_mut(self.size * self.size).zip(planes) {
            plane.iter_mut().enumerate().for_each(|(i, out)| *out = (stones >> i & 1) as f32);
        }
    }

    // In [-1, 1] for each player: 1 won, -1 lost, 0 drawn.
    fn returns(&self, s: &State, out: &mut [f32]) {
        let first = [0.0, 1.0, -1.0, 0.0][s.outcome as usize];
        out.copy_from_slice(&[first, -first]);
    }

    // The look of a position, from which terminal and browser draw it.
    fn view(&self, s: &State, _: Viewer) -> View {
        let piece = |i: usize| Piece::of(s.stones[0] >> i & 1 != 0, s.stones[1] >> i & 1 != 0);
        let grid = Grid {
            style: GridStyle::Squares,
            columns: (b'a'..).take(self.size).map(|letter| char::from(letter).to_string()).collect(),
            rows: (1..=self.size).map(|row| row.to_string()).collect(),
            borders: None,
            pieces: Piece::pair([Shape::Disc, Shape::Disc], ["blue stone", "red stone"]),
            cells: (0..self.size * self.size).map(piece).collect(),
        };
        View::new(Board::Grid(grid), &[Colour::Blue, Colour::Red])
    }

    fn spot(&self, _: &State, action: u16) -> Spot {
        Spot::Place(action)
    }

    fn action_name(&self, _: &State, action: u16) -> String {
        let (row, column) = (usize::from(action) / self.size, usize::from(action) % self.size);
        format!("{}{}", char::from(b'a' + column as u8), row + 1)
    }
}
