//! Connect Four: drop stones into columns, `connect` in a row wins, a full board draws.
//!
//! Actions are columns from the left, as in pgx and OpenSpiel. Bitboard: column-major, `rows + 1` bits per column with the
//! top one always 0, bit 0 the bottom left (J. Tromp's "Fhourstones" layout).

pub mod solver;

use super::set_up::{SetUp, refused};
use super::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use super::{ExactSolver, Game, History, ObsShape, Sizes, Turn, board};
use crate::config::keys::{names, section, within};
use crate::device_struct::device_struct;
use crate::error::{Error, Result};
use bytemuck::{Pod, Zeroable};
use solver::ConnectFourSolver;

names! {
    /// What an observation has.
    Sight {
        /// The stones.
        Stones = "stones",
        /// Also the empty cells in which a stone completes a row.
        Threats = "threats",
    }
}

section! {
    /// The settings of Connect Four.
    ConnectFour {
        /// Rows of the board.
        rows: u32 [2..=12] = 6,
        /// Columns of the board; (rows + 1) * columns is at most 64.
        columns: u32 [2..=12] = 7,
        /// Stones in a row that win; at most the larger side.
        connect: u32 [2..=MAX_CONNECT as u32] = 4,
        /// What the network observes: the stones, or also each player's threats, the empty cells in which a stone completes a row.
        network_sees: Sight = Sight::Stones,
    }
}

device_struct! {
    /// One position.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// The stones of each player. `[P]`
        pub stones: [u64; 2],
        /// Stones on the board.
        pub plies: u32,
        /// 0 while the game is in progress, 1 or 2 for the winner's number plus one, 3 for a draw.
        pub outcome: u32,
    }
}

/// The longest row that wins.
const MAX_CONNECT: usize = 12;

/// Elements of an observation that are written at once, at least the width of any board.
const WIDE: usize = 16;

impl ConnectFour {
    /// Bits of one column, the guard bit included.
    #[inline(always)]
    fn stride(&self) -> u32 {
        self.rows + 1
    }

    #[inline(always)]
    fn has_line(&self, stones: u64) -> bool {
        if self.connect != 4 {
            return self.has_run(stones);
        }
        self.directions().iter().fold(0, |lines, &shift| {
            let pairs = stones & (stones >> shift);
            lines | (pairs & (pairs >> (2 * shift)))
        }) != 0
    }

    /// [`ConnectFour::has_line`] for any number of stones.
    fn has_run(&self, stones: u64) -> bool {
        self.directions()
            .iter()
            .any(|&shift| (1..self.connect).fold(stones, |run, _| run & (run >> shift)) != 0)
    }

    /// Bits from a square to the next in each direction.
    #[inline(always)]
    fn directions(&self) -> [u32; 4] {
        [1, self.stride() - 1, self.stride(), self.stride() + 1]
    }

    /// The empty cells in which a stone of `player` completes a row.
    #[inline(always)]
    fn threats(&self, s: &State, player: usize) -> u64 {
        let columns =
            (0..self.columns).fold(0, |bits, c| bits | ((1u64 << self.rows) - 1) << (c * self.stride()));
        let empty = columns & !(s.stones[0] | s.stones[1]);
        // A constant length unrolls the loops.
        empty
            & if self.connect == 4 {
                self.ends(s.stones[player], 4)
            } else {
                self.ends(s.stones[player], self.connect)
            }
    }

    /// The bits beside which `stones` have the rest of a row of `connect`, before and after them together.
    #[inline(always)]
    fn ends(&self, stones: u64, connect: u32) -> u64 {
        let mut ends = 0;
        for shift in self.directions() {
            // Element k: the bits that k or more stones follow.
            let mut followed = [0; MAX_CONNECT];
            let followed = &mut followed[..connect as usize];
            let (mut run, mut next) = (!0u64, stones);
            for bits in followed.iter_mut() {
                *bits = run;
                next >>= shift;
                run &= next;
            }
            let (mut run, mut next) = (!0u64, stones);
            for bits in followed.iter().rev() {
                ends |= run & bits;
                next <<= shift;
                run &= next;
            }
        }
        ends
    }

    /// A player's stones as elements of a plane, the top row first. Each row is written as [`WIDE`] elements; those past the last column are
    /// overwritten by the next row, and are unspecified after the last row.
    #[inline(always)]
    fn plane(&self, stones: u64) -> [f32; 64 + WIDE] {
        let columns: [i32; WIDE] =
            std::array::from_fn(|c| stones.checked_shr(c as u32 * self.stride()).unwrap_or(0) as i32);
        let mut cells = [0.0; 64 + WIDE];
        for row in 0..self.rows {
            let (at, height) = ((row * self.columns) as usize, self.rows - 1 - row);
            for (cell, column) in cells[at..at + WIDE].iter_mut().zip(columns) {
                *cell = (column >> height & 1) as f32;
            }
        }
        cells
    }

    /// The bit of a cell, numbered row by row from the top left.
    fn bit_of(&self, cell: usize) -> u32 {
        let (row, column) = (cell as u32 / self.columns, cell as u32 % self.columns);
        column * self.stride() + self.rows - 1 - row
    }

    fn mirror(&self, stones: u64) -> u64 {
        let column = (1u64 << self.stride()) - 1;
        (0..self.columns).fold(0, |out, c| {
            out | (stones >> (c * self.stride()) & column) << ((self.columns - 1 - c) * self.stride())
        })
    }

    /// Checks the settings as a whole.
    fn check(&self) -> Result<()> {
        if (self.rows + 1) * self.columns > 64 {
            return Err(Error::config(
                "game.columns",
                self.columns,
                format!("(rows + 1) * columns at most 64, with rows = {}", self.rows),
            ));
        }
        within("game.connect", self.connect, 2..=self.rows.max(self.columns))?;
        Ok(())
    }
}

impl Game for ConnectFour {
    type State = State;
    const NAME: &'static str = "connect_four";
    const CONFIGS: &'static [super::NamedText] = super::configs!("connect_four", "connect_four_gpu", "quick");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("connect_four");
    const VARIANTS: &'static [&'static str] = &[
        "rows = 5\ncolumns = 6\nconnect = 3",
        "rows = 7\ncolumns = 8\nconnect = 5",
        "rows = 2\ncolumns = 12\nconnect = 2",
        "rows = 12\ncolumns = 4",
        "network_sees = 'threats'",
    ];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];

    super::options_by_section!(Self::check);

    fn aim(&self, player: u8) -> String {
        format!(
            "{} makes {} in a row, across, down or diagonally",
            ["X", "O"][usize::from(player)],
            self.connect
        )
    }

    fn sizes(&self) -> Sizes {
        let planes = match self.network_sees {
            Sight::Stones => 2,
            Sight::Threats => 4,
        };
        Sizes {
            num_actions: self.columns as usize,
            max_legal: self.columns as usize,
            obs: ObsShape { channels: planes, height: self.rows as usize, width: self.columns as usize },
            max_plies: (self.rows * self.columns) as usize,
            num_symmetries: 2,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { stones: [0, 0], plies: 0, outcome: 0 }
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        if s.outcome == 0 { Turn::Player((s.plies & 1) as u8) } else { Turn::Over }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        let taken = s.stones[0] | s.stones[1];
        let mut n = 0;
        for column in 0..self.columns {
            out[n] = column as u16;
            let top = 1u64 << (column * self.stride() + self.rows - 1);
            n += usize::from(taken & top == 0);
        }
        n
    }

    #[inline(always)]
    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        let player = (s.plies & 1) as usize;
        let taken = s.stones[0] | s.stones[1];
        let shift = u32::from(action) * self.stride();
        let column = ((1u64 << self.rows) - 1) << shift;
        s.stones[player] |= (taken + (1u64 << shift)) & column;
        s.plies += 1;
        s.outcome = if self.has_line(s.stones[player]) {
            player as u32 + 1
        } else if s.plies == self.rows * self.columns {
            3
        } else {
            0
        };
    }

    /// Planes: own stones, the other player's stones, the top row first; with `network_sees = "threats"` then own threats, the other player's
    /// threats. `[2 or 4, rows, columns]`
    #[inline(always)]
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let cells = (self.rows * self.columns) as usize;
        let (own, other) = (usize::from(player), usize::from(1 - player));
        let (stones, threats) = out.split_at_mut(2 * cells);
        for (plane, player) in stones.chunks_exact_mut(cells).zip([own, other]) {
            plane.copy_from_slice(&self.plane(s.stones[player])[..cells]);
        }
        for (plane, player) in threats.chunks_exact_mut(cells).zip([own, other]) {
            plane.copy_from_slice(&self.plane(self.threats(s, player))[..cells]);
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let value = match s.outcome {
            1 => 1.0,
            2 => -1.0,
            _ => 0.0,
        };
        out[0] = value;
        out[1] = -value;
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        if symmetry == 0 {
            return *s;
        }
        State { stones: s.stones.map(|stones| self.mirror(stones)), ..*s }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        if symmetry == 0 { action } else { self.columns as u16 - 1 - action }
    }

    fn exact_solver(&self) -> Option<ExactSolver> {
        Some(ExactSolver::GameSpecific(Box::new(ConnectFourSolver::new(self))))
    }

    fn solved_positions(&self) -> Option<&'static str> {
        let has_usual_rules = Self { network_sees: Sight::Stones, ..self.clone() } == Self::default();
        has_usual_rules.then_some(include_str!("../../assets/positions/connect_four.jsonl"))
    }

    fn set_up(&self, set_up: SetUp<'_>) -> Result<State> {
        let cells = set_up.stones(Self::NAME, (self.rows * self.columns) as usize)?;
        set_up.check_turn(Self::NAME, [cells[0].len(), cells[1].len()])?;
        let stones = [&cells[0], &cells[1]]
            .map(|cells| cells.iter().fold(0u64, |bits, &cell| bits | 1 << self.bit_of(cell)));
        let taken = stones[0] | stones[1];
        for column in 0..self.columns {
            let height = taken >> (column * self.stride()) & ((1 << self.rows) - 1);
            if height & (height + 1) != 0 {
                return Err(refused(
                    Self::NAME,
                    format!("a stone of column {column} has an empty cell below it"),
                ));
            }
        }
        if let Some(player) = (0..2).find(|&player| self.has_line(stones[player])) {
            let why = format!("{} has {} in a row already", ["X", "O"][player], self.connect);
            return Err(refused(Self::NAME, why));
        }
        let plies = taken.count_ones();
        match plies == self.rows * self.columns {
            true => Err(refused(Self::NAME, "the board is full, so the game is over")),
            false => Ok(State { stones, plies, outcome: 0 }),
        }
    }

    fn view(&self, s: &State, _viewer: Viewer) -> View {
        let (rows, columns) = (self.rows as usize, self.columns as usize);
        let has = |player: usize, cell: usize| s.stones[player] >> self.bit_of(cell) & 1 == 1;
        let grid = Grid {
            style: GridStyle::Drop,
            columns: (0..columns).map(|column| column.to_string()).collect(),
            rows: Vec::new(),
            borders: None,
            pieces: Piece::pair([Shape::Disc; 2], ["X", "O"]),
            cells: (0..rows * columns).map(|cell| Piece::of(has(0, cell), has(1, cell))).collect(),
        };
        let least = self.connect as usize;
        let run =
            |player| board::winning_run(rows, columns, |cell| has(player, cell), |length| length >= least);
        View::new(Board::Grid(grid), &[Colour::Red, Colour::Yellow]).with_line((0..2).flat_map(run))
    }

    /// The cell where the stone comes to lie.
    fn spot(&self, s: &State, action: u16) -> Spot {
        let column = (s.stones[0] | s.stones[1]) >> (u32::from(action) * self.stride());
        let height = (column & ((1 << self.rows) - 1)).count_ones();
        Spot::Place(((self.rows - 1 - height.min(self.rows - 1)) * self.columns) as u16 + action)
    }

    /// The column's number, 0 at the left.
    fn action_name(&self, _state: &State, action: u16) -> String {
        action.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_struct::DeviceType;
    use crate::game::tests::legal;
    use crate::game::{PositionSolver, check_device_header};
    use crate::rng::{Key, Purpose};
    use crate::stop::Stop;

    #[test]
    fn generated_header_is_up_to_date() {
        check_device_header::<ConnectFour>("", &[State::definition()]);
    }

    #[test]
    fn a_stop_ends_the_search_of_the_start() {
        let game = ConnectFour::default();
        let mut solver = ConnectFourSolver::new(&game);
        let stop = Stop::default();
        solver.stop_by(&stop);
        stop.cancel();
        solver.scores_of(&game.init());
        assert!(solver.nodes() < 1 << 18, "{} positions", solver.nodes());
    }

    #[test]
    fn a_threat_is_a_cell_whose_stone_completes_a_row() {
        for (rows, columns, connect) in [(6, 7, 4), (5, 6, 3), (7, 8, 5), (2, 12, 2), (12, 4, 4), (12, 4, 12)]
        {
            let game = ConnectFour { rows, columns, connect, network_sees: Sight::Threats };
            let mut rng = Key::new(u64::from(rows * columns), Purpose::Evaluation).stream();
            let mut seen = 0;
            for _ in 0..20 {
                let mut s = game.init();
                while game.turn(&s) != Turn::Over {
                    let taken = s.stones[0] | s.stones[1];
                    for player in 0..2 {
                        let threats = game.threats(&s, player);
                        seen += threats.count_ones();
                        for cell in 0..(rows * columns) as usize {
                            let bit = 1 << game.bit_of(cell);
                            let completes = taken & bit == 0 && game.has_line(s.stones[player] | bit);
                            assert_eq!(threats & bit != 0, completes, "{s:?}, {cell}");
                        }
                    }
                    let actions = legal(&game, &s);
                    game.step(&mut s, actions[rng.below(actions.len())], History::default());
                }
            }
            assert!(seen > 0 || connect == 12);
        }
    }
}
