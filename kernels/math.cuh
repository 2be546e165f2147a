// Twin of src/math.rs: exp, ln, pow and sums in a fixed order, equal to Rust to the bit. Only + - * / and bit operations, no
// contraction. Polynomials: Cephes `expf`, `logf` and `tanhf` (S. Moshier, public
// domain).
#pragma once
#include "common.cuh"

namespace math {

constexpr f32 LOG2_E = 1.44269504088896340735992468100189214f;
constexpr f32 FRAC_1_SQRT_2 = 0.707106781186547524400844362104849039f;
constexpr f32 MIN_POSITIVE = 1.17549435e-38f;

// e^x. The result is 0 below -87.3, and exp(88.3) above 88.3.
VZ_DEVICE f32 exp(f32 x) {
    const f32 low = x < -87.3f ? -87.3f : x;
    const f32 clamped = low > 88.3f ? 88.3f : low;
    const f32 round = 12582912.0f;
    const f32 shifted = clamped * LOG2_E + round;
    const f32 n = shifted - round;
    const f32 r = (clamped - n * 0.693359375f) - n * -2.1219444e-4f;
    f32 p = 1.9875691e-4f;
    p = p * r + 1.3981999e-3f;
    p = p * r + 8.333452e-3f;
    p = p * r + 4.1665796e-2f;
    p = p * r + 1.6666665e-1f;
    p = p * r + 5.0000001e-1f;
    const f32 e = (p * (r * r) + r) + 1.0f;
    const f32 y = e * from_bits((to_bits(shifted) << 23) + (127u << 23));
    return x < -87.3f ? 0.0f : y;
}

// The natural logarithm of a positive, normal number. 0 and denormals give -87.34.
VZ_DEVICE f32 ln(f32 x) {
    x = x > MIN_POSITIVE ? x : MIN_POSITIVE;
    const u32 bits = to_bits(x);
    i32 exponent = (i32)(bits >> 23) - 126;
    f32 m = from_bits((bits & 0x007FFFFFu) | 0x3F000000u);
    if (m < FRAC_1_SQRT_2) {
        exponent -= 1;
        m = m + m - 1.0f;
    } else {
        m -= 1.0f;
    }
    const f32 z = m * m;
    f32 p = 7.0376836e-2f;
    p = p * m + -1.151461e-1f;
    p = p * m + 1.1676999e-1f;
    p = p * m + -1.2420141e-1f;
    p = p * m + 1.4249323e-1f;
    p = p * m + -1.6668057e-1f;
    p = p * m + 2.0000715e-1f;
    p = p * m + -2.4999994e-1f;
    p = p * m + 3.3333331e-1f;
    const f32 e = (f32)exponent;
    const f32 y = (m * z) * p + e * -2.1219444e-4f - 0.5f * z;
    return (m + y) + e * 0.693359375f;
}

// The hyperbolic tangent. NaN stays NaN.
VZ_DEVICE f32 tanh(f32 x) {
    const f32 size = x < 0.0f ? -x : x;
    if (size < 0.625f) {
        const f32 z = x * x;
        f32 p = -5.7049887e-3f;
        p = p * z + 2.0639089e-2f;
        p = p * z + -5.3739716e-2f;
        p = p * z + 1.3331442e-1f;
        p = p * z + -3.3333282e-1f;
        return p * z * x + x;
    }
    const f32 large = 1.0f - 2.0f / (exp(size + size) + 1.0f);
    return x < 0.0f ? -large : large;
}

// x^y for x > 0, as exp(y ln x).
VZ_DEVICE f32 pow(f32 x, f32 y) { return exp(y * ln(x)); }

// Reduces eight values by `op` as a binary tree: i and i + 4, then i and i + 2, then the last two.
template <class T, class Join>
VZ_DEVICE T tree_reduce(const T* x, Join join) {
    const T four[4] = {join(x[0], x[4]), join(x[1], x[5]), join(x[2], x[6]), join(x[3], x[7])};
    return join(join(four[0], four[2]), join(four[1], four[3]));
}

// The sum of eight partial sums as a binary tree.
VZ_DEVICE f32 fold(const f32* partial) {
    return tree_reduce(partial, [](f32 a, f32 b) { return a + b; });
}

// The largest of eight numbers.
VZ_DEVICE f32 largest(const f32* x) {
    return tree_reduce(x, [](f32 a, f32 b) { return b > a ? b : a; });
}

// The sum of term(0) .. term(n - 1): eight interleaved partial sums (term i goes to sum i mod 8), added by `fold`.
template <class Term>
VZ_DEVICE f32 sum_of(int n, Term term) {
    f32 partial[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int start = 0; start < n; start += 8) {
        for (int lane = 0; lane < 8; lane++) {
            if (start + lane < n) partial[lane] += term(start + lane);
        }
    }
    return fold(partial);
}

VZ_DEVICE f32 sum(const f32* terms, int n) {
    return sum_of(n, [terms](int i) { return terms[i]; });
}

// Softmax of n logits in place.
VZ_DEVICE void softmax(f32* logits, int n) {
    f32 max = from_bits(0xFF800000u); // -inf
    for (int i = 0; i < n; i++) max = logits[i] > max ? logits[i] : max;
    for (int i = 0; i < n; i++) logits[i] = exp(logits[i] - max);
    const f32 inverse = 1.0f / sum(logits, n);
    for (int i = 0; i < n; i++) logits[i] *= inverse;
}

} // namespace math
