// The functions of math.cuh and rng.cuh over arrays, for the test.

extern "C" {

void twin_exp(const f32* x, f32* out, int n) {
    for (int i = 0; i < n; i++) out[i] = math::exp(x[i]);
}

void twin_ln(const f32* x, f32* out, int n) {
    for (int i = 0; i < n; i++) out[i] = math::ln(x[i]);
}

void twin_pow(const f32* x, const f32* y, f32* out, int n) {
    for (int i = 0; i < n; i++) out[i] = math::pow(x[i], y[i]);
}

f32 twin_sum(const f32* x, int n) { return math::sum(x, n); }

f32 twin_fold(const f32* x) { return math::fold(x); }

f32 twin_largest(const f32* x) { return math::largest(x); }

void twin_softmax(f32* x, int n) { math::softmax(x, n); }

u64 twin_table_entry(u64 seed, u64 i) { return rng::table_entry(seed, i); }

// One round of every kind of draw at (seed, purpose, counters), n rounds; 9 numbers a round.
void twin_draws(u64 seed, u64 purpose, const u64* counters, int num_counters, u64 bound, f32 alpha, int n, u64* out) {
    Key key = Key::of(seed, (Purpose)purpose);
    for (int i = 0; i < num_counters; i++) key = key.with(counters[i]);
    Stream stream = key.stream();
    for (int round = 0; round < n; round++, out += 9) {
        out[0] = stream.next_u64();
        out[1] = to_bits(stream.uniform());
        out[2] = to_bits(stream.uniform_positive());
        out[3] = stream.below(bound);
        out[4] = to_bits(stream.gumbel());
        out[5] = to_bits(stream.normal());
        out[6] = to_bits(stream.gamma(alpha));
        f32 weights[5];
        stream.dirichlet(alpha, weights, 5);
        u64 bits = 0;
        for (int i = 0; i < 5; i++) bits = rotate_left(bits, 13) ^ to_bits(weights[i]);
        out[7] = bits;
        weights[round % 5] = 0.0f;
        out[8] = (u64)stream.weighted(weights, 5);
    }
}

// Bit operations of common.cuh on x: 9 numbers.
void twin_bits(u64 x, int by, u64* out) {
    out[0] = popcount(x);
    out[1] = popcount((u32)x);
    out[2] = trailing_zeros(x);
    out[3] = leading_zeros(x);
    out[4] = reverse_bits(x);
    out[5] = swap_bytes(x);
    out[6] = rotate_left(x, by);
    out[7] = multiply_high(x, ~x);
    u16 indices[64];
    const int n = write_bits(x, 7, indices);
    out[8] = 0;
    for (int i = 0; i < n; i++) out[8] = out[8] * 131 + indices[i];
}

} // extern "C"
