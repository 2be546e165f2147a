//! Breakthrough (Dan Troyka, 2000). Pawns go one square forward, straight or diagonally, and capture diagonally only. Who reaches the far
//! row or takes all pawns of the other wins.
//!
//! The first player begins at the top, as in OpenSpiel. Boards of six and more rows begin with two rows of pawns a player, others with one.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use vecaz::game::{Game, History, NamedText, ObsShape, Sizes, Turn, options_by_section};

section! {
    Breakthrough {
        /// Rows of the board.
        rows: usize [2..=8] = 8,
        /// Columns of the board.
        columns: usize [2..=8] = 8,
    }
}

/// One position. Squares are numbered row by row from the top left.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// The squares of each player's pawns, as bits. `[P]`
    pawns: [u64; 2],
    to_play: u64,
}

/// The ways of a pawn: forward to the left, straight, forward to the right.
const WAYS: usize = 3;
const STRAIGHT: usize = 1;

/// The positions of the bits that are set, ascending.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}

impl Breakthrough {
    fn squares(&self) -> usize {
        self.rows * self.columns
    }

    /// Rows of pawns of a player at the start.
    fn rows_of_pawns(&self) -> usize {
        if self.rows >= 6 { 2 } else { 1 }
    }

    /// Squares as `player` sees them, and back: for the second player the rows are mirrored, so that both go to higher rows.
    fn seen(&self, squares: u64, player: usize) -> u64 {
        let row = |row: usize| squares >> (row * self.columns) & ((1 << self.columns) - 1);
        match player {
            0 => squares,
            _ => (0..self.rows).fold(0, |image, r| image | row(r) << ((self.rows - 1 - r) * self.columns)),
        }
    }

    /// The number of a square as `player` sees it, and back.
    fn square(&self, square: usize, player: usize) -> usize {
        let (row, column) = (square / self.columns, square % self.columns);
        if player == 0 { square } else { (self.rows - 1 - row) * self.columns + column }
    }

    /// The square in the mirrored column.
    fn mirrored(&self, square: usize) -> usize {
        let column = square % self.columns;
        square - column + self.columns - 1 - column
    }

    /// The square to which a pawn goes from `from`, both as the player to move sees them.
    fn target(&self, from: usize, way: usize) -> Option<usize> {
        let column = from % self.columns + way;
        (1..=self.columns).contains(&column).then(|| from + self.columns + way - 1)
    }

    fn winner(&self, s: &State) -> Option<usize> {
        let last_row = (self.rows - 1) * self.columns;
        (0..2).find(|&p| s.pawns[1 - p] == 0 || self.seen(s.pawns[p], p) >> last_row != 0)
    }

    /// The squares of an action on the board.
    fn ends(&self, s: &State, action: u16) -> (usize, usize) {
        let (from, way) = (usize::from(action) / WAYS, usize::from(action) % WAYS);
        let player = s.to_play as usize;
        (self.square(from, player), self.square(from + self.columns + way - 1, player))
    }

    fn square_name(&self, square: usize) -> String {
        format!("{}{}", (b'a' + (square % self.columns) as u8) as char, self.rows - square / self.columns)
    }
}

impl Game for Breakthrough {
    type State = State;
    const NAME: &'static str = "breakthrough";
    const VARIANTS: &'static [&'static str] =
        &["rows = 5\ncolumns = 4", "rows = 6\ncolumns = 6", "rows = 2\ncolumns = 2", "rows = 3\ncolumns = 8"];
    const CONFIGS: &'static [NamedText] =
        &[NamedText { name: "breakthrough", text: include_str!("../configs/breakthrough.toml") }];

    options_by_section!();

    fn aim(&self, player: u8) -> String {
        ["b goes down to the bottom row", "w goes up to the top row"][usize::from(player)].into()
    }

    fn sizes(&self) -> Sizes {
        let pawns = self.rows_of_pawns() * self.columns;
        Sizes {
            num_actions: (self.rows - 1) * self.columns * WAYS,
            max_legal: pawns * WAYS,
            max_plies: 2 * pawns * (self.rows - 1),
            obs: ObsShape { channels: 2, height: self.rows, width: self.columns },
            num_symmetries: 2,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        let first = (1 << (self.rows_of_pawns() * self.columns)) - 1;
        State { pawns: [first, self.seen(first, 1)], to_play: 0 }
    }

    fn is_valid(&self, s: &State) -> bool {
        let [first, second] = s.pawns;
        s.to_play < 2 && first & second == 0 && ((first | second) as u128) >> self.squares() == 0
    }

    fn turn(&self, s: &State) -> Turn {
        if self.winner(s).is_some() { Turn::Over } else { Turn::Player(s.to_play as u8) }
    }

    // An action is the square of a pawn, as its player sees it, and its way.
    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let player = s.to_play as usize;
        let [own, other] = [player, 1 - player].map(|p| self.seen(s.pawns[p], player));
        let moves = ones(own).flat_map(|from| (0..WAYS).map(move |way| (from, way)));
        let legal = moves.filter(|&(from, way)| {
            let blocked = if way == STRAIGHT { own | other } else { own };
            self.target(from, way).is_some_and(|to| blocked >> to & 1 == 0)
        });
        out.iter_mut().zip(legal).map(|(out, (from, way))| *out = (from * WAYS + way) as u16).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        let (from, to) = self.ends(s, action);
        let player = s.to_play as usize;
        s.pawns[player] ^= 1 << from | 1 << to;
        s.pawns[1 - player] &= !(1 << to);
        s.to_play ^= 1;
    }

    /// Planes: own pawns, the other player's, as `player` sees the board. `[2, rows, columns]`
    #[inline(always)]
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let player = usize::from(player);
        for (plane, owner) in out.chunks_exact_mut(self.squares()).zip([player, 1 - player]) {
            let pawns = self.seen(s.pawns[owner], player);
            plane.iter_mut().enumerate().for_each(|(square, out)| *out = (pawns >> square & 1) as f32);
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let first = [0.0, 1.0, -1.0][self.winner(s).map_or(0, |winner| winner + 1)];
        out.copy_from_slice(&[first, -first]);
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        let image = |bits| ones(bits).fold(0, |all, square| all | 1 << self.mirrored(square));
        if symmetry == 0 { *s } else { State { pawns: s.pawns.map(image), ..*s } }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        let (from, way) = (usize::from(action) / WAYS, usize::from(action) % WAYS);
        if symmetry == 0 { action } else { (self.mirrored(from) * WAYS + WAYS - 1 - way) as u16 }
    }

    fn view(&self, s: &State, _: Viewer) -> View {
        let pawn = |owner: u8, mark, name: &str| Piece {
            owner: Some(owner),
            mark,
            shape: Shape::Pawn,
            name: name.into(),
        };
        let pieces = vec![pawn(0, 'b', "black pawn"), pawn(1, 'w', "white pawn")];
        let has = |player: usize, square: usize| s.pawns[player] >> square & 1 != 0;
        let sides = [self.rows, self.columns];
        let mut grid = Grid::labelled(
            GridStyle::Checkered,
            sides,
            |_| false,
            pieces,
            |row, column| {
                let square = row * self.columns + column;
                Piece::of(has(0, square), has(1, square))
            },
        );
        grid.rows.reverse();
        let last_row = (self.rows - 1) * self.columns;
        let arrived = |p: usize| ones(self.seen(s.pawns[p], p)).filter(move |&square| square >= last_row);
        let line: Vec<usize> = (0..2).flat_map(|p| arrived(p).map(move |i| self.square(i, p))).collect();
        View::new(Board::Grid(grid), &[Colour::Black, Colour::White]).with_line(line)
    }

    fn spot(&self, s: &State, action: u16) -> Spot {
        let (from, to) = self.ends(s, action);
        Spot::Move(from as u16, to as u16)
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        let (from, to) = self.ends(s, action);
        self.square_name(from) + &self.square_name(to)
    }
}
