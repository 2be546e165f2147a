// Twin of src/backend/cpu/descend.rs: the descents of one row's pass, new nodes, and which of them need the network.
#pragma once
#include "search/backup.cuh"
#include "search/select.cuh"

namespace search {

// A new node's player, edges and kind, as one lane derives them from its state.
struct NodeFacts {
    int player;
    int num_edges;
    NodeKind kind;
};

// Writes the actions of node `n` with state `state`, or its value where the game is over; returns the facts of the node. One lane.
VZ_DEVICE NodeFacts inspect_state(const Row& row, i32 n, const State& state, const History& history) {
    const int turn = game_turn(state);
    if (turn == TURN_OVER || (turn == TURN_CHANCE && game_is_horizon(state))) {
        game_stage_returns(state, row.value(n));
        return NodeFacts{0, 0, turn == TURN_OVER ? NodeKind::Terminal : NodeKind::Horizon};
    }
#if VZ_CHANCE_RUN == 0
    if (turn == TURN_CHANCE) return NodeFacts{0, 0, NodeKind::Chance};
#endif
    const int num_edges = game_legal(state, history, row.actions(n));
    return NodeFacts{turn == TURN_CHANCE ? 0 : turn, num_edges, turn == TURN_CHANCE ? NodeKind::Chance : NodeKind::Unevaluated};
}

// Writes node `n` with its edges. `node` has its parent, edge and depth; lane 0 has the `facts` of `state`. Returns whether the node
// needs the network. All lanes.
VZ_DEVICE bool init_node(const Rows& rows, const Row& row, i32 n, Node node, NodeFacts facts, const State& state) {
    const NodeKind kind = (NodeKind)from_lane((u32)facts.kind, 0);
    const int num_edges = from_lane(facts.num_edges, 0);
    if (kind == NodeKind::Unevaluated || kind == NodeKind::Chance) {
        init_edges(row, n, num_edges);
        node.num_edges = (u16)num_edges;
        if (kind == NodeKind::Chance && num_edges > 0) {
            VZ_SYNC(1); // the priors of `init_edges` are overwritten
            if (lane() == 0) game_chance_probs(state, row.actions(n), num_edges, &row.prior(n)->real);
        }
    }
    if (lane() == 0) {
        const bool is_over = kind == NodeKind::Terminal || kind == NodeKind::Horizon;
        if (is_over && rows.params.solver == MctsSolver::On) set_bounds(node, row.value(n)[0], row.value(n)[0]);
        node.kind = kind;
        node.player = (u8)facts.player;
        row.nodes[n] = node;
    }
    VZ_SYNC(2);
    return kind == NodeKind::Unevaluated;
}

// Writes the history keys of the nodes above `n`, from the root down, after the row's own; returns how many. All lanes.
VZ_DEVICE int path_keys([[maybe_unused]] const Row& row, [[maybe_unused]] i32 n, [[maybe_unused]] u64* out) {
#if VZ_USES_HISTORY
    int depth = 0;
    for (i32 at = row.nodes[n].parent; at != NO_NODE; at = row.nodes[at].parent) depth++;
    // Nodes first, then, all lanes together, their keys in place.
    if (lane() == 0) {
        int index = depth;
        for (i32 at = row.nodes[n].parent; at != NO_NODE; at = row.nodes[at].parent) out[--index] = (u64)at;
    }
    VZ_SYNC(3);
    for (int i = lane(); i < depth; i += WARP) out[i] = game_history_key(row.states[out[i]]);
    VZ_SYNC(4);
    return depth;
#else
    return 0;
#endif
}

// Makes the child of `parent` through `edge`, which becomes the last of the row's `count` nodes. Returns whether it needs the network.
// All lanes.
VZ_DEVICE bool add_child(const Rows& rows, const Row& row, u32 b, u32& count, i32 parent, int edge) {
    const i32 child = (i32)count;
    count += 1;
    Node node = new_node(parent, (u16)edge);
    const u16 depth = row.nodes[parent].depth;
    node.depth = depth == 0xFFFF ? depth : depth + 1;
    const int num_played = (int)rows.roots[b].num_history;
    u64* keys = rows.history(b);
    u64* path = keys + num_played;
    int num_path = path_keys(row, parent, path);
    NodeFacts facts{};
    State state;
    if (lane() == 0) {
        state = row.states[parent];
#if VZ_USES_HISTORY
        const u64 own_key = game_history_key(state);
#endif
        game_step(state, row.actions(parent)[edge], History{keys, num_played, path, num_path});
#if VZ_USES_HISTORY
        path[num_path++] = own_key;
#endif
        row.states[child] = state;
        row.child(parent)[edge].integer = child;
        facts = inspect_state(row, child, state, History{keys, num_played, path, num_path});
        *row.count = count;
    }
    const bool needs_eval = init_node(rows, row, child, node, facts, state);
#if VZ_CHANCE_RUN > 0
    // The value where no node fits below it.
    if (row.nodes[child].kind == NodeKind::Chance && lane() < VZ_PLAYERS) row.value(child)[lane()] = row.value(parent)[lane()];
#endif
    return needs_eval;
}

// What the selection at row `b`'s root reads beside the tree: twin of `Roots::view`.
VZ_DEVICE RootView root_view(const Rows& rows, u32 b, const RootRow& root, int num_edges) {
    const u64 first = (u64)b * PADDED;
    RootView view{rows.noise + first, rows.base_visits + first, root.dirichlet_epsilon, 0};
    if (rows.params.algorithm == Algorithm::Gumbel) {
        const u32 num_considered = minimum((u32)num_edges, rows.params.max_num_considered_actions), simulation = root.budget - root.left;
        const u32* schedule = rows.tables + root.schedule + (u64)num_considered * root.schedule_len;
        view.considered_visits = simulation < root.schedule_len ? (i32)schedule[simulation] : 0x7FFFFFFF;
    }
    return view;
}

// A descent's end.
struct Found {
    bool collided;
    bool needs_eval; // needs the network
    i32 node;
    u32 depth;
};

// One descent from the root of row `b`, which adds its leaf to the tree where that is new. It goes on through chance nodes. All lanes.
VZ_DEVICE Found find_leaf(
    const Rows& rows, const Row& row, u32 b, const RootRow& root, int root_edges, u32& count
) {
    const RootView view = root_view(rows, b, root, root_edges);
    Key key{0};
#if VZ_CHANCE_RUN > 0
    key = key_of(rows.keys[b], Purpose::SearchChance);
#endif
    i32 at = ROOT;
    for (u32 depth = 0;; depth++) {
        const Level level = descend(rows, row, view, at, count, key);
        if (level.stop == AT_COLLISION) return Found{true, false, at, depth};
        if (level.stop == AT_END) return Found{false, false, at, depth};
        if (level.stop == GO_DOWN) {
            at = level.child;
            continue;
        }
        const bool needs_eval = add_child(rows, row, b, count, at, level.edge);
        at = (i32)count - 1;
        if (row.nodes[at].kind != NodeKind::Chance) return Found{false, needs_eval, at, depth + 1};
    }
}

// Adds a leaf with this evaluation slot to the pass. All lanes; lane 0 writes.
VZ_DEVICE void push_leaf(const Rows& rows, u32 b, RootRow& root, i32 node, i32 slot) {
    if (lane() == 0) rows.leaves[b * rows.params.leaves + root.num_leaves] = Leaf{node, slot};
    root.num_leaves += 1;
}

// Adds a leaf that needs the network: its slot is its index among B x L, until `number_leaves` compacts them. All lanes.
VZ_DEVICE void push_eval(const Rows& rows, u32 b, RootRow& root, i32 node) {
    push_leaf(rows, b, root, node, (i32)(b * rows.params.leaves + root.num_leaves));
    root.num_evals += 1;
}

// Up to L leaves of row `b`, if it has simulations left. All lanes.
VZ_DEVICE void select(const Rows& rows, u32 b) {
    const Row row = rows.row(b);
    RootRow root = rows.roots[b];
    u32 count = *row.count;
    root.num_leaves = root.num_evals = 0;
    u32 simulations = 0, depth_max = 0;
    u64 depth_sum = 0;
    while (root.left > 0 && simulations < rows.params.leaves) {
        const Node top = row.nodes[ROOT];
        if (top.kind == NodeKind::Unevaluated) {
            push_eval(rows, b, root, ROOT);
            break;
        }
        const Found found = find_leaf(rows, row, b, root, top.num_edges, count);
        if (found.collided) break;
        root.left -= 1;
        if (rows.params.leaves > 1) {
            apply_virtual_loss(row, found.node);
            VZ_SYNC(5);
        }
        if (found.needs_eval) {
            push_eval(rows, b, root, found.node);
        } else {
            push_leaf(rows, b, root, found.node, NO_SLOT);
        }
        simulations += 1;
        depth_sum += found.depth;
        depth_max = maximum(depth_max, found.depth);
    }
    VZ_SYNC(6); // every lane has read the row's scalars
    if (lane() != 0) return;
    rows.roots[b] = root;
    RowCounts& done = rows.done[b];
    done.passes += root.num_leaves > 0 ? 1 : 0;
    done.leaves += root.num_leaves;
    done.num_evals += root.num_evals;
    done.simulations += simulations;
    done.depth_sum += depth_sum;
    done.depth_max = maximum(done.depth_max, depth_max);
}

} // namespace search
