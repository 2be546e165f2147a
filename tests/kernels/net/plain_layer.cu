#include "net/epilogues.cuh"
#include "net/layer.cuh"

typedef net::Layer<net::VZ_ELEMENT_TYPE, VZ_LAYER> Layer;

VZ_BLOCK_KERNEL(Layer::THREADS) plain(const u32* input, const u32* weights, u32 rows, u32* output) {
    typedef net::BiasResidualRelu<net::VZ_ELEMENT_TYPE, VZ_CHANNELS, net::Bias::NONE, net::Residual::NONE, net::Relu::NONE> Plain;
    net::run_layer<Layer>({input, weights, rows}, Plain{nullptr, nullptr, output});
}

VZ_BLOCK_KERNEL(Layer::THREADS) full(
    const u32* input, const u32* weights, u32 rows, const f32* bias, const u32* residual, u32* output
) {
    typedef net::BiasResidualRelu<net::VZ_ELEMENT_TYPE, VZ_CHANNELS, net::Bias::ADDED, net::Residual::ADDED, net::Relu::APPLIED> Plain;
    net::run_layer<Layer>({input, weights, rows}, Plain{bias, residual, output});
}

// [outputs, 9, inputs] -> the layer's order, by the kernels' own index map. One block.
VZ_KERNEL pack(const f32* from, u16* to, u32 outputs, u32 inputs) {
    for (u32 i = threadIdx.x; i < outputs * 9 * inputs; i += blockDim.x) {
        const int output = (int)(i / (9 * inputs)), tap = (int)(i / inputs % 9), input = (int)(i % inputs);
        const u64 word = net::weight_offset<Layer>(output, tap, input / 2);
        to[2 * word + input % 2] = (u16)net::VZ_ELEMENT_TYPE::bits(from[i]);
    }
}
