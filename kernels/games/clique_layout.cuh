// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace clique {

constexpr int SET_WORDS = 3; // Words of a set of edges.

// A set of edges.
struct EdgeSet {
    u64 words[SET_WORDS]; // Edge i is bit i % 64 of word i / 64.
};
static_assert(sizeof(EdgeSet) == 24, "must equal the Rust struct");

// One position.
struct State {
    EdgeSet edges[2]; // The edges of each player. `[P]`
    u32 plies; // Edges claimed.
    // 0 while the game is in progress, 1 or 2 for the winner's number plus one, 3 for a full board without a clique that would
    // have counted (a draw, or the success of both), 4 for the failure of both.
    u32 outcome;
};
static_assert(sizeof(State) == 56, "must equal the Rust struct");

} // namespace clique
