//! Sets of points of a Go board as bits: point = row * size + column, the first W words of six.
//!
//! W depends on the board's size ([`with_words!`]): 9x9 uses two words, 19x19 six.

use crate::device_struct::device_constants;
use crate::game::board::write_plane_of_words;

device_constants! {
    fn device_constants;
    /// Words of a set of points in a state: those of the largest board.
    pub const STATE_WORDS: usize as "int" = 6;
}
/// Points of the largest board.
pub const MAX_POINTS: usize = 19 * 19;

/// Calls `$body` with the constant `$w` set to the words that a board of `$size` needs.
macro_rules! with_words {
    ($size:expr, $w:ident => $body:expr) => {
        match $size {
            0..=11 => {
                const $w: usize = 2;
                $body
            }
            12..=16 => {
                const $w: usize = 4;
                $body
            }
            _ => {
                const $w: usize = 6;
                $body
            }
        }
    };
}
pub(super) use with_words;

/// Masks of a board's points, and of those on its left and right borders.
#[derive(Clone, Copy)]
struct Masks {
    full: [u64; STATE_WORDS],
    not_first_column: [u64; STATE_WORDS],
    not_last_column: [u64; STATE_WORDS],
}

const fn masks() -> [Masks; 20] {
    let mut out = [Masks {
        full: [0; STATE_WORDS],
        not_first_column: [0; STATE_WORDS],
        not_last_column: [0; STATE_WORDS],
    }; 20];
    let mut size = 1;
    while size < 20 {
        let mut point = 0;
        while point < size * size {
            let (word, bit) = (point / 64, 1 << (point % 64));
            out[size].full[word] |= bit;
            if point % size != 0 {
                out[size].not_first_column[word] |= bit;
            }
            if point % size != size - 1 {
                out[size].not_last_column[word] |= bit;
            }
            point += 1;
        }
        size += 1;
    }
    out
}

static MASKS: [Masks; 20] = masks();

/// A set of points.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Points<const W: usize>([u64; W]);

impl<const W: usize> Points<W> {
    pub const EMPTY: Self = Self([0; W]);

    /// Loads a set from a state.
    #[inline(always)]
    pub fn load(words: &[u64; STATE_WORDS]) -> Self {
        Self(std::array::from_fn(|i| words[i]))
    }

    /// Stores the set into a state.
    #[inline(always)]
    pub fn store(self, words: &mut [u64; STATE_WORDS]) {
        words[..W].copy_from_slice(&self.0);
    }

    #[inline(always)]
    pub fn one(point: u16) -> Self {
        let mut out = Self::EMPTY;
        out.0[usize::from(point) / 64] = 1 << (point % 64);
        out
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    /// Points in both.
    #[inline(always)]
    pub fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// Points in either.
    #[inline(always)]
    pub fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    /// Points not in `other`.
    #[inline(always)]
    pub fn without(self, other: Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    #[inline(always)]
    pub fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// True for two points or more.
    #[inline(always)]
    pub fn has_two(self) -> bool {
        let mut seen = 0;
        let mut two = 0;
        for word in self.0 {
            two |= word & word.wrapping_sub(1) | if seen != 0 { word } else { 0 };
            seen |= word;
        }
        two != 0
    }

    /// The lowest point; EMPTY of the empty set.
    #[inline(always)]
    pub fn lowest(self) -> Self {
        match self.iter().next() {
            Some(point) => Self::one(point),
            None => Self::EMPTY,
        }
    }

    /// The points, ascending.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = u16> {
        (0..W).flat_map(move |i| {
            let mut word = self.0[i];
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let point = (i * 64) as u16 + word.trailing_zeros() as u16;
                    word &= word - 1;
                    point
                })
            })
        })
    }

    /// Writes the points, ascending, and returns the count.
    #[inline(always)]
    pub fn list(self, out: &mut [u16]) -> usize {
        let mut n = 0;
        for (i, mut word) in self.0.into_iter().enumerate() {
            while word != 0 {
                out[n] = (i * 64) as u16 + word.trailing_zeros() as u16;
                word &= word - 1;
                n += 1;
            }
        }
        n
    }

    /// Writes 1 for points in the set and 0 for others. `plane` is `[size, size]`.
    #[inline(always)]
    pub fn write_plane(self, plane: &mut [f32]) {
        write_plane_of_words(&self.0, plane);
    }

    #[inline(always)]
    fn up(self, by: u32) -> Self {
        Self(std::array::from_fn(|i| self.0[i] << by | if i > 0 { self.0[i - 1] >> (64 - by) } else { 0 }))
    }

    #[inline(always)]
    fn down(self, by: u32) -> Self {
        Self(std::array::from_fn(|i| {
            self.0[i] >> by | if i + 1 < W { self.0[i + 1] << (64 - by) } else { 0 }
        }))
    }
}

/// A board of one size.
#[derive(Clone, Copy)]
pub struct Grid<const W: usize> {
    size: u32,
    pub full: Points<W>,
    not_first_column: Points<W>,
    not_last_column: Points<W>,
}

impl<const W: usize> Grid<W> {
    #[inline(always)]
    pub fn new(size: u32) -> Self {
        let masks = &MASKS[size as usize];
        Self {
            size,
            full: Points::load(&masks.full),
            not_first_column: Points::load(&masks.not_first_column),
            not_last_column: Points::load(&masks.not_last_column),
        }
    }

    /// The points next to `points`; may contain points of the set itself and points below the board, which are always empty.
    #[inline(always)]
    pub fn beside(&self, points: Points<W>) -> Points<W> {
        let across = points.and(self.not_last_column).up(1).or(points.and(self.not_first_column).down(1));
        across.or(points.up(self.size)).or(points.down(self.size))
    }

    /// All points of `within` connected to `seeds`, a subset of it.
    #[inline(always)]
    pub fn flood(&self, seeds: Points<W>, within: Points<W>) -> Points<W> {
        let mut reached = seeds;
        loop {
            let next = reached.or(self.beside(reached).and(within));
            if next == reached {
                return reached;
            }
            reached = next;
        }
    }

    /// The group of `stones` around `seed` if it has fewer than two liberties among `empty`.
    #[inline(always)]
    pub fn group_in_atari(&self, seed: Points<W>, stones: Points<W>, empty: Points<W>) -> Option<Points<W>> {
        let mut group = seed;
        loop {
            let beside = self.beside(group);
            if beside.and(empty).has_two() {
                return None;
            }
            let next = group.or(beside.and(stones));
            if next == group {
                return Some(group);
            }
            group = next;
        }
    }
}
