// The optimiser. Twin of src/train/optimizer.rs: equal gradients give equal weights, to the bit.
#pragma once
#include "train/loss.cuh"

namespace train {

// The sum of squares of one part of the gradient per block.
VZ_DEVICE void square_part(const UpdateBlock& args, f64 (&shared)[BLOCK_WARPS]) {
    const u32 begin = blockIdx.x * SQUARED, n = minimum(args.num_parameters - begin, SQUARED);
    const f64 sum = block_sum(n, shared, [&](u32 i) {
        const f64 g = (f64)args.gradient[begin + i];
        return g * g;
    });
    if (threadIdx.x == 0) args.squares[blockIdx.x] = sum;
}

// The gradient's norm, and its factor before it is applied: 1 / loss_scale, times clip / norm if the norm is above `clip` > 0. One
// block.
VZ_DEVICE void measure_gradient(const UpdateBlock& args, f64 (&shared)[BLOCK_WARPS]) {
    const f64 sum = block_sum(args.num_parts, shared, [&](u32 i) { return args.squares[i]; });
    if (threadIdx.x != 0) return;
    const Settings& settings = *args.settings;
    UpdateReport& report = *args.report;
    const f64 scale = (f64)settings.loss_scale, norm = square_root(sum) / scale;
    report.norm = norm;
    report.factor = (settings.clip > 0.0 && norm > settings.clip ? settings.clip / norm : 1.0) / scale;
}

// The state after the update, by AdamW.
VZ_DEVICE void optimise(const UpdateBlock& args) {
    const Settings& rule = *args.settings;
    UpdateReport& report = *args.report;
    const f32 *from = args.from, *decayed = args.decayed;
    const u32 count = args.num_parameters;
    for (u32 i = (u32)thread_in_grid(); i < count; i += threads_in_grid()) {
        f32 x = from[i], m = from[count + i], v = from[2 * (u64)count + i];
        const f32 g = args.gradient[i] * (f32)report.factor;
        m = rule.beta1 * m + (1.0f - rule.beta1) * g;
        v = rule.beta2 * v + (1.0f - rule.beta2) * g * g;
        const f32 denominator = square_root(v / rule.second_correction) + rule.epsilon;
        x -= rule.rate * (decayed[i] * rule.decay * x + m / rule.first_correction / denominator);
        if (!is_finite(x)) report.bad_weight = 1.0;
        if (!is_finite(v)) report.bad_moment = 1.0;
        args.to[i] = x;
        args.to[count + i] = m;
        args.to[2 * (u64)count + i] = v;
    }
}

} // namespace train
