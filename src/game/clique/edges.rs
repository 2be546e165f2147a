//! Sets of edges of K_n, n up to 17, as 136 bits in lexicographic order, and the search for cliques in them.

use crate::device_struct::{device_constants, device_struct};
use crate::game::board::write_plane_of_words;
use bytemuck::{Pod, Zeroable};

/// Maximum number of vertices: R(4, 4) = 18, so 17 is the last n where k = 4 can be drawn.
pub const MAX_VERTICES: usize = 17;

device_constants! {
    fn device_constants;
    /// Words of a set of edges.
    const SET_WORDS: usize as "int" = 3;
}

/// The index of edge (i, j), i < j < n.
#[inline]
pub(super) fn edge_number(n: usize, i: usize, j: usize) -> usize {
    row_start(n, i) + j - i - 1
}

/// The index of edge (i, i + 1), the first edge from i upwards.
#[inline]
fn row_start(n: usize, i: usize) -> usize {
    i * (2 * n - i - 1) / 2
}

/// The ends (i, j), i < j, of an edge.
#[inline]
pub(super) fn edge_ends(n: usize, edge: usize) -> (usize, usize) {
    let (mut i, mut rest) = (0, edge);
    while rest >= n - 1 - i {
        rest -= n - 1 - i;
        i += 1;
    }
    (i, i + 1 + rest)
}

device_struct! {
    /// A set of edges.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct EdgeSet {
        /// Edge i is bit i % 64 of word i / 64.
        words: [u64; SET_WORDS],
    }
}

impl EdgeSet {
    /// True if `edge` is in the set.
    #[inline]
    pub fn contains(self, edge: usize) -> bool {
        self.words[edge / 64] >> (edge % 64) & 1 != 0
    }

    /// Inserts `edge`.
    #[inline]
    pub fn insert(&mut self, edge: usize) {
        self.words[edge / 64] |= 1 << (edge % 64);
    }

    /// Edges in this set or the other.
    #[inline]
    pub fn union(self, other: Self) -> Self {
        Self { words: std::array::from_fn(|word| self.words[word] | other.words[word]) }
    }

    /// Edges below `num_edges` that are not in the set.
    #[inline]
    pub fn complement(self, num_edges: usize) -> Self {
        let words = std::array::from_fn(|word| {
            let used = num_edges.saturating_sub(64 * word).min(64);
            let mask = if used == 0 { 0 } else { u64::MAX >> (64 - used) };
            !self.words[word] & mask
        });
        Self { words }
    }

    /// The edges, ascending.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..SET_WORDS).flat_map(move |word| {
            let mut rest = self.words[word];
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    64 * word + bit
                })
            })
        })
    }

    /// Writes 1 for edges in the set and 0 for others. `plane` is `[E]`.
    #[inline(always)]
    pub fn write_plane(self, plane: &mut [f32]) {
        write_plane_of_words(&self.words, plane);
    }

    /// The neighbours of `i` above `i`, bit j for vertex j.
    #[inline]
    fn above(self, n: usize, i: usize) -> u32 {
        let (start, len) = (row_start(n, i), n - 1 - i);
        let (word, shift) = (start / 64, start % 64);
        let mut bits = self.words.get(word).map_or(0, |bits| bits >> shift);
        if shift + len > 64 {
            bits |= self.words[word + 1] << (64 - shift);
        }
        let mask = (1u32 << len) - 1;
        (bits as u32 & mask) << (i + 1)
    }

    /// All neighbours of `v`, bit j for vertex j.
    #[inline]
    fn neighbours(self, n: usize, v: usize) -> u32 {
        let mut bits = self.above(n, v);
        let mut edge = v.wrapping_sub(1); // index of edge (0, v)
        for i in 0..v {
            bits |= u32::from(self.contains(edge)) << i;
            edge += n - 2 - i;
        }
        bits
    }

    /// True if `size` of the `candidates` form a clique.
    fn joined(self, n: usize, mut candidates: u32, size: usize) -> bool {
        match size {
            0 => return true,
            1 => return candidates != 0,
            _ => {}
        }
        while candidates.count_ones() as usize >= size {
            let v = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            if self.joined(n, candidates & self.above(n, v), size - 1) {
                return true;
            }
        }
        false
    }

    /// True if `edge`, which is in the set, belongs to a clique of `k` >= 2 vertices.
    #[inline]
    pub fn has_clique_with(self, n: usize, k: usize, edge: usize) -> bool {
        let (i, j) = edge_ends(n, edge);
        self.joined(n, self.neighbours(n, i) & self.neighbours(n, j), k - 2)
    }

    /// The neighbours of every vertex, bit j for vertex j. `[n]`, then zeros
    pub fn all_neighbours(self, n: usize) -> [u32; MAX_VERTICES] {
        std::array::from_fn(|v| if v < n { self.neighbours(n, v) } else { 0 })
    }

    /// True if the set has a clique of `k` vertices.
    pub fn has_clique(self, n: usize, k: usize) -> bool {
        self.joined(n, (1 << n) - 1, k)
    }

    /// The lowest clique of `k` vertices, bit i for vertex i.
    pub fn clique(self, n: usize, k: usize) -> Option<u32> {
        let (mut candidates, mut vertices) = ((1u32 << n) - 1, 0);
        for rest in (0..k).rev() {
            let joins_rest =
                |&v: &usize| candidates >> v & 1 == 1 && self.joined(n, candidates & self.above(n, v), rest);
            let v = (0..n).find(joins_rest)?;
            vertices |= 1 << v;
            candidates &= self.above(n, v);
        }
        Some(vertices)
    }
}
