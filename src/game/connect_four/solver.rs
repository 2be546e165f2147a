//! An exact solver for Connect Four of any size and any winning length.
//!
//! Null-window negamax on bitboards with a transposition table of lower and upper bounds, forced-move pruning and move
//! ordering by threats. The method is that of J. Tromp's Fhourstones (<https://tromp.github.io/c4/fhour.html>) and P. Pons's
//! tutorial (<http://blog.gamesolver.org>).
//!
//! The score of a position for the player to move is that of P. Pons: 0 for a draw; for a win, 1 with the winner's last stone,
//! 2 with the one before, and so on; for a loss, the negative of the winner's score. An earlier win and a later loss have
//! larger scores.

use super::{ConnectFour, State};
use crate::game::PositionSolver;
use crate::stop::Stop;
use bytemuck::Zeroable;
use bytemuck::allocation::zeroed_vec;

/// The board as bit masks: column-major, `rows + 1` bits per column as in [`super`].
#[derive(Clone, Debug)]
struct Board {
    stride: u32,
    columns: u32,
    connect: u32,
    /// Cells of the board.
    cells: i32,
    /// The lowest cell of each column.
    bottom: u64,
    /// All cells.
    full: u64,
    /// Column masks from the centre outwards: the move order among equal threats.
    centre_first: Vec<u64>,
}

/// A position from the view of the player to move.
#[derive(Clone, Copy, Debug)]
struct Position {
    own: u64,
    taken: u64,
    plies: i32,
}

impl Position {
    fn play(self, cell: u64) -> Self {
        Self { own: self.own ^ self.taken, taken: self.taken | cell, plies: self.plies + 1 }
    }
}

impl Board {
    fn new(game: &ConnectFour) -> Self {
        let stride = game.rows + 1;
        let bottom = (0..game.columns).fold(0u64, |bits, column| bits | 1 << (column * stride));
        let column_mask = (1u64 << game.rows) - 1;
        let mut order: Vec<u32> = (0..game.columns).collect();
        order.sort_by_key(|&column| (2 * column + 1).abs_diff(game.columns));
        Self {
            stride,
            columns: game.columns,
            connect: game.connect,
            cells: (game.rows * game.columns) as i32,
            bottom,
            full: (0..game.columns).fold(0, |bits, column| bits | column_mask << (column * stride)),
            centre_first: order.iter().map(|column| column_mask << (column * stride)).collect(),
        }
    }

    /// The lowest empty cell of each column that is not full.
    fn landing_cells(&self, taken: u64) -> u64 {
        // A full column carries into its guard bit, so no carry leaves a column.
        taken.wrapping_add(self.bottom) & self.full
    }

    /// Empty cells that would complete a line of `stones`.
    fn winning_cells(&self, stones: u64, taken: u64) -> u64 {
        let free = self.full & !taken;
        let directions = [1, self.stride - 1, self.stride, self.stride + 1];
        let lines = directions.iter().fold(0, |cells, &step| {
            cells | if self.connect == 4 { gaps_of_four(stones, step) } else { self.gaps(stones, step) }
        });
        lines & free
    }

    /// Cells that complete a line along `step` with `connect - 1` of `stones`.
    fn gaps(&self, stones: u64, step: u32) -> u64 {
        // after[i]: cells that directly follow i stones; before: the same on the other side.
        let mut after = [u64::MAX; 12];
        for i in 1..self.connect as usize {
            after[i] = (stones & after[i - 1]) << step;
        }
        let mut before = u64::MAX;
        let mut cells = 0;
        for i in 0..self.connect as usize {
            cells |= before & after[self.connect as usize - 1 - i];
            before = (stones & before) >> step;
        }
        cells
    }

    /// Moves after which the other player cannot win at once, given that the player to move cannot.
    fn safe_cells(&self, p: Position) -> u64 {
        let threats = self.winning_cells(p.own ^ p.taken, p.taken);
        let landing = self.landing_cells(p.taken);
        let forced = landing & threats;
        let candidates = match forced.count_ones() {
            0 => landing,
            1 => forced,
            _ => return 0,
        };
        // A stone directly below a threat lets the other player take it.
        candidates & !(threats >> 1)
    }

    fn can_win_at_once(&self, p: Position) -> bool {
        self.winning_cells(p.own, p.taken) & self.landing_cells(p.taken) != 0
    }

    /// Score of winning with the next stone.
    fn win_now(&self, plies: i32) -> i32 {
        (self.cells + 1 - plies) / 2
    }

    /// One number per position up to left-right reflection.
    fn key(&self, p: Position) -> u64 {
        // Per column, own stones plus occupied cells are below 2^(rows + 1), so no carry leaves a column.
        let key = p.own.wrapping_add(p.taken);
        if 2 * p.plies > self.cells {
            return key; // late in the game reflected positions are rare
        }
        let column = (1u64 << self.stride) - 1;
        let mirrored = (0..self.columns).fold(0, |out, c| {
            out | (key >> (c * self.stride) & column) << ((self.columns - 1 - c) * self.stride)
        });
        key.min(mirrored)
    }
}

/// [`Board::gaps`] for lines of four; the four positions of the gap share the pairs.
#[inline(always)]
fn gaps_of_four(stones: u64, step: u32) -> u64 {
    let pair_behind = (stones << step) & (stones << (2 * step));
    let pair_ahead = (stones >> step) & (stones >> (2 * step));
    let behind = pair_behind & ((stones << (3 * step)) | (stones >> step));
    let ahead = pair_ahead & ((stones >> (3 * step)) | (stones << step));
    behind | ahead
}

/// A transposition-table entry: the score lies in `lower..=upper`.
#[derive(Clone, Copy, Zeroable)]
struct TableEntry {
    /// [`Board::key`] plus one; 0 in an unused entry.
    key: u64,
    lower: i8,
    upper: i8,
    /// Binary logarithm of the number of positions searched for the result.
    work: u8,
}

/// A transposition table with buckets of two entries: one for the costliest result, one for the latest.
struct TranspositionTable {
    buckets: Vec<[TableEntry; 2]>,
}

impl TranspositionTable {
    fn new(log2_buckets: u32) -> Self {
        Self { buckets: zeroed_vec(1 << log2_buckets) }
    }

    fn bucket(&self, key: u64) -> usize {
        let bits = self.buckets.len().trailing_zeros();
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize
    }

    fn get(&self, key: u64) -> Option<TableEntry> {
        self.buckets[self.bucket(key)].iter().find(|entry| entry.key == key + 1).copied()
    }

    fn insert(&mut self, key: u64, lower: i32, upper: i32, nodes: u64) {
        let bucket = self.bucket(key);
        let [costly, latest] = &mut self.buckets[bucket];
        let work = nodes.max(1).ilog2() as u8;
        let entry = TableEntry { key: key + 1, lower: lower as i8, upper: upper as i8, work };
        if costly.key == entry.key || work >= costly.work {
            if costly.key != entry.key {
                *latest = *costly;
            }
            *costly = entry;
        } else {
            *latest = entry;
        }
    }
}

/// The solver of one board size. Its transposition table persists between calls.
pub struct ConnectFourSolver {
    board: Board,
    table: TranspositionTable,
    nodes: u64,
    stop: Stop,
    /// True once a search has seen the request to stop.
    is_stopped: bool,
}

impl ConnectFourSolver {
    /// 2^21 buckets, 64 MiB.
    const LOG2_BUCKETS: u32 = 21;
    /// Searched positions after which a request to stop is looked for.
    const STOP_INTERVAL: u64 = 1 << 16;

    /// A solver for this board. Only the pages of its table that are used take memory.
    pub fn new(game: &ConnectFour) -> Self {
        let table = TranspositionTable::new(Self::LOG2_BUCKETS);
        Self { board: Board::new(game), table, nodes: 0, stop: Stop::default(), is_stopped: false }
    }

    /// Positions searched so far.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// The exact score of every column for the player to move, as defined in the module's head; `None` for full columns and
    /// finished games. On 6x7, a position at ply 8 or later takes milliseconds to a few seconds; earlier positions and larger
    /// boards take much longer. `[A]`
    pub fn scores_of(&mut self, state: &State) -> Vec<Option<i32>> {
        let columns = self.board.columns;
        if state.outcome != 0 {
            return vec![None; columns as usize];
        }
        let taken = state.stones[0] | state.stones[1];
        let own = state.stones[(state.plies & 1) as usize];
        let p = Position { own, taken, plies: state.plies as i32 };
        let landing = self.board.landing_cells(taken);
        let column_mask = (1u64 << (self.board.stride - 1)) - 1;
        (0..columns)
            .map(|column| {
                let cell = landing & column_mask << (column * self.board.stride);
                (cell != 0).then(|| self.score_of_move(p, cell))
            })
            .collect()
    }

    fn score_of_move(&mut self, p: Position, cell: u64) -> i32 {
        if self.board.winning_cells(p.own, p.taken) & cell != 0 {
            return self.board.win_now(p.plies);
        }
        -self.solve(p.play(cell))
    }

    /// Finds the score by null-window searches, first whether it is a win, draw or loss.
    fn solve(&mut self, p: Position) -> i32 {
        if p.plies == self.board.cells {
            return 0;
        }
        if self.board.can_win_at_once(p) {
            return self.board.win_now(p.plies);
        }
        let mut lower = -(self.board.cells - p.plies) / 2;
        let mut upper = (self.board.cells - 1 - p.plies) / 2;
        while lower < upper {
            let middle = lower + (upper - lower) / 2;
            let test = match middle {
                m if m <= 0 && lower / 2 < m => lower / 2,
                m if m >= 0 && upper / 2 > m => upper / 2,
                m => m,
            };
            let found = self.search(p, test + 1);
            if found > test {
                lower = found;
            } else {
                upper = found;
            }
        }
        lower
    }

    /// Null-window search: a result `>= beta` is a lower bound of the score, a result `< beta` an upper bound. The player to
    /// move must have no immediate win.
    fn search(&mut self, p: Position, beta: i32) -> i32 {
        self.nodes += 1;
        if self.nodes.is_multiple_of(Self::STOP_INTERVAL) {
            self.is_stopped |= self.stop.cause().is_some();
        }
        if self.is_stopped {
            return beta;
        }
        let cells = self.board.cells;
        let moves = self.board.safe_cells(p);
        if moves == 0 {
            return if p.plies == cells { 0 } else { -(cells - p.plies) / 2 };
        }
        if p.plies >= cells - 2 {
            return 0;
        }
        let key = self.board.key(p);
        // Neither side can win with its next stone.
        let (mut lower, mut upper) = (-(cells - 2 - p.plies) / 2, (cells - 1 - p.plies) / 2);
        if let Some(known) = self.table.get(key) {
            lower = lower.max(i32::from(known.lower));
            upper = upper.min(i32::from(known.upper));
        }
        if lower >= beta || lower == upper {
            return lower;
        }
        if upper < beta {
            return upper;
        }
        let nodes_before = self.nodes;
        let best = match self.known_refutation(p, moves, beta) {
            Some(bound) => bound,
            None => self.search_moves(p, moves, beta, lower).min(upper),
        };
        if best >= beta {
            lower = best;
        } else {
            upper = best;
        }
        self.table.insert(key, lower, upper, self.nodes - nodes_before);
        best
    }

    /// A lower bound of at least `beta` found in the table for the child of one of `moves` (enhanced transposition cut-off,
    /// Schaeffer and Plaat 1996). Skipped near the end of the game, where the look-up costs more than the search.
    fn known_refutation(&self, p: Position, moves: u64, beta: i32) -> Option<i32> {
        if self.board.cells - p.plies < 14 {
            return None;
        }
        self.board.centre_first.iter().map(|column| moves & column).filter(|&cell| cell != 0).find_map(
            |cell| {
                let known = self.table.get(self.board.key(p.play(cell)))?;
                (-i32::from(known.upper) >= beta).then_some(-i32::from(known.upper))
            },
        )
    }

    fn search_moves(&mut self, p: Position, moves: u64, beta: i32, lower: i32) -> i32 {
        let (ordered, count) = self.order(p, moves);
        let mut best = lower;
        for &(_, cell) in &ordered[..count] {
            best = best.max(-self.search(p.play(cell), 1 - beta));
            if best >= beta {
                break;
            }
        }
        best
    }

    /// The moves, ordered by number of threats, then from the centre outwards.
    fn order(&self, p: Position, moves: u64) -> ([(u32, u64); 12], usize) {
        let mut ordered = [(0, 0); 12];
        let mut count = 0;
        for column in &self.board.centre_first {
            let cell = moves & column;
            if cell == 0 {
                continue;
            }
            let threats = self.board.winning_cells(p.own | cell, p.taken | cell).count_ones();
            let mut index = count;
            while index > 0 && ordered[index - 1].0 < threats {
                ordered[index] = ordered[index - 1];
                index -= 1;
            }
            ordered[index] = (threats, cell);
            count += 1;
        }
        (ordered, count)
    }
}

impl PositionSolver for ConnectFourSolver {
    fn scores(&mut self, state: &[u8]) -> Vec<Option<i32>> {
        self.scores_of(&bytemuck::pod_read_unaligned(state))
    }

    fn stop_by(&mut self, stop: &Stop) {
        self.stop = stop.clone();
    }
}
