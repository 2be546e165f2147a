// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace connect_four {

// One position.
struct State {
    u64 stones[2]; // The stones of each player. `[P]`
    u32 plies; // Stones on the board.
    u32 outcome; // 0 while the game is in progress, 1 or 2 for the winner's number plus one, 3 for a draw.
};
static_assert(sizeof(State) == 24, "must equal the Rust struct");

} // namespace connect_four
