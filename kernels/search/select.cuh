// Twin of src/search/select.rs: the choice of edges in a descent of one row. All functions: all lanes.
#pragma once
#include "tree.cuh"

namespace search {

enum Stop : int { GO_DOWN, AT_LEAF, AT_END, AT_COLLISION };

// One level of a descent: the edge taken, and its child or why the descent stops.
struct Level {
    Stop stop;
    i32 child;
    int edge;
};

// What the selection at the root reads beside the tree; null below the root.
struct RootView {
    const f32* noise;
    const i32* base_visits;
    f32 dirichlet_epsilon;
    i32 considered_visits;
};

// Q of an edge: the mean of its values, `unvisited` where it has none; -inf where it is refuted.
VZ_DEVICE f32 mean_value(i32 visits, f32 value_sum, f32 unvisited) {
    return visits > 0 ? value_sum / (f32)visits : unvisited + value_sum;
}

// AlphaZero's exploration factor: C(s) times sqrt(N).
VZ_DEVICE f32 exploration(const Rows& rows, i32 visits) {
    const f32 n = (f32)visits;
    return (math::ln((1.0f + n + rows.params.c_base) / rows.params.c_base) + rows.params.c_init) * square_root(n);
}

// The Q of an edge of the node without visits.
VZ_DEVICE f32 first_play_urgency(const Rows& rows, const Node& node, const Edges& edges) {
    Sum mass;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        mass.add(slice, edges.at[slice].visits > 0 ? edges.at[slice].prior : 0.0f);
    }
    const f32 urgency = mean_of(node) - rows.params.fpu_reduction * square_root(mass.total());
    return urgency > -1.0f ? urgency : -1.0f;
}

// The edge that PUCT takes at a decision node; `root` where noise is mixed into the priors.
VZ_DEVICE int puct_edge(const Rows& rows, const Node& node, const Edges& edges, const RootView* root) {
    const f32 exploration_factor = exploration(rows, node.visits);
    const f32 unvisited = first_play_urgency(rows, node, edges);
    Argmax best;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const Edge edge = edges.at[slice];
        f32 p = edge.prior;
        if (root != nullptr) {
            const int e = edge_in(slice);
            const f32 noise = PADDED % WIDTH == 0 || e < PADDED ? root->noise[e] : 0.0f;
            const f32 share = root->dirichlet_epsilon;
            p = (1.0f - share) * p + share * noise;
        }
        const f32 q = mean_value(edge.visits, edge.value_sum, unvisited);
        best.update(slice, q + exploration_factor * p / (f32)(edge.visits + 1));
    }
    const int edge = best.index();
    return edge == NO_EDGE ? 0 : edge;
}

// Completed Q and the improved policy of one decision node.
struct CompletedQ {
    f32 visits;
    f32 scale;
    f32 mixed;

    // Twin of `CompletedQ::of`.
    VZ_DEVICE CompletedQ(const Rows& rows, const Edges& edges, f32 own_value) {
        Sum mass, weighted;
        i32 sum = 0, max_visits = 0;
VZ_UNROLL
        for (int slice = 0; slice < SLICES; slice++) {
            const Edge edge = edges.at[slice];
            const f32 q = mean_value(edge.visits, edge.value_sum, 0.0f);
            const f32 mean = -1.0f > q ? -1.0f : q;
            mass.add(slice, edge.visits > 0 ? edge.prior : 0.0f);
            weighted.add(slice, edge.visits > 0 ? edge.prior * mean : 0.0f);
            sum += edge.visits;
            max_visits = edge.visits > max_visits ? edge.visits : max_visits;
        }
        const f32 total = mass.total(), weighted_total = weighted.total();
        const f32 mean = total > 0.0f ? weighted_total / total : own_value;
        visits = (f32)sum_of_integers(sum);
        scale = (rows.params.c_visit + (f32)largest_of(max_visits)) * rows.params.c_scale * 0.5f;
        scale = scale > MIN_SCALE ? scale : MIN_SCALE;
        mixed = (own_value + visits * mean) / (1.0f + visits);
    }

    // The transformed completed Q of an edge; -inf where it is refuted.
    VZ_DEVICE f32 sigma(const Edge& edge) const {
        return scale * mean_value(edge.visits, edge.value_sum, mixed);
    }

    // Writes prior x exp(sigma - max) and returns the sum.
    VZ_DEVICE f32 weights(const Edges& edges, f32 (&out)[SLICES]) const {
        f32 max_score = refuted();
VZ_UNROLL
        for (int slice = 0; slice < SLICES; slice++) {
            out[slice] = sigma(edges.at[slice]);
            max_score = out[slice] > max_score ? out[slice] : max_score;
        }
        max_score = largest_of(max_score);
        max_score = max_score > MIN_SCORE ? max_score : MIN_SCORE;
        Sum sum;
VZ_UNROLL
        for (int slice = 0; slice < SLICES; slice++) {
            out[slice] = edges.at[slice].prior * math::exp(out[slice] - max_score);
            sum.add(slice, out[slice]);
        }
        return sum.total();
    }
};

// The edge that Gumbel search takes below the root: argmax of the improved policy less the share of visits.
VZ_DEVICE int gumbel_edge(const Rows& rows, const Edges& edges, f32 own_value) {
    const CompletedQ improved(rows, edges, own_value);
    f32 weights[SLICES];
    const f32 total = improved.weights(edges, weights);
    // Where only edges of prior 0 are left, the least visited one is taken.
    const f32 inverse = total > 0.0f ? 1.0f / total : 0.0f;
    const f32 share = 1.0f / (1.0f + improved.visits);
    Argmax best;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const Edge edge = edges.at[slice];
        const f32 score = weights[slice] * inverse - (f32)edge.visits * share;
        best.update(slice, edge.value_sum == refuted() ? refuted() : score);
    }
    const int edge = best.index();
    return edge == NO_EDGE ? 0 : edge;
}

// Writes g + logit + sigma of every root edge; -inf where it is refuted or no edge.
VZ_DEVICE void gumbel_scores(
    const Rows& rows, const Edges& edges, f32 own_value, const RootView& root, f32 (&out)[SLICES]
) {
    const CompletedQ improved(rows, edges, own_value);
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const int e = edge_in(slice);
        const f32 noise = PADDED % WIDTH == 0 || e < PADDED ? root.noise[e] : 0.0f;
        const Edge edge = edges.at[slice];
        out[slice] = noise + math::ln(edge.prior) + improved.sigma(edge);
    }
}

// The edge that sequential halving takes: among those with the scheduled number of new visits, the best score. Where none
// has it, the best score of all.
VZ_DEVICE int gumbel_root_edge(const Rows& rows, const Edges& edges, f32 own_value, const RootView& root) {
    f32 scores[SLICES];
    gumbel_scores(rows, edges, own_value, root, scores);
    Argmax scheduled, any;
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const int e = edge_in(slice);
        const i32 base = PADDED % WIDTH == 0 || e < PADDED ? root.base_visits[e] : 0;
        const bool due = edges.at[slice].visits - base == root.considered_visits;
        scheduled.update(slice, due ? scores[slice] : refuted());
        any.update(slice, scores[slice]);
    }
    const int edge = scheduled.index(), otherwise = any.index();
    if (edge != NO_EDGE) return edge;
    return otherwise != NO_EDGE ? otherwise : 0;
}

// Twin of `chance_number`.
VZ_DEVICE f32 chance_number(Key key, i32 n, i32 visits) {
    return key.with((u64)n).spaced((u32)visits);
}

// The outcome that a descent follows at a chance node. `key` is that of the row's ply.
VZ_DEVICE int chance_edge(const Row& row, i32 n, const Node& node, Key key) {
    // Subtracts the probabilities in the order of the list; every lane does the same.
    f32 x = chance_number(key, n, node.visits);
    for (int e = 0; e < node.num_edges; e++) {
        x -= row.prior(n)[e].real;
        if (x < 0.0f) return e;
    }
    return node.num_edges - 1;
}

VZ_DEVICE int root_edge(
    const Rows& rows, const Row& row, const Node& node, const Edges& edges, const RootView& root
) {
    if (rows.params.algorithm == Algorithm::Gumbel) return gumbel_root_edge(rows, edges, row.value(ROOT)[node.player], root);
    return puct_edge(rows, node, edges, root.dirichlet_epsilon > 0.0f ? &root : nullptr);
}

// Takes one edge down from node `n` of a row of `count` nodes. `chance_key` is the key of the row's ply for outcomes.
VZ_DEVICE Level descend(const Rows& rows, const Row& row, const RootView& root, i32 n, u32 count, Key chance_key) {
    // Both are loaded before either is used: one memory latency a level.
    const Node node = row.nodes[n];
    const Edges edges(row, n);
    if (node.kind == NodeKind::Unevaluated) return Level{AT_COLLISION, NO_NODE, 0};
    if (node.kind == NodeKind::Terminal || node.kind == NodeKind::Horizon || is_proven(node)) return Level{AT_END, NO_NODE, 0};
    int edge;
    if (node.kind == NodeKind::Chance) {
        edge = chance_edge(row, n, node, chance_key);
    } else if (n == ROOT) {
        edge = root_edge(rows, row, node, edges, root);
    } else if (rows.params.algorithm == Algorithm::Gumbel && (u32)node.visits < rows.params.puct_visits) {
        edge = gumbel_edge(rows, edges, row.value(n)[node.player]);
    } else {
        edge = puct_edge(rows, node, edges, nullptr);
    }
    i32 children[SLICES];
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) children[slice] = edges.at[slice].child;
    const i32 child = from_edge(children, edge);
    if (child != NO_NODE) return Level{GO_DOWN, child, edge};
    return Level{count >= rows.num_nodes ? AT_END : AT_LEAF, NO_NODE, edge};
}

} // namespace search
