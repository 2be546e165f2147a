//! A [`Tower`]'s layers as inference runs them: BatchNorm with its running statistics is part of the weights before it, or a scale and an
//! offset where it reads the residual stream.
//!
//! In: a model, its [`Tower`] and weights. Out: matrices and biases in the model's order, which every fused forward packs for itself.

use super::{ActivationShape, BN_EPS, CompleteGraph, HeadConv, Model, Tower, Weights};
use crate::error::{Error, Result};

/// Per-channel factors and terms: BatchNorm as scale * x + offset.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    pub scale: Vec<f32>,  // [channels]
    pub offset: Vec<f32>, // [channels]
}

impl Affine {
    /// BatchNorm layer `norm` of `model` with its running statistics.
    ///
    /// # Errors
    /// [`Error::NotFinite`] where a number is beyond f32.
    pub fn new(model: &Model, weights: &Weights, norm: usize) -> Result<Self> {
        let part = |number: usize| &weights[&model.params[model.param_index(norm, number)].name].data;
        let (weight, bias, mean, var) = (part(0), part(1), part(2), part(3));
        let scale = |c: usize| f64::from(weight[c]) / (f64::from(var[c]) + BN_EPS).sqrt();
        let offset = |c: usize| f64::from(bias[c]) - f64::from(mean[c]) * scale(c);
        let channels = 0..weight.len();
        let affine = Self {
            scale: channels.clone().map(|c| scale(c) as f32).collect(),
            offset: channels.map(|c| offset(c) as f32).collect(),
        };
        match affine.scale.iter().chain(&affine.offset).find(|x| !x.is_finite()) {
            Some(&value) => {
                let what = format!("the scale or offset of BatchNorm {}", model.layers[norm].name);
                Err(Error::NotFinite { what, value })
            }
            None => Ok(affine),
        }
    }
}

/// A linear layer with the BatchNorm after it, where there is one, folded in.
#[derive(Clone, Debug)]
pub(crate) struct FoldedLayer {
    pub outputs: usize,
    pub taps: usize,
    pub inputs: usize,
    matrix: Vec<f32>,   // [outputs, inputs, taps]
    pub bias: Vec<f32>, // [outputs]
}

impl FoldedLayer {
    /// The weight of (output, tap, input).
    pub fn weight(&self, output: usize, tap: usize, input: usize) -> f32 {
        self.matrix[(output * self.inputs + input) * self.taps + tap]
    }

    /// All weights. `[outputs, inputs, taps]`
    pub fn matrix(&self) -> &[f32] {
        &self.matrix
    }
}

/// A residual block; its first BatchNorm is the one before it.
#[derive(Clone, Debug)]
pub(crate) struct FoldedBlock {
    pub layers: [FoldedLayer; 2],
    /// The layer that turns sums over the edges of a vertex into its message, on edges. It has no bias.
    pub vertex: Option<FoldedLayer>,
    /// As [`super::ResidualBlock::triangle_channels`].
    pub triangle_channels: usize,
    /// The BatchNorm that reads the residual stream after the block.
    pub norm: Affine,
}

/// A [`Tower`] with its weights.
#[derive(Clone, Debug)]
pub(crate) struct FoldedTower {
    pub stem: FoldedLayer,
    /// The BatchNorm that reads the residual stream after the stem.
    pub norm: Affine,
    pub blocks: Vec<FoldedBlock>,
    /// The 1x1 convolutions of both heads as one layer: policy channels, then value channels.
    pub heads: Option<FoldedLayer>,
    /// On flattened boards, each position is a tap; at points there is one tap.
    pub policy: FoldedLayer,
    pub hidden: FoldedLayer,
    pub values: FoldedLayer,
}

/// Where sums over the edges of a vertex and over triangles get their factors (see [`CompleteGraph::vertex_scale`] and
/// [`CompleteGraph::triangle_scale`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageScale {
    /// In the weights that read them.
    InWeights,
    /// In the sums themselves: the weights are as in the model.
    InSums,
}

impl FoldedTower {
    /// Folds `weights`.
    ///
    /// # Errors
    /// Those of [`Model::check`]; [`Error::NotFinite`] where folding makes a number infinite.
    pub fn new(model: &Model, tower: &Tower, weights: &Weights, scale: MessageScale) -> Result<Self> {
        model.check(weights)?;
        let stream = model.layers[tower.stem].shape;
        let scales = match (stream, scale) {
            (ActivationShape::Edges { vertices, .. }, MessageScale::InWeights) => {
                let edges = CompleteGraph::new(vertices);
                [edges.vertex_scale(), edges.triangle_scale()]
            }
            _ => [1.0; 2],
        };
        let fold = Fold { model, tower, weights, stream, scales };
        let Tower { stem, heads, policy, hidden, values, .. } = *tower;
        let per_board = if heads.is_some() { stream.positions() } else { 1 };
        let folded = Self {
            stem: fold.inner(stem, None, 0),
            norm: fold.norm(tower.stream_norm(0))?,
            blocks: (0..tower.blocks.len()).map(|i| fold.block(i)).collect::<Result<_>>()?,
            heads: heads.map(|heads| fold.heads(heads)).transpose()?,
            policy: fold.linear(policy, if model.point_logits().is_some() { 1 } else { per_board }),
            hidden: fold.linear(hidden, per_board),
            values: fold.linear(values, 1),
        };
        folded.check()?;
        Ok(folded)
    }

    /// Moves the biases of the blocks' second layers into the BatchNorms that read the stream after them.
    ///
    /// # Errors
    /// [`Error::NotFinite`] where that makes an offset infinite.
    pub fn move_biases_to_norms(mut self) -> Result<Self> {
        for block in 0..self.blocks.len() {
            let second = &mut self.blocks[block].layers[1];
            let none = vec![0.0; second.outputs];
            let bias = std::mem::replace(&mut second.bias, none);
            for Affine { scale, offset } in self.blocks[block..].iter_mut().map(|after| &mut after.norm) {
                let offsets = offset.iter_mut().zip(scale);
                offsets.zip(&bias).for_each(|((offset, scale), b)| *offset += *scale * b);
            }
        }
        self.check()?;
        Ok(self)
    }

    /// Refuses a weight, bias or offset that is infinite after folding.
    fn check(&self) -> Result<()> {
        let blocks = self.blocks.iter();
        let inner = blocks.flat_map(|block| block.layers.iter().chain(&block.vertex));
        let layers = inner.chain([&self.stem]).chain(&self.heads);
        let numbers = layers.flat_map(|layer| layer.matrix.iter().chain(&layer.bias));
        let numbers = numbers.chain(self.blocks.iter().flat_map(|block| &block.norm.offset));
        match numbers.copied().find(|x| !x.is_finite()) {
            Some(value) => {
                Err(Error::NotFinite { what: "a weight or bias with its BatchNorm folded in".into(), value })
            }
            None => Ok(()),
        }
    }
}

struct Fold<'a> {
    model: &'a Model,
    tower: &'a Tower,
    weights: &'a Weights,
    stream: ActivationShape,
    /// Factors of sums over the edges of a vertex, and over triangles.
    scales: [f32; 2],
}

impl Fold<'_> {
    /// Parameter `index` of [`Model::params`].
    fn param(&self, index: usize) -> &[f32] {
        &self.weights[&self.model.params[index].name].data
    }

    /// The matrix of layer `layer`.
    fn matrix(&self, layer: usize) -> &[f32] {
        self.param(self.model.param_index(layer, 0))
    }

    /// BatchNorm layer `layer` with its running statistics.
    fn norm(&self, layer: usize) -> Result<Affine> {
        Affine::new(self.model, self.weights, layer)
    }

    /// A layer of stem or blocks with the BatchNorm `norm` after it; its first `triangle_channels` inputs are sums over triangles.
    fn inner(&self, layer: usize, norm: Option<&Affine>, triangle_channels: usize) -> FoldedLayer {
        let (data, outputs) = (self.matrix(layer), self.stream.channels());
        let taps = if matches!(self.stream, ActivationShape::Board { .. }) { 9 } else { 1 };
        let inputs = data.len() / outputs / taps;
        let scale = |output: usize| norm.map_or(1.0, |norm| norm.scale[output]);
        let offset = |output: usize| norm.map_or(0.0, |norm| norm.offset[output]);
        let own = self.model.bias_index(layer).map(|index| self.param(index));
        let bias = |output: usize| scale(output) * own.map_or(0.0, |bias| bias[output]) + offset(output);
        let [_, triangle_scale] = self.scales;
        let weight = |(element, &weight): (usize, &f32)| {
            let (output, input) = (element / (inputs * taps), element / taps % inputs);
            let of_triangle = if input < triangle_channels { triangle_scale } else { 1.0 };
            scale(output) * of_triangle * weight
        };
        FoldedLayer {
            outputs,
            taps,
            inputs,
            matrix: data.iter().enumerate().map(weight).collect(),
            bias: (0..outputs).map(bias).collect(),
        }
    }

    fn block(&self, i: usize) -> Result<FoldedBlock> {
        let block = &self.tower.blocks[i];
        let [first, second] = block.layers;
        let norm = self.norm(block.norms[1])?;
        let on_edges = matches!(self.stream, ActivationShape::Edges { .. });
        Ok(FoldedBlock {
            layers: [self.inner(first, Some(&norm), 0), self.inner(second, None, block.triangle_channels)],
            vertex: on_edges.then(|| self.vertex(first, &norm)),
            triangle_channels: block.triangle_channels,
            norm: self.norm(self.tower.stream_norm(i + 1))?,
        })
    }

    /// The second matrix of the message layer `message`, whose sum with the first `norm` reads; its offset is with the first.
    fn vertex(&self, message: usize, norm: &Affine) -> FoldedLayer {
        let (data, channels) = (self.param(self.model.param_index(message, 1)), self.stream.channels());
        let [vertex_scale, _] = self.scales;
        let rows = data.chunks_exact(channels).zip(&norm.scale);
        let matrix =
            rows.flat_map(|(row, scale)| row.iter().map(move |weight| scale * vertex_scale * weight));
        let (matrix, bias) = (matrix.collect(), vec![0.0; channels]);
        FoldedLayer { outputs: channels, taps: 1, inputs: channels, matrix, bias }
    }

    /// Both heads' 1x1 convolutions with their BatchNorms.
    fn heads(&self, heads: [HeadConv; 2]) -> Result<FoldedLayer> {
        let inputs = self.stream.channels();
        let (mut matrix, mut bias) = (Vec::new(), Vec::new());
        for HeadConv { conv, norm } in heads {
            let norm = self.norm(norm)?;
            let rows = self.matrix(conv).chunks_exact(inputs).zip(&norm.scale);
            matrix.extend(rows.flat_map(|(row, scale)| row.iter().map(move |weight| scale * weight)));
            bias.extend(norm.offset);
        }
        Ok(FoldedLayer { outputs: bias.len(), taps: 1, inputs, matrix, bias })
    }

    /// A layer without BatchNorm, with this number of taps.
    fn linear(&self, layer: usize, taps: usize) -> FoldedLayer {
        let (matrix, outputs) = (self.matrix(layer).to_vec(), self.model.outputs(layer));
        let bias = self.model.bias_index(layer).map(|index| self.param(index).to_vec());
        let (inputs, bias) = (matrix.len() / outputs / taps, bias.unwrap_or_else(|| vec![0.0; outputs]));
        FoldedLayer { outputs, taps, inputs, matrix, bias }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Arch;
    use crate::game::ObsShape;
    use crate::model::NetSpec;

    /// A perceptron of two blocks whose biases of second layers are `bias`, and whose BatchNorms have the scale 10.
    fn perceptron(bias: f32) -> Result<FoldedTower> {
        let obs = ObsShape { channels: 3, height: 2, width: 5 };
        let spec =
            NetSpec { arch: Arch::Mlp, blocks: 2, channels: 4, obs, num_actions: 6, ..NetSpec::default() };
        let model = spec.model()?;
        let tower = Tower::of(&model).expect("a tower");
        let mut weights = model.initial_weights(7);
        let layers = tower.blocks.iter().map(|block| model.bias_index(block.layers[1]));
        let norms = (0..3).map(|blocks| Some(model.param_index(tower.stream_norm(blocks), 0)));
        for (index, value) in layers.map(|index| (index, bias)).chain(norms.map(|index| (index, 10.0))) {
            let name = &model.params[index.expect("a linear layer")].name;
            weights.get_mut(name).expect("of the model").data.fill(value);
        }
        FoldedTower::new(&model, &tower, &weights, MessageScale::InWeights)
    }

    #[test]
    fn biases_of_the_stream_move_to_all_norms_after_them() {
        let folded = perceptron(0.5).expect("finite");
        let moved = folded.clone().move_biases_to_norms().expect("finite");
        assert_eq!(moved.norm.offset, folded.norm.offset);
        for (blocks, (before, after)) in folded.blocks.iter().zip(&moved.blocks).enumerate() {
            assert_eq!((before.layers[1].bias[3], after.layers[1].bias[3]), (0.5, 0.0));
            let [moved, offset] = [after, before].map(|block| block.norm.offset[3]);
            let expected = (blocks + 1) as f32 * 0.5 * before.norm.scale[3];
            assert!((moved - offset - expected).abs() < 1e-4, "{moved} after {blocks} blocks");
        }
    }

    #[test]
    fn an_offset_that_becomes_infinite_is_refused() {
        let folded = perceptron(3e38).expect("finite before the biases move");
        assert!(matches!(folded.move_biases_to_norms(), Err(Error::NotFinite { .. })));
    }
}
