// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test
// that compares this file says how to write it.
#pragma once
#include "common.cuh"

namespace train {

// A number of the activations; format.cuh has the definition.
#if VZ_TRAIN_FORMAT == 0
typedef f32 Element;
#else
struct Element;
#endif
struct LinearShape; // operands.cuh

constexpr u32 BLOCK = 128u; // Threads of a block, but for those that make tiles of products.
constexpr int VEC = 8; // Numbers that a thread reads or writes at once; all arrays' rows are a multiple of it.
constexpr u32 NOWHERE = 0xFFFFFFFFu; // The absent index in a map.
constexpr int GROUP = 64; // Columns that one block sums.
constexpr int ROW_SLOTS = 16; // Rows that such a block reads at once.
constexpr int NUM_STATS = 6; // Statistics of every column of a normalisation.
constexpr int SUMS_PER_COLUMN = 2; // Sums of a column that a normalisation takes over a chunk of rows.
constexpr int NUM_SYNCED = 3; // Statistics of a column that devices exchange.
constexpr int NUM_LOSSES = 3; // Losses of a sample: cross-entropy, entropy of the target, squared error.
constexpr u32 SQUARED = 4096u; // Numbers of the gradient that one block squares.
constexpr u32 CHUNK = 32u; // Inputs of a chunk: a convolution takes all taps of a chunk before the next one. One or two steps.
constexpr int TILE_THREADS = 128; // Threads of a block that makes a tile of products.
constexpr int COPY_BYTES = 16; // Bytes of one copy to shared memory.
constexpr int COPIES_PER_STEP = 4; // Copies of a row in a step along K.
constexpr int STAGES = 3; // Steps in shared memory: one in use, the others being loaded.

constexpr f64 BN_EPS = 1e-5; // Added to the variance in every BatchNorm, as PyTorch's default.
constexpr f64 BN_MOMENTUM = 0.1; // Share of the new batch in BatchNorm's running statistics, as PyTorch's default.

// How a linear layer's input and output positions are linked.
enum class Connectivity : u32 {
    Pointwise = 0, // The same weights at every position: an output row reads the same input row.
    Conv3x3 = 1, // A 3x3 convolution with a border of zeros: nine taps read the neighbours on the board.
    Flatten = 2, // A linear layer on the flattened board: one output row per board, one tap per position.
    Spread = 3, // Its transpose: one input row per board; each output position has its own tap.
};

// A layer's sizes.
struct LinearShapeFields {
    Connectivity mode; // How its positions are linked.
    u32 height; // The board's.
    u32 width; // The board's.
    u32 taps; // Matrices.
    u32 inputs; // Rows of each matrix.
    u32 columns; // Columns of each matrix.
    u32 x_width; // Numbers in a row of the input.
    u32 x_offset; // Where in it the inputs begin.
    u32 out_width; // Numbers in a row of the output.
    u32 out_offset; // Where in it the columns go.
    u32 biases; // Columns that have a bias.
};
static_assert(sizeof(LinearShapeFields) == 44, "must equal the Rust struct");

// The parameters that change with every update; all other arguments of kernels are constant, so that launches can be captured.
struct Settings {
    f64 total_weight; // Weight of all samples.
    f64 clip; // Norm above which the gradient is scaled down to it; 0: off.
    f32 value_weight; // Weight of the values' loss.
    f32 loss_scale; // Factor of all gradients until they are applied.
    f32 rate; // Learning rate.
    f32 beta1; // AdamW's beta1.
    f32 beta2; // AdamW's beta2.
    f32 decay; // Weight decay.
    f32 first_correction; // AdamW's bias correction of the first moment.
    f32 second_correction; // AdamW's bias correction of the second moment.
    f32 epsilon; // AdamW's epsilon.
};
static_assert(sizeof(Settings) == 56, "must equal the Rust struct");

// The statistics of an update.
struct UpdateReport {
    f64 cross_entropy; // Weighted sum over samples.
    f64 target_entropy; // Weighted sum over samples.
    f64 squared_error; // Weighted sum over samples.
    f64 norm; // The gradient's norm before clipping.
    f64 factor; // What the gradient was multiplied by.
    f64 bad_weight; // 1 where a weight after the update is no finite number.
    f64 bad_moment; // The same for the optimiser's moments.
    f64 bad_statistic; // The same for the running statistics.
};
static_assert(sizeof(UpdateReport) == 64, "must equal the Rust struct");

// Where the logits of a board are in a row of the policy layer's outputs.
struct LogitLayout {
    u32 stride; // Numbers at one point, padding included.
    u32 planes; // Logits at one point, the first of its numbers. Those after them are logits by their means over the points.
    u32 points; // Points.
    // Rows of the board where actions are numbered by its columns, each from the last row; 0 where they are numbered by its rows.
    u32 column;
};
static_assert(sizeof(LogitLayout) == 16, "must equal the Rust struct");

// The parameter block of `sample_losses`: the targets of B samples, the network's outputs for them, and where the losses and
// their gradients go. Addresses are those on the device.
struct LossBlock {
    const Settings* settings; // One.
    const f32* target_policy; // 0 for illegal actions. `[B, A]`
    const u8* legal; // 1 for legal actions. `[B, A]`
    const f32* target_values; // `[B, P]`
    const f32* weight; // Weights of the samples. `[B]`
    const f32* logits; // The policy layer's outputs. `[B, logit_width]`
    const f32* values; // The value layer's outputs, of which the hyperbolic tangent is taken. `[B, value_width]`
    Element* d_logits; // Gradient of the logits. `[B, logit_width]`
    Element* d_values; // Gradient of the values. `[B, value_width]`
    f64* losses; // Cross-entropy, entropy of the target and squared error, times the sample's weight. `[B, 3]`
    u32 rows; // B.
    u32 actions; // A.
    u32 players; // P.
    u32 outputs; // Values of a sample that the network has: the first of a row.
    u32 logit_width; // Numbers in a row of the logits.
    LogitLayout layout; // Where the logits are in a row.
    u32 value_width; // Numbers in a row of the values.
};
static_assert(sizeof(LossBlock) == 120, "must equal the Rust struct");

// The activation function of a linear layer.
enum class Activation : u32 {
    Identity = 0, // None.
    Relu = 1, // max(0, x).
};

// A linear layer, forward, or backward to its input: `out = activation(x W + bias + residual)`, and 0 where `relu_mask` is not
// positive. Rows are those of the output.
struct LinearBlock {
    const LinearShape* shape; // One.
    const Element* x; // `[rows of the input, x_width]`
    const Element* weights; // `[taps * inputs, columns]`
    const f32* bias; // `[biases]`
    const Element* residual; // Added to the sums; may be `out`. `[rows, out_width]`, or 0
    const Element* relu_mask; // `[rows, out_width]`, or 0
    Element* out; // `[rows, out_width]`
    f32* outputs; // The outputs of a head, instead of `out`. `[rows, out_width]`
    u32 rows; // Rows.
    Activation activation; // The activation function.
};
static_assert(sizeof(LinearBlock) == 72, "must equal the Rust struct");

// The gradient of a layer's weights, as partial sums over ranges of rows.
struct WeightGradientBlock {
    const LinearShape* shape; // That of the layer's forward. One.
    const Element* x; // `[rows of the input, x_width]`
    const Element* dy; // Gradient of the output. `[rows, out_width]`
    f32* parts; // `[splits, taps * inputs, columns]`
    u32 rows; // Rows of the output.
    u32 splits; // Ranges of rows.
};
static_assert(sizeof(WeightGradientBlock) == 40, "must equal the Rust struct");

// A normalisation with its ReLU, forward and backward.
struct NormBlock {
    const Element* x; // The input. `[rows, width]`
    const Element* d; // The gradient of the ReLU's output. `[rows, width]`
    const Element* residual; // Added to the gradient of the input; may be `out`. `[rows, width]`, or 0
    Element* out; // The output, or the gradient of the input. `[rows, width]`
    f32* parts; // Sums over chunks of rows. `[chunks, SUMS_PER_COLUMN, width]`
    const u32* maps; // Indices of weight and bias in `parameters`, of running mean and variance in `running`. `[4, width]`
    const f32* parameters; // The flat parameters.
    f32* running; // The flat running statistics.
    f32* stats; // The statistics of this batch. `[NUM_STATS, width]`
    f64* sync_stats; // Sums of all devices, where there are several. `[devices, NUM_SYNCED, width]`
    f32* gradient; // The gradient of the flat parameters.
    UpdateReport* report; // One.
    u32 rows; // Rows.
    u32 chunk_rows; // Rows of a chunk.
    u32 width; // Columns.
    u32 device; // This device's index among all.
    u32 devices; // Devices.
};
static_assert(sizeof(NormBlock) == 120, "must equal the Rust struct");

// Which products around a triangle are summed.
enum class TriangleTerms : u32 {
    Forward = 0, // a (i, k) b (j, k): the forward.
    Backward = 1, // The same and b (i, k) a (j, k): with the output's gradient as a, the gradient of b.
};

// Message passing on K_n: sums at vertices, over the endpoints of edges, and over triangles. Rows are edges or vertices.
struct MessageBlock {
    const Element* a; // `[boards, edges or vertices, width]`
    const Element* b; // The second factor of triangles. `[boards, edges, width]`
    Element* out; // `[boards, edges or vertices, width]`
    u32 boards; // Boards.
    u32 vertices; // n.
    u32 width; // Elements of a row.
    u32 columns; // The first columns, which are mixed over triangles.
    f32 scale; // Factor of all sums.
    TriangleTerms terms; // Which products are summed.
};
static_assert(sizeof(MessageBlock) == 48, "must equal the Rust struct");

// The arrays of an update's first and last kernels: zeroed sums, the gradient's norm, the optimiser.
struct UpdateBlock {
    const Settings* settings; // One.
    const f32* from; // Parameters, first and second moments before the update. `[3, num_parameters]`
    f32* to; // The same after it. `[3, num_parameters]`
    const f32* decayed; // 1 for parameters with weight decay, 0 for others. `[num_parameters]`
    f32* gradient; // `[num_parameters]`
    f64* squares; // Sums of squares of the gradient's parts. `[num_parts]`
    const f32* old_statistics; // Running statistics before the update. `[num_statistics]`
    f32* new_statistics; // The same after it. `[num_statistics]`
    UpdateReport* report; // One.
    u32 num_parameters; // Parameters of the network.
    u32 num_statistics; // Running statistics of the network.
    u32 num_parts; // Parts of the gradient, of `SQUARED` numbers each.
};
static_assert(sizeof(UpdateBlock) == 88, "must equal the Rust struct");

} // namespace train
