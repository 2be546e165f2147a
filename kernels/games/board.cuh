// Twin of src/game/board.rs: sets of cells of square boards up to 19x19, row-major, and the eight symmetries.
#pragma once
#include "games/board_layout.cuh"
#include "rng.cuh"

namespace board {

// A set of cells: cell i is bit i % 64 of word i / 64. The state has room for 19x19; a board of BOARD_CELLS cells uses the
// first BOARD_WORDS words, and the others stay 0.
template <int BOARD_CELLS>
struct CellSet {
    u64 words[CELL_WORDS];

    static constexpr int BOARD_WORDS = (BOARD_CELLS + 63) / 64;

    VZ_DEVICE bool contains(int cell) const { return (words[cell >> 6] >> (cell & 63) & 1) != 0; }

    VZ_DEVICE void insert(int cell) { words[cell >> 6] |= 1ull << (cell & 63); }

    VZ_DEVICE void clear() {
        for (int i = 0; i < CELL_WORDS; i++) words[i] = 0;
    }

    // Removes and returns the lowest cell; -1 if there is none.
    VZ_DEVICE int pop() {
        for (int i = 0; i < BOARD_WORDS; i++) {
            if (words[i] == 0) continue;
            const int bit = trailing_zeros(words[i]);
            words[i] &= words[i] - 1;
            return i * 64 + bit;
        }
        return -1;
    }

    VZ_DEVICE CellSet united(const CellSet& other) const {
        CellSet out;
        for (int i = 0; i < CELL_WORDS; i++) out.words[i] = words[i] | other.words[i];
        return out;
    }

    // Writes the cells that are not in the set, ascending; returns the count.
    VZ_DEVICE int write_free(u16* out) const {
        int n = 0;
        for (int i = 0; i < BOARD_WORDS; i++) {
            const int below = BOARD_CELLS - i * 64;
            const u64 mask = below < 64 ? (1ull << below) - 1 : ~0ull;
            n += write_bits(~words[i] & mask, (u16)(i * 64), out + n);
        }
        return n;
    }
};

// The image of `cell` under one of the eight symmetries of the square: bit 2 transposes, then bit 1 flips the rows and bit 0 the
// columns.
template <int SIDE>
VZ_DEVICE int transform_cell(int cell, u64 symmetry) {
    u32 row = (u32)cell / SIDE, column = (u32)cell % SIDE;
    if (symmetry & 4) swap_values(row, column);
    if (symmetry & 2) row = SIDE - 1 - row;
    if (symmetry & 1) column = SIDE - 1 - column;
    return (int)(row * SIDE + column);
}

template <int SIDE>
VZ_DEVICE CellSet<SIDE * SIDE> transform_cells(CellSet<SIDE * SIDE> cells, u64 symmetry) {
    if (symmetry == 0) return cells;
    CellSet<SIDE * SIDE> image;
    image.clear();
    for (int cell = cells.pop(); cell >= 0; cell = cells.pop()) image.insert(transform_cell<SIDE>(cell, symmetry));
    return image;
}

} // namespace board
