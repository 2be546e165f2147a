// The instructions of a layer, each as one small function: the tensor cores' product, loads of its operands from shared memory,
// asynchronous copies. Plain code replaces those that an architecture lacks; with VZ_NET_PLAIN, all of them. On the host, the
// emulator's twins have the same fragment layouts across 32 lanes (PTX ISA,
// "Matrix Fragments for mma.m16n8k16" and "ldmatrix"), so that index maps are tested there.
#pragma once
#include "net/element_type.cuh"

#ifdef __CUDACC__
#ifdef __CUDA_ARCH__
#define VZ_ARCH __CUDA_ARCH__
#else
#define VZ_ARCH 0
#endif
// A kernel of blocks of so many threads.
#define VZ_BLOCK_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#else
#define VZ_ARCH 10000
#define VZ_BLOCK_KERNEL(threads) extern "C" void
#endif

// A barrier of the whole block; tests leave out barriers by their number.
#ifndef VZ_BLOCK_SYNC
#define VZ_BLOCK_SYNC(number) __syncthreads()
#endif

namespace net {


// An address in shared memory, in bytes.
#ifdef __CUDACC__
typedef u32 SmemAddr;
VZ_DEVICE SmemAddr dynamic_shared() {
    extern __shared__ __align__(128) u8 shared[];
    return (u32)__cvta_generic_to_shared(shared);
}
#else
typedef u8* SmemAddr;
VZ_DEVICE SmemAddr dynamic_shared() { return (u8*)emulator::dynamic_shared(); }
#endif

// True where tensor cores multiply `ElementType`.
template <class ElementType>
constexpr bool TENSOR_CORES = false;
#ifndef VZ_NET_PLAIN
template <>
constexpr bool TENSOR_CORES<Bf16> = VZ_ARCH >= 800;
template <>
constexpr bool TENSOR_CORES<F16> = VZ_ARCH >= 750;
template <>
constexpr bool TENSOR_CORES<Tf32> = VZ_ARCH >= 800;
#endif

// d += a b for a of 16 rows of 8 words, b of 8 columns of 8 words. With g = lane / 4 and t = lane % 4 this lane holds
// a: words (row g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
// b: words (t, column g), (t + 4, g);
// d: (row g, columns 2 t and 2 t + 1), (g + 8, the same).
template <class ElementType>
VZ_DEVICE void multiply_add(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1);

#ifdef __CUDACC__
#define VZ_MMA(instruction)                                                                                            \
    asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                        \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
template <>
VZ_DEVICE void multiply_add<F16>(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if VZ_ARCH >= 800
    VZ_MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
#elif VZ_ARCH >= 750
    // Two products of four words each.
    for (int half = 0; half < 2; half++) {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(half == 0 ? b0 : b1));
    }
#endif
}
template <>
VZ_DEVICE void multiply_add<Bf16>(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if VZ_ARCH >= 800
    VZ_MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
#endif
}
template <>
VZ_DEVICE void multiply_add<Tf32>(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if VZ_ARCH >= 800
    VZ_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
#endif
}
#undef VZ_MMA
#else
struct Fragments {
    u32 a[4], b[2];
};
template <class ElementType>
VZ_DEVICE void multiply_add(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    const Fragments mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
    const auto all = emulator::exchange(0xFFFFFFFFu, mine, emulator::Wait::SHUFFLE);
    const int g = lane() / 4, t = lane() % 4;
    for (int i = 0; i < 4; i++) {
        const int row = g + i / 2 * 8, column = 2 * t + i % 2;
        for (int k = 0; k < 8; k++) {
            const u32 left = all[(u32)(row % 8 * 4 + k % 4)].a[row / 8 + k / 4 * 2];
            const u32 right = all[(u32)(column * 4 + k % 4)].b[k / 4];
            for (int part = 0; part < ElementType::PER_WORD; part++) {
                d[i] += ElementType::number(left, part) * ElementType::number(right, part);
            }
        }
    }
}
#endif

// ldmatrix: four 8 x 8 blocks of 16-bit elements (8 rows of 4 words). Lanes 8 i .. 8 i + 7 give the addresses of block i's rows; lane l
// gets word l % 4 of row l / 4 of each.
VZ_DEVICE void load_blocks(u32 (&out)[4], SmemAddr row) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(row));
#else
    const auto rows = emulator::exchange(0xFFFFFFFFu, row, emulator::Wait::SHUFFLE);
    for (int block = 0; block < 4; block++) {
        out[block] = read_pod<u32>(rows[(u32)(block * 8 + lane() / 4)] + 4 * (lane() % 4));
    }
    emulator::write_registers();
#endif
}

// Four words, of which the first lies at a multiple of 16 bytes.
VZ_DEVICE void load_four_words(u32 (&out)[4], SmemAddr from) {
#ifdef __CUDACC__
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from));
#else
    for (int i = 0; i < 4; i++) out[i] = read_pod<u32>(from + 4 * i);
#endif
}

VZ_DEVICE u32 load_word(SmemAddr from) {
#ifdef __CUDACC__
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from));
    return word;
#else
    return read_pod<u32>(from);
#endif
}

VZ_DEVICE void store_four_words(SmemAddr to, u32 a, u32 b, u32 c, u32 d) {
#ifdef __CUDACC__
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d));
#else
    const u32 words[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++) write_pod(to + 4 * i, words[i]);
#endif
}

enum class Source { GLOBAL, ZEROS };

// Copies 16 bytes, or writes zeros; complete when its group of copies is waited for (before sm_80 at once).
VZ_DEVICE void copy_four_words(SmemAddr to, const u32* from, Source source) {
#if !defined(__CUDACC__)
    emulator::copy_later(to, source == Source::GLOBAL ? from : nullptr);
#elif VZ_ARCH >= 800
    const u32 bytes = source == Source::GLOBAL ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes));
#else
    const uint4 x = source == Source::GLOBAL ? *(const uint4*)from : make_uint4(0, 0, 0, 0);
    store_four_words(to, x.x, x.y, x.z, x.w);
#endif
}

// Commits the copies so far as a group.
VZ_DEVICE void end_copies() {
#if !defined(__CUDACC__)
    emulator::end_group();
#elif VZ_ARCH >= 800
    asm volatile("cp.async.commit_group;");
#endif
}

// Waits for the caller's own copies but those of the latest LEFT groups.
template <int LEFT>
VZ_DEVICE void wait_for_copies() {
#if !defined(__CUDACC__)
    emulator::wait_for_groups(LEFT);
#elif VZ_ARCH >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

VZ_DEVICE f32 fused_multiply_add(f32 a, f32 b, f32 c) {
#ifdef __CUDACC__
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

} // namespace net
