//! What becomes of the sums of a strip's rows: [`Epilogue`] with the constants of the channels in registers.

use super::format::{Format, Vector, Vectors};
use super::tile::{Columns, Epilogue, PIECE};
use super::x86::Avx512;

/// Numbers of a vector.
const LANES: usize = Avx512::LANES;

/// What the channels of a strip add and multiply.
pub(super) struct Channels<F: Format, const VECTORS: usize> {
    bias: [Vector<F>; VECTORS],
    worth: [Vector<F>; VECTORS],
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

    #[inline(always)]
    pub(super) fn copy(&self) -> Self {
        Self { ..*self }
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

/// One [`Epilogue`], known to the compiler.
pub(super) trait Ending {
    const IS: Epilogue;
    /// True for layers of many taps, whose multiplications are written out.
    const WRITTEN_OUT: bool = matches!(Self::IS, Epilogue::Inner | Epilogue::Leave);
}

macro_rules! endings {
    ($($name:ident)*) => {
        $(
            pub(super) struct $name;

            impl Ending for $name {
                const IS: Epilogue = Epilogue::$name;
            }
        )*
    };
}

endings!(Enter Leave Inner Hidden Output);

/// Does with a row's sums what E says. Stream and activations are in pieces.
///
/// # Safety
/// The machine has F's instructions; the arrays have the row and its channels, the last vector a valid one.
#[inline(always)]
pub(super) unsafe fn end<F: Format<V = Avx512>, E: Ending, const VECTORS: usize>(
    t: &Columns,
    channels: &Channels<F, VECTORS>,
    place: Place,
    row: usize,
    mut sums: [Vector<F>; VECTORS],
) {
    // SAFETY: the caller's promise.
    unsafe {
        for (j, sum) in sums.iter_mut().enumerate() {
            let lane = j * LANES;
            let stream = place.stream.wrapping_add(row * PIECE + j * t.stream_piece);
            let number = place.out.wrapping_add(row * place.out_row + lane);
            let worth = channels.worth[j];
            *sum = match E::IS {
                Epilogue::Leave => F::onto(Avx512::load(stream), *sum, worth),
                _ => F::with_bias(*sum, worth, channels.bias[j]),
            };
            match E::IS {
                Epilogue::Enter | Epilogue::Leave => Avx512::store(stream, *sum),
                Epilogue::Hidden => Avx512::store(number, Avx512::relu(*sum)),
                Epilogue::Output => Avx512::store_valid(number, *sum, t.valid - lane),
                Epilogue::Inner | Epilogue::Meet => (),
            }
        }
        let activations = place.out.wrapping_add(row * PIECE);
        match E::IS {
            Epilogue::Enter | Epilogue::Leave => channels.store_norm(activations, sums),
            Epilogue::Inner => store_relu::<F, VECTORS>(activations, sums),
            Epilogue::Hidden | Epilogue::Output | Epilogue::Meet => (),
        }
    }
}
