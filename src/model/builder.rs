//! Adds layers to a list, and numbers their parameters.

use super::kind::{ActivationShape, LayerKind};
use super::params::{FlatRanges, Param};
use super::role::Gain;
use super::{Layer, Model};

/// A model being built. Each method adds a layer and gives its index.
#[derive(Default)]
pub struct ModelBuilder {
    layers: Vec<Layer>,
    params: Vec<Param>,
    places: FlatRanges,
}

impl ModelBuilder {
    /// A list that begins with the observation.
    pub fn new(obs: ActivationShape) -> Self {
        let input =
            Layer { name: String::new(), kind: LayerKind::Input, inputs: vec![], shape: obs, params: 0..0 };
        Self { layers: vec![input], ..Self::default() }
    }

    /// A layer of `kind` called `name` that reads `inputs`.
    ///
    /// # Panics
    /// If the kind does not take inputs of these shapes; the functions in `architectures.rs` combine only shapes that fit.
    pub fn layer(&mut self, name: impl Into<String>, kind: LayerKind, inputs: &[usize]) -> usize {
        let shapes: Vec<ActivationShape> = inputs.iter().map(|&input| self.layers[input].shape).collect();
        let shape =
            kind.output(&shapes).unwrap_or_else(|| panic!("{} does not read {shapes:?}", kind.name()));
        let (name, first) = (name.into(), self.params.len());
        for (part, shape, role) in kind.params(&shapes) {
            let range = self.places.take(role, &shape);
            self.params.push(Param { name: format!("{name}.{part}"), shape, role, range });
        }
        let params = first..self.params.len();
        self.layers.push(Layer { name, kind, inputs: inputs.to_vec(), shape, params });
        self.layers.len() - 1
    }

    /// A 3x3 convolution.
    pub fn conv3x3(&mut self, name: impl Into<String>, x: usize, outputs: usize) -> usize {
        self.layer(name, LayerKind::Conv3x3 { outputs }, &[x])
    }

    /// The same weights at every position.
    pub fn conv1x1(&mut self, name: impl Into<String>, x: usize, outputs: usize) -> usize {
        self.layer(name, LayerKind::Conv1x1 { outputs, gain: Gain::Hidden }, &[x])
    }

    /// A linear layer.
    pub fn linear(&mut self, name: impl Into<String>, x: usize, outputs: usize) -> usize {
        self.layer(name, LayerKind::Linear { outputs, gain: Gain::Hidden }, &[x])
    }

    /// BatchNorm and ReLU.
    pub fn norm_relu(&mut self, name: impl Into<String>, x: usize) -> usize {
        let x = self.layer(name, LayerKind::BatchNorm, &[x]);
        self.layer("", LayerKind::Relu, &[x])
    }

    /// A residual sum.
    pub fn add(&mut self, x: usize, y: usize) -> usize {
        self.layer("", LayerKind::Add, &[x, y])
    }

    /// All elements as a vector.
    pub fn flatten(&mut self, x: usize) -> usize {
        self.layer("", LayerKind::Flatten, &[x])
    }

    /// Logits, one for each action, from a vector.
    pub fn logits(&mut self, x: usize, num_actions: usize) -> usize {
        self.layer("policy.linear", LayerKind::Linear { outputs: num_actions, gain: Gain::Output }, &[x])
    }

    /// The value head on a vector: a hidden layer, and `outputs` values in (-1, 1).
    pub fn values(&mut self, x: usize, hidden: usize, outputs: usize) -> usize {
        let x = self.linear("value.hidden", x, hidden);
        let x = self.layer("", LayerKind::Relu, &[x]);
        let x = self.layer("value.out", LayerKind::Linear { outputs, gain: Gain::Output }, &[x]);
        self.layer("", LayerKind::Tanh, &[x])
    }

    /// The model with these heads.
    pub fn build(self, policy: usize, value: usize, num_players: usize) -> Model {
        Model { layers: self.layers, params: self.params, policy, value, num_players }
    }
}
