// Twin of src/game/othello.rs. Bitboards with 8 bits per row on either board.
#pragma once
#include "games/board.cuh"
#include "games/othello_layout.cuh"

using othello::State;

namespace othello {

#if defined(VZ_OPT_END_TWO_PASSES)
constexpr bool TWO_PASSES = true;
#elif defined(VZ_OPT_END_NO_MOVE)
constexpr bool TWO_PASSES = false;
#else
#error "an unknown value of option end"
#endif
#if defined(VZ_OPT_NETWORK_SEES_MOVES)
constexpr bool SEES_MOVES = true;
#elif defined(VZ_OPT_NETWORK_SEES_DISCS)
constexpr bool SEES_MOVES = false;
#else
#error "an unknown value of option network_sees"
#endif
constexpr int SIDE = VZ_OPT_SIZE;
constexpr u16 PASS = SIDE * SIDE;
constexpr u64 BOARD = SIDE == 8 ? ~0ull : SMALL_BOARD;

// The four directions as shifts to the left, and the cells that a run may pass.
VZ_DEVICE int direction_shift(int d) { return d == 0 ? 1 : d == 1 ? 8 : d == 2 ? 7 : 9; }
VZ_DEVICE u64 direction_mask(int d) { return d == 1 ? ~0ull : INNER; }

// Runs of `middle` next to `from`, both ways along one direction; from the third cell on they grow by two cells a step
// (Kogge-Stone).
VZ_DEVICE void grow_runs(u64 from, u64 middle, int shift, u64& up, u64& down) {
    up = middle & from << shift;
    down = middle & from >> shift;
    up |= middle & up << shift;
    down |= middle & down >> shift;
    const u64 pairs_up = middle & middle << shift, pairs_down = middle & middle >> shift;
    up |= pairs_up & up << (2 * shift);
    down |= pairs_down & down >> (2 * shift);
    up |= pairs_up & up << (2 * shift);
    down |= pairs_down & down >> (2 * shift);
}

// Cells that enclose a run of `other` with `own`, occupied ones included.
VZ_DEVICE u64 run_ends(u64 own, u64 other) {
    u64 ends = 0;
    for (int d = 0; d < 4; d++) {
        const int shift = direction_shift(d);
        u64 up, down;
        grow_runs(own, other & direction_mask(d), shift, up, down);
        ends |= up << shift | down >> shift;
    }
    return ends;
}

// The discs of `other` that a disc of `own` at bit `placed` flips.
VZ_DEVICE u64 flips(u64 placed, u64 own, u64 other) {
    u64 all = 0;
    for (int d = 0; d < 4; d++) {
        const int shift = direction_shift(d);
        u64 up, down;
        grow_runs(placed, other & direction_mask(d), shift, up, down);
        if ((up << shift & own) != 0) all |= up;
        if ((down >> shift & own) != 0) all |= down;
    }
    return all;
}

VZ_DEVICE int bit_of(int cell) { return SIDE == 8 ? cell : cell / 6 * 8 + cell % 6; }
VZ_DEVICE int cell_of(int bit) { return SIDE == 8 ? bit : bit - (bit >> 3) * 2; }
VZ_DEVICE u64 moves_of(u64 own, u64 other) { return run_ends(own, other) & BOARD & ~(own | other); }

VZ_DEVICE u64 transform_bits(u64 bits, u64 symmetry) {
    u64 image = 0;
    for (; bits != 0; bits &= bits - 1) {
        image |= 1ull << bit_of(board::transform_cell<SIDE>(cell_of(trailing_zeros(bits)), symmetry));
    }
    return image;
}

// True if the game ends, given that `own` is to move and has no moves, after `passes` passes in a row, at most 2.
VZ_DEVICE bool ends_game(u64 own, u64 other, int passes) {
    if (!TWO_PASSES) return moves_of(other, own) == 0;
    return passes == 2 || own == 0 || other == 0 || (own | other) == BOARD;
}

} // namespace othello

VZ_DEVICE int game_turn(const State& s) { return s.over == 0 ? s.to_play : TURN_OVER; }

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    if (s.moves == 0) {
        out[0] = othello::PASS;
        return 1;
    }
    int n = 0;
    for (u64 left = s.moves; left != 0; left &= left - 1) out[n++] = (u16)othello::cell_of(trailing_zeros(left));
    return n;
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    const int player = s.to_play, waiting = 1 - s.to_play;
    const int passes_before = s.passed != 0;
    u64 mine = select(s.discs, player), theirs = select(s.discs, waiting);
    s.passed = action == othello::PASS;
    if (s.passed == 0) {
        const u64 placed = 1ull << othello::bit_of(action);
        const u64 turned = othello::flips(placed, mine, theirs);
        mine |= placed | turned;
        theirs &= ~turned;
        assign(s.discs, player, mine);
        assign(s.discs, waiting, theirs);
    }
    s.to_play = (u16)waiting;
    s.moves = othello::moves_of(theirs, mine);
    if (s.moves == 0) s.over = othello::ends_game(theirs, mine, s.passed != 0 ? passes_before + 1 : 0);
}

// Planes: own discs, the other player's discs; with SEES_MOVES then the cells where the player may place a disc, and those where the other player
// may, whoever is to move. [2 or 4, size, size]
template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    constexpr int CELLS = othello::SIDE * othello::SIDE;
    const u64 discs[2] = {select(s.discs, player), select(s.discs, 1 - player)};
    u64 moves[2] = {0, 0};
    if (othello::SEES_MOVES) {
        for (int p = 0; p < 2; p++) moves[p] = othello::moves_of(discs[p], discs[1 - p]);
    }
    for (int i = lane; i < VZ_OBS_CHANNELS * CELLS; i += lanes) {
        const int plane = i / CELLS;
        const u64 bits = plane < 2 ? select(discs, plane) : select(moves, plane - 2);
        out[i] = Out((f32)(bits >> othello::bit_of(i % CELLS) & 1));
    }
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    const int lead = popcount(s.discs[0]) - popcount(s.discs[1]);
    const f32 value = lead > 0 ? 1.0f : lead < 0 ? -1.0f : 0.0f;
    out[0] = value;
    out[1] = -value;
}

VZ_DEVICE void game_transform(const State& s, u64 symmetry, State& out) {
    out = s;
    if (symmetry == 0) return;
    out.discs[0] = othello::transform_bits(s.discs[0], symmetry);
    out.discs[1] = othello::transform_bits(s.discs[1], symmetry);
    out.moves = othello::transform_bits(s.moves, symmetry);
}

VZ_DEVICE u16 game_transform_action(u16 action, u64 symmetry) {
    return action == othello::PASS ? action : (u16)board::transform_cell<othello::SIDE>(action, symmetry);
}
