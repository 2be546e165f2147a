// The number format of activations, their gradients and the packed weights: VZ_TRAIN_FORMAT is 0 for f32, 1 for bfloat16, 2 for
// IEEE half precision. Sums, losses, master weights and the optimiser are always f32 or f64.
#pragma once
#include "math.cuh"
#include "train/layout.cuh"

namespace train {

#if VZ_TRAIN_FORMAT == 0

typedef f32 Element;

VZ_DEVICE f32 to_f32(Element x) { return x; }

template <class To>
VZ_DEVICE To from_f32(f32 x) {
    return x;
}

#else

struct Element {
    u16 bits;
};

#if VZ_TRAIN_FORMAT == 1

VZ_DEVICE f32 to_f32(Element x) { return from_bits((u32)x.bits << 16); }

// Rounds to nearest, ties to even; NaN stays NaN.
VZ_DEVICE u16 narrow_bits(f32 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    u16 out;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
#else
    const u32 all = to_bits(x);
    return x != x ? (u16)0x7FC0 : (u16)((all + 0x7FFF + (all >> 16 & 1)) >> 16);
#endif
}

#elif defined(__CUDACC__)

VZ_DEVICE f32 to_f32(Element x) {
    f32 out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
    return out;
}

VZ_DEVICE u16 narrow_bits(f32 x) {
    u16 out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
}

#else

VZ_DEVICE f32 to_f32(Element x) {
    const u32 sign = (u32)(x.bits & 0x8000) << 16, rest = x.bits & 0x7FFF;
    if (rest >= 0x7C00) return from_bits(sign | 0x7F800000u | (rest & 0x3FF) << 13);
    const f32 size = rest < 0x400 ? (f32)rest * (1.0f / 16777216.0f) : from_bits((rest << 13) + 0x38000000u);
    return from_bits(sign | to_bits(size));
}

// Rounds to nearest, ties to even; overflow gives infinity.
VZ_DEVICE u16 narrow_bits(f32 x) {
    const u32 bits = to_bits(x), sign = bits >> 16 & 0x8000u;
    const u32 size = bits & 0x7FFFFFFFu;
    if (size > 0x7F800000u) return (u16)(sign | 0x7E00u);
    if (size >= 0x47800000u) return (u16)(sign | 0x7C00u);
    // Below 2^-14 the spacing is 2^-24, which is that of f32 in [0.5, 1).
    if (size < 0x38800000u) return (u16)(sign | (to_bits(from_bits(size) + 0.5f) - 0x3F000000u));
    return (u16)(sign | (size + 0xFFFu + (size >> 13 & 1) - 0x38000000u) >> 13);
}

#endif

template <class To>
VZ_DEVICE To from_f32(f32 x);
template <>
VZ_DEVICE f32 from_f32<f32>(f32 x) {
    return x;
}
template <>
VZ_DEVICE Element from_f32<Element>(f32 x) {
    return Element{narrow_bits(x)};
}

#endif

// VEC numbers of a row: 16 or 32 bytes, aligned to 16.
struct alignas(16) Vector {
    Element x[VEC];
};

VZ_DEVICE Vector zeros() {
    Vector out;
    for (int i = 0; i < VEC; i++) out.x[i] = from_f32<Element>(0.0f);
    return out;
}

VZ_DEVICE Vector load(const Element* from) { return *(const Vector*)from; }
VZ_DEVICE void store(Element* to, const Vector& from) { *(Vector*)to = from; }

// a b + c; fused on a device.
VZ_DEVICE f32 multiply_add(f32 a, f32 b, f32 c) {
#ifdef __CUDACC__
    return __fmaf_rn(a, b, c);
#else
    return a * b + c;
#endif
}

// The sum over the lanes of a warp, equal to the bit in every lane.
template <class T>
VZ_DEVICE T warp_sum(T value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    return value;
}

VZ_DEVICE f32 warp_largest(f32 value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value = maximum(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    }
    return value;
}

// Warps of a block of BLOCK threads.
constexpr int BLOCK_WARPS = BLOCK / WARP;

VZ_DEVICE u32 threads_in_grid() { return gridDim.x * blockDim.x; }

VZ_DEVICE bool is_finite(f32 x) { return (to_bits(x) & 0x7F800000u) != 0x7F800000u; }

} // namespace train
