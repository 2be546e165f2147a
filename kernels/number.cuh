// bfloat16 and IEEE half precision in 16 bits. Rounding is to the nearest, ties to even; what is too large becomes infinite, and NaN
// stays NaN: on the host as in src/net/number.rs, on a GPU that of its instruction.
#pragma once
#include "common.cuh"

namespace number {

VZ_DEVICE f32 from_bf16(u16 bits) { return from_bits((u32)bits << 16); }

VZ_DEVICE u16 to_bf16(f32 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    u16 out;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
#else
    const u32 all = to_bits(x);
    return (u16)((x != x ? all | 0x00400000 : all + 0x7FFF + (all >> 16 & 1)) >> 16);
#endif
}

// Two numbers in a word, `low` in its low half.
VZ_DEVICE u32 to_bf16_pair(f32 low, f32 high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return to_bf16(low) | (u32)to_bf16(high) << 16;
#endif
}

#ifdef __CUDACC__

VZ_DEVICE f32 from_f16(u16 bits) {
    f32 out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(bits));
    return out;
}

VZ_DEVICE u16 to_f16(f32 x) {
    u16 out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
}

#else

VZ_DEVICE f32 from_f16(u16 bits) {
    const u32 sign = (u32)(bits & 0x8000) << 16, rest = bits & 0x7FFF;
    if (rest >= 0x7C00) return from_bits(sign | 0x7F800000u | (rest & 0x3FF) << 13);
    const f32 size = rest < 0x400 ? (f32)rest * (1.0f / 16777216.0f) : from_bits((rest << 13) + 0x38000000u);
    return from_bits(sign | to_bits(size));
}

VZ_DEVICE u16 to_f16(f32 x) {
    const u32 sign = to_bits(x) >> 16 & 0x8000u, size = to_bits(x) & 0x7FFFFFFFu;
    if (size > 0x7F800000u) return (u16)(sign | 0x7E00u | (size >> 13 & 0x3FF));
    if (size >= 0x477FF000u) return (u16)(sign | 0x7C00u); // from 65,520 on: infinite
    // Below 2^-14 the spacing is 2^-24, which is that of f32 in [0.5, 1).
    if (size < 0x38800000u) return (u16)(sign | (to_bits(from_bits(size) + 0.5f) - 0x3F000000u));
    return (u16)(sign | (size + 0xFFFu + (size >> 13 & 1) - 0x38000000u) >> 13);
}

#endif

// Two numbers in a word, `low` in its low half.
VZ_DEVICE u32 to_f16_pair(f32 low, f32 high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return to_f16(low) | (u32)to_f16(high) << 16;
#endif
}

// A bfloat16 number in memory, made of an f32.
struct Bf16 {
    u16 bits;
    VZ_DEVICE explicit Bf16(f32 x) : bits(to_bf16(x)) {}
};

} // namespace number
