// Linear layers, forward and backward, as products of matrices. Twin of src/net/ops: a layer has one matrix [inputs, columns]
// for each tap, and its geometry says which row of the input reaches which row of the output through which tap.
//
// Rows are a board's positions, boards one after the other. A block makes a tile of the result, step by step of 64 bytes of a
// row's depth (32 numbers of 16 bits) that cp.async brings while the step before the last is at work. Every sum takes its products
// in one order (`Depth`; rows in ascending order for the gradient of weights), whatever tile it lies in and what runs beside it.
//
// Cycles of a multiprocessor of sm_90 for a step of 32 numbers. It multiplies 2,048 pairs of 16-bit numbers a cycle, of which
// mma.sync gets about 0.6 (see net/layer.cuh), and moves 128 bytes of shared memory or first cache.
//                                       128 x 128  256 x 64  128 x 32
//   products at half of the peak              512       512       128
//   ldmatrix, two operands a warp             256       256       128
//   copies into shared memory                 128       160        80
//   input read from the first cache            64       128        64
//   sum of these three                        448       544       272
//   bytes from L2, each input once          9,100     5,900     3,000
//   operations a byte of L2                   115       177        87
// So where layers are wide, tensor cores are the limit at half of the peak, close to what mma.sync can do; shared memory would be
// one at 0.57 (128 x 128) or 0.47 (256 x 64) of the peak. Half of it asks for 4.3 or 2.8 TB/s of L2, which gives some 6. That is
// why a convolution takes all taps of 32 inputs before it goes on: its nine taps read the same rows, and between two of them only a
// step or two goes through the first cache. Each from L2 would be 7.7 or 9.7 TB/s. In the gradient of weights, for the same reason,
// four (or eight) taps of 32 inputs lie side by side in a tile: 10,300 (or 6,300) bytes from L2.
// 128 x 32 gets to 0.24 of the peak: it is for few columns, where a wider tile would be empty or memory is the limit, and for few
// rows, where blocks are too few (src/train/device/tiling.rs). In 32-bit floats a step is 16 deep with the same bytes; at 128
// products a cycle arithmetic takes 2,048 cycles for 128 x 128 and is the limit.
#pragma once
#include "train/sums.cuh"

namespace train {

// What is done to a sum before it is stored.
struct Finish {
    const f32* bias;       // [biases]
    const Element* added;  // [rows, out_width], or null
    const Element* opened; // [rows, out_width], or null: where it is not positive, the result is 0
    f32 least;             // the ReLU's 0, or as little as there is

    // What is known of four columns from `column` on, of rows that share a position if their tiles do.
    struct Terms {
        bool there;
        u32 place; // of the first row's
        f32 bias[4];
    };
    VZ_DEVICE Terms terms(const Shape& shape, u32 position, u32 column) const {
        Terms terms = {column < shape.columns, position * shape.out_width + shape.out_offset + column, {}};
VZ_UNROLL
        for (u32 e = 0; e < 4; e++) {
            if (column + e < shape.biases) terms.bias[e] = bias[column + e];
        }
        return terms;
    }

    // The result of four sums goes to `place`.
    template <class Out>
    VZ_DEVICE void store(const Terms& terms, net::Four sum, u64 place, Out* out) const {
        Quad<Element> more = {}, gate = {};
        if (added) more = *(const Quad<Element>*)(added + place);
        if (opened) gate = *(const Quad<Element>*)(opened + place);
        Quad<Out> result;
VZ_UNROLL
        for (int e = 0; e < 4; e++) {
            f32 x = sum.at[e] + terms.bias[e];
            if (added) x += widen(more.x[e]);
            if (x < least) x = least;
            if (opened && !(widen(gate.x[e]) > 0.0f)) x = 0.0f;
            result.x[e] = narrow<Out>(x);
        }
        *(Quad<Out>*)(out + place) = result;
    }
};

// For no ReLU.
VZ_DEVICE f32 least_number() { return from_bits(0xFF800000u); }

// Adds the products of `steps` steps to the warp's sums, where some of them are `used`.
template <class S, class Left, class Right>
VZ_DEVICE void sum_steps(S& sums, bool used, Left& left, Right& right, u32 steps) {
    const Place shared = net::dynamic_shared();
    constexpr int BYTES = S::S::BYTES;
    const auto fetch = [&](Place stage) {
        left.fetch(stage);
        right.fetch(stage + S::S::Left::BYTES);
    };
    for (u32 i = 0; i < STAGES - 1; i++) {
        if (i < steps) fetch(shared + (int)i * BYTES);
        net::end_copies();
    }
    int at_work = 0, next = STAGES - 1;
    for (u32 step = 0; step < steps; step++) {
        net::wait_for_copies<STAGES - 2>();
        VZ_BLOCK_SYNC(40); // everyone's copies for this step are there, and nobody reads the last one any more
        if (step + STAGES - 1 < steps) fetch(shared + next * BYTES);
        net::end_copies();
        if (used) sums.add(shared + at_work * BYTES);
        next = at_work;
        at_work = at_work + 1 == STAGES ? 0 : at_work + 1;
    }
}

// out = x W, for all rows of the output; `rows` is their number, `weights` [taps * inputs, columns] in the order of `Depth`, of
// SPREAD [taps, inputs, columns]. Shared memory has STAGES steps.
template <class T, class Out>
VZ_DEVICE void product(const Shape shape, u32 rows, const Element* x, const Element* weights, const Finish& finish, Out* out) {
    typedef Sums<T, Line::ROW> S;
    const u32 column_tiles = (shape.columns + T::COLUMNS - 1) / T::COLUMNS;
    const u32 tile = blockIdx.x / column_tiles, first_column = blockIdx.x % column_tiles * T::COLUMNS;
    // A tile of rows that share a position has weights of its own.
    const bool spread = shape.mode == SPREAD;
    const u32 area = shape.area(), position = spread ? tile % area : 0;
    const u32 units = spread ? rows / area : rows, first = (spread ? tile / area : tile) * T::ROWS;
    const u32 depth = (spread ? 1 : shape.taps) * shape.inputs;

    S sums;
    Shape read = shape;
    if (spread) read.taps = 1;
    InputRows<typename S::S::Left> left(read, x, first, units);
    const Element* matrix = weights + (u64)position * shape.inputs * shape.columns;
    MatrixLines<typename S::S::Right> right(matrix, 0, depth, first_column, shape.columns);
    const bool used = sums.within(units - first, shape.columns - first_column);
    sum_steps(sums, used, left, right, (depth + DEPTH - 1) / DEPTH);
    const u32 row_step = spread ? area * shape.out_width : shape.out_width;
    const auto give = [&](const Finish& by) {
        sums.give(
            [&](int along) { return by.terms(shape, position, first_column + along); },
            [&](const Finish::Terms& terms, int row, const net::Four& four) {
                const u32 unit = first + row;
                if (terms.there && unit < units) by.store(terms, four, (u64)unit * row_step + terms.place, out);
            }
        );
    };
    // Where nothing is read, there is no code that might: it is long, and run once.
    if (finish.added || finish.opened) {
        give(finish);
    } else {
        give({finish.bias, nullptr, nullptr, finish.least});
    }
}

// The gradient of the weights, x^T dy: a part of it for each of `splits` ranges of rows, parts [splits, taps * inputs, columns] in
// the order of the weights; `shape` is that of the forward direction, `rows` those of its output.
template <class T>
VZ_DEVICE void weight_gradient(
    const Shape shape, u32 rows, u32 splits, const Element* x, const Element* dy, f32* parts
) {
    typedef Sums<T, Line::DEPTH> S;
    const u32 height = shape.taps * shape.inputs;
    const u32 row_tiles = (height + T::ROWS - 1) / T::ROWS, column_tiles = (shape.columns + T::COLUMNS - 1) / T::COLUMNS;
    const u32 split = blockIdx.x / (row_tiles * column_tiles), tile = blockIdx.x % (row_tiles * column_tiles);
    const u32 first_row = tile / column_tiles * T::ROWS, first_column = tile % column_tiles * T::COLUMNS;
    const u32 share = ((rows + splits - 1) / splits + CHUNK - 1) / CHUNK * CHUNK;
    const u32 begin = smaller(split * share, rows), end = smaller(begin + share, rows);

    S sums;
    InputLines<typename S::S::Left> left(shape, x, first_row, begin, end);
    MatrixLines<typename S::S::Right> right(dy, begin, end, first_column, shape.columns);
    const bool used = sums.within(height - first_row, shape.columns - first_column);
    sum_steps(sums, used, left, right, (end - begin + DEPTH - 1) / DEPTH);
    sums.give(
        [&](int along) { return first_column + along; },
        [&](u32 column, int along, const net::Four& four) {
            const u32 row = first_row + along;
            if (row >= height || column >= shape.columns) return;
            net::write_four(parts + ((u64)split * height + row) * shape.columns + column, four);
        }
    );
}

} // namespace train
