// Accumulators of a tile in registers: by tensor cores if the number format and the architecture have them, otherwise by scalar
// arithmetic. Each is one f32 sum with a fixed order of its products.
#pragma once
#include "train/operands.cuh"

namespace train {

// A block's output tile: its grid of warps and the size of a warp's tile. Twin of src/net/gpu_train/tiling.rs.
template <int WARP_ROWS_, int WARP_COLUMNS_, int ROW_TILES_, int COLUMN_TILES_>
struct Tiling {
    static constexpr int WARP_ROWS = WARP_ROWS_, WARP_COLUMNS = WARP_COLUMNS_;
    static constexpr int ROW_TILES = ROW_TILES_;       // per warp, of 16 rows each
    static constexpr int COLUMN_TILES = COLUMN_TILES_; // per warp, of 16 columns each
    static constexpr int ROWS = 16 * ROW_TILES * WARP_ROWS, COLUMNS = 16 * COLUMN_TILES * WARP_COLUMNS;
    static_assert(WARP_ROWS * WARP_COLUMNS * WARP == TILE_THREADS, "a block's warps");
};
typedef Tiling<2, 2, 4, 4> Wide;   // 128 x 128
typedef Tiling<4, 1, 4, 4> Tall;   // 256 x 64
typedef Tiling<4, 1, 2, 2> Narrow; // 128 x 32

// A line of the left operand in shared memory: a row (K contiguous), or one index of K (rows contiguous).
enum class OperandLayout { ROW, DEPTH };

template <bool FIRST, class A, class B>
struct Conditional {
    typedef A Type;
};
template <class A, class B>
struct Conditional<false, A, B> {
    typedef B Type;
};

// Both operands of one stage in shared memory.
template <class T, OperandLayout LAYOUT>
struct StageTiles {
    typedef typename Conditional<LAYOUT == OperandLayout::ROW, SmemPanel<T::ROWS, COPIES_PER_STEP>, SmemPanel<DEPTH, T::ROWS / PER_COPY>>::Type Left;
    typedef SmemPanel<DEPTH, T::COLUMNS / PER_COPY> Right;
    static constexpr int BYTES = Left::BYTES + Right::BYTES;
    static_assert(is_covered<Left>() && is_covered<Right>(), "each unit is copied by one thread");
    static_assert(is_bank_conflict_free<Left>() && is_bank_conflict_free<Right>(), "bank conflict");
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

// Loads four transposed 8 x 8 blocks of 16-bit numbers. Lanes 8 i .. 8 i + 7 pass the addresses of the lines of block i. Lane l
// gets of each block the numbers at index l / 4 of lines 2 (l % 4) and 2 (l % 4) + 1. (PTX ISA, "ldmatrix" with .trans.)
VZ_DEVICE void load_transposed(u32 (&out)[4], SmemAddr line) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(line));
#else
    const auto lines = emulator::exchange(0xFFFFFFFFu, line, emulator::Wait::SHUFFLE);
    for (int block = 0; block < 4; block++) {
        const u32 low = (u32)(block * 8 + lane() % 4 * 2);
        const int at = lane() / 4 * 2;
        out[block] = read_pod<u16>(lines[low] + at) | (u32)read_pod<u16>(lines[low + 1] + at) << 16;
    }
#endif
}

VZ_DEVICE f32 load_number(SmemAddr from) {
#if VZ_TRAIN_FORMAT == 0
    return from_bits(net::load_word(from));
#elif defined(__CUDACC__)
    u16 bits;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(from));
    return to_f32(Element{bits});
#else
    return to_f32(read_pod<Element>(from));
#endif
}

// A warp's part of a tile. Of each 16 x 8 accumulators, lane l has rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next.
template <class T, OperandLayout LAYOUT>
struct Accumulators {
    typedef StageTiles<T, LAYOUT> S;
    static constexpr int ROW_TILES = T::ROW_TILES, COLUMN_TILES = T::COLUMN_TILES;

    const int first_row, first_column; // of the warp in the tile
    f32 at[ROW_TILES][2 * COLUMN_TILES][4] = {};

    VZ_DEVICE Accumulators()
        : first_row((int)threadIdx.x / WARP / T::WARP_COLUMNS * 16 * ROW_TILES),
          first_column((int)threadIdx.x / WARP % T::WARP_COLUMNS * 16 * COLUMN_TILES) {}

    // True if part of the warp's tile lies within `rows` rows and `columns` columns.
    VZ_DEVICE bool within(u32 rows, u32 columns) const { return (u32)first_row < rows && (u32)first_column < columns; }

    // Multiplies and accumulates the stage at `step`.
    VZ_DEVICE void add(SmemAddr step) {
        if constexpr (BY_TENSOR_CORES) {
            add_by_tensor_cores(step);
        } else {
            add_scalar(step);
        }
    }

    // The address that this lane passes to ldmatrix for the left operand's first 16 x 16 numbers. The blocks are rows 0 to 7,
    // rows 8 to 15, and both again at K + 8.
    VZ_DEVICE SmemAddr left_line(SmemAddr step) const {
        const int low = lane() % 16, high = lane() / 16;
        if (LAYOUT == OperandLayout::ROW) return step + (first_row + low) * S::Left::PITCH + high * COPY_BYTES;
        return step + (lane() % 8 + high * 8) * S::Left::PITCH + first_row * 2 + low / 8 * COPY_BYTES;
    }

    VZ_DEVICE void add_by_tensor_cores(SmemAddr step) {
#if VZ_TRAIN_FORMAT != 0
        const SmemAddr left = left_line(step);
        // The blocks are eight columns at K and K + 8, then the next eight columns.
        const SmemAddr right = step + S::Left::BYTES + lane() % 16 * S::Right::PITCH + first_column * 2 + lane() / 16 * COPY_BYTES;
VZ_UNROLL
        for (int k = 0; k < DEPTH; k += 16) {
            u32 a[ROW_TILES][4], b[COLUMN_TILES][4];
VZ_UNROLL
            for (int i = 0; i < ROW_TILES; i++) {
                if constexpr (LAYOUT == OperandLayout::ROW) {
                    net::load_blocks(a[i], left + 16 * i * S::Left::PITCH + 2 * k);
                } else {
                    load_transposed(a[i], left + k * S::Left::PITCH + 32 * i);
                }
            }
VZ_UNROLL
            for (int j = 0; j < COLUMN_TILES; j++) load_transposed(b[j], right + k * S::Right::PITCH + 32 * j);
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

    // The same sums in the same lanes, by scalar arithmetic.
    VZ_DEVICE void add_scalar(SmemAddr step) {
        constexpr int ALONG_ROW = LAYOUT == OperandLayout::ROW ? S::Left::PITCH : (int)sizeof(Element);
        constexpr int ALONG_DEPTH = LAYOUT == OperandLayout::ROW ? (int)sizeof(Element) : S::Left::PITCH;
        const SmemAddr left = step + (first_row + lane() / 4) * ALONG_ROW;
        const SmemAddr right = step + S::Left::BYTES + (first_column + lane() % 4 * 2) * (int)sizeof(Element);
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

    // Calls store(terms(column), read(terms, row), row, sums) for every four adjacent columns; row and column are those in the tile.
    // Pairs of lanes exchange sums, so that four lanes have 16 columns of a row and stores fill whole sectors. `read` is called for all
    // rows first: a read after a store that may be to the same address would wait for it.
    template <class Terms, class Read, class Store>
    VZ_DEVICE void store_tile(Terms terms, Read read, Store store) const {
        const int lane = ::lane();
        const bool odd = lane % 2 == 1;
VZ_UNROLL
        for (int j = 0; j < COLUMN_TILES; j++) {
            const auto of_columns = terms(first_column + 16 * j + lane % 2 * 8 + lane % 4 / 2 * 4);
            decltype(read(of_columns, 0)) others[2 * ROW_TILES];
VZ_UNROLL
            for (int i = 0; i < 2 * ROW_TILES; i++) others[i] = read(of_columns, first_row + 8 * i + lane / 4);
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
                store(of_columns, others[i], first_row + 8 * i + lane / 4, four);
            }
        }
    }
};

// Four numbers of a row: 8 or 16 bytes, aligned to their size.
template <class T>
struct alignas(4 * sizeof(T)) Quad {
    T x[4];
};

} // namespace train
