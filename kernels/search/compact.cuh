// The kernels' only parts that read several rows: slots for the leaves that need the network, and the totals of all rows.
// Both in row order, so that they do not depend on how blocks are scheduled.
#pragma once
#include "tree.cuh"

namespace search {

constexpr int MAX_WARPS = COUNTING_THREADS / WARP;

// The exclusive prefix sum of `value` over a block's threads; `total` is the sum over all. `shared` [MAX_WARPS]. All threads of the block.
VZ_DEVICE u32 sum_before(u32 value, u32* shared, u32& total) {
    u32 inclusive = value;
    for (int distance = 1; distance < WARP; distance *= 2) {
        const u32 other = __shfl_sync(ALL_LANES, inclusive, (lane() - distance) & (WARP - 1));
        inclusive += lane() >= distance ? other : 0;
    }
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    if (lane() == WARP - 1) shared[warp] = inclusive;
    __syncthreads();
    u32 before = inclusive - value;
    total = 0;
    for (int i = 0; i < warps; i++) {
        before += i < warp ? shared[i] : 0;
        total += shared[i];
    }
    __syncthreads();
    return before;
}

// Compacts the slots of a pass: the leaves that need the network get the slots 0.. in row order, `num_live` [1] is how many
// they are. A thread takes ceil(B / threads) consecutive rows, so that one prefix sum serves all of them. One block.
VZ_DEVICE void number_leaves(const Rows& rows, u32* shared, u32* num_live) {
    const u32 share = (rows.num_rows + blockDim.x - 1) / blockDim.x;
    const u32 first = minimum(threadIdx.x * share, rows.num_rows), end = minimum(first + share, rows.num_rows);
    u32 live = 0, total;
    for (u32 b = first; b < end; b++) live += rows.roots[b].num_evals;
    u32 slot = sum_before(live, shared, total);
    for (u32 b = first; b < end; b++) {
        const u32 leaves = rows.roots[b].num_leaves;
        for (u32 index = 0; index < leaves; index++) {
            Leaf& leaf = rows.leaves[b * rows.params.leaves + index];
            if (leaf.slot >= 0) leaf.slot = (i32)slot++;
        }
    }
    if (threadIdx.x == 0) *num_live = total;
}

// to += other; the maximum for depth_max.
VZ_DEVICE void add_totals(Totals& to, const Totals& other) {
    to.passes += other.passes;
    to.leaves += other.leaves;
    to.num_evals += other.num_evals;
    to.simulations += other.simulations;
    to.depth_sum += other.depth_sum;
    to.depth_max = maximum(to.depth_max, other.depth_max);
    to.unfinished += other.unfinished;
}

// The totals over the lanes of a warp. All lanes.
VZ_DEVICE Totals warp_totals(Totals mine) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        Totals other{};
        other.passes = __shfl_xor_sync(ALL_LANES, mine.passes, distance);
        other.leaves = __shfl_xor_sync(ALL_LANES, mine.leaves, distance);
        other.num_evals = __shfl_xor_sync(ALL_LANES, mine.num_evals, distance);
        other.simulations = __shfl_xor_sync(ALL_LANES, mine.simulations, distance);
        other.depth_sum = __shfl_xor_sync(ALL_LANES, mine.depth_sum, distance);
        other.depth_max = __shfl_xor_sync(ALL_LANES, mine.depth_max, distance);
        other.unfinished = __shfl_xor_sync(ALL_LANES, mine.unfinished, distance);
        add_totals(mine, other);
    }
    return mine;
}

// Sums the counts of all rows and sets them to 0; after the totals it writes one bit a row, set where simulations are left. `shared` [MAX_WARPS]. One block.
VZ_DEVICE void count_rows(const Rows& rows, Totals* shared, Totals* out) {
    Totals mine{};
    u32* bits = (u32*)(out + 1);
    for (u32 tile = 0; tile < rows.num_rows; tile += blockDim.x) {
        const u32 b = tile + threadIdx.x;
        const bool unfinished = b < rows.num_rows && rows.roots[b].left > 0;
        const u32 mask = __ballot_sync(ALL_LANES, unfinished);
        if (b >= rows.num_rows) continue;
        if (lane() == 0) bits[b / WARP] = mask;
        const RowCounts& done = rows.done[b];
        const u64 depth_max = done.depth_max;
        add_totals(
            mine,
            Totals{
                done.passes, done.leaves, done.num_evals, done.simulations, done.depth_sum, depth_max, unfinished ? 1u : 0u, 0
            }
        );
        rows.done[b] = RowCounts{};
    }
    mine = warp_totals(mine);
    if (lane() == 0) shared[threadIdx.x / WARP] = mine;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (u32 warp = 1; warp < blockDim.x / WARP; warp++) add_totals(mine, shared[warp]);
    *out = mine;
}

} // namespace search
