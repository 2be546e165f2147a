//! The ways that walls leave open on the board of Quoridor, as sets of squares: bit i is square i, row by row. In: walls. Out: steps,
//! whether a pawn can still come to its row, how far it is. It knows neither players nor plies.

/// For each square whether the way down and the way to the right are open.
#[derive(Clone, Copy)]
pub struct Ways {
    size: usize,
    pub down: u128,
    pub right: u128,
}

/// The lower or right sides, by `direction`, that a wall in `slot` closes: those of two squares.
pub fn closed_by(size: usize, direction: usize, slot: usize) -> u128 {
    let first = slot / (size - 1) * size + slot % (size - 1);
    1 << first | 1 << (first + [1, size][direction])
}

impl Ways {
    /// The ways between horizontal and vertical walls, given as sets of wall slots.
    pub fn new(size: usize, walls: [u64; 2]) -> Self {
        let last_column = (0..size).fold(0, |set, row| set | 1 << (row * size + size - 1));
        let first_rows = |rows: usize| (1 << (rows * size)) - 1;
        let mut ways = Self { size, down: first_rows(size - 1), right: first_rows(size) & !last_column };
        for (direction, mut walls) in walls.into_iter().enumerate() {
            while walls != 0 {
                ways = ways.without(direction, closed_by(size, direction, walls.trailing_zeros() as usize));
                walls &= walls - 1;
            }
        }
        ways
    }

    /// The same with closed lower or right sides, by `direction`.
    pub fn without(self, direction: usize, closed: u128) -> Self {
        match direction {
            0 => Self { down: self.down & !closed, ..self },
            _ => Self { right: self.right & !closed, ..self },
        }
    }

    /// `set` and the squares one step away.
    fn spread(&self, set: u128) -> u128 {
        let Self { size, down, right } = *self;
        set | (set & down) << size | set >> size & down | (set & right) << 1 | set >> 1 & right
    }

    /// True if `goal` can be reached.
    pub fn lead(&self, from: u8, goal: u128) -> bool {
        let mut set = 1u128 << from;
        loop {
            let next = self.spread(set);
            if next & goal != 0 || next == set {
                return next & goal != 0;
            }
            set = next;
        }
    }

    /// The lower and the right sides that one shortest way to `goal` crosses; none if there is no way.
    pub fn shortest(&self, from: u8, goal: u128) -> [u128; 2] {
        let mut layers = vec![1u128 << from];
        while layers[layers.len() - 1] & goal == 0 {
            let next = self.spread(layers[layers.len() - 1]);
            if next == layers[layers.len() - 1] {
                return [0; 2];
            }
            layers.push(next);
        }
        let mut at = 1u128 << (layers[layers.len() - 1] & goal).trailing_zeros();
        let (mut down, mut right) = (0, 0);
        for layer in layers.iter().rev().skip(1) {
            let [below, above] = [(at & self.down) << self.size, at >> self.size & self.down];
            let [after, before] = [(at & self.right) << 1, at >> 1 & self.right];
            let sides = [(below, at, 0), (above, above, 0), (after, 0, at), (before, 0, before)];
            for (next, crossed_down, crossed_right) in sides {
                if next & layer != 0 {
                    (at, down, right) = (next, down | crossed_down, right | crossed_right);
                    break;
                }
            }
        }
        [down, right]
    }

    /// The square one step from `square`, if no wall and no border is between.
    pub fn neighbour(&self, square: usize, (down, right): (i32, i32)) -> Option<usize> {
        let to = square as i32 + down * self.size as i32 + right;
        let side = if down != 0 { self.down } else { self.right };
        (to >= 0 && side >> (square as i32).min(to) & 1 != 0).then_some(to as usize)
    }

    /// The steps from each square to `goal`, relative to the number of squares; 1 where there is no way. `[size, size]`
    pub fn distances(&self, goal: u128, out: &mut [f32]) {
        out.fill(1.0);
        let squares = out.len() as f32;
        let (mut set, mut next, mut steps) = (0, goal, 0.0);
        while next != set {
            let mut new = next & !set;
            while new != 0 {
                out[new.trailing_zeros() as usize] = steps / squares;
                new &= new - 1;
            }
            (set, next, steps) = (next, self.spread(next), steps + 1.0);
        }
    }
}
