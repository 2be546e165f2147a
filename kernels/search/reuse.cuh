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
    const auto parent_of = [&](i32 n) { return n < count ? row.nodes[n].parent : NO_NODE; };
    i32 next = parent_of(top + lane()); // read a round ahead
    for (i32 first = top; first < count; first += WARP) {
        const i32 n = first + lane(), parent = next;
        next = parent_of(n + WARP);
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

// SIZE bytes of anything, in words.
template <int SIZE>
struct alignas(SIZE) VZ_MAY_ALIAS Unit {
    u32 words[SIZE / 4];
};
template <>
struct VZ_MAY_ALIAS Unit<1> {
    u8 byte;
};

// The largest unit that a state consists of.
constexpr int STATE_UNIT = sizeof(State) % 8 == 0 && alignof(State) % 8 == 0   ? 8
                           : sizeof(State) % 4 == 0 && alignof(State) % 4 == 0 ? 4
                                                                               : 1;

// Copies `size` items, lane by lane.
template <class T>
VZ_DEVICE void move_items(T* to, const T* from, u64 size) {
    for (u64 i = (u64)lane(); i < size; i += WARP) to[i] = from[i];
}

// The index that a child or parent gets.
VZ_DEVICE i32 target_of(const i32* targets, i32 n) { return n == NO_NODE ? NO_NODE : targets[n]; }

// Moves what array `all` has of the nodes `first` to `first` + 31, PER_NODE units each: lane k has the target of node `first` + k, or
// NO_NODE. `change(k, i, unit, moves)` is called for unit i of node `first` + k; `unit` was read only if `moves`. Units are moved AT_ONCE a
// lane, all reads before all writes: a memory access takes so long that one by one, nodes would take most of the time of a ply. A target is
// not above its node, so no write is to a node that is read later.
template <int PER_NODE, class T, class Change>
VZ_DEVICE void move_units(T* all, i32 first, i32 target, Change change) {
    constexpr int AT_ONCE = PER_NODE < 8 ? PER_NODE : 8;
    for (int begin = 0; begin < PER_NODE; begin += AT_ONCE) {
        T units[AT_ONCE];
        i32 to[AT_ONCE];
VZ_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int at = (begin + u) * WARP + lane(), k = at / PER_NODE;
            to[u] = from_lane(target, k % WARP);
            if (PER_NODE % AT_ONCE != 0 && begin + u >= PER_NODE) to[u] = NO_NODE;
            if (to[u] != NO_NODE) units[u] = all[(u64)first * PER_NODE + at];
        }
VZ_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int at = (begin + u) * WARP + lane();
            change(at / PER_NODE % WARP, at % PER_NODE, units[u], to[u] != NO_NODE);
        }
        VZ_SYNC(15);
VZ_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int at = (begin + u) * WARP + lane();
            if (to[u] != NO_NODE) all[(u64)to[u] * PER_NODE + at % PER_NODE] = units[u];
        }
    }
}

// The same with nothing changed.
template <int PER_NODE, class T>
VZ_DEVICE void move_units(T* all, i32 first, i32 target) {
    move_units<PER_NODE>(all, first, target, [](int, int, T&, bool) {});
}

// Moves the nodes `first` to `first` + 31 with their edges, values and states to their targets, and replaces parents and children by their
// new indices. Lane k has the target of node `first` + k.
VZ_DEVICE void relocate(const Row& row, i32 top, i32 first, i32 target, const i32* targets) {
    int num_edges = 0;
    Node node = new_node(NO_NODE, 0);
    if (target != NO_NODE) {
        node = row.nodes[first + lane()];
        num_edges = node.num_edges;
        node.parent = first + lane() == top ? NO_NODE : target_of(targets, node.parent);
    }
    // Units of four words of prior, visits, value sum and child.
    move_units<PADDED>((Unit<16>*)row.edges, first, target, [&](int k, int i, Unit<16>& unit, bool moves) {
        const int edges = from_lane(num_edges, k), e = 4 * i - 3 * PADDED;
        if (!moves || e < 0) return;
VZ_UNROLL
        for (int j = 0; j < 4; j++) {
            if (e + j < edges) unit.words[j] = (u32)target_of(targets, (i32)unit.words[j]);
        }
    });
    move_units<PADDED / 8>((Unit<16>*)row.actions_, first, target);
    move_units<VZ_PLAYERS>(row.values, first, target);
    move_units<(int)sizeof(State) / STATE_UNIT>((Unit<STATE_UNIT>*)row.states, first, target);
    if (target != NO_NODE) row.nodes[target] = node;
}

// Moves every kept node from `top` on to its target, 32 at a time.
VZ_DEVICE void compact(const Row& row, i32 top, i32 count, const i32* targets) {
    u32 kept = 0;
    for (i32 first = top; first < count; first += WARP) {
        const i32 n = first + lane(), target = n < count ? targets[n] : NO_NODE;
        const u32 mask = __ballot_sync(ALL_LANES, target != NO_NODE);
        if (mask != 0) relocate(row, top, first, target, targets);
        kept += popcount(mask);
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
