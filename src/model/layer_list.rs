//! The list of layers, and what is read from it directly.

use super::head::Head;
use super::kind::{ActivationShape, LayerKind};
use super::param::Param;
use crate::game::Sizes;
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

impl IoShape {
    /// The input and output of a network for games of these sizes.
    pub fn of(sizes: &Sizes) -> Self {
        Self { obs_len: sizes.obs.len(), num_actions: sizes.num_actions, num_players: sizes.num_players }
    }
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
