//! What becomes of the sums of a strip's rows: [`Epilogue`](super::tile::Epilogue) with the constants of the channels in registers.

use super::tile::{Columns, Format, PIECE, Vector, Vectors};
use super::x86::Avx512;

/// Numbers of a vector.
const LANES: usize = Avx512::LANES;

/// What the channels of a strip add and multiply.
pub(super) struct Channels<F: Format, const VECTORS: usize> {
    pub bias: [Vector<F>; VECTORS],
    pub worth: [Vector<F>; VECTORS],
    scale: [Vector<F>; VECTORS],
    offset: [Vector<F>; VECTORS],
}

impl<F: Format<V = Avx512>, const VECTORS: usize> Channels<F, VECTORS> {
    #[inline(always)]
    pub(super) unsafe fn of(t: &Columns) -> Self {
        // SAFETY: the caller's promise; constants are padded to whole vectors.
        unsafe {
            let zeros = [Avx512::zero(); VECTORS];
            let mut all = Self { bias: zeros, worth: zeros, scale: zeros, offset: zeros };
            for j in 0..VECTORS {
                let lane = j * LANES;
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
                    F::store_units(out.add(j * LANES / F::OUT), Avx512::relu(*x));
                }
            }
        }
    }
}

/// Where the rows of a tile are written.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub stream: *mut f32,
    pub out: *mut f32,
    pub out_row: usize,
}

/// What becomes of a row's sums, as [`Epilogue`] says. Stream and activations are in pieces.
pub(super) trait Ending {
    /// # Safety
    /// The machine has F's instructions; the arrays have the row and its channels.
    unsafe fn row<F: Format<V = Avx512>, const VECTORS: usize>(
        t: &Columns,
        channels: &Channels<F, VECTORS>,
        place: Place,
        row: usize,
        sums: [Vector<F>; VECTORS],
    );
}

pub(super) struct Enter;
pub(super) struct Leave;
pub(super) struct Inner;
pub(super) struct Hidden;
pub(super) struct Output;

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
            unsafe { Avx512::store(place.out.add(row * place.out_row + j * LANES), Avx512::relu(*sum)) }
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
            let lane = j * LANES;
            // SAFETY: the caller's promise; the last vector has a valid lane.
            unsafe { Avx512::store_valid(place.out.add(row * place.out_row + lane), *sum, t.valid - lane) }
        }
    }
}
