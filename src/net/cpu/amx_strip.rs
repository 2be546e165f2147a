//! Strips of AMX tiles: one or two vectors of channels at every position of a chunk, tile after tile.
//!
//! A tile is up to 32 boards at one position, half of them in either of two matrices of rows. Its sums go through memory to vector
//! code, which applies the epilogue between the products of the next tile, some rows after each product, where vector instructions
//! stall least. A matrix is loaded as soon as its tile's last product has been issued, and the channels' constants stay in registers.

use super::amx_epilogue::{
    BiasF32, BiasRelu, BiasReluF32, Channels, EpilogueOp, ResidualAddBnRelu, StemBnRelu, TileOutputs, end,
};
use super::amx_mma::{OperandAddrs, first_mma_step, load_first, mma_step, store_all};
use super::board::TapRun;
use super::format::Format;
use super::kernels::Strip;
use super::tile::{CHANNEL_BLOCK, Epilogue, Tap, TileColumns};
use crate::net::amx_tile::{Multiply, SumBuffer, TILE_ROWS};
use crate::simd::{Avx512, Simd};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The maximum number of rows of a strip's tile: two matrices.
const ROWS: usize = 2 * TILE_ROWS;

/// A tile of a strip: of run `run` position `i`, from board `row` on.
#[derive(Clone, Copy)]
struct Cursor {
    run: usize,
    i: usize,
    row: usize,
}

/// A tile whose epilogue is due; of no rows at the start of a strip.
#[derive(Clone, Copy)]
struct PendingTile {
    outputs: TileOutputs,
    rows: usize,
}

/// Rows to finish during each multiplication so that most of a tile's rows are finished in time. Of `taps` taps with `depth`
/// multiplications each, all but the first take part, which stores the sums.
#[inline(always)]
fn rows_at_once(rows: usize, taps: usize, depth: usize) -> usize {
    let finished = |each: usize| each * depth * taps.saturating_sub(1).min(rows / (each * depth));
    [1, 2, 3, 5].into_iter().find(|each| finished(*each) + ROWS / 8 >= rows).unwrap_or(8)
}

/// The work on one tile.
#[derive(Clone, Copy)]
pub(super) struct TileTask<'a> {
    /// Of the tile's run.
    taps: &'a [Tap],
    /// The tile's source rows under a shift of 0.
    x: *const f32,
    /// The first operands of the tile after it.
    next: OperandAddrs,
    /// The tile whose epilogue is interleaved.
    pending: PendingTile,
}

/// The order of a tile's instructions, as a type known at compile time.
pub(super) trait TileSchedule {
    /// Multiplies the task's tile, interleaved with the epilogue of the pending one; inlined where F's instructions are enabled.
    ///
    /// # Safety
    /// As for [`super::kernels::StripFn`].
    unsafe fn run<F: ScheduledFormat, E: EpilogueOp, const VECTORS: usize>(
        context: &StripContext<'_, F, E, VECTORS>,
        task: TileTask<'_>,
    );
}

/// Number formats of strips.
pub(super) trait ScheduledFormat: Format<S = Avx512> + Multiply + Sized {
    /// [`TileSchedule::run`] with the format's instructions. It is not inlined: all schedules in one function take minutes to compile.
    ///
    /// # Safety
    /// The machine has the format's instructions; as for [`TileSchedule::run`].
    unsafe fn run<C: TileSchedule, E: EpilogueOp, const VECTORS: usize>(
        context: &StripContext<'_, Self, E, VECTORS>,
        task: TileTask<'_>,
    );
}

/// [`StripContext::unrolled`].
struct Unrolled<const DEPTH: usize, const TAPS: usize, const ROWS_PER_MMA: usize>;
/// [`StripContext::generic`].
struct Generic<const ROWS_PER_MMA: usize>;

macro_rules! tile_schedules {
    ($($schedule:ident<$(const $number:ident),+> as $method:ident;)*) => {
        $(impl<$(const $number: usize),+> TileSchedule for $schedule<$($number),+> {
            /// # Safety
            /// The kernel contract of [`crate::isa`].
            #[inline(always)]
            unsafe fn run<F: ScheduledFormat, E: EpilogueOp, const VECTORS: usize>(
                context: &StripContext<'_, F, E, VECTORS>,
                task: TileTask<'_>,
            ) {
                // SAFETY: the kernel contract.
                unsafe { context.copy().$method::<$($number),+>(task) }
            }
        })*
    };
}

tile_schedules! {
    Unrolled<const DEPTH, const TAPS, const ROWS_PER_MMA> as unrolled;
    Generic<const ROWS_PER_MMA> as generic;
}

/// A strip with copies of all values that are read between blocks of assembly. The compiler must assume that assembly writes to any
/// memory, and would otherwise load these values again after every block.
pub(super) struct StripContext<'a, F: Format, E, const VECTORS: usize> {
    s: &'a Strip<'a>,
    columns: TileColumns,
    /// Rows of a tile, and words from one matrix of them to the other.
    rows: usize,
    below: usize,
    channels: Channels<F, VECTORS>,
    sums: *mut f32,
    ending: PhantomData<E>,
}

impl<F: ScheduledFormat, E: EpilogueOp, const VECTORS: usize> StripContext<'_, F, E, VECTORS> {
    #[inline(always)]
    fn copy(&self) -> Self {
        Self { channels: self.channels.copy(), ..*self }
    }

    /// Computes all tiles.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn run(&self) {
        let mut now = Cursor { run: 0, i: 0, row: 0 };
        let mut pending = PendingTile { outputs: self.outputs(now), rows: 0 };
        // SAFETY: the kernel contract; a layer has a run, and every run a position.
        unsafe {
            load_first::<VECTORS>(self.first(now));
            while let Some(run) = self.s.runs.get(now.run) {
                let next = self.after(now, run);
                // The operands loaded after the last tile are not used.
                let loaded = if next.run < self.s.runs.len() { next } else { now };
                self.tile(TileTask { taps: &run.taps, x: self.x(now), next: self.first(loaded), pending });
                pending = PendingTile { outputs: self.outputs(now), rows: self.rows };
                now = next;
            }
            store_all(self.sums, self.below);
            for row in 0..pending.rows {
                self.finish(pending.outputs, row);
            }
        }
    }

    /// The tile after one of `run`.
    #[inline(always)]
    fn after(&self, now: Cursor, run: &TapRun) -> Cursor {
        if now.row + self.rows < self.columns.boards {
            Cursor { row: now.row + self.rows, ..now }
        } else if now.i + 1 < run.count {
            Cursor { i: now.i + 1, row: 0, ..now }
        } else {
            Cursor { run: now.run + 1, i: 0, row: 0 }
        }
    }

    /// Words from the start of an array to a tile, positions being `position` words apart.
    #[inline(always)]
    fn words(&self, at: Cursor, position: usize, row: usize) -> usize {
        (self.s.runs[at.run].first + at.i) * position + at.row * row
    }

    /// The source rows of a tile under a shift of 0.
    #[inline(always)]
    fn x(&self, at: Cursor) -> *const f32 {
        self.s.start.x.wrapping_add(self.words(at, self.columns.x_position as usize, CHANNEL_BLOCK))
    }

    /// The addresses of a tile's first multiplication.
    #[inline(always)]
    fn first(&self, at: Cursor) -> OperandAddrs {
        OperandAddrs::new(&self.columns, self.x(at), self.below, &self.s.runs[at.run].taps[0])
    }

    #[inline(always)]
    fn outputs(&self, at: Cursor) -> TileOutputs {
        let Strip { start, stream_position, out_position, .. } = *self.s;
        TileOutputs {
            stream: start.stream.wrapping_add(self.words(at, stream_position, CHANNEL_BLOCK)),
            out: start.out.wrapping_add(self.words(at, out_position, start.out_row)),
            out_row: start.out_row,
        }
    }

    /// Runs a task by the schedule that fits it.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn tile(&self, task: TileTask<'_>) {
        let (depth, taps, rows) = (self.columns.depth / TILE_ROWS, task.taps.len(), task.pending.rows);
        // SAFETY: the kernel contract.
        unsafe {
            if E::UNROLL && rows > 0 {
                match (depth, taps) {
                    (2, 9) => return F::run::<Unrolled<2, 9, 2>, E, VECTORS>(self, task),
                    (2, 6) => return F::run::<Unrolled<2, 6, 3>, E, VECTORS>(self, task),
                    (2, 4) => return F::run::<Unrolled<2, 4, 5>, E, VECTORS>(self, task),
                    (1, 9) => return F::run::<Unrolled<1, 9, 4>, E, VECTORS>(self, task),
                    (1, 6) => return F::run::<Unrolled<1, 6, 6>, E, VECTORS>(self, task),
                    (1, 4) => return F::run::<Unrolled<1, 4, 10>, E, VECTORS>(self, task),
                    _ => (),
                }
            }
            match rows_at_once(rows, taps, depth) {
                _ if rows == 0 => F::run::<Generic<0>, E, VECTORS>(self, task),
                1 => F::run::<Generic<1>, E, VECTORS>(self, task),
                2 => F::run::<Generic<2>, E, VECTORS>(self, task),
                3 => F::run::<Generic<3>, E, VECTORS>(self, task),
                5 => F::run::<Generic<5>, E, VECTORS>(self, task),
                _ => F::run::<Generic<8>, E, VECTORS>(self, task),
            }
        }
    }

    /// TAPS taps with DEPTH multiplications each, unrolled, for boards with up to 64 channels: a branch costs as much as finishing a row.
    /// During each multiplication but the first, ROWS_PER_MMA rows are finished.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn unrolled<const DEPTH: usize, const TAPS: usize, const ROWS_PER_MMA: usize>(
        &self,
        task: TileTask<'_>,
    ) {
        let TileTask { taps, x, next, pending } = task;
        let reads = |n: usize| match taps.get(n / DEPTH) {
            Some(tap) if n < TAPS * DEPTH => {
                OperandAddrs::new(&self.columns, x, self.below, tap).later(&self.columns, n % DEPTH)
            }
            _ => next,
        };
        macro_rules! multiplications {
            ($($n:literal)*) => { $(self.nth::<$n, ROWS_PER_MMA>(TAPS * DEPTH, reads($n + 1), pending);)* };
        }
        // SAFETY: the kernel contract; the sums of the pending tile are stored in the first multiplication.
        unsafe {
            self.begin(reads(1));
            multiplications!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
        }
        for row in
            ((TAPS * DEPTH - 1) * ROWS_PER_MMA).min(pending.rows / ROWS_PER_MMA * ROWS_PER_MMA)..pending.rows
        {
            // SAFETY: as above.
            unsafe { self.finish(pending.outputs, row) }
        }
    }

    /// Multiplication N, counted from 0, with its rows of the pending tile; does nothing if N >= `count`.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn nth<const N: usize, const ROWS_PER_MMA: usize>(
        &self,
        count: usize,
        next: OperandAddrs,
        pending: PendingTile,
    ) {
        let row = (N - 1) * ROWS_PER_MMA;
        // SAFETY: the kernel contract.
        unsafe {
            if N >= count {
                return;
            }
            if row + ROWS_PER_MMA <= pending.rows {
                self.step::<ROWS_PER_MMA>(next, pending.outputs, row);
            } else {
                self.step::<0>(next, pending.outputs, row);
            }
        }
    }

    /// Any number of taps and multiplications. From the second tap on ROWS_PER_MMA rows are finished during every multiplication, while
    /// enough are left.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn generic<const ROWS_PER_MMA: usize>(&self, TileTask { taps, x, next, pending }: TileTask<'_>) {
        let t = &self.columns;
        let depth = t.depth / TILE_ROWS;
        // Every multiplication loads the operands of the next one.
        let (second, rest) = match taps {
            [tap, rest @ ..] if depth > 1 => (OperandAddrs::new(t, x, self.below, tap).later(t, 1), rest),
            [_, tap, rest @ ..] => (OperandAddrs::new(t, x, self.below, tap), rest),
            _ => (next, taps.split_at(taps.len()).1),
        };
        let (busy, others) = rest.split_at(if ROWS_PER_MMA == 0 {
            0
        } else {
            rest.len().min(pending.rows / (ROWS_PER_MMA * depth))
        });
        let mut row = 0;
        // SAFETY: the kernel contract; the sums of the pending tile are stored in the first multiplication.
        unsafe {
            self.begin(second);
            let mut reads = second;
            for _ in 2..depth {
                reads = reads.later(t, 1);
                self.step::<0>(reads, pending.outputs, row);
            }
            for tap in busy {
                let mut reads = OperandAddrs::new(t, x, self.below, tap);
                for _ in 0..depth {
                    self.step::<ROWS_PER_MMA>(reads, pending.outputs, row);
                    (row, reads) = (row + ROWS_PER_MMA, reads.later(t, 1));
                }
            }
            for tap in others {
                let mut reads = OperandAddrs::new(t, x, self.below, tap);
                for _ in 0..depth {
                    self.step::<0>(reads, pending.outputs, row);
                    reads = reads.later(t, 1);
                }
            }
            if taps.len() * depth > 1 {
                self.step::<0>(next, pending.outputs, row);
            }
        }
        for row in row..pending.rows {
            // SAFETY: as above.
            unsafe { self.finish(pending.outputs, row) }
        }
    }

    /// The first multiplication of a tile.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn begin(&self, next: OperandAddrs) {
        // SAFETY: the kernel contract.
        unsafe {
            first_mma_step::<F, VECTORS, 0>(next, self.sums);
            first_mma_step::<F, VECTORS, 1>(next, self.sums);
            first_mma_step::<F, VECTORS, 2>(next, self.sums);
            first_mma_step::<F, VECTORS, 3>(next, self.sums);
        }
    }

    /// A further multiplication, and ROWS_PER_MMA rows of the pending tile from `row` on.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn step<const ROWS_PER_MMA: usize>(&self, next: OperandAddrs, outputs: TileOutputs, row: usize) {
        // SAFETY: the kernel contract.
        unsafe {
            mma_step::<F, VECTORS, 0>(next);
            self.finish_part::<ROWS_PER_MMA, 0>(outputs, row);
            mma_step::<F, VECTORS, 1>(next);
            self.finish_part::<ROWS_PER_MMA, 1>(outputs, row);
            mma_step::<F, VECTORS, 2>(next);
            self.finish_part::<ROWS_PER_MMA, 2>(outputs, row);
            mma_step::<F, VECTORS, 3>(next);
            self.finish_part::<ROWS_PER_MMA, 3>(outputs, row);
        }
    }

    /// The rows that follow `mma_step` PART of a multiplication: ROWS_PER_MMA rows in four parts, the first ones being the larger.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn finish_part<const ROWS_PER_MMA: usize, const PART: usize>(
        &self,
        outputs: TileOutputs,
        row: usize,
    ) {
        for i in (ROWS_PER_MMA * PART).div_ceil(4)..(ROWS_PER_MMA * (PART + 1)).div_ceil(4) {
            // SAFETY: the kernel contract.
            unsafe { self.finish(outputs, row + i) }
        }
    }

    /// Applies the epilogue to a row of stored sums.
    ///
    /// # Safety
    /// The kernel contract of [`crate::isa`].
    #[inline(always)]
    unsafe fn finish(&self, outputs: TileOutputs, row: usize) {
        // SAFETY: the kernel contract; the sums are stored.
        unsafe {
            let mut sums = [Avx512::splat(0.0); VECTORS];
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = Avx512::load(self.sums.add((j * ROWS + row) * TILE_ROWS));
            }
            end::<F, E, VECTORS>(&self.columns, &self.channels, outputs, row, sums);
        }
    }
}

/// A strip with the epilogue E; instantiated inside functions that enable F's instructions.
///
/// # Safety
/// As for [`super::kernels::StripFn`].
#[inline(always)]
unsafe fn strip_to<F: ScheduledFormat, E: EpilogueOp, const VECTORS: usize>(s: &Strip<'_>) {
    let mut sums = MaybeUninit::<SumBuffer>::uninit();
    let (columns, sums) = (*s.start.columns, sums.as_mut_ptr().cast());
    // SAFETY: the kernel contract; sums are stored before they are read.
    unsafe {
        let rows = 2 * s.rows;
        let below = s.rows * CHANNEL_BLOCK;
        StripContext::<F, E, VECTORS> {
            s,
            columns,
            rows,
            below,
            channels: Channels::of(&columns),
            sums,
            ending: PhantomData,
        }
        .run();
    }
}

/// A strip of any layer on a board.
///
/// # Safety
/// As for [`super::kernels::StripFn`].
#[inline(always)]
pub(super) unsafe fn strip<F: ScheduledFormat, const VECTORS: usize>(s: &Strip<'_>) {
    // SAFETY: the kernel contract.
    unsafe {
        match s.start.epilogue {
            Epilogue::StemBnRelu => strip_to::<F, StemBnRelu, VECTORS>(s),
            Epilogue::ResidualAddBnRelu => strip_to::<F, ResidualAddBnRelu, VECTORS>(s),
            Epilogue::BiasRelu => strip_to::<F, BiasRelu, VECTORS>(s),
            Epilogue::BiasReluF32 => strip_to::<F, BiasReluF32, VECTORS>(s),
            Epilogue::BiasF32 => strip_to::<F, BiasF32, VECTORS>(s),
            Epilogue::VertexAddRelu => {
                unreachable!("only layers on boards are processed in strips")
            }
        }
    }
}
