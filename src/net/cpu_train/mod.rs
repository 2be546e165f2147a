//! The training step's arithmetic on CPU: fused forward and backward passes of a [`Tower`](crate::model::Tower), which a [`CpuTrainNet`] runs.
//!
//! In: parameters as flat arrays, observations, gradients of the outputs. Out: outputs, gradients of the parameters.
//! Knows no losses, optimisers or games. The tests compare outputs and gradients with candle's, the latter by autograd.
//!
//! Every layer with weights is one kind of operation: its `TapMap` lists which input positions are connected to which output
//! positions by which tap. A 3x3 convolution has nine taps, a 1x1 convolution one, a linear layer on a flattened board one for each
//! position. Activations are position-major in chunks of boards, `[chunks, positions, boards of the chunk, width]`, with the width
//! padded to a multiple of 16. So each (position, tap) is a plain matrix product, and a chunk stays in the L2 cache from one
//! normalisation to the moments of the next. Messages between edges over shared vertices are added to a layer's output as a `LayerMessage`.
//!
//! The products of the tower's layers may take their operands in bf16 ([`Operands`]): what they multiply is rounded, chunk by chunk, before each of
//! the three products of a layer (forward, gradient of the input, gradient of the weights). Stem and heads, which have a small part of the products, stay in f32.
//! AMX multiplies bf16 in tiles.
//!
//! Sums are added over chunks in order within a fixed number of partitions, then over partitions in order: the result does not depend
//! on the number of threads.

#[cfg(target_arch = "x86_64")]
mod amx;
mod backward;
mod gemm;
mod gemm_kernels;
mod head;
mod layer;
mod message;
mod norm;
mod operands;
mod preact_layer;
mod split;
mod tap_map;
mod tower;
#[cfg(target_arch = "x86_64")]
mod transpose;
mod view;

pub use operands::Operands;
pub use split::MAX_PARTITIONS;
pub use tower::{CpuTrainNet, Outputs};

#[cfg(test)]
#[cfg(feature = "candle")]
mod tests;
