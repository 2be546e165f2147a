//! The training step's arithmetic on CPU: fused forward and backward passes of the candle networks.
//!
//! In: parameters as flat arrays, observations, gradients of the outputs. Out: outputs, gradients of the parameters.
//! Knows nothing of losses, optimisers or games. The candle modules are the truth; the tests hold these passes to their
//! outputs and to their gradients by autograd.
//!
//! Every layer with weights is one kind of operation, [`Geometry`] says which input positions reach which output
//! position through which tap: a 3x3 convolution has nine taps, a 1x1 convolution one, a linear layer on a flattened
//! board one for each position. Activations lie position-major in chunks of boards, `[chunks, positions, boards of the
//! chunk, width]` with the width padded to a multiple of 16, so each (position, tap) is a plain matrix product and a
//! chunk stays in a core's second-level cache from the normalisation to the moments of the next one. What passes between
//! edges over shared vertices stands beside a layer, as a `Message`.
//!
//! Chunks are summed in order inside a fixed number of pieces, pieces in order after them: the result does not depend
//! on the number of threads.

mod backward;
mod gemm;
mod geometry;
mod layer;
mod message;
mod norm;
mod split;
mod tower;

pub use tower::{Outputs, Tower};

#[cfg(test)]
mod tests;
