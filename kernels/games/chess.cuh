// Twin of src/game/chess: positions from the view of the side to move, square = file * 8 + rank. Attacks, lines, planes and keys,
// which Rust looks up in tables, are computed in registers, which is cheaper on a GPU than gathers.
#pragma once
#include "games/chess_layout.cuh"
#include "rng.cuh"

using chess::State;

namespace chess {

#if defined(VZ_OPT_NETWORK_SEES_ATTACKS)
constexpr bool SEES_ATTACKS = true;
#elif defined(VZ_OPT_NETWORK_SEES_PIECES)
constexpr bool SEES_ATTACKS = false;
#else
#error "an unknown value of option network_sees"
#endif
constexpr u64 RANK_1 = 0x0101010101010101;
constexpr u64 RISING = 0x8040201008040201;  // the diagonal a1 to h8
constexpr u64 FALLING = 0x0102040810204080; // the diagonal a8 to h1

VZ_DEVICE u64 bit(int square) { return u64(1) << square; }

// A bitboard from the view of the other side: the bits of every byte reversed.
VZ_DEVICE u64 flip(u64 board) {
    board = (board >> 1 & 0x5555555555555555) | (board & 0x5555555555555555) << 1;
    board = (board >> 2 & 0x3333333333333333) | (board & 0x3333333333333333) << 2;
    return (board >> 4 & 0x0F0F0F0F0F0F0F0F) | (board & 0x0F0F0F0F0F0F0F0F) << 4;
}

VZ_DEVICE int flip_square(int square) { return square ^ 7; }

// `board` shifted one square up or down its files; squares that leave the board are dropped.
VZ_DEVICE u64 up(u64 board) { return (board & ~RANK_8) << 1; }
VZ_DEVICE u64 down(u64 board) { return (board & ~RANK_1) >> 1; }

VZ_DEVICE u64 knight_attacks(int square) {
    const u64 one_up = up(bit(square)), one_down = down(bit(square));
    const u64 far = one_up | one_down, near = up(one_up) | down(one_down);
    return far << 16 | far >> 16 | near << 8 | near >> 8;
}

VZ_DEVICE u64 king_attacks(int square) {
    const u64 column = bit(square) | up(bit(square)) | down(bit(square));
    return (column << 8 | column >> 8 | column) & ~bit(square);
}

// The squares that a pawn of the side to move attacks.
VZ_DEVICE u64 pawn_attacks(int square) { return up(bit(square)) << 8 | up(bit(square)) >> 8; }

VZ_DEVICE u64 shifted_files(u64 board, int files) { return files >= 0 ? board << 8 * files : board >> -8 * files; }

// Line `l` through a square without the square itself: its file, its rank, the rising and the falling diagonal.
VZ_DEVICE u64 line(int square, int l) {
    const int file = square >> 3, rank = square & 7;
    u64 all;
    switch (l) {
    case 0: all = u64(0xFF) << 8 * file; break;
    case 1: all = RANK_1 << rank; break;
    case 2: all = shifted_files(RISING, file - rank); break;
    default: all = shifted_files(FALLING, file + rank - 7); break;
    }
    return all & ~bit(square);
}

// The squares a slider reaches along one of its lines, the first occupied one in each direction included (obstruction
// difference).
VZ_DEVICE u64 line_attacks(int square, u64 whole, u64 occupied) {
    const u64 lower = bit(square) - 1;
    const u64 below = (whole & lower & occupied) | 1;
    const u64 above = whole & ~lower & occupied;
    const u64 from_below = ~u64(0) << (63 - leading_zeros(below));
    return whole & from_below & (above ^ (above - 1));
}

VZ_DEVICE u64 rook_attacks(int square, u64 occupied) {
    return line_attacks(square, line(square, 0), occupied) | line_attacks(square, line(square, 1), occupied);
}

VZ_DEVICE u64 bishop_attacks(int square, u64 occupied) {
    return line_attacks(square, line(square, 2), occupied) | line_attacks(square, line(square, 3), occupied);
}

VZ_DEVICE int magnitude(int x) { return x < 0 ? -x : x; }

// The plane of the action encoding minus 9, of the move from one square to another.
VZ_DEVICE int plane_of(int from, int to) {
    const int files = (to >> 3) - (from >> 3), ranks = (to & 7) - (from & 7);
    if (files == 0) return ranks > 0 ? 6 + ranks : 7 + ranks;
    const int k = files > 0 ? 6 + files : 7 + files;
    if (ranks == 0) return 14 + k;
    if (files == ranks) return 28 + k;
    if (files == -ranks) return 42 + k;
    return 56 + 4 * (files > 0) + 2 * (magnitude(files) == 1) + (ranks > 0);
}

// The target square of a plane, minus the square of origin. Planes 0 to 8 are underpromotions.
VZ_DEVICE int plane_delta(int plane) {
    if (plane < 9) return plane % 3 == 0 ? 1 : plane % 3 == 1 ? 9 : -7;
    if (plane < 65) {
        const int k = (plane - 9) % 14;
        const int steps = k < 7 ? k - 7 : k - 6;
        switch ((plane - 9) / 14) {
        case 0: return steps;
        case 1: return steps * 8;
        case 2: return steps * 9;
        default: return steps * 7;
        }
    }
    const int i = plane - 65;
    const int files = (i & 4 ? 1 : -1) * (i & 2 ? 1 : 2);
    const int ranks = (i & 1 ? 1 : -1) * (i & 2 ? 2 : 1);
    return files * 8 + ranks;
}

VZ_DEVICE u64 occupied_of(const State& s) { return s.sides[0] | s.sides[1]; }

VZ_DEVICE int king_of(const State& s) { return trailing_zeros(s.pieces[KING] & s.sides[0]); }

// The kind of the piece on an occupied square.
VZ_DEVICE int kind_on(const State& s, int square) {
    int kind = KING;
    for (int k = QUEEN; k >= PAWN; k--) kind = s.pieces[k] >> square & 1 ? k : kind;
    return kind;
}

// The key of a piece of `side` (0 to move, 1 other) on a square from the view of the side to move.
VZ_DEVICE u64 key_of(const State& s, int kind, int side, int square) {
    const int absolute = s.colour == 0 ? square : flip_square(square);
    return rng::table_entry(PIECE_SEED, u32(((side ^ s.colour) * 6 + kind) * 64 + absolute));
}

VZ_DEVICE void toggle(State& s, int kind, int side, int square) {
    s.pieces[kind] ^= bit(square);
    s.sides[side] ^= bit(square);
    s.hash ^= key_of(s, kind, side, square);
}

VZ_DEVICE u8 turned_castling(u8 castling) { return (castling << 2 | castling >> 2) & 15; }

// The same position from the view of the other side, which becomes the side to move. Keys and clocks stay.
VZ_DEVICE void turn_round(State& s) {
    for (int kind = PAWN; kind <= KING; kind++) s.pieces[kind] = flip(s.pieces[kind]);
    const u64 own = s.sides[0];
    s.sides[0] = flip(s.sides[1]);
    s.sides[1] = flip(own);
    s.castling = turned_castling(s.castling);
    if (s.en_passant != 0) s.en_passant = u8(flip_square(s.en_passant - 1) + 1);
    s.colour = u8(1 - s.colour);
}

// The pieces of `others` that attack `square`, with `occupied` squares in the way.
VZ_DEVICE u64 attackers(const State& s, int square, u64 occupied, u64 others) {
    const u64 diagonal = s.pieces[BISHOP] | s.pieces[QUEEN], straight = s.pieces[ROOK] | s.pieces[QUEEN];
    return others & ((pawn_attacks(square) & s.pieces[PAWN]) | (knight_attacks(square) & s.pieces[KNIGHT]) |
                     (king_attacks(square) & s.pieces[KING]) | (bishop_attacks(square, occupied) & diagonal) |
                     (rook_attacks(square, occupied) & straight));
}

// Checks and pins, which restrict the side to move.
struct Restraints {
    int king;
    u64 allowed; // targets of pieces other than the king: all squares, those that answer a single check, or none
    bool in_check;
    u64 pinned;  // own pieces that may only move along their line through the king
};

VZ_DEVICE Restraints restraints_of(const State& s) {
    const int king = king_of(s);
    const u64 own = s.sides[0], other = s.sides[1], occupied = own | other;
    const u64 diagonal = other & (s.pieces[BISHOP] | s.pieces[QUEEN]);
    const u64 straight = other & (s.pieces[ROOK] | s.pieces[QUEEN]);
    u64 checkers = other & ((pawn_attacks(king) & s.pieces[PAWN]) | (knight_attacks(king) & s.pieces[KNIGHT]));
    u64 allowed = checkers, pinned = 0;
    for (int l = 0; l < 4; l++) {
        const u64 whole = line(king, l);
        const u64 seen = line_attacks(king, whole, occupied);
        for (u64 rest = whole & (l < 2 ? straight : diagonal); rest != 0; rest &= rest - 1) {
            const int slider = trailing_zeros(rest);
            const u64 back = line_attacks(slider, line(slider, l), occupied);
            if (seen & bit(slider)) {
                checkers |= bit(slider);
                allowed |= (seen & back & ~occupied) | bit(slider);
            } else {
                pinned |= seen & back & own;
            }
        }
    }
    const int num_checkers = popcount(checkers);
    if (num_checkers != 1) allowed = num_checkers == 0 ? ~u64(0) : 0;
    return Restraints{king, allowed, num_checkers != 0, pinned};
}

// The line that joins the king with a piece pinned to it.
VZ_DEVICE u64 line_through(int king, int square) {
    const int files = (square >> 3) - (king >> 3), ranks = (square & 7) - (king & 7);
    return line(king, files == 0 ? 0 : ranks == 0 ? 1 : files == ranks ? 2 : 3);
}

VZ_DEVICE u64 pawn_targets(const State& s, int from, u64 occupied) {
    const u64 one = bit(from + 1) & ~occupied;
    const u64 two = bit(from) & RANK_2 ? one << 1 & ~occupied : 0;
    return one | two | (pawn_attacks(from) & s.sides[1]);
}

// True if taking en passant from `from` leaves the own king safe.
VZ_DEVICE bool en_passant_is_safe(const State& s, int from, int to) {
    const u64 taken = bit(to - 1);
    const u64 occupied = (occupied_of(s) ^ bit(from) ^ taken) | bit(to);
    return attackers(s, king_of(s), occupied, s.sides[1] ^ taken) == 0;
}

// The own pawns that may legally take a pawn that has just passed over `square`.
VZ_DEVICE u64 en_passant_takers(const State& s, int square) {
    const u64 behind = down(bit(square));
    u64 takers = 0;
    for (u64 rest = (behind << 8 | behind >> 8) & s.pieces[PAWN] & s.sides[0]; rest != 0; rest &= rest - 1) {
        const int from = trailing_zeros(rest);
        if (en_passant_is_safe(s, from, square)) takers |= bit(from);
    }
    return takers;
}

// Bitboard of the squares in `candidates` that the other side does not attack once the own king has left its square.
VZ_DEVICE u64 safe_squares(const State& s, u64 candidates, int king) {
    const u64 without_king = occupied_of(s) ^ bit(king);
    u64 safe = 0;
    for (u64 rest = candidates; rest != 0; rest &= rest - 1) {
        const int to = trailing_zeros(rest);
        if (attackers(s, to, without_king, s.sides[1]) == 0) safe |= bit(to);
    }
    return safe;
}

VZ_DEVICE u64 king_targets(const State& s, const Restraints& r) {
    const u64 d1 = bit(KING_HOME - 8), f1 = bit(KING_HOME + 8), b1 = bit(8), c1 = bit(16), g1 = bit(48);
    const u64 occupied = occupied_of(s);
    u64 castling = 0;
    if (!r.in_check) {
        if (s.castling & OWN_SHORT && (occupied & (f1 | g1)) == 0) castling |= g1;
        if (s.castling & OWN_LONG && (occupied & (b1 | c1 | d1)) == 0) castling |= c1;
    }
    u64 targets = safe_squares(s, (king_attacks(r.king) & ~s.sides[0]) | castling, r.king);
    // The rook's target must be safe too.
    if (castling & g1 && !(targets & f1)) targets &= ~g1;
    if (castling & c1 && !(targets & d1)) targets &= ~c1;
    return targets;
}

// The targets of a piece other than the king, without regard to checks and pins.
VZ_DEVICE u64 free_targets(const State& s, int kind, int from, u64 occupied) {
    if (kind == PAWN) return pawn_targets(s, from, occupied);
    if (kind == KNIGHT) return knight_attacks(from);
    const u64 straight = kind == BISHOP ? 0 : rook_attacks(from, occupied);
    return straight | (kind == ROOK ? 0 : bishop_attacks(from, occupied));
}

// What `visit_moves` found.
struct Visited {
    bool stopped;  // the visitor returned false
    bool in_check; // the side to move is in check
};

// Calls `visit` with every piece that can move, by ascending square, and its legal targets, until it returns false.
template <class Visit>
VZ_DEVICE Visited visit_moves(const State& s, Visit visit) {
    const Restraints r = restraints_of(s);
    const u64 occupied = occupied_of(s);
    const int en_passant = int(s.en_passant) - 1;
    const u64 takers = en_passant < 0 ? 0 : en_passant_takers(s, en_passant);
    for (u64 rest = r.allowed == 0 ? bit(r.king) : s.sides[0]; rest != 0; rest &= rest - 1) {
        const int from = trailing_zeros(rest);
        const int kind = kind_on(s, from);
        u64 to;
        if (kind == KING) {
            to = king_targets(s, r);
        } else {
            to = free_targets(s, kind, from, occupied) & r.allowed & ~s.sides[0];
            if (r.pinned & bit(from)) to &= line_through(r.king, from);
            if (takers & bit(from)) to |= bit(en_passant);
        }
        if (to != 0 && !visit(kind, from, to)) return {true, r.in_check};
    }
    return {false, r.in_check};
}

// Writes the actions of one piece, ascending, to `out` and returns the count.
VZ_DEVICE int list_actions(int kind, int from, u64 to, u16* out) {
    const int first = from * 73;
    int n = 0;
    if (kind == PAWN && to & RANK_8) {
        // Rook, bishop, knight, each straight on, to the right, to the left.
        for (int plane = 0; plane < 9; plane++) {
            if (to >> ((from + plane_delta(plane)) & 63) & 1) out[n++] = u16(first + plane);
        }
    }
    u64 planes = 0;
    for (; to != 0; to &= to - 1) planes |= bit(plane_of(from, trailing_zeros(to)));
    for (; planes != 0; planes &= planes - 1) out[n++] = u16(first + 9 + trailing_zeros(planes));
    return n;
}

// The key for repetition: pieces, side to move, castling rights and the file of a legal en passant capture.
VZ_DEVICE u64 repetition_key(const State& s) {
    u64 key = s.hash ^ rng::table_entry(CASTLING_SEED, s.colour == 0 ? s.castling : turned_castling(s.castling));
    if (s.en_passant != 0) key ^= rng::table_entry(EN_PASSANT_SEED, u32(s.en_passant - 1) / 8);
    return key;
}

// The castling rights that end when a piece leaves or reaches a square.
VZ_DEVICE u8 lost_rights(int square) {
    switch (square) {
    case KING_HOME: return OWN_SHORT | OWN_LONG;
    case ROOK_HOME_A: return OWN_LONG;
    case ROOK_HOME_H: return OWN_SHORT;
    case ROOK_HOME_A + 7: return OTHER_LONG;
    case ROOK_HOME_H + 7: return OTHER_SHORT;
    default: return 0;
    }
}

// The kind a pawn becomes by a move of `plane` to the last rank.
VZ_DEVICE int promoted_kind(int plane) {
    return plane < 3 ? ROOK : plane < 6 ? BISHOP : plane < 9 ? KNIGHT : QUEEN;
}

// Moves the pieces of a legal action and updates castling rights, without changing the view. Returns true if the move was neither a
// capture nor a pawn move.
VZ_DEVICE bool move_pieces(State& s, int kind, int from, int to, int plane) {
    bool quiet = kind != PAWN;
    if (s.sides[1] & bit(to)) {
        toggle(s, kind_on(s, to), 1, to);
        quiet = false;
    }
    toggle(s, kind, 0, from);
    toggle(s, kind == PAWN && bit(to) & RANK_8 ? promoted_kind(plane) : kind, 0, to);
    if (kind == PAWN && s.en_passant != 0 && to == s.en_passant - 1) toggle(s, PAWN, 1, to - 1);
    if (kind == KING && from == KING_HOME && magnitude(to - from) == 16) {
        toggle(s, ROOK, 0, to > from ? ROOK_HOME_H : ROOK_HOME_A);
        toggle(s, ROOK, 0, to > from ? from + 8 : from - 8);
    }
    s.castling &= u8(~(lost_rights(from) | lost_rights(to)));
    return quiet;
}

// Plays a legal action and switches to the other side's view. Does not update repetitions or the outcome.
VZ_DEVICE void play(State& s, u16 action) {
    const int from = action / 73, plane = action % 73;
    const int to = (from + plane_delta(plane)) & 63;
    const int kind = kind_on(s, from);
    const bool quiet = move_pieces(s, kind, from, to, plane);
    s.halfmove_clock = quiet ? u16(s.halfmove_clock + 1) : u16(0);
    s.fullmove += s.colour;
    s.plies += 1;
    s.en_passant = 0;
    turn_round(s);
    s.hash ^= rng::table_entry(BLACK_SEED, 0);
    if (kind == PAWN && magnitude(to - from) == 2) {
        const int passed = flip_square(from + 1);
        if (en_passant_takers(s, passed) != 0) s.en_passant = u8(passed + 1);
    }
}

// Earlier occurrences of `s`, at most 2; `h` ends with the position two plies before it.
VZ_DEVICE u8 repetitions_of(const State& s, const History& h) {
    if (s.halfmove_clock < 4) return 0;
    const u64 key = repetition_key(s);
    const int reach = minimum(h.len(), s.halfmove_clock / 2 * 2);
    int found = 0;
    for (int back = 0; back < reach && found < 2; back += 2) found += h.latest(back) == key;
    return u8(found);
}

// True if no sequence of moves can mate: kings alone, with one minor piece, or with bishops of one square colour.
VZ_DEVICE bool insufficient_material(const State& s) {
    if (s.pieces[PAWN] | s.pieces[ROOK] | s.pieces[QUEEN]) return false;
    const u64 knights = s.pieces[KNIGHT], bishops = s.pieces[BISHOP];
    if (knights != 0) return bishops == 0 && (knights & (knights - 1)) == 0;
    return (bishops & DARK) == 0 || (bishops & ~DARK) == 0;
}

struct StopAtFirst {
    VZ_DEVICE bool operator()(int, int, u64) const { return false; }
};

struct ListAll {
    u16* out;
    int* n;
    VZ_DEVICE bool operator()(int kind, int from, u64 to) const {
        *n += list_actions(kind, from, to, out + *n);
        return true;
    }
};

// Whether the game is over; mate comes before every draw.
VZ_DEVICE Outcome outcome_of(const State& s) {
    const Visited found = visit_moves(s, StopAtFirst{});
    if (!found.stopped) {
        if (!found.in_check) return Outcome::Stalemate;
        return s.colour == 0 ? Outcome::BlackMates : Outcome::WhiteMates;
    }
    if (insufficient_material(s)) return Outcome::InsufficientMaterial;
    if (s.repetitions >= 2) return Outcome::Repetition;
    if (s.halfmove_clock >= 100) return Outcome::FiftyMoves;
    return s.plies >= VZ_OPT_MAX_PLIES ? Outcome::TooLong : Outcome::None;
}

// The squares that one or more pieces of a side attack, and those that two or more do, as `s` has them.
struct Attacked {
    u64 once, twice;
};

VZ_DEVICE Attacked attacked_by(const State& s, int side) {
    const u64 occupied = s.sides[0] | s.sides[1];
    Attacked out = {0, 0};
    for (u64 left = select(s.sides, side); left != 0; left &= left - 1) {
        const int from = trailing_zeros(left);
        u64 to = 0;
        if (s.pieces[PAWN] >> from & 1) to = side == 0 ? pawn_attacks(from) : flip(pawn_attacks(flip_square(from)));
        if (s.pieces[KNIGHT] >> from & 1) to = knight_attacks(from);
        if (s.pieces[KING] >> from & 1) to = king_attacks(from);
        if ((s.pieces[BISHOP] | s.pieces[QUEEN]) >> from & 1) to = bishop_attacks(from, occupied);
        if ((s.pieces[ROOK] | s.pieces[QUEEN]) >> from & 1) to |= rook_attacks(from, occupied);
        out.twice |= out.once & to;
        out.once |= to;
    }
    return out;
}

// One number of an observation; `square` as `s` has it. `attacked`: of the player, of the other side.
VZ_DEVICE f32 observed(const State& s, int player, View view, const Attacked (&attacked)[2], int plane, int square) {
    const u8 castling = view == View::MOVER ? s.castling : turned_castling(s.castling);
    if (plane < 12) {
        const int side = (plane >= 6) == (view == View::MOVER);
        return f32((s.pieces[plane % 6] & s.sides[side]) >> square & 1);
    }
    switch (plane) {
    case 12: return f32(s.repetitions > 0);
    case 13: return f32((castling & OWN_SHORT) != 0);
    case 14: return f32((castling & OWN_LONG) != 0);
    case 15: return f32((castling & OTHER_SHORT) != 0);
    case 16: return f32((castling & OTHER_LONG) != 0);
    case 17: return f32(square == int(s.en_passant) - 1);
    case 18: return f32(s.halfmove_clock) / 100.0f;
    case 19: return f32(player);
    case 20: return f32(s.plies) / f32(VZ_OPT_MAX_PLIES);
    case 21: return f32(attacked[0].once >> square & 1);
    case 22: return f32(attacked[0].twice >> square & 1);
    case 23: return f32(attacked[1].once >> square & 1);
    default: return f32(attacked[1].twice >> square & 1);
    }
}

} // namespace chess

VZ_DEVICE int game_turn(const State& s) { return s.outcome == chess::Outcome::None ? s.colour : TURN_OVER; }

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    int n = 0;
    chess::visit_moves(s, chess::ListAll{out, &n});
    return n;
}

VZ_DEVICE void game_step(State& s, u16 action, const History& h) {
    chess::play(s, action);
    s.repetitions = chess::repetitions_of(s, h);
    s.outcome = chess::outcome_of(s);
}

template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    const View view = player == s.colour ? View::MOVER : View::OTHER;
    chess::Attacked attacked[2] = {};
    if (chess::SEES_ATTACKS) {
        for (int side = 0; side < 2; side++) attacked[side] = chess::attacked_by(s, view == View::MOVER ? side : 1 - side);
    }
    for (int i = lane; i < VZ_OBS_CHANNELS * 64; i += lanes) {
        const int rank = 7 - i / 8 % 8, file = i % 8;
        const int square = file * 8 + (view == View::MOVER ? rank : 7 - rank);
        out[i] = Out(chess::observed(s, player, view, attacked, i / 64, square));
    }
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    const f32 value = s.outcome == chess::Outcome::WhiteMates ? 1.0f : s.outcome == chess::Outcome::BlackMates ? -1.0f : 0.0f;
    out[0] = value;
    out[1] = -value;
}

VZ_DEVICE u64 game_history_key(const State& s) { return chess::repetition_key(s); }
