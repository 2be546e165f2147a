//! Adds layers to a list, and numbers their parameters.

use super::kind::{ActivationShape, LayerKind};
use super::param::{FlatRanges, Param};
use super::role::Gain;
use super::{Head, Layer, Model, NetSpec};
use crate::config::ValueHead;
use crate::game::{PointActions, Target, TargetShape};

/// A model being built. Each method adds a layer and gives its index.
#[derive(Default)]
pub struct ModelBuilder {
    layers: Vec<Layer>,
    params: Vec<Param>,
    ranges: FlatRanges,
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
            let range = self.ranges.take(role, &shape);
            self.params.push(Param { name: format!("{name}.{part}"), shape, role, range });
        }
        let params = first..self.params.len();
        self.layers.push(Layer { name, kind, inputs: inputs.to_vec(), shape, params });
        self.layers.len() - 1
    }

    /// A 3x3 convolution.
    pub fn conv3x3(&mut self, name: impl Into<String>, x: usize, outputs: usize) -> usize {
        self.layer(name, LayerKind::Conv3x3 { outputs, gain: Gain::Hidden }, &[x])
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

    /// A 1x1 convolution of a board with BatchNorm and ReLU, with which a head begins.
    pub fn head_conv(&mut self, head: &str, x: usize, channels: usize) -> usize {
        let x = self.conv1x1(format!("{head}.conv"), x, channels);
        self.norm_relu(format!("{head}.bn"), x)
    }

    /// The policy head on the points of a board: logits of `actions` at each, and of those of `num_actions` that are at none.
    pub fn policy_at_points(&mut self, x: usize, actions: PointActions, num_actions: usize) -> Head {
        let others = num_actions - actions.planes * self.layers[x].shape.positions();
        let kind = LayerKind::Conv1x1 { outputs: actions.planes + others, gain: Gain::Output };
        let x = self.layer("policy.points", kind, &[x]);
        Head::policy(self.layer("", LayerKind::PointLogits(actions), &[x]))
    }

    /// The policy head on a vector: logits, one for each action.
    pub fn policy(&mut self, x: usize, spec: &NetSpec) -> Head {
        let kind = LayerKind::Linear { outputs: spec.num_actions, gain: Gain::Output };
        Head::policy(self.layer("policy.linear", kind, &[x]))
    }

    /// The value head on a vector: a hidden layer, and values in (-1, 1), of each player or by win, draw and loss.
    pub fn value(&mut self, x: usize, spec: &NetSpec) -> Head {
        let x = self.linear("value.hidden", x, spec.value_hidden);
        let x = self.layer("", LayerKind::Relu, &[x]);
        let mut out =
            |outputs| self.layer("value.out", LayerKind::Linear { outputs, gain: Gain::Output }, &[x]);
        match spec.value_head {
            ValueHead::Scalar => {
                let x = out(spec.num_values());
                Head::value(self.layer("", LayerKind::Tanh, &[x]))
            }
            ValueHead::Wdl => {
                let x = out(3);
                Head::outcome(x, self.layer("", LayerKind::WinLoss, &[x]))
            }
        }
    }

    /// The head that learns `target`, on a tower's end `x`: boards begin with a 1x1 convolution, and a number for each point is one
    /// output channel.
    pub fn auxiliary(&mut self, target: &Target, x: usize, spec: &NetSpec) -> Head {
        let name = format!("auxiliary.{}", target.name);
        let (out, gain) = (format!("{name}.out"), Gain::Output);
        let on_board = matches!(self.layers[x].shape, ActivationShape::Board { .. });
        let x = if on_board { self.head_conv(&name, x, spec.policy_channels) } else { x };
        if on_board && target.shape == TargetShape::Points {
            let x = self.layer(out, LayerKind::Conv1x1 { outputs: 1, gain }, &[x]);
            return Head::auxiliary(target, self.flatten(x));
        }
        let x = if on_board { self.flatten(x) } else { x };
        let outputs = target.len(spec.obs.into());
        Head::auxiliary(target, self.layer(out, LayerKind::Linear { outputs, gain }, &[x]))
    }

    /// The model with these heads.
    pub fn build(self, heads: Vec<Head>, num_players: usize) -> Model {
        Model { layers: self.layers, params: self.params, heads, num_players }
    }
}
