// Pooling layers of a residual network, a bias or a scale of each channel out of a whole board; included after net_tower.cu. Twin of
// src/net/pooling.rs, whose order of sums this has. The convolution before such a layer writes 32-bit floats, `pool` computes the bias or
// scale, and `pool_inner` or `pool_leave` turns both into activations.
#include "math.cuh"
#include "net/epilogues.cuh"
#include "net/layer.cuh"

// A convolution of the tower whose sums are read by a pooling layer: [rows, TOWER_CHANNELS].
VZ_BLOCK_KERNEL(Tower::THREADS) numbers(
    const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, const f32* bias, u32* output
) {
    typedef net::Plain<net::F32, TOWER_CHANNELS, net::Bias::ADDED, net::Residual::NONE, net::Relu::NONE> Numbers;
    net::run_layer<Tower>({input, weights, (VZ_BOARDS).rows<Tower>()}, Numbers{bias, nullptr, output});
}

// Twins of `PoolStatistics` and `Effect` in src/model/pooling.rs.
enum PoolStatistics { MEAN = 0, RELU_MEAN_MAX = 1 };
enum PoolEffect { ADDED = 0, SCALED = 1 };

// out[o] = bias[o] + sum over i of x[i] weights[i outputs + o], by the threads of a block.
VZ_DEVICE void pool_linear(const f32* x, u32 inputs, const f32* weights, const f32* bias, u32 outputs, f32* out) {
    for (u32 o = threadIdx.x; o < outputs; o += blockDim.x) {
        f32 sum = bias == nullptr ? 0.0f : bias[o];
        for (u32 i = 0; i < inputs; i++) sum += x[i] * weights[(u64)i * outputs + o];
        out[o] = sum;
    }
}

// The biases or scales [boards, scratch_len], the first `outputs` of each row, of the numbers x [boards, SQUARES, TOWER_CHANNELS]. `params` are the
// hidden layer's weight [inputs, hidden] and bias, where `hidden` is not 0, the output's weight, and its bias if it is a scale.
// `scratch` [boards, scratch_len] has the statistics and the hidden units. One block a board.
VZ_KERNEL pool(
    const f32* x, const f32* params, u32 pooled, u32 statistics, u32 hidden, u32 outputs, u32 effect, f32 factor, u32 scratch_len,
    f32* scratch, f32* out, VZ_BOARDS_ARGUMENTS
) {
    const u64 board = blockIdx.x;
    if (board >= (VZ_BOARDS).num()) return;
    f32 *inputs = scratch + board * scratch_len, *units = inputs + (statistics == MEAN ? 1 : 3) * pooled;
    const u32 num_inputs = (u32)(units - inputs);
    const f32 share = 1.0f / (f32)SQUARES;
    for (u32 channel = threadIdx.x; channel < pooled; channel += blockDim.x) {
        const f32* from = x + board * SQUARES * TOWER_CHANNELS + channel;
        f32 sum = 0.0f, most = 0.0f;
        for (int square = 0; square < SQUARES; square++) {
            f32 number = from[square * TOWER_CHANNELS];
            if (statistics == RELU_MEAN_MAX) number = number < 0.0f ? 0.0f : number;
            sum += number;
            most = number > most ? number : most;
        }
        const f32 mean = sum * share;
        inputs[channel] = mean;
        if (statistics == RELU_MEAN_MAX) {
            inputs[pooled + channel] = mean * factor;
            inputs[2 * pooled + channel] = most;
        }
    }
    __syncthreads();
    if (hidden > 0) {
        const f32* bias = params + (u64)num_inputs * hidden;
        pool_linear(inputs, num_inputs, params, bias, hidden, units);
        __syncthreads();
        for (u32 unit = threadIdx.x; unit < hidden; unit += blockDim.x) units[unit] = units[unit] < 0.0f ? 0.0f : units[unit];
        __syncthreads();
        params = bias + hidden;
    }
    const f32* read = hidden > 0 ? units : inputs;
    const u32 num_read = hidden > 0 ? hidden : num_inputs;
    const f32* bias = effect == SCALED ? params + (u64)num_read * outputs : nullptr;
    pool_linear(read, num_read, params, bias, outputs, out + board * scratch_len);
    __syncthreads();
    if (effect != SCALED) return;
    for (u32 o = threadIdx.x; o < outputs; o += blockDim.x) {
        f32& scale = out[board * scratch_len + o];
        scale = 1.0f / (1.0f + math::exp(-scale));
    }
}

// A pooling layer's result for one number: a bias or a scale from channel `first` on. `pools` is what `pool` wrote.
VZ_DEVICE f32 pooled_number(f32 x, const f32* pools, u32 scratch_len, u32 first, u32 outputs, u32 effect, u64 board, u32 channel) {
    if (channel < first || channel - first >= outputs) return x;
    const f32 of = pools[board * scratch_len + channel - first];
    return effect == SCALED ? x * of : x + of;
}

// output = relu of the pooling layer's result. A thread a word.
VZ_KERNEL pool_inner(
    const f32* x, const f32* pools, u32 scratch_len, u32 first_channel, u32 outputs, u32 effect, u32* output, VZ_BOARDS_ARGUMENTS
) {
    const u64 word = thread_in_grid(), row = word / Tower::ROW_WORDS;
    if (row >= (VZ_BOARDS).rows<Tower>()) return;
    u32 packed = 0;
VZ_UNROLL
    for (int part = 0; part < ElementType::PER_WORD; part++) {
        const u32 channel = (u32)(word % Tower::ROW_WORDS) * ElementType::PER_WORD + part;
        const f32 number = x[row * TOWER_CHANNELS + channel];
        const f32 y = pooled_number(number, pools, scratch_len, first_channel, outputs, effect, row / SQUARES, channel);
        packed |= ElementType::bits(net::relu(y)) << 16 * part;
    }
    output[word] = packed;
}

// stream += the pooling layer's result; output = relu(scale * stream + offset). A thread a word.
VZ_KERNEL pool_leave(
    const f32* x, const f32* pools, u32 scratch_len, u32 first_channel, u32 outputs, u32 effect, const f32* scale, const f32* offset,
    f32* stream, u32* output, VZ_BOARDS_ARGUMENTS
) {
    const u64 word = thread_in_grid(), row = word / Tower::ROW_WORDS;
    if (row >= (VZ_BOARDS).rows<Tower>()) return;
    u32 packed = 0;
VZ_UNROLL
    for (int part = 0; part < ElementType::PER_WORD; part++) {
        const u32 channel = (u32)(word % Tower::ROW_WORDS) * ElementType::PER_WORD + part;
        const u64 place = row * TOWER_CHANNELS + channel;
        const f32 y = pooled_number(x[place], pools, scratch_len, first_channel, outputs, effect, row / SQUARES, channel);
        const f32 sum = stream[place] + y;
        stream[place] = sum;
        packed |= ElementType::bits(net::relu(net::fused_multiply_add(scale[channel], sum, offset[channel]))) << 16 * part;
    }
    output[word] = packed;
}
