// Runs kernels on the host: one fibre a thread, blocks one after the other. Lanes of a warp run in an order that a seed
// draws anew after every barrier, so that a lane which reads what another has yet to write is found out.
#include "emulator.hpp"
#include "fibre.hpp"
#include "products.hpp"
#include <algorithm>
#include <memory>
#include <vector>

namespace emulator {

constexpr size_t STACK_BYTES = 128 << 10;
constexpr uint64_t CANARY = 0xA5C35A3CA5C35A3Cull; // at a stack's end, to see that it was deep enough

constexpr size_t SHARED_GUARD = 64;
constexpr char SHARED_JUNK = '\xFF'; // what is in shared memory before it is written: no numbers

// A copy of 16 bytes into shared memory that was asked for; zeros where `from` is null.
struct Copy {
    void* to;
    const void* from;
};

struct Thread {
    Fibre fibre;
    unsigned exchanges; // by their parity the buffer of the next
    std::vector<Copy> copies; // that have not happened, oldest first
    std::vector<size_t> groups; // where each closed group of them ends
    Products products;
};

// A launch. Its arrays are kept for the next one: fresh memory costs more than most kernels do.
struct Launch : View {
    std::vector<Thread> threads;
    std::vector<Wait> waits; // [threads]
    // The lanes of a warp that run until its next barrier, in their order, and how many have begun.
    unsigned order[WARP], num_lanes, begun;
    std::unique_ptr<char[]> stacks;
    size_t num_stacks = 0;
    std::vector<Exchanged> buffers[2]; // [threads]
    std::vector<char> shared_bytes; // dynamic shared memory and what guards it
    Marks marks; // on dynamic shared memory
    std::vector<Mbarrier> mbarriers; // in it
    unsigned barriers; // of the block, so far
    Fibre scheduler;
    void (*body)(void* const*);
    void* const* arguments;
    uint64_t random;
    const char* error;

    unsigned draw() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return static_cast<unsigned>(random >> 32);
    }
};

__thread View* running = nullptr;

// The numbered barrier that is left out; 0 for none.
static __thread int missing_barrier = 0;

static Launch& current() { return *static_cast<Launch*>(running); }
static Thread& self() { return current().threads[running->thread]; }

// Goes on with the warp's next lane, or after its last with the launch.
static void wait_in(Launch& launch, Wait what) {
    launch.waits[launch.thread] = what;
    Fibre& mine = launch.threads[launch.thread].fibre;
    if (launch.begun < launch.num_lanes) {
        launch.thread = launch.order[launch.begun++];
        switch_fibres(mine, launch.threads[launch.thread].fibre);
    } else {
        switch_fibres(mine, launch.scheduler);
    }
}

void wait_for(Wait what) { wait_in(current(), what); }

void wait_at(int barrier) {
    if (barrier != missing_barrier) wait_for(Wait::WARP_BARRIER);
}

void wait_for_block_at(int barrier) {
    if (barrier != missing_barrier) wait_for(Wait::BLOCK_BARRIER);
}

static void thread_main() {
    current().body(current().arguments);
    wait_for(Wait::THE_END);
}

// A buffer is written again only after every lane has come to the next exchange, and so has read it.
Warp exchange_bytes(unsigned mask, const Exchanged& mine, Wait what) {
    Launch& launch = current();
    if (mask != 0xFFFFFFFFu) launch.error = "an operation of a part of a warp, which is not emulated";
    const unsigned lane = launch.thread % WARP;
    Exchanged* lanes = &launch.buffers[launch.threads[launch.thread].exchanges++ % 2][launch.thread - lane];
    lanes[lane] = mine;
    wait_in(launch, what);
    return {lanes, lane};
}

unsigned ballot(unsigned mask, bool vote) {
    const Lanes<bool> all = exchange(mask, vote, Wait::BALLOT);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < WARP; lane++) votes |= static_cast<unsigned>(all[lane]) << lane;
    return votes;
}

// The number of the 16 bytes of dynamic shared memory that `at` points to; past all where it is elsewhere.
static size_t unit_of(const void* at) { return static_cast<size_t>(static_cast<const char*>(at) - dynamic_shared()) / 16; }

void copy_later(void* to, const void* from) {
    if (current().marks.is_read(unit_of(to))) current().error = "a copy to what a product still reads";
    self().copies.push_back({to, from});
}
void end_group() { self().groups.push_back(self().copies.size()); }
void wait_for_groups(unsigned left) {
    std::vector<Copy>& copies = self().copies;
    std::vector<size_t>& groups = self().groups;
    if (groups.size() <= left) return;
    const size_t done = groups.size() - left, end = groups[done - 1];
    for (size_t i = 0; i < end; i++) {
        if (copies[i].from == nullptr) {
            memset(copies[i].to, 0, 16);
        } else {
            memcpy(copies[i].to, copies[i].from, 16);
        }
        current().marks.copy(unit_of(copies[i].to), Proxy::GENERIC);
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<ptrdiff_t>(end));
    groups.erase(groups.begin(), groups.begin() + static_cast<ptrdiff_t>(done));
    for (size_t& group : groups) group -= end;
}

void open_mbarrier(void* at) {
    current().mbarriers.push_back({at, running->thread, current().barriers, 0, nullptr, nullptr, 0});
}
static Mbarrier* mbarrier_at(const void* at) {
    for (Mbarrier& mbarrier : current().mbarriers) {
        const bool known = mbarrier.thread == running->thread || mbarrier.barriers < current().barriers;
        if (mbarrier.at == at && known) return &mbarrier;
    }
    current().error = "an mbarrier that was not initialised before a barrier";
    return nullptr;
}
void copy_for_products(void* to, const void* from, unsigned bytes, const void* at) {
    Mbarrier* mbarrier = mbarrier_at(at);
    if (mbarrier == nullptr) return;
    if (mbarrier->to != nullptr) current().error = "a copy before the last one has arrived";
    for (unsigned i = 0; i < bytes / 16; i++) {
        if (current().marks.is_read(unit_of(to) + i)) current().error = "a copy to what a product still reads";
    }
    mbarrier->to = to;
    mbarrier->from = from;
    mbarrier->bytes = bytes;
}
void wait_on_mbarrier(int number, const void* at, unsigned parity) {
    if (number == missing_barrier) return;
    Mbarrier* mbarrier = mbarrier_at(at);
    if (mbarrier == nullptr || mbarrier->rounds % 2 != parity) return; // it has arrived
    if (mbarrier->to == nullptr) {
        current().error = "a wait for a copy that was not issued";
        return;
    }
    memcpy(mbarrier->to, mbarrier->from, mbarrier->bytes);
    for (unsigned i = 0; i < mbarrier->bytes / 16; i++) current().marks.copy(unit_of(mbarrier->to) + i, Proxy::ASYNCHRONOUS);
    mbarrier->to = nullptr;
    mbarrier->rounds++;
}

void write_registers() { self().products.registers_shown = false; }
void show_registers(int fence) {
    if (fence != missing_barrier) self().products.registers_shown = true;
}

// Marks what `product` reads: as read by one more, or no longer by one.
static void mark(const Product& product, unsigned change) {
    const Described right(product.right);
    Marks& marks = current().marks;
    for (unsigned i = 0; i < 2 * product.columns(); i++) {
        const unsigned unit = right.at(i / 2, i % 2) / 16;
        if (!Described::is_plain(product.right) || unit >= (current().shared_bytes.size() - SHARED_GUARD) / 16) {
            current().error = "a product's operand is not in shared memory, or swizzled, which is not emulated";
            return;
        }
        marks.readers[unit] += change;
        if (marks.copied[unit] == Proxy::GENERIC) current().error = "a product reads what the generic proxy has copied";
    }
}

void multiply_later(const Product& product) {
    Products& products = self().products;
    if (!products.registers_shown) current().error = "a product reads registers that have not been shown to it";
    if (running->thread % WARP == 0) mark(product, 1);
    products.begin(product);
}
void end_products() { self().products.groups.emplace_back(); }

// Makes the `index`th product of the oldest group of the warp that begins at `lanes`.
static void multiply_now(Thread* lanes, size_t index) {
    float* sums[WARP];
    const unsigned* left[WARP];
    const Product first = lanes[0].products.groups.front()[index];
    for (unsigned lane = 0; lane < WARP; lane++) {
        Products& products = lanes[lane].products;
        const Product& product = products.groups.front()[index];
        if (product.right != first.right) current().error = "lanes describe different operands";
        sums[lane] = products.sums_at(product.sums).values.data();
        left[lane] = product.left;
    }
    mark(first, static_cast<unsigned>(-1));
    if (current().error != nullptr) return;
    first.multiply(sums, left, reinterpret_cast<const unsigned char*>(dynamic_shared()), Described(first.right));
    for (unsigned lane = 0; lane < WARP; lane++) {
        Products& products = lanes[lane].products;
        products.end(products.groups.front()[index]);
    }
}

// One lane makes the products for its warp.
void wait_for_products(int number, unsigned left) {
    if (number == missing_barrier) return;
    wait_for(Wait::WARP_BARRIER);
    if (running->thread % WARP == 0) {
        Thread* lanes = &self();
        while (current().error == nullptr && lanes[0].products.groups.size() > left + 1) {
            const size_t num = lanes[0].products.groups.front().size();
            for (size_t i = 0; i < num && current().error == nullptr; i++) multiply_now(lanes, i);
            for (unsigned lane = 0; lane < WARP; lane++) {
                std::vector<std::vector<Product>>& groups = lanes[lane].products.groups;
                groups.erase(groups.begin());
            }
        }
    }
    wait_for(Wait::WARP_BARRIER);
}

// At a block's end: all products were waited for, and the warps of a warpgroup asked for the same ones.
static void check_products(Launch& launch) {
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

// Runs one warp until it waits for the block or has ended.
static void run_warp(Launch& launch, unsigned first) {
    const Wait* waits = &launch.waits[first];
    while (launch.error == nullptr) {
        const unsigned start = launch.draw(), step = launch.draw() | 1;
        launch.num_lanes = 0;
        for (unsigned i = 0; i < WARP; i++) {
            const unsigned lane = (start + i * step) % WARP;
            if (waits[lane] == Wait::NOTHING) launch.order[launch.num_lanes++] = first + lane;
        }
        if (launch.num_lanes > 0) {
            launch.begun = 1;
            launch.thread = launch.order[0];
            switch_fibres(launch.scheduler, launch.threads[launch.thread].fibre);
        }
        const Wait what = waits[0];
        for (unsigned lane = 1; lane < WARP; lane++) {
            if (waits[lane] != what) launch.error = "lanes of a warp wait for different things";
        }
        if (what == Wait::BLOCK_BARRIER || what == Wait::THE_END) return;
        std::fill_n(&launch.waits[first], WARP, Wait::NOTHING);
    }
}

static void run_block(Launch& launch) {
    const unsigned num = static_cast<unsigned>(launch.threads.size()), warps = num / WARP;
    for (unsigned i = 0; i < num; i++) {
        Thread& thread = launch.threads[i];
        char* stack = launch.stacks.get() + i * STACK_BYTES;
        memcpy(stack, &CANARY, sizeof CANARY);
        thread.fibre.prepare(stack, STACK_BYTES, thread_main);
        thread.exchanges = 0;
        thread.copies.clear();
        thread.groups.clear();
        thread.products.clear();
    }
    launch.waits.assign(num, Wait::NOTHING);
    launch.marks.clear(launch.shared_bytes.size());
    launch.mbarriers.clear();
    launch.barriers = 0;
    memset(launch.shared_bytes.data(), SHARED_JUNK, launch.shared_bytes.size());
    while (launch.error == nullptr) {
        const unsigned start = launch.draw();
        for (unsigned i = 0; i < warps; i++) {
            const unsigned first = (start + i) % warps * WARP;
            if (launch.waits[first] == Wait::NOTHING) run_warp(launch, first);
        }
        bool at_barrier = false;
        for (Wait& wait : launch.waits) {
            if (wait == Wait::BLOCK_BARRIER) {
                at_barrier = true;
                wait = Wait::NOTHING;
            }
        }
        if (!at_barrier) break;
        launch.barriers++;
    }
    if (launch.error == nullptr) check_products(launch);
    for (size_t i = launch.shared_bytes.size() - SHARED_GUARD; i < launch.shared_bytes.size(); i++) {
        if (launch.shared_bytes[i] != SHARED_JUNK) launch.error = "wrote past the end of shared memory";
    }
    for (unsigned i = 0; i < num; i++) {
        if (memcmp(launch.stacks.get() + i * STACK_BYTES, &CANARY, sizeof CANARY) != 0) launch.error = "a stack is too small";
    }
}

static const char* run(
    const Kernel& kernel, unsigned grid, unsigned block, uint64_t seed, void* const* arguments, const unsigned* sizes,
    unsigned num_arguments, unsigned shared
) {
    if (block == 0 || block % WARP != 0 || block > 1024) return "a block must have 1 to 32 whole warps";
    if (num_arguments != kernel.num_arguments) return "the number of arguments is not the kernel's";
    for (unsigned i = 0; i < num_arguments; i++) {
        if (sizes[i] != kernel.sizes[i]) return "an argument's size is not the kernel's";
    }
    static thread_local Launch launch;
    launch.threads.resize(block);
    if (launch.num_stacks < block) {
        launch.stacks.reset(new char[block * STACK_BYTES]);
        launch.num_stacks = block;
    }
    launch.buffers[0].resize(block);
    launch.buffers[1].resize(block);
    launch.shared_bytes.resize(shared + SHARED_GUARD);
    launch.shared = launch.shared_bytes.data();
    launch.block_dim = Dim3{block, 1, 1};
    launch.grid_dim = Dim3{grid, 1, 1};
    launch.body = kernel.call;
    launch.arguments = arguments;
    launch.random = seed * 2 + 1;
    launch.error = nullptr;
    running = &launch;
    for (unsigned i = 0; i < grid && launch.error == nullptr; i++) {
        launch.block = Dim3{i, 0, 0};
        run_block(launch);
    }
    running = nullptr;
    return launch.error;
}

const char* launch(
    const Kernel* table, size_t num, const char* name, unsigned grid, unsigned block, uint64_t seed, int missing,
    void* const* arguments, const unsigned* sizes, unsigned num_arguments, unsigned shared
) {
    missing_barrier = missing;
    for (const Kernel* kernel = table; kernel != table + num; kernel++) {
        if (strcmp(kernel->name, name) == 0) {
            return run(*kernel, grid, block, seed, arguments, sizes, num_arguments, shared);
        }
    }
    return "there is no such kernel";
}

} // namespace emulator
