//! exp, ln, tanh and powers, equal to the bit on every machine, backend and C library: all that lies between weights and games uses these.
//!
//! The functions use only additions, multiplications, divisions and bit operations in a fixed order, none of them fused but
//! [`mul_add`]. A compiler that does not contract (Rust never does; kernels are built with contraction off) gives the same result on
//! all hardware, with or without fused multiply-add. Twin: `kernels/math.cuh`.
//!
//! Polynomials: Cephes `expf`, `logf` and `tanhf` (S. Moshier, public domain). Largest errors in units in the last place (ulp), which
//! the unit tests measure against f64: [`exp`] 1.0, [`ln`] 0.9, [`ln_1p`] 2.5, [`tanh`] 1.4,
//! [`cos_pi`] an absolute 5e-16.

#![allow(clippy::excessive_precision)] // the published coefficients, digit for digit

/// The polynomial of [`exp`], highest power first.
pub(crate) const EXP: [f32; 6] =
    [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.000_000_1e-1];

/// The polynomial of [`ln`], highest power first.
pub(crate) const LN: [f32; 9] = [
    7.037_683_6e-2,
    -1.151_461e-1,
    1.167_699_9e-1,
    -1.242_014_1e-1,
    1.424_932_3e-1,
    -1.666_805_7e-1,
    2.000_071_5e-1,
    -2.499_999_4e-1,
    3.333_333_1e-1,
];

/// The smallest argument whose [`exp`] is not 0.
pub(crate) const EXP_MIN: f32 = -87.3;
/// The largest argument of [`exp`]; above it the result stays the same.
pub(crate) const EXP_MAX: f32 = 88.3;
/// z + ROUND - ROUND is z rounded to nearest for |z| < 2^22: the sum pushes the fraction out of the mantissa.
pub(crate) const ROUND: f32 = 12_582_912.0;
/// The upper part of ln 2, whose product with an exponent is exact.
pub(crate) const LN_2_HIGH: f32 = 0.693_359_375;
/// ln 2 less [`LN_2_HIGH`].
pub(crate) const LN_2_LOW: f32 = -2.121_944_4e-4;

/// e^x. The result is 0 below `EXP_MIN`, and exp(`EXP_MAX`) above `EXP_MAX`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let low = if x < EXP_MIN { EXP_MIN } else { x };
    let clamped = if low > EXP_MAX { EXP_MAX } else { low };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut p = EXP[0];
    for &c in &EXP[1..] {
        p = p * r + c;
    }
    let e = (p * (r * r) + r) + 1.0;
    // The low bits of `shifted` are n. Shifted into the exponent, they give 2^n.
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    let y = e * scale;
    if x < EXP_MIN { 0.0 } else { y }
}

/// The natural logarithm of a positive, normal number. 0 and denormals give -87.34, the logarithm of the smallest normal.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let x = x.max(f32::MIN_POSITIVE);
    let bits = x.to_bits();
    let mut e = (bits >> 23) as i32 - 126;
    let mut m = f32::from_bits((bits & 0x007F_FFFF) | 0x3F00_0000);
    if m < std::f32::consts::FRAC_1_SQRT_2 {
        e -= 1;
        m = m + m - 1.0;
    } else {
        m -= 1.0;
    }
    let z = m * m;
    let mut p = LN[0];
    for &c in &LN[1..] {
        p = p * m + c;
    }
    let e = e as f32;
    let y = (m * z) * p + e * LN_2_LOW - 0.5 * z;
    (m + y) + e * LN_2_HIGH
}

/// ln(1 + x) for x >= 0, exact to a few ulp where x is small.
#[inline(always)]
pub fn ln_1p(x: f32) -> f32 {
    // What rounding 1 + x loses is compensated by the factor (Goldberg 1991, theorem 4).
    let rounded = 1.0 + x;
    if rounded == 1.0 { x } else { ln(rounded) * (x / (rounded - 1.0)) }
}

/// The polynomial of [`tanh`] below 0.625, highest power first.
const TANH: [f32; 5] = [-5.704_988_7e-3, 2.063_908_9e-2, -5.373_971_6e-2, 1.333_144_2e-1, -3.333_328_2e-1];

/// The hyperbolic tangent. NaN stays NaN.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let size = if x < 0.0 { -x } else { x };
    if size < 0.625 {
        let z = x * x;
        let mut p = TANH[0];
        for &c in &TANH[1..] {
            p = p * z + c;
        }
        return p * z * x + x;
    }
    let large = 1.0 - 2.0 / (exp(size + size) + 1.0);
    if x < 0.0 { -large } else { large }
}

/// a * b + c, rounded once.
#[inline(always)]
pub fn mul_add(a: f32, b: f32, c: f32) -> f32 {
    mul_add_each([a], [b], [c])[0]
}

/// [`mul_add`] of each lane. Where the architecture need not have a fused instruction the sum is rounded to f64, then to f32, which is right
/// unless the first rounding ends at a number that the second one must decide.
#[inline(always)]
pub fn mul_add_each<const N: usize>(a: [f32; N], b: [f32; N], c: [f32; N]) -> [f32; N] {
    if cfg!(target_arch = "aarch64") {
        return std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]));
    }
    // The product of two numbers of 24 bits is exact.
    let sums: [f64; N] =
        std::array::from_fn(|lane| f64::from(a[lane]) * f64::from(b[lane]) + f64::from(c[lane]));
    if sums.iter().fold(false, |any, &sum| any | is_rounded_in_doubt(sum)) {
        return std::array::from_fn(|lane| mul_add_to_odd(a[lane], b[lane], c[lane]));
    }
    sums.map(|sum| sum as f32)
}

/// Whether a number lies half-way between two of f32, or becomes a denormal one.
#[inline(always)]
fn is_rounded_in_doubt(sum: f64) -> bool {
    /// The bits that f32 lacks, and the highest of them.
    const LACKING: u64 = (1 << 29) - 1;
    const HALF: u64 = 1 << 28;
    let denormal = sum.abs() < f64::from(f32::MIN_POSITIVE) && sum != 0.0;
    denormal | (sum.to_bits() & LACKING == HALF)
}

/// [`mul_add`] with the sum in f64 rounded to odd: its last bit then tells of all that was lost, and the second rounding is right (Boldo and
/// Melquiond 2008, "Emulation of a FMA and correctly rounded sums").
fn mul_add_to_odd(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // What the sum lost (Knuth's TwoSum).
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    let away = (lost > 0.0) == (sum > 0.0);
    // False for NaN, as after an overflow.
    let is_inexact = lost.abs() > 0.0;
    let bits = sum.to_bits();
    let odd = if away { bits + 1 } else { bits.wrapping_sub(1) };
    f64::from_bits(if is_inexact && bits & 1 == 0 { odd } else { bits }) as f32
}

/// x^n by squaring.
pub fn power(x: f64, mut n: u64) -> f64 {
    let (mut result, mut square) = (1.0, x);
    while n > 0 {
        if n & 1 == 1 {
            result *= square;
        }
        square *= square;
        n >>= 1;
    }
    result
}

/// cos(pi x) for x in [0, 1], by the Taylor series; exact at both ends.
pub fn cos_pi(x: f64) -> f64 {
    if x > 0.5 {
        return -cos_pi(1.0 - x);
    }
    let y = std::f64::consts::PI * x;
    let z = y * y;
    // cos(y) = 1 - z/(1 2) (1 - z/(3 4) (1 - ..)): the term after the last is below 1e-17 at y = pi / 2.
    (1..=11).rev().fold(1.0, |rest, k| 1.0 - z / f64::from((2 * k - 1) * 2 * k) * rest)
}

/// x^y for x > 0, as exp(y ln x).
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    exp(y * ln(x))
}

/// The sum of `terms`: eight interleaved partial sums (term i goes to sum i mod 8), added by [`fold`]. Every sum over edges has
/// this order.
#[inline(always)]
pub fn sum(terms: impl IntoIterator<Item = f32>) -> f32 {
    let mut partial = [0.0f32; 8];
    for (i, term) in terms.into_iter().enumerate() {
        partial[i % 8] += term;
    }
    fold(partial)
}

/// The sum of eight partial sums as a binary tree: i and i + 4, then i and i + 2, then the last two.
#[inline(always)]
pub fn fold(partial: [f32; 8]) -> f32 {
    tree_reduce(partial, |a, b| a + b)
}

/// The largest of eight numbers.
#[inline(always)]
pub fn largest(x: [f32; 8]) -> f32 {
    tree_reduce(x, |a, b| if b > a { b } else { a })
}

/// Reduces eight values by `op` as a binary tree of depth three.
#[inline(always)]
pub fn tree_reduce<T: Copy>(x: [T; 8], op: impl Fn(T, T) -> T) -> T {
    let four = [op(x[0], x[4]), op(x[1], x[5]), op(x[2], x[6]), op(x[3], x[7])];
    op(op(four[0], four[2]), op(four[1], four[3]))
}

/// Softmax of `logits` in place, summed in the order of [`sum`]. An empty slice stays empty.
#[inline(always)]
pub fn softmax(logits: &mut [f32]) {
    let mut max = f32::NEG_INFINITY;
    for &l in logits.iter() {
        max = if l > max { l } else { max };
    }
    for l in logits.iter_mut() {
        *l = exp(*l - max);
    }
    let inverse = 1.0 / sum(logits.iter().copied());
    for l in logits.iter_mut() {
        *l *= inverse;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exp_is_close(x in -87.0f32..88.0) {
            let right = f64::from(x).exp();
            prop_assert!((f64::from(exp(x)) - right).abs() <= 4e-7 * right);
        }

        #[test]
        fn ln_is_close(x in 1e-37f32..1e37) {
            let right = f64::from(x).ln();
            prop_assert!((f64::from(ln(x)) - right).abs() <= 4e-7 * right.abs().max(1.0));
        }
    }

    /// The largest error of `f` over `arguments`, in units in the last place of the right value.
    fn largest_error(f: fn(f32) -> f32, right: fn(f64) -> f64, arguments: impl Iterator<Item = f32>) -> f64 {
        let error = |x: f32| {
            let right = right(x.into());
            let ulp = f64::from(f32::from_bits((right as f32).abs().to_bits() + 1))
                - f64::from((right as f32).abs());
            (f64::from(f(x)) - right).abs() / ulp
        };
        arguments.map(error).fold(0.0, f64::max)
    }

    #[test]
    fn errors_are_below_those_that_the_head_states() {
        let between =
            |low: f32, high: f32| (0..=200_000).map(move |i| low + (high - low) * i as f32 / 200_000.0);
        let found = [
            largest_error(exp, f64::exp, between(-87.0, 88.0)),
            largest_error(ln, f64::ln, between(0.01, 100.0)),
            largest_error(ln_1p, f64::ln_1p, between(0.0, 1.0)),
            largest_error(tanh, f64::tanh, between(-10.0, 10.0)),
        ];
        let limits = [1.0, 0.9, 2.5, 1.4];
        assert!(found.iter().zip(limits).all(|(found, limit)| *found <= limit), "{found:?}");
        let cosine = (0..=1000)
            .map(|i| f64::from(i) / 1000.0)
            .map(|x| (cos_pi(x) - (std::f64::consts::PI * x).cos()).abs());
        assert!(cosine.fold(0.0, f64::max) <= 5e-16);
        assert_eq!([cos_pi(0.0), cos_pi(1.0)], [1.0, -1.0]);
        for n in [0, 1, 2, 3, 10, 1001, 123_456] {
            let right = 0.999_f64.powi(n);
            assert!((power(0.999, n as u64) - right).abs() <= 1e-11 * right, "{n}");
        }
    }

    /// Numbers of every size, whose sums often cancel.
    fn any_numbers() -> impl Strategy<Value = [f32; 3]> {
        let number = || prop_oneof![any::<u32>().prop_map(f32::from_bits), (-64i8..64).prop_map(f32::from)];
        (number(), number(), number(), 0..4u8, -2i32..3).prop_map(|(a, b, c, kind, ulps)| match kind {
            // Near the product, near half a unit in its last place, or anything.
            0 => [a, b, -f32::from_bits((a * b).to_bits().wrapping_add_signed(ulps))],
            1 => [a, b, a * b * f32::EPSILON.powi(ulps) * 0.5],
            _ => [a, b, c],
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The standard library's is exact with the C library of every machine that tests run on.
        #[test]
        fn mul_add_rounds_once([a, b, c] in any_numbers()) {
            let expected = a.mul_add(b, c);
            let [first, second] = mul_add_each([a, 1.0], [b, 1.0], [c, f32::EPSILON]);
            for found in [mul_add(a, b, c), mul_add_to_odd(a, b, c), first] {
                let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                prop_assert!(same, "{a:e} * {b:e} + {c:e}: {found:e}, expected {expected:e}");
            }
            prop_assert_eq!(second, 1.0 + f32::EPSILON);
        }
    }

    #[test]
    fn tanh_is_odd_and_keeps_nan() {
        for x in [0.0, 1e-30, 0.3, 0.625, 3.0, 50.0, f32::INFINITY] {
            assert_eq!(tanh(-x), -tanh(x));
        }
        assert!(tanh(f32::NAN).is_nan());
        assert_eq!([tanh(f32::INFINITY), tanh(20.0)], [1.0, 1.0]);
    }

    #[test]
    fn limits_of_the_domain_are_defined() {
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(ln(1.0), 0.0);
        assert!(ln(0.0) < -87.0);
        assert!((pow(2.0, 10.0) - 1024.0).abs() < 1e-3);
        let mut p = [0.0, 1000.0, -1000.0];
        softmax(&mut p);
        assert_eq!(p, [0.0, 1.0, 0.0]);
    }
}
