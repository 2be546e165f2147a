// Twin of src/search/backup.rs: a value from a leaf to the root of one row, and proofs with it.
//
// Without proofs on the way, what a level adds does not depend on the levels below it: 32 levels are done at once, one a lane.
#pragma once
#include "tree.cuh"

namespace search {

constexpr f32 VIRTUAL_LOSS = 1.0f;

// Up to 32 nodes of the way up from a node: lane i has the i-th (the first is the node itself), or NO_NODE. All lanes.
VZ_DEVICE i32 climb(const Row& row, i32 from) {
    i32 mine = NO_NODE, at = from;
    for (int i = 0; i < WARP && at != NO_NODE; i++) {
        mine = lane() == i ? at : mine;
        at = row.nodes[at].parent;
    }
    return mine;
}

// Runs `body(node, parent)` for every node of the way from `leaf` to the root, 32 at a time. All lanes.
template <class Body>
VZ_DEVICE void for_path(const Row& row, i32 leaf, Body body) {
    for (i32 from = leaf; from != NO_NODE;) {
        const i32 mine = climb(row, from);
        const i32 parent = mine == NO_NODE ? NO_NODE : row.nodes[mine].parent;
        if (mine != NO_NODE) body(mine, parent);
        from = from_lane(parent, WARP - 1);
    }
}

// Counts a visit and lays a virtual loss on the path to `leaf`. All lanes.
VZ_DEVICE void take_off(const Row& row, i32 leaf) {
    for_path(row, leaf, [&](i32 n, i32 parent) {
        Node& node = row.nodes[n];
        node.visits += 1;
        if (parent == NO_NODE) return;
        row.visits(parent)[node.parent_edge].integer += 1;
        if (row.nodes[parent].kind == DECISION) row.value_sum(parent)[node.parent_edge].real -= VIRTUAL_LOSS;
    });
}

// Adds `value` [P] to `leaf` and everything above it, where nothing on the way is proven. All lanes.
VZ_DEVICE void backup_plain(const Row& row, i32 leaf, const f32* value, i32 visit, f32 undo) {
    for_path(row, leaf, [&](i32 n, i32 parent) {
        Node& node = row.nodes[n];
        node.visits += visit;
        node.value_sum += value[node.player];
        if (parent == NO_NODE) return;
        const Node above = row.nodes[parent];
        const int edge = node.parent_edge;
        row.visits(parent)[edge].integer += visit;
        if (above.kind == DECISION) row.value_sum(parent)[edge].real += undo + value[above.player];
    });
}

// Carries the value of `leaf` up to the root and adds it to `root_sum` [P]. `counted`: its visits were counted, and a loss
// laid on its path, when it was selected. All lanes.
VZ_DEVICE void backup(const Rows& rows, const Row& row, i32 leaf, bool counted, f32* root_sum) {
    const i32 visit = counted ? 0 : 1;
    const f32 undo = counted ? VIRTUAL_LOSS : 0.0f;
    backup_plain(row, leaf, row.value(leaf), visit, undo);
    if (lane() < VZ_PLAYERS) root_sum[lane()] += row.value(leaf)[lane()];
}

} // namespace search
