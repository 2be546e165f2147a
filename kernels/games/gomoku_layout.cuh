// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace gomoku {

// A set of cells of this game's board (board.cuh).
typedef board::CellSet<VZ_OPT_SIZE * VZ_OPT_SIZE> Cells;

constexpr u8 DRAW = 3; // The outcome of a full board without a winning row.
constexpr int TAKE_BLACK = 0; // The choice of black in Swap2, counted from the last cell on.
constexpr int MORE_STONES = 2; // The choice of two stones more.

// The phases of a game. All but `Phase::Alternate` belong to Swap2.
enum class Phase : u8 {
    Alternate = 0, // The colours are given; players move in turn.
    Opening = 1, // Player 0 puts down the first three stones.
    FirstChoice = 2, // Player 1 chooses black, white or two stones more.
    More = 3, // Player 1 puts down two stones more.
    LastChoice = 4, // Player 0 chooses black or white.
};

// One position.
struct State {
    Cells stones[2]; // The stones of each colour: black, white.
    u32 placed; // Stones on the board; black is to be placed next where it is even.
    u8 to_play; // The player to move.
    u8 black; // The player who has black; 0 until the colours are chosen.
    Phase phase; // The number of the game's `Phase`.
    u8 outcome; // 0 while the game is in progress, 1 or 2 for the winner's number plus one, 3 for a draw.
};
static_assert(sizeof(State) == 104, "must equal the Rust struct");

} // namespace gomoku
