//! The network's own kernels: stem, tower and heads, one launch a layer, on tensor cores where the device has them.
//! `kernels/net.cu` and `kernels/net/` are the sources.
//!
//! [`DeviceForward`] owns the packed weights and all activations. A forward allocates nothing, copies nothing and does not wait for
//! the device, so that it can be captured in a graph; new weights overwrite the old ones in place. Logits and values of a board
//! are the same to the bit in any slot of any batch.

pub mod network; // a network whose input and output stay on a device
pub mod network_need; // the memory that it needs
mod open; // a network on a GPU
mod element_type;
mod tile; // the tiles of a layer and their computed cost
mod layer; // one layer's kernel
mod layers; // all layers of a network
pub(crate) mod slot_order; // whether compacting slots lowers the cost
#[cfg(test)]
mod generated;
#[cfg(test)]
mod tests;
mod program; // the program of its kernels
mod peak; // the program that measures the peak rate
mod board_range; // boards that go through it together
mod forward_plan; // a network before it is on a device
mod device_forward; // a network on a device
mod pack; // weights as the kernels read them
pub(crate) mod blocks; // parameter blocks of the kernels
mod edge_graph; // the sizes of an edge network
mod edge; // vertices and heads of an edge network
mod evaluator; // for callers on the host
mod double_buffer; // for callers on the host that prepare one batch while another is evaluated

pub use device_forward::DeviceForward;
pub use element_type::{Arithmetic, ElementType, MatrixInstruction};
pub use evaluator::DeviceEvaluator;
pub use forward_plan::ForwardPlan;
pub use layer::{ForwardLayer, LayerSpec, padded_channels};
pub use open::cuda_network;
pub use peak::{PEAK_BLOCK, PEAK_PRODUCTS, peak_program};
pub use program::program;
