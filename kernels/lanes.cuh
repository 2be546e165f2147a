// Twin of src/simd.rs for the 32 lanes of a warp: sums, maxima and the best edge over a node's edges, in the same order as in
// Rust, so that results are equal to the bit.
//
// Edge e belongs to slice e / 32 and lane e % 32. Where a node has at most 8 or 16 edges, lanes repeat: lane l holds the same as lane
// l % WIDTH, so that reductions take fewer steps and every lane still has the result. Every function is called by all lanes of a
// warp together.
#pragma once
#include "math.cuh"
#include "search/layout.cuh"

#ifdef __CUDACC__
// A kernel of ROW_BLOCK threads a block that is bound by memory latency: few enough registers for ROW_BLOCKS of them on each multiprocessor.
#define VZ_DENSE_KERNEL extern "C" __global__ void __launch_bounds__(search::ROW_BLOCK, search::ROW_BLOCKS)
#else
#define VZ_DENSE_KERNEL VZ_KERNEL
#endif

namespace search {

constexpr u32 ALL_LANES = 0xFFFFFFFFu;
// Ep: E rounded up to a whole number of partial sums.
constexpr int PADDED = (VZ_TREE_EDGES + LANES - 1) / LANES * LANES;
constexpr int SLICES = (PADDED + WARP - 1) / WARP;
// Blocks of rows at once on a multiprocessor. With many edges the registers for eight are too few and are stored and loaded again: measured
// on an H100, eight in place of four cost Hex a fifth and gain Connect Four 4 % (benches/results/2026-11-27-gpu.md).
constexpr int ROW_BLOCKS = PADDED == 8 ? 8 : 4;
// Lanes that hold different edges.
constexpr int WIDTH = PADDED == 8 ? 8 : PADDED == 16 ? 16 : 32;

// The edge that this lane holds in a slice; it exists where it is below PADDED.
VZ_DEVICE int edge_in(int slice) { return slice * WARP + lane() % WIDTH; }

// The value of lane `source`.
template <class T>
VZ_DEVICE T from_lane(T value, int source) {
    return __shfl_sync(ALL_LANES, value, source);
}

// The value of `edge`: that of its lane in its slice.
template <class T>
VZ_DEVICE T from_edge(const T (&values)[SLICES], int edge) {
    T value = values[0];
VZ_UNROLL
    for (int slice = 1; slice < SLICES; slice++) value = edge / WARP == slice ? values[slice] : value;
    return from_lane(value, edge % WARP);
}

template <class T, class Join>
VZ_DEVICE T join_lanes(T value, Join join) {
VZ_UNROLL
    for (int distance = WIDTH / 2; distance > 0; distance /= 2) {
        value = join(value, __shfl_xor_sync(ALL_LANES, value, distance));
    }
    return value;
}

// The largest over edges.
template <class T>
VZ_DEVICE T largest_of(T value) {
    return join_lanes(value, [](T a, T b) { return b > a ? b : a; });
}

// The sum over edges of integers, one a lane.
VZ_DEVICE i32 sum_of_integers(i32 value) {
    return join_lanes(value, [](i32 a, i32 b) { return a + b; });
}

// A sum over edges: partial sum i % 8 adds edge i, in ascending order; the eight partial sums are added pairwise. Every lane keeps
// the partial sum of its column, which is the same in all lanes of a column.
struct Sum {
    f32 partial = 0.0f;

    // Adds every lane's term of one slice; slices come in ascending order.
    VZ_DEVICE void add(int slice, f32 term) {
        if (WIDTH == LANES) {
            partial += term;
            return;
        }
        const int column = lane() % LANES;
VZ_UNROLL
        for (int group = 0; group < WIDTH / LANES; group++) {
            if (slice * WARP + group * LANES < PADDED) partial += from_lane(term, group * LANES + column);
        }
    }

    // The total, in every lane. Addition commutes, so both lanes of a pair get the same bits.
    VZ_DEVICE f32 total() const {
        f32 sum = partial;
        sum += __shfl_xor_sync(ALL_LANES, sum, 4);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        return sum;
    }
};

// No edge has a score above -inf.
constexpr int NO_EDGE = 0x7FFFFFFF;

// A running maximum over edges; the lowest edge wins ties.
struct Argmax {
    f32 score = from_bits(0xFF800000u); // -inf
    int edge = NO_EDGE;

    // Takes in this lane's score of one slice; slices come in ascending order.
    VZ_DEVICE void update(int slice, f32 offered) {
        edge = offered > score ? edge_in(slice) : edge;
        score = offered > score ? offered : score;
    }

    // The best edge, or NO_EDGE where every score was -inf.
    VZ_DEVICE int index() const {
        f32 best_score = score;
        int best_edge = edge;
VZ_UNROLL
        for (int distance = WIDTH / 2; distance > 0; distance /= 2) {
            const f32 other = __shfl_xor_sync(ALL_LANES, best_score, distance);
            const int other_edge = __shfl_xor_sync(ALL_LANES, best_edge, distance);
            const bool better = other > best_score || (other == best_score && other_edge < best_edge);
            best_edge = better ? other_edge : best_edge;
            best_score = better ? other : best_score;
        }
        return best_edge;
    }
};

} // namespace search

// The number of the caller's warp in the grid.
VZ_DEVICE u32 warp_in_grid() { return (u32)(thread_in_grid() / WARP); }
