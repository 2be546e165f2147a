// Element types of activations and weights. Layers count memory in 32-bit words, of two 16-bit elements or one of 32 bits: one
// tensor-core instruction takes eight words of a row in either.
//
// Twin of src/net/gpu/element_type.rs.
#pragma once
#include "common.cuh"

namespace net {

// bfloat16.
struct Bf16 {
    static constexpr int PER_WORD = 2;

    // Rounded to the nearest, ties to even.
    VZ_DEVICE static u32 bits(f32 x) {
        const u32 all = to_bits(x);
        return (x != x ? all | 0x00400000 : all + 0x7FFF + (all >> 16 & 1)) >> 16;
    }
    VZ_DEVICE static u32 pack(f32 low, f32 high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        u32 word;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
        return word;
#else
        return bits(low) | bits(high) << 16;
#endif
    }
    VZ_DEVICE static f32 number(u32 word, int part) { return from_bits(part == 0 ? word << 16 : word & 0xFFFF0000u); }
};

// IEEE half precision.
struct F16 {
    static constexpr int PER_WORD = 2;

#ifdef __CUDACC__
    VZ_DEVICE static u32 bits(f32 x) {
        u16 half;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
        return half;
    }
    VZ_DEVICE static f32 number(u32 word, int part) {
        f32 x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((u16)(part == 0 ? word : word >> 16)));
        return x;
    }
#else
    static u32 bits(f32 x) {
        const u32 sign = to_bits(x) >> 16 & 0x8000, magnitude = to_bits(x) & 0x7FFFFFFF;
        if (magnitude > 0x7F800000) return sign | 0x7FFF;
        if (magnitude >= 0x477FF000) return sign | 0x7C00; // from 65520 on: infinite
        if (magnitude < 0x38800000) { // below 2^-14: a multiple of 2^-24, which adding 0.5 rounds to
            return sign | (to_bits(from_bits(magnitude) + 0.5f) - 0x3F000000);
        }
        return sign | ((magnitude + 0xFFF + (magnitude >> 13 & 1)) - 0x38000000) >> 13;
    }
    static f32 number(u32 word, int part) {
        const u32 half = part == 0 ? word & 0xFFFF : word >> 16, magnitude = half & 0x7FFF;
        const f32 scaled = from_bits(magnitude << 13) * 5.192296858534828e33f; // 2^112 mends the exponent
        return from_bits((magnitude >= 0x7C00 ? magnitude << 13 | 0x7F800000 : to_bits(scaled)) | (half & 0x8000) << 16);
    }
#endif
    VZ_DEVICE static u32 pack(f32 low, f32 high) { return bits(low) | bits(high) << 16; }
};

// Single precision, multiplied as such.
struct F32 {
    static constexpr int PER_WORD = 1;
    VZ_DEVICE static u32 bits(f32 x) { return to_bits(x); }
    VZ_DEVICE static f32 number(u32 word, int) { return from_bits(word); }
};

// Single precision with 10 bits after the point, to the nearest, as tensor cores take it.
struct Tf32 {
    static constexpr int PER_WORD = 1;
    VZ_DEVICE static u32 bits(f32 x) {
        const u32 all = to_bits(x);
        return (x - x != 0.0f ? all : all + 0x0FFF + (all >> 13 & 1)) & 0xFFFFE000u;
    }
    VZ_DEVICE static f32 number(u32 word, int) { return from_bits(word); }
};

// Four adjacent elements; the index of the first is divisible by four.
struct Four {
    f32 at[4];
};
VZ_DEVICE Four read_four(const f32* from) {
#ifdef __CUDACC__
    const float4 x = *(const float4*)from;
    return {{x.x, x.y, x.z, x.w}};
#else
    return read_pod<Four>(from);
#endif
}
VZ_DEVICE void write_four(f32* to, const Four& x) {
#ifdef __CUDACC__
    *(float4*)to = make_float4(x.at[0], x.at[1], x.at[2], x.at[3]);
#else
    write_pod(to, x);
#endif
}

// The same of `ElementType`, from element `offset` of the array `from` on.
template <class ElementType>
VZ_DEVICE Four read_four(const u32* from, u64 offset) {
    if constexpr (ElementType::PER_WORD == 1) {
        return read_four((const f32*)from + offset);
    } else {
        const u64 pair = *(const u64*)(from + offset / 2);
        const u32 low = (u32)pair, high = (u32)(pair >> 32);
        return {{ElementType::number(low, 0), ElementType::number(low, 1), ElementType::number(high, 0), ElementType::number(high, 1)}};
    }
}
template <class ElementType>
VZ_DEVICE void write_four(u32* to, u64 offset, const Four& x) {
    if constexpr (ElementType::PER_WORD == 1) {
        const Four rounded = {{
            from_bits(ElementType::bits(x.at[0])), from_bits(ElementType::bits(x.at[1])), from_bits(ElementType::bits(x.at[2])),
            from_bits(ElementType::bits(x.at[3])),
        }};
        write_four((f32*)to + offset, rounded);
    } else {
        const u32 low = ElementType::pack(x.at[0], x.at[1]), high = ElementType::pack(x.at[2], x.at[3]);
        *(u64*)(to + offset / 2) = low | (u64)high << 32;
    }
}

VZ_DEVICE f32 relu(f32 x) { return x > 0.0f || x != x ? x : 0.0f; } // NaN stays NaN

} // namespace net
