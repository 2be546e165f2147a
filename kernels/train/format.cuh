// The number format of activations, their gradients and the packed weights: VZ_TRAIN_FORMAT is 0 for f32, 1 for bfloat16, 2 for
// IEEE half precision. Sums, losses, master weights and the optimiser are always f32 or f64.
#pragma once
#include "math.cuh"
#include "number.cuh"
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

VZ_DEVICE f32 to_f32(Element x) { return number::from_bf16(x.bits); }
VZ_DEVICE u16 element_bits(f32 x) { return number::to_bf16(x); }

#else

VZ_DEVICE f32 to_f32(Element x) { return number::from_f16(x.bits); }
VZ_DEVICE u16 element_bits(f32 x) { return number::to_f16(x); }

#endif

template <class To>
VZ_DEVICE To from_f32(f32 x);
template <>
VZ_DEVICE f32 from_f32<f32>(f32 x) {
    return x;
}
template <>
VZ_DEVICE Element from_f32<Element>(f32 x) {
    return Element{element_bits(x)};
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
