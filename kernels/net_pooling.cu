// Pooling layers of a residual network, a bias or a scale of each channel out of a whole board; included after net_tower.cu. Twin of
// src/net/pooling.rs, whose order of sums this has. The convolution before such a layer writes 32-bit floats, `pool` computes the bias or
// scale, and `pool_relu` or `pool_residual_add` turns both into activations.
#include "math.cuh"
#include "net/epilogues.cuh"
#include "net/layer.cuh"
#include "pooling/layout.cuh"

// A convolution of the tower whose sums are read by a pooling layer: [rows, TOWER_CHANNELS].
VZ_BLOCK_KERNEL(Tower::THREADS) conv_f32(VZ_BY_VALUE net::LayerBlock args) {
    typedef net::BiasResidualRelu<net::F32, TOWER_CHANNELS, net::Bias::ADDED, net::Residual::NONE, net::Relu::NONE> BiasF32;
    net::run_layer<Tower>(net::operands_of<Tower>(args), BiasF32{args.bias, nullptr, args.output});
}

using pooling::ChannelEffect;
using pooling::PoolingBlock;
using pooling::PoolStatistics;

// out[o] = bias[o] + sum over i of x[i] weights[i outputs + o], by the threads of a block.
VZ_DEVICE void pool_linear(const f32* x, u32 inputs, const f32* weights, const f32* bias, u32 outputs, f32* out) {
    for (u32 o = threadIdx.x; o < outputs; o += blockDim.x) {
        f32 sum = bias == nullptr ? 0.0f : bias[o];
        for (u32 i = 0; i < inputs; i++) sum += x[i] * weights[(u64)i * outputs + o];
        out[o] = sum;
    }
}

// The statistics, the hidden units and the biases or scales of a board. One block a board.
VZ_KERNEL pool(VZ_BY_VALUE PoolingBlock layer, VZ_BY_VALUE net::PoolArrays arrays) {
    const u64 board = blockIdx.x;
    if (board >= net::Boards(arrays.boards).num()) return;
    const f32* params = arrays.params;
    f32 *inputs = arrays.values + board * layer.values_per_board, *units = inputs + layer.inputs;
    for (u32 channel = threadIdx.x; channel < layer.pooled; channel += blockDim.x) {
        const f32* from = arrays.x + board * SQUARES * TOWER_CHANNELS + channel;
        f32 sum = 0.0f, largest = 0.0f;
        for (int square = 0; square < SQUARES; square++) {
            f32 number = from[square * TOWER_CHANNELS];
            if (layer.statistics == PoolStatistics::ReluMeanMax) number = number < 0.0f ? 0.0f : number;
            sum += number;
            largest = number > largest ? number : largest;
        }
        const f32 mean = sum * layer.per_square;
        inputs[channel] = mean;
        if (layer.statistics == PoolStatistics::ReluMeanMax) {
            inputs[layer.pooled + channel] = mean * layer.board_factor;
            inputs[2 * layer.pooled + channel] = largest;
        }
    }
    __syncthreads();
    if (layer.hidden > 0) {
        const f32* bias = params + (u64)layer.inputs * layer.hidden;
        pool_linear(inputs, layer.inputs, params, bias, layer.hidden, units);
        __syncthreads();
        for (u32 unit = threadIdx.x; unit < layer.hidden; unit += blockDim.x) units[unit] = units[unit] < 0.0f ? 0.0f : units[unit];
        __syncthreads();
        params = bias + layer.hidden;
    }
    const f32* read = layer.hidden > 0 ? units : inputs;
    const f32* bias = layer.effect == ChannelEffect::Scale ? params + (u64)layer.output_inputs * layer.outputs : nullptr;
    f32* out = arrays.outputs + board * layer.values_per_board;
    pool_linear(read, layer.output_inputs, params, bias, layer.outputs, out);
    __syncthreads();
    if (layer.effect != ChannelEffect::Scale) return;
    for (u32 o = threadIdx.x; o < layer.outputs; o += blockDim.x) {
        f32& scale = out[o];
        scale = 1.0f / (1.0f + math::exp(-scale));
    }
}

// x with the layer's bias or scale of its channel, which `pool` wrote to `out`.
VZ_DEVICE f32 pooled_number(f32 x, const PoolingBlock& layer, const f32* out, u64 board, u32 channel) {
    if (channel < layer.first || channel - layer.first >= layer.outputs) return x;
    const f32 y = out[board * layer.values_per_board + channel - layer.first];
    return layer.effect == ChannelEffect::Scale ? x * y : x + y;
}

// output = relu of the pooling layer's result. A thread a word.
VZ_KERNEL pool_relu(VZ_BY_VALUE PoolingBlock layer, VZ_BY_VALUE net::PoolArrays arrays) {
    const u64 word = thread_in_grid(), row = word / Tower::ROW_WORDS;
    if (row >= net::Boards(arrays.boards).rows<Tower>()) return;
    f32 numbers[ElementType::PER_WORD];
VZ_UNROLL
    for (int part = 0; part < ElementType::PER_WORD; part++) {
        const u32 channel = (u32)(word % Tower::ROW_WORDS) * ElementType::PER_WORD + part;
        const f32 number = arrays.x[row * TOWER_CHANNELS + channel];
        const f32 y = pooled_number(number, layer, arrays.outputs, row / SQUARES, channel);
        numbers[part] = net::relu(y);
    }
    arrays.output[word] = net::pack_word<ElementType>(numbers);
}

// stream += the pooling layer's result; output = relu(scale * stream + offset). A thread a word.
VZ_KERNEL pool_residual_add(VZ_BY_VALUE PoolingBlock layer, VZ_BY_VALUE net::PoolArrays arrays) {
    const u64 word = thread_in_grid(), row = word / Tower::ROW_WORDS;
    if (row >= net::Boards(arrays.boards).rows<Tower>()) return;
    f32 numbers[ElementType::PER_WORD];
VZ_UNROLL
    for (int part = 0; part < ElementType::PER_WORD; part++) {
        const u32 channel = (u32)(word % Tower::ROW_WORDS) * ElementType::PER_WORD + part;
        const u64 at = row * TOWER_CHANNELS + channel;
        const f32 y = pooled_number(arrays.x[at], layer, arrays.outputs, row / SQUARES, channel);
        const f32 sum = arrays.stream[at] + y;
        arrays.stream[at] = sum;
        const f32 z = net::fused_multiply_add(arrays.scale[channel], sum, arrays.offset[channel]);
        numbers[part] = net::relu(z);
    }
    arrays.output[word] = net::pack_word<ElementType>(numbers);
}
