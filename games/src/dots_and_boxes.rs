//! Dots and Boxes. Players draw lines between neighbouring dots by turns. Who draws the fourth line of a box owns it and moves again; who
//! owns more boxes when all lines are drawn wins.
//!
//! Actions are lines, numbered as in OpenSpiel: the horizontal ones row by row, then the vertical ones.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use vecaz::game::{Game, History, NamedText, ObsShape, Sizes, Turn, options_by_section};

section! {
    DotsAndBoxes {
        /// Rows of boxes.
        rows: usize [1..=7] = 3,
        /// Columns of boxes.
        columns: usize [1..=7] = 3,
        /// Whether the result is the difference of the boxes, relative to all boxes, and not who has more.
        margin: bool = false,
    }
}

/// One position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// The lines that are drawn, as bits.
    lines: [u64; 2],
    /// The boxes of each player, as bits, row by row. `[P]`
    boxes: [u64; 2],
    to_play: u64,
}

impl State {
    fn has_line(&self, line: usize) -> bool {
        self.lines[line / 64] >> (line % 64) & 1 != 0
    }
}

impl DotsAndBoxes {
    fn horizontal(&self) -> usize {
        (self.rows + 1) * self.columns
    }

    fn lines(&self) -> usize {
        self.horizontal() + self.rows * (self.columns + 1)
    }

    /// The lines around a box: above, below, left, right.
    fn around(&self, row: usize, column: usize) -> [usize; 4] {
        let (above, left) =
            (row * self.columns + column, self.horizontal() + row * (self.columns + 1) + column);
        [above, above + self.columns, left, left + 1]
    }

    /// Row and column of a line on the grid of dots, lines and boxes, whose rows and columns with even numbers have the dots.
    fn on_grid(&self, line: usize) -> (usize, usize) {
        match line.checked_sub(self.horizontal()) {
            None => (line / self.columns * 2, line % self.columns * 2 + 1),
            Some(line) => (line / (self.columns + 1) * 2 + 1, line % (self.columns + 1) * 2),
        }
    }

    fn line_at(&self, (row, column): (usize, usize)) -> usize {
        match row % 2 {
            0 => row / 2 * self.columns + column / 2,
            _ => self.horizontal() + row / 2 * (self.columns + 1) + column / 2,
        }
    }

    /// The image of a cell of the grid: bit 0 of `symmetry` mirrors the columns, bit 1 the rows, bit 2 transposes a square board first.
    fn image(&self, (row, column): (usize, usize), symmetry: u64) -> (usize, usize) {
        let (row, column) = if symmetry & 4 != 0 { (column, row) } else { (row, column) };
        let row = if symmetry & 2 != 0 { 2 * self.rows - row } else { row };
        (row, if symmetry & 1 != 0 { 2 * self.columns - column } else { column })
    }

    fn lead(s: &State) -> i32 {
        s.boxes[0].count_ones() as i32 - s.boxes[1].count_ones() as i32
    }

    fn num_drawn(s: &State) -> usize {
        (s.lines[0].count_ones() + s.lines[1].count_ones()) as usize
    }
}

impl Game for DotsAndBoxes {
    type State = State;
    const NAME: &'static str = "dots_and_boxes";
    const VARIANTS: &'static [&'static str] = &[
        "rows = 2\ncolumns = 4\nmargin = true",
        "rows = 1\ncolumns = 1",
        "rows = 7\ncolumns = 7",
        "rows = 5",
    ];
    const CONFIGS: &'static [NamedText] =
        &[NamedText { name: "dots_and_boxes", text: include_str!("../configs/dots_and_boxes.toml") }];

    options_by_section!();

    fn aim(&self, player: u8) -> String {
        format!("{} closes more boxes", ["X", "O"][usize::from(player)])
    }

    fn sizes(&self) -> Sizes {
        let lines = self.lines();
        Sizes {
            num_actions: lines,
            max_legal: lines,
            max_plies: lines,
            obs: ObsShape { channels: 3, height: 2 * self.rows + 1, width: 2 * self.columns + 1 },
            num_symmetries: if self.rows == self.columns { 8 } else { 4 },
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::zeroed()
    }

    fn is_valid(&self, s: &State) -> bool {
        let fits = |bits: u128, count: usize| bits >> count == 0;
        let lines = u128::from(s.lines[1]) << 64 | u128::from(s.lines[0]);
        s.to_play < 2
            && s.boxes[0] & s.boxes[1] == 0
            && fits(lines, self.lines())
            && fits(u128::from(s.boxes[0] | s.boxes[1]), self.rows * self.columns)
    }

    fn turn(&self, s: &State) -> Turn {
        if Self::num_drawn(s) == self.lines() { Turn::Over } else { Turn::Player(s.to_play as u8) }
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let free = (0..self.lines()).filter(|&line| !s.has_line(line));
        out.iter_mut().zip(free).map(|(out, line)| *out = line as u16).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        let line = usize::from(action);
        s.lines[line / 64] |= 1 << (line % 64);
        let (row, column) = self.on_grid(line);
        // The boxes above and below a horizontal line, or left and right of a vertical one; those beyond the border do not exist.
        let beside = match row % 2 {
            0 => [(row.wrapping_sub(2) / 2, column / 2), (row / 2, column / 2)],
            _ => [(row / 2, column.wrapping_sub(2) / 2), (row / 2, column / 2)],
        };
        let mut closed = 0;
        for (row, column) in beside.into_iter().filter(|&(r, c)| r < self.rows && c < self.columns) {
            if self.around(row, column).iter().all(|&line| s.has_line(line)) {
                closed |= 1 << (row * self.columns + column);
            }
        }
        s.boxes[s.to_play as usize] |= closed;
        s.to_play ^= u64::from(closed == 0);
    }

    /// Planes on the grid of dots, lines and boxes: lines that are drawn, lines that are free, and everywhere the lead of `player` relative
    /// to all boxes: it does not matter who owns which box. `[3, 2 rows + 1, 2 columns + 1]`
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let width = 2 * self.columns + 1;
        let (lines, lead) = out.split_at_mut(2 * width * (2 * self.rows + 1));
        lines.fill(0.0);
        let (drawn, free) = lines.split_at_mut(width * (2 * self.rows + 1));
        for line in 0..self.lines() {
            let (row, column) = self.on_grid(line);
            let plane = if s.has_line(line) { &mut *drawn } else { &mut *free };
            plane[row * width + column] = 1.0;
        }
        let sign = if player == 0 { 1.0 } else { -1.0 };
        lead.fill(sign * Self::lead(s) as f32 / (self.rows * self.columns) as f32);
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let lead = Self::lead(s);
        let first = match self.margin {
            true => lead as f32 / (self.rows * self.columns) as f32,
            false => lead.signum() as f32,
        };
        out.copy_from_slice(&[first, -first]);
    }

    fn scores(&self, s: &State) -> Vec<f32> {
        s.boxes.iter().map(|boxes| boxes.count_ones() as f32).collect()
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        let mut image = State { lines: [0; 2], boxes: [0; 2], ..*s };
        for line in (0..self.lines()).filter(|&line| s.has_line(line)) {
            let line = self.line_at(self.image(self.on_grid(line), symmetry));
            image.lines[line / 64] |= 1 << (line % 64);
        }
        for i in 0..self.rows * self.columns {
            let cell = (i / self.columns * 2 + 1, i % self.columns * 2 + 1);
            let (row, column) = self.image(cell, symmetry);
            let to = row / 2 * self.columns + column / 2;
            (0..2).for_each(|player| image.boxes[player] |= (s.boxes[player] >> i & 1) << to);
        }
        image
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        self.line_at(self.image(self.on_grid(usize::from(action)), symmetry)) as u16
    }

    fn solved_positions(&self) -> Option<&'static str> {
        let is_solved = (self.rows, self.columns, self.margin) == (3, 3, false);
        is_solved.then_some(include_str!("../positions/dots_and_boxes.jsonl"))
    }

    fn view(&self, s: &State, _: Viewer) -> View {
        let sign = |mark, name: &str| Piece { owner: None, mark, shape: Shape::Letter, name: name.into() };
        let mut pieces = Piece::pair([Shape::Disc, Shape::Disc], ["blue box", "red box"]);
        pieces.extend([sign('+', "dot"), sign('-', "line"), sign('|', "line")]);
        let piece = |row: usize, column: usize| match (row % 2, column % 2) {
            (0, 0) => Some(2),
            (1, 1) => {
                let i = row / 2 * self.columns + column / 2;
                Piece::of(s.boxes[0] >> i & 1 != 0, s.boxes[1] >> i & 1 != 0)
            }
            (odd, _) => s.has_line(self.line_at((row, column))).then_some(3 + odd as u8),
        };
        let sides = [2 * self.rows + 1, 2 * self.columns + 1];
        let grid = Grid::labelled(GridStyle::Squares, sides, |i| i.is_multiple_of(2), pieces, piece);
        let boxes = s.boxes.map(u64::count_ones);
        View::new(Board::Grid(grid), &[Colour::Blue, Colour::Red])
            .with_note(format!("boxes: X {}, O {}", boxes[0], boxes[1]))
    }

    fn spot(&self, _: &State, action: u16) -> Spot {
        let (row, column) = self.on_grid(usize::from(action));
        Spot::Place((row * (2 * self.columns + 1) + column) as u16)
    }

    /// The line above a box, `a1h`, or at its left, `a1v`; below the last row and right of the last column as if there were one more.
    fn action_name(&self, _: &State, action: u16) -> String {
        let (row, column) = self.on_grid(usize::from(action));
        format!("{}{}{}", char::from(b'a' + column as u8 / 2), row / 2 + 1, ["h", "v"][row % 2])
    }
}
