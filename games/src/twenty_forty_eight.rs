//! 2048 (Gabriele Cirulli, 2014), for one player. All tiles slide to one side; two equal ones that meet become one of twice the number,
//! which is scored. Then chance adds a 2 (9 of 10) or a 4 on a free cell. The game ends with the largest tile that is asked for, without a
//! move that changes the board, or after four plies a unit of that tile.
//!
//! OpenSpiel lists no move that only merges into a tile which the move before has merged, though it plays it; here it is legal, as in the original.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::board::transform_cell;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use vecaz::game::{Game, History, NamedText, ObsShape, Sizes, Turn, options_by_section};

section! {
    TwentyFortyEight {
        /// The tile that ends the game.
        max_tile: u32 [[16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]] = 2048,
    }
}

/// One position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// The exponents of 2 of the tiles, 0 where there is none, row by row.
    tiles: [u8; CELLS],
    score: u32,
    plies: u16,
    /// Tiles that chance has to add before the player moves.
    to_add: u16,
}

const SIDE: usize = 4;
const CELLS: usize = SIDE * SIDE;
/// The moves in the order of their numbers, as in OpenSpiel.
const MOVES: [&str; 4] = ["up", "right", "down", "left"];

/// The cells of line `line`, 0..4, along which tiles slide, from the side that they slide to.
fn line(direction: u16, line: usize) -> [usize; SIDE] {
    std::array::from_fn(|k| match direction {
        0 => k * SIDE + line,
        1 => line * SIDE + SIDE - 1 - k,
        2 => (SIDE - 1 - k) * SIDE + line,
        _ => line * SIDE + k,
    })
}

/// The tiles after a move, and its score.
fn slid(tiles: &[u8; CELLS], direction: u16) -> ([u8; CELLS], u32) {
    let (mut after, mut score) = ([0; CELLS], 0);
    for line in (0..SIDE).map(|number| line(direction, number)) {
        let (mut next, mut can_merge) = (0, false);
        for tile in line.iter().map(|&cell| tiles[cell]).filter(|&tile| tile != 0) {
            if can_merge && after[line[next - 1]] == tile {
                after[line[next - 1]] += 1;
                score += 2 << tile;
                can_merge = false;
            } else {
                after[line[next]] = tile;
                next += 1;
                can_merge = true;
            }
        }
    }
    (after, score)
}

fn can_slide(s: &State, direction: u16) -> bool {
    slid(&s.tiles, direction).0 != s.tiles
}

impl TwentyFortyEight {
    /// The exponent of the tile that ends the game.
    fn max_exponent(&self) -> u32 {
        self.max_tile.ilog2()
    }

    fn max_plies(&self) -> u32 {
        4 * self.max_tile
    }

    /// OpenSpiel's bound of the score: that of making the largest tile from twos alone. Other tiles beside it can add to it.
    fn full_score(&self) -> f32 {
        ((self.max_exponent() - 1) * self.max_tile) as f32
    }
}

impl Game for TwentyFortyEight {
    type State = State;
    const NAME: &'static str = "2048";
    const VARIANTS: &'static [&'static str] = &["max_tile = 16", "max_tile = 128"];
    const CONFIGS: &'static [NamedText] =
        &[NamedText { name: "2048", text: include_str!("../configs/2048.toml") }];

    options_by_section!();

    fn aim(&self, _: u8) -> String {
        format!("scores as much as possible before a tile of {} or a full board", self.max_tile)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_players: 1,
            zero_sum: false,
            num_actions: 4,
            max_legal: 4,
            num_chance: 2 * CELLS,
            max_chance_run: 1,
            max_plies: self.max_plies() as usize,
            obs: ObsShape { channels: self.max_exponent() as usize + 1, height: SIDE, width: SIDE },
            num_symmetries: 8,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { to_add: 2, ..State::zeroed() }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.tiles.iter().all(|&tile| u32::from(tile) <= self.max_exponent()) && s.to_add <= 2
    }

    fn turn(&self, s: &State) -> Turn {
        let has_max = s.tiles.iter().any(|&tile| u32::from(tile) == self.max_exponent());
        let is_over = has_max || u32::from(s.plies) >= self.max_plies();
        match s.to_add {
            _ if is_over => Turn::Over,
            0 if !(0..4).any(|direction| can_slide(s, direction)) => Turn::Over,
            0 => Turn::Player(0),
            _ => Turn::Chance,
        }
    }

    // An outcome of chance is a cell times two, plus one for a 4.
    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let number = if s.to_add == 0 { 4 } else { 2 * CELLS as u16 };
        let is_legal = |&action: &u16| match s.to_add {
            0 => can_slide(s, action),
            _ => s.tiles[usize::from(action) / 2] == 0,
        };
        out.iter_mut().zip((0..number).filter(is_legal)).map(|(out, action)| *out = action).count()
    }

    fn chance_probs(&self, _: &State, outcomes: &[u16], out: &mut [f32]) {
        let free = outcomes.len() as f32 / 2.0;
        for (out, outcome) in out.iter_mut().zip(outcomes) {
            *out = if outcome.is_multiple_of(2) { 0.9 } else { 0.1 } / free;
        }
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        s.plies += 1;
        if s.to_add > 0 {
            s.tiles[usize::from(action) / 2] = 1 + (action % 2) as u8;
            s.to_add -= 1;
            return;
        }
        let (tiles, score) = slid(&s.tiles, action);
        *s = State { tiles, score: s.score + score, to_add: 1, ..*s };
    }

    /// Planes: one for each tile below the largest, the score, and the plies relative to their limit. `[exponents + 1, 4, 4]`
    fn observe(&self, s: &State, _: u8, out: &mut [f32]) {
        let (tiles, numbers) = out.split_at_mut((self.max_exponent() as usize - 1) * CELLS);
        for (exponent, plane) in (1..).zip(tiles.chunks_exact_mut(CELLS)) {
            plane
                .iter_mut()
                .zip(&s.tiles)
                .for_each(|(out, &tile)| *out = f32::from(u8::from(tile == exponent)));
        }
        let (score, plies) = numbers.split_at_mut(CELLS);
        score.fill(s.score as f32 / self.full_score());
        plies.fill(f32::from(s.plies) / self.max_plies() as f32);
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        out[0] = (2.0 * s.score as f32 / self.full_score() - 1.0).min(1.0);
    }

    fn scores(&self, s: &State) -> Vec<f32> {
        vec![s.score as f32]
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        let mut tiles = [0; CELLS];
        (0..CELLS).for_each(|cell| tiles[transform_cell(cell as u32, 4, symmetry) as usize] = s.tiles[cell]);
        State { tiles, ..*s }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        // The image of the middle of the side to which tiles slide, on a board of 3x3 cells.
        let side = transform_cell([1, 5, 7, 3][usize::from(action)], 3, symmetry);
        [0, 0, 0, 3, 0, 1, 0, 2][side as usize]
    }

    fn transform_outcome(&self, outcome: u16, symmetry: u64) -> u16 {
        2 * transform_cell(u32::from(outcome) / 2, 4, symmetry) as u16 + outcome % 2
    }

    fn view(&self, s: &State, _: Viewer) -> View {
        let piece = |exponent: u32| Piece {
            owner: None,
            mark: char::from_digit(exponent, 36).unwrap_or('?'),
            shape: Shape::Name,
            name: (1 << exponent).to_string(),
        };
        let tiles = (1..=self.max_exponent()).map(piece).collect();
        let grid = Grid::labelled(
            GridStyle::Squares,
            [SIDE; 2],
            |_| false,
            tiles,
            |row, column| s.tiles[row * SIDE + column].checked_sub(1),
        );
        View::new(Board::Grid(grid), &[Colour::Blue]).with_note(format!("score: {}", s.score))
    }

    fn spot(&self, s: &State, action: u16) -> Spot {
        if s.to_add == 0 { Spot::Button } else { Spot::Place(action / 2) }
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        if s.to_add == 0 {
            return MOVES[usize::from(action)].into();
        }
        let (cell, tile) = (usize::from(action) / 2, 2 << (action % 2));
        format!("{tile} on {}{}", char::from(b'a' + (cell % SIDE) as u8), cell / SIDE + 1)
    }
}
