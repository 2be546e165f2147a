//! A network's weights -> layers ready to run, with BatchNorm folded into them.

use super::board::Runs;
use super::im2col::Im2col;
use super::kernel_set::KernelSet;
use super::kernels::Kernels;
use super::layer::{PackedLayer, UnpackedLayer};
use super::message_passing::EdgeMessages;
use super::pooled::FusedPooling;
use super::tile::Epilogue;
use crate::error::{Error, Result};
use crate::game::ObsShape;
use crate::model::fold::{self, Affine};
use crate::model::{ActivationShape, CompleteGraph, Model, Tower, Weights};
use crate::net::pooling::PooledLayer;

/// All layers of one network.
pub(super) struct PackedLayers {
    /// How the stem reads observations, if not plane by plane.
    pub im2col: Option<Im2col>,
    pub stem: PackedLayer,
    pub blocks: Vec<[PackedLayer; 2]>,
    /// The pooling layers after the layers of each block.
    pub pooled: Vec<[Option<FusedPooling>; 2]>,
    /// The 1x1 convolutions of both heads as one: policy channels, then value channels.
    pub head: Option<PackedLayer>,
    /// The messages between the layers of an edge network.
    pub messages: Option<EdgeMessages>,
    pub policy: PackedLayer,
    pub hidden: PackedLayer,
    pub value: PackedLayer,
}

/// Packs the layers of `model`. `steps`: the dequantisation scale of each layer's byte activations, stem first; none for floats.
pub(super) fn pack(
    model: &Model,
    tower: &Tower,
    weights: &Weights,
    kernel_set: KernelSet,
    steps: &[f32],
) -> Result<PackedLayers> {
    model.check(weights)?;
    let stream = model.layers[tower.stem].shape;
    let edges = match stream {
        ActivationShape::Edges { vertices, .. } => Some(CompleteGraph::new(vertices)),
        ActivationShape::Vector(_) | ActivationShape::Board { .. } => None,
    };
    Packer { model, tower, weights, kernel_set, steps, stream, edges }.pack()
}

struct Packer<'a> {
    model: &'a Model,
    tower: &'a Tower,
    weights: &'a Weights,
    kernel_set: KernelSet,
    steps: &'a [f32],
    /// Of the residual stream.
    stream: ActivationShape,
    /// K_n, where the stream is on its edges.
    edges: Option<CompleteGraph>,
}

/// One layer of the tower: its index in the model, the BatchNorm to fold into it, the BatchNorm after it, its epilogue, its index in the
/// tower.
struct TowerLayer {
    layer: usize,
    fold: Option<Affine>,
    norm: Option<Affine>,
    epilogue: Epilogue,
    index: usize,
    /// Input channels that hold sums over triangles.
    triangle_channels: usize,
}

impl Packer<'_> {
    /// Parameter `index` of [`Model::params`].
    fn param(&self, index: usize) -> &[f32] {
        &self.weights[&self.model.params[index].name].data
    }

    /// The matrix of layer `layer`.
    fn matrix(&self, layer: usize) -> &[f32] {
        self.param(self.model.param_index(layer, 0))
    }

    /// The bias of layer `layer`, if it has one.
    fn bias(&self, layer: usize) -> Option<&[f32]> {
        self.model.bias_index(layer).map(|index| self.param(index))
    }

    /// BatchNorm layer `layer` with its running statistics as scale * x + offset.
    fn norm(&self, layer: usize) -> Result<Affine> {
        fold::norm(self.model, self.weights, layer)
    }

    /// Steps of the activations that layer `index` of the tower reads; of observations 1.
    fn source_step(&self, index: usize) -> f32 {
        if index == 0 { 1.0 } else { self.steps.get(index - 1).copied().unwrap_or(1.0) }
    }

    /// Steps of the tower's last activations, which the heads read.
    fn last_step(&self) -> f32 {
        self.source_step(1 + 2 * self.tower.blocks.len())
    }

    /// Channels of a row of the tower, as its layers write them.
    fn width(&self) -> usize {
        self.stream.channels().next_multiple_of(self.kernel_set.tower.written())
    }

    fn pack(&self) -> Result<PackedLayers> {
        let Tower { stem, blocks, heads, values, .. } = self.tower;
        let im2col = match (self.model.obs(), self.stream) {
            (ActivationShape::Board { channels, height, width }, ActivationShape::Board { .. }) => {
                self.kernel_set.im2col(ObsShape { channels, height, width })
            }
            _ => None,
        };
        let norm = Some(self.norm(self.tower.stream_norm(0))?);
        let epilogue = Epilogue::StemBnRelu;
        let stem_layer =
            TowerLayer { layer: *stem, fold: None, norm, epilogue, index: 0, triangle_channels: 0 };
        let block = |i: usize| self.block(i);
        let [policy, hidden] = self.head_layers()?;
        Ok(PackedLayers {
            stem: match &im2col {
                Some(im2col) => self.im2col_stem(im2col, stem_layer)?,
                None => self.tower_layer(stem_layer)?,
            },
            im2col,
            blocks: (0..blocks.len()).map(block).collect::<Result<_>>()?,
            pooled: (0..blocks.len()).map(|i| self.pooled(i)).collect::<Result<_>>()?,
            head: heads.map(|_| self.head()).transpose()?,
            messages: self.edges.as_ref().map(|edges| self.messages(edges)).transpose()?,
            policy,
            hidden,
            value: self.linear(
                *values,
                self.kernel_set.full,
                [1, self.model.outputs(self.tower.hidden)],
                Epilogue::BiasF32,
                1.0,
            )?,
        })
    }

    /// The layer that gives the logits, and the hidden layer of the value head.
    fn head_layers(&self) -> Result<[PackedLayer; 2]> {
        let Tower { heads, policy, hidden, .. } = self.tower;
        let (full, positions, channels) =
            (self.kernel_set.full, self.stream.positions(), self.stream.channels());
        let hidden_layer =
            |kernels, inputs, step| self.linear(*hidden, kernels, inputs, Epilogue::BiasReluF32, step);
        Ok(match (heads, &self.edges) {
            (Some(heads), _) => {
                let [policy_inputs, value_inputs] =
                    heads.map(|head| [positions, self.model.outputs(head.conv)]);
                let policy = self.linear(*policy, full, policy_inputs, Epilogue::BiasF32, 1.0)?;
                [policy, hidden_layer(full, value_inputs, 1.0)?]
            }
            (None, Some(edges)) => {
                [self.edge_logits(*policy, edges)?, hidden_layer(full, [1, channels], 1.0)?]
            }
            (None, None) => {
                let (kernels, step) = (self.kernel_set.tower, self.last_step());
                let policy = self.linear(*policy, kernels, [1, channels], Epilogue::BiasF32, step)?;
                [policy, hidden_layer(kernels, [1, channels], step)?]
            }
        })
    }

    fn block(&self, i: usize) -> Result<[PackedLayer; 2]> {
        let block = &self.tower.blocks[i];
        let epilogue = if self.edges.is_some() { Epilogue::VertexAddRelu } else { Epilogue::BiasRelu };
        // A pooling layer reads f32 without an activation function.
        let [first_epilogue, last_epilogue] = [(0, epilogue), (1, Epilogue::ResidualAddBnRelu)]
            .map(|(layer, own)| if block.pooling[layer].is_some() { Epilogue::BiasF32 } else { own });
        let first = TowerLayer {
            layer: block.layers[0],
            fold: Some(self.norm(block.norms[1])?),
            norm: None,
            epilogue: first_epilogue,
            index: 2 * i + 1,
            triangle_channels: 0,
        };
        let last = TowerLayer {
            layer: block.layers[1],
            fold: None,
            norm: Some(self.norm_after(i)?).filter(|_| last_epilogue == Epilogue::ResidualAddBnRelu),
            epilogue: last_epilogue,
            index: 2 * i + 2,
            triangle_channels: block.triangle_channels,
        };
        Ok([self.tower_layer(first)?, self.tower_layer(last)?])
    }

    /// The pooling layers of block `i`.
    fn pooled(&self, i: usize) -> Result<[Option<FusedPooling>; 2]> {
        let tower = self.kernel_set.tower;
        let layer = |of: usize| {
            let index = self.tower.blocks[i].pooling[of]?;
            let mut layer = PooledLayer::new(self.model.pooling(index)?);
            let params = self.model.layers[index].params.clone();
            layer.set_params(params.flat_map(|param| self.param(param)).copied().collect());
            let step = self.source_step(2 * i + 2 + of);
            let (isa, per_word, width) = (self.kernel_set.isa, tower.out, self.width());
            Some(FusedPooling { layer, isa, norm: None, step, per_word, width })
        };
        let (bias, mut scale) = (layer(0), layer(1));
        if let Some(scale) = &mut scale {
            let Affine { scale: mut factor, mut offset } = self.norm_after(i)?;
            for numbers in [&mut factor, &mut offset] {
                numbers.resize(self.width(), 0.0);
            }
            scale.norm = Some(Affine { scale: factor, offset });
        }
        Ok([bias, scale])
    }

    /// The BatchNorm after block `block`, with the biases of the second layers of blocks 0 to `block` folded into its offset.
    fn norm_after(&self, block: usize) -> Result<Affine> {
        let mut norm = self.norm(self.tower.stream_norm(block + 1))?;
        for block in &self.tower.blocks[..=block] {
            let Some(bias) = self.bias(block.layers[1]) else { continue };
            let offsets = norm.offset.iter_mut().zip(&norm.scale);
            offsets.zip(bias).for_each(|((offset, scale), b)| *offset += scale * b);
        }
        Ok(norm)
    }

    /// A layer of stem or blocks.
    fn tower_layer(&self, at: TowerLayer) -> Result<PackedLayer> {
        let data = self.matrix(at.layer);
        let channels = self.stream.channels();
        let (taps, runs) = match (self.stream, &self.edges) {
            (ActivationShape::Board { height, width, .. }, _) => (9, Runs::conv3x3(height, width)),
            (_, Some(edges)) => (1, Runs::edges(edges)),
            (_, None) => (1, Runs::pointwise(1)),
        };
        let inputs = data.len() / channels / taps;
        let triangle_scale = self.edges.as_ref().map_or(1.0, CompleteGraph::triangle_scale);
        // Rows for a pooling layer are written with their padding, which must be 0.
        let outputs = if at.epilogue == Epilogue::BiasF32 { self.width() } else { channels };
        let factor = |co: usize| at.fold.as_ref().map_or(1.0, |f| f.scale[co]);
        let scale = |co: usize, ci: usize| {
            if ci < at.triangle_channels { factor(co) * triangle_scale } else { factor(co) }
        };
        let weight = |co: usize, tap: usize, ci: usize| match data.get((co * inputs + ci) * taps + tap) {
            Some(weight) => scale(co, ci) * weight,
            None => 0.0,
        };
        let offset = |co: usize| at.fold.as_ref().map_or(0.0, |f| f.offset[co]);
        let mut bias = match self.bias(at.layer) {
            // Those are in the BatchNorms after the stream.
            _ if at.epilogue == Epilogue::ResidualAddBnRelu => vec![0.0; channels],
            Some(bias) => bias.iter().enumerate().map(|(co, b)| factor(co) * b + offset(co)).collect(),
            None => (0..channels).map(offset).collect(),
        };
        bias.resize(outputs, 0.0);
        let steps = [self.source_step(at.index), self.source_step(at.index + 1)];
        let (norm, epilogue, width) = (at.norm, at.epilogue, self.width());
        let unpacked =
            UnpackedLayer { outputs, width, taps, inputs, weight: &weight, bias, norm, epilogue, steps };
        let kernels = if at.index == 0 { self.kernel_set.stem_of(inputs) } else { self.kernel_set.tower };
        PackedLayer::new(kernels, runs, &unpacked)
    }

    /// The first convolution as a product of im2col rows.
    fn im2col_stem(&self, im2col: &Im2col, at: TowerLayer) -> Result<PackedLayer> {
        let (data, planes) = (self.matrix(at.layer), self.model.obs().channels());
        let weight = |co: usize, _: usize, number: usize| {
            im2col.source(number).map_or(0.0, |(plane, tap)| data[(co * planes + plane) * 9 + tap])
        };
        let unpacked = UnpackedLayer {
            outputs: self.stream.channels(),
            width: self.width(),
            taps: 1,
            inputs: im2col.inputs(),
            weight: &weight,
            bias: vec![0.0; self.stream.channels()],
            norm: at.norm,
            epilogue: at.epilogue,
            steps: [1.0; 2],
        };
        PackedLayer::new(self.kernel_set.tower, Runs::pointwise(self.stream.positions()), &unpacked)
    }

    /// Both heads' 1x1 convolutions with their BatchNorms.
    fn head(&self) -> Result<PackedLayer> {
        let Some(heads) = self.tower.heads else {
            return Err(Error::unsupported("a head's convolution", "the model has none"));
        };
        let [policy_channels, value_channels] = heads.map(|head| self.model.outputs(head.conv));
        let [policy, value] = heads.map(|head| self.matrix(head.conv));
        let channels = self.stream.channels();
        let fold = fold::head_norm(self.model, self.weights, heads)?;
        let weight = |co: usize, _: usize, ci: usize| {
            let row = if co < policy_channels {
                &policy[co * channels..]
            } else {
                &value[(co - policy_channels) * channels..]
            };
            fold.scale[co] * row[ci]
        };
        let unpacked = UnpackedLayer {
            outputs: policy_channels + value_channels,
            width: policy_channels + value_channels,
            taps: 1,
            inputs: channels,
            weight: &weight,
            bias: fold.offset.clone(),
            norm: None,
            epilogue: Epilogue::BiasReluF32,
            steps: [self.last_step(), 1.0],
        };
        PackedLayer::new(self.kernel_set.tower, Runs::pointwise(self.stream.positions()), &unpacked)
    }

    fn messages(&self, edges: &CompleteGraph) -> Result<EdgeMessages> {
        let blocks = &self.tower.blocks;
        Ok(EdgeMessages {
            edges: edges.clone(),
            isa: self.kernel_set.isa,
            triangle_channels: blocks.iter().map(|block| block.triangle_channels).collect(),
            vertex: (0..blocks.len()).map(|i| self.vertex(i, edges)).collect::<Result<_>>()?,
        })
    }

    /// One logit an edge, without bias.
    fn edge_logits(&self, layer: usize, edges: &CompleteGraph) -> Result<PackedLayer> {
        let policy = self.matrix(layer);
        let unpacked = UnpackedLayer {
            outputs: 1,
            width: 1,
            taps: 1,
            inputs: self.stream.channels(),
            weight: &|_, _, ci| policy[ci],
            bias: vec![0.0],
            norm: None,
            epilogue: Epilogue::BiasF32,
            steps: [1.0; 2],
        };
        PackedLayer::new(self.kernel_set.tower, Runs::pointwise(edges.len()), &unpacked)
    }

    /// The layer of block `i` that turns sums over the edges of a vertex into the vertex's message; it writes whole vectors, so that padding
    /// is 0.
    fn vertex(&self, i: usize, edges: &CompleteGraph) -> Result<PackedLayer> {
        let (block, channels) = (&self.tower.blocks[i], self.stream.channels());
        let data = self.param(self.model.param_index(block.layers[0], 1));
        let fold = self.norm(block.norms[1])?;
        let weight = |co: usize, _: usize, ci: usize| match data.get(co * channels + ci) {
            Some(weight) => fold.scale[co] * edges.vertex_scale() * weight,
            None => 0.0,
        };
        let outputs = self.width();
        let unpacked = UnpackedLayer {
            outputs,
            width: outputs,
            taps: 1,
            inputs: channels,
            weight: &weight,
            bias: vec![0.0; outputs],
            norm: None,
            epilogue: Epilogue::BiasF32,
            steps: [1.0; 2],
        };
        PackedLayer::new(self.kernel_set.tower, Runs::pointwise(edges.vertices), &unpacked)
    }

    /// A linear layer on flattened `[inputs, positions]`, each position a tap; reads activations of `step`.
    fn linear(
        &self,
        layer: usize,
        kernels: &'static Kernels,
        [positions, inputs]: [usize; 2],
        epilogue: Epilogue,
        step: f32,
    ) -> Result<PackedLayer> {
        let (data, outputs) = (self.matrix(layer), self.model.outputs(layer));
        let weight = |co: usize, p: usize, ci: usize| data[(co * inputs + ci) * positions + p];
        let unpacked = UnpackedLayer {
            outputs,
            width: outputs,
            taps: positions,
            inputs,
            weight: &weight,
            bias: self.bias(layer).map_or_else(|| vec![0.0; outputs], <[f32]>::to_vec),
            norm: None,
            epilogue,
            steps: [step, 1.0],
        };
        PackedLayer::new(kernels, Runs::dense(positions), &unpacked)
    }
}
