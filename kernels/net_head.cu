// The 1x1 convolutions of a residual network's heads, shaped by VZ_HEAD; included after net.cu.
#include "net/epilogues.cuh"
#include "net/layer.cuh"

typedef net::Layer<ElementType, VZ_HEAD> Head;

// The 1x1 convolutions of both heads: policy channels, then value channels.
VZ_BLOCK_KERNEL(Head::THREADS) head(VZ_BY_VALUE net::LayerBlock args) {
    constexpr int CHANNELS = Dense::ROW_WORDS * ElementType::PER_WORD / SQUARES;
    typedef net::BiasRelu<ElementType, CHANNELS> Pointwise;
    net::run_layer<Head>(net::operands_of<Head>(args), Pointwise{args.bias, args.output});
}
