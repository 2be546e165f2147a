//! The kinds of layer: the function, the parameters, the output's shape and the multiply-adds of each.

use super::point_logits::PointLogits;
use super::role::{Gain, Role};
use crate::game::{ObsShape, PointActions};
use crate::math;
use serde::Serialize;
use std::fmt;

/// The shape of one sample's activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivationShape {
    /// A vector. `[features]`
    Vector(usize),
    /// A board. `[channels, height, width]`
    Board {
        /// C.
        channels: usize,
        /// H.
        height: usize,
        /// W.
        width: usize,
    },
    /// The edges of the complete graph K_n in lexicographic order. `[channels, n (n - 1) / 2]`
    Edges {
        /// C.
        channels: usize,
        /// n.
        vertices: usize,
    },
}

impl ActivationShape {
    /// C: elements at one position.
    pub fn channels(self) -> usize {
        match self {
            Self::Vector(features) => features,
            Self::Board { channels, .. } | Self::Edges { channels, .. } => channels,
        }
    }

    /// Squares of the board, edges of K_n, or 1.
    pub fn positions(self) -> usize {
        match self {
            Self::Vector(_) => 1,
            Self::Board { height, width, .. } => height * width,
            Self::Edges { vertices, .. } => vertices * (vertices - 1) / 2,
        }
    }

    /// Elements in all.
    pub fn len(self) -> usize {
        self.channels() * self.positions()
    }

    /// True where there are no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Where the logits of `actions`, and of an action at no point for each channel after them, are in these channels.
    pub fn point_logits(self, actions: PointActions) -> PointLogits {
        let board = match self {
            Self::Board { height, width, .. } => [height, width],
            Self::Vector(_) | Self::Edges { .. } => [self.positions(), 1],
        };
        PointLogits {
            board,
            order: actions.order,
            planes: actions.planes,
            others: self.channels() - actions.planes,
        }
    }

    /// One logit at each position.
    pub fn one_logit_each(self) -> PointLogits {
        self.with_channels(1).point_logits(PointActions::ONE)
    }

    /// The same positions with other channels.
    pub fn with_channels(self, channels: usize) -> Self {
        match self {
            Self::Vector(_) => Self::Vector(channels),
            Self::Board { height, width, .. } => Self::Board { channels, height, width },
            Self::Edges { vertices, .. } => Self::Edges { channels, vertices },
        }
    }
}

impl From<ObsShape> for ActivationShape {
    fn from(ObsShape { channels, height, width }: ObsShape) -> Self {
        Self::Board { channels, height, width }
    }
}

impl fmt::Display for ActivationShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vector(features) => write!(f, "a vector of {features}"),
            Self::Board { channels, height, width } => write!(f, "{channels} x {height} x {width} boards"),
            Self::Edges { channels, vertices } => {
                write!(f, "{channels} channels on the edges of K_{vertices}")
            }
        }
    }
}

/// The function of a layer. `[..]` are the shapes of its parameters, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LayerKind {
    /// The observation.
    Input,
    /// A 3x3 convolution with zeros around the board. `weight [outputs, inputs, 3, 3]`
    Conv3x3 {
        /// Output channels.
        outputs: usize,
        /// Gain of the first weights.
        #[serde(skip)]
        gain: Gain,
    },
    /// The same weights at every position. `weight [outputs, inputs, 1, 1]` on boards, `[outputs, inputs]` on edges
    Conv1x1 {
        /// Output channels.
        outputs: usize,
        /// Gain of the first weights.
        #[serde(skip)]
        gain: Gain,
    },
    /// A linear layer on a vector. `weight [outputs, inputs]`, `bias [outputs]`
    Linear {
        /// Output features.
        outputs: usize,
        /// Gain of the first weights.
        #[serde(skip)]
        gain: Gain,
    },
    /// Batch normalisation by channel (Ioffe and Szegedy 2015). `weight`, `bias`, `running_mean`, `running_var`: `[channels]`
    BatchNorm,
    /// max(x, 0).
    Relu,
    /// The hyperbolic tangent.
    Tanh,
    /// From logits of win, draw and loss the value: softmax probability of the first minus that of the last. `[3]` -> `[1]`
    WinLoss,
    /// The sum of two layers of one shape.
    Add,
    /// All elements as a vector, channel by channel.
    Flatten,
    /// W_edge x_ij + W_vertex (m_i + m_j) at edge (i, j), m_i the mean of x over the n - 1 edges at vertex i.
    /// `edge.weight [channels, channels]`, `vertex.weight [channels, channels]`
    EdgeMessage,
    /// At edge (i, j) the sum over k of x_ik x_jk, divided by the root of n - 2, in the first `channels` channels; x in the others
    /// (Maron et al. 2019, Provably Powerful Graph Networks).
    TriangleMix {
        /// Channels that are mixed.
        channels: usize,
    },
    /// The mean over all edges, as a vector.
    MeanOverEdges,
    /// Logits of actions at the points of a board: the first `planes` channels at each point, point by point (AlphaZero has 73 in chess),
    /// then the mean over the board of each other channel, for actions that are at no point, like a pass. See [`PointLogits`].
    PointLogits(PointActions),
}

/// The function from the outputs of a value head's last linear layer to the values that the search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFunction {
    /// The hyperbolic tangent of each output.
    Tanh,
    /// The probability of the first output minus that of the last, by the softmax over three.
    WinLoss,
}

impl ValueFunction {
    /// Writes the values `[V]` of one sample's outputs.
    pub fn apply(self, outputs: &[f32], values: &mut [f32]) {
        match self {
            Self::Tanh => values.iter_mut().zip(outputs).for_each(|(value, y)| *value = math::tanh(*y)),
            Self::WinLoss => {
                let [win, draw, loss] = Self::relative(outputs);
                values[0] = (win - loss) / (win + draw + loss);
            }
        }
    }

    /// The probabilities of win, draw and loss by one sample's outputs; None where they say a value alone.
    pub fn outcome(self, outputs: &[f32]) -> Option<[f32; 3]> {
        match self {
            Self::Tanh => None,
            Self::WinLoss => {
                let each = Self::relative(outputs);
                Some(each.map(|class| class / each.iter().sum::<f32>()))
            }
        }
    }

    /// Exponentials of the three outputs, relative to the largest.
    fn relative(outputs: &[f32]) -> [f32; 3] {
        let max = outputs.iter().fold(f32::NEG_INFINITY, |max, &y| max.max(y));
        [0, 1, 2].map(|class| math::exp(outputs[class] - max))
    }
}

/// The number of taps of a 3x3 convolution that lie on the board, summed over all squares.
pub fn taps_on_board(height: usize, width: usize) -> usize {
    (3 * height - 2) * (3 * width - 2)
}

impl LayerKind {
    /// The kind's name, as in exported files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Conv3x3 { .. } => "conv3x3",
            Self::Conv1x1 { .. } => "conv1x1",
            Self::Linear { .. } => "linear",
            Self::BatchNorm => "batch_norm",
            Self::Relu => "relu",
            Self::Tanh => "tanh",
            Self::WinLoss => "win_loss",
            Self::Add => "add",
            Self::Flatten => "flatten",
            Self::EdgeMessage => "edge_message",
            Self::TriangleMix { .. } => "triangle_mix",
            Self::MeanOverEdges => "mean_over_edges",
            Self::PointLogits(_) => "point_logits",
        }
    }

    /// The function of a layer with which a value head may end.
    pub fn value_function(self) -> Option<ValueFunction> {
        match self {
            Self::Tanh => Some(ValueFunction::Tanh),
            Self::WinLoss => Some(ValueFunction::WinLoss),
            _ => None,
        }
    }

    /// The shape of the output for inputs of these shapes; None where the kind does not take them.
    pub fn output(self, inputs: &[ActivationShape]) -> Option<ActivationShape> {
        Some(match (self, inputs) {
            (Self::Conv3x3 { outputs, .. }, &[x @ ActivationShape::Board { .. }]) => x.with_channels(outputs),
            (
                Self::Conv1x1 { outputs, .. },
                &[x @ (ActivationShape::Board { .. } | ActivationShape::Edges { .. })],
            ) => x.with_channels(outputs),
            (Self::Linear { outputs, .. }, [ActivationShape::Vector(_)]) => ActivationShape::Vector(outputs),
            (Self::BatchNorm | Self::Relu | Self::Tanh, &[x]) => x,
            (Self::WinLoss, [ActivationShape::Vector(3)]) => ActivationShape::Vector(1),
            (Self::Add, &[x, y]) if x == y => x,
            (Self::Flatten, [x]) => ActivationShape::Vector(x.len()),
            (Self::EdgeMessage, &[x @ ActivationShape::Edges { .. }]) => x,
            (Self::TriangleMix { channels }, &[x @ ActivationShape::Edges { .. }])
                if channels <= x.channels() =>
            {
                x
            }
            (Self::MeanOverEdges, &[x @ ActivationShape::Edges { .. }]) => {
                ActivationShape::Vector(x.channels())
            }
            (Self::PointLogits(actions), &[x @ ActivationShape::Board { .. }])
                if actions.planes <= x.channels() =>
            {
                ActivationShape::Vector(x.point_logits(actions).num_logits())
            }
            _ => return None,
        })
    }

    /// Name, shape and role of every parameter, for inputs of these shapes.
    pub fn params(self, inputs: &[ActivationShape]) -> Vec<(&'static str, Vec<usize>, Role)> {
        let inner = Role::Matrix(Gain::Hidden);
        match (self, inputs) {
            (Self::Conv3x3 { outputs, gain }, [x]) => {
                vec![("weight", vec![outputs, x.channels(), 3, 3], Role::Matrix(gain))]
            }
            (Self::Conv1x1 { outputs, gain }, [x]) => {
                let mut shape = vec![outputs, x.channels()];
                if let ActivationShape::Board { .. } = x {
                    shape.extend([1, 1]);
                }
                vec![("weight", shape, Role::Matrix(gain))]
            }
            (Self::Linear { outputs, gain }, [x]) => vec![
                ("weight", vec![outputs, x.len()], Role::Matrix(gain)),
                ("bias", vec![outputs], Role::Bias),
            ],
            (Self::BatchNorm, [x]) => vec![
                ("weight", vec![x.channels()], Role::Scale),
                ("bias", vec![x.channels()], Role::Bias),
                ("running_mean", vec![x.channels()], Role::RunningMean),
                ("running_var", vec![x.channels()], Role::RunningVariance),
            ],
            (Self::EdgeMessage, [x]) => {
                let shape = vec![x.channels(); 2];
                vec![("edge.weight", shape.clone(), inner), ("vertex.weight", shape, inner)]
            }
            _ => Vec::new(),
        }
    }

    /// Multiply-adds for inputs and an output of these shapes; elementwise operations do not count.
    pub fn multiply_adds(self, inputs: &[ActivationShape], output: ActivationShape) -> usize {
        match (self, inputs) {
            (Self::Conv3x3 { outputs, .. }, [ActivationShape::Board { channels, height, width }]) => {
                taps_on_board(*height, *width) * channels * outputs
            }
            (Self::Conv1x1 { .. } | Self::Linear { .. }, [x]) => x.channels() * output.len(),
            (Self::EdgeMessage, [ActivationShape::Edges { channels, vertices }]) => {
                (output.positions() + vertices) * channels * channels
            }
            (Self::TriangleMix { channels }, [ActivationShape::Edges { vertices, .. }]) => {
                output.positions() * (vertices - 2) * channels
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of win, draw and loss is the mean result, opposite where win and loss are exchanged, and certain at the ends.
    #[test]
    fn a_value_of_win_draw_and_loss_is_an_expectation() {
        let value = |logits: [f32; 3]| {
            let mut value = [9.0];
            ValueFunction::WinLoss.apply(&logits, &mut value);
            value[0]
        };
        for [win, draw, loss] in [[0.2f32, 0.5, 0.3], [0.7, 0.2, 0.1], [0.01, 0.98, 0.01]] {
            // Logits have a constant in common that does not matter.
            let of = |shift: f32| value([win, draw, loss].map(|p| p.ln() + shift));
            assert!((of(0.0) - (win - loss)).abs() < 1e-6 && (of(50.0) - of(0.0)).abs() < 1e-5);
            assert_eq!(value([win, draw, loss]), -value([loss, draw, win]));
        }
        assert_eq!([value([200.0, 0.0, -200.0]), value([0.0, 200.0, 0.0]), value([0.0; 3])], [1.0, 0.0, 0.0]);
        assert_eq!(value([-1e30, -1e30, 1e30]), -1.0);
    }

    /// Exported files give the kind by serde's name, messages and other files by [`LayerKind::name`].
    #[test]
    fn the_name_of_a_kind_is_its_name_in_files() {
        let (outputs, gain) = (1, Gain::Hidden);
        let kinds = [
            LayerKind::Input,
            LayerKind::Conv3x3 { outputs, gain },
            LayerKind::Conv1x1 { outputs, gain },
            LayerKind::Linear { outputs, gain },
            LayerKind::BatchNorm,
            LayerKind::Relu,
            LayerKind::Tanh,
            LayerKind::WinLoss,
            LayerKind::Add,
            LayerKind::Flatten,
            LayerKind::EdgeMessage,
            LayerKind::TriangleMix { channels: 1 },
            LayerKind::MeanOverEdges,
            LayerKind::PointLogits(PointActions::ONE),
        ];
        for kind in kinds {
            let json = serde_json::to_value(kind).expect("plain data");
            assert_eq!(json["kind"], kind.name(), "{kind:?}");
        }
    }
}
