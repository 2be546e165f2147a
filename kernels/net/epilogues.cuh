// The epilogues of layers. Arrays by square have rows of CHANNELS elements, a multiple of four; arrays by channel have entries for all
// channels of all column blocks. `read` loads what `store` needs of arrays by square; `store` may write to the same arrays.
#pragma once
#include "net/mma.cuh"

namespace net {

// The `Read` of an epilogue that reads no array by square.
struct Nothing {};

// output = relu(sum + bias).
template <class ElementType, int CHANNELS>
struct BiasRelu {
    const f32* bias; // [channels]
    u32* output; // [rows, CHANNELS]

    typedef Four Terms;
    VZ_DEVICE Terms terms(int channel) const { return read_four(bias + channel); }
    typedef Nothing Read;
    VZ_DEVICE Read read(u64, int) const { return {}; }
    VZ_DEVICE void store(const Terms& terms, const Read&, u64 row, int channel, Four sum) const {
        if (channel >= CHANNELS) return;
VZ_UNROLL
        for (int e = 0; e < 4; e++) sum.at[e] = relu(sum.at[e] + terms.at[e]);
        write_four<ElementType>(output, row * CHANNELS + channel, sum);
    }
};

// output = sum.
template <class ElementType, int CHANNELS>
struct Sum {
    u32* output; // [rows, CHANNELS]

    typedef Nothing Terms;
    VZ_DEVICE Terms terms(int) const { return {}; }
    typedef Nothing Read;
    VZ_DEVICE Read read(u64, int) const { return {}; }
    VZ_DEVICE void store(const Terms&, const Read&, u64 row, int channel, const Four& sum) const {
        if (channel < CHANNELS) write_four<ElementType>(output, row * CHANNELS + channel, sum);
    }
};

// How a layer changes the residual stream.
enum class StreamUpdate { WRITE, ADD };

// stream = sum + bias (WRITE) or stream += sum + bias (ADD), in f32; output = relu(scale * stream + offset), the BatchNorm that
// reads the residual stream. Twin of `Epilogue::StemBnRelu` and `ResidualAddBnRelu` in src/net/cpu/tile.rs.
template <class ElementType, int CHANNELS, StreamUpdate UPDATE>
struct StreamBnRelu {
    const f32* bias; // [channels]
    const f32* scale; // [channels]
    const f32* offset; // [channels]
    f32* stream; // [rows, CHANNELS]
    u32* output; // [rows, CHANNELS]

    struct Terms {
        Four bias, scale, offset;
    };
    VZ_DEVICE Terms terms(int channel) const {
        return {read_four(bias + channel), read_four(scale + channel), read_four(offset + channel)};
    }
    typedef Four Read;
    VZ_DEVICE Read read(u64 row, int channel) const {
        if (UPDATE == StreamUpdate::WRITE || channel >= CHANNELS) return {};
        return read_four(stream + row * CHANNELS + channel);
    }
    VZ_DEVICE void store(const Terms& terms, const Read& before, u64 row, int channel, Four sum) const {
        if (channel >= CHANNELS) return;
        const u64 at_stream = row * CHANNELS + channel;
        Four out;
VZ_UNROLL
        for (int e = 0; e < 4; e++) {
            sum.at[e] += terms.bias.at[e];
            if (UPDATE == StreamUpdate::ADD) sum.at[e] += before.at[e];
            out.at[e] = relu(fused_multiply_add(terms.scale.at[e], sum.at[e], terms.offset.at[e]));
        }
        write_four(stream + at_stream, sum);
        write_four<ElementType>(output, at_stream, out);
    }
};

// The linear layers of both heads as one: the first `NUM_ACTIONS` outputs are logits, the next `NUM_HIDDEN` the hidden units
// of the value head, through a ReLU.
template <int NUM_ACTIONS, int NUM_HIDDEN>
struct Heads {
    const f32* bias; // [channels]
    f32* logits; // [slots, NUM_ACTIONS]
    f32* hidden; // [slots, NUM_HIDDEN]

    typedef Four Terms;
    VZ_DEVICE Terms terms(int channel) const { return read_four(bias + channel); }
    typedef Nothing Read;
    VZ_DEVICE Read read(u64, int) const { return {}; }
    VZ_DEVICE void store(const Terms& terms, const Read&, u64 slot, int channel, Four sum) const {
VZ_UNROLL
        for (int e = 0; e < 4; e++) {
            const int output = channel + e;
            const f32 x = sum.at[e] + terms.at[e];
            if (output < NUM_ACTIONS) {
                logits[slot * NUM_ACTIONS + output] = x;
            } else if (output < NUM_ACTIONS + NUM_HIDDEN) {
                hidden[slot * NUM_HIDDEN + output - NUM_ACTIONS] = relu(x);
            }
        }
    }
};

} // namespace net
