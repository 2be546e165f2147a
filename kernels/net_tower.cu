// The blocks of a residual network or perceptron; included after net.cu.
#include "net/epilogues.cuh"
#include "net/layer.cuh"

// The first layer of a block: `output` = relu(sum + bias).
VZ_BLOCK_KERNEL(Tower::THREADS) bias_relu(
    const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, const f32* bias, u32* output
) {
    typedef net::Plain<ElementType, TOWER_CHANNELS, net::Bias::ADDED, net::Residual::NONE, net::Relu::APPLIED> BiasRelu;
    net::run_layer<Tower>({input, weights, (VZ_BOARDS).rows<Tower>()}, BiasRelu{bias, nullptr, output});
}

// The last layer of a block: `stream` += sum + bias; `output` = relu(scale * stream + offset).
VZ_BLOCK_KERNEL(Tower::THREADS) residual_add_bn_relu(
    const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, const f32* bias, const f32* scale, const f32* offset,
    f32* stream, u32* output
) {
    typedef net::IntoStream<ElementType, TOWER_CHANNELS, net::Stream::ACCUMULATE> ResidualAddBnRelu;
    net::run_layer<Tower>({input, weights, (VZ_BOARDS).rows<Tower>()}, ResidualAddBnRelu{bias, scale, offset, stream, output});
}
