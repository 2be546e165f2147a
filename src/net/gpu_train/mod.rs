//! The training passes of every network as kernels (`kernels/train.cu`): forward and backward on a device. Observations and targets come in,
//! logits, values and gradients go out; losses and the optimiser are those of training. The passes of [`super::cpu_train`] are the truth.

pub(crate) mod constants; // shared with the kernels
pub mod blocks; // parameter blocks of the kernels
pub(crate) mod layers; // the layers of a network in training
pub(crate) mod logits; // where the logits are in a row
mod tiling; // the tiles of a product
pub(crate) mod arrays; // the arrays of a pass
pub(crate) mod process_group; // the communicator of the devices
pub(crate) mod passes; // forward and backward
mod graph; // message passing of an edge network

pub use arrays::Samples;
pub use layers::{LinearShape, TrainLayer, TrainLayers, check_heads};
pub use logits::LogitLayout;
pub use tiling::Tiling;
