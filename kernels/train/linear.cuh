// Linear layers, forward and backward, as products of matrices. Twin of src/net/ops: a layer has one matrix [inputs, columns]
// for each tap, and its geometry says which row of the input reaches which row of the output through which tap.
//
// Rows are a board's positions, boards one after the other. A block makes a tile of the result; sums over k go in ascending
// order, so a result does not depend on what runs beside it.
#pragma once
#include "train/sums.cuh"

namespace train {

// Twin of src/train/device/layers.rs `Mode`.
enum Mode : u32 {
    POINTWISE = 0, // the same row
    CONV3X3 = 1,   // the row of a neighbour on the board, tap by tap; off the board there is 0
    FLATTEN = 2,   // one output row a board, one tap for each of its positions
    SPREAD = 3,    // one input row a board; each position of the output has a tap of its own
};

// Twin of src/train/device/layers.rs `Shape`.
struct Shape {
    u32 mode, height, width, taps;
    u32 inputs, columns;       // of each tap's matrix
    u32 x_width, x_offset;     // of a row of the input, and where the inputs begin
    u32 out_width, out_offset; // of a row of the output, and where the columns go
    u32 biases;                // columns that have one
};

// The row that row `row` reads through `tap`; -1 off the board.
VZ_DEVICE i64 source_row(const Shape& shape, i64 row, u32 tap) {
    if (shape.mode == FLATTEN) return row * (shape.height * shape.width) + tap;
    if (shape.mode != CONV3X3) return row;
    const u32 place = (u32)(row % (shape.height * shape.width));
    const u32 y = place / shape.width + tap / 3 - 1, x = place % shape.width + tap % 3 - 1;
    if (y >= shape.height || x >= shape.width) return -1;
    return row + ((i64)(tap / 3) - 1) * shape.width + (i64)(tap % 3) - 1;
}

// What is done to a sum before it is stored.
struct Finish {
    const f32* bias;       // [biases]
    const Element* added;  // [rows, out_width], or null
    const Element* opened; // [rows, out_width], or null: where it is not positive, the result is 0
    bool relu;
};

// out = x W, for all rows of the output; `rows` is their number, `weights` [taps, inputs, columns].
template <class Out>
VZ_DEVICE void product(
    const Shape shape, u32 rows, const Element* x, const Element* weights, const Finish& finish, Out* out, Factors& factors
) {
    const u32 area = shape.height * shape.width;
    const u32 column_tiles = (shape.columns + TILE - 1) / TILE;
    const u32 tile = blockIdx.x / column_tiles, first_column = blockIdx.x % column_tiles * TILE;
    // A tile of rows that share a position has weights of its own.
    const bool spread = shape.mode == SPREAD;
    const u32 position = spread ? tile % area : 0;
    const u32 units = spread ? rows / area : rows, first = (spread ? tile / area : tile) * TILE;
    const Element* matrix = weights + (u64)position * shape.inputs * shape.columns;
    const u32 depth = (spread ? 1 : shape.taps) * shape.inputs;

    const u32 a_row = first + threadIdx.x / 4, b_column = first_column + threadIdx.x % 8 * VEC;
    const int a_k = (int)threadIdx.x % 4 * VEC, b_k = (int)threadIdx.x / 8;
    Sums sums;
    const bool used = first < units && Sums::within(units - first, shape.columns - first_column);
    const auto fetch = [&](u32 start, Vector& a, Vector& b) {
        a = b = zeros();
        if (a_row < units && start + a_k < depth) {
            const u32 tap = (start + a_k) / shape.inputs, input = (start + a_k) % shape.inputs;
            const i64 row = source_row(shape, a_row, tap);
            if (row >= 0) a = load(x + row * shape.x_width + shape.x_offset + input);
        }
        if (b_column < shape.columns && start + b_k < depth) b = load(matrix + (u64)(start + b_k) * shape.columns + b_column);
    };
    Vector a, b;
    fetch(0, a, b);
    for (u32 start = 0; start < depth; start += DEPTH) {
        __syncthreads();
        for (int i = 0; i < VEC; i++) factors.a[(a_k + i) * STRIDE + threadIdx.x / 4] = a.x[i];
        store(factors.b + b_k * STRIDE + threadIdx.x % 8 * VEC, b);
        __syncthreads();
        // The next step's loads run beside this one's products.
        fetch(start + DEPTH, a, b);
        if (used) sums.add(factors);
    }
    for (int i = 0; i < 16; i++) {
        const u32 unit = first + Sums::row(i), column = first_column + Sums::column(i);
        if (unit >= units || column >= shape.columns) continue;
        const u64 row = spread ? (u64)unit * area + position : unit;
        const u64 at = row * shape.out_width + shape.out_offset + column;
        f32 sum = sums.sum(i);
        if (column < shape.biases) sum += finish.bias[column];
        if (finish.added) sum += widen(finish.added[at]);
        if (finish.relu && sum < 0.0f) sum = 0.0f;
        if (finish.opened && !(widen(finish.opened[at]) > 0.0f)) sum = 0.0f;
        out[at] = narrow<Out>(sum);
    }
}

// The gradient of the weights, x^T dy: a part of it for each of `splits` ranges of rows, parts [splits, taps * inputs,
// columns]; `shape` is that of the forward direction, `rows` those of its output.
VZ_DEVICE void weight_gradient(
    const Shape shape, u32 rows, u32 splits, const Element* x, const Element* dy, f32* parts, Factors& factors
) {
    const u32 height = shape.taps * shape.inputs;
    const u32 row_tiles = (height + TILE - 1) / TILE, column_tiles = (shape.columns + TILE - 1) / TILE;
    const u32 split = blockIdx.x / (row_tiles * column_tiles), tile = blockIdx.x % (row_tiles * column_tiles);
    const u32 first_row = tile / column_tiles * TILE, first_column = tile % column_tiles * TILE;
    const u32 share = ((rows + splits - 1) / splits + DEPTH - 1) / DEPTH * DEPTH;
    const u32 begin = smaller(split * share, rows), end = smaller(begin + share, rows);

    const int k = (int)threadIdx.x / 8, lane = (int)threadIdx.x % 8 * VEC;
    const u32 row = first_row + lane, column = first_column + lane;
    const u32 tap = row / shape.inputs, input = row % shape.inputs;
    Sums sums;
    const bool used = Sums::within(height - first_row, shape.columns - first_column);
    const auto fetch = [&](u32 start, Vector& a, Vector& b) {
        a = b = zeros();
        if (start + k >= end) return;
        const i64 source = row < height ? source_row(shape, start + k, tap) : -1;
        if (source >= 0) a = load(x + source * shape.x_width + shape.x_offset + input);
        if (column < shape.columns) b = load(dy + (u64)(start + k) * shape.columns + column);
    };
    Vector a, b;
    fetch(begin, a, b);
    for (u32 start = begin; start < end; start += DEPTH) {
        __syncthreads();
        store(factors.a + k * STRIDE + lane, a);
        store(factors.b + k * STRIDE + lane, b);
        __syncthreads();
        fetch(start + DEPTH, a, b);
        if (used) sums.add(factors);
    }
    for (int i = 0; i < 16; i++) {
        const u32 r = first_row + Sums::row(i), c = first_column + Sums::column(i);
        if (r < height && c < shape.columns) parts[((u64)split * height + r) * shape.columns + c] = sums.sum(i);
    }
}

} // namespace train
