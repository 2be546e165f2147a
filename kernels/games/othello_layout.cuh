// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace othello {

constexpr u64 SMALL_BOARD = 0x00003F3F3F3F3F3Full; // The cells of the 6x6 board.
constexpr u64 INNER = 0x7E7E7E7E7E7E7E7Eull; // Columns b to g: flipped runs never reach a border column sideways.

// One position.
struct State {
    u64 discs[2]; // The discs of each player. `[P]`
    u64 moves; // Cells where the player to move may place a disc; empty = must pass. Empty once the game is over.
    u16 to_play; // The player to move.
    u16 passed; // 1 if the last action was a pass.
    u32 over; // 1 once the game is over.
};
static_assert(sizeof(State) == 32, "must equal the Rust struct");

} // namespace othello
