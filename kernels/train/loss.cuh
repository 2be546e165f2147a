// The losses and their gradients at the network's outputs. Twin of src/train/loss.rs; one warp per sample.
#pragma once
#include "train/format.cuh"

namespace train {

// Cephes `tanhf` (S. Moshier, public domain).
VZ_DEVICE f32 hyperbolic_tangent(f32 x) {
    const f32 size = x < 0.0f ? -x : x;
    if (size < 0.625f) {
        const f32 z = x * x;
        f32 p = -5.70498872745e-3f;
        p = p * z + 2.06390887954e-2f;
        p = p * z - 5.37397155531e-2f;
        p = p * z + 1.33314422036e-1f;
        p = p * z - 3.33332819422e-1f;
        return p * z * x + x;
    }
    const f32 large = 1.0f - 2.0f / (math::exp(size + size) + 1.0f);
    return x < 0.0f ? -large : large;
}

// The targets of B samples.
struct Targets {
    const f32* policy;  // [B, A], 0 for illegal actions
    const u8* legal;    // [B, A]
    const f32* values;  // [B, P]
    const f32* weight;  // [B]
    u32 actions, players, outputs;
};

// The policy layer's outputs and their gradient, [B, width]. Logit i of a row is at i * stride.
struct Logits {
    const f32* at;
    u32 width, stride;
    Element* gradient;
};

// Writes the gradient of row `row`'s cross-entropy with respect to its logits; returns the cross-entropy and the target's entropy.
// Illegal actions are excluded.
VZ_DEVICE void policy_loss(
    const Targets& targets, f32 loss_scale, u32 row, f32 share, const Logits& all, f64& cross_entropy, f64& entropy
) {
    const u32 lane = threadIdx.x % 32, stride = all.stride;
    const f32* logits = all.at + (u64)row * all.width;
    Element* gradient = all.gradient + (u64)row * all.width;
    const f32* target = targets.policy + (u64)row * targets.actions;
    const u8* legal = targets.legal + (u64)row * targets.actions;
    f32 max = from_bits(0xFF800000u); // -inf
    for (u32 i = lane; i < targets.actions; i += 32) {
        const f32 logit = logits[i * stride];
        max = legal[i] && logit > max ? logit : max;
    }
    max = warp_largest(max);
    f32 sum = 0.0f, mass = 0.0f;
    for (u32 i = lane; i < targets.actions; i += 32) {
        if (!legal[i]) continue;
        sum += math::exp(logits[i * stride] - max);
        mass += target[i];
    }
    sum = warp_sum(sum);
    mass = warp_sum(mass);
    const f64 log_sum = (f64)math::ln(sum);
    cross_entropy = 0.0;
    entropy = 0.0;
    for (u32 place = lane; place < all.width; place += 32) {
        const u32 i = place / stride;
        const bool counts = place % stride == 0 && i < targets.actions && legal[i];
        f32 d = 0.0f;
        if (counts) {
            const f32 shifted = logits[place] - max, t = target[i];
            if (t > 0.0f) {
                cross_entropy -= (f64)t * ((f64)shifted - log_sum);
                entropy -= (f64)t * (f64)math::ln(t);
            }
            d = share * (mass * math::exp(shifted) / sum - t);
        }
        gradient[place] = narrow<Element>(d * loss_scale);
    }
    cross_entropy = warp_sum(cross_entropy);
    entropy = warp_sum(entropy);
}

// Writes the gradient of row `row`'s mean squared error with respect to `values` [B, value_width], the inputs of the hyperbolic
// tangent; returns the error.
VZ_DEVICE f64 value_loss(
    const Targets& targets, f32 loss_scale, u32 row, f32 scale, const f32* values, u32 value_width, Element* gradient
) {
    const u32 lane = threadIdx.x % 32;
    const f32 count = (f32)targets.outputs;
    f64 error = 0.0;
    for (u32 i = lane; i < value_width; i += 32) {
        f32 d = 0.0f;
        if (i < targets.outputs) {
            const f32 value = hyperbolic_tangent(values[(u64)row * value_width + i]);
            const f32 difference = value - targets.values[(u64)row * targets.players + i];
            error += (f64)(difference * difference) / (f64)count;
            d = scale * 2.0f * difference / count * (1.0f - value * value);
        }
        gradient[(u64)row * value_width + i] = narrow<Element>(d * loss_scale);
    }
    return warp_sum(error);
}

// Writes the weighted losses of row `row` to losses [B, 3], and the gradients of the mean loss.
VZ_DEVICE void losses_of(
    const Settings& settings, const Targets& targets, u32 row, const Logits& logits, const f32* values, u32 value_width,
    Element* d_values, f64* losses
) {
    const f64 weight = (f64)targets.weight[row];
    const f32 share = (f32)(weight / settings.total_weight);
    f64 cross_entropy, entropy;
    const f32 loss_scale = settings.loss_scale;
    policy_loss(targets, loss_scale, row, share, logits, cross_entropy, entropy);
    const f64 error = value_loss(targets, loss_scale, row, share * settings.value_weight, values, value_width, d_values);
    if (threadIdx.x % 32 != 0) return;
    losses[(u64)row * 3] = weight * cross_entropy;
    losses[(u64)row * 3 + 1] = weight * entropy;
    losses[(u64)row * 3 + 2] = weight * error;
}

// The sum of term(0) .. term(n - 1) in a fixed order, by one block of at most 32 warps; the result is in thread 0.
template <class Term>
VZ_DEVICE f64 block_sum(u32 n, f64 (&shared)[32], Term term) {
    f64 sum = 0.0;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) sum += term(i);
    sum = warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    f64 total = 0.0;
    if (threadIdx.x == 0) {
        for (u32 i = 0; i < blockDim.x / 32; i++) total += shared[i];
    }
    return total;
}

// Adds the losses [B, 3] of all rows to the report. One block.
VZ_DEVICE void sum_losses(const f64* losses, u32 rows, Report& report, f64 (&shared)[32]) {
    const f64 cross_entropy = block_sum(rows, shared, [&](u32 row) { return losses[(u64)row * 3]; });
    const f64 entropy = block_sum(rows, shared, [&](u32 row) { return losses[(u64)row * 3 + 1]; });
    const f64 error = block_sum(rows, shared, [&](u32 row) { return losses[(u64)row * 3 + 2]; });
    if (threadIdx.x != 0) return;
    report.cross_entropy += cross_entropy;
    report.target_entropy += entropy;
    report.squared_error += error;
}

} // namespace train
