// Twin of src/game/connect_four.rs. Bitboards, column-major, VZ_OPT_ROWS + 1 bits per column, bit 0 the bottom left.
#pragma once
#include "games/connect_four_layout.cuh"
#include "rng.cuh"

using connect_four::State;

namespace connect_four {

#if defined(VZ_OPT_NETWORK_SEES_THREATS)
constexpr bool SEES_THREATS = true;
#elif defined(VZ_OPT_NETWORK_SEES_STONES)
constexpr bool SEES_THREATS = false;
#else
#error "an unknown value of option network_sees"
#endif
constexpr int ROWS = VZ_OPT_ROWS, COLUMNS = VZ_OPT_COLUMNS, CONNECT = VZ_OPT_CONNECT;
constexpr int STRIDE = ROWS + 1; // bits of one column, the guard bit included
constexpr int CELLS = ROWS * COLUMNS;

VZ_DEVICE bool has_line(u64 stones) {
    const int directions[4] = {1, STRIDE - 1, STRIDE, STRIDE + 1};
    u64 found = 0;
    for (int d = 0; d < 4; d++) {
        const int shift = directions[d];
        if (CONNECT == 4) {
            const u64 pairs = stones & stones >> shift;
            found |= pairs & pairs >> (2 * shift);
        } else {
            u64 run = stones;
            for (int i = 1; i < CONNECT; i++) run &= run >> shift;
            found |= run;
        }
    }
    return found != 0;
}

// The bits beside which `stones` have the rest of a row, before and after them together.
VZ_DEVICE u64 ends(u64 stones) {
    const int directions[4] = {1, STRIDE - 1, STRIDE, STRIDE + 1};
    u64 found = 0;
    for (int d = 0; d < 4; d++) {
        for (int before = 0; before < CONNECT; before++) {
            u64 rest = ~0ull, next = stones;
            for (int i = 0; i < before; i++) rest &= next <<= directions[d];
            next = stones;
            for (int i = before + 1; i < CONNECT; i++) rest &= next >>= directions[d];
            found |= rest;
        }
    }
    return found;
}

// The bit of a cell, row-major from the top left.
VZ_DEVICE int bit_of(int cell) { return cell % COLUMNS * STRIDE + (ROWS - 1 - cell / COLUMNS); }

VZ_DEVICE u64 mirror(u64 stones) {
    const u64 column = (1ull << STRIDE) - 1;
    u64 out = 0;
    for (int c = 0; c < COLUMNS; c++) {
        out |= (stones >> (c * STRIDE) & column) << ((COLUMNS - 1 - c) * STRIDE);
    }
    return out;
}

} // namespace connect_four

VZ_DEVICE int game_turn(const State& s) { return s.outcome == 0 ? (int)(s.plies & 1) : TURN_OVER; }

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    const u64 taken = s.stones[0] | s.stones[1];
    int n = 0;
    for (int column = 0; column < connect_four::COLUMNS; column++) {
        const u64 top = 1ull << (column * connect_four::STRIDE + connect_four::ROWS - 1);
        if ((taken & top) == 0) out[n++] = (u16)column;
    }
    return n;
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    const int player = s.plies & 1;
    const u64 taken = s.stones[0] | s.stones[1];
    const int shift = action * connect_four::STRIDE;
    const u64 column = ((1ull << connect_four::ROWS) - 1) << shift;
    const u64 own = select(s.stones, player) | ((taken + (1ull << shift)) & column);
    assign(s.stones, player, own);
    s.plies += 1;
    s.outcome = connect_four::has_line(own) ? player + 1u : s.plies == (u32)connect_four::CELLS ? 3u : 0u;
}

// Planes: own stones, the other player's stones, the top row first; with SEES_THREATS then the empty cells in which an own stone completes a
// row, and those in which one of the other player does. [2 or 4, rows, columns]
template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    const u64 stones[2] = {select(s.stones, player), select(s.stones, 1 - player)}, empty = ~(stones[0] | stones[1]);
    u64 threats[2] = {0, 0};
    if (connect_four::SEES_THREATS) {
        for (int p = 0; p < 2; p++) threats[p] = connect_four::ends(stones[p]) & empty;
    }
    for (int i = lane; i < VZ_OBS_CHANNELS * connect_four::CELLS; i += lanes) {
        const int plane = i / connect_four::CELLS;
        const u64 cells = plane < 2 ? select(stones, plane) : select(threats, plane - 2);
        out[i] = Out((f32)(cells >> connect_four::bit_of(i % connect_four::CELLS) & 1));
    }
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    winner_returns(s.outcome, out);
}

VZ_DEVICE void game_transform(const State& s, u64 symmetry, State& out) {
    out = s;
    if (symmetry == 0) return;
    out.stones[0] = connect_four::mirror(s.stones[0]);
    out.stones[1] = connect_four::mirror(s.stones[1]);
}

VZ_DEVICE u16 game_transform_action(u16 action, u64 symmetry) {
    return symmetry == 0 ? action : (u16)(connect_four::COLUMNS - 1 - action);
}
