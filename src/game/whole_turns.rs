//! The positions of whole turns: all to which the plies of one player lead, up to where chance or another player decides. The rules are in
//! [`Game::whole_turn`](super::Game::whole_turn); these are the arrays, which know no game.

use crate::error::Error;
use bytemuck::Pod;
use std::ops::Range;

/// Maximum number of positions of one turn, those within it included. A turn of backgammon has at most 3,876: 15 checkers that
/// move four times in all end in at most 3,060 ways.
pub const MAX_TURN_POSITIONS: usize = 4096;
/// Maximum number of plies between positions of one turn.
pub const MAX_TURN_PLIES: usize = 16 * MAX_TURN_POSITIONS;

/// A ply within a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnPly {
    /// The position before it, by its index in [`WholeTurns::positions`].
    pub from: u32,
    /// The position after it.
    pub to: u32,
    /// The action.
    pub action: u16,
}

/// One turn, by its ranges of [`WholeTurns`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeTurn {
    /// The player whose turn it is.
    pub player: u8,
    /// Its positions: the first is that before the turn, and every other one stands after those that lead to it.
    pub positions: Range<usize>,
    /// Its plies, in ascending order of the position before them and then of the action.
    pub plies: Range<usize>,
}

/// Whether equal positions after equally many plies of a turn are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They become one position, to which several plies lead.
    Joined,
    /// Each is a position of its own, since rules look at the positions before it.
    Kept,
}

/// The positions and plies of some turns, one turn after the other, in arrays that are allocated once.
#[derive(Clone, Debug)]
pub struct WholeTurns<S> {
    positions: Vec<S>,
    /// The position from which each was reached first; its own index for the first of a turn. `[positions]`
    before: Vec<u32>,
    plies: Vec<TurnPly>,
    /// The indices of the first position and the first ply of the last turn.
    first: [usize; 2],
    duplicates: Duplicates,
    /// Open addressing by the bytes of states: the generation of an entry, and a position's index within its turn.
    table: Vec<(u16, u16)>,
    /// The generation of the positions that the table holds: those after equally many plies of one turn.
    generation: u16,
}

/// Entries of the table: twice the positions of a turn, so that probes are short.
const TABLE: usize = 2 * MAX_TURN_POSITIONS;

impl<S: Pod> WholeTurns<S> {
    /// Arrays for turns of `positions` positions in all, and one turn more of any length.
    pub fn new(positions: usize, duplicates: Duplicates) -> Self {
        let positions = positions + MAX_TURN_POSITIONS;
        Self {
            positions: Vec::with_capacity(positions),
            before: Vec::with_capacity(positions),
            plies: Vec::with_capacity(positions + MAX_TURN_PLIES),
            first: [0; 2],
            duplicates,
            table: vec![(0, 0); TABLE],
            generation: 0,
        }
    }

    /// Bytes of the arrays of [`WholeTurns::new`].
    pub fn bytes(positions: usize, state_size: usize) -> usize {
        let positions = positions + MAX_TURN_POSITIONS;
        positions * (state_size + size_of::<u32>())
            + (positions + MAX_TURN_PLIES) * size_of::<TurnPly>()
            + TABLE * size_of::<(u16, u16)>()
    }

    /// Removes all turns.
    pub fn clear(&mut self) {
        self.positions.clear();
        self.before.clear();
        self.plies.clear();
    }

    /// Whether equal positions are joined.
    pub fn duplicates(&self) -> Duplicates {
        self.duplicates
    }

    /// All positions of all turns.
    pub fn positions(&self) -> &[S] {
        &self.positions
    }

    /// All plies of all turns.
    pub fn plies(&self) -> &[TurnPly] {
        &self.plies
    }

    /// Begins a turn at `state`.
    pub(super) fn begin(&mut self, state: &S) {
        self.first = [self.positions.len(), self.plies.len()];
        self.positions.push(*state);
        self.before.push(self.first[0] as u32);
    }

    /// The last turn.
    pub(super) fn last(&self, player: u8) -> WholeTurn {
        let [position, ply] = self.first;
        WholeTurn { player, positions: position..self.positions.len(), plies: ply..self.plies.len() }
    }

    /// Begins the positions that are one ply further than those added before: equal ones are joined from here on.
    pub(super) fn begin_ply(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.table.fill((0, 0));
            self.generation = 1;
        }
    }

    /// Adds to the last turn the position `after`, to which `action` leads from position `from`. False where the turn is longer than the
    /// arrays allow.
    #[must_use]
    pub(super) fn add(&mut self, from: usize, action: u16, after: &S) -> bool {
        let to = match self.duplicates {
            Duplicates::Joined => self.joined(from, after),
            Duplicates::Kept => self.push(from, after),
        };
        self.plies.push(TurnPly { from: from as u32, to: to as u32, action });
        let [position, ply] = self.first;
        self.positions.len() - position <= MAX_TURN_POSITIONS && self.plies.len() - ply <= MAX_TURN_PLIES
    }

    /// The index of the position equal to `after` among those after equally many plies, which is added if there is none.
    fn joined(&mut self, from: usize, after: &S) -> usize {
        let mut entry = hash(bytemuck::bytes_of(after)) as usize % TABLE;
        loop {
            let (generation, index) = self.table[entry];
            if generation != self.generation {
                let index = self.push(from, after);
                self.table[entry] = (self.generation, (index - self.first[0]) as u16);
                return index;
            }
            let index = self.first[0] + usize::from(index);
            if bytemuck::bytes_of(&self.positions[index]) == bytemuck::bytes_of(after) {
                return index;
            }
            entry = (entry + 1) % TABLE;
        }
    }

    fn push(&mut self, from: usize, after: &S) -> usize {
        self.positions.push(*after);
        self.before.push(from as u32);
        self.positions.len() - 1
    }

    /// The positions before position `index` in its turn, the latest first.
    pub(super) fn latest_before(&self, index: usize) -> impl Iterator<Item = &S> {
        let before = |&index: &usize| Some(self.before[index] as usize).filter(|&before| before != index);
        std::iter::successors(Some(index), before).skip(1).map(|index| &self.positions[index])
    }
}

/// A hash of a state's bytes: multiplication and rotation, as in Firefox and rustc.
#[inline(always)]
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let add = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0, |sum, word| add(sum, u64::from_le_bytes(*word)));
    let sum = rest.iter().fold(sum, |sum, &byte| add(sum, u64::from(byte)));
    sum >> 32
}

/// The error of a turn that is longer than the arrays allow.
pub(super) fn too_long(game: &str) -> Error {
    Error::unsupported(
        format!("a decision on a whole turn of {game}"),
        format!(
            "this turn has more than {MAX_TURN_POSITIONS} positions; puct and gumbel decide ply by ply \
             (search.algorithm, eval.algorithm)"
        ),
    )
}
