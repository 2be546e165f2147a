// Messages between the edges of K_n in an edge network: means at vertices, products around triangles, sums over an edge's endpoints.
// The first two are computed while a layer fetches its input, the last in the epilogue, so that none is written to memory and read
// again: a block of the network is three launches that read its activations. Rows are edges in lexicographic
// order (0-1, 0-2, .., 1-2, ..), board by board; sums are in f32 and have one order. Twin of src/net/edge_messages.rs; VZ_NET_VERTICES is n.
//
// A row whose triangles are multiplied reads 2 (n - 2) others. They are rows of the same board, which the same blocks of threads
// have just read: C n (n - 1) bytes a board in 16 bits, 11 KiB for n = 14 and C = 64, come from L1.
#pragma once
#include "complete_graph.cuh"
#include "net/epilogues.cuh"
#include "net/layer.cuh"

namespace net {

VZ_DEVICE constexpr CompleteGraph graph() { return {VZ_NET_VERTICES}; }
constexpr int VERTICES = VZ_NET_VERTICES, EDGES = graph().edges();
static_assert(VERTICES >= 3, "there is a triangle");

// The endpoints (i, j), i < j, of every edge.
struct Ends {
    u8 of[EDGES][2];
};
VZ_DEVICE constexpr Ends all_ends() {
    Ends ends = {};
    int edge = 0;
    for (int i = 0; i < VERTICES; i++) {
        for (int j = i + 1; j < VERTICES; j++, edge++) {
            ends.of[edge][0] = (u8)i;
            ends.of[edge][1] = (u8)j;
        }
    }
    return ends;
}
VZ_TABLE Ends ENDS = all_ends();

// The elements of four words.
template <class ElementType>
struct WordQuad {
    static constexpr int SIZE = 4 * ElementType::PER_WORD;
    f32 at[SIZE];
};

// The unit that begins at `from`, a multiple of 16 bytes.
template <class ElementType>
VZ_DEVICE WordQuad<ElementType> read_quad(const u32* from) {
#ifdef __CUDACC__
    const uint4 all = *(const uint4*)from;
    const u32 words[4] = {all.x, all.y, all.z, all.w};
#else
    u32 words[4];
    for (int i = 0; i < 4; i++) words[i] = from[i];
#endif
    WordQuad<ElementType> out;
VZ_UNROLL
    for (int i = 0; i < out.SIZE; i++) out.at[i] = ElementType::number(words[i / ElementType::PER_WORD], i % ElementType::PER_WORD);
    return out;
}

template <class ElementType>
VZ_DEVICE void store_quad(SmemAddr to, const WordQuad<ElementType>& x) {
    u32 words[4];
VZ_UNROLL
    for (int i = 0; i < 4; i++) words[i] = pack_word<ElementType>(x.at + i * ElementType::PER_WORD);
    store_four_words(to, words[0], words[1], words[2], words[3]);
}

// Input rows are the vertices of all boards, each the mean over the n - 1 edges at it; `operands.input` has the edges.
struct VertexMeanInput {
    template <class L>
    VZ_DEVICE static int made(int) {
        return 0; // all of them alike
    }
    template <class L>
    VZ_DEVICE static void load_async(const Operands& operands, SmemAddr to, u32 square, int word, Source source) {
        typedef typename L::ElementType ElementType;
        constexpr f32 SCALE = 1.0f / (f32)(VERTICES - 1);
        if (source == Source::ZEROS) return DirectInput::load_async<L>(operands, to, square, word, source);
        const int vertex = (int)(square % VERTICES);
        const u32* edges = operands.input + (u64)(square / VERTICES) * EDGES * L::ROW_WORDS + word;
        WordQuad<ElementType> sum = {};
VZ_UNROLL
        for (int k = 0; k < VERTICES - 1; k++) {
            const int other = k + (k >= vertex ? 1 : 0);
            const WordQuad<ElementType> x = read_quad<ElementType>(edges + graph().edge(vertex, other) * L::ROW_WORDS);
VZ_UNROLL
            for (int i = 0; i < sum.SIZE; i++) sum.at[i] += x.at[i];
        }
VZ_UNROLL
        for (int i = 0; i < sum.SIZE; i++) sum.at[i] *= SCALE;
        store_quad<ElementType>(to, sum);
    }
};

// Input row (i, j) has in its first CHANNELS channels the sum over k of (i, k) (j, k), divided by the root of n - 2; the others are
// copied.
template <int CHANNELS>
struct TriangleMixInput {
    template <class L>
    VZ_DEVICE static int made(int chunk) {
        constexpr int NUMBERS = WordQuad<typename L::ElementType>::SIZE, UNITS = L::K_TILE_WORDS / 4;
        return maximum(0, minimum(UNITS, (CHANNELS + NUMBERS - 1) / NUMBERS - chunk * UNITS));
    }
    template <class L>
    VZ_DEVICE static void load_async(const Operands& operands, SmemAddr to, u32 square, int word, Source source) {
        typedef typename L::ElementType ElementType;
        const int channel = word * ElementType::PER_WORD;
        if (source == Source::ZEROS || channel >= CHANNELS) return DirectInput::load_async<L>(operands, to, square, word, source);
        const u32 edge = square % EDGES;
        const u32* edges = operands.input + (u64)(square - edge) * L::ROW_WORDS + word;
        const int i = ENDS.of[edge][0], j = ENDS.of[edge][1];
        WordQuad<ElementType> sum = {};
VZ_UNROLL
        for (int index = 0; index < VERTICES - 2; index++) {
            const int above_i = index + (index >= i ? 1 : 0), k = above_i + (above_i >= j ? 1 : 0);
            const WordQuad<ElementType> x = read_quad<ElementType>(edges + graph().edge(i, k) * L::ROW_WORDS);
            const WordQuad<ElementType> y = read_quad<ElementType>(edges + graph().edge(j, k) * L::ROW_WORDS);
VZ_UNROLL
            for (int m = 0; m < sum.SIZE; m++) sum.at[m] = fused_multiply_add(x.at[m], y.at[m], sum.at[m]);
        }
        const f32 scale = 1.0f / square_root((f32)(VERTICES - 2));
        WordQuad<ElementType> out = read_quad<ElementType>(edges + edge * L::ROW_WORDS);
VZ_UNROLL
        for (int m = 0; m < out.SIZE; m++) out.at[m] = channel + m < CHANNELS ? sum.at[m] * scale : out.at[m];
        store_quad<ElementType>(to, out);
    }
};

// output = relu(sum + bias + the messages of both endpoints): an edge network's layer between a block's normalisations.
template <class ElementType, int CHANNELS>
struct VertexAddRelu {
    const f32* bias; // [channels]
    const f32* messages; // [boards, VERTICES, CHANNELS]
    u32* output; // [rows, CHANNELS]

    typedef Four Terms;
    VZ_DEVICE Terms terms(int channel) const { return read_four(bias + channel); }
    // The sum of both messages.
    typedef Four Read;
    VZ_DEVICE Read read(u64 row, int channel) const {
        if (channel >= CHANNELS) return {};
        const u32 board = (u32)row / EDGES, edge = (u32)row % EDGES;
        const f32* vertices = messages + (u64)board * VERTICES * CHANNELS + channel;
        const Four a = read_four(vertices + ENDS.of[edge][0] * CHANNELS);
        const Four b = read_four(vertices + ENDS.of[edge][1] * CHANNELS);
        return {{a.at[0] + b.at[0], a.at[1] + b.at[1], a.at[2] + b.at[2], a.at[3] + b.at[3]}};
    }
    VZ_DEVICE void store(const Terms& terms, const Read& both, u64 row, int channel, Four sum) const {
        if (channel >= CHANNELS) return;
VZ_UNROLL
        for (int e = 0; e < 4; e++) sum.at[e] = relu(sum.at[e] + terms.at[e] + both.at[e]);
        write_four<ElementType>(output, row * CHANNELS + channel, sum);
    }
};

} // namespace net
