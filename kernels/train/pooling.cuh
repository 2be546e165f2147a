// Pooling layers in training: a bias of channels before a ReLU, a scale of channels after a convolution, each out of a whole board, forward
// and backward. Twin of src/net/pooling.rs. A block of threads computes one board; sums are in f32 with a fixed order.
#pragma once
#include "pooling/layout.cuh"
#include "train/graph.cuh"
#include "train/norm.cuh"

namespace train {

using pooling::ChannelEffect;
using pooling::PoolingBlock;
using pooling::PoolStatistics;

// The parameters, one after the other: hidden weight [hidden, inputs] and bias where `hidden` is not 0, output weight [outputs, output_inputs] and,
// of a scale, bias.
struct PoolParams {
    const f32 *hidden, *hidden_bias, *output, *output_bias;

    VZ_DEVICE PoolParams(const PoolingBlock& of, const f32* all)
        : hidden(all), hidden_bias(all + (u64)of.hidden * of.inputs), output(hidden_bias + of.hidden),
          output_bias(output + (u64)of.outputs * of.output_inputs) {}
};

// One board's part of the scratch [boards, SCRATCH_ROWS, values_per_board]: values, or their gradients.
struct PoolParts {
    f32 *inputs, *hidden, *outputs;

    VZ_DEVICE PoolParts(const PoolingBlock& of, f32* scratch, u32 board, u32 gradient)
        : inputs(scratch + ((u64)board * SCRATCH_ROWS + gradient) * of.values_per_board), hidden(inputs + of.inputs),
          outputs(hidden + of.hidden) {}
    VZ_DEVICE f32* read(const PoolingBlock& of) const { return of.hidden > 0 ? hidden : inputs; }
};

// The bias or scale of each channel of the block's board, out of x [boards, squares, width], which `stats` normalise if not null.
VZ_DEVICE void pool_forward(const PoolingBlock& of, const PoolArrays& arrays) {
    const u32 board = blockIdx.x;
    const Element* x = arrays.x;
    const f32* stats = arrays.stats;
    const PoolParams weights(of, arrays.params);
    const PoolParts parts(of, arrays.scratch, board, 0);
    for (u32 channel = threadIdx.x; channel < of.pooled; channel += blockDim.x) {
        f32 sum = 0.0f, largest = 0.0f;
        for (u32 square = 0; square < of.squares; square++) {
            f32 number = to_f32(x[((u64)board * of.squares + square) * of.width + channel]);
            if (stats) {
                const f32* stat = stats + channel;
                number = normalised(number, stat[MEAN * of.width], stat[SCALE * of.width], stat[SHIFT * of.width]);
            }
            if (of.statistics == PoolStatistics::ReluMeanMax) number = number < 0.0f ? 0.0f : number;
            sum += number;
            largest = number > largest ? number : largest;
        }
        const f32 mean = sum * of.per_square;
        parts.inputs[channel] = mean;
        if (of.statistics == PoolStatistics::ReluMeanMax) {
            parts.inputs[of.pooled + channel] = mean * of.board_factor;
            parts.inputs[2 * of.pooled + channel] = largest;
        }
    }
    __syncthreads();
    for (u32 unit = threadIdx.x; unit < of.hidden; unit += blockDim.x) {
        f32 sum = weights.hidden_bias[unit];
        for (u32 i = 0; i < of.inputs; i++) sum += parts.inputs[i] * weights.hidden[(u64)unit * of.inputs + i];
        parts.hidden[unit] = sum < 0.0f ? 0.0f : sum;
    }
    __syncthreads();
    const f32* read = parts.read(of);
    for (u32 output = threadIdx.x; output < of.outputs; output += blockDim.x) {
        f32 sum = of.effect == ChannelEffect::Scale ? weights.output_bias[output] : 0.0f;
        for (u32 i = 0; i < of.output_inputs; i++) sum += read[i] * weights.output[(u64)output * of.output_inputs + i];
        parts.outputs[output] = of.effect == ChannelEffect::Scale ? 1.0f / (1.0f + math::exp(-sum)) : sum;
    }
}

// out = relu(normalised x + bias), the biases being what `pool_forward` wrote.
VZ_DEVICE void norm_bias_relu(const PoolingBlock& of, const PoolArrays& arrays) {
    for_vectors((u64)arrays.boards * of.squares, of.width, [&](u64 row, u32 column, u64 offset) {
        const PoolParts parts(of, arrays.scratch, (u32)(row / of.squares), 0);
        const NormVector norm(arrays.stats, of.width, column);
        Vector v = load(arrays.x + offset);
        for (u32 i = 0; i < VEC; i++) {
            const u32 output = column + i - of.first;
            f32 y = norm.of((int)i, to_f32(v.x[i]));
            if (column + i >= of.first && output < of.outputs) y += parts.outputs[output];
            v.x[i] = from_f32<Element>(y < 0.0f ? 0.0f : y);
        }
        store(arrays.out + offset, v);
    });
}

// out = residual + x scale, the scales being what `pool_forward` wrote.
VZ_DEVICE void scale_add(const PoolingBlock& of, const PoolArrays& arrays) {
    for_vectors((u64)arrays.boards * of.squares, of.width, [&](u64 row, u32 column, u64 offset) {
        const PoolParts parts(of, arrays.scratch, (u32)(row / of.squares), 0);
        const Vector v = load(arrays.x + offset);
        Vector y = load(arrays.residual + offset);
        for (u32 i = 0; i < VEC; i++) {
            if (column + i >= of.outputs) continue;
            y.x[i] = from_f32<Element>(to_f32(y.x[i]) + to_f32(v.x[i]) * parts.outputs[column + i]);
        }
        store(arrays.out + offset, y);
    });
}

// From the gradient of the outputs to that of the statistics, for the block's board.
VZ_DEVICE void pool_inner_backward(const PoolingBlock& of, const f32* params, const PoolParts& parts, const PoolParts& d) {
    const PoolParams weights(of, params);
    f32* d_read = d.read(of);
    for (u32 i = threadIdx.x; i < of.output_inputs; i += blockDim.x) {
        f32 sum = 0.0f;
        for (u32 output = 0; output < of.outputs; output++) {
            sum += d.outputs[output] * weights.output[(u64)output * of.output_inputs + i];
        }
        d_read[i] = of.hidden > 0 && !(parts.hidden[i] > 0.0f) ? 0.0f : sum;
    }
    __syncthreads();
    if (of.hidden == 0) return;
    for (u32 i = threadIdx.x; i < of.inputs; i += blockDim.x) {
        f32 sum = 0.0f;
        for (u32 unit = 0; unit < of.hidden; unit++) sum += d.hidden[unit] * weights.hidden[(u64)unit * of.inputs + i];
        d.inputs[i] = sum;
    }
    __syncthreads();
}

// `out`, the gradient of x, the activations after a bias and its ReLU, becomes the gradient of the ReLU's input without the bias, that
// through the statistics included.
VZ_DEVICE void bias_backward(const PoolingBlock& of, const PoolArrays& arrays) {
    const u32 board = blockIdx.x;
    const Element* active = arrays.x;
    Element* d = arrays.out;
    const f32* params = arrays.params;
    const PoolParts parts(of, arrays.scratch, board, 0), gradient(of, arrays.scratch, board, 1);
    const u64 start = (u64)board * of.squares * of.width;
    for (u32 channel = threadIdx.x; channel < of.width; channel += blockDim.x) {
        f32 sum = 0.0f;
        for (u32 square = 0; square < of.squares; square++) {
            const u64 offset = start + (u64)square * of.width + channel;
            if (!(to_f32(active[offset]) > 0.0f)) d[offset] = from_f32<Element>(0.0f);
            sum += to_f32(d[offset]);
        }
        if (channel >= of.first && channel - of.first < of.outputs) gradient.outputs[channel - of.first] = sum;
    }
    __syncthreads();
    pool_inner_backward(of, params, parts, gradient);
    for (u32 channel = threadIdx.x; channel < of.pooled; channel += blockDim.x) {
        u32 max_square = 0; // the first of equal maxima
        f32 largest = 0.0f;
        for (u32 square = 0; square < of.squares; square++) {
            const f32 here = to_f32(active[start + (u64)square * of.width + channel]);
            if (here > largest) {
                largest = here;
                max_square = square;
            }
        }
        const f32 mean = (gradient.inputs[channel] + gradient.inputs[of.pooled + channel] * of.board_factor) * of.per_square;
        for (u32 square = 0; square < of.squares; square++) {
            const u64 offset = start + (u64)square * of.width + channel;
            if (!(to_f32(active[offset]) > 0.0f)) continue;
            const f32 max = square == max_square ? gradient.inputs[2 * of.pooled + channel] : 0.0f;
            d[offset] = from_f32<Element>(to_f32(d[offset]) + (mean + max));
        }
    }
}

// `out`, the gradient of x, from d, that of x scale.
VZ_DEVICE void scale_backward(const PoolingBlock& of, const PoolArrays& arrays) {
    const u32 board = blockIdx.x;
    const Element *x = arrays.x, *d = arrays.d;
    const f32* params = arrays.params;
    const PoolParts parts(of, arrays.scratch, board, 0), gradient(of, arrays.scratch, board, 1);
    const u64 start = (u64)board * of.squares * of.width;
    for (u32 channel = threadIdx.x; channel < of.outputs; channel += blockDim.x) {
        f32 sum = 0.0f;
        for (u32 square = 0; square < of.squares; square++) {
            const u64 offset = start + (u64)square * of.width + channel;
            sum += to_f32(d[offset]) * to_f32(x[offset]);
        }
        const f32 scale = parts.outputs[channel];
        gradient.outputs[channel] = sum * (scale * (1.0f - scale));
    }
    __syncthreads();
    pool_inner_backward(of, params, parts, gradient);
    for (u32 channel = threadIdx.x; channel < of.width; channel += blockDim.x) {
        const bool scaled = channel < of.outputs;
        const f32 scale = scaled ? parts.outputs[channel] : 0.0f, mean = scaled ? gradient.inputs[channel] * of.per_square : 0.0f;
        for (u32 square = 0; square < of.squares; square++) {
            const u64 offset = start + (u64)square * of.width + channel;
            arrays.out[offset] = from_f32<Element>(to_f32(d[offset]) * scale + mean);
        }
    }
}

// Adds the gradient of the layer's parameters, summed over the boards in order, to `gradient`, which begins with its first. A thread a
// parameter.
VZ_DEVICE void pool_weight_gradient(const PoolingBlock& of, const PoolArrays& arrays) {
    const u32 hidden_weights = of.hidden * of.inputs, outputs_from = hidden_weights + of.hidden;
    const u32 biases_from = outputs_from + of.outputs * of.output_inputs;
    const u32 count = biases_from + (of.effect == ChannelEffect::Scale ? of.outputs : 0);
    for (u32 number = (u32)thread_in_grid(); number < count; number += threads_in_grid()) {
        f32 sum = 0.0f;
        for (u32 board = 0; board < arrays.boards; board++) {
            const PoolParts parts(of, arrays.scratch, board, 0), d(of, arrays.scratch, board, 1);
            if (number < hidden_weights) {
                sum += d.hidden[number / of.inputs] * parts.inputs[number % of.inputs];
            } else if (number < outputs_from) {
                sum += d.hidden[number - hidden_weights];
            } else if (number < biases_from) {
                const u32 at = number - outputs_from;
                sum += d.outputs[at / of.output_inputs] * parts.read(of)[at % of.output_inputs];
            } else {
                sum += d.outputs[number - biases_from];
            }
        }
        arrays.gradient[number] += sum;
    }
}

} // namespace train
