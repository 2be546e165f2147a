// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace pooling {

// The statistics of a channel over the squares of a board.
enum class PoolStatistics : u32 {
    Mean = 0, // The mean of x.
    ReluMeanMax = 1, // Of relu(x) the mean, the mean times `board_factor`, and the maximum; first the means of all channels.
};

// The effect of a pooling layer's output on the channels.
enum class ChannelEffect : u32 {
    Bias = 0, // It is added.
    Scale = 1, // Its sigmoid is a factor.
};

// A pooling layer's sizes, and the rows that it reads.
struct PoolingBlock {
    u32 pooled; // The first channels, whose statistics are taken.
    PoolStatistics statistics; // Which statistics.
    u32 inputs; // Numbers that are pooled.
    u32 hidden; // Units of the hidden layer; 0 where there is none.
    u32 output_inputs; // Numbers that the output's layer reads.
    u32 outputs; // Numbers of the output.
    u32 values_per_board; // Inputs, hidden units and outputs.
    ChannelEffect effect; // What the output does to the channels.
    u32 first; // The first of the channels that the output is for.
    u32 squares; // Squares of the board.
    u32 width; // Numbers of a square's row.
    f32 per_square; // 1 / squares.
    f32 board_factor; // The factor of a repeated mean.
};
static_assert(sizeof(PoolingBlock) == 52, "must equal the Rust struct");

} // namespace pooling
