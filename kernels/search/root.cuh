// Twin of src/search/root.rs: noise and budgets when a ply begins, and the result of a search. All functions: all lanes.
#pragma once
#include "search/select.cuh"

namespace search {

// A float as an unsigned integer as Rust casts it: towards 0, kept within the range.
VZ_DEVICE u32 saturating_u32(f32 x) {
    if (!(x > 0.0f)) return 0;
    return x >= 4294967296.0f ? 0xFFFFFFFFu : (u32)x;
}

// Noise for a root of `num_edges` edges: `noise` [Ep]. Returns its share in the priors.
VZ_DEVICE f32 draw_noise(const Rows& rows, const RowKey& key, int num_edges, f32* noise) {
    for_own_edges([&](int, int e) { noise[e] = 0.0f; });
    if (rows.params.algorithm == Algorithm::Gumbel) {
        // Draw e of the stream, by the lane that has edge e.
        const Key gumbel = key_of(key, Purpose::Gumbel);
        for_own_edges([&](int, int e) {
            Stream stream{gumbel.value + rng::GOLDEN * (u64)e};
            if (e < num_edges) noise[e] = stream.gumbel();
        });
        return 0.0f;
    }
    VZ_SYNC(10); // one lane draws, since rejection sampling makes the draws one sequence
    const f32 alpha = rows.params.dirichlet_alpha > 0.0f ? rows.params.dirichlet_alpha : 10.0f / (f32)maximum(num_edges, 1);
    if (lane() == 0) {
        Stream stream = key_of(key, Purpose::RootNoise).stream();
        stream.dirichlet(alpha, noise, num_edges);
    }
    return rows.params.dirichlet_epsilon;
}

// Twin of `Roots::reset_value_sum`.
VZ_DEVICE void reset_value_sum(const Row& row, const Node& node, f32* sum) {
    const int player = lane();
    if (player >= VZ_PLAYERS) return;
    if (node.visits == 0) {
        sum[player] = 0.0f;
    } else if (player == node.player) {
        sum[player] = node.value_sum;
    } else {
        sum[player] = VZ_PLAYERS == 2 && VZ_ZERO_SUM ? -node.value_sum : row.value(ROOT)[player] * (f32)node.visits;
    }
}

// Begins a ply: budget, inherited visits, noise. Twin of `Roots::begin`.
VZ_DEVICE_CALL void begin(const Rows& rows, const BeginCommand& command) {
    const u32 b = command.row;
    const Row row = rows.row(b);
    const Node node = row.nodes[ROOT];
    const bool fresh = node.kind == NodeKind::Unevaluated;
    const u64 first = (u64)b * PADDED;
    i32 inherited = 0;
    for_own_edges([&](int, int e) {
        const i32 visits = fresh ? 0 : row.visits(ROOT)[e].integer;
        rows.base_visits[first + e] = visits;
        inherited += visits;
    });
    inherited = from_lane(sum_of_integers(inherited), 0);
    RootRow root = rows.roots[b];
    root.budget = command.simulations;
    if (rows.params.algorithm == Algorithm::Puct) {
        const u32 cap = saturating_u32(rows.params.inherit_cap * (f32)command.simulations);
        const u32 counted = minimum((u32)inherited, cap);
        const u32 least = minimum(rows.params.min_simulations, command.simulations);
        root.budget = maximum(command.simulations - minimum(counted, command.simulations), least);
    }
    root.left = root.budget;
    root.schedule = command.schedule;
    root.schedule_len = command.simulations;
    reset_value_sum(row, node, rows.root_sum(b));
    root.dirichlet_epsilon = 0.0f;
    f32* noise = rows.noise + first;
    if (command.noisy != 0) {
        root.dirichlet_epsilon = draw_noise(rows, command.key, node.num_edges, noise);
    } else {
        for_own_edges([&](int, int e) { noise[e] = 0.0f; });
    }
    if (is_proven(node)) finish(root);
    VZ_SYNC(11); // every lane has read the row's scalars
    if (lane() == 0) {
        rows.roots[b] = root;
        rows.keys[b] = command.key;
    }
}

// Twin of `RootSummary`, as it is copied to the host.
struct Summary {
    SummaryHead head;
    f32 value[VZ_PLAYERS];
    i32 visits[PADDED];
    i32 new_visits[PADDED];
    f32 prior[PADDED];
    f32 q[PADDED];
    f32 policy[PADDED];
    u16 actions[PADDED];
};

// One number for each edge, in registers.
typedef f32 Reals[SLICES];

// The first edge with the largest number, among `num_edges`; 0 where all are -inf.
VZ_DEVICE int argmax(const Reals& numbers, int num_edges) {
    Argmax best;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        best.update(slice, edge_in(slice) < num_edges ? numbers[slice] : refuted());
    }
    const int edge = best.index();
    return edge == NO_EDGE ? 0 : edge;
}

// Scales `weights` to sum to 1; false, with nothing changed, where their sum is 0 or infinite.
VZ_DEVICE bool normalise(Reals& weights) {
    Sum sum;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) sum.add(slice, weights[slice]);
    const f32 total = sum.total();
    if (!(total > 0.0f && total < from_bits(0x7F800000u))) return false;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) weights[slice] /= total;
    return true;
}

// The root's edges with their new visits.
struct RootEdges {
    Edges edges;
    int num_edges;
    i32 new_visits[SLICES];

    VZ_DEVICE RootEdges(const Row& row, const i32* base_visits, int n) : edges(row, ROOT), num_edges(n) {
VZ_UNROLL
        for (int slice = 0; slice < SLICES; slice++) {
            const int e = edge_in(slice);
            new_visits[slice] = e < n ? edges.at[slice].visits - base_visits[e] : 0;
        }
    }

    VZ_DEVICE bool has(int slice) const { return edge_in(slice) < num_edges; }

    VZ_DEVICE void copy_priors(Reals& out) const {
VZ_UNROLL
        for (int slice = 0; slice < SLICES; slice++) out[slice] = edges.at[slice].prior;
    }

    VZ_DEVICE bool is_open(int slice) const { return has(slice) && edges.at[slice].value_sum != refuted(); }
};

// Where no edge that may be played has weight: the priors of the edges that are not refuted, all alike where even these vanish.
VZ_DEVICE void open_priors(const RootEdges& root, Reals& policy) {
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        policy[slice] = root.is_open(slice) ? root.edges.at[slice].prior : 0.0f;
    }
    if (normalise(policy)) return;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) policy[slice] = root.is_open(slice) ? 1.0f : 0.0f;
    normalise(policy);
}

// PUCT's target: visits, the inherited ones with a capped weight; none for refuted edges. Returns the best edge.
VZ_DEVICE int visit_policy(const Rows& rows, u32 budget, const RootEdges& root, Reals& policy) {
    i32 inherited = 0;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        if (root.has(slice)) inherited += root.edges.at[slice].visits - root.new_visits[slice];
    }
    inherited = sum_of_integers(inherited);
    const f32 cap = rows.params.inherit_cap * (f32)maximum(budget, 1u);
    const f32 weight = (f32)inherited > cap ? cap / (f32)inherited : 1.0f;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const Edge& edge = root.edges.at[slice];
        const i32 new_visits = root.new_visits[slice];
        const f32 counted = (f32)new_visits + weight * (f32)(edge.visits - new_visits);
        policy[slice] = root.is_open(slice) ? counted : 0.0f;
    }
    if (!normalise(policy)) open_priors(root, policy);
    return argmax(policy, root.num_edges);
}

// Gumbel's target: the improved policy; the choice: the best score among the most visited. Returns the best edge.
VZ_DEVICE int improved_policy(
    const Rows& rows, f32 own_value, const RootView& view, const RootEdges& root, Reals& policy
) {
    const CompletedQ improved(rows, root.edges, own_value);
    improved.weights(root.edges, policy);
    if (!normalise(policy)) open_priors(root, policy);
    Reals scores;
    gumbel_scores(rows, root.edges, own_value, view, scores);
    i32 max_visits = 0;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        max_visits = maximum(max_visits, root.is_open(slice) ? root.new_visits[slice] : 0);
    }
    max_visits = largest_of(max_visits);
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        scores[slice] = root.new_visits[slice] == max_visits ? scores[slice] : refuted();
    }
    return argmax(scores, root.num_edges);
}

// Where the root is proven: all mass on the edges that reach the proven value, shared by visits; where it is lost, the
// priors. Returns the best edge.
VZ_DEVICE int proven_policy(const Row& row, const Node& node, const RootEdges& root, Reals& policy) {
    const f32 value = row.value(ROOT)[node.player];
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const Edge& edge = root.edges.at[slice];
        const bool reaches = root.has(slice) && value > -1.0f && lower_bound_of_edge(row, node, edge) >= value;
        policy[slice] = reaches ? (f32)maximum(edge.visits, 1) : 0.0f;
    }
    if (normalise(policy)) return argmax(policy, root.num_edges);
    root.copy_priors(policy);
    Reals visits;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) visits[slice] = (f32)root.edges.at[slice].visits;
    return argmax(visits, root.num_edges);
}

// The result of the search of row `b`. Twin of `Roots::summarise`.
VZ_DEVICE_CALL void summarise(const Rows& rows, u32 b, Summary& out) {
    const Row row = rows.row(b);
    const Node node = row.nodes[ROOT];
    const u64 first = (u64)b * PADDED;
    const RootEdges root(row, rows.base_visits + first, node.num_edges);
    Reals policy;
    int best;
    if (is_proven(node)) {
        best = proven_policy(row, node, root, policy);
    } else if (rows.params.algorithm == Algorithm::Puct) {
        best = visit_policy(rows, rows.roots[b].budget, root, policy);
    } else {
        const RootView view{rows.noise + first, rows.base_visits + first, 0.0f, 0};
        best = improved_policy(rows, row.value(ROOT)[node.player], view, root, policy);
    }
    for_own_edges([&](int slice, int e) {
        const Edge& edge = root.edges.at[slice];
        out.visits[e] = edge.visits;
        out.new_visits[e] = root.new_visits[slice];
        out.prior[e] = edge.prior;
        out.policy[e] = policy[slice];
        out.actions[e] = row.actions(ROOT)[e];
        out.q[e] = edge.value_sum == refuted() ? -1.0f : edge.visits == 0 ? mean_of(node) : edge.value_sum / (f32)edge.visits;
    });
    if (lane() < VZ_PLAYERS) {
        const f32 mean = rows.root_sum(b)[lane()] / (f32)maximum(node.visits, 1);
        out.value[lane()] = is_proven(node) ? row.value(ROOT)[lane()] : mean;
    }
    if (lane() == 0) {
        out.head = SummaryHead{node.num_edges, (u32)best, node.player, is_proven(node) ? 1u : 0u};
    }
}

} // namespace search
