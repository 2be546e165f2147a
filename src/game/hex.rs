//! Hex: the first player connects top and bottom, the second left and right; exactly one of them can.
//!
//! Actions are cells, row-major (0 top left), as in pgx and OpenSpiel. A cell touches its left and right neighbours, two
//! above (same column and one right of it) and two below (same column and one left of it). With `swap = true` there is
//! one action more, the last (121 on 11x11): instead of a first stone the second player may take the first player's,
//! which becomes theirs at the cell mirrored at the main diagonal, and the first player is to move (pie rule, as in pgx
//! and OpenSpiel).
//!
//! Connection is updated incrementally: the set of stones linked to their owner's first border grows by a flood fill that visits
//! each stone once per game. The game is won when it reaches the far border.

mod links;
mod set_up;

use super::board::{self, Cells};
use super::set_up::SetUp;
use super::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use super::{Game, History, ObsShape, PointActions, Sizes, Turn};
use crate::config::keys::{names, section};
use crate::device_struct::{device_constants, device_struct};
use crate::error::Result;
use bytemuck::{Pod, Zeroable};
use links::MARGIN;

names! {
    /// What an observation has.
    Sight {
        /// The stones and the borders.
        Stones = "stones",
        /// Also which stones are linked to which border, by neighbours and bridges.
        Links = "links",
    }
}

section! {
    /// The settings of Hex.
    Hex {
        /// Side of the board.
        size: u32 [3..=board::MAX_SIDE] = 11,
        /// Whether the second player may swap instead of a first stone.
        swap: bool = false,
        /// What the network observes: the stones and borders, or also which stones neighbours and bridges link to which border.
        network_sees: Sight = Sight::Stones,
    }
}

device_struct! {
    /// One position.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// The stones of each player. `[P]`
        pub stones: [Cells; 2],
        /// Stones linked to the first border of their owner: the top, the left.
        pub linked: Cells,
        /// Plies made.
        pub plies: u32,
        /// The player to move.
        pub to_play: u16,
        /// 0 while the game is in progress, then the winner's number plus one.
        pub outcome: u16,
    }
}

device_constants! {
    fn device_constants;
    /// The main diagonal's reflection, which exchanges the players' borders.
    const TRANSPOSE: u64 = 4;
}

/// Planes of an observation with the links of both players.
const LINK_PLANES: usize = 4;

/// The board symmetries that keep the cells' neighbours, by number of the game's symmetry.
const SYMMETRIES: [u64; 4] = [0, 3, TRANSPOSE, TRANSPOSE | 3];

impl Hex {
    #[inline(always)]
    fn num_cells(&self) -> u32 {
        self.size * self.size
    }

    /// The neighbours of a cell, at most six.
    #[inline(always)]
    fn neighbours(&self, cell: u32) -> impl Iterator<Item = usize> {
        let (row, column, last) = (cell / self.size, cell % self.size, self.size - 1);
        let (up, down) = (row > 0, row < last);
        let (left, right) = (column > 0, column < last);
        let n = self.size;
        [
            (up, cell.wrapping_sub(n)),
            (up && right, cell.wrapping_sub(n - 1)),
            (left, cell.wrapping_sub(1)),
            (right, cell + 1),
            (down && left, cell + n - 1),
            (down, cell + n),
        ]
        .into_iter()
        .filter_map(|(exists, neighbour)| exists.then_some(neighbour as usize))
    }

    /// The distance of a cell from its player's first border: 0 on it, size - 1 on the far border.
    #[inline(always)]
    fn depth(&self, cell: u32, player: usize) -> u32 {
        if player == 0 { cell / self.size } else { cell % self.size }
    }

    /// Links a stone and its group if it touches the first border or a linked stone. True if that
    /// reaches the far border.
    #[inline]
    fn link(&self, stones: &Cells, linked: &mut Cells, player: usize, cell: u32) -> bool {
        let touches = |cell: usize| stones.contains(cell) && linked.contains(cell);
        if self.depth(cell, player) != 0 && !self.neighbours(cell).any(touches) {
            return false;
        }
        let mut connected = false;
        let mut frontier = Cells::EMPTY;
        linked.insert(cell as usize);
        frontier.insert(cell as usize);
        while let Some(cell) = frontier.pop() {
            connected |= self.depth(cell as u32, player) == self.size - 1;
            for neighbour in self.neighbours(cell as u32) {
                if stones.contains(neighbour) && !linked.contains(neighbour) {
                    linked.insert(neighbour);
                    frontier.insert(neighbour);
                }
            }
        }
        connected
    }

    fn place(&self, s: &mut State, player: usize, cell: u32) {
        s.stones[player].insert(cell as usize);
        if self.link(&s.stones[player], &mut s.linked, player, cell) {
            s.outcome = player as u16 + 1;
        }
    }

    /// A shortest chain of the winner's stones from border to border; empty if nobody has won.
    fn chain(&self, s: &State) -> Vec<usize> {
        let Some(winner) = usize::from(s.outcome).checked_sub(1) else { return Vec::new() };
        let stones = &s.stones[winner];
        let first = stones.iter().filter(|&cell| self.depth(cell as u32, winner) == 0);
        // Breadth first from all stones on the first border; each stone keeps the one that it was reached from.
        let mut chains: Vec<(usize, Option<usize>)> = first.map(|cell| (cell, None)).collect();
        let mut reached = Cells::EMPTY;
        chains.iter().for_each(|&(cell, _)| reached.insert(cell));
        let mut next = 0;
        while let Some(&(cell, _)) = chains.get(next) {
            if self.depth(cell as u32, winner) == self.size - 1 {
                let back = std::iter::successors(Some(next), |&at| chains[at].1);
                return back.map(|at| chains[at].0).collect();
            }
            for neighbour in self.neighbours(cell as u32) {
                if stones.contains(neighbour) && !reached.contains(neighbour) {
                    reached.insert(neighbour);
                    chains.push((neighbour, Some(next)));
                }
            }
            next += 1;
        }
        Vec::new()
    }

    fn swap_is_legal(&self, s: &State) -> bool {
        self.swap && s.plies == 1
    }

    fn swap_stone(&self, s: &mut State) {
        let stones = s.stones[0] | s.stones[1];
        let player = usize::from(s.to_play);
        s.stones = [Cells::EMPTY; 2];
        s.linked = Cells::EMPTY;
        stones.transform(self.size, TRANSPOSE).iter().for_each(|cell| self.place(s, player, cell as u32));
    }
}

impl Game for Hex {
    type State = State;
    const NAME: &'static str = "hex";
    const CONFIGS: &'static [super::NamedText] = super::configs!("hex", "hex13");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("hex");
    const VARIANTS: &'static [&'static str] =
        &["size = 3", "size = 4\nswap = true", "size = 13", "size = 19", "network_sees = 'links'"];
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];

    super::options_by_section!();

    fn aim(&self, player: u8) -> String {
        match player {
            0 => "X connects the top border with the bottom border".into(),
            _ => "O connects the left border with the right border".into(),
        }
    }

    fn sizes(&self) -> Sizes {
        let side = self.size as usize;
        let swap = usize::from(self.swap);
        let links = if self.network_sees == Sight::Links { LINK_PLANES } else { 0 };
        Sizes {
            num_actions: side * side + swap,
            point_actions: Some(PointActions::ONE),
            max_legal: side * side,
            obs: ObsShape { channels: 4 + links + swap, height: side, width: side },
            max_plies: side * side + swap,
            num_symmetries: 4,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { stones: [Cells::EMPTY; 2], linked: Cells::EMPTY, plies: 0, to_play: 0, outcome: 0 }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.to_play < 2 && [s.stones[0], s.stones[1], s.linked].iter().all(|cells| cells.fits(self.num_cells()))
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        if s.outcome == 0 { Turn::Player(s.to_play as u8) } else { Turn::Over }
    }

    #[inline]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        let mut n = (s.stones[0] | s.stones[1]).write_free(self.num_cells() as usize, out);
        if self.swap_is_legal(s) {
            out[n] = self.num_cells() as u16;
            n += 1;
        }
        n
    }

    #[inline]
    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        let cell = u32::from(action);
        if cell == self.num_cells() {
            self.swap_stone(s);
        } else {
            self.place(s, usize::from(s.to_play), cell);
        }
        s.plies += 1;
        s.to_play ^= 1;
    }

    /// Planes: own stones, the other player's stones, the cells of the borders that the player connects, the cells of the
    /// other player's borders; with `network_sees = "links"` own stones that are linked to the first of the own borders, to the far one, and
    /// the other player's; with `swap` a plane of ones where the stone on the board may be taken. `[4, 5, 8 or 9, size, size]`
    #[inline(always)]
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let side = self.size as usize;
        let cells = side * side;
        let (planes, rest) = out.split_at_mut(4 * cells);
        let mut planes = planes.chunks_exact_mut(cells);
        let seats = [usize::from(player), usize::from(1 - player)];
        for (seat, plane) in seats.into_iter().zip(planes.by_ref()) {
            s.stones[seat].write_plane(plane);
        }
        for (seat, plane) in seats.into_iter().zip(planes) {
            plane.fill(0.0);
            for i in 0..side {
                let (first, far) =
                    if seat == 0 { (i, (side - 1) * side + i) } else { (i * side, i * side + side - 1) };
                plane[first] = 1.0;
                plane[far] = 1.0;
            }
        }
        let swap = match self.network_sees {
            Sight::Stones => rest,
            Sight::Links => {
                let (links, swap) = rest.split_at_mut(LINK_PLANES * cells);
                for (plane, rows) in links.chunks_exact_mut(cells).zip(self.links(&s.stones, seats)) {
                    board::write_plane_of_rows(&rows[MARGIN..][..side], side, MARGIN, plane);
                }
                swap
            }
        };
        swap.fill(if self.swap_is_legal(s) { 1.0 } else { 0.0 });
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

    /// 0 identity, 1 half a turn, 2 the main diagonal's reflection with the players exchanged, 3 both.
    fn transform(&self, s: &State, symmetry: u64) -> State {
        if symmetry == 0 {
            return *s;
        }
        let image = |player: u8| {
            let source = self.transform_player(player, symmetry);
            s.stones[usize::from(source)].transform(self.size, SYMMETRIES[symmetry as usize])
        };
        let swaps = symmetry >= 2;
        let mut out = State {
            stones: [image(0), image(1)],
            linked: Cells::EMPTY,
            plies: s.plies,
            to_play: s.to_play ^ u16::from(swaps),
            outcome: if swaps && s.outcome != 0 { 3 - s.outcome } else { s.outcome },
        };
        for (player, stones) in out.stones.iter().enumerate() {
            for cell in stones.iter().filter(|&cell| self.depth(cell as u32, player) == 0) {
                self.link(stones, &mut out.linked, player, cell as u32);
            }
        }
        out
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        let cell = u32::from(action);
        if cell == self.num_cells() {
            return action;
        }
        board::transform_cell(cell, self.size, SYMMETRIES[symmetry as usize]) as u16
    }

    fn transform_player(&self, player: u8, symmetry: u64) -> u8 {
        player ^ u8::from(symmetry >= 2)
    }

    fn set_up(&self, set_up: SetUp<'_>) -> Result<State> {
        set_up::set_up(self, set_up)
    }

    /// `X` the first player (top to bottom), `O` the second (left to right).
    fn view(&self, s: &State, _viewer: Viewer) -> View {
        let has = |player: usize, cell: u32| s.stones[player].contains(cell as usize);
        let pieces = Piece::pair([Shape::Disc; 2], ["X", "O"]);
        let grid = Grid {
            borders: Some([0, 1, 0, 1]),
            ..board::grid(self.size, GridStyle::Hexagons, pieces, |cell| {
                Piece::of(has(0, cell), has(1, cell))
            })
        };
        View::new(Board::Grid(grid), &[Colour::Red, Colour::Blue]).with_line(self.chain(s))
    }

    fn spot(&self, _state: &State, action: u16) -> Spot {
        if u32::from(action) < self.num_cells() { Spot::Place(action) } else { Spot::Button }
    }

    fn action_name(&self, _state: &State, action: u16) -> String {
        let cell = u32::from(action);
        if cell == self.num_cells() { "swap".into() } else { board::cell_name(cell, self.size) }
    }
}

#[cfg(test)]
mod tests;
