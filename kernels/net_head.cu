// What a network on boards has besides net.cu, which is included before: the convolutions of its heads, shaped by VZ_HEAD.
#include "net/epilogues.cuh"
#include "net/layer.cuh"

typedef net::Layer<ElementType, VZ_HEAD> Head;

// The 1x1 convolutions of both heads: policy channels, then value channels.
VZ_BLOCK_KERNEL(Head::THREADS) head(const u32* input, const u32* weights, u32 rows, const f32* bias, u32* output) {
    constexpr int CHANNELS = Dense::ROW_WORDS * ElementType::PER_WORD / SQUARES;
    typedef net::Plain<ElementType, CHANNELS, net::Bias::ADDED, net::Residual::NONE, net::Relu::APPLIED> Pointwise;
    net::run_layer<Head>({input, weights, rows}, Pointwise{bias, nullptr, output});
}
