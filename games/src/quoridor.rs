//! Quoridor (Mirko Marchesi, 1997), for two. A player steps with the pawn or places a wall two squares long; the pawn that first reaches the
//! far row wins. A pawn jumps over the other, or to its side where a wall or the border is behind it. A wall may neither cross another
//! nor close the last way of a pawn to its row, where pawns do not count as obstacles.
//!
//! As in OpenSpiel a game is drawn after four plies a square, even if the last of them reaches the far row, and a player who has no legal
//! action passes (in OpenSpiel 2.0.2 the number of that action is wrong, and it cannot be played).

mod ways; // the ways that walls leave open

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View, Viewer};
use vecaz::game::{Game, History, NamedText, ObsShape, Sizes, Turn, options_by_section};
use ways::{Ways, closed_by};

section! {
    Quoridor {
        /// Squares on a side.
        size: usize [3..=9] = 9,
        /// Walls of each player.
        walls: usize [0..=20] = 10,
    }
}

/// One position as the player to move sees it: the second player's board is turned by half, so that both go up.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// Horizontal and vertical walls by the square above and left of their middle, as bits, row by row on a board one smaller.
    walls: [u64; 2],
    /// The squares of the pawns: the player to move, the other. `[P]`
    pawns: [u8; 2],
    /// The walls that are left, likewise. `[P]`
    left: [u8; 2],
    plies: u16,
    to_play: u16,
}

/// Actions of the pawn: steps to one of 3x3 squares, row by row, as if the other pawn were not there; then horizontal and vertical walls.
const PAWN_ACTIONS: usize = 9;
const PASS: usize = 4;
/// Up, right, down, left as steps of rows and columns.
const DIRECTIONS: [(i32, i32); 4] = [(-1, 0), (0, 1), (1, 0), (0, -1)];

/// The index in the mirrored column of a board with `across` columns.
fn mirrored(index: usize, across: usize) -> usize {
    index - index % across + across - 1 - index % across
}

impl Quoridor {
    fn squares(&self) -> usize {
        self.size * self.size
    }

    /// Number of wall slots of one direction.
    fn wall_slots(&self) -> usize {
        (self.size - 1) * (self.size - 1)
    }

    fn max_plies(&self) -> usize {
        4 * self.squares()
    }

    fn ways(&self, s: &State) -> Ways {
        Ways::new(self.size, s.walls)
    }

    /// The row of pawn 0 or 1 to reach: the top for the player to move.
    fn goal(&self, pawn: usize) -> u128 {
        ((1 << self.size) - 1) << (if pawn == 0 { 0 } else { self.squares() - self.size })
    }

    /// The actions of the pawn with the squares that they lead to, in the order of their numbers.
    fn steps(&self, s: &State) -> Vec<(usize, usize)> {
        let ways = self.ways(s);
        let [own, other] = s.pawns.map(usize::from);
        let number = |(down, right): (i32, i32)| (PASS as i32 + 3 * down + right) as usize;
        let mut steps = Vec::with_capacity(5);
        for (i, direction) in DIRECTIONS.into_iter().enumerate() {
            match ways.neighbour(own, direction) {
                None => {}
                Some(to) if to != other => steps.push((number(direction), to)),
                Some(over) => match ways.neighbour(over, direction) {
                    Some(to) => steps.push((number(direction), to)),
                    None => steps.extend([1, 3].iter().filter_map(|turn| {
                        let side = DIRECTIONS[(i + turn) % 4];
                        let step = (direction.0 + side.0, direction.1 + side.1);
                        Some((number(step), ways.neighbour(over, side)?))
                    })),
                },
            }
        }
        steps.sort_unstable();
        steps
    }

    /// The walls that may be placed, as actions in ascending order.
    fn legal_walls(&self, s: &State) -> Vec<usize> {
        let ways = self.ways(s);
        let shortest = [0, 1].map(|pawn| ways.shortest(s.pawns[pawn], self.goal(pawn)));
        let across = self.size - 1;
        let is_legal = |&(direction, slot): &(usize, usize)| {
            let has = |direction: usize, slot: usize| s.walls[direction] >> slot & 1 != 0;
            let (along, step) = if direction == 0 { (slot % across, 1) } else { (slot / across, across) };
            if has(0, slot)
                || has(1, slot)
                || along > 0 && has(direction, slot - step)
                || along + 1 < across && has(direction, slot + step)
            {
                return false;
            }
            // A wall beside the shortest way of a pawn leaves that one open.
            let closed = closed_by(self.size, direction, slot);
            (0..2).all(|pawn| {
                shortest[pawn][direction] & closed == 0
                    || ways.without(direction, closed).lead(s.pawns[pawn], self.goal(pawn))
            })
        };
        let slots = (0..2).flat_map(|direction| (0..self.wall_slots()).map(move |slot| (direction, slot)));
        slots
            .filter(is_legal)
            .map(|(direction, slot)| PAWN_ACTIONS + direction * self.wall_slots() + slot)
            .collect()
    }

    /// The direction and the slot of the wall that an action sets.
    fn wall(&self, action: u16) -> Option<(usize, usize)> {
        let number = usize::from(action).checked_sub(PAWN_ACTIONS)?;
        Some((number / self.wall_slots(), number % self.wall_slots()))
    }

    /// Walls turned by half.
    fn turned(&self, walls: u64) -> u64 {
        walls.reverse_bits() >> (64 - self.wall_slots())
    }

    /// The player who has reached the far row, unless the game was drawn at that ply.
    fn winner(&self, s: &State) -> Option<usize> {
        let pawn = (0..2).find(|&pawn| self.goal(pawn) >> s.pawns[pawn] & 1 != 0)?;
        (usize::from(s.plies) < self.max_plies()).then_some(usize::from(s.to_play) ^ pawn)
    }

    /// The position as the other player sees it.
    fn turned_state(&self, s: &State) -> State {
        let square = |pawn: usize| self.squares() as u8 - 1 - s.pawns[pawn];
        State {
            walls: s.walls.map(|walls| self.turned(walls)),
            pawns: [square(1), square(0)],
            left: [s.left[1], s.left[0]],
            ..*s
        }
    }

    /// The position as `player` sees it.
    fn seen(&self, s: &State, player: u16) -> State {
        if player == s.to_play { *s } else { self.turned_state(s) }
    }

    /// The index of a square on the grid of squares and the gaps between them.
    fn on_grid(&self, square: usize) -> usize {
        square / self.size * 2 * (2 * self.size - 1) + square % self.size * 2
    }

    /// The first of the three cells of a wall on that grid, and the step to the next.
    fn wall_on_grid(&self, direction: usize, slot: usize) -> (usize, usize) {
        let (side, row, column) = (2 * self.size - 1, slot / (self.size - 1) * 2, slot % (self.size - 1) * 2);
        if direction == 0 { ((row + 1) * side + column, 1) } else { (row * side + column + 1, side) }
    }

    /// A square or a slot of a wall, turned to the first player's view if the second is to move.
    fn as_first(s: &State, index: usize, count: usize) -> usize {
        if s.to_play == 0 { index } else { count - 1 - index }
    }

    /// The name of the square in column `index % across` and row `index / across`.
    fn name(index: usize, across: usize) -> String {
        format!("{}{}", char::from(b'a' + (index % across) as u8), index / across + 1)
    }
}

impl Game for Quoridor {
    type State = State;
    const NAME: &'static str = "quoridor";
    const VARIANTS: &'static [&'static str] =
        &["size = 3\nwalls = 2", "size = 5\nwalls = 3", "size = 4\nwalls = 20"];
    const CONFIGS: &'static [NamedText] = &[
        NamedText { name: "quoridor", text: include_str!("../configs/quoridor.toml") },
        NamedText { name: "quoridor5", text: include_str!("../configs/quoridor5.toml") },
    ];

    options_by_section!();

    fn aim(&self, player: u8) -> String {
        ["X reaches the top row", "O reaches the bottom row"][usize::from(player)].into()
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: PAWN_ACTIONS + 2 * self.wall_slots(),
            max_legal: 5 + 2 * self.wall_slots(),
            max_plies: self.max_plies(),
            obs: ObsShape { channels: 9, height: self.size, width: self.size },
            num_symmetries: 2,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        let (middle, top_row) = ((self.size / 2) as u8, (self.squares() - self.size) as u8);
        State { pawns: [top_row + middle, middle], left: [self.walls as u8; 2], ..State::zeroed() }
    }

    fn is_valid(&self, s: &State) -> bool {
        let fits = |walls: &u64| u128::from(*walls) >> self.wall_slots() == 0;
        s.to_play < 2
            && s.walls.iter().all(fits)
            && s.pawns.iter().all(|&pawn| usize::from(pawn) < self.squares())
    }

    fn turn(&self, s: &State) -> Turn {
        let has_arrived = (0..2).any(|pawn| self.goal(pawn) >> s.pawns[pawn] & 1 != 0);
        let is_over = has_arrived || usize::from(s.plies) >= self.max_plies();
        if is_over { Turn::Over } else { Turn::Player(s.to_play as u8) }
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let mut actions: Vec<usize> = self.steps(s).into_iter().map(|(action, _)| action).collect();
        if s.left[0] > 0 {
            actions.extend(self.legal_walls(s));
        }
        if actions.is_empty() {
            actions.push(PASS);
        }
        out.iter_mut().zip(actions).map(|(out, action)| *out = action as u16).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        if let Some((direction, slot)) = self.wall(action) {
            s.walls[direction] |= 1 << slot;
            s.left[0] -= 1;
        } else if let Some((_, to)) = self.steps(s).into_iter().find(|step| step.0 == usize::from(action)) {
            s.pawns[0] = to as u8;
        }
        *s = State { plies: s.plies + 1, to_play: 1 - s.to_play, ..self.turned_state(s) };
    }

    /// Planes as `player` sees the board, who goes up: own pawn, the other's, lower sides that are closed, right sides that are closed, steps
    /// of each square to the own far row and to the other's, walls that are left to both, plies relative to their limit. `[9, size, size]`
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let seen = self.seen(s, u16::from(player));
        let ways = self.ways(&seen);
        let sets = [1 << seen.pawns[0], 1 << seen.pawns[1], !ways.down, !ways.right];
        let (of_sets, numbers) = out.split_at_mut(4 * self.squares());
        for (plane, set) in of_sets.chunks_exact_mut(self.squares()).zip(sets) {
            plane.iter_mut().enumerate().for_each(|(i, out)| *out = (set >> i & 1) as f32);
        }
        let (distances, constants) = numbers.split_at_mut(2 * self.squares());
        for (pawn, plane) in distances.chunks_exact_mut(self.squares()).enumerate() {
            ways.distances(self.goal(pawn), plane);
        }
        let [own, other] = seen.left.map(|left| f32::from(left) / self.walls.max(1) as f32);
        let plies = f32::from(s.plies) / self.max_plies() as f32;
        let planes = constants.chunks_exact_mut(self.squares());
        planes.zip([own, other, plies]).for_each(|(plane, value)| plane.fill(value));
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        let first = [0.0, 1.0, -1.0][self.winner(s).map_or(0, |winner| winner + 1)];
        out.copy_from_slice(&[first, -first]);
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        if symmetry == 0 {
            return *s;
        }
        let has = |walls: u64, slot: &usize| walls >> slot & 1 != 0;
        let image = |walls: u64| {
            (0..self.wall_slots())
                .filter(|slot| has(walls, slot))
                .fold(0, |all, i| all | 1 << mirrored(i, self.size - 1))
        };
        State {
            walls: s.walls.map(image),
            pawns: s.pawns.map(|pawn| mirrored(usize::from(pawn), self.size) as u8),
            ..*s
        }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        match (symmetry, self.wall(action)) {
            (0, _) => action,
            (_, None) => mirrored(usize::from(action), 3) as u16,
            (_, Some((direction, slot))) => {
                (PAWN_ACTIONS + direction * self.wall_slots() + mirrored(slot, self.size - 1)) as u16
            }
        }
    }

    fn view(&self, s: &State, _: Viewer) -> View {
        let seen = self.seen(s, 0);
        let sign = |mark, name: &str| Piece { owner: None, mark, shape: Shape::Letter, name: name.into() };
        let mut pieces = Piece::pair([Shape::Pawn, Shape::Pawn], ["blue pawn", "red pawn"]);
        pieces.extend([sign('-', "wall"), sign('|', "wall")]);
        let side = 2 * self.size - 1;
        let mut cells = vec![None; side * side];
        for (direction, slot) in (0..2).flat_map(|d| (0..self.wall_slots()).map(move |slot| (d, slot))) {
            if seen.walls[direction] >> slot & 1 != 0 {
                let (first, along) = self.wall_on_grid(direction, slot);
                (0..3).for_each(|k| cells[first + k * along] = Some(2 + direction as u8));
            }
        }
        let pawns = seen.pawns.map(|pawn| self.on_grid(usize::from(pawn)));
        (0..2).for_each(|player| cells[pawns[player]] = Some(player as u8));
        let grid = Grid::labelled(
            GridStyle::Squares,
            [side; 2],
            |i| i % 2 == 1,
            pieces,
            |row, column| cells[row * side + column],
        );
        View::new(Board::Grid(grid), &[Colour::Blue, Colour::Red])
            .with_line(self.winner(s).map(|player| pawns[player]))
            .with_note(format!("walls left: X {}, O {}", seen.left[0], seen.left[1]))
    }

    /// A wall is placed at its upper or left end.
    fn spot(&self, s: &State, action: u16) -> Spot {
        let on_grid = |square: usize| self.on_grid(Self::as_first(s, square, self.squares())) as u16;
        let steps = self.steps(s);
        match (self.wall(action), steps.iter().find(|step| step.0 == usize::from(action))) {
            (Some((direction, slot)), _) => {
                let slot = Self::as_first(s, slot, self.wall_slots());
                Spot::Place(self.wall_on_grid(direction, slot).0 as u16)
            }
            (None, Some(&(_, to))) => Spot::Move(on_grid(usize::from(s.pawns[0])), on_grid(to)),
            (None, None) => Spot::Button,
        }
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        let steps = self.steps(s);
        match (self.wall(action), steps.iter().find(|step| step.0 == usize::from(action))) {
            (Some((direction, slot)), _) => {
                let slot = Self::as_first(s, slot, self.wall_slots());
                Self::name(slot, self.size - 1) + ["h", "v"][direction]
            }
            (None, Some(&(_, to))) => Self::name(Self::as_first(s, to, self.squares()), self.size),
            (None, None) => "pass".into(),
        }
    }
}
