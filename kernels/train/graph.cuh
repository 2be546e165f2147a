// Message passing on K_n in an edge network, forward and backward. Twin of src/net/edge_messages.rs: rows are the edges of K_n in
// lexicographic order (0-1, 0-2, .., 1-2, ..) or the vertices, board by board. Sums are in f32 with a fixed order.
#pragma once
#include "complete_graph.cuh"
#include "train/format.cuh"

namespace train {

// Calls work(row, column, offset) for the vectors of an array [rows, width].
template <class Work>
VZ_DEVICE void for_vectors(u64 rows, u32 width, Work work) {
    const u32 vectors = width / VEC;
    for (u64 i = (u64)thread_in_grid(); i < rows * vectors; i += threads_in_grid()) {
        work(i / vectors, (u32)(i % vectors) * VEC, i * VEC);
    }
}

VZ_DEVICE void store_scaled(Element* to, const f32 (&sums)[VEC], f32 scale) {
    Vector v;
    for (int i = 0; i < VEC; i++) v.x[i] = from_f32<Element>(sums[i] * scale);
    store(to, v);
}

VZ_DEVICE void add_vector(f32 (&sums)[VEC], const Element* from) {
    const Vector v = load(from);
    for (int i = 0; i < VEC; i++) sums[i] += to_f32(v.x[i]);
}

// out [boards, n, width] = scale times the sum of a [boards, edges, width] over the edges of each vertex.
VZ_DEVICE void vertex_sums(const MessageBlock& args) {
    const CompleteGraph graph = {args.vertices};
    const u32 width = args.width;
    for_vectors((u64)args.boards * graph.vertices, width, [&](u64 row, u32 column, u64 offset) {
        const u32 vertex = (u32)(row % graph.vertices);
        const Element* board = args.a + row / graph.vertices * graph.edges() * width + column;
        f32 sums[VEC] = {};
        for (u32 other = 0; other < graph.vertices; other++) {
            if (other != vertex) add_vector(sums, board + (u64)graph.edge(vertex, other) * width);
        }
        store_scaled(args.out + offset, sums, args.scale);
    });
}

// out [boards, edges, width] = scale times the sum of a [boards, n, width] over both ends of each edge.
VZ_DEVICE void sums_of_ends(const MessageBlock& args) {
    const CompleteGraph graph = {args.vertices};
    const u32 width = args.width;
    for_vectors((u64)args.boards * graph.edges(), width, [&](u64 row, u32 column, u64 offset) {
        u32 i, j;
        graph.ends((u32)(row % graph.edges()), i, j);
        const Element* board = args.a + row / graph.edges() * graph.vertices * width + column;
        f32 sums[VEC] = {};
        add_vector(sums, board + (u64)i * width);
        add_vector(sums, board + (u64)j * width);
        store_scaled(args.out + offset, sums, args.scale);
    });
}

// In the first `columns` columns: out (i, j) = scale times the sum over k of the products that the block names. In the other columns:
// out (i, j) = a (i, j). All arrays are [boards, edges, width].
VZ_DEVICE void triangle_sums(const MessageBlock& args) {
    const CompleteGraph graph = {args.vertices};
    const Element *a = args.a, *b = args.b;
    const u32 width = args.width, columns = args.columns;
    for_vectors((u64)args.boards * graph.edges(), width, [&](u64 row, u32 column, u64 offset) {
        const Vector own = load(a + offset);
        if (column >= columns) {
            store(args.out + offset, own);
            return;
        }
        u32 i, j;
        graph.ends((u32)(row % graph.edges()), i, j);
        const u64 first = row / graph.edges() * graph.edges() * width + column;
        f32 sums[VEC] = {};
        for (u32 k = 0; k < graph.vertices; k++) {
            if (k == i || k == j) continue;
            const u64 ik = first + (u64)graph.edge(i, k) * width, jk = first + (u64)graph.edge(j, k) * width;
            const Vector x = load(a + ik), y = load(b + jk);
            for (int m = 0; m < VEC; m++) sums[m] = multiply_add(to_f32(x.x[m]), to_f32(y.x[m]), sums[m]);
            if (args.terms == TriangleTerms::Forward) continue;
            const Vector z = load(b + ik), w = load(a + jk);
            for (int m = 0; m < VEC; m++) sums[m] = multiply_add(to_f32(z.x[m]), to_f32(w.x[m]), sums[m]);
        }
        Vector v;
        for (int m = 0; m < VEC; m++) v.x[m] = column + m < columns ? from_f32<Element>(sums[m] * args.scale) : own.x[m];
        store(args.out + offset, v);
    });
}

// out [boards, width] = the mean of x [boards, area, width] over the rows of a board.
VZ_DEVICE void means(const Element* x, u32 boards, u32 area, u32 width, Element* out) {
    for_vectors(boards, width, [&](u64 board, u32 column, u64 offset) {
        f32 sums[VEC] = {};
        for (u32 i = 0; i < area; i++) add_vector(sums, x + (board * area + i) * width + column);
        store_scaled(out + offset, sums, 1.0f / (f32)area);
    });
}

// The gradient of `means`: out [boards, area, width] = d [boards, width] / area.
VZ_DEVICE void spread_means(const Element* d, u32 boards, u32 area, u32 width, Element* out) {
    for_vectors((u64)boards * area, width, [&](u64 row, u32 column, u64 offset) {
        f32 sums[VEC] = {};
        add_vector(sums, d + row / area * width + column);
        store_scaled(out + offset, sums, 1.0f / (f32)area);
    });
}

} // namespace train
