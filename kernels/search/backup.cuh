// Twin of src/search/backup.rs: backs a value up from a leaf to the root of one row, and proofs with it.
//
// Where no proof comes up, what a level adds does not depend on the levels below it: 32 levels are done at once, one a lane.
#pragma once
#include "tree.cuh"

namespace search {

// Up to 32 nodes of the path from a node to the root: lane i has node i of it (node 0 is the node itself), or NO_NODE. All lanes.
VZ_DEVICE i32 climb(const Row& row, i32 from) {
    i32 mine = NO_NODE, at = from;
    for (int i = 0; i < WARP && at != NO_NODE; i++) {
        mine = lane() == i ? at : mine;
        at = row.nodes[at].parent;
    }
    return mine;
}

// Runs `body(node, parent)` for every node of the path from `leaf` to the root, 32 at a time. All lanes.
template <class Body>
VZ_DEVICE void for_path(const Row& row, i32 leaf, Body body) {
    for (i32 from = leaf; from != NO_NODE;) {
        const i32 mine = climb(row, from);
        const i32 parent = mine == NO_NODE ? NO_NODE : row.nodes[mine].parent;
        if (mine != NO_NODE) body(mine, parent);
        from = from_lane(parent, WARP - 1);
    }
}

// Counts a visit and applies a virtual loss on the path to `leaf`. All lanes.
VZ_DEVICE void apply_virtual_loss(const Row& row, i32 leaf) {
    for_path(row, leaf, [&](i32 n, i32 parent) {
        Node& node = row.nodes[n];
        node.visits += 1;
        if (parent == NO_NODE) return;
        row.visits(parent)[node.parent_edge].integer += 1;
        if (row.nodes[parent].kind == NodeKind::Decision) row.value_sum(parent)[node.parent_edge].real -= VIRTUAL_LOSS;
    });
}

// The upper bound of `node` for its mover, by the bounds of its children that were propagated. All lanes.
VZ_DEVICE f32 max_upper_bound(const Row& row, i32 n, const Node& node) {
    f32 max_upper = -1.0f;
    bool open = false;
    const Edges edges(row, n);
    VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const Edge& edge = edges.at[slice];
        if (edge_in(slice) >= node.num_edges || edge.value_sum == refuted()) continue;
        if (edge.child == NO_NODE) {
            open = true;
            continue;
        }
        const Node& child = row.nodes[edge.child];
        const f32 upper = upper_for(child, node.player);
        open = open || child.bounds_dirty != 0 || upper >= 1.0f;
        max_upper = upper > max_upper ? upper : max_upper;
    }
    return __ballot_sync(ALL_LANES, open) != 0 ? 1.0f : largest_of(max_upper);
}

// Propagates the changed bounds of `child` to the decision node `parent` and narrows its own. Returns whether they meet: its value is
// then the proven one. `child_node` and `node` are both nodes as read before; lane 0 alone writes. All lanes.
VZ_DEVICE bool propagate_bounds(const Row& row, i32 child, const Node& child_node, i32 parent, const Node& node) {
    const f32 max_upper = upper_for(child_node, node.player);
    if (lane() == 0) {
        row.nodes[child].bounds_dirty = 0;
        if (max_upper <= -1.0f) row.value_sum(parent)[child_node.parent_edge].real = refuted();
    }
    VZ_SYNC(7);
    const f32 lower = maximum(node.lower, lower_for(child_node, node.player));
    const f32 upper = minimum(node.upper, max_upper_bound(row, parent, node));
    if (lower == node.lower && upper == node.upper) return false;
    if (lane() == 0) {
        set_bounds(row.nodes[parent], lower, upper);
        if (lower >= upper) {
            row.value(parent)[node.player] = lower;
            row.value(parent)[1 - node.player] = -lower;
        }
    }
    return lower >= upper;
}

// The backup's step from `child`, which is proven or has changed bounds, to its parent; the parent's own sums stay. The value so far
// is that of node `source`; returns the node whose value is backed up from here on. All lanes.
VZ_DEVICE i32 backup_proof(const Row& row, i32 child, const Node& child_node, i32 source, i32 visit, f32 undo) {
    const i32 parent = child_node.parent;
    const Node node = row.nodes[parent];
    // Another leaf of the pass may have proven it after this one was selected below it.
    if (is_proven(child_node)) source = child;
    if (lane() == 0) {
        i32& visits = row.visits(parent)[child_node.parent_edge].integer;
        visits += visit;
        f32& sum = row.value_sum(parent)[child_node.parent_edge].real;
        const f32 value = row.value(source)[node.player];
        if (node.kind == NodeKind::Decision) {
            sum = is_proven(child_node) && sum != refuted() ? value * (f32)visits : sum + (undo + value);
        }
    }
    if (node.kind != NodeKind::Decision || child_node.bounds_dirty == 0) return source;
    VZ_SYNC(8); // every lane has read both nodes
    return propagate_bounds(row, child, child_node, parent, node) ? parent : source;
}

// Backs the value of `leaf` up to the root and adds it to `root_sum` [P]. All lanes.
VZ_DEVICE void backup(const Row& row, i32 leaf, VirtualLoss virtual_loss, f32* root_sum) {
    const i32 visit = virtual_loss == VirtualLoss::Applied ? 0 : 1;
    const f32 undo = virtual_loss == VirtualLoss::Applied ? VIRTUAL_LOSS : 0.0f;
    i32 from = leaf, source = leaf;
    while (from != NO_NODE) {
        const i32 mine = climb(row, from);
        const bool here = mine != NO_NODE;
        const Node node = here ? row.nodes[mine] : new_node(NO_NODE, 0);
        const bool has_proof = node.parent != NO_NODE && (is_proven(node) || node.bounds_dirty != 0);
        const u32 proofs = __ballot_sync(ALL_LANES, has_proof);
        const int first_proof = proofs == 0 ? WARP : trailing_zeros(proofs);
        const f32* value = row.value(source);
        if (here && lane() <= first_proof) {
            row.nodes[mine].visits = node.visits + visit;
            row.nodes[mine].value_sum = node.value_sum + value[node.player];
        }
        if (here && lane() < first_proof && node.parent != NO_NODE) {
            const Node& above = row.nodes[node.parent];
            row.visits(node.parent)[node.parent_edge].integer += visit;
            if (above.kind == NodeKind::Decision) {
                row.value_sum(node.parent)[node.parent_edge].real += undo + value[above.player];
            }
        }
        if (first_proof == WARP) {
            from = from_lane(node.parent, WARP - 1);
            continue;
        }
        const i32 child = from_lane(mine, first_proof);
        const Node child_node = row.nodes[child];
        source = backup_proof(row, child, child_node, source, visit, undo);
        from = child_node.parent;
        VZ_SYNC(9);
    }
    if (lane() < VZ_PLAYERS) root_sum[lane()] += row.value(source)[lane()];
}

} // namespace search
