//! A folded network's weights as the kernels read them: in the order of [`ForwardLayer::word_offset`], all in one array.
//!
//! `net/cpu/pack.rs` does the same for the CPU.

use super::element_type::ElementType;
use super::layer::ForwardLayer;
use super::layers::ForwardLayers;
use crate::error::Result;
use crate::model::Weights;
use crate::model::folded::{Affine, FoldedLayer, FoldedTower, MessageScale};

/// Arrays begin at multiples of so many bytes.
const ALIGNMENT: usize = 256;

/// Where one layer's arrays begin, in bytes from the beginning of all parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerOffsets {
    pub weights: usize,
    pub bias: usize,
    /// The BatchNorm that reads the residual stream after it.
    pub scale: usize,
    pub offset: usize,
}

/// All parameters.
pub(super) struct PackedParameters {
    pub bytes: Vec<u8>,
    pub stem: LayerOffsets,
    pub blocks: Vec<[LayerOffsets; 2]>,
    /// The layer at vertices of each block, without bias (edge).
    pub vertices: Vec<LayerOffsets>,
    pub head: LayerOffsets,
    /// The weights of the logits of edges, 32-bit floats (edge).
    pub policy: LayerOffsets,
    pub dense: LayerOffsets,
    pub values: LayerOffsets,
}

/// Packs `weights` for `layers`.
///
/// # Errors
/// As [`FoldedTower::new`].
pub(super) fn pack(weights: &Weights, layers: &ForwardLayers) -> Result<PackedParameters> {
    let folded = FoldedTower::new(&layers.model, &layers.form, weights, MessageScale::InSums)?;
    let mut packer = Packer { bytes: Vec::new() };
    let stem = packer.stream_layer(&layers.stem, &folded.stem, &folded.norm);
    let (mut blocks, mut vertices) = (Vec::new(), Vec::new());
    for block in &folded.blocks {
        let [first, second] = &block.layers;
        let first = packer.layer(&layers.tower, first);
        blocks.push([first, packer.stream_layer(&layers.tower, second, &block.norm)]);
        if let (Some(graph), Some(vertex)) = (&layers.graph, &block.vertex) {
            vertices.push(packer.layer(&graph.layer, vertex));
        }
    }
    let head = match (&layers.head, &folded.heads) {
        (Some(layer), Some(heads)) => packer.layer(layer, heads),
        _ => LayerOffsets::default(),
    };
    let policy = match &layers.graph {
        Some(_) => packer.logits_of_edges(&folded.policy, layers.tower.spec.inputs),
        None => LayerOffsets::default(),
    };
    let dense = packer.dense(layers, &folded);
    let values = packer.values(&folded.values);
    Ok(PackedParameters { bytes: packer.bytes, stem, blocks, vertices, head, policy, dense, values })
}

struct Packer {
    bytes: Vec<u8>,
}

impl Packer {
    /// Adds an array and returns where it begins.
    fn push<T: bytemuck::Pod>(&mut self, array: &[T]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytemuck::cast_slice(array));
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        start
    }

    /// Weights and bias of `folded` as `layer` reads them.
    fn layer(&mut self, layer: &ForwardLayer, folded: &FoldedLayer) -> LayerOffsets {
        let words = layer.pack(folded.inputs, |output, tap, input| folded.weight(output, tap, input));
        let offsets = LayerOffsets { weights: self.push(&words), ..LayerOffsets::default() };
        LayerOffsets { bias: self.push(&layer.by_channel(&folded.bias)), ..offsets }
    }

    /// The same with the BatchNorm that reads the residual stream after it.
    fn stream_layer(&mut self, layer: &ForwardLayer, folded: &FoldedLayer, norm: &Affine) -> LayerOffsets {
        let offsets = self.layer(layer, folded);
        let (scale, offset) = (layer.by_channel(&norm.scale), layer.by_channel(&norm.offset));
        LayerOffsets { scale: self.push(&scale), offset: self.push(&offset), ..offsets }
    }

    /// One weight a channel, 0 past the last.
    fn logits_of_edges(&mut self, policy: &FoldedLayer, channels: usize) -> LayerOffsets {
        let mut weights = policy.matrix().to_vec();
        weights.resize(channels, 0.0);
        LayerOffsets { weights: self.push(&weights), ..LayerOffsets::default() }
    }

    /// Policy layer and value head's hidden layer as one on a whole board: input p R + c is channel c of square p, in rows of
    /// R channels; policy channels come before value channels (resnet), or both read the same (perceptron). An edge network's
    /// has no logits and reads one row, the mean over all edges. A policy layer at points is one whose other weights are 0.
    fn dense(&mut self, layers: &ForwardLayers, folded: &FoldedTower) -> LayerOffsets {
        let (layer, logits) = (&layers.dense, layers.dense_logits);
        let FoldedTower { heads, policy, hidden, .. } = folded;
        let first_of_hidden = if heads.is_some() { policy.inputs } else { 0 };
        let row = layer.spec.inputs / hidden.taps;
        let points = layers.model.point_logits();
        let logit = |action: usize, square: usize, channel: usize| match points {
            None => policy.weight(action, square, channel),
            Some(points) => points
                .source(action, square)
                .map_or(0.0, |(output, factor)| factor * policy.weight(output, 0, channel)),
        };
        let weight = |output: usize, _: usize, input: usize| {
            let (square, channel) = (input / row, input % row);
            if output < logits {
                return if channel < policy.inputs { logit(output, square, channel) } else { 0.0 };
            }
            match channel.checked_sub(first_of_hidden) {
                Some(channel) if channel < hidden.inputs => hidden.weight(output - logits, square, channel),
                _ => 0.0,
            }
        };
        let words = layer.pack(layer.spec.inputs, weight);
        let mut bias = policy.bias.clone();
        bias.resize(logits, 0.0);
        let bias = [bias, hidden.bias.clone()].concat();
        let offsets = LayerOffsets { weights: self.push(&words), ..LayerOffsets::default() };
        LayerOffsets { bias: self.push(&layer.by_channel(&bias)), ..offsets }
    }

    fn values(&mut self, values: &FoldedLayer) -> LayerOffsets {
        let (weights, bias) = (self.push(values.matrix()), self.push(&values.bias));
        LayerOffsets { weights, bias, ..LayerOffsets::default() }
    }
}

impl ForwardLayers {
    /// The constants of `net.cu`.
    pub(super) fn defines(&self, element_type: ElementType) -> Vec<(String, String)> {
        let text = |name: &str, value: String| (name.to_string(), value);
        let number = |name: &str, value: usize| (name.to_string(), value.to_string());
        let mut all = vec![
            text("VZ_ELEMENT_TYPE", element_type.name().into()),
            text("VZ_STEM", self.stem.constants()),
            text("VZ_TOWER", self.tower.constants()),
            text("VZ_DENSE", self.dense.constants()),
            number("VZ_NET_PLANES", self.planes),
            number("VZ_NET_ACTIONS", self.model.num_actions()),
            number("VZ_NET_DENSE_LOGITS", self.dense_logits),
            number("VZ_NET_HIDDEN", self.model.outputs(self.form.hidden)),
            number("VZ_NET_VALUES", self.model.num_values()),
            number("VZ_NET_PLAYERS", self.model.num_players),
        ];
        all.extend(self.head.map(|head| text("VZ_HEAD", head.constants())));
        if let Some(graph) = &self.graph {
            all.push(text("VZ_VERTEX", graph.layer.constants()));
            all.push(number("VZ_NET_VERTICES", graph.vertices));
            all.push(number("VZ_NET_TRIANGLES", graph.triangle_channels));
        }
        all
    }
}
