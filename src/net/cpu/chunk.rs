//! How a batch is cut into chunks, and the sizes of a chunk's arrays.

use super::layer::LINE;
use super::packed_net::Net;
use crate::model::{ActivationShape, PointLogits};

/// The maximum number of boards of a chunk.
const MAX_BOARDS: usize = 192;

/// The number of boards of each chunk: as equal as multiples of `batch_multiple` allow, the rest in the last one. A remainder of at
/// most `tail_limit` boards after full chunks is a chunk of its own.
pub(super) struct Chunks {
    rows: usize,
    each: usize,
}

impl Chunks {
    /// Cuts `rows` boards into as few chunks of at most `max_boards` as possible.
    pub(super) fn new(rows: usize, max_boards: usize, batch_multiple: usize, tail_limit: usize) -> Self {
        if rows > max_boards && (1..=tail_limit).contains(&(rows % max_boards)) {
            return Self { rows, each: max_boards };
        }
        let each = rows.div_ceil(rows.div_ceil(max_boards).max(1));
        Self {
            rows,
            each: if rows > batch_multiple {
                each.next_multiple_of(batch_multiple).min(max_boards)
            } else {
                each
            },
        }
    }
}

impl Iterator for Chunks {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let boards = self.each.min(self.rows);
        self.rows -= boards;
        (boards > 0).then_some(boards)
    }
}

/// Row sizes of a chunk's arrays in 32-bit words.
pub(super) struct ChunkLayout {
    pub positions: usize,
    pub obs_row: usize,
    pub stream_row: usize,
    pub act_row: usize,
    pub head_row: usize,
    /// n of a network on the edges of K_n, else 0.
    vertices: usize,
    /// Logits at one position, of a policy head that has the same weights at all of them; else 0.
    pub logits_row: usize,
    pub hidden_row: usize,
    pub value_row: usize,
    /// Rows after the last one that kernels may read.
    overread: usize,
}

impl ChunkLayout {
    /// Words of each array for `boards`, each a whole number of cache lines: observations, stream, activations twice, heads, hidden,
    /// value; for an edge network also sums at the vertices, vertex messages, pooled activations; logits by position, where one layer makes
    /// some at each.
    pub(super) fn words(&self, boards: usize) -> [usize; 11] {
        let squares = self.positions * boards;
        let (vertices, edge_boards) = (self.vertices * boards, self.vertices.min(1) * boards);
        [
            (squares + self.overread) * self.obs_row,
            squares * self.stream_row,
            (squares + self.overread) * self.act_row,
            (squares + self.overread) * self.act_row,
            squares * self.head_row,
            boards * self.hidden_row,
            boards * self.value_row,
            (vertices + self.overread) * self.act_row,
            vertices * self.stream_row,
            edge_boards * self.stream_row,
            squares * self.logits_row,
        ]
        .map(|words| words.next_multiple_of(LINE))
    }
}

impl Net {
    /// The chunks of a batch of `rows` boards.
    pub(super) fn chunks(&self, rows: usize) -> Chunks {
        Chunks::new(rows, self.max_boards(), self.batch_multiple(), self.tail_limit())
    }

    pub(super) fn layout(&self) -> ChunkLayout {
        let (model, stream) = (&self.model, self.model.layers[self.tower.stem].shape);
        let positions = stream.positions();
        let planes = model.obs().len() / positions;
        let heads: usize =
            self.tower.heads.map_or(0, |heads| heads.iter().map(|head| model.outputs(head.conv)).sum());
        let board_width = match stream {
            ActivationShape::Board { width, .. } => width,
            ActivationShape::Vector(_) | ActivationShape::Edges { .. } => 1,
        };
        let vertices = self.packed.messages.as_ref().map_or(0, |messages| messages.edges.vertices);
        let (tower, stem) = (self.kernel_set.tower, self.kernel_set.stem_of(planes));
        let stream_row = stream.channels().next_multiple_of(tower.channels());
        // A tile's rows may be a board's width apart.
        let overread = (tower.batch_multiple() - 1) * board_width;
        ChunkLayout {
            positions,
            obs_row: match &self.packed.im2col {
                Some(im2col) => im2col.inputs() / tower.unit,
                None => planes.div_ceil(stem.unit).next_multiple_of(stem.units()),
            },
            stream_row,
            act_row: stream_row / tower.out(),
            head_row: heads.next_multiple_of(self.kernel_set.full.lanes),
            logits_row: model.point_logits().map_or(0, PointLogits::channels),
            hidden_row: model.outputs(self.tower.hidden).next_multiple_of(self.kernel_set.full.lanes),
            value_row: model.outputs(self.tower.values),
            vertices,
            overread,
        }
    }

    /// Boards that a chunk is best a multiple of: in strips two, for two equal matrices, else the rows of one matrix.
    fn batch_multiple(&self) -> usize {
        match (&self.packed.messages, &self.kernel_set.tower.matrices) {
            (None, Some(_)) => 2,
            _ => self.kernel_set.tower.batch_multiple(),
        }
    }

    /// The largest remainder that is better a chunk of its own. Spread over all chunks it would leave matrices of fewer than 13 rows,
    /// whose products take as long as full ones, since each depends on the sums of the one before.
    fn tail_limit(&self) -> usize {
        match (&self.packed.messages, &self.kernel_set.tower.matrices) {
            (None, Some(_)) => 3,
            _ => 0,
        }
    }

    /// Boards in a chunk's arrays, of which the first `boards` are valid.
    pub(super) fn whole_tiles(&self, boards: usize) -> usize {
        if self.packed.messages.is_none() { self.kernel_set.tower.whole_tiles(boards) } else { boards }
    }

    /// The maximum number of boards of a chunk.
    fn max_boards(&self) -> usize {
        let layout = self.layout();
        let words = |boards| layout.words(boards).iter().sum::<usize>();
        let max_boards = (self.kernel_set.chunk_words() / (words(1) - words(0))).clamp(1, MAX_BOARDS);
        match self.packed.messages {
            // Whole tiles gain more than a chunk that fits the cache.
            None => {
                let rows = self.kernel_set.tower.tile_rows();
                (max_boards / rows * rows).max(rows)
            }
            Some(_) => {
                let batch_multiple = self.batch_multiple();
                if max_boards > batch_multiple {
                    max_boards / batch_multiple * batch_multiple
                } else {
                    max_boards
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_equal_unless_a_short_tail_is_left() {
        let chunks = |rows, tail_limit| Chunks::new(rows, 32, 2, tail_limit).collect::<Vec<_>>();
        assert!(chunks(0, 3).is_empty());
        assert_eq!(chunks(3, 3), [3]);
        assert_eq!(chunks(32, 3), [32]);
        assert_eq!(chunks(33, 0), [18, 15]);
        assert_eq!(chunks(33, 3), [32, 1]);
        assert_eq!(chunks(67, 3), [32, 32, 3]);
        assert_eq!(chunks(68, 3), [24, 24, 20]);
        assert_eq!(chunks(128, 3), [32, 32, 32, 32]);
    }
}
