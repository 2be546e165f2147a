// The blocks of a residual network or perceptron; included after net.cu.
#include "net/epilogues.cuh"
#include "net/layer.cuh"

// The first layer of a block: `output` = relu(sum + bias).
VZ_BLOCK_KERNEL(Tower::THREADS) bias_relu(VZ_BY_VALUE net::LayerBlock args) {
    typedef net::BiasRelu<ElementType, TOWER_CHANNELS> Epilogue;
    net::run_layer<Tower>(net::operands_of<Tower>(args), Epilogue{args.bias, args.output});
}

// The last layer of a block: `stream` += sum + bias; `output` = relu(scale * stream + offset).
VZ_BLOCK_KERNEL(Tower::THREADS) residual_add_bn_relu(VZ_BY_VALUE net::LayerBlock args) {
    typedef net::StreamBnRelu<ElementType, TOWER_CHANNELS, net::StreamUpdate::ADD> ResidualAddBnRelu;
    const ResidualAddBnRelu epilogue = {args.bias, args.scale, args.offset, args.stream, args.output};
    net::run_layer<Tower>(net::operands_of<Tower>(args), epilogue);
}
