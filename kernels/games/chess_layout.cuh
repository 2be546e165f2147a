// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace chess {

constexpr int PAWN = 0; // The index of the pawns among the bitboards of a position; the other kinds of pieces follow.
constexpr int KNIGHT = 1;
constexpr int BISHOP = 2;
constexpr int ROOK = 3;
constexpr int QUEEN = 4;
constexpr int KING = 5;
constexpr int KING_HOME = 32; // The square of the king of the side to move in the initial position.
constexpr int ROOK_HOME_A = 0; // That of its rook on the a-file.
constexpr int ROOK_HOME_H = 56; // That of its rook on the h-file.
constexpr u64 RANK_2 = 0x0202020202020202ull;
constexpr u64 RANK_8 = 0x8080808080808080ull;
constexpr u64 DARK = 0xAA55AA55AA55AA55ull; // The squares of the colour of a1.
constexpr u64 PIECE_SEED = 1ull; // The seed of the table of keys of pieces.
constexpr u64 CASTLING_SEED = 2ull; // The seed of the table of keys of castling rights.
constexpr u64 EN_PASSANT_SEED = 3ull; // The seed of the table of keys of en passant files.
constexpr u64 BLACK_SEED = 4ull; // The seed of the table with the key of black to move.

constexpr u8 OWN_SHORT = 1; // The side to move may castle with its rook on the h-file.
constexpr u8 OWN_LONG = 2; // The side to move may castle with its rook on the a-file.
constexpr u8 OTHER_SHORT = 4; // The other side may castle with its rook on the h-file.
constexpr u8 OTHER_LONG = 8; // The other side may castle with its rook on the a-file.

// How a game ended; `State::outcome` holds the number.
enum class Outcome : u8 {
    None = 0, // The game is in progress.
    WhiteMates = 1, // White has mated.
    BlackMates = 2, // Black has mated.
    Stalemate = 3, // No legal move, no check.
    InsufficientMaterial = 4, // Neither side can mate.
    Repetition = 5, // The third occurrence of a position.
    FiftyMoves = 6, // A hundred plies without capture or pawn move.
    TooLong = 7, // The setting `max_plies` is reached.
};

// One position, from the view of the side to move: its first rank is rank 0, a square is `file * 8 + rank`.
struct State {
    u64 pieces[6]; // Squares of each kind of piece of both sides: pawns, knights, bishops, rooks, queens, kings.
    u64 sides[2]; // Squares of the side to move, squares of the other side.
    u64 hash; // Key of the pieces and the side to move, in absolute colours; castling and en passant are not in it.
    u16 halfmove_clock; // Plies since the last capture or pawn move.
    u16 fullmove; // Number of the full move, as in FEN.
    u16 plies; // Plies played since the start of this game.
    u8 castling; // Castling rights, a sum of `OWN_SHORT` and its like.
    u8 en_passant; // 0, or 1 + the square passed by the pawn that the side to move can legally take en passant.
    u8 repetitions; // Earlier occurrences of this position in the game.
    u8 colour; // 0 if white is to move, 1 if black is.
    Outcome outcome; // The number of the `Outcome`, 0 while the game is in progress.
    u8 padding[5]; // Always 0.
};
static_assert(sizeof(State) == 88, "must equal the Rust struct");

} // namespace chess
