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
/// In units of rows: `x` as [`Operands::input_of_gradient`] makes it, `inputs` columns from `x.offset` on; `dy [.., rows, dy.width]`
/// ([`Operands::by_rows`]), `columns` from `dy.offset` on, a multiple of [`LANES`]. `out [inputs, columns]`, f32.
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

/// The kernels for `operands`. Those of bf16 have the same bits on all machines, but for denormals, and AMX.
fn kernels(isa: Isa, operands: Operands) -> &'static Kernels {
    native(isa, operands).unwrap_or(match operands {
        Operands::F32 => &PORTABLE,
        Operands::Bf16 => &PORTABLE_BF16,
    })
}

/// Those that are not plain Rust.
#[cfg(target_arch = "x86_64")]
fn native(isa: Isa, operands: Operands) -> Option<&'static Kernels> {
    use super::amx;
    use crate::isa::Avx512Extension;
    use crate::net::bf16_products::{Avx2Bf16, Avx512Bf16};
    use crate::simd::{Avx2, Avx512};

    kernels!(static AVX512 = F32<Avx512>, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"; 12 8);
    kernels!(static AVX512_BF16 = Avx512Bf16, "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma"; 12 8);
    kernels!(static AVX2 = F32<Avx2>, "avx2,fma"; 6 4);
    kernels!(static AVX2_BF16 = Avx2Bf16, "avx2,fma"; 4 4);
    static AMX_BF16: Kernels = Kernels { product: amx::product, gradient: amx::gradient };
    match (isa, operands) {
        (Isa::Amx, Operands::Bf16) => Some(&AMX_BF16),
        (Isa::Amx | Isa::Avx512, Operands::F32) => Some(&AVX512),
        (Isa::Avx512, Operands::Bf16) if Avx512Extension::Bf16.is_available() => Some(&AVX512_BF16),
        (Isa::Avx2, Operands::F32) => Some(&AVX2),
        (Isa::Avx512 | Isa::Avx2, Operands::Bf16) => Some(&AVX2_BF16),
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

#[cfg(test)]
mod tests {
    use super::super::tap_map::TapMap;
    use super::*;
    use crate::model::Connectivity;
    use crate::rng::{Key, Purpose};

    /// Numbers that bf16 holds.
    fn numbers(len: usize, seed: u64) -> Vec<f32> {
        let mut rng = Key::new(seed, Purpose::Evaluation).stream();
        (0..len).map(|_| (rng.below(255) as f32 - 127.0) / 64.0).collect()
    }

    fn assert_close(found: &[f32], right: &[f64], what: &str) {
        let worst = found.iter().zip(right).map(|(&x, y)| (f64::from(x) - y).abs()).fold(0.0, f64::max);
        assert!(found.len() == right.len() && worst < 1e-3, "{what}: {worst}");
    }

    /// Sums of at most 5,000 products of at most 4.
    fn check(isa: Isa, operands: Operands, rows: usize, [inputs, outputs]: [usize; 2]) {
        let what = format!("{isa} {operands:?} {rows} rows, {inputs} to {outputs}");
        let map = TapMap::of(Connectivity::Conv3x3, [2, 4]);
        let (width, offset) = (inputs.next_multiple_of(LANES) + LANES, LANES);
        let columns = outputs.next_multiple_of(LANES);
        let (x, dy) = (numbers(8 * rows * width, 1), numbers(8 * rows * columns, 2));
        let weights = numbers(outputs * inputs * 9, 3);
        let mut packed = PackedWeights::new(operands, 9, inputs, columns);
        let mut right = vec![1.0; 8 * rows * columns];
        for (output, weights) in weights.chunks_exact(inputs * 9).enumerate() {
            packed.set_column(output, weights);
            for (tap, pairs) in map.pairs.iter().enumerate() {
                for (&(from, to), row) in pairs.iter().flat_map(|pair| (0..rows).map(move |row| (pair, row)))
                {
                    let x = &x[(from * rows + row) * width + offset..][..inputs];
                    let weights = weights.iter().skip(tap).step_by(9);
                    let sum: f64 = x.iter().zip(weights).map(|(x, w)| f64::from(x * w)).sum();
                    right[(to * rows + row) * columns + output] += sum;
                }
            }
        }
        let mut scratch = [vec![0.0; x.len()], vec![0.0; dy.len()]];
        let view = View { data: &x, width, offset };
        let units = operands.by_columns(isa, view, &mut scratch[0]);
        let mut out = vec![1.0; right.len()];
        product(
            isa,
            &map.forward,
            rows,
            units,
            &packed,
            ViewMut { data: &mut out, width: columns, offset: 0 },
        );
        assert_close(&out, &right, &what);

        let [of_x, of_dy] = &mut scratch;
        of_x.resize(2 * x.len(), 0.0);
        let both = [
            operands.input_of_gradient(isa, view, rows, of_x),
            operands.by_rows(isa, View { data: &dy, width: columns, offset: 0 }, rows, of_dy),
        ];
        for pairs in &map.pairs {
            let mut right = vec![1.0; inputs * columns];
            for (&(from, to), row) in pairs.iter().flat_map(|pair| (0..rows).map(move |row| (pair, row))) {
                for (i, sum) in right.iter_mut().enumerate() {
                    let x = x[(from * rows + row) * width + offset + i / columns];
                    *sum += f64::from(x * dy[(to * rows + row) * columns + i % columns]);
                }
            }
            let mut out = vec![1.0; right.len()];
            weight_gradient(isa, operands, pairs, rows.div_ceil(operands.unit()), both, &mut out, columns);
            assert_close(&out, &right, &what);
        }
    }

    #[test]
    fn products_and_gradients_are_those_of_f64() {
        for isa in Isa::available() {
            for operands in [Operands::F32, Operands::Bf16] {
                for rows in [1, 5, 12, 24, 29, 36, 72] {
                    check(isa, operands, rows, [20, 33]);
                }
                for sizes in [[1, 1], [16, 16], [32, 32], [33, 20], [48, 80], [64, 48], [74, 16], [37, 34]] {
                    check(isa, operands, 12, sizes);
                }
            }
        }
    }
}
