// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace net {

// The boards of a launch: slots of the batch, of which those below `*live` are evaluated. The grid of a captured launch is for all
// of them.
struct BoardRange {
    const u32* live; // How many slots of the batch are to be evaluated; 0: all. `[1]`
    u32 boards; // Boards.
    u32 first; // The slot of the first board.
};
static_assert(sizeof(BoardRange) == 16, "must equal the Rust struct");

// One layer of the network.
struct LayerBlock {
    const u32* input; // `[rows, ROW_WORDS]`, rows being squares board by board
    const u32* weights; // `[COLUMN_BLOCKS, K_TILES, TAPS, WEIGHT_TILE_WORDS]`
    const f32* bias; // `[channels]`
    const f32* scale; // Of the BatchNorm that reads the residual stream. `[channels]`
    const f32* offset; // Of the BatchNorm that reads the residual stream. `[channels]`
    const f32* messages; // The messages of vertices. `[boards, vertices, channels]`
    f32* stream; // The residual stream. `[rows, channels]`
    u32* output; // Activations, or 32-bit floats. `[rows, ROW_WORDS]`
    f32* logits; // `[slots, A]`
    f32* hidden; // Hidden units of the value head. `[slots, hidden units]`
    BoardRange boards; // The boards.
};
static_assert(sizeof(LayerBlock) == 96, "must equal the Rust struct");

// The last layer of the value head.
struct ValuesBlock {
    const f32* hidden; // `[slots, hidden units]`
    const f32* weights; // `[values, hidden units]`
    const f32* bias; // `[values]`
    const f32* logits; // `[slots, A]`
    f32* values; // `[slots, P]`
    u32* not_finite; // Set to 1 where a logit or a value is not finite. `[1]`
    BoardRange boards; // The boards.
};
static_assert(sizeof(ValuesBlock) == 64, "must equal the Rust struct");

} // namespace net
