// Twin of src/game/go: area scoring, positional superko, two passes end. Sets of points are bitboards of as many words as the board
// needs. They stay in registers, since no word is indexed at run time.
#pragma once
#include "games/go_layout.cuh"
#include "rng.cuh"

using go::State;

namespace go {

#if defined(VZ_OPT_NETWORK_SEES_LIBERTIES)
constexpr bool SEES_LIBERTIES = true;
#elif defined(VZ_OPT_NETWORK_SEES_STONES)
constexpr bool SEES_LIBERTIES = false;
#else
#error "an unknown value of option network_sees"
#endif
constexpr int SIZE = VZ_OPT_SIZE;
constexpr int NUM_POINTS = SIZE * SIZE;
constexpr int WORDS = SIZE <= 11 ? 2 : SIZE <= 16 ? 4 : 6;
constexpr u16 PASS = NUM_POINTS;

// Masks of a word: points on the board, those not in its first column, those not in its last.
enum class Area { FULL, NOT_FIRST_COLUMN, NOT_LAST_COLUMN };

VZ_DEVICE constexpr u64 area_word(Area area, int word) {
    u64 bits = 0;
    for (int bit = 0; bit < 64 && word * 64 + bit < NUM_POINTS; bit++) {
        const int column = (word * 64 + bit) % SIZE;
        const bool left_out = (area == Area::NOT_FIRST_COLUMN && column == 0) ||
                              (area == Area::NOT_LAST_COLUMN && column == SIZE - 1);
        bits |= u64(!left_out) << bit;
    }
    return bits;
}

// A set of points.
struct Points {
    u64 words[WORDS];
};

VZ_DEVICE Points nothing() {
    Points out;
    for (int i = 0; i < WORDS; i++) out.words[i] = 0;
    return out;
}

VZ_DEVICE Points load(const u64* words) {
    Points out;
    for (int i = 0; i < WORDS; i++) out.words[i] = words[i];
    return out;
}

VZ_DEVICE void store(const Points& p, u64* words) {
    for (int i = 0; i < WORDS; i++) words[i] = p.words[i];
}

VZ_DEVICE Points one(int point) {
    Points out;
    for (int i = 0; i < WORDS; i++) out.words[i] = u64(point >> 6 == i) << (point & 63);
    return out;
}

VZ_DEVICE Points operator&(const Points& a, const Points& b) {
    Points out;
    for (int i = 0; i < WORDS; i++) out.words[i] = a.words[i] & b.words[i];
    return out;
}

VZ_DEVICE Points operator|(const Points& a, const Points& b) {
    Points out;
    for (int i = 0; i < WORDS; i++) out.words[i] = a.words[i] | b.words[i];
    return out;
}

VZ_DEVICE Points without(const Points& a, const Points& b) {
    Points out;
    for (int i = 0; i < WORDS; i++) out.words[i] = a.words[i] & ~b.words[i];
    return out;
}

VZ_DEVICE bool operator==(const Points& a, const Points& b) {
    u64 difference = 0;
    for (int i = 0; i < WORDS; i++) difference |= a.words[i] ^ b.words[i];
    return difference == 0;
}

VZ_DEVICE bool is_empty(const Points& p) {
    u64 all = 0;
    for (int i = 0; i < WORDS; i++) all |= p.words[i];
    return all == 0;
}

VZ_DEVICE int count(const Points& p) {
    int sum = 0;
    for (int i = 0; i < WORDS; i++) sum += popcount(p.words[i]);
    return sum;
}

// True for two points or more.
VZ_DEVICE bool has_two(const Points& p) {
    u64 seen = 0, two = 0;
    for (int i = 0; i < WORDS; i++) {
        const u64 word = p.words[i];
        two |= (word & (word - 1)) | (seen != 0 ? word : 0);
        seen |= word;
    }
    return two != 0;
}

// The lowest point of a set that is not empty.
VZ_DEVICE int lowest(const Points& p) {
    u64 word = p.words[WORDS - 1];
    int base = (WORDS - 1) * 64;
    for (int i = WORDS - 2; i >= 0; i--) {
        if (p.words[i] != 0) {
            word = p.words[i];
            base = i * 64;
        }
    }
    return base + trailing_zeros(word);
}

VZ_DEVICE Points up(const Points& p, int by) {
    Points out;
    for (int i = 0; i < WORDS; i++) out.words[i] = p.words[i] << by | (i > 0 ? p.words[i - 1] >> (64 - by) : 0);
    return out;
}

VZ_DEVICE Points down(const Points& p, int by) {
    Points out;
    for (int i = 0; i < WORDS; i++) {
        out.words[i] = p.words[i] >> by | (i + 1 < WORDS ? p.words[i + 1] << (64 - by) : 0);
    }
    return out;
}

template <Area AREA, int WORD>
VZ_DEVICE void fill_area(Points& p) {
    constexpr u64 bits = area_word(AREA, WORD);
    p.words[WORD] = bits;
    if constexpr (WORD + 1 < WORDS) fill_area<AREA, WORD + 1>(p);
}

template <Area AREA>
VZ_DEVICE Points area() {
    Points out;
    fill_area<AREA, 0>(out);
    return out;
}

// The points next to `p`; may contain points of `p` itself and points below the board, which are always empty.
VZ_DEVICE Points beside(const Points& p) {
    const Points right = up(p & area<Area::NOT_LAST_COLUMN>(), 1);
    const Points left = down(p & area<Area::NOT_FIRST_COLUMN>(), 1);
    return right | left | up(p, SIZE) | down(p, SIZE);
}

// All points of `within` connected to `seeds`, a subset of it.
VZ_DEVICE Points flood(const Points& seeds, const Points& within) {
    Points reached = seeds;
    while (true) {
        const Points next = reached | (beside(reached) & within);
        if (next == reached) return reached;
        reached = next;
    }
}

// The group of `stones` around `seed` if it has fewer than two liberties among `empty`, else the empty set.
VZ_DEVICE Points group_in_atari(const Points& seed, const Points& stones, const Points& empty) {
    Points group = seed;
    while (true) {
        const Points around = beside(group);
        if (has_two(around & empty)) return nothing();
        const Points next = group | (around & stones);
        if (next == group) return group;
        group = next;
    }
}

// The key of a stone: a few multiplications instead of a table. Its low bits are its own index.
VZ_DEVICE u64 key_at(u32 index) { return (rng::table_entry(KEY_SEED, index) & ~KEY_INDEX) | index; }

VZ_DEVICE u64 key(int player, int point) { return key_at(u32(player) * KEYS_PER_PLAYER + u32(point)); }

VZ_DEVICE u64 keys_of(int player, const Points& points) {
    u64 sum = 0;
    for (Points rest = points; !is_empty(rest);) {
        const int point = lowest(rest);
        rest = without(rest, one(point));
        sum ^= key(player, point);
    }
    return sum;
}

// A position unpacked, the player to move first.
struct Board {
    Points own, other, own_atari, other_atari, empty;
    int player;
};

VZ_DEVICE Board board_of(const State& s, int player) {
    Board b;
    b.player = player;
    b.own = load(s.stones[player]);
    b.other = load(s.stones[1 - player]);
    b.own_atari = load(s.atari[player]);
    b.other_atari = load(s.atari[1 - player]);
    b.empty = without(area<Area::FULL>(), b.own | b.other);
    return b;
}

// The same board with the other player to move.
VZ_DEVICE Board turned(const Board& b) {
    return Board{b.other, b.own, b.other_atari, b.own_atari, b.empty, 1 - b.player};
}

VZ_DEVICE void write(const Board& b, State& s) {
    store(b.own, s.stones[b.player]);
    store(b.other, s.stones[1 - b.player]);
    store(b.own_atari, s.atari[b.player]);
    store(b.other_atari, s.atari[1 - b.player]);
}

// The stones that a move to the point of `stone` captures: groups whose last liberty it is.
VZ_DEVICE Points captured_by(const Board& b, const Points& stone) {
    return flood(beside(stone) & b.other_atari, b.other_atari);
}

// All points that may be played, without regard to repetition: points with a liberty, next to an own group with another liberty, or
// capturing.
VZ_DEVICE Points playable(const Board& b) {
    return beside(b.empty | without(b.own, b.own_atari) | b.other_atari) & b.empty;
}

VZ_DEVICE bool contains(const u64* keys, int n, u64 key) {
    for (int i = 0; i < n; i++) {
        if (keys[i] == key) return true;
    }
    return false;
}

// Adds the points where one own stone leads from the position with key `hash` to one of `keys`.
VZ_DEVICE void add_single_stones(const Board& b, u64 hash, const u64* keys, int n, Points& out) {
    for (int i = 0; i < n; i++) {
        const u64 difference = keys[i] ^ hash;
        const u32 index = u32(difference & KEY_INDEX);
        const int point = int(index % KEYS_PER_PLAYER);
        if (int(index / KEYS_PER_PLAYER) != b.player || point >= NUM_POINTS) continue;
        if (key_at(index) == difference) out = out | one(point);
    }
}

// The points whose position has been on the board before: in the history or as `before`, the position one ply ago.
VZ_DEVICE Points repeating(const Board& b, u64 hash, u64 before, const History& h) {
    const Points open = playable(b);
    const Points taking = beside(b.other_atari) & open;
    Points out = nothing();
    add_single_stones(b, hash, h.played, h.num_played, out);
    add_single_stones(b, hash, h.path, h.num_path, out);
    out = without(out, taking);
    for (Points rest = taking; !is_empty(rest);) {
        const int point = lowest(rest);
        const Points stone = one(point);
        rest = without(rest, stone);
        const u64 after = hash ^ key(b.player, point) ^ keys_of(1 - b.player, captured_by(b, stone));
        if (after == before || contains(h.path, h.num_path, after) || contains(h.played, h.num_played, after)) {
            out = out | stone;
        }
    }
    return out & open;
}

// Removes the own groups that touch `points` from those in atari.
VZ_DEVICE void relieve(Board& b, const Points& points) {
    const Points seeds = points & b.own_atari;
    if (!is_empty(seeds)) b.own_atari = without(b.own_atari, flood(seeds, b.own_atari));
}

// Plays a point, keeping both sides' groups in atari up to date.
VZ_DEVICE void place(Board& b, State& s, int point) {
    const Points stone = one(point);
    const Points around = beside(stone);
    const Points captured = captured_by(b, stone);
    s.hash ^= key(b.player, point);
    b.own = b.own | stone;
    b.empty = without(b.empty, stone);
    // One flood updates the groups next to the stone and those next to the captured stones.
    Points relieved = around;
    if (!is_empty(captured)) {
        s.captures = 1;
        s.hash ^= keys_of(1 - b.player, captured);
        b.other = without(b.other, captured);
        b.other_atari = without(b.other_atari, captured);
        b.empty = b.empty | captured;
        relieved = relieved | beside(captured);
    }
    relieve(b, relieved);
    b.own_atari = b.own_atari | group_in_atari(stone, b.own, b.empty);
    // Neighbouring groups in atari are captured by now, so the remaining ones had two liberties or more.
    for (Points rest = around & b.other; !is_empty(rest);) {
        const Points seed = one(lowest(rest));
        const Points group = group_in_atari(seed, b.other, b.empty);
        b.other_atari = b.other_atari | group;
        rest = without(without(rest, seed), group);
    }
}

// Points of each player on the board: stones, and empty regions that touch only that colour.
VZ_DEVICE void areas(const State& s, int& black, int& white) {
    const Points stones[2] = {load(s.stones[0]), load(s.stones[1])};
    const Points empty = without(area<Area::FULL>(), stones[0] | stones[1]);
    const Points by_black = flood(stones[0], empty | stones[0]);
    const Points by_white = flood(stones[1], empty | stones[1]);
    black = count(without(by_black, by_white));
    white = count(without(by_white, by_black));
}

// The stones of a player in groups with two liberties, and those in groups with three.
VZ_DEVICE void groups_by_liberties(const State& s, int player, Points& two, Points& three) {
    const Board b = board_of(s, player);
    two = nothing();
    three = nothing();
    for (Points rest = without(b.own, b.own_atari); !is_empty(rest);) {
        const Points group = flood(one(lowest(rest)), rest);
        rest = without(rest, group);
        const int liberties = count(beside(group) & b.empty);
        if (liberties == 2) two = two | group;
        if (liberties == 3) three = three | group;
    }
}

VZ_DEVICE bool has(const u64* words, int point) { return words[point / 64] >> (point % 64) & 1; }

// `point` under one of the eight symmetries of the square: bit 2 transposes, bit 1 flips rows, bit 0 columns.
VZ_DEVICE u16 transform_point(u16 point, u64 symmetry) {
    if (point >= NUM_POINTS) return point;
    int row = point / SIZE, column = point % SIZE;
    if (symmetry & 4) swap_values(row, column);
    if (symmetry & 2) row = SIZE - 1 - row;
    if (symmetry & 1) column = SIZE - 1 - column;
    return u16(row * SIZE + column);
}

VZ_DEVICE void transform_words(const u64* words, u64 symmetry, u64* out) {
    for (int i = 0; i < STATE_WORDS; i++) out[i] = 0;
    for (int i = 0; i < WORDS; i++) {
        for (u64 rest = words[i]; rest != 0; rest &= rest - 1) {
            const int to = transform_point(u16(i * 64 + trailing_zeros(rest)), symmetry);
            out[to / 64] |= u64(1) << (to % 64);
        }
    }
}

// One number of an observation.
VZ_DEVICE f32 observed(const State& s, int player, int plane, int point) {
    switch (plane) {
    case 0: return f32(has(s.stones[player], point));
    case 1: return f32(has(s.stones[1 - player], point));
    case 2: return f32(has(s.atari[player], point));
    case 3: return f32(has(s.atari[1 - player], point));
    case 4: return f32(has(s.barred, point));
    case 5: return f32(point == s.last);
    case 6: return f32(s.passes != 0);
    default: return f32(player);
    }
}

} // namespace go

VZ_DEVICE int game_turn(const State& s) {
    return s.passes >= 2 || s.plies >= VZ_MAX_PLIES ? TURN_OVER : s.plies & 1;
}

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    const go::Points open = go::playable(go::board_of(s, s.plies & 1));
    int n = 0;
    for (int i = 0; i < go::WORDS; i++) {
        for (u64 rest = open.words[i] & ~s.barred[i]; rest != 0; rest &= rest - 1) {
            out[n++] = u16(i * 64 + trailing_zeros(rest));
        }
    }
    out[n] = go::PASS;
    return n + 1;
}

VZ_DEVICE void game_step(State& s, u16 action, const History& h) {
    const bool passes = action == go::PASS;
    s.passes = passes ? u8(s.passes + 1) : u8(0);
    s.last = passes ? go::NOWHERE : action;
    go::Board board = go::board_of(s, s.plies & 1);
    const u64 before = s.hash;
    if (!passes) {
        go::place(board, s, action);
        go::write(board, s);
    }
    s.plies += 1;
    if (s.captures != 0) go::store(go::repeating(go::turned(board), s.hash, before, h), s.barred);
}

// Planes: those of go::observed; with SEES_LIBERTIES then own stones in groups with two liberties, with three, and the other player's likewise.
// [8 or 12, size, size]
template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    constexpr int PLANES = 8;
    go::Points groups[4];
    if (go::SEES_LIBERTIES) {
        go::groups_by_liberties(s, player, groups[0], groups[1]);
        go::groups_by_liberties(s, 1 - player, groups[2], groups[3]);
    }
    for (int i = lane; i < VZ_OBS_CHANNELS * go::NUM_POINTS; i += lanes) {
        const int plane = i / go::NUM_POINTS, point = i % go::NUM_POINTS;
        out[i] = Out(plane < PLANES ? go::observed(s, player, plane, point) : f32(go::has(groups[plane - PLANES].words, point)));
    }
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    int black, white;
    go::areas(s, black, white);
    const f32 lead = f32(black) - f32(white) - f32(VZ_OPT_KOMI);
    const f32 value = lead == 0.0f ? 0.0f : lead > 0.0f ? 1.0f : -1.0f;
    out[0] = value;
    out[1] = -value;
}

VZ_DEVICE u64 game_history_key(const State& s) { return s.hash; }

// `out` is another state than `s`.
VZ_DEVICE void game_transform(const State& s, u64 symmetry, State& out) {
    out = s;
    out.hash = 0;
    for (int player = 0; player < 2; player++) {
        go::transform_words(s.stones[player], symmetry, out.stones[player]);
        go::transform_words(s.atari[player], symmetry, out.atari[player]);
        out.hash ^= go::keys_of(player, go::load(out.stones[player]));
    }
    go::transform_words(s.barred, symmetry, out.barred);
    out.last = go::transform_point(s.last, symmetry);
}

VZ_DEVICE u16 game_transform_action(u16 action, u64 symmetry) { return go::transform_point(action, symmetry); }
