// Batch normalisation (Ioffe and Szegedy 2015) with the ReLU after it, forward and backward. Twin of src/net/cpu_train/norm.rs and of
// `Norm` in src/net/cpu_train/layer.rs: a block sums a chunk of rows in f32; totals over chunks are in f64, in a fixed order.
#pragma once
#include "train/format.cuh"

namespace train {

// The statistics of a normalisation's columns, each [width].
enum ColumnStats { MEAN, SCALE, SHIFT, VARIANCE, SLOPE, OFFSET };
static_assert(OFFSET + 1 == NUM_STATS, "must equal the launcher's arrays");

// The rows of a chunk and the vector of columns of a thread in a summing block.
struct Chunk {
    u32 begin, end;  // rows
    u32 column;      // the first of VEC
    bool inside;     // the columns exist
    int slot, lane;

    VZ_DEVICE Chunk(u32 rows, u32 chunk_rows, u32 width) {
        const u32 groups = (width + GROUP - 1) / GROUP;
        begin = smaller(blockIdx.x / groups * chunk_rows, rows);
        end = smaller(begin + chunk_rows, rows);
        slot = (int)threadIdx.x / (GROUP / VEC);
        lane = (int)threadIdx.x % (GROUP / VEC) * VEC;
        column = blockIdx.x % groups * GROUP + lane;
        inside = column < width;
    }

    // The sum of each column's terms over the chunk; thread i < GROUP gets that of column i of the group.
    template <class Term>
    VZ_DEVICE f32 sum(f32 (&shared)[ROW_SLOTS][GROUP], Term term) const {
        f32 sums[VEC] = {};
        if (inside) {
            for (u32 row = begin + slot; row < end; row += ROW_SLOTS) term(row, sums);
        }
        __syncthreads();
        for (int i = 0; i < VEC; i++) shared[slot][lane + i] = sums[i];
        __syncthreads();
        f32 total = 0.0f;
        if (threadIdx.x < GROUP) {
            for (int i = 0; i < ROW_SLOTS; i++) total += shared[i][threadIdx.x];
        }
        return total;
    }

    // The address for thread i < GROUP of sum number `number` of `count` in [chunks, count, width]; null past the last column.
    VZ_DEVICE f32* place(f32* parts, u32 width, u32 count, u32 number) const {
        const u32 groups = (width + GROUP - 1) / GROUP;
        const u32 at = blockIdx.x % groups * GROUP + threadIdx.x;
        if (threadIdx.x >= GROUP || at >= width) return nullptr;
        return parts + ((u64)(blockIdx.x / groups) * count + number) * width + at;
    }
};

// Writes mean and sum of squared deviations of each column of each chunk: parts [chunks, 2, width].
VZ_DEVICE void moments(
    const Element* x, u32 rows, u32 chunk_rows, u32 width, f32* parts, f32 (&shared)[ROW_SLOTS][GROUP], f32 (&means)[GROUP]
) {
    const Chunk chunk(rows, chunk_rows, width);
    const f32 sum = chunk.sum(shared, [&](u32 row, f32* sums) {
        const Vector v = load(x + (u64)row * width + chunk.column);
        for (int i = 0; i < VEC; i++) sums[i] += widen(v.x[i]);
    });
    if (threadIdx.x < GROUP) means[threadIdx.x] = sum / (f32)(chunk.end - chunk.begin);
    __syncthreads();
    const f32 square = chunk.sum(shared, [&](u32 row, f32* sums) {
        const Vector v = load(x + (u64)row * width + chunk.column);
        for (int i = 0; i < VEC; i++) {
            const f32 d = widen(v.x[i]) - means[chunk.lane + i];
            sums[i] += d * d;
        }
    });
    if (f32* place = chunk.place(parts, width, 2, 0)) *place = means[threadIdx.x];
    if (f32* place = chunk.place(parts, width, 2, 1)) *place = square;
}

// Number of rows, their mean, and the sum of squared deviations from it (Chan, Golub, LeVeque 1983).
struct Moments {
    f64 count, mean, square;

    VZ_DEVICE void join(f64 n, f64 m, f64 s) {
        if (n == 0.0) return;
        const f64 all = count + n, delta = m - mean;
        square += s + delta * delta * count * n / all;
        mean += delta * n / all;
        count = all;
    }
};

// Moves a running statistic towards that of the batch.
VZ_DEVICE void update_running(f32& old, f64 now) { old = (f32)((1.0 - BN_MOMENTUM) * (f64)old + BN_MOMENTUM * now); }

// The moments of all rows of a column from those of the chunks. One warp per column; the result is in lane 0.
VZ_DEVICE Moments moments_of(u32 column, u32 width, u32 rows, u32 chunk_rows, const f32* parts) {
    const u32 lane = threadIdx.x % 32, chunks = (rows + chunk_rows - 1) / chunk_rows;
    Moments all = {0.0, 0.0, 0.0};
    for (u32 chunk = lane; chunk < chunks; chunk += 32) {
        const f32* part = parts + (u64)chunk * 2 * width + column;
        all.join((f64)(smaller((chunk + 1) * chunk_rows, rows) - chunk * chunk_rows), (f64)part[0], (f64)part[width]);
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        const f64 n = __shfl_xor_sync(0xFFFFFFFFu, all.count, distance);
        const f64 m = __shfl_xor_sync(0xFFFFFFFFu, all.mean, distance);
        const f64 s = __shfl_xor_sync(0xFFFFFFFFu, all.square, distance);
        all.join(n, m, s);
    }
    return all;
}

// Computes a column's forward statistics from the moments of all rows of the batch, and updates the running ones. `maps` [4, width]
// has the indices of weight and bias in `parameters`, and of running mean and variance in `statistics`.
VZ_DEVICE void prepare_norm(
    u32 column, u32 width, const Moments& all, const u32* maps, const f32* parameters, f32* statistics, f32* stats
) {
    const f64 variance = all.square / all.count;
    stats[MEAN * width + column] = (f32)all.mean;
    stats[VARIANCE * width + column] = (f32)variance;
    const bool used = maps[column] != NOWHERE;
    stats[SCALE * width + column] = used ? (f32)((f64)parameters[maps[column]] / square_root(variance + BN_EPS)) : 0.0f;
    stats[SHIFT * width + column] = used ? parameters[maps[width + column]] : 0.0f;
    if (!used) return;
    update_running(statistics[maps[2 * width + column]], all.mean);
    update_running(statistics[maps[3 * width + column]], variance * (all.count / (larger(all.count, 2.0) - 1.0)));
}

// Sets `bad_statistic` of the report if a column's running statistics are not finite.
VZ_DEVICE void check_statistics(u32 column, u32 width, const u32* maps, const f32* statistics, UpdateReport& report) {
    if (maps[column] == NOWHERE) return;
    const f32 mean = statistics[maps[2 * width + column]], variance = statistics[maps[3 * width + column]];
    if (!(is_finite(mean) && is_finite(variance))) report.bad_statistic = 1.0;
}

// Synchronised batch-norm statistics of several devices, [devices, 3, width]. Each device writes its own part and zeros elsewhere,
// so that an all-reduce (sum) gives the parts of all devices.
struct SyncStats {
    f64* all;
    u32 width, devices;

    VZ_DEVICE f64* at(u32 device, u32 number, u32 column) const {
        return all + ((u64)device * 3 + number) * width + column;
    }

    VZ_DEVICE void write(u32 own, u32 column, f64 first, f64 second, f64 third) const {
        const f64 numbers[3] = {first, second, third};
        for (u32 device = 0; device < devices; device++) {
            for (u32 i = 0; i < 3; i++) *at(device, i, column) = device == own ? numbers[i] : 0.0;
        }
    }
};

// The moments of all devices' rows, joined in the order of the devices.
VZ_DEVICE Moments synced_moments(const SyncStats& sync_stats, u32 column) {
    Moments all = {0.0, 0.0, 0.0};
    for (u32 device = 0; device < sync_stats.devices; device++) {
        all.join(*sync_stats.at(device, 0, column), *sync_stats.at(device, 1, column), *sync_stats.at(device, 2, column));
    }
    return all;
}

// (x - mean) scale + shift, before the ReLU.
VZ_DEVICE f32 normalised(const f32* stats, u32 width, u32 column, f32 x) {
    return (x - stats[MEAN * width + column]) * stats[SCALE * width + column] + stats[SHIFT * width + column];
}

// The gradient before the ReLU, given the gradient `d` behind it, or, if `masked`, before it.
VZ_DEVICE f32 relu_gradient(const f32* stats, u32 width, u32 column, f32 x, f32 d, u32 masked) {
    return masked || normalised(stats, width, column, x) > 0.0f ? d : 0.0f;
}

// out = max(0, (x - mean) scale + shift) for all rows.
VZ_DEVICE void normalise_relu(const Element* x, u32 rows, u32 width, const f32* stats, Element* out) {
    const u32 vectors = width / VEC;
    for (u64 i = (u64)thread_in_grid(); i < (u64)rows * vectors; i += threads_in_grid()) {
        const u32 column = (u32)(i % vectors) * VEC;
        Vector v = load(x + i * VEC);
        for (int j = 0; j < VEC; j++) {
            const f32 y = normalised(stats, width, column + j, widen(v.x[j]));
            v.x[j] = narrow<Element>(y < 0.0f ? 0.0f : y);
        }
        store(out + i * VEC, v);
    }
}

// Writes the sums of dz and of dz (x - mean) over each chunk, where dz is the gradient before the ReLU and `d` the gradient behind
// it: parts [chunks, 2, width].
VZ_DEVICE void gradient_sums(
    const Element* x, const Element* d, u32 rows, u32 chunk_rows, u32 width, const f32* stats, u32 masked, f32* parts,
    f32 (&shared)[ROW_SLOTS][GROUP]
) {
    const Chunk chunk(rows, chunk_rows, width);
    // Both sums in one pass; the second is reduced after the first.
    f32 products[VEC] = {};
    const f32 sum = chunk.sum(shared, [&](u32 row, f32* sums) {
        const u64 at = (u64)row * width + chunk.column;
        const Vector v = load(x + at), g = load(d + at);
        for (int i = 0; i < VEC; i++) {
            const f32 value = widen(v.x[i]);
            const f32 dz = relu_gradient(stats, width, chunk.column + i, value, widen(g.x[i]), masked);
            sums[i] += dz;
            products[i] += dz * (value - stats[MEAN * width + chunk.column + i]);
        }
    });
    __syncthreads();
    for (int i = 0; i < VEC; i++) shared[chunk.slot][chunk.lane + i] = products[i];
    __syncthreads();
    f32 product = 0.0f;
    if (threadIdx.x < GROUP) {
        for (int i = 0; i < ROW_SLOTS; i++) product += shared[i][threadIdx.x];
    }
    if (f32* place = chunk.place(parts, width, 2, 0)) *place = sum;
    if (f32* place = chunk.place(parts, width, 2, 1)) *place = product;
}

// Totals of `gradient_sums` over a number of rows.
struct GradientSums {
    f64 count, sum, product;
};

// The totals over all rows of a column from those of the chunks. One warp per column.
VZ_DEVICE GradientSums gradient_sums_of(u32 column, u32 width, u32 rows, u32 chunk_rows, const f32* parts) {
    const u32 lane = threadIdx.x % 32, chunks = (rows + chunk_rows - 1) / chunk_rows;
    f64 sum = 0.0, product = 0.0;
    for (u32 chunk = lane; chunk < chunks; chunk += 32) {
        sum += (f64)parts[(u64)chunk * 2 * width + column];
        product += (f64)parts[((u64)chunk * 2 + 1) * width + column];
    }
    sum = warp_sum(sum);
    product = warp_sum(product);
    return {(f64)rows, sum, product};
}

// Computes a column's backward statistics from the totals over all rows of the batch, and adds the gradients of weight and bias,
// from the totals over this device's rows, to `gradient`.
VZ_DEVICE void prepare_norm_gradient(
    u32 column, u32 width, const GradientSums& all, const GradientSums& own, const u32* maps, f32* stats, f32* gradient
) {
    const f64 variance = (f64)stats[VARIANCE * width + column] + BN_EPS, scale = (f64)stats[SCALE * width + column];
    stats[SLOPE * width + column] = (f32)(scale * all.product / (all.count * variance));
    stats[OFFSET * width + column] = (f32)(scale * all.sum / all.count);
    if (maps[column] == NOWHERE) return;
    gradient[maps[column]] += (f32)(own.product / square_root(variance));
    gradient[maps[width + column]] += (f32)own.sum;
}

// The totals of one device, and those of all devices, summed in their order.
VZ_DEVICE GradientSums synced_gradient_sums(const SyncStats& sync_stats, u32 device, u32 column) {
    return {*sync_stats.at(device, 0, column), *sync_stats.at(device, 1, column), *sync_stats.at(device, 2, column)};
}
VZ_DEVICE GradientSums synced_gradient_sums(const SyncStats& sync_stats, u32 column) {
    GradientSums all = {0.0, 0.0, 0.0};
    for (u32 device = 0; device < sync_stats.devices; device++) {
        const GradientSums one = synced_gradient_sums(sync_stats, device, column);
        all = {all.count + one.count, all.sum + one.sum, all.product + one.product};
    }
    return all;
}

// The gradient of the normalisation's input, out = dz scale - offset - (x - mean) slope, plus `residual` if it is not null. `out` may
// alias `residual`.
VZ_DEVICE void input_gradient(
    const Element* x, const Element* d, u32 rows, u32 width, const f32* stats, u32 masked, const Element* residual, Element* out
) {
    const u32 vectors = width / VEC;
    for (u64 i = (u64)thread_in_grid(); i < (u64)rows * vectors; i += threads_in_grid()) {
        const u32 first = (u32)(i % vectors) * VEC;
        const Vector v = load(x + i * VEC), g = load(d + i * VEC);
        Vector o = residual ? load(residual + i * VEC) : zeros();
        for (int j = 0; j < VEC; j++) {
            const u32 column = first + j;
            const f32 value = widen(v.x[j]), dz = relu_gradient(stats, width, column, value, widen(g.x[j]), masked);
            const f32 dx = dz * stats[SCALE * width + column] -
                (value - stats[MEAN * width + column]) * stats[SLOPE * width + column] - stats[OFFSET * width + column];
            o.x[j] = narrow<Element>(widen(o.x[j]) + dx);
        }
        store(out + i * VEC, o);
    }
}

// Writes the sums of each column over each chunk: parts [chunks, width].
VZ_DEVICE void column_sums(
    const Element* x, u32 rows, u32 chunk_rows, u32 width, f32* parts, f32 (&shared)[ROW_SLOTS][GROUP]
) {
    const Chunk chunk(rows, chunk_rows, width);
    const f32 sum = chunk.sum(shared, [&](u32 row, f32* sums) {
        const Vector v = load(x + (u64)row * width + chunk.column);
        for (int i = 0; i < VEC; i++) sums[i] += widen(v.x[i]);
    });
    if (f32* place = chunk.place(parts, width, 1, 0)) *place = sum;
}

} // namespace train
