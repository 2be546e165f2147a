//! The [`Epilogue`] of a strip's rows, with the channels' constants in registers.

use super::format::{Format, relu};
use super::tile::{CHANNEL_BLOCK, Epilogue, TileColumns};
use crate::net::register_tile::Vector;
use crate::simd::{Avx512, Simd};

/// Lanes of a vector.
const LANES: usize = Avx512::LANES;

/// The constants of a strip's channels.
pub(super) struct Channels<F: Format, const VECTORS: usize> {
    bias: [Vector<F>; VECTORS],
    dequant_scale: [Vector<F>; VECTORS],
    scale: [Vector<F>; VECTORS],
    offset: [Vector<F>; VECTORS],
}

impl<F: Format<S = Avx512>, const VECTORS: usize> Channels<F, VECTORS> {
    /// # Safety
    /// The machine has AVX-512, and the constants of `t` are padded to VECTORS vectors.
    #[inline(always)]
    pub(super) unsafe fn of(t: &TileColumns) -> Self {
        // SAFETY: the kernel contract; constants are padded to whole vectors.
        unsafe {
            let zeros = [Avx512::splat(0.0); VECTORS];
            let mut all = Self { bias: zeros, dequant_scale: zeros, scale: zeros, offset: zeros };
            for j in 0..VECTORS {
                let lane = j * LANES;
                all.bias[j] = Avx512::load(t.bias.add(lane));
                all.dequant_scale[j] = Avx512::load(t.dequant_scale.add(lane));
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

    /// Writes relu(scale * x + offset) as activations.
    ///
    /// # Safety
    /// The machine has the format's instructions, and `out` holds VECTORS vectors of activations.
    #[inline(always)]
    unsafe fn store_norm(&self, out: *mut f32, mut x: [Vector<F>; VECTORS]) {
        // SAFETY: the kernel contract.
        unsafe {
            for (j, x) in x.iter_mut().enumerate() {
                *x = Avx512::mul_add(*x, self.scale[j], self.offset[j]);
            }
            store_relu::<F, VECTORS>(out, x);
        }
    }
}

/// Writes relu(x) as contiguous activations.
///
/// # Safety
/// The machine has the format's instructions, and `out` holds VECTORS vectors of activations.
#[inline(always)]
unsafe fn store_relu<F: Format<S = Avx512>, const VECTORS: usize>(out: *mut f32, x: [Vector<F>; VECTORS]) {
    // SAFETY: the kernel contract.
    unsafe {
        match x.as_slice() {
            &[a, b] => F::store_pair(out, relu::<Avx512>(a), relu::<Avx512>(b)),
            x => {
                for (j, x) in x.iter().enumerate() {
                    F::store_units(out.add(j * LANES / F::OUT), relu::<Avx512>(*x));
                }
            }
        }
    }
}

/// The outputs of a tile.
#[derive(Clone, Copy)]
pub(super) struct TileOutputs {
    pub stream: *mut f32,
    pub out: *mut f32,
    pub out_row: usize,
}

/// One [`Epilogue`] as a type, so that it is known at compile time.
pub(super) trait EpilogueOp {
    const IS: Epilogue;
    /// True for layers of many taps, whose multiplications are unrolled.
    const UNROLL: bool = matches!(Self::IS, Epilogue::BiasRelu | Epilogue::ResidualAddBnRelu);
}

macro_rules! epilogue_ops {
    ($($name:ident)*) => {
        $(
            pub(super) struct $name;

            impl EpilogueOp for $name {
                const IS: Epilogue = Epilogue::$name;
            }
        )*
    };
}

epilogue_ops!(StemBnRelu ResidualAddBnRelu BiasRelu BiasReluF32 BiasF32);

/// Applies E to a row's sums. Stream and activations are in the blocked layout.
///
/// # Safety
/// The machine has F's instructions; the arrays have the row and its channels, the last vector a valid one.
#[inline(always)]
pub(super) unsafe fn end<F: Format<S = Avx512>, E: EpilogueOp, const VECTORS: usize>(
    t: &TileColumns,
    channels: &Channels<F, VECTORS>,
    outputs: TileOutputs,
    row: usize,
    mut sums: [Vector<F>; VECTORS],
) {
    // SAFETY: the kernel contract.
    unsafe {
        for (j, sum) in sums.iter_mut().enumerate() {
            let lane = j * LANES;
            let stream = outputs.stream.wrapping_add(row * CHANNEL_BLOCK + j * t.stream_block_stride);
            let number = outputs.out.wrapping_add(row * outputs.out_row + lane);
            let dequant_scale = channels.dequant_scale[j];
            *sum = match E::IS {
                Epilogue::ResidualAddBnRelu => F::add_to_stream(Avx512::load(stream), *sum, dequant_scale),
                _ => F::with_bias(*sum, dequant_scale, channels.bias[j]),
            };
            match E::IS {
                Epilogue::StemBnRelu | Epilogue::ResidualAddBnRelu => Avx512::store(stream, *sum),
                Epilogue::BiasReluF32 => Avx512::store(number, relu::<Avx512>(*sum)),
                Epilogue::BiasF32 => Avx512::store_first(number, *sum, t.valid - lane),
                Epilogue::BiasRelu | Epilogue::VertexAddRelu => (),
            }
        }
        let activations = outputs.out.wrapping_add(row * CHANNEL_BLOCK);
        match E::IS {
            Epilogue::StemBnRelu | Epilogue::ResidualAddBnRelu => channels.store_norm(activations, sums),
            Epilogue::BiasRelu => store_relu::<F, VECTORS>(activations, sums),
            Epilogue::BiasReluF32 | Epilogue::BiasF32 | Epilogue::VertexAddRelu => (),
        }
    }
}
