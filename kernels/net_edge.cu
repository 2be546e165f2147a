// The blocks and heads of an edge network; included after net.cu. The formulas are in src/model/kind.rs; VZ_VERTEX shapes the layer at
// vertices, and the first VZ_NET_TRIANGLES channels are multiplied around triangles.
#include "net/graph.cuh"

typedef net::Layer<ElementType, VZ_VERTEX> Vertex;
static_assert(SQUARES == net::EDGES && Vertex::ROW_WORDS == Tower::ROW_WORDS, "rows are the edges of K_n");

// The message of every vertex to its edges, in f32: `input` [boards, EDGES, ..] -> `output` [boards, VERTICES, TOWER_CHANNELS].
VZ_BLOCK_KERNEL(Vertex::THREADS) vertices(VZ_BY_VALUE net::LayerBlock args) {
    net::run_layer<Vertex, net::VertexMeanInput>(net::operands_of<Vertex>(args), net::Sum<net::F32, TOWER_CHANNELS>{args.output});
}

VZ_BLOCK_KERNEL(Tower::THREADS) edges(VZ_BY_VALUE net::LayerBlock args) {
    typedef net::VertexAddRelu<ElementType, TOWER_CHANNELS> Epilogue;
    net::run_layer<Tower>(net::operands_of<Tower>(args), Epilogue{args.bias, args.messages, args.output});
}

// The last layer of a block, of products around triangles: `stream` += sum + bias; `output` = relu(scale * stream + offset).
VZ_BLOCK_KERNEL(Tower::THREADS) residual_add_bn_relu(VZ_BY_VALUE net::LayerBlock args) {
    typedef net::StreamBnRelu<ElementType, TOWER_CHANNELS, net::StreamUpdate::ADD> ResidualAddBnRelu;
    const ResidualAddBnRelu epilogue = {args.bias, args.scale, args.offset, args.stream, args.output};
    net::run_layer<Tower, net::TriangleMixInput<VZ_NET_TRIANGLES>>(net::operands_of<Tower>(args), epilogue);
}

// One logit an edge, `weights` [TOWER_CHANNELS] times its channels. A thread an edge.
VZ_KERNEL logits(const u32* input, const f32* weights, f32* out, VZ_BY_VALUE net::BoardRange boards) {
    const u64 row = thread_in_grid();
    if (row >= net::Boards(boards).rows<Tower>()) return;
    f32 sum = 0.0f;
    for (int word = 0; word < Tower::ROW_WORDS; word += 4) {
        const net::WordQuad<ElementType> x = net::read_quad<ElementType>(input + row * Tower::ROW_WORDS + word);
VZ_UNROLL
        for (int i = 0; i < x.SIZE; i++) {
            sum = net::fused_multiply_add(x.at[i], weights[word * ElementType::PER_WORD + i], sum);
        }
    }
    out[row] = sum;
}

// The mean over a board's edges: `input` [boards, EDGES, ROW_WORDS] -> `out` [boards, ROW_WORDS]. A thread a word.
VZ_KERNEL mean_of_edges(const u32* input, u32* out, VZ_BY_VALUE net::BoardRange boards) {
    const u64 at = thread_in_grid(), board = at / Tower::ROW_WORDS;
    if (board >= net::Boards(boards).num()) return;
    const u32* words = input + board * net::EDGES * Tower::ROW_WORDS + at % Tower::ROW_WORDS;
    f32 sums[ElementType::PER_WORD] = {};
    for (int edge = 0; edge < net::EDGES; edge++) {
        const u32 word = words[edge * Tower::ROW_WORDS];
VZ_UNROLL
        for (int part = 0; part < ElementType::PER_WORD; part++) sums[part] += ElementType::number(word, part);
    }
VZ_UNROLL
    for (int part = 0; part < ElementType::PER_WORD; part++) sums[part] *= 1.0f / (f32)net::EDGES;
    out[at] = net::pack_word<ElementType>(sums);
}
