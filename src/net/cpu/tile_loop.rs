//! The loop over a layer's tiles on a chunk: which tiles, and in which order.

use super::board::{NO_POSITIONS, TapRun};
use super::kernels::{Matrices, Strip, TileFn, row_tiles};
use super::layer::{Buffers, PackedLayer};
use super::tile::{Epilogue, Tile, TileColumns, in_row};
use crate::net::register_tile::BLOCK;

impl PackedLayer {
    /// Runs the layer on a chunk.
    ///
    /// # Safety
    /// The machine has the kernels' instructions. `source`, `stream` and `out` hold `boards` rows for each position of
    /// the layer's input and output: source rows of `depth` units, and after them as many more as [`Kernels::matrices`]
    /// may read, stream rows of whole vectors, out rows of whole vectors of activations or numbers (BiasF32: of `outputs`
    /// numbers); `ends` rows of whole vectors for every vertex (VertexAddRelu). The source is in the blocked layout only for kernels that
    /// multiply matrices. Writes do not overlap the source.
    pub(super) unsafe fn run(&self, boards: usize, buffers: Buffers) {
        for first in (0..self.vectors).step_by(2 * BLOCK) {
            let columns = [first, first + BLOCK].map(|vector| self.columns(boards, &buffers, vector));
            let walk = TileLoop { layer: self, buffers: &buffers, columns: &columns, first };
            // SAFETY: the kernel contract.
            unsafe { walk.run() }
        }
    }
}

/// Two weight blocks of a layer's output channels, applied to all rows of a chunk.
pub(super) struct TileLoop<'a> {
    pub layer: &'a PackedLayer,
    pub buffers: &'a Buffers,
    /// Columns from vector `first` on, and from the block after it.
    pub columns: &'a [TileColumns; 2],
    pub first: usize,
}

/// Rows from position `i` of a run on.
#[derive(Clone, Copy)]
struct RunPosition<'a> {
    run: &'a TapRun,
    i: usize,
}

impl<'a> TileLoop<'a> {
    /// Computes all tiles.
    ///
    /// # Safety
    /// As for [`PackedLayer::run`].
    unsafe fn run(&self) {
        // SAFETY: the kernel contract.
        unsafe {
            match (&self.layer.kernels.matrices, self.strip_rows()) {
                (Some(matrices), Some(rows)) => self.by_columns(matrices, rows),
                _ => self.by_rows(),
            }
        }
    }

    /// Rows of a matrix if the layer is computed in strips: its source is in the blocked layout, and strips have its epilogue.
    fn strip_rows(&self) -> Option<usize> {
        let in_strips = self.buffers.source.is_blocked() && self.layer.epilogue != Epilogue::VertexAddRelu;
        if in_strips { self.layer.kernels.strip_rows(self.columns[0].boards) } else { None }
    }

    /// The first vector after the two blocks.
    fn end(&self) -> usize {
        self.layer.vectors.min(self.first + 2 * BLOCK)
    }

    /// All rows for one block of channels, whose weights stay in the L1 cache, then for the next block.
    ///
    /// # Safety
    /// As for [`PackedLayer::run`].
    unsafe fn by_columns(&self, matrices: &Matrices, rows: usize) {
        for vector in (self.first..self.end()).step_by(BLOCK) {
            let strip = Strip {
                start: self.tile(RunPosition { run: &NO_POSITIONS, i: 0 }, vector, 0, 0),
                rows,
                runs: &self.layer.runs.many,
                stream_position: self.buffers.stream.position,
                out_position: self.buffers.out.position,
            };
            // SAFETY: positions and boards, which are whole tiles, lie inside the arrays.
            unsafe { matrices.strips[(self.end() - vector).min(BLOCK) - 1](&strip) }
        }
    }

    /// Both blocks for some rows, then for the next rows. Rows of several positions are one range if they are contiguous.
    ///
    /// # Safety
    /// As for [`PackedLayer::run`].
    unsafe fn by_rows(&self) {
        let boards = self.columns[0].boards;
        let Buffers { source, stream, out, .. } = self.buffers;
        let whole = [source, stream, out].iter().all(|rows| rows.position == boards * rows.row);
        for run in self.layer.runs.of(boards) {
            let together = if whole { run.count } else { 1 };
            for i in (0..run.count).step_by(together) {
                // SAFETY: the rows lie inside the arrays.
                unsafe { self.rows(RunPosition { run, i }, together * boards) }
            }
        }
    }

    /// `count` rows.
    ///
    /// # Safety
    /// As for [`PackedLayer::run`].
    unsafe fn rows(&self, position: RunPosition<'a>, count: usize) {
        let mut vector = self.first;
        while vector < self.end() {
            let class = self.width_class(self.layer.vectors - vector, count);
            let kernels = self.layer.kernels.tiles[class];
            let batch_multiple = self.layer.kernels.batch_multiple();
            for (row, rows) in row_tiles(count, kernels.len(), batch_multiple) {
                // SAFETY: `row + rows` and `vector + 2^class` stay inside the caller's arrays and the packed weights.
                unsafe { kernels[rows - 1](&self.tile(position, vector, row, rows)) };
            }
            vector += 1 << class;
        }
    }

    /// log2 of the vectors of a tile: the widest tiles for few rows, so that enough independent sums are in flight, and for any rows where
    /// they have more sums than narrower ones.
    fn width_class(&self, vectors: usize, rows: usize) -> usize {
        let [_, two, four] = self.layer.kernels.tiles.map(<[TileFn]>::len);
        match vectors {
            4.. if rows <= four || 4 * four > 2 * two => 2,
            2.. => 1,
            _ => 0,
        }
    }

    /// The tile of `rows` rows from `row` on, counted from the first row of `position`. Pointers to arrays that the layer does not
    /// access keep their channel offset at 0.
    #[inline]
    fn tile(
        &self,
        RunPosition { run, i }: RunPosition<'a>,
        vector: usize,
        row: usize,
        rows: usize,
    ) -> Tile<'a> {
        let Buffers { source, stream, out, ends } = self.buffers;
        let (layer, columns) = (self.layer, &self.columns[(vector - self.first) / BLOCK]);
        let (position, lane) = (run.first + i * run.step, vector * layer.kernels.lanes);
        let (stream_lane, out_word, end_lane) = match layer.epilogue {
            Epilogue::StemBnRelu | Epilogue::ResidualAddBnRelu => {
                (lane, in_row(lane / layer.kernels.out(), out.block_stride), 0)
            }
            Epilogue::BiasRelu => (0, in_row(lane / layer.kernels.out(), out.block_stride), 0),
            Epilogue::VertexAddRelu => (0, in_row(lane / layer.kernels.out(), out.block_stride), lane),
            Epilogue::BiasReluF32 | Epilogue::BiasF32 => (0, lane, 0),
        };
        // With one board, steps over positions are rows.
        let (x_row, stream_row, out_row) = (source.row * run.step, stream.row * run.step, out.row * run.step);
        let [run_endpoint, row_endpoint] =
            [run.ends[0], run.ends[1] + i].map(|vertex| vertex * columns.boards);
        Tile {
            columns,
            taps: &run.taps,
            x: source.start.wrapping_add(position * source.position + row * x_row),
            x_row,
            stream: stream.start.wrapping_add(
                position * stream.position + row * stream_row + in_row(stream_lane, stream.block_stride),
            ),
            stream_row,
            row_endpoint: ends.start.wrapping_add((row_endpoint + row) * ends.row + end_lane),
            run_endpoint: ends.start.wrapping_add(run_endpoint * ends.row + end_lane),
            board: row % columns.boards,
            out: out.start.wrapping_add(position * out.position + row * out_row + out_word),
            out_row,
            rows,
        }
    }
}
