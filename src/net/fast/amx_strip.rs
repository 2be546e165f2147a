//! Strips of AMX tiles: one or two vectors of channels at every position of a chunk, tile after tile.
//!
//! A tile is 32 boards at one position. Its sums go through memory to vector code, which finishes them between the products of the
//! next tile, some rows after each product: beside tiles' instructions alone, vector ones wait least there. Matrices are loaded
//! where the one before has been used for the last time, and constants of the channels stay in registers.

use super::board::Run;
use super::tile::{Columns, Epilogue, Format, PIECE, Strip, Tap, Tile, Vector, Vectors};
use super::x86::Avx512;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Rows of a matrix, units of its rows, and channels.
pub(super) const SIDE: usize = 16;
/// Rows of a strip's tile: two matrices.
pub(super) const ROWS: usize = 2 * SIDE;

/// Room for the sums of a tile: of its first rows, its last, then the same of the second vector of channels.
#[repr(C, align(64))]
pub(super) struct Stored([f32; 4 * SIDE * SIDE]);

impl Stored {
    /// The same number everywhere.
    pub(super) fn filled(number: f32) -> Self {
        Self([number; 4 * SIDE * SIDE])
    }

    pub(super) fn start(&self) -> *const f32 {
        self.0.as_ptr()
    }
}

/// Where one multiplication of a tile reads: 32 rows that lie together, and the weights' matrices.
#[derive(Clone, Copy)]
pub(super) struct Reads {
    pub x: *const f32,
    pub weights: *const f32,
}

impl Reads {
    /// The first multiplication of a tap, for the tile at `x`.
    #[inline(always)]
    fn new(t: &Columns, x: *const f32, tap: &Tap) -> Self {
        Self {
            x: x.wrapping_offset(tap.shift * t.x_position),
            weights: t.weights.wrapping_add(tap.index * t.depth * t.block_vectors * SIDE),
        }
    }

    /// The next one of the same tap.
    #[inline(always)]
    fn next(self, t: &Columns) -> Self {
        let weights = self.weights.wrapping_add(t.block_vectors * SIDE * SIDE);
        Self { x: self.x.wrapping_add(t.x_piece), weights }
    }
}

/// The tiles' instructions of a multiplication. It has four parts, with a product of two matrices each; a matrix that it has used
/// for the last time is replaced by that of the `next` multiplication.
pub(super) trait Multiply {
    /// Loads what the first multiplication of a strip needs.
    ///
    /// # Safety
    /// The machine has AMX, this thread the tiles' configuration, and `reads` 32 rows and VECTORS matrices of weights.
    unsafe fn load<const VECTORS: usize>(reads: Reads);

    /// One part.
    ///
    /// # Safety
    /// As for `load`.
    unsafe fn part<const VECTORS: usize, const PART: usize>(next: Reads);

    /// One part of a tile's first multiplication: stores the sums of the tile before and begins new ones.
    ///
    /// # Safety
    /// As for `load`; there is room for the sums.
    unsafe fn first_part<const VECTORS: usize, const PART: usize>(next: Reads, sums: *mut f32);

    /// Stores the sums of the last tile.
    ///
    /// # Safety
    /// As for `first_part`.
    unsafe fn store(sums: *mut f32);
}

/// What the channels of a strip add and multiply.
struct Channels<F: Format, const VECTORS: usize> {
    bias: [Vector<F>; VECTORS],
    worth: [Vector<F>; VECTORS],
    scale: [Vector<F>; VECTORS],
    offset: [Vector<F>; VECTORS],
}

impl<F: Format<V = Avx512>, const VECTORS: usize> Channels<F, VECTORS> {
    #[inline(always)]
    unsafe fn of(t: &Columns) -> Self {
        // SAFETY: the caller's promise; constants are padded to whole vectors.
        unsafe {
            let zeros = [Avx512::zero(); VECTORS];
            let mut all = Self { bias: zeros, worth: zeros, scale: zeros, offset: zeros };
            for j in 0..VECTORS {
                let lane = j * SIDE;
                all.bias[j] = Avx512::load(t.bias.add(lane));
                all.worth[j] = Avx512::load(t.worth.add(lane));
                all.scale[j] = Avx512::load(t.scale.add(lane));
                all.offset[j] = Avx512::load(t.offset.add(lane));
            }
            all
        }
    }

    /// relu(scale * x + offset) as activations.
    #[inline(always)]
    unsafe fn store_norm(&self, out: *mut f32, mut x: [Vector<F>; VECTORS]) {
        // SAFETY: the caller's promise.
        unsafe {
            for (j, x) in x.iter_mut().enumerate() {
                *x = Avx512::mul_add(*x, self.scale[j], self.offset[j]);
            }
            store_relu::<F, VECTORS>(out, x);
        }
    }
}

/// relu(x) as activations, which lie together.
#[inline(always)]
unsafe fn store_relu<F: Format<V = Avx512>, const VECTORS: usize>(out: *mut f32, x: [Vector<F>; VECTORS]) {
    // SAFETY: the caller's promise.
    unsafe {
        match x.as_slice() {
            &[a, b] => F::store_pair(out, Avx512::relu(a), Avx512::relu(b)),
            x => {
                for (j, x) in x.iter().enumerate() {
                    F::store_units(out.add(j * SIDE / F::OUT), Avx512::relu(*x));
                }
            }
        }
    }
}

/// Where the rows of a tile are written.
#[derive(Clone, Copy)]
struct Place {
    stream: *mut f32,
    out: *mut f32,
    out_row: usize,
}

/// A tile of a strip: of run `run` position `i`, from board `row` on.
#[derive(Clone, Copy)]
struct Cursor {
    run: usize,
    i: usize,
    row: usize,
}

/// What becomes of a row's sums, as [`Epilogue`] says. Stream and activations are in pieces.
trait Ending {
    unsafe fn row<F: Format<V = Avx512>, const VECTORS: usize>(
        t: &Columns,
        channels: &Channels<F, VECTORS>,
        place: Place,
        row: usize,
        sums: [Vector<F>; VECTORS],
    );
}

struct Enter;
struct Leave;
struct Inner;
struct Hidden;
struct Output;

impl Ending for Enter {
    #[inline(always)]
    unsafe fn row<F: Format<V = Avx512>, const VECTORS: usize>(
        t: &Columns,
        channels: &Channels<F, VECTORS>,
        place: Place,
        row: usize,
        sums: [Vector<F>; VECTORS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            for (j, sum) in sums.iter().enumerate() {
                Avx512::store(place.stream.add(row * PIECE + j * t.stream_piece), *sum);
            }
            channels.store_norm(place.out.add(row * PIECE), sums);
        }
    }
}

impl Ending for Leave {
    #[inline(always)]
    unsafe fn row<F: Format<V = Avx512>, const VECTORS: usize>(
        t: &Columns,
        channels: &Channels<F, VECTORS>,
        place: Place,
        row: usize,
        mut sums: [Vector<F>; VECTORS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            for (j, sum) in sums.iter_mut().enumerate() {
                let stream = place.stream.add(row * PIECE + j * t.stream_piece);
                *sum = Avx512::add(Avx512::load(stream), *sum);
                Avx512::store(stream, *sum);
            }
            channels.store_norm(place.out.add(row * PIECE), sums);
        }
    }
}

impl Ending for Inner {
    #[inline(always)]
    unsafe fn row<F: Format<V = Avx512>, const VECTORS: usize>(
        _: &Columns,
        _: &Channels<F, VECTORS>,
        place: Place,
        row: usize,
        sums: [Vector<F>; VECTORS],
    ) {
        // SAFETY: the caller's promise.
        unsafe { store_relu::<F, VECTORS>(place.out.add(row * PIECE), sums) }
    }
}

impl Ending for Hidden {
    #[inline(always)]
    unsafe fn row<F: Format<V = Avx512>, const VECTORS: usize>(
        _: &Columns,
        _: &Channels<F, VECTORS>,
        place: Place,
        row: usize,
        sums: [Vector<F>; VECTORS],
    ) {
        for (j, sum) in sums.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { Avx512::store(place.out.add(row * place.out_row + j * SIDE), Avx512::relu(*sum)) }
        }
    }
}

impl Ending for Output {
    #[inline(always)]
    unsafe fn row<F: Format<V = Avx512>, const VECTORS: usize>(
        t: &Columns,
        _: &Channels<F, VECTORS>,
        place: Place,
        row: usize,
        sums: [Vector<F>; VECTORS],
    ) {
        for (j, sum) in sums.iter().enumerate() {
            let lane = j * SIDE;
            // SAFETY: the caller's promise; the last vector has a valid lane.
            unsafe { Avx512::store_valid(place.out.add(row * place.out_row + lane), *sum, t.valid - lane) }
        }
    }
}

/// A tile whose sums are to be finished; none yet at the start of a strip.
#[derive(Clone, Copy)]
struct Before {
    place: Place,
    rows: usize,
}

/// A strip on its way. Assembly may write anywhere for all that the compiler knows: what is read between its blocks is a copy.
struct Way<'a, F: Format, E, const VECTORS: usize> {
    s: &'a Strip<'a>,
    columns: Columns,
    channels: Channels<F, VECTORS>,
    sums: *mut f32,
    ending: PhantomData<E>,
}

impl<F: Format<V = Avx512> + Multiply, E: Ending, const VECTORS: usize> Way<'_, F, E, VECTORS> {
    /// All tiles.
    #[inline(always)]
    unsafe fn run(&self) {
        let mut now = Cursor { run: 0, i: 0, row: 0 };
        let mut before = Before { place: self.place(now), rows: 0 };
        // SAFETY: the caller's promise; a layer has a run, and every run a position.
        unsafe {
            F::load::<VECTORS>(self.first(now));
            while let Some(run) = self.s.runs.get(now.run) {
                let next = self.after(now, run);
                // After the last tile nothing uses what is loaded.
                let loaded = if next.run < self.s.runs.len() { next } else { now };
                self.tile(run, self.x(now), self.first(loaded), before);
                before = Before { place: self.place(now), rows: ROWS };
                now = next;
            }
            F::store(self.sums);
            for row in 0..before.rows {
                self.finish(before.place, row);
            }
        }
    }

    /// The tile after one of `run`.
    #[inline(always)]
    fn after(&self, now: Cursor, run: &Run) -> Cursor {
        if now.row + ROWS < self.columns.boards {
            Cursor { row: now.row + ROWS, ..now }
        } else if now.i + 1 < run.count {
            Cursor { i: now.i + 1, row: 0, ..now }
        } else {
            Cursor { run: now.run + 1, i: 0, row: 0 }
        }
    }

    /// Words from an array's start to a tile, positions being `position` words apart.
    #[inline(always)]
    fn words(&self, at: Cursor, position: usize, row: usize) -> usize {
        (self.s.runs[at.run].first + at.i) * position + at.row * row
    }

    /// The source rows of a tile under a shift of 0.
    #[inline(always)]
    fn x(&self, at: Cursor) -> *const f32 {
        self.s.start.x.wrapping_add(self.words(at, self.columns.x_position as usize, PIECE))
    }

    /// What the first multiplication of a tile reads.
    #[inline(always)]
    fn first(&self, at: Cursor) -> Reads {
        Reads::new(&self.columns, self.x(at), &self.s.runs[at.run].taps[0])
    }

    #[inline(always)]
    fn place(&self, at: Cursor) -> Place {
        let Strip { start, stream_position, out_position, .. } = *self.s;
        Place {
            stream: start.stream.wrapping_add(self.words(at, stream_position, PIECE)),
            out: start.out.wrapping_add(self.words(at, out_position, start.out_row)),
            out_row: start.out_row,
        }
    }

    /// Multiplies the tile at `x` and finishes the one before meanwhile. `next` is what the tile after it reads first.
    #[inline(always)]
    unsafe fn tile(&self, run: &Run, x: *const f32, next: Reads, before: Before) {
        let others = run.taps.len() * (self.columns.depth / SIDE) - 1;
        // SAFETY: the caller's promise.
        unsafe {
            match ROWS.div_ceil(others.max(1)) {
                1 => self.tile_by::<1>(run, x, next, before),
                2 => self.tile_by::<2>(run, x, next, before),
                3 => self.tile_by::<3>(run, x, next, before),
                4 | 5 => self.tile_by::<5>(run, x, next, before),
                _ => self.tile_by::<8>(run, x, next, before),
            }
        }
    }

    /// The same with EACH rows finished during each multiplication but the first.
    #[inline(always)]
    unsafe fn tile_by<const EACH: usize>(&self, run: &Run, x: *const f32, next: Reads, before: Before) {
        let t = &self.columns;
        let depth = t.depth / SIDE;
        let (mut first, mut row) = (true, 0);
        for (i, tap) in run.taps.iter().enumerate() {
            let mut reads = Reads::new(t, x, tap);
            for k in 1..=depth {
                reads = match run.taps.get(i + 1) {
                    _ if k < depth => reads.next(t),
                    Some(tap) => Reads::new(t, x, tap),
                    None => next,
                };
                // SAFETY: the caller's promise; the sums of the tile before are stored in the first multiplication.
                unsafe {
                    if first {
                        first = false;
                        self.begin(reads);
                    } else if row + EACH <= before.rows {
                        self.step::<EACH>(reads, before.place, row);
                        row += EACH;
                    } else {
                        self.step::<0>(reads, before.place, row);
                    }
                }
            }
        }
        for row in row..before.rows {
            // SAFETY: as above.
            unsafe { self.finish(before.place, row) }
        }
    }

    /// The first multiplication of a tile.
    #[inline(always)]
    unsafe fn begin(&self, next: Reads) {
        // SAFETY: the caller's promise.
        unsafe {
            F::first_part::<VECTORS, 0>(next, self.sums);
            F::first_part::<VECTORS, 1>(next, self.sums);
            F::first_part::<VECTORS, 2>(next, self.sums);
            F::first_part::<VECTORS, 3>(next, self.sums);
        }
    }

    /// Another multiplication, and EACH rows of the tile before from `row` on.
    #[inline(always)]
    unsafe fn step<const EACH: usize>(&self, next: Reads, place: Place, row: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            F::part::<VECTORS, 0>(next);
            self.finish_part::<EACH, 0>(place, row);
            F::part::<VECTORS, 1>(next);
            self.finish_part::<EACH, 1>(place, row);
            F::part::<VECTORS, 2>(next);
            self.finish_part::<EACH, 2>(place, row);
            F::part::<VECTORS, 3>(next);
            self.finish_part::<EACH, 3>(place, row);
        }
    }

    /// A quarter of EACH rows, the first quarters being the larger ones.
    #[inline(always)]
    unsafe fn finish_part<const EACH: usize, const PART: usize>(&self, place: Place, row: usize) {
        for i in (EACH * PART).div_ceil(4)..(EACH * (PART + 1)).div_ceil(4) {
            // SAFETY: the caller's promise.
            unsafe { self.finish(place, row + i) }
        }
    }

    /// Finishes a row of stored sums.
    #[inline(always)]
    unsafe fn finish(&self, place: Place, row: usize) {
        let Channels { bias, worth, .. } = &self.channels;
        // SAFETY: the caller's promise; the sums are stored.
        unsafe {
            let mut sums = [Avx512::zero(); VECTORS];
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = F::with_bias(Avx512::load(self.sums.add((j * ROWS + row) * SIDE)), worth[j], bias[j]);
            }
            E::row::<F, VECTORS>(&self.columns, &self.channels, place, row, sums);
        }
    }
}

/// A strip whose sums become what E says; instantiated inside functions that enable F's instructions.
///
/// # Safety
/// As for [`super::tile::StripFn`].
#[inline(always)]
unsafe fn strip_to<F: Format<V = Avx512> + Multiply, E: Ending, const VECTORS: usize>(s: &Strip<'_>) {
    let mut sums = MaybeUninit::<Stored>::uninit();
    let (columns, sums) = (*s.start.columns, sums.as_mut_ptr().cast());
    // SAFETY: the caller's promise; sums are stored before they are read.
    unsafe {
        Way::<F, E, VECTORS> { s, columns, channels: Channels::of(&columns), sums, ending: PhantomData }
            .run();
    }
}

/// The same for any layer on a board.
///
/// # Safety
/// As for [`super::tile::StripFn`].
#[inline(always)]
pub(super) unsafe fn strip<F: Format<V = Avx512> + Multiply, const VECTORS: usize>(s: &Strip<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match s.start.epilogue {
            Epilogue::Enter => strip_to::<F, Enter, VECTORS>(s),
            Epilogue::Leave => strip_to::<F, Leave, VECTORS>(s),
            Epilogue::Inner => strip_to::<F, Inner, VECTORS>(s),
            Epilogue::Hidden => strip_to::<F, Hidden, VECTORS>(s),
            Epilogue::Output => strip_to::<F, Output, VECTORS>(s),
            Epilogue::Meet => unreachable!("edges are not taken in strips"),
        }
    }
}
