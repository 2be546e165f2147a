// Products of a warpgroup that run beside it, as kernels/net/warpgroup.cuh asks for them (PTX ISA, "wgmma.mma_async"). One is made when
// it is waited for, the latest that a device may do it: its left operand is read then, where it was, and until then its sums are no
// numbers. What it reads of shared memory is marked from its beginning on, so that a copy which comes too early is found out, and so
// is one by the generic proxy. Copies for it are made when they are waited for, too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator {

// The right operand, as the bits of its descriptor say: blocks of 8 columns by 16 bytes, not swizzled.
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

// A lane's sums that products on their way add to.
struct Sums {
    float* at;
    std::vector<float> values;
    unsigned products; // on their way
};

// A lane's products that nobody has waited for.
struct Products {
    std::vector<std::vector<Product>> groups; // the last one open
    std::vector<Sums> sums;
    bool registers_shown; // since the last one was written
    uint64_t asked_for; // what, so far: the same for all warps of a warpgroup

    void clear() {
        groups.assign(1, {});
        sums.clear();
        registers_shown = false;
        asked_for = 0;
    }
    bool done() const {
        for (const Sums& sums_of : sums) {
            if (sums_of.products != 0) return false;
        }
        return groups.back().empty();
    }
    Sums& sums_at(float* at) {
        for (Sums& sums_of : sums) {
            if (sums_of.at == at) return sums_of;
        }
        sums.push_back({at, {}, 0});
        return sums.back();
    }
    void begin(const Product& product) {
        groups.back().push_back(product);
        asked_for = asked_for * 0x9E3779B97F4A7C15ull + product.right + product.num_sums;
        Sums& sums_of = sums_at(product.sums);
        if (sums_of.products++ != 0) return;
        sums_of.values.assign(product.sums, product.sums + product.num_sums);
        for (unsigned i = 0; i < product.num_sums; i++) product.sums[i] = __builtin_nanf("");
    }
    void end(const Product& product) {
        Sums& sums_of = sums_at(product.sums);
        if (--sums_of.products != 0) return;
        for (unsigned i = 0; i < product.num_sums; i++) product.sums[i] = sums_of.values[i];
    }
};

enum class Proxy : unsigned char { ASYNCHRONOUS, GENERIC };

// Of each 16 bytes of shared memory how many products read them, and by what they were copied to last.
struct Marks {
    std::vector<unsigned> readers;
    std::vector<Proxy> copied;

    void clear(size_t bytes) {
        readers.assign(bytes / 16, 0);
        copied.assign(bytes / 16, Proxy::ASYNCHRONOUS);
    }
    bool is_read(size_t unit) const { return unit < readers.size() && readers[unit] != 0; }
    void copy(size_t unit, Proxy by) {
        if (unit < copied.size()) copied[unit] = by;
    }
};

// An mbarrier in shared memory, which completes when a copy has arrived; one copy at a time.
struct Mbarrier {
    const void* at;
    unsigned thread, barriers; // who opened it, and after how many barriers of the block
    unsigned rounds; // completed
    // The copy in flight; none where `to` is null.
    void* to;
    const void* from;
    unsigned bytes;
};

} // namespace emulator
