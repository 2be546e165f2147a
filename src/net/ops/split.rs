//! How a batch is cut: chunks of boards for the caches, partitions of whole chunks for the threads.

use std::ops::Range;

/// The most partitions; fixed, so that sums over partitions do not depend on the number of threads.
const MAX_PIECES: usize = 16;
/// Floats of one activation of a chunk, which should stay in the L2 cache.
const CHUNK_FLOATS: usize = 64 * 1024;
/// A large batch is cut into at least about this many chunks, so that threads share it evenly.
const MIN_CHUNKS: usize = 20;
/// Boards of a chunk are a multiple of this, the tallest register tile.
const TILE: usize = 12;

/// The cuts of a batch of boards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Boards in all.
    pub boards: usize,
    /// Boards of a chunk; the last may have fewer.
    pub chunk: usize,
    /// Boards of each partition, whole chunks, in order.
    pub pieces: Vec<Range<usize>>,
}

impl Split {
    /// The cuts for `boards` boards whose widest activation has `floats` numbers a board.
    pub fn new(boards: usize, floats: usize) -> Self {
        let (cached, shared) = (CHUNK_FLOATS / (TILE * floats), boards / (TILE * MIN_CHUNKS));
        let chunk = TILE * cached.min(shared).clamp(1, 8);
        let chunks = boards.div_ceil(chunk);
        let count = chunks.clamp(1, MAX_PIECES);
        let start = |piece: usize| (piece * chunks / count * chunk).min(boards);
        let pieces = (0..count).map(|piece| start(piece)..start(piece + 1)).collect();
        Self { boards, chunk, pieces }
    }

    /// Boards of each chunk of a partition.
    pub fn chunks(&self, piece: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (end, chunk) = (piece.end, self.chunk);
        piece.clone().step_by(chunk).map(move |start| start..(start + chunk).min(end))
    }

    /// Every partition's part of an array with `floats` numbers a board.
    pub fn parts<'a>(&self, data: &'a [f32], floats: usize) -> Vec<&'a [f32]> {
        self.pieces.iter().map(|piece| &data[piece.start * floats..piece.end * floats]).collect()
    }

    /// The first column of every position of `[positions, rows, columns]` in chunks, as `[B, positions]`.
    pub fn gather_rows(&self, data: &[f32], positions: usize, columns: usize) -> Vec<f32> {
        let mut out = vec![0.0; self.boards * positions];
        for (place, &x) in self.row_places(positions).zip(data.iter().step_by(columns)) {
            out[place] = x;
        }
        out
    }

    /// The reverse of [`Split::gather_rows`], 0 in the other columns.
    pub fn scatter_rows(&self, rows: &[f32], positions: usize, columns: usize) -> Vec<f32> {
        let mut out = vec![0.0; rows.len() * columns];
        for (place, x) in self.row_places(positions).zip(out.iter_mut().step_by(columns)) {
            *x = rows[place];
        }
        out
    }

    /// The index in `[B, positions]` of every row in the chunks' order.
    fn row_places(&self, positions: usize) -> impl Iterator<Item = usize> {
        let chunks = self.pieces.iter().flat_map(|piece| self.chunks(piece));
        chunks.flat_map(move |boards| {
            (0..positions).flat_map(move |p| boards.clone().map(move |board| board * positions + p))
        })
    }

    /// Mutable [`Split::parts`]; `data` may be longer.
    pub fn parts_mut<'a>(&self, mut data: &'a mut [f32], floats: usize) -> Vec<&'a mut [f32]> {
        let mut parts = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let (part, rest) = data.split_at_mut(piece.len() * floats);
            parts.push(part);
            data = rest;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_board_is_in_one_chunk_of_one_partition() {
        for boards in [1, 11, 12, 13, 256, 512, 1000] {
            let split = Split::new(boards, 42 * 64);
            let chunks: Vec<_> = split.pieces.iter().flat_map(|piece| split.chunks(piece)).collect();
            assert_eq!(chunks.iter().map(Range::len).sum::<usize>(), boards);
            assert!(chunks.windows(2).all(|w| w[0].end == w[1].start && w[0].len() == split.chunk));
        }
    }
}
