// Twin of src/backend/cpu/rows.rs and of `CpuBackend`'s set_root, advance and deactivate: the backup of a pass, and a row's tree from
// ply to ply. All functions: all lanes.
#pragma once
#include "search/descend.cuh"
#include "search/reuse.cuh"

namespace search {

// Makes `state`, which lane 0 has, the root of a new tree in row `b`, whose history is in place.
VZ_DEVICE_CALL void set_root_state(const Rows& rows, const Row& row, u32 b, const State& state, u32 num_history) {
    NodeFacts facts{};
    if (lane() == 0) {
        const u64* keys = rows.history(b);
        row.states[ROOT] = state;
        facts = inspect_state(row, ROOT, state, History{keys, (int)num_history, keys, 0});
        *row.count = 1;
    }
    init_node(rows, row, ROOT, new_node(NO_NODE, 0), facts, state);
}

// Stops row `b`.
VZ_DEVICE void deactivate(const Rows& rows, u32 b, u32 num_history) {
    if (lane() != 0) return;
    RootRow& root = rows.roots[b];
    finish(root);
    root.num_leaves = root.num_evals = 0;
    root.num_history = num_history;
}

// Gives a row a new tree at `state`.
VZ_DEVICE void set_root(const Rows& rows, const SetRootCommand& command, const State& given, const u64* history) {
    const u32 b = command.row;
    u64* keys = rows.history(b);
    for (u32 i = lane(); i < command.num_history; i += WARP) keys[i] = history[command.first_key + i];
    VZ_SYNC(17);
    const State state = given;
    set_root_state(rows, rows.row(b), b, state, command.num_history);
    deactivate(rows, b, command.num_history);
}

// The first root edge with this action, or NO_EDGE.
VZ_DEVICE int edge_of_action(const Row& row, u32 action) {
    const int num_edges = row.nodes[ROOT].num_edges;
    int found = NO_EDGE;
    for (int first = 0; first < num_edges && found == NO_EDGE; first += WARP) {
        const int e = first + lane();
        const u32 mask = __ballot_sync(ALL_LANES, e < num_edges && row.actions(ROOT)[e] == action);
        if (mask != 0) found = first + trailing_zeros(mask);
    }
    return found;
}

// Makes the root's lower bound that of its edges, as trimming may have removed the child that proves it. False where the root is proven
// and no edge holds its value any more. Twin of `RowMut::restore_root_bound`.
VZ_DEVICE bool restore_root_bound(const Row& row) {
    const Node node = row.nodes[ROOT];
    if (node.kind != NodeKind::Decision || node.lower <= -1.0f) return true;
    const Edges edges(row, ROOT);
    f32 held = -1.0f;
    VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        if (edge_in(slice) < node.num_edges) held = maximum(held, lower_bound_of_edge(row, node, edges.at[slice]));
    }
    held = largest_of(held);
    if (is_proven(node)) return held >= node.lower;
    if (lane() == 0) row.nodes[ROOT].lower = held; // every lane has compared the old bound, before `held`
    return true;
}

// Makes the child that `action` leads to the root. False where there is none, it is not expanded, or subtrees are not kept.
VZ_DEVICE bool keep(const Rows& rows, const Row& row, u32 b, u32 action) {
    const int edge = edge_of_action(row, action);
    if (edge == NO_EDGE || rows.keep_limit == 0) return false;
    const i32 child = row.child(ROOT)[edge].integer;
    if (child == NO_NODE || row.nodes[child].kind == NodeKind::Unevaluated) return false;
    keep_subtree(row, child, rows.keep_limit, rows.targets + (u64)b * rows.num_nodes);
    return restore_root_bound(row);
}

// Plays `action` (or deals that outcome) at the root and keeps the subtree below it where that is configured and possible.
VZ_DEVICE_CALL void advance(const Rows& rows, const AdvanceCommand& command) {
    const u32 b = command.row;
    const Row row = rows.row(b);
    u32 num_history = rows.roots[b].num_history;
    State state;
    if (lane() == 0) {
        u64* keys = rows.history(b);
        state = row.states[ROOT];
        const u64 own_key = VZ_USES_HISTORY ? game_history_key(state) : 0;
        game_step(state, (u16)command.action, History{keys, (int)num_history, keys, 0});
        if (VZ_USES_HISTORY) keys[num_history] = own_key;
    }
    num_history += VZ_USES_HISTORY;
    const bool kept = keep(rows, row, b, command.action);
    VZ_SYNC(18); // every lane has read the old tree
    if (!kept) set_root_state(rows, row, b, state, num_history);
    deactivate(rows, b, num_history);
}

// Backs all leaves of row `b`'s pass up.
VZ_DEVICE void backup_leaves(const Rows& rows, u32 b) {
    const Row row = rows.row(b);
    const u32 num_leaves = rows.roots[b].num_leaves;
    for (u32 index = 0; index < num_leaves; index++) {
        const i32 leaf = rows.leaves[b * rows.params.leaves + index].node;
        // A new root's own evaluation is no simulation: its selection counted no visit.
        const bool is_new_root = from_lane(row.nodes[leaf].visits, 0) == 0;
        const bool is_applied = rows.params.leaves > 1 && !is_new_root;
        backup(row, leaf, is_applied ? VirtualLoss::Applied : VirtualLoss::None, rows.root_sum(b));
        VZ_SYNC(19);
    }
    if (num_leaves > 0 && is_proven(row.nodes[ROOT]) && lane() == 0) finish(rows.roots[b]);
}

} // namespace search
