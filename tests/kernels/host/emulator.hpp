// What kernels may use of a device, for kernels that run on the host: threadIdx, blockIdx, blockDim, gridDim, __shared__,
// __syncthreads, __syncwarp, __shfl_sync, __shfl_xor_sync, __ballot_sync, atomicAdd, the warp's with all lanes; and what
// kernels/net/mma.cuh and kernels/net/warpgroup.cuh call: dynamic shared memory, values of a whole warp, copies, products of a
// warpgroup. Anything else does not compile, or is reported.
//
// emulator.cpp implements it and is compiled once for all programs. This header goes into every one of them, so it includes nothing
// of the C++ standard library, which takes longer to compile than most kernels.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// One block runs at a time.
#define __shared__ static thread_local

namespace emulator {

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
};

constexpr unsigned WARP = 32;

// What a thread waits for.
enum class Wait : uint8_t { NOTHING, WARP_BARRIER, SHUFFLE, BALLOT, BLOCK_BARRIER, THE_END };

// The launch as its kernel sees it.
struct View {
    unsigned thread = 0; // the one that runs, in its block
    Dim3 block, block_dim, grid_dim;
    char* shared = nullptr; // dynamic shared memory
};

// The one that runs in this operating-system thread: tests run side by side. Not `thread_local`, whose accesses from other files
// call a function that initialises it.
extern __thread View* running;

inline Dim3 thread_index() { return {running->thread, 0, 0}; }

// Gives the other threads their turn until all whom `what` concerns have come to it.
void wait_for(Wait what);
// The same, but for the barriers of the number that a test leaves out.
void wait_at(int barrier);
void wait_for_block_at(int barrier);

// Most bytes that a lane brings to an exchange.
constexpr size_t EXCHANGED = 32;
struct Exchanged {
    alignas(8) char bytes[EXCHANGED];
};

// What the lanes of a warp brought to an exchange, for the one that is `lane`.
struct Warp {
    const Exchanged* lanes;
    unsigned lane;
};

// Brings `mine` to an exchange with all lanes of the caller's warp.
Warp exchange_bytes(unsigned mask, const Exchanged& mine, Wait what);

// The same, read as values of type T.
template <class T>
struct Lanes {
    Warp warp;
    T operator[](unsigned lane) const {
        T value;
        memcpy(&value, warp.lanes[lane].bytes, sizeof value);
        return value;
    }
};

// Every lane brings a value; returns all lanes' values.
template <class T>
Lanes<T> exchange(unsigned mask, const T& value, Wait what) {
    static_assert(sizeof(T) <= EXCHANGED, "so many bytes do not go from lane to lane");
    Exchanged mine;
    memcpy(mine.bytes, &value, sizeof value);
    return {exchange_bytes(mask, mine, what)};
}

template <class T>
T shuffle(unsigned mask, T value, int source) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "at most 8 bytes go from lane to lane");
    return exchange(mask, value, Wait::SHUFFLE)[static_cast<unsigned>(source) % WARP];
}

template <class T>
T shuffle_xor(unsigned mask, T value, int distance) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "at most 8 bytes go from lane to lane");
    const Lanes<T> all = exchange(mask, value, Wait::SHUFFLE);
    return all[(all.warp.lane ^ static_cast<unsigned>(distance)) % WARP];
}

unsigned ballot(unsigned mask, bool vote);

// No two threads run at once.
inline unsigned atomic_add(unsigned* to, unsigned value) {
    const unsigned before = *to;
    *to += value;
    return before;
}

// Dynamic shared memory; kernels take no more of it than they were launched with.
inline char* dynamic_shared() { return running->shared; }

// What `cp.async` and its groups do, for 16 bytes or, where `from` is null, as many zeros: a copy happens when its group is waited
// for, the latest that a device may do it.
void copy_later(void* to, const void* from);
void end_group();
void wait_for_groups(unsigned left);

// What `mbarrier` and `cp.async.bulk` do: a copy happens when somebody waits for it, the latest that a device may do it.
void open_mbarrier(void* at);
void copy_for_products(void* to, const void* from, unsigned bytes, const void* at);
void wait_on_mbarrier(int number, const void* at, unsigned parity);

// The right operand of a product, as the bits of its descriptor say: blocks of 8 columns by 16 bytes, not swizzled.
struct Described {
    unsigned first, next_numbers, next_columns; // bytes

    explicit Described(uint64_t bits) : first(field(bits, 0)), next_numbers(field(bits, 16)), next_columns(field(bits, 32)) {}
    static unsigned field(uint64_t bits, int from) { return static_cast<unsigned>(bits >> from & 0x3FFF) << 4; }
    // Neither a swizzling mode nor a base offset, nor anything in between.
    static bool is_plain(uint64_t bits) { return (bits & ~0x00003FFF3FFF3FFFull) == 0; }
    // Where the 16 bytes `half` of column `column` lie.
    unsigned at(unsigned column, unsigned half) const {
        return first + half * next_numbers + column / 8 * next_columns + column % 8 * 16;
    }
};

// What one lane knows of a product.
struct Product {
    // Makes it for a warp, whose lanes' sums and left operands are given.
    void (*multiply)(float* const* sums, const unsigned* const* left, const unsigned char* shared, const Described& right);
    float* sums;
    const unsigned* left;
    uint64_t right;
    unsigned num_sums;

    // The instruction's columns: a lane has 4 sums of each 8.
    unsigned columns() const { return num_sums * 2; }
};

// Asks for a product, with all lanes of all warps of a warpgroup.
void multiply_later(const Product& product);
void end_products();
// Waits for products but those of the latest `left` groups.
void wait_for_products(int number, unsigned left);

// The fence before products, which the tests leave out by number as they do barriers.
void write_registers();
void show_registers(int fence);

// One kernel, its arguments' sizes, and how to call it with pointers to them.
struct Kernel {
    const char* name;
    void (*call)(void* const*);
    const unsigned* sizes;
    unsigned num_arguments;
};

template <auto FUNCTION>
struct Caller;

template <class... Arguments, void (*FUNCTION)(Arguments...)>
struct Caller<FUNCTION> {
    static constexpr unsigned SIZES[] = {sizeof(Arguments)...};

    // Initialisers in braces are evaluated from left to right, those of a call are not.
    struct Call {
        explicit Call(Arguments&... arguments) { FUNCTION(arguments...); }
    };
    static void call(void* const* arguments) { Call{*static_cast<Arguments*>(*arguments++)...}; }

    static constexpr Kernel named(const char* name) { return {name, call, SIZES, sizeof...(Arguments)}; }
};

// Runs the kernel of `table` that is called `name`; returns null or what went wrong.
const char* launch(
    const Kernel* table, size_t num, const char* name, unsigned grid, unsigned block, uint64_t seed, int missing_barrier,
    void* const* arguments, const unsigned* sizes, unsigned num_arguments, unsigned shared
);

} // namespace emulator

#define threadIdx (emulator::thread_index())
#define blockIdx (emulator::running->block)
#define blockDim (emulator::running->block_dim)
#define gridDim (emulator::running->grid_dim)
#define __syncthreads() emulator::wait_for(emulator::Wait::BLOCK_BARRIER)
#define VZ_SYNC(number) emulator::wait_at(number)
#define VZ_BLOCK_SYNC(number) emulator::wait_for_block_at(number)
#define __syncwarp() emulator::wait_for(emulator::Wait::WARP_BARRIER)
#define __shfl_sync(mask, value, source) emulator::shuffle(mask, value, source)
#define __shfl_xor_sync(mask, value, distance) emulator::shuffle_xor(mask, value, distance)
#define __ballot_sync(mask, vote) emulator::ballot(mask, vote)
#define atomicAdd(to, value) emulator::atomic_add(to, value)

// Defines the one function that the library exports, which runs a kernel of `table` by name.
#define EMULATOR_EXPORT(table)                                                                                         \
    extern "C" __attribute__((visibility("default"))) const char* emulator_launch(                                     \
        const char* name, unsigned grid, unsigned block, uint64_t seed, int missing_barrier, void* const* arguments,   \
        const unsigned* sizes, unsigned num_arguments, unsigned shared                                                 \
    ) {                                                                                                                \
        const size_t num = sizeof table / sizeof *table;                                                               \
        return emulator::launch(                                                                                       \
            table, num, name, grid, block, seed, missing_barrier, arguments, sizes, num_arguments, shared              \
        );                                                                                                             \
    }
