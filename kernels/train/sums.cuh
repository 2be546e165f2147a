// Sums of a tile in registers, by tensor cores where the number format and the architecture have them and by plain arithmetic
// elsewhere: each is one sum in f32, in the order of its products.
#pragma once
#include "train/factors.cuh"

namespace train {

// A block's tile of sums, by the warps that lie side by side and what each of them takes. Twin of src/train/device/tiling.rs.
template <int WARP_ROWS_, int WARP_COLUMNS_, int ROW_TILES_, int COLUMN_TILES_>
struct Tiling {
    static constexpr int WARP_ROWS = WARP_ROWS_, WARP_COLUMNS = WARP_COLUMNS_;
    static constexpr int ROW_TILES = ROW_TILES_;       // 16 rows each, of a warp
    static constexpr int COLUMN_TILES = COLUMN_TILES_; // 16 columns each, of a warp
    static constexpr int ROWS = 16 * ROW_TILES * WARP_ROWS, COLUMNS = 16 * COLUMN_TILES * WARP_COLUMNS;
    static_assert(WARP_ROWS * WARP_COLUMNS * net::WARP == THREADS, "a block's warps");
};
typedef Tiling<2, 2, 4, 4> Wide;   // 128 x 128
typedef Tiling<4, 1, 4, 4> Tall;   // 256 x 64
typedef Tiling<4, 1, 2, 2> Narrow; // 128 x 32

// What a line of the left factor is.
enum class Line { ROW, DEPTH };

template <bool FIRST, class A, class B>
struct Choice {
    typedef A Type;
};
template <class A, class B>
struct Choice<false, A, B> {
    typedef B Type;
};

// Both factors of a step in shared memory.
template <class T, Line LINE>
struct Step {
    typedef typename Choice<LINE == Line::ROW, Panel<T::ROWS, DEPTH_UNITS>, Panel<DEPTH, T::ROWS / PER_UNIT>>::Type Left;
    typedef Panel<DEPTH, T::COLUMNS / PER_UNIT> Right;
    static constexpr int BYTES = Left::BYTES + Right::BYTES;
    static_assert(is_covered<Left>() && is_covered<Right>(), "a thread for each unit");
    static_assert(meets_no_conflict<Left>() && meets_no_conflict<Right>(), "a bank for each of eight");
};

#if VZ_TRAIN_FORMAT == 0
constexpr bool BY_TENSOR_CORES = false;
#else
#if VZ_TRAIN_FORMAT == 1
typedef net::Bf16 ElementType;
#else
typedef net::F16 ElementType;
#endif
constexpr bool BY_TENSOR_CORES = net::TENSOR_CORES<ElementType>;
#endif

// Four 8 x 8 blocks of 16-bit numbers, turned: lanes 8 i .. 8 i + 7 say where the lines of block i are; lane l gets of each the
// numbers in place l / 4 of the lines 2 (l % 4) and the next. (PTX ISA, "ldmatrix" with .trans.)
VZ_DEVICE void load_turned(u32 (&out)[4], Place line) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(line));
#else
    const auto lines = emulator::exchange(0xFFFFFFFFu, line, emulator::Wait::SHUFFLE);
    for (int block = 0; block < 4; block++) {
        const u32 low = (u32)(block * 8 + net::lane() % 4 * 2);
        const int at = net::lane() / 4 * 2;
        out[block] = read_pod<u16>(lines[low] + at) | (u32)read_pod<u16>(lines[low + 1] + at) << 16;
    }
#endif
}

VZ_DEVICE f32 load_number(Place from) {
#if VZ_TRAIN_FORMAT == 0
    return from_bits(net::load_word(from));
#elif defined(__CUDACC__)
    u16 bits;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(from));
    return widen(Element{bits});
#else
    return widen(read_pod<Element>(from));
#endif
}

// A warp's part of a tile. Lane l has of each 16 x 8 sums those of rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next.
template <class T, Line LINE>
struct Sums {
    typedef Step<T, LINE> S;
    static constexpr int ROW_TILES = T::ROW_TILES, COLUMN_TILES = T::COLUMN_TILES;

    const int first_row, first_column; // of the warp in the tile
    f32 at[ROW_TILES][2 * COLUMN_TILES][4] = {};

    VZ_DEVICE Sums()
        : first_row((int)threadIdx.x / net::WARP / T::WARP_COLUMNS * 16 * ROW_TILES),
          first_column((int)threadIdx.x / net::WARP % T::WARP_COLUMNS * 16 * COLUMN_TILES) {}

    // True where some of it lies in a tile of `rows` rows and `columns` columns.
    VZ_DEVICE bool within(u32 rows, u32 columns) const { return (u32)first_row < rows && (u32)first_column < columns; }

    // Adds the products of the step that is at `step`.
    VZ_DEVICE void add(Place step) {
        if constexpr (BY_TENSOR_CORES) {
            add_by_tensor_cores(step);
        } else {
            add_one_by_one(step);
        }
    }

    // Where this lane says that a line of the left factor's first 16 x 16 numbers is. The blocks are rows 0 to 7, rows 8 to 15 and
    // both again eight further in depth.
    VZ_DEVICE Place left_line(Place step) const {
        const int low = net::lane() % 16, high = net::lane() / 16;
        if (LINE == Line::ROW) return step + (first_row + low) * S::Left::PITCH + high * UNIT;
        return step + (net::lane() % 8 + high * 8) * S::Left::PITCH + first_row * 2 + low / 8 * UNIT;
    }

    VZ_DEVICE void add_by_tensor_cores(Place step) {
#if VZ_TRAIN_FORMAT != 0
        const Place left = left_line(step);
        // The blocks are eight columns in both halves of the depth, then eight more.
        const Place right = step + S::Left::BYTES + net::lane() % 16 * S::Right::PITCH + first_column * 2 + net::lane() / 16 * UNIT;
VZ_UNROLL
        for (int k = 0; k < DEPTH; k += 16) {
            u32 a[ROW_TILES][4], b[COLUMN_TILES][4];
VZ_UNROLL
            for (int i = 0; i < ROW_TILES; i++) {
                if constexpr (LINE == Line::ROW) {
                    net::load_blocks(a[i], left + 16 * i * S::Left::PITCH + 2 * k);
                } else {
                    load_turned(a[i], left + k * S::Left::PITCH + 32 * i);
                }
            }
VZ_UNROLL
            for (int j = 0; j < COLUMN_TILES; j++) load_turned(b[j], right + k * S::Right::PITCH + 32 * j);
VZ_UNROLL
            for (int i = 0; i < ROW_TILES; i++) {
VZ_UNROLL
                for (int j = 0; j < COLUMN_TILES; j++) {
                    net::multiply_add<ElementType>(at[i][2 * j], a[i], b[j][0], b[j][1]);
                    net::multiply_add<ElementType>(at[i][2 * j + 1], a[i], b[j][2], b[j][3]);
                }
            }
        }
#endif
    }

    // The same sums by the same lanes, product by product.
    VZ_DEVICE void add_one_by_one(Place step) {
        constexpr int ALONG_ROW = LINE == Line::ROW ? S::Left::PITCH : (int)sizeof(Element);
        constexpr int ALONG_DEPTH = LINE == Line::ROW ? (int)sizeof(Element) : S::Left::PITCH;
        const Place left = step + (first_row + net::lane() / 4) * ALONG_ROW;
        const Place right = step + S::Left::BYTES + (first_column + net::lane() % 4 * 2) * (int)sizeof(Element);
        for (int k = 0; k < DEPTH; k++) {
            f32 a[ROW_TILES][2];
VZ_UNROLL
            for (int i = 0; i < 2 * ROW_TILES; i++) a[i / 2][i % 2] = load_number(left + k * ALONG_DEPTH + 8 * i * ALONG_ROW);
VZ_UNROLL
            for (int j = 0; j < 2 * COLUMN_TILES; j++) {
VZ_UNROLL
                for (int e = 0; e < 2; e++) {
                    const f32 b = load_number(right + k * S::Right::PITCH + (8 * j + e) * (int)sizeof(Element));
VZ_UNROLL
                    for (int i = 0; i < 2 * ROW_TILES; i++) {
                        f32& sum = at[i / 2][j][i % 2 * 2 + e];
                        sum = multiply_add(a[i / 2][i % 2], b, sum);
                    }
                }
            }
        }
    }

    // Gives all sums to store(terms, row, sums), four side by side at a time, by their row in the tile; terms(column) is what is
    // known of the four columns. Lanes change sums two by two, so that four of them have 16 columns of a row: stores are of whole
    // sectors.
    template <class Terms, class Store>
    VZ_DEVICE void give(Terms terms, Store store) const {
        const int lane = net::lane();
        const bool odd = lane % 2 == 1;
VZ_UNROLL
        for (int j = 0; j < COLUMN_TILES; j++) {
            const auto of_columns = terms(first_column + 16 * j + lane % 2 * 8 + lane % 4 / 2 * 4);
VZ_UNROLL
            for (int i = 0; i < 2 * ROW_TILES; i++) {
                const f32 *low = &at[i / 2][2 * j][i % 2 * 2], *high = &at[i / 2][2 * j + 1][i % 2 * 2];
                const f32 kept[2] = {odd ? high[0] : low[0], odd ? high[1] : low[1]};
                f32 got[2];
VZ_UNROLL
                for (int e = 0; e < 2; e++) got[e] = __shfl_xor_sync(0xFFFFFFFFu, odd ? low[e] : high[e], 1);
                const net::Four four = {{
                    odd ? got[0] : kept[0], odd ? got[1] : kept[1], odd ? kept[0] : got[0], odd ? kept[1] : got[1],
                }};
                store(of_columns, first_row + 8 * i + lane / 4, four);
            }
        }
    }
};

// Four numbers of a row, 8 or 16 bytes at a multiple of as many.
template <class T>
struct alignas(4 * sizeof(T)) Quad {
    T x[4];
};

} // namespace train
