//! A network as a list of layers: the one description from which everything about it is read.
//!
//! [`NetSpec`], the configuration's sizes, becomes a [`Model`] by one short function per architecture (`architectures.rs`). From the
//! list alone come names, shapes and order of the parameters, first weights, BatchNorm folding, multiply-adds, the memory
//! plan, the description in exported files, and the layers that the executors in [`crate::net`] run.
//!
//! In: sizes. Out: layers and their parameters. Knows no executor and no file, and of a game only its sizes, which
//! of its actions are points of the board, and its targets.

mod architectures; // the networks: one function each
mod builder; // adds layers to a list
mod head; // heads: role, target, loss and weight of an output
mod layer_list; // the list itself
mod model_heads; // the heads of a network, and the layers that they need
mod batch_norm; // its constants
mod complete_graph; // the edges of K_n
mod kind; // kinds of layer: parameters, shape and multiply-adds
mod point_logits; // from channels at points to logits
mod role; // roles of parameters: first values, gradients, weight decay
mod param; // one parameter
mod params; // all of them, by name and in flat arrays
mod tower; // the normal form of fused executors
pub(crate) mod folded; // its layers in inference: BatchNorm folded in
mod train_tower; // its layers in training: pre-activation layers
mod spec; // the sizes that a configuration gives
mod array; // named arrays
mod weights; // named arrays: first weights, checks

pub use array::{Array, Weights};
#[cfg(test)]
pub(crate) use batch_norm::device_constants;
pub use batch_norm::{BN_EPS, BN_MOMENTUM};
pub use complete_graph::{CompleteGraph, MAX_VERTICES};
pub use head::{Head, HeadRole, Loss, POLICY, SAMPLE_TARGETS, VALUES};
pub use kind::{ActivationShape, LayerKind, ValueFunction, taps_on_board};
pub use layer_list::{IoShape, Layer, Model};
pub use param::Param;
pub use point_logits::PointLogits;
pub use role::{Gain, Role};
pub use spec::NetSpec;
pub use tower::{AuxiliaryHead, HeadConv, ResidualBlock, ResidualGrad, Tower};
pub use train_tower::{
    Connectivity, HeadInput, HeadOutput, PreActivation, Residual, TrainHead, TrainLinear, TrainMessage,
    TrainTower,
};

#[cfg(test)]
mod tests;
