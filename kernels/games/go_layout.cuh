// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace go {

constexpr int STATE_WORDS = 6; // Words of a set of points in a state: those of the largest board.

constexpr u16 NOWHERE = 0xFFFF; // No point: at the start and after a pass.
constexpr u64 KEY_SEED = 5ull; // The seed of the table of the stones' keys.
constexpr u32 KEYS_PER_PLAYER = 512u; // Keys of one player; the key of a stone has the index player * KEYS_PER_PLAYER + point.
constexpr u64 KEY_INDEX = 1023ull; // The low bits of a key, which are its own index.

// One position. Player 0 is black and moves first.
struct State {
    u64 stones[2][STATE_WORDS]; // Stones of each player, bit row * size + column. `[P]`
    u64 atari[2][STATE_WORDS]; // Those of them in groups with one liberty. `[P]`
    u64 barred[STATE_WORDS]; // Points that may not be played because the position would repeat.
    u64 hash; // Key of the stones (Zobrist 1970).
    u16 last; // Point of the last move; `NOWHERE` at the start and after a pass.
    u16 plies; // Plies played.
    u8 passes; // Passes in a row, 0 to 2.
    u8 captures; // 1 once stones have been captured: before that no position can repeat.
    u16 padding; // Always 0.
};
static_assert(sizeof(State) == 256, "must equal the Rust struct");

} // namespace go
