// The kernels of a training update, launched by src/train/device. They depend on no game.
#include "train/graph.cuh"
#include "train/linear.cuh"
#include "train/norm.cuh"
#include "train/optimizer.cuh"
#include "train/pooling.cuh"

// Zeroes gradient [count] and the report, and copies `statistics` to next [num_statistics].
VZ_KERNEL begin_update(f32* gradient, u32 count, const f32* statistics, f32* next, u32 num_statistics, train::UpdateReport* report) {
    for (u32 i = (u32)thread_in_grid(); i < count; i += train::threads_in_grid()) gradient[i] = 0.0f;
    for (u32 i = (u32)thread_in_grid(); i < num_statistics; i += train::threads_in_grid()) next[i] = statistics[i];
    if (thread_in_grid() == 0) *report = train::UpdateReport{};
}

// Packs the weights for products: out[i] is parameter map[i], or 0 if map[i] is NOWHERE.
VZ_KERNEL pack_weights(const f32* parameters, const u32* map, u64 count, train::Element* out) {
    for (u64 i = (u64)thread_in_grid() * train::VEC; i < count; i += (u64)train::threads_in_grid() * train::VEC) {
        train::Vector v;
        for (int j = 0; j < train::VEC; j++) {
            const u32 at = map[i + j];
            v.x[j] = train::narrow<train::Element>(at == train::NOWHERE ? 0.0f : parameters[at]);
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
            v.x[j] = train::narrow<train::Element>(first + j < channels ? board[(u64)(first + j) * area] : 0.0f);
        }
        train::store(out + i * train::VEC, v);
    }
}

// Each product has three tile shapes; src/train/device/tiling.rs chooses one per launch.

// A layer's forward, with the residual if `has_residual`.
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_forward_wide(
    const train::LinearShape* shape, u32 rows, const train::Element* x, const train::Element* weights, const f32* bias,
    const train::Element* residual, u32 has_residual, u32 relu, train::Element* out
) {
    const train::Epilogue epilogue = {bias, has_residual ? residual : nullptr, nullptr, relu ? 0.0f : train::no_minimum()};
    train::product<train::Wide>(*shape, rows, x, weights, epilogue, out);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_forward_tall(
    const train::LinearShape* shape, u32 rows, const train::Element* x, const train::Element* weights, const f32* bias,
    const train::Element* residual, u32 has_residual, u32 relu, train::Element* out
) {
    const train::Epilogue epilogue = {bias, has_residual ? residual : nullptr, nullptr, relu ? 0.0f : train::no_minimum()};
    train::product<train::Tall>(*shape, rows, x, weights, epilogue, out);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_forward_narrow(
    const train::LinearShape* shape, u32 rows, const train::Element* x, const train::Element* weights, const f32* bias,
    const train::Element* residual, u32 has_residual, u32 relu, train::Element* out
) {
    const train::Epilogue epilogue = {bias, has_residual ? residual : nullptr, nullptr, relu ? 0.0f : train::no_minimum()};
    train::product<train::Narrow>(*shape, rows, x, weights, epilogue, out);
}

// A head's forward with f32 outputs, for the losses.
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_outputs(
    const train::LinearShape* shape, u32 rows, const train::Element* x, const train::Element* weights, const f32* bias, f32* out
) {
    const train::Epilogue epilogue = {bias, nullptr, nullptr, train::no_minimum()};
    train::product<train::Narrow>(*shape, rows, x, weights, epilogue, out);
}

// A layer's backward: dx = dy W^T, added to dx if `adds`, and 0 where `relu_mask` is not positive if `has_relu_mask`.
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_backward_wide(
    const train::LinearShape* shape, u32 rows, const train::Element* dy, const train::Element* weights, u32 adds,
    const train::Element* relu_mask, u32 has_relu_mask, train::Element* dx
) {
    const train::Epilogue epilogue = {nullptr, adds ? dx : nullptr, has_relu_mask ? relu_mask : nullptr, train::no_minimum()};
    train::product<train::Wide>(*shape, rows, dy, weights, epilogue, dx);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_backward_tall(
    const train::LinearShape* shape, u32 rows, const train::Element* dy, const train::Element* weights, u32 adds,
    const train::Element* relu_mask, u32 has_relu_mask, train::Element* dx
) {
    const train::Epilogue epilogue = {nullptr, adds ? dx : nullptr, has_relu_mask ? relu_mask : nullptr, train::no_minimum()};
    train::product<train::Tall>(*shape, rows, dy, weights, epilogue, dx);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_backward_narrow(
    const train::LinearShape* shape, u32 rows, const train::Element* dy, const train::Element* weights, u32 adds,
    const train::Element* relu_mask, u32 has_relu_mask, train::Element* dx
) {
    const train::Epilogue epilogue = {nullptr, adds ? dx : nullptr, has_relu_mask ? relu_mask : nullptr, train::no_minimum()};
    train::product<train::Narrow>(*shape, rows, dy, weights, epilogue, dx);
}

// Partial sums of the gradient of a layer's weights. `shape` is that of its forward.
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_gradient_wide(
    const train::LinearShape* shape, u32 rows, u32 splits, const train::Element* x, const train::Element* dy, f32* parts
) {
    train::weight_gradient<train::Wide>(*shape, rows, splits, x, dy, parts);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_gradient_tall(
    const train::LinearShape* shape, u32 rows, u32 splits, const train::Element* x, const train::Element* dy, f32* parts
) {
    train::weight_gradient<train::Tall>(*shape, rows, splits, x, dy, parts);
}
VZ_BLOCK_KERNEL(train::TILE_THREADS) linear_gradient_narrow(
    const train::LinearShape* shape, u32 rows, u32 splits, const train::Element* x, const train::Element* dy, f32* parts
) {
    train::weight_gradient<train::Narrow>(*shape, rows, splits, x, dy, parts);
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

VZ_KERNEL norm_moments(const train::Element* x, u32 rows, u32 chunk_rows, u32 width, f32* parts) {
    __shared__ f32 shared[train::ROW_SLOTS][train::GROUP];
    __shared__ f32 means[train::GROUP];
    train::moments(x, rows, chunk_rows, width, parts, shared, means);
}

// One warp per column.
VZ_KERNEL norm_prepare(
    u32 width, u32 rows, u32 chunk_rows, const f32* parts, const u32* maps, const f32* parameters, f32* statistics, f32* stats,
    train::UpdateReport* report
) {
    const u32 column = (u32)(thread_in_grid() / 32);
    if (column >= width) return;
    const train::Moments all = train::moments_of(column, width, rows, chunk_rows, parts);
    if (threadIdx.x % 32 != 0) return;
    train::prepare_norm(column, width, all, maps, parameters, statistics, stats);
    train::check_statistics(column, width, maps, statistics, *report);
}

// `norm_prepare` on several devices: two kernels with an all-reduce of `sync_stats` [devices, 3, width] between them. The first has one
// warp per column and writes this device's moments; the second has one thread per column and joins those of all devices.
VZ_KERNEL norm_local_moments(u32 width, u32 rows, u32 chunk_rows, const f32* parts, u32 own, u32 devices, f64* sync_stats) {
    const u32 column = (u32)(thread_in_grid() / 32);
    if (column >= width) return;
    const train::Moments here = train::moments_of(column, width, rows, chunk_rows, parts);
    if (threadIdx.x % 32 != 0) return;
    train::SyncStats{sync_stats, width, devices}.write(own, column, here.count, here.mean, here.square);
}
VZ_KERNEL norm_prepare_synced(
    u32 width, f64* sync_stats, u32 devices, const u32* maps, const f32* parameters, f32* statistics, f32* stats,
    train::UpdateReport* report
) {
    const u32 column = (u32)thread_in_grid();
    if (column >= width) return;
    const train::Moments all = train::synced_moments(train::SyncStats{sync_stats, width, devices}, column);
    train::prepare_norm(column, width, all, maps, parameters, statistics, stats);
    train::check_statistics(column, width, maps, statistics, *report);
}

VZ_KERNEL norm_relu(const train::Element* x, u32 rows, u32 width, const f32* stats, train::Element* out) {
    train::normalise_relu(x, rows, width, stats, out);
}

// `d` is the gradient behind the ReLU or, if `masked`, before it; so in `norm_gradient`.
VZ_KERNEL norm_gradient_sums(
    const train::Element* x, const train::Element* d, u32 rows, u32 chunk_rows, u32 width, const f32* stats, u32 masked, f32* parts
) {
    __shared__ f32 shared[train::ROW_SLOTS][train::GROUP];
    train::gradient_sums(x, d, rows, chunk_rows, width, stats, masked, parts, shared);
}

// One warp per column.
VZ_KERNEL norm_gradient_prepare(
    u32 width, u32 rows, u32 chunk_rows, const f32* parts, const u32* maps, f32* stats, f32* gradient
) {
    const u32 column = (u32)(thread_in_grid() / 32);
    if (column >= width) return;
    const train::GradientSums all = train::gradient_sums_of(column, width, rows, chunk_rows, parts);
    if (threadIdx.x % 32 == 0) train::prepare_norm_gradient(column, width, all, all, maps, stats, gradient);
}

// `norm_gradient_prepare` on several devices, as `norm_local_moments` and `norm_prepare_synced`.
VZ_KERNEL norm_local_gradient_sums(u32 width, u32 rows, u32 chunk_rows, const f32* parts, u32 own, u32 devices, f64* sync_stats) {
    const u32 column = (u32)(thread_in_grid() / 32);
    if (column >= width) return;
    const train::GradientSums here = train::gradient_sums_of(column, width, rows, chunk_rows, parts);
    if (threadIdx.x % 32 != 0) return;
    train::SyncStats{sync_stats, width, devices}.write(own, column, here.count, here.sum, here.product);
}
VZ_KERNEL norm_gradient_prepare_synced(
    u32 width, f64* sync_stats, u32 own, u32 devices, const u32* maps, f32* stats, f32* gradient
) {
    const u32 column = (u32)thread_in_grid();
    if (column >= width) return;
    const train::SyncStats all = {sync_stats, width, devices};
    const train::GradientSums here = train::synced_gradient_sums(all, own, column);
    train::prepare_norm_gradient(column, width, train::synced_gradient_sums(all, column), here, maps, stats, gradient);
}

// Adds the residual stream's gradient if `has_residual`.
VZ_KERNEL norm_gradient(
    const train::Element* x, const train::Element* d, u32 rows, u32 width, const f32* stats, u32 masked,
    const train::Element* residual, u32 has_residual, train::Element* out
) {
    train::input_gradient(x, d, rows, width, stats, masked, has_residual ? residual : nullptr, out);
}

VZ_KERNEL vertex_sums(const train::Element* x, u32 boards, u32 vertices, u32 width, f32 scale, train::Element* out) {
    train::vertex_sums(x, boards, train::Graph{vertices}, width, scale, out);
}

VZ_KERNEL sums_of_ends(const train::Element* x, u32 boards, u32 vertices, u32 width, f32 scale, train::Element* out) {
    train::sums_of_ends(x, boards, train::Graph{vertices}, width, scale, out);
}

VZ_KERNEL around_triangles(
    const train::Element* a, const train::Element* b, u32 both, u32 boards, u32 vertices, u32 width, u32 columns, f32 scale,
    train::Element* out
) {
    train::around_triangles(a, b, both, boards, train::Graph{vertices}, width, columns, scale, out);
}

VZ_KERNEL means(const train::Element* x, u32 boards, u32 area, u32 width, train::Element* out) {
    train::means(x, boards, area, width, out);
}

VZ_KERNEL spread_means(const train::Element* d, u32 boards, u32 area, u32 width, train::Element* out) {
    train::spread_means(d, boards, area, width, out);
}

// The kernels of pooling layers have one block a board, but for those over all rows and parameters.
VZ_KERNEL pool_forward(
    const pooling::PoolingBlock layer, const train::Element* x, const f32* stats, u32 has_stats, const f32* params, f32* scratch
) {
    train::pool_forward(layer, x, has_stats ? stats : nullptr, params, scratch);
}

VZ_KERNEL norm_bias_relu(
    const pooling::PoolingBlock layer, const train::Element* x, u32 boards, const f32* stats, f32* scratch, train::Element* active
) {
    train::norm_bias_relu(layer, x, boards, stats, scratch, active);
}

VZ_KERNEL scale_add(
    const pooling::PoolingBlock layer, const train::Element* x, u32 boards, f32* scratch, const train::Element* residual, train::Element* out
) {
    train::scale_add(layer, x, boards, scratch, residual, out);
}

VZ_KERNEL bias_backward(
    const pooling::PoolingBlock layer, const train::Element* active, const f32* params, f32* scratch, train::Element* d
) {
    train::bias_backward(layer, active, params, scratch, d);
}

VZ_KERNEL scale_backward(
    const pooling::PoolingBlock layer, const train::Element* x, const train::Element* d, const f32* params, f32* scratch, train::Element* dx
) {
    train::scale_backward(layer, x, d, params, scratch, dx);
}

VZ_KERNEL pool_weight_gradient(const pooling::PoolingBlock layer, u32 boards, f32* scratch, f32* gradient) {
    train::pool_weight_gradient(layer, boards, scratch, gradient);
}

// One warp per sample.
VZ_KERNEL sample_losses(VZ_BY_VALUE train::LossBlock args) {
    const u32 row = (u32)(thread_in_grid() / 32);
    if (row < args.rows) train::losses_of(args, row);
}

// One block.
VZ_KERNEL sum_losses(const f64* losses, u32 rows, train::UpdateReport* report) {
    __shared__ f64 shared[32];
    train::sum_losses(losses, rows, *report, shared);
}

// One block per `train::SQUARED` numbers.
VZ_KERNEL square_gradient(const f32* gradient, u32 count, f64* parts) {
    __shared__ f64 shared[32];
    train::square_part(gradient, count, parts, shared);
}

// One block.
VZ_KERNEL measure_gradient(const train::Settings* settings, const f64* parts, u32 count, train::UpdateReport* report) {
    __shared__ f64 shared[32];
    train::measure_gradient(*settings, parts, count, *report, shared);
}

VZ_KERNEL optimise(
    const train::Settings* settings, u32 count, const f32* from, const f32* gradient, const f32* decayed, f32* to,
    train::UpdateReport* report
) {
    train::optimise(*settings, count, from, gradient, decayed, to, *report);
}
