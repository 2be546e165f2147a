//! A folded network -> layers ready to run.

use super::board::Runs;
use super::im2col::Im2col;
use super::kernel_set::KernelSet;
use super::kernels::Kernels;
use super::layer::{PackedLayer, UnpackedLayer};
use super::message_passing::EdgeMessages;
use super::tile::Epilogue;
use crate::error::Result;
use crate::game::ObsShape;
use crate::model::folded::{Affine, FoldedBlock, FoldedLayer, FoldedTower, MessageScale};
use crate::model::{ActivationShape, CompleteGraph, Model, Tower, Weights};

/// All layers of one network.
pub(super) struct PackedLayers {
    /// How the stem reads observations, if not plane by plane.
    pub im2col: Option<Im2col>,
    pub stem: PackedLayer,
    pub blocks: Vec<[PackedLayer; 2]>,
    /// The 1x1 convolutions of both heads as one: policy channels, then value channels.
    pub head: Option<PackedLayer>,
    /// The messages between the layers of an edge network.
    pub messages: Option<EdgeMessages>,
    pub policy: PackedLayer,
    pub hidden: PackedLayer,
    pub value: PackedLayer,
}

/// Packs the layers of `model`. `steps`: the dequantisation scale of each layer's byte activations, stem first; none for floats.
///
/// # Errors
/// As [`FoldedTower::new`].
pub(super) fn pack(
    model: &Model,
    tower: &Tower,
    weights: &Weights,
    kernel_set: KernelSet,
    steps: &[f32],
) -> Result<PackedLayers> {
    let folded = FoldedTower::new(model, tower, weights, MessageScale::InWeights)?.move_biases_to_norms()?;
    let stream = model.layers[tower.stem].shape;
    let (taps, edges) = match stream {
        ActivationShape::Board { height, width, .. } => (Runs::conv3x3(height, width), None),
        ActivationShape::Vector(_) => (Runs::pointwise(1), None),
        ActivationShape::Edges { vertices, .. } => {
            let edges = CompleteGraph::new(vertices);
            (Runs::edges(&edges), Some(edges))
        }
    };
    let im2col = match (model.obs(), stream) {
        (ActivationShape::Board { channels, height, width }, ActivationShape::Board { .. }) => {
            kernel_set.im2col(ObsShape { channels, height, width })
        }
        _ => None,
    };
    Ok(Packer { folded: &folded, kernel_set, steps, stream, edges, taps }.pack(im2col))
}

struct Packer<'a> {
    folded: &'a FoldedTower,
    kernel_set: KernelSet,
    steps: &'a [f32],
    /// Of the residual stream.
    stream: ActivationShape,
    /// K_n, where the stream is on its edges.
    edges: Option<CompleteGraph>,
    /// Of the layers of stem and blocks.
    taps: Runs,
}

/// A layer of stem or blocks: its epilogue with the BatchNorm in it, and its index among them.
struct InnerLayer<'a> {
    layer: &'a FoldedLayer,
    norm: Option<&'a Affine>,
    epilogue: Epilogue,
    index: usize,
}

impl Packer<'_> {
    /// Steps of the activations that inner layer `index` reads; of observations 1.
    fn source_step(&self, index: usize) -> f32 {
        if index == 0 { 1.0 } else { self.steps.get(index - 1).copied().unwrap_or(1.0) }
    }

    /// Steps of the tower's last activations, which the heads read.
    fn last_step(&self) -> f32 {
        self.source_step(1 + 2 * self.folded.blocks.len())
    }

    /// Channels of a row of the tower, as its layers write them.
    fn width(&self) -> usize {
        self.stream.channels().next_multiple_of(self.kernel_set.tower.written())
    }

    fn pack(&self, im2col: Option<Im2col>) -> PackedLayers {
        let FoldedTower { stem, norm, blocks, heads, values, .. } = self.folded;
        let stem = InnerLayer { layer: stem, norm: Some(norm), epilogue: Epilogue::StemBnRelu, index: 0 };
        let [policy, hidden] = self.head_layers();
        PackedLayers {
            stem: match &im2col {
                Some(im2col) => self.im2col_stem(im2col, stem),
                None => self.inner(stem),
            },
            im2col,
            blocks: blocks.iter().enumerate().map(|(i, block)| self.block(i, block)).collect(),
            head: heads.as_ref().map(|head| self.head(head)),
            messages: self.edges.as_ref().map(|edges| self.messages(edges)),
            policy,
            hidden,
            value: self.linear(values, self.kernel_set.full, Epilogue::BiasF32, 1.0),
        }
    }

    /// The layer that gives the logits, and the hidden layer of the value head.
    fn head_layers(&self) -> [PackedLayer; 2] {
        let FoldedTower { heads, policy, hidden, .. } = self.folded;
        let (full, tower) = (self.kernel_set.full, self.kernel_set.tower);
        let (logits, relu) = (Epilogue::BiasF32, Epilogue::BiasReluF32);
        match (heads, &self.edges) {
            (Some(_), _) => {
                let policy = match policy.taps {
                    1 => self.at_points(policy, full),
                    _ => self.linear(policy, full, logits, 1.0),
                };
                [policy, self.linear(hidden, full, relu, 1.0)]
            }
            (None, Some(_)) => [self.at_points(policy, tower), self.linear(hidden, full, relu, 1.0)],
            (None, None) => {
                let step = self.last_step();
                [self.linear(policy, tower, logits, step), self.linear(hidden, tower, relu, step)]
            }
        }
    }

    fn block(&self, i: usize, block: &FoldedBlock) -> [PackedLayer; 2] {
        let epilogue = if self.edges.is_some() { Epilogue::VertexAddRelu } else { Epilogue::BiasRelu };
        let [first, second] = &block.layers;
        let first = InnerLayer { layer: first, norm: None, epilogue, index: 2 * i + 1 };
        let (norm, epilogue) = (Some(&block.norm), Epilogue::ResidualAddBnRelu);
        let second = InnerLayer { layer: second, norm, epilogue, index: 2 * i + 2 };
        [self.inner(first), self.inner(second)]
    }

    /// A layer of stem or blocks.
    fn inner(&self, at: InnerLayer<'_>) -> PackedLayer {
        let InnerLayer { layer, norm, epilogue, index } = at;
        let kernels = if index == 0 { self.kernel_set.stem_of(layer.inputs) } else { self.kernel_set.tower };
        let unpacked = UnpackedLayer {
            width: self.width(),
            norm: norm.cloned(),
            steps: [self.source_step(index), self.source_step(index + 1)],
            ..UnpackedLayer::of(layer, epilogue)
        };
        PackedLayer::new(kernels, self.taps.clone(), &unpacked)
    }

    /// The first convolution as a product of im2col rows.
    fn im2col_stem(&self, im2col: &Im2col, at: InnerLayer<'_>) -> PackedLayer {
        let layer = at.layer;
        let weight = |co: usize, _: usize, number: usize| {
            im2col.source(number).map_or(0.0, |(plane, tap)| layer.weight(co, tap, plane))
        };
        let unpacked = UnpackedLayer {
            width: self.width(),
            taps: 1,
            inputs: im2col.inputs(),
            weight: Box::new(weight),
            norm: at.norm.cloned(),
            ..UnpackedLayer::of(layer, at.epilogue)
        };
        PackedLayer::new(self.kernel_set.tower, self.each_position(), &unpacked)
    }

    /// One row for each position of the stream.
    fn each_position(&self) -> Runs {
        Runs::pointwise(self.stream.positions())
    }

    /// Both heads' 1x1 convolutions.
    fn head(&self, head: &FoldedLayer) -> PackedLayer {
        let steps = [self.last_step(), 1.0];
        let unpacked = UnpackedLayer { steps, ..UnpackedLayer::of(head, Epilogue::BiasReluF32) };
        PackedLayer::new(self.kernel_set.tower, self.each_position(), &unpacked)
    }

    fn messages(&self, edges: &CompleteGraph) -> EdgeMessages {
        let blocks = || self.folded.blocks.iter();
        let vertices = blocks().filter_map(|block| block.vertex.as_ref());
        EdgeMessages {
            edges: edges.clone(),
            isa: self.kernel_set.isa,
            triangle_channels: blocks().map(|block| block.triangle_channels).collect(),
            vertex: vertices.map(|layer| self.vertex(layer, edges)).collect(),
        }
    }

    /// The same outputs at each position of the stream.
    fn at_points(&self, policy: &FoldedLayer, kernels: &'static Kernels) -> PackedLayer {
        PackedLayer::new(kernels, self.each_position(), &UnpackedLayer::of(policy, Epilogue::BiasF32))
    }

    /// The layer that makes the messages of vertices; it writes whole vectors, so that padding is 0.
    fn vertex(&self, layer: &FoldedLayer, edges: &CompleteGraph) -> PackedLayer {
        let unpacked = UnpackedLayer { width: self.width(), ..UnpackedLayer::of(layer, Epilogue::BiasF32) }
            .with_padding();
        PackedLayer::new(self.kernel_set.tower, Runs::pointwise(edges.vertices), &unpacked)
    }

    /// A linear layer on a flattened `[inputs, positions]`, each position a tap; reads activations of `step`.
    fn linear(
        &self,
        layer: &FoldedLayer,
        kernels: &'static Kernels,
        epilogue: Epilogue,
        step: f32,
    ) -> PackedLayer {
        let unpacked = UnpackedLayer { steps: [step, 1.0], ..UnpackedLayer::of(layer, epilogue) };
        PackedLayer::new(kernels, Runs::dense(layer.taps), &unpacked)
    }
}
