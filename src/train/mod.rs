//! The training step: a batch in, new weights out.
//!
//! Knows networks as flat parameters and batches as arrays; never sees a tree or a file, nor a game, except that a GPU's copy of the
//! replay buffer (`device`) has the game's kernels make observations. A step is a function of
//! the trainer's state and the batch alone, to the bit, whatever the number of threads.

mod batch_check; // a batch against its network
#[cfg(feature = "candle")]
mod candle_pass; // a pass by candle's autograd
#[cfg(not(feature = "candle"))]
#[path = "no_candle_pass.rs"]
mod candle_pass;
pub mod device; // the same on a GPU
mod loss; // losses and their gradients
mod losses; // those of an update, as it reports them
mod optimizer;
mod pass; // forward and backward by an executor
mod state; // all that a trainer keeps
mod trainer; // a network in training

pub use crate::replay::{TargetColumns, TrainBatch};
pub use losses::{HeadLoss, Losses};
pub use optimizer::learning_rate;
pub use trainer::Trainer;

#[cfg(test)]
mod tests;
