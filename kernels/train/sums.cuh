// Products of one step's two factors, summed in f32: on tensor cores where the format and the architecture have them, by plain
// arithmetic elsewhere and where VZ_TRAIN_PLAIN says so. A block's threads share a tile of 64 x 64 sums, 16 each.
#pragma once
#include "train/format.cuh"

#ifdef __CUDACC__
#define VZ_UNROLLED _Pragma("unroll")
#else
#define VZ_UNROLLED
#endif

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

#if VZ_TRAIN_FORMAT == 0 || defined(VZ_TRAIN_PLAIN) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800)

typedef PlainSums Sums;

#else

VZ_DEVICE int warp_lane() { return (int)(threadIdx.x % 32); }

// 16 x 16 numbers from `corner` on, stored k by k, as four words of each lane: word i of lane l has of the 8 x 8 block i the
// numbers k = 2 (l % 4) and the next of row (or column) l / 4. Block i is half i / 2 of k and half i % 2 of the rows; of the
// columns of a right factor, the other way round. (PTX ISA, "ldmatrix" with .trans.)
template <bool RIGHT>
VZ_DEVICE void load_words(u32 (&out)[4], const Element* corner) {
#ifdef __CUDACC__
    const int block = warp_lane() / 8, k = RIGHT ? block % 2 : block / 2, side = RIGHT ? block / 2 : block % 2;
    const Element* line = corner + (k * 8 + warp_lane() % 8) * STRIDE + side * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((u32)__cvta_generic_to_shared(line))
                 : "memory");
#else
    for (int block = 0; block < 4; block++) {
        const int k = RIGHT ? block % 2 : block / 2, side = RIGHT ? block / 2 : block % 2;
        const Element* low = corner + (k * 8 + warp_lane() % 4 * 2) * STRIDE + side * 8 + warp_lane() / 4;
        out[block] = low[0].bits | (u32)low[STRIDE].bits << 16;
    }
#endif
}

// d += a b on tensor cores: a of 16 rows, b of 8 columns, 16 deep (PTX ISA, "mma.m16n8k16"). Lane l has rows l / 4 and l / 4 + 8
// of d, columns 2 (l % 4) and the next.
VZ_DEVICE void tensor_product(f32* d, const u32 (&a)[4], u32 b0, u32 b1) {
#ifdef __CUDACC__
#if VZ_TRAIN_FORMAT == 1
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#endif
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    // Words of both halves of the rows, for each half of k; those of the columns.
    u64 left[2][4], right[2][4];
    for (int half = 0; half < 2; half++) {
        const auto all = emulator::exchange(
            0xFFFFFFFFu, (uint64_t)a[half * 2] | (uint64_t)a[half * 2 + 1] << 32, emulator::Wait::SHUFFLE);
        for (int t = 0; t < 4; t++) left[half][t] = all[(unsigned)(warp_lane() / 4 * 4 + t)];
    }
    const auto all = emulator::exchange(0xFFFFFFFFu, (uint64_t)b0 | (uint64_t)b1 << 32, emulator::Wait::SHUFFLE);
    for (int i = 0; i < 2; i++) {
        for (int t = 0; t < 4; t++) right[i][t] = all[(unsigned)((warp_lane() % 4 * 2 + i) * 4 + t)];
    }
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 16; k++) {
            const int t = k % 8 / 2, shift = k % 2 * 16;
            const u16 x = (u16)(left[k / 8][t] >> (i / 2 * 32 + shift)), y = (u16)(right[i % 2][t] >> (k / 8 * 32 + shift));
            d[i] += widen(Element{x}) * widen(Element{y});
        }
    }
#endif
}

// A warp's part of a tile: 16 rows of 32 columns, in four products side by side.
struct TensorSums {
    f32 at[16] = {};

    VZ_DEVICE static int first_row() { return (int)threadIdx.x / 64 * 16; }
    VZ_DEVICE static int first_column() { return (int)threadIdx.x / 32 % 2 * 32; }
    VZ_DEVICE static int row(int i) { return first_row() + warp_lane() / 4 + i % 4 / 2 * 8; }
    VZ_DEVICE static int column(int i) { return first_column() + i / 4 * 8 + warp_lane() % 4 * 2 + i % 2; }
    VZ_DEVICE static bool within(u32 rows, u32 columns) {
        return (u32)first_row() < rows && (u32)first_column() < columns;
    }

    VZ_DEVICE void add(const Factors& factors) {
VZ_UNROLLED
        for (int k = 0; k < DEPTH; k += 16) {
            u32 a[4];
            load_words<false>(a, factors.a + k * STRIDE + first_row());
VZ_UNROLLED
            for (int pair = 0; pair < 2; pair++) {
                u32 b[4];
                load_words<true>(b, factors.b + k * STRIDE + first_column() + pair * 16);
                tensor_product(at + pair * 8, a, b[0], b[1]);
                tensor_product(at + pair * 8 + 4, a, b[2], b[3]);
            }
        }
    }
};

typedef TensorSums Sums;

#endif

} // namespace train
