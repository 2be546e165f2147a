// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace hex {

// A set of cells of this game's board (board.cuh).
typedef board::CellSet<VZ_OPT_SIZE * VZ_OPT_SIZE> Cells;

constexpr u64 TRANSPOSE = 4ull; // The main diagonal's reflection, which exchanges the players' borders.

// One position.
struct State {
    Cells stones[2]; // The stones of each player. `[P]`
    Cells linked; // Stones linked to the first border of their owner: the top, the left.
    u32 plies; // Plies made.
    u16 to_play; // The player to move.
    u16 outcome; // 0 while the game is in progress, then the winner's number plus one.
};
static_assert(sizeof(State) == 152, "must equal the Rust struct");

} // namespace hex
