//! How a batch is cut into chunks, and what the arrays of a chunk take.

use super::Net;
use super::layer::LINE;
use crate::config::Arch;

/// Most boards of a chunk.
const MAX_BOARDS: usize = 192;

/// The boards of each chunk: as equal as whole grains of boards allow, the last one taking what is left. Where a chunk of any
/// size takes about as long, few boards more than full chunks are a small one of their own.
pub(super) struct Chunks {
    rows: usize,
    each: usize,
}

impl Chunks {
    /// `rows` boards in as few chunks of at most `most` as there can be; up to `few` beyond full ones are left for the last.
    pub(super) fn new(rows: usize, most: usize, batch_multiple: usize, few: usize) -> Self {
        if rows > most && (1..=few).contains(&(rows % most)) {
            return Self { rows, each: most };
        }
        let each = rows.div_ceil(rows.div_ceil(most).max(1));
        Self {
            rows,
            each: if rows > batch_multiple { each.next_multiple_of(batch_multiple).min(most) } else { each },
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

/// Words of a chunk's arrays, each a whole number of cache lines.
pub(super) struct Layout {
    pub positions: usize,
    pub obs_row: usize,
    pub stream_row: usize,
    pub act_row: usize,
    pub head_row: usize,
    /// n of an edge network, else 0.
    vertices: usize,
    pub hidden_row: usize,
    pub value_row: usize,
    /// Rows after the last that kernels may read.
    overread: usize,
}

impl Layout {
    /// Words that each array takes for `boards`: observations, stream, activations twice, heads, hidden, value; and of an edge
    /// network sums at vertices, what these send, pooled activations, logits by edge.
    pub(super) fn words(&self, boards: usize) -> [usize; 11] {
        let squares = self.positions * boards;
        let (vertices, graphs) = (self.vertices * boards, self.vertices.min(1) * boards);
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
            graphs * self.stream_row,
            graphs * self.positions,
        ]
        .map(|words| words.next_multiple_of(LINE))
    }
}

impl Net {
    /// How a batch of `rows` boards is cut.
    pub(super) fn chunks(&self, rows: usize) -> Chunks {
        Chunks::new(rows, self.most_boards(), self.batch_multiple(), self.tail_limit())
    }

    pub(super) fn layout(&self) -> Layout {
        let spec = &self.spec;
        let (positions, planes, heads) = match spec.arch {
            Arch::Resnet => (
                spec.obs.height * spec.obs.width,
                spec.obs.channels,
                spec.policy_channels + spec.value_channels,
            ),
            Arch::Mlp => (1, spec.obs.len(), 0),
            Arch::Edge => (spec.num_actions, spec.obs.channels, 0),
        };
        let vertices = self.packed.graph.as_ref().map_or(0, |graph| graph.edges.vertices);
        let (tower, stem) = (self.kernel_set.tower, self.kernel_set.stem_of(planes));
        let stream_row = spec.channels.next_multiple_of(tower.channels());
        // Rows may be a board's width apart.
        let overread = (tower.batch_multiple() - 1) * spec.obs.width.max(1);
        Layout {
            positions,
            obs_row: match &self.packed.im2col {
                Some(im2col) => im2col.inputs() / tower.unit,
                None => planes.div_ceil(stem.unit).next_multiple_of(stem.units()),
            },
            stream_row,
            act_row: stream_row / tower.out,
            head_row: heads.next_multiple_of(self.kernel_set.full.lanes),
            hidden_row: spec.value_hidden.next_multiple_of(self.kernel_set.full.lanes),
            value_row: spec.num_values(),
            vertices,
            overread,
        }
    }

    /// Boards that a chunk is best a multiple of: two matrices alike in strips, else one whole one.
    fn batch_multiple(&self) -> usize {
        match (&self.packed.graph, &self.kernel_set.tower.matrices) {
            (None, Some(_)) => 2,
            _ => self.kernel_set.tower.batch_multiple(),
        }
    }

    /// Boards beyond full chunks that are better a chunk of their own. Spread over all, they leave matrices of fewer than 13
    /// rows, whose products take no less time, since each waits for the sums of the one before.
    fn tail_limit(&self) -> usize {
        match (&self.packed.graph, &self.kernel_set.tower.matrices) {
            (None, Some(_)) => 3,
            _ => 0,
        }
    }

    /// The boards of a chunk's arrays, of which the first `boards` count.
    pub(super) fn whole_tiles(&self, boards: usize) -> usize {
        if self.packed.graph.is_none() { self.kernel_set.tower.whole_tiles(boards) } else { boards }
    }

    /// Most boards of a chunk.
    fn most_boards(&self) -> usize {
        let layout = self.layout();
        let words = |boards| layout.words(boards).iter().sum::<usize>();
        let most = (self.kernel_set.chunk_words() / (words(1) - words(0))).clamp(1, MAX_BOARDS);
        match self.packed.graph {
            // Whole tiles are dequant_scale more than a chunk that fits the cache.
            None => {
                let rows = self.kernel_set.tower.tile_rows();
                (most / rows * rows).max(rows)
            }
            Some(_) => {
                let batch_multiple = self.batch_multiple();
                if most > batch_multiple { most / batch_multiple * batch_multiple } else { most }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_alike_unless_few_boards_are_left() {
        let chunks = |rows, few| Chunks::new(rows, 32, 2, few).collect::<Vec<_>>();
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
