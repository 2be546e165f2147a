// Loads of a GEMM's operands: the layout of a step in shared memory, and the loaders of activations, gradients and packed weights.
// Elements out of range are not read; zeros are written instead.
#pragma once
#include "net/mma.cuh"
#include "train/format.cuh"

namespace train {

using net::SmemAddr;
using net::Source;

constexpr int PER_COPY = COPY_BYTES / (int)sizeof(Element); // numbers of one copy
constexpr int DEPTH = COPIES_PER_STEP * PER_COPY;          // K of a step

// A layer's sizes, with its methods.
struct LinearShape : LinearShapeFields {
    VZ_DEVICE u32 area() const { return height * width; }

    // Numbers from the first input row of an output row to that of the next.
    VZ_DEVICE u32 row_step() const { return mode == Connectivity::Flatten ? area() * x_width : x_width; }

    // Numbers from an output row's first input row to input number `input` of a tap.
    VZ_DEVICE i64 distance(u32 tap, u32 input) const {
        i64 rows = 0;
        if (mode == Connectivity::Flatten) rows = tap;
        if (mode == Connectivity::Conv3x3) rows = ((i64)(tap / 3) - 1) * width + (tap % 3) - 1;
        return rows * x_width + x_offset + input;
    }

    // The bit of a tap in the mask of `taps_of`.
    VZ_DEVICE u32 bit(u32 tap) const { return mode == Connectivity::Conv3x3 ? tap : 0; }

    // A mask of the taps that are on the board for a position.
    VZ_DEVICE u32 taps_of(u32 y, u32 x) const {
        if (mode != Connectivity::Conv3x3) return 1;
        const u32 lines = (y > 0 ? 0007 : 0) | 0070 | (y + 1 < height ? 0700 : 0);
        const u32 columns = (x > 0 ? 0111 : 0) | 0222 | (x + 1 < width ? 0444 : 0);
        return lines & columns;
    }
};

// The K index of a product, in the order of all sums: taps, then inputs; for a convolution chunks of inputs, then taps, then inputs
// of the chunk. Twin of `order` in src/net/gpu_train/layers.rs.
struct Depth {
    u32 begin, width; // of the chunk
    u32 tap;
    u32 input; // in the chunk

    VZ_DEVICE Depth(const LinearShape& shape, u32 number) : begin(0), width(shape.inputs), tap(0), input(number) {
        if (shape.mode == Connectivity::Conv3x3) {
            const u32 chunk = number / (shape.taps * CHUNK);
            begin = minimum(chunk * CHUNK, shape.inputs);
            width = minimum(CHUNK, shape.inputs - begin);
            input = number - chunk * CHUNK * shape.taps;
        }
        if (begin < shape.inputs) {
            tap = input / width;
            input %= width;
        }
        if (tap >= shape.taps) begin = shape.inputs;
    }

    // True past the last index.
    VZ_DEVICE bool ended(const LinearShape& shape) const { return begin >= shape.inputs; }

    // Advances by one step.
    VZ_DEVICE void advance(const LinearShape& shape) {
        input += DEPTH;
        while (!ended(shape) && input >= width) {
            input -= width;
            if (++tap < shape.taps) continue;
            tap = 0;
            begin += width;
            width = minimum(CHUNK, shape.inputs - begin);
        }
    }
};

// Copies 16 bytes through L1 (cp.async.ca), since the other taps read the same rows. Otherwise as `net::copy_four_words`.
VZ_DEVICE void copy_shared_rows(SmemAddr to, const Element* from, Source source) {
#if defined(__CUDACC__) && VZ_ARCH >= 800
    const u32 bytes = source == Source::GLOBAL ? COPY_BYTES : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes));
#else
    net::copy_four_words(to, (const u32*)from, source);
#endif
}

// Lines of units in shared memory, and the units that each thread copies: one of every LINES_AT_ONCE lines and of every UNITS_AT_ONCE
// units. The pitch of a line is an odd number of units, so that the eight lines that ldmatrix reads at once lie in different
// banks.
template <int LINES_, int UNITS_>
struct SmemPanel {
    static constexpr int LINES = LINES_, UNITS = UNITS_;
    static constexpr int PITCH = COPY_BYTES * (UNITS + 1);
    static constexpr int BYTES = LINES * PITCH;
    static constexpr int UNITS_AT_ONCE = UNITS == 4 ? 4 : 8;
    static constexpr int LINES_AT_ONCE = TILE_THREADS / UNITS_AT_ONCE;
    static constexpr int LINE_COPIES = LINES / LINES_AT_ONCE, UNIT_COPIES = UNITS / UNITS_AT_ONCE;

    // The first line and unit of a thread. Eight threads that write at once write to different banks: one line of eight units, or
    // two units of four alternate lines.
    VZ_DEVICE static constexpr int line(int thread) {
        return UNITS == 4 ? thread / 32 * 8 + thread / 2 % 4 * 2 + thread / 8 % 2 : thread / 8;
    }
    VZ_DEVICE static constexpr int unit(int thread) { return UNITS == 4 ? thread / 16 % 2 * 2 + thread % 2 : thread % 8; }

    // The offset of the thread's unit number (`line_copy`, `unit_copy`).
    VZ_DEVICE static constexpr int offset(int thread, int line_copy, int unit_copy) {
        return (line(thread) + line_copy * LINES_AT_ONCE) * PITCH + (unit(thread) + unit_copy * UNITS_AT_ONCE) * COPY_BYTES;
    }
};

// True if eight threads that copy at once, and eight lines that are read at once, use different banks.
template <class P>
VZ_DEVICE constexpr bool is_bank_conflict_free() {
    for (int first = 0; first < TILE_THREADS; first += 8) {
        u32 written = 0, read = 0;
        for (int i = 0; i < 8; i++) {
            written |= 1u << P::offset(first + i, 0, 0) / COPY_BYTES % 8;
            read |= 1u << i * P::PITCH / COPY_BYTES % 8;
        }
        if (written != 0xFF || read != 0xFF) return false;
    }
    return true;
}

// True if the threads copy each unit exactly once.
template <class P>
VZ_DEVICE constexpr bool is_covered() {
    u32 units[P::LINES_AT_ONCE] = {};
    for (int thread = 0; thread < TILE_THREADS; thread++) {
        if (units[P::line(thread)] >> P::unit(thread) & 1) return false;
        units[P::line(thread)] |= 1u << P::unit(thread);
    }
    for (u32 line : units) {
        if (line != (1u << P::UNITS_AT_ONCE) - 1) return false;
    }
    return P::LINES % P::LINES_AT_ONCE == 0 && P::UNITS % P::UNITS_AT_ONCE == 0;
}

// Loads the left operand of a product: one line per output row, with K of a step in its units.
template <class P>
struct InputRowLoader {
    const LinearShape& shape;
    const Element* first; // this thread's first row
    u64 step;             // between its rows, in numbers
    u32 taps[P::LINE_COPIES];
    Depth depth;

    // `first_row`, of `rows`, is the panel's first line.
    VZ_DEVICE InputRowLoader(const LinearShape& given, const Element* x, u32 first_row, u32 rows)
        : shape(given), step((u64)P::LINES_AT_ONCE * given.row_step()),
          depth(given, (u32)P::unit((int)threadIdx.x) * PER_COPY) {
        const u32 row = first_row + P::line((int)threadIdx.x);
        first = x + (u64)row * shape.row_step();
VZ_UNROLL
        for (int i = 0; i < P::LINE_COPIES; i++) {
            const u32 at = row + i * P::LINES_AT_ONCE, square = shape.mode == Connectivity::Conv3x3 ? at % shape.area() : 0;
            taps[i] = at < rows ? shape.taps_of(square / shape.width, square % shape.width) : 0;
        }
    }

    // Starts the copies of the next step.
    VZ_DEVICE void load_async(SmemAddr to) {
        const bool inside = !depth.ended(shape);
        const u32 bit = shape.bit(depth.tap);
        const Element* from = first + shape.distance(depth.tap, depth.begin + depth.input);
VZ_UNROLL
        for (int i = 0; i < P::LINE_COPIES; i++) {
            const bool there = inside && taps[i] >> bit & 1;
            const Element* row = there ? from + i * step : first;
            copy_shared_rows(to + P::offset((int)threadIdx.x, i, 0), row, there ? Source::GLOBAL : Source::ZEROS);
        }
        depth.advance(shape);
    }
};

// Loads the left operand of a gradient of weights: one line per output row (K), whose units are what the row reads for some rows of
// the matrix of weights.
template <class P>
struct InputPatchLoader {
    const LinearShape& shape;
    const Element* first; // the start of this thread's next line
    u32 row, end;         // the next output row, and the end of the range
    u32 y[P::LINE_COPIES], x[P::LINE_COPIES], jump_y, jump_x;
    i32 distance[P::UNIT_COPIES];
    u32 bit[P::UNIT_COPIES];

    // Output rows `begin` to `end_` - 1, matrix rows from `first_row` on.
    VZ_DEVICE InputPatchLoader(const LinearShape& given, const Element* input, u32 first_row, u32 begin, u32 end_)
        : shape(given), row(begin + P::line((int)threadIdx.x)), end(end_) {
        first = input + (u64)row * shape.row_step();
        const u32 area = shape.area();
        jump_y = DEPTH % area / shape.width;
        jump_x = DEPTH % area % shape.width;
VZ_UNROLL
        for (int i = 0; i < P::LINE_COPIES; i++) {
            const u32 square = (row + i * P::LINES_AT_ONCE) % area;
            y[i] = square / shape.width;
            x[i] = square % shape.width;
        }
VZ_UNROLL
        for (int i = 0; i < P::UNIT_COPIES; i++) {
            const Depth at(shape, first_row + (P::unit((int)threadIdx.x) + i * P::UNITS_AT_ONCE) * PER_COPY);
            distance[i] = (i32)shape.distance(at.tap, at.begin + at.input);
            bit[i] = at.ended(shape) ? 31 : shape.bit(at.tap);
        }
    }

    // Starts the copies of the next step.
    VZ_DEVICE void load_async(SmemAddr to) {
VZ_UNROLL
        for (int l = 0; l < P::LINE_COPIES; l++) {
            const u32 taps = row + l * P::LINES_AT_ONCE < end ? shape.taps_of(y[l], x[l]) : 0;
            const Element* from = first + (u64)l * P::LINES_AT_ONCE * shape.row_step();
VZ_UNROLL
            for (int u = 0; u < P::UNIT_COPIES; u++) {
                const bool there = taps >> bit[u] & 1;
                const Element* unit = there ? from + distance[u] : first;
                copy_shared_rows(to + P::offset((int)threadIdx.x, l, u), unit, there ? Source::GLOBAL : Source::ZEROS);
            }
            move(y[l], x[l]);
        }
        row += DEPTH;
        first += (u64)DEPTH * shape.row_step();
    }

    // Advances by DEPTH squares, board by board.
    VZ_DEVICE void move(u32& line, u32& column) const {
        column += jump_x;
        line += jump_y;
        if (column >= shape.width) {
            column -= shape.width;
            line++;
        }
        if (line >= shape.height) line -= shape.height;
    }
};

// Loads the right operand: consecutive lines of a matrix [lines, columns].
template <class P>
struct MatrixLoader {
    const Element* first; // this thread's next unit
    u32 line, end, column, columns;

    // Lines `begin` to `end_` - 1, columns from `first_column` on.
    VZ_DEVICE MatrixLoader(const Element* matrix, u32 begin, u32 end_, u32 first_column, u32 columns_)
        : line(begin + P::line((int)threadIdx.x)), end(end_),
          column(first_column + P::unit((int)threadIdx.x) * PER_COPY), columns(columns_) {
        first = matrix + (u64)line * columns + column;
    }

    // Starts the copies of the next step.
    VZ_DEVICE void load_async(SmemAddr to) {
VZ_UNROLL
        for (int l = 0; l < P::LINE_COPIES; l++) {
            const Element* from = first + (u64)l * P::LINES_AT_ONCE * columns;
VZ_UNROLL
            for (int u = 0; u < P::UNIT_COPIES; u++) {
                const u32 along = u * P::UNITS_AT_ONCE * PER_COPY;
                const bool there = line + l * P::LINES_AT_ONCE < end && column + along < columns;
                net::copy_four_words(
                    to + P::offset((int)threadIdx.x, l, u), (const u32*)(there ? from + along : first),
                    there ? Source::GLOBAL : Source::ZEROS
                );
            }
        }
        line += DEPTH;
        first += (u64)DEPTH * columns;
    }
};

} // namespace train
