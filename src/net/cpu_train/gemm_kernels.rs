//! The products of training, compiled for each instruction set and number format.

use super::gemm::{LANES, PackedWeights, Product, WeightGradient};
use super::operands::Operands;
use super::tap_map::TapLists;
use super::view::{View, ViewMut};
use crate::isa::Isa;
use crate::net::bf16_products::PortableBf16;
use crate::net::register_tile::F32;
use crate::simd::Portable;

/// `out += x W` at every written position of `links`.
///
/// # Shapes
/// `x [links.sources, rows, x.width]` from column `x.offset`, `weights [taps, inputs, columns]`,
/// `out [links.lists.len(), rows, out.width]` from column `out.offset`, f32.
pub fn product(
    isa: Isa,
    links: &TapLists,
    rows: usize,
    x: View<'_>,
    weights: &PackedWeights,
    out: ViewMut<'_>,
) {
    assert_eq!(x.data.len(), links.sources * rows * x.width, "input chunk");
    assert_eq!(out.data.len(), links.lists.len() * rows * out.width, "output chunk");
    assert!(x.offset + weights.depth <= x.width && out.offset + weights.columns <= out.width, "columns");
    assert_eq!(links.taps, weights.taps, "taps");
    let run = kernels(isa, weights.operands).product;
    // SAFETY: the machine has the instruction set (see `Isa`); the bounds of `Product::run` were checked above.
    unsafe { run(&Product { links, rows, x, weights }, out) }
}

/// `out += x^T dy` over the rows of all (input, output) position pairs of one tap: the gradient of that tap's weights.
///
/// # Shapes
/// In units of rows ([`Operands::by_rows`]): `x [sources, rows, x.width]`, `inputs` columns from `x.offset` on; `dy [.., rows, dy.width]`,
/// `columns` from `dy.offset` on, a multiple of [`LANES`]. `out [inputs, columns]`, f32.
pub fn weight_gradient(
    isa: Isa,
    operands: Operands,
    pairs: &[(usize, usize)],
    rows: usize,
    [x, dy]: [View<'_>; 2],
    out: &mut [f32],
    columns: usize,
) {
    let inputs = out.len() / columns;
    assert!(columns.is_multiple_of(LANES) && out.len() == inputs * columns, "gradient");
    assert!(x.offset + inputs <= x.width && dy.offset + columns <= dy.width, "columns");
    let (sources, targets) = (x.data.len() / (rows * x.width), dy.data.len() / (rows * dy.width));
    assert!(pairs.iter().all(|&(from, to)| from < sources && to < targets), "positions");
    let run = kernels(isa, operands).gradient;
    // SAFETY: the machine has the instruction set (see `Isa`); the bounds were checked above.
    unsafe { run(&WeightGradient { pairs, rows, x, dy, columns }, out) }
}

/// The kernels of an instruction set and a number format.
///
/// # Safety
/// The kernel contract of [`crate::isa`], for the bounds that [`product`] and [`weight_gradient`] check.
struct Kernels {
    /// [`product`]
    product: unsafe fn(&Product<'_>, ViewMut<'_>),
    /// [`weight_gradient`]
    gradient: unsafe fn(&WeightGradient<'_>, &mut [f32]),
}

/// `static NAME = format, instructions; rows of a tile of a product, inputs of a tile of a gradient`.
macro_rules! kernels {
    (static $static:ident = $format:ty $(, $features:literal)?; $rows:literal $inputs:literal) => {
        static $static: Kernels = {
            /// # Safety
            /// The kernel contract of [`crate::isa`].
            $(#[target_feature(enable = $features)])?
            unsafe fn product(product: &Product<'_>, out: ViewMut<'_>) {
                // SAFETY: the kernel contract; this function enables the instructions.
                unsafe { product.run::<$format, $rows>(out) }
            }

            /// # Safety
            /// The kernel contract of [`crate::isa`].
            $(#[target_feature(enable = $features)])?
            unsafe fn gradient(product: &WeightGradient<'_>, out: &mut [f32]) {
                // SAFETY: the kernel contract; this function enables the instructions.
                unsafe { product.run::<$format, $inputs>(out) }
            }

            Kernels { product, gradient }
        };
    };
}

kernels!(static PORTABLE = F32<Portable<4>>; 4 4);
kernels!(static PORTABLE_BF16 = PortableBf16; 4 4);

/// The kernels for `operands`. Those of bf16 have the same bits on all machines, but for denormals.
fn kernels(isa: Isa, operands: Operands) -> &'static Kernels {
    native(isa, operands).unwrap_or(match operands {
        Operands::F32 => &PORTABLE,
        Operands::Bf16 => &PORTABLE_BF16,
    })
}

/// Those that are not plain Rust.
#[cfg(target_arch = "x86_64")]
fn native(isa: Isa, operands: Operands) -> Option<&'static Kernels> {
    use crate::isa::Avx512Extension;
    use crate::net::bf16_products::{Avx2Bf16, Avx512Bf16};
    use crate::simd::{Avx2, Avx512};

    kernels!(static AVX512 = F32<Avx512>, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"; 12 8);
    kernels!(static AVX512_BF16 = Avx512Bf16, "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma"; 12 8);
    kernels!(static AVX2 = F32<Avx2>, "avx2,fma"; 6 4);
    kernels!(static AVX2_BF16 = Avx2Bf16, "avx2,fma"; 4 4);
    match (isa, operands) {
        (Isa::Amx | Isa::Avx512, Operands::F32) => Some(&AVX512),
        (Isa::Amx | Isa::Avx512, Operands::Bf16) if Avx512Extension::Bf16.is_available() => {
            Some(&AVX512_BF16)
        }
        (Isa::Avx2, Operands::F32) => Some(&AVX2),
        (Isa::Amx | Isa::Avx512 | Isa::Avx2, Operands::Bf16) => Some(&AVX2_BF16),
        (Isa::Bfmmla | Isa::Neon | Isa::Portable, _) => None,
    }
}

/// Those that are not plain Rust.
#[cfg(target_arch = "aarch64")]
fn native(isa: Isa, operands: Operands) -> Option<&'static Kernels> {
    kernels!(static NEON = F32<crate::simd::Neon>; 8 8);
    let has_neon = matches!(isa, Isa::Bfmmla | Isa::Neon);
    (has_neon && operands == Operands::F32).then_some(&NEON)
}

/// Those that are not plain Rust: none.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn native(_isa: Isa, _operands: Operands) -> Option<&'static Kernels> {
    None
}
