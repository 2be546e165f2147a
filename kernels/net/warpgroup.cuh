// Products of 16-bit elements by a warpgroup: Hopper's wgmma (sm_90a), which four warps issue together and which is asynchronous. Its
// left operand is in registers, where a warp has 16 rows as for mma.m16n8k16, so that ldmatrix and its address for each row stay
// as they are (net/layer.cuh); the right one, the weights, is read from shared memory. Functions have the names that
// CUTLASS gives them. On an H100 it makes 1.1 to 1.4 times the products of mma.sync from 64 channels on (benches/results/2026-11-27-gpu.md).
//
// The layout of weights (PTX ISA, "Shared Memory Matrix Layout" and "Matrix Descriptor Format" of wgmma; the same in CUTLASS's
// mma_traits_sm90_gmma.hpp, K-major INTERLEAVE: ((8, n), (T, 2)) : ((1 T, SBO), (1, LBO))). Not swizzled and K-major, the matrix consists
// of core matrices of 8 columns by 16 bytes, 8 elements, which are 128 consecutive bytes, column by column. The leading byte offset is the
// distance to the core matrix with the next 8 elements of the same columns, the stride byte offset that to the next 8 columns. Here the
// two core matrices of the same columns are adjacent: 128 and 256 bytes.
//
// Bytes and cycles. A multiprocessor multiplies 4,096 / 2 pairs a cycle: 64 rows by n columns by 16 take n / 2 cycles, in which the
// instruction reads 32 n bytes of weights: always 64 bytes a cycle of the 128 that shared memory gives. Rows by ldmatrix
// are 2 KiB a product, 4,096 / n bytes a cycle; weights are written 32 n bytes for all rows of a block, 4,096 / rows a cycle, by as
// many from L2:
//     columns, rows      weights   rows   written   of 128 bytes a cycle     from L2 at 132 x 1.7 GHz
//     128, 128                64     32        32                    128     7.2 TB/s
//     64, 256                 64     64        16                    144     3.6 TB/s
//     32, 256                 64    128        16                    208     3.6 TB/s
// So shared memory allows all of the products with 128 columns, 0.89 with 64 and 0.6 with 32, and L2, of some 6.5 TB/s, 0.9 with 128. Half
// of the peak takes half of all that: 64 bytes a cycle and 3.6 TB/s with 128 columns.
//
// A weight tile is one bulk copy that one thread issues. It goes through the asynchronous proxy, with which products read, so that
// no proxy fence is needed; rows are copied by all threads as in the other layers, and read by ldmatrix.
//
// Products of the first 32 channels of a weight tile are issued together, and copies of later weight tiles begin after them. Those of the next 16
// follow when the products before the last are done, whose registers their rows reuse, so that one product runs while rows are read. At a
// weight tile's end the block waits for all of them, since its weights are overwritten next; meanwhile the multiprocessor runs its other
// block: 64 x 128 sums of four warps are 64 registers a thread, and two blocks of 8 warps fit as long as a thread has no more than 128.
#pragma once
#include "net/mma.cuh"

namespace net {

constexpr int WARPGROUP = 4; // warps

// Distances between core matrices of the right operand, in bytes.
constexpr u32 NEXT_NUMBERS = 128, NEXT_COLUMNS = 256;

// The matrix descriptor of a right operand that begins at `first`, a multiple of 16 bytes.
VZ_DEVICE u64 describe(SmemAddr first) {
#ifdef __CUDACC__
    const u32 address = first;
#else
    const u32 address = (u32)(first - dynamic_shared());
#endif
    return (address & 0x3FFFF) >> 4 | (u64)(NEXT_NUMBERS >> 4) << 16 | (u64)(NEXT_COLUMNS >> 4) << 32;
}

// The position of word `word` of 8 of column `column` among 16 elements of 16 columns, as `describe` has it. Column 4 t + e of the
// layer is column 2 t + e % 2 of core matrix e / 2. Twin of `core_matrix_offset` in src/net/gpu/layer.rs.
VZ_DEVICE int core_matrix_offset(int column, int word) {
    const int in_block = column / 4 * 2 + column % 2, block = column / 2 % 2;
    return block * (int)(NEXT_COLUMNS / 4) + word / 4 * (int)(NEXT_NUMBERS / 4) + in_block * 4 + word % 4;
}

// d += a b for 64 rows, of which each of the warpgroup's warps has 16 with `a` and `d` as in `multiply_add`, and 8 COLUMNS
// columns, which `b` describes. Asynchronous: `a`, `d` and the operand of `b` must not be touched before `warpgroup_wait`.
template <class ElementType, int COLUMNS>
VZ_DEVICE void warpgroup_mma(f32 (&d)[COLUMNS][4], const u32 (&a)[4], u64 b);

#ifdef __CUDACC__
// Registers of the instruction, 8 at a time, and their names.
#define VZ_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define VZ_NAMES_32 VZ_NAMES_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define VZ_NAMES_48 VZ_NAMES_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define VZ_NAMES_64 VZ_NAMES_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define VZ_NAMES_80 VZ_NAMES_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define VZ_NAMES_96 VZ_NAMES_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define VZ_NAMES_112 VZ_NAMES_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define VZ_NAMES_128 VZ_NAMES_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define VZ_EIGHT(j)                                                                                                    \
    "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]), "+f"(d[j + 1][0]), "+f"(d[j + 1][1]),                  \
        "+f"(d[j + 1][2]), "+f"(d[j + 1][3])
#define VZ_SUMS_16 VZ_EIGHT(0)
#define VZ_SUMS_32 VZ_SUMS_16, VZ_EIGHT(2)
#define VZ_SUMS_48 VZ_SUMS_32, VZ_EIGHT(4)
#define VZ_SUMS_64 VZ_SUMS_48, VZ_EIGHT(6)
#define VZ_SUMS_80 VZ_SUMS_64, VZ_EIGHT(8)
#define VZ_SUMS_96 VZ_SUMS_80, VZ_EIGHT(10)
#define VZ_SUMS_112 VZ_SUMS_96, VZ_EIGHT(12)
#define VZ_SUMS_128 VZ_SUMS_112, VZ_EIGHT(14)
// After the operands: sums are added to (1), both operands as they are (1, 1), the right one by column (0).
#define VZ_WGMMA(numbers, type, n, a, b)                                                                               \
    template <>                                                                                                        \
    VZ_DEVICE void warpgroup_mma<numbers, n / 8>(f32 (&d)[n / 8][4], const u32 (&left)[4], u64 right) {                \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type                                   \
                     " {" VZ_NAMES_##n "}, {" a "}, " b ", 1, 1, 1, 0;"                                                \
                     : VZ_SUMS_##n                                                                                     \
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));                            \
    }
#define VZ_WGMMAS(n, a, b)                                                                                             \
    VZ_WGMMA(F16, "f16", n, a, b)                                                                                      \
    VZ_WGMMA(Bf16, "bf16", n, a, b)
VZ_WGMMAS(16, "%8, %9, %10, %11", "%12")
VZ_WGMMAS(32, "%16, %17, %18, %19", "%20")
VZ_WGMMAS(48, "%24, %25, %26, %27", "%28")
VZ_WGMMAS(64, "%32, %33, %34, %35", "%36")
VZ_WGMMAS(80, "%40, %41, %42, %43", "%44")
VZ_WGMMAS(96, "%48, %49, %50, %51", "%52")
VZ_WGMMAS(112, "%56, %57, %58, %59", "%60")
VZ_WGMMAS(128, "%64, %65, %66, %67", "%68")
#undef VZ_WGMMAS
#undef VZ_WGMMA
#undef VZ_EIGHT
#else
// One warp's part of a product; every lane has given the addresses of its registers.
template <class ElementType, int COLUMNS>
void warp_product(f32* const* sums, const u32* const* left, const u8* shared, const emulator::Described& right) {
    static thread_local f32 weights[16][8 * COLUMNS], row[8 * COLUMNS];
    for (int column = 0; column < 8 * COLUMNS; column++) {
        for (int k = 0; k < 16; k++) {
            const u8* at = shared + right.at((u32)column, (u32)k / 8) + k % 8 / 2 * 4;
            weights[k][column] = ElementType::number(read_pod<u32>(at), k % 2);
        }
    }
    for (int i = 0; i < 16; i++) {
        const int g = i % 8, half = i / 8;
        for (int column = 0; column < 8 * COLUMNS; column++) {
            row[column] = sums[g * 4 + column % 8 / 2][column / 8 * 4 + 2 * half + column % 2];
        }
        for (int k = 0; k < 16; k++) {
            const f32 factor = ElementType::number(left[g * 4 + k % 8 / 2][half + k / 8 * 2], k % 2);
            for (int column = 0; column < 8 * COLUMNS; column++) row[column] += factor * weights[k][column];
        }
        for (int column = 0; column < 8 * COLUMNS; column++) {
            sums[g * 4 + column % 8 / 2][column / 8 * 4 + 2 * half + column % 2] = row[column];
        }
    }
}
template <class ElementType, int COLUMNS>
VZ_DEVICE void warpgroup_mma(f32 (&d)[COLUMNS][4], const u32 (&a)[4], u64 b) {
    emulator::multiply_later({warp_product<ElementType, COLUMNS>, &d[0][0], a, b, 4 * COLUMNS});
}
#endif

// Orders register writes before it and products after it.
VZ_DEVICE void warpgroup_arrive() {
#ifdef __CUDACC__
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
    emulator::show_registers(34);
#endif
}

// Commits the products so far as a group.
VZ_DEVICE void warpgroup_commit_batch() {
#ifdef __CUDACC__
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
    emulator::end_products();
#endif
}

// Waits for products but those of the latest LEFT groups.
template <int LEFT>
VZ_DEVICE void warpgroup_wait() {
#ifdef __CUDACC__
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#else
    emulator::wait_for_products(LEFT == 0 ? 33 : 35, LEFT);
#endif
}

// Keeps the compiler from moving accesses to sums across it: the compiler does not know that products use these registers.
template <int TILES, int COLUMNS>
VZ_DEVICE void warpgroup_fence_operand(f32 (&sums)[TILES][COLUMNS][4]) {
#ifdef __CUDACC__
VZ_UNROLL
    for (int i = 0; i < TILES; i++) {
VZ_UNROLL
        for (int j = 0; j < COLUMNS; j++) {
VZ_UNROLL
            for (int e = 0; e < 4; e++) asm volatile("" : "+f"(sums[i][j][e])::"memory");
        }
    }
#else
    (void)sums;
#endif
}

// Initialises the mbarrier of 8 bytes at `mbarrier` for one copy at a time. Other threads may wait on it after a barrier.
VZ_DEVICE void init_mbarrier(SmemAddr mbarrier) {
#ifdef __CUDACC__
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;\n"
                 "fence.proxy.async.shared::cta;" ::"r"(mbarrier)
                 : "memory");
#else
    emulator::open_mbarrier(mbarrier);
#endif
}

// Begins to copy `bytes` bytes, a multiple of 16, through the asynchronous proxy. One thread calls it.
VZ_DEVICE void copy_bulk(SmemAddr to, const u32* from, u32 bytes, SmemAddr mbarrier) {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%3], %2;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(mbarrier)
                 : "memory");
#else
    emulator::copy_for_products(to, from, bytes, mbarrier);
#endif
}

// Waits for copy number `round` of `mbarrier`, counted from 0.
VZ_DEVICE void wait_mbarrier(SmemAddr mbarrier, int round) {
#ifdef __CUDACC__
    u32 here = 0;
    while (here == 0) {
        asm volatile("{\n"
                     ".reg .pred here;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 here, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, here;\n"
                     "}"
                     : "=r"(here)
                     : "r"(mbarrier), "r"((u32)round & 1)
                     : "memory");
    }
#else
    emulator::wait_on_mbarrier(32, mbarrier, (unsigned)round & 1);
#endif
}

// The work of one block by wgmma; `Base`, a `BlockTile`, has everything but the products. Warps have the same rows as by mma.sync: row tile
// i of the four warps together is the 64 rows of a product.
template <class Base>
struct WarpgroupTile : Base {
    typedef typename Base::Shape L;
    typedef typename L::ElementType ElementType;
    static constexpr u32 STEP_BYTES = L::N_TILES * 512;

    u32 rows_of[2][L::ROW_TILES][4]; // of this step and the one before, whose product may still run

    using Base::Base;

    // Reads the rows' fragments of step `step` of a weight tile.
    VZ_DEVICE void load(const SmemAddr (&rows)[L::ROW_TILES], int step) {
VZ_UNROLL
        for (int i = 0; i < L::ROW_TILES; i++) load_blocks(rows_of[step % 2][i], rows[i] + 32 * step);
    }

    // Issues the products of step `step` of a weight tile.
    VZ_DEVICE void multiply(u64 weights, int step) {
VZ_UNROLL
        for (int i = 0; i < L::ROW_TILES; i++) {
            warpgroup_mma<ElementType>(this->sums[i], rows_of[step % 2][i], weights + step * (STEP_BYTES >> 4));
        }
        warpgroup_commit_batch();
    }

    // One weight tile's products; it does not wait for those of the last two steps.
    VZ_DEVICE void multiply_tile(int tile, int k_tile, int tap) {
        constexpr int FIRST = L::STEPS < 2 ? L::STEPS : 2;
        SmemAddr rows[L::ROW_TILES];
        this->find_rows(rows, this->input(k_tile), tap);
        const u64 weights = describe(this->weights(tile));
        wait_for_copies<L::STAGES - 2>();
        wait_mbarrier(this->mbarrier(tile), tile / L::STAGES);
        warpgroup_wait<0>();
        VZ_BLOCK_SYNC(30); // all copies of rows are done, and no product reads the last weight tile's weights any more
VZ_UNROLL
        for (int step = 0; step < FIRST; step++) load(rows, step);
        warpgroup_arrive();
VZ_UNROLL
        for (int step = 0; step < FIRST; step++) multiply(weights, step);
        this->fetch(tile + L::STAGES - 1);
VZ_UNROLL
        for (int step = FIRST; step < L::STEPS; step++) {
            warpgroup_wait<1>();
            load(rows, step);
            warpgroup_arrive();
            multiply(weights, step);
        }
    }

    VZ_DEVICE void multiply_all() {
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < L::STAGES; stage++) init_mbarrier(this->mbarrier(stage));
        }
        this->begin();
        VZ_BLOCK_SYNC(31); // mbarriers are initialised, and their first copies issued
        warpgroup_fence_operand(this->sums);
        int tile = 0;
        for (int k_tile = 0; k_tile < L::K_TILES; k_tile++) {
            for (int tap = 0; tap < L::TAPS; tap++, tile++) multiply_tile(tile, k_tile, tap);
        }
        warpgroup_wait<0>();
        warpgroup_fence_operand(this->sums);
    }
};

} // namespace net
