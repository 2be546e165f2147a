#include "net/epilogues.cuh"
#include "net/layer.cuh"

typedef net::Layer<net::VZ_ELEMENT_TYPE, VZ_LAYER> Layer;

VZ_BLOCK_KERNEL(Layer::THREADS) plain(const u32* input, const u32* weights, u32 rows, u32* output) {
    typedef net::Sum<net::VZ_ELEMENT_TYPE, VZ_CHANNELS> Sum;
    net::run_layer<Layer>({input, weights, rows}, Sum{output});
}

VZ_BLOCK_KERNEL(Layer::THREADS) bias_relu(const u32* input, const u32* weights, u32 rows, const f32* bias, u32* output) {
    typedef net::BiasRelu<net::VZ_ELEMENT_TYPE, VZ_CHANNELS> BiasRelu;
    net::run_layer<Layer>({input, weights, rows}, BiasRelu{bias, output});
}

// [outputs, 9, inputs] -> the layer's order, by the kernels' own index map. One block.
VZ_KERNEL pack(const f32* from, u16* to, u32 outputs, u32 inputs) {
    for (u32 i = threadIdx.x; i < outputs * 9 * inputs; i += blockDim.x) {
        const int output = (int)(i / (9 * inputs)), tap = (int)(i / inputs % 9), input = (int)(i % inputs);
        const u64 word = net::weight_offset<Layer>(output, tap, input / 2);
        to[2 * word + input % 2] = (u16)net::VZ_ELEMENT_TYPE::bits(from[i]);
    }
}
