// The blocks and heads of an edge network; included after net.cu. The formulas are in src/model/kind.rs; VZ_VERTEX shapes the layer at
// vertices, and the first VZ_NET_TRIANGLES channels are multiplied around triangles.
#include "net/graph.cuh"

typedef net::Layer<ElementType, VZ_VERTEX> Vertex;
static_assert(SQUARES == net::EDGES && Vertex::ROW_WORDS == Tower::ROW_WORDS, "rows are the edges of K_n");

// The message of every vertex to its edges, in f32: `input` [boards, EDGES, ..] -> `output` [boards, VERTICES, TOWER_CHANNELS].
VZ_BLOCK_KERNEL(Vertex::THREADS) vertices(const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, u32* output) {
    typedef net::Plain<net::F32, TOWER_CHANNELS, net::Bias::NONE, net::Residual::NONE, net::Relu::NONE> Message;
    net::run_layer<Vertex, net::MeanAtVertex>(
        {input, weights, (VZ_BOARDS).rows<Vertex>()}, Message{nullptr, nullptr, output}
    );
}

VZ_BLOCK_KERNEL(Tower::THREADS) edges(
    const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, const f32* bias, const f32* at_vertices, u32* output
) {
    const u32 rows = (VZ_BOARDS).rows<Tower>();
    net::run_layer<Tower>({input, weights, rows}, net::WithEnds<ElementType, TOWER_CHANNELS>{bias, at_vertices, output});
}

// The last layer of a block, of products around triangles: `stream` += sum + bias; `output` = relu(scale * stream + offset).
VZ_BLOCK_KERNEL(Tower::THREADS) residual_add_bn_relu(
    const u32* input, const u32* weights, VZ_BOARDS_ARGUMENTS, const f32* bias, const f32* scale, const f32* offset,
    f32* stream, u32* output
) {
    typedef net::IntoStream<ElementType, TOWER_CHANNELS, net::Stream::ACCUMULATE> ResidualAddBnRelu;
    typedef net::AroundTriangles<VZ_NET_TRIANGLES> Mixed;
    const u32 rows = (VZ_BOARDS).rows<Tower>();
    net::run_layer<Tower, Mixed>({input, weights, rows}, ResidualAddBnRelu{bias, scale, offset, stream, output});
}

// One logit an edge, `weights` [TOWER_CHANNELS] times its channels. A thread an edge.
VZ_KERNEL logits(const u32* input, const f32* weights, f32* out, VZ_BOARDS_ARGUMENTS) {
    const u64 row = thread_in_grid();
    if (row >= (VZ_BOARDS).rows<Tower>()) return;
    f32 sum = 0.0f;
    for (int word = 0; word < Tower::ROW_WORDS; word += 4) {
        const net::Unit<ElementType> x = net::read_unit<ElementType>(input + row * Tower::ROW_WORDS + word);
VZ_UNROLL
        for (int i = 0; i < x.SIZE; i++) {
            sum = net::fused_multiply_add(x.at[i], weights[word * ElementType::PER_WORD + i], sum);
        }
    }
    out[row] = sum;
}

// The mean over a board's edges: `input` [boards, EDGES, ROW_WORDS] -> `out` [boards, ROW_WORDS]. A thread a word.
VZ_KERNEL mean_of_edges(const u32* input, u32* out, VZ_BOARDS_ARGUMENTS) {
    const u64 at = thread_in_grid(), board = at / Tower::ROW_WORDS;
    if (board >= (VZ_BOARDS).num()) return;
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
