// Element types of activations and weights. Layers count memory in 32-bit words, of two 16-bit elements or one of 32 bits: one
// tensor-core instruction takes eight words of a row in either.
//
// Twin of src/net/gpu/element_type.rs.
#pragma once
#include "number.cuh"

namespace net {

// bfloat16.
struct Bf16 {
    static constexpr int PER_WORD = 2;
    VZ_DEVICE static u32 bits(f32 x) { return ::number::to_bf16(x); }
    VZ_DEVICE static u32 pack(f32 low, f32 high) { return ::number::to_bf16_pair(low, high); }
    VZ_DEVICE static f32 number(u32 word, int part) { return from_bits(part == 0 ? word << 16 : word & 0xFFFF0000u); }
};

// IEEE half precision.
struct F16 {
    static constexpr int PER_WORD = 2;
    VZ_DEVICE static u32 bits(f32 x) { return ::number::to_f16(x); }
    // Not two by two halves: of single conversions after a ReLU, NVRTC 13.0 made a wrong layer for sm_90 (seen on an H100).
    VZ_DEVICE static u32 pack(f32 low, f32 high) { return ::number::to_f16_pair(low, high); }
    VZ_DEVICE static f32 number(u32 word, int part) { return ::number::from_f16((u16)(part == 0 ? word : word >> 16)); }
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

// Elements packed into a word.
template <class ElementType>
VZ_DEVICE u32 pack_word(const f32* numbers) {
    if constexpr (ElementType::PER_WORD == 1) {
        return ElementType::bits(numbers[0]);
    } else {
        return ElementType::pack(numbers[0], numbers[1]);
    }
}

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
