//! The layers of a model as nodes of a graph. Boards are `[batch, C, H, W]`, edges `[batch, C, E]`, vectors `[batch, F]`.

use super::folding::Folding;
use super::graph::{Attribute, GraphBuilder};
use crate::error::Result;
use crate::model::folded::Affine;
use crate::model::{ActivationShape, Array, Layer, LayerKind, Model, Weights};
use crate::weights::NumberFormat;

/// The name of the graph's input.
pub const INPUT: &str = "obs";

/// Adds the layers of a model to a graph, one after the other.
pub struct LayerWriter<'a> {
    /// The model.
    pub model: &'a Model,
    /// The nodes and constants so far.
    pub graph: GraphBuilder,
    weights: &'a Weights,
    folding: Folding,
    /// What each layer so far makes. `[layers]`
    tensors: Vec<String>,
}

impl<'a> LayerWriter<'a> {
    /// A graph with all layers of `model`.
    ///
    /// # Errors
    /// [`crate::Error::NotFinite`] and [`crate::Error::Unsupported`] for weights that are beyond the range of `numbers` with BatchNorm in
    /// them.
    pub fn new(model: &'a Model, weights: &'a Weights, numbers: NumberFormat) -> Result<Self> {
        let graph = GraphBuilder::new(numbers);
        let mut writer = Self { model, graph, weights, folding: Folding::of(model), tensors: Vec::new() };
        for index in 0..model.layers.len() {
            let tensor = writer.layer(index)?;
            writer.tensors.push(tensor);
        }
        Ok(writer)
    }

    /// What layer `index` makes.
    pub fn tensor(&self, index: usize) -> &str {
        &self.tensors[index]
    }

    fn layer(&mut self, index: usize) -> Result<String> {
        let Layer { kind, inputs, shape, .. } = &self.model.layers[index];
        let (name, x) = (self.name(index), self.read(index));
        let on_edges = matches!(shape, ActivationShape::Edges { .. });
        match *kind {
            LayerKind::Input => Ok(self.graph.input(INPUT)),
            LayerKind::Conv3x3 { .. } => self.convolution(index, 1),
            LayerKind::Conv1x1 { .. } if on_edges => self.product(index),
            LayerKind::Conv1x1 { .. } => self.convolution(index, 0),
            LayerKind::Linear { .. } => self.linear(index),
            LayerKind::BatchNorm if self.folding.is_folded(index, inputs[0]) => Ok(x),
            LayerKind::BatchNorm => self.norm(index),
            LayerKind::Relu => Ok(self.graph.node("Relu", &name, &[&x], &[])),
            LayerKind::Tanh => Ok(self.graph.node("Tanh", &name, &[&x], &[])),
            LayerKind::WinLoss => self.win_loss(index),
            LayerKind::Add => Ok(self.graph.node("Add", &name, &[&x, &self.tensors[inputs[1]]], &[])),
            LayerKind::Flatten => Ok(self.graph.node("Flatten", &name, &[&x], &[Attribute::Int("axis", 1)])),
            LayerKind::EdgeMessage => self.edge_message(index),
            LayerKind::TriangleMix { channels } => self.triangle_mix(index, channels),
            LayerKind::MeanOverEdges => {
                let over_edges = [Attribute::Ints("axes", &[2]), Attribute::Int("keepdims", 0)];
                Ok(self.graph.node("ReduceMean", &name, &[&x], &over_edges))
            }
            LayerKind::PointLogits(actions) => Ok(self.point_logits(index, actions)),
        }
    }

    /// The name of the nodes of layer `index`.
    pub(super) fn name(&self, index: usize) -> String {
        let Layer { name, kind, .. } = &self.model.layers[index];
        if name.is_empty() { format!("{}_{index}", kind.name()) } else { name.clone() }
    }

    /// The first input of layer `index`.
    pub(super) fn read(&self, index: usize) -> String {
        self.model.layers[index].inputs.first().map_or(String::new(), |&input| self.tensors[input].clone())
    }

    /// Name and content of parameter `number` of layer `index`.
    pub(super) fn param(&self, index: usize, number: usize) -> (&'a str, &'a Array) {
        let name = &self.model.params[self.model.param_index(index, number)].name;
        (name, &self.weights[name])
    }

    /// The BatchNorm in the weights of layer `index`.
    pub(super) fn folded(&self, index: usize) -> Result<Option<Affine>> {
        let norm = self.folding.norm_of(index);
        norm.map(|norm| Affine::new(self.model, self.weights, norm)).transpose()
    }

    fn linear(&mut self, index: usize) -> Result<String> {
        let norm = self.folded(index)?;
        let ((name, weight), (bias_name, bias)) = (self.param(index, 0), self.param(index, 1));
        let weight = self.graph.matrix(name, &weight.shape, &scaled_rows(weight, norm.as_ref()))?;
        let moved = |(channel, &bias): (usize, &f32)| {
            norm.as_ref().map_or(bias, |norm| norm.scale[channel] * bias + norm.offset[channel])
        };
        let moved: Vec<f32> = bias.data.iter().enumerate().map(moved).collect();
        let bias = self.graph.vector(bias_name, &bias.shape, &moved)?;
        let (name, x) = (self.name(index), self.read(index));
        Ok(self.graph.node("Gemm", &name, &[&x, &weight, &bias], &[Attribute::Int("transB", 1)]))
    }

    /// A BatchNorm by itself.
    fn norm(&mut self, index: usize) -> Result<String> {
        let Affine { scale, offset } = Affine::new(self.model, self.weights, index)?;
        let per_channel = channel_shape(self.model.layers[index].shape);
        let (name, x) = (self.name(index), self.read(index));
        let scale = self.graph.vector(&format!("{name}.scale"), &per_channel, &scale)?;
        let offset = self.graph.vector(&format!("{name}.offset"), &per_channel, &offset)?;
        let scaled = self.graph.node("Mul", &format!("{name}.scaled"), &[&x, &scale], &[]);
        Ok(self.graph.node("Add", &name, &[&scaled, &offset], &[]))
    }

    /// The softmax of win, draw and loss, and from it the value.
    fn win_loss(&mut self, index: usize) -> Result<String> {
        let (name, x) = (self.name(index), self.read(index));
        let each = self.graph.node("Softmax", &probabilities_of(&name), &[&x], &[Attribute::Int("axis", 1)]);
        let results = self.graph.vector(&format!("{name}.results"), &[3, 1], &[1.0, 0.0, -1.0])?;
        Ok(self.graph.node("MatMul", &name, &[&each, &results], &[]))
    }

    /// The probabilities of which layer `index`, a value by win, draw and loss, makes the value.
    pub fn probabilities(&self, index: usize) -> String {
        format!("/{}", probabilities_of(&self.name(index)))
    }
}

fn probabilities_of(name: &str) -> String {
    format!("{name}.probabilities")
}

/// The shape in which a number for each channel is added to or multiplied with activations of `shape`.
pub(super) fn channel_shape(shape: ActivationShape) -> Vec<usize> {
    match shape {
        ActivationShape::Vector(features) => vec![features],
        ActivationShape::Edges { channels, .. } => vec![channels, 1],
        ActivationShape::Board { channels, .. } => vec![channels, 1, 1],
    }
}

/// The matrix `[outputs, ..]`, the row of each output times its scale in `norm`.
pub(super) fn scaled_rows(matrix: &Array, norm: Option<&Affine>) -> Vec<f32> {
    let Some(norm) = norm else { return matrix.data.clone() };
    let rows = matrix.data.chunks_exact(matrix.data.len() / norm.scale.len()).zip(&norm.scale);
    rows.flat_map(|(row, scale)| row.iter().map(move |weight| scale * weight)).collect()
}
