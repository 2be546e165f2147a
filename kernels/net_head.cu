// The 1x1 convolutions of a residual network's heads, shaped by VZ_HEAD; included after net.cu.
#include "net/epilogues.cuh"
#include "net/layer.cuh"

typedef net::Layer<ElementType, VZ_HEAD> Head;

// The 1x1 convolutions of both heads: policy channels, then value channels.
VZ_BLOCK_KERNEL(Head::THREADS) head(
    const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, const f32* bias, u32* output
) {
    constexpr int CHANNELS = Dense::ROW_WORDS * ElementType::PER_WORD / SQUARES;
    typedef net::Plain<ElementType, CHANNELS, net::Bias::ADDED, net::Residual::NONE, net::Relu::APPLIED> Pointwise;
    net::run_layer<Head>({input, weights, (VZ_BOARDS).rows<Head>()}, Pointwise{bias, nullptr, output});
}
