// Twin of src/game/hex.rs.
#pragma once
#include "games/board.cuh"
#include "games/hex_layout.cuh"

using hex::State;

namespace hex {

#if defined(VZ_OPT_NETWORK_SEES_LINKS)
constexpr bool SEES_LINKS = true;
#elif defined(VZ_OPT_NETWORK_SEES_STONES)
constexpr bool SEES_LINKS = false;
#else
#error "an unknown value of option network_sees"
#endif
constexpr int SIDE = VZ_OPT_SIZE;
constexpr int CELLS = SIDE * SIDE;
// Rows and columns outside each border: as far as a bridge reaches.
constexpr int MARGIN = 2;

// Bit MARGIN + c of element MARGIN + r is the cell in row r and column c.
struct Rows {
    u32 row[SIDE + 2 * MARGIN];
};

// The board symmetry that is the game's symmetry number 0 to 3.
VZ_DEVICE u64 board_symmetry(u64 symmetry) { return (symmetry & 1 ? 3 : 0) | (symmetry & 2 ? TRANSPOSE : 0); }

// The distance of a cell from its player's first border: 0 on it, SIDE - 1 on the far border.
VZ_DEVICE int depth_of(int cell, int player) { return player == 0 ? cell / SIDE : cell % SIDE; }

// Calls see(neighbour) for the neighbours of a cell, at most six.
template <class Visit>
VZ_DEVICE void for_neighbours(int cell, Visit visit) {
    const int row = cell / SIDE, column = cell % SIDE;
    const bool up = row > 0, down = row < SIDE - 1, left = column > 0, right = column < SIDE - 1;
    if (up) visit(cell - SIDE);
    if (up && right) visit(cell - SIDE + 1);
    if (left) visit(cell - 1);
    if (right) visit(cell + 1);
    if (down && left) visit(cell + SIDE - 1);
    if (down) visit(cell + SIDE);
}

// Links a stone and its group if it touches the first border or a linked stone. True if that
// reaches the far border.
VZ_DEVICE bool link_stone(const Cells& stones, Cells& linked, int player, int start) {
    bool touches = depth_of(start, player) == 0;
    for_neighbours(start, [&](int cell) { touches |= stones.contains(cell) && linked.contains(cell); });
    if (!touches) return false;
    bool connected = false;
    Cells frontier;
    frontier.clear();
    linked.insert(start);
    frontier.insert(start);
    for (int cell = frontier.pop(); cell >= 0; cell = frontier.pop()) {
        connected |= depth_of(cell, player) == SIDE - 1;
        for_neighbours(cell, [&](int neighbour) {
            if (stones.contains(neighbour) && !linked.contains(neighbour)) {
                linked.insert(neighbour);
                frontier.insert(neighbour);
            }
        });
    }
    return connected;
}

VZ_DEVICE void place_stone(State& s, int player, int cell) {
    s.stones[player].insert(cell);
    if (link_stone(s.stones[player], s.linked, player, cell)) s.outcome = (u16)(player + 1);
}

// Adds to one row of `linked` the cells of `own` that neighbours, and bridges over two `empty` cells, link to it. True if there are any.
VZ_DEVICE bool link_row(const Rows& own, const Rows& empty, Rows& linked, int row) {
    const u32 up = empty.row[row - 1], same = empty.row[row], down = empty.row[row + 1];
    const u32 above = linked.row[row - 1], below = linked.row[row + 1], before = linked.row[row];
    const u32 neighbours = above | above >> 1 | below | below << 1;
    const u32 bridges = (above << 1 & up & same << 1) | (above >> 2 & (up & same) >> 1) | (linked.row[row - 2] >> 1 & up & up >> 1) |
                        (below >> 1 & same >> 1 & down) | (below << 2 & (same & down) << 1) | (linked.row[row + 2] << 1 & down & down << 1);
    u32 reached = before | (own.row[row] & (neighbours | bridges));
    for (u32 next = reached;; reached = next) {
        next = reached | (own.row[row] & (reached << 1 | reached >> 1));
        if (next == reached) break;
    }
    linked.row[row] = reached;
    return reached != before;
}

// The rows or columns of stones outside the board that are a player's borders, the first and the far one.
VZ_DEVICE int border(int number) { return number == 0 ? MARGIN - 1 : MARGIN + SIDE; }

// The stones of a player that neighbours and bridges link to the border `outside`.
VZ_DEVICE Rows linked_to(const State& s, int player, int outside) {
    constexpr u32 BOARD = ((1u << SIDE) - 1) << MARGIN;
    Rows own = {}, empty = {}, linked = {};
    for (int cell = 0; cell < CELLS; cell++) {
        const int row = MARGIN + cell / SIDE;
        const u32 bit = 1u << (MARGIN + cell % SIDE);
        const bool mine = s.stones[player].contains(cell);
        own.row[row] |= mine ? bit : 0;
        empty.row[row] |= mine || s.stones[1 - player].contains(cell) ? 0 : bit;
    }
    if (player == 0) {
        linked.row[outside] = BOARD << 1 | BOARD >> 1;
    } else {
        for (int row = MARGIN - 1; row <= MARGIN + SIDE; row++) linked.row[row] = 1u << outside;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int row = MARGIN; row < MARGIN + SIDE; row++) changed |= link_row(own, empty, linked, row);
        for (int row = MARGIN + SIDE - 1; row >= MARGIN; row--) changed |= link_row(own, empty, linked, row);
    }
    return linked;
}

VZ_DEVICE bool swap_is_legal(const State& s) { return VZ_OPT_SWAP && s.plies == 1; }

VZ_DEVICE void swap_stone(State& s) {
    Cells stones = board::transform_cells<SIDE>(s.stones[0].united(s.stones[1]), TRANSPOSE);
    s.stones[0].clear();
    s.stones[1].clear();
    s.linked.clear();
    for (int cell = stones.pop(); cell >= 0; cell = stones.pop()) place_stone(s, s.to_play, cell);
}

} // namespace hex

VZ_DEVICE int game_turn(const State& s) { return s.outcome == 0 ? s.to_play : TURN_OVER; }

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    int n = s.stones[0].united(s.stones[1]).write_free(out);
    if (hex::swap_is_legal(s)) out[n++] = hex::CELLS;
    return n;
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    if (action == hex::CELLS) {
        hex::swap_stone(s);
    } else {
        hex::place_stone(s, s.to_play, action);
    }
    s.plies += 1;
    s.to_play ^= 1;
}

// Planes: own stones, the other player's stones, the cells of the borders the player has to connect, those of the other
// player's borders; with SEES_LINKS linked_to the own first border, the own far one, and the other player's; with `swap` ones where the stone on
// the board may be taken. [4, 5, 8 or 9, size, size]
template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    constexpr int LINKS = hex::SEES_LINKS ? 4 : 0;
    hex::Rows linked[LINKS + 1];
    for (int plane = 0; plane < LINKS; plane++) linked[plane] = hex::linked_to(s, plane < 2 ? player : 1 - player, hex::border(plane % 2));
    for (int i = lane; i < VZ_OBS_CHANNELS * hex::CELLS; i += lanes) {
        const int plane = i / hex::CELLS, cell = i % hex::CELLS;
        const int seat = (plane & 1) == 0 ? player : 1 - player;
        const int depth = hex::depth_of(cell, seat);
        bool on;
        if (plane < 2) {
            on = s.stones[seat].contains(cell);
        } else if (plane < 4) {
            on = depth == 0 || depth == hex::SIDE - 1;
        } else if (plane < 4 + LINKS) {
            on = linked[plane - 4].row[hex::MARGIN + cell / hex::SIDE] >> (hex::MARGIN + cell % hex::SIDE) & 1;
        } else {
            on = hex::swap_is_legal(s);
        }
        out[i] = Out(on ? 1.0f : 0.0f);
    }
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    winner_returns(s.outcome, out);
}

// 0 identity, 1 half a turn, 2 the main diagonal's reflection with the players exchanged, 3 both.
VZ_DEVICE void game_transform(const State& s, u64 symmetry, State& out) {
    out = s;
    if (symmetry == 0) return;
    const bool exchanged = symmetry >= 2;
    out.linked.clear();
    out.to_play = (u16)(s.to_play ^ (u16)exchanged);
    out.outcome = (u16)(exchanged && s.outcome != 0 ? 3 - s.outcome : s.outcome);
    for (int player = 0; player < 2; player++) {
        const hex::Cells& source = s.stones[exchanged ? 1 - player : player];
        const hex::Cells image = board::transform_cells<hex::SIDE>(source, hex::board_symmetry(symmetry));
        out.stones[player] = image;
        for (int i = 0; i < hex::SIDE; i++) {
            const int cell = player == 0 ? i : i * hex::SIDE;
            if (image.contains(cell)) hex::link_stone(image, out.linked, player, cell);
        }
    }
}

VZ_DEVICE u16 game_transform_action(u16 action, u64 symmetry) {
    return action == hex::CELLS ? action : (u16)board::transform_cell<hex::SIDE>(action, hex::board_symmetry(symmetry));
}

#define VZ_OWN_TRANSFORM_PLAYER
VZ_DEVICE int game_transform_player(int player, u64 symmetry) { return player ^ (symmetry >= 2 ? 1 : 0); }
