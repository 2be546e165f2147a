// The edges of K_n in lexicographic order: 0-1, 0-2, .., 1-2, .. Twin of src/model/complete_graph.rs and src/game/clique/edges.rs.
#pragma once
#include "common.cuh"

// K_n: `vertices` is n. Most callers know it at compile time.
struct CompleteGraph {
    u32 vertices;

    VZ_DEVICE constexpr u32 edges() const { return vertices * (vertices - 1) / 2; }

    // The index of edge (i, i + 1), the first edge from i upwards.
    VZ_DEVICE constexpr u32 row_start(u32 i) const { return i * (2 * vertices - i - 1) / 2; }

    // The index of the edge between two vertices, in either order.
    VZ_DEVICE u32 edge(u32 a, u32 b) const {
        const u32 i = minimum(a, b), j = maximum(a, b);
        return row_start(i) + j - i - 1;
    }

    // The ends (i, j), i < j, of an edge.
    VZ_DEVICE void ends(u32 edge, u32& i, u32& j) const {
        i = 0;
        while (edge >= vertices - 1 - i) edge -= vertices - 1 - i++;
        j = i + 1 + edge;
    }
};
