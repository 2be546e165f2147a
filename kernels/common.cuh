// The base of every kernel source: integer types, bit operations, the thread's index in the grid, histories.
//
// Compiles with NVRTC and, unchanged, as host C++17. Needs no standard library and no CUDA headers. Constants with the prefix VZ_
// that are not defined here are those of the game (src/batch/programs.rs).
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;
static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(f32) == 4 && sizeof(f64) == 8, "sizes of types");

#ifdef __CUDACC__
// A device function.
#define VZ_DEVICE __device__ __forceinline__
// A device function that is too large to be inlined at every call.
#define VZ_DEVICE_CALL static __device__ __noinline__
// A table of constants at namespace scope.
#define VZ_TABLE __device__ const
// A kernel: `VZ_KERNEL name(arguments) { .. }`.
#define VZ_KERNEL extern "C" __global__ void
// A struct that a kernel takes by value: functions refer to it where it was passed, without a copy in each thread.
#define VZ_BY_VALUE const __grid_constant__
#define VZ_UNROLL _Pragma("unroll")
// A type through which memory of any other is copied.
#define VZ_MAY_ALIAS
#else
#define VZ_DEVICE inline
#define VZ_DEVICE_CALL static __attribute__((unused))
#define VZ_TABLE [[maybe_unused]] static const
#define VZ_KERNEL extern "C" void
#define VZ_BY_VALUE const
#define VZ_UNROLL
#define VZ_MAY_ALIAS [[gnu::may_alias]]
#endif

// On the host, tests/kernels/host emulates threadIdx, barriers and shuffles.

// Threads of a warp.
constexpr int WARP = 32;
VZ_DEVICE int lane() { return (int)(threadIdx.x % WARP); }

// The thread's index in the (one-dimensional) grid.
VZ_DEVICE i64 thread_in_grid() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

// The results of `game_turn` other than a player's number.
constexpr int TURN_CHANCE = -1;
constexpr int TURN_OVER = -2;

// Whose point of view an observation takes.
enum class View { MOVER, OTHER };

// Twin of src/game/rules.rs `History`: the history keys of the positions before a state, oldest first.
struct History {
    const u64* played; // positions of the game as played
    int num_played;
    const u64* path; // positions of the search path after them
    int num_path;

    VZ_DEVICE int len() const { return num_played + num_path; }

    // Key number i, latest first: `History::latest_first`.
    VZ_DEVICE u64 latest(int i) const {
        return i < num_path ? path[num_path - 1 - i] : played[num_played - 1 - (i - num_path)];
    }
};

#ifdef __CUDACC__
VZ_DEVICE int popcount(u32 x) { return __popc(x); }
VZ_DEVICE int popcount(u64 x) { return __popcll(x); }
// Index of the lowest set bit; x != 0.
VZ_DEVICE int trailing_zeros(u32 x) { return __ffs((int)x) - 1; }
VZ_DEVICE int trailing_zeros(u64 x) { return __ffsll((i64)x) - 1; }
// Number of zeros above the highest set bit; x != 0.
VZ_DEVICE int leading_zeros(u32 x) { return __clz((int)x); }
VZ_DEVICE int leading_zeros(u64 x) { return __clzll((i64)x); }
VZ_DEVICE u64 reverse_bits(u64 x) { return __brevll(x); }
// The upper half of the product.
VZ_DEVICE u64 multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }
VZ_DEVICE u32 to_bits(f32 x) { return __float_as_uint(x); }
VZ_DEVICE f32 from_bits(u32 x) { return __uint_as_float(x); }
// The square root, rounded to nearest.
VZ_DEVICE f32 square_root(f32 x) { return __fsqrt_rn(x); }
VZ_DEVICE f64 square_root(f64 x) { return __dsqrt_rn(x); }
#else
VZ_DEVICE int popcount(u32 x) { return __builtin_popcount(x); }
VZ_DEVICE int popcount(u64 x) { return __builtin_popcountll(x); }
VZ_DEVICE int trailing_zeros(u32 x) { return __builtin_ctz(x); }
VZ_DEVICE int trailing_zeros(u64 x) { return __builtin_ctzll(x); }
VZ_DEVICE int leading_zeros(u32 x) { return __builtin_clz(x); }
VZ_DEVICE int leading_zeros(u64 x) { return __builtin_clzll(x); }
VZ_DEVICE u64 reverse_bits(u64 x) {
    x = __builtin_bswap64(x);
    x = (x >> 4 & 0x0F0F0F0F0F0F0F0Full) | (x & 0x0F0F0F0F0F0F0F0Full) << 4;
    x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
    return (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
}
VZ_DEVICE u64 multiply_high(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
VZ_DEVICE u32 to_bits(f32 x) {
    u32 bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
VZ_DEVICE f32 from_bits(u32 x) {
    f32 value;
    __builtin_memcpy(&value, &x, sizeof value);
    return value;
}
VZ_DEVICE f32 square_root(f32 x) { return __builtin_sqrtf(x); }
VZ_DEVICE f64 square_root(f64 x) { return __builtin_sqrt(x); }
#endif

// Reverses the bytes: flips a board of 8 rows vertically.
VZ_DEVICE u64 swap_bytes(u64 x) {
    x = (x >> 8 & 0x00FF00FF00FF00FFull) | (x & 0x00FF00FF00FF00FFull) << 8;
    x = (x >> 16 & 0x0000FFFF0000FFFFull) | (x & 0x0000FFFF0000FFFFull) << 16;
    return x >> 32 | x << 32;
}
VZ_DEVICE u64 rotate_left(u64 x, int by) { return x << by | x >> (64 - by); }

template <class T>
VZ_DEVICE T minimum(T a, T b) {
    return b < a ? b : a;
}
template <class T>
VZ_DEVICE T maximum(T a, T b) {
    return b > a ? b : a;
}
template <class T>
VZ_DEVICE void swap_values(T& a, T& b) {
    const T was = a;
    a = b;
    b = was;
}

// Reads and writes entry i of a pair by selection, since an indexed array is not kept in registers.
template <class T>
VZ_DEVICE T select(const T (&pair)[2], int i) {
    return i == 0 ? pair[0] : pair[1];
}
template <class T>
VZ_DEVICE void assign(T (&pair)[2], int i, T value) {
    pair[0] = i == 0 ? value : pair[0];
    pair[1] = i == 0 ? pair[1] : value;
}

// Reads and writes plain old data at any alignment.
template <class T>
VZ_DEVICE T read_pod(const void* from) {
    T out;
    for (unsigned i = 0; i < sizeof(T); i++) ((u8*)&out)[i] = ((const u8*)from)[i];
    return out;
}
template <class T>
VZ_DEVICE void write_pod(void* to, const T& value) {
    for (unsigned i = 0; i < sizeof(T); i++) ((u8*)to)[i] = ((const u8*)&value)[i];
}

// Twin of src/game/board.rs `write_bits`: writes `base` plus the index of each set bit, ascending; returns the count.
VZ_DEVICE int write_bits(u64 bits, u16 base, u16* out) {
    int n = 0;
    for (; bits != 0; bits &= bits - 1) out[n++] = (u16)(base + trailing_zeros(bits));
    return n;
}

// Returns of two players: `outcome` is 1 if player 0 has won, 2 if player 1 has won, otherwise a draw.
VZ_DEVICE void winner_returns(int outcome, f32* out) {
    const f32 value = outcome == 1 ? 1.0f : outcome == 2 ? -1.0f : 0.0f;
    out[0] = value;
    out[1] = -value;
}
