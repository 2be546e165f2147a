// Twin of src/game/backgammon: one ply plays one die; see there for the numbering of actions, rolls and indices.
#pragma once
#include "games/backgammon_layout.cuh"
#include "rng.cuh"

using backgammon::State;

namespace backgammon {

// The mover's checkers and the points that block them; bit i is index i.
struct Movers {
    u32 own;     // indices with at least one of the mover's checkers
    u32 single;  // indices with exactly one
    u32 blocked; // points the other player holds
};

VZ_DEVICE Movers movers_of(const State& s) {
    Movers m = {0, 0, 0};
    for (int index = BAR; index < OTHER_BAR; index++) {
        const int n = s.board[index];
        m.own |= u32(n > 0) << index;
        m.single |= u32(n == 1) << index;
        m.blocked |= u32(n < -1) << index;
    }
    return m;
}

// The indices from which `die` can be played.
VZ_DEVICE u32 sources(u32 own, u32 blocked, u32 die) {
    if (own & BAR_BIT) return BAR_BIT & ~(blocked >> die);
    const u32 steps = own & ((POINTS & ~blocked) >> die);
    if (own & OUTSIDE) return steps;
    const u32 exact = 1u << (26 - die);
    const u32 rear = own & (0u - own);
    return steps | (own & exact) | (rear > exact ? rear : 0);
}

// Of the indices `from` where `die` can be played, those after which `then` can be played.
VZ_DEVICE u32 followed(const Movers& m, u32 from, u32 die, u32 then, u32 then_die) {
    if (then & (then - 1)) return from; // `then` can be played from two indices, of which the first die empties at most one
    u32 kept = 0;
    for (u32 rest = from; rest != 0; rest &= rest - 1) {
        const u32 source = rest & (0u - rest);
        const u32 own = (m.own & ~(source & m.single)) | ((source << die) & POINTS);
        if (sources(own, m.blocked, then_die) != 0) kept |= source;
    }
    return kept;
}

// The indices from which two different dice can be played so that the turn uses as many dice as possible, or the higher
// where only one can be used.
VZ_DEVICE void first_of_two(const Movers& m, u32 high, u32 low, u32& from_high, u32& from_low) {
    const u32 can_high = sources(m.own, m.blocked, high);
    const u32 can_low = sources(m.own, m.blocked, low);
    from_high = followed(m, can_high, high, can_low, low);
    from_low = followed(m, can_low, low, can_high, high);
    if ((from_high | from_low) == 0) {
        from_high = can_high;
        from_low = can_high != 0 ? 0 : can_low;
    }
}

VZ_DEVICE int list_moves(const State& s, u16* out) {
    const Movers m = movers_of(s);
    const u32 high = s.dice[0], low = s.dice[1];
    u32 from_high, from_low;
    if (low != 0 && low != high) {
        first_of_two(m, high, low, from_high, from_low);
    } else {
        from_high = sources(m.own, m.blocked, high);
        from_low = 0;
    }
    if ((from_high | from_low) == 0) {
        out[0] = NO_MOVE;
        return 1;
    }
    int n = 0;
    for (u32 rest = from_high | from_low; rest != 0; rest &= rest - 1) {
        const u32 index = trailing_zeros(rest);
        if (from_low >> index & 1) out[n++] = u16(index * 6 + low - 1);
        if (from_high >> index & 1) out[n++] = u16(index * 6 + high - 1);
    }
    return n;
}

VZ_DEVICE int list_rolls(u8 phase, u16* out) {
    int n = 0;
    for (int roll = 0; roll < NUM_ROLLS; roll++) {
        const bool is_double = ROLLS[roll][0] == ROLLS[roll][1];
        const bool keep = VZ_OPT_SIMPLE_DOUBLES ? is_double : phase != PHASE_OPENING_ROLL || !is_double;
        if (keep) out[n++] = u16(roll);
    }
    return n;
}

VZ_DEVICE void clear_dice(State& s) {
    for (int i = 0; i < 4; i++) s.dice[i] = 0;
}

VZ_DEVICE void deal(State& s, u16 roll) {
    const u8 low = ROLLS[roll][0], high = ROLLS[roll][1];
    s.dice[0] = high;
    s.dice[1] = low;
    s.dice[2] = s.dice[3] = low == high ? low : u8(0);
    s.phase = PHASE_MOVE;
}

VZ_DEVICE void end_turn(State& s) {
    for (int index = 0; index < BOARD_LEN / 2; index++) {
        const i8 n = s.board[index];
        s.board[index] = i8(-s.board[BOARD_LEN - 1 - index]);
        s.board[BOARD_LEN - 1 - index] = i8(-n);
    }
    s.mover ^= 1;
    clear_dice(s);
    s.phase = PHASE_ROLL;
}

// The points of the mover after bearing off all checkers.
VZ_DEVICE u8 win_points(const State& s) {
    if (s.board[OTHER_OFF] < 0) return 1;
    for (int index = HOME; index <= OTHER_BAR; index++) {
        if (s.board[index] < 0) return 3;
    }
    return 2;
}

VZ_DEVICE void spend(State& s, u8 die) {
    int spent = 0;
    while (spent < 4 && s.dice[spent] != die) spent++;
    if (spent == 4) spent = 0;
    for (int i = spent; i < 3; i++) s.dice[i] = s.dice[i + 1];
    s.dice[3] = 0;
}

// Plays one die.
VZ_DEVICE void advance(State& s, int source, u8 die) {
    const int target = source + die < OTHER_BAR ? source + die : OTHER_BAR;
    s.board[source] -= 1;
    if (target == OTHER_BAR) {
        s.board[OFF] += 1;
    } else if (s.board[target] < 0) {
        s.board[target] = 1;
        s.board[OTHER_BAR] -= 1;
    } else {
        s.board[target] += 1;
    }
    spend(s, die);
    if (s.board[OFF] == CHECKERS) {
        s.points = win_points(s);
        clear_dice(s);
        s.phase = PHASE_OVER;
    } else if (s.dice[0] == 0) {
        end_turn(s);
    }
}

// The checkers on an index from the view of the mover, or of the other player.
VZ_DEVICE int seen(const State& s, View view, int index) {
    return view == View::MOVER ? s.board[index] : -s.board[BOARD_LEN - 1 - index];
}

VZ_DEVICE int pips(const State& s, View view) {
    int sum = 0;
    for (int index = BAR; index <= ACE; index++) {
        const int n = seen(s, view, index);
        sum += (26 - index) * (n > 0 ? n : 0);
    }
    return sum;
}

// Four numbers for `n` checkers on a point (Tesauro 1992).
VZ_DEVICE f32 point_unit(int n, int unit) {
    if (unit < 3) return f32(n > unit);
    return f32(n > 3 ? n - 3 : 0) * 0.5f;
}

// Number `i` after those of the points.
VZ_DEVICE f32 rest_number(const State& s, View view, int i) {
    const int bar = seen(s, view, BAR), other_bar = -seen(s, view, OTHER_BAR);
    int left = 0, has_face = 0;
    for (int d = 0; d < 4; d++) {
        left += s.dice[d] > 0;
        has_face |= s.dice[d] > 0 && s.dice[d] == i - 5;
    }
    switch (i) {
    case 0: return f32(bar > 0);
    case 1: return f32(bar) * 0.5f;
    case 2: return f32(other_bar > 0);
    case 3: return f32(other_bar) * 0.5f;
    case 4: return f32(seen(s, view, OFF)) / 15.0f;
    case 5: return f32(-seen(s, view, OTHER_OFF)) / 15.0f;
    case 16: return f32(pips(s, view)) / 167.0f;
    case 17: return f32(pips(s, view == View::MOVER ? View::OTHER : View::MOVER)) / 167.0f;
    case 18: return f32(view == View::MOVER);
    default: return f32(i < 12 ? has_face : left == i - 11);
    }
}

} // namespace backgammon

#include "games/backgammon_features.cuh"

VZ_DEVICE int game_turn(const State& s) {
    if (s.phase == backgammon::PHASE_MOVE) return s.mover;
    return s.phase == backgammon::PHASE_OVER ? TURN_OVER : TURN_CHANCE;
}

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    if (s.phase == backgammon::PHASE_MOVE) return backgammon::list_moves(s, out);
    if (s.phase != backgammon::PHASE_STARTER) return backgammon::list_rolls(s.phase, out);
    out[0] = 0;
    out[1] = 1;
    return 2;
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    if (s.phase == backgammon::PHASE_STARTER) {
        s.mover = u8(action);
        s.phase = backgammon::PHASE_OPENING_ROLL;
    } else if (s.phase != backgammon::PHASE_MOVE) {
        backgammon::deal(s, action);
    } else if (action < 6) {
        backgammon::end_turn(s);
    } else {
        backgammon::advance(s, action / 6, u8(action % 6 + 1));
    }
    s.plies += 1;
    if (s.plies >= VZ_OPT_PLY_LIMIT) s.phase = backgammon::PHASE_OVER;
}

template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    const View view = player == s.mover ? View::MOVER : View::OTHER;
    for (int i = lane; i < VZ_OBS_CHANNELS; i += lanes) {
        f32 x;
        if (i < 24 * 8) {
            const int n = backgammon::seen(s, view, 2 + i / 8);
            x = backgammon::point_unit(i % 8 < 4 ? n : -n, i % 4);
        } else if (i < backgammon::FEATURES_AT) {
            x = backgammon::rest_number(s, view, i - 24 * 8);
        } else if (i < backgammon::FEATURES_AT + backgammon::SIDE_LEN) {
            x = backgammon::feature(s, view, i - backgammon::FEATURES_AT);
        } else {
            const View other = view == View::MOVER ? View::OTHER : View::MOVER;
            x = backgammon::feature(s, other, i - backgammon::FEATURES_AT - backgammon::SIDE_LEN);
        }
        out[i] = Out(x);
    }
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    const f32 value = f32(s.points) / 3.0f;
    out[s.mover] = value;
    out[1 - s.mover] = -value;
}

#define VZ_OWN_CHANCE_PROBS
VZ_DEVICE void game_chance_probs(const State& s, const u16* outcomes, int n, f32* out) {
    const bool is_even = s.phase != backgammon::PHASE_ROLL || VZ_OPT_SIMPLE_DOUBLES;
    for (int i = 0; i < n; i++) {
        const u8* roll = backgammon::ROLLS[outcomes[i]];
        out[i] = is_even ? 1.0f / f32(n) : (roll[0] == roll[1] ? 1.0f : 2.0f) / 36.0f;
    }
}
