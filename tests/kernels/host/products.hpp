// Products of a warpgroup that run beside it, as kernels/net/warpgroup.cuh asks for them (PTX ISA, "wgmma.mma_async"). One is made when
// it is waited for, the latest that a device may do it: its left operand is read then, where it was, and until then its sums are no
// numbers. What it reads of shared memory is marked from its beginning on, so that a copy which comes too early is found out, and so
// is one by the generic proxy. Copies for it are made when they are waited for, too.
#pragma once
#include "emulator.hpp"
#include <vector>

namespace emulator {

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
        groups.resize(1);
        groups[0].clear();
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
