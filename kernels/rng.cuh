// Twin of src/rng.rs: counter-based random numbers, equal to Rust to the bit. A `Key` identifies a stream by purpose and
// counters, a `Stream` numbers the draws at a key. SplitMix64 (Steele, Lea, Flood 2014).
#pragma once
#include "math.cuh"
#include "rng/layout.cuh"

namespace rng {

VZ_DEVICE u64 mix(u64 z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

// Entry i of the table of fixed random numbers with this seed: `table::<N>(seed)[i]`.
VZ_DEVICE u64 table_entry(u64 seed, u64 i) { return mix(mix(seed) + GOLDEN * (i + 1)); }

} // namespace rng

using rng::Purpose;

// The sequence of draws at one `Key`.
struct Stream {
    u64 state;

    // 64 uniform bits.
    VZ_DEVICE u64 next_u64() {
        state += rng::GOLDEN;
        return rng::mix(state);
    }

    // A uniform number in [0, 1), a multiple of 2^-24.
    VZ_DEVICE f32 uniform() { return (f32)(u32)(next_u64() >> 40) * (1.0f / 16777216.0f); }

    // A uniform number in (0, 1], a multiple of 2^-24.
    VZ_DEVICE f32 uniform_positive() { return (f32)(u32)((next_u64() >> 40) + 1) * (1.0f / 16777216.0f); }

    // A uniform integer in 0..n, n > 0.
    VZ_DEVICE u64 below(u64 n) { return multiply_high(next_u64(), n); }

    // A standard Gumbel number, -ln(-ln(u)).
    VZ_DEVICE f32 gumbel() {
        const f32 epsilon = 1.1920929e-7f;
        const f32 u = minimum(uniform() + epsilon * 0.25f, 1.0f - epsilon * 0.5f);
        return -math::ln(-math::ln(u));
    }

    // A standard normal number (Marsaglia's polar method).
    VZ_DEVICE f32 normal() {
        for (;;) {
            const f32 x = 2.0f * uniform() - 1.0f;
            const f32 y = 2.0f * uniform() - 1.0f;
            const f32 s = x * x + y * y;
            if (s > 0.0f && s < 1.0f) return x * square_root(-2.0f * math::ln(s) / s);
        }
    }

    // A Gamma(alpha, 1) number, alpha > 0. For alpha < 1 it is a Gamma(alpha + 1, 1) number times u^(1 / alpha).
    VZ_DEVICE f32 gamma(f32 alpha) {
        if (alpha < 1.0f) {
            const f32 boost = math::pow(uniform_positive(), 1.0f / alpha);
            return gamma_from_1(alpha + 1.0f) * boost;
        }
        return gamma_from_1(alpha);
    }

    // A Gamma(alpha, 1) number, alpha >= 1 (Marsaglia and Tsang 2000).
    VZ_DEVICE f32 gamma_from_1(f32 alpha) {
        const f32 d = alpha - 1.0f / 3.0f;
        const f32 c = 1.0f / square_root(9.0f * d);
        for (;;) {
            const f32 x = normal();
            const f32 t = 1.0f + c * x;
            if (t <= 0.0f) continue;
            const f32 v = t * t * t;
            const f32 u = uniform_positive();
            if (math::ln(u) < 0.5f * x * x + d - d * v + d * math::ln(v)) return d * v;
        }
    }

    // Fills out[0..n] with one symmetric Dirichlet(alpha) draw, summing to 1.
    VZ_DEVICE void dirichlet(f32 alpha, f32* out, int n) {
        f32 sum = 0.0f;
        for (int i = 0; i < n; i++) {
            out[i] = maximum(gamma(alpha), rng::MIN_GAMMA);
            sum += out[i];
        }
        for (int i = 0; i < n; i++) out[i] /= sum;
    }

    // An index drawn with probability proportional to `weights` (non-negative, not all zero).
    VZ_DEVICE int weighted(const f32* weights, int n) {
        f32 total = 0.0f;
        for (int i = 0; i < n; i++) total += weights[i];
        f32 x = uniform() * total;
        int last = 0;
        for (int i = 0; i < n; i++) {
            if (weights[i] > 0.0f) {
                last = i;
                if (x < weights[i]) return i;
                x -= weights[i];
            }
        }
        return last;
    }
};

// The identity of a stream of random numbers; see the head of src/rng.rs.
struct Key {
    u64 value;

    // `Key::new`: the key of `purpose` in the run with this seed.
    static VZ_DEVICE Key of(u64 seed, Purpose purpose) {
        return Key{rng::mix(seed + rng::GOLDEN)}.with((u64)purpose);
    }

    // The key extended by one counter.
    VZ_DEVICE Key with(u64 counter) const {
        return Key{rng::mix(rotate_left(value, 23) + rng::GOLDEN + rng::mix(counter ^ rng::GOLDEN))};
    }

    // Number `number` of those that are a golden ratio apart from the first draw, in [0, 1).
    VZ_DEVICE f32 spaced(u32 number) const {
        const u32 first = (u32)(stream().next_u64() >> 32);
        return (f32)((first + (u32)(rng::GOLDEN >> 32) * number) >> 8) * (1.0f / 16777216.0f);
    }

    // The stream of draws at this key.
    VZ_DEVICE Stream stream() const { return Stream{value}; }
};
