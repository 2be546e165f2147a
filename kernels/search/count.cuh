// The only kernels' parts that look at several rows: places for the leaves that need the network, and what all rows did.
// Both in row order, so that they do not depend on how blocks are scheduled.
#pragma once
#include "tree.cuh"

namespace search {

// What all rows have done since they were last counted; see `Selected`.
struct Totals {
    u64 passes, leaves, asked, simulations, depth_sum, depth_max;
    u64 unfinished; // rows with simulations left
    u64 padding;
};

constexpr int MOST_WARPS = 32;

// The sum over a block of `value`, and of the threads before this one. `shared` [MOST_WARPS]. All threads of the block.
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

// Gives the leaves that need the network the places 0.. in row order. One block.
VZ_DEVICE void number_leaves(const Rows& rows, u32* shared) {
    u32 first = 0;
    for (u32 tile = 0; tile < rows.num_rows; tile += blockDim.x) {
        const u32 b = tile + threadIdx.x;
        const bool here = b < rows.num_rows;
        u32 total;
        u32 slot = first + sum_before(here ? rows.roots[b].num_asked : 0, shared, total);
        first += total;
        const u32 leaves = here ? rows.roots[b].num_leaves : 0;
        for (u32 place = 0; place < leaves; place++) {
            Leaf& leaf = rows.leaves[b * rows.num_leaves + place];
            if (leaf.slot >= 0) leaf.slot = (i32)slot++;
        }
    }
}

// Sums what the rows have done, and sets their counts to 0; one bit for each row with simulations left goes behind the
// totals. `shared` [blockDim.x]. One block.
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
        mine.passes += done.passes;
        mine.leaves += done.leaves;
        mine.asked += done.asked;
        mine.simulations += done.simulations;
        mine.depth_sum += done.depth_sum;
        mine.depth_max = larger(mine.depth_max, (u64)done.depth_max);
        mine.unfinished += unfinished ? 1 : 0;
        rows.done[b] = RowCounts{};
    }
    shared[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (u32 i = 1; i < blockDim.x; i++) {
        const Totals& other = shared[i];
        mine.passes += other.passes;
        mine.leaves += other.leaves;
        mine.asked += other.asked;
        mine.simulations += other.simulations;
        mine.depth_sum += other.depth_sum;
        mine.depth_max = larger(mine.depth_max, other.depth_max);
        mine.unfinished += other.unfinished;
    }
    *out = mine;
}

} // namespace search
