// The blocks of a residual network or perceptron; included after net.cu.
#include "net/epilogues.cuh"
#include "net/layer.cuh"

VZ_BLOCK_KERNEL(Tower::THREADS) inner(
    const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, const f32* bias, u32* output
) {
    typedef net::Plain<ElementType, TOWER_CHANNELS, net::Bias::ADDED, net::Residual::NONE, net::Relu::APPLIED> Inner;
    net::run_layer<Tower>({input, weights, (VZ_BOARDS).rows<Tower>()}, Inner{bias, nullptr, output});
}

VZ_BLOCK_KERNEL(Tower::THREADS) leave(
    const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, const f32* bias, const f32* scale, const f32* offset,
    f32* stream, u32* output
) {
    typedef net::IntoStream<ElementType, TOWER_CHANNELS, net::Stream::GOES_ON> Leave;
    net::run_layer<Tower>({input, weights, (VZ_BOARDS).rows<Tower>()}, Leave{bias, scale, offset, stream, output});
}
