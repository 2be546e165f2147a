//! How a batch is cut: chunks of boards for the caches, partitions of whole chunks for the threads.

use std::ops::Range;

/// The most partitions; fixed, so that sums over partitions do not depend on the number of threads.
const MAX_PARTITIONS: usize = 16;
/// Floats of one activation of a chunk, which should stay in the L2 cache.
const CHUNK_FLOATS: usize = 64 * 1024;
/// A large batch is cut into at least about this many chunks, so that threads share it evenly.
const MIN_CHUNKS: usize = 20;
/// Boards of a chunk are a multiple of this, the tallest register tile.
const TILE: usize = 12;

/// The cuts of a batch of boards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSplit {
    /// Boards in all.
    pub boards: usize,
    /// Boards of a chunk; the last may have fewer.
    pub chunk: usize,
    /// Boards of each partition, whole chunks, in order.
    pub partitions: Vec<Range<usize>>,
}

impl BatchSplit {
    /// The cuts for `boards` boards whose widest activation has `floats` elements a board.
    pub fn new(boards: usize, floats: usize) -> Self {
        let (cached, shared) = (CHUNK_FLOATS / (TILE * floats), boards / (TILE * MIN_CHUNKS));
        let chunk = TILE * cached.min(shared).clamp(1, 8);
        let chunks = boards.div_ceil(chunk);
        let count = chunks.clamp(1, MAX_PARTITIONS);
        let start = |partition: usize| (partition * chunks / count * chunk).min(boards);
        let partitions = (0..count).map(|partition| start(partition)..start(partition + 1)).collect();
        Self { boards, chunk, partitions }
    }

    /// Boards of each chunk of a partition.
    pub fn chunks(&self, partition: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (end, chunk) = (partition.end, self.chunk);
        partition.clone().step_by(chunk).map(move |start| start..(start + chunk).min(end))
    }

    /// Every partition's part of an array with `floats` elements a board.
    pub fn parts<'a>(&self, data: &'a [f32], floats: usize) -> Vec<&'a [f32]> {
        self.partitions
            .iter()
            .map(|partition| &data[partition.start * floats..partition.end * floats])
            .collect()
    }

    /// The first column of every position of `[positions, rows, columns]` in chunks, as `[B, positions]`.
    pub fn gather_rows(&self, data: &[f32], positions: usize, columns: usize) -> Vec<f32> {
        let mut out = vec![0.0; self.boards * positions];
        for (offset, &x) in self.row_offsets(positions).zip(data.iter().step_by(columns)) {
            out[offset] = x;
        }
        out
    }

    /// The reverse of [`BatchSplit::gather_rows`], 0 in the other columns.
    pub fn scatter_rows(&self, rows: &[f32], positions: usize, columns: usize) -> Vec<f32> {
        let mut out = vec![0.0; rows.len() * columns];
        for (offset, x) in self.row_offsets(positions).zip(out.iter_mut().step_by(columns)) {
            *x = rows[offset];
        }
        out
    }

    /// The index in `[B, positions]` of every row in the chunks' order.
    fn row_offsets(&self, positions: usize) -> impl Iterator<Item = usize> {
        let chunks = self.partitions.iter().flat_map(|partition| self.chunks(partition));
        chunks.flat_map(move |boards| {
            (0..positions).flat_map(move |p| boards.clone().map(move |board| board * positions + p))
        })
    }

    /// Mutable [`BatchSplit::parts`]; `data` may be longer.
    pub fn parts_mut<'a>(&self, mut data: &'a mut [f32], floats: usize) -> Vec<&'a mut [f32]> {
        let mut parts = Vec::with_capacity(self.partitions.len());
        for partition in &self.partitions {
            let (part, rest) = data.split_at_mut(partition.len() * floats);
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
            let split = BatchSplit::new(boards, 42 * 64);
            let chunks: Vec<_> =
                split.partitions.iter().flat_map(|partition| split.chunks(partition)).collect();
            assert_eq!(chunks.iter().map(Range::len).sum::<usize>(), boards);
            assert!(chunks.windows(2).all(|w| w[0].end == w[1].start && w[0].len() == split.chunk));
        }
    }
}
