//! How a batch is cut: chunks of boards for the caches, partitions of whole chunks for the threads.

use crate::model::PointLogits;
use std::ops::Range;

/// The maximum number of partitions; fixed, so that sums over partitions do not depend on the number of threads.
pub const MAX_PARTITIONS: usize = 16;
/// Floats of one activation of a chunk, which should stay in the L2 cache.
const CHUNK_FLOATS: usize = 64 * 1024;
/// A large batch is cut into at least about this many chunks, so that threads share it evenly.
const MIN_CHUNKS: usize = 20;

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
    /// The cuts for `boards` boards whose activations in the tower have `floats` elements a board; boards of a chunk are a multiple of
    /// `tile`, the rows of the products' tallest tile.
    pub fn new(boards: usize, floats: usize, tile: usize) -> Self {
        let (cached, shared) = (CHUNK_FLOATS / (tile * floats), boards / (tile * MIN_CHUNKS));
        let chunk = tile * cached.min(shared).clamp(1, 8);
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

    /// The outputs of `[points, rows, columns]` in chunks, as `[B, outputs]`.
    pub fn read_points(&self, data: &[f32], points: PointLogits, columns: usize) -> Vec<f32> {
        let (floats, outputs) = (points.points() * columns, points.num_logits());
        let mut out = vec![0.0; self.boards * outputs];
        for boards in self.all_chunks() {
            let rows = &data[boards.start * floats..boards.end * floats];
            points.read(rows, columns, &mut out[boards.start * outputs..boards.end * outputs]);
        }
        out
    }

    /// The gradient `[points, rows, columns]` in chunks for that of the outputs `[B, outputs]`, 0 in the padding.
    pub fn point_gradient(&self, d: &[f32], points: PointLogits, columns: usize) -> Vec<f32> {
        let (floats, outputs) = (points.points() * columns, points.num_logits());
        let mut out = vec![0.0; self.boards * floats];
        for boards in self.all_chunks() {
            let d_rows = &mut out[boards.start * floats..boards.end * floats];
            points.gradient(&d[boards.start * outputs..boards.end * outputs], columns, d_rows);
        }
        out
    }

    /// Boards of each chunk of all partitions, in order.
    fn all_chunks(&self) -> impl Iterator<Item = Range<usize>> {
        self.partitions.iter().flat_map(|partition| self.chunks(partition))
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
        for (boards, tile) in [1, 11, 12, 13, 256, 512, 1000].into_iter().flat_map(|n| [(n, 12), (n, 16)]) {
            let split = BatchSplit::new(boards, 42 * 64, tile);
            let chunks: Vec<_> =
                split.partitions.iter().flat_map(|partition| split.chunks(partition)).collect();
            assert_eq!(chunks.iter().map(Range::len).sum::<usize>(), boards);
            assert!(chunks.windows(2).all(|w| w[0].end == w[1].start && w[0].len() == split.chunk));
        }
    }
}
