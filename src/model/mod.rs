//! A network as a list of layers: the one description from which everything about it is read.
//!
//! [`NetSpec`], the configuration's sizes, becomes a [`Model`] by one short function per architecture (`architectures.rs`). From the
//! list alone come names, shapes and order of the parameters, first weights, BatchNorm folding, multiply-adds, the memory
//! plan, the description in exported files, and the layers that the executors in [`crate::net`] run.
//!
//! In: sizes. Out: layers and their parameters. Knows no executor and no file, and of a game only the shape of its observations.

mod architectures; // the networks: one function each
mod builder; // adds layers to a list
mod head; // heads: role, target, loss and weight of an output
mod complete_graph; // the edges of K_n
mod kind; // kinds of layer: parameters, shape and multiply-adds
mod pooling; // a bias or scale of each channel from a whole board
mod role; // roles of parameters: first values, gradients, weight decay
mod params; // parameters: names, roles, places in flat arrays
mod tower; // the normal form of fused executors
pub(crate) mod folded; // its layers in inference: BatchNorm folded in
mod train_tower; // its layers in training: pre-activation layers
mod spec; // the sizes that a configuration gives
mod array; // named arrays
mod weights; // named arrays: first weights, checks

pub use array::{Array, Weights};
pub use complete_graph::{CompleteGraph, MAX_VERTICES};
pub use head::{Head, HeadRole, Loss, POLICY, SAMPLE_TARGETS, VALUES};
pub use kind::{ActivationShape, LayerKind, ValueFunction, taps_on_board};
pub use params::Param;
pub use pooling::{ChannelEffect, GlobalPooling, PoolStatistics, board_factor};
pub use role::{Gain, Role};
pub use spec::NetSpec;
pub use tower::{AuxiliaryHead, HeadConv, ResidualBlock, ResidualGrad, Tower};
pub use train_tower::{
    Connectivity, HeadInput, HeadOutput, PreActivation, Residual, TrainHead, TrainLinear, TrainMessage,
    TrainTower,
};

use crate::device_struct::device_constants;
use crate::error::Result;
use serde::Serialize;
use std::ops::Range;

/// Sizes of a network's input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoShape {
    /// F: elements of one observation.
    pub obs_len: usize,
    /// A: logits.
    pub num_actions: usize,
    /// P: values.
    pub num_players: usize,
}

device_constants! {
    fn device_constants;
    /// Added to the variance in every BatchNorm, as PyTorch's default.
    pub const BN_EPS: f64 = 1e-5;
    /// Share of the new batch in BatchNorm's running statistics, as PyTorch's default.
    pub const BN_MOMENTUM: f64 = 0.1;
}

/// One layer: its kind, its inputs and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// The prefix of its parameters' names; empty where it has none.
    pub name: String,
    /// The kind.
    #[serde(flatten)]
    pub kind: LayerKind,
    /// The layers that it reads, by their index in [`Model::layers`].
    pub inputs: Vec<usize>,
    /// The shape of its output.
    pub shape: ActivationShape,
    /// Its parameters among [`Model::params`].
    #[serde(skip)]
    pub params: Range<usize>,
}

/// A network: layers in an order in which each reads only earlier ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// All layers; the first is the observation.
    pub layers: Vec<Layer>,
    /// All parameters, layer by layer.
    #[serde(skip)]
    pub params: Vec<Param>,
    /// The heads: policy, value, then those that only training uses.
    pub heads: Vec<Head>,
    /// P: players. Where V is 1 and P is 2, one value v stands for (v, -v).
    pub num_players: usize,
}

impl Model {
    /// The network that `spec` describes.
    ///
    /// # Errors
    /// [`crate::Error::Config`] for an edge network on anything but the edges of a complete graph, [`crate::Error::Mismatch`]
    /// where one value is to stand for more or fewer than two players.
    pub fn new(spec: &NetSpec) -> Result<Self> {
        architectures::build(spec)
    }

    /// Sizes of the input and output.
    pub fn io(&self) -> IoShape {
        IoShape { obs_len: self.obs().len(), num_actions: self.num_actions(), num_players: self.num_players }
    }

    /// The shape of an observation.
    pub fn obs(&self) -> ActivationShape {
        self.layers[0].shape
    }

    /// Channels that layer `index` puts out.
    pub fn outputs(&self, index: usize) -> usize {
        self.layers[index].shape.channels()
    }

    /// A: logits.
    pub fn num_actions(&self) -> usize {
        self.layers[self.policy()].shape.len()
    }

    /// V: outputs of the value head, 1 or P.
    pub fn num_values(&self) -> usize {
        self.layers[self.value()].shape.len()
    }

    /// The sizes and form of layer `index`, where it is a pooling layer.
    pub fn pooling(&self, index: usize) -> Option<GlobalPooling> {
        let Layer { kind, inputs, .. } = &self.layers[index];
        kind.pooling(self.layers[*inputs.first()?].shape)
    }

    /// The shapes of the inputs of layer `index`.
    pub fn input_shapes(&self, index: usize) -> Vec<ActivationShape> {
        self.layers[index].inputs.iter().map(|&input| self.layers[input].shape).collect()
    }

    /// Multiply-adds of layer `index` for one observation. Taps of a convolution off the board do not count.
    pub fn layer_multiply_adds(&self, index: usize) -> usize {
        let Layer { kind, shape, .. } = &self.layers[index];
        kind.multiply_adds(&self.input_shapes(index), *shape)
    }

    /// Multiply-adds of one observation's forward pass in training: those of all layers.
    pub fn multiply_adds(&self) -> usize {
        (0..self.layers.len()).map(|index| self.layer_multiply_adds(index)).sum()
    }

    /// Multiply-adds of one observation's forward pass in play, without the heads that only training uses.
    pub fn multiply_adds_in_play(&self) -> usize {
        let layers = self.layers_in_play().into_iter().enumerate().filter(|(_, needed)| *needed);
        layers.map(|(index, _)| self.layer_multiply_adds(index)).sum()
    }

    /// Output elements of all layers with matrices for one observation: the activations that a training pass keeps.
    pub fn activations(&self) -> usize {
        let has_matrix =
            |layer: &&Layer| self.params[layer.params.clone()].iter().any(|param| param.role.decays());
        self.layers.iter().filter(has_matrix).map(|layer| layer.shape.len()).sum()
    }
}

#[cfg(test)]
mod tests;
