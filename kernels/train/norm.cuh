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
        begin = minimum(blockIdx.x / groups * chunk_rows, rows);
        end = minimum(begin + chunk_rows, rows);
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
    VZ_DEVICE f32* part_of(f32* parts, u32 width, u32 count, u32 number) const {
        const u32 groups = (width + GROUP - 1) / GROUP;
        const u32 at = blockIdx.x % groups * GROUP + threadIdx.x;
        if (threadIdx.x >= GROUP || at >= width) return nullptr;
        return parts + ((u64)(blockIdx.x / groups) * count + number) * width + at;
    }
};

// Writes mean and sum of squared deviations of each column of each chunk: parts [chunks, SUMS_PER_COLUMN, width].
VZ_DEVICE void moments(const NormBlock& args, f32 (&shared)[ROW_SLOTS][GROUP], f32 (&means)[GROUP]) {
    const Element* x = args.x;
    const u32 width = args.width;
    const Chunk chunk(args.rows, args.chunk_rows, width);
    const f32 sum = chunk.sum(shared, [&](u32 row, f32* sums) {
        const Vector v = load(x + (u64)row * width + chunk.column);
        for (int i = 0; i < VEC; i++) sums[i] += to_f32(v.x[i]);
    });
    if (threadIdx.x < GROUP) means[threadIdx.x] = sum / (f32)(chunk.end - chunk.begin);
    __syncthreads();
    const f32 square = chunk.sum(shared, [&](u32 row, f32* sums) {
        const Vector v = load(x + (u64)row * width + chunk.column);
        for (int i = 0; i < VEC; i++) {
            const f32 d = to_f32(v.x[i]) - means[chunk.lane + i];
            sums[i] += d * d;
        }
    });
    if (f32* part = chunk.part_of(args.parts, width, SUMS_PER_COLUMN, 0)) *part = means[threadIdx.x];
    if (f32* part = chunk.part_of(args.parts, width, SUMS_PER_COLUMN, 1)) *part = square;
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
VZ_DEVICE Moments moments_of(const NormBlock& args, u32 column) {
    const u32 rows = args.rows, chunk_rows = args.chunk_rows, width = args.width;
    const u32 lane = threadIdx.x % WARP, chunks = (rows + chunk_rows - 1) / chunk_rows;
    Moments all = {0.0, 0.0, 0.0};
    for (u32 chunk = lane; chunk < chunks; chunk += WARP) {
        const f32* part = args.parts + (u64)chunk * SUMS_PER_COLUMN * width + column;
        all.join((f64)(minimum((chunk + 1) * chunk_rows, rows) - chunk * chunk_rows), (f64)part[0], (f64)part[width]);
    }
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const f64 n = __shfl_xor_sync(0xFFFFFFFFu, all.count, distance);
        const f64 m = __shfl_xor_sync(0xFFFFFFFFu, all.mean, distance);
        const f64 s = __shfl_xor_sync(0xFFFFFFFFu, all.square, distance);
        all.join(n, m, s);
    }
    return all;
}

// Computes a column's forward statistics from the moments of all rows of the batch, and updates the running ones.
VZ_DEVICE void prepare_norm(const NormBlock& args, u32 column, const Moments& all) {
    const u32 width = args.width, *maps = args.maps;
    f32* stats = args.stats;
    const f64 variance = all.square / all.count;
    stats[MEAN * width + column] = (f32)all.mean;
    stats[VARIANCE * width + column] = (f32)variance;
    const bool used = maps[column] != NOWHERE;
    stats[SCALE * width + column] = used ? (f32)((f64)args.parameters[maps[column]] / square_root(variance + BN_EPS)) : 0.0f;
    stats[SHIFT * width + column] = used ? args.parameters[maps[width + column]] : 0.0f;
    if (!used) return;
    update_running(args.running[maps[2 * width + column]], all.mean);
    update_running(args.running[maps[3 * width + column]], variance * (all.count / (maximum(all.count, 2.0) - 1.0)));
}

// Sets `bad_statistic` of the report if a column's running statistics are not finite.
VZ_DEVICE void check_statistics(const NormBlock& args, u32 column) {
    const u32 width = args.width, *maps = args.maps;
    if (maps[column] == NOWHERE) return;
    const f32 mean = args.running[maps[2 * width + column]], variance = args.running[maps[3 * width + column]];
    if (!(is_finite(mean) && is_finite(variance))) args.report->bad_statistic = 1.0;
}

// Synchronised batch-norm statistics of several devices: `sync_stats` [devices, NUM_SYNCED, width]. Each device writes its own part and
// zeros elsewhere, so that an all-reduce (sum) gives the parts of all devices.
VZ_DEVICE f64* synced(const NormBlock& args, u32 device, u32 number, u32 column) {
    return args.sync_stats + ((u64)device * NUM_SYNCED + number) * args.width + column;
}

VZ_DEVICE void write_synced(const NormBlock& args, u32 column, const f64 (&own)[NUM_SYNCED]) {
    for (u32 device = 0; device < args.devices; device++) {
        for (u32 i = 0; i < NUM_SYNCED; i++) *synced(args, device, i, column) = device == args.device ? own[i] : 0.0;
    }
}

// The moments of all devices' rows, joined in the order of the devices.
VZ_DEVICE Moments synced_moments(const NormBlock& args, u32 column) {
    Moments all = {0.0, 0.0, 0.0};
    for (u32 device = 0; device < args.devices; device++) {
        all.join(*synced(args, device, 0, column), *synced(args, device, 1, column), *synced(args, device, 2, column));
    }
    return all;
}

// One statistic of VEC columns, which two loads read.
struct alignas(16) StatVector {
    f32 x[VEC];
};
VZ_DEVICE StatVector load_stat(const f32* stats, ColumnStats stat, u32 width, u32 column) {
    return *(const StatVector*)(stats + stat * width + column);
}

// The normalisation of VEC columns.
struct NormVector {
    StatVector mean, scale, shift;

    VZ_DEVICE NormVector(const f32* stats, u32 width, u32 column)
        : mean(load_stat(stats, MEAN, width, column)), scale(load_stat(stats, SCALE, width, column)),
          shift(load_stat(stats, SHIFT, width, column)) {}

    // `x` of column `i`, normalised.
    VZ_DEVICE f32 of(int i, f32 x) const { return (x - mean.x[i]) * scale.x[i] + shift.x[i]; }

    // The gradient of the ReLU's input, whose input in column `i` is `x`, out of the gradient `d`.
    VZ_DEVICE f32 relu_gradient(int i, f32 x, f32 d) const { return of(i, x) > 0.0f ? d : 0.0f; }
};

// out = max(0, (x - mean) scale + shift) for all rows.
VZ_DEVICE void normalise_relu(const NormBlock& args) {
    const u32 vectors = args.width / VEC;
    for (u64 i = (u64)thread_in_grid(); i < (u64)args.rows * vectors; i += threads_in_grid()) {
        const NormVector norm(args.stats, args.width, (u32)(i % vectors) * VEC);
        Vector v = load(args.x + i * VEC);
        for (int j = 0; j < VEC; j++) {
            const f32 y = norm.of(j, to_f32(v.x[j]));
            v.x[j] = from_f32<Element>(y < 0.0f ? 0.0f : y);
        }
        store(args.out + i * VEC, v);
    }
}

// Writes the sums of dz and of dz (x - mean) over each chunk, where dz is the gradient of the ReLU's input:
// parts [chunks, SUMS_PER_COLUMN, width].
VZ_DEVICE void gradient_sums(const NormBlock& args, f32 (&shared)[ROW_SLOTS][GROUP]) {
    const Element *x = args.x, *d = args.d;
    const u32 width = args.width;
    const Chunk chunk(args.rows, args.chunk_rows, width);
    const NormVector norm(args.stats, width, chunk.inside ? chunk.column : 0);
    // Both sums in one pass; the second is reduced after the first.
    f32 products[VEC] = {};
    const f32 sum = chunk.sum(shared, [&](u32 row, f32* sums) {
        const u64 at = (u64)row * width + chunk.column;
        const Vector v = load(x + at), g = load(d + at);
        for (int i = 0; i < VEC; i++) {
            const f32 value = to_f32(v.x[i]);
            const f32 dz = norm.relu_gradient(i, value, to_f32(g.x[i]));
            sums[i] += dz;
            products[i] += dz * (value - norm.mean.x[i]);
        }
    });
    __syncthreads();
    for (int i = 0; i < VEC; i++) shared[chunk.slot][chunk.lane + i] = products[i];
    __syncthreads();
    f32 product = 0.0f;
    if (threadIdx.x < GROUP) {
        for (int i = 0; i < ROW_SLOTS; i++) product += shared[i][threadIdx.x];
    }
    if (f32* part = chunk.part_of(args.parts, width, SUMS_PER_COLUMN, 0)) *part = sum;
    if (f32* part = chunk.part_of(args.parts, width, SUMS_PER_COLUMN, 1)) *part = product;
}

// Totals of `gradient_sums` over a number of rows.
struct GradientSums {
    f64 count, sum, product;
};

// The totals over all rows of a column from those of the chunks. One warp per column.
VZ_DEVICE GradientSums gradient_sums_of(const NormBlock& args, u32 column) {
    const u32 lane = threadIdx.x % WARP, chunks = (args.rows + args.chunk_rows - 1) / args.chunk_rows;
    f64 sum = 0.0, product = 0.0;
    for (u32 chunk = lane; chunk < chunks; chunk += WARP) {
        const f32* part = args.parts + (u64)chunk * SUMS_PER_COLUMN * args.width + column;
        sum += (f64)part[0];
        product += (f64)part[args.width];
    }
    sum = warp_sum(sum);
    product = warp_sum(product);
    return {(f64)args.rows, sum, product};
}

// Computes a column's backward statistics from the totals over all rows of the batch, and adds the gradients of weight and bias,
// from the totals over this device's rows, to `gradient`.
VZ_DEVICE void prepare_norm_gradient(const NormBlock& args, u32 column, const GradientSums& all, const GradientSums& own) {
    const u32 width = args.width, *maps = args.maps;
    f32 *stats = args.stats, *gradient = args.gradient;
    const f64 variance = (f64)stats[VARIANCE * width + column] + BN_EPS, scale = (f64)stats[SCALE * width + column];
    stats[SLOPE * width + column] = (f32)(scale * all.product / (all.count * variance));
    stats[OFFSET * width + column] = (f32)(scale * all.sum / all.count);
    if (maps[column] == NOWHERE) return;
    gradient[maps[column]] += (f32)(own.product / square_root(variance));
    gradient[maps[width + column]] += (f32)own.sum;
}

// The totals of one device, and those of all devices, summed in their order.
VZ_DEVICE GradientSums synced_gradient_sums(const NormBlock& args, u32 device, u32 column) {
    return {*synced(args, device, 0, column), *synced(args, device, 1, column), *synced(args, device, 2, column)};
}
VZ_DEVICE GradientSums synced_gradient_sums(const NormBlock& args, u32 column) {
    GradientSums all = {0.0, 0.0, 0.0};
    for (u32 device = 0; device < args.devices; device++) {
        const GradientSums one = synced_gradient_sums(args, device, column);
        all = {all.count + one.count, all.sum + one.sum, all.product + one.product};
    }
    return all;
}

// The gradient of the normalisation's input, out = dz scale - offset - (x - mean) slope, plus `residual` if it is not null. `out` may
// alias `residual`.
VZ_DEVICE void input_gradient(const NormBlock& args) {
    const f32* stats = args.stats;
    const u32 width = args.width, vectors = width / VEC;
    for (u64 i = (u64)thread_in_grid(); i < (u64)args.rows * vectors; i += threads_in_grid()) {
        const u32 column = (u32)(i % vectors) * VEC;
        const NormVector norm(stats, width, column);
        const StatVector slope = load_stat(stats, SLOPE, width, column), offset = load_stat(stats, OFFSET, width, column);
        const Vector v = load(args.x + i * VEC), g = load(args.d + i * VEC);
        Vector o = args.residual ? load(args.residual + i * VEC) : zeros();
        for (int j = 0; j < VEC; j++) {
            const f32 value = to_f32(v.x[j]), dz = norm.relu_gradient(j, value, to_f32(g.x[j]));
            const f32 dx = dz * norm.scale.x[j] - (value - norm.mean.x[j]) * slope.x[j] - offset.x[j];
            o.x[j] = from_f32<Element>(to_f32(o.x[j]) + dx);
        }
        store(args.out + i * VEC, o);
    }
}

// Writes the sums of each column over each chunk: parts [chunks, width].
VZ_DEVICE void column_sums(
    const Element* x, u32 rows, u32 chunk_rows, u32 width, f32* parts, f32 (&shared)[ROW_SLOTS][GROUP]
) {
    const Chunk chunk(rows, chunk_rows, width);
    const f32 sum = chunk.sum(shared, [&](u32 row, f32* sums) {
        const Vector v = load(x + (u64)row * width + chunk.column);
        for (int i = 0; i < VEC; i++) sums[i] += to_f32(v.x[i]);
    });
    if (f32* part = chunk.part_of(parts, width, 1, 0)) *part = sum;
}

} // namespace train
