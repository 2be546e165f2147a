// Twin of src/tree.rs: the same arrays with the same bytes, and the root arrays of a row's search.
//
// Nodes [B, T], edges [B, T, 4, Ep] (prior, visits, value sum, child), actions [B, T, Ep], values [B, T, P], counts [B].
// One warp works on one row. Functions marked "all lanes" must be called by all lanes of the warp together. A VZ_SYNC separates a
// lane's write from other lanes' reads of it.
#pragma once
#include "lanes.cuh"
#include "rng.cuh"

// A barrier of one warp: __syncwarp(). Tests define it to omit one by its number and check that results then differ.
#ifndef VZ_SYNC
#define VZ_SYNC(number) __syncwarp()
#endif

namespace search {

// Value sum of an edge that selection must skip: padding, or proven lost.
VZ_DEVICE f32 refuted() { return from_bits(REFUTED_BITS); }

VZ_DEVICE bool is_proven(const Node& node) { return node.lower >= node.upper; }

// The proven lower and upper bound from the view of player `who`, in a two-player zero-sum game.
VZ_DEVICE f32 lower_for(const Node& node, int who) { return who == node.player ? node.lower : -node.upper; }
VZ_DEVICE f32 upper_for(const Node& node, int who) { return who == node.player ? node.upper : -node.lower; }

VZ_DEVICE void set_bounds(Node& node, f32 lower, f32 upper) {
    node.lower = lower;
    node.upper = upper;
    node.bounds_dirty = 1;
}

// Mean value backed up, for the node's player; 0 before the first visit.
VZ_DEVICE f32 mean_of(const Node& node) { return node.visits > 0 ? node.value_sum / (f32)node.visits : 0.0f; }

VZ_DEVICE Node new_node(i32 parent, u16 parent_edge) {
    return Node{parent, 0, 0.0f, -1.0f, 1.0f, parent_edge, 0, 0, 0, NodeKind::Unevaluated, 0, {0, 0, 0}};
}

// One number of an edge block.
union Word {
    f32 real;
    i32 integer;
};
static_assert(sizeof(Word) == 4, "must equal a word of src/tree.rs edges");

// One edge, in registers.
struct Edge {
    f32 prior;
    i32 visits;
    f32 value_sum;
    i32 child;
};

// Twin of `RowMut`: one row of the arrays.
struct Row {
    Node* nodes;
    Word* edges;
    u16* actions_;
    f32* values;
    u32* count;
    State* states;

    VZ_DEVICE Word* prior(i32 n) const { return edges + (u64)n * 4 * PADDED; }
    VZ_DEVICE Word* visits(i32 n) const { return prior(n) + PADDED; }
    VZ_DEVICE Word* value_sum(i32 n) const { return prior(n) + 2 * PADDED; }
    VZ_DEVICE Word* child(i32 n) const { return prior(n) + 3 * PADDED; }
    VZ_DEVICE u16* actions(i32 n) const { return actions_ + (u64)n * PADDED; }
    VZ_DEVICE f32* value(i32 n) const { return values + (u64)n * VZ_PLAYERS; }

    // Edge `e` of node `n`; a padding edge if e >= PADDED.
    VZ_DEVICE Edge edge(i32 n, int e) const {
        if (PADDED % WIDTH != 0 && e >= PADDED) return Edge{0.0f, 0, refuted(), NO_NODE};
        const Word* block = prior(n) + e;
        return Edge{block[0].real, block[PADDED].integer, block[2 * PADDED].real, block[3 * PADDED].integer};
    }
};

// The lower bound of `edge_bounds`: proven for the player to move at `node`.
VZ_DEVICE f32 lower_bound_of_edge(const Row& row, const Node& node, const Edge& edge) {
    if (edge.value_sum == refuted() || edge.child == NO_NODE) return -1.0f;
    return lower_for(row.nodes[edge.child], node.player);
}

// This lane's edges of node `n`.
struct Edges {
    Edge at[SLICES];

    VZ_DEVICE Edges(const Row& row, i32 n) {
VZ_UNROLL
        for (int slice = 0; slice < SLICES; slice++) at[slice] = row.edge(n, edge_in(slice));
    }
};

// Calls `body(slice, edge)` for each edge of the padded list that this lane owns.
template <class Body>
VZ_DEVICE void for_own_edges(Body body) {
    if (lane() >= WIDTH) return;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const int edge = edge_in(slice);
        if (PADDED % WIDTH == 0 || edge < PADDED) body(slice, edge);
    }
}

// Twin of `RowMut::init_edges`, without the node's own fields. All lanes.
VZ_DEVICE void init_edges(const Row& row, i32 n, int num_edges) {
    for_own_edges([&](int, int e) {
        row.prior(n)[e].real = 0.0f;
        row.visits(n)[e].integer = 0;
        row.value_sum(n)[e].real = e < num_edges ? 0.0f : refuted();
        row.child(n)[e].integer = NO_NODE;
    });
}

// The key of a row's random numbers for one purpose. Twin of `RowKey::key`.
VZ_DEVICE Key key_of(const RowKey& row, Purpose purpose) {
    return Key::of(row.seed, purpose).with(row.slot).with(row.game).with(row.determinisation).with(row.ply);
}

// Ends the ply of a row. Twin of `Roots::end_ply`.
VZ_DEVICE void finish(RootRow& root) {
    root.budget -= root.left;
    root.left = 0;
}

// The first argument of every kernel, with views of one row.
struct Rows : ParameterBlock {
    VZ_DEVICE Row row(u32 b) const {
        const u64 first = (u64)b * num_nodes;
        return Row{nodes + first,
                   edges + first * 4 * PADDED,
                   actions + first * PADDED,
                   values + first * VZ_PLAYERS,
                   counts + b,
                   states + first};
    }

    VZ_DEVICE f32* root_sum(u32 b) const { return root_sums + (u64)b * VZ_PLAYERS; }
    VZ_DEVICE u64* history(u32 b) const { return histories + (u64)b * history_len; }
};
static_assert(sizeof(Rows) == sizeof(ParameterBlock), "no more than the fields");

} // namespace search
