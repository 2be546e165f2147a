//! A network's weights -> layers ready to run, BatchNorm folded away.

use super::board::Runs;
use super::graph::Graph;
use super::im2col::Im2col;
use super::kernel_set::KernelSet;
use super::kernels::Kernels;
use super::layer::{Dense, Layer};
use super::tile::Epilogue;
use crate::config::Arch;
use crate::error::Result;
use crate::model::fold::{self, Affine};
use crate::model::{Edges, NetSpec, Weights};

/// All layers of one network.
pub(super) struct Packed {
    /// How the stem reads observations, if not plane by plane.
    pub im2col: Option<Im2col>,
    pub stem: Layer,
    pub blocks: Vec<[Layer; 2]>,
    /// The 1x1 convolutions of both heads as one (resnet): policy channels, then value channels.
    pub head: Option<Layer>,
    /// What an edge network does between layers.
    pub graph: Option<Graph>,
    pub policy: Layer,
    pub hidden: Layer,
    pub value: Layer,
    /// Multiplications a position needs.
    pub products: usize,
}

/// Packs `weights`. `steps` says what a step of each layer's byte activations is dequant_scale, stem first; none for floats.
pub(super) fn pack(
    spec: &NetSpec,
    weights: &Weights,
    kernel_set: KernelSet,
    steps: &[f32],
) -> Result<Packed> {
    spec.model()?.check(weights)?;
    let packer = Packer { spec, weights, kernel_set, steps };
    let mut packed = match spec.arch {
        Arch::Resnet => packer.resnet()?,
        Arch::Mlp => packer.mlp()?,
        Arch::Edge => packer.edge()?,
    };
    packed.products = packer.products(&packed);
    Ok(packed)
}

struct Packer<'a> {
    spec: &'a NetSpec,
    weights: &'a Weights,
    kernel_set: KernelSet,
    steps: &'a [f32],
}

/// One layer of the tower: its BatchNorm to fold in, the norm after it, what becomes of its sums, its number.
struct TowerLayer {
    fold: Option<Affine>,
    norm: Option<Affine>,
    epilogue: Epilogue,
    index: usize,
}

impl Packer<'_> {
    fn data(&self, name: &str) -> &[f32] {
        &self.weights[name].data
    }

    /// BatchNorm `name` with its running statistics as scale * x + offset.
    fn norm(&self, name: &str) -> Result<Affine> {
        fold::norm(self.weights, name)
    }

    /// Steps of the activations that layer `index` of the tower reads; of observations 1.
    fn source_step(&self, index: usize) -> f32 {
        if index == 0 { 1.0 } else { self.steps.get(index - 1).copied().unwrap_or(1.0) }
    }

    fn tower_steps(&self, index: usize) -> [f32; 2] {
        [self.source_step(index), self.source_step(index + 1)]
    }

    /// Layers of stem and blocks; the number of the first one after them.
    fn tower_layers(&self) -> usize {
        1 + 2 * self.spec.blocks
    }

    /// Stem and blocks, each layer made by `layer` out of name and inputs.
    fn tower(
        &self,
        inputs: usize,
        names: [&str; 2],
        layer: impl Fn(&str, usize, TowerLayer) -> Result<Layer>,
    ) -> Result<(Layer, Vec<[Layer; 2]>)> {
        let channels = self.spec.channels;
        let enter =
            TowerLayer { fold: None, norm: self.stream_norm(0)?, epilogue: Epilogue::StemBnRelu, index: 0 };
        let stem = layer("stem", inputs, enter)?;
        let block = |i: usize| -> Result<[Layer; 2]> {
            let fold = Some(self.norm(&format!("blocks.{i}.bn2"))?);
            let inner = TowerLayer { fold, norm: None, epilogue: Epilogue::BiasRelu, index: 2 * i + 1 };
            let norm = self.stream_norm(i + 1)?;
            let leave =
                TowerLayer { fold: None, norm, epilogue: Epilogue::ResidualAddBnRelu, index: 2 * i + 2 };
            Ok([
                layer(&format!("blocks.{i}.{}", names[0]), channels, inner)?,
                layer(&format!("blocks.{i}.{}", names[1]), channels, leave)?,
            ])
        };
        Ok((stem, (0..self.spec.blocks).map(block).collect::<Result<_>>()?))
    }

    fn tower_kernels(&self, index: usize, inputs: usize) -> &'static Kernels {
        if index == 0 { self.kernel_set.stem_of(inputs) } else { self.kernel_set.tower }
    }

    /// Channels of a row of the tower, as its layers write them.
    fn width(&self) -> usize {
        self.spec.channels.next_multiple_of(self.kernel_set.tower.written())
    }

    /// The BatchNorm that reads the residual stream after `blocks` blocks.
    fn stream_norm(&self, blocks: usize) -> Result<Option<Affine>> {
        fold::stream_norm(self.spec, self.weights, blocks).map(Some)
    }

    fn resnet(&self) -> Result<Packed> {
        let NetSpec { channels, obs, policy_channels, value_channels, .. } = *self.spec;
        let squares = obs.height * obs.width;
        let conv = |name: &str, inputs: usize, at: TowerLayer| {
            let data = self.data(&format!("{name}.weight"));
            let scale = |co: usize| at.fold.as_ref().map_or(1.0, |f| f.scale[co]);
            let weight = |co: usize, tap: usize, ci: usize| scale(co) * data[(co * inputs + ci) * 9 + tap];
            let bias = at.fold.as_ref().map_or(vec![0.0; channels], |f| f.offset.clone());
            let (norm, epilogue, steps) = (at.norm.clone(), at.epilogue, self.tower_steps(at.index));
            let (outputs, width) = (channels, self.width());
            let dense =
                Dense { outputs, width, taps: 9, inputs, weight: &weight, bias, norm, epilogue, steps };
            Layer::new(self.tower_kernels(at.index, inputs), Runs::conv3x3(obs.height, obs.width), &dense)
        };
        let im2col = self.kernel_set.im2col(obs);
        let layer = |name: &str, inputs: usize, at: TowerLayer| match &im2col {
            Some(im2col) if at.index == 0 => self.stem_around(im2col, at),
            _ => conv(name, inputs, at),
        };
        let (stem, blocks) = self.tower(obs.channels, ["conv1", "conv2"], layer)?;
        let linear = |name, inputs, epilogue| {
            self.linear(name, self.kernel_set.full, [squares, inputs], epilogue, 1.0)
        };
        Ok(Packed {
            im2col,
            stem,
            blocks,
            head: Some(self.head()?),
            graph: None,
            policy: linear("policy.linear", policy_channels, Epilogue::BiasF32)?,
            hidden: linear("value.hidden", value_channels, Epilogue::BiasReluF32)?,
            value: self.value_out()?,
            products: 0,
        })
    }

    /// The first convolution as a product of rows of what is im2col each square.
    fn stem_around(&self, im2col: &Im2col, at: TowerLayer) -> Result<Layer> {
        let NetSpec { channels, obs, .. } = *self.spec;
        let data = self.data("stem.weight");
        let weight = |co: usize, _: usize, number: usize| {
            im2col.source(number).map_or(0.0, |(plane, tap)| data[(co * obs.channels + plane) * 9 + tap])
        };
        let dense = Dense {
            outputs: channels,
            width: self.width(),
            taps: 1,
            inputs: im2col.inputs(),
            weight: &weight,
            bias: vec![0.0; channels],
            norm: at.norm,
            epilogue: at.epilogue,
            steps: [1.0; 2],
        };
        Layer::new(self.kernel_set.tower, Runs::pointwise(obs.height * obs.width), &dense)
    }

    /// Both heads' 1x1 convolutions with their BatchNorms.
    fn head(&self) -> Result<Layer> {
        let NetSpec { channels, obs, policy_channels, value_channels, .. } = *self.spec;
        let (policy, value) = (self.data("policy.conv.weight"), self.data("value.conv.weight"));
        let fold = fold::head_norm(self.weights)?;
        let weight = |co: usize, _: usize, ci: usize| {
            let row = if co < policy_channels {
                &policy[co * channels..]
            } else {
                &value[(co - policy_channels) * channels..]
            };
            fold.scale[co] * row[ci]
        };
        let dense = Dense {
            outputs: policy_channels + value_channels,
            width: policy_channels + value_channels,
            taps: 1,
            inputs: channels,
            weight: &weight,
            bias: fold.offset.clone(),
            norm: None,
            epilogue: Epilogue::BiasReluF32,
            steps: [self.source_step(self.tower_layers()), 1.0],
        };
        Layer::new(self.kernel_set.tower, Runs::pointwise(obs.height * obs.width), &dense)
    }

    fn mlp(&self) -> Result<Packed> {
        let NetSpec { channels, obs, .. } = *self.spec;
        let full_width = |name: &str, inputs: usize, at: TowerLayer| {
            let (data, bias) = (self.data(&format!("{name}.weight")), self.data(&format!("{name}.bias")));
            let scale = |co: usize| at.fold.as_ref().map_or(1.0, |f| f.scale[co]);
            let weight = |co: usize, _: usize, ci: usize| scale(co) * data[co * inputs + ci];
            let offset = |co: usize| at.fold.as_ref().map_or(0.0, |f| f.offset[co]);
            let bias = bias.iter().enumerate().map(|(co, b)| scale(co) * b + offset(co)).collect();
            let (norm, bias) = match at.epilogue {
                Epilogue::ResidualAddBnRelu => (self.norm_after(at.index / 2, at.norm), vec![0.0; channels]),
                _ => (at.norm, bias),
            };
            let (epilogue, steps) = (at.epilogue, self.tower_steps(at.index));
            let (outputs, width) = (channels, self.width());
            let dense =
                Dense { outputs, width, taps: 1, inputs, weight: &weight, bias, norm, epilogue, steps };
            Layer::new(self.tower_kernels(at.index, inputs), Runs::pointwise(1), &dense)
        };
        let (stem, blocks) = self.tower(obs.len(), ["linear1", "linear2"], full_width)?;
        let step = self.source_step(self.tower_layers());
        let linear = |name, epilogue| self.linear(name, self.kernel_set.tower, [1, channels], epilogue, step);
        Ok(Packed {
            im2col: None,
            stem,
            blocks,
            head: None,
            graph: None,
            policy: linear("policy.linear", Epilogue::BiasF32)?,
            hidden: linear("value.hidden", Epilogue::BiasReluF32)?,
            value: self.value_out()?,
            products: 0,
        })
    }

    /// `norm` of the stream after so many blocks, with what their last layers would have added to it.
    fn norm_after(&self, blocks: usize, norm: Option<Affine>) -> Option<Affine> {
        let mut norm = norm?;
        for block in 0..blocks {
            let bias = self.data(&format!("blocks.{block}.linear2.bias"));
            let offsets = norm.offset.iter_mut().zip(&norm.scale);
            offsets.zip(bias).for_each(|((offset, scale), b)| *offset += scale * b);
        }
        Some(norm)
    }

    fn edge(&self) -> Result<Packed> {
        let NetSpec { channels, obs, num_actions, .. } = *self.spec;
        let edges = Edges::of_observation(obs, num_actions)?;
        let triangle_channels = self.spec.channels / 2;
        let layer = |name: &str, inputs: usize, at: TowerLayer| {
            let data = self.data(&format!("{name}.weight"));
            // The last layer of a block reads sums over triangles in its first channels.
            let triangles = if at.epilogue == Epilogue::ResidualAddBnRelu { triangle_channels } else { 0 };
            let scale = |co: usize, ci: usize| {
                let folded = at.fold.as_ref().map_or(1.0, |f| f.scale[co]);
                if ci < triangles { folded * edges.triangle_scale() } else { folded }
            };
            let weight = |co: usize, _: usize, ci: usize| scale(co, ci) * data[co * inputs + ci];
            let bias = at.fold.as_ref().map_or(vec![0.0; channels], |f| f.offset.clone());
            let epilogue =
                if at.epilogue == Epilogue::BiasRelu { Epilogue::VertexAddRelu } else { at.epilogue };
            let (norm, steps) = (at.norm.clone(), [1.0; 2]);
            let (outputs, width) = (channels, self.width());
            let dense =
                Dense { outputs, width, taps: 1, inputs, weight: &weight, bias, norm, epilogue, steps };
            Layer::new(self.tower_kernels(at.index, inputs), Runs::edges(&edges), &dense)
        };
        let (stem, blocks) = self.tower(obs.channels, ["edge", "out"], layer)?;
        let vertex = (0..self.spec.blocks).map(|i| self.vertex(i, &edges)).collect::<Result<_>>()?;
        let policy = self.data("policy.linear.weight");
        let policy = Dense {
            outputs: 1,
            width: 1,
            taps: 1,
            inputs: channels,
            weight: &|_, _, ci| policy[ci],
            bias: vec![0.0],
            norm: None,
            epilogue: Epilogue::BiasF32,
            steps: [1.0; 2],
        };
        Ok(Packed {
            im2col: None,
            stem,
            blocks,
            head: None,
            policy: Layer::new(self.kernel_set.tower, Runs::pointwise(edges.len()), &policy)?,
            hidden: self.linear(
                "value.hidden",
                self.kernel_set.full,
                [1, channels],
                Epilogue::BiasReluF32,
                1.0,
            )?,
            value: self.value_out()?,
            graph: Some(Graph { edges, isa: self.kernel_set.isa, triangle_channels, vertex }),
            products: 0,
        })
    }

    /// What block `i` sends from every vertex, out of sums over its edges; whole vectors, so that padding is 0.
    fn vertex(&self, i: usize, edges: &Edges) -> Result<Layer> {
        let channels = self.spec.channels;
        let data = self.data(&format!("blocks.{i}.vertex.weight"));
        let fold = self.norm(&format!("blocks.{i}.bn2"))?;
        let weight = |co: usize, _: usize, ci: usize| match data.get(co * channels + ci) {
            Some(weight) => fold.scale[co] * edges.vertex_scale() * weight,
            None => 0.0,
        };
        let outputs = self.width();
        let dense = Dense {
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
        Layer::new(self.kernel_set.tower, Runs::pointwise(edges.vertices), &dense)
    }

    fn value_out(&self) -> Result<Layer> {
        self.linear("value.out", self.kernel_set.full, [1, self.spec.value_hidden], Epilogue::BiasF32, 1.0)
    }

    /// A linear layer on flattened `[inputs, positions]`, each position a tap; reads activations of `step`.
    fn linear(
        &self,
        name: &str,
        kernels: &'static Kernels,
        [positions, inputs]: [usize; 2],
        epilogue: Epilogue,
        step: f32,
    ) -> Result<Layer> {
        let (data, bias) = (self.data(&format!("{name}.weight")), self.data(&format!("{name}.bias")));
        let weight = |co: usize, p: usize, ci: usize| data[(co * inputs + ci) * positions + p];
        let dense = Dense {
            outputs: bias.len(),
            width: bias.len(),
            taps: positions,
            inputs,
            weight: &weight,
            bias: bias.to_vec(),
            norm: None,
            epilogue,
            steps: [step, 1.0],
        };
        Layer::new(kernels, Runs::dense(positions), &dense)
    }

    fn products(&self, packed: &Packed) -> usize {
        let NetSpec { channels, obs, policy_channels, value_channels, value_hidden, arch, .. } = *self.spec;
        let inputs = match arch {
            Arch::Resnet => [obs.channels, policy_channels, value_channels],
            Arch::Mlp => [obs.len(), channels, channels],
            Arch::Edge => [obs.channels, channels, channels],
        };
        let messages = packed.graph.as_ref().map_or(0, |graph| graph.products(channels));
        let tower = packed.blocks.iter().flatten().chain(&packed.head);
        let stem = match packed.im2col {
            Some(_) => Runs::conv3x3(obs.height, obs.width).taps() * inputs[0] * channels,
            None => packed.stem.products(inputs[0]),
        };
        stem + messages
            + tower.map(|layer| layer.products(channels)).sum::<usize>()
            + packed.policy.products(inputs[1])
            + packed.hidden.products(inputs[2])
            + packed.value.products(value_hidden)
    }
}
