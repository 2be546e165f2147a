// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace tic_tac_toe {

constexpr u32 FULL = 511u; // All cells.

// The cells of each player as bits; the player to move follows from their number.
struct State {
    u16 cells[2]; // Bit i: player p holds cell i. `[P]`
};
static_assert(sizeof(State) == 4, "must equal the Rust struct");

} // namespace tic_tac_toe
