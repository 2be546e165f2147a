// Runs kernels on the host: one fibre a thread, blocks one after the other. Lanes of a warp run in an order that a seed
// draws anew after every barrier, so that a lane which reads what another has yet to write is found out.
//
// What kernels may use: threadIdx, blockIdx, blockDim, gridDim, __shared__, __syncthreads, __syncwarp, __shfl_sync,
// __shfl_xor_sync, __ballot_sync, atomicAdd; the warp's with all lanes. ResidentNetwork it, what kernels/net/mma.cuh asks for: dynamic shared
// memory, values of a whole warp, copies that are done when they are waited for and not before; and a warpgroup's products, which are in
// products.hpp. Anything else does not compile, or is reported.
#pragma once
#include "fibre.hpp"
#include "products.hpp"
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

// One block runs at a time.
#define __shared__ static thread_local

namespace emulator {

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
};

constexpr unsigned WARP = 32;
constexpr size_t STACK_BYTES = 128 << 10;
constexpr uint64_t CANARY = 0xA5C35A3CA5C35A3Cull; // at a stack's end, to see that it was deep enough

// What a thread waits for.
enum class Wait : uint8_t { NOTHING, WARP_BARRIER, SHUFFLE, BALLOT, BLOCK_BARRIER, THE_END };

constexpr size_t SHARED_GUARD = 64;
constexpr char SHARED_JUNK = '\xFF'; // what is in shared memory before it is written: no numbers

// Most bytes that a lane brings to an exchange.
constexpr size_t EXCHANGED = 32;
struct Exchanged {
    alignas(8) char bytes[EXCHANGED];
};

// A copy of 16 bytes into shared memory that was asked for; zeros where `from` is null.
struct Copy {
    void* to;
    const void* from;
};

struct Thread {
    Fibre fibre;
    Dim3 index;
    Wait wait;
    unsigned exchanges; // by their parity the buffer of the next
    std::deque<std::vector<Copy>> copies; // groups, the last one open
    Products products;
};

struct Launch {
    std::vector<Thread> threads;
    char* stacks = nullptr;
    std::vector<Exchanged> buffers[2]; // [threads]
    std::vector<char> shared; // dynamic shared memory and what guards it
    Marks marks; // on dynamic shared memory
    std::vector<Mbarrier> mbarriers; // in it
    unsigned barriers; // of the block, so far
    Fibre scheduler;
    unsigned current = 0;
    Dim3 block, block_dim, grid_dim;
    void (*body)(void* const*) = nullptr;
    void* const* arguments = nullptr;
    uint64_t random = 1;
    const char* error = nullptr;

    unsigned draw() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return static_cast<unsigned>(random >> 32);
    }
};

// Tests run side by side, each with fibres of its own thread.
inline thread_local Launch* running = nullptr;

// The numbered barrier that is left out; 0 for none.
inline thread_local int missing_barrier = 0;

inline Thread& self() { return running->threads[running->current]; }

inline void wait_for(Wait what) {
    Thread& thread = self();
    thread.wait = what;
    switch_fibres(thread.fibre, running->scheduler);
}

inline void wait_at(int barrier) {
    if (barrier != missing_barrier) wait_for(Wait::WARP_BARRIER);
}

inline void wait_for_block_at(int barrier) {
    if (barrier != missing_barrier) wait_for(Wait::BLOCK_BARRIER);
}

inline void thread_main() {
    running->body(running->arguments);
    wait_for(Wait::THE_END);
}

inline void need_all_lanes(unsigned mask) {
    if (mask != 0xFFFFFFFFu) running->error = "an operation of a part of a warp, which is not emulated";
}

// What the lanes of the caller's warp brought to an exchange.
template <class T>
struct Lanes {
    const Exchanged* all;
    T operator[](unsigned lane) const {
        T value;
        memcpy(&value, all[lane].bytes, sizeof value);
        return value;
    }
};

// Every lane brings a value; returns all lanes' values. A buffer is written again only after every lane has come to the
// next exchange, and so has read it.
template <class T>
Lanes<T> exchange(unsigned mask, const T& value, Wait what) {
    static_assert(sizeof(T) <= EXCHANGED, "so many bytes do not go from lane to lane");
    need_all_lanes(mask);
    const unsigned current = running->current;
    std::vector<Exchanged>& buffer = running->buffers[self().exchanges++ % 2];
    memcpy(buffer[current].bytes, &value, sizeof value);
    wait_for(what);
    return {&buffer[current / WARP * WARP]};
}

template <class T>
T shuffle(unsigned mask, T value, int source) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "at most 8 bytes go from lane to lane");
    return exchange(mask, value, Wait::SHUFFLE)[static_cast<unsigned>(source) & (WARP - 1)];
}

template <class T>
T shuffle_xor(unsigned mask, T value, int distance) {
    return shuffle(mask, value, static_cast<int>(running->current % WARP) ^ distance);
}

inline unsigned ballot(unsigned mask, bool vote) {
    const Lanes<bool> all = exchange(mask, vote, Wait::BALLOT);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < WARP; lane++) votes |= static_cast<unsigned>(all[lane]) << lane;
    return votes;
}

// No two threads run at once.
inline unsigned atomic_add(unsigned* to, unsigned value) {
    const unsigned before = *to;
    *to += value;
    return before;
}

// Dynamic shared memory; kernels take no more of it than they were launched with.
inline char* dynamic_shared() { return running->shared.data(); }

// The number of the 16 bytes of dynamic shared memory that `at` points to; past all where it is elsewhere.
inline size_t unit_of(const void* at) { return static_cast<size_t>(static_cast<const char*>(at) - dynamic_shared()) / 16; }

// What `cp.async` and its groups do: a copy happens when its group is waited for, the latest that a device may do it.
inline void copy_later(void* to, const void* from) {
    if (running->marks.is_read(unit_of(to))) running->error = "a copy to what a product still reads";
    self().copies.back().push_back({to, from});
}
inline void end_group() { self().copies.emplace_back(); }
inline void wait_for_groups(unsigned left) {
    std::deque<std::vector<Copy>>& groups = self().copies;
    while (groups.size() > left + 1) {
        for (const Copy& copy : groups.front()) {
            if (copy.from == nullptr) {
                memset(copy.to, 0, 16);
            } else {
                memcpy(copy.to, copy.from, 16);
            }
            running->marks.copy(unit_of(copy.to), Proxy::GENERIC);
        }
        groups.pop_front();
    }
}

// What `mbarrier` and `cp.async.bulk` do: a copy happens when somebody waits for it, the latest that a device may do it.
inline void open_mbarrier(void* at) {
    running->mbarriers.push_back({at, running->current, running->barriers, 0, nullptr, nullptr, 0});
}
inline Mbarrier* mbarrier_at(const void* at) {
    for (Mbarrier& mbarrier : running->mbarriers) {
        const bool known = mbarrier.thread == running->current || mbarrier.barriers < running->barriers;
        if (mbarrier.at == at && known) return &mbarrier;
    }
    running->error = "an mbarrier that was not initialised before a barrier";
    return nullptr;
}
inline void copy_for_products(void* to, const void* from, unsigned bytes, const void* at) {
    Mbarrier* mbarrier = mbarrier_at(at);
    if (mbarrier == nullptr) return;
    if (mbarrier->to != nullptr) running->error = "a copy before the last one has arrived";
    for (unsigned i = 0; i < bytes / 16; i++) {
        if (running->marks.is_read(unit_of(to) + i)) running->error = "a copy to what a product still reads";
    }
    mbarrier->to = to;
    mbarrier->from = from;
    mbarrier->bytes = bytes;
}
inline void wait_on_mbarrier(int number, const void* at, unsigned parity) {
    if (number == missing_barrier) return;
    Mbarrier* mbarrier = mbarrier_at(at);
    if (mbarrier == nullptr || mbarrier->rounds % 2 != parity) return; // it has arrived
    if (mbarrier->to == nullptr) {
        running->error = "a wait for a copy that was not issued";
        return;
    }
    memcpy(mbarrier->to, mbarrier->from, mbarrier->bytes);
    for (unsigned i = 0; i < mbarrier->bytes / 16; i++) running->marks.copy(unit_of(mbarrier->to) + i, Proxy::ASYNCHRONOUS);
    mbarrier->to = nullptr;
    mbarrier->rounds++;
}

// The fence before products, which the tests leave out by number as they do barriers.
inline void write_registers() { self().products.registers_shown = false; }
inline void show_registers(int fence) {
    if (fence != missing_barrier) self().products.registers_shown = true;
}

// Marks what `product` reads: as read by one more, or no longer by one.
inline void mark(const Product& product, unsigned change) {
    const Described right(product.right);
    Marks& marks = running->marks;
    for (unsigned i = 0; i < 2 * product.columns(); i++) {
        const unsigned unit = right.at(i / 2, i % 2) / 16;
        if (!Described::is_plain(product.right) || unit >= (running->shared.size() - SHARED_GUARD) / 16) {
            running->error = "a product's operand is not in shared memory, or swizzled, which is not emulated";
            return;
        }
        marks.readers[unit] += change;
        if (marks.copied[unit] == Proxy::GENERIC) running->error = "a product reads what the generic proxy has copied";
    }
}

// Asks for a product, with all lanes of all warps of a warpgroup.
inline void multiply_later(const Product& product) {
    Products& products = self().products;
    if (!products.registers_shown) running->error = "a product reads registers that have not been shown to it";
    if (running->current % WARP == 0) mark(product, 1);
    products.begin(product);
}
inline void end_products() { self().products.groups.emplace_back(); }

// Makes the `index`th product of the oldest group of the warp that begins at `lanes`.
inline void multiply_now(Thread* lanes, size_t index) {
    float* sums[WARP];
    const unsigned* left[WARP];
    const Product first = lanes[0].products.groups.front()[index];
    for (unsigned lane = 0; lane < WARP; lane++) {
        Products& products = lanes[lane].products;
        const Product& product = products.groups.front()[index];
        if (product.right != first.right) running->error = "lanes describe different operands";
        sums[lane] = products.sums_at(product.sums).values.data();
        left[lane] = product.left;
    }
    mark(first, static_cast<unsigned>(-1));
    if (running->error != nullptr) return;
    first.multiply(sums, left, reinterpret_cast<const unsigned char*>(dynamic_shared()), Described(first.right));
    for (unsigned lane = 0; lane < WARP; lane++) {
        Products& products = lanes[lane].products;
        products.end(products.groups.front()[index]);
    }
}

// Waits for products but those of the latest `left` groups; one lane makes them for its warp.
inline void wait_for_products(int number, unsigned left) {
    if (number == missing_barrier) return;
    wait_for(Wait::WARP_BARRIER);
    if (running->current % WARP == 0) {
        Thread* lanes = &self();
        while (running->error == nullptr && lanes[0].products.groups.size() > left + 1) {
            const size_t num = lanes[0].products.groups.front().size();
            for (size_t i = 0; i < num && running->error == nullptr; i++) multiply_now(lanes, i);
            for (unsigned lane = 0; lane < WARP; lane++) {
                std::vector<std::vector<Product>>& groups = lanes[lane].products.groups;
                groups.erase(groups.begin());
            }
        }
    }
    wait_for(Wait::WARP_BARRIER);
}

// At a block's end: all products were waited for, and the warps of a warpgroup asked for the same ones.
inline void check_products(Launch& launch) {
    for (size_t i = 0; i < launch.threads.size(); i++) {
        const Products& products = launch.threads[i].products;
        if (!products.done()) launch.error = "a product that nobody waits for";
        const size_t first = i / (4 * WARP) * (4 * WARP);
        const bool whole = first + 4 * WARP <= launch.threads.size();
        if (products.asked_for != 0 && (!whole || products.asked_for != launch.threads[first].products.asked_for)) {
            launch.error = "warps of a warpgroup ask for different products";
        }
    }
}

inline void resume(Launch& launch, unsigned thread) {
    launch.current = thread;
    switch_fibres(launch.scheduler, launch.threads[thread].fibre);
}

// Runs one warp until it waits for the block or has ended.
inline void run_warp(Launch& launch, unsigned first) {
    Thread* lanes = &launch.threads[first];
    while (launch.error == nullptr) {
        const unsigned start = launch.draw(), step = launch.draw() | 1;
        for (unsigned i = 0; i < WARP; i++) {
            const unsigned lane = (start + i * step) % WARP;
            if (lanes[lane].wait == Wait::NOTHING) resume(launch, first + lane);
        }
        const Wait what = lanes[0].wait;
        for (unsigned lane = 1; lane < WARP; lane++) {
            if (lanes[lane].wait != what) launch.error = "lanes of a warp wait for different things";
        }
        if (what == Wait::BLOCK_BARRIER || what == Wait::THE_END) return;
        for (unsigned lane = 0; lane < WARP; lane++) lanes[lane].wait = Wait::NOTHING;
    }
}

inline void run_block(Launch& launch) {
    const unsigned num = static_cast<unsigned>(launch.threads.size()), warps = num / WARP;
    for (unsigned i = 0; i < num; i++) {
        Thread& thread = launch.threads[i];
        char* stack = launch.stacks + i * STACK_BYTES;
        memcpy(stack, &CANARY, sizeof CANARY);
        thread.fibre.prepare(stack, STACK_BYTES, thread_main);
        thread.index = Dim3{i, 0, 0};
        thread.wait = Wait::NOTHING;
        thread.exchanges = 0;
        thread.copies.assign(1, {});
        thread.products.clear();
    }
    launch.marks.clear(launch.shared.size());
    launch.mbarriers.clear();
    launch.barriers = 0;
    memset(launch.shared.data(), SHARED_JUNK, launch.shared.size());
    while (launch.error == nullptr) {
        const unsigned start = launch.draw();
        for (unsigned i = 0; i < warps; i++) {
            const unsigned first = (start + i) % warps * WARP;
            if (launch.threads[first].wait == Wait::NOTHING) run_warp(launch, first);
        }
        bool at_barrier = false;
        for (Thread& thread : launch.threads) {
            if (thread.wait == Wait::BLOCK_BARRIER) {
                at_barrier = true;
                thread.wait = Wait::NOTHING;
            }
        }
        if (!at_barrier) break;
        launch.barriers++;
    }
    if (launch.error == nullptr) check_products(launch);
    for (size_t i = launch.shared.size() - SHARED_GUARD; i < launch.shared.size(); i++) {
        if (launch.shared[i] != SHARED_JUNK) launch.error = "wrote past the end of shared memory";
    }
    for (unsigned i = 0; i < num; i++) {
        if (memcmp(launch.stacks + i * STACK_BYTES, &CANARY, sizeof CANARY) != 0) launch.error = "a stack is too small";
    }
}

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

    static void call(void* const* arguments) { unpack(arguments, std::index_sequence_for<Arguments...>{}); }

    template <size_t... I>
    static void unpack(void* const* arguments, std::index_sequence<I...>) {
        FUNCTION(*static_cast<Arguments*>(arguments[I])...);
    }

    static constexpr Kernel named(const char* name) { return {name, call, SIZES, sizeof...(Arguments)}; }
};

// Room for stacks, kept from launch to launch: fresh memory costs more than most kernels do.
inline char* stacks_for(size_t bytes) {
    static thread_local std::unique_ptr<char[]> stacks;
    static thread_local size_t allocated = 0;
    if (bytes > allocated) {
        stacks.reset(new char[bytes]);
        allocated = bytes;
    }
    return stacks.get();
}

inline const char* run(
    const Kernel& kernel, unsigned grid, unsigned block, uint64_t seed, void* const* arguments, const unsigned* sizes,
    unsigned num_arguments, unsigned shared
) {
    if (block == 0 || block % WARP != 0 || block > 1024) return "a block must have 1 to 32 whole warps";
    if (num_arguments != kernel.num_arguments) return "the number of arguments is not the kernel's";
    for (unsigned i = 0; i < num_arguments; i++) {
        if (sizes[i] != kernel.sizes[i]) return "an argument's size is not the kernel's";
    }
    Launch launch;
    launch.threads.resize(block);
    launch.stacks = stacks_for(block * STACK_BYTES);
    launch.buffers[0].resize(block);
    launch.buffers[1].resize(block);
    launch.shared.resize(shared + SHARED_GUARD);
    launch.block_dim = Dim3{block, 1, 1};
    launch.grid_dim = Dim3{grid, 1, 1};
    launch.body = kernel.call;
    launch.arguments = arguments;
    launch.random = seed * 2 + 1;
    running = &launch;
    for (unsigned i = 0; i < grid && launch.error == nullptr; i++) {
        launch.block = Dim3{i, 0, 0};
        run_block(launch);
    }
    running = nullptr;
    return launch.error;
}

} // namespace emulator

#define threadIdx (emulator::self().index)
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

// Defines the one function that the library exports: runs a kernel of `table` by name; returns null or what went wrong.
#define EMULATOR_EXPORT(table)                                                                                         \
    extern "C" __attribute__((visibility("default"))) const char* emulator_launch(                                     \
        const char* name, unsigned grid, unsigned block, uint64_t seed, int missing_barrier, void* const* arguments,   \
        const unsigned* sizes, unsigned num_arguments, unsigned shared                                                 \
    ) {                                                                                                                \
        emulator::missing_barrier = missing_barrier;                                                                   \
        for (const emulator::Kernel& kernel : table) {                                                                 \
            if (strcmp(kernel.name, name) == 0) {                                                                      \
                return emulator::run(kernel, grid, block, seed, arguments, sizes, num_arguments, shared);              \
            }                                                                                                          \
        }                                                                                                              \
        return "there is no such kernel";                                                                              \
    }
