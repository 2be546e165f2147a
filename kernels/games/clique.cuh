// Twin of src/game/clique. A player's edges are a bit set in action order, so the neighbours of i above i are adjacent bits.
#pragma once
#include "complete_graph.cuh"
#include "games/clique_layout.cuh"
#include "rng.cuh"

using clique::State;

namespace clique {

constexpr int VERTICES = VZ_OPT_N, CLIQUE = VZ_OPT_K;
VZ_DEVICE constexpr CompleteGraph graph() { return {VERTICES}; }
constexpr int EDGES = graph().edges();

#if defined(VZ_OPT_MODE_ASYMMETRIC)
constexpr bool ASYMMETRIC = true, AVOID = false, RAMSEY = false;
#elif defined(VZ_OPT_MODE_AVOID_CLIQUE)
constexpr bool ASYMMETRIC = false, AVOID = true, RAMSEY = false;
#elif defined(VZ_OPT_MODE_RAMSEY)
constexpr bool ASYMMETRIC = false, AVOID = false, RAMSEY = true;
#elif defined(VZ_OPT_MODE_SYMMETRIC)
constexpr bool ASYMMETRIC = false, AVOID = false, RAMSEY = false;
#else
#error "an unknown value of option mode"
#endif

#if defined(VZ_OPT_NETWORK_SEES_CLIQUES)
constexpr bool SEES_CLIQUES = true;
#elif defined(VZ_OPT_NETWORK_SEES_EDGES)
constexpr bool SEES_CLIQUES = false;
#else
#error "an unknown value of option network_sees"
#endif

VZ_DEVICE bool contains(const EdgeSet& set, int edge) { return (set.words[edge >> 6] >> (edge & 63) & 1) != 0; }

VZ_DEVICE void insert(EdgeSet& set, int edge) { set.words[edge >> 6] |= 1ull << (edge & 63); }

// The neighbours of `i` above `i`, bit j for vertex j.
VZ_DEVICE u32 neighbours_above(const EdgeSet& set, int i) {
    const int start = (int)graph().row_start((u32)i), length = VERTICES - 1 - i;
    const int word = start >> 6, shift = start & 63;
    u64 bits = word < SET_WORDS ? set.words[word] >> shift : 0;
    if (shift + length > 64) bits |= set.words[word + 1] << (64 - shift);
    return ((u32)bits & ((1u << length) - 1)) << (i + 1);
}

// All neighbours of `v`, bit j for vertex j.
VZ_DEVICE u32 neighbours_of(const EdgeSet& set, int v) {
    u32 bits = neighbours_above(set, v);
    int edge = v - 1; // index of edge (0, v)
    for (int i = 0; i < v; i++) {
        bits |= (u32)contains(set, edge) << i;
        edge += VERTICES - 2 - i;
    }
    return bits;
}

// True if `size` of the candidates form a clique. Level d of the stack holds the candidates for the
// (d + 1)-th vertex that are still to be tried; a level is left when too few remain.
VZ_DEVICE bool joined(const EdgeSet& set, u32 candidates, int size) {
    if (size == 0) return true;
    u32 open[VERTICES];
    int depth = 0;
    open[0] = candidates;
    while (depth >= 0) {
        const int wanted = size - depth;
        const u32 left = open[depth];
        if (popcount(left) < wanted) {
            depth--;
            continue;
        }
        if (wanted == 1) return true;
        const int v = trailing_zeros(left);
        open[depth] = left & (left - 1);
        const u32 next = open[depth] & neighbours_above(set, v);
        open[++depth] = next;
    }
    return false;
}

// The number of cliques of `size` of the candidates, by the walk of `joined`.
VZ_DEVICE int count_cliques(const EdgeSet& set, u32 candidates, int size) {
    if (size == 0) return 1;
    u32 open[VERTICES];
    int depth = 0, sum = 0;
    open[0] = candidates;
    while (depth >= 0) {
        const int wanted = size - depth;
        const u32 left = open[depth];
        if (wanted == 1) sum += popcount(left);
        if (wanted == 1 || popcount(left) < wanted) {
            depth--;
            continue;
        }
        const int v = trailing_zeros(left);
        open[depth] = left & (left - 1);
        const u32 next = open[depth] & neighbours_above(set, v);
        open[++depth] = next;
    }
    return sum;
}

// The free edges at `v`, bit j for vertex j.
VZ_DEVICE u32 free_at(const State& s, int v) {
    const u32 all = (1u << VERTICES) - 1;
    return all & ~(neighbours_of(s.edges[0], v) | neighbours_of(s.edges[1], v) | 1u << v);
}

// The number of cliques of a player that miss the free edge `edge` and one other free edge.
VZ_DEVICE int num_missing_two(const State& s, int player, int edge) {
    const EdgeSet& set = s.edges[player];
    u32 i, j;
    graph().ends((u32)edge, i, j);
    const u32 own_i = neighbours_of(set, (int)i), own_j = neighbours_of(set, (int)j), common = own_i & own_j;
    int sum = 0;
    // The other edge shares an end with the first.
    for (u32 left = (own_i & free_at(s, (int)j)) | (free_at(s, (int)i) & own_j); left != 0; left &= left - 1) {
        sum += count_cliques(set, common & neighbours_of(set, trailing_zeros(left)), CLIQUE - 3);
    }
    // Or it lies between two of the other vertices.
    if (CLIQUE < 4) return sum;
    for (u32 left = common; left != 0; left &= left - 1) {
        const int v = trailing_zeros(left);
        const u32 beside = common & neighbours_of(set, v);
        for (u32 rest = (left & (left - 1)) & free_at(s, v); rest != 0; rest &= rest - 1) {
            sum += count_cliques(set, beside & neighbours_of(set, trailing_zeros(rest)), CLIQUE - 4);
        }
    }
    return sum;
}

// True if the ends of `edge` belong to a clique of CLIQUE vertices whose other edges are in the set.
VZ_DEVICE bool has_clique_with(const EdgeSet& set, int edge) {
    u32 i, j;
    graph().ends((u32)edge, i, j);
    return joined(set, neighbours_of(set, i) & neighbours_of(set, j), CLIQUE - 2);
}

// The result once the mover has claimed `edge`, as in State::outcome.
VZ_DEVICE u32 outcome_of(const State& s, u32 mover, int edge) {
    const bool counts = !ASYMMETRIC || mover == 0;
    if (counts && has_clique_with(s.edges[mover], edge)) return RAMSEY ? 4 : AVOID ? 2 - mover : mover + 1;
    if (s.plies != (u32)EDGES) return 0;
    return ASYMMETRIC ? 2 : 3;
}

// The image of each vertex under permutation number `rank` (Lehmer code).
VZ_DEVICE void permutation(u64 rank, u8* image) {
    u8 free[VERTICES];
    u64 weight = 1;
    for (int v = 0; v < VERTICES; v++) free[v] = (u8)v;
    for (int v = 2; v < VERTICES; v++) weight *= (u64)v;
    for (int left = VERTICES; left > 0; left--) {
        const int digit = (int)(rank / weight);
        rank %= weight;
        weight /= (u64)maximum(left - 1, 1);
        image[VERTICES - left] = free[digit];
        for (int v = digit; v + 1 < left; v++) free[v] = free[v + 1];
    }
}

VZ_DEVICE int moved(const u8* image, int edge) {
    u32 i, j;
    graph().ends((u32)edge, i, j);
    return (int)graph().edge(image[i], image[j]);
}

} // namespace clique

VZ_DEVICE int game_turn(const State& s) { return s.outcome == 0 ? (int)(s.plies & 1) : TURN_OVER; }

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    int n = 0;
    for (int word = 0; word * 64 < clique::EDGES; word++) {
        const int below = clique::EDGES - word * 64;
        const u64 mask = below < 64 ? (1ull << below) - 1 : ~0ull;
        const u64 taken = s.edges[0].words[word] | s.edges[1].words[word];
        n += write_bits(~taken & mask, (u16)(word * 64), out + n);
    }
    return n;
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    const u32 mover = s.plies & 1;
    clique::insert(s.edges[mover], action);
    s.plies += 1;
    s.outcome = clique::outcome_of(s, mover, action);
}

// A number of each plane for each edge, in action order: own, the other player's, free, whether `player` is player 0; with SEES_CLIQUES
// then the free edges that complete an own clique, num_missing_two / 8 of these, at most 1, and the same for the other player. [4 or 8, E, 1]
template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    for (int i = lane; i < VZ_OBS_CHANNELS * clique::EDGES; i += lanes) {
        const int plane = i / clique::EDGES, edge = i % clique::EDGES;
        const bool own = clique::contains(s.edges[player], edge), other = clique::contains(s.edges[1 - player], edge);
        const bool free = !own && !other;
        f32 value = plane == 0 ? own : plane == 1 ? other : plane == 2 ? free : player == 0;
        if (clique::SEES_CLIQUES && plane >= 4) {
            const int owner = plane < 6 ? player : 1 - player;
            if (!free) {
                value = 0.0f;
            } else if (plane % 2 == 0) {
                value = clique::has_clique_with(s.edges[owner], edge);
            } else {
                value = (f32)minimum(clique::num_missing_two(s, owner, edge), 8) / 8.0f;
            }
        }
        out[i] = Out(value);
    }
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    if (clique::RAMSEY && s.outcome != 0) {
        const f32 lasted = (f32)s.plies / (f32)clique::EDGES - 1.0f;
        out[0] = out[1] = s.outcome == 3 ? 1.0f : lasted;
    } else {
        winner_returns(s.outcome, out);
    }
}

VZ_DEVICE void game_transform(const State& s, u64 symmetry, State& out) {
    out = s;
    if (symmetry == 0) return;
    u8 image[clique::VERTICES];
    clique::permutation(symmetry, image);
    for (int player = 0; player < 2; player++) {
        clique::EdgeSet set = {};
        for (int word = 0; word < clique::SET_WORDS; word++) {
            for (u64 left = s.edges[player].words[word]; left != 0; left &= left - 1) {
                clique::insert(set, clique::moved(image, 64 * word + trailing_zeros(left)));
            }
        }
        out.edges[player] = set;
    }
}

VZ_DEVICE u16 game_transform_action(u16 action, u64 symmetry) {
    if (symmetry == 0) return action;
    u8 image[clique::VERTICES];
    clique::permutation(symmetry, image);
    return (u16)clique::moved(image, action);
}
