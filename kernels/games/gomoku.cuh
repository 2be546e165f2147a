// Twin of src/game/gomoku.rs.
#pragma once
#include "games/board.cuh"
#include "games/gomoku_layout.cuh"

using gomoku::State;

namespace gomoku {

#if defined(VZ_OPT_RULE_EXACT)
constexpr bool EXACT = true;
#elif defined(VZ_OPT_RULE_FREESTYLE)
constexpr bool EXACT = false;
#else
#error "an unknown value of option rule"
#endif
#if defined(VZ_OPT_OPENING_SWAP2)
constexpr bool SWAP2 = true;
#elif defined(VZ_OPT_OPENING_NONE)
constexpr bool SWAP2 = false;
#else
#error "an unknown value of option opening"
#endif
#if defined(VZ_OPT_NETWORK_SEES_THREATS)
constexpr bool SEES_THREATS = true;
#elif defined(VZ_OPT_NETWORK_SEES_STONES)
constexpr bool SEES_THREATS = false;
#else
#error "an unknown value of option network_sees"
#endif
constexpr int SIDE = VZ_OPT_SIZE;
constexpr int CELLS = SIDE * SIDE;

// Number of consecutive stones after `cell` in one direction, at most five.
VZ_DEVICE int run_length(const Cells& stones, int cell, int down, int right) {
    int row = cell / SIDE + down, column = cell % SIDE + right, length = 0;
    while (length < 5 && (u32)row < (u32)SIDE && (u32)column < (u32)SIDE && stones.contains(row * SIDE + column)) {
        length++;
        row += down;
        column += right;
    }
    return length;
}

// True if the stone at `cell` is in a winning row.
VZ_DEVICE bool wins_at(const Cells& stones, int cell) {
    for (int d = 0; d < 4; d++) {
        const int down = d == 0 ? 0 : 1, right = d == 1 ? 0 : d == 3 ? -1 : 1;
        const int length = 1 + run_length(stones, cell, down, right) + run_length(stones, cell, -down, -right);
        if (EXACT ? length == 5 : length >= 5) return true;
    }
    return false;
}

VZ_DEVICE void place_stone(State& s, int cell) {
    const int colour = s.placed & 1;
    s.stones[colour].insert(cell);
    s.placed += 1;
    if (s.phase == Phase::Alternate) {
        if (wins_at(s.stones[colour], cell)) {
            s.outcome = (u8)(s.to_play + 1);
        } else if (s.placed == (u32)CELLS) {
            s.outcome = DRAW;
        }
        s.to_play ^= 1;
    } else if (s.phase == Phase::Opening && s.placed == 3) {
        s.phase = Phase::FirstChoice;
        s.to_play = 1;
    } else if (s.phase == Phase::More && s.placed == 5) {
        s.phase = Phase::LastChoice;
        s.to_play = 0;
    }
}

VZ_DEVICE void choose(State& s, int choice) {
    if (choice == MORE_STONES) {
        s.phase = Phase::More;
        return;
    }
    s.black = choice == TAKE_BLACK ? s.to_play : (u8)(1 - s.to_play);
    s.to_play = (u8)(1 - s.black);
    s.phase = Phase::Alternate;
}

// True if `cell` is empty and one of five cells in a line with no stone of `other` and `count` of `own`.
VZ_DEVICE bool is_threat(const Cells& own, const Cells& other, int cell, int count) {
    if (own.contains(cell) || other.contains(cell)) return false;
    for (int d = 0; d < 4; d++) {
        const int down = d == 0 ? 0 : 1, right = d == 1 ? 0 : d == 3 ? -1 : 1;
        for (int before = 0; before < 5; before++) {
            const int row = cell / SIDE - before * down, column = cell % SIDE - before * right;
            const int last_row = row + 4 * down, last_column = column + 4 * right;
            if ((u32)row >= (u32)SIDE || (u32)column >= (u32)SIDE || (u32)last_row >= (u32)SIDE || (u32)last_column >= (u32)SIDE) continue;
            int stones = 0;
            for (int i = 0; i < 5; i++) {
                const int at = (row + i * down) * SIDE + column + i * right;
                stones += other.contains(at) ? -5 : own.contains(at);
            }
            if (stones == count) return true;
        }
    }
    return false;
}

// The colour of the player's first plane.
VZ_DEVICE int first_colour(const State& s, int player) {
    return s.phase == Phase::Alternate ? player != s.black : (int)(s.placed & 1);
}

} // namespace gomoku

VZ_DEVICE int game_turn(const State& s) { return s.outcome == 0 ? s.to_play : TURN_OVER; }

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    const int choices = s.phase == gomoku::Phase::FirstChoice ? 3 : s.phase == gomoku::Phase::LastChoice ? 2 : 0;
    if (choices == 0) return s.stones[0].united(s.stones[1]).write_free(out);
    for (int choice = 0; choice < choices; choice++) out[choice] = (u16)(gomoku::CELLS + choice);
    return choices;
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    if (action < gomoku::CELLS) {
        gomoku::place_stone(s, action);
    } else {
        gomoku::choose(s, action - gomoku::CELLS);
    }
}

// Planes: own stones, the other player's stones; before the colours are chosen, stones of the colour to be placed next,
// stones of the other colour. With Swap2 four constant planes more, one a phase of the opening: 1 in the present phase for
// the player to move, -1 for the other, else 0. With SEES_THREATS four planes more: is_threat of the first colour with three stones, with
// four, and the same of the second. [2, 6 or 10, size, size]
template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    const int colour = gomoku::first_colour(s, player);
    const f32 sign = player == s.to_play ? 1.0f : -1.0f;
    const int first_threat = gomoku::SEES_THREATS ? VZ_OBS_CHANNELS - 4 : VZ_OBS_CHANNELS;
    for (int i = lane; i < VZ_OBS_CHANNELS * gomoku::CELLS; i += lanes) {
        const int plane = i / gomoku::CELLS, cell = i % gomoku::CELLS;
        if (plane < 2) {
            out[i] = Out(s.stones[plane == 0 ? colour : 1 - colour].contains(cell) ? 1.0f : 0.0f);
        } else if (plane < first_threat) {
            out[i] = Out(plane - 1 == (int)s.phase ? sign : 0.0f);
        } else {
            const int threat = plane - first_threat, of = threat < 2 ? colour : 1 - colour;
            out[i] = Out(gomoku::is_threat(s.stones[of], s.stones[1 - of], cell, 3 + threat % 2) ? 1.0f : 0.0f);
        }
    }
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    winner_returns(s.outcome, out);
}

VZ_DEVICE void game_transform(const State& s, u64 symmetry, State& out) {
    out = s;
    for (int colour = 0; colour < 2; colour++) {
        out.stones[colour] = board::transform_cells<gomoku::SIDE>(s.stones[colour], symmetry);
    }
}

VZ_DEVICE u16 game_transform_action(u16 action, u64 symmetry) {
    return action >= gomoku::CELLS ? action : (u16)board::transform_cell<gomoku::SIDE>(action, symmetry);
}
