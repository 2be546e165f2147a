// Twin of src/search/reuse.rs: keeps the played subtree of one row by a stable compaction in place. All functions: all lanes.
//
// `targets` [T] holds the new index of each node, or NO_NODE.
#pragma once
#include "tree.cuh"

namespace search {

// Numbers the nodes below `top` (itself included) in index order, 32 at a time; returns how many there are. A parent's index
// is below its child's, so it is numbered before, or is among the same 32.
VZ_DEVICE u32 mark_subtree(const Row& row, i32 top, i32 count, i32* targets) {
    for (i32 n = lane(); n < top; n += WARP) targets[n] = NO_NODE;
    VZ_SYNC(12);
    u32 found = 0;
    for (i32 first = top; first < count; first += WARP) {
        const i32 n = first + lane();
        const i32 parent = n < count ? row.nodes[n].parent : NO_NODE;
        const bool near = parent >= first;
        bool inside = n == top || (!near && parent != NO_NODE && targets[parent] != NO_NODE);
        for (;;) {
            const u32 mask = __ballot_sync(ALL_LANES, inside);
            const bool joins = !inside && near && (mask >> (parent - first) & 1) != 0;
            inside = inside || joins;
            if (__ballot_sync(ALL_LANES, joins) == 0) break;
        }
        const u32 mask = __ballot_sync(ALL_LANES, inside);
        if (n < count) targets[n] = inside ? (i32)found + popcount(mask & ((1u << lane()) - 1)) : NO_NODE;
        found += popcount(mask);
        VZ_SYNC(13);
    }
    return found;
}

// How many marked nodes have at least `visits`.
VZ_DEVICE u32 count_visited(const Row& row, i32 count, const i32* targets, i32 visits) {
    u32 found = 0;
    for (i32 first = 0; first < count; first += WARP) {
        const i32 n = first + lane();
        const bool counts = n < count && targets[n] != NO_NODE && row.nodes[n].visits >= visits;
        found += popcount(__ballot_sync(ALL_LANES, counts));
    }
    return found;
}

// Renumbers so that only the `limit` most visited of the marked nodes remain, the lower index first among equals. `top` is
// marked, and no node below it has more visits.
VZ_DEVICE void trim(const Row& row, i32 top, i32 count, u32 limit, i32* targets) {
    // The threshold is the largest number of visits that at least `limit` nodes have.
    i32 low = 0, high = row.nodes[top].visits;
    while (low < high) {
        const i32 middle = low + (high - low + 1) / 2;
        if (count_visited(row, count, targets, middle) >= limit) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    const i32 threshold = low;
    const u32 at_threshold = limit - count_visited(row, count, targets, threshold + 1);
    u32 seen = 0, kept = 0;
    for (i32 first = 0; first < count; first += WARP) {
        const i32 n = first + lane();
        const bool marked = n < count && targets[n] != NO_NODE;
        const i32 visits = marked ? row.nodes[n].visits : 0;
        const u32 below = (1u << lane()) - 1;
        const u32 equal = __ballot_sync(ALL_LANES, marked && visits == threshold);
        const bool early = seen + popcount(equal & below) < at_threshold;
        const bool keep = marked && (visits > threshold || (visits == threshold && early));
        const u32 mask = __ballot_sync(ALL_LANES, keep);
        if (n < count) targets[n] = keep ? (i32)kept + popcount(mask & below) : NO_NODE;
        seen += popcount(equal);
        kept += popcount(mask);
    }
    VZ_SYNC(14);
}

// Four bytes of anything.
struct alignas(4) Bytes4 {
    u8 at[4];
};

// Copies `size` items, lane by lane.
template <class T>
VZ_DEVICE void move_items(T* to, const T* from, int size) {
    for (int i = lane(); i < size; i += WARP) to[i] = from[i];
}

// The index that a child or parent gets.
VZ_DEVICE i32 target_of(const i32* targets, i32 n) { return n == NO_NODE ? NO_NODE : targets[n]; }

// Moves node `from` with its edges, values and state to index `to` <= `from`, and replaces its children by their new indices.
VZ_DEVICE void relocate(const Row& row, i32 from, i32 to, const i32* targets) {
    const int num_edges = row.nodes[from].num_edges;
    for (int e = lane(); e < PADDED; e += WARP) {
        const i32 child = row.child(from)[e].integer;
        row.child(to)[e].integer = e < num_edges ? target_of(targets, child) : child;
    }
    if (from == to) return;
    move_items(row.prior(to), row.prior(from), 3 * PADDED);
    move_items(row.actions(to), row.actions(from), PADDED);
    move_items(row.value(to), row.value(from), VZ_PLAYERS);
    if (sizeof(State) % 4 == 0 && alignof(State) % 4 == 0) {
        move_items((Bytes4*)(row.states + to), (const Bytes4*)(row.states + from), (int)sizeof(State) / 4);
    } else {
        move_items((u8*)(row.states + to), (const u8*)(row.states + from), (int)sizeof(State));
    }
}

// Moves every kept node from `top` on to its target.
VZ_DEVICE void compact(const Row& row, i32 top, i32 count, const i32* targets) {
    u32 kept = 0;
    for (i32 n = top; n < count; n++) {
        const i32 to = targets[n];
        if (to == NO_NODE) continue;
        Node node = row.nodes[n];
        node.parent = n == top ? NO_NODE : target_of(targets, node.parent);
        relocate(row, n, to, targets);
        VZ_SYNC(15);
        if (lane() == 0) row.nodes[to] = node;
        kept += 1;
    }
    VZ_SYNC(16);
    if (lane() == 0) *row.count = kept;
}

// Makes `child` of the root the new root and drops everything outside its subtree, and the least visited nodes beyond
// `limit` > 0.
VZ_DEVICE void keep_subtree(const Row& row, i32 child, u32 limit, i32* targets) {
    const i32 count = (i32)*row.count;
    if (mark_subtree(row, child, count, targets) > limit) trim(row, child, count, limit, targets);
    compact(row, child, count, targets);
}

// Keeps the most visited `limit` nodes of the whole row.
VZ_DEVICE void keep_most_visited(const Row& row, u32 limit, i32* targets) {
    keep_subtree(row, ROOT, limit, targets);
}

} // namespace search
