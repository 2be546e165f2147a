// Linear layers, forward and backward, as implicit GEMMs. Twin of src/net/cpu_train: a layer has one matrix [inputs, columns] per tap;
// its geometry gives the row of the input that a row of the output reads through each tap.
//
// Rows are positions of boards, boards in sequence. A block computes one output tile. Each step of the K loop is 64 bytes of a
// row (32 numbers of 16 bits); cp.async loads the next STAGES - 1 steps meanwhile. Every sum has one order of its products
// (`Depth`; for the gradient of weights, ascending rows), independent of the tile and of the launch.
//
// Cycles of an SM of sm_90 for a step of 32 numbers. It does 2,048 16-bit multiply-adds per cycle, of which mma.sync reaches about
// 0.6 (see net/layer.cuh), and moves 128 bytes of shared memory or L1 per cycle.
//                                       128 x 128  256 x 64  128 x 32
//   multiply-adds at half of the peak         512       512       128
//   ldmatrix, two operands per warp           256       256       128
//   copies into shared memory                 128       160        80
//   input read from L1                         64       128        64
//   sum of these three                        448       544       272
//   bytes from L2, each input once          9,100     5,900     3,000
//   operations per byte of L2                 115       177        87
// For wide layers the limit is the tensor cores, at half of the peak, close to what mma.sync reaches; shared memory would be the
// limit at 0.57 (128 x 128) or 0.47 (256 x 64) of the peak. Half of the peak needs 4.3 or 2.8 TB/s from L2, which delivers about
// 6. For this reason a convolution takes all taps of 32 inputs before the next inputs: its nine taps read the same rows, which
// stay in L1. Without that, L2 would have to deliver 7.7 or 9.7 TB/s. For the same reason a tile of the gradient of weights has
// four (or eight) taps of 32 inputs: 10,300 (or 6,300) bytes from L2.
// 128 x 32 reaches 0.24 of the peak. It is for few columns, where a wider tile would be partly empty or memory is the limit, and
// for few rows, where there are too few blocks (src/net/gpu_train/tiling.rs). In f32 a step is K = 16 with the same bytes; at 128
// multiply-adds per cycle, arithmetic takes 2,048 cycles for 128 x 128 and is the limit.
#pragma once
#include "train/accumulators.cuh"

namespace train {

// The operations on an accumulator before it is stored: bias, residual, ReLU, ReLU gradient.
struct EpilogueArgs {
    const f32* bias;       // [biases]
    const Element* residual;  // [rows, out_width], or null
    const Element* relu_mask; // [rows, out_width], or null: the result is 0 where it is not positive
    f32 min_value;            // 0 for a ReLU, otherwise -inf

    // The terms of four columns, the same for all rows of a tile.
    struct ColumnTerms {
        bool there; // the columns exist
        u32 offset;  // offset of the columns in the first row
        f32 bias[4];
    };
    VZ_DEVICE ColumnTerms terms(const LinearShape& shape, u32 position, u32 column) const {
        ColumnTerms terms = {column < shape.columns, position * shape.out_width + shape.out_offset + column, {}};
VZ_UNROLL
        for (u32 e = 0; e < 4; e++) {
            if (column + e < shape.biases) terms.bias[e] = bias[column + e];
        }
        return terms;
    }

    // The terms of four adjacent sums.
    struct Terms {
        Quad<Element> residual, mask;
    };
    VZ_DEVICE Terms read(u64 offset) const {
        Terms terms = {};
        if (residual) terms.residual = *(const Quad<Element>*)(residual + offset);
        if (relu_mask) terms.mask = *(const Quad<Element>*)(relu_mask + offset);
        return terms;
    }

    // Stores the results of four adjacent sums at `offset`.
    template <class Out>
    VZ_DEVICE void store(const ColumnTerms& columns, const Terms& terms, net::Four sum, u64 offset, Out* out) const {
        Quad<Out> result;
VZ_UNROLL
        for (int e = 0; e < 4; e++) {
            f32 x = sum.at[e] + columns.bias[e];
            if (residual) x += to_f32(terms.residual.x[e]);
            if (x < min_value) x = min_value;
            if (relu_mask && !(to_f32(terms.mask.x[e]) > 0.0f)) x = 0.0f;
            result.x[e] = from_f32<Out>(x);
        }
        *(Quad<Out>*)(out + offset) = result;
    }
};

// The `min_value` without a ReLU.
VZ_DEVICE f32 no_minimum() { return from_bits(0xFF800000u); }

// Whether a warp's tile has any sums.
enum class WarpTile { USED, EMPTY };

// The K loop: `steps` steps with asynchronous loads. A warp whose tile is empty takes part in loads only.
template <class S, class Left, class Right>
VZ_DEVICE void main_loop(S& sums, WarpTile tile, Left& left, Right& right, u32 steps) {
    const SmemAddr shared = net::dynamic_shared();
    constexpr int BYTES = S::S::BYTES;
    const auto load_async = [&](SmemAddr stage) {
        left.load_async(stage);
        right.load_async(stage + S::S::Left::BYTES);
    };
    for (u32 i = 0; i < STAGES - 1; i++) {
        if (i < steps) load_async(shared + (int)i * BYTES);
        net::end_copies();
    }
    int current = 0, next = STAGES - 1;
    for (u32 step = 0; step < steps; step++) {
        net::wait_for_copies<STAGES - 2>();
        VZ_BLOCK_SYNC(40); // all threads' copies of this step have arrived, and all warps have read the previous step
        if (step + STAGES - 1 < steps) load_async(shared + next * BYTES);
        net::end_copies();
        if (tile == WarpTile::USED) sums.add(shared + current * BYTES);
        next = current;
        current = current + 1 == STAGES ? 0 : current + 1;
    }
}

// The layer's rows `out`. Its weights are in the order of `Depth`, for `Spread` [taps, inputs, columns]. Shared memory holds STAGES
// steps.
template <class T, class Out>
VZ_DEVICE void product(const LinearBlock& args, Out* out) {
    const LinearShape shape = *args.shape;
    const u32 rows = args.rows;
    const Element *x = args.x, *weights = args.weights;
    const EpilogueArgs epilogue = {
        args.bias, args.residual, args.relu_mask, args.activation == Activation::Relu ? 0.0f : no_minimum()
    };
    typedef Accumulators<T, OperandLayout::ROW> S;
    const u32 column_tiles = (shape.columns + T::COLUMNS - 1) / T::COLUMNS;
    const u32 tile = blockIdx.x / column_tiles, first_column = blockIdx.x % column_tiles * T::COLUMNS;
    // `Spread`: a tile has rows of one position, which has its own weights.
    const bool spread = shape.mode == Connectivity::Spread;
    const u32 area = shape.area(), position = spread ? tile % area : 0;
    const u32 units = spread ? rows / area : rows, first = (spread ? tile / area : tile) * T::ROWS;
    const u32 depth = (spread ? 1 : shape.taps) * shape.inputs;

    S sums;
    LinearShape read = shape;
    if (spread) read.taps = 1;
    InputRowLoader<typename S::S::Left> left(read, x, first, units);
    const Element* matrix = weights + (u64)position * shape.inputs * shape.columns;
    MatrixLoader<typename S::S::Right> right(matrix, 0, depth, first_column, shape.columns);
    const bool is_used = sums.within(units - first, shape.columns - first_column);
    main_loop(sums, is_used ? WarpTile::USED : WarpTile::EMPTY, left, right, (depth + DEPTH - 1) / DEPTH);
    const u32 row_step = spread ? area * shape.out_width : shape.out_width;
    const auto store_tile = [&](const EpilogueArgs& by) {
        typedef EpilogueArgs::ColumnTerms Columns;
        const auto is_there = [&](const Columns& columns, int row) { return columns.there && first + row < units; };
        const auto offset = [&](const Columns& columns, int row) { return (u64)(first + row) * row_step + columns.offset; };
        sums.store_tile(
            [&](int along) { return by.terms(shape, position, first_column + along); },
            [&](const Columns& columns, int row) {
                return is_there(columns, row) ? by.read(offset(columns, row)) : EpilogueArgs::Terms{};
            },
            [&](const Columns& columns, const EpilogueArgs::Terms& terms, int row, const net::Four& four) {
                if (is_there(columns, row)) by.store(columns, terms, four, offset(columns, row), out);
            }
        );
    };
    // A separate instance without reads: the code is long and runs once.
    if (epilogue.residual || epilogue.relu_mask) {
        store_tile(epilogue);
    } else {
        store_tile({epilogue.bias, nullptr, nullptr, epilogue.min_value});
    }
}

// The gradient of the weights, x^T dy, as one partial sum per range of rows: parts [splits, taps * inputs, columns] in the order of
// the weights. `shape` is that of the forward, `rows` the number of its output rows.
template <class T>
VZ_DEVICE void weight_gradient(const WeightGradientBlock& args) {
    const LinearShape shape = *args.shape;
    const u32 rows = args.rows, splits = args.splits;
    const Element *x = args.x, *dy = args.dy;
    typedef Accumulators<T, OperandLayout::DEPTH> S;
    const u32 height = shape.taps * shape.inputs;
    const u32 row_tiles = (height + T::ROWS - 1) / T::ROWS, column_tiles = (shape.columns + T::COLUMNS - 1) / T::COLUMNS;
    const u32 split = blockIdx.x / (row_tiles * column_tiles), tile = blockIdx.x % (row_tiles * column_tiles);
    const u32 first_row = tile / column_tiles * T::ROWS, first_column = tile % column_tiles * T::COLUMNS;
    const u32 share = ((rows + splits - 1) / splits + CHUNK - 1) / CHUNK * CHUNK;
    const u32 begin = minimum(split * share, rows), end = minimum(begin + share, rows);

    S sums;
    InputPatchLoader<typename S::S::Left> left(shape, x, first_row, begin, end);
    MatrixLoader<typename S::S::Right> right(dy, begin, end, first_column, shape.columns);
    const bool is_used = sums.within(height - first_row, shape.columns - first_column);
    main_loop(sums, is_used ? WarpTile::USED : WarpTile::EMPTY, left, right, (end - begin + DEPTH - 1) / DEPTH);
    sums.store_tile(
        [&](int along) { return first_column + along; }, [](u32, int) { return 0; },
        [&](u32 column, int, int along, const net::Four& four) {
            const u32 row = first_row + along;
            if (row >= height || column >= shape.columns) return;
            net::write_four(args.parts + ((u64)split * height + row) * shape.columns + column, four);
        }
    );
}

} // namespace train
