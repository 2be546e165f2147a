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

constexpr u32 BLOCK = 128u; // Threads of a block, but for those that make tiles of products.
constexpr int VEC = 8; // Numbers that a thread reads or writes at once; all arrays' rows are a multiple of it.
constexpr u32 NOWHERE = 4294967295u; // The absent index in a map.
constexpr int GROUP = 64; // Columns that one block sums.
constexpr int ROW_SLOTS = 16; // Rows that such a block reads at once.
constexpr int NUM_STATS = 6; // Statistics of every column of a normalisation.
constexpr u32 SQUARED = 4096u; // Numbers of the gradient that one block squares.
constexpr u32 CHUNK = 32u; // Inputs of a chunk: a convolution takes all taps of a chunk before the next one. One or two steps.
constexpr int TILE_THREADS = 128; // Threads of a block that makes a tile of products.
constexpr int COPY_BYTES = 16; // Bytes of one copy to shared memory.
constexpr int COPIES_PER_STEP = 4; // Copies of a row in a step along K.
constexpr int STAGES = 3; // Steps in shared memory: one in use, the others being loaded.

constexpr f64 BN_EPS = 1e-5; // Added to the variance in every BatchNorm, as PyTorch's default.
constexpr f64 BN_MOMENTUM = 0.1; // Share of the new batch in BatchNorm's running statistics, as PyTorch's default.

// How a layer's input and output positions are linked.
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
    u32 adamw; // 1: AdamW; 0: SGD.
    f32 rate; // Learning rate.
    f32 momentum; // Momentum, or AdamW's beta1.
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
    u32 logit_stride; // Logit i of a row is at i * `logit_stride`.
    u32 value_width; // Numbers in a row of the values.
};
static_assert(sizeof(LossBlock) == 112, "must equal the Rust struct");

} // namespace train
