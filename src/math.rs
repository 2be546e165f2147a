//! exp, ln and pow for the search, equal to the bit on every machine and backend.
//!
//! The functions use only additions, multiplications, divisions and bit operations in a fixed order, none of them fused. A
//! compiler that does not contract (Rust never does; kernels are built with contraction off) gives the same result on all
//! hardware, with or without fused multiply-add. Twin: `kernels/math.cuh`.
//!
//! Polynomials: Cephes `expf` and `logf` (S. Moshier, public domain). The error is below 2 units in the last place over the
//! ranges that the search uses; the unit tests require 4e-7 relative.

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
