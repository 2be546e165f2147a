//! A network's weights as the kernels read them: BatchNorm folded away, in the order of [`Layer::place`], all in one array.
//!
//! Twin of `net/fast/pack.rs` for the CPU.

use super::layer::Layer;
use super::{ElementType, Layers};
use crate::config::Arch;
use crate::error::Result;
use crate::model::fold::{self, Affine};
use crate::model::{NetSpec, Weights};

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
pub(super) struct Packed {
    pub bytes: Vec<u8>,
    pub stem: LayerPlace,
    pub blocks: Vec<[LayerPlace; 2]>,
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
pub(super) fn pack(spec: &NetSpec, weights: &Weights, layers: &Layers) -> Result<Packed> {
    spec.model()?.check(weights)?;
    let mut packer = Packer { spec, weights, layers, bytes: Vec::new() };
    let norm = fold::stream_norm(spec, weights, 0)?;
    let stem = packer.tower("stem", &layers.stem, None, Some(&norm))?;
    let [first, second] = match spec.arch {
        Arch::Mlp => ["linear1", "linear2"],
        Arch::Resnet => ["conv1", "conv2"],
        Arch::Edge => ["edge", "out"],
    };
    let (mut blocks, mut vertices) = (Vec::new(), Vec::new());
    for i in 0..spec.blocks {
        let folded = fold::norm(weights, &format!("blocks.{i}.bn2"))?;
        let norm = fold::stream_norm(spec, weights, i + 1)?;
        let inner = packer.tower(&format!("blocks.{i}.{first}"), &layers.tower, Some(&folded), None)?;
        let leave = packer.tower(&format!("blocks.{i}.{second}"), &layers.tower, None, Some(&norm))?;
        blocks.push([inner, leave]);
        if let Some(graph) = &layers.graph {
            vertices.push(packer.vertices(&format!("blocks.{i}.vertex"), &graph.layer, &folded)?);
        }
    }
    let head = match &layers.head {
        Some(layer) => packer.head(layer)?,
        None => LayerPlace::default(),
    };
    let policy = match spec.arch {
        Arch::Edge => packer.logits_of_edges(),
        Arch::Resnet | Arch::Mlp => LayerPlace::default(),
    };
    let dense = packer.dense()?;
    let values = packer.values();
    Ok(Packed { bytes: packer.bytes, stem, blocks, vertices, head, policy, dense, values })
}

struct Packer<'a> {
    spec: &'a NetSpec,
    weights: &'a Weights,
    layers: &'a Layers,
    bytes: Vec<u8>,
}

impl Packer<'_> {
    fn data(&self, name: &str) -> &[f32] {
        &self.weights[name].data
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
        layer: &Layer,
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

    /// A layer of stem or blocks, with BatchNorm `folded` into it and `norm` after the residual stream.
    fn tower(
        &mut self,
        name: &str,
        layer: &Layer,
        folded: Option<&Affine>,
        norm: Option<&Affine>,
    ) -> Result<LayerPlace> {
        let taps = layer.spec.taps;
        let array = &self.weights[&format!("{name}.weight")];
        let (data, inputs) = (array.data.as_slice(), array.shape[1]);
        let scale = |output: usize| folded.map_or(1.0, |f| f.scale[output]);
        let offset = |output: usize| folded.map_or(0.0, |f| f.offset[output]);
        let own = self.weights.get(&format!("{name}.bias")).map(|bias| bias.data.as_slice());
        let bias: Vec<f32> = (0..self.spec.channels)
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

    /// The weights of the messages from vertices to edges, with the scale of the BatchNorm behind the sum; its offset is with the edges.
    fn vertices(&mut self, name: &str, layer: &Layer, folded: &Affine) -> Result<LayerPlace> {
        let array = &self.weights[&format!("{name}.weight")];
        let (data, inputs) = (array.data.as_slice(), array.shape[1]);
        let weight =
            |output: usize, _: usize, input: usize| folded.scale[output] * data[output * inputs + input];
        self.layer(layer, inputs, weight, &[])
    }

    /// One weight a channel, 0 past the last.
    fn logits_of_edges(&mut self) -> LayerPlace {
        let mut weights = self.data("policy.linear.weight").to_vec();
        weights.resize(self.layers.tower.spec.inputs, 0.0);
        LayerPlace { weights: self.push(&weights), ..LayerPlace::default() }
    }

    /// Both heads' 1x1 convolutions with their BatchNorms.
    fn head(&mut self, layer: &Layer) -> Result<LayerPlace> {
        let NetSpec { channels, policy_channels, .. } = *self.spec;
        let weights = self.weights;
        let (policy, value) = (&weights["policy.conv.weight"].data, &weights["value.conv.weight"].data);
        let folded = fold::head_norm(weights)?;
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
        let NetSpec { channels, policy_channels, value_channels, .. } = *self.spec;
        let weights = self.weights;
        let layer = self.layers.dense;
        let logits = self.layers.dense_logits;
        let (squares, policy, hidden) = match self.spec.arch {
            Arch::Mlp | Arch::Edge => (1, 0..channels, 0..channels),
            Arch::Resnet => {
                let value = policy_channels..policy_channels + value_channels;
                (self.layers.squares, 0..policy_channels, value)
            }
        };
        let row = layer.spec.inputs / squares;
        let (policy_weight, hidden_weight) =
            (&weights["policy.linear.weight"].data, &weights["value.hidden.weight"].data);
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
        let policy_bias = if logits > 0 { self.data("policy.linear.bias") } else { &[] };
        let bias = [policy_bias, self.data("value.hidden.bias")].concat();
        self.layer(&layer, layer.spec.inputs, weight, &bias)
    }

    fn values(&mut self) -> LayerPlace {
        let (weight, bias) = (self.data("value.out.weight").to_vec(), self.data("value.out.bias").to_vec());
        LayerPlace { weights: self.push(&weight), bias: self.push(&bias), ..LayerPlace::default() }
    }
}

impl Layers {
    /// The constants of `net.cu`.
    pub(super) fn defines(&self, spec: &NetSpec, numbers: ElementType) -> Vec<(String, String)> {
        let text = |name: &str, value: String| (name.to_string(), value);
        let number = |name: &str, value: usize| (name.to_string(), value.to_string());
        let mut all = vec![
            text("VZ_NUMBERS", numbers.name().into()),
            text("VZ_STEM", self.stem.constants()),
            text("VZ_TOWER", self.tower.constants()),
            text("VZ_DENSE", self.dense.constants()),
            number("VZ_NET_PLANES", self.planes),
            number("VZ_NET_ACTIONS", spec.num_actions),
            number("VZ_NET_DENSE_LOGITS", self.dense_logits),
            number("VZ_NET_HIDDEN", spec.value_hidden),
            number("VZ_NET_VALUES", spec.num_values()),
            number("VZ_NET_PLAYERS", spec.num_players),
        ];
        all.extend(self.head.map(|head| text("VZ_HEAD", head.constants())));
        if let Some(graph) = &self.graph {
            all.push(text("VZ_VERTEX", graph.layer.constants()));
            all.push(number("VZ_NET_VERTICES", graph.vertices));
            all.push(number("VZ_NET_TRIANGLES", spec.channels / 2));
        }
        all
    }
}
