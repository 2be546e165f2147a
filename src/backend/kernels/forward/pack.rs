//! A network's weights as the kernels read them: BatchNorm folded away, in the order of [`ForwardLayer::place`], all in one array.
//!
//! Twin of `net/cpu/pack.rs` for the CPU.

use super::layer::ForwardLayer;
use super::{ElementType, ForwardLayers};
use crate::error::Result;
use crate::model::fold::{self, Affine};
use crate::model::{GlobalPooling, HeadConv, Model, Weights};

/// Arrays begin at multiples of so many bytes.
const ALIGNMENT: usize = 256;

/// Where one layer's arrays begin, in bytes from the beginning of all parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerPlace {
    pub weights: usize,
    pub bias: usize,
    /// The BatchNorm that reads the residual stream after it.
    pub scale: usize,
    pub offset: usize,
}

/// All parameters.
pub(super) struct PackedParameters {
    pub bytes: Vec<u8>,
    pub stem: LayerPlace,
    pub blocks: Vec<[LayerPlace; 2]>,
    /// The parameters of the pooling layers after the layers of each block.
    pub pooling: Vec<[LayerPlace; 2]>,
    /// The layer at vertices of each block, without bias (edge).
    pub vertices: Vec<LayerPlace>,
    pub head: LayerPlace,
    /// The weights of the logits of edges, 32-bit floats (edge).
    pub policy: LayerPlace,
    pub dense: LayerPlace,
    pub values: LayerPlace,
}

/// Packs `weights` for `layers`.
///
/// # Errors
/// Those of [`crate::model::Model::check`]; [`crate::Error::NotFinite`] where folding makes a number infinite.
pub(super) fn pack(weights: &Weights, layers: &ForwardLayers) -> Result<PackedParameters> {
    let ForwardLayers { model, form, .. } = layers;
    model.check(weights)?;
    let mut packer = Packer { model, weights, layers, bytes: Vec::new() };
    let norm = |layer: usize| fold::norm(model, weights, layer);
    let first_norm = norm(form.stream_norm(0))?;
    let stem = packer.tower(form.stem, &layers.stem, None, Some(&first_norm))?;
    let (mut blocks, mut pooling, mut vertices) = (Vec::new(), Vec::new(), Vec::new());
    for (i, block) in form.blocks.iter().enumerate() {
        let folded = norm(block.norms[1])?;
        let after = norm(form.stream_norm(i + 1))?;
        let first = packer.tower(block.layers[0], &layers.tower, Some(&folded), None)?;
        let last = packer.tower(block.layers[1], &layers.tower, None, Some(&after))?;
        blocks.push([first, last]);
        pooling.push(block.pooling.map(|layer| packer.pooling(layer)));
        if let Some(graph) = &layers.graph {
            vertices.push(packer.vertices(block.layers[0], &graph.layer, &folded)?);
        }
    }
    let head = match (&layers.head, form.heads) {
        (Some(layer), Some(heads)) => packer.head(layer, heads)?,
        _ => LayerPlace::default(),
    };
    let policy = match &layers.graph {
        Some(_) => packer.logits_of_edges(form.policy),
        None => LayerPlace::default(),
    };
    let dense = packer.dense()?;
    let values = packer.values(form.values);
    Ok(PackedParameters { bytes: packer.bytes, stem, blocks, pooling, vertices, head, policy, dense, values })
}

struct Packer<'a> {
    model: &'a Model,
    weights: &'a Weights,
    layers: &'a ForwardLayers,
    bytes: Vec<u8>,
}

impl<'a> Packer<'a> {
    /// Parameter `index` of [`Model::params`].
    fn param(&self, index: usize) -> &'a [f32] {
        &self.weights[&self.model.params[index].name].data
    }

    /// The matrix of the model's layer `layer`.
    fn matrix(&self, layer: usize) -> &'a [f32] {
        self.param(self.model.param_index(layer, 0))
    }

    /// The bias of the model's layer `layer`, if it has one.
    fn bias(&self, layer: usize) -> Option<&'a [f32]> {
        self.model.bias_index(layer).map(|index| self.param(index))
    }

    /// Adds an array and returns where it begins.
    fn push<T: bytemuck::Pod>(&mut self, array: &[T]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytemuck::cast_slice(array));
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        start
    }

    fn layer(
        &mut self,
        layer: &ForwardLayer,
        inputs: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: &[f32],
    ) -> Result<LayerPlace> {
        let taps = layer.spec.taps;
        let all = (0..layer.spec.outputs).flat_map(|output| {
            (0..taps).flat_map(move |tap| (0..inputs).map(move |input| (output, tap, input)))
        });
        fold::check_folded(
            all.map(|(output, tap, input)| weight(output, tap, input)).chain(bias.iter().copied()),
        )?;
        let words = layer.pack(inputs, weight);
        let place = LayerPlace { weights: self.push(&words), ..LayerPlace::default() };
        Ok(LayerPlace { bias: self.push(&layer.by_channel(bias)), ..place })
    }

    /// The model's layer `of` of stem or blocks, with BatchNorm `folded` into it and `norm` after the residual stream.
    fn tower(
        &mut self,
        of: usize,
        layer: &ForwardLayer,
        folded: Option<&Affine>,
        norm: Option<&Affine>,
    ) -> Result<LayerPlace> {
        let (taps, outputs) = (layer.spec.taps, layer.spec.outputs);
        let (data, own) = (self.matrix(of), self.bias(of));
        let inputs = data.len() / outputs / taps;
        let scale = |output: usize| folded.map_or(1.0, |f| f.scale[output]);
        let offset = |output: usize| folded.map_or(0.0, |f| f.offset[output]);
        let bias: Vec<f32> = (0..outputs)
            .map(|output| scale(output) * own.map_or(0.0, |bias| bias[output]) + offset(output))
            .collect();
        let weight = |output: usize, tap: usize, input: usize| {
            scale(output) * data[(output * inputs + input) * taps + tap]
        };
        let place = self.layer(layer, inputs, weight, &bias)?;
        let Some(norm) = norm else { return Ok(place) };
        let (scale, offset) = (layer.by_channel(&norm.scale), layer.by_channel(&norm.offset));
        Ok(LayerPlace { scale: self.push(&scale), offset: self.push(&offset), ..place })
    }

    /// The weights of the messages from vertices to edges, with the scale of the BatchNorm after the sum; its offset is with the edges.
    fn vertices(&mut self, message: usize, layer: &ForwardLayer, folded: &Affine) -> Result<LayerPlace> {
        let (data, inputs) = (self.param(self.model.param_index(message, 1)), layer.spec.outputs);
        let weight =
            |output: usize, _: usize, input: usize| folded.scale[output] * data[output * inputs + input];
        self.layer(layer, inputs, weight, &[])
    }

    /// The parameters of the model's pooling layer `layer`; nowhere if there is none.
    fn pooling(&mut self, layer: Option<usize>) -> LayerPlace {
        let Some((layer, pooling)) = layer.and_then(|layer| Some((layer, self.model.pooling(layer)?))) else {
            return LayerPlace::default();
        };
        let params = self.model.layers[layer].params.clone();
        let params: Vec<f32> = params.flat_map(|param| self.param(param)).copied().collect();
        LayerPlace { weights: self.push(&packed_params(pooling, &params)), ..LayerPlace::default() }
    }

    /// One weight a channel, 0 past the last.
    fn logits_of_edges(&mut self, policy: usize) -> LayerPlace {
        let mut weights = self.matrix(policy).to_vec();
        weights.resize(self.layers.tower.spec.inputs, 0.0);
        LayerPlace { weights: self.push(&weights), ..LayerPlace::default() }
    }

    /// Both heads' 1x1 convolutions with their BatchNorms.
    fn head(&mut self, layer: &ForwardLayer, heads: [HeadConv; 2]) -> Result<LayerPlace> {
        let (channels, policy_channels) = (self.layers.tower.spec.outputs, self.model.outputs(heads[0].conv));
        let [policy, value] = heads.map(|head| self.matrix(head.conv));
        let folded = fold::head_norm(self.model, self.weights, heads)?;
        let weight = |output: usize, _: usize, input: usize| {
            let row = if output < policy_channels {
                &policy[output * channels..]
            } else {
                &value[(output - policy_channels) * channels..]
            };
            folded.scale[output] * row[input]
        };
        self.layer(layer, channels, weight, &folded.offset)
    }

    /// Policy layer and value head's hidden layer as one on a whole board: input p R + c is channel c of square p, in rows of
    /// R channels; policy channels come before value channels (resnet), or both read the same (perceptron). An edge network's
    /// has no logits and reads one row, the mean over all edges.
    fn dense(&mut self) -> Result<LayerPlace> {
        let ForwardLayers { form, dense: layer, dense_logits: logits, .. } = self.layers;
        let logits = *logits;
        let (squares, policy, hidden) = match form.heads {
            None => {
                let channels = self.layers.tower.spec.outputs;
                (1, 0..channels, 0..channels)
            }
            Some(heads) => {
                let [policy, value] = heads.map(|head| self.model.outputs(head.conv));
                (self.layers.squares, 0..policy, policy..policy + value)
            }
        };
        let row = layer.spec.inputs / squares;
        let (policy_weight, hidden_weight) = (self.matrix(form.policy), self.matrix(form.hidden));
        let weight = |output: usize, _: usize, input: usize| {
            let (square, channel) = (input / row, input % row);
            let (data, output, channels) = if output < logits {
                (policy_weight, output, &policy)
            } else {
                (hidden_weight, output - logits, &hidden)
            };
            if channels.contains(&channel) {
                data[(output * channels.len() + channel - channels.start) * squares + square]
            } else {
                0.0
            }
        };
        let biases = [form.policy, form.hidden].map(|of| self.bias(of).unwrap_or_default());
        self.layer(layer, layer.spec.inputs, weight, &biases.concat())
    }

    fn values(&mut self, values: usize) -> LayerPlace {
        let (weight, bias) = (self.matrix(values), self.bias(values).unwrap_or_default());
        LayerPlace { weights: self.push(weight), bias: self.push(bias), ..LayerPlace::default() }
    }
}

/// A pooling layer's parameters in the order that the kernels read: weights with outputs together.
fn packed_params(pooling: GlobalPooling, params: &[f32]) -> Vec<f32> {
    let [hidden, hidden_bias, output, _] = pooling.param_sizes();
    let transposed = |part: &[f32], inputs: usize| -> Vec<f32> {
        (0..inputs).flat_map(|input| part.iter().skip(input).step_by(inputs).copied()).collect()
    };
    let (hidden, rest) = params.split_at(hidden);
    let (hidden_bias, rest) = rest.split_at(hidden_bias);
    let (output, bias) = rest.split_at(output);
    let parts = [transposed(hidden, pooling.inputs()), hidden_bias.to_vec()];
    [parts.concat(), transposed(output, pooling.output_inputs()), bias.to_vec()].concat()
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
