// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace blob {

constexpr int MAX_PLAYERS = 8; // Maximum number of players of a game.

constexpr int NUM_CARDS = 52; // Cards of the pack.
constexpr int MIN_PLAYERS = 3; // Minimum number of players of a game.

constexpr u8 NO_BID = 255; // The entry of `State::bids` of a player who has not bid.
constexpr u64 PACK = 0x000FFFFFFFFFFFFFull; // Every card.
constexpr u64 SPADES = 8191ull; // The cards of spades; suit s is this shifted by 13 s.

constexpr int SEATS_AT = 156; // The first element of the seats.
constexpr int SEAT_LEN = 33; // Elements of a seat.
constexpr int ROUND_LEN = 19; // Elements of the round, which follow the seats.

// The phase of a round.
enum class Phase : u8 {
    Deal = 0, // Cards are dealt, one by one.
    Bid = 1, // Players bid.
    Play = 2, // Players play cards.
    Over = 3, // The game is over.
    Seating = 4, // The number of players is drawn.
};

// One position. Sets of cards are bit masks, bit c for card c. Entries of seats without a player stay as at the start.
struct State {
    u64 hands[MAX_PLAYERS]; // Cards in each player's hand. `[8]`
    u64 gone; // Cards of this round's finished tricks.
    u16 scores[MAX_PLAYERS]; // Points of the finished rounds. `[8]`
    u8 trick[MAX_PLAYERS]; // The cards of the current trick in order of play, the first from `leader`; 0 beyond them. `[8]`
    u8 bids[MAX_PLAYERS]; // Bids of this round, `NO_BID` where none was made. `[8]`
    u8 tricks[MAX_PLAYERS]; // Tricks taken in this round. `[8]`
    u8 round_points[MAX_PLAYERS]; // Points of the last finished round, 0 before the first. `[8]`
    u32 voids; // Bit 4 p + s: player p has shown, by not following suit, that it has no cards of suit s.
    u8 round; // The round, from 0.
    Phase phase; // The number of the round's `Phase`.
    u8 leader; // The player who bids first, or leads the current trick.
    u8 count; // Cards dealt, bids made or cards in the current trick, by phase.
    u8 players; // Number of players, 0 until it is drawn.
    u8 unused[7]; // Zeros, for a multiple of 8 bytes. `[7]`
};
static_assert(sizeof(State) == 136, "must equal the Rust struct");

} // namespace blob
