// The losses and their gradients at the network's outputs. Twin of src/train/loss.rs; one warp per sample.
#pragma once
#include "train/format.cuh"

namespace train {

// The point, row by row, of the actions with this number.
VZ_DEVICE u32 point_of(const LogitLayout& layout, u32 number) {
    if (layout.column == 0) return number;
    const u32 width = layout.points / layout.column;
    return (layout.column - 1 - number % layout.column) * width + number / layout.column;
}

// The reverse.
VZ_DEVICE u32 number_of(const LogitLayout& layout, u32 point) {
    if (layout.column == 0) return point;
    const u32 width = layout.points / layout.column;
    return point % width * layout.column + layout.column - 1 - point / width;
}

// The logit of an action that is at no point: the mean of number `channel` over the points. By a whole warp; all lanes have the result.
VZ_DEVICE f32 mean_logit(const LogitLayout& layout, const f32* logits, u32 channel) {
    f32 sum = 0.0f;
    for (u32 point = threadIdx.x % WARP; point < layout.points; point += WARP) sum += logits[point * layout.stride + channel];
    return warp_sum(sum) / (f32)layout.points;
}

// Writes the gradient of row `row`'s cross-entropy with respect to its logits; returns the cross-entropy and the target's entropy.
// Illegal actions are excluded.
VZ_DEVICE void policy_loss(const LossBlock& args, f32 loss_scale, u32 row, f32 share, f64& cross_entropy, f64& entropy) {
    const LogitLayout& layout = args.layout;
    const u32 lane = threadIdx.x % WARP, width = args.logit_width, stride = layout.stride, planes = layout.planes;
    const u32 at_points = planes * layout.points, others = args.actions - at_points;
    const f32* logits = args.logits + (u64)row * width;
    Element* gradient = args.d_logits + (u64)row * width;
    const f32* target = args.target_policy + (u64)row * args.actions;
    const u8* legal = args.legal + (u64)row * args.actions;
    const auto logit_of = [&](u32 action) { return logits[point_of(layout, action / planes) * stride + action % planes]; };
    f32 max = from_bits(0xFF800000u); // -inf
    for (u32 i = lane; i < at_points; i += WARP) {
        const f32 logit = logit_of(i);
        max = legal[i] && logit > max ? logit : max;
    }
    for (u32 other = 0; other < others; other++) {
        const f32 logit = mean_logit(layout, logits, planes + other);
        max = legal[at_points + other] && logit > max ? logit : max;
    }
    max = warp_largest(max);
    f32 sum = 0.0f, mass = 0.0f;
    for (u32 i = lane; i < at_points; i += WARP) {
        if (!legal[i]) continue;
        sum += math::exp(logit_of(i) - max);
        mass += target[i];
    }
    for (u32 other = 0; other < others; other++) {
        const f32 logit = mean_logit(layout, logits, planes + other);
        if (lane != 0 || !legal[at_points + other]) continue;
        sum += math::exp(logit - max);
        mass += target[at_points + other];
    }
    sum = warp_sum(sum);
    mass = warp_sum(mass);
    const f64 log_sum = (f64)math::ln(sum);
    cross_entropy = 0.0;
    entropy = 0.0;
    // The gradient of a legal action's logit; one lane adds it to the sums.
    const auto of_action = [&](u32 action, f32 logit, bool adds) {
        const f32 shifted = logit - max, t = target[action];
        if (adds && t > 0.0f) {
            cross_entropy -= (f64)t * ((f64)shifted - log_sum);
            entropy -= (f64)t * (f64)math::ln(t);
        }
        return share * (mass * math::exp(shifted) / sum - t);
    };
    for (u32 index = lane; index < width; index += WARP) {
        const u32 point = index / stride, channel = index % stride;
        if (channel >= planes && channel < planes + others) continue;
        const u32 i = point < layout.points ? number_of(layout, point) * planes + channel : at_points;
        const bool counts = channel < planes && i < at_points && legal[i];
        const f32 d = counts ? of_action(i, logits[index], true) : 0.0f;
        gradient[index] = from_f32<Element>(d * loss_scale);
    }
    for (u32 other = 0; other < others; other++) {
        const f32 logit = mean_logit(layout, logits, planes + other);
        const f32 d = legal[at_points + other] ? of_action(at_points + other, logit, lane == 0) / (f32)layout.points : 0.0f;
        for (u32 point = lane; point < layout.points; point += WARP) {
            gradient[point * stride + planes + other] = from_f32<Element>(d * loss_scale);
        }
    }
    cross_entropy = warp_sum(cross_entropy);
    entropy = warp_sum(entropy);
}

// Writes the gradient of row `row`'s mean squared error with respect to the values, the inputs of the hyperbolic tangent; returns
// the error.
VZ_DEVICE f64 value_loss(const LossBlock& args, f32 loss_scale, u32 row, f32 scale) {
    const u32 lane = threadIdx.x % WARP, width = args.value_width;
    const f32 count = (f32)args.outputs;
    f64 error = 0.0;
    for (u32 i = lane; i < width; i += WARP) {
        f32 d = 0.0f;
        if (i < args.outputs) {
            const f32 value = math::tanh(args.values[(u64)row * width + i]);
            const f32 difference = value - args.target_values[(u64)row * args.players + i];
            error += (f64)(difference * difference) / (f64)count;
            d = scale * 2.0f * difference / count * (1.0f - value * value);
        }
        args.d_values[(u64)row * width + i] = from_f32<Element>(d * loss_scale);
    }
    return warp_sum(error);
}

// Writes the weighted losses of row `row`, and the gradients of the mean loss.
VZ_DEVICE void losses_of(const LossBlock& args, u32 row) {
    const Settings& settings = *args.settings;
    const f64 weight = (f64)args.weight[row];
    const f32 share = (f32)(weight / settings.total_weight);
    f64 cross_entropy, entropy;
    const f32 loss_scale = settings.loss_scale;
    policy_loss(args, loss_scale, row, share, cross_entropy, entropy);
    const f64 error = value_loss(args, loss_scale, row, share * settings.value_weight);
    if (threadIdx.x % WARP != 0) return;
    f64* losses = args.losses + (u64)row * NUM_LOSSES;
    losses[0] = weight * cross_entropy;
    losses[1] = weight * entropy;
    losses[2] = weight * error;
}

// The sum of term(0) .. term(n - 1) in a fixed order, by one block of BLOCK threads; the result is in thread 0.
template <class Term>
VZ_DEVICE f64 block_sum(u32 n, f64 (&shared)[BLOCK_WARPS], Term term) {
    f64 sum = 0.0;
    for (u32 i = threadIdx.x; i < n; i += BLOCK) sum += term(i);
    sum = warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = sum;
    __syncthreads();
    f64 total = 0.0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < BLOCK_WARPS; i++) total += shared[i];
    }
    return total;
}

// Adds the losses [B, NUM_LOSSES] of all rows to the report. One block.
VZ_DEVICE void sum_losses(const f64* losses, u32 rows, UpdateReport& report, f64 (&shared)[BLOCK_WARPS]) {
    const f64 cross_entropy = block_sum(rows, shared, [&](u32 row) { return losses[(u64)row * NUM_LOSSES]; });
    const f64 entropy = block_sum(rows, shared, [&](u32 row) { return losses[(u64)row * NUM_LOSSES + 1]; });
    const f64 error = block_sum(rows, shared, [&](u32 row) { return losses[(u64)row * NUM_LOSSES + 2]; });
    if (threadIdx.x != 0) return;
    report.cross_entropy += cross_entropy;
    report.target_entropy += entropy;
    report.squared_error += error;
}

} // namespace train
