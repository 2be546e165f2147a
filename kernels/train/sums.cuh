// Products of one step's two factors, summed in f32: on tensor cores where the format and the architecture have them, by plain
// arithmetic elsewhere. A block's threads share a tile of 64 x 64 sums, 16 each.
#pragma once
#include "net/mma.cuh"
#include "train/format.cuh"

namespace train {

constexpr int TILE = 64;  // rows and columns of a tile
constexpr int DEPTH = 32; // of one step
constexpr int STRIDE = TILE + VEC; // so that eight rows of 16 bytes lie in different banks

// Both factors of one step, k by k.
struct Factors {
    alignas(16) Element a[DEPTH * STRIDE]; // [k][row]
    alignas(16) Element b[DEPTH * STRIDE]; // [k][column]
};

// A thread's part of a tile: 4 x 4 sums.
struct PlainSums {
    f32 at[16] = {};

    VZ_DEVICE f32 sum(int i) const { return at[i]; }
    VZ_DEVICE static int row(int i) { return (int)threadIdx.x / 16 * 4 + i / 4; }
    VZ_DEVICE static int column(int i) { return (int)threadIdx.x % 16 * 4 + i % 4; }

    // True where some of it lies in a tile of `rows` rows and `columns` columns.
    VZ_DEVICE static bool within(u32 rows, u32 columns) { return (u32)row(0) < rows && (u32)column(0) < columns; }

    // Adds the products of one step.
    VZ_DEVICE void add(const Factors& factors) {
        for (int k = 0; k < DEPTH; k++) {
            const Element* a = factors.a + k * STRIDE + row(0);
            const Element* b = factors.b + k * STRIDE + column(0);
            const f32 right[4] = {widen(b[0]), widen(b[1]), widen(b[2]), widen(b[3])};
            for (int i = 0; i < 4; i++) {
                const f32 left = widen(a[i]);
                for (int j = 0; j < 4; j++) at[i * 4 + j] = multiply_add(left, right[j], at[i * 4 + j]);
            }
        }
    }
};

#if VZ_TRAIN_FORMAT == 0

typedef PlainSums Sums;

#else

#if VZ_TRAIN_FORMAT == 1
typedef net::Bf16 Numbers;
#else
typedef net::F16 Numbers;
#endif

// 16 x 16 numbers from `corner` on, stored k by k, as four words of each lane: word i of lane l has of the 8 x 8 block i the
// numbers k = 2 (l % 4) and the next of row (or column) l / 4. Block i is half i / 2 of k and half i % 2 of the rows; of the
// columns of a right factor, the other way round. (PTX ISA, "ldmatrix" with .trans.)
template <bool RIGHT>
VZ_DEVICE void load_words(u32 (&out)[4], const Element* corner) {
#ifdef __CUDACC__
    const int block = net::lane() / 8, k = RIGHT ? block % 2 : block / 2, side = RIGHT ? block / 2 : block % 2;
    const Element* line = corner + (k * 8 + net::lane() % 8) * STRIDE + side * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((u32)__cvta_generic_to_shared(line))
                 : "memory");
#else
    for (int block = 0; block < 4; block++) {
        const int k = RIGHT ? block % 2 : block / 2, side = RIGHT ? block / 2 : block % 2;
        const Element* low = corner + (k * 8 + net::lane() % 4 * 2) * STRIDE + side * 8 + net::lane() / 4;
        out[block] = low[0].bits | (u32)low[STRIDE].bits << 16;
    }
#endif
}

// A warp's part of a tile: 16 rows of 32 columns, in four products side by side.
struct TensorSums {
    f32 at[4][4] = {};

    VZ_DEVICE f32 sum(int i) const { return at[i / 4][i % 4]; }
    VZ_DEVICE static int first_row() { return (int)threadIdx.x / 64 * 16; }
    VZ_DEVICE static int first_column() { return (int)threadIdx.x / 32 % 2 * 32; }
    VZ_DEVICE static int row(int i) { return first_row() + net::lane() / 4 + i % 4 / 2 * 8; }
    VZ_DEVICE static int column(int i) { return first_column() + i / 4 * 8 + net::lane() % 4 * 2 + i % 2; }
    VZ_DEVICE static bool within(u32 rows, u32 columns) {
        return (u32)first_row() < rows && (u32)first_column() < columns;
    }

    VZ_DEVICE void add(const Factors& factors) {
VZ_UNROLL
        for (int k = 0; k < DEPTH; k += 16) {
            u32 a[4];
            load_words<false>(a, factors.a + k * STRIDE + first_row());
VZ_UNROLL
            for (int pair = 0; pair < 2; pair++) {
                u32 b[4];
                load_words<true>(b, factors.b + k * STRIDE + first_column() + pair * 16);
                net::multiply_add<Numbers>(at[pair * 2], a, b[0], b[1]);
                net::multiply_add<Numbers>(at[pair * 2 + 1], a, b[2], b[3]);
            }
        }
    }
};

template <bool TENSOR_CORES>
struct Chosen {
    typedef PlainSums Type;
};
template <>
struct Chosen<true> {
    typedef TensorSums Type;
};
typedef Chosen<net::TENSOR_CORES<Numbers>>::Type Sums;

#endif

} // namespace train
