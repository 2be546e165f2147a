//! The kinds of layer as candle's operations.
//!
//! Boards are `[B, C, H, W]`, edges `[B, E, C]`, vectors `[B, F]`.

use crate::game::PointActions;
use crate::model::{ActivationShape, BN_EPS, BN_MOMENTUM, CompleteGraph, LayerKind};
use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::{BatchNorm, Conv2d, Conv2dConfig, Linear, Module, ModuleT};
use std::sync::Arc;

/// Which statistics normalise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchNormMode {
    /// The batch's own; the running statistics move towards them.
    Train,
    /// The running statistics.
    Eval,
}

/// A layer with its parameters as tensors.
pub(super) enum Op {
    Input(ActivationShape),
    Conv(Conv2d),
    Linear(Linear),
    BatchNorm(BatchNorm),
    Relu,
    Tanh,
    WinLoss,
    Add,
    Flatten,
    EdgeMessage { graph: Arc<GraphTensors>, edge: Linear, vertex: Linear },
    TriangleMix { graph: Arc<GraphTensors>, channels: usize },
    MeanOverEdges,
    PointLogits(PointActions),
}

impl Op {
    /// The layer of this kind, given the shape of its first input and its parameters in the order of [`LayerKind::params`].
    pub fn new(
        kind: LayerKind,
        input: ActivationShape,
        params: &[Tensor],
        graph: Option<&Arc<GraphTensors>>,
    ) -> Result<Self> {
        let graph = || match graph {
            Some(graph) => Ok(graph.clone()),
            None => candle_core::bail!("{} needs the edges of a complete graph", kind.name()),
        };
        Ok(match (kind, params) {
            (LayerKind::Input, _) => Self::Input(input),
            (LayerKind::Conv3x3 { .. }, [weight]) => {
                let config = Conv2dConfig { padding: 1, ..Default::default() };
                Self::Conv(Conv2d::new(weight.clone(), None, config))
            }
            (LayerKind::Conv1x1 { .. }, [weight]) => match input {
                ActivationShape::Board { .. } => {
                    Self::Conv(Conv2d::new(weight.clone(), None, Conv2dConfig::default()))
                }
                ActivationShape::Edges { .. } | ActivationShape::Vector(_) => {
                    Self::Linear(Linear::new(weight.clone(), None))
                }
            },
            (LayerKind::Linear { .. }, [weight, bias]) => {
                Self::Linear(Linear::new(weight.clone(), Some(bias.clone())))
            }
            (LayerKind::BatchNorm, [weight, bias, mean, variance]) => {
                let [weight, bias, mean, variance] = [weight, bias, mean, variance].map(Tensor::clone);
                let channels = input.channels();
                let norm = BatchNorm::new_with_momentum;
                Self::BatchNorm(norm(channels, mean, variance, weight, bias, BN_EPS, BN_MOMENTUM)?)
            }
            (LayerKind::Relu, _) => Self::Relu,
            (LayerKind::Tanh, _) => Self::Tanh,
            (LayerKind::WinLoss, _) => Self::WinLoss,
            (LayerKind::Add, _) => Self::Add,
            (LayerKind::Flatten, _) => Self::Flatten,
            (LayerKind::EdgeMessage, [edge, vertex]) => {
                let linear = |weight: &Tensor| Linear::new(weight.clone(), None);
                Self::EdgeMessage { graph: graph()?, edge: linear(edge), vertex: linear(vertex) }
            }
            (LayerKind::TriangleMix { channels }, _) => Self::TriangleMix { graph: graph()?, channels },
            (LayerKind::MeanOverEdges, _) => Self::MeanOverEdges,
            (LayerKind::PointLogits(actions), _) => Self::PointLogits(actions),
            _ => candle_core::bail!("{} with {} parameters", kind.name(), params.len()),
        })
    }

    /// The layer's output. `inputs` are those of the layer; the first layer reads observations `[B, F]`.
    pub fn forward(&self, inputs: &[&Tensor], mode: BatchNormMode) -> Result<Tensor> {
        let x = inputs[0];
        match self {
            Self::Input(ActivationShape::Vector(_)) => Ok(x.clone()),
            Self::Input(ActivationShape::Board { channels, height, width }) => {
                x.reshape(((), *channels, *height, *width))
            }
            Self::Input(shape @ ActivationShape::Edges { channels, .. }) => {
                x.reshape(((), *channels, shape.positions()))?.transpose(1, 2)?.contiguous()
            }
            Self::Conv(conv) => conv.forward(x),
            Self::Linear(linear) => linear.forward(x),
            Self::BatchNorm(norm) => batch_norm(norm, x, mode),
            Self::Relu => x.relu(),
            Self::Tanh => x.tanh(),
            Self::WinLoss => {
                let probabilities = candle_nn::ops::softmax(x, D::Minus1)?;
                probabilities.narrow(D::Minus1, 0, 1)? - probabilities.narrow(D::Minus1, 2, 1)?
            }
            Self::Add => x + inputs[1],
            Self::Flatten => match x.rank() {
                3 => x.transpose(1, 2)?.flatten_from(1),
                _ => x.flatten_from(1),
            },
            Self::EdgeMessage { graph, edge, vertex } => {
                let ends = graph.sum_of_ends(&vertex.forward(&graph.vertex_means(x)?)?)?;
                edge.forward(x)? + ends
            }
            Self::TriangleMix { graph, channels } => graph.mix(x, *channels),
            Self::MeanOverEdges => x.mean(1),
            Self::PointLogits(actions) => point_logits(*actions, x),
        }
    }

    /// Running mean and variance of a normalisation.
    pub fn statistics(&self) -> Option<[&Tensor; 2]> {
        match self {
            Self::BatchNorm(norm) => Some([norm.running_mean(), norm.running_var()]),
            _ => None,
        }
    }
}

/// Normalisation channel by channel; edges have theirs last.
fn batch_norm(norm: &BatchNorm, x: &Tensor, mode: BatchNormMode) -> Result<Tensor> {
    let train = mode == BatchNormMode::Train;
    let Ok((boards, edges, channels)) = x.dims3() else { return norm.forward_t(x, train) };
    let flat = x.reshape((boards * edges, channels))?;
    norm.forward_t(&flat, train)?.reshape((boards, edges, channels))
}

/// Channels at the points in the order of the actions, then the means of the others. `[B, C, H, W]` -> `[B, A]`
fn point_logits(PointActions { planes, order }: PointActions, x: &Tensor) -> Result<Tensor> {
    let (_, channels, height, width) = x.dims4()?;
    let numbers = (0..height * width).map(|number| order.point(number, [height, width]) as u32);
    let index = Tensor::from_iter(numbers, x.device())?;
    let by_point = x.narrow(1, 0, planes)?.flatten_from(2)?.contiguous()?.index_select(&index, 2)?;
    let at_points = by_point.transpose(1, 2)?.flatten_from(1)?;
    if planes == channels {
        return Ok(at_points);
    }
    let others = x.narrow(1, planes, channels - planes)?.mean((2, 3))?;
    Tensor::cat(&[&at_points, &others], 1)
}

/// K_n as tensors.
pub(super) struct GraphTensors {
    vertices: usize,
    triangle_scale: f64,
    /// 1 / (n - 1) where the edge is at the vertex. `[1, n, E]`
    means: Tensor,
    /// 1 where the vertex is an end of the edge. `[1, E, n]`
    ends: Tensor,
    /// The number of edge (i, j), E on the diagonal. `[n n]`
    number: Tensor,
    /// The index of edge e in a flat `[n n]`. `[E]`
    index: Tensor,
}

impl GraphTensors {
    /// K_n of `vertices` vertices.
    pub fn new(vertices: usize, device: &Device) -> Result<Self> {
        let edges = CompleteGraph::new(vertices);
        let (n, count) = (edges.vertices, edges.len());
        let mut ends = vec![0.0_f32; count * n];
        let mut number = vec![count as u32; n * n];
        for (edge, &[i, j]) in edges.ends.iter().enumerate() {
            (ends[edge * n + i], ends[edge * n + j]) = (1.0, 1.0);
            (number[i * n + j], number[j * n + i]) = (edge as u32, edge as u32);
        }
        let index: Vec<u32> = edges.ends.iter().map(|[i, j]| (i * n + j) as u32).collect();
        let ends = Tensor::from_vec(ends, (1, count, n), device)?;
        let means = (ends.transpose(1, 2)?.contiguous()? * f64::from(edges.vertex_scale()))?;
        Ok(Self {
            vertices: n,
            triangle_scale: f64::from(edges.triangle_scale()),
            means,
            ends,
            number: Tensor::from_vec(number, n * n, device)?,
            index: Tensor::from_vec(index, count, device)?,
        })
    }

    /// `[B, E, C]` -> `[B, n, C]`
    fn vertex_means(&self, x: &Tensor) -> Result<Tensor> {
        self.means.broadcast_matmul(x)
    }

    /// `[B, n, C]` -> `[B, E, C]`
    fn sum_of_ends(&self, x: &Tensor) -> Result<Tensor> {
        self.ends.broadcast_matmul(x)
    }

    /// The first `channels` of `[B, E, C]` multiplied around triangles, followed by the others.
    fn mix(&self, z: &Tensor, channels: usize) -> Result<Tensor> {
        let (boards, _, all) = z.dims3()?;
        if channels == 0 {
            return Ok(z.clone());
        }
        let none = Tensor::zeros((boards, 1, channels), DType::F32, z.device())?;
        let part = Tensor::cat(&[&z.narrow(D::Minus1, 0, channels)?, &none], 1)?.contiguous()?;
        // [B, n n, T] -> [B, T, n, n]
        let matrix = part.index_select(&self.number, 1)?.transpose(1, 2)?.contiguous()?;
        let matrix = matrix.reshape((boards, channels, self.vertices, self.vertices))?;
        let product = (matrix.matmul(&matrix)? * self.triangle_scale)?;
        let product = product.reshape((boards, channels, ()))?.transpose(1, 2)?.contiguous()?;
        let triangles = product.index_select(&self.index, 1)?;
        if channels == all {
            return Ok(triangles);
        }
        Tensor::cat(&[&triangles, &z.narrow(D::Minus1, channels, all - channels)?], D::Minus1)
    }
}
