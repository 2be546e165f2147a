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

constexpr i32 ROOT = 0;
constexpr i32 NO_NODE = -1;
constexpr u32 REFUTED_BITS = 0xFF800000u; // -inf
VZ_DEVICE f32 refuted() { return from_bits(REFUTED_BITS); }

enum Kind : u8 { UNEVALUATED = 0, DECISION = 1, CHANCE = 2, TERMINAL = 3, HORIZON = 4 };

// Twin of `Node`, byte for byte; two loads of 16 bytes on a device.
struct alignas(16) Node {
    i32 parent;
    i32 visits;
    f32 value_sum;
    f32 lower; // proven bounds, for `player`
    f32 upper;
    u16 parent_edge;
    u16 num_edges;
    u16 depth;
    u8 player;
    u8 kind;
    u8 bounds_dirty; // 1 if the bounds have changed since they were last propagated to the parent
    u8 padding[3];

    VZ_DEVICE bool is_proven() const { return lower >= upper; }

    // The proven lower and upper bound from the view of player `who`, in a two-player zero-sum game.
    VZ_DEVICE f32 lower_for(int who) const { return who == player ? lower : -upper; }
    VZ_DEVICE f32 upper_for(int who) const { return who == player ? upper : -lower; }

    VZ_DEVICE void set_bounds(f32 least, f32 most) {
        lower = least;
        upper = most;
        bounds_dirty = 1;
    }

    // Mean value backed up, for `player`; 0 before the first visit.
    VZ_DEVICE f32 mean() const { return visits > 0 ? value_sum / (f32)visits : 0.0f; }
};
static_assert(sizeof(Node) == 32, "must equal src/tree.rs Node");

VZ_DEVICE Node new_node(i32 parent, u16 parent_edge) {
    return Node{parent, 0, 0.0f, -1.0f, 1.0f, parent_edge, 0, 0, 0, UNEVALUATED, 0, {0, 0, 0}};
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
    return row.nodes[edge.child].lower_for(node.player);
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

// Twin of `RowKey`.
struct RowKey {
    u64 seed, slot, game, determinisation, ply;

    VZ_DEVICE Key key(Purpose purpose) const {
        return Key::of(seed, purpose).with(slot).with(game).with(determinisation).with(ply);
    }
};

// A row's scalars of `Roots` and of the current pass.
struct RootRow {
    f32 dirichlet_epsilon;
    u32 left;         // new simulations of the ply that have not started
    u32 budget;       // new simulations of the ply in total
    u32 schedule;     // offset of the row's schedule in `tables`
    u32 schedule_len; // simulations of that schedule
    u32 num_leaves;   // leaves of this pass
    u32 num_evals;    // leaves of this pass that need an evaluation
    u32 num_history;  // keys of positions before the root

    // Twin of `Roots::finish`.
    VZ_DEVICE void finish() {
        budget -= left;
        left = 0;
    }
};

// One leaf of a pass.
struct Leaf {
    i32 node;
    i32 slot; // index of its evaluation in the network's output, or -1
};

// A row's counts since they were last added to `PassStats`.
struct RowCounts {
    u32 passes, leaves, asked, simulations;
    u64 depth_sum;
    u32 depth_max, padding;
};

// The arrays of all rows and the search parameters: the first arguments of every kernel.
struct Rows {
    Node* nodes;       // [B, T]
    Word* edges;       // [B, T, 4, Ep]
    u16* actions;      // [B, T, Ep]
    f32* values;       // [B, T, P]
    u32* counts;       // [B]
    State* states;     // [B, T]
    RootRow* roots;    // [B]
    RowKey* keys;      // [B]
    f32* noise;        // [B, Ep]
    i32* base_visits;  // [B, Ep]
    f32* root_sums;    // [B, P]
    u64* histories;    // [B, history_len]: keys before the root, then space for those of a path
    Leaf* leaves;      // [B, L]
    i32* targets;      // [B, T]
    RowCounts* done;   // [B]
    const u16* tables; // schedules, [considered + 1, simulations] each
    u32 num_rows;      // B
    u32 num_nodes;     // T
    u32 num_leaves;    // L
    u32 history_len;
    u32 keep_limit; // the most nodes of a kept subtree; 0 if none is kept
    u32 rule;
    u32 chance;
    u32 fpu;
    u32 solver;
    u32 considered;
    u32 min_simulations;
    f32 c_init, c_base, fpu_reduction, dirichlet_epsilon, dirichlet_alpha, c_visit, c_scale, inherit_cap;

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

#define VZ_ROWS_ARGUMENTS                                                                                              \
    search::Node *nodes, search::Word *edges, u16 *actions, f32 *values, u32 *counts, State *states,                   \
        search::RootRow *roots, search::RowKey *keys, f32 *noise, i32 *base_visits, f32 *root_sums, u64 *histories,    \
        search::Leaf *leaves, i32 *targets, search::RowCounts *done, const u16 *tables, u32 num_rows, u32 num_nodes,   \
        u32 num_leaves, u32 history_len, u32 keep_limit, u32 rule, u32 chance, u32 fpu, u32 solver, u32 considered,    \
        u32 min_simulations, f32 c_init, f32 c_base, f32 fpu_reduction, f32 dirichlet_epsilon, f32 dirichlet_alpha,           \
        f32 c_visit, f32 c_scale, f32 inherit_cap
#define VZ_ROWS                                                                                                        \
    search::Rows {                                                                                                     \
        nodes, edges, actions, values, counts, states, roots, keys, noise, base_visits, root_sums, histories, leaves,  \
            targets, done, tables, num_rows, num_nodes, num_leaves, history_len, keep_limit, rule, chance, fpu,        \
            solver, considered, min_simulations, c_init, c_base, fpu_reduction, dirichlet_epsilon, dirichlet_alpha, c_visit,  \
            c_scale, inherit_cap                                                                                       \
    }

// The values of `rule`, `chance`, `fpu` and `solver`; the same in src/backend/kernels/layout.rs.
enum Rule : u32 { PUCT = 0, GUMBEL = 1 };
enum ChanceRule : u32 { SAMPLE = 0, STRATIFIED = 1 };
enum Fpu : u32 { FPU_ZERO = 0, FPU_PARENT = 1, FPU_REDUCED = 2, FPU_LOSS = 3 };
enum Solver : u32 { SOLVER_OFF = 0, SOLVER_ON = 1 };

} // namespace search
