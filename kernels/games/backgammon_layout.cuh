// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace backgammon {

constexpr int BOARD_LEN = 28; // Length of `State::board`.
constexpr int BAR = 1; // The mover's bar.
constexpr int ACE = 25; // The mover's 1-point, the last index before bearing off.
constexpr int OTHER_BAR = 26; // The other player's bar.
constexpr int OFF = 27; // The mover's checkers borne off.
constexpr int OTHER_OFF = 0; // The other player's checkers borne off.
constexpr int HOME = 20; // The first index of the winner's home board, in the winner's direction of travel.
constexpr i8 CHECKERS = 15; // Checkers of each player.
constexpr u16 NO_MOVE = 0; // "No move": dice are left, but none can be played.
constexpr int NUM_ROLLS = 21; // Different rolls of two dice.
// Dice rolls a <= b in the order of their numbers.
VZ_TABLE u8 ROLLS[NUM_ROLLS][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {2, 2}, {2, 3}, {2, 4}, {2, 5}, {2, 6}, {3, 3}, {3, 4}, {3, 5}, {3, 6}, {4, 4}, {4, 5}, {4, 6}, {5, 5}, {5, 6}, {6, 6}};
constexpr u8 PHASE_STARTER = 0; // The phase of `State::phase` in which chance draws the player who starts.
constexpr u8 PHASE_OPENING_ROLL = 1; // The phase of the starter's first roll.
constexpr u8 PHASE_ROLL = 2; // The phase of any other roll.
constexpr u8 PHASE_MOVE = 3; // The phase in which the player moves.
constexpr u8 PHASE_OVER = 4; // The phase after the last move.

constexpr u32 POINTS = 0x03FFFFFCu; // Indices 2..=25.
constexpr u32 OUTSIDE = 0x000FFFFCu; // Indices 2..=19, from where no checker may be left when bearing off.
constexpr u32 BAR_BIT = 2u; // The bit of the index `BAR`.

constexpr int SIDE_LEN = 12; // Numbers of each side with `network_sees = "features"`.
constexpr int FEATURES_AT = 211; // The first of them; without them, the end of the observation.

// One position.
struct State {
    // Checkers in the mover's direction of travel, the mover's positive, the other player's negative: index 1 is the
    // mover's bar, 2..=25 the points, 26 the other player's bar, 27 and 0 what the mover and the other have borne off.
    i8 board[BOARD_LEN];
    u8 dice[4]; // Faces still to be played, the higher first, then zeros.
    u8 phase; // The next event: `PHASE_STARTER` or one of the phases after it.
    u8 mover; // The player who moves or rolls; at the end, the winner.
    u8 points; // At the end, the points of the winner: 1, 2, 3, or 0 for a game that reached the limit.
    // The cube: how often it was turned in three bits, its owner's bit (player 0, player 1), and the bit of Crawford's game; 0 without a
    // cube.
    u8 cube;
    u16 plies; // Plies made.
    u8 score[2]; // The points of each player in the match, before this game.
};
static_assert(sizeof(State) == 40, "must equal the Rust struct");

} // namespace backgammon
