// Twin of src/game/tic_tac_toe.rs.
#pragma once
#include "games/tic_tac_toe_layout.cuh"
#include "rng.cuh"

using tic_tac_toe::State;

namespace tic_tac_toe {

VZ_DEVICE bool has_line(u32 cells) {
    // Rows, columns, diagonals: a line's first cells as bits, then its other cells by shifts.
    const u32 rows = cells & cells >> 1 & cells >> 2 & 0x049;
    const u32 columns = cells & cells >> 3 & cells >> 6 & 0x007;
    const u32 diagonals = (cells & 0x111) == 0x111 || (cells & 0x054) == 0x054;
    return (rows | columns | diagonals) != 0;
}

VZ_DEVICE u16 transform_cell(u16 cell, u64 symmetry) {
    u32 row = cell / 3u, column = cell % 3u;
    if (symmetry & 4) swap_values(row, column);
    if (symmetry & 2) row = 2 - row;
    if (symmetry & 1) column = 2 - column;
    return (u16)(row * 3 + column);
}

} // namespace tic_tac_toe

VZ_DEVICE int game_turn(const State& s) {
    const u32 taken = s.cells[0] | s.cells[1];
    const bool won = tic_tac_toe::has_line(s.cells[0]) || tic_tac_toe::has_line(s.cells[1]);
    return won || taken == tic_tac_toe::FULL ? TURN_OVER : popcount(taken) & 1;
}

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    return write_bits(tic_tac_toe::FULL & ~(u32)(s.cells[0] | s.cells[1]), 0, out);
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    const int player = popcount((u32)(s.cells[0] | s.cells[1])) & 1;
    assign(s.cells, player, (u16)(select(s.cells, player) | 1u << action));
}

// Planes: own cells, the other player's cells. [2, 3, 3]
template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    const u32 planes = select(s.cells, player) | (u32)select(s.cells, 1 - player) << 9;
    for (int i = lane; i < 18; i += lanes) out[i] = Out((f32)(planes >> i & 1));
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    const f32 value = (f32)((int)tic_tac_toe::has_line(s.cells[0]) - (int)tic_tac_toe::has_line(s.cells[1]));
    out[0] = value;
    out[1] = -value;
}

VZ_DEVICE void game_transform(const State& s, u64 symmetry, State& out) {
    for (int player = 0; player < 2; player++) {
        u32 image = 0;
        for (u32 left = s.cells[player]; left != 0; left &= left - 1) {
            image |= 1u << tic_tac_toe::transform_cell((u16)trailing_zeros(left), symmetry);
        }
        out.cells[player] = (u16)image;
    }
}

VZ_DEVICE u16 game_transform_action(u16 action, u64 symmetry) {
    return tic_tac_toe::transform_cell(action, symmetry);
}
