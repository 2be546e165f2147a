//! Networks: arrays of observations in, arrays of logits and values out. Knows no trees, of games only
//! the shape of an observation, and of players only that values are in seats relative to the observer.
//!
//! [`Network`] is what search calls. [`UniformNet`] and [`HashNet`] need no weights: the first leaves search as the only
//! work, the second gives every observation its own reproducible outputs, for tests of whole searches.

mod network; // the interface of networks
pub mod reference; // every layer in 64-bit floats: the truth in tests
#[cfg(feature = "candle")]
pub mod candle; // every layer on a device of candle, forward and by autograd
#[cfg(feature = "candle")]
mod candle_layers; // the layers as candle's operations
#[cfg(not(feature = "candle"))]
#[path = "no_candle.rs"]
pub mod candle;
pub mod number; // f32 and bfloat16 in memory
pub(crate) mod edge_messages; // messages between the edges of K_n
mod register_tile; // the micro-kernel of matrix products
mod bf16_products; // its products of bf16 pairs
#[cfg(target_arch = "x86_64")]
mod amx_tile; // instructions on AMX tiles
pub mod cpu_train; // fused training passes
pub mod cpu; // the fused CPU forward
pub mod gpu; // the fused forward on a GPU
pub mod gpu_train; // fused training passes on a GPU
pub mod double_buffer; // two alternating batches
mod split_batch; // one batch, divided over threads

pub use crate::model::{IoShape, NetSpec, Weights};
pub use candle::CandleNet;
pub use double_buffer::DoubleBufferedNetwork;
pub use network::{HashNet, Network, NetworkDesc, UniformNet};
pub use split_batch::SplitBatch;

#[cfg(test)]
#[cfg(feature = "candle")]
pub(crate) mod tests;
