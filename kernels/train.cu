// The kernels of a training update, launched by src/train/device. They depend on no game.
#include "train/graph.cuh"
#include "train/linear.cuh"
#include "train/norm.cuh"
#include "train/optimizer.cuh"

// Zeroes the gradient and the report, and copies the running statistics to those after the update.
VZ_KERNEL begin_update(VZ_BY_VALUE train::UpdateBlock args) {
    const u32 first = (u32)thread_in_grid(), step = train::threads_in_grid();
    for (u32 i = first; i < args.num_parameters; i += step) args.gradient[i] = 0.0f;
    for (u32 i = first; i < args.num_statistics; i += step) args.new_statistics[i] = args.old_statistics[i];
    if (first == 0) *args.report = train::UpdateReport{};
}

// Packs the weights for products: out[i] is parameter map[i], or 0 if map[i] is NOWHERE.
VZ_KERNEL pack_weights(const f32* parameters, const u32* map, u64 count, train::Element* out) {
    for (u64 i = (u64)thread_in_grid() * train::VEC; i < count; i += (u64)train::threads_in_grid() * train::VEC) {
        train::Vector v;
        for (int j = 0; j < train::VEC; j++) {
            const u32 at = map[i + j];
            v.x[j] = train::from_f32<train::Element>(at == train::NOWHERE ? 0.0f : parameters[at]);
        }
        train::store(out + i, v);
    }
}

// Transposes observations [B, channels, area] to [B, area, width], with 0 past the last channel.
VZ_KERNEL take_observations(const f32* obs, u32 boards, u32 channels, u32 area, u32 width, train::Element* out) {
    const u64 vectors = (u64)boards * area * (width / train::VEC);
    for (u64 i = (u64)thread_in_grid(); i < vectors; i += train::threads_in_grid()) {
        const u32 first = (u32)(i % (width / train::VEC)) * train::VEC;
        const u64 row = i / (width / train::VEC);
        const f32* board = obs + row / area * channels * area + row % area;
        train::Vector v;
        for (int j = 0; j < train::VEC; j++) {
            v.x[j] = train::from_f32<train::Element>(first + j < channels ? board[(u64)(first + j) * area] : 0.0f);
        }
        train::store(out + i * train::VEC, v);
    }
}

// Each product has three tile shapes; src/net/gpu_train/tiling.rs chooses one per launch.

// A layer forward, or backward to its input.
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_wide(VZ_BY_VALUE train::LinearBlock args) {
    train::product<train::Wide>(args, args.out);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_tall(VZ_BY_VALUE train::LinearBlock args) {
    train::product<train::Tall>(args, args.out);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_narrow(VZ_BY_VALUE train::LinearBlock args) {
    train::product<train::Narrow>(args, args.out);
}

// A head's forward with f32 outputs, for the losses.
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_outputs(VZ_BY_VALUE train::LinearBlock args) {
    train::product<train::Narrow>(args, args.outputs);
}

// Partial sums of the gradient of a layer's weights.
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_gradient_wide(VZ_BY_VALUE train::WeightGradientBlock args) {
    train::weight_gradient<train::Wide>(args);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_gradient_tall(VZ_BY_VALUE train::WeightGradientBlock args) {
    train::weight_gradient<train::Tall>(args);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_gradient_narrow(VZ_BY_VALUE train::WeightGradientBlock args) {
    train::weight_gradient<train::Narrow>(args);
}

// Adds the sum over parts [num, count], in order, to the gradient: number i to gradient[map[i]].
VZ_KERNEL sum_parts(const f32* parts, u32 num, u32 count, const u32* map, f32* gradient) {
    for (u32 i = (u32)thread_in_grid(); i < count; i += train::threads_in_grid()) {
        if (map[i] == train::NOWHERE) continue;
        f32 sum = 0.0f;
        for (u32 part = 0; part < num; part++) sum += parts[(u64)part * count + i];
        gradient[map[i]] += sum;
    }
}

// The kernels that sum columns have blocks of `train::BLOCK`.
VZ_KERNEL sum_columns(const train::Element* x, u32 rows, u32 chunk_rows, u32 width, f32* parts) {
    __shared__ f32 shared[train::ROW_SLOTS][train::GROUP];
    train::column_sums(x, rows, chunk_rows, width, parts, shared);
}

VZ_KERNEL norm_moments(VZ_BY_VALUE train::NormBlock args) {
    __shared__ f32 shared[train::ROW_SLOTS][train::GROUP];
    __shared__ f32 means[train::GROUP];
    train::moments(args, shared, means);
}

// One warp per column.
VZ_KERNEL norm_prepare(VZ_BY_VALUE train::NormBlock args) {
    const u32 column = (u32)(thread_in_grid() / WARP);
    if (column >= args.width) return;
    const train::Moments all = train::moments_of(args, column);
    if (threadIdx.x % WARP != 0) return;
    train::prepare_norm(args, column, all);
    train::check_statistics(args, column);
}

// `norm_prepare` on several devices: two kernels with an all-reduce of `sync_stats` between them. The first has one warp per column
// and writes this device's moments; the second has one thread per column and joins those of all devices.
VZ_KERNEL norm_local_moments(VZ_BY_VALUE train::NormBlock args) {
    const u32 column = (u32)(thread_in_grid() / WARP);
    if (column >= args.width) return;
    const train::Moments here = train::moments_of(args, column);
    if (threadIdx.x % WARP == 0) train::write_synced(args, column, {here.count, here.mean, here.square});
}
VZ_KERNEL norm_prepare_synced(VZ_BY_VALUE train::NormBlock args) {
    const u32 column = (u32)thread_in_grid();
    if (column >= args.width) return;
    train::prepare_norm(args, column, train::synced_moments(args, column));
    train::check_statistics(args, column);
}

VZ_KERNEL norm_relu(VZ_BY_VALUE train::NormBlock args) { train::normalise_relu(args); }

VZ_KERNEL norm_gradient_sums(VZ_BY_VALUE train::NormBlock args) {
    __shared__ f32 shared[train::ROW_SLOTS][train::GROUP];
    train::gradient_sums(args, shared);
}

// One warp per column.
VZ_KERNEL norm_gradient_prepare(VZ_BY_VALUE train::NormBlock args) {
    const u32 column = (u32)(thread_in_grid() / WARP);
    if (column >= args.width) return;
    const train::GradientSums all = train::gradient_sums_of(args, column);
    if (threadIdx.x % WARP == 0) train::prepare_norm_gradient(args, column, all, all);
}

// `norm_gradient_prepare` on several devices, as `norm_local_moments` and `norm_prepare_synced`.
VZ_KERNEL norm_local_gradient_sums(VZ_BY_VALUE train::NormBlock args) {
    const u32 column = (u32)(thread_in_grid() / WARP);
    if (column >= args.width) return;
    const train::GradientSums here = train::gradient_sums_of(args, column);
    if (threadIdx.x % WARP == 0) train::write_synced(args, column, {here.count, here.sum, here.product});
}
VZ_KERNEL norm_gradient_prepare_synced(VZ_BY_VALUE train::NormBlock args) {
    const u32 column = (u32)thread_in_grid();
    if (column >= args.width) return;
    const train::GradientSums here = train::synced_gradient_sums(args, args.device, column);
    train::prepare_norm_gradient(args, column, train::synced_gradient_sums(args, column), here);
}

VZ_KERNEL norm_gradient(VZ_BY_VALUE train::NormBlock args) { train::input_gradient(args); }

VZ_KERNEL vertex_sums(VZ_BY_VALUE train::MessageBlock args) { train::vertex_sums(args); }

VZ_KERNEL sums_of_ends(VZ_BY_VALUE train::MessageBlock args) { train::sums_of_ends(args); }

VZ_KERNEL triangle_sums(VZ_BY_VALUE train::MessageBlock args) { train::triangle_sums(args); }

VZ_KERNEL means(const train::Element* x, u32 boards, u32 area, u32 width, train::Element* out) {
    train::means(x, boards, area, width, out);
}

VZ_KERNEL spread_means(const train::Element* d, u32 boards, u32 area, u32 width, train::Element* out) {
    train::spread_means(d, boards, area, width, out);
}

// One warp per sample.
VZ_KERNEL sample_losses(VZ_BY_VALUE train::LossBlock args) {
    const u32 row = (u32)(thread_in_grid() / WARP);
    if (row < args.rows) train::losses_of(args, row);
}

// One block.
VZ_KERNEL sum_losses(const f64* losses, u32 rows, train::UpdateReport* report) {
    __shared__ f64 shared[train::BLOCK_WARPS];
    train::sum_losses(losses, rows, *report, shared);
}

// One block per `train::SQUARED` numbers.
VZ_KERNEL square_gradient(VZ_BY_VALUE train::UpdateBlock args) {
    __shared__ f64 shared[train::BLOCK_WARPS];
    train::square_part(args, shared);
}

// One block.
VZ_KERNEL measure_gradient(VZ_BY_VALUE train::UpdateBlock args) {
    __shared__ f64 shared[train::BLOCK_WARPS];
    train::measure_gradient(args, shared);
}

VZ_KERNEL optimise(VZ_BY_VALUE train::UpdateBlock args) { train::optimise(args); }
